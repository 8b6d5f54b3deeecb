/* SPDX-License-Identifier: MIT */
#ifndef _INC_IO
#define _INC_IO

/* The POSIX file calls under the names of Microsoft's C run time. */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define _O_RDONLY  O_RDONLY
#define _O_WRONLY  O_WRONLY
#define _O_RDWR    O_RDWR
#define _O_APPEND  O_APPEND
#define _O_CREAT   O_CREAT
#define _O_TRUNC   O_TRUNC
#define _O_EXCL    O_EXCL
#define _O_TEXT    0x4000
#define _O_BINARY  0x8000
#define _O_WTEXT   0x10000
#define _O_U16TEXT 0x20000
#define _O_U8TEXT  0x40000
#define O_TEXT     _O_TEXT
#define O_BINARY   0

#define _access access
#define _close  close
#define _read   read
#define _write  write
#define _isatty isatty
#define _dup    dup
#define _dup2   dup2
#define _unlink unlink

/* There is one mode, and wide text is written as UTF-8 in it. */
static inline int _setmode(int descriptor, int mode)
{
    (void)descriptor;
    (void)mode;
    return _O_BINARY;
}

#endif
