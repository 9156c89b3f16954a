// What conversions add: nodes, constants, results.

#include "graph/import/pytorch/pt2_importer.h"

#include <string.h>

#include "base/limits.h"
#include "graph/op.h"

// Where a node comes from, for errors: the user's own line where the file has it.
static pen_source emit_source(const pen_pt2_draft *draft) {
    const pen_pt2_node *node = draft->node;
    return (pen_source){.file = node->file != NULL ? node->file : draft->import->path,
                        .line = node->line,
                        .position = node->position};
}

static pen_status emit_name(const pen_pt2_draft *draft, const char *suffix, const char **out_name) {
    *out_name = draft->name;
    if (suffix == NULL) return PEN_OK;
    return pen_arena_format(draft->import->arena, out_name, "%s/%s", draft->name, suffix);
}

pen_status pen_pt2_emit_many(pen_pt2_draft *draft, const pen_pt2_emission *emission,
                             pen_value_id *out_values) {
    pen_graph *graph = draft->import->graph;
    const char *name;
    pen_node_id node;
    PEN_TRY(emit_name(draft, emission->suffix, &name));
    pen_node_spec spec = pen_node_spec_make(emission->op_name, name);
    spec.source = emit_source(draft);
    spec.output_count = emission->output_count;
    pen_node_spec_fill(&spec, emission->inputs, emission->attributes);
    PEN_TRY(pen_graph_add_node(graph, &spec, &node));
    memcpy(out_values, pen_graph_node(graph, node)->outputs,
           emission->output_count * sizeof *out_values);
    return PEN_OK;
}

pen_status pen_pt2_emit(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                        pen_node_inputs inputs, pen_node_attributes attributes,
                        pen_value_id *out_value) {
    const pen_pt2_emission emission = {.op_name = op_name,
                                       .suffix = suffix,
                                       .inputs = inputs,
                                       .attributes = attributes,
                                       .output_count = 1};
    return pen_pt2_emit_many(draft, &emission, out_value);
}

pen_status pen_pt2_map(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                       pen_value_id a, pen_value_id *out_value) {
    return pen_pt2_emit(draft, op_name, suffix, PEN_INPUTS(a), PEN_NO_ATTRIBUTES, out_value);
}

pen_status pen_pt2_pair(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                        pen_value_id a, pen_value_id b, pen_value_id *out_value) {
    return pen_pt2_emit(draft, op_name, suffix, PEN_INPUTS(a, b), PEN_NO_ATTRIBUTES, out_value);
}

pen_status pen_pt2_where(pen_pt2_draft *draft, const char *suffix, pen_value_id when,
                         pen_value_id a, pen_value_id b, pen_value_id *out_value) {
    return pen_pt2_emit(draft, "where", suffix, PEN_INPUTS(when, a, b), PEN_NO_ATTRIBUTES,
                        out_value);
}

pen_status pen_pt2_scale(pen_pt2_draft *draft, const char *suffix, pen_value_id value,
                         double number, pen_value_id *out_value) {
    pen_value_id factor;
    *out_value = value;
    if (number == 1) return PEN_OK;
    PEN_TRY(pen_pt2_own_number(draft, number, &factor));
    return pen_pt2_pair(draft, "mul", suffix, value, factor, out_value);
}

pen_status pen_pt2_slice(pen_pt2_draft *draft, const char *suffix, pen_value_id x,
                         pen_pt2_part part, pen_value_id *out_value) {
    pen_value_id axis, start, end;
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &part.start, &start));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &part.end, &end));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &part.axis, &axis));
    return pen_pt2_emit(draft, "slice", suffix, PEN_INPUTS(x, start, end, axis), PEN_NO_ATTRIBUTES,
                        out_value);
}

pen_status pen_pt2_with_ints(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                             pen_value_id a, pen_pt2_list ints, pen_value_id *out_value) {
    pen_value_id operand;
    PEN_TRY(pen_pt2_constant_ints(draft, ints.count, ints.integers, &operand));
    return pen_pt2_pair(draft, op_name, suffix, a, operand, out_value);
}

pen_status pen_pt2_with_int(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                            pen_value_id a, int64_t integer, pen_value_id *out_value) {
    return pen_pt2_with_ints(draft, op_name, suffix, a, (pen_pt2_list){1, &integer}, out_value);
}

pen_status pen_pt2_transpose(pen_pt2_draft *draft, const char *suffix, pen_value_id a,
                             pen_pt2_list permutation, pen_value_id *out_value) {
    const pen_attribute_given given =
        pen_attribute_ints("perm", permutation.count, permutation.integers);
    return pen_pt2_emit(draft, "transpose", suffix, PEN_INPUTS(a), PEN_WITH(given), out_value);
}

pen_status pen_pt2_cast(pen_pt2_draft *draft, pen_value_id a, pen_element_type element,
                        pen_value_id *out_value) {
    *out_value = a;
    if (pen_pt2_importer_element(draft->import, a) == element) return PEN_OK;
    if (element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "a tensor of a type that Penstock has not");
    }
    PEN_TRY(pen_pt2_emit(draft, "cast", "cast", PEN_INPUTS(a),
                         PEN_WITH(pen_attribute_text("to", pen_element_name(element))), out_value));
    return pen_pt2_importer_note(draft->import, *out_value, element);
}

// ---- constants

pen_status pen_pt2_constant_ints(pen_pt2_draft *draft, uint32_t count, const int64_t *integers,
                                 pen_value_id *out_value) {
    const char *name;
    PEN_TRY(emit_name(draft, "integers", &name));
    return pen_graph_constant_ints(draft->import->graph, name, count, integers, out_value);
}

pen_status pen_pt2_constant_number(pen_pt2_draft *draft, pen_element_type element, double number,
                                   pen_value_id *out_value) {
    const char *name;
    uint8_t *bytes;
    PEN_TRY(emit_name(draft, "number", &name));
    if (element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "a number of a type that Penstock has not");
    }
    const pen_tensor_type type = pen_tensor_type_make(element, 0, NULL);
    bytes = pen_arena_allocate(draft->import->arena, 1, pen_element_bytes(element), 8);
    if (bytes == NULL) return pen_error_out_of_memory();
    pen_element_write(element, bytes, 0, number);
    return pen_graph_constant(draft->import->graph, name, &type, bytes, out_value);
}

pen_status pen_pt2_table(pen_pt2_draft *draft, int64_t count, size_t element_bytes,
                         void **out_table) {
    pen_pt2_importer *import = draft->import;
    const uint64_t left = PEN_SPLAT_BYTES_LIMIT - import->table_bytes;
    if (count < 0 || (uint64_t)count > left / element_bytes) {
        return pen_pt2_refuse(draft, "tables of more than %u MiB, by the sizes",
                              PEN_SPLAT_BYTES_LIMIT >> 20);
    }
    void *table = pen_arena_allocate(import->arena, (size_t)count, element_bytes, 64);
    if (table == NULL) return pen_error_out_of_memory();
    import->table_bytes += (uint64_t)count * element_bytes;
    *out_table = table;
    return PEN_OK;
}

pen_status pen_pt2_constant_numbers(pen_pt2_draft *draft, const char *name,
                                    const pen_tensor_type *type, const double *numbers,
                                    pen_value_id *out_value) {
    void *bytes = NULL;
    PEN_TRY(pen_tensor_type_check(type));
    if (type->element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "numbers of a type that Penstock has not");
    }
    const int64_t count = pen_shape_element_count(&type->shape);
    PEN_TRY(pen_pt2_table(draft, count, pen_element_bytes(type->element), &bytes));
    for (int64_t i = 0; i < count; i++) {
        pen_element_write(type->element, bytes, i, numbers[i]);
    }
    return pen_graph_constant(draft->import->graph, name, type, bytes, out_value);
}

pen_status pen_pt2_own_number(pen_pt2_draft *draft, double number, pen_value_id *out_value) {
    return pen_pt2_constant_number(draft, pen_pt2_own_element(draft), number, out_value);
}

// ---- results

pen_status pen_pt2_set(pen_pt2_draft *draft, uint32_t result, pen_value_id value) {
    if (result < draft->result_count) draft->results[result] = value;
    return PEN_OK;
}

pen_status pen_pt2_give(pen_pt2_draft *draft, const char *op_name, pen_node_inputs inputs,
                        pen_node_attributes attributes) {
    pen_value_id value;
    PEN_TRY(pen_pt2_emit(draft, op_name, NULL, inputs, attributes, &value));
    return pen_pt2_set(draft, 0, value);
}

pen_status pen_pt2_give_map(pen_pt2_draft *draft, const char *op_name, pen_value_id a) {
    return pen_pt2_give(draft, op_name, PEN_INPUTS(a), PEN_NO_ATTRIBUTES);
}

pen_status pen_pt2_give_pair(pen_pt2_draft *draft, const char *op_name, pen_value_id a,
                             pen_value_id b) {
    return pen_pt2_give(draft, op_name, PEN_INPUTS(a, b), PEN_NO_ATTRIBUTES);
}

pen_status pen_pt2_mutate(pen_pt2_draft *draft, const char *name, pen_value_id value) {
    const pen_pt2_argument *argument = pen_pt2_node_argument(draft->node, name);
    const bool is_tensor =
        argument != NULL && argument->count == 1 && argument->items[0].kind == PEN_PT2_TENSOR;
    pen_pt2_slot *slot =
        is_tensor ? pen_pt2_scope_find(draft->scope, argument->items[0].text) : NULL;
    if (slot == NULL) {
        return pen_error(PEN_INVALID_INPUT, "argument '%.100s' is no tensor", name);
    }
    const pen_element_type element = pen_pt2_type(draft, name)->element;
    PEN_TRY(pen_pt2_importer_note(draft->import, value, element));
    return pen_pt2_slot_write(draft->import, slot, value);
}

// ---- conversions that serve several families

pen_status pen_pt2_convert_unary(pen_pt2_draft *draft) {
    pen_value_id a;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &a));
    return pen_pt2_give_map(draft, draft->mapping->op_name, a);
}

pen_status pen_pt2_convert_binary(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    return pen_pt2_give_pair(draft, draft->mapping->op_name, a, b);
}
