/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_TEXT_H
#define NDVERBS_TEXT_H

/* UTF-8 and the 32-bit wchar_t. Bad input becomes U+FFFD, one for each byte or character that is none. Any thread. */

#include <stddef.h>
#include <wchar.h>

/* Decodes `length` bytes. Writes at most `size` characters to `to` (which may be NULL if size is 0) and returns how many
 * there are. *bad (may be NULL) counts replacements. No terminator is added. */
size_t text_widen(const char *from, size_t length, wchar_t *to, size_t size, size_t *bad);

/* Encodes `length` characters; whole characters only are written. As text_widen. */
size_t text_narrow(const wchar_t *from, size_t length, char *to, size_t size, size_t *bad);

/* Terminated copies, for free(). NULL: out of memory, or the argument was NULL. */
wchar_t *text_widen_dup(const char *from);
char *text_narrow_dup(const wchar_t *from);

#endif
