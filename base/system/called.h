// How much is read of whoever this program calls, before it is known: gRPC (1.51) puts a message of
// any length together, so whoever listens where a peer is expected could take all memory. What is
// above the limit stays with the system, unread.
//
// This file also is connect of the whole program: connections over TCP that are made without
// waiting, as gRPC makes them, are counted as those in callers.h.
//
// Threads: any.
#ifndef PEN_BASE_SYSTEM_CALLED_H
#define PEN_BASE_SYSTEM_CALLED_H

#include <stdint.h>

// From now on, in connections that are made later.
void pen_called_watch(uint32_t stranger_bytes);
// Who was called at this address, as pen_caller_write writes it, is known. What comes from there is
// not counted any more.
void pen_called_is_known(const char *address);

#endif // PEN_BASE_SYSTEM_CALLED_H
