/* SPDX-License-Identifier: MIT */
#ifndef __unknwn_h__
#define __unknwn_h__

/* The two interfaces that every other stands on. Source: ndspi.md section 1.3, ndspi-v1.md section 4. */

#include "combaseapi.h"

/* No interface has a virtual destructor: it would take a slot. Objects end by Release. Inherited methods are declared anew by the same
 * macro as new ones. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#pragma GCC diagnostic ignored "-Wsuggest-override"
#endif

DEFINE_GUID(IID_IUnknown, 0x00000000, 0x0000, 0x0000, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46);

#undef INTERFACE
#define INTERFACE IUnknown
DECLARE_INTERFACE(IUnknown)
{
    /* NULL in *object and E_NOINTERFACE, or one more reference. */
    STDMETHOD(QueryInterface)(THIS_ REFIID riid, _Out_ void **object) PURE;
    /* Both return the new count. */
    STDMETHOD_(ULONG, AddRef)(THIS) PURE;
    STDMETHOD_(ULONG, Release)(THIS) PURE;
};

typedef IUnknown *LPUNKNOWN;

DEFINE_GUID(IID_IClassFactory, 0x00000001, 0x0000, 0x0000, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46);

#undef INTERFACE
#define INTERFACE IClassFactory
DECLARE_INTERFACE_(IClassFactory, IUnknown)
{
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, _Out_ void **object) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;

    /* `outer` must be NULL (else CLASS_E_NOAGGREGATION). */
    STDMETHOD(CreateInstance)(THIS_ _In_opt_ IUnknown * outer, REFIID riid, _Out_ void **object) PURE;
    STDMETHOD(LockServer)(THIS_ BOOL lock) PURE;
};

typedef IClassFactory *LPCLASSFACTORY;

#undef INTERFACE

#ifdef __cplusplus
NDV_UUID(IUnknown);
NDV_UUID(IClassFactory);
#pragma GCC diagnostic pop
#endif

#endif
