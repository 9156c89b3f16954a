// What is trained in a simulation: a model of a few stages whose parameters, activations and
// gradients are words, each a hash of all that it is made from; so one microbatch that is lost,
// doubled, stale or out of order changes every loss and parameter after it.
//
// A shape has the numbers of the undisturbed training, and run tables of it for several counts of
// workers. Shapes are made when they are first asked for, and kept: they depend on their number
// alone.
//
// Steps count from 1; step t starts from the parameters t - 1. A step is one round, or two, of
// which the last updates. After some steps comes an evaluation: a round of form 1.
//
// Threads: one.
#ifndef PEN_TESTS_SIMULATOR_SHAPE_H
#define PEN_TESTS_SIMULATOR_SHAPE_H

#include "base/arena.h"
#include "graph/lanes.h"
#include "scheduler/protocol/run_table.h"

#define SHAPE_COUNT 256u
#define SHAPE_STAGES 6u
#define SHAPE_EDGES 12u
#define SHAPE_STEPS 30u
#define SHAPE_MICROBATCHES 4u                           // of a round, at most
#define SHAPE_ALL_MICROBATCHES (2 * SHAPE_MICROBATCHES) // of a step
#define SHAPE_WORKERS 4u
#define SHAPE_VARIANTS 3u
#define SHAPE_WORDS 3u // of a frame, at most

typedef struct shape_edge {
    uint32_t source;
    uint32_t target;
} shape_edge;

typedef enum shape_content { // of a channel, with the number of an edge, exchange or stage
    SHAPE_FORWARD,
    SHAPE_GRADIENT,
    SHAPE_EXCHANGE,
    SHAPE_FEED,
    SHAPE_STEP_FEED,
} shape_content;

#define SHAPE_CHANNELS (4 * SHAPE_EDGES + 2 * SHAPE_STAGES)

// A run table of the shape, and which channel carries what; UINT32_MAX: no channel does, the stages
// are on one device.
typedef struct shape_table {
    const pen_run_table *table;
    uint64_t hash;
    uint32_t worker_count;
    uint32_t variant;
    uint32_t device_of_stage[SHAPE_STAGES];
    uint32_t forward[2][SHAPE_EDGES]; // [form][edge]
    uint32_t gradient[SHAPE_EDGES];
    uint32_t feed[2][SHAPE_STAGES];
    uint32_t step_feed[SHAPE_STAGES];
    uint32_t exchange[SHAPE_EDGES];
    uint8_t contents[2][SHAPE_CHANNELS]; // [form][channel] shape_content
    uint8_t numbers[2][SHAPE_CHANNELS];
} shape_table;

typedef struct shape_values { // of a stage in a step
    uint64_t forward[SHAPE_ALL_MICROBATCHES];
    uint64_t backward[SHAPE_ALL_MICROBATCHES];
    uint64_t evaluated[SHAPE_MICROBATCHES]; // after the step
    uint64_t gradient;                      // accumulated
    uint64_t sent;                          // to other stages' updates
} shape_values;

typedef struct shape {
    uint32_t number;
    uint64_t seed;
    uint32_t stage_count;
    uint32_t microbatch_count; // of a round, at most
    uint32_t edge_count;
    shape_edge edges[SHAPE_EDGES];
    uint32_t exchange_count; // between updates
    shape_edge exchanges[SHAPE_EDGES];
    bool is_fed[SHAPE_STAGES];
    bool is_step_fed[SHAPE_STAGES];
    uint32_t step_count;
    uint32_t counts[SHAPE_STEPS + 1][2]; // [step][round] microbatches; [1] 0: one round
    bool is_evaluated[SHAPE_STEPS + 1];  // after the step
    uint32_t not_finite_step;            // whose loss is not a number; 0: none
    uint64_t parameters[SHAPE_STEPS + 1][SHAPE_STAGES];
    shape_values values[SHAPE_STEPS + 1][SHAPE_STAGES];
    bool tells_gradients; // lanes come as they come
    pen_lanes lanes;      // of a step
    uint32_t worker_limit;
    const shape_table *tables[SHAPE_WORKERS + 1][SHAPE_VARIANTS]; // NULL: not made yet
} shape;

shape *shape_get(uint32_t number);
const shape_table *shape_get_table(shape *s, uint32_t worker_count, uint32_t variant);

// ---- how the numbers come about. `hash` begins as 0.

static inline uint64_t shape_hash(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    hash ^= hash >> 29;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 32);
}
// What a stage is fed for a microbatch of a step (evaluations: of the step before them), and for
// its update.
uint64_t shape_input(const shape *s, uint32_t stage, uint32_t step, uint32_t microbatch,
                     bool is_evaluation);
uint64_t shape_step_input(const shape *s, uint32_t stage, uint32_t step);
// Bits of the loss that the last stage's word stands for.
uint64_t shape_loss(const shape *s, uint32_t step, uint32_t microbatch, uint64_t word,
                    bool is_evaluation);
// Whether a stage tells of its gradient of a microbatch of a round: of those of the first half even
// stages do, of others odd ones, as if they were of two replicas, so that lanes come in any order.
static inline bool shape_tells(const shape *s, uint32_t stage, uint32_t microbatch) {
    const uint32_t half = 2 * microbatch < s->microbatch_count ? 0 : 1;
    return s->tells_gradients && (s->stage_count == 1 || stage % 2 == half);
}
// What a channel carries in the undisturbed training.
uint64_t shape_expect(const shape *s, shape_content content, uint32_t number, uint32_t step,
                      uint32_t microbatch, bool is_evaluation);
// Word `index` of a frame that carries `value`.
static inline uint64_t shape_word(uint64_t value, uint32_t index) {
    return index == 0 ? value : shape_hash(value, index);
}

#endif // PEN_TESTS_SIMULATOR_SHAPE_H
