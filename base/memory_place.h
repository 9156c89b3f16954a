// Where bytes of tensors lie, as one part of the program tells another: a memory domain, and how
// far into it.
//
// A domain is memory that is reached in one way. All that the threads of this process see is one
// domain, the host's, in which an offset is an address. A device with memory of its own has its
// own domain. Devices lend each other values within a domain; a transport sends from, and receives
// into, the domains that it can reach, and refuses others with UNSUPPORTED.
//
// Lifetime: a domain outlives every place in it. Threads: immutable.
#ifndef PEN_BASE_MEMORY_PLACE_H
#define PEN_BASE_MEMORY_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_memory_domain {
    const char *name; // for errors: "the host", "cuda 0"
} pen_memory_domain;

extern const pen_memory_domain pen_memory_host;

typedef struct pen_memory_place {
    const pen_memory_domain *domain;
    uint64_t offset;
} pen_memory_place;

// The place of an address of this process; of NULL, too, which is nowhere.
pen_memory_place pen_memory_place_at(const void *address);
pen_memory_place pen_memory_place_add(pen_memory_place place, uint64_t bytes);

// The address at which this process sees a place; NULL: nowhere.
void *pen_memory_place_address(pen_memory_place place);

// The same for who cannot do without. UNSUPPORTED: the place is in a domain of its own; names it
PEN_NODISCARD pen_status pen_memory_place_reach(pen_memory_place place, void **out_address);

#endif // PEN_BASE_MEMORY_PLACE_H
