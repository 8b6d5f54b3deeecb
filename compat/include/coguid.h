/* SPDX-License-Identifier: MIT */
#include "guiddef.h"
