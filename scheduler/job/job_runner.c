#include "scheduler/job/job_runner.h"

#include "base/integer.h"
#include "base/system/machine.h"
#include "scheduler/data/batches.h"
#include "scheduler/job/job_losses.h"
#include "scheduler/runner/feed.h"

// What a compile error is blamed on.
typedef struct runner_blame {
    const pen_job *job;
    pen_dataset_part part;
} runner_blame;

// A table whose labels were not named has them among the inputs.
static pen_status runner_hint_column(const pen_job *job, pen_dataset_part part, pen_status status) {
    const pen_job_dataset *dataset = pen_job_find_dataset(job, part);
    if (dataset->format != PEN_JOB_CSV || dataset->csv.label_column != NULL) return status;
    if (job->train.loss.kind == PEN_LOSS_OUTPUT) return status;
    return pen_status_add_context(status, "all columns are inputs; label_column says which one has "
                                          "the labels: its name, or \"-1\" for the last");
}

// Errors of compiling name the line of the job that asked for it, and what stood there.
static pen_status runner_blame_part(const void *context, pen_compile_part part, uint32_t index,
                                    pen_status status) {
    const runner_blame *blame = context;
    const pen_job_train *train = &blame->job->train;
    switch (part) {
    case PEN_COMPILE_PART_NONE:
    case PEN_COMPILE_PART_SHAPES: // as likely the model's fault as the data's
        break;
    case PEN_COMPILE_PART_MODEL:
        return pen_job_blame(blame->job, &blame->job->model.file, status);
    case PEN_COMPILE_PART_WEIGHTS:
        return pen_job_blame(blame->job, &blame->job->model.weights, status);
    case PEN_COMPILE_PART_INPUTS:
        return runner_hint_column(
            blame->job, blame->part,
            pen_job_blame_data(blame->job, blame->part, PEN_JOB_DATA_INPUTS, status));
    case PEN_COMPILE_PART_LOSS:
        return pen_job_blame_loss(blame->job, index, status);
    case PEN_COMPILE_PART_FREEZE:
        return pen_job_blame(blame->job, &train->freeze, status);
    case PEN_COMPILE_PART_GROUP:
        return pen_job_blame(
            blame->job, &((const pen_optimizer_group *)train->groups.items)[index].match, status);
    case PEN_COMPILE_PART_METRICS:
        return pen_job_blame(blame->job, &blame->job->evaluation.metrics, status);
    case PEN_COMPILE_PART_ADAPT:
        return pen_job_blame(blame->job, &blame->job->adapt.lora.nodes, status);
    case PEN_COMPILE_PART_ADAPTERS:
        return pen_job_blame(blame->job, &blame->job->adapt.lora.weights, status);
    case PEN_COMPILE_PART_SHARD:
        return pen_job_blame(blame->job, &((const pen_job_shard *)train->shard.items)[index].nodes,
                             status);
    }
    return status;
}

static pen_optimizer runner_optimizer(const pen_job_train *train) {
    pen_optimizer optimizer = train->optimizer;
    optimizer.clip_norm = train->clip_norm;
    optimizer.clip_value = train->clip_value;
    optimizer.groups = train->groups.items;
    optimizer.group_count = train->groups.count;
    return optimizer;
}

// All that the first device could have: the machine's memory, or of a GPU what the job says.
static pen_status runner_whole_memory(const pen_cluster_spec *cluster, pen_arena *arena,
                                      uint64_t *out_bytes) {
    const pen_cluster_device_spec *device = &cluster->devices[0];
    pen_machine machine;
    PEN_TRY(pen_machine_detect(arena, &machine));
    *out_bytes =
        device->kind == PEN_CLUSTER_CUDA ? device->memory_bytes : machine.memory_bytes_allowed;
    return PEN_OK;
}

// No more than the machine gives this process, whatever the job says: what is planned is touched.
// The first of several devices, or one elsewhere, stands for what this process does alone: then it
// has what the machine gives.
static pen_status runner_memory(const pen_cluster_spec *cluster, pen_arena *arena,
                                uint64_t *out_bytes) {
    const pen_cluster_device_spec *device = &cluster->devices[0];
    const bool is_alone = cluster->device_count == 1 && device->host == NULL;
    uint64_t bytes;
    PEN_TRY(runner_whole_memory(cluster, arena, &bytes));
    if (device->memory_bytes > 0 && is_alone) bytes = pen_min_u64(device->memory_bytes, bytes);
    *out_bytes = bytes;
    if (!is_alone) return PEN_OK;
    *out_bytes = bytes - pen_min_u64(device->reserve_bytes, bytes);
    if (device->reserve_bytes == 0 || *out_bytes > 0) return PEN_OK;
    return pen_cluster_spec_blame(cluster, &device->written->reserve_bytes,
                                  pen_cluster_reserve_error(device, bytes));
}

// A missing `from` is every name, a missing `to` nothing: the beginning is taken away.
pen_status pen_job_weights(const pen_job *job, pen_arena *arena,
                           const pen_weight_options **out_weights) {
    const pen_job_model *model = &job->model;
    const pen_job_weight_name *names = model->weight_names.items;
    pen_weight_options *weights;
    pen_weight_rename *renames;
    *out_weights = NULL;
    if (model->weights == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &weights));
    PEN_TRY(PEN_NEW(arena, model->weight_names.count, &renames));
    for (uint32_t i = 0; i < model->weight_names.count; i++) {
        renames[i].from = names[i].from != NULL ? names[i].from : "";
        renames[i].to = names[i].to != NULL ? names[i].to : "";
    }
    *weights = (pen_weight_options){.path = model->weights,
                                    .renames = renames,
                                    .rename_count = model->weight_names.count,
                                    .is_partial = model->weights_partial,
                                    .layout = model->weights_layout};
    *out_weights = weights;
    return PEN_OK;
}

static pen_status runner_list_shards(const pen_job_train *train, pen_arena *arena,
                                     pen_compile_request *request) {
    const pen_job_shard *items = train->shard.items;
    pen_compile_shard *shards;
    PEN_TRY(PEN_NEW(arena, train->shard.count, &shards));
    for (uint32_t i = 0; i < train->shard.count; i++) {
        shards[i] = (pen_compile_shard){items[i].nodes, (uint32_t)items[i].ways};
    }
    request->shards = shards;
    request->shard_count = train->shard.count;
    return PEN_OK;
}

static pen_status runner_describe_lora(const pen_job *job, pen_arena *arena,
                                       const pen_compile_lora **out_lora) {
    const pen_job_lora *written = &job->adapt.lora;
    pen_compile_lora *lora;
    if (!job->has_adapt) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &lora));
    *lora = (pen_compile_lora){.nodes = written->nodes,
                               .rank = (uint32_t)written->rank,
                               .alpha = written->alpha,
                               .weights = written->weights,
                               .seed = (uint64_t)job->train.seed};
    *out_lora = lora;
    return PEN_OK;
}

// What training, planning and evaluating a job have in common; callers set the mode, the size of
// microbatches and the device.
pen_status pen_job_compile_request(const pen_job *job, pen_dataset_part part,
                                   const pen_dataset_info *info, pen_arena *arena,
                                   pen_compile_request *out_request) {
    runner_blame *blame;
    PEN_TRY(PEN_NEW(arena, 1, &blame));
    *blame = (runner_blame){job, part};
    pen_compile_request request = {
        .model_path = job->model.file,
        .import = pen_job_import_options(job),
        .mode = PEN_COMPILE_TRAIN,
        .microbatch_size = (uint64_t)(job->train.batch / job->train.microbatches),
        .accumulate = job->train.microbatches > 1,
        .optimizer = runner_optimizer(&job->train),
        .freeze = job->train.freeze,
        .microbatches = (uint32_t)job->train.microbatches,
        .most_examples = (uint64_t)(job->train.batch / job->train.microbatches),
        .lanes = (uint32_t)job->train.lanes,
        .is_scaled = job->numerics.precision == PEN_PRECISION_FLOAT16,
        .asynchrony = pen_job_get_asynchrony(job),
        .blame = runner_blame_part,
        .blame_context = blame};
    const uint64_t epoch_steps =
        pen_batches_count(info->example_count, (uint64_t)job->train.batch, job->train.drop_last);
    request.optimizer.average = pen_job_get_average(job, epoch_steps);
    request.metrics = pen_job_evaluation_metrics(&job->evaluation);
    PEN_TRY(pen_feed_describe(info, arena, &request.inputs, &request.input_count));
    PEN_TRY(pen_job_weights(job, arena, &request.weights));
    PEN_TRY(runner_list_shards(&job->train, arena, &request));
    PEN_TRY(runner_describe_lora(job, arena, &request.lora));
    PEN_TRY(pen_job_get_losses(job, arena, &request.losses, &request.loss_count));
    *out_request = request;
    return PEN_OK;
}

pen_status pen_job_blame_memory(const pen_job *job, pen_status status) {
    const pen_cluster_device_spec *device = &job->cluster.devices[0];
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    if (device->memory_bytes == 0) {
        return pen_job_blame(job, &job->train.batch,
                             pen_status_add_context(status, "a smaller train.batch, or more "
                                                            "train.microbatches, takes less"));
    }
    return pen_cluster_spec_blame(&job->cluster, &device->written->memory_bytes,
                                  pen_status_add_context(status,
                                                         "devices[0].memory is the limit; a "
                                                         "smaller train.batch, or more "
                                                         "train.microbatches, takes less"));
}

static pen_status runner_describe(const pen_job *job, pen_dataset_part part,
                                  const pen_dataset_info *info, uint64_t memory_bytes,
                                  pen_arena *arena, pen_runner_options *out_options) {
    const pen_cluster_device_spec *device = &job->cluster.devices[0];
    pen_runner_options options = {.device_kind = pen_cluster_device_kind_name(device->kind),
                                  .device = {.name = device->name,
                                             .thread_count = (uint32_t)device->threads,
                                             .memory_bytes = memory_bytes,
                                             .gpu = (uint32_t)device->gpu,
                                             .level = job->numerics.level,
                                             .precision = job->numerics.precision,
                                             .libraries = job->numerics.libraries}};
    PEN_TRY(pen_job_compile_request(job, part, info, arena, &options.compile));
    *out_options = options;
    return PEN_OK;
}

pen_status pen_job_runner_options(const pen_job *job, pen_dataset_part part,
                                  const pen_dataset_info *info, pen_arena *arena,
                                  pen_runner_options *out_options) {
    uint64_t memory_bytes;
    PEN_TRY(runner_memory(&job->cluster, arena, &memory_bytes));
    return runner_describe(job, part, info, memory_bytes, arena, out_options);
}

pen_status pen_job_reference_options(const pen_job *job, pen_dataset_part part,
                                     const pen_dataset_info *info, pen_arena *arena,
                                     pen_runner_options *out_options) {
    uint64_t memory_bytes;
    PEN_TRY(runner_whole_memory(&job->cluster, arena, &memory_bytes));
    return runner_describe(job, part, info, memory_bytes, arena, out_options);
}

// What would make the labels those that the loss takes, by their element and their number in an
// example: only what would work is told.
static pen_status runner_hint_labels(const pen_program *program, const pen_program_loss *loss,
                                     const pen_dataset_info *info, pen_status status) {
    if (status == PEN_OK || info->label_count != 1 || !pen_value_is(loss->labels)) return status;
    const pen_tensor_type *type = pen_value_type(program->graph, loss->labels);
    const uint64_t wanted =
        (uint64_t)pen_shape_element_count(&type->shape) / program->microbatch_size;
    const uint64_t found = info->labels->element_count;
    const bool takes_classes = loss->class_count > 0;
    if (found == wanted) {
        return pen_status_add_context(status, takes_classes
                                                  ? "label_type: index makes them class indices"
                                                  : "label_type: number makes them float32");
    }
    if (takes_classes && found == wanted * loss->class_count) {
        return pen_status_add_context(status,
                                      "a number for each class, as in one-hot labels, is taken by "
                                      "softmax_cross_entropy with probabilities: true, and "
                                      "label_type: number beside the labels");
    }
    const bool are_fewer = !takes_classes && type->shape.rank > 1 &&
                           found * (uint64_t)type->shape.dims[type->shape.rank - 1] == wanted;
    if (!are_fewer) return status;
    return pen_status_add_context(status,
                                  "class indices are taken by softmax_cross_entropy without "
                                  "probabilities: true, and label_type: index beside the "
                                  "labels");
}

static pen_status runner_check_labels(const pen_program *program, pen_dataset *dataset) {
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    for (uint32_t i = 0; i < program->loss_count; i++) {
        const pen_status status = pen_feed_check_labels(program, i, info);
        PEN_TRY(runner_hint_labels(program, &program->losses[i], info, status));
        if (program->losses[i].class_count == 0) continue;
        PEN_TRY(pen_dataset_limit_classes(dataset, i, program->losses[i].class_count));
    }
    return PEN_OK;
}

pen_status pen_job_check_data(const pen_job *job, pen_dataset_part part, const pen_program *program,
                              pen_dataset *dataset) {
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    PEN_TRY(
        pen_job_blame_data(job, part, PEN_JOB_DATA_INPUTS, pen_feed_check_inputs(program, info)));
    const pen_status status =
        pen_job_blame_data(job, part, PEN_JOB_DATA_LABELS, runner_check_labels(program, dataset));
    return info->labels == NULL ? runner_hint_column(job, part, status) : status;
}
