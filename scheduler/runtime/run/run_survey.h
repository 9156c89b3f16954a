// A survey: a run of which nothing is trained. Its workers measure what they are asked to, one
// order at a time, and tell the figures. SURVEY and SURVEYED of the control messages carry it.
//
// Threads: plain data.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_SURVEY_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// What workers of a run are for.
typedef enum pen_run_survey {
    PEN_RUN_SURVEY_NONE,      // they train
    PEN_RUN_SURVEY_OPERATORS, // measure nodes of the parts they have, of which none is run
    PEN_RUN_SURVEY_LINKS,     // send to each other; all are linked, and have no parts
} pen_run_survey;
#define PEN_RUN_SURVEY_COUNT (PEN_RUN_SURVEY_LINKS + 1)

typedef enum pen_survey_kind {
    PEN_SURVEY_RATES, // of a device: operations a second, bytes a second
    PEN_SURVEY_NODE,  // a node of its part: seconds of a run, bytes of workspace, runs
    PEN_SURVEY_WORK,  // after so long: what threads of LOAD have done so far, in units of their
                      // own, and the worker's clock in seconds
    PEN_SURVEY_LOAD,  // `count` threads compute from now on; nothing is told
    PEN_SURVEY_SEND,  // tensors to a worker, for so long: seconds until it has them, how many
    PEN_SURVEY_CALL,  // small tensors to a worker and back, one after another, for so long: mean
                      // seconds of a round trip, how many
} pen_survey_kind;
#define PEN_SURVEY_TENSOR_BYTES ((uint64_t)1 << 20) // of SEND
#define PEN_SURVEY_THREADS_LIMIT 256                // of LOAD

typedef struct pen_survey_order {
    pen_survey_kind kind;
    uint32_t device; // RATES, NODE: of the run
    uint32_t node;   // NODE: of its part's graph
    uint32_t peer;   // SEND, CALL: a worker
    uint32_t count;  // LOAD
    double seconds;  // NODE, SEND, CALL: to repeat it for; WORK: to wait
} pen_survey_order;

#define PEN_SURVEY_FIGURES 4
#define PEN_SURVEY_SECONDS_LIMIT 60.0 // that an order may ask for

typedef struct pen_survey_answer {
    double figures[PEN_SURVEY_FIGURES]; // those that the kind has, the rest 0
} pen_survey_answer;

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_SURVEY_H
