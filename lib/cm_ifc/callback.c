/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include "core/log.h"
#include "core/status.h"
#include "sleep.h"
#include "thread.h"
#include "wordlock.h"

/* The thread that calls clients back: one for all ids, so that a callback that destroys another id never meets that id's
 * callback. It never drives the event loop; what it runs may block, at the cost of the other ids only. */

/* How often it looks whether a client has written the callback of an id that it got from get_request. */
#define LOOK_MS 10

static struct {
    struct wordlock lock; /* a leaf lock, for everything here and `queued` of the ids */
    struct list ready;    /* cm_id.ready_link, each with a reference */
    uint32_t posted;      /* futex word */
    bool runs;
} thread = { .ready = { &thread.ready, &thread.ready } };

static _Thread_local const struct cm_id *current __attribute__((tls_model("initial-exec")));

bool callback_runs_here(const struct cm_id *id)
{
    return current == id;
}

void callback_post(struct cm_id *id)
{
    bool queue;

    wordlock_lock(&thread.lock);
    queue = !id->queued;
    if (queue) {
        id->queued = true;
        cm_id_ref(id);
        list_add_tail(&thread.ready, &id->ready_link);
        __atomic_add_fetch(&thread.posted, 1, __ATOMIC_RELAXED);
    }
    wordlock_unlock(&thread.lock);
    if (queue)
        futex_wake(&thread.posted, 1);
}

static struct cm_id *next_ready(void)
{
    struct list *link;
    struct cm_id *id = NULL;

    wordlock_lock(&thread.lock);
    link = list_pop(&thread.ready);
    if (link) {
        id = list_entry(link, struct cm_id, ready_link);
        id->queued = false;
    }
    wordlock_unlock(&thread.lock);
    return id;
}

/* Lock held on entry and exit, not in between. */
static void call_locked(struct cm_id *id, NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), struct cm_message *message)
{
    bool request = message->event.type == iba_cm_req_received;
    NTSTATUS status;

    id->running = true;
    cm_id_unlock(id);
    current = id;
    status = callback(&id->pub, &message->event);
    current = NULL;
    cm_id_lock(id);
    id->running = false;
    message_recycle_locked(id, message);
    signal_set(&id->idle);
    if (!NT_SUCCESS(status) && !request && !id->destroying) {
        log_info("a callback failed (0x%x): its id is destroyed", (unsigned int)status);
        id->destroying = id->finish = true;
        cm_id_end_locked(id);
    }
}

/* One event of one id. True: look again later whether the id has a callback now. */
static bool deliver(struct cm_id *id)
{
    NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *);
    void (*done)(void *arg);
    bool finish, later;
    void *arg;

    cm_id_lock(id);
    callback = __atomic_load_n(&id->pub.callback, __ATOMIC_ACQUIRE);
    if (callback && !id->destroying && !list_empty(&id->events))
        call_locked(id, callback, message_pop_locked(id));
    finish = id->finish;
    done = id->done;
    arg = id->done_arg;
    id->finish = false;
    later = !callback && id->lacks_callback && !id->taken_by_call && !id->destroying && !list_empty(&id->events);
    if (callback && !id->destroying && !list_empty(&id->events))
        callback_post(id);
    cm_id_unlock(id);
    if (finish) {
        service_stop(id); /* a failing callback may leave it listening */
        if (done)
            done(arg);
        cm_id_unref(id); /* the client's claim */
    }
    return later;
}

static void *thread_main(void *arg)
{
    struct list held;

    list_init(&held);
    for (;;) {
        uint32_t posted = __atomic_load_n(&thread.posted, __ATOMIC_RELAXED);
        struct cm_id *id;

        while ((id = next_ready()) != NULL) {
            if (deliver(id)) {
                wordlock_lock(&thread.lock);
                if (!id->queued) {
                    id->queued = true;
                    cm_id_ref(id);
                    list_add_tail(&held, &id->ready_link);
                }
                wordlock_unlock(&thread.lock);
            }
            cm_id_unref(id);
        }
        futex_wait(SLEEP_LIBRARY, &thread.posted, posted, list_empty(&held) ? SLEEP_FOREVER : sleep_deadline(LOOK_MS));
        wordlock_lock(&thread.lock);
        list_splice_tail(&thread.ready, &held);
        wordlock_unlock(&thread.lock);
    }
    return arg;
}

NTSTATUS callback_start(void)
{
    bool runs;

    wordlock_lock(&thread.lock);
    runs = thread.runs;
    thread.runs = true;
    wordlock_unlock(&thread.lock);
    if (runs || thread_start_callbacks(thread_main, NULL))
        return STATUS_SUCCESS;
    wordlock_lock(&thread.lock);
    thread.runs = false;
    wordlock_unlock(&thread.lock);
    log_warn("pthread_create failed for the thread of the CM-only callbacks");
    return STATUS_INSUFFICIENT_RESOURCES;
}
