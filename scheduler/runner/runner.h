// A model ready to run on one device, for any number of examples at once: programs are compiled
// when first asked for, and all share the parameters of the first.
//
// Lifetime: pen_runner_create to pen_runner_destroy; the job outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_RUNNER_RUNNER_H
#define PEN_SCHEDULER_RUNNER_RUNNER_H

#include "base/status.h"
#include "device/device.h"
#include "scheduler/compile/compile.h"
#include "scheduler/runtime/executor/executor.h"
#include "scheduler/store/tensor_store.h"

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

// The form for one example, of which the output of this name is asked for; NULL: the first.
PEN_NODISCARD pen_status pen_runner_get_row(pen_runner *runner, pen_compile_mode mode,
                                            const char *output, const pen_runner_form **out_form);

// All forms so far, in the order in which they were asked for.
uint32_t pen_runner_form_count(const pen_runner *runner);
const pen_runner_form *pen_runner_form_at(const pen_runner *runner, uint32_t index);

// Parameters, running statistics and, where the first form trains, the optimizer's states. Valid
// once there is a first form, as long as the runner.
const pen_tensor_store *pen_runner_tensors(const pen_runner *runner);
// The same as they lie on the device: those that the job shards in slices.
const pen_tensor_store *pen_runner_slices(const pen_runner *runner);

// The device's kind, with its class if that has one, as of an engine's arithmetic. In `arena`.
PEN_NODISCARD pen_status pen_runner_arithmetic(const pen_runner *runner, pen_arena *arena,
                                               const char **out_text);

// Buffers of all forms together, in bytes: what the device holds for them.
uint64_t pen_runner_device_bytes(const pen_runner *runner);
// As much of them as is the process's own memory: of a GPU, nothing.
uint64_t pen_runner_host_bytes(const pen_runner *runner);
// Bytes of the process's memory for copies to and from a device that has its own. As prepare
PEN_NODISCARD pen_status pen_runner_pinned_bytes(const pen_runner *runner, uint64_t *out_bytes);

#endif // PEN_SCHEDULER_RUNNER_RUNNER_H
