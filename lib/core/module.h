/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_MODULE_H
#define NDVERBS_MODULE_H

#include <stdint.h>

/* Counts the COM objects of all fronts for DllCanUnloadNow (ndspi-helpers.md 2). One call each where an object is made
 * and where its memory goes; core objects do not count. Any thread, no lock, works in a forked child. */
void module_object_made(void);
void module_object_gone(void);
uint32_t module_objects(void);

#endif
