#include "device/measure_fill.h"

#include <string.h>

#include "base/integer.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

#define FILL_PATTERN_BYTES 65536 // of elements that are random; then they repeat

// Contents decide which way kernels branch and whether numbers become subnormal: magnitudes stay
// between 0.1 and 0.9, and negatives of a relu's result are zeros.
static void fill_element(const pen_measure_contents *contents, const uint32_t random[2],
                         void *out) {
    const bool is_negative = contents->is_signed && (random[1] & 1) != 0;
    const double magnitude = 0.1 + 0.8 * (double)random[0] / 4294967296.0;
    const bool is_zero = is_negative && contents->is_rectified;
    const double uniform = is_zero ? 0 : is_negative ? -magnitude : magnitude;
    const pen_element_type element = contents->element;
    if (pen_element_is_half(element)) {
        pen_element_write(element, out, 0, is_zero ? 0 : is_negative ? -0.5 : 0.5);
    } else if (pen_element_is_float(element)) {
        pen_element_write(element, out, 0, uniform);
    } else if (element == PEN_BOOL) {
        pen_element_write_int(element, out, 0, random[0] & 1);
    } else { // up to what a signed integer of that size holds
        const unsigned unused = 64 - 8 * (unsigned)pen_element_bytes(element);
        const uint64_t limit = pen_min_u64(contents->limit, (uint64_t)INT64_MAX >> unused);
        const uint64_t integer = limit <= 1 ? 0 : 1 + random[0] % (limit - 1);
        pen_element_write_int(element, out, 0, (int64_t)integer);
    }
}

void pen_measure_fill(const pen_measure_contents *contents, void *out_bytes, uint64_t bytes) {
    const size_t size = pen_element_bytes(contents->element);
    const pen_random_key key = {.seed = 1, .stream = pen_random_stream("measure", 0, 0)};
    uint8_t *out = out_bytes;
    const uint64_t pattern = pen_min_u64(bytes, FILL_PATTERN_BYTES);
    if (size == 0) return;
    for (uint64_t at = 0; at + size <= pattern; at += size) {
        uint32_t random[4];
        pen_random_block(key, at / size, random);
        fill_element(contents, random, out + at);
    }
    for (uint64_t at = pattern; at < bytes; at += pattern) {
        memcpy(out + at, out, (size_t)pen_min_u64(pattern, bytes - at));
    }
}

// Made-up integers are often indices. What they index is not known in general, so they stay below
// every size of the node; operators that index more get more.
uint64_t pen_measure_integer_limit(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    uint64_t limit = UINT64_MAX;
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        const pen_value_id value =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (!pen_value_is(value)) continue;
        const pen_tensor_type *type = pen_value_type(graph, value);
        if (!pen_element_is_float(type->element)) continue;
        for (uint32_t d = 0; d < type->shape.rank; d++) {
            limit = pen_min_u64(limit, (uint64_t)type->shape.dims[d]);
        }
    }
    if (node->op == PEN_OP(gather)) { // rows of a table: all of them
        const pen_shape *table = &pen_value_type(graph, node->inputs[0])->shape;
        int64_t axis = pen_node_int(node, "axis");
        if (axis < 0) axis += table->rank;
        if (axis >= 0 && axis < (int64_t)table->rank) limit = (uint64_t)table->dims[axis];
    }
    if (node->op->work == PEN_WORK_RECURRENT) { // of sequences: up to all steps
        const pen_shape *x = &pen_value_type(graph, node->inputs[0])->shape;
        limit = (uint64_t)x->dims[pen_node_int(node, "layout") != 0 ? 1 : 0] + 1;
    }
    return limit == UINT64_MAX ? 2 : limit;
}

pen_measure_contents pen_measure_contents_of(const pen_graph *graph, pen_node_id node,
                                             pen_value_id id) {
    const pen_value *value = pen_graph_value(graph, id);
    const bool varies = value->kind == PEN_VALUE_COMPUTED || value->kind == PEN_VALUE_PARAMETER ||
                        value->kind == PEN_VALUE_INPUT;
    return (pen_measure_contents){.element = value->type.element,
                                  // vectors may be variances
                                  .is_signed = varies && value->type.shape.rank > 1 &&
                                               !pen_graph_node(graph, node)->op->wants_positive,
                                  .is_rectified =
                                      value->kind == PEN_VALUE_COMPUTED &&
                                      pen_graph_node(graph, value->producer)->op->rectifies,
                                  .limit = pen_measure_integer_limit(graph, node)};
}
