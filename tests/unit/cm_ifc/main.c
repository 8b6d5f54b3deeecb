/* SPDX-License-Identifier: MIT */
#include "harness.h"

HARNESS_MAIN
