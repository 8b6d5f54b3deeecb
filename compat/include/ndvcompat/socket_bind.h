/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_SOCKET_BIND_H
#define NDVCOMPAT_SOCKET_BIND_H

/* The system's <sys/socket.h>, with its calls as Winsock has them (winsock2.h) in the sources of Windows, which find it here
 * first. A source that has included the system's header before knows which system it is on and keeps its calls, and so does
 * one with ND_COMPAT_NATIVE_SOCKETS. By assembler names, as in printf_bind.h. Source: win32-surface.md sections 4.4 and 5.1. */

#if defined(_SYS_SOCKET_H) || defined(ND_COMPAT_NATIVE_SOCKETS)

#include <sys/select.h>
#include <sys/socket.h>

#include "compiler.h"

#else

/* The checked forms of _FORTIFY_SOURCE are inline functions that would take the place of those bound below. */
#include <features.h>
#pragma push_macro("__USE_FORTIFY_LEVEL")
#undef __USE_FORTIFY_LEVEL
#define __USE_FORTIFY_LEVEL 0
#include <sys/select.h>
#include <sys/socket.h>
#pragma pop_macro("__USE_FORTIFY_LEVEL")

#include "compiler.h"

NDV_API __typeof__(accept) accept NDV_SYM(accept);
NDV_API __typeof__(bind) bind NDV_SYM(bind);
NDV_API __typeof__(connect) connect NDV_SYM(connect);
NDV_API __typeof__(getpeername) getpeername NDV_SYM(getpeername);
NDV_API __typeof__(getsockname) getsockname NDV_SYM(getsockname);
NDV_API __typeof__(getsockopt) getsockopt NDV_SYM(getsockopt);
NDV_API __typeof__(listen) listen NDV_SYM(listen);
NDV_API __typeof__(recv) recv NDV_SYM(recv);
NDV_API __typeof__(recvfrom) recvfrom NDV_SYM(recvfrom);
NDV_API __typeof__(select) select NDV_SYM(select);
NDV_API __typeof__(send) send NDV_SYM(send);
NDV_API __typeof__(sendto) sendto NDV_SYM(sendto);
NDV_API __typeof__(setsockopt) setsockopt NDV_SYM(setsockopt);
NDV_API __typeof__(shutdown) shutdown NDV_SYM(shutdown);
NDV_API __typeof__(socket) socket NDV_SYM(socket);
#define NDV_GETHOSTNAME_SYM NDV_SYM(gethostname)

#endif

/* It comes with <unistd.h>, whose names sources of Windows give to functions of their own. The checked form of
 * _FORTIFY_SOURCE, if that is here already, stays. */
#ifndef NDV_GETHOSTNAME_SYM
#define NDV_GETHOSTNAME_SYM
#endif
#if !(defined(_UNISTD_H) && __USE_FORTIFY_LEVEL > 0)
#ifdef __cplusplus
NDV_API int gethostname(char *name, size_t length) __THROW NDV_GETHOSTNAME_SYM;
#else
NDV_API int gethostname(char *name, size_t length) NDV_GETHOSTNAME_SYM;
#endif
#endif
#undef NDV_GETHOSTNAME_SYM

#ifdef __cplusplus
/* Windows has int where the system has socklen_t, which C++ does not convert. Each source has its own: which call it leads to
 * is that source's choice. */
extern "C++" {
#define NDV_OVERLOAD(Wanted) template <typename T> static inline typename ndv_only<T, Wanted>::type

NDV_OVERLOAD(int) accept(int socket, struct sockaddr *address, T *length)
{
    return ::accept(socket, address, reinterpret_cast<socklen_t *>(length));
}

NDV_OVERLOAD(int) getpeername(int socket, struct sockaddr *address, T *length)
{
    return ::getpeername(socket, address, reinterpret_cast<socklen_t *>(length));
}

NDV_OVERLOAD(int) getsockname(int socket, struct sockaddr *address, T *length)
{
    return ::getsockname(socket, address, reinterpret_cast<socklen_t *>(length));
}

NDV_OVERLOAD(int) getsockopt(int socket, int level, int option, void *value, T *length)
{
    return ::getsockopt(socket, level, option, value, reinterpret_cast<socklen_t *>(length));
}

NDV_OVERLOAD(int) recvfrom(int socket, void *buffer, size_t size, int flags, struct sockaddr *address, T *length)
{
    return static_cast<int>(::recvfrom(socket, buffer, size, flags, address, reinterpret_cast<socklen_t *>(length)));
}

/* The system's may write how much is left of the time. */
NDV_OVERLOAD(const struct timeval) select(int count, fd_set *read, fd_set *write, fd_set *except, T *timeout)
{
    struct timeval time = *timeout;

    return ::select(count, read, write, except, &time);
}

#undef NDV_OVERLOAD
}
#endif

#endif
