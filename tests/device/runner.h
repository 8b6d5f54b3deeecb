/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_RUNNER_H
#define NDVERBS_DEVICE_RUNNER_H

/* The frame of the device tests. A case is one process (ALONE) or two (SERVER and CLIENT of the same name); each is the
 * program itself, executed again, so that no process ever uses the library across a fork and a case that crashes or hangs
 * harms no other. The assertions (ok, ok_int, ok_status, ...) are those of the unit tests' harness.h; a failed one ends
 * its process.
 *
 *     SERVER(accept) { ... }
 *     CLIENT(accept) { ... }
 *     ALONE(query) { ... }
 *     RUNNER_MAIN
 *
 * Arguments: names or patterns of cases; --list. One line per case as it ends, last line "N passed, N failed, N skipped".
 * A process that is still running after NDVERBS_WATCHDOG seconds (default 120, a guard against hangs and not a measure)
 * has its stacks printed (gdb) and is ended; its case failed. NDVERBS_LONG=1 runs the LONG_* cases too. */

#include "tests/unit/harness.h"

enum runner_role {
    ROLE_ALONE,
    ROLE_SERVER,
    ROLE_CLIENT,
    ROLES
};

void runner_add(const char *name, enum runner_role role, void (*run)(void), bool is_long);
int runner_main(int argc, char **argv);

#define RUNNER_MAIN                     \
    int main(int argc, char **argv)     \
    {                                   \
        return runner_main(argc, argv); \
    }

/* The same for programs that compare the heap: no thread keeps freed memory, or a heap, for itself, where it counts as in use, and
 * one that has ended leaves nothing with a kept stack (320 bytes each; the library has up to seven helpers at a time). The cases
 * are processes of their own, and begin with it. */
#define RUNNER_MAIN_EXACT                                                                                   \
    int main(int argc, char **argv)                                                                         \
    {                                                                                                       \
        setenv("GLIBC_TUNABLES",                                                                            \
               "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1:glibc.pthread.stack_cache_size=0", 1); \
        return runner_main(argc, argv);                                                                     \
    }

#define RUNNER_CASE(name_, role_, long_)                               \
    static void role_##_##name_(void);                                 \
    __attribute__((constructor)) static void role_##_add_##name_(void) \
    {                                                                  \
        runner_add(#name_, role_, role_##_##name_, long_);             \
    }                                                                  \
    static void role_##_##name_(void)

#define ALONE(name)       RUNNER_CASE(name, ROLE_ALONE, false)
#define SERVER(name)      RUNNER_CASE(name, ROLE_SERVER, false)
#define CLIENT(name)      RUNNER_CASE(name, ROLE_CLIENT, false)
#define PART(name)        SERVER(name) /* no case: started by runner_spawn(name, ROLE_SERVER, ...) */
#define LONG_ALONE(name)  RUNNER_CASE(name, ROLE_ALONE, true)
#define LONG_SERVER(name) RUNNER_CASE(name, ROLE_SERVER, true)
#define LONG_CLIENT(name) RUNNER_CASE(name, ROLE_CLIENT, true)

/* The part that this process plays. */
enum runner_role runner_role(void);

/* Prints a line to the program's output, behind the name of the case: figures that a reader of the log wants. */
void runner_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For pairs.c: a method gave that status. Kept if the case passes. */
void runner_pair(const char *method, const char *status);

/* Starts this program again as another process of the running case, playing `role` of `name`; returns the process id.
 * `*channel` is the other end of what runner_put and runner_get use there. Before any Network Direct call only. */
int runner_spawn(const char *name, enum runner_role role, int *channel);

/* Starts a foreign program in the running case's process group; its output goes to the case's log. Returns the process id.
 * At any time: between fork and exec nothing of the library is used. */
int runner_exec(const char *const argv[]);

/* The path of a program of the build that this one is of, below its top. */
void runner_built(const char *name, char *path, size_t size);

/* Runs a shell command and returns its wait status. */
int runner_command(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Waits for the end of a process started by one of the two; the wait status. */
int runner_wait(int pid);

/* Kills it as kill -9 does; stops it as Ctrl-Z does (when that returns it stands), and lets it go on. A child of the caller. */
void runner_kill(int pid);
void runner_stop(int pid);
void runner_continue(int pid);

/* The other side. `put` and `get` are exactly `size` bytes long on both sides; a `get` fails the case if the other side is
 * gone. runner_sync returns when both sides have called it. */
void runner_put(const void *data, size_t size);
void runner_get(void *data, size_t size);
void runner_sync(void);

/* On iWARP, a step of both sides between connecting and the first message, and between the last message and the end: siw
 * may never look at data that comes while its accept is still at work, and fails a send when the peer closes while it is
 * in the transmitter (README.md, "siw"; plain verbs programs hang the same way). Nothing elsewhere. */
void runner_settle(void);
void runner_put_to(int channel, const void *data, size_t size);
void runner_get_from(int channel, void *data, size_t size);

/* From the environment (see README.md); NULL where it does not say. */
const char *runner_env(const char *name);
bool runner_iwarp(void);   /* NDVERBS_TRANSPORT=siw */
bool runner_wire(void);    /* NDVERBS_NET=wire */
bool runner_machine(void); /* in tests/vm's machine: NDVERBS_NET is set */

/* Skip the case: no two devices joined by a wire; or what that wire loses is not the devices' affair. */
void runner_need_wire(void);
void runner_need_lossy_wire(void);

/* From now on what the library logs, at its level "info", goes to the file; lines of a file that have the text in them. */
void runner_log_to(const char *path);
int runner_log_lines(const char *path, const char *text);

/* The network device loses so much of what it sends; until it is mended. */
void runner_lose(const char *netdev, int percent);
void runner_mend(const char *netdev);

#endif
