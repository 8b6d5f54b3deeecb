/* SPDX-License-Identifier: MIT */
/* GUIDs declared after this line are defined in this object. */
#ifndef INITGUID
#define INITGUID
#endif
#include "guiddef.h"
