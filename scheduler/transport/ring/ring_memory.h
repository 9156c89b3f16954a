// The memory of a ring: a file without a name, of a size that nobody can change any more, mapped so
// that its records lie there twice.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_RING_RING_MEMORY_H
#define PEN_SCHEDULER_TRANSPORT_RING_RING_MEMORY_H

#include "base/status.h"

// A new one, all zero. *out_descriptor is to be handed to the reader, and closed. UNAVAILABLE: the
// system has none to give
PEN_NODISCARD pen_status pen_ring_memory_create(void **out_memory, int *out_descriptor);

// One that another process made. It must be sealed against shrinking, which would end this process
// with SIGBUS, and have the size of a ring. The descriptor stays the caller's. CORRUPT: it is not
// such a file. UNAVAILABLE
PEN_NODISCARD pen_status pen_ring_memory_open(int descriptor, void **out_memory);

void pen_ring_memory_close(void *memory); // accepts NULL

#endif // PEN_SCHEDULER_TRANSPORT_RING_RING_MEMORY_H
