/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ND2_ENTRY_H
#define NDVERBS_ND2_ENTRY_H

#include "ndspi.h"

/* The one thing that the catalogue entry points (lib/ndutil) need of this front: a new provider object with one
 * reference, for IID_IND2Provider or IID_IUnknown. E_NOINTERFACE, E_OUTOFMEMORY. Several may exist. Any thread. */
HRESULT nd2_provider_create(REFIID iid, void **out);

#endif
