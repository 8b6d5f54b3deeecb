/* SPDX-License-Identifier: MIT */
/* A process that has another library of Windows functions in it: each side reaches its own, whichever was linked first
 * or loaded later. `standin` makes such a library; WinPR's is loaded where it is installed, in a program of its own, as the
 * stand-in's functions would come between it and its own. Without the Windows headers in the way of dlopen: only <windows.h>, as an application has it. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <windows.h>
#include <ndsupport.h>

static unsigned passed, failed;

static void check(bool right, const char *what)
{
    if (right) {
        passed++;
    } else {
        failed++;
        printf("FAIL %s\n", what);
    }
}

static DWORD WINAPI thread_main(LPVOID event)
{
    return SetEvent(event) ? 7 : 8;
}

/* What an application does with our functions. */
static void use_ours(const char *when)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL), port, thread;
    OVERLAPPED *overlapped = (OVERLAPPED *)1;
    ULONG_PTR key = 0;
    DWORD bytes = 0, code = 0;
    char what[128];
    bool right;

    SetLastError(77);
    right = GetLastError() == 77 && WaitForSingleObject(event, 0) == WAIT_TIMEOUT && SetEvent(event) &&
            WaitForSingleObject(event, 0) == WAIT_OBJECT_0 && WaitForSingleObject(event, 0) == WAIT_TIMEOUT;
    thread = CreateThread(NULL, 0, thread_main, event, 0, NULL);
    right = right && WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0 &&
            WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && GetExitCodeThread(thread, &code) && code == 7;
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    right = right && PostQueuedCompletionStatus(port, 5, 6, NULL) &&
            GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, 0) && bytes == 5 && key == 6 && !overlapped;
    right = right && CloseHandle(event) && CloseHandle(thread) && CloseHandle(port) && !CloseHandle(event) &&
            GetLastError() == ERROR_INVALID_HANDLE;
    right = right && NdStartup() == S_OK && NdCleanup() == S_OK;
    snprintf(what, sizeof(what), "our functions %s", when);
    check(right, what);
}

#ifdef WINPR

/* WinPR's handles are pointers and its events work by eventfd; ours must not be asked. */
static void use_winpr(void *winpr)
{
    typedef void *create_event(void *, int, int, const char *);
    typedef int set_event(void *);
    typedef uint32_t wait_single(void *, uint32_t);
    create_event *create = (create_event *)dlsym(winpr, "CreateEventA");
    set_event *set = (set_event *)dlsym(winpr, "SetEvent"), *close_handle = (set_event *)dlsym(winpr, "CloseHandle");
    wait_single *wait = (wait_single *)dlsym(winpr, "WaitForSingleObject");
    void *event;

    check(create && set && wait && close_handle, "WinPR has its functions");
    if (failed)
        return;
    check((void *)create != (void *)CreateEventA && (void *)set != (void *)SetEvent, "WinPR's functions are not ours");
    event = create(NULL, 1, 0, NULL);
    check(event && wait(event, 0) == WAIT_TIMEOUT && set(event) && wait(event, 0) == WAIT_OBJECT_0 &&
              close_handle(event),
          "WinPR's functions beside ours");
}

int main(void)
{
    void *winpr = dlopen("libwinpr2.so.2", RTLD_NOW | RTLD_GLOBAL);

    if (!winpr)
        winpr = dlopen("libwinpr3.so.3", RTLD_NOW | RTLD_GLOBAL);
    if (!winpr) {
        printf("SKIP winpr: libwinpr2-2 is not installed; the stand-in has the same names\n");
        printf("0 passed, 0 failed, 1 skipped\n");
        return 77;
    }
    use_winpr(winpr);
    use_ours("beside WinPR");
    use_winpr(winpr);
    use_ours("after WinPR was used");
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed != 0;
}

#else

#ifndef STANDIN_LOADED
extern unsigned standin_calls;
long standin_round_trip(void);
#endif

int main(int argc, char **argv)
{
#ifdef STANDIN_LOADED
    unsigned *calls;
    long (*round_trip)(void);
    void *standin;

    use_ours("before the other library is loaded");
    standin = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_GLOBAL);
    check(standin != NULL, "the stand-in loads");
    if (!standin) {
        printf("%s\n%u passed, %u failed, 0 skipped\n", dlerror(), passed, failed);
        return 1;
    }
    calls = dlsym(standin, "standin_calls");
    round_trip = (long (*)(void))dlsym(standin, "standin_round_trip");
#else
    unsigned *calls = &standin_calls;
    long (*round_trip)(void) = standin_round_trip;

    (void)argc;
    (void)argv;
#endif
    use_ours("beside the other library");
    check(*calls == 0, "the other library's functions were not called");
    check(round_trip() == 5 * 42 && *calls == 5, "the other library reaches its own functions");
    use_ours("after the other library was used");
    check(*calls == 5, "the other library's functions were not called afterwards");
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed != 0;
}

#endif
