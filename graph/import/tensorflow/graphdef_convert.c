#include "graph/import/tensorflow/graphdef_convert.h"

#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/reserve.h"
#include "graph/graph.h"
#include "graph/op.h"

#define DRAFT_NODES_LIMIT (2 * PEN_INLINED_NODES_LIMIT) // of the graph that is made

pen_status pen_graphdef_draft_need(const pen_graphdef_draft *draft, uint32_t count) {
    if (draft->operand_count >= count) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "it has %u operands, expected %u", draft->operand_count,
                     count);
}

// ---- adding

// A failure in a trial only means that nothing is known of the result.
static pen_status draft_add_to_trial(pen_graph *graph, const pen_node_spec *spec,
                                     pen_value_id *out_outputs) {
    pen_node_id node;
    const pen_status status = pen_graph_add_node(graph, spec, &node);
    if (pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    for (uint32_t i = 0; i < spec->output_count; i++) {
        out_outputs[i] = PEN_VALUE_NONE;
    }
    if (status != PEN_OK) {
        pen_status_ignore(status, "the graph itself says it, once its sizes are known");
        return PEN_OK;
    }
    for (uint32_t i = 0; i < spec->output_count; i++) {
        out_outputs[i] = pen_graph_node(graph, node)->outputs[i];
    }
    return PEN_OK;
}

static pen_status draft_note_pin(pen_graphdef_draft *draft, pen_node_id node) {
    pen_graphdef_pins *pins = draft->pins;
    if (pins == NULL || draft->node->device[0] == '\0') return PEN_OK;
    if (pen_graph_node(draft->graphs[0], node)->op->is_view) return PEN_OK; // goes with another
    PEN_TRY(PEN_RESERVE(draft->arena, &pins->pins, pins->count, &pins->capacity, 16));
    pins->pins[pins->count++] =
        (pen_model_pin){pen_node_name(draft->graphs[0], node), draft->node->device};
    return PEN_OK;
}

// In one of the three copies. A node that fails in a trial leaves its outputs unknown there; in
// the graph itself the failure is the model's.
static pen_status draft_add(pen_graphdef_draft *draft, uint32_t copy, pen_node_spec *spec,
                            const pen_graphdef_value *inputs, pen_graphdef_value *out_values) {
    pen_value_id *ids, *outputs;
    PEN_TRY(PEN_NEW(draft->arena, (size_t)spec->input_count + 1, &ids));
    PEN_TRY(PEN_NEW(draft->arena, (size_t)spec->output_count + 1, &outputs));
    bool is_whole = true;
    for (uint32_t i = 0; i < spec->input_count; i++) {
        ids[i] = inputs[i].in[copy];
        is_whole = is_whole && (pen_value_is(ids[i]) || !pen_value_is(inputs[i].in[0]));
    }
    spec->inputs = ids;
    if (copy > 0) {
        for (uint32_t i = 0; i < spec->output_count; i++) {
            outputs[i] = PEN_VALUE_NONE;
        }
        if (is_whole) PEN_TRY(draft_add_to_trial(draft->graphs[copy], spec, outputs));
    } else {
        pen_node_id node;
        PEN_TRY(pen_graph_add_node(draft->graphs[0], spec, &node));
        PEN_TRY(draft_note_pin(draft, node));
        for (uint32_t i = 0; i < spec->output_count; i++) {
            outputs[i] = pen_graph_node(draft->graphs[0], node)->outputs[i];
        }
    }
    for (uint32_t i = 0; i < spec->output_count; i++) {
        out_values[i].in[copy] = outputs[i];
    }
    return PEN_OK;
}

static pen_status draft_output_names(const pen_graphdef_draft *draft,
                                     const pen_graphdef_emission *emission, const char *name,
                                     uint32_t count, const char ***out_names) {
    const char *form = emission->is_first ? "/channels_first" : "";
    PEN_TRY(PEN_NEW(draft->arena, count, out_names));
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0) {
            PEN_TRY(pen_arena_format(draft->arena, &(*out_names)[i], "%s%s", name, form));
        } else {
            PEN_TRY(pen_arena_format(draft->arena, &(*out_names)[i], "%s:%u%s", name, i, form));
        }
    }
    return PEN_OK;
}

// Names: the node's own for what the conversion ends with, "<node>/<suffix>" for what is in
// between, so that the model's names stay those of its values.
pen_status pen_graphdef_emit_node(pen_graphdef_draft *draft, const pen_graphdef_emission *emission,
                                  pen_graphdef_value *out_values) {
    const char *name = draft->node->name;
    if (pen_graph_node_count(draft->graphs[0]) >= DRAFT_NODES_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "the model comes to more than %u operators",
                         DRAFT_NODES_LIMIT);
    }
    if (emission->suffix != NULL) {
        PEN_TRY(pen_arena_format(draft->arena, &name, "%s/%s", name, emission->suffix));
    }
    pen_node_spec spec = pen_node_spec_make(emission->op_name, name);
    spec.source = (pen_source){.file = draft->path, .position = draft->node->position};
    spec.input_count = emission->inputs.count;
    spec.output_count = emission->output_count == 0 ? 1 : emission->output_count;
    spec.attributes = emission->attributes.given;
    spec.attribute_count = emission->attributes.count;
    const char **names;
    PEN_TRY(draft_output_names(draft, emission, name, spec.output_count, &names));
    spec.output_names = names;
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(draft_add(draft, copy, &spec, emission->inputs.values, out_values));
    }
    return PEN_OK;
}

pen_status pen_graphdef_emit(pen_graphdef_draft *draft, const char *op_name, const char *suffix,
                             pen_graphdef_inputs inputs, pen_node_attributes attributes,
                             pen_graphdef_value *out_value) {
    const pen_graphdef_emission emission = {op_name, suffix, inputs, attributes, 1, false};
    return pen_graphdef_emit_node(draft, &emission, out_value);
}

pen_status pen_graphdef_give_form(pen_graphdef_draft *draft, bool is_first, const char *op_name,
                                  pen_graphdef_inputs inputs, pen_node_attributes attributes) {
    const pen_graphdef_emission emission = {op_name, NULL, inputs, attributes, 1, is_first};
    pen_graphdef_value result;
    PEN_TRY(pen_graphdef_emit_node(draft, &emission, &result));
    return pen_graphdef_set_form(draft, is_first, result);
}

pen_status pen_graphdef_give(pen_graphdef_draft *draft, const char *op_name,
                             pen_graphdef_inputs inputs, pen_node_attributes attributes) {
    return pen_graphdef_give_form(draft, false, op_name, inputs, attributes);
}

pen_status pen_graphdef_give_map(pen_graphdef_draft *draft, bool is_first, const char *op_name,
                                 pen_graphdef_value a) {
    return pen_graphdef_give_form(draft, is_first, op_name, PEN_GRAPHDEF_INPUTS(a),
                                  PEN_NO_ATTRIBUTES);
}

pen_status pen_graphdef_give_pair(pen_graphdef_draft *draft, bool is_first, const char *op_name,
                                  pen_graphdef_value a, pen_graphdef_value b) {
    return pen_graphdef_give_form(draft, is_first, op_name, PEN_GRAPHDEF_INPUTS(a, b),
                                  PEN_NO_ATTRIBUTES);
}

pen_status pen_graphdef_map(pen_graphdef_draft *draft, const char *op_name, const char *suffix,
                            pen_graphdef_value a, pen_graphdef_value *out_value) {
    return pen_graphdef_emit(draft, op_name, suffix, PEN_GRAPHDEF_INPUTS(a), PEN_NO_ATTRIBUTES,
                             out_value);
}

pen_status pen_graphdef_pair(pen_graphdef_draft *draft, const char *op_name, const char *suffix,
                             pen_graphdef_value a, pen_graphdef_value b,
                             pen_graphdef_value *out_value) {
    return pen_graphdef_emit(draft, op_name, suffix, PEN_GRAPHDEF_INPUTS(a, b), PEN_NO_ATTRIBUTES,
                             out_value);
}

pen_status pen_graphdef_cast(pen_graphdef_draft *draft, const char *suffix, pen_graphdef_value a,
                             pen_element_type element, pen_graphdef_value *out_value) {
    return pen_graphdef_emit(draft, "cast", suffix, PEN_GRAPHDEF_INPUTS(a),
                             PEN_WITH(pen_attribute_text("to", pen_element_name(element))),
                             out_value);
}

pen_status pen_graphdef_concat(pen_graphdef_draft *draft, const char *suffix,
                               pen_graphdef_inputs inputs, int64_t axis,
                               pen_graphdef_value *out_value) {
    return pen_graphdef_emit(draft, "concat", suffix, inputs,
                             PEN_WITH(pen_attribute_int("axis", axis)), out_value);
}

pen_status pen_graphdef_emit_with_ints(pen_graphdef_draft *draft, const char *op_name,
                                       const char *suffix, pen_graphdef_value a,
                                       pen_graphdef_integers integers,
                                       pen_graphdef_value *out_value) {
    pen_graphdef_value operand;
    PEN_TRY(pen_graphdef_ints_value(draft, suffix != NULL ? suffix : op_name, integers.count,
                                    integers.values, &operand));
    return pen_graphdef_pair(draft, op_name, suffix, a, operand, out_value);
}

pen_status pen_graphdef_emit_with_int(pen_graphdef_draft *draft, const char *op_name,
                                      const char *suffix, pen_graphdef_value a, int64_t integer,
                                      pen_graphdef_value *out_value) {
    return pen_graphdef_emit_with_ints(draft, op_name, suffix, a,
                                       (pen_graphdef_integers){1, &integer}, out_value);
}

pen_status pen_graphdef_emit_transpose(pen_graphdef_draft *draft, const char *suffix,
                                       pen_graphdef_value a, uint32_t rank,
                                       const int64_t *permutation, pen_graphdef_value *out_value) {
    return pen_graphdef_emit(draft, "transpose", suffix, PEN_GRAPHDEF_INPUTS(a),
                             PEN_WITH(pen_attribute_ints("perm", rank, permutation)), out_value);
}

// ---- constants

pen_status pen_graphdef_ints_value(pen_graphdef_draft *draft, const char *suffix, uint32_t count,
                                   const int64_t *integers, pen_graphdef_value *out_value) {
    const char *name;
    PEN_TRY(pen_arena_format(draft->arena, &name, "%s/%s/integers", draft->node->name, suffix));
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(pen_graph_constant_ints(draft->graphs[copy], name, count, integers,
                                        &out_value->in[copy]));
    }
    return PEN_OK;
}

pen_status pen_graphdef_number_value(pen_graphdef_draft *draft, const char *suffix,
                                     pen_element_type element, double number,
                                     pen_graphdef_value *out_value) {
    const char *name;
    PEN_TRY(pen_arena_format(draft->arena, &name, "%s/%s", draft->node->name, suffix));
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(pen_graph_constant_number(draft->graphs[copy], name, element, number,
                                          &out_value->in[copy]));
    }
    return PEN_OK;
}

pen_status pen_graphdef_ints_constant(pen_graph *graph, const char *name,
                                      const pen_graphdef_ints_known *ints, pen_element_type element,
                                      pen_value_id *out_value) {
    const int64_t count = ints->count;
    const pen_tensor_type type = pen_tensor_type_make(element, ints->is_scalar ? 0 : 1, &count);
    const size_t size = pen_element_bytes(element);
    uint8_t *bytes = pen_arena_allocate(pen_graph_arena(graph), ints->count * size + 1, 1, 64);
    if (bytes == NULL) return pen_error_out_of_memory();
    for (uint32_t i = 0; i < ints->count; i++) { // little-endian: the low bytes come first
        memcpy(bytes + i * size, &ints->integers[i], size);
    }
    return pen_graph_constant(graph, name, &type, bytes, out_value);
}

// ---- operands

static pen_status draft_check_operand(const pen_graphdef_draft *draft, uint32_t input) {
    PEN_TRY(pen_graphdef_draft_need(draft, input + 1));
    const pen_graphdef_result *result = draft->operands[input];
    if (pen_value_is(result->plain.in[0]) || pen_value_is(result->first.in[0])) return PEN_OK;
    if (result->list != NULL) {
        return pen_error(PEN_UNSUPPORTED, "operand %u, '%.100s', is a list of tensors", input,
                         result->name);
    }
    return pen_error(PEN_UNSUPPORTED, "operand %u, '%.100s', is of a type that Penstock has not",
                     input, result->name);
}

// Makes the form that is not there.
static pen_status draft_transposed(pen_graphdef_draft *draft, pen_graphdef_result *result,
                                   bool to_first) {
    static const int64_t to_first_axes[] = {0, 3, 1, 2}, to_last_axes[] = {0, 2, 3, 1};
    const pen_attribute_given attribute =
        pen_attribute_ints("perm", 4, to_first ? to_first_axes : to_last_axes);
    const char *name, *const names[] = {result->name};
    PEN_TRY(pen_arena_format(draft->arena, &name, "%s/%s", result->name,
                             to_first ? "to_channels_first" : "to_channels_last"));
    pen_node_spec spec = pen_node_spec_make("transpose", name);
    spec.source = (pen_source){.file = draft->path, .position = draft->node->position};
    spec.input_count = spec.output_count = spec.attribute_count = 1;
    spec.attributes = &attribute;
    spec.output_names = to_first ? NULL : names;
    const pen_graphdef_value *from = to_first ? &result->plain : &result->first;
    pen_graphdef_value *to = to_first ? &result->first : &result->plain;
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(draft_add(draft, copy, &spec, from, to));
    }
    return PEN_OK;
}

pen_status pen_graphdef_operand_form(pen_graphdef_draft *draft, uint32_t input, bool is_first,
                                     pen_graphdef_value *out_value) {
    PEN_TRY(draft_check_operand(draft, input));
    pen_graphdef_result *result = draft->operands[input];
    const pen_graphdef_value *form = is_first ? &result->first : &result->plain;
    if (!pen_value_is(form->in[0])) PEN_TRY(draft_transposed(draft, result, is_first));
    *out_value = *form;
    return PEN_OK;
}

pen_status pen_graphdef_operand(pen_graphdef_draft *draft, uint32_t input,
                                pen_graphdef_value *out_value) {
    return pen_graphdef_operand_form(draft, input, false, out_value);
}

pen_status pen_graphdef_result_value(const pen_graphdef_draft *draft, pen_graphdef_result *result,
                                     pen_graphdef_value *out_value) {
    pen_graphdef_draft reader = *draft;
    reader.operand_count = 1;
    reader.operands = &result;
    return pen_graphdef_operand(&reader, 0, out_value);
}

pen_status pen_graphdef_operands(pen_graphdef_draft *draft, uint32_t count,
                                 pen_graphdef_value *out_values) {
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_graphdef_operand(draft, i, &out_values[i]));
    }
    return PEN_OK;
}

pen_status pen_graphdef_operand_first(pen_graphdef_draft *draft, uint32_t input,
                                      pen_graphdef_value *out_value) {
    return pen_graphdef_operand_form(draft, input, true, out_value);
}

pen_status pen_graphdef_operand_found(pen_graphdef_draft *draft, uint32_t input, bool *out_is_first,
                                      pen_graphdef_value *out_value) {
    *out_is_first = pen_graphdef_operand_is_first(draft, input);
    return pen_graphdef_operand_form(draft, input, *out_is_first, out_value);
}

pen_element_type pen_graphdef_draft_element(const pen_graphdef_draft *draft) {
    return pen_graphdef_type(draft->node, "T", PEN_FLOAT32);
}

bool pen_graphdef_operand_is_first(const pen_graphdef_draft *draft, uint32_t input) {
    if (input >= draft->operand_count) return false;
    const pen_graphdef_result *result = draft->operands[input];
    return !pen_value_is(result->plain.in[0]) && pen_value_is(result->first.in[0]);
}

const pen_tensor_type *pen_graphdef_value_type(const pen_graphdef_draft *draft,
                                               const pen_graphdef_value *value, uint32_t trial) {
    const uint32_t copy = trial + 1;
    if (!pen_value_is(value->in[copy])) return NULL;
    const pen_tensor_type *type = pen_value_type(draft->graphs[copy], value->in[copy]);
    return type->element == PEN_ELEMENT_UNKNOWN ? NULL : type;
}

bool pen_graphdef_operand_rank(const pen_graphdef_draft *draft, uint32_t input,
                               uint32_t *out_rank) {
    if (input >= draft->operand_count) return false;
    if (pen_graphdef_operand_is_first(draft, input)) {
        *out_rank = 4;
        return true;
    }
    const pen_tensor_type *type = pen_graphdef_value_type(draft, &draft->operands[input]->plain, 0);
    if (type == NULL) return false;
    *out_rank = type->shape.rank;
    return true;
}

pen_status pen_graphdef_value_shape(const pen_graphdef_draft *draft,
                                    const pen_graphdef_value *value, pen_shape *out_shape) {
    const pen_tensor_type *a = pen_graphdef_value_type(draft, value, 0);
    const pen_tensor_type *b = pen_graphdef_value_type(draft, value, 1);
    if (a == NULL || b == NULL || a->shape.rank != b->shape.rank) {
        return pen_error(PEN_UNSUPPORTED, "the shape of '%.100s' is not known",
                         pen_value_name(draft->graphs[0], value->in[0]));
    }
    *out_shape = a->shape;
    for (uint32_t d = 0; d < a->shape.rank; d++) {
        if (a->shape.dims[d] != b->shape.dims[d]) out_shape->dims[d] = -1;
    }
    return PEN_OK;
}

// ---- integers

const pen_graphdef_ints_known *pen_graphdef_operand_trial(const pen_graphdef_draft *draft,
                                                          uint32_t input, uint32_t trial) {
    return input < draft->operand_count ? draft->operands[input]->ints[trial] : NULL;
}

bool pen_graphdef_ints_agree(const pen_graphdef_result *result) {
    const pen_graphdef_ints_known *a = result->ints[0], *b = result->ints[1];
    if (a == NULL || b == NULL || a->count != b->count || a->is_scalar != b->is_scalar) {
        return false;
    }
    return memcmp(a->integers, b->integers, a->count * sizeof a->integers[0]) == 0;
}

pen_status pen_graphdef_operand_ints(const pen_graphdef_draft *draft, uint32_t input,
                                     const pen_graphdef_ints_known **out_ints) {
    PEN_TRY(pen_graphdef_draft_need(draft, input + 1));
    if (!pen_graphdef_ints_agree(draft->operands[input])) {
        return pen_error(PEN_UNSUPPORTED,
                         "operand %u depends on data, or on a size that the model leaves open; it "
                         "must be constant",
                         input);
    }
    *out_ints = draft->operands[input]->ints[0];
    return PEN_OK;
}

pen_status pen_graphdef_operand_int(const pen_graphdef_draft *draft, uint32_t input,
                                    int64_t *out_integer) {
    const pen_graphdef_ints_known *ints;
    PEN_TRY(pen_graphdef_operand_ints(draft, input, &ints));
    if (ints->count != 1) {
        return pen_error(PEN_INVALID_INPUT, "operand %u has %u integers, expected one", input,
                         ints->count);
    }
    *out_integer = ints->integers[0];
    return PEN_OK;
}

pen_status pen_graphdef_operand_int64s(pen_graphdef_draft *draft, uint32_t input,
                                       pen_graphdef_value *out_value) {
    PEN_TRY(pen_graphdef_draft_need(draft, input + 1));
    const pen_graphdef_result *result = draft->operands[input];
    if (pen_graphdef_ints_agree(result)) {
        const pen_graphdef_ints_known *ints = result->ints[0];
        return pen_graphdef_ints_value(draft, "operand", ints->count, ints->integers, out_value);
    }
    pen_graphdef_value plain;
    PEN_TRY(pen_graphdef_operand(draft, input, &plain));
    PEN_TRY(pen_graphdef_cast(draft, "operand", plain, PEN_INT64, out_value));
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        const pen_graphdef_ints_known *ints = result->ints[trial];
        if (ints == NULL) continue;
        PEN_TRY(pen_graph_constant_ints(draft->graphs[trial + 1], draft->node->name, ints->count,
                                        ints->integers, &out_value->in[trial + 1]));
    }
    return PEN_OK;
}

// ---- results

pen_status pen_graphdef_set(pen_graphdef_draft *draft, uint32_t output, pen_graphdef_value value) {
    if (output >= draft->result_count) return PEN_OK;
    draft->results[output]->plain = value;
    draft->results[output]->is_made = true;
    return PEN_OK;
}

pen_status pen_graphdef_set_form(pen_graphdef_draft *draft, bool is_first,
                                 pen_graphdef_value value) {
    if (!is_first) return pen_graphdef_set(draft, 0, value);
    if (draft->result_count == 0) return PEN_OK;
    draft->results[0]->first = value;
    draft->results[0]->is_made = true;
    return PEN_OK;
}

pen_status pen_graphdef_pass(pen_graphdef_draft *draft, uint32_t output, uint32_t input) {
    if (output < draft->result_count) draft->results[output] = draft->operands[input];
    return PEN_OK;
}
