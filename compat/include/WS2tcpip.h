/* SPDX-License-Identifier: MIT */
/* A spelling seen in applications; file names are case-sensitive here. */
#include "ws2tcpip.h"
