/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <unistd.h>

#include "text.h"

/* Modules are handles of dlopen. Source: win32-surface.md section 4.3. */

/* Windows' own libraries, whose functions are in this one. */
static const char *const system_modules[] = { "kernel32", "kernelbase", "ntdll",   "ws2_32",
                                              "mswsock",  "ole32",      "iphlpapi" };

static bool is_system_module(const char *name)
{
    size_t length = strlen(name);

    if (length > 4 && _stricmp(name + length - 4, ".dll") == 0)
        length -= 4;
    for (size_t i = 0; i < ARRAYSIZE(system_modules); i++) {
        if (strlen(system_modules[i]) == length && _strnicmp(system_modules[i], name, length) == 0)
            return true;
    }
    return false;
}

/* The module that an address lies in, by its path; NULL for the program itself. */
static void *open_containing(const void *address, int flags)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    return dlopen(*map->l_name ? map->l_name : NULL, flags);
}

static HMODULE module_open(const char *name, int flags)
{
    int saved = errno;
    void *module;

    if (name && is_system_module(name))
        module = open_containing(system_modules, flags);
    else
        module = dlopen(name, flags);
    errno = saved;
    if (!module)
        SetLastError(ERROR_MOD_NOT_FOUND);
    return module;
}

HMODULE WINAPI LoadLibraryA(LPCSTR name)
{
    if (!name || !*name) {
        SetLastError(name ? ERROR_MOD_NOT_FOUND : ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return module_open(name, RTLD_NOW | RTLD_LOCAL);
}

HMODULE WINAPI LoadLibraryW(LPCWSTR name)
{
    char *narrow;
    HMODULE module;

    if (!name) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    narrow = text_narrow_dup(name);
    if (!narrow) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    module = LoadLibraryA(narrow);
    free(narrow);
    return module;
}

HMODULE WINAPI LoadLibraryExA(LPCSTR name, HANDLE file, DWORD flags)
{
    (void)file;
    (void)flags;
    return LoadLibraryA(name);
}

HMODULE WINAPI LoadLibraryExW(LPCWSTR name, HANDLE file, DWORD flags)
{
    (void)file;
    (void)flags;
    return LoadLibraryW(name);
}

BOOL WINAPI FreeLibrary(HMODULE module)
{
    int saved = errno;
    bool closed = module && dlclose(module) == 0;

    errno = saved;
    if (!closed)
        SetLastError(ERROR_INVALID_HANDLE);
    return closed;
}

FARPROC WINAPI GetProcAddress(HMODULE module, LPCSTR name)
{
    char own[256];
    void *symbol = NULL, *self;

    if (!module) {
        SetLastError(ERROR_INVALID_HANDLE);
        return NULL;
    }
    if ((uintptr_t)name >= 0x10000) {
        symbol = dlsym(module, name);
        /* Only this library has the prefixed names; a program's module finds them too, as it would find kernel32's. */
        self = open_containing(system_modules, RTLD_LAZY | RTLD_NOLOAD);
        if (self == module && snprintf(own, sizeof(own), "ndv_%s", name) < (int)sizeof(own)) {
            void *prefixed = dlsym(module, own);

            symbol = prefixed ? prefixed : symbol;
        }
        if (self)
            dlclose(self);
    }
    if (!symbol)
        SetLastError(ERROR_PROC_NOT_FOUND);
    return (FARPROC)symbol;
}

BOOL WINAPI GetModuleHandleExA(DWORD flags, LPCSTR name, HMODULE *module)
{
    int mode = RTLD_LAZY | RTLD_NOLOAD, saved = errno;

    if (!module) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (flags & GET_MODULE_HANDLE_EX_FLAG_PIN)
        mode |= RTLD_NODELETE;
    if (flags & GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS) {
        *module = open_containing(name, mode);
        errno = saved;
        if (!*module)
            SetLastError(ERROR_MOD_NOT_FOUND);
    } else {
        *module = module_open(name, mode);
    }
    if (*module && flags & (GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT | GET_MODULE_HANDLE_EX_FLAG_PIN))
        dlclose(*module);
    return *module != NULL;
}

BOOL WINAPI GetModuleHandleExW(DWORD flags, LPCWSTR name, HMODULE *module)
{
    char *narrow = NULL;
    BOOL found;

    if (flags & GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS || !name)
        return GetModuleHandleExA(flags, (LPCSTR)name, module);
    narrow = text_narrow_dup(name);
    if (!narrow) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return FALSE;
    }
    found = GetModuleHandleExA(flags, narrow, module);
    free(narrow);
    return found;
}

HMODULE WINAPI GetModuleHandleA(LPCSTR name)
{
    HMODULE module;

    return GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, name, &module) ? module : NULL;
}

HMODULE WINAPI GetModuleHandleW(LPCWSTR name)
{
    HMODULE module;

    return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, name, &module) ? module : NULL;
}

/* The path as UTF-8; false if there is none. */
static bool module_path(HMODULE module, char *path, size_t size)
{
    struct link_map *map;
    ssize_t length;

    if (module && dlinfo(module, RTLD_DI_LINKMAP, &map) == 0 && *map->l_name)
        return snprintf(path, size, "%s", map->l_name) < (int)size;
    length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    return true;
}

/* What both forms return: the length, or the size with an error if it was cut. */
static DWORD path_result(size_t length, DWORD size)
{
    if (length < size)
        return (DWORD)length;
    SetLastError(ERROR_INSUFFICIENT_BUFFER);
    return size;
}

DWORD WINAPI GetModuleFileNameA(HMODULE module, LPSTR path, DWORD size)
{
    char whole[4096];
    int saved = errno;
    bool found = module_path(module, whole, sizeof(whole));

    errno = saved;
    if (!found || !path || !size) {
        SetLastError(found ? ERROR_INSUFFICIENT_BUFFER : ERROR_MOD_NOT_FOUND);
        return 0;
    }
    strncpy_s(path, size, whole, _TRUNCATE);
    return path_result(strlen(whole), size);
}

DWORD WINAPI GetModuleFileNameW(HMODULE module, LPWSTR path, DWORD size)
{
    char whole[4096];
    wchar_t *wide;
    DWORD length;

    if (!GetModuleFileNameA(module, whole, sizeof(whole)))
        return 0;
    wide = text_widen_dup(whole);
    if (!wide || !path || !size) {
        free(wide);
        SetLastError(wide ? ERROR_INSUFFICIENT_BUFFER : ERROR_NOT_ENOUGH_MEMORY);
        return 0;
    }
    wcsncpy_s(path, size, wide, _TRUNCATE);
    length = path_result(wcslen(wide), size);
    free(wide);
    return length;
}
