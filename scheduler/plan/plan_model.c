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

static pen_status model_open_kind(const pen_plan_model_request *wanted, uint32_t index,
                                  pen_device **out_device) {
    const pen_cluster_device *device = &wanted->cluster->devices[index];
    const pen_device_kind *kind;
    PEN_TRY(pen_device_kind_find(device->kind, &kind));
    const pen_device_options options = {.name = device->name,
                                        .thread_count = device->threads,
                                        .gpu = device->gpu,
                                        .level = wanted->job->numerics.level,
                                        .precision = wanted->job->numerics.precision,
                                        .libraries = wanted->job->numerics.libraries,
                                        .only_sizes = true};
    return kind->open(&options, out_device);
}

// The devices whose layouts and kernels are planned with: one of each kind.
static pen_status model_open_devices(const pen_plan_model_request *wanted, pen_arena *arena,
                                     pen_plan_model *model) {
    const pen_cluster *cluster = wanted->cluster;
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &model->devices));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &model->number_of_device));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        uint32_t number = 0;
        while (number < model->device_count &&
               strcmp(model->devices[number]->kind->name, cluster->devices[d].kind) != 0) {
            number++;
        }
        model->number_of_device[d] = number;
        if (number < model->device_count) continue;
        PEN_TRY(model_open_kind(wanted, d, &model->devices[number]));
        model->device_count++;
    }
    return PEN_OK;
}

// Devices whose memory the host sees take nothing for a form that is not made yet.
static pen_status model_open_forms(const pen_plan_model_request *wanted,
                                   const pen_compile_request *compile, pen_arena *arena,
                                   pen_plan_model *model) {
    const pen_cluster *cluster = wanted->cluster;
    pen_plan_forms_request request = {.job = wanted->job,
                                      .compile = compile,
                                      .is_local = cluster->device_count == 1 &&
                                                  cluster->devices[0].host == NULL};
    bool is_apart = false;
    for (uint32_t k = 0; k < model->device_count; k++) {
        is_apart = is_apart || model->devices[k]->kind->has_own_memory;
    }
    if (!is_apart || model->info == NULL) return PEN_OK;
    request.example_count = model->info->example_count;
    if (wanted->sizes != NULL) {
        request.sizes = *wanted->sizes;
    } else if (wanted->mode == PEN_COMPILE_TRAIN) {
        PEN_TRY(pen_plan_form_sizes_find(wanted->job, model->info, arena, &request.sizes));
    }
    return pen_plan_forms_open(&request, &model->forms);
}

// Forward passes alone are over whole batches, by one lane.
pen_status pen_plan_model_open(const pen_plan_model_request *wanted, pen_arena *arena,
                               pen_plan_model *out_model) {
    const pen_dataset_info none = {.format = "none"};
    pen_compile_request request;
    out_model->libraries = wanted->job->numerics.libraries;
    PEN_TRY(model_open_data(wanted, arena, out_model));
    PEN_TRY(model_open_devices(wanted, arena, out_model));
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
    const bool is_mixed = wanted->job->cluster.is_mixed || out_model->device_count > 1;
    request.device = is_mixed ? NULL : out_model->devices[0];
    PEN_TRY(pen_compile(&request, &out_model->program));
    return model_open_forms(wanted, &request, arena, out_model);
}

void pen_plan_model_close(pen_plan_model *model) {
    pen_plan_forms_close(&model->forms);
    pen_program_destroy(model->program);
    for (uint32_t k = 0; k < model->device_count; k++) {
        model->devices[k]->kind->close(model->devices[k]);
    }
    pen_dataset_close(model->dataset);
}
