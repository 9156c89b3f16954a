// What the workers of a run are told: tasks and channels as numbers, and for each device its part
// of the graph in every form, with the places of its values. Everything but the weights.
//
// Forms: 0 is the training of a whole microbatch; others share its parameters by name.
//
// Lifetime: in the arena it was made with; parts may be borrowed from a cut.
// Threads:  immutable once made.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_SPEC_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_SPEC_H

#include "device/device_types.h"
#include "graph/lanes.h"
#include "graph/passes/cut/cut_stages.h"
#include "graph/tensor_type.h"
#include "scheduler/protocol/run_table.h"
#include "scheduler/runtime/run/run_data.h"
#include "scheduler/runtime/run/run_survey.h"

typedef struct pen_run_spec_device {
    const char *name;
    const char *kind;      // of device: "cpu"
    uint32_t thread_count; // of its kernel team
    uint64_t memory_bytes; // its buffers may not exceed it; 0: no limit
    uint32_t gpu;          // of kind cuda: which of the worker's machine
    uint32_t precision;    // pen_precision of operands of products
    uint32_t libraries;    // pen_libraries
} pen_run_spec_device;

typedef struct pen_run_spec_worker {
    const char *name;    // for people: "this process", "worker 2 (10.0.0.2:7070)"
    const char *address; // where other workers reach it; "" where none needs to
} pen_run_spec_worker;

typedef struct pen_run_spec_channel {
    const char *value; // its name in the whole graph
    pen_value_id from; // in the source's graph; PEN_VALUE_NONE for the host
    pen_value_id to;   // in the target's graph
    pen_tensor_type type;
    pen_layout layout;
    uint32_t field; // of an example, where the target's worker reads it (run_data.h); else
                    // PEN_RUN_FIELD_NONE
} pen_run_spec_channel;

#define PEN_RUN_SEEN_LIMIT 5                   // values of a form that the coordinator sees
#define PEN_RUN_SEEN_BYTES_LIMIT (64ull << 20) // of all of them together, in a round

// What one device runs of one form.
typedef struct pen_run_spec_part {
    const pen_part *part;   // NULL: the device is another worker's
    const uint32_t *copies; // [value_count] scheduler/runtime/run/part_buffers.h
    pen_value_id loss;      // these are PEN_VALUE_NONE where the part does not have them
    pen_value_id accuracy;
    pen_value_id loss_weight; // scalars
    pen_value_id learning_rate;
    pen_value_id step;
    pen_value_id unscale;
    pen_value_id applied;                // kept, of an update
    pen_value_id terms[PEN_TERMS_LIMIT]; // [pen_program_term_count] the same in all parts
    uint32_t term_count;
    pen_value_id seen[PEN_RUN_SEEN_LIMIT]; // [seen_count] likewise: what the coordinator is sent
    uint32_t seen_count;
} pen_run_spec_part;

// What is told of a microbatch's loss: by a stage of what it makes, or of all.
typedef struct pen_run_loss {
    double sum;
    uint64_t correct_count;
    uint32_t term_count;
    uint32_t made; // bits: the terms that are known
    double terms[PEN_TERMS_LIMIT];
} pen_run_loss;

typedef struct pen_run_spec_form {
    const pen_run_spec_channel *channels; // [channel_count of the table's form]
    const pen_run_spec_part *parts;       // [device_count]
} pen_run_spec_form;

// A tensor that is saved in checkpoints, and by which device's worker: each tensor once.
typedef struct pen_run_spec_saved {
    uint32_t device;
    pen_value_id value; // in its part of form 0: a parameter or state
    const char *name;   // in the checkpoint
} pen_run_spec_saved;

typedef struct pen_run_spec {
    const pen_run_table *table;
    const pen_run_spec_worker *workers; // [worker_count + 1], 0 is the coordinator
    const pen_run_spec_device *devices; // [device_count]
    const pen_run_spec_form *forms;     // [form_count]
    uint64_t seed;
    pen_lanes lanes;
    uint32_t trace_limit;            // events that a thread keeps; 0: nothing is recorded
    bool shares_memory;              // frames between workers of one host
    pen_run_survey survey;           // its parts are measured, not run
    const pen_run_spec_saved *saved; // [saved_count]
    uint32_t saved_count;
    const pen_run_data *data; // that workers read by themselves; NULL: they read none
} pen_run_spec;

// Names of workers ([worker_count + 1]) and, by form and channel, of what channels carry.
PEN_NODISCARD pen_status pen_run_spec_name(const pen_run_spec *spec, pen_arena *arena,
                                           const char *const **out_workers,
                                           const char *const *const **out_channels);

// Opens a device as it is described, which the caller closes. INVALID_INPUT: no such kind; CORRUPT:
// one that has no such precision; as its kind's `open`
PEN_NODISCARD pen_status pen_run_spec_open(const pen_run_spec_device *spec,
                                           pen_device **out_device);

// Parameters and states are numbered, in messages and frames, by device and value of its part of
// form 0.
#define PEN_RUN_TENSOR_VALUES ((uint32_t)1 << 20) // values of a part, at most
static inline uint32_t pen_run_tensor_number(uint32_t device, pen_value_id value) {
    return device * PEN_RUN_TENSOR_VALUES + value.index;
}

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_SPEC_H
