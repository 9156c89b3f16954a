// What runs the steps of a training: on one device of this process (local_engine.c), or as a
// pipeline over several devices and machines (pipeline_engine.c). pen_trainer drives either.
//
// Lifetime: create to destroy; the job outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_ENGINE_H
#define PEN_SCHEDULER_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/compile.h"
#include "scheduler/evaluate.h"
#include "scheduler/training/batches.h"
#include "scheduler/training/dataset.h"
#include "scheduler/training/trace.h"

typedef struct pen_engine {
    const struct pen_engine_kind *kind;
} pen_engine;

typedef struct pen_engine_step {
    const pen_batch *batch; // lent for the call
    uint64_t step;          // counted from 1
    double learning_rate;
} pen_engine_step;

typedef struct pen_engine_result {
    double loss;            // mean over the step's examples
    uint64_t target_count;  // 0 when the loss is not over classes
    uint64_t correct_count; //
} pen_engine_result;

// A parameter, running statistic or optimizer state: what a checkpoint has of an engine.
typedef struct pen_engine_tensor {
    const char *name; // unique; states of the optimizer as build_updates names them
    pen_tensor_type type;
    uint64_t bytes; // in the plain layout
    bool is_model;  // of the model; else of the optimizer
} pen_engine_tensor;

// What a device was predicted to do and did, over the steps since the start but the first. Figures
// that are not known are negative.
typedef struct pen_engine_device_report {
    const char *name;
    const char *worker;            // where: "this process", "127.0.0.1:40123"
    double busy_seconds_predicted; // of a step
    double busy_seconds;
    double wait_seconds;
    double bytes_predicted; // of memory: buffers
    double bytes;
    double process_bytes_predicted; // resident peak of its process
    double process_bytes;
    double sent_bytes_predicted; // of a step
    double sent_bytes;
} pen_engine_device_report;

typedef struct pen_engine_report {
    uint32_t device_count; // 0: nothing was predicted
    const pen_engine_device_report *devices;
    double step_seconds_predicted;
    double step_seconds; // median
    double bubble_predicted;
    double bubble; // share of the devices' time between a step's first task and its last in which
                   // they do not compute, mean over steps
} pen_engine_report;

typedef struct pen_engine_kind {
    const char *name;
    void (*destroy)(pen_engine *engine);
    // One step. NOT_FINITE: the loss is; CANCELLED, UNAVAILABLE: a peer was lost, by name
    PEN_NODISCARD pen_status (*step)(pen_engine *engine, const pen_engine_step *step,
                                     pen_engine_result *out_result);
    // Loss and hits over a dataset, in batches of `batch`.
    PEN_NODISCARD pen_status (*evaluate)(pen_engine *engine, pen_dataset *dataset, uint64_t batch,
                                         pen_evaluation *out_evaluation);
    uint32_t (*tensor_count)(const pen_engine *engine);
    const pen_engine_tensor *(*tensor)(const pen_engine *engine, uint32_t index);
    // `bytes` from byte `first` on. At most 1 MiB at once.
    PEN_NODISCARD pen_status (*read)(pen_engine *engine, uint32_t index, uint64_t first, void *host,
                                     uint64_t bytes);
    PEN_NODISCARD pen_status (*write)(pen_engine *engine, uint32_t index, uint64_t first,
                                      const void *host, uint64_t bytes);
    // The program as one device would run it: warnings, sizes.
    const pen_program *(*program)(const pen_engine *engine);
    uint64_t (*device_bytes)(const pen_engine *engine); // buffers, over all devices
    PEN_NODISCARD pen_status (*report)(pen_engine *engine, pen_arena *arena,
                                       const pen_engine_report **out_report);
    // NULL member, or *out_trace NULL: nothing was recorded.
    PEN_NODISCARD pen_status (*trace)(pen_engine *engine, pen_arena *arena,
                                      const pen_trace **out_trace);
} pen_engine_kind;

#endif // PEN_SCHEDULER_ENGINE_H
