/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "wordlock.h"

/* Heaps are malloc with a header: HeapSize must know what was asked for, and HeapDestroy frees what is left. */

#define HEAP_MAGIC 0x6e647668u

struct heap {
    uint32_t magic;
    bool private;
    struct wordlock lock;
    struct list blocks; /* of a private heap, under the lock */
};

struct block {
    struct heap *heap;
    size_t size;
    struct list link;
};
#define HEADER ((sizeof(struct block) + 15) & ~(size_t)15)

static struct heap process_heap = { .magic = HEAP_MAGIC };

static struct heap *heap_of(HANDLE handle)
{
    struct heap *heap = handle;

    if (heap && heap != INVALID_HANDLE_VALUE && heap->magic == HEAP_MAGIC)
        return heap;
    SetLastError(ERROR_INVALID_HANDLE);
    return NULL;
}

static struct block *block_of(const void *memory)
{
    return (struct block *)((char *)(uintptr_t)memory - HEADER);
}

HANDLE WINAPI GetProcessHeap(void)
{
    return &process_heap;
}

HANDLE WINAPI HeapCreate(DWORD options, SIZE_T initial, SIZE_T maximum)
{
    struct heap *heap = calloc(1, sizeof(*heap));

    (void)options;
    (void)initial;
    (void)maximum;
    if (!heap) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    heap->magic = HEAP_MAGIC;
    heap->private = true;
    list_init(&heap->blocks);
    return heap;
}

BOOL WINAPI HeapDestroy(HANDLE handle)
{
    struct heap *heap = heap_of(handle);
    struct list *link;

    if (!heap)
        return FALSE;
    if (!heap->private) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    while ((link = list_pop(&heap->blocks)))
        free(list_entry(link, struct block, link));
    heap->magic = 0;
    free(heap);
    return TRUE;
}

static void block_link(struct heap *heap, struct block *block)
{
    block->heap = heap;
    list_init(&block->link);
    if (heap->private) {
        wordlock_lock(&heap->lock);
        list_add_tail(&heap->blocks, &block->link);
        wordlock_unlock(&heap->lock);
    }
}

static void block_unlink(struct heap *heap, struct block *block)
{
    if (heap->private) {
        wordlock_lock(&heap->lock);
        list_del(&block->link);
        wordlock_unlock(&heap->lock);
    }
}

LPVOID WINAPI HeapAlloc(HANDLE handle, DWORD flags, SIZE_T size)
{
    struct heap *heap = heap_of(handle);
    struct block *block;

    if (!heap)
        return NULL;
    if (size > SIZE_MAX - HEADER)
        return NULL;
    block = flags & HEAP_ZERO_MEMORY ? calloc(1, HEADER + size) : malloc(HEADER + size);
    if (!block)
        return NULL;
    block->size = size;
    block_link(heap, block);
    return (char *)block + HEADER;
}

LPVOID WINAPI HeapReAlloc(HANDLE handle, DWORD flags, LPVOID memory, SIZE_T size)
{
    struct heap *heap = heap_of(handle);
    struct block *block, *moved;
    size_t old;

    if (!heap || !memory || size > SIZE_MAX - HEADER)
        return NULL;
    block = block_of(memory);
    old = block->size;
    if (flags & HEAP_REALLOC_IN_PLACE_ONLY) {
        if (size > old)
            return NULL;
        block->size = size;
        return memory;
    }
    block_unlink(heap, block);
    moved = realloc(block, HEADER + size);
    if (!moved) {
        block_link(heap, block);
        return NULL;
    }
    if (flags & HEAP_ZERO_MEMORY && size > old)
        memset((char *)moved + HEADER + old, 0, size - old);
    moved->size = size;
    block_link(heap, moved);
    return (char *)moved + HEADER;
}

BOOL WINAPI HeapFree(HANDLE handle, DWORD flags, LPVOID memory)
{
    struct heap *heap = heap_of(handle);
    struct block *block;

    (void)flags;
    if (!heap)
        return FALSE;
    if (!memory)
        return TRUE;
    block = block_of(memory);
    if (block->heap != heap) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    block_unlink(heap, block);
    block->heap = NULL;
    free(block);
    return TRUE;
}

SIZE_T WINAPI HeapSize(HANDLE handle, DWORD flags, const VOID *memory)
{
    struct heap *heap = heap_of(handle);

    (void)flags;
    if (!heap || !memory || block_of(memory)->heap != heap)
        return (SIZE_T)-1;
    return block_of(memory)->size;
}

void *__cdecl _aligned_malloc(size_t size, size_t alignment)
{
    void *memory;
    int error;

    if (alignment == 0 || alignment & (alignment - 1)) {
        errno = EINVAL;
        return NULL;
    }
    error = posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size ? size : 1);
    if (error) {
        errno = error;
        return NULL;
    }
    return memory;
}

void __cdecl _aligned_free(void *block)
{
    free(block);
}

static BOOL not_implemented(void)
{
    SetLastError(ERROR_CALL_NOT_IMPLEMENTED);
    return FALSE;
}

BOOL WINAPI HeapLock(HANDLE heap)
{
    (void)heap;
    return not_implemented();
}

BOOL WINAPI HeapUnlock(HANDLE heap)
{
    (void)heap;
    return not_implemented();
}

BOOL WINAPI HeapWalk(HANDLE heap, LPPROCESS_HEAP_ENTRY entry)
{
    (void)heap;
    (void)entry;
    return not_implemented();
}
