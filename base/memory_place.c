#include "base/memory_place.h"

const pen_memory_domain pen_memory_host = {.name = "the host"};

pen_memory_place pen_memory_place_at(const void *address) {
    return (pen_memory_place){&pen_memory_host, (uint64_t)(uintptr_t)address};
}

pen_memory_place pen_memory_place_add(pen_memory_place place, uint64_t bytes) {
    return (pen_memory_place){place.domain, place.offset + bytes};
}

void *pen_memory_place_address(pen_memory_place place) {
    if (place.domain != &pen_memory_host) return NULL;
    return (void *)(uintptr_t)place.offset;
}

pen_status pen_memory_place_reach(pen_memory_place place, void **out_address) {
    PEN_ASSERT(place.domain != NULL);
    if (place.domain != &pen_memory_host) {
        return pen_error(PEN_UNSUPPORTED, "memory of %s cannot be reached from this process",
                         place.domain->name);
    }
    *out_address = (void *)(uintptr_t)place.offset;
    return PEN_OK;
}
