// The coordinator and all workers of a run table on a simulated network, with real messages and
// frames, random delays and tasks that take random times. What the cores decide is judged by rules
// of its own: each device runs its tasks in order and once; what a task reads is whole in its place
// from its start to its end; nothing is made where memory is lent; updates come after all losses.
#ifndef PEN_TESTS_SUPPORT_PROTOCOL_RUN_H
#define PEN_TESTS_SUPPORT_PROTOCOL_RUN_H

#include "scheduler/protocol/run_table.h"

typedef struct protocol_round {
    uint32_t form;
    uint32_t count;
    bool updates;
} protocol_round;

typedef struct protocol_run_options {
    uint64_t seed;
    const protocol_round *rounds;
    uint32_t round_count;
    bool repeats; // messages are sent twice now and then
} protocol_run_options;

typedef struct protocol_run_result {
    bool finished;     // all rounds, everywhere; else nothing was under way any more
    uint64_t digest;   // of all that happened
    uint64_t duration; // nanoseconds
    uint64_t task_count;
    char wrong[512]; // the first rule that was broken; "": none
} protocol_run_result;

void protocol_run(const pen_run_table *table, const protocol_run_options *options,
                  protocol_run_result *out_result);

#endif // PEN_TESTS_SUPPORT_PROTOCOL_RUN_H
