#include "scheduler/compile/compile.h"

#include <string.h>

#include "base/memory.h"
#include "device/reference/reference_evaluate.h"
#include "graph/analysis/execution_order.h"
#include "graph/analysis/training_types.h"
#include "graph/import/import.h"
#include "graph/op.h"
#include "graph/passes/fold_transposes.h"
#include "graph/passes/fuse/fuse_attention.h"
#include "graph/passes/fuse/fuse_layers.h"
#include "graph/passes/fuse/fuse_normalization.h"
#include "graph/passes/fuse/fuse_rows.h"
#include "graph/passes/fuse/lower_einsum.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/passes/gradient/freeze_matching.h"
#include "graph/passes/gradient/skip_stops.h"
#include "graph/passes/gradient/split_backward.h"
#include "graph/passes/infer_shapes.h"
#include "graph/passes/merge_duplicates.h"
#include "graph/passes/remove_dead.h"
#include "graph/passes/set_inference.h"
#include "graph/passes/skip_dropout.h"
#include "graph/verify.h"
#include "scheduler/compile/loss_output.h"

#define COMPILE_SYMBOLS_LIMIT 64
#define COMPILE_WARNINGS_LIMIT 8

typedef struct compile_state {
    const pen_compile_request *request;
    pen_model *model; // owns the arena
    pen_weight_file *weights;
    pen_arena *arena;
    pen_graph *graph;
    pen_program *program;
    const char **warnings;
} compile_state;

static pen_status compile_warn(compile_state *state, const char *warning) {
    if (state->program->warning_count < COMPILE_WARNINGS_LIMIT) {
        state->warnings[state->program->warning_count++] = warning;
    }
    return PEN_OK;
}

static pen_status compile_blame(const compile_state *state, pen_compile_part part,
                                pen_status status) {
    const pen_compile_request *request = state->request;
    if (status == PEN_OK || request->blame == NULL) return status;
    return request->blame(request->blame_context, part, status);
}

// ---- import

static pen_status compile_import(compile_state *state) {
    const bool trains = state->request->mode == PEN_COMPILE_TRAIN;
    pen_import_options options = state->request->import;
    options.dropout_trains = trains;
    options.evaluate = pen_reference_evaluate;
    PEN_TRY(compile_blame(state, PEN_COMPILE_PART_MODEL,
                          pen_model_open(state->request->model_path, &options, &state->model)));
    if (state->request->weights != NULL) {
        const pen_status status =
            pen_weight_file_apply(state->request->weights, state->model, &state->weights);
        PEN_TRY(compile_blame(state, PEN_COMPILE_PART_WEIGHTS, status));
    }
    state->arena = state->model->arena;
    state->graph = state->model->graph;
    PEN_TRY(PEN_NEW(state->arena, 1, &state->program));
    PEN_TRY(PEN_NEW(state->arena, COMPILE_WARNINGS_LIMIT, &state->warnings));
    state->program->warnings = state->warnings;
    state->program->batch_symbol = state->model->batch_symbol;
    state->program->pins = state->model->pins;
    state->program->pin_count = state->model->pin_count;
    state->program->microbatch_size = state->request->microbatch_size;
    return trains ? PEN_OK : pen_set_inference(state->graph);
}

// ---- shapes

static const pen_compile_input *compile_find_input(const compile_state *state, const char *name) {
    for (uint32_t i = 0; i < state->request->input_count; i++) {
        const pen_compile_input *input = &state->request->inputs[i];
        if (strcmp(input->name, name) == 0) return input;
        const bool is_only = input->name[0] == '\0' && pen_graph_input_count(state->graph) == 1;
        if (is_only) return input;
    }
    return NULL;
}

// Makes the first dimension of an input the microbatch, whatever the exporter wrote there.
static pen_status compile_bind_batch(compile_state *state, pen_value_id input) {
    pen_tensor_type type = *pen_value_type(state->graph, input);
    if (type.shape.rank == 0 || type.shape.dims[0] < 0) return PEN_OK;
    type.shape.dims[0] = (int64_t)state->request->microbatch_size;
    pen_graph_set_type(state->graph, input, &type);
    return PEN_OK;
}

// The size that the data gives to dimension `axis` of an input; 0: none.
static int64_t compile_data_size(const compile_state *state, pen_value_id input, uint32_t axis) {
    if (axis == 0) return (int64_t)state->request->microbatch_size;
    const pen_compile_input *data = compile_find_input(state, pen_value_name(state->graph, input));
    if (data == NULL || data->rank + 1 != pen_value_type(state->graph, input)->shape.rank) return 0;
    return data->dims[axis - 1];
}

// Adds a binding; one symbol has one size.
static pen_status compile_bind_symbol(const char *symbol, int64_t size,
                                      pen_symbol_binding *bindings, uint32_t *count) {
    for (uint32_t b = 0; b < *count; b++) {
        if (strcmp(bindings[b].symbol, symbol) != 0) continue;
        if (bindings[b].size == size) return PEN_OK;
        return pen_error(PEN_INVALID_INPUT,
                         "the model's dimension '%s' is %lld here and %lld there", symbol,
                         (long long)bindings[b].size, (long long)size);
    }
    if (*count == COMPILE_SYMBOLS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "the model's inputs have more than %d unknown sizes",
                         COMPILE_SYMBOLS_LIMIT);
    }
    bindings[(*count)++] = (pen_symbol_binding){symbol, size};
    return PEN_OK;
}

static pen_status compile_bind(compile_state *state, pen_symbol_binding *bindings,
                               uint32_t *out_count) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < pen_graph_input_count(state->graph); i++) {
        const pen_value_id input = pen_graph_input(state->graph, i);
        PEN_TRY(compile_bind_batch(state, input));
        const pen_shape shape = pen_value_type(state->graph, input)->shape;
        for (uint32_t d = 0; d < shape.rank; d++) {
            const char *symbol = pen_graph_symbol_name(state->graph, shape.dims[d]);
            const int64_t size = compile_data_size(state, input, d);
            if (symbol == NULL || size == 0) continue;
            PEN_TRY(compile_bind_symbol(symbol, size, bindings, &count));
        }
    }
    *out_count = count;
    return PEN_OK;
}

static pen_status compile_infer(compile_state *state) {
    pen_symbol_binding bindings[COMPILE_SYMBOLS_LIMIT];
    uint32_t count;
    PEN_TRY(compile_bind(state, bindings, &count));
    const pen_infer_options options = {
        .bindings = bindings, .binding_count = count, .evaluate = pen_reference_evaluate};
    const pen_status status = pen_infer_shapes(state->graph, &options);
    if (status == PEN_OK || state->model->batch_symbol != NULL) return status;
    return pen_status_add_context(
        status,
        "the model was exported with a fixed batch size, not %llu: export "
        "it with a dynamic one (in PyTorch, with dynamic_axes)",
        (unsigned long long)state->request->microbatch_size);
}

// The dimensions from `first` on that are not 1.
static pen_shape compile_squeeze(uint32_t first, uint32_t rank, const int64_t *dims) {
    pen_shape shape = {0};
    for (uint32_t d = first; d < rank; d++) {
        if (dims[d] != 1) shape.dims[shape.rank++] = dims[d];
    }
    return shape;
}

// An example may be flat where the input is not, or the other way round; it is never transposed.
static bool compile_example_fits(const pen_compile_input *data, const pen_shape *input) {
    const pen_shape found = compile_squeeze(0, data->rank, data->dims);
    const pen_shape expected = compile_squeeze(1, input->rank, input->dims);
    if (found.rank > 1 && expected.rank > 1) return pen_shape_equal(&found, &expected);
    return pen_shape_element_count(&found) == pen_shape_element_count(&expected);
}

static pen_status compile_check_input(const compile_state *state, pen_value_id input) {
    const char *name = pen_value_name(state->graph, input);
    const pen_compile_input *data = compile_find_input(state, name);
    if (data == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "the data has nothing for the model's input '%s'; it has '%s'", name,
                         state->request->inputs[0].name);
    }
    const pen_shape *expected = &pen_value_type(state->graph, input)->shape;
    if (compile_example_fits(data, expected)) return PEN_OK;
    pen_shape found = {.rank = data->rank};
    memcpy(found.dims, data->dims, data->rank * sizeof *data->dims);
    pen_shape one = {.rank = expected->rank == 0 ? 0 : expected->rank - 1};
    memcpy(one.dims, expected->dims + 1, one.rank * sizeof *one.dims);
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT,
                     "an example of the data has the shape %s, but the model's input '%s' takes "
                     "examples of %s",
                     pen_shape_format(&found, texts[0]), name, pen_shape_format(&one, texts[1]));
}

// The model must have each input that the data names.
static pen_status compile_check_names(const compile_state *state) {
    const uint32_t input_count = pen_graph_input_count(state->graph);
    for (uint32_t i = 0; i < state->request->input_count; i++) {
        const char *name = state->request->inputs[i].name;
        bool found = name[0] == '\0' && input_count == 1;
        for (uint32_t j = 0; j < input_count && !found; j++) {
            const pen_value_id input = pen_graph_input(state->graph, j);
            found = strcmp(name, pen_value_name(state->graph, input)) == 0;
        }
        if (found || input_count == 0) continue;
        const char *other = pen_value_name(state->graph, pen_graph_input(state->graph, 0));
        if (name[0] == '\0') {
            return pen_error(PEN_INVALID_INPUT,
                             "the data does not say which of the model's %u inputs it is for; "
                             "one is called '%s'",
                             input_count, other);
        }
        return pen_error(PEN_INVALID_INPUT,
                         "the data is for '%s', but the model has no such input; one is called "
                         "'%s'",
                         name, other);
    }
    return PEN_OK;
}

// The data's examples must be what the model's inputs take.
static pen_status compile_check_inputs(const compile_state *state) {
    if (state->request->input_count == 0) return PEN_OK;
    for (uint32_t i = 0; i < pen_graph_input_count(state->graph); i++) {
        PEN_TRY(compile_check_input(state, pen_graph_input(state->graph, i)));
    }
    return PEN_OK;
}

// ---- passes that make a new graph

static pen_value_id compile_moved(const pen_value_id *map, pen_value_id value) {
    return pen_value_is(value) ? map[value.index] : PEN_VALUE_NONE;
}

static void compile_move_all(const pen_value_id *map, uint32_t count, const pen_value_id *values) {
    pen_value_id *writable;
    memcpy(&writable, &values, sizeof writable); // made in compile_keep or compile_fuse_layers
    for (uint32_t i = 0; i < count; i++) {
        writable[i] = compile_moved(map, values[i]);
    }
}

// Follows a pass: `map` gives the new id of each old value; NULL: the graph is the old one.
static void compile_follow(compile_state *state, pen_graph *graph, const pen_value_id *map) {
    pen_program *program = state->program;
    state->graph = graph;
    if (map == NULL) return;
    compile_move_all(map, program->input_count, program->inputs);
    compile_move_all(map, program->output_count, program->outputs);
    compile_move_all(map, program->kept_count, program->kept);
    program->labels = compile_moved(map, program->labels);
    program->loss = compile_moved(map, program->loss);
    program->accuracy = compile_moved(map, program->accuracy);
    program->loss_weight = compile_moved(map, program->loss_weight);
    program->learning_rate = compile_moved(map, program->learning_rate);
    program->step = compile_moved(map, program->step);
}

static pen_status compile_fuse_layers_in(compile_state *state) {
    const pen_program *program = state->program;
    const pen_value_id *map;
    pen_graph *graph;
    PEN_TRY(pen_lower_einsum(state->graph, &graph, &map));
    compile_follow(state, graph, map);
    PEN_TRY(pen_skip_dropout(state->graph));
    const bool trains = state->request->mode == PEN_COMPILE_TRAIN;
    PEN_TRY(trains ? pen_skip_idle_stops(state->graph) : pen_skip_stops(state->graph));
    pen_fold_transposes(state->graph);
    // what is dead would count as a reader
    PEN_TRY(pen_remove_dead(state->graph, program->kept_count, program->kept, &graph, &map));
    compile_follow(state, graph, map);
    PEN_TRY(pen_fuse_layers(state->graph, program->kept_count, program->kept, &graph, &map));
    compile_follow(state, graph, map);
    PEN_TRY(pen_fuse_attention(state->graph, program->kept_count, program->kept, &graph, &map));
    compile_follow(state, graph, map);
    return PEN_OK;
}

// What the loss reads besides the outputs: passes before it keep these. [COMPILE_LOSS_VALUES]
#define COMPILE_LOSS_VALUES 3u
static pen_status compile_find_loss_values(const compile_state *state, pen_value_id *out_values,
                                           uint32_t *out_count) {
    const char *const names[COMPILE_LOSS_VALUES] = {
        state->request->loss_output, state->model->penalty,
        pen_model_find_mask(state->model, state->request->loss_output)};
    *out_count = 0;
    for (uint32_t i = 0; i < COMPILE_LOSS_VALUES; i++) {
        if (state->request->mode == PEN_COMPILE_PREDICT || names[i] == NULL) continue;
        PEN_TRY(pen_graph_find_value(state->graph, names[i], &out_values[*out_count]));
        *out_count += 1;
    }
    return PEN_OK;
}

// Makes one operator of each layer that the exporter wrote in several nodes. All that the program
// holds of the graph so far is what the loss will read, under its names.
static pen_status compile_fuse_layers(compile_state *state) {
    pen_value_id kept[COMPILE_LOSS_VALUES];
    PEN_TRY(compile_find_loss_values(state, kept, &state->program->kept_count));
    state->program->kept = kept;
    const pen_status status = compile_fuse_layers_in(state);
    state->program->kept = NULL;
    state->program->kept_count = 0;
    return status;
}

// ---- loss, gradients, updates

static pen_status compile_check_output(compile_state *state, pen_value_id output) {
    const pen_loss_output chosen = {.model = state->model,
                                    .graph = state->graph,
                                    .output = output,
                                    .is_named = state->request->loss_output != NULL,
                                    .loss = state->request->loss};
    const char *warnings[PEN_LOSS_OUTPUT_WARNINGS];
    uint32_t count;
    PEN_TRY(pen_loss_output_check(&chosen, state->arena, warnings, &count));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(compile_warn(state, warnings[i]));
    }
    return PEN_OK;
}

static pen_status compile_attach_loss(compile_state *state) {
    const pen_compile_request *request = state->request;
    pen_value_id output = pen_graph_output(state->graph, 0);
    if (request->loss_output != NULL) {
        PEN_TRY(pen_graph_find_value(state->graph, request->loss_output, &output));
    }
    pen_attached_loss loss;
    pen_value_id mask = PEN_VALUE_NONE, penalty;
    const char *mask_name = pen_model_find_mask(state->model, state->request->loss_output);
    if (mask_name != NULL) PEN_TRY(pen_graph_find_value(state->graph, mask_name, &mask));
    if (request->mode == PEN_COMPILE_TRAIN) PEN_TRY(compile_check_output(state, output));
    PEN_TRY(
        pen_status_add_context(pen_attach_loss(state->graph, request->loss, output, mask, &loss),
                               "while attaching the loss"));
    if (state->model->penalty != NULL) {
        PEN_TRY(pen_graph_find_value(state->graph, state->model->penalty, &penalty));
        PEN_TRY(pen_attach_penalty(state->graph, penalty, &loss.loss));
    }
    const pen_element_type element = pen_value_type(state->graph, loss.loss)->element;
    if (!pen_element_is_trained(element)) {
        return pen_error(PEN_UNSUPPORTED, "the loss is %s, expected float32 or float64",
                         pen_element_name(element));
    }
    state->program->loss = loss.loss;
    state->program->labels = loss.labels;
    state->program->accuracy = loss.accuracy;
    if (pen_value_is(loss.accuracy)) {
        const pen_shape *shape = &pen_value_type(state->graph, output)->shape;
        state->program->class_count = (uint32_t)shape->dims[shape->rank - 1];
    }
    return PEN_OK;
}

static pen_status compile_add_scalar(compile_state *state, const char *name,
                                     const pen_tensor_type *type, pen_value_id *out_value) {
    const pen_value value = {.name = name, .kind = PEN_VALUE_SCALAR, .type = *type};
    return pen_graph_add_own_value(state->graph, &value, out_value);
}

static pen_status compile_find_trainable(compile_state *state, pen_value_id **out_values,
                                         uint32_t *out_count) {
    const uint32_t value_count = pen_graph_value_count(state->graph);
    PEN_TRY(PEN_NEW(state->arena, value_count, out_values));
    *out_count = 0;
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(state->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER || !value->trainable) continue;
        (*out_values)[(*out_count)++] = (pen_value_id){v};
    }
    return PEN_OK;
}

// What is to be said of batch normalizations that keep their statistics although what they scale
// trains: layers are so because the model says so.
static const char *compile_kept_statistics(const pen_model *model) {
    if (strcmp(model->format, "onnx") == 0) {
        return "the model's batch normalizations keep their stored statistics: the file has the "
               "form "
               "of inference; one exported for training (in PyTorch, with "
               "training=TrainingMode.TRAINING) has them learn";
    }
    if (model->tensorflow != NULL) {
        return "the model's batch normalizations keep their stored statistics: a TensorFlow graph "
               "has the form of inference; model: {train_batch_norm: true} has them learn, as a "
               "Keras "
               "file of the model (.h5, .keras) does";
    }
    return NULL;
}

static pen_status compile_check_batch_normalization(compile_state *state) {
    const char *text = compile_kept_statistics(state->model);
    for (uint32_t n = 0; n < pen_graph_node_count(state->graph); n++) {
        const pen_node *node = pen_graph_node(state->graph, (pen_node_id){n});
        if (strcmp(node->op->name, "batch_normalization") != 0) continue;
        if (pen_node_int(node, "training_mode") != 0) continue;
        if (!pen_graph_value(state->graph, node->inputs[1])->trainable) continue;
        if (text != NULL) return compile_warn(state, text);
    }
    return PEN_OK;
}

static pen_status compile_train(compile_state *state) {
    pen_program *program = state->program;
    const pen_tensor_type loss_type = *pen_value_type(state->graph, program->loss);
    PEN_TRY(compile_add_scalar(state, "loss_weight", &loss_type, &program->loss_weight));
    pen_value_id *trainable;
    uint32_t trainable_count;
    PEN_TRY(compile_find_trainable(state, &trainable, &trainable_count));
    pen_gradients *gradients;
    PEN_TRY(pen_build_gradients(state->graph, program->loss, program->loss_weight, trainable_count,
                                trainable, &gradients));
    const pen_compile_request *request = state->request;
    const pen_step_shape step = {.microbatches = request->microbatches,
                                 .examples = request->microbatch_size,
                                 .most_examples = request->most_examples,
                                 .is_whole = request->is_whole};
    pen_updates updates;
    PEN_TRY(pen_build_updates(state->graph, gradients, &request->optimizer, request->accumulate,
                              &step, &updates));
    if (updates.updated_count == 0) {
        const pen_status status =
            pen_error(PEN_INVALID_INPUT,
                      "nothing to train: the loss depends on no parameter that is not frozen");
        if (state->request->freeze == NULL) return status;
        return compile_blame(state, PEN_COMPILE_PART_FREEZE, status);
    }
    program->learning_rate = updates.learning_rate;
    program->step = updates.step;
    program->trainable_count = updates.updated_count;
    for (uint32_t i = 0; i < gradients->count; i++) {
        if (gradients->items[i].use_count == 0) continue;
        const pen_value_id value = gradients->items[i].value;
        program->trainable_elements +=
            (uint64_t)pen_shape_element_count(&pen_value_type(state->graph, value)->shape);
    }
    PEN_TRY(pen_skip_stops(state->graph));
    return compile_check_batch_normalization(state);
}

// ---- order

// The values that must survive a run: outputs, loss, accuracy.
static pen_status compile_keep(compile_state *state) {
    pen_program *program = state->program;
    const bool trains = state->request->mode == PEN_COMPILE_TRAIN;
    program->input_count = pen_graph_input_count(state->graph);
    program->output_count = trains ? 0 : pen_graph_output_count(state->graph);
    pen_value_id *inputs, *outputs, *kept;
    PEN_TRY(PEN_NEW(state->arena, program->input_count, &inputs));
    PEN_TRY(PEN_NEW(state->arena, program->output_count, &outputs));
    PEN_TRY(PEN_NEW(state->arena, (size_t)program->output_count + 2, &kept));
    uint32_t input_count = 0;
    for (uint32_t i = 0; i < program->input_count; i++) {
        const pen_value_id input = pen_graph_input(state->graph, i);
        if (!pen_value_same(input, program->labels)) inputs[input_count++] = input;
    }
    for (uint32_t i = 0; i < program->output_count; i++) {
        outputs[i] = pen_graph_output(state->graph, i);
        kept[program->kept_count++] = outputs[i];
    }
    if (pen_value_is(program->loss)) kept[program->kept_count++] = program->loss;
    if (pen_value_is(program->accuracy)) kept[program->kept_count++] = program->accuracy;
    program->input_count = input_count;
    program->inputs = inputs;
    program->outputs = outputs;
    program->kept = kept;
    return PEN_OK;
}

// Computes each thing once, and drops what nobody needs.
static pen_status compile_tidy(compile_state *state) {
    const pen_program *program = state->program;
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pen_merge_duplicates(state->graph, program->kept_count, program->kept, &graph, &map));
    compile_follow(state, graph, map);
    PEN_TRY(pen_remove_dead(state->graph, program->kept_count, program->kept, &graph, &map));
    compile_follow(state, graph, map);
    return PEN_OK;
}

// Makes one op of several where that reads and writes less.
static pen_status compile_fuse(compile_state *state) {
    const pen_program *program = state->program;
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pen_fuse_normalization(state->graph, program->kept_count, program->kept, &graph, &map));
    compile_follow(state, graph, map);
    const bool into_updates = state->request->is_whole && !state->request->accumulate;
    PEN_TRY(pen_fuse_rows(state->graph, program->kept_count, program->kept, into_updates, &graph,
                          &map));
    compile_follow(state, graph, map);
    return PEN_OK;
}

static pen_status compile_layouts(compile_state *state) {
    pen_device *device = state->request->device;
    if (device == NULL || device->kind->layout_rules == NULL) return PEN_OK;
    const pen_layout_rules *rules = device->kind->layout_rules(device);
    if (rules == NULL) return PEN_OK;
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pen_status_add_context(pen_assign_layouts(state->graph, rules, &graph, &map),
                                   "while assigning layouts"));
    compile_follow(state, graph, map);
    return PEN_OK;
}

static pen_status compile_order(compile_state *state) {
    pen_program *program = state->program;
    pen_execution_order order;
    const pen_execution_options options = {.mix_updates = !state->request->accumulate,
                                           .kept = program->kept,
                                           .kept_count = program->kept_count};
    PEN_TRY(pen_execution_order_build(state->graph, &options, state->arena, &order));
    program->graph = state->graph;
    program->order = order.nodes;
    program->order_count = order.count;
    program->update_first = order.update_first;
    return PEN_OK;
}

static pen_status compile_run(compile_state *state) {
    const pen_compile_mode mode = state->request->mode;
    PEN_TRY(compile_import(state));
    pen_program *program = state->program;
    program->labels = program->loss = program->accuracy = PEN_VALUE_NONE;
    program->loss_weight = program->learning_rate = program->step = PEN_VALUE_NONE;
    // the model's fault, whatever the job says: no line of the job is blamed
    PEN_TRY(pen_check_parameter_types(state->graph));
    PEN_TRY(pen_check_input_types(state->graph));
    PEN_TRY(compile_blame(state, PEN_COMPILE_PART_FREEZE,
                          pen_freeze_matching(state->graph, state->request->freeze)));
    PEN_TRY(compile_blame(state, PEN_COMPILE_PART_INPUTS, compile_check_names(state)));
    PEN_TRY(compile_infer(state));
    PEN_TRY(compile_blame(state, PEN_COMPILE_PART_INPUTS, compile_check_inputs(state)));
    PEN_TRY(compile_blame(state, PEN_COMPILE_PART_LOSS, compile_fuse_layers(state)));
    if (mode != PEN_COMPILE_PREDICT) {
        PEN_TRY(compile_blame(state, PEN_COMPILE_PART_LOSS, compile_attach_loss(state)));
    }
    if (mode == PEN_COMPILE_TRAIN) PEN_TRY(compile_train(state));
    PEN_TRY(compile_keep(state));
    PEN_TRY(compile_tidy(state));
    PEN_TRY(compile_fuse(state));
    PEN_TRY(compile_layouts(state));
    PEN_TRY(pen_split_backward(state->graph));
    PEN_TRY(pen_graph_verify(state->graph, &(pen_verify_options){.types = true}));
    return compile_order(state);
}

// What pen_program_destroy needs, kept beside the program.
typedef struct compile_owner {
    pen_program program; // first: a program is its owner
    pen_model *model;
    pen_weight_file *weights;
} compile_owner;

pen_status pen_compile(const pen_compile_request *request, const pen_program **out_program) {
    compile_state state = {.request = request};
    pen_status status = compile_run(&state);
    compile_owner *owner = NULL;
    if (status == PEN_OK) {
        owner = pen_arena_allocate(state.arena, 1, sizeof *owner, alignof(max_align_t));
        if (owner == NULL) status = pen_error_out_of_memory();
    }
    if (status != PEN_OK) {
        pen_weight_file_close(state.weights);
        pen_model_destroy(state.model);
        return pen_status_add_context(status, "while compiling %s", request->model_path);
    }
    owner->program = *state.program;
    owner->program.held_bytes = pen_arena_bytes(state.arena);
    owner->model = state.model;
    owner->weights = state.weights;
    pen_memory_trim(); // of what the model's file was read with
    *out_program = &owner->program;
    return PEN_OK;
}

void pen_program_forget(const pen_program *program) {
    pen_model_forget(((const compile_owner *)(const void *)program)->model);
}

void pen_program_destroy(const pen_program *program) {
    if (program == NULL) return;
    const compile_owner *owner = (const compile_owner *)(const void *)program;
    pen_weight_file_close(owner->weights); // the owner itself goes with the model
    pen_model_destroy(owner->model);
}
