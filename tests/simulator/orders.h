// I12, where lanes come as they come: all workers are told one order of a step. It is that in which
// the coordinator heard of their gradients, counted again from its messages; or, of a step that the
// same process had done before, the order of then.
#ifndef PEN_TESTS_SIMULATOR_ORDERS_H
#define PEN_TESTS_SIMULATOR_ORDERS_H

#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/message.h"
#include "tests/simulator/shape.h"

// Of a step in a generation: who has come.
typedef struct orders_step {
    uint32_t heard[SHAPE_ALL_MICROBATCHES]; // gradients of the microbatch
    pen_arrivals_order lanes;
    uint32_t count;
} orders_step;

#define ORDERS_TOLD 256u

typedef struct orders_told {
    uint64_t generation;
    uint64_t round;
    pen_arrivals_order lanes;
} orders_told;

struct process;
struct coordinator_process;

// A coordinator hears of a gradient, of its own generation.
void orders_hear(struct coordinator_process *c, const pen_message *message);
// It says `go`.
void orders_say(struct coordinator_process *c, const pen_coordinator_action *action);
// A worker is told to.
void orders_tell(struct process *p, const pen_message *go);

#endif // PEN_TESTS_SIMULATOR_ORDERS_H
