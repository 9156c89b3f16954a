// Branches and loops, done away with while the graph is built: the branch that a constant condition
// takes is put in the place of If; Loop and Scan of constant length become their body, once for
// each round; Gradient becomes the nodes that compute it.

#include <string.h>

#include "base/limits.h"
#include "graph/import/onnx/onnx_importer.h"
#include "graph/op.h"
#include "graph/passes/gradient/build_gradients.h"

#define CONTROL_TRAINING "ai.onnx.preview.training"

static bool control_is(const pen_onnx_node *node, const char *domain, const char *op_type) {
    return strcmp(node->domain, domain) == 0 && strcmp(node->op_type, op_type) == 0;
}

bool pen_onnx_is_control(const pen_onnx_node *node) {
    return control_is(node, "", "If") || control_is(node, "", "Loop") ||
           (control_is(node, "", "Scan") && node->opset >= 9) ||
           control_is(node, CONTROL_TRAINING, "Gradient") || pen_onnx_is_sequence_op(node);
}

uint32_t pen_onnx_control_constants(const pen_onnx_node *node) {
    if (control_is(node, "", "If")) return 1;
    if (control_is(node, "", "Loop")) return 3;
    if (control_is(node, "", "SequenceAt") || control_is(node, "", "SequenceErase") ||
        control_is(node, "", "SplitToSequence")) {
        return 2;
    }
    return control_is(node, "", "SequenceInsert") ? 4 : 0;
}

// ---- bodies

static pen_status control_body(const pen_onnx_importer *import, const pen_onnx_node *node,
                               const char *attribute, pen_onnx_model *out_body) {
    const pen_onnx_attribute *given = pen_onnx_attribute_find(node, attribute);
    if (given == NULL || given->type != PEN_ONNX_GRAPH) {
        return pen_error(PEN_INVALID_INPUT, "there is no graph '%s'", attribute);
    }
    return pen_onnx_model_read_body(import->model, given, import->arena, out_body);
}

// A value of the node's own takes the name of its output. One that came from outside keeps its own.
static pen_status control_bind(pen_onnx_importer *import, const pen_onnx_node *node,
                               uint32_t output, const char *prefix, const pen_onnx_name *result) {
    if (output >= node->output_count || node->outputs[output][0] == '\0') return PEN_OK;
    const char *name = node->outputs[output];
    if (!result->is_sequence && !result->is_empty) {
        const pen_value *value = pen_graph_value(import->graph, result->value);
        const bool is_own = strncmp(value->name, prefix, strlen(prefix)) == 0;
        if (is_own && value->kind == PEN_VALUE_COMPUTED && import->parent == NULL) {
            PEN_TRY(pen_graph_rename_value(import->graph, result->value, name));
        }
    }
    return pen_onnx_importer_bind(import, name, result);
}

// A constant of one element, as the meaning of a name.
static pen_status control_scalar(pen_onnx_importer *import, const char *prefix,
                                 pen_element_type element, int64_t number, pen_onnx_name *out) {
    const pen_tensor_type type = pen_tensor_type_make(element, 0, NULL);
    int64_t *data;
    const char *name;
    *out = (pen_onnx_name){.made = true, .constant = PEN_VALUE_NONE};
    PEN_TRY(PEN_NEW(import->arena, 1, &data));
    *data = number; // a bool is its first byte
    PEN_TRY(pen_arena_format(import->arena, &name, "%s/round", prefix));
    return pen_graph_constant(import->graph, name, &type, data, &out->value);
}

// One number that a name stands for, known now. `what` is called so in the error.
static pen_status control_number(pen_onnx_importer *import, const pen_onnx_name *name,
                                 const char *what, int64_t *out_number) {
    uint32_t count;
    const int64_t *numbers;
    const pen_value_id value = pen_value_is(name->constant) ? name->constant : name->value;
    if (name->is_sequence || name->is_empty) {
        return pen_error(PEN_INVALID_INPUT, "the %s is no tensor", what);
    }
    PEN_TRY(pen_status_add_context(pen_onnx_importer_fold(import, value),
                                   "the %s must be known when the model is read", what));
    PEN_TRY(pen_value_read_ints(import->graph, value, &count, &numbers));
    if (count != 1) {
        return pen_error(PEN_INVALID_INPUT, "the %s has %u elements, expected one", what, count);
    }
    *out_number = numbers[0];
    return PEN_OK;
}

// ---- If

// The condition is known while the model is read, so only the branch taken comes into the graph.
static pen_status control_if(pen_onnx_importer *import, const pen_onnx_node *node,
                             const char *prefix) {
    const pen_onnx_name *condition;
    pen_onnx_model body;
    pen_onnx_importer frame;
    pen_onnx_name *results;
    int64_t taken;
    PEN_TRY(pen_onnx_importer_read(import, node, 0, &condition));
    PEN_TRY(control_number(import, condition, "condition", &taken));
    PEN_TRY(control_body(import, node, taken != 0 ? "then_branch" : "else_branch", &body));
    if (body.output_count != node->output_count || body.input_count != 0) {
        return pen_error(PEN_INVALID_INPUT, "the branch has %u inputs and %u outputs, not 0 and %u",
                         body.input_count, body.output_count, node->output_count);
    }
    PEN_TRY(PEN_NEW(import->arena, body.output_count, &results));
    PEN_TRY(pen_onnx_importer_open_body(import, &body, prefix, &frame));
    PEN_TRY(pen_onnx_importer_run_body(&frame, prefix, 0, NULL, results));
    for (uint32_t i = 0; i < body.output_count; i++) {
        PEN_TRY(control_bind(import, node, i, prefix, &results[i]));
    }
    return PEN_OK;
}

// ---- Loop and Scan

// A loop being unrolled.
typedef struct control_loop {
    pen_onnx_importer *import;
    const pen_onnx_node *node;
    const char *prefix;
    pen_onnx_model body;
    uint32_t state_count;    // values carried from round to round
    uint32_t scan_count;     // outputs that collect one value a round
    uint32_t first_result;   // of the body's outputs: where the states begin
    int64_t round_count;     // so far
    pen_onnx_name *states;   // [state_count]
    pen_onnx_name *results;  // [body's output_count]
    pen_value_id *collected; // [round_capacity][scan_count]
    int64_t round_capacity;
} control_loop;

static pen_status loop_grow(control_loop *loop) {
    if (loop->round_count < loop->round_capacity) return PEN_OK;
    pen_value_id *larger;
    loop->round_capacity = loop->round_capacity == 0 ? 16 : 2 * loop->round_capacity;
    PEN_TRY(PEN_NEW(loop->import->arena, (size_t)loop->round_capacity * loop->scan_count, &larger));
    for (int64_t i = 0; i < loop->round_count * loop->scan_count; i++) {
        larger[i] = loop->collected[i];
    }
    loop->collected = larger;
    return PEN_OK;
}

// One round: the body's inputs stand for `arguments`.
static pen_status loop_round(control_loop *loop, pen_onnx_importer *frame,
                             const pen_onnx_name *arguments) {
    const char *prefix;
    if (loop->round_count >= PEN_LOOP_ROUNDS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "it has more than %d rounds", PEN_LOOP_ROUNDS_LIMIT);
    }
    PEN_TRY(loop_grow(loop));
    PEN_TRY(pen_arena_format(loop->import->arena, &prefix, "%s/%lld", loop->prefix,
                             (long long)loop->round_count));
    PEN_TRY(pen_onnx_importer_run_body(frame, prefix, loop->body.input_count, arguments,
                                       loop->results));
    for (uint32_t i = 0; i < loop->state_count; i++) {
        loop->states[i] = loop->results[loop->first_result + i];
    }
    for (uint32_t i = 0; i < loop->scan_count; i++) {
        const pen_onnx_name *scanned = &loop->results[loop->first_result + loop->state_count + i];
        if (scanned->is_sequence || scanned->is_empty) {
            return pen_error(PEN_UNSUPPORTED, "output %u of its body is no tensor", i);
        }
        loop->collected[loop->round_count * loop->scan_count + i] = scanned->value;
    }
    loop->round_count++;
    return PEN_OK;
}

// Output `scan`, one value a round, side by side along a new axis.
static pen_status loop_collect(control_loop *loop, uint32_t scan, int64_t axis, bool reverse,
                               pen_onnx_name *out) {
    const char *name;
    pen_value_id axes, *parts;
    *out = (pen_onnx_name){.made = true, .constant = PEN_VALUE_NONE};
    if (loop->round_count == 0) {
        return pen_error(PEN_UNSUPPORTED, "it has no round, but collects values");
    }
    PEN_TRY(pen_arena_format(loop->import->arena, &name, "%s/axis", loop->prefix));
    PEN_TRY(pen_graph_constant_ints(loop->import->graph, name, 1, &axis, &axes));
    PEN_TRY(PEN_NEW(loop->import->arena, (size_t)loop->round_count, &parts));
    for (int64_t i = 0; i < loop->round_count; i++) {
        const int64_t from = reverse ? loop->round_count - 1 - i : i;
        const pen_value_id part = loop->collected[from * loop->scan_count + scan];
        const pen_onnx_extra extra = {"unsqueeze", "part", PEN_INPUTS(part, axes),
                                      PEN_NO_ATTRIBUTES};
        PEN_TRY(pen_onnx_importer_emit(loop->import, loop->node, &extra, &parts[i]));
    }
    const pen_onnx_extra concat = {"concat",
                                   "collected",
                                   {parts, (uint32_t)loop->round_count},
                                   PEN_WITH(pen_attribute_int("axis", axis))};
    return pen_onnx_importer_emit(loop->import, loop->node, &concat, &out->value);
}

// The body's outputs are a condition if there is one, states, and values collected over rounds.
static pen_status loop_init(control_loop *loop, uint32_t first_state) {
    PEN_TRY(control_body(loop->import, loop->node, "body", &loop->body));
    const uint32_t outputs = loop->body.output_count;
    if (outputs < loop->first_result + loop->state_count ||
        loop->node->output_count > outputs - loop->first_result) {
        return pen_error(PEN_INVALID_INPUT,
                         "its body has %u outputs, for %u states and the node's %u outputs",
                         outputs, loop->state_count, loop->node->output_count);
    }
    loop->scan_count = outputs - loop->first_result - loop->state_count;
    PEN_TRY(PEN_NEW(loop->import->arena, loop->state_count, &loop->states));
    PEN_TRY(PEN_NEW(loop->import->arena, outputs, &loop->results));
    for (uint32_t i = 0; i < loop->state_count; i++) {
        const pen_onnx_name *given;
        PEN_TRY(pen_onnx_importer_read(loop->import, loop->node, first_state + i, &given));
        loop->states[i] = *given;
    }
    if (loop->body.input_count == loop->node->input_count) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "its body has %u inputs, not %u", loop->body.input_count,
                     loop->node->input_count);
}

// Entry `index` of a list attribute; 0 without it.
static int64_t scan_choice(const pen_onnx_node *node, const char *name, uint32_t index) {
    const pen_onnx_attribute *list = pen_onnx_attribute_find(node, name);
    if (list == NULL || list->type != PEN_ONNX_INTS || index >= list->count) return 0;
    return list->integers[index];
}

// The node's outputs: the last states, then what the rounds collected. A scan says along which axis
// and in which order, a loop collects along the first one.
static pen_status loop_bind(control_loop *loop, bool is_scan) {
    const pen_onnx_node *node = loop->node;
    for (uint32_t i = 0; i < loop->state_count; i++) {
        PEN_TRY(control_bind(loop->import, node, i, loop->prefix, &loop->states[i]));
    }
    for (uint32_t i = 0; loop->state_count + i < node->output_count; i++) {
        const int64_t axis = is_scan ? scan_choice(node, "scan_output_axes", i) : 0;
        const bool turns = is_scan && scan_choice(node, "scan_output_directions", i) != 0;
        pen_onnx_name collected;
        PEN_TRY(loop_collect(loop, i, axis, turns, &collected));
        PEN_TRY(control_bind(loop->import, node, loop->state_count + i, loop->prefix, &collected));
    }
    return PEN_OK;
}

// A loop is written out round by round; its condition has to be a number that is known here.
static pen_status control_loop_of(pen_onnx_importer *import, const pen_onnx_node *node,
                                  const char *prefix) {
    control_loop loop = {.import = import, .node = node, .prefix = prefix, .first_result = 1};
    int64_t trip = INT64_MAX, goes_on = 1;
    const pen_onnx_name *given;
    pen_onnx_importer frame;
    pen_onnx_name *arguments;
    if (node->input_count < 2) {
        return pen_error(PEN_INVALID_INPUT, "it has %u inputs, at least 2 are needed",
                         node->input_count);
    }
    if (node->inputs[0][0] != '\0') {
        PEN_TRY(pen_onnx_importer_read(import, node, 0, &given));
        PEN_TRY(control_number(import, given, "number of rounds", &trip));
    }
    if (node->inputs[1][0] != '\0') {
        PEN_TRY(pen_onnx_importer_read(import, node, 1, &given));
        PEN_TRY(control_number(import, given, "condition", &goes_on));
    }
    loop.state_count = node->input_count - 2;
    PEN_TRY(loop_init(&loop, 2));
    PEN_TRY(pen_onnx_importer_open_body(import, &loop.body, prefix, &frame));
    PEN_TRY(PEN_NEW(import->arena, loop.body.input_count, &arguments));
    while (loop.round_count < trip && goes_on != 0) {
        PEN_TRY(control_scalar(import, prefix, PEN_INT64, loop.round_count, &arguments[0]));
        PEN_TRY(control_scalar(import, prefix, PEN_BOOL, 1, &arguments[1]));
        for (uint32_t i = 0; i < loop.state_count; i++) {
            arguments[2 + i] = loop.states[i];
        }
        PEN_TRY(loop_round(&loop, &frame, arguments));
        PEN_TRY(control_number(import, &loop.results[0], "condition", &goes_on));
    }
    return loop_bind(&loop, false);
}

// Scanned input `index`, cut into slices along its axis.
static pen_status scan_cut(control_loop *loop, uint32_t input, uint32_t index, int64_t *length,
                           pen_value_id **out_slices) {
    const pen_onnx_name *given;
    const char *name;
    uint32_t axis;
    pen_value_id axes, index_value;
    PEN_TRY(pen_onnx_importer_read(loop->import, loop->node, input, &given));
    if (given->is_sequence || given->is_empty) {
        return pen_error(PEN_INVALID_INPUT, "input %u is no tensor", input);
    }
    const pen_tensor_type *type = pen_value_type(loop->import->graph, given->value);
    if (type->element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED,
                         "the shape of input %u is not known when the model is "
                         "read",
                         input);
    }
    PEN_TRY(
        pen_shape_axis(type->shape.rank, scan_choice(loop->node, "scan_input_axes", index), &axis));
    const int64_t dim = type->shape.dims[axis];
    if (dim < 0 || dim > PEN_LOOP_ROUNDS_LIMIT || (*length >= 0 && dim != *length)) {
        return pen_error(PEN_UNSUPPORTED,
                         "input %u is scanned in %lld rounds, at most %d (and as "
                         "many as the others) are possible",
                         input, (long long)dim, PEN_LOOP_ROUNDS_LIMIT);
    }
    *length = dim;
    const bool reverse = scan_choice(loop->node, "scan_input_directions", index) != 0;
    const int64_t along = axis;
    PEN_TRY(pen_arena_format(loop->import->arena, &name, "%s/axis", loop->prefix));
    PEN_TRY(pen_graph_constant_ints(loop->import->graph, name, 1, &along, &axes));
    PEN_TRY(PEN_NEW(loop->import->arena, (size_t)dim, out_slices));
    for (int64_t i = 0; i < dim; i++) {
        const int64_t at = reverse ? dim - 1 - i : i, end = at + 1;
        pen_value_id bounds;
        PEN_TRY(pen_graph_constant_ints(loop->import->graph, name, 1, &at, &index_value));
        PEN_TRY(pen_graph_constant_ints(loop->import->graph, name, 1, &end, &bounds));
        const pen_onnx_extra slice = {"slice", "slice",
                                      PEN_INPUTS(given->value, index_value, bounds, axes),
                                      PEN_NO_ATTRIBUTES};
        PEN_TRY(pen_onnx_importer_emit(loop->import, loop->node, &slice, &(*out_slices)[i]));
        const pen_onnx_extra squeeze = {"squeeze", "scanned", PEN_INPUTS((*out_slices)[i], axes),
                                        PEN_NO_ATTRIBUTES};
        PEN_TRY(pen_onnx_importer_emit(loop->import, loop->node, &squeeze, &(*out_slices)[i]));
    }
    return PEN_OK;
}

// As control_loop_of, with as many rounds as the scanned inputs have slices.
static pen_status control_scan(pen_onnx_importer *import, const pen_onnx_node *node,
                               const char *prefix) {
    const pen_onnx_attribute *scanned = pen_onnx_attribute_find(node, "num_scan_inputs");
    control_loop loop = {.import = import, .node = node, .prefix = prefix};
    pen_onnx_importer frame;
    pen_onnx_name *arguments;
    pen_value_id **slices;
    int64_t length = -1;
    if (scanned == NULL || scanned->type != PEN_ONNX_INT || scanned->integer < 1 ||
        scanned->integer > node->input_count) {
        return pen_error(PEN_INVALID_INPUT, "num_scan_inputs must be 1 to %u", node->input_count);
    }
    const uint32_t scan_inputs = (uint32_t)scanned->integer;
    loop.state_count = node->input_count - scan_inputs;
    PEN_TRY(loop_init(&loop, 0));
    PEN_TRY(PEN_NEW(import->arena, scan_inputs, &slices));
    for (uint32_t i = 0; i < scan_inputs; i++) {
        PEN_TRY(scan_cut(&loop, loop.state_count + i, i, &length, &slices[i]));
    }
    PEN_TRY(pen_onnx_importer_open_body(import, &loop.body, prefix, &frame));
    PEN_TRY(PEN_NEW(import->arena, loop.body.input_count, &arguments));
    while (loop.round_count < length) {
        for (uint32_t i = 0; i < loop.state_count; i++) {
            arguments[i] = loop.states[i];
        }
        for (uint32_t i = 0; i < scan_inputs; i++) {
            arguments[loop.state_count + i] = (pen_onnx_name){
                .made = true, .constant = PEN_VALUE_NONE, .value = slices[i][loop.round_count]};
        }
        PEN_TRY(loop_round(&loop, &frame, arguments));
    }
    return loop_bind(&loop, true);
}

// ---- Gradient

// The sum of a value's gradients over all that read it.
static pen_status gradient_total(pen_onnx_importer *import, const pen_onnx_node *node,
                                 const pen_gradient *gradient, pen_value_id *out_total) {
    if (gradient->use_count == 0) {
        return pen_error(PEN_UNSUPPORTED, "y does not depend on '%s'",
                         pen_value_name(import->graph, gradient->value));
    }
    *out_total = gradient->uses[0];
    for (uint32_t i = 1; i < gradient->use_count; i++) {
        const pen_onnx_extra extra = {"add", "gradient", PEN_INPUTS(*out_total, gradient->uses[i]),
                                      PEN_NO_ATTRIBUTES};
        PEN_TRY(pen_onnx_importer_emit(import, node, &extra, out_total));
    }
    return PEN_OK;
}

// Ones of the type of `y`.
static pen_status gradient_seed(pen_onnx_importer *import, const char *prefix, pen_value_id y,
                                pen_value_id *out_seed) {
    const pen_tensor_type type = *pen_value_type(import->graph, y);
    const char *name;
    if (!pen_element_is_trained(type.element) ||
        pen_tensor_type_bytes(&type) > PEN_FOLD_BYTES_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "the gradient of y, whose type is not known, not "
                                          "float32 or float64, or large");
    }
    const int64_t count = pen_shape_element_count(&type.shape);
    char *data;
    PEN_TRY(PEN_NEW(import->arena, pen_tensor_type_bytes(&type), &data));
    for (int64_t i = 0; i < count; i++) {
        const float single = 1;
        const double number = 1;
        if (type.element == PEN_FLOAT32) {
            memcpy(data + (size_t)i * sizeof single, &single, sizeof single);
        } else {
            memcpy(data + (size_t)i * sizeof number, &number, sizeof number);
        }
    }
    PEN_TRY(pen_arena_format(import->arena, &name, "%s/ones", prefix));
    return pen_graph_constant(import->graph, name, &type, data, out_seed);
}

// The op asks for a gradient inside the model: our own builder makes it, and its nodes count as
// forward ones.
static pen_status control_gradient(pen_onnx_importer *import, const pen_onnx_node *node,
                                   const char *prefix) {
    const pen_onnx_attribute *xs = pen_onnx_attribute_find(node, "xs");
    const pen_onnx_attribute *y = pen_onnx_attribute_find(node, "y");
    if (xs == NULL || xs->type != PEN_ONNX_STRINGS || y == NULL || y->type != PEN_ONNX_STRING ||
        xs->count != node->output_count || xs->count > node->input_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "attributes xs and y must name values, one for each of "
                         "the %u outputs",
                         node->output_count);
    }
    pen_value_id *wanted, seed;
    PEN_TRY(PEN_NEW(import->arena, xs->count, &wanted));
    for (uint32_t i = 0; i < xs->count; i++) {
        const pen_onnx_name *given;
        const pen_onnx_name *named = pen_onnx_importer_find(import, xs->texts[i]);
        PEN_TRY(pen_onnx_importer_read(import, node, i, &given));
        if (named == NULL || !named->made || !pen_value_same(named->value, given->value)) {
            return pen_error(PEN_UNSUPPORTED, "the gradient at another value than '%.100s' has",
                             xs->texts[i]);
        }
        wanted[i] = given->value;
    }
    const pen_onnx_name *of = pen_onnx_importer_find(import, y->text);
    if (of == NULL || !of->made || of->is_sequence) {
        return pen_error(PEN_INVALID_INPUT, "y is '%.100s', which no node before makes", y->text);
    }
    for (uint32_t v = 0; v < pen_graph_value_count(import->graph); v++) {
        const pen_value *value = pen_graph_value(import->graph, (pen_value_id){v});
        if (value->type.element != PEN_ELEMENT_UNKNOWN) continue;
        return pen_error(PEN_UNSUPPORTED, "the shape of '%s' is not known when the model is read",
                         value->name);
    }
    const uint32_t first = pen_graph_node_count(import->graph);
    pen_gradients *gradients;
    PEN_TRY(gradient_seed(import, prefix, of->value, &seed));
    PEN_TRY(pen_build_gradients(import->graph, of->value, seed, xs->count, wanted, &gradients));
    for (uint32_t i = 0; i < xs->count; i++) {
        pen_value_id total;
        PEN_TRY(gradient_total(import, node, &gradients->items[i], &total));
        PEN_TRY(pen_onnx_importer_bind_value(import, node->outputs[i], total));
    }
    for (uint32_t n = first; n < pen_graph_node_count(import->graph); n++) {
        pen_graph_set_role(import->graph, (pen_node_id){n}, PEN_ROLE_FORWARD); // part of the model
    }
    return PEN_OK;
}

pen_status pen_onnx_control_import(pen_onnx_importer *import, const pen_onnx_node *node) {
    const char *prefix;
    if (pen_onnx_is_sequence_op(node)) return pen_onnx_sequence_import(import, node);
    PEN_TRY(pen_onnx_importer_name(import, node, &prefix));
    if (control_is(node, "", "If")) return control_if(import, node, prefix);
    if (control_is(node, "", "Loop")) return control_loop_of(import, node, prefix);
    if (control_is(node, "", "Scan")) return control_scan(import, node, prefix);
    return control_gradient(import, node, prefix);
}
