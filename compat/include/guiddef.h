/* SPDX-License-Identifier: MIT */
/* GUID and DEFINE_GUID. Source: win32-surface.md section 3.4, ndspi.md section 1.3. */
#ifndef GUID_DEFINED
#define GUID_DEFINED

#include <stdint.h>
#include <string.h>

#include "ndvcompat/compiler.h"

typedef struct _GUID {
    uint32_t Data1;
    uint16_t Data2;
    uint16_t Data3;
    uint8_t Data4[8];
} GUID;

typedef GUID *LPGUID;
typedef const GUID *LPCGUID;
typedef GUID IID, *LPIID;
typedef GUID CLSID, *LPCLSID;

/* A reference in C++ and a pointer in C: the same ABI. */
#ifdef __cplusplus
#define REFGUID  const GUID &
#define REFIID   const IID &
#define REFCLSID const CLSID &
#else
#define REFGUID  const GUID *
#define REFIID   const IID *
#define REFCLSID const CLSID *
#endif

#ifdef __cplusplus
extern "C++" {
inline int IsEqualGUID(REFGUID a, REFGUID b)
{
    return !memcmp(&a, &b, sizeof(GUID));
}
inline int InlineIsEqualGUID(REFGUID a, REFGUID b)
{
    return !memcmp(&a, &b, sizeof(GUID));
}
inline bool operator==(REFGUID a, REFGUID b)
{
    return !memcmp(&a, &b, sizeof(GUID));
}
inline bool operator!=(REFGUID a, REFGUID b)
{
    return !(a == b);
}
}
#else
static inline int IsEqualGUID(REFGUID a, REFGUID b)
{
    return !memcmp(a, b, sizeof(GUID));
}
static inline int InlineIsEqualGUID(REFGUID a, REFGUID b)
{
    return !memcmp(a, b, sizeof(GUID));
}
#endif
#define IsEqualIID(a, b)   IsEqualGUID(a, b)
#define IsEqualCLSID(a, b) IsEqualGUID(a, b)

#ifdef __cplusplus
/* The id of an interface type, for __uuidof and IID_PPV_ARGS; headers that declare an interface state it by NDV_UUID. */
extern "C++" {
template <typename T> struct ndv_uuid;
template <typename T> inline REFGUID ndv_uuid_of_pointer(T **)
{
    return ndv_uuid<T>::get();
}
}
#define NDV_UUID(iface)                                      \
    extern "C++" template <> struct ndv_uuid<struct iface> { \
        static REFGUID get()                                 \
        {                                                    \
            return IID_##iface;                              \
        }                                                    \
    }
#ifndef __uuidof
#define __uuidof(type) (ndv_uuid<type>::get())
#endif
#define IID_PPV_ARGS(pp) ndv_uuid_of_pointer(pp), reinterpret_cast<void **>(pp)
#endif

#endif /* GUID_DEFINED */

/* Outside of the guard: <initguid.h> included later turns the declarations that follow it into definitions. These are
 * weak, so that several objects and the library may each have one. */
#undef DEFINE_GUID
#ifdef INITGUID
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
    EXTERN_C const GUID name NDV_SELECTANY;                          \
    const GUID name = { l, w1, w2, { b1, b2, b3, b4, b5, b6, b7, b8 } }
#else
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) EXTERN_C const GUID name NDV_VISIBLE
#endif
