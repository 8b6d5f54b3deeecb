/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_MESSAGE_H
#define NDVERBS_MESSAGE_H

#include <stdint.h>

/* What a Win32 or Winsock code, an HRESULT or an NTSTATUS says: a phrase that begins with a small letter and has no full
 * stop; NULL for a code that is not known. Any thread. */
const char *message_text(uint32_t code);

#endif
