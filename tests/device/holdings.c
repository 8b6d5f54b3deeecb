/* SPDX-License-Identifier: MIT */
#include "holdings.h"

#include <dirent.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <windows.h>

#include "runner.h"

int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int n = -3; /* ".", ".." and the directory itself */

    ok(directory != NULL);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

unsigned long process_status(const char *field)
{
    FILE *file = fopen("/proc/self/status", "r");
    size_t length = strlen(field);
    unsigned long value = 0;
    char line[256];

    ok(file != NULL);
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, field, length) && line[length] == ':')
            value = strtoul(line + length + 1, NULL, 10);
    fclose(file);
    return value;
}

unsigned long kernel_objects(void)
{
    char path[64], line[400];
    unsigned long sum = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/ndverbs-objects-%d", (int)getpid());
    ok_int(runner_command("rdma resource show >%s", path), ==, 0);
    file = fopen(path, "r");
    ok(file != NULL);
    while (fgets(line, sizeof(line), file)) {
        /* "0: rxe0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0" */
        char *at = strchr(line, ':');

        at = at ? strchr(at + 1, ':') : NULL;
        for (char *word = at ? strtok(at + 1, " \n") : NULL; word; word = strtok(NULL, " \n"))
            sum += strtoul(word, NULL, 10);
    }
    fclose(file);
    unlink(path);
    return sum;
}

struct holdings holdings_now(void)
{
    struct holdings now = { 0 };

    now.descriptors = open_descriptors();
    now.memory = mallinfo2().uordblks;
    now.pinned = process_status("VmPin") + process_status("VmLck");
    now.objects = kernel_objects();
    return now;
}

void holdings_back_at(const struct holdings *before, size_t slack)
{
    ULONGLONG start = GetTickCount64();

    for (bool told = false;;) {
        struct holdings now = holdings_now();

        if (now.objects <= before->objects && now.descriptors <= before->descriptors && now.pinned <= before->pinned &&
            now.memory <= before->memory + slack) {
            runner_note("descriptors %d, kernel objects %lu, %zu bytes of memory before; %d, %lu, %zu after",
                        before->descriptors, before->objects, before->memory, now.descriptors, now.objects, now.memory);
            return;
        }
        if (!told && GetTickCount64() - start > 5000) {
            told = true;
            runner_note("still there after 5 s: descriptors %d, kernel objects %lu, pinned %lu kB, memory %zu; before "
                        "%d, %lu, %lu, %zu",
                        now.descriptors, now.objects, now.pinned, now.memory, before->descriptors, before->objects,
                        before->pinned, before->memory);
        }
        Sleep(50);
    }
}

void limit_locked_memory(size_t size)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct rlimit limit = { size, size };
    struct __user_cap_data_struct data[2];

    ok_int(syscall(SYS_capget, &header, data), ==, 0);
    data[CAP_IPC_LOCK / 32].effective &= ~(1u << (CAP_IPC_LOCK % 32));
    data[CAP_IPC_LOCK / 32].permitted &= ~(1u << (CAP_IPC_LOCK % 32));
    ok_int(syscall(SYS_capset, &header, data), ==, 0);
    ok_int(setrlimit(RLIMIT_MEMLOCK, &limit), ==, 0);
}
