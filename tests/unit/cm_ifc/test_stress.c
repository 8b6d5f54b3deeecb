/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Eight threads create, connect, reject, disconnect and destroy ids, inside and outside of callbacks, on the fakes' wire and
 * with the library's own threads. Every id has a life of its own, kept beyond it: what it is called back with must fit what was
 * done with it, and nothing may come after its end. Meant for the thread and address sanitizers. NDVERBS_LONG: 2 minutes. */

#define THREADS 8
#define SECONDS 2
#define LONG    120

struct life {
    struct life *next;
    uint32_t count[iba_cm_sidr_rep_received + 1]; /* callbacks by type; atomic */
    uint32_t inside, ended;
    iba_cm_id *id;
    uint32_t destroys; /* destroy_id inside of the callback, at the first event of its own */
    bool passive;
};

static struct life *lives; /* all of them; atomic */
static uint32_t made, connected, rejected, async_asked, async_done, callbacks, stop;
static __thread unsigned int seed;

static unsigned int pick(unsigned int n)
{
    return (unsigned int)rand_r(&seed) % n;
}

static struct life *life_new(bool passive)
{
    struct life *life = calloc(1, sizeof(*life));

    ok(life != NULL);
    life->passive = passive;
    life->next = __atomic_load_n(&lives, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&lives, &life->next, life, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    return life;
}

static uint32_t counted(struct life *life, iba_cm_event_type type)
{
    return __atomic_load_n(&life->count[type], __ATOMIC_ACQUIRE);
}

/* Never called for a life that has ended, and never by two threads at a time. */
static NTSTATUS live(iba_cm_id *id, iba_cm_event *event)
{
    struct life *life = id->context;
    NTSTATUS status = STATUS_SUCCESS;

    if (!seed)
        seed = 4711;
    __atomic_add_fetch(&callbacks, 1, __ATOMIC_RELAXED);
    ok_uint(__atomic_load_n(&life->ended, __ATOMIC_ACQUIRE), ==, 0);
    ok_uint(__atomic_exchange_n(&life->inside, 1, __ATOMIC_ACQ_REL), ==, 0);
    ok_uint(counted(life, event->type), ==, 0); /* each kind of event at most once in a life */
    switch (event->type) {
    case iba_cm_rep_received:
        ok(!life->passive);
        /* The peer may be gone already. */
        if (CM.send_rtu(id, NULL, 0) == STATUS_SUCCESS)
            __atomic_add_fetch(&connected, 1, __ATOMIC_RELAXED);
        break;
    case iba_cm_rej_received:
        __atomic_add_fetch(&rejected, 1, __ATOMIC_RELAXED);
        break;
    case iba_cm_rtu_received:
        ok(life->passive);
        break;
    case iba_cm_dreq_received:
        (void)CM.send_drep(id, NULL, 0);
        break;
    case iba_cm_drep_received:
    case iba_cm_dreq_error:
        break;
    default:
        ok_msg(false, "event %d", event->type);
    }
    __atomic_add_fetch(&life->count[event->type], 1, __ATOMIC_RELEASE);
    __atomic_store_n(&life->inside, 0, __ATOMIC_RELEASE);
    if (life->destroys) {
        /* The last thing that is heard of it: by destroy_id, or by a failing status. */
        __atomic_store_n(&life->ended, 1, __ATOMIC_RELEASE);
        if (life->destroys == 1)
            CM.destroy_id(id);
        else
            status = STATUS_UNSUCCESSFUL;
    }
    return status;
}

static void life_over(void *arg)
{
    struct life *life = arg;

    __atomic_store_n(&life->ended, 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&async_done, 1, __ATOMIC_RELEASE);
}

static void life_destroy(struct life *life)
{
    if (pick(3) == 0) {
        __atomic_add_fetch(&async_asked, 1, __ATOMIC_RELAXED);
        ok_status(ndverbs_cm_destroy_id(life->id, life_over, life), STATUS_SUCCESS);
    } else {
        CM.destroy_id(life->id);
        __atomic_store_n(&life->ended, 1, __ATOMIC_RELEASE); /* and nothing comes any more */
    }
}

/* The listening id's callback takes all there is; what becomes of a request is chance. */
static NTSTATUS answer(iba_cm_id *listen_id, iba_cm_event *notification)
{
    iba_cm_event event;
    iba_cm_rep rep = reply_of("world");
    ib_qp_mod_t mod;

    if (!seed)
        seed = 4711;
    ok_int(notification->type, ==, iba_cm_req_received);
    for (;;) {
        struct life *life = life_new(true);
        NTSTATUS status = CM.get_request_ex(listen_id, live, life, &life->id, &event);

        if (status == STATUS_NO_MORE_ENTRIES)
            return STATUS_SUCCESS;
        ok_status(status, STATUS_SUCCESS);
        life->destroys = pick(2) ? 1 : 2; /* nobody else does it: at the first event */
        switch (pick(4)) {
        case 0:
            CM.send_rej(life->id, IB_REJ_USER_DEFINED, NULL, 0, "no", 3);
            CM.destroy_id(life->id);
            break;
        case 1:
            CM.destroy_id(life->id);
            break;
        default:
            (void)CM.format_rep(life->id, &rep, &mod);
            /* Refused when the peer has given up: then no event comes. */
            if (CM.send_formatted_rep(life->id) != STATUS_SUCCESS)
                CM.destroy_id(life->id);
            break;
        }
    }
}

static void attempt(struct life *life)
{
    struct asked r;
    iba_cm_id *id = life->id;
    ib_qp_mod_t mod;
    unsigned int wait = pick(3);

    request_fill(&r, NULL, "10.1.1.1", "hello");
    ok_status(CM.send_req(id, &r.req), STATUS_SUCCESS);
    (void)CM.get_qp_attr(id, IB_QPS_INIT, &mod);
    if (life->destroys)
        return; /* in its callback, which is sure to come */
    if (wait) {
        /* Until it is known what became of it. */
        ok_eventually(counted(life, iba_cm_rep_received) || counted(life, iba_cm_rej_received));
        (void)CM.get_qp_attr(id, IB_QPS_RTS, &mod);
        if (wait > 1 && CM.send_dreq(id, NULL, 0) == STATUS_SUCCESS)
            ok_eventually(counted(life, iba_cm_drep_received));
    }
    life_destroy(life);
}

static void *worker(void *arg)
{
    seed = (unsigned int)(uintptr_t)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        struct life *life = life_new(false);

        ok_status(CM.create_id(live, life, &life->id), STATUS_SUCCESS);
        switch (pick(8)) {
        case 0: /* never used */
            life_destroy(life);
            break;
        case 1: /* listens somewhere for a while */
            ok_status(CM.listen(life->id, service_of((uint16_t)(10000 + (uintptr_t)arg)), NULL, 0, 0), STATUS_SUCCESS);
            if (pick(2))
                ok_status(CM.cancel_listen(life->id), STATUS_SUCCESS);
            life_destroy(life);
            break;
        case 2:
            life->destroys = 1 + pick(2);
            attempt(life);
            break;
        default:
            attempt(life);
            break;
        }
    }
    return NULL;
}

/* Nothing twice, nothing that does not belong there, nothing without its cause. */
static void check_life(struct life *life)
{
    uint32_t rep = counted(life, iba_cm_rep_received), rej = counted(life, iba_cm_rej_received);
    uint32_t rtu = counted(life, iba_cm_rtu_received);
    uint32_t end =
        counted(life, iba_cm_dreq_received) + counted(life, iba_cm_drep_received) + counted(life, iba_cm_dreq_error);

    ok_uint(rep, <=, 1);
    ok_uint(rej, <=, 1);
    ok_uint(end, <=, 1);
    ok_uint(rtu, <=, life->passive ? 1 : 0);
    ok_uint(rej + end, <=, 1); /* refused or disconnected */
    if (!life->passive && end)
        ok_uint(rep, ==, 1);
    if (life->passive)
        ok_uint(rep, ==, 0);
    if (life->destroys)
        ok_uint(rep + rej + rtu + end, <=, 1); /* it ended with its first */
}

TEST(Stress__eight_threads)
{
    unsigned int seconds = getenv("NDVERBS_LONG") ? LONG : SECONDS;
    pthread_t thread[THREADS];
    iba_cm_id *listener;
    uint32_t total = 0, ids = 0;

    rig_begin();
    fake_wire(true);
    ok_status(CM.create_id(answer, NULL, &listener), STATUS_SUCCESS);
    ok_status(CM.listen(listener, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    for (uintptr_t i = 0; i < THREADS; i++)
        ok_int(pthread_create(&thread[i], NULL, worker, (void *)(i + 1)), ==, 0);
    for (unsigned int i = 0; i < seconds * 10; i++)
        usleep(100000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++)
        ok_int(pthread_join(thread[i], NULL), ==, 0);
    CM.destroy_id(listener);
    ok_eventually(__atomic_load_n(&async_done, __ATOMIC_ACQUIRE) == __atomic_load_n(&async_asked, __ATOMIC_ACQUIRE));
    rig_end(); /* every id has ended, those in callbacks too */
    while (lives) {
        struct life *life = lives;

        for (int type = 0; type <= iba_cm_sidr_rep_received; type++)
            total += life->count[type];
        check_life(life);
        ids++;
        lives = life->next;
        free(life);
    }
    ok_uint(ids, ==, made);
    ok_uint(total, ==, callbacks);
    ok_uint(connected, >, 0);
    ok_uint(rejected, >, 0);
    ok_uint(async_asked, >, 0);
    printf("%u ids, %u connected, %u rejected, %u callbacks\n", ids, connected, rejected, callbacks);
}
