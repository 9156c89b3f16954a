
#include "base/limits.h"
#include "base/name_map.h"
#include "graph/op.h"
#include "graph/wire/part_record.h"

typedef struct part_encoder {
    const pen_graph *graph;
    pen_arena *scratch;
    pen_name_map files;
    const char **file_names;
    uint32_t file_count;
    const bool *is_apart; // [value_count]
} part_encoder;

// Files are numbered as they come up.
static pen_status encode_source(part_encoder *e, const pen_source *source, bool *out_has_position,
                                part_position *out_position) {
    *out_has_position = source->file != NULL;
    if (source->file == NULL) return PEN_OK;
    uint32_t file = pen_name_map_find(&e->files, source->file);
    if (file == PEN_NAME_MAP_NONE) {
        file = e->file_count++;
        e->file_names[file] = source->file;
        PEN_TRY(pen_name_map_add(&e->files, source->file, file));
    }
    *out_position = (part_position){file, source->line, source->column, source->position};
    return PEN_OK;
}

// Large constants travel apart, as parameters do: then the part itself stays a small message.
static pen_status encode_value(part_encoder *e, uint32_t index, part_value *out_value) {
    const pen_value *value = pen_graph_value(e->graph, (pen_value_id){index});
    const bool is_constant = value->kind == PEN_VALUE_CONSTANT && !e->is_apart[index];
    const pen_value_kind kind = e->is_apart[index] ? PEN_VALUE_PARAMETER : value->kind;
    *out_value = (part_value){.name = value->name,
                              .kind = kind,
                              .element = pen_element_name(value->type.element),
                              .shape = value->type.shape,
                              .layout = value->layout,
                              .sharding = value->sharding,
                              .trainable = value->trainable,
                              .replaces = value->replaces,
                              .has_data = is_constant};
    out_value->has_contents = kind != PEN_VALUE_COMPUTED && !is_constant && value->data_bytes > 0;
    if (is_constant) {
        out_value->data = value->data;
        out_value->data_bytes = value->data_bytes;
    }
    PEN_TRY(encode_source(e, &value->source, &out_value->has_position, &out_value->position));
    if (kind == PEN_VALUE_COMPUTED) out_value->has_position = false; // that of its node
    return PEN_OK;
}

// A record leaves zeros out; a number is marked as given, so that it is written even then.
static part_attribute encode_attribute(const pen_attribute_schema *schema,
                                       const pen_attribute_value *value) {
    part_attribute attribute = {.name = schema->name, .kind = schema->kind};
    switch (schema->kind) {
    case PEN_ATTRIBUTE_INT:
        attribute.integer = value->integer;
        break;
    case PEN_ATTRIBUTE_FLOAT:
        attribute.has_number = true;
        attribute.number = value->number;
        break;
    case PEN_ATTRIBUTE_TEXT:
        attribute.text = value->text;
        break;
    case PEN_ATTRIBUTE_INTS:
        attribute.integers = value->integers;
        attribute.integer_count = value->count;
        break;
    case PEN_ATTRIBUTE_FLOATS:
        attribute.numbers = value->numbers;
        attribute.number_count = value->count;
        break;
    }
    return attribute;
}

// Only attributes that were given: defaults are the same on the other side.
static pen_status encode_node(part_encoder *e, uint32_t index, part_node *out_node) {
    const pen_node *node = pen_graph_node(e->graph, (pen_node_id){index});
    part_attribute *attributes;
    PEN_TRY(PEN_NEW(e->scratch, node->op->attribute_count, &attributes));
    *out_node = (part_node){.op = node->op->name,
                            .name = node->name,
                            .role = node->role,
                            .accumulates = node->accumulates,
                            .gradient_of = node->gradient_of,
                            .inputs = node->inputs,
                            .outputs = node->outputs,
                            .attributes = attributes,
                            .input_count = node->input_count,
                            .output_count = node->output_count};
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        if (!node->attributes[i].present) continue;
        attributes[out_node->attribute_count++] =
            encode_attribute(&node->op->attributes[i], &node->attributes[i]);
    }
    return encode_source(e, &node->source, &out_node->has_position, &out_node->position);
}

// Constants that steer shapes stay inside, however large: the part cannot be built without them.
pen_status pen_part_find_apart(const pen_graph *graph, pen_arena *arena,
                               const bool **out_is_apart) {
    const uint32_t value_count = pen_graph_value_count(graph);
    bool *is_apart;
    PEN_TRY(PEN_NEW(arena, value_count, &is_apart));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        is_apart[v] =
            value->kind == PEN_VALUE_CONSTANT && value->data_bytes > PEN_PART_CONSTANT_BYTES_LIMIT;
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) { // shapes depend on some
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count && i < 64; i++) {
            const bool steers = (node->op->constant_inputs >> i & 1) != 0;
            if (steers && pen_value_is(node->inputs[i])) is_apart[node->inputs[i].index] = false;
        }
    }
    *out_is_apart = is_apart;
    return PEN_OK;
}

// Ends of channels at inputs: those of others are known from transfer nodes.
static pen_status encode_fed(const part_encoder *e, const pen_wired_part *part,
                             part_record *record) {
    pen_part_end *fed;
    PEN_TRY(PEN_NEW(e->scratch, part->end_count, &fed));
    for (uint32_t i = 0; i < part->end_count; i++) {
        const pen_part_end *end = &part->ends[i];
        const bool is_input = pen_graph_value(e->graph, end->value)->kind == PEN_VALUE_INPUT;
        if (end->is_source || !is_input) continue; // what is sent may be an input, too
        fed[record->fed_count++] = *end;
    }
    record->fed = fed;
    return PEN_OK;
}

// A record borrows from the graph and copies nothing.
static pen_status encode_record(part_encoder *e, const pen_wired_part *part,
                                part_record *out_record) {
    const uint32_t value_count = pen_graph_value_count(e->graph);
    const uint32_t node_count = pen_graph_node_count(e->graph);
    part_value *values;
    part_node *nodes;
    pen_name_map_init(&e->files, e->scratch);
    PEN_TRY(PEN_NEW(e->scratch, (size_t)value_count + node_count, &e->file_names));
    PEN_TRY(PEN_NEW(e->scratch, value_count, &values));
    PEN_TRY(PEN_NEW(e->scratch, node_count, &nodes));
    PEN_TRY(pen_part_find_apart(e->graph, e->scratch, &e->is_apart));
    for (uint32_t v = 0; v < value_count; v++) {
        PEN_TRY(encode_value(e, v, &values[v]));
    }
    for (uint32_t n = 0; n < node_count; n++) {
        PEN_TRY(encode_node(e, n, &nodes[n]));
    }
    *out_record = (part_record){.name = pen_graph_name(e->graph),
                                .files = e->file_names,
                                .file_count = e->file_count,
                                .values = values,
                                .value_count = value_count,
                                .nodes = nodes,
                                .node_count = node_count,
                                .lists = part->part.lists,
                                .list_count = part->part.list_count,
                                .order = part->part.order,
                                .order_count = part->part.order_count,
                                .kept = part->part.kept,
                                .kept_count = part->part.kept_count,
                                .said_count = value_count,
                                .is_whole = true};
    return encode_fed(e, part, out_record);
}

static pen_status encode_part(const pen_wired_part *part, pen_arena *arena, pen_arena *scratch,
                              const void **out_bytes, uint64_t *out_byte_count) {
    part_encoder e = {.graph = part->part.graph, .scratch = scratch};
    part_record record;
    PEN_TRY(encode_record(&e, part, &record));
    const size_t length = pen_record_encode(&pen_part_record, &record, NULL, 0);
    if (length > PEN_PART_BYTES_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "a part of '%s' has %zu bytes without its parameters, at most %u can be "
                         "sent",
                         record.name, length, PEN_PART_BYTES_LIMIT);
    }
    return pen_record_encode_new(&pen_part_record, &record, arena, out_bytes, out_byte_count);
}

pen_status pen_part_encode(const pen_wired_part *part, pen_arena *arena, const void **out_bytes,
                           uint64_t *out_byte_count) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = encode_part(part, arena, scratch, out_bytes, out_byte_count);
    pen_arena_destroy(scratch);
    return status;
}
