// Memory that is released all at once.
//
// The compiler half allocates from an arena passed in; results live as long as it does. Memory is
// zeroed and aligned to 64 bytes at most as asked. Under the address sanitizer, gaps between
// allocations are poisoned.
//
// Threads: an arena belongs to one thread at a time.
#ifndef PEN_BASE_ARENA_H
#define PEN_BASE_ARENA_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_arena pen_arena;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_arena_create(pen_arena **out_arena);

// An arena whose memory comes from `parent` and goes with it: it is not destroyed. For scratch that
// is used again and again. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_arena_create_within(pen_arena *parent, pen_arena **out_arena);

// An arena with memory of its own that may be destroyed before `parent`, and goes with it at the
// latest. For what is replaced as work goes on. It belongs to the parent's thread. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_arena_create_beneath(pen_arena *parent, pen_arena **out_arena);

// Releases everything allocated from it, and the arenas beneath it. Accepts NULL.
void pen_arena_destroy(pen_arena *arena);

// Takes back everything allocated from it, destroys the arenas beneath it, and keeps the memory for
// what is allocated next: the same allocations once more ask the system, or the parent, for
// nothing.
void pen_arena_reset(pen_arena *arena);

// `count * size` zeroed bytes, or NULL. `alignment` is a power of two, 64 at most.
void *pen_arena_allocate(pen_arena *arena, size_t count, size_t size, size_t alignment);

// PEN_TRY(PEN_NEW(arena, count, &pointer)): `count` zeroed elements of the pointer's type. Never
// yields NULL on success, also for a count of 0. OUT_OF_MEMORY.
#define PEN_NEW(arena, count, out_pointer)                                                         \
    ((*(out_pointer) = pen_arena_allocate((arena), (count), sizeof **(out_pointer),                \
                                          alignof(max_align_t))) != NULL                           \
         ? PEN_OK                                                                                  \
         : pen_error_out_of_memory())

// A copy of `length` bytes of `text`, ended by 0. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_arena_copy_text(pen_arena *arena, const char *text, size_t length,
                                             const char **out_text);

// printf into the arena. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_arena_format(pen_arena *arena, const char **out_text,
                                          const char *format, ...) PEN_PRINTF(3, 4);

// Bytes handed out so far, or since the last reset, and by the arenas beneath it; without gaps.
uint64_t pen_arena_bytes(const pen_arena *arena);

#endif // PEN_BASE_ARENA_H
