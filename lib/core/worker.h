/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_WORKER_H
#define NDVERBS_WORKER_H

#include <stdbool.h>

/* Makes sure that the thread that is kept for destroys runs. False: no resources. Called by engine_start() only. */
bool worker_start(void);

#endif
