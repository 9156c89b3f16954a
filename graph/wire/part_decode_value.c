#include <string.h>

#include "graph/graph.h"
#include "graph/wire/part_decoder.h"

static pen_status decode_value_number(const pen_protobuf_reader *message,
                                      const pen_protobuf_field *field, part_decoded_value *v) {
    uint32_t number = 0;
    switch (field->number) {
    case 2:
        PEN_TRY(
            pen_part_decode_uint(message, field, PEN_VALUE_CONSTANT, "a value's kind", &number));
        v->value.kind = (pen_value_kind)number;
        return PEN_OK;
    case 5:
        PEN_TRY(pen_part_decode_uint(message, field, UINT16_MAX, "a layout", &number));
        v->value.layout = (pen_layout)number;
        return PEN_OK;
    case 6:
        PEN_TRY(
            pen_part_decode_uint(message, field, PEN_SHARDING_PARTIAL_SUM, "a sharding", &number));
        v->value.sharding = (pen_sharding)number;
        return PEN_OK;
    case 7:
        PEN_TRY(pen_part_decode_uint(message, field, 1, "trainable", &number));
        v->value.trainable = number != 0;
        return PEN_OK;
    case 8:
        return pen_part_decode_uint(message, field, UINT32_MAX, "what is replaced", &v->replaces);
    case 9:
        PEN_TRY(pen_part_decode_uint(message, field, 1, "has_contents", &number));
        v->has_contents = number != 0;
        return PEN_OK;
    default:
        return PEN_OK;
    }
}

static pen_status decode_dimensions(const pen_protobuf_reader *message,
                                    const pen_protobuf_field *field, pen_shape *shape) {
    pen_protobuf_scalars scalars;
    PEN_TRY(pen_protobuf_scalars_open(message, field, PEN_PROTOBUF_VARINT, &scalars));
    for (;;) {
        uint64_t bits;
        bool more;
        PEN_TRY(pen_protobuf_scalars_next(&scalars, &bits, &more));
        if (!more) return PEN_OK;
        if (shape->rank == PEN_RANK_LIMIT) {
            return pen_protobuf_error(message, "a shape of more than %d dimensions",
                                      PEN_RANK_LIMIT);
        }
        if (bits > INT64_MAX) return pen_protobuf_error(message, "a negative dimension");
        shape->dims[shape->rank++] = (int64_t)bits;
    }
}

static pen_status decode_value_field(part_decoder *d, const pen_protobuf_reader *message,
                                     const pen_protobuf_field *field, part_decoded_value *v) {
    const uint8_t *bytes;
    size_t length;
    const char *element;
    switch (field->number) {
    case 1:
        return pen_protobuf_name(message, field, d->arena, &v->value.name);
    case 3:
        PEN_TRY(pen_protobuf_name(message, field, d->scratch, &element));
        return pen_element_find(element, &v->value.type.element);
    case 4:
        return decode_dimensions(message, field, &v->value.type.shape);
    case 10:
        PEN_TRY(pen_protobuf_bytes(message, field, &bytes, &length));
        v->value.data = bytes;
        v->value.data_bytes = length;
        v->has_data = true;
        return PEN_OK;
    case 11:
        return pen_part_decode_position(d, message, field, &v->value.source);
    default:
        return decode_value_number(message, field, v);
    }
}

// Bytes of booleans are 0 or 1.
static bool decode_is_boolean(const uint8_t *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] > 1) return false;
    }
    return true;
}

// What a value's kind asks of its contents. Those of a constant are copied.
static pen_status decode_contents(part_decoder *d, const pen_protobuf_reader *message,
                                  part_decoded_value *v) {
    pen_value *value = &v->value;
    const bool is_persistent = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
    const uint64_t bytes = pen_tensor_type_bytes(&value->type);
    if (v->has_contents && !is_persistent) {
        return pen_protobuf_error(message, "%s '%s' has contents", pen_value_kind_name(value->kind),
                                  value->name);
    }
    if (v->has_data && value->kind != PEN_VALUE_CONSTANT) {
        return pen_protobuf_error(message, "%s '%s' comes with its bytes",
                                  pen_value_kind_name(value->kind), value->name);
    }
    if (is_persistent) value->data_bytes = v->has_contents ? bytes : 0;
    if (value->kind != PEN_VALUE_CONSTANT) return PEN_OK;
    if (value->data_bytes != bytes) {
        return pen_protobuf_error(message, "constant '%s' has %llu bytes, its type needs %llu",
                                  value->name, (unsigned long long)value->data_bytes,
                                  (unsigned long long)bytes);
    }
    if (value->type.element == PEN_BOOL && !decode_is_boolean(value->data, bytes)) {
        return pen_protobuf_error(
            message, "constant '%s' has truth values that are neither 0 nor 1", value->name);
    }
    char *copy;
    PEN_TRY(PEN_NEW(d->arena, bytes + 1, &copy));
    if (bytes > 0) memcpy(copy, value->data, bytes);
    value->data = copy;
    return PEN_OK;
}

pen_status pen_part_decode_value(part_decoder *d, part_decoded_value *out_value) {
    pen_protobuf_field given;
    pen_protobuf_reader message;
    do {
        PEN_TRY(pen_protobuf_next(&d->values, &given));
        if (given.number == 0) {
            return pen_protobuf_error(&d->values, "a node names value %u, which is not there",
                                      pen_graph_value_count(d->graph));
        }
    } while (given.number != 3);
    PEN_TRY(pen_protobuf_open(&d->values, &given, &message));
    part_decoded_value v = {.value = {.name = "", .producer = PEN_NODE_NONE}};
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        PEN_TRY(decode_value_field(d, &message, &field, &v));
    }
    if (v.value.name[0] == '\0') return pen_protobuf_error(&message, "a value has no name");
    PEN_TRY(pen_status_add_context(pen_tensor_type_check(&v.value.type), "as the type of '%s'",
                                   v.value.name));
    if (v.value.type.element == PEN_ELEMENT_UNKNOWN) {
        return pen_protobuf_error(&message, "value '%s' has no element type", v.value.name);
    }
    PEN_TRY(decode_contents(d, &message, &v));
    v.value.replaces = PEN_VALUE_NONE;
    *out_value = v;
    return PEN_OK;
}

pen_status pen_part_decode_values_until(part_decoder *d, uint32_t count) {
    while (pen_graph_value_count(d->graph) < count) {
        part_decoded_value v = {.has_data = false};
        pen_value_id made;
        PEN_TRY(pen_part_decode_value(d, &v));
        if (v.value.kind == PEN_VALUE_COMPUTED) {
            return pen_protobuf_error(
                &d->values, "value '%s' is read, or missing, before it is made", v.value.name);
        }
        if (v.replaces != 0) {
            return pen_protobuf_error(&d->values, "%s '%s' replaces another value",
                                      pen_value_kind_name(v.value.kind), v.value.name);
        }
        PEN_TRY(pen_graph_add_value(d->graph, &v.value, &made));
    }
    return PEN_OK;
}
