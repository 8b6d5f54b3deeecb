/* SPDX-License-Identifier: MIT */
#ifndef _COMBASEAPI_H_
#define _COMBASEAPI_H_

/* How an interface is declared once and seen as an abstract class by C++ and as a table of functions (lpVtbl) by C. Both
 * have the same layout under the Itanium C++ ABI, as long as there is single inheritance, no virtual destructor and no
 * overloaded virtual function. Source: win32-surface.md section 3.4, ndspi.md section 1.3. */

#include "windows.h"
#include "guiddef.h"

#ifdef __cplusplus

#define STDMETHOD(method)        virtual HRESULT STDMETHODCALLTYPE method
#define STDMETHOD_(type, method) virtual type STDMETHODCALLTYPE method
#define PURE                     = 0
#define THIS_
#define THIS                            void
#define DECLARE_INTERFACE(iface)        struct iface
#define DECLARE_INTERFACE_(iface, base) struct iface : public base

#else

#define STDMETHOD(method)        HRESULT(STDMETHODCALLTYPE *method)
#define STDMETHOD_(type, method) type(STDMETHODCALLTYPE *method)
#define PURE
#define THIS_ INTERFACE *This,
#define THIS  INTERFACE *This
#define DECLARE_INTERFACE(iface)            \
    typedef struct iface {                  \
        const struct iface##Vtbl *lpVtbl;   \
    } iface;                                \
    typedef struct iface##Vtbl iface##Vtbl; \
    struct iface##Vtbl
#define DECLARE_INTERFACE_(iface, base) DECLARE_INTERFACE(iface)

#endif

/* Methods that repeat an inherited one: in C they fill its slot, in C++ they declare it again. */
#define IFACEMETHOD(method)        STDMETHOD(method)
#define IFACEMETHOD_(type, method) STDMETHOD_(type, method)

#define DECLARE_INTERFACE_IID(iface, iid)        DECLARE_INTERFACE(iface)
#define DECLARE_INTERFACE_IID_(iface, base, iid) DECLARE_INTERFACE_(iface, base)

/* The side that implements. */
#define STDAPI                EXTERN_C HRESULT STDAPICALLTYPE
#define STDAPI_(type)         EXTERN_C type STDAPICALLTYPE
#define STDMETHODIMP          HRESULT STDMETHODCALLTYPE
#define STDMETHODIMP_(type)   type STDMETHODCALLTYPE
#define IFACEMETHODIMP        STDMETHODIMP
#define IFACEMETHODIMP_(type) STDMETHODIMP_(type)

#endif
