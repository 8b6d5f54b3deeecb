/* SPDX-License-Identifier: MIT */
/* Handle values: live, stale, tagged and invented ones in every call that takes a handle. A model says which are open; the
 * library must agree, and everything is gone at the end. */
#include <windows.h>

#include "descriptor.h"
#include "fuzz.h"
#include "handle.h"
#include "overlapped.h"

#define SLOTS 16

enum type {
    NOTHING,
    EVENT,
    PORT,
    FILE_OBJECT
};

static struct {
    HANDLE handle;  /* stays when it is closed, as a stale value */
    enum type type; /* NOTHING: closed or never made */
} slots[SLOTS];

/* A handle: of a slot, with its low bits, or any value at all; *slot -1 if no open slot has that value. */
static HANDLE pick(struct input *input, int *slot)
{
    uint8_t how = input_byte(input);
    HANDLE handle = slots[how % SLOTS].handle;

    if ((how & 0xc0) == 0xc0)
        handle = (HANDLE)(uintptr_t)input_u64(input);
    else if ((how & 0xc0) == 0x80)
        handle = (HANDLE)((uintptr_t)handle + ((uintptr_t)input_byte(input) << 32));
    else if (how & 0x40)
        handle = (HANDLE)((uintptr_t)handle | (input_byte(input) & 3));
    *slot = -1;
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].type != NOTHING && ((uintptr_t)handle & ~(uintptr_t)3) == (uintptr_t)slots[i].handle)
            *slot = i;
    }
    return handle;
}

static enum type type_of(int slot)
{
    return slot < 0 ? NOTHING : slots[slot].type;
}

static void put(struct input *input, HANDLE handle, enum type type)
{
    int slot = input_byte(input) % SLOTS;

    must(handle != NULL);
    if (slots[slot].type != NOTHING)
        must(CloseHandle(slots[slot].handle));
    slots[slot].handle = handle;
    slots[slot].type = type;
}

static bool pseudo(HANDLE handle)
{
    return handle == GetCurrentProcess() || handle == GetCurrentThread();
}

static void bad_handle(void)
{
    must(GetLastError() == ERROR_INVALID_HANDLE);
}

static void step(struct input *input)
{
    uint8_t operation = input_byte(input);
    HANDLE handle, other, copy = NULL;
    OVERLAPPED *overlapped;
    struct file *file;
    int slot, second, fd;
    ULONG_PTR key;
    DWORD bytes;

    switch (operation % 14) {
    case 0:
        put(input, CreateEventW(NULL, operation & 0x10, operation & 0x20, NULL), EVENT);
        break;
    case 1:
        put(input, CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0), PORT);
        break;
    case 2:
        file = file_create();
        put(input, file_open_handle(file, 0), FILE_OBJECT);
        file_unref(file);
        break;
    case 3:
        handle = pick(input, &slot);
        if (CloseHandle(handle)) {
            must(slot >= 0 || pseudo(handle));
            if (slot >= 0)
                slots[slot].type = NOTHING;
        } else {
            must(slot < 0);
            bad_handle();
        }
        break;
    case 4:
        handle = pick(input, &slot);
        if (!SetEvent(handle))
            bad_handle();
        else
            must(type_of(slot) == EVENT);
        break;
    case 5:
        handle = pick(input, &slot);
        if (!ResetEvent(handle))
            bad_handle();
        else
            must(type_of(slot) == EVENT);
        break;
    case 6:
        handle = pick(input, &slot);
        bytes = WaitForSingleObject(handle, 0);
        if (bytes == WAIT_FAILED)
            bad_handle();
        else
            must(type_of(slot) == EVENT || type_of(slot) == FILE_OBJECT || pseudo(handle));
        break;
    case 7: {
        HANDLE handles[4];
        bool all_open = true;

        for (int i = 0; i < 4; i++) {
            handles[i] = pick(input, &slot);
            all_open &= type_of(slot) == EVENT || type_of(slot) == FILE_OBJECT || pseudo(handles[i]);
        }
        bytes = WaitForMultipleObjects(4, handles, operation & 0x10, 0);
        if (bytes == WAIT_FAILED)
            must(GetLastError() == ERROR_INVALID_PARAMETER || GetLastError() == ERROR_INVALID_HANDLE);
        else
            must(all_open && (bytes == WAIT_TIMEOUT || bytes < 4));
        break;
    }
    case 8:
        handle = pick(input, &slot);
        if (PostQueuedCompletionStatus(handle, 1, 2, NULL))
            must(type_of(slot) == PORT);
        else
            bad_handle();
        break;
    case 9:
        handle = pick(input, &slot);
        if (GetQueuedCompletionStatus(handle, &bytes, &key, &overlapped, 0))
            must(type_of(slot) == PORT && bytes == 1 && key == 2 && !overlapped);
        else
            must(GetLastError() == WAIT_TIMEOUT ? type_of(slot) == PORT : GetLastError() == ERROR_INVALID_HANDLE);
        break;
    case 10:
        handle = pick(input, &slot);
        other = pick(input, &second);
        if (handle != INVALID_HANDLE_VALUE && other && CreateIoCompletionPort(handle, other, 3, 0))
            must(type_of(slot) == FILE_OBJECT && type_of(second) == PORT);
        break;
    case 11:
        handle = pick(input, &slot);
        if (DuplicateHandle(GetCurrentProcess(), handle, GetCurrentProcess(), &copy, 0, FALSE,
                            DUPLICATE_SAME_ACCESS | (operation & 0x10 ? DUPLICATE_CLOSE_SOURCE : 0))) {
            enum type type = type_of(slot);

            if (slot < 0) {
                must(pseudo(handle));
                CloseHandle(copy);
                break;
            }
            if (operation & 0x10)
                slots[slot].type = NOTHING;
            put(input, copy, type);
        } else {
            must(slot < 0);
        }
        break;
    case 12:
        handle = pick(input, &slot);
        if (handle_descriptor(handle, &fd) == 0)
            must(slot >= 0 && fd >= 0);
        else
            must(slot < 0);
        break;
    default:
        handle = pick(input, &slot);
        if (SetFileCompletionNotificationModes(handle, operation >> 6))
            must(type_of(slot) == FILE_OBJECT);
        CancelIoEx(handle, NULL);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = { data, data + (size > 512 ? 512 : size) };

    memset(slots, 0, sizeof(slots));
    while (input_left(&input))
        step(&input);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].type != NOTHING)
            must(CloseHandle(slots[i].handle));
        must(!slots[i].handle || !CloseHandle(slots[i].handle));
    }
    must(handle_count() == 0);
    return 0;
}
