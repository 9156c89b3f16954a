// Values that are computed while a model is read: conditions and lengths of loops.

#include <string.h>

#include "base/limits.h"
#include "graph/import/onnx/onnx_importer.h"
#include "graph/op.h"

#define FOLD_FLOPS_LIMIT (UINT64_C(1) << 30) // of one node
#define FOLD_DEPTH_LIMIT 128 // nodes between a value and the constants that it is made of

static pen_status fold_value(pen_onnx_importer *import, pen_value_id id, uint32_t depth);

// All operands of a node; of a shape only its type.
static pen_status fold_operands(pen_onnx_importer *import, const pen_node *node, uint32_t depth) {
    const bool is_shape =
        strcmp(node->op->name, "shape") == 0 || strcmp(node->op->name, "size") == 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_tensor_type *type = pen_value_type(import->graph, node->inputs[i]);
        if (i > 0 && i == node->op->type_input && type->element != PEN_ELEMENT_UNKNOWN) continue;
        bool is_known = is_shape && type->element != PEN_ELEMENT_UNKNOWN;
        for (uint32_t d = 0; is_known && d < type->shape.rank; d++) {
            is_known = type->shape.dims[d] >= 0;
        }
        if (!is_known) PEN_TRY(fold_value(import, node->inputs[i], depth + 1));
    }
    return PEN_OK;
}

// Limits on work and bytes, since a small file can ask for a huge computation.
static pen_status fold_node(pen_onnx_importer *import, pen_node_id id) {
    pen_graph *graph = import->graph;
    const pen_node *node = pen_graph_node(graph, id);
    void **data;
    PEN_TRY(pen_graph_infer_node(graph, id));
    if (pen_node_flops(graph, id) > FOLD_FLOPS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "%s '%s' is too much to be computed here", node->op->name,
                         node->name);
    }
    PEN_TRY(PEN_NEW(import->arena, node->output_count, &data));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(graph, node->outputs[i]));
        char *memory;
        if (bytes > PEN_FOLD_BYTES_LIMIT / 64) {
            return pen_error(PEN_UNSUPPORTED, "'%s' is too large to be computed here",
                             pen_value_name(graph, node->outputs[i]));
        }
        PEN_TRY(PEN_NEW(import->arena, bytes, &memory));
        data[i] = memory;
    }
    PEN_TRY(import->options->evaluate(import->options->evaluate_context, graph, id, data));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) {
            pen_graph_set_constant(graph, node->outputs[i], data[i]);
        }
    }
    return PEN_OK;
}

static pen_status fold_value(pen_onnx_importer *import, pen_value_id id, uint32_t depth) {
    const pen_value *value = pen_graph_value(import->graph, id);
    if (value->kind == PEN_VALUE_CONSTANT) return PEN_OK;
    const pen_node *node = value->kind == PEN_VALUE_COMPUTED && pen_node_is(value->producer)
                               ? pen_graph_node(import->graph, value->producer)
                               : NULL;
    if (node == NULL || node->op->is_random || import->options->evaluate == NULL) {
        return pen_error(PEN_UNSUPPORTED, "'%s' depends on data, or on sizes that are not known",
                         value->name);
    }
    if (depth == FOLD_DEPTH_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "'%s' is made of constants by more than %d nodes",
                         value->name, FOLD_DEPTH_LIMIT);
    }
    const pen_node_id producer = value->producer;
    PEN_TRY(fold_operands(import, node, depth));
    return fold_node(import, producer);
}

pen_status pen_onnx_importer_fold(pen_onnx_importer *import, pen_value_id value) {
    return fold_value(import, value, 0);
}
