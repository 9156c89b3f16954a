#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"

pen_node_spec pen_node_spec_of(const pen_op *op, const char *node_name) {
    return (pen_node_spec){
        .op = op, .name = node_name, .gradient_of = PEN_NODE_NONE, .output_count = 1};
}

pen_node_spec pen_node_spec_make(const char *op_name, const char *node_name) {
    const pen_op *op = NULL;
    const pen_status status = pen_op_find(op_name, &op);
    PEN_ASSERT(status == PEN_OK);
    return pen_node_spec_of(op, node_name);
}

static uint64_t op_elements(const pen_graph *graph, const pen_value_id *operands) {
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, operands[0])->shape);
}

uint64_t pen_node_flops(const pen_graph *graph, pen_node_id node) {
    const pen_node *subject = pen_graph_node(graph, node);
    const pen_op *op = subject->op;
    if (op->flops != NULL) return op->flops(graph, node);
    uint64_t flops = 0;
    if (op->output_flops > 0) flops += op->output_flops * op_elements(graph, subject->outputs);
    if (op->input_flops > 0) flops += op->input_flops * op_elements(graph, subject->inputs);
    return flops;
}

static uint64_t op_operand_bytes(const pen_graph *graph, uint32_t count,
                                 const pen_value_id *operands) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!pen_value_is(operands[i])) continue;
        bytes += pen_tensor_type_bytes(pen_value_type(graph, operands[i]));
    }
    return bytes;
}

uint64_t pen_node_bytes(const pen_graph *graph, pen_node_id node) {
    const pen_node *subject = pen_graph_node(graph, node);
    if (subject->op->bytes != NULL) return subject->op->bytes(graph, node);
    if (subject->op->is_view) return 0;
    return op_operand_bytes(graph, subject->input_count, subject->inputs) +
           op_operand_bytes(graph, subject->output_count, subject->outputs);
}

static const pen_attribute_value *op_attribute(const pen_node *node, const char *name,
                                               pen_attribute_kind kind) {
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        if (strcmp(node->op->attributes[i].name, name) != 0) continue;
        PEN_ASSERT(node->op->attributes[i].kind == kind);
        return &node->attributes[i];
    }
    PEN_NEVER("an attribute of the schema");
    return NULL;
}

int64_t pen_node_int(const pen_node *node, const char *name) {
    return op_attribute(node, name, PEN_ATTRIBUTE_INT)->integer;
}

bool pen_node_is_statistic(const pen_node *node, uint32_t i) {
    if (i >= 64 || (node->op->statistics_inputs >> i & 1) == 0) return false;
    return pen_node_int(node, node->op->statistics_if) != 0;
}

double pen_node_float(const pen_node *node, const char *name) {
    return op_attribute(node, name, PEN_ATTRIBUTE_FLOAT)->number;
}

const char *pen_node_text(const pen_node *node, const char *name) {
    return op_attribute(node, name, PEN_ATTRIBUTE_TEXT)->text;
}

const char *pen_node_stream(const pen_node *node) {
    return pen_node_has(node, "stream") ? pen_node_text(node, "stream") : node->name;
}

const int64_t *pen_node_ints(const pen_node *node, const char *name, uint32_t *out_count) {
    const pen_attribute_value *value = op_attribute(node, name, PEN_ATTRIBUTE_INTS);
    *out_count = value->present ? value->count : 0;
    return value->present ? value->integers : NULL;
}

const double *pen_node_floats(const pen_node *node, const char *name, uint32_t *out_count) {
    const pen_attribute_value *value = op_attribute(node, name, PEN_ATTRIBUTE_FLOATS);
    *out_count = value->present ? value->count : 0;
    return value->present ? value->numbers : NULL;
}

bool pen_node_has(const pen_node *node, const char *name) {
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        if (strcmp(node->op->attributes[i].name, name) == 0) return node->attributes[i].present;
    }
    return false;
}

struct pen_infer_context {
    pen_graph *graph;
    pen_node_id node;
};

const pen_graph *pen_infer_graph(const pen_infer_context *context) {
    return context->graph;
}

const pen_node *pen_infer_node(const pen_infer_context *context) {
    return pen_graph_node(context->graph, context->node);
}

bool pen_infer_has_input(const pen_infer_context *context, uint32_t input) {
    const pen_node *node = pen_infer_node(context);
    return input < node->input_count && pen_value_is(node->inputs[input]);
}

const pen_tensor_type *pen_infer_input(const pen_infer_context *context, uint32_t input) {
    PEN_ASSERT(pen_infer_has_input(context, input));
    return pen_value_type(context->graph, pen_infer_node(context)->inputs[input]);
}

pen_status pen_infer_ints(const pen_infer_context *context, uint32_t input, uint32_t *out_count,
                          const int64_t **out_integers) {
    *out_count = 0;
    *out_integers = NULL;
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    const pen_node *node = pen_infer_node(context);
    return pen_status_add_context(
        pen_value_read_ints(context->graph, node->inputs[input], out_count, out_integers),
        "as input %u of %s '%s'", input, node->op->name, node->name);
}

bool pen_infer_has_output(const pen_infer_context *context, uint32_t output) {
    const pen_node *node = pen_infer_node(context);
    return output < node->output_count && pen_value_is(node->outputs[output]);
}

pen_status pen_infer_set(pen_infer_context *context, uint32_t output, const pen_tensor_type *type) {
    if (!pen_infer_has_output(context, output)) return PEN_OK;
    const pen_node *node = pen_infer_node(context);
    PEN_ASSERT(type->element != PEN_ELEMENT_UNKNOWN);
    PEN_TRY(pen_status_add_context(pen_tensor_type_check(type), "as output %u of %s '%s'", output,
                                   node->op->name, node->name));
    pen_graph_set_type(context->graph, node->outputs[output], type);
    return PEN_OK;
}

pen_status pen_infer_error_at(const char *file, int line, const pen_infer_context *context,
                              pen_status_code code, const char *format, ...) {
    const pen_node *node = pen_infer_node(context);
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return pen_error_at(file, line, code, "%s '%s': %s", node->op->name, node->name, message);
}

pen_status pen_graph_infer_node(pen_graph *graph, pen_node_id node) {
    const pen_node *subject = pen_graph_node(graph, node);
    for (uint32_t i = 0; i < subject->input_count && i < 64; i++) {
        if ((subject->op->constant_inputs >> i & 1) == 0 || !pen_value_is(subject->inputs[i])) {
            continue;
        }
        if (pen_graph_value(graph, subject->inputs[i])->kind == PEN_VALUE_CONSTANT) continue;
        return pen_error(
            PEN_UNSUPPORTED, "%s '%s': its input '%s' steers shapes, but depends on data",
            subject->op->name, subject->name, pen_value_name(graph, subject->inputs[i]));
    }
    pen_infer_context context = {graph, node};
    pen_status status = subject->op->infer(&context);
    const pen_source source = subject->source;
    if (status != PEN_OK && source.file != NULL) {
        status = pen_status_at_position(status, source.file, source.line, source.column);
    }
    return status;
}
