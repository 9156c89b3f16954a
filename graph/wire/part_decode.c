#include <string.h>

#include "base/limits.h"
#include "graph/op.h"
#include "graph/verify.h"
#include "graph/wire/part_check.h"
#include "graph/wire/part_record.h"

// A graph in the making. Values and nodes are made side by side, as they were: a node's outputs
// are the next values, and what it reads that is not computed stands before them.
typedef struct part_builder {
    const part_record *record;
    pen_arena *arena; // of the graph
    pen_graph *graph;
    const char **files;              // copied, as positions outlive the record
    const char **output_names;       // [PEN_NODE_ARITY_LIMIT], of the node at hand
    pen_attribute_given *attributes; // [attribute_limit]
    uint32_t attribute_limit;
} part_builder;

// An error in a value or node, with the place of its bytes.
#define part_error(item, format, ...)                                                              \
    pen_error(PEN_CORRUPT, "at byte %zu: " format, (item)->at, __VA_ARGS__)

static pen_status build_source(const part_builder *b, const part_position *position, size_t at,
                               pen_source *out_source) {
    if (position->file >= b->record->file_count) {
        return pen_error(PEN_CORRUPT, "at byte %zu: a position in file %u of %u", at,
                         position->file + 1, b->record->file_count);
    }
    *out_source = (pen_source){.file = b->files[position->file],
                               .line = position->line,
                               .column = position->column,
                               .position = position->position};
    return PEN_OK;
}

// ---- values

// Bytes of booleans are 0 or 1.
static bool build_is_boolean(const uint8_t *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] > 1) return false;
    }
    return true;
}

// What a value's kind asks of its contents. Those of a constant are copied.
static pen_status build_contents(const part_builder *b, const part_value *given, pen_value *value) {
    const bool is_persistent = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
    const uint64_t bytes = pen_tensor_type_bytes(&value->type);
    if (given->has_contents && !is_persistent) {
        return part_error(given, "%s '%s' has contents", pen_value_kind_name(value->kind),
                          value->name);
    }
    if (given->has_data && value->kind != PEN_VALUE_CONSTANT) {
        return part_error(given, "%s '%s' comes with its bytes", pen_value_kind_name(value->kind),
                          value->name);
    }
    if (is_persistent) value->data_bytes = given->has_contents ? bytes : 0;
    if (value->kind != PEN_VALUE_CONSTANT) return PEN_OK;
    if (given->data_bytes != bytes) {
        return part_error(given, "constant '%s' has %zu bytes, its type needs %llu", value->name,
                          given->data_bytes, (unsigned long long)bytes);
    }
    if (value->type.element == PEN_BOOL && !build_is_boolean(given->data, bytes)) {
        return part_error(given, "constant '%s' has truth values that are neither 0 nor 1",
                          value->name);
    }
    char *copy;
    PEN_TRY(PEN_NEW(b->arena, bytes + 1, &copy));
    if (bytes > 0) memcpy(copy, given->data, bytes);
    value->data = copy;
    value->data_bytes = bytes;
    return PEN_OK;
}

static pen_status build_type(const part_value *given, pen_tensor_type *out_type) {
    out_type->shape = given->shape;
    PEN_TRY(pen_element_find(given->element, &out_type->element));
    PEN_TRY(pen_status_add_context(pen_tensor_type_check(out_type), "as the type of '%s'",
                                   given->name));
    if (out_type->element != PEN_ELEMENT_UNKNOWN) return PEN_OK;
    return part_error(given, "value '%s' has no element type", given->name);
}

// The next value, which may be of any kind but that of a node's output.
static pen_status build_next_value(const part_builder *b) {
    const uint32_t index = pen_graph_value_count(b->graph);
    if (index >= b->record->value_count) {
        return pen_error(PEN_CORRUPT, "a node names value %u, which is not there", index);
    }
    const part_value *given = &b->record->values[index];
    pen_value value = {.name = given->name,
                       .kind = given->kind,
                       .layout = given->layout,
                       .sharding = given->sharding,
                       .trainable = given->trainable,
                       .producer = PEN_NODE_NONE,
                       .replaces = PEN_VALUE_NONE};
    pen_value_id made;
    if (given->kind == PEN_VALUE_COMPUTED) {
        return part_error(given, "value '%s' is read, or missing, before it is made", given->name);
    }
    if (pen_value_is(given->replaces)) {
        return part_error(given, "%s '%s' replaces another value", pen_value_kind_name(given->kind),
                          given->name);
    }
    PEN_TRY(build_type(given, &value.type));
    PEN_TRY(build_contents(b, given, &value));
    if (given->has_position) {
        PEN_TRY(build_source(b, &given->position, given->at, &value.source));
    }
    return pen_graph_add_value(b->graph, &value, &made);
}

static pen_status build_values_until(const part_builder *b, uint32_t count) {
    while (pen_graph_value_count(b->graph) < count) {
        PEN_TRY(build_next_value(b));
    }
    return PEN_OK;
}

// ---- nodes

// Brings what the node reads, and says what its outputs are called.
static pen_status build_surroundings(part_builder *b, const part_node *node, const pen_op *op) {
    uint32_t first_output = PEN_ID_NONE, count = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t index = node->inputs[i].index;
        if (index != PEN_ID_NONE && index >= count) count = index + 1;
    }
    for (uint32_t i = node->output_count; i-- > 0;) {
        if (pen_value_is(node->outputs[i])) first_output = node->outputs[i].index;
    }
    if (first_output != PEN_ID_NONE && first_output < count) {
        return part_error(node, "node '%s' reads a value that is made by it or later", node->name);
    }
    PEN_TRY(build_values_until(b, first_output == PEN_ID_NONE ? count : first_output));
    uint32_t next = pen_graph_value_count(b->graph);
    for (uint32_t i = 0; i < node->output_count; i++) {
        b->output_names[i] = NULL;
        if (!pen_value_is(node->outputs[i])) {
            if (i >= op->output_min) continue;
            return part_error(node, "node '%s' lacks its output %u", node->name, i);
        }
        if (node->outputs[i].index != next || next >= b->record->value_count) {
            return part_error(node, "node '%s' makes value %u, the next is %u of %u", node->name,
                              node->outputs[i].index, next, b->record->value_count);
        }
        const part_value *output = &b->record->values[next++];
        if (output->kind != PEN_VALUE_COMPUTED) {
            return part_error(node, "node '%s' makes '%s', which is a %s", node->name, output->name,
                              pen_value_kind_name(output->kind));
        }
        b->output_names[i] = output->name;
    }
    return PEN_OK;
}

// Holds what was made against what was said of it.
static pen_status build_output(const part_builder *b, pen_value_id made) {
    const part_value *given = &b->record->values[made.index];
    const pen_value *value = pen_graph_value(b->graph, made);
    pen_value said = {.name = given->name, .kind = given->kind};
    pen_source source;
    PEN_TRY(build_type(given, &said.type));
    PEN_TRY(build_contents(b, given, &said));
    if (given->has_position) PEN_TRY(build_source(b, &given->position, given->at, &source));
    if (strcmp(value->name, given->name) != 0) {
        return part_error(given, "two values are called '%s'", given->name);
    }
    if (!pen_tensor_type_equal(&value->type, &said.type)) {
        char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
        return part_error(given, "value '%s' is %s, but its node makes %s", value->name,
                          pen_tensor_type_format(&said.type, wanted),
                          pen_tensor_type_format(&value->type, found));
    }
    pen_graph_set_layout(b->graph, made, given->layout);
    if (given->sharding != PEN_SHARDING_WHOLE) {
        return part_error(given, "value '%s' is spread over devices", value->name);
    }
    if (!pen_value_is(given->replaces)) return PEN_OK;
    if (given->replaces.index >= pen_graph_value_count(b->graph)) {
        return part_error(given, "value '%s' replaces value %u, which is not there", value->name,
                          given->replaces.index);
    }
    pen_graph_set_replaces(b->graph, made, given->replaces);
    return PEN_OK;
}

static pen_attribute_given build_attribute(const part_attribute *given) {
    const bool is_real = given->kind == PEN_ATTRIBUTE_FLOATS;
    const bool is_list = is_real || given->kind == PEN_ATTRIBUTE_INTS;
    pen_attribute_given attribute = {
        .name = given->name,
        .kind = given->kind,
        .value = {.integer = given->integer, .number = given->number, .text = given->text}};
    if (!is_list) return attribute;
    attribute.value.count = is_real ? given->number_count : given->integer_count;
    attribute.value.numbers = is_real ? given->numbers : NULL;
    attribute.value.integers = is_real ? NULL : given->integers;
    return attribute;
}

// The graph infers types anew, so that a part cannot claim types that its nodes do not give.
static pen_status build_node(part_builder *b, const part_node *node) {
    pen_node_spec spec = {.name = node->name,
                          .role = node->role,
                          .gradient_of = node->gradient_of,
                          .inputs = node->inputs,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .output_names = b->output_names,
                          .attributes = b->attributes,
                          .attribute_count = node->attribute_count};
    pen_node_id made;
    PEN_TRY(pen_op_find(node->op, &spec.op));
    if (node->has_position) PEN_TRY(build_source(b, &node->position, node->at, &spec.source));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        b->attributes[i] = build_attribute(&node->attributes[i]);
    }
    PEN_TRY(build_surroundings(b, node, spec.op));
    PEN_TRY(pen_graph_add_node(b->graph, &spec, &made));
    if (strcmp(pen_node_name(b->graph, made), node->name) != 0) {
        return part_error(node, "two nodes are called '%s'", node->name);
    }
    pen_graph_set_accumulates(b->graph, made, node->accumulates);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) PEN_TRY(build_output(b, node->outputs[i]));
    }
    return PEN_OK;
}

// ---- all

static pen_status build_begin(part_builder *b, pen_arena *scratch) {
    const part_record *record = b->record;
    for (uint32_t n = 0; n < record->node_count; n++) {
        const uint32_t count = record->nodes[n].attribute_count;
        if (count > b->attribute_limit) b->attribute_limit = count;
    }
    PEN_TRY(PEN_NEW(b->arena, record->file_count, &b->files));
    for (uint32_t f = 0; f < record->file_count; f++) {
        const char *file = record->files[f];
        PEN_TRY(pen_arena_copy_text(b->arena, file, strlen(file), &b->files[f]));
    }
    PEN_TRY(PEN_NEW(scratch, PEN_NODE_ARITY_LIMIT, &b->output_names));
    PEN_TRY(PEN_NEW(scratch, b->attribute_limit, &b->attributes));
    return pen_graph_create(b->arena, record->name, &b->graph);
}

static pen_status decode_part(const void *bytes, size_t length, pen_arena *arena,
                              pen_arena *scratch, pen_wired_part *part) {
    part_record record = {0};
    part_builder b = {.record = &record, .arena = arena};
    PEN_TRY(pen_record_decode(&pen_part_record, bytes, length, scratch, &record));
    if (!record.is_whole || record.said_count != record.value_count) {
        return pen_error(PEN_CORRUPT, "the part says that it has %u values, and has %u",
                         record.said_count, record.value_count);
    }
    PEN_TRY(build_begin(&b, scratch));
    for (uint32_t n = 0; n < record.node_count; n++) {
        PEN_TRY(build_node(&b, &record.nodes[n]));
    }
    PEN_TRY(build_values_until(&b, record.value_count));
    PEN_TRY(pen_graph_verify(b.graph, &(pen_verify_options){.types = true}));
    return pen_part_check(&record, b.graph, arena, scratch, part);
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
    pen_arena *scratch;
    pen_wired_part *part;
    PEN_TRY(PEN_NEW(arena, 1, &part));
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status =
        decode_blame(decode_part(bytes, (size_t)byte_count, arena, scratch, part));
    pen_arena_destroy(scratch);
    PEN_TRY(pen_status_add_context(status, "while reading a part"));
    *out_part = part;
    return PEN_OK;
}
