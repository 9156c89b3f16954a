// Room for one more in an array that grows in an arena.
//
//   PEN_TRY(PEN_RESERVE(arena, &list->items, list->count, &list->capacity, 16));
//   list->items[list->count++] = item;
//
// Lifetime: the array is in the arena, and so are the smaller ones that it took the place of.
// Threads:  one thread at a time.
#ifndef PEN_BASE_RESERVE_H
#define PEN_BASE_RESERVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// `io_array` points to a pointer to elements of `size` bytes. When the array is full, it becomes
// twice as large, or `first` at first, with zeros behind the `count` elements. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_arena_reserve(pen_arena *arena, void *io_array, size_t size,
                                           uint32_t count, uint32_t *io_capacity, uint32_t first);

#define PEN_RESERVE(arena, io_array, count, io_capacity, first)                                    \
    pen_arena_reserve((arena), (io_array), sizeof **(io_array), (count), (io_capacity), (first))

#endif // PEN_BASE_RESERVE_H
