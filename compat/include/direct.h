/* SPDX-License-Identifier: MIT */
#ifndef _INC_DIRECT
#define _INC_DIRECT

/* The POSIX directory calls under the names of Microsoft's C run time. */

#include <sys/stat.h>
#include <unistd.h>

#define _chdir  chdir
#define _getcwd getcwd
#define _rmdir  rmdir

static inline int _mkdir(const char *path)
{
    return mkdir(path, 0777);
}

#endif
