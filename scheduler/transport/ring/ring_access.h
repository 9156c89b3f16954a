// How the ends of a ring touch the memory that they share. Nothing else reads or writes it.
//
// In the product these are the processor's own operations. A build with -DPEN_RING_SIMULATED
// (tests/simulator/ring) hands each of them to a simulation, which chooses what happens in between.
//
// Threads: any; the other end is another process.
#ifndef PEN_SCHEDULER_TRANSPORT_RING_RING_ACCESS_H
#define PEN_SCHEDULER_TRANSPORT_RING_RING_ACCESS_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

typedef _Atomic uint64_t pen_ring_word;

typedef struct pen_ring_simulation {
    uint64_t (*load)(const pen_ring_word *word);
    void (*store)(pen_ring_word *word, uint64_t value, memory_order order);
    uint64_t (*exchange)(pen_ring_word *word, uint64_t value);
    void (*read)(void *to, const uint8_t *from, uint64_t count);
    void (*write)(uint8_t *to, const void *from, uint64_t count);
} pen_ring_simulation;

// The simulation's own; the product has none.
extern const pen_ring_simulation pen_ring_simulated;

#ifdef PEN_RING_SIMULATED
#define RING_IS_SIMULATED 1
#else
#define RING_IS_SIMULATED 0
#endif

static inline uint64_t pen_ring_load(const pen_ring_word *word) {
    if (RING_IS_SIMULATED) return pen_ring_simulated.load(word);
    return atomic_load(word);
}

static inline void pen_ring_store(pen_ring_word *word, uint64_t value, memory_order order) {
    if (RING_IS_SIMULATED) {
        pen_ring_simulated.store(word, value, order);
    } else {
        atomic_store_explicit(word, value, order);
    }
}

static inline uint64_t pen_ring_exchange(pen_ring_word *word, uint64_t value) {
    if (RING_IS_SIMULATED) return pen_ring_simulated.exchange(word, value);
    return atomic_exchange(word, value);
}

// Copies out of the ring.
static inline void pen_ring_read(void *to, const uint8_t *from, uint64_t count) {
    if (RING_IS_SIMULATED) {
        pen_ring_simulated.read(to, from, count);
    } else {
        memcpy(to, from, count);
    }
}

// Copies into it.
static inline void pen_ring_write(uint8_t *to, const void *from, uint64_t count) {
    if (RING_IS_SIMULATED) {
        pen_ring_simulated.write(to, from, count);
    } else {
        memcpy(to, from, count);
    }
}

#endif // PEN_SCHEDULER_TRANSPORT_RING_RING_ACCESS_H
