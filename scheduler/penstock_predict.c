// Predictions, and the parameters, of a training: whatever engine holds them.

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/penstock_state.h"
#include "scheduler/runner/feed.h"
#include "scheduler/train/train_average.h"

#define PREDICT_SIZE_LIMIT 1024 // examples at once: forms are of powers of two, so few are compiled

// ---- where parameters are

// The engine's own runner, where it has one; NULL: none, or its parameters are not what predicts.
static pen_runner *predict_engine_runner(pen_training *training) {
    if (training->trainer == NULL || pen_trainer_uses_average(training->trainer)) return NULL;
    pen_engine *engine = pen_trainer_engine(training->trainer);
    return engine->kind->runner == NULL ? NULL : engine->kind->runner(engine);
}

// From the devices of a training to a runner here. Piece by piece would be slower for many small
// tensors; the largest one is held twice.
static pen_status predict_copy_tensors(const pen_tensor_store *from, const pen_tensor_store *to) {
    pen_status status = PEN_OK;
    for (uint32_t i = 0; i < to->count && status == PEN_OK; i++) {
        const pen_stored_tensor *tensor = &to->tensors[i];
        const uint32_t index = pen_tensor_store_find(from, tensor->name);
        if (!tensor->is_model) continue;
        if (index == PEN_TENSOR_NONE || from->tensors[index].bytes != tensor->bytes) {
            return pen_error(PEN_INTERNAL, "the training lacks the tensor '%s'", tensor->name);
        }
        void *data = pen_memory_allocate(tensor->bytes, 1);
        status = data == NULL ? pen_error_out_of_memory() : PEN_OK;
        if (status == PEN_OK) status = pen_tensor_store_read(from, index, data, tensor->bytes);
        if (status == PEN_OK) status = pen_tensor_store_write(to, i, data, tensor->bytes);
        pen_memory_free(data);
    }
    return status;
}

static pen_status predict_copy_trained(pen_trainer *trainer, const pen_tensor_store *to) {
    pen_arena *arena;
    pen_tensor_store from;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_train_average_view(pen_trainer_uses_average(trainer),
                                               pen_trainer_tensors(trainer), arena, &from);
    if (status == PEN_OK) status = predict_copy_tensors(&from, to);
    pen_arena_destroy(arena);
    return status;
}

static pen_status predict_create_runner(pen_training *training, const pen_dataset_info *info) {
    pen_runner_options options;
    const pen_runner_form *form;
    PEN_TRY(pen_job_runner_options(training->job, PEN_DATASET_PART_EVAL, info, training->arena,
                                   &options));
    PEN_TRY(pen_runner_create(&options, &training->runner));
    const pen_status status = pen_job_blame_memory(
        training->job, pen_runner_get(training->runner, PEN_COMPILE_PREDICT, 1, false, &form));
    PEN_TRY(status);
    if (training->parameters == NULL || training->trainer != NULL) return PEN_OK;
    return pen_parameter_file_load(training->parameters, pen_runner_tensors(training->runner));
}

static pen_status predict_refresh(pen_training *training) {
    if (training->trainer == NULL || training->steps_copied == training->steps_done) return PEN_OK;
    PEN_TRY(predict_copy_trained(training->trainer, pen_runner_tensors(training->runner)));
    training->steps_copied = training->steps_done;
    return PEN_OK;
}

pen_status pen_api_get_runner(pen_training *training, const pen_dataset_info *info,
                              pen_runner **out_runner) {
    *out_runner = predict_engine_runner(training);
    if (*out_runner != NULL) return PEN_OK;
    pen_status status = PEN_OK;
    if (training->runner == NULL) {
        status = predict_create_runner(training, info);
        training->steps_copied = UINT64_MAX; // none
    }
    if (status == PEN_OK) status = predict_refresh(training);
    if (status != PEN_OK) { // another time it is made anew
        pen_runner_destroy(training->runner);
        training->runner = NULL;
        training->program = NULL;
        return status;
    }
    *out_runner = training->runner;
    return PEN_OK;
}

pen_status pen_api_get_tensors(pen_training *training, const pen_tensor_store **out_tensors) {
    pen_runner *runner;
    if (training->trainer != NULL) {
        *out_tensors = pen_trainer_tensors(training->trainer);
        return PEN_OK;
    }
    if (training->runner == NULL) {
        PEN_TRY(pen_api_open_evaluated(training));
        PEN_TRY(pen_api_get_runner(training, pen_dataset_get_info(training->evaluated), &runner));
    }
    *out_tensors = pen_runner_tensors(training->runner);
    return PEN_OK;
}

// ---- parameters

static void predict_describe(const char *name, const pen_tensor_type *type,
                             pen_tensor_info *out_tensor) {
    pen_tensor_info tensor = {.name = name,
                              .element = pen_api_element(type->element),
                              .rank = type->shape.rank,
                              .bytes = pen_tensor_type_bytes(type)};
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        tensor.shape[i] = type->shape.dims[i];
    }
    pen_api_fill_report(&tensor, sizeof tensor, out_tensor);
}

pen_status pen_training_count_tensors(pen_training *training, uint32_t *out_count) {
    const pen_tensor_store *tensors;
    *out_count = 0;
    PEN_TRY(pen_api_get_tensors(training, &tensors));
    *out_count = pen_tensor_store_model_count(tensors);
    return PEN_OK;
}

static pen_status predict_find_tensor(pen_training *training, uint32_t index,
                                      const pen_tensor_store **out_tensors) {
    PEN_TRY(pen_api_get_tensors(training, out_tensors));
    const uint32_t count = pen_tensor_store_model_count(*out_tensors);
    if (index < count) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "there is no tensor %u: the model has %u", index, count);
}

static pen_status predict_check_bytes(const pen_stored_tensor *tensor, uint64_t bytes) {
    if (bytes == tensor->bytes) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "'%s' has %llu bytes, found %llu", tensor->name,
                     (unsigned long long)tensor->bytes, (unsigned long long)bytes);
}

pen_status pen_training_describe_tensor(pen_training *training, uint32_t index,
                                        pen_tensor_info *out_tensor) {
    const pen_tensor_store *tensors;
    PEN_TRY(pen_api_check_report("pen_tensor_info", out_tensor, sizeof *out_tensor));
    PEN_TRY(predict_find_tensor(training, index, &tensors));
    predict_describe(tensors->tensors[index].name, &tensors->tensors[index].type, out_tensor);
    return PEN_OK;
}

pen_status pen_training_read_tensor(pen_training *training, uint32_t index, void *out_data,
                                    uint64_t bytes) {
    const pen_tensor_store *tensors;
    PEN_TRY(predict_find_tensor(training, index, &tensors));
    PEN_TRY(predict_check_bytes(&tensors->tensors[index], bytes));
    return pen_tensor_store_read(tensors, index, out_data, bytes);
}

pen_status pen_training_write_tensor(pen_training *training, uint32_t index, const void *data,
                                     uint64_t bytes) {
    const pen_tensor_store *tensors;
    PEN_TRY(predict_find_tensor(training, index, &tensors));
    PEN_TRY(predict_check_bytes(&tensors->tensors[index], bytes));
    training->steps_copied = UINT64_MAX; // a runner beside the training has others now
    return pen_tensor_store_write(tensors, index, data, bytes);
}

// ---- predictions

// A prediction that is being made.
typedef struct predict_run {
    pen_runner *runner;
    pen_dataset *dataset;
    bool is_own; // the dataset is
    const pen_dataset_info *info;
    const pen_runner_form *form;
    pen_value_id output;
    uint64_t row_bytes;
    void **inputs; // [input_count], examples of a batch
    void *rows;    // of a batch
    pen_arena *arena;
} predict_run;

// The data as training data are read, with the job's normalization.
static pen_status predict_open_arrays(const pen_training *training, const pen_array *inputs,
                                      size_t count, predict_run *run) {
    pen_dataset_input *named;
    pen_dataset_array *arrays;
    pen_dataset_options options;
    PEN_TRY(pen_api_read_arrays(inputs, count, run->arena, &arrays));
    PEN_TRY(PEN_NEW(run->arena, count, &named));
    for (size_t i = 0; i < count; i++) {
        named[i] = (pen_dataset_input){.name = arrays[i].name, .path = arrays[i].name};
    }
    pen_job_get_conversion(training->job, &options);
    options.format = "arrays";
    options.inputs = named;
    options.input_count = (uint32_t)count;
    options.arrays = arrays;
    options.array_count = (uint32_t)count;
    PEN_TRY(pen_dataset_open(&options, &run->dataset));
    run->is_own = true;
    pen_dataset_set_cancel(run->dataset, training->cancel);
    return PEN_OK;
}

// Examples at once: the least power of two that takes all, up to the batch that is trained.
static uint64_t predict_size(const pen_job *job, uint64_t count) {
    uint64_t size = 1;
    while (size < count && size * 2 <= (uint64_t)job->train.batch && size < PREDICT_SIZE_LIMIT) {
        size *= 2;
    }
    return size;
}

// By name, and only one that has a row for each example: rows of the last batch are cut off.
static pen_status predict_find_output(predict_run *run, const char *name) {
    const pen_program *program = run->form->program;
    uint32_t index = 0;
    while (name != NULL && index < program->output_count &&
           strcmp(pen_value_name(program->graph, program->outputs[index]), name) != 0) {
        index++;
    }
    if (index == program->output_count) {
        return pen_error(PEN_NOT_FOUND, "the model has no output '%s'; its first is '%s'", name,
                         pen_value_name(program->graph, program->outputs[0]));
    }
    run->output = program->outputs[index];
    const pen_tensor_type *type = pen_value_type(program->graph, run->output);
    char text[PEN_SHAPE_TEXT_BYTES];
    if (type->shape.rank == 0 || (uint64_t)type->shape.dims[0] != program->microbatch_size) {
        return pen_error(
            PEN_UNSUPPORTED, "output '%s' is %s for %llu examples, expected a row for each",
            pen_value_name(program->graph, run->output), pen_tensor_type_format(type, text),
            (unsigned long long)program->microbatch_size);
    }
    run->row_bytes = pen_tensor_type_bytes(type) / program->microbatch_size;
    return PEN_OK;
}

static pen_status predict_begin(pen_training *training, const char *output, const pen_array *inputs,
                                size_t count, predict_run *run) {
    PEN_TRY(pen_arena_create(&run->arena));
    if (count > 0) {
        PEN_TRY(predict_open_arrays(training, inputs, count, run));
    } else {
        PEN_TRY(pen_api_open_evaluated(training));
        run->dataset = training->evaluated;
    }
    run->info = pen_dataset_get_info(run->dataset);
    PEN_TRY(pen_api_get_runner(training, run->info, &run->runner));
    PEN_TRY(pen_job_blame_memory(
        training->job,
        pen_runner_get(run->runner, PEN_COMPILE_PREDICT,
                       predict_size(training->job, run->info->example_count), false, &run->form)));
    PEN_TRY(pen_feed_check_inputs(run->form->program, run->info));
    return predict_find_output(run, output);
}

static pen_status predict_end(predict_run *run, pen_status status) {
    for (uint32_t i = 0; run->inputs != NULL && i < run->info->input_count; i++) {
        pen_memory_free(run->inputs[i]);
    }
    pen_memory_free(run->rows);
    if (run->is_own) pen_dataset_close(run->dataset);
    pen_arena_destroy(run->arena);
    return status;
}

pen_status pen_training_describe_output(pen_training *training, const char *output,
                                        const pen_array *inputs, size_t input_count,
                                        pen_tensor_info *out_tensor) {
    predict_run run = {0};
    PEN_TRY(pen_api_check_report("pen_tensor_info", out_tensor, sizeof *out_tensor));
    const pen_status status = predict_begin(training, output, inputs, input_count, &run);
    if (status == PEN_OK) {
        const pen_graph *graph = run.form->program->graph;
        pen_tensor_type type = *pen_value_type(graph, run.output);
        type.shape.dims[0] = (int64_t)run.info->example_count;
        predict_describe(pen_value_name(graph, run.output), &type, out_tensor);
    }
    return predict_end(&run, status);
}

static pen_status predict_allocate(predict_run *run) {
    const uint64_t size = run->form->program->microbatch_size;
    PEN_TRY(PEN_NEW(run->arena, run->info->input_count, &run->inputs));
    for (uint32_t i = 0; i < run->info->input_count; i++) {
        run->inputs[i] = pen_memory_allocate(size, run->info->inputs[i].bytes);
        if (run->inputs[i] == NULL) return pen_error_out_of_memory();
    }
    run->rows = pen_memory_allocate(size, run->row_bytes);
    return run->rows == NULL ? pen_error_out_of_memory() : PEN_OK;
}

// The last batch is filled up with what the buffers have; these rows are left out.
static pen_status predict_batch(predict_run *run, uint64_t first, uint64_t count, char *out_rows) {
    const uint64_t size = run->form->program->microbatch_size;
    uint64_t indices[PREDICT_SIZE_LIMIT];
    for (uint64_t i = 0; i < count; i++) {
        indices[i] = first + i;
    }
    PEN_TRY(pen_dataset_read(run->dataset, indices, count, run->inputs, NULL));
    const pen_batch batch = {.count = count, .indices = indices, .inputs = run->inputs};
    PEN_TRY(pen_feed_microbatch(run->form, run->info, &batch, 0));
    const pen_run_context context = {.first_microbatch = true};
    PEN_TRY(pen_executor_run(run->form->executor, PEN_EXECUTOR_MICROBATCH, 0, &context));
    PEN_TRY(
        pen_executor_read(run->form->executor, run->output, 0, run->rows, size * run->row_bytes));
    memcpy(out_rows, run->rows, count * run->row_bytes);
    return PEN_OK;
}

static pen_status predict_all(predict_run *run, char *out_rows, uint64_t bytes) {
    const uint64_t count = run->info->example_count;
    const uint64_t size = run->form->program->microbatch_size;
    if (bytes != count * run->row_bytes) {
        return pen_error(PEN_INVALID_INPUT, "the rows take %llu bytes, found room for %llu",
                         (unsigned long long)(count * run->row_bytes), (unsigned long long)bytes);
    }
    PEN_TRY(predict_allocate(run));
    for (uint64_t first = 0; first < count; first += size) {
        const uint64_t now = pen_min_u64(count - first, size);
        PEN_TRY(predict_batch(run, first, now, out_rows + first * run->row_bytes));
    }
    return PEN_OK;
}

pen_status pen_training_predict(pen_training *training, const char *output, const pen_array *inputs,
                                size_t input_count, void *out_rows, uint64_t bytes) {
    predict_run run = {0};
    pen_status status = predict_begin(training, output, inputs, input_count, &run);
    if (status == PEN_OK) status = predict_all(&run, out_rows, bytes);
    return pen_status_add_context(predict_end(&run, status), "while predicting");
}
