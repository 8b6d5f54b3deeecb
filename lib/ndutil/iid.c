/* SPDX-License-Identifier: MIT */
/* The interface ids as data. Applications that do not define INITGUID, Microsoft's samples among them, take them from
 * the library; they are weak, as are those of applications that do. */
#include <initguid.h>
#include <ndspi.h>
#include <ndverbs.h>
#include <rdma/winverbs.h>
