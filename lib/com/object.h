/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_COM_OBJECT_H
#define NDVERBS_COM_OBJECT_H

/* What the objects of all fronts do alike. An object is one interface, its first member, with a count of the
 * application's references beside it. */

#include <stdbool.h>
#include <stdint.h>
#include <unknwn.h>

/* QueryInterface: IUnknown, `own`, and `base` unless NULL; all of them are the one interface. E_POINTER: out NULL.
 * E_NOINTERFACE: *out NULL. Adds a reference on success. Any thread. */
HRESULT com_query_interface(IUnknown *iface, uint32_t *refcount, REFIID iid, void **out, const GUID *own,
                            const GUID *base);

/* Is `iid` one that such an object answers? NULL is none. */
bool com_iid_is(REFIID iid, const GUID *own, const GUID *base);

static inline ULONG com_addref(uint32_t *refcount)
{
    return __atomic_add_fetch(refcount, 1, __ATOMIC_RELAXED);
}

/* 0: the caller destroys the object (unless in a forked child, where nothing may be touched). */
static inline ULONG com_release(uint32_t *refcount)
{
    return __atomic_sub_fetch(refcount, 1, __ATOMIC_ACQ_REL);
}

#endif
