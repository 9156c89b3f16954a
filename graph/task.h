// A task: the unit in which nodes run. A stage's work of one kind, for one microbatch or, of an
// update, for one phase.
//
// Updates come in phases where stages exchange values once a step (norms, gradients of a parameter
// that several stages read, the updated parameter): phase p needs what other devices made in
// phases below p. Without such exchange there is phase 0 alone.
//
// Threads: plain data.
#ifndef PEN_GRAPH_TASK_H
#define PEN_GRAPH_TASK_H

#include <stdint.h>

typedef enum pen_task_kind {
    PEN_TASK_FORWARD,
    PEN_TASK_BACKWARD,        // both halves
    PEN_TASK_BACKWARD_INPUT,  // gradients of activations
    PEN_TASK_BACKWARD_WEIGHT, // gradients of parameters
    PEN_TASK_UPDATE,
} pen_task_kind;
#define PEN_TASK_KIND_COUNT (PEN_TASK_UPDATE + 1)

// As the source of a channel: the host, whoever runs the steps and feeds what the model is fed.
#define PEN_CHANNEL_HOST UINT32_MAX

typedef struct pen_task {
    pen_task_kind kind;
    uint32_t stage;
    uint32_t microbatch; // of an update: its phase
} pen_task;

// "backward_weight"
const char *pen_task_kind_name(pen_task_kind kind);

#endif // PEN_GRAPH_TASK_H
