/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <ntstatus.h>
#include <stdlib.h>

#include "overlapped.h"
#include "wordlock.h"

struct test_file {
    struct file *file;
    HANDLE handle;
    struct wordlock lock;
    struct list pending;
};

struct test_file *test_file_open(void)
{
    struct test_file *file = calloc(1, sizeof(*file));

    ok(file != NULL);
    file->file = file_create();
    ok(file->file != NULL);
    file->handle = file_open_handle(file->file, 0);
    ok(file->handle != NULL);
    list_init(&file->pending);
    return file;
}

void test_file_close(struct test_file *file)
{
    if (file->handle)
        CloseHandle(file->handle);
    file_unref(file->file);
    free(file);
}

HANDLE test_file_handle(struct test_file *file)
{
    return file->handle;
}

void test_file_handle_closed(struct test_file *file)
{
    file->handle = NULL;
}

static void cancel(struct request *request)
{
    struct test_file *file = request->owner;

    wordlock_lock(&file->lock);
    if (list_linked(&request->link)) {
        list_del(&request->link);
        request_complete(request, STATUS_CANCELLED, 0);
    }
    wordlock_unlock(&file->lock);
}

void test_file_start(struct test_file *file, OVERLAPPED *ov)
{
    struct request *request;

    ok_status(request_alloc(file->file, ov, cancel, file, &request), STATUS_SUCCESS);
    wordlock_lock(&file->lock);
    list_add_tail(&file->pending, &request->link);
    request_start(request);
    wordlock_unlock(&file->lock);
}

static void finish(struct test_file *file, DWORD bytes, void (*complete)(struct request *, NTSTATUS, ULONG_PTR))
{
    struct list *link;

    wordlock_lock(&file->lock);
    link = list_pop(&file->pending);
    if (link)
        complete(list_entry(link, struct request, link), STATUS_SUCCESS, bytes);
    wordlock_unlock(&file->lock);
    ok(link != NULL);
}

void test_file_finish(struct test_file *file, DWORD bytes)
{
    finish(file, bytes, request_complete);
}

void test_file_start_done(struct test_file *file, OVERLAPPED *ov, DWORD bytes)
{
    test_file_start(file, ov);
    finish(file, bytes, request_complete_returned);
}
