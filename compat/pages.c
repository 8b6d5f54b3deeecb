/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "list.h"
#include "wordlock.h"

/* Pages. The kernel does not remember allocations as Windows does: a list says how long each one is. */

#define GRANULARITY ((size_t)65536)

struct region {
    struct list link;
    char *base;
    size_t size;
    DWORD protect;  /* as it was allocated */
    bool no_access; /* committed as PAGE_NOACCESS, which looks like a reservation */
};

static struct wordlock regions_lock;
static struct list regions = { &regions, &regions };

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static int protection(DWORD protect)
{
    switch (protect & 0xff) {
    case PAGE_NOACCESS:
        return PROT_NONE;
    case PAGE_READONLY:
        return PROT_READ;
    case PAGE_READWRITE:
    case PAGE_WRITECOPY:
        return PROT_READ | PROT_WRITE;
    case PAGE_EXECUTE:
        return PROT_EXEC;
    case PAGE_EXECUTE_READ:
        return PROT_READ | PROT_EXEC;
    case PAGE_EXECUTE_READWRITE:
        return PROT_READ | PROT_WRITE | PROT_EXEC;
    default:
        return -1;
    }
}

static struct region *region_find_locked(const char *address)
{
    list_for_each (node, &regions) {
        struct region *region = list_entry(node, struct region, link);

        if (address >= region->base && address < region->base + region->size)
            return region;
    }
    return NULL;
}

/* True if [address, address + size) lies in one allocation. */
static bool region_covers(const char *address, size_t size)
{
    struct region *region;
    bool covered;

    wordlock_lock(&regions_lock);
    region = region_find_locked(address);
    covered = region && size <= (size_t)(region->base + region->size - address);
    wordlock_unlock(&regions_lock);
    return covered;
}

static char *map_aligned(char *address, size_t size, int prot)
{
    char *map, *base;

    if (address) {
        base = (char *)((uintptr_t)address & ~(uintptr_t)(GRANULARITY - 1));
        map = mmap(base, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (map == MAP_FAILED || map == base)
            return map == MAP_FAILED ? NULL : map;
        munmap(map, size);
        return NULL;
    }
    if (size > SIZE_MAX - GRANULARITY)
        return NULL;
    map = mmap(NULL, size + GRANULARITY, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    base = (char *)(((uintptr_t)map + GRANULARITY - 1) & ~(uintptr_t)(GRANULARITY - 1));
    if (base > map)
        munmap(map, (size_t)(base - map));
    if (base + size < map + size + GRANULARITY)
        munmap(base + size, (size_t)(map + size + GRANULARITY - (base + size)));
    return base;
}

LPVOID WINAPI VirtualAlloc(LPVOID address, SIZE_T size, DWORD type, DWORD protect)
{
    int prot = protection(protect);
    size_t page = page_size(), start = (uintptr_t)address & (page - 1), rounded;
    struct region *region;
    DWORD error = ERROR_INVALID_PARAMETER;

    if (!size || prot < 0 || !(type & (MEM_RESERVE | MEM_COMMIT)) || size > SIZE_MAX - 2 * GRANULARITY)
        goto err;
    if (address && !(type & MEM_RESERVE)) {
        /* Commits pages of an earlier reservation. */
        char *base = (char *)address - start;

        rounded = (start + size + page - 1) & ~(page - 1);
        if (!region_covers(base, rounded) || mprotect(base, rounded, prot) != 0)
            goto err;
        return base;
    }
    error = ERROR_NOT_ENOUGH_MEMORY;
    region = malloc(sizeof(*region));
    if (!region)
        goto err;
    rounded = (((uintptr_t)address & (GRANULARITY - 1)) + size + page - 1) & ~(page - 1);
    region->base = map_aligned(address, rounded, type & MEM_COMMIT ? prot : PROT_NONE);
    region->size = rounded;
    region->protect = protect;
    region->no_access = type & MEM_COMMIT && (protect & 0xff) == PAGE_NOACCESS;
    if (!region->base)
        goto err_region;
    wordlock_lock(&regions_lock);
    list_add_head(&regions, &region->link);
    wordlock_unlock(&regions_lock);
    return region->base;

err_region:
    free(region);
err:
    SetLastError(error);
    return NULL;
}

BOOL WINAPI VirtualFree(LPVOID address, SIZE_T size, DWORD type)
{
    size_t page = page_size(), start = (uintptr_t)address & (page - 1), rounded = 0;
    struct region *region;
    bool found;

    if (type == MEM_DECOMMIT) {
        wordlock_lock(&regions_lock);
        region = region_find_locked(address);
        /* Size 0: the whole allocation. */
        found = region && (size || address == region->base);
        if (found)
            rounded = size ? (start + size + page - 1) & ~(page - 1) : region->size;
        wordlock_unlock(&regions_lock);
        if (!found || !region_covers((char *)address - start, rounded) ||
            mmap((char *)address - start, rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                MAP_FAILED)
            goto err;
        return TRUE;
    }
    if (type != MEM_RELEASE || size)
        goto err;
    wordlock_lock(&regions_lock);
    region = region_find_locked(address);
    found = region && region->base == address;
    if (found)
        list_del(&region->link);
    wordlock_unlock(&regions_lock);
    if (!found)
        goto err;
    munmap(region->base, region->size);
    free(region);
    return TRUE;

err:
    SetLastError(ERROR_INVALID_PARAMETER);
    return FALSE;
}

/* What a mapping of the kernel's allows, in Windows' words. */
static DWORD protection_name(const char *flags)
{
    bool r = flags[0] == 'r', w = flags[1] == 'w', x = flags[2] == 'x';

    if (w)
        return x ? PAGE_EXECUTE_READWRITE : PAGE_READWRITE;
    if (r)
        return x ? PAGE_EXECUTE_READ : PAGE_READONLY;
    return x ? PAGE_EXECUTE : PAGE_NOACCESS;
}

/* Fills in the mapping that holds `page`, or the gap before the next one. False: the system does not tell. */
static bool maps_find(uintptr_t page, PMEMORY_BASIC_INFORMATION information)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long start = 0, end = 0, inode = 0;
    uintptr_t gap_end = UINTPTR_MAX & ~(uintptr_t)(page_size() - 1);
    char line[512], flags[8] = "";
    bool found = false;

    if (!maps)
        return false;
    while (!found && fgets(line, sizeof(line), maps)) {
        bool whole = strchr(line, '\n') != NULL;

        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &start, &end, flags, &inode) < 3)
            break;
        while (!whole && fgets(line, sizeof(line), maps))
            whole = strchr(line, '\n') != NULL;
        if (end <= page)
            continue;
        if (start > page) {
            gap_end = start;
            break;
        }
        found = true;
    }
    fclose(maps);
    memset(information, 0, sizeof(*information));
    information->BaseAddress = (PVOID)page;
    if (!found) {
        information->RegionSize = gap_end - page;
        information->State = MEM_FREE;
        information->Protect = PAGE_NOACCESS;
        return true;
    }
    information->AllocationBase = (PVOID)(uintptr_t)start;
    information->AllocationProtect = information->Protect = protection_name(flags);
    information->RegionSize = end - page;
    information->State = MEM_COMMIT;
    information->Type = inode ? MEM_MAPPED : MEM_PRIVATE;
    return true;
}

SIZE_T WINAPI VirtualQuery(LPCVOID address, PMEMORY_BASIC_INFORMATION information, SIZE_T length)
{
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)(page_size() - 1);
    int saved = errno;
    struct region *region;
    SYSTEM_INFO system;
    bool told;

    GetSystemInfo(&system);
    if (!information || page > (uintptr_t)system.lpMaximumApplicationAddress) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return 0;
    }
    if (length < sizeof(*information)) {
        SetLastError(ERROR_BAD_LENGTH);
        return 0;
    }
    told = maps_find(page, information);
    errno = saved;
    if (!told) {
        SetLastError(ERROR_NOT_SUPPORTED);
        return 0;
    }
    /* The kernel joins neighbours and knows nothing of reservations: our own list does. */
    wordlock_lock(&regions_lock);
    region = region_find_locked((const char *)page);
    if (region) {
        size_t rest = (size_t)(region->base + region->size - (char *)page);

        information->AllocationBase = region->base;
        information->AllocationProtect = region->protect;
        if (information->RegionSize > rest)
            information->RegionSize = rest;
        information->Type = MEM_PRIVATE;
        if (information->Protect == PAGE_NOACCESS && !region->no_access) {
            information->State = MEM_RESERVE;
            information->Protect = 0;
        }
    }
    wordlock_unlock(&regions_lock);
    return sizeof(*information);
}
