/* SPDX-License-Identifier: MIT */
#ifndef TESTS_WIN32_FILE_H
#define TESTS_WIN32_FILE_H

/* An overlapped file whose requests the test completes. On Windows a pipe that is read from (file_windows.c); here a file of
 * the library (file_native.c). Calls abort the case if they fail. */

#include <windows.h>

#include <stdbool.h>

#include "harness.h"

/* NTSTATUS values that both sides have under no common header. */
#define FILE_PENDING   0x103u
#define FILE_CANCELLED 0xC0000120u

struct test_file;

/* Wine differs from Windows here and there; such a case says how. */
static inline bool under_wine(void)
{
    return GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version") != NULL;
}

struct test_file *test_file_open(void);
void test_file_close(struct test_file *file); /* the handle too, if the test has not closed it */
HANDLE test_file_handle(struct test_file *file);
/* The test has closed the handle. */
void test_file_handle_closed(struct test_file *file);

/* Starts a request, which stays pending; one that succeeds before the call returns, and whose call says so. */
void test_file_start(struct test_file *file, OVERLAPPED *ov);
void test_file_start_done(struct test_file *file, OVERLAPPED *ov, DWORD bytes);

/* The oldest pending request succeeds. Any thread. */
void test_file_finish(struct test_file *file, DWORD bytes);

#endif
