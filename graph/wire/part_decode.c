// Values and nodes are walked side by side, as they were made: a node's outputs are the next
// values, and what it reads that is not computed stands before them.

#include <string.h>

#include "graph/import/protobuf_reader.h"
#include "graph/op.h"
#include "graph/verify.h"
#include "graph/wire/part_check.h"

#define DECODE_ATTRIBUTES_LIMIT 64u
#define DECODE_FIELDS 10u // of a part, and the unused 0

typedef struct part_decoder {
    pen_arena *arena;
    pen_arena *scratch;
    pen_arena *node_scratch;    // in its place, for one node at a time
    pen_protobuf_reader values; // of the part, up to the next value
    pen_graph *graph;
    uint32_t file_count;
    const char **files;
    pen_value_id *inputs; // [PEN_NODE_ARITY_LIMIT], of the node at hand
    pen_value_id *outputs;
    const char **output_names;
    uint32_t *numbers;               // [PEN_NODE_ARITY_LIMIT]
    pen_attribute_given *attributes; // [DECODE_ATTRIBUTES_LIMIT]
} part_decoder;

static pen_status decode_uint(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                              uint32_t limit, const char *what, uint32_t *out_number) {
    int64_t number;
    PEN_TRY(pen_protobuf_int(reader, field, &number));
    if (number < 0 || number > limit) {
        return pen_protobuf_error(reader, "%s is %lld, expected 0 to %u", what, (long long)number,
                                  limit);
    }
    *out_number = (uint32_t)number;
    return PEN_OK;
}

// Numbers of one field, packed or not, into `numbers` [limit] from *count on.
static pen_status decode_uints(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                               const char *what, uint32_t limit, uint32_t *numbers,
                               uint32_t *count) {
    pen_protobuf_scalars scalars;
    PEN_TRY(pen_protobuf_scalars_open(reader, field, PEN_PROTOBUF_VARINT, &scalars));
    for (;;) {
        uint64_t bits;
        bool more;
        PEN_TRY(pen_protobuf_scalars_next(&scalars, &bits, &more));
        if (!more) return PEN_OK;
        if (*count == limit) return pen_protobuf_error(reader, "more than %u %s", limit, what);
        if (bits > UINT32_MAX)
            return pen_protobuf_error(reader, "a number of %s is too large", what);
        numbers[(*count)++] = (uint32_t)bits;
    }
}

// How many numbers fields `number` of the rest of the message hold.
static pen_status decode_count_scalars(const pen_protobuf_reader *message, uint32_t number,
                                       pen_protobuf_wire wire, uint32_t *out_count) {
    pen_protobuf_reader reader = *message;
    uint64_t count = 0;
    for (;;) {
        pen_protobuf_field field;
        pen_protobuf_scalars scalars;
        uint64_t more;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number != number) continue;
        PEN_TRY(pen_protobuf_scalars_open(&reader, &field, wire, &scalars));
        PEN_TRY(pen_protobuf_scalars_count(&scalars, &more));
        count += more; // each takes a byte at least
    }
    *out_count = (uint32_t)count; // below PEN_PART_BYTES_LIMIT
    return PEN_OK;
}

static pen_status decode_position(const part_decoder *d, const pen_protobuf_reader *reader,
                                  const pen_protobuf_field *given, pen_source *out_source) {
    pen_protobuf_reader message;
    uint32_t numbers[5] = {0};
    PEN_TRY(pen_protobuf_open(reader, given, &message));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        if (field.number > 4) continue;
        PEN_TRY(decode_uint(&message, &field, UINT32_MAX, "a position", &numbers[field.number]));
    }
    if (numbers[1] == 0 || numbers[1] > d->file_count) {
        return pen_protobuf_error(reader, "a position in file %u of %u", numbers[1], d->file_count);
    }
    *out_source = (pen_source){.file = d->files[numbers[1] - 1],
                               .line = numbers[2],
                               .column = numbers[3],
                               .position = numbers[4]};
    return PEN_OK;
}

// ---- values

typedef struct decoded_value {
    pen_value value;
    uint32_t replaces; // one more than it is
    bool has_contents;
    bool has_data;
} decoded_value;

static pen_status decode_value_number(const pen_protobuf_reader *message,
                                      const pen_protobuf_field *field, decoded_value *v) {
    uint32_t number = 0;
    switch (field->number) {
    case 2:
        PEN_TRY(decode_uint(message, field, PEN_VALUE_CONSTANT, "a value's kind", &number));
        v->value.kind = (pen_value_kind)number;
        return PEN_OK;
    case 5:
        PEN_TRY(decode_uint(message, field, UINT16_MAX, "a layout", &number));
        v->value.layout = (pen_layout)number;
        return PEN_OK;
    case 6:
        PEN_TRY(decode_uint(message, field, PEN_SHARDING_PARTIAL_SUM, "a sharding", &number));
        v->value.sharding = (pen_sharding)number;
        return PEN_OK;
    case 7:
        PEN_TRY(decode_uint(message, field, 1, "trainable", &number));
        v->value.trainable = number != 0;
        return PEN_OK;
    case 8:
        return decode_uint(message, field, UINT32_MAX, "what is replaced", &v->replaces);
    case 9:
        PEN_TRY(decode_uint(message, field, 1, "has_contents", &number));
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
                                     const pen_protobuf_field *field, decoded_value *v) {
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
        return decode_position(d, message, field, &v->value.source);
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
                                  decoded_value *v) {
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

// The next value of the part. CORRUPT when there is none.
static pen_status decode_value(part_decoder *d, decoded_value *out_value) {
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
    decoded_value v = {.value = {.name = "", .producer = PEN_NODE_NONE}};
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

// Adds values that are not computed until there are `count`.
static pen_status decode_values_until(part_decoder *d, uint32_t count) {
    while (pen_graph_value_count(d->graph) < count) {
        decoded_value v;
        pen_value_id made;
        PEN_TRY(decode_value(d, &v));
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

// ---- nodes

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
    PEN_TRY(decode_count_scalars(message, is_real ? 7 : 6, wire, &given->value.count));
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
            PEN_TRY(decode_uint(&message, &field, PEN_ATTRIBUTE_FLOATS, "a kind", &kind));
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
    PEN_TRY(decode_uints(message, field, "operands", room, d->numbers, &found));
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
        PEN_TRY(decode_uint(message, field, PEN_ROLE_TRANSFER, "a node's role", &number));
        spec->role = (pen_role)number;
        return PEN_OK;
    case 4:
        PEN_TRY(decode_uint(message, field, 1, "accumulates", &number));
        node->accumulates = number != 0;
        return PEN_OK;
    case 5:
        PEN_TRY(decode_uint(message, field, UINT32_MAX, "a forward node", &number));
        spec->gradient_of = (pen_node_id){number - 1};
        return PEN_OK;
    case 6:
        return decode_operands(d, message, field, d->inputs, &spec->input_count);
    case 7:
        return decode_operands(d, message, field, d->outputs, &spec->output_count);
    case 8:
        if (spec->attribute_count == DECODE_ATTRIBUTES_LIMIT) {
            return pen_protobuf_error(message, "a node of more than %u attributes",
                                      DECODE_ATTRIBUTES_LIMIT);
        }
        return decode_attribute(d, message, field, &d->attributes[spec->attribute_count++]);
    case 9:
        return decode_position(d, message, field, &spec->source);
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
                                      const pen_node_spec *spec, decoded_value *expected) {
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
    PEN_TRY(decode_values_until(d, first_output == PEN_ID_NONE ? count : first_output));
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
        PEN_TRY(decode_value(d, &expected[i]));
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
                                pen_value_id made, const decoded_value *expected) {
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

static pen_status decode_node(part_decoder *d, const pen_protobuf_reader *reader,
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
    decoded_value *expected;
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

// ---- the rest

static pen_status decode_list(const pen_protobuf_reader *reader, const pen_protobuf_field *given,
                              pen_part_list *list) {
    pen_protobuf_reader message;
    uint32_t numbers[6] = {0};
    PEN_TRY(pen_protobuf_open(reader, given, &message));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        if (field.number > 5) continue;
        PEN_TRY(decode_uint(&message, &field, UINT32_MAX, "a list", &numbers[field.number]));
    }
    if (numbers[1] > PEN_TASK_UPDATE) {
        return pen_protobuf_error(&message, "a list of kind %u, expected at most %d", numbers[1],
                                  PEN_TASK_UPDATE);
    }
    *list = (pen_part_list){.kind = (pen_task_kind)numbers[1],
                            .stage = numbers[2],
                            .phase = numbers[3],
                            .first = numbers[4],
                            .end = numbers[5]};
    return PEN_OK;
}

static pen_status decode_fed(const pen_protobuf_reader *reader, const pen_protobuf_field *given,
                             pen_part_end *end) {
    pen_protobuf_reader message;
    *end = (pen_part_end){0};
    PEN_TRY(pen_protobuf_open(reader, given, &message));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) {
            PEN_TRY(decode_uint(&message, &field, UINT32_MAX - 1, "a channel", &end->channel));
        } else if (field.number == 2) {
            PEN_TRY(decode_uint(&message, &field, UINT32_MAX - 1, "a value", &end->value.index));
        }
    }
}

// `counts`: of the part's fields.
static pen_status decode_start(part_decoder *d, const pen_protobuf_reader *start,
                               const uint32_t *counts) {
    const char *name = "";
    pen_protobuf_reader reader = *start;
    for (uint32_t n = 0; n < DECODE_FIELDS; n++) {
        const bool is_small = n == 2 || n == 5 || n == 8; // files, lists, fed
        if (!is_small || counts[n] <= PEN_PART_LISTS_LIMIT) continue;
        return pen_protobuf_error(start, "field %u is there %u times, expected at most %u", n,
                                  counts[n], PEN_PART_LISTS_LIMIT);
    }
    PEN_TRY(PEN_NEW(d->arena, counts[2], &d->files));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == 1) PEN_TRY(pen_protobuf_name(&reader, &field, d->arena, &name));
        if (field.number != 2) continue;
        PEN_TRY(pen_protobuf_name(&reader, &field, d->arena, &d->files[d->file_count++]));
    }
    d->values = *start;
    PEN_TRY(pen_graph_create(d->arena, name, &d->graph));
    PEN_TRY(pen_arena_create_within(d->scratch, &d->node_scratch));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->inputs));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->outputs));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->output_names));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->numbers));
    return PEN_NEW(d->scratch, DECODE_ATTRIBUTES_LIMIT, &d->attributes);
}

static pen_status decode_next_node(part_decoder *d, const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field) {
    pen_arena *scratch = d->scratch;
    d->scratch = d->node_scratch;
    const pen_status status = decode_node(d, reader, field);
    d->scratch = scratch;
    pen_arena_reset(d->node_scratch);
    return status;
}

// Everything but what is inside values and nodes, which have been made: lists, order, kept, fed.
typedef struct decoded_rest {
    pen_part_list *lists;
    uint32_t *order;
    uint32_t *kept;
    pen_part_end *fed;
    uint32_t list_count, order_count, order_limit, kept_count, kept_limit, fed_count;
    uint32_t value_count;
} decoded_rest;

static pen_status decode_field(part_decoder *d, const pen_protobuf_reader *reader,
                               const pen_protobuf_field *field, decoded_rest *rest) {
    switch (field->number) {
    case 4:
        return decode_next_node(d, reader, field);
    case 5:
        return decode_list(reader, field, &rest->lists[rest->list_count++]);
    case 6:
        return decode_uints(reader, field, "nodes in order", rest->order_limit, rest->order,
                            &rest->order_count);
    case 7:
        return decode_uints(reader, field, "values to keep", rest->kept_limit, rest->kept,
                            &rest->kept_count);
    case 8:
        return decode_fed(reader, field, &rest->fed[rest->fed_count++]);
    case 9:
        return decode_uint(reader, field, PEN_VALUE_COUNT_LIMIT, "value_count", &rest->value_count);
    default:
        return PEN_OK;
    }
}

static pen_status decode_part(part_decoder *d, const void *bytes, size_t length,
                              pen_wired_part *part) {
    pen_protobuf_reader reader;
    uint32_t counts[DECODE_FIELDS];
    decoded_rest rest = {.value_count = UINT32_MAX};
    pen_protobuf_init(&reader, bytes, length);
    const pen_protobuf_reader start = reader;
    PEN_TRY(pen_protobuf_count(&start, DECODE_FIELDS, counts));
    PEN_TRY(decode_start(d, &start, counts));
    PEN_TRY(decode_count_scalars(&start, 6, PEN_PROTOBUF_VARINT, &rest.order_limit));
    PEN_TRY(decode_count_scalars(&start, 7, PEN_PROTOBUF_VARINT, &rest.kept_limit));
    PEN_TRY(PEN_NEW(d->arena, counts[5], &rest.lists));
    PEN_TRY(PEN_NEW(d->arena, rest.order_limit, &rest.order));
    PEN_TRY(PEN_NEW(d->arena, rest.kept_limit, &rest.kept));
    PEN_TRY(PEN_NEW(d->arena, counts[8], &rest.fed));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        PEN_TRY(decode_field(d, &reader, &field, &rest));
    }
    if (rest.value_count != counts[3]) {
        return pen_protobuf_error(&reader, "the part says that it has %u values, and has %u",
                                  rest.value_count, counts[3]);
    }
    PEN_TRY(decode_values_until(d, rest.value_count));
    PEN_TRY(pen_graph_verify(d->graph, &(pen_verify_options){.types = true}));
    const part_claims claims = {.graph = d->graph,
                                .lists = rest.lists,
                                .list_count = rest.list_count,
                                .order = rest.order,
                                .order_count = rest.order_count,
                                .kept = rest.kept,
                                .kept_count = rest.kept_count,
                                .fed = rest.fed,
                                .fed_count = rest.fed_count};
    return part_check(&claims, d->arena, d->scratch, part);
}

// Whatever the graph says against the bytes, they are at fault.
static pen_status decode_blame(pen_status status) {
    const pen_status_code code = pen_status_get_code(status);
    if (status == PEN_OK || code == PEN_CORRUPT || code == PEN_OUT_OF_MEMORY) return status;
    const pen_status blamed = pen_error(PEN_CORRUPT, "%s", pen_status_message(status));
    pen_status_ignore(status, "its message is passed on");
    return blamed;
}

pen_status pen_part_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                           const pen_wired_part **out_part) {
    if (byte_count > PEN_PART_BYTES_LIMIT) {
        return pen_error(PEN_CORRUPT, "a part of %llu bytes, expected at most %u",
                         (unsigned long long)byte_count, PEN_PART_BYTES_LIMIT);
    }
    part_decoder d = {.arena = arena};
    pen_wired_part *part;
    PEN_TRY(PEN_NEW(arena, 1, &part));
    PEN_TRY(pen_arena_create(&d.scratch));
    const pen_status status = decode_blame(decode_part(&d, bytes, (size_t)byte_count, part));
    pen_arena_destroy(d.scratch);
    PEN_TRY(pen_status_add_context(status, "while reading a part"));
    *out_part = part;
    return PEN_OK;
}
