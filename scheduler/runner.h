// A model ready to run on one device, for any number of examples at once: programs are compiled
// when first asked for, and all share the parameters of the first.
//
// Lifetime: pen_runner_create to pen_runner_destroy; the job outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_RUNNER_H
#define PEN_SCHEDULER_RUNNER_H

#include "base/status.h"
#include "device/device.h"
#include "scheduler/compile.h"
#include "scheduler/runtime/executor.h"

typedef struct pen_runner pen_runner;

typedef struct pen_runner_options {
    const char *device_kind; // "cpu"
    pen_device_options device;
    pen_compile_request compile; // mode, microbatch_size, accumulate and device are not looked at
} pen_runner_options;

// One compiled form of the model.
typedef struct pen_runner_form {
    const pen_program *program;
    pen_executor *executor;
} pen_runner_form;

// Opens the device. `options` is copied; what it points to is borrowed while the runner lives.
PEN_NODISCARD pen_status pen_runner_create(const pen_runner_options *options,
                                           pen_runner **out_runner);
// Accepts NULL.
void pen_runner_destroy(pen_runner *runner);

// The form for `mode` and `microbatch_size` examples, compiled at the first call.
PEN_NODISCARD pen_status pen_runner_get(pen_runner *runner, pen_compile_mode mode,
                                        uint64_t microbatch_size, bool accumulate,
                                        const pen_runner_form **out_form);

// The form that was asked for first, whose parameters all others share; NULL before that.
const pen_runner_form *pen_runner_first(const pen_runner *runner);
// All forms so far, in the order in which they were asked for.
uint32_t pen_runner_form_count(const pen_runner *runner);
const pen_runner_form *pen_runner_form_at(const pen_runner *runner, uint32_t index);

// ---- the model's tensors: parameters and running statistics, in the order of the model
uint32_t pen_runner_tensor_count(const pen_runner *runner);
const pen_value *pen_runner_tensor(const pen_runner *runner, uint32_t index);
// `bytes` must be those of the tensor's type.
PEN_NODISCARD pen_status pen_runner_read(pen_runner *runner, uint32_t index, void *host,
                                         uint64_t bytes);
PEN_NODISCARD pen_status pen_runner_write(pen_runner *runner, uint32_t index, const void *host,
                                          uint64_t bytes);

// A hash of the bits of all tensors, in order: FNV-1a over 64-bit words, the last one filled up
// with zeros.
PEN_NODISCARD pen_status pen_runner_hash(pen_runner *runner, uint64_t *out_hash);

// Buffers of all forms together, in bytes: what the device holds for them.
uint64_t pen_runner_device_bytes(const pen_runner *runner);
pen_device *pen_runner_device(const pen_runner *runner);

#endif // PEN_SCHEDULER_RUNNER_H
