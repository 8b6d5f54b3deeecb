/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ND1_ENTRY_H
#define NDVERBS_ND1_ENTRY_H

#include "ndspi.h"

/* What the helper functions and the catalogue entry points (lib/ndutil) need of this front. Any thread. */

/* A new provider object with one reference, for IID_INDProvider or IID_IUnknown. E_NOINTERFACE, E_OUTOFMEMORY. */
HRESULT nd1_provider_create(REFIID iid, void **out);

/* INDProvider::OpenAdapter without a provider. ND_INVALID_ADDRESS, ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES,
 * ND_DEVICE_REMOVED. */
HRESULT nd1_open_adapter(const struct sockaddr *address, SIZE_T length, INDAdapter **out);

#endif
