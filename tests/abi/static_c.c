/* SPDX-License-Identifier: MIT */
#include "static.h"
