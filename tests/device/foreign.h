/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_FOREIGN_H
#define NDVERBS_DEVICE_FOREIGN_H

/* Programs that know nothing of this library, as the other end of a case. */

const char *free_port(void);
const char *peer_address(void); /* of the server's device; where there is one only, that one's */

/* rawpeer of this build, see there. `room`: for how much of its private data the other side's interface has room; NULL: all. */
int start_rawpeer(const char *role, const char *part, const char *address, const char *port, const char *room);

/* Waits for its end: it found all as it should be. */
void all_was_well(int pid);

#endif
