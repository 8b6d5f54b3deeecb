/* SPDX-License-Identifier: MIT */
#include <windows.h>
#include "harness.h"

#include "core/status.h"

__attribute__((constructor)) static void name_statuses(void)
{
    harness_status_text = status_name;
}

HARNESS_MAIN
