/* SPDX-License-Identifier: MIT */
/* A spelling seen in applications; file names are case-sensitive here. */
#include "winsock2.h"
