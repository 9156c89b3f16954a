#include "graph/import/tensorflow/graphdef_flatten.h"

#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/reserve.h"
#include "graph/import/tensorflow/graphdef_tensor.h"

#define FLATTEN_TRUTH_DEPTH_LIMIT 64 // nodes between a predicate and its constant
#define FLATTEN_BEING_MEASURED UINT64_MAX

// ---- the list

static pen_status flatten_grow(pen_graphdef_flat *flat) {
    uint32_t capacities[2] = {flat->capacity, flat->capacity};
    PEN_TRY(PEN_RESERVE(flat->arena, &flat->depths, flat->count, &capacities[0], 64));
    PEN_TRY(PEN_RESERVE(flat->arena, &flat->truths, flat->count, &capacities[1], 64));
    return PEN_RESERVE(flat->arena, &flat->nodes, flat->count, &flat->capacity, 64);
}

static pen_status flatten_add(pen_graphdef_flat *flat, const pen_graphdef_node *node,
                              uint32_t depth) {
    if (node->name[0] == '\0') {
        return pen_error(PEN_INVALID_INPUT, "node %u has no name", node->position);
    }
    if (pen_name_map_find(&flat->index, node->name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "two nodes are called '%.100s'", node->name);
    }
    if (flat->count == flat->capacity) PEN_TRY(flatten_grow(flat));
    PEN_TRY(pen_name_map_add(&flat->index, node->name, flat->count));
    flat->nodes[flat->count] = *node;
    flat->depths[flat->count] = (uint8_t)depth;
    flat->truths[flat->count] = PEN_GRAPHDEF_NOT_SEEN;
    flat->count++;
    return PEN_OK;
}

pen_status pen_graphdef_flat_add(pen_graphdef_flat *flat, const pen_graphdef_node *node) {
    return flatten_add(flat, node, 0);
}

uint32_t pen_graphdef_flat_find(const pen_graphdef_flat *flat, const char *name) {
    return pen_name_map_find(&flat->index, name); // PEN_NAME_MAP_NONE is UINT32_MAX
}

// ---- names within a function

// Where the outputs of that name begin, of operators with several. Others begin at 0.
static uint32_t flatten_output_base(const char *op, const char *output_name) {
    static const struct {
        const char *op;
        const char *output;
        uint32_t base;
    } bases[] = {
        {"FusedBatchNorm", "batch_mean", 1},
        {"FusedBatchNorm", "batch_variance", 2},
        {"FusedBatchNorm", "reserve_space_1", 3},
        {"FusedBatchNorm", "reserve_space_2", 4},
        {"FusedBatchNorm", "reserve_space_3", 5},
        {"Switch", "output_true", 1},
        {"Merge", "value_index", 1},
        {"TopKV2", "indices", 1},
        {"Unique", "idx", 1},
        {"MaxPoolWithArgmax", "argmax", 1},
        {"SoftmaxCrossEntropyWithLogits", "backprop", 1},
        {"SparseSoftmaxCrossEntropyWithLogits", "backprop", 1},
    };
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        // the later versions of batch normalization share the entries of the first
        const bool same = strncmp(op, bases[i].op, strlen(bases[i].op)) == 0;
        if (same && strcmp(output_name, bases[i].output) == 0) return bases[i].base;
    }
    return 0;
}

typedef struct flatten_call {
    pen_graphdef_flat *flat;
    const pen_graphdef_node *call;
    const pen_graphdef_function *function;
    pen_name_map bodies; // nodes of the function, by name
    uint32_t depth;      // of its nodes
} flatten_call;

static pen_status flatten_count_bytes(pen_graphdef_flat *flat, size_t bytes) {
    flat->inlined_bytes += bytes;
    if (flat->inlined_bytes <= PEN_INLINED_BYTES_LIMIT) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "calls of functions lead to more than %u bytes",
                     PEN_INLINED_BYTES_LIMIT);
}

static pen_status flatten_name(flatten_call *work, const char *name, const char **out_name) {
    pen_graphdef_flat *flat = work->flat;
    PEN_TRY(pen_arena_format(flat->arena, out_name, "%s/%s", work->call->name, name));
    const size_t length = strlen(*out_name);
    if (length > PEN_NAME_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "calls of functions lead to a name of %zu bytes; %d are possible", length,
                         PEN_NAME_BYTES_LIMIT);
    }
    return flatten_count_bytes(flat, length + 1);
}

// In functions, an input names an output by word and number; in the flat graph there is only a
// number.
static pen_status flatten_input(flatten_call *work, const pen_graphdef_input *from,
                                pen_graphdef_input *out_input) {
    *out_input = *from;
    out_input->output_name = NULL;
    PEN_TRY(flatten_name(work, from->node, &out_input->node));
    if (from->output_name == NULL) return PEN_OK;
    const uint32_t body = pen_name_map_find(&work->bodies, from->node);
    if (body == PEN_NAME_MAP_NONE) return PEN_OK; // said when somebody needs it
    const char *op = work->function->nodes[body].op;
    const uint32_t callee = pen_name_map_find(&work->flat->functions, op);
    uint32_t base = flatten_output_base(op, from->output_name);
    if (callee != PEN_NAME_MAP_NONE) {
        const pen_graphdef_function *called = &work->flat->source->functions[callee];
        while (base < called->result_count &&
               strcmp(called->results[base], from->output_name) != 0) {
            base++;
        }
    }
    out_input->output += base;
    return PEN_OK;
}

// An attribute of a body's node that names one of the call's.
static void flatten_fill_attribute(const flatten_call *work, pen_graphdef_attribute *attribute) {
    if (attribute->kind != PEN_GRAPHDEF_PLACEHOLDER) return;
    const pen_graphdef_attribute *given = pen_graphdef_attribute_find(work->call, attribute->text);
    if (given == NULL) return;
    const char *name = attribute->name;
    *attribute = *given;
    attribute->name = name;
}

static pen_status flatten_body(flatten_call *work, const pen_graphdef_node *from) {
    pen_arena *arena = work->flat->arena;
    pen_graphdef_node node = *from;
    node.position = work->call->position;
    if (node.device[0] == '\0') node.device = work->call->device;
    PEN_TRY(flatten_name(work, from->name, &node.name));
    PEN_TRY(flatten_count_bytes(work->flat, from->input_count * sizeof *node.inputs +
                                                from->attribute_count * sizeof *node.attributes));
    PEN_TRY(PEN_NEW(arena, from->input_count, &node.inputs));
    PEN_TRY(PEN_NEW(arena, from->attribute_count, &node.attributes));
    for (uint32_t i = 0; i < from->input_count; i++) {
        PEN_TRY(flatten_input(work, &from->inputs[i], &node.inputs[i]));
    }
    for (uint32_t i = 0; i < from->attribute_count; i++) {
        node.attributes[i] = from->attributes[i];
        flatten_fill_attribute(work, &node.attributes[i]);
    }
    return flatten_add(work->flat, &node, work->depth);
}

// ---- calls

// Each argument becomes an Identity, so that names inside the function keep working.
static pen_status flatten_arguments(flatten_call *work, uint32_t first_input) {
    pen_graphdef_flat *flat = work->flat;
    const pen_graphdef_node *call = work->call;
    for (uint32_t a = 0; a < work->function->argument_count; a++) {
        pen_graphdef_node node = {
            .op = "Identity", .device = call->device, .position = call->position, .input_count = 1};
        const uint32_t i = first_input + a;
        if (i >= call->input_count || call->inputs[i].is_control) {
            return pen_error(PEN_INVALID_INPUT,
                             "call '%.100s' gives %u of the %u arguments of '%s'", call->name, a,
                             work->function->argument_count, work->function->name);
        }
        PEN_TRY(PEN_NEW(flat->arena, 1, &node.inputs));
        PEN_TRY(PEN_NEW(flat->arena, 1, &node.attributes));
        node.inputs[0] = call->inputs[i];
        PEN_TRY(flatten_name(work, work->function->arguments[a], &node.name));
        PEN_TRY(flatten_add(flat, &node, work->depth));
    }
    return PEN_OK;
}

// The call itself becomes what the function returns; it still waits for what it waited for.
static pen_status flatten_results(flatten_call *work, uint32_t call_index) {
    const pen_graphdef_function *function = work->function;
    pen_graphdef_input *inputs;
    uint32_t count = function->result_count;
    const size_t capacity = (size_t)count + work->call->input_count;
    PEN_TRY(flatten_count_bytes(work->flat, capacity * sizeof *inputs));
    PEN_TRY(PEN_NEW(work->flat->arena, capacity, &inputs));
    for (uint32_t r = 0; r < function->result_count; r++) {
        PEN_TRY(flatten_input(work, &function->values[r], &inputs[r]));
    }
    for (uint32_t i = 0; i < work->call->input_count; i++) {
        if (work->call->inputs[i].is_control) inputs[count++] = work->call->inputs[i];
    }
    pen_graphdef_node *call = &work->flat->nodes[call_index];
    call->op = "IdentityN";
    call->inputs = inputs;
    call->input_count = count;
    return PEN_OK;
}

// The function that a node calls at once; UINT32_MAX when it calls none.
static uint32_t flatten_callee(const pen_graphdef_flat *flat, const pen_graphdef_node *node) {
    const bool is_call = strcmp(node->op, "PartitionedCall") == 0 ||
                         strcmp(node->op, "StatefulPartitionedCall") == 0;
    const char *name = is_call ? pen_graphdef_text(node, "f", "") : node->op;
    return pen_name_map_find(&flat->functions, name);
}

// What is refused is refused before any of it is made: a small file can ask for very much.
static pen_status flatten_measure(const pen_graphdef_flat *flat, uint32_t f, uint32_t depth,
                                  uint64_t *out_size) {
    const pen_graphdef_function *function = &flat->source->functions[f];
    uint64_t *size = &flat->function_sizes[f];
    if (*size == FLATTEN_BEING_MEASURED || depth > PEN_NESTING_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "functions call each other more than %d deep at '%.100s', or for ever",
                         PEN_NESTING_LIMIT, function->name);
    }
    if (*size == 0) {
        uint64_t total = function->node_count + function->argument_count;
        *size = FLATTEN_BEING_MEASURED;
        for (uint32_t n = 0; n < function->node_count; n++) {
            uint64_t inner = 0;
            const uint32_t callee = flatten_callee(flat, &function->nodes[n]);
            if (callee == PEN_NAME_MAP_NONE) continue;
            PEN_TRY(flatten_measure(flat, callee, depth + 1, &inner));
            total = pen_min_u64(total + inner, PEN_INLINED_NODES_LIMIT + 1);
        }
        *size = total;
    }
    *out_size = *size;
    return PEN_OK;
}

// The size is measured before, since calls of calls can grow without end.
static pen_status flatten_inline(pen_graphdef_flat *flat, uint32_t call_index, uint32_t function,
                                 uint32_t first_input) {
    const pen_graphdef_node call = flat->nodes[call_index]; // the list may move
    flatten_call work = {.flat = flat,
                         .call = &call,
                         .function = &flat->source->functions[function],
                         .depth = flat->depths[call_index] + 1u};
    uint64_t size = 0;
    PEN_TRY(flatten_measure(flat, function, work.depth, &size));
    if (flat->count + size > PEN_INLINED_NODES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "calls of functions lead to more than %u nodes",
                         PEN_INLINED_NODES_LIMIT);
    }
    pen_name_map_init(&work.bodies, flat->arena);
    for (uint32_t n = 0; n < work.function->node_count; n++) {
        const char *name = work.function->nodes[n].name;
        if (pen_name_map_find(&work.bodies, name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT,
                             "two nodes of function '%.100s' are called '%.100s'",
                             work.function->name, name);
        }
        PEN_TRY(pen_name_map_add(&work.bodies, name, n));
    }
    PEN_TRY(flatten_arguments(&work, first_input));
    for (uint32_t n = 0; n < work.function->node_count; n++) {
        PEN_TRY(flatten_body(&work, &work.function->nodes[n]));
    }
    return flatten_results(&work, call_index);
}

static bool flatten_is_conditional(const pen_graphdef_node *node) {
    return strcmp(node->op, "If") == 0 || strcmp(node->op, "StatelessIf") == 0;
}

static pen_status flatten_calls(pen_graphdef_flat *flat, uint32_t first) {
    for (uint32_t n = first; n < flat->count; n++) {
        const uint32_t callee = flatten_callee(flat, &flat->nodes[n]);
        if (callee != PEN_NAME_MAP_NONE) {
            PEN_TRY(pen_status_add_context(flatten_inline(flat, n, callee, 0), "in node '%.100s'",
                                           flat->nodes[n].name));
        }
    }
    return PEN_OK;
}

// Calls of the branches that are taken. Their nodes may hold calls and conditionals again.
static pen_status flatten_conditionals(pen_graphdef_flat *flat) {
    for (uint32_t n = 0; n < flat->count; n++) {
        const pen_graphdef_node *node = &flat->nodes[n];
        pen_graphdef_truth truth;
        if (!flatten_is_conditional(node) || node->input_count == 0) continue;
        PEN_TRY(pen_graphdef_flat_truth(flat, &node->inputs[0], &truth));
        if (truth != PEN_GRAPHDEF_TRUE && truth != PEN_GRAPHDEF_FALSE) continue;
        const char *branch = truth == PEN_GRAPHDEF_TRUE ? "then_branch" : "else_branch";
        const uint32_t callee =
            pen_name_map_find(&flat->functions, pen_graphdef_text(node, branch, ""));
        if (callee == PEN_NAME_MAP_NONE) continue;
        const uint32_t first = flat->count;
        PEN_TRY(flatten_inline(flat, n, callee, 1));
        PEN_TRY(flatten_calls(flat, first));
    }
    return PEN_OK;
}

static pen_status flatten_nodes(pen_graphdef_flat *flat) {
    for (uint32_t n = 0; n < flat->source->node_count; n++) {
        PEN_TRY(flatten_add(flat, &flat->source->nodes[n], 0));
    }
    PEN_TRY(flatten_calls(flat, 0));
    return flatten_conditionals(flat);
}

pen_status pen_graphdef_flatten(const pen_graphdef *graph, pen_arena *arena,
                                pen_graphdef_flat *out_flat) {
    pen_graphdef_flat *flat = out_flat;
    *flat = (pen_graphdef_flat){.arena = arena, .source = graph};
    pen_name_map_init(&flat->index, arena);
    pen_name_map_init(&flat->functions, arena);
    PEN_TRY(PEN_NEW(arena, graph->function_count, &flat->function_sizes));
    for (uint32_t f = 0; f < graph->function_count; f++) {
        const char *name = graph->functions[f].name;
        if (pen_name_map_find(&flat->functions, name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "two functions are called '%.100s'", name);
        }
        PEN_TRY(pen_name_map_add(&flat->functions, name, f));
    }
    return flatten_nodes(flat);
}

pen_status pen_graphdef_flatten_part(pen_graphdef_flat *whole, const pen_graphdef *graph,
                                     pen_graphdef_flat *out_flat) {
    pen_graphdef_flat *flat = out_flat;
    *flat = (pen_graphdef_flat){.arena = whole->arena,
                                .source = graph,
                                .functions = whole->functions,
                                .function_sizes = whole->function_sizes,
                                .inlined_bytes = whole->inlined_bytes};
    pen_name_map_init(&flat->index, flat->arena);
    const pen_status status = flatten_nodes(flat);
    whole->inlined_bytes = flat->inlined_bytes;
    return status;
}

// ---- truths

// Read into an arena of its own: what decides a branch is asked for often and kept nowhere.
static pen_status flatten_constant_truth(const pen_graphdef_node *node,
                                         pen_graphdef_truth *out_truth) {
    const pen_graphdef_attribute *value = pen_graphdef_attribute_find(node, "value");
    pen_tensor_type type;
    int64_t data_type;
    const void *data;
    if (value == NULL || value->kind != PEN_GRAPHDEF_TENSOR) return PEN_OK;
    PEN_TRY(pen_graphdef_tensor_type(&value->message, &type, &data_type));
    if (type.element != PEN_BOOL || pen_shape_element_count(&type.shape) != 1) return PEN_OK;
    pen_arena *arena;
    uint64_t splat_bytes = 0;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status =
        pen_graphdef_tensor_data(&value->message, &type, arena, &splat_bytes, &data);
    if (status == PEN_OK) {
        *out_truth = *(const uint8_t *)data != 0 ? PEN_GRAPHDEF_TRUE : PEN_GRAPHDEF_FALSE;
    }
    pen_arena_destroy(arena);
    return status;
}

static pen_graphdef_truth flatten_join(bool is_and, pen_graphdef_truth a, pen_graphdef_truth b) {
    const pen_graphdef_truth decides = is_and ? PEN_GRAPHDEF_FALSE : PEN_GRAPHDEF_TRUE;
    if (a == decides || b == decides) return decides;
    return a == b ? a : PEN_GRAPHDEF_UNKNOWN;
}

static pen_status flatten_truth(pen_graphdef_flat *flat, const pen_graphdef_input *input,
                                uint32_t depth, pen_graphdef_truth *out_truth);

// A placeholder that asks whether we train is taken as false, as when the model is used.
static pen_status flatten_node_truth(pen_graphdef_flat *flat, const pen_graphdef_node *node,
                                     uint32_t output, uint32_t depth,
                                     pen_graphdef_truth *out_truth) {
    static const char *const passing[] = {
        "Identity", "PlaceholderWithDefault", "StopGradient", "Switch", "Squeeze", "Reshape",
        "Snapshot"};
    const bool is_not = strcmp(node->op, "LogicalNot") == 0;
    const bool is_and = strcmp(node->op, "LogicalAnd") == 0;
    bool passes = is_not;
    if (strcmp(node->op, "Const") == 0) return flatten_constant_truth(node, out_truth);
    if (strcmp(node->op, "Placeholder") == 0) {
        const bool asks = pen_graphdef_type(node, "dtype", PEN_ELEMENT_UNKNOWN) == PEN_BOOL;
        if (asks) *out_truth = PEN_GRAPHDEF_FALSE;
        return PEN_OK;
    }
    if (strcmp(node->op, "IdentityN") == 0 && output < node->input_count) {
        return flatten_truth(flat, &node->inputs[output], depth, out_truth);
    }
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        passes = passes || strcmp(node->op, passing[i]) == 0;
    }
    if (passes && node->input_count > 0) {
        PEN_TRY(flatten_truth(flat, &node->inputs[0], depth, out_truth));
        if (is_not && *out_truth == PEN_GRAPHDEF_TRUE) {
            *out_truth = PEN_GRAPHDEF_FALSE;
        } else if (is_not && *out_truth == PEN_GRAPHDEF_FALSE) {
            *out_truth = PEN_GRAPHDEF_TRUE;
        }
        return PEN_OK;
    }
    if ((!is_and && strcmp(node->op, "LogicalOr") != 0) || node->input_count < 2) return PEN_OK;
    pen_graphdef_truth a, b;
    PEN_TRY(flatten_truth(flat, &node->inputs[0], depth, &a));
    PEN_TRY(flatten_truth(flat, &node->inputs[1], depth, &b));
    *out_truth = flatten_join(is_and, a, b);
    return PEN_OK;
}

static pen_status flatten_truth(pen_graphdef_flat *flat, const pen_graphdef_input *input,
                                uint32_t depth, pen_graphdef_truth *out_truth) {
    *out_truth = PEN_GRAPHDEF_UNKNOWN;
    const uint32_t n = pen_graphdef_flat_find(flat, input->node);
    if (n == PEN_NAME_MAP_NONE || depth == FLATTEN_TRUTH_DEPTH_LIMIT) return PEN_OK;
    const bool is_kept = strcmp(flat->nodes[n].op, "IdentityN") != 0; // it has several outputs
    if (is_kept && flat->truths[n] == PEN_GRAPHDEF_BEING_SEEN) return PEN_OK;
    if (is_kept && flat->truths[n] != PEN_GRAPHDEF_NOT_SEEN) {
        *out_truth = (pen_graphdef_truth)flat->truths[n];
        return PEN_OK;
    }
    if (is_kept) flat->truths[n] = PEN_GRAPHDEF_BEING_SEEN;
    PEN_TRY(flatten_node_truth(flat, &flat->nodes[n], input->output, depth + 1, out_truth));
    if (is_kept) flat->truths[n] = (uint8_t)*out_truth;
    return PEN_OK;
}

pen_status pen_graphdef_flat_truth(pen_graphdef_flat *flat, const pen_graphdef_input *input,
                                   pen_graphdef_truth *out_truth) {
    return flatten_truth(flat, input, 0, out_truth);
}
