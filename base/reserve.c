#include "base/reserve.h"

#include <stdalign.h>
#include <string.h>

pen_status pen_arena_reserve(pen_arena *arena, void *io_array, size_t size, uint32_t count,
                             uint32_t *io_capacity, uint32_t first) {
    void *before;
    if (count < *io_capacity) return PEN_OK;
    const uint32_t capacity = *io_capacity < first ? first : *io_capacity * 2;
    void *larger = pen_arena_allocate(arena, capacity, size, alignof(max_align_t));
    if (larger == NULL) return pen_error_out_of_memory();
    memcpy(&before, io_array, sizeof before); // whatever it points to
    if (count > 0) memcpy(larger, before, count * size);
    memcpy(io_array, &larger, sizeof larger);
    *io_capacity = capacity;
    return PEN_OK;
}
