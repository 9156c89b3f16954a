// What a job is planned of: its data, the model compiled for them, and a device that says how large
// values and kernels are.
//
// Lifetime: open to close; what it points to is in the arena, or its own.
// Threads:  one.
#ifndef PEN_SCHEDULER_PLAN_PLAN_MODEL_H
#define PEN_SCHEDULER_PLAN_PLAN_MODEL_H

#include "device/device.h"
#include "partition/costs/cluster.h"
#include "scheduler/compile/compile.h"
#include "scheduler/data/dataset.h"
#include "scheduler/job/job.h"
#include "scheduler/plan/plan_forms.h"

typedef struct pen_plan_model {
    pen_dataset *dataset;         // NULL: what is known of the data was given, or there is none
    const pen_dataset_info *info; // NULL: the data is not on this machine
    pen_device **devices;         // [device_count] one of each kind that the cluster has, which
    uint32_t device_count;        // computes nothing: no GPU need be there
    uint32_t *number_of_device;   // [device_count of the cluster] in `devices`
    const pen_program *program;
    pen_plan_forms forms;    // where a device has memory of its own, and the data is there
    pen_libraries libraries; // of the job
} pen_plan_model;

typedef struct pen_plan_model_request {
    const pen_job *job;
    const pen_cluster *cluster;
    const pen_dataset_info *info; // NULL: the job's training data are opened
    pen_dataset_part part;        // which data that is, for messages
    pen_compile_mode mode;
    uint64_t batch;                   // examples of a forward pass, where the mode is no training
    const pen_plan_form_sizes *sizes; // of its further forms; NULL: those of a training of the job
} pen_plan_model_request;

// `out_model` is all zero before, and is closed by the caller, after an error too. Errors are those
// of data, devices and pen_compile. Data that are not on this machine are a warning.
PEN_NODISCARD pen_status pen_plan_model_open(const pen_plan_model_request *wanted, pen_arena *arena,
                                             pen_plan_model *out_model);
void pen_plan_model_close(pen_plan_model *model);

#endif // PEN_SCHEDULER_PLAN_PLAN_MODEL_H
