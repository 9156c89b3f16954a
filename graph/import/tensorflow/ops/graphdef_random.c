#include "graph/import/tensorflow/ops/graphdef_random.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_convert.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/op.h"

// ---- random numbers: those of the node's own stream, whatever seeds and keys say

static pen_status random_emit(pen_graphdef_draft *draft, const char *op_name,
                              pen_element_type element) {
    pen_graphdef_value shape, zeros;
    PEN_TRY(pen_graphdef_operand_int64s(draft, 0, &shape));
    PEN_TRY(pen_graphdef_emit(draft, "constant_of_shape", "shape", PEN_GRAPHDEF_INPUTS(shape),
                              PEN_WITH(pen_attribute_float("value", 0),
                                       pen_attribute_text("element", pen_element_name(element))),
                              &zeros));
    return pen_graphdef_give(draft, op_name, PEN_GRAPHDEF_INPUTS(zeros),
                             PEN_WITH(pen_attribute_text("dtype", pen_element_name(element))));
}

static pen_status convert_random(pen_graphdef_draft *draft) {
    const pen_element_type element = pen_graphdef_type(draft->node, "dtype", PEN_FLOAT32);
    if (!pen_element_is_float(element)) {
        return pen_error(PEN_UNSUPPORTED, "random numbers of type %s; possible are floating ones",
                         pen_element_name(element));
    }
    return random_emit(draft, draft->mapping->op_name, element);
}

// Keys and counters of random numbers, which nothing here reads.
static pen_status convert_key(pen_graphdef_draft *draft) {
    for (uint32_t i = 0; i < draft->result_count; i++) {
        draft->results[i]->is_made = true;
    }
    return PEN_OK;
}

static const pen_graphdef_mapping random_mappings[] = {
    {.op = "RandomStandardNormal", .op_name = "random_normal_like", .convert = convert_random},
    {.op = "RandomUniform", .op_name = "random_uniform_like", .convert = convert_random},
    {.op = "RngReadAndSkip", .convert = convert_key},
    {.op = "StatelessRandomGetAlg", .convert = convert_key},
    {.op = "StatelessRandomGetKeyCounter", .convert = convert_key},
    {.op = "StatelessRandomNormal", .op_name = "random_normal_like", .convert = convert_random},
    {.op = "StatelessRandomNormalV2", .op_name = "random_normal_like", .convert = convert_random},
    {.op = "StatelessRandomUniform", .op_name = "random_uniform_like", .convert = convert_random},
    {.op = "StatelessRandomUniformV2", .op_name = "random_uniform_like", .convert = convert_random},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_randoms, random_mappings);

// ---- dropout

// The node that makes a value, if it is an `op`; else NULL.
static const pen_node *dropout_node(const pen_graph *graph, pen_value_id value, const char *op) {
    if (!pen_value_is(value) || pen_graph_value(graph, value)->kind != PEN_VALUE_COMPUTED) {
        return NULL;
    }
    const pen_node *node = pen_graph_node(graph, pen_graph_value(graph, value)->producer);
    return strcmp(node->op->name, op) == 0 ? node : NULL;
}

static bool dropout_number(const pen_graph *graph, pen_value_id value, double *out_number) {
    if (!pen_value_is(value) || pen_graph_value(graph, value)->kind != PEN_VALUE_CONSTANT) {
        return false;
    }
    const pen_status status = pen_value_read_number(graph, value, out_number);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "then it is no dropout");
    return false;
}

// Random numbers, and the rate that they are compared with.
static bool dropout_mask(const pen_graph *graph, pen_value_id value, pen_value_id *out_random,
                         double *out_rate) {
    const pen_node *cast = dropout_node(graph, value, "cast");
    if (cast != NULL) value = cast->inputs[0];
    const pen_node *compares = dropout_node(graph, value, "greater_or_equal");
    if (compares == NULL || !dropout_number(graph, compares->inputs[1], out_rate)) return false;
    *out_random = compares->inputs[0];
    return *out_rate > 0 && *out_rate < 1 &&
           dropout_node(graph, *out_random, "random_uniform_like") != NULL;
}

// What is scaled by 1 / (1 - rate).
static bool dropout_scaled(const pen_graph *graph, pen_value_id value, double rate,
                           pen_value_id *out_x) {
    const pen_node *scales = dropout_node(graph, value, "mul");
    double scale;
    if (scales == NULL || !dropout_number(graph, scales->inputs[1], &scale)) return false;
    *out_x = scales->inputs[0];
    return fabs(scale * (1 - rate) - 1) < 1e-4;
}

static bool dropout_fits(const pen_graphdef_draft *draft, const pen_graphdef_value *x,
                         pen_value_id random, bool is_first) {
    static const uint32_t places[] = {0, 2, 3, 1};
    const pen_graphdef_value numbers = {{PEN_VALUE_NONE, random, PEN_VALUE_NONE}};
    const pen_tensor_type *a = pen_graphdef_value_type(draft, x, 0);
    const pen_tensor_type *b = pen_graphdef_value_type(draft, &numbers, 0);
    if (a == NULL || b == NULL || a->shape.rank != b->shape.rank) return false;
    for (uint32_t d = 0; d < a->shape.rank; d++) {
        if (a->shape.dims[is_first ? places[d] : d] != b->shape.dims[d]) return false;
    }
    return true;
}

// A product with a random mask becomes our dropout only if it is the same in every trial copy.
pen_status pen_graphdef_dropout_convert(pen_graphdef_draft *draft, uint32_t mask, uint32_t scaled,
                                        bool *out_is_one) {
    *out_is_one = false;
    if (draft->operand_count <= mask || draft->operand_count <= scaled) return PEN_OK;
    const bool is_first = pen_graphdef_operand_is_first(draft, scaled);
    const pen_graphdef_value *from =
        is_first ? &draft->operands[scaled]->first : &draft->operands[scaled]->plain;
    pen_graphdef_value operands[3], made[2];
    double rate = 0;
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        pen_value_id random;
        double own;
        const pen_graph *graph = draft->graphs[copy];
        if (!dropout_mask(graph, draft->operands[mask]->plain.in[copy], &random, &own) ||
            !dropout_scaled(graph, from->in[copy], own, &operands[0].in[copy])) {
            return PEN_OK;
        }
        if (copy == 0) rate = own;
        if (copy == 1 && !dropout_fits(draft, from, random, is_first)) return PEN_OK;
    }
    PEN_TRY(pen_graphdef_number_value(draft, "ratio", PEN_FLOAT32, rate, &operands[1]));
    PEN_TRY(pen_graphdef_number_value(draft, "training_mode", PEN_BOOL,
                                      draft->options->dropout_trains ? 1 : 0, &operands[2]));
    PEN_TRY(pen_graphdef_emit_node(draft,
                                   &(pen_graphdef_emission){.op_name = "dropout",
                                                            .inputs = PEN_GRAPHDEF_ALL(operands),
                                                            .output_count = 2,
                                                            .is_first = is_first},
                                   made));
    *out_is_one = true;
    return pen_graphdef_set_form(draft, is_first, made[0]);
}
