/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <errno.h>
#include <limits.h>
#include <process.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "handle.h"
#include "wait.h"

/* Room for libev, librdmacm and libibverbs; the default of 8 MiB would only cost address space, which is scarce on
 * 32-bit. */
#define LIBRARY_STACK (256u * 1024)

/* A program of Windows reserves 1 MiB for each thread unless it is linked otherwise. The C library takes the thread-local storage of
 * the program and its libraries from the stack as well; the thread sanitizer's alone is most of a MiB. */
#define WINDOWS_STACK (2048u * 1024)

static bool start_detached(void *(*start)(void *arg), void *arg, size_t stack)
{
    pthread_attr_t attr;
    pthread_t thread;
    bool started;

    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack)
        pthread_attr_setstacksize(&attr, stack);
    started = pthread_create(&thread, &attr, start, arg) == 0;
    pthread_attr_destroy(&attr);
    return started;
}

static bool start_without_signals(void *(*start)(void *arg), void *arg, size_t stack)
{
    sigset_t all, old;
    bool started;

    /* The new thread inherits the mask. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    started = start_detached(start, arg, stack);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return started;
}

bool thread_start_detached(void *(*start)(void *arg), void *arg)
{
    return start_without_signals(start, arg, LIBRARY_STACK);
}

bool thread_start_callbacks(void *(*start)(void *arg), void *arg)
{
    return start_without_signals(start, arg, WINDOWS_STACK);
}

struct thread {
    struct object object; /* set for ever once the thread has finished */
    LPTHREAD_START_ROUTINE start;
    LPVOID parameter;
    DWORD code;
    uint32_t id; /* 0 until the thread runs; futex word of CreateThread */
    int priority;
};

static _Thread_local struct thread *self;

static void thread_destroy(struct object *object)
{
    free(object);
}

static const struct object_ops thread_ops = {
    .waitable = true,
    .destroy = thread_destroy,
};

/* Also when the application's function leaves by pthread_exit(). */
static void thread_finished(void *arg)
{
    struct thread *thread = arg;

    self = NULL; /* destructors of the thread may still come */
    signal_set(&thread->object);
    object_unref(&thread->object);
}

static void *thread_main(void *arg)
{
    struct thread *thread = arg;

    self = thread;
    pthread_cleanup_push(thread_finished, thread);
    __atomic_store_n(&thread->id, GetCurrentThreadId(), __ATOMIC_RELEASE);
    futex_wake(&thread->id, 1);
    __atomic_store_n(&thread->code, thread->start(thread->parameter), __ATOMIC_RELAXED);
    pthread_cleanup_pop(1);
    return NULL;
}

static pthread_key_t foreign_key;
static bool foreign_ready;

static void foreign_key_make(void)
{
    foreign_ready = pthread_key_create(&foreign_key, thread_finished) == 0;
}

/* Of threads that are not ours, for their own use. */
static _Thread_local int other_priority;

/* Threads that the system started get an object when they ask for it, which their end sets. Their exit code is 0. */
static struct thread *foreign_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct thread *thread;

    pthread_once(&once, foreign_key_make);
    thread = foreign_ready ? calloc(1, sizeof(*thread)) : NULL;
    if (!thread)
        return NULL;
    object_init(&thread->object, &thread_ops, SIGNAL_MANUAL);
    thread->id = GetCurrentThreadId();
    thread->priority = other_priority;
    if (pthread_setspecific(foreign_key, thread) != 0) {
        object_unref(&thread->object);
        return NULL;
    }
    return thread;
}

struct object *thread_object(void)
{
    int saved = errno;

    if (!self)
        self = foreign_thread();
    errno = saved;
    return self ? object_ref(&self->object) : NULL;
}

HANDLE WINAPI CreateThread(LPSECURITY_ATTRIBUTES security, SIZE_T stack, LPTHREAD_START_ROUTINE start, LPVOID parameter,
                           DWORD flags, LPDWORD id)
{
    struct thread *thread;
    HANDLE handle;

    (void)security;
    if (!start || flags & ~(DWORD)STACK_SIZE_PARAM_IS_A_RESERVATION) {
        SetLastError(start ? ERROR_NOT_SUPPORTED : ERROR_INVALID_PARAMETER);
        return NULL;
    }
    thread = calloc(1, sizeof(*thread));
    if (!thread)
        goto err_memory;
    object_init(&thread->object, &thread_ops, SIGNAL_MANUAL);
    thread->start = start;
    thread->parameter = parameter;
    thread->code = STILL_ACTIVE;
    handle = handle_open(&thread->object);
    if (!handle)
        goto err_thread;
    /* The running thread's reference is a second one, so that the first keeps the id readable here. */
    object_ref(&thread->object);
    /* Otherwise the size is what is committed at the start, within the reserve. */
    if (stack && stack < WINDOWS_STACK && !(flags & STACK_SIZE_PARAM_IS_A_RESERVATION))
        stack = WINDOWS_STACK;
    if (stack && stack < (SIZE_T)PTHREAD_STACK_MIN)
        stack = (SIZE_T)PTHREAD_STACK_MIN;
    stack = (stack + 65535) & ~(SIZE_T)65535;
    if (!start_detached(thread_main, thread, stack))
        goto err_start;
    if (id) {
        while (!__atomic_load_n(&thread->id, __ATOMIC_ACQUIRE))
            futex_wait(SLEEP_LOCK, &thread->id, 0, SLEEP_FOREVER);
        *id = thread->id;
    }
    object_unref(&thread->object);
    return handle;

err_start:
    object_unref(&thread->object);
    CloseHandle(handle);
err_thread:
    object_unref(&thread->object);
err_memory:
    SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return NULL;
}

BOOL WINAPI GetExitCodeThread(HANDLE handle, LPDWORD code)
{
    struct object *object = handle_pin(handle, &thread_ops);

    if (!object || !code) {
        if (object)
            handle_unpin(handle);
        SetLastError(object ? ERROR_INVALID_PARAMETER : ERROR_INVALID_HANDLE);
        return FALSE;
    }
    /* A thread may return 259: it has finished when the object is set, not when the code says so. */
    *code = signal_is_set(object) ? __atomic_load_n(&((struct thread *)object)->code, __ATOMIC_RELAXED) : STILL_ACTIVE;
    handle_unpin(handle);
    return TRUE;
}

VOID WINAPI ExitThread(DWORD code)
{
    if (self)
        __atomic_store_n(&self->code, code, __ATOMIC_RELAXED);
    pthread_exit(NULL);
}

uintptr_t __cdecl _beginthreadex(void *security, unsigned stack, unsigned (*start)(void *), void *parameter,
                                 unsigned flags, unsigned *id)
{
    HANDLE handle = CreateThread(security, stack, (LPTHREAD_START_ROUTINE)start, parameter, flags, id);

    if (!handle)
        errno = GetLastError() == ERROR_NOT_ENOUGH_MEMORY ? EAGAIN : EINVAL;
    return (uintptr_t)handle;
}

void __cdecl _endthreadex(unsigned code)
{
    ExitThread(code);
}

struct begun {
    void (*start)(void *parameter);
    void *parameter;
};

static DWORD WINAPI begun_main(LPVOID arg)
{
    struct begun begun = *(struct begun *)arg;

    free(arg);
    begun.start(begun.parameter);
    return 0;
}

/* The caller may not use the handle for more than a look: Windows closes it when the thread ends. Here it is closed at once
 * and its value says no more than that a thread was started. */
uintptr_t __cdecl _beginthread(void (*start)(void *), unsigned stack, void *parameter)
{
    struct begun *begun = start ? malloc(sizeof(*begun)) : NULL;
    HANDLE handle = NULL;

    if (begun) {
        *begun = (struct begun){ start, parameter };
        handle = CreateThread(NULL, stack, begun_main, begun, 0, NULL);
    }
    if (!handle) {
        free(begun);
        errno = start ? EAGAIN : EINVAL;
        return (uintptr_t)-1;
    }
    CloseHandle(handle);
    return (uintptr_t)handle;
}

void __cdecl _endthread(void)
{
    ExitThread(0);
}

int __cdecl _getpid(void)
{
    return getpid();
}

/* The thread behind a handle or the pseudo-handle: its kernel id, 0 if it has finished; false for a bad handle. `unpin` is
 * to be given back to handle_unpin() unless it is NULL. */
static bool thread_find(HANDLE handle, struct thread **thread, pid_t *id, HANDLE *unpin)
{
    struct object *object;

    *unpin = NULL;
    if (handle == GetCurrentThread()) {
        *thread = self;
        *id = (pid_t)GetCurrentThreadId();
        return true;
    }
    object = handle_pin(handle, &thread_ops);
    if (!object) {
        SetLastError(ERROR_INVALID_HANDLE);
        return false;
    }
    *unpin = handle;
    *thread = (struct thread *)object;
    while (!__atomic_load_n(&(*thread)->id, __ATOMIC_ACQUIRE))
        futex_wait(SLEEP_LOCK, &(*thread)->id, 0, SLEEP_FOREVER);
    *id = signal_is_set(object) ? 0 : (pid_t)(*thread)->id;
    return true;
}

DWORD WINAPI GetThreadId(HANDLE handle)
{
    struct thread *thread;
    HANDLE unpin;
    pid_t id;

    if (!thread_find(handle, &thread, &id, &unpin))
        return 0;
    if (thread)
        id = (pid_t)thread->id;
    if (unpin)
        handle_unpin(unpin);
    return (DWORD)id;
}

/* The level at which the process was started, as far as it can be told: before the first call here changes a thread's. */
static int base_nice;

static void base_nice_read(void)
{
    base_nice = getpriority(PRIO_PROCESS, (id_t)getpid());
}

BOOL WINAPI SetThreadPriority(HANDLE handle, int priority)
{
    static const struct {
        int priority, nice;
    } rows[] = {
        { THREAD_PRIORITY_IDLE, 19 },           { THREAD_PRIORITY_LOWEST, 10 },
        { THREAD_PRIORITY_BELOW_NORMAL, 5 },    { THREAD_PRIORITY_NORMAL, 0 },
        { THREAD_PRIORITY_ABOVE_NORMAL, -5 },   { THREAD_PRIORITY_HIGHEST, -10 },
        { THREAD_PRIORITY_TIME_CRITICAL, -20 },
    };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct thread *thread;
    int saved = errno;
    size_t row = 0;
    HANDLE unpin;
    pid_t id;

    while (row < ARRAYSIZE(rows) && rows[row].priority != priority)
        row++;
    if (row == ARRAYSIZE(rows)) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (!thread_find(handle, &thread, &id, &unpin))
        return FALSE;
    __atomic_store_n(thread ? &thread->priority : &other_priority, priority, __ATOMIC_RELAXED);
    /* Relative to the process, which may have been started at another level. What the system refuses is no failure: on
     * Windows every program may do this, so none is ready for one. */
    pthread_once(&once, base_nice_read);
    if (id)
        setpriority(PRIO_PROCESS, (id_t)id, base_nice + rows[row].nice);
    if (unpin)
        handle_unpin(unpin);
    errno = saved;
    return TRUE;
}

int WINAPI GetThreadPriority(HANDLE handle)
{
    struct thread *thread;
    HANDLE unpin;
    int priority;
    pid_t id;

    if (!thread_find(handle, &thread, &id, &unpin))
        return THREAD_PRIORITY_ERROR_RETURN;
    priority = __atomic_load_n(thread ? &thread->priority : &other_priority, __ATOMIC_RELAXED);
    if (unpin)
        handle_unpin(unpin);
    return priority;
}

#define MASK_BITS (sizeof(DWORD_PTR) * 8)

DWORD_PTR WINAPI SetThreadAffinityMask(HANDLE handle, DWORD_PTR mask)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    struct thread *thread;
    cpu_set_t before, after;
    DWORD_PTR old = 0;
    int saved = errno;
    HANDLE unpin;
    pid_t id;

    if (!mask || (processors > 0 && processors < (long)MASK_BITS && mask >> processors)) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return 0;
    }
    if (!thread_find(handle, &thread, &id, &unpin))
        return 0;
    CPU_ZERO(&after);
    for (size_t i = 0; i < MASK_BITS; i++) {
        if (mask >> i & 1)
            CPU_SET(i, &after);
    }
    if (!id) {
        SetLastError(ERROR_INVALID_HANDLE);
    } else if (sched_getaffinity(id, sizeof(before), &before) != 0 ||
               sched_setaffinity(id, sizeof(after), &after) != 0) {
        SetLastError(ERROR_INVALID_PARAMETER);
    } else {
        for (size_t i = 0; i < MASK_BITS; i++) {
            if (CPU_ISSET(i, &before))
                old |= (DWORD_PTR)1 << i;
        }
    }
    if (unpin)
        handle_unpin(unpin);
    errno = saved;
    return old;
}

DWORD WINAPI GetCurrentThreadId(void)
{
    static _Thread_local DWORD id __attribute__((tls_model("initial-exec")));

    if (!id)
        id = (DWORD)gettid();
    return id;
}

DWORD WINAPI GetCurrentProcessId(void)
{
    return (DWORD)getpid();
}

HANDLE WINAPI GetCurrentProcess(void)
{
    return (HANDLE)(LONG_PTR)-1;
}

HANDLE WINAPI GetCurrentThread(void)
{
    return (HANDLE)(LONG_PTR)-2;
}

BOOL WINAPI SwitchToThread(void)
{
    sched_yield();
    return TRUE;
}

/* A plain sleep is nobody's wait for RDMA: it never drives (design.md 2 rule 6). */
VOID WINAPI Sleep(DWORD milliseconds)
{
    struct waiter *waiter;

    if (milliseconds == 0) {
        sched_yield();
        return;
    }
    waiter = waiter_self();
    waiter_begin(waiter);
    wait_block(waiter, sleep_deadline(milliseconds), false);
}
