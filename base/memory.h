// The one door to the heap.
//
// Everything of ours that is allocated goes through here, so that tests can count calls, and make
// the n-th one fail. Memory is zeroed.
//
// Threads: all functions may be called from any thread; the fault hook is for tests alone.
#ifndef PEN_BASE_MEMORY_H
#define PEN_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

// `count * size` zeroed bytes, aligned to 64. NULL when memory is out or the product overflows.
void *pen_memory_allocate(size_t count, size_t size);

// The same for much memory that may not be used to its end, such as what a file announces: the
// system gives a page of it when it is first written to. Aligned to 16.
void *pen_memory_allocate_lazily(size_t count, size_t size);

// Releases what these returned. Accepts NULL.
void pen_memory_free(void *memory);

// Gives freed memory back to the system, which the heap would keep: after much was needed for a
// short time.
void pen_memory_trim(void);

// Calls of them so far in this process.
uint64_t pen_memory_call_count(void);

// How many of them have given memory that is not freed yet.
uint64_t pen_memory_live_count(void);

// Tests: the call with number `call` (counted from now, first is 1) returns NULL, and so do those
// after it if `persistent`. 0 switches the fault off.
void pen_memory_fail_at(uint64_t call, int persistent);

#endif // PEN_BASE_MEMORY_H
