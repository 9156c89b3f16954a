#include "graph/passes/adapt_weights.h"

#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/random.h"
#include "base/text.h"
#include "graph/analysis/readers.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"

#define ADAPT_REASONS_SHOWN 12
#define ADAPT_NAME_BYTES 160 // of a weight's or a node's name in a message

// What a chosen node becomes.
typedef struct adapt_node {
    bool is_adapted;
    bool is_convolution;
    bool is_out_first; // its weight is (out, in)
    pen_value_id weight;
    int64_t in, out; // of a convolution, `in` are the numbers that one output is made of
} adapt_node;

// The adapters of a weight, which nodes may share.
typedef struct adapt_weight {
    pen_value_id a, b, scale; // of the new graph; NONE: not made yet
} adapt_weight;

typedef struct adapt {
    const pen_graph *from;
    const pen_adapters *adapters;
    pen_arena *arena; // of the old graph
    pen_readers readers;
    adapt_node *nodes;     // [node_count]
    adapt_weight *weights; // [value_count]
    pen_graph_copy copy;
    pen_text reasons; // why nodes cannot be adapted
    uint32_t reason_count;
    uint32_t adapted_count;
} adapt;

// ---- names

static bool adapt_ends(const char *name, const char *end) {
    const size_t length = strlen(name), end_length = strlen(end);
    return length > end_length && strcmp(name + length - end_length, end) == 0;
}

bool pen_adapter_is_scale(const char *name) {
    return adapt_ends(name, PEN_ADAPTER_SCALE);
}

bool pen_adapter_has_name(const char *name) {
    return adapt_ends(name, PEN_ADAPTER_A) || adapt_ends(name, PEN_ADAPTER_B) ||
           pen_adapter_is_scale(name);
}

bool pen_adapter_begins_zero(const char *name) {
    return adapt_ends(name, PEN_ADAPTER_B);
}

uint32_t pen_adapter_stem(const char *name) {
    static const char end[] = ".weight";
    const size_t length = strlen(name);
    return (uint32_t)(adapt_ends(name, end) ? length - (sizeof end - 1) : length);
}

// ---- which nodes

static const pen_value *adapt_input(const adapt *work, const pen_node *node, uint32_t input) {
    if (input >= node->input_count || !pen_value_is(node->inputs[input])) return NULL;
    return pen_graph_value(work->from, node->inputs[input]);
}

static bool adapt_reads_weight(const adapt *work, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value *value = adapt_input(work, node, i);
        if (value == NULL || value->kind != PEN_VALUE_PARAMETER) continue;
        if (value->type.shape.rank >= 2) return true;
    }
    return false;
}

// Nodes that multiply by a weight: if one of them is meant and cannot be adapted, that is said.
// Others that read parameters, as norms, sums and embeddings, are passed over.
static bool adapt_is_product(const pen_op *op) {
    return op->is_product || op->work == PEN_WORK_CONVOLUTION || op->work == PEN_WORK_RECURRENT;
}

static const char *adapt_describe_product(const pen_node *node, const pen_value *weight,
                                          adapt_node *out) {
    const bool is_gemm = node->op == PEN_OP(gemm);
    if (weight->type.shape.rank != 2) return "its weight has not two dimensions";
    if (pen_node_int(node, "transA") != 0) return "its input is read transposed";
    if (is_gemm && pen_node_float(node, "alpha") != 1) return "its product is multiplied (alpha)";
    out->is_out_first = pen_node_int(node, "transB") != 0;
    out->out = weight->type.shape.dims[out->is_out_first ? 0 : 1];
    out->in = weight->type.shape.dims[out->is_out_first ? 1 : 0];
    return NULL;
}

static const char *adapt_describe_convolution(const pen_node *node, const pen_value *weight,
                                              adapt_node *out) {
    const pen_shape *shape = &weight->type.shape;
    if (pen_node_int(node, "group") != 1) return "its channels are in groups";
    out->is_convolution = true;
    out->is_out_first = true;
    out->out = shape->dims[0];
    out->in = pen_shape_count(shape, 1, shape->rank);
    return NULL;
}

// Fills what the node is to become; else returns why it cannot.
static const char *adapt_describe(const adapt *work, const pen_node *node, adapt_node *out) {
    const bool is_matrix = node->op == PEN_OP(matmul) || node->op == PEN_OP(gemm);
    if (!is_matrix && node->op != PEN_OP(conv)) return "matmul, gemm and conv can be adapted";
    const pen_value *weight = adapt_input(work, node, 1);
    if (weight == NULL || weight->kind != PEN_VALUE_PARAMETER) {
        return "its second operand is no parameter";
    }
    if (pen_value_same(node->inputs[0], node->inputs[1])) return "its input is its weight";
    if (weight->type.element != PEN_FLOAT32) return "its weight is not float32";
    out->weight = node->inputs[1];
    return is_matrix ? adapt_describe_product(node, weight, out)
                     : adapt_describe_convolution(node, weight, out);
}

static bool adapt_has_room(const adapt *work) {
    return work->reason_count <= ADAPT_REASONS_SHOWN;
}

static void adapt_refuse(adapt *work, const pen_node *node, const char *why) {
    work->reason_count += 1;
    if (!adapt_has_room(work)) return;
    pen_text_print(&work->reasons, "\n  '%.*s' (%s): %s", ADAPT_NAME_BYTES, node->name,
                   node->op->name, why);
}

static pen_status adapt_refuse_rank(adapt *work, const pen_node *node, const adapt_node *found) {
    const char *why;
    const int64_t most = found->in < found->out ? found->in : found->out;
    PEN_TRY(pen_arena_format(work->arena, &why,
                             "the rank %u is too large for a weight of %lld inputs and %lld "
                             "outputs; it must be less than %lld",
                             work->adapters->rank, (long long)found->in, (long long)found->out,
                             (long long)most));
    adapt_refuse(work, node, why);
    return PEN_OK;
}

static pen_status adapt_choose(adapt *work, pen_node_id id) {
    const pen_node *node = pen_graph_node(work->from, id);
    adapt_node *found = &work->nodes[id.index];
    if (!pen_graph_copy_computes(work->from, id)) return PEN_OK;
    if (!adapt_is_product(node->op) || !adapt_reads_weight(work, node)) return PEN_OK;
    const char *why = adapt_describe(work, node, found);
    if (why != NULL) {
        adapt_refuse(work, node, why);
        return PEN_OK;
    }
    const int64_t rank = work->adapters->rank;
    if (rank >= found->in || rank >= found->out) return adapt_refuse_rank(work, node, found);
    found->is_adapted = true;
    work->adapted_count += 1;
    return PEN_OK;
}

// A weight that others read as well would not be for them what it is for this node.
static pen_status adapt_check_readers(adapt *work, pen_node_id id) {
    const adapt_node *found = &work->nodes[id.index];
    const uint32_t weight = found->weight.index;
    for (uint32_t r = work->readers.first[weight]; r < work->readers.first[weight + 1]; r++) {
        const pen_node_id reader = work->readers.nodes[r];
        const adapt_node *other = &work->nodes[reader.index];
        const bool is_alike = other->is_adapted && pen_value_same(other->weight, found->weight) &&
                              other->is_out_first == found->is_out_first &&
                              other->is_convolution == found->is_convolution;
        if (is_alike) continue;
        const char *why;
        PEN_TRY(
            pen_arena_format(work->arena, &why, "its weight '%.*s' is read by '%.*s', too, %s",
                             ADAPT_NAME_BYTES, pen_value_name(work->from, found->weight),
                             ADAPT_NAME_BYTES, pen_node_name(work->from, reader),
                             other->is_adapted ? "the other way round" : "which is not adapted"));
        adapt_refuse(work, pen_graph_node(work->from, id), why);
        return PEN_OK;
    }
    return PEN_OK;
}

// All that cannot be adapted is named at once, up to a limit.
static pen_status adapt_choose_all(adapt *work) {
    const uint32_t node_count = pen_graph_node_count(work->from);
    const char *reasons;
    for (uint32_t n = 0; n < node_count; n++) {
        if (work->adapters->chosen[n]) PEN_TRY(adapt_choose(work, (pen_node_id){n}));
    }
    for (uint32_t n = 0; n < node_count; n++) {
        if (work->nodes[n].is_adapted) PEN_TRY(adapt_check_readers(work, (pen_node_id){n}));
    }
    if (work->reason_count > ADAPT_REASONS_SHOWN) {
        pen_text_print(&work->reasons, "\n  and %u more", work->reason_count - ADAPT_REASONS_SHOWN);
    }
    PEN_TRY(pen_text_finish(&work->reasons, &reasons));
    if (work->reason_count > 0) {
        return pen_error(PEN_INVALID_INPUT, "%u node%s cannot be adapted:%s", work->reason_count,
                         work->reason_count == 1 ? "" : "s", reasons);
    }
    if (work->adapted_count > 0) return PEN_OK;
    return pen_error(
        PEN_INVALID_INPUT,
        "none of the nodes multiplies by a weight; these can be adapted: products with "
        "a parameter of two dimensions (matmul, gemm), and convolutions (conv)");
}

// ---- the adapters of a weight

static pen_status adapt_name(const adapt *work, const pen_value *weight, const char *end,
                             const char **out_name) {
    return pen_arena_format(work->arena, out_name, "%.*s%s", (int)pen_adapter_stem(weight->name),
                            weight->name, end);
}

// Element (i of rank, k of in) is number i * in + k, wherever it lies.
static pen_status adapt_fill(const adapt *work, const adapt_node *node, const char *name,
                             const void **out_data) {
    const uint64_t rank = work->adapters->rank, in = (uint64_t)node->in;
    const pen_random_key key = {work->adapters->seed, pen_random_stream(name, 0, 0)};
    const float bound = (float)(1 / sqrt((double)in));
    float *data;
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(work->copy.to), rank * in, &data));
    for (uint64_t i = 0; i < rank; i++) {
        for (uint64_t k = 0; k < in; k++) {
            const float number = 2 * pen_random_uniform(key, i * in + k) - 1;
            data[node->is_out_first ? i * in + k : k * rank + i] = bound * number;
        }
    }
    *out_data = data;
    return PEN_OK;
}

static pen_status adapt_add_parameter(const adapt *work, const pen_value *weight, const char *name,
                                      const pen_value *given, pen_value_id *out_value) {
    pen_value spec = *given;
    spec.name = name;
    spec.kind = PEN_VALUE_PARAMETER;
    spec.source = weight->source;
    spec.producer = PEN_NODE_NONE;
    spec.replaces = PEN_VALUE_NONE;
    spec.type.element = PEN_FLOAT32;
    if (spec.data != NULL) spec.data_bytes = pen_tensor_type_bytes(&spec.type);
    return pen_graph_add_value(work->copy.to, &spec, out_value);
}

// A has the shape of W with `rank` in the place of `out`; B the other two, and ones for a kernel.
static void adapt_shapes(const adapt_node *node, const pen_shape *weight, int64_t rank,
                         pen_shape *out_a, pen_shape *out_b) {
    *out_a = *weight;
    out_a->dims[node->is_out_first ? 0 : 1] = rank;
    *out_b = (pen_shape){weight->rank, {rank, node->out}};
    if (!node->is_out_first) return;
    out_b->dims[0] = node->out;
    out_b->dims[1] = rank;
    for (uint32_t d = 2; d < weight->rank; d++) {
        out_b->dims[d] = 1;
    }
}

// The adapters of a weight are made with the first node that reads it; others find them there.
static pen_status adapt_make_weight(adapt *work, const adapt_node *node) {
    adapt_weight *made = &work->weights[node->weight.index];
    const pen_value *weight = pen_graph_value(work->from, node->weight);
    const char *name;
    float *scale, *zeros;
    pen_value a = {.trainable = true}, b = {.trainable = true}, factor = {0};
    if (pen_value_is(made->a)) return PEN_OK;
    adapt_shapes(node, &weight->type.shape, work->adapters->rank, &a.type.shape, &b.type.shape);
    PEN_TRY(adapt_name(work, weight, PEN_ADAPTER_A, &name));
    PEN_TRY(adapt_fill(work, node, name, &a.data));
    PEN_TRY(adapt_add_parameter(work, weight, name, &a, &made->a));
    PEN_TRY(adapt_name(work, weight, PEN_ADAPTER_B, &name));
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(work->copy.to),
                    (uint64_t)node->out * work->adapters->rank, &zeros));
    b.data = zeros; // what begins without contents is the optimizer's
    PEN_TRY(adapt_add_parameter(work, weight, name, &b, &made->b));
    PEN_TRY(adapt_name(work, weight, PEN_ADAPTER_SCALE, &name));
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(work->copy.to), 1, &scale));
    *scale = (float)work->adapters->scale;
    factor.type.shape = (pen_shape){1, {1}};
    factor.data = scale;
    PEN_TRY(adapt_add_parameter(work, weight, name, &factor, &made->scale));
    pen_graph_set_trainable(work->copy.to, work->copy.values[node->weight.index], false);
    return PEN_OK;
}

// ---- the nodes

typedef struct adapt_step {
    const pen_op *op;
    const char *end; // of the node's name
    pen_value_id inputs[2];
    bool as_before; // its attributes are those of the node that is adapted
    bool turns;     // its weight is read transposed
} adapt_step;

static pen_status adapt_emit(adapt *work, pen_node_id id, const adapt_step *step,
                             const char *output_name, pen_value_id *out_value) {
    const pen_attribute_given turned = pen_attribute_int("transB", 1);
    const char *name;
    pen_node_spec spec;
    PEN_TRY(pen_arena_format(work->arena, &name, "%s/lora%s", pen_node_name(work->from, id),
                             step->end));
    PEN_TRY(pen_graph_copy_spec(&work->copy, id, step->op, name, &spec));
    spec.inputs = step->inputs;
    spec.input_count = 2;
    spec.output_count = 1;
    if (output_name != NULL) spec.output_names = &output_name;
    if (step->as_before) PEN_TRY(pen_graph_copy_attributes(&work->copy, id, &spec));
    if (step->turns) {
        spec.attributes = &turned;
        spec.attribute_count = 1;
    }
    return pen_graph_add_simple(work->copy.to, &spec, out_value);
}

// The node as it was, under another name of its output, and behind it what is added.
static pen_status adapt_rewrite(adapt *work, pen_node_id id) {
    const adapt_node *found = &work->nodes[id.index];
    const pen_node *node = pen_graph_node(work->from, id);
    const pen_value_id y = node->outputs[0];
    const pen_op *product = found->is_convolution ? PEN_OP(conv) : PEN_OP(matmul);
    const bool turns = found->is_out_first && !found->is_convolution;
    pen_value_id *inputs, down, scaled, up, sum;
    const char *frozen_name;
    PEN_TRY(adapt_make_weight(work, found));
    const adapt_weight *weight = &work->weights[found->weight.index];
    PEN_TRY(
        pen_arena_format(work->arena, &frozen_name, "%s/frozen", pen_value_name(work->from, y)));
    PEN_TRY(PEN_NEW(work->arena, node->input_count, &inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id input = node->inputs[i];
        inputs[i] = pen_value_is(input) ? work->copy.values[input.index] : PEN_VALUE_NONE;
    }
    PEN_TRY(pen_graph_copy_node_as(&work->copy, id, inputs, &frozen_name));
    const pen_value_id frozen = work->copy.values[y.index];
    PEN_TRY(adapt_emit(work, id,
                       &(adapt_step){.op = product,
                                     .end = "_A",
                                     .inputs = {inputs[0], weight->a},
                                     .as_before = found->is_convolution,
                                     .turns = turns},
                       NULL, &down));
    PEN_TRY(adapt_emit(
        work, id,
        &(adapt_step){.op = PEN_OP(mul), .end = "_scale", .inputs = {down, weight->scale}}, NULL,
        &scaled));
    PEN_TRY(adapt_emit(
        work, id,
        &(adapt_step){.op = product, .end = "_B", .inputs = {scaled, weight->b}, .turns = turns},
        NULL, &up));
    PEN_TRY(adapt_emit(work, id,
                       &(adapt_step){.op = PEN_OP(add), .end = "", .inputs = {frozen, up}},
                       pen_value_name(work->from, y), &sum));
    pen_graph_copy_value(&work->copy, y, sum);
    return PEN_OK;
}

static pen_status adapt_rewrite_all(adapt *work) {
    for (uint32_t n = 0; n < pen_graph_node_count(work->from); n++) {
        const pen_node_id id = {n};
        PEN_TRY(work->nodes[n].is_adapted ? adapt_rewrite(work, id)
                                          : pen_graph_copy_node(&work->copy, id));
    }
    return pen_graph_copy_end(&work->copy);
}

pen_status pen_adapt_weights(const pen_graph *graph, const pen_adapters *adapters,
                             uint32_t kept_count, const pen_value_id *kept, pen_graph **out_graph,
                             const pen_value_id **out_values) {
    adapt work = {.from = graph, .adapters = adapters, .arena = pen_graph_arena(graph)};
    const uint32_t value_count = pen_graph_value_count(graph);
    pen_text_init(&work.reasons, work.arena);
    PEN_TRY(PEN_NEW(work.arena, pen_graph_node_count(graph), &work.nodes));
    PEN_TRY(PEN_NEW(work.arena, value_count, &work.weights));
    for (uint32_t v = 0; v < value_count; v++) {
        work.weights[v].a = PEN_VALUE_NONE;
    }
    PEN_TRY(pen_readers_build(graph, kept_count, kept, work.arena, &work.readers));
    PEN_TRY(adapt_choose_all(&work));
    PEN_TRY(pen_graph_copy_begin(graph, &work.copy));
    PEN_TRY(adapt_rewrite_all(&work));
    *out_graph = work.copy.to;
    *out_values = work.copy.values;
    return PEN_OK;
}
