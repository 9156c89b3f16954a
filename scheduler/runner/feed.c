#include "scheduler/runner/feed.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "scheduler/runtime/run/run_data.h"

pen_status pen_feed_describe(const pen_dataset_info *info, pen_arena *arena,
                             const pen_compile_input **out_inputs, uint32_t *out_count) {
    pen_compile_input *inputs;
    pen_dataset_field *fields;
    PEN_TRY(PEN_NEW(arena, info->input_count, &inputs));
    PEN_TRY(PEN_NEW(arena, info->input_count, &fields));
    for (uint32_t i = 0; i < info->input_count; i++) {
        const char *name = info->inputs[i].name;
        fields[i] = info->inputs[i];
        inputs[i] = (pen_compile_input){.rank = fields[i].rank, .dims = fields[i].shape};
        PEN_TRY(pen_arena_copy_text(arena, name, strlen(name), &inputs[i].name));
    }
    *out_inputs = inputs;
    *out_count = info->input_count;
    return PEN_OK;
}

static pen_element_type feed_element(pen_dataset_element element) {
    switch (element) {
    case PEN_DATASET_FLOAT32:
        return PEN_FLOAT32;
    case PEN_DATASET_INT64:
        return PEN_INT64;
    case PEN_DATASET_AUTO:
        break;
    }
    return PEN_ELEMENT_UNKNOWN;
}

static pen_status feed_check_field(const pen_program *program, const pen_dataset_field *field,
                                   pen_value_id value) {
    const pen_graph *graph = program->graph;
    const pen_tensor_type *type = pen_value_type(graph, value);
    const uint64_t count = program->microbatch_size;
    if (feed_element(field->element) != type->element) {
        return pen_error(PEN_INVALID_INPUT, "the data gives %s for '%s', which takes %s",
                         pen_element_name(feed_element(field->element)),
                         pen_value_name(graph, value), pen_element_name(type->element));
    }
    if (pen_tensor_type_bytes(type) == count * field->bytes) return PEN_OK;
    char text[PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT,
                     "the data gives %llu elements an example for '%s', which takes %s for a batch "
                     "of %llu",
                     (unsigned long long)field->element_count, pen_value_name(graph, value),
                     pen_shape_format(&type->shape, text), (unsigned long long)count);
}

static pen_status feed_find_input(const pen_dataset_info *info, const char *name,
                                  uint32_t *out_index) {
    for (uint32_t i = 0; i < info->input_count; i++) {
        const bool is_only = info->inputs[i].name[0] == '\0' && info->input_count == 1;
        if (!is_only && strcmp(info->inputs[i].name, name) != 0) continue;
        *out_index = i;
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT, "the data has nothing for the model's input '%s'", name);
}

static bool feed_is_value(const pen_program *program, pen_value_id value, const char *name) {
    return pen_value_is(value) && strcmp(pen_value_name(program->graph, value), name) == 0;
}

// What a loss takes besides the model's output. *out_is_found: the name is of such.
static pen_status feed_find_of_loss(const pen_program *program, const pen_dataset_info *info,
                                    const pen_batch *batch, const char *name,
                                    pen_feed_source *out_source, bool *out_is_found) {
    static const pen_dataset_field scale = {
        .name = "", .element = PEN_DATASET_FLOAT32, .element_count = 1, .bytes = sizeof(float)};
    *out_is_found = true;
    for (uint32_t i = 0; i < program->loss_count; i++) {
        const pen_program_loss *loss = &program->losses[i];
        uint32_t labels = 0;
        if (feed_is_value(program, loss->labels, name)) {
            PEN_TRY(pen_dataset_find_labels(info, loss->label_name, &labels));
            *out_source = (pen_feed_source){&info->labels[labels], batch->labels[labels]};
            return PEN_OK;
        }
        if (feed_is_value(program, loss->scale, name)) {
            PEN_ASSERT(i < info->target_count);
            *out_source = (pen_feed_source){&scale, batch->scales[i]};
            return PEN_OK;
        }
    }
    *out_is_found = false;
    return PEN_OK;
}

pen_status pen_feed_find(const pen_program *program, const pen_dataset_info *info,
                         const pen_batch *batch, const char *name, pen_feed_source *out_source) {
    uint32_t index = 0;
    bool is_of_loss;
    PEN_TRY(feed_find_of_loss(program, info, batch, name, out_source, &is_of_loss));
    if (is_of_loss) return PEN_OK;
    PEN_TRY(feed_find_input(info, name, &index));
    *out_source = (pen_feed_source){&info->inputs[index], batch->inputs[index]};
    return PEN_OK;
}

pen_status pen_feed_find_field(const pen_program *program, const pen_dataset_info *info,
                               const char *name, uint32_t *out_field) {
    uint32_t index = 0;
    for (uint32_t i = 0; i < program->loss_count; i++) {
        const pen_program_loss *loss = &program->losses[i];
        if (feed_is_value(program, loss->labels, name)) {
            PEN_TRY(pen_dataset_find_labels(info, loss->label_name, &index));
            *out_field = PEN_RUN_FIELD_LABELS + index;
            return PEN_OK;
        }
        if (feed_is_value(program, loss->scale, name)) {
            *out_field = PEN_RUN_FIELD_NONE;
            return PEN_OK;
        }
    }
    PEN_TRY(feed_find_input(info, name, &index));
    *out_field = 1 + index;
    return PEN_OK;
}

uint64_t pen_feed_target_count(const pen_program *program, const pen_batch *batch,
                               const double *terms) {
    if (!pen_value_is(program->accuracy)) return 0;
    const pen_program_loss *loss = &program->losses[program->accuracy_loss];
    const pen_shape *shape = &pen_value_type(program->graph, loss->labels)->shape;
    if (pen_value_is(loss->scale)) return batch->target_counts[program->accuracy_loss];
    const uint64_t all =
        (uint64_t)pen_shape_element_count(shape) / program->microbatch_size * batch->count;
    const double share = pen_program_get_share(program, PEN_PROGRAM_SHARE_TARGETS, terms);
    return (uint64_t)llround(share * (double)all);
}

pen_status pen_feed_check_inputs(const pen_program *program, const pen_dataset_info *info) {
    for (uint32_t i = 0; i < program->input_count; i++) {
        uint32_t field = 0;
        PEN_TRY(feed_find_input(info, pen_value_name(program->graph, program->inputs[i]), &field));
        PEN_TRY(feed_check_field(program, &info->inputs[field], program->inputs[i]));
    }
    return PEN_OK;
}

pen_status pen_feed_check_labels(const pen_program *program, uint32_t loss,
                                 const pen_dataset_info *info) {
    const pen_value_id labels = program->losses[loss].labels;
    uint32_t index;
    if (!pen_value_is(labels)) return PEN_OK;
    PEN_TRY(pen_dataset_find_labels(info, program->losses[loss].label_name, &index));
    return feed_check_field(program, &info->labels[index], labels);
}

static pen_status feed_value(const pen_runner_form *form, const pen_dataset_info *info,
                             const pen_batch *batch, uint64_t first, pen_value_id value) {
    const pen_program *program = form->program;
    pen_feed_source source = {0};
    PEN_TRY(pen_feed_find(program, info, batch, pen_value_name(program->graph, value), &source));
    PEN_TRY(feed_check_field(program, source.field, value));
    const uint64_t stride = source.field->bytes;
    return pen_executor_write(form->executor, value, 0,
                              (const char *)source.examples + first * stride,
                              program->microbatch_size * stride);
}

pen_status pen_feed_microbatch(const pen_runner_form *form, const pen_dataset_info *info,
                               const pen_batch *batch, uint64_t first) {
    const pen_program *program = form->program;
    for (uint32_t i = 0; i < program->fed_count; i++) {
        PEN_TRY(feed_value(form, info, batch, first, program->inputs[i]));
    }
    return PEN_OK;
}

pen_status pen_feed_read_number(const pen_runner_form *form, pen_value_id scalar,
                                double *out_number) {
    if (pen_value_type(form->program->graph, scalar)->element == PEN_FLOAT64) {
        return pen_executor_read(form->executor, scalar, 0, out_number, sizeof *out_number);
    }
    float single;
    PEN_TRY(pen_executor_read(form->executor, scalar, 0, &single, sizeof single));
    *out_number = (double)single;
    return PEN_OK;
}

pen_status pen_feed_read_term(const pen_runner_form *form, uint32_t index, double *out_number) {
    const pen_value_id term = pen_program_term(form->program, index);
    *out_number = 0;
    return pen_value_is(term) ? pen_feed_read_number(form, term, out_number) : PEN_OK;
}

pen_status pen_feed_fetch_term(const pen_runner_form *form, uint32_t index,
                               pen_executor_number *out_number) {
    const pen_value_id term = pen_program_term(form->program, index);
    *out_number = (pen_executor_number){0};
    return pen_value_is(term) ? pen_executor_fetch_number(form->executor, term, 0, out_number)
                              : PEN_OK;
}

// Memory grows to the largest batch.
static pen_status feed_make_room(pen_feed_seen *seen, uint32_t index, uint64_t bytes) {
    if (bytes <= seen->bytes[index]) return PEN_OK;
    pen_memory_free(seen->values[index]);
    seen->bytes[index] = 0;
    seen->values[index] = pen_memory_allocate(bytes, 1);
    if (seen->values[index] == NULL) return pen_error_out_of_memory();
    seen->bytes[index] = bytes;
    return PEN_OK;
}

pen_status pen_feed_see(const pen_runner_form *form, pen_feed_seen *seen,
                        const void *out_values[PEN_METRIC_SEEN_COUNT]) {
    const pen_program *program = form->program;
    for (uint32_t i = 0; i < PEN_METRIC_SEEN_COUNT; i++) {
        const pen_value_id value = program->metrics.values[i];
        out_values[i] = NULL;
        if (!pen_value_is(value)) continue;
        const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(program->graph, value));
        PEN_TRY(feed_make_room(seen, i, bytes));
        PEN_TRY(pen_executor_read(form->executor, value, 0, seen->values[i], bytes));
        out_values[i] = seen->values[i];
    }
    return PEN_OK;
}

void pen_feed_forget_seen(pen_feed_seen *seen) {
    for (uint32_t i = 0; i < PEN_METRIC_SEEN_COUNT; i++) {
        pen_memory_free(seen->values[i]);
    }
    *seen = (pen_feed_seen){0};
}

// Of float32 or float64. Does nothing for PEN_VALUE_NONE.
static pen_status feed_scalar(const pen_runner_form *form, pen_value_id scalar, double number) {
    if (!pen_value_is(scalar)) return PEN_OK;
    if (pen_value_type(form->program->graph, scalar)->element == PEN_FLOAT64) {
        return pen_executor_write(form->executor, scalar, 0, &number, sizeof number);
    }
    const float single = (float)number;
    return pen_executor_write(form->executor, scalar, 0, &single, sizeof single);
}

pen_status pen_feed_fetch_applied(const pen_runner_form *form, pen_executor_number *out_number) {
    *out_number = (pen_executor_number){0};
    if (!pen_value_is(form->program->applied)) return PEN_OK;
    return pen_executor_fetch_number(form->executor, form->program->applied, 0, out_number);
}

pen_status pen_feed_numbers(const pen_runner_form *form, const pen_feed_step *step) {
    const pen_program *program = form->program;
    PEN_TRY(feed_scalar(form, program->loss_weight, step->loss_weight * step->scale));
    PEN_TRY(feed_scalar(form, program->unscale, step->unscale));
    PEN_TRY(feed_scalar(form, program->learning_rate, step->learning_rate));
    return feed_scalar(form, program->step, step->update);
}

pen_feed_split pen_feed_cut(uint64_t count, uint64_t microbatch_size) {
    return (pen_feed_split){.whole_count = count / microbatch_size,
                            .size = microbatch_size,
                            .rest = count % microbatch_size};
}
