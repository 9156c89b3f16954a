// What an annealing run knows, for its two halves: anneal.c weighs moves and cools, anneal_moves.c
// chooses moves.
//
// Lifetime: see pen_anneal.
// Threads:  belongs to one thread at a time.
#ifndef PEN_PARTITION_SEARCH_ANNEAL_STATE_H
#define PEN_PARTITION_SEARCH_ANNEAL_STATE_H

#include "partition/search/anneal.h"

#define PEN_ANNEAL_REGION_LIMIT 256 // groups of a region

struct pen_anneal {
    const pen_problem *problem;
    const uint32_t *line; // [group_count]
    uint32_t *line_at;    // [group_count] position of each group there
    pen_load_state *state;
    double *term; // [device_count] (load / scale)^p
    double term_sum;
    double scale;
    double worst; // largest load
    uint32_t worst_device;
    double *bytes_inverse; // [device_count] 1 / limit
    uint32_t over_count;   // devices over their memory
    double *exponential;   // [ANNEAL_EXPONENTIALS]
    uint64_t random;       // state of the generator
    double warmth;
    double norm; // p of the energy
    bool is_sharp;

    uint32_t *best; // [group_count] best placement of the run
    double best_worst;

    uint32_t region[PEN_ANNEAL_REGION_LIMIT]; // groups that move together
    uint32_t home[PEN_ANNEAL_REGION_LIMIT];   // where they come from
    uint32_t goal[PEN_ANNEAL_REGION_LIMIT];   // where they go
    uint32_t region_count;
    uint64_t *mark; // [group_count] number of the region that it was last in
    uint64_t mark_last;
    uint32_t *rank;    // [device_count] place in the order of devices, when contiguous
    double *term_kept; // [device_count] while a compound move is tried
    double *load_kept;
};

// xorshift64*: speed matters more than quality here; it is seeded from a named stream.
static inline uint32_t pen_anneal_random(pen_anneal *anneal) {
    anneal->random ^= anneal->random >> 12;
    anneal->random ^= anneal->random << 25;
    anneal->random ^= anneal->random >> 27;
    return (uint32_t)((anneal->random * 0x2545f4914f6cdd1du) >> 32);
}

static inline uint32_t pen_anneal_below(pen_anneal *anneal, uint32_t limit) {
    return (uint32_t)(((uint64_t)pen_anneal_random(anneal) * limit) >> 32);
}

// Each makes a move if the temperature accepts what it does to the energy, and tells whether it
// did. Groups that may not run there, and devices far over their memory, are never accepted.

// One group to another device.
bool pen_anneal_try_move(pen_anneal *anneal, uint32_t group, uint32_t device);

// Two groups exchange their devices.
bool pen_anneal_try_swap(pen_anneal *anneal, uint32_t group, uint32_t other);

// Every group of the region to its goal.
bool pen_anneal_try_goals(pen_anneal *anneal);

// Chooses a move and tries it. A contiguous problem's devices keep their order of ranks.
void pen_anneal_step(pen_anneal *anneal);

#endif // PEN_PARTITION_SEARCH_ANNEAL_STATE_H
