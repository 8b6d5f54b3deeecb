/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <stdio.h>
#include <stdlib.h>

struct test_file {
    HANDLE server, client;
    char data[256];
};

struct test_file *test_file_open(void)
{
    static LONG number;
    struct test_file *file = (struct test_file *)calloc(1, sizeof(*file));
    char name[80];

    ok(file != NULL);
    snprintf(name, sizeof(name), "\\\\.\\pipe\\conformance-%lu-%ld", GetCurrentProcessId(),
             InterlockedIncrement(&number));
    file->server = CreateNamedPipeA(name, PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED,
                                    PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE, 1, 4096, 4096, 0, NULL);
    ok(file->server != INVALID_HANDLE_VALUE);
    file->client = CreateFileA(name, GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
    ok(file->client != INVALID_HANDLE_VALUE);
    return file;
}

void test_file_close(struct test_file *file)
{
    if (file->server)
        CloseHandle(file->server);
    CloseHandle(file->client);
    free(file);
}

HANDLE test_file_handle(struct test_file *file)
{
    return file->server;
}

void test_file_handle_closed(struct test_file *file)
{
    file->server = NULL;
}

void test_file_start(struct test_file *file, OVERLAPPED *ov)
{
    ok(!ReadFile(file->server, file->data, sizeof(file->data), NULL, ov));
    ok_uint(GetLastError(), ==, ERROR_IO_PENDING);
}

/* A message of that many bytes ends one read. */
void test_file_finish(struct test_file *file, DWORD bytes)
{
    char data[256] = { 0 };
    DWORD written;

    ok(WriteFile(file->client, data, bytes, &written, NULL));
}

void test_file_start_done(struct test_file *file, OVERLAPPED *ov, DWORD bytes)
{
    test_file_finish(file, bytes);
    ok(ReadFile(file->server, file->data, sizeof(file->data), NULL, ov) || GetLastError() == ERROR_IO_PENDING);
}
