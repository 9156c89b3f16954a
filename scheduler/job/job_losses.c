#include "scheduler/job/job_losses.h"

#include <inttypes.h>
#include <math.h>

// Class weights on their way from a job.
typedef struct loss_weights {
    float *items; // [count]
    uint32_t count;
} loss_weights;

static const pen_job_loss *losses_at(const pen_job *job, uint32_t index) {
    return &((const pen_job_loss *)job->train.losses.items)[index];
}

// ---- class weights

// One number after the other, so that the one that cannot be is named.
static pen_status losses_read_dataset(pen_dataset *dataset, const char *path, pen_arena *arena,
                                      loss_weights *out_weights) {
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    loss_weights weights = {.count = (uint32_t)info->example_count};
    if (info->inputs[0].rank != 0 || info->example_count > UINT32_MAX) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRIu32 " dimensions, expected one, a number for each class",
                         path, info->inputs[0].rank + 1);
    }
    PEN_TRY(PEN_NEW(arena, weights.count, &weights.items));
    for (uint64_t i = 0; i < weights.count; i++) {
        void *const places[] = {&weights.items[i]};
        PEN_TRY(pen_dataset_read(dataset, &i, 1, places, NULL));
        if (isfinite(weights.items[i]) && weights.items[i] >= 0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': the weight of class %" PRIu64
                         " is %g, expected a number of at least 0",
                         path, i, (double)weights.items[i]);
    }
    *out_weights = weights;
    return PEN_OK;
}

// A file of weights is an array of inputs, an example for each class.
static pen_status losses_read_file(const char *path, pen_arena *arena, loss_weights *out_weights) {
    const pen_dataset_input input = {
        .name = "class_weights", .path = path, .element = PEN_DATASET_FLOAT32};
    const pen_dataset_options options = {.format = "npy", .inputs = &input, .input_count = 1};
    pen_dataset *dataset;
    PEN_TRY(pen_dataset_open(&options, &dataset));
    const pen_status status = losses_read_dataset(dataset, path, arena, out_weights);
    pen_dataset_close(dataset);
    return status;
}

static pen_status losses_copy_list(const pen_option_list *list, pen_arena *arena,
                                   loss_weights *out_weights) {
    const double *numbers = list->items;
    out_weights->count = list->count;
    PEN_TRY(PEN_NEW(arena, list->count, &out_weights->items));
    for (uint32_t i = 0; i < list->count; i++) {
        out_weights->items[i] = (float)numbers[i];
    }
    return PEN_OK;
}

static pen_status losses_get_weights(const pen_job_loss *loss, pen_arena *arena,
                                     loss_weights *out_weights) {
    *out_weights = (loss_weights){0};
    if (loss->class_weights_file != NULL) {
        PEN_TRY(pen_status_add_context(
            losses_read_file(loss->class_weights_file, arena, out_weights),
            "for class_weights: [1, 2, …], a number for each class, or an NPY file of them"));
    } else if (loss->class_weights.count > 0) {
        PEN_TRY(losses_copy_list(&loss->class_weights, arena, out_weights));
    } else {
        return PEN_OK;
    }
    for (uint32_t i = 0; i < out_weights->count; i++) {
        if (out_weights->items[i] > 0) return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT, "class_weights: found only 0, expected some above it");
}

// ---- what others want

// Where labels have names, those that a loss does not name are called as its output.
static const char *losses_label_name(const pen_job *job, const pen_job_loss *loss) {
    const bool have_names = pen_job_dataset_labels(&job->data.train)->count > 0 ||
                            pen_job_dataset_labels(&job->data.eval)->count > 0;
    return loss->labels == NULL && have_names ? loss->output : loss->labels;
}

static pen_compile_loss losses_describe(const pen_job *job, const pen_job_loss *loss,
                                        const loss_weights *weights) {
    return (pen_compile_loss){
        .spec = {.kind = loss->kind,
                 .class_axis = loss->class_axis,
                 .ignores = loss->ignores,
                 .ignore_index = loss->ignore_index,
                 .has_probabilities = loss->has_probabilities,
                 .label_smoothing = loss->label_smoothing,
                 .class_weights = weights->items,
                 .class_weight_count = weights->count,
                 .weighs_examples = pen_job_data_is_weighted(&job->data),
                 .beta = loss->kind == PEN_LOSS_HUBER ? loss->delta : loss->beta},
        .output = loss->output,
        .labels = losses_label_name(job, loss),
        .weight = loss->weight};
}

pen_status pen_job_get_losses(const pen_job *job, pen_arena *arena,
                              const pen_compile_loss **out_losses, uint32_t *out_count) {
    const uint32_t count = job->train.losses.count;
    pen_compile_loss *losses;
    PEN_TRY(PEN_NEW(arena, count, &losses));
    for (uint32_t i = 0; i < count; i++) {
        const pen_job_loss *loss = losses_at(job, i);
        loss_weights weights;
        PEN_TRY(
            pen_job_blame(job, &loss->class_weights, losses_get_weights(loss, arena, &weights)));
        losses[i] = losses_describe(job, loss, &weights);
    }
    *out_losses = losses;
    *out_count = count;
    return PEN_OK;
}

// What the data need to know is part of what the compiler is told.
pen_status pen_job_get_targets(const pen_job *job, pen_arena *arena,
                               const pen_dataset_target **out_targets, uint32_t *out_count) {
    const pen_compile_loss *losses;
    pen_dataset_target *targets;
    uint32_t count;
    PEN_TRY(pen_job_get_losses(job, arena, &losses, &count));
    PEN_TRY(PEN_NEW(arena, count, &targets));
    for (uint32_t i = 0; i < count; i++) {
        const pen_loss_spec *spec = &losses[i].spec;
        targets[i] = (pen_dataset_target){.labels = losses[i].labels,
                                          .has_classes = pen_loss_takes_indices(spec),
                                          .ignores = spec->ignores,
                                          .ignore_index = spec->ignore_index,
                                          .weights = spec->class_weights,
                                          .weight_count = spec->class_weight_count};
    }
    *out_targets = targets;
    *out_count = count;
    return PEN_OK;
}

pen_status pen_job_blame_loss(const pen_job *job, uint32_t index, pen_status status) {
    const pen_job_loss *loss = losses_at(job, index);
    if (loss->output == NULL) return pen_job_blame(job, &loss->kind, status);
    return pen_job_blame(job, &loss->output, status);
}
