#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/sanitizer.h"

#if PEN_HAS_ASAN
#include <sanitizer/asan_interface.h>
#define ARENA_GAP_BYTES 32
#else
#define ARENA_GAP_BYTES 0
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)0)
#endif

#define ARENA_ALIGNMENT_LIMIT 64
#define ARENA_BLOCK_BYTES_FIRST ((size_t)16 << 10)
// Blocks are zeroed: what is not used of the last one is resident, too.
#define ARENA_BLOCK_BYTES_LIMIT ((size_t)512 << 10)
// Larger blocks are of one piece, which a file may have announced: resident as it is written to.
#define ARENA_BLOCK_BYTES_LAZY ((size_t)1 << 20)

typedef struct arena_block {
    struct arena_block *next;
    size_t bytes; // of `data`
    size_t used;
    unsigned char *data; // behind this header, aligned to ARENA_ALIGNMENT_LIMIT
} arena_block;

struct pen_arena {
    arena_block *blocks; // in use, newest first
    arena_block *spare;  // taken back by a reset, oldest first
    pen_arena *parent;   // where blocks come from; NULL: the heap
    pen_arena *beneath;  // the first of the arenas beneath it
    pen_arena *next;     // beneath the same one
    pen_arena **link;    // what points to this one, beneath another; NULL: it is beneath none
    size_t bytes_next;   // size of the next block
    uint64_t bytes_total;
};

static arena_block *arena_block_create(pen_arena *parent, size_t bytes) {
    const size_t header = pen_align_up(sizeof(arena_block), ARENA_ALIGNMENT_LIMIT);
    size_t total;
    if (!pen_size_add(header + ARENA_ALIGNMENT_LIMIT, bytes, &total)) return NULL;
    unsigned char *memory = parent != NULL
                                ? pen_arena_allocate(parent, total, 1, ARENA_ALIGNMENT_LIMIT)
                            : bytes < ARENA_BLOCK_BYTES_LAZY ? pen_memory_allocate(total, 1)
                                                             : pen_memory_allocate_lazily(total, 1);
    if (memory == NULL) return NULL;
    arena_block *block = (arena_block *)(void *)memory;
    const size_t beyond = (uintptr_t)memory % ARENA_ALIGNMENT_LIMIT;
    block->bytes = bytes;
    block->data = memory + header + (beyond > 0 ? ARENA_ALIGNMENT_LIMIT - beyond : 0);
    ASAN_POISON_MEMORY_REGION(block->data, bytes);
    return block;
}

pen_status pen_arena_create(pen_arena **out_arena) {
    pen_arena *arena = pen_memory_allocate(1, sizeof *arena);
    if (arena == NULL) return pen_error_out_of_memory();
    arena->bytes_next = ARENA_BLOCK_BYTES_FIRST;
    *out_arena = arena;
    return PEN_OK;
}

pen_status pen_arena_create_within(pen_arena *parent, pen_arena **out_arena) {
    pen_arena *arena = pen_arena_allocate(parent, 1, sizeof *arena, alignof(max_align_t));
    if (arena == NULL) return pen_error_out_of_memory();
    arena->bytes_next = ARENA_BLOCK_BYTES_FIRST;
    arena->parent = parent;
    *out_arena = arena;
    return PEN_OK;
}

pen_status pen_arena_create_beneath(pen_arena *parent, pen_arena **out_arena) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    arena->link = &parent->beneath;
    arena->next = parent->beneath;
    if (arena->next != NULL) arena->next->link = &arena->next;
    parent->beneath = arena;
    *out_arena = arena;
    return PEN_OK;
}

static void arena_free_blocks(arena_block *block) {
    while (block != NULL) {
        arena_block *next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->bytes);
        pen_memory_free(block);
        block = next;
    }
}

static void arena_destroy_beneath(pen_arena *arena) {
    while (arena->beneath != NULL) {
        pen_arena_destroy(arena->beneath);
    }
}

void pen_arena_destroy(pen_arena *arena) {
    if (arena == NULL) return;
    PEN_ASSERT(arena->parent == NULL);
    arena_destroy_beneath(arena);
    if (arena->link != NULL) {
        *arena->link = arena->next;
        if (arena->next != NULL) arena->next->link = arena->link;
    }
    arena_free_blocks(arena->blocks);
    arena_free_blocks(arena->spare);
    pen_memory_free(arena);
}

void pen_arena_reset(pen_arena *arena) {
    arena_destroy_beneath(arena);
    while (arena->blocks != NULL) { // newest first, so that the oldest ends up in front
        arena_block *block = arena->blocks;
        arena->blocks = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->used);
        memset(block->data, 0, block->used);
        ASAN_POISON_MEMORY_REGION(block->data, block->bytes);
        block->used = 0;
        block->next = arena->spare;
        arena->spare = block;
    }
    arena->bytes_total = 0;
}

// A block with room for `bytes`: one that was taken back, or a new one. Not in a list yet.
static arena_block *arena_find_block(pen_arena *arena, size_t bytes) {
    for (arena_block **at = &arena->spare; *at != NULL; at = &(*at)->next) {
        arena_block *block = *at;
        if (block->bytes < bytes) continue;
        *at = block->next;
        return block;
    }
    arena_block *block = arena_block_create(arena->parent, pen_max_u64(bytes, arena->bytes_next));
    if (block != NULL && arena->bytes_next < ARENA_BLOCK_BYTES_LIMIT) arena->bytes_next *= 2;
    return block;
}

static void *arena_block_take(arena_block *block, size_t bytes, size_t alignment) {
    const size_t start = pen_align_up(block->used, alignment);
    if (start > block->bytes || block->bytes - start < bytes) return NULL;
    block->used = start + bytes;
    ASAN_UNPOISON_MEMORY_REGION(block->data + start, bytes);
    return block->data + start;
}

// From the newest block, else from a new one that becomes the newest; what is left of the old one
// is not used any more. Gaps between pieces are poisoned under the address sanitizer.
void *pen_arena_allocate(pen_arena *arena, size_t count, size_t size, size_t alignment) {
    PEN_ASSERT(alignment > 0 && alignment <= ARENA_ALIGNMENT_LIMIT);
    size_t bytes;
    if (!pen_size_mul(count, size, &bytes)) return NULL;
    if (bytes == 0) bytes = 1;
    size_t padded;
    if (!pen_size_add(bytes, ARENA_GAP_BYTES + ARENA_ALIGNMENT_LIMIT, &padded)) return NULL;
    arena->bytes_total += bytes;
    if (arena->blocks != NULL) {
        void *memory = arena_block_take(arena->blocks, bytes, alignment);
        if (memory != NULL) {
            arena->blocks->used =
                pen_min_u64(arena->blocks->used + ARENA_GAP_BYTES, arena->blocks->bytes);
            return memory;
        }
    }
    arena_block *block = arena_find_block(arena, padded);
    if (block == NULL) return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    void *memory = arena_block_take(block, bytes, alignment);
    block->used = pen_min_u64(block->used + ARENA_GAP_BYTES, block->bytes);
    return memory;
}

pen_status pen_arena_copy_text(pen_arena *arena, const char *text, size_t length,
                               const char **out_text) {
    size_t bytes;
    if (!pen_size_add(length, 1, &bytes)) return pen_error_out_of_memory();
    char *copy = pen_arena_allocate(arena, bytes, 1, 1);
    if (copy == NULL) return pen_error_out_of_memory();
    memcpy(copy, text, length);
    *out_text = copy;
    return PEN_OK;
}

pen_status pen_arena_format(pen_arena *arena, const char **out_text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) return pen_error(PEN_INTERNAL, "format '%s' cannot be printed", format);
    char *text = pen_arena_allocate(arena, (size_t)length + 1, 1, 1);
    if (text == NULL) return pen_error_out_of_memory();
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    *out_text = text;
    return PEN_OK;
}

uint64_t pen_arena_bytes(const pen_arena *arena) {
    uint64_t bytes = arena->bytes_total;
    for (const pen_arena *a = arena->beneath; a != NULL; a = a->next) {
        bytes += pen_arena_bytes(a);
    }
    return bytes;
}
