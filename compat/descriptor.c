/* SPDX-License-Identifier: MIT */
#include "descriptor.h"

#include <errno.h>
#include <ntstatus.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "handle.h"
#include "iocp.h"

bool descriptor_make_locked(struct object *object)
{
    int saved = errno;

    if (object->descriptor < 0)
        object->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    errno = saved;
    return object->descriptor >= 0;
}

/* One system call for each change; neither can block. A host that reads the descriptor by mistake makes the second one
 * fail, which does no harm. */
void descriptor_change_locked(struct object *object, bool readable)
{
    uint64_t value = 1;
    int saved = errno;
    ssize_t done;

    object->raised = readable;
    if (readable)
        done = write(object->descriptor, &value, sizeof(value));
    else
        done = read(object->descriptor, &value, sizeof(value));
    (void)done;
    errno = saved;
}

void descriptor_close(struct object *object)
{
    int saved = errno;

    if (object->descriptor < 0)
        return;
    close(object->descriptor);
    errno = saved;
}

NTSTATUS handle_descriptor(HANDLE handle, int *fd)
{
    struct object *object = handle_pin(handle, NULL);
    NTSTATUS status = STATUS_INVALID_HANDLE;

    if (!object)
        return status;
    if (object->ops == &port_ops || object->ops->waitable) {
        *fd = object->ops == &port_ops ? port_descriptor(object) : signal_descriptor(object);
        status = *fd >= 0 ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
    }
    handle_unpin(handle);
    return status;
}
