/* SPDX-License-Identifier: MIT */
#include "sleep.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "wordlock.h"

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull

/* Spins before a contended lock sleeps: leaf locks are held for tens of instructions, a sleep costs thousands. */
#define LOCK_SPINS 64

const struct sleep_hooks *sleep_hooks;

static uint64_t counted[SLEEP_CLASSES];
static _Thread_local uint64_t counted_here[SLEEP_CLASSES];

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

uint64_t sleep_now(void)
{
    struct timespec ts;

    if (__builtin_expect(sleep_hooks && sleep_hooks->now, 0))
        return sleep_hooks->now();
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t sleep_deadline(uint32_t ms)
{
    if (ms == UINT32_MAX)
        return SLEEP_FOREVER;
    return sleep_now() + ms * NS_PER_MS;
}

void sleep_count(enum sleep_class class)
{
    __atomic_add_fetch(&counted[class], 1, __ATOMIC_RELAXED);
    counted_here[class]++;
}

uint64_t sleep_counted(enum sleep_class class)
{
    return __atomic_load_n(&counted[class], __ATOMIC_RELAXED);
}

uint64_t sleep_counted_here(enum sleep_class class)
{
    return counted_here[class];
}

void futex_wait(enum sleep_class class, uint32_t *word, uint32_t value, uint64_t deadline)
{
    struct timespec ts, *timeout = NULL;
    int saved = errno;

    sleep_count(class);
    if (__builtin_expect(sleep_hooks && sleep_hooks->wait, 0)) {
        sleep_hooks->wait(class, word, value, deadline);
        return;
    }
    if (deadline != SLEEP_FOREVER) {
        ts.tv_sec = (time_t)(deadline / NS_PER_S);
        ts.tv_nsec = (long)(deadline % NS_PER_S);
        timeout = &ts;
    }
    /* FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC: no drift over spurious returns. */
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, timeout, NULL, FUTEX_BITSET_MATCH_ANY);
    errno = saved;
}

int sleep_poll_ms(uint64_t deadline)
{
    uint64_t now, ms;

    if (deadline == SLEEP_FOREVER)
        return -1;
    now = sleep_now();
    ms = now < deadline ? (deadline - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

int poll_wait(enum sleep_class class, struct pollfd *polled, nfds_t count, uint64_t deadline)
{
    sleep_count(class);
    return poll(polled, count, sleep_poll_ms(deadline));
}

bool readable_wait(enum sleep_class class, int fd, uint64_t deadline)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    int saved = errno;
    bool timely = poll_wait(class, &readable, 1, deadline) != 0;

    errno = saved;
    return timely;
}

void futex_wake(uint32_t *word, int count)
{
    int saved = errno;

    if (__builtin_expect(sleep_hooks && sleep_hooks->wake, 0)) {
        sleep_hooks->wake(word, count);
        return;
    }
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
    errno = saved;
}

void wordlock_lock_slow(struct wordlock *lock)
{
    for (int i = 0; i < LOCK_SPINS; i++) {
        if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) == 0 && wordlock_trylock(lock))
            return;
        cpu_relax();
    }
    /* From here on the word is taken as 2, also when it was free: others may sleep, and one wake-up too many is
     * cheaper than one too few. */
    while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
        futex_wait(SLEEP_LOCK, &lock->word, 2, SLEEP_FOREVER);
}

void wordlock_wake(struct wordlock *lock)
{
    __atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
    futex_wake(&lock->word, 1);
}

void gate_lock_slow(struct gate *gate)
{
    for (int i = 0; i < LOCK_SPINS; i++) {
        if (gate_trylock(gate))
            return;
        cpu_relax();
    }
    /* As above. A thread that fails to pass meanwhile makes the wait end at once. */
    while (__atomic_exchange_n(&gate->word, GATE_SLEEPERS, __ATOMIC_ACQUIRE) >= 0) {
        step_point();
        futex_wait(SLEEP_LOCK, (uint32_t *)&gate->word, GATE_SLEEPERS, SLEEP_FOREVER);
    }
}

/* Those who came and did not sleep have left the word a little above 0, or sleepers' mark a little off. */
void gate_leave(struct gate *gate, int32_t state)
{
    step_point();
    if (__atomic_exchange_n(&gate->word, state, __ATOMIC_RELEASE) >= GATE_SLEEPERS / 2)
        futex_wake((uint32_t *)&gate->word, 1);
}
