/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_PORT_TEXT_H
#define NDVERBS_PORT_TEXT_H

#include "device.h"

/* Transport ("InfiniBand", "RoCE", "iWARP") and state ("active", "down", ...) of an adapter's port, for people. Static
 * text. Asks the device. 0, or errno with the state "unknown". Any thread. */
int port_text(const struct adapter *adapter, const char **transport, const char **state);

#endif
