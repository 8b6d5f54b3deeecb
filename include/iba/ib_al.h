/* SPDX-License-Identifier: MIT */
#ifndef __IB_AL_H__
#define __IB_AL_H__

/* The access layer itself is not here: the CM-only interface needs its types and nothing else of it. */

#include "ib_types.h"

#endif
