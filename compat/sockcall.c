/* SPDX-License-Identifier: MIT */

/* The system's socket calls as Winsock has them (winsock2.h). errno is the system's: ported programs use that too.
 * Source: win32-surface.md sections 4.4 and 5.1. */

#define ND_COMPAT_NATIVE_SOCKETS 1
#include <winsock2.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#include "error.h"
#include "sleep.h"
#include "sock.h"

/* The names that the linker sees (ndvcompat/socket_bind.h); the plain ones are the system's here. */
#define OURS(name) NDV_API __typeof__(name) our_##name NDV_SYM(name)
OURS(accept);
OURS(bind);
OURS(connect);
OURS(gethostname);
OURS(getpeername);
OURS(getsockname);
OURS(getsockopt);
OURS(listen);
OURS(recv);
OURS(recvfrom);
OURS(select);
OURS(send);
OURS(sendto);
OURS(setsockopt);
OURS(shutdown);
OURS(socket);

static int fail_as(int error, DWORD code)
{
    SetLastError(code);
    errno = error;
    return SOCKET_ERROR;
}

static int fail(int error)
{
    return fail_as(error, error_from_errno(error));
}

static int checked(int result)
{
    return result >= 0 ? result : fail(errno);
}

static bool blocks(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && !(flags & O_NONBLOCK);
}

/* The result of a call that may wait. On a socket that blocks EAGAIN means that the time given by an option is up. */
static ssize_t waited(ssize_t result, int fd, int flags)
{
    int error = errno;

    if (result >= 0)
        return result;
    return error == EAGAIN && !(flags & MSG_DONTWAIT) && blocks(fd) ? fail_as(error, WSAETIMEDOUT) : fail(error);
}

int our_socket(int family, int type, int protocol)
{
    int fd = checked(socket(family, type, protocol));

    sock_made(fd, family);
    return fd;
}

static bool option_of(int fd, int option)
{
    int value = 0;
    socklen_t size = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value;
}

static void reuse_set(int fd, int value)
{
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value));
}

static bool is_tcp(int fd)
{
    int family = 0, protocol = 0;
    socklen_t size = sizeof(family), protocol_size = sizeof(protocol);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && (family == AF_INET || family == AF_INET6) &&
           getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &protocol_size) == 0 && protocol == IPPROTO_TCP;
}

/* Winsock binds a port over connections that its last listener has left behind. The system does so if both sides have
 * SO_REUSEADDR, but then also over sockets that are only bound; so ours have it while they bind, at the second attempt, and from
 * listen on, for the connections that they accept. */
int our_bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    int result = bind(fd, address, length), error = errno;

    if (result != 0 && error == EADDRINUSE && is_tcp(fd) && !option_of(fd, SO_REUSEADDR)) {
        reuse_set(fd, 1);
        result = bind(fd, address, length);
        error = errno;
        reuse_set(fd, 0);
    }
    return result == 0 ? result : fail(error);
}

int our_listen(int fd, int backlog)
{
    if (is_tcp(fd))
        reuse_set(fd, 1);
    return checked(listen(fd, backlog));
}

int our_getsockname(int fd, __SOCKADDR_ARG address, socklen_t *length)
{
    return checked(getsockname(fd, address, length));
}

int our_gethostname(char *name, size_t length)
{
    int result = gethostname(name, length);

    /* Of a buffer that is too small the system says several things. */
    return result == 0 ? 0 : fail_as(errno, WSAEFAULT);
}

int our_getpeername(int fd, __SOCKADDR_ARG address, socklen_t *length)
{
    return checked(getpeername(fd, address, length));
}

int our_shutdown(int fd, int how)
{
    return checked(shutdown(fd, how));
}

int our_connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    int result = connect(fd, address, length), error = errno;

    if (result == 0 || error != EINPROGRESS)
        return checked(result);
    return fail_as(error, blocks(fd) ? WSAETIMEDOUT : WSAEWOULDBLOCK);
}

int our_accept(int fd, __SOCKADDR_ARG address, socklen_t *length)
{
    bool listened = option_of(fd, SO_ACCEPTCONN);
    /* The new socket is in the mode of its listener. */
    int result = (int)waited(accept4(fd, address, length, blocks(fd) ? 0 : SOCK_NONBLOCK), fd, 0);

    /* closesocket has ended the listening meanwhile. */
    return result < 0 && listened && errno == EINVAL ? fail_as(EINVAL, WSAEINTR) : result;
}

/* One errno for sockets that the program has shut down, that were never connected and whose connection is gone. */
static DWORD broken_pipe_code(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4; /* the port of IPv6 lies there too */
        struct sockaddr_storage room;
    } address;
    struct tcp_info info = { 0 };
    socklen_t length = sizeof(address);

    if (getpeername(fd, &address.any, &length) == 0)
        return WSAESHUTDOWN;
    length = sizeof(address);
    if (getsockname(fd, &address.any, &length) == 0 && address.v4.sin_port == 0 &&
        (address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6))
        return WSAENOTCONN;
    /* A window is there from the first attempt to connect on. */
    length = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_rcv_ssthresh == 0)
        return WSAENOTCONN;
    return WSAECONNRESET;
}

static ssize_t sent(ssize_t result, int fd, int flags)
{
    int error = errno;

    return result < 0 && error == EPIPE ? fail_as(error, broken_pipe_code(fd)) : waited(result, fd, flags);
}

ssize_t our_send(int fd, const void *buffer, size_t size, int flags)
{
    return sent(send(fd, buffer, size, flags | MSG_NOSIGNAL), fd, flags);
}

ssize_t our_sendto(int fd, const void *buffer, size_t size, int flags, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    return sent(sendto(fd, buffer, size, flags | MSG_NOSIGNAL, address, length), fd, flags);
}

/* Only recvmsg tells that a datagram was longer. */
static ssize_t receive(int fd, void *buffer, size_t size, int flags, struct sockaddr *address, socklen_t *length)
{
    struct iovec part = { .iov_base = buffer, .iov_len = size };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t got;

    if (address && length) {
        message.msg_name = address;
        message.msg_namelen = *length;
    }
    got = waited(recvmsg(fd, &message, flags), fd, flags);
    if (got < 0)
        return got;
    if (address && length)
        *length = message.msg_namelen;
    /* Whoever asks for the true length gets that. */
    return (message.msg_flags & MSG_TRUNC) && !(flags & MSG_TRUNC) ? fail(EMSGSIZE) : got;
}

ssize_t our_recv(int fd, void *buffer, size_t size, int flags)
{
    return receive(fd, buffer, size, flags, NULL, NULL);
}

ssize_t our_recvfrom(int fd, void *buffer, size_t size, int flags, __SOCKADDR_ARG address, socklen_t *length)
{
    return receive(fd, buffer, size, flags, address.__sockaddr__, length);
}

/* --- options --- */

static bool is_time(int level, int option)
{
    return level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO);
}

int our_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    if (level == SOL_SOCKET && option == SO_EXCLUSIVEADDRUSE) {
        int type;
        socklen_t type_size = sizeof(type);

        return checked(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size));
    }
    if (is_time(level, option) && size == sizeof(DWORD) && value) {
        DWORD ms;
        struct timeval time;

        memcpy(&ms, value, sizeof(ms));
        time.tv_sec = (time_t)(ms / 1000);
        time.tv_usec = (suseconds_t)(ms % 1000 * 1000);
        return checked(setsockopt(fd, level, option, &time, sizeof(time)));
    }
    return checked(setsockopt(fd, level, option, value, size));
}

int our_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    int result;

    if (!value || !size)
        return fail(EFAULT);
    if (level == SOL_SOCKET && option == SO_EXCLUSIVEADDRUSE) {
        int reused;
        socklen_t reused_size = sizeof(reused);

        if (*size < sizeof(reused))
            return fail(EFAULT);
        if (checked(getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reused, &reused_size)) != 0)
            return SOCKET_ERROR;
        reused = !reused;
        memcpy(value, &reused, sizeof(reused));
        *size = sizeof(reused);
        return 0;
    }
    if (is_time(level, option) && *size == sizeof(DWORD)) {
        struct timeval time;
        socklen_t time_size = sizeof(time);
        DWORD ms;

        if (checked(getsockopt(fd, level, option, &time, &time_size)) != 0)
            return SOCKET_ERROR;
        ms = (DWORD)(time.tv_sec * 1000 + time.tv_usec / 1000);
        memcpy(value, &ms, sizeof(ms));
        return 0;
    }
    result = checked(getsockopt(fd, level, option, value, size));
    if (result == 0 && level == SOL_SOCKET && option == SO_ERROR && *size == sizeof(int)) {
        int error;

        memcpy(&error, value, sizeof(error));
        error = error ? (int)error_from_errno(error) : 0;
        memcpy(value, &error, sizeof(error));
    }
    return result;
}

/* --- select --- */

/* What makes a socket a member of the sets, as the kernel's select has it. A connect that fails makes it readable and
 * writable there, and puts it into the third set on Windows; select does not ask for that, so poll does the work. */
#define READ_EVENTS  (POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR)
#define WRITE_EVENTS (POLLWRNORM | POLLWRBAND | POLLOUT | POLLERR)

/* Decades; more would not fit into nanoseconds. */
#define LONGEST_S INT64_C(1000000000)

struct sets {
    fd_set *read, *write, *except;
};

static bool holds(const fd_set *set, int fd)
{
    return set && FD_ISSET(fd, set);
}

static int collect(const struct sets *sets, struct pollfd *polled)
{
    int count = 0;

    for (int fd = 0; fd < FD_SETSIZE; fd++) {
        short events = 0;

        if (holds(sets->read, fd))
            events |= POLLIN | POLLRDBAND;
        if (holds(sets->write, fd))
            events |= POLLOUT | POLLWRBAND;
        if (holds(sets->except, fd))
            events |= POLLPRI;
        if (events)
            polled[count++] = (struct pollfd){ .fd = fd, .events = events };
    }
    return count;
}

/* Takes the members out that have nothing to say. How many are left, or -1 with errno if one is no descriptor. */
static int sort(const struct sets *sets, const struct pollfd *polled, int count, struct sets *ready)
{
    int members = 0;

    for (int i = 0; i < count; i++) {
        int fd = polled[i].fd, events = polled[i].revents;
        bool failed;

        if (fd < 0)
            continue;
        if (events & POLLNVAL) {
            errno = EBADF;
            return -1;
        }
        failed = holds(sets->except, fd) && (events & POLLERR);
        if (holds(sets->read, fd) && (events & READ_EVENTS)) {
            FD_SET(fd, ready->read);
            members++;
        }
        if (holds(sets->write, fd) && (events & WRITE_EVENTS) && !failed) {
            FD_SET(fd, ready->write);
            members++;
        }
        if (holds(sets->except, fd) && (failed || (events & POLLPRI))) {
            FD_SET(fd, ready->except);
            members++;
        }
    }
    return members;
}

/* Takes the members that have something to say into `ready`. How many; 0 at the deadline, -1 with errno. */
static int wait_for_sets(const struct sets *sets, struct pollfd *polled, int count, uint64_t deadline,
                         struct sets *ready)
{
    for (;;) {
        int members = poll_wait(SLEEP_POLL, polled, (nfds_t)count, deadline);

        /* Winsock knows no signals, and the system never goes on by itself here. */
        if (members < 0 && errno == EINTR)
            continue;
        if (members <= 0)
            return members;
        members = sort(sets, polled, count, ready);
        if (members != 0)
            return members;
        /* poll tells of a hang-up whoever asks for it or not, and does so for ever. */
        for (int i = 0; i < count; i++) {
            if (polled[i].revents)
                polled[i].fd = -1;
        }
    }
}

int our_select(int ignored, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout)
{
    struct pollfd polled[FD_SETSIZE];
    struct sets sets = { read, write, except }, ready;
    fd_set found[3];
    uint64_t deadline = SLEEP_FOREVER;
    int members, count = collect(&sets, polled);

    (void)ignored;
    if (count == 0 || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
        return fail(EINVAL);
    if (timeout)
        deadline =
            sleep_now() + (uint64_t)min(timeout->tv_sec, LONGEST_S) * 1000000000u + (uint64_t)timeout->tv_usec * 1000u;
    for (int i = 0; i < 3; i++)
        FD_ZERO(&found[i]);
    ready = (struct sets){ &found[0], &found[1], &found[2] };
    members = checked(wait_for_sets(&sets, polled, count, deadline, &ready));
    if (members < 0)
        return members;
    if (read)
        *read = found[0];
    if (write)
        *write = found[1];
    if (except)
        *except = found[2];
    return members;
}
