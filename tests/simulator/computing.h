// The memory of a worker's run and the tasks that work on it: what the product's run_form and
// executor are, on words. Whatever a task reads is compared with the undisturbed training when it
// begins and when it ends; whatever it writes must be free.
#ifndef PEN_TESTS_SIMULATOR_COMPUTING_H
#define PEN_TESTS_SIMULATOR_COMPUTING_H

#include "scheduler/protocol/worker_core.h"
#include "scheduler/transport/transport.h"
#include "tests/simulator/links.h"
#include "tests/simulator/world.h"

typedef struct computing_place {
    uint64_t words[SHAPE_WORDS];
    uint32_t checksum;
    bool is_compared; // the checksum was
    bool is_held;     // target: not consumed; source: lent
    uint64_t sequence;
} computing_place;

typedef struct computing_channel {
    computing_place *source; // [copies]
    computing_place *target; // [capacity]; of a shared one the source's, too
    uint32_t copies;
    uint32_t capacity;
} computing_channel;

typedef struct computing_stage {
    uint64_t parameters;
    uint64_t gradient;
    uint64_t sent;
    uint32_t accumulated; // microbatches of the step
    uint64_t step;        // that the parameters are of
    uint64_t forward[SHAPE_MICROBATCHES];
    uint64_t backward[SHAPE_MICROBATCHES];
    uint64_t forward_of[SHAPE_MICROBATCHES]; // round + 1
    uint64_t backward_of[SHAPE_MICROBATCHES];
} computing_stage;

typedef struct computing_round {
    uint64_t number;
    uint32_t form;
    uint32_t count;
    bool updates;
    uint32_t step;
    uint32_t first_microbatch; // in the step
} computing_round;

#define COMPUTING_ROUNDS 16u // as many as can be told of

typedef struct computing {
    process *process;
    const shape *shape;
    const shape_table *table;
    uint32_t worker;
    uint64_t generation;
    computing_channel *channels[2]; // [form][channel_count]
    computing_stage stages[SHAPE_STAGES];
    computing_round rounds[COMPUTING_ROUNDS];
} computing;

typedef struct computing_task {
    uint32_t device;
    uint32_t form;
    uint32_t task;
    uint64_t round;
    uint64_t value;
} computing_task;

computing *computing_new(process *p, const shape_table *table, uint32_t worker,
                         uint64_t generation);
const computing_round *computing_find_round(const computing *c, uint64_t number);
computing_place *computing_target(const computing *c, uint32_t form, uint32_t channel,
                                  uint64_t sequence);
computing_place *computing_source(const computing *c, uint32_t form, uint32_t channel,
                                  uint64_t sequence);
void computing_fill(computing_place *place, uint64_t value, uint32_t words, uint64_t sequence);
uint32_t computing_checksum(const uint64_t *words, uint32_t count);

// False: something that it reads was damaged on the way.
bool computing_begin(computing *c, computing_task *task);
void computing_end(computing *c, const computing_task *task);
// Whether the worker has a stage.
bool computing_has_stage(const computing *c, uint32_t stage);

#endif // PEN_TESTS_SIMULATOR_COMPUTING_H
