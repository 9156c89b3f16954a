// Asynchronous lanes: which gradients make which version of the parameters.
//
// In asynchronous training the lanes of a step (graph/lanes.h) do not wait for each other. Each
// computes its gradient with parameters of its own, a version that it was given when its last
// gradient was applied. The owner of the parameters makes a new version of the gradients that have
// arrived, as soon as that leaves no gradient that is still computed more than `staleness` versions
// behind: with 0, when all lanes have arrived, which is synchronous training; with much, at each
// arrival. The lanes whose gradients went into it go on with it.
//
// A step is a gradient of each of its lanes. Those of one step are all applied before one of the
// next is, so no lane is more than a step ahead of another. A lane that a short step has nothing
// for goes on with the step's last version.
//
// When lanes arrive is drawn: a gradient takes 1000 ticks in the middle, with a deviation of the
// logarithm of 0.3, from the seed, the step, and the lane. Nobody looks at a clock, so that a
// training has the same bits wherever its lanes run. Or, in a free order, lanes come as they come:
// whoever runs the step finds out who came when, and that is given here as a number, so that the
// same numbers make the same bits again. Then no ticks are counted.
//
// A gradient that is applied late can be compensated for the delay: with w as it is and w' as it
// was when the gradient g was computed,
//
//   g + λ g∘g∘(w - w')
//
// which is g at w to first order, with λ g∘g in place of the Hessian. λ is constant, or, adaptive,
// λ / sqrt(m + ε) with m the running mean of g∘g, of decay 0.95, and ε = 1e-7: DC-ASGD-c and
// DC-ASGD-a of Zheng, Meng, Wang, Chen, Yu, Ma, Liu, "Asynchronous Stochastic Gradient Descent with
// Delay Compensation", ICML 2017. graph/ops/training/version_op.c has it in full.
//
// Threads: pure.
#ifndef PEN_GRAPH_ARRIVALS_H
#define PEN_GRAPH_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_ARRIVALS_LANES 16u // at most
#define PEN_ARRIVALS_TICKS 1000u
#define PEN_ARRIVALS_STALENESS 65535u // at most

typedef enum pen_compensation {
    PEN_COMPENSATION_NONE,
    PEN_COMPENSATION_CONSTANT,
    PEN_COMPENSATION_ADAPTIVE,
} pen_compensation;

// What a training says of it. All zero: it is synchronous.
typedef struct pen_asynchrony {
    bool is_asynchronous;
    bool is_free; // the order of lanes is that in which they come, and not drawn
    uint32_t staleness;
    pen_compensation compensation;
    double lambda;
} pen_asynchrony;

// How it stands between two steps. All zero: at the beginning.
typedef struct pen_arrivals {
    uint64_t version;         // of the parameters: how many were made
    uint64_t clock;           // ticks until the last one was made
    uint64_t synchronous;     // ticks that it would have taken if lanes had waited for each other
    uint64_t gradients;       // that were applied
    uint64_t staleness;       // of all of them together: versions made while each was computed
    uint64_t staleness_worst; // of one of them
    uint64_t base[PEN_ARRIVALS_LANES];  // version that each lane has
    uint64_t start[PEN_ARRIVALS_LANES]; // tick at which it was given that
} pen_arrivals;

// ---- the decision

// What the owner knows within a step. Bit i of a set is lane i.
typedef struct pen_arrivals_step {
    pen_arrivals *at;
    uint32_t lanes; // that the step has
    uint32_t staleness;
    uint32_t waiting; // lanes whose gradients are here and not applied
    uint32_t applied; // whose gradients of this step are
} pen_arrivals_step;

// Takes the gradient of a lane, which is one of the step's, and has not arrived in it before, at a
// tick not before the last. Returns the lanes of which a version is made now, of all that wait; 0:
// none is.
uint32_t pen_arrivals_take(pen_arrivals_step *step, uint32_t lane, uint64_t tick);

// ---- an order as a number

// Four bits for each lane, from the lowest on: the lane that came first, and so on.
typedef uint64_t pen_arrivals_order;

// The order with `lane` behind the `count` lanes that it has.
static inline pen_arrivals_order pen_arrivals_order_add(pen_arrivals_order order, uint32_t count,
                                                        uint32_t lane) {
    return order | (pen_arrivals_order)lane << (4 * count);
}
static inline uint32_t pen_arrivals_order_lane(pen_arrivals_order order, uint32_t place) {
    return order >> (4 * place) & 15;
}
// Whether it has each of `count` lanes once, and nothing else.
bool pen_arrivals_order_is_whole(pen_arrivals_order order, uint32_t count);
// Lane after lane, as one device computes them.
pen_arrivals_order pen_arrivals_order_of_one(uint32_t count);

// ---- who has come

// Of a step whose lanes come as they come: counts what is told of their gradients, of which each
// has several: one of every stage, for every microbatch. All zero: of a step that begins.
typedef struct pen_arrivals_tally {
    pen_arrivals_order order;
    uint32_t count;                    // lanes that have come
    uint32_t come;                     // which: bits
    uint32_t left[PEN_ARRIVALS_LANES]; // gradients that are not told of yet
} pen_arrivals_tally;

// More gradients of a lane are to come. Lanes do not come before pen_arrivals_settle.
void pen_arrivals_expect(pen_arrivals_tally *tally, uint32_t lane);
// One of them is there: with its last, the lane has come.
void pen_arrivals_tell(pen_arrivals_tally *tally, uint32_t lane);
// All gradients of the lanes below `count` are expected: those that lack none have come, in their
// order.
void pen_arrivals_settle(pen_arrivals_tally *tally, uint32_t count);

// ---- a step

typedef struct pen_arrivals_options {
    uint64_t seed;
    uint64_t step;  // counted from 1
    uint32_t lanes; // that a whole step has, up to PEN_ARRIVALS_LANES
    uint32_t count; // that this step has, at least 1
    uint32_t staleness;
    bool is_free;
    pen_arrivals_order order; // in which they come, where it is free
} pen_arrivals_options;

// Takes a step. out_version[lane]: which of the step's versions, from 0, the lane's gradient goes
// into; UINT32_MAX: it has none. *out_count: versions. False: `at` or the order is of no training;
// it was damaged.
bool pen_arrivals_draw(const pen_arrivals_options *options, pen_arrivals *at,
                       uint32_t out_version[PEN_ARRIVALS_LANES], uint32_t *out_count);

// ---- as a tensor of int64

// How many numbers it has with so many lanes.
static inline uint32_t pen_arrivals_words(uint32_t lanes) {
    return 6 + 2 * lanes;
}
void pen_arrivals_read(const int64_t *words, uint32_t lanes, pen_arrivals *out_at);
void pen_arrivals_write(const pen_arrivals *at, uint32_t lanes, int64_t *out_words);

#endif // PEN_GRAPH_ARRIVALS_H
