#include "scheduler/plan/plan_model.h"

#include <string.h>

#include "base/log.h"
#include "scheduler/job/job_runner.h"

static pen_status model_open_data(const pen_plan_model_request *wanted, pen_arena *arena,
                                  pen_plan_model *model) {
    model->info = wanted->info;
    if (model->info != NULL) return PEN_OK;
    const pen_status status =
        pen_job_open_dataset(wanted->job, PEN_DATASET_PART_TRAIN, arena, &model->dataset);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_log(PEN_LOG_WARNING, "%s; planning with the model's own input shapes",
                pen_status_message(status));
        pen_status_ignore(status, "planning needs no data");
        return PEN_OK;
    }
    PEN_TRY(status);
    model->info = pen_dataset_get_info(model->dataset);
    return PEN_OK;
}

// The device whose layouts and kernels are planned with: of the kind that all have.
static pen_status model_open_device(const pen_plan_model_request *wanted, pen_plan_model *model,
                                    bool *out_is_uniform) {
    const pen_cluster *cluster = wanted->cluster;
    const pen_cluster_device *first = &cluster->devices[0];
    const pen_device_kind *kind;
    *out_is_uniform = true;
    for (uint32_t d = 1; d < cluster->device_count; d++) {
        if (strcmp(cluster->devices[d].kind, first->kind) != 0) *out_is_uniform = false;
    }
    PEN_TRY(pen_device_kind_find(first->kind, &kind));
    const pen_device_options options = {.name = first->name,
                                        .thread_count = first->threads,
                                        .level = wanted->job->numerics.level,
                                        .only_sizes = true};
    return kind->open(&options, &model->device);
}

// Forward passes alone are over whole batches, by one lane.
pen_status pen_plan_model_open(const pen_plan_model_request *wanted, pen_arena *arena,
                               pen_plan_model *out_model) {
    const pen_dataset_info none = {.format = "none"};
    pen_compile_request request;
    bool is_uniform;
    PEN_TRY(model_open_data(wanted, arena, out_model));
    PEN_TRY(model_open_device(wanted, out_model, &is_uniform));
    PEN_TRY(pen_job_compile_request(wanted->job, wanted->part,
                                    out_model->info == NULL ? &none : out_model->info, arena,
                                    &request));
    if (wanted->mode != PEN_COMPILE_TRAIN) {
        request.mode = wanted->mode;
        request.microbatch_size = wanted->batch;
        request.microbatches = 1;
        request.most_examples = wanted->batch;
        request.accumulate = false;
        request.lanes = 1;
    }
    request.device = is_uniform ? out_model->device : NULL;
    return pen_compile(&request, &out_model->program);
}

void pen_plan_model_close(pen_plan_model *model) {
    pen_program_destroy(model->program);
    if (model->device != NULL) model->device->kind->close(model->device);
    pen_dataset_close(model->dataset);
}
