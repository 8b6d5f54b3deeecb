/* SPDX-License-Identifier: MIT */
#include "start_main.c"
