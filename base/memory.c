#include "base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "base/system/failpoint.h"

#define MEMORY_ALIGNMENT 64

static atomic_uint_fast64_t memory_calls;
static atomic_uint_fast64_t memory_live;      // allocated and not freed
static atomic_uint_fast64_t memory_fail_call; // in the numbering of memory_calls; 0: never
static atomic_int memory_fail_persistent;

static int memory_must_fail(uint64_t call) {
    const uint64_t fail_call = atomic_load(&memory_fail_call);
    if (fail_call == 0 || call < fail_call) return 0;
    return call == fail_call || atomic_load(&memory_fail_persistent);
}

// Counts a call. Whether memory of this size can be given, and how much that is.
static bool memory_begin(size_t count, size_t size, size_t *out_bytes) {
    const uint64_t call = atomic_fetch_add(&memory_calls, 1) + 1;
    if (memory_must_fail(call) || PEN_FAILPOINT("memory.asked")) return false;
    return !__builtin_mul_overflow(count, size, out_bytes) &&
           *out_bytes <= SIZE_MAX - MEMORY_ALIGNMENT;
}

void *pen_memory_allocate(size_t count, size_t size) {
    size_t bytes;
    if (!memory_begin(count, size, &bytes)) return NULL;
    // aligned_alloc wants a multiple of the alignment, and never zero bytes
    const size_t rounded = (bytes / MEMORY_ALIGNMENT + 1) * MEMORY_ALIGNMENT;
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, rounded);
    if (memory == NULL) return NULL;
    atomic_fetch_add_explicit(&memory_live, 1, memory_order_relaxed);
    memset(memory, 0, rounded);
    return memory;
}

// calloc knows which memory is fresh from the system, and does not write to that.
void *pen_memory_allocate_lazily(size_t count, size_t size) {
    size_t bytes;
    if (!memory_begin(count, size, &bytes)) return NULL;
    void *memory = calloc(1, bytes + 1); // never zero bytes
    if (memory != NULL) atomic_fetch_add_explicit(&memory_live, 1, memory_order_relaxed);
    return memory;
}

void pen_memory_free(void *memory) {
    if (memory != NULL) atomic_fetch_sub_explicit(&memory_live, 1, memory_order_relaxed);
    free(memory);
}

void pen_memory_trim(void) {
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

uint64_t pen_memory_call_count(void) {
    return atomic_load(&memory_calls);
}

uint64_t pen_memory_live_count(void) {
    return atomic_load(&memory_live);
}

void pen_memory_fail_at(uint64_t call, int persistent) {
    atomic_store(&memory_fail_persistent, persistent);
    atomic_store(&memory_fail_call, call == 0 ? 0 : atomic_load(&memory_calls) + call);
}
