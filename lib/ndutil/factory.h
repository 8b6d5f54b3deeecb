/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_FACTORY_H
#define NDVERBS_FACTORY_H

#include "ndspi.h"

/* A new provider of any version that answers `iid`. E_NOINTERFACE, E_OUTOFMEMORY. Any thread. */
HRESULT provider_create(REFIID iid, void **out);

/* A new class factory with one reference, for IID_IClassFactory; its CreateInstance makes providers. E_NOINTERFACE,
 * E_OUTOFMEMORY. Any thread. */
HRESULT factory_create(REFIID iid, void **out);

#endif
