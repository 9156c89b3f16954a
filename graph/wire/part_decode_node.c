#include <string.h>

#include "graph/op.h"
#include "graph/wire/part_decoder.h"

static pen_status decode_integers(const pen_protobuf_reader *message, uint32_t number,
                                  pen_protobuf_wire wire, uint64_t *numbers) {
    pen_protobuf_reader reader = *message;
    uint32_t count = 0;
    for (;;) {
        pen_protobuf_field field;
        pen_protobuf_scalars scalars;
        bool more;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number != number) continue;
        PEN_TRY(pen_protobuf_scalars_open(&reader, &field, wire, &scalars));
        for (;;) {
            PEN_TRY(pen_protobuf_scalars_next(&scalars, &numbers[count], &more));
            if (!more) break;
            count++;
        }
    }
}

// The numbers of a list attribute, as 64 bits each.
static pen_status decode_list_attribute(part_decoder *d, const pen_protobuf_reader *message,
                                        pen_attribute_given *given) {
    const bool is_real = given->kind == PEN_ATTRIBUTE_FLOATS;
    const pen_protobuf_wire wire = is_real ? PEN_PROTOBUF_FIXED64 : PEN_PROTOBUF_VARINT;
    uint64_t *bits;
    double *numbers;
    int64_t *integers;
    PEN_TRY(pen_part_count_scalars(message, is_real ? 7 : 6, wire, &given->value.count));
    const size_t count = given->value.count;
    PEN_TRY(PEN_NEW(d->scratch, count + 1, &bits)); // one more than there are is asked for
    PEN_TRY(PEN_NEW(d->scratch, count, &numbers));
    PEN_TRY(PEN_NEW(d->scratch, count, &integers));
    PEN_TRY(decode_integers(message, is_real ? 7 : 6, wire, bits));
    if (count > 0) {
        memcpy(numbers, bits, count * sizeof *bits);
        memcpy(integers, bits, count * sizeof *bits);
    }
    given->value.numbers = is_real ? numbers : NULL;
    given->value.integers = is_real ? NULL : integers;
    return PEN_OK;
}

static pen_status decode_attribute(part_decoder *d, const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *from, pen_attribute_given *given) {
    pen_protobuf_reader start, message;
    uint32_t kind = 0;
    *given = (pen_attribute_given){.name = "", .value = {.text = ""}};
    PEN_TRY(pen_protobuf_open(reader, from, &start));
    message = start;
    for (;;) {
        pen_protobuf_field field;
        pen_protobuf_scalars scalars;
        uint64_t bits = 0;
        bool more;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        switch (field.number) {
        case 1:
            PEN_TRY(pen_protobuf_name(&message, &field, d->scratch, &given->name));
            break;
        case 2:
            PEN_TRY(pen_part_decode_uint(&message, &field, PEN_ATTRIBUTE_FLOATS, "a kind", &kind));
            break;
        case 3:
            PEN_TRY(pen_protobuf_int(&message, &field, &given->value.integer));
            break;
        case 4:
            PEN_TRY(pen_protobuf_scalars_open(&message, &field, PEN_PROTOBUF_FIXED64, &scalars));
            PEN_TRY(pen_protobuf_scalars_next(&scalars, &bits, &more));
            memcpy(&given->value.number, &bits, sizeof bits);
            break;
        case 5:
            PEN_TRY(pen_protobuf_name(&message, &field, d->scratch, &given->value.text));
            break;
        default:
            break;
        }
    }
    given->kind = (pen_attribute_kind)kind;
    const bool is_list = given->kind == PEN_ATTRIBUTE_INTS || given->kind == PEN_ATTRIBUTE_FLOATS;
    return is_list ? decode_list_attribute(d, &start, given) : PEN_OK;
}

typedef struct decoded_node {
    pen_node_spec spec;
    const char *op_name;
    bool accumulates;
} decoded_node;

static pen_status decode_operands(part_decoder *d, const pen_protobuf_reader *message,
                                  const pen_protobuf_field *field, pen_value_id *operands,
                                  uint32_t *count) {
    uint32_t found = 0;
    const uint32_t room = PEN_NODE_ARITY_LIMIT - *count;
    PEN_TRY(pen_part_decode_uints(message, field, "operands", room, d->numbers, &found));
    for (uint32_t i = 0; i < found; i++) {
        operands[(*count)++] = (pen_value_id){d->numbers[i] - 1}; // 0: none
    }
    return PEN_OK;
}

static pen_status decode_node_field(part_decoder *d, const pen_protobuf_reader *message,
                                    const pen_protobuf_field *field, decoded_node *node) {
    pen_node_spec *spec = &node->spec;
    uint32_t number = 0;
    switch (field->number) {
    case 1:
        return pen_protobuf_name(message, field, d->scratch, &node->op_name);
    case 2:
        return pen_protobuf_name(message, field, d->scratch, &spec->name);
    case 3:
        PEN_TRY(pen_part_decode_uint(message, field, PEN_ROLE_TRANSFER, "a node's role", &number));
        spec->role = (pen_role)number;
        return PEN_OK;
    case 4:
        PEN_TRY(pen_part_decode_uint(message, field, 1, "accumulates", &number));
        node->accumulates = number != 0;
        return PEN_OK;
    case 5:
        PEN_TRY(pen_part_decode_uint(message, field, UINT32_MAX, "a forward node", &number));
        spec->gradient_of = (pen_node_id){number - 1};
        return PEN_OK;
    case 6:
        return decode_operands(d, message, field, d->inputs, &spec->input_count);
    case 7:
        return decode_operands(d, message, field, d->outputs, &spec->output_count);
    case 8:
        if (spec->attribute_count == PART_ATTRIBUTES_LIMIT) {
            return pen_protobuf_error(message, "a node of more than %u attributes",
                                      PART_ATTRIBUTES_LIMIT);
        }
        return decode_attribute(d, message, field, &d->attributes[spec->attribute_count++]);
    case 9:
        return pen_part_decode_position(d, message, field, &spec->source);
    default:
        return PEN_OK;
    }
}

static pen_status decode_name_error(const pen_protobuf_reader *reader, const char *what,
                                    const char *name) {
    return pen_protobuf_error(reader, "two %s are called '%s'", what, name);
}

// Brings what the node reads, and says what its outputs are called. `expected` [output_count].
static pen_status decode_surroundings(part_decoder *d, const pen_protobuf_reader *message,
                                      const pen_node_spec *spec, part_decoded_value *expected) {
    uint32_t first_output = PEN_ID_NONE, count = 0;
    for (uint32_t i = 0; i < spec->input_count; i++) {
        const uint32_t index = d->inputs[i].index;
        if (index != PEN_ID_NONE && index >= count) count = index + 1;
    }
    for (uint32_t i = spec->output_count; i-- > 0;) {
        if (pen_value_is(d->outputs[i])) first_output = d->outputs[i].index;
    }
    if (first_output != PEN_ID_NONE && first_output < count) {
        return pen_protobuf_error(message, "node '%s' reads a value that is made by it or later",
                                  spec->name);
    }
    PEN_TRY(pen_part_decode_values_until(d, first_output == PEN_ID_NONE ? count : first_output));
    uint32_t next = pen_graph_value_count(d->graph);
    for (uint32_t i = 0; i < spec->output_count; i++) {
        d->output_names[i] = NULL;
        if (!pen_value_is(d->outputs[i])) {
            if (i >= spec->op->output_min) continue;
            return pen_protobuf_error(message, "node '%s' lacks its output %u", spec->name, i);
        }
        if (d->outputs[i].index != next) {
            return pen_protobuf_error(message, "node '%s' makes value %u, the next is %u",
                                      spec->name, d->outputs[i].index, next);
        }
        PEN_TRY(pen_part_decode_value(d, &expected[i]));
        if (expected[i].value.kind != PEN_VALUE_COMPUTED) {
            return pen_protobuf_error(message, "node '%s' makes '%s', which is a %s", spec->name,
                                      expected[i].value.name,
                                      pen_value_kind_name(expected[i].value.kind));
        }
        d->output_names[i] = expected[i].value.name;
        next++;
    }
    return PEN_OK;
}

// Holds what was made against what was said of it.
static pen_status decode_output(part_decoder *d, const pen_protobuf_reader *message,
                                pen_value_id made, const part_decoded_value *expected) {
    const pen_value *value = pen_graph_value(d->graph, made);
    if (strcmp(value->name, expected->value.name) != 0) {
        return decode_name_error(message, "values", expected->value.name);
    }
    if (!pen_tensor_type_equal(&value->type, &expected->value.type)) {
        char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
        return pen_protobuf_error(message, "value '%s' is %s, but its node makes %s", value->name,
                                  pen_tensor_type_format(&expected->value.type, wanted),
                                  pen_tensor_type_format(&value->type, found));
    }
    pen_graph_set_layout(d->graph, made, expected->value.layout);
    if (expected->value.sharding != PEN_SHARDING_WHOLE) {
        return pen_protobuf_error(message, "value '%s' is spread over devices", value->name);
    }
    if (expected->replaces == 0) return PEN_OK;
    if (expected->replaces > pen_graph_value_count(d->graph)) {
        return pen_protobuf_error(message, "value '%s' replaces value %u, which is not there",
                                  value->name, expected->replaces - 1);
    }
    pen_graph_set_replaces(d->graph, made, (pen_value_id){expected->replaces - 1});
    return PEN_OK;
}

pen_status pen_part_decode_node(part_decoder *d, const pen_protobuf_reader *reader,
                                const pen_protobuf_field *given) {
    pen_protobuf_reader message;
    decoded_node node = {.spec = {.name = "", .gradient_of = PEN_NODE_NONE}, .op_name = ""};
    pen_node_spec *spec = &node.spec;
    PEN_TRY(pen_protobuf_open(reader, given, &message));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        PEN_TRY(decode_node_field(d, &message, &field, &node));
    }
    if (spec->name[0] == '\0') return pen_protobuf_error(&message, "a node has no name");
    PEN_TRY(pen_op_find(node.op_name, &spec->op));
    spec->inputs = d->inputs;
    spec->output_names = d->output_names;
    spec->attributes = d->attributes;
    part_decoded_value *expected;
    PEN_TRY(PEN_NEW(d->scratch, spec->output_count, &expected));
    PEN_TRY(decode_surroundings(d, &message, spec, expected));
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(d->graph, spec, &made));
    if (strcmp(pen_node_name(d->graph, made), spec->name) != 0) {
        return decode_name_error(&message, "nodes", spec->name);
    }
    pen_graph_set_accumulates(d->graph, made, node.accumulates);
    for (uint32_t i = 0; i < spec->output_count; i++) {
        if (!pen_value_is(d->outputs[i])) continue;
        PEN_TRY(decode_output(d, &message, d->outputs[i], &expected[i]));
    }
    return PEN_OK;
}
