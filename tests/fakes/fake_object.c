/* SPDX-License-Identifier: MIT */

/* The registry of objects, and the descriptors that carry events. */

#include "fake_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FAKE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAKE_ASAN 1
#endif
#endif
#ifdef FAKE_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#define OBJECT_MAGIC 0xfa4e0b1eu

struct list fake_objects = { &fake_objects, &fake_objects };

static struct list dead_objects = { &dead_objects, &dead_objects };
static bool ignored[FAKE_KIND_COUNT];
static char *leaks;
static int base_fds;

static const char *const kind_names[] = {
    [FAKE_OBJ_DEVICE_LIST] = "device list",
    [FAKE_OBJ_CONTEXT] = "context",
    [FAKE_OBJ_PD] = "protection domain",
    [FAKE_OBJ_MR] = "memory region",
    [FAKE_OBJ_MW] = "memory window",
    [FAKE_OBJ_AH] = "address handle",
    [FAKE_OBJ_COMP_CHANNEL] = "completion channel",
    [FAKE_OBJ_CQ] = "completion queue",
    [FAKE_OBJ_SRQ] = "shared receive queue",
    [FAKE_OBJ_QP] = "queue pair",
    [FAKE_OBJ_EVENT_CHANNEL] = "event channel",
    [FAKE_OBJ_ID] = "cm id",
    [FAKE_OBJ_CM_EVENT] = "cm event",
};

/* Descriptors of the process but for those that the fakes hold for netlink sockets. */
static int count_fds(void)
{
    int count = -fake_net_fds();
    DIR *dir = opendir("/proc/self/fd");

    if (!dir)
        return 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

void fake_fds_mark(void)
{
    base_fds = count_fds();
}

void *fake_object_new(size_t size, size_t public_size, enum fake_kind kind)
{
    struct fake_object *object = (struct fake_object *)fake_malloc(size);

    object->kind = kind;
    object->magic = OBJECT_MAGIC;
    object->live = true;
    object->seq = fake_seq();
    object->public_size = public_size;
    list_add_tail(&fake_objects, &object->link);
    return object;
}

void fake_object_destroy(struct fake_object *object)
{
    object->live = false;
    list_del(&object->link);
    list_add_tail(&dead_objects, &object->link);
    ASAN_POISON_MEMORY_REGION(fake_public(object), object->public_size);
}

void *fake_object_check(const void *pointer, enum fake_kind kind, enum fake_fn fn)
{
    struct fake_object *object = pointer ? fake_head(pointer) : NULL;

    if (!object) {
        fake_violation("%s: NULL for a %s", fake_name(fn), kind_names[kind]);
        return NULL;
    }
    if (object->magic != OBJECT_MAGIC || object->kind != kind) {
        fake_violation("%s: %p is no %s", fake_name(fn), pointer, kind_names[kind]);
        return NULL;
    }
    if (!object->live) {
        fake_violation("%s: the %s %p was destroyed already", fake_name(fn), kind_names[kind], pointer);
        return NULL;
    }
    return object;
}

void fake_fetched(struct fake_object *object)
{
    object->unacked++;
    object->fetcher = pthread_self();
}

void fake_acked(struct fake_object *object, unsigned n, enum fake_fn fn)
{
    if (n > object->unacked) {
        fake_violation("%s: %u events acknowledged, %u fetched", fake_name(fn), n, object->unacked);
        n = object->unacked;
    }
    object->unacked -= n;
    fake_wake();
}

void fake_wait_acked(struct fake_object *object, enum fake_fn fn)
{
    while (object->unacked) {
        if (pthread_equal(object->fetcher, pthread_self())) {
            fake_violation("%s hangs: the calling thread has not acknowledged %u event(s) of the %s", fake_name(fn),
                           object->unacked, kind_names[object->kind]);
            return;
        }
        fake_wait();
    }
}

unsigned fake_live(enum fake_kind kind)
{
    unsigned count = 0;

    fake_lock();
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        count += object->live && !object->hidden && object->kind == kind;
    }
    fake_unlock();
    return count;
}

void *fake_object(enum fake_kind kind, int nth)
{
    struct fake_object *found = NULL;
    int live = (int)fake_live(kind), wanted = nth < 0 ? live + nth : nth;

    fake_lock();
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        if (object->live && !object->hidden && object->kind == kind && wanted-- == 0) {
            found = object;
            break;
        }
    }
    fake_unlock();
    if (!found)
        return NULL;
    if (kind == FAKE_OBJ_CONTEXT)
        return &((struct fake_context *)found)->verbs.context;
    return fake_public(found);
}

unsigned fake_live_objects(void)
{
    unsigned count = 0;

    for (int kind = 0; kind < FAKE_KIND_COUNT; kind++)
        count += ignored[kind] ? 0 : fake_live((enum fake_kind)kind);
    return count;
}

const char *fake_leaks(void)
{
    char *text = NULL;
    size_t size;
    FILE *to;

    fake_lock();
    fake_free(leaks);
    leaks = NULL;
    to = open_memstream(&text, &size);
    if (!to)
        abort();
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        if (object->live && !object->hidden && !ignored[object->kind])
            fprintf(to, "%s %p, made after call %llu\n", kind_names[object->kind], fake_public(object),
                    (unsigned long long)object->seq);
    }
    fclose(to);
    leaks = (char *)fake_copy(text, strlen(text) + 1);
    free(text);
    fake_unlock();
    return leaks;
}

void fake_live_ignore(enum fake_kind kind)
{
    fake_lock();
    ignored[kind] = true;
    fake_unlock();
}

int fake_open_fds(void)
{
    int fds;

    fake_lock();
    fds = count_fds() - base_fds;
    /* Not those of librdmacm's own contexts, which nobody can close. */
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        fds -= object->hidden && object->kind == FAKE_OBJ_CONTEXT;
    }
    fake_unlock();
    return fds;
}

/* ---- signals ---- */

void fake_signal_open(struct fake_signal *signal)
{
    signal->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    signal->count = 0;
    if (signal->fd < 0)
        abort();
}

void fake_signal_close(struct fake_signal *signal)
{
    if (signal->fd >= 0)
        close(signal->fd);
    signal->fd = -1;
}

void fake_signal_raise(struct fake_signal *signal)
{
    signal->count++;
    if (eventfd_write(signal->fd, 1) != 0)
        fake_violation("descriptor %d of an event queue was closed by others", signal->fd);
}

void fake_signal_lower(struct fake_signal *signal)
{
    eventfd_t value;

    signal->count--;
    if (eventfd_read(signal->fd, &value) != 0)
        fake_violation("descriptor %d of an event queue was read by others", signal->fd);
}

int fake_signal_empty(struct fake_signal *signal, enum fake_fn fn)
{
    int flags = fcntl(signal->fd, F_GETFL);

    if (flags >= 0 && !(flags & O_NONBLOCK))
        fake_violation("%s hangs: no event, and the descriptor is blocking", fake_name(fn));
    return EAGAIN;
}

/* ---- reset ---- */

void fake_objects_reset(void)
{
    list_splice_tail(&dead_objects, &fake_objects);
    list_for_each_safe (node, &dead_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        list_del(&object->link);
        ASAN_UNPOISON_MEMORY_REGION(fake_public(object), object->public_size);
        if (object->release)
            object->release(object);
        object->magic = 0;
        fake_free(object);
    }
    fake_free(leaks);
    leaks = NULL;
    memset(ignored, 0, sizeof(ignored));
}
