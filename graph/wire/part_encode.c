#include <stdio.h>
#include <stdlib.h>

#include "base/format/protobuf_writer.h"
#include "base/name_map.h"
#include "graph/op.h"
#include "graph/wire/part_wire.h"

typedef struct part_encoder {
    const pen_wired_part *part;
    const pen_graph *graph;
    pen_name_map files;
    const char **file_names;
    uint32_t file_count;
    const bool *is_apart; // [value_count]
} part_encoder;

// What a message is written from.
typedef struct encode_item {
    const part_encoder *encoder;
    uint32_t index;
    const pen_attribute_schema *schema;
    const pen_attribute_value *attribute;
    const pen_source *source;
} encode_item;

// 0 is what a field that is left out means.
static void encode_number(pen_protobuf_writer *writer, uint32_t field, uint64_t number) {
    if (number != 0) pen_protobuf_write_int(writer, field, (int64_t)number);
}

static void encode_optional(pen_protobuf_writer *writer, uint32_t field, uint32_t index) {
    encode_number(writer, field, (uint32_t)(index + 1)); // none is UINT32_MAX
}

static void encode_position(pen_protobuf_writer *writer, const void *context) {
    const encode_item *item = context;
    const uint32_t file = pen_name_map_find(&item->encoder->files, item->source->file);
    encode_optional(writer, 1, file);
    encode_number(writer, 2, item->source->line);
    encode_number(writer, 3, item->source->column);
    encode_number(writer, 4, item->source->position);
}

static void encode_source(pen_protobuf_writer *writer, uint32_t field, const part_encoder *encoder,
                          const pen_source *source) {
    if (source->file == NULL) return;
    const encode_item item = {.encoder = encoder, .source = source};
    pen_protobuf_write_message(writer, field, encode_position, &item);
}

static void encode_value(pen_protobuf_writer *writer, const void *context) {
    const encode_item *item = context;
    const pen_value *value = pen_graph_value(item->encoder->graph, (pen_value_id){item->index});
    const bool is_apart = item->encoder->is_apart[item->index];
    const bool is_constant = value->kind == PEN_VALUE_CONSTANT && !is_apart;
    const pen_value_kind kind = is_apart ? PEN_VALUE_PARAMETER : value->kind;
    pen_protobuf_write_text(writer, 1, value->name);
    encode_number(writer, 2, (uint64_t)kind);
    pen_protobuf_write_text(writer, 3, pen_element_name(value->type.element));
    for (uint32_t d = 0; d < value->type.shape.rank; d++) {
        pen_protobuf_write_int(writer, 4, value->type.shape.dims[d]);
    }
    encode_number(writer, 5, value->layout);
    encode_number(writer, 6, (uint64_t)value->sharding);
    encode_number(writer, 7, value->trainable);
    encode_optional(writer, 8, value->replaces.index);
    encode_number(writer, 9, kind != PEN_VALUE_COMPUTED && !is_constant && value->data_bytes > 0);
    if (is_constant) pen_protobuf_write_bytes(writer, 10, value->data, value->data_bytes);
    if (kind != PEN_VALUE_COMPUTED) encode_source(writer, 11, item->encoder, &value->source);
}

static void encode_attribute(pen_protobuf_writer *writer, const void *context) {
    const encode_item *item = context;
    const pen_attribute_value *value = item->attribute;
    pen_protobuf_write_text(writer, 1, item->schema->name);
    encode_number(writer, 2, (uint64_t)item->schema->kind);
    switch (item->schema->kind) {
    case PEN_ATTRIBUTE_INT:
        encode_number(writer, 3, (uint64_t)value->integer);
        break;
    case PEN_ATTRIBUTE_FLOAT:
        pen_protobuf_write_double(writer, 4, value->number);
        break;
    case PEN_ATTRIBUTE_TEXT:
        pen_protobuf_write_text(writer, 5, value->text);
        break;
    case PEN_ATTRIBUTE_INTS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_protobuf_write_int(writer, 6, value->integers[i]);
        }
        break;
    case PEN_ATTRIBUTE_FLOATS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_protobuf_write_double(writer, 7, value->numbers[i]);
        }
        break;
    }
}

static void encode_node(pen_protobuf_writer *writer, const void *context) {
    const encode_item *item = context;
    const pen_node *node = pen_graph_node(item->encoder->graph, (pen_node_id){item->index});
    pen_protobuf_write_text(writer, 1, node->op->name);
    pen_protobuf_write_text(writer, 2, node->name);
    encode_number(writer, 3, (uint64_t)node->role);
    encode_number(writer, 4, node->accumulates);
    encode_optional(writer, 5, node->gradient_of.index);
    for (uint32_t i = 0; i < node->input_count; i++) {
        pen_protobuf_write_int(writer, 6, (uint32_t)(node->inputs[i].index + 1));
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        pen_protobuf_write_int(writer, 7, (uint32_t)(node->outputs[i].index + 1));
    }
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        if (!node->attributes[i].present) continue;
        const encode_item attribute = {.schema = &node->op->attributes[i],
                                       .attribute = &node->attributes[i]};
        pen_protobuf_write_message(writer, 8, encode_attribute, &attribute);
    }
    encode_source(writer, 9, item->encoder, &node->source);
}

static void encode_list(pen_protobuf_writer *writer, const void *context) {
    const pen_part_list *list = context;
    encode_number(writer, 1, (uint64_t)list->kind);
    encode_number(writer, 2, list->stage);
    encode_number(writer, 3, list->phase);
    encode_number(writer, 4, list->first);
    encode_number(writer, 5, list->end);
}

static void encode_fed(pen_protobuf_writer *writer, const void *context) {
    const pen_part_end *end = context;
    encode_number(writer, 1, end->channel);
    encode_number(writer, 2, end->value.index);
}

static bool encode_is_fed(const part_encoder *encoder, const pen_part_end *end) {
    return pen_graph_value(encoder->graph, end->value)->kind == PEN_VALUE_INPUT;
}

static void encode_part(pen_protobuf_writer *writer, const part_encoder *encoder) {
    const pen_wired_part *part = encoder->part;
    const uint32_t value_count = pen_graph_value_count(encoder->graph);
    pen_protobuf_write_text(writer, 1, pen_graph_name(encoder->graph));
    for (uint32_t f = 0; f < encoder->file_count; f++) {
        pen_protobuf_write_text(writer, 2, encoder->file_names[f]);
    }
    for (uint32_t v = 0; v < value_count; v++) {
        const encode_item item = {.encoder = encoder, .index = v};
        pen_protobuf_write_message(writer, 3, encode_value, &item);
    }
    for (uint32_t n = 0; n < pen_graph_node_count(encoder->graph); n++) {
        const encode_item item = {.encoder = encoder, .index = n};
        pen_protobuf_write_message(writer, 4, encode_node, &item);
    }
    for (uint32_t l = 0; l < part->part.list_count; l++) {
        pen_protobuf_write_message(writer, 5, encode_list, &part->part.lists[l]);
    }
    for (uint32_t p = 0; p < part->part.order_count; p++) {
        pen_protobuf_write_int(writer, 6, part->part.order[p].index);
    }
    for (uint32_t k = 0; k < part->part.kept_count; k++) {
        pen_protobuf_write_int(writer, 7, part->part.kept[k].index);
    }
    for (uint32_t e = 0; e < part->end_count; e++) {
        if (!encode_is_fed(encoder, &part->ends[e])) continue;
        pen_protobuf_write_message(writer, 8, encode_fed, &part->ends[e]);
    }
    pen_protobuf_write_int(writer, 9, value_count);
}

static pen_status encode_add_file(part_encoder *encoder, const pen_source *source) {
    if (source->file == NULL) return PEN_OK;
    if (pen_name_map_find(&encoder->files, source->file) != PEN_NAME_MAP_NONE) return PEN_OK;
    encoder->file_names[encoder->file_count] = source->file;
    return pen_name_map_add(&encoder->files, source->file, encoder->file_count++);
}

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

static pen_status encode_prepare(part_encoder *encoder, pen_arena *arena) {
    const uint32_t value_count = pen_graph_value_count(encoder->graph);
    const uint32_t node_count = pen_graph_node_count(encoder->graph);
    pen_name_map_init(&encoder->files, arena);
    PEN_TRY(PEN_NEW(arena, (size_t)value_count + node_count, &encoder->file_names));
    PEN_TRY(pen_part_find_apart(encoder->graph, arena, &encoder->is_apart));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(encoder->graph, (pen_value_id){v});
        PEN_TRY(encode_add_file(encoder, &value->source));
    }
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = pen_graph_node(encoder->graph, (pen_node_id){n});
        PEN_TRY(encode_add_file(encoder, &node->source));
    }
    return PEN_OK;
}

pen_status pen_part_encode(const pen_wired_part *part, pen_arena *arena, const void **out_bytes,
                           uint64_t *out_byte_count) {
    part_encoder encoder = {.part = part, .graph = part->part.graph};
    pen_protobuf_writer writer;
    char *bytes;
    PEN_TRY(encode_prepare(&encoder, arena));
    pen_protobuf_writer_init(&writer, NULL);
    encode_part(&writer, &encoder);
    const uint64_t length = writer.length;
    if (length > PEN_PART_BYTES_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "a part of '%s' has %llu bytes without its parameters, at most %u can be "
                         "sent",
                         pen_graph_name(encoder.graph), (unsigned long long)length,
                         PEN_PART_BYTES_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, length + 1, &bytes)); // a stream in memory ends its bytes with 0
    FILE *stream = fmemopen(bytes, length + 1, "w");
    if (stream == NULL) return pen_error_out_of_memory();
    pen_protobuf_writer_init(&writer, stream);
    encode_part(&writer, &encoder);
    pen_status status = pen_protobuf_writer_finish(&writer);
    if (fclose(stream) != 0 && status == PEN_OK) status = pen_error_out_of_memory();
    PEN_TRY(status);
    *out_bytes = bytes;
    *out_byte_count = length;
    return PEN_OK;
}

// ---- ends

pen_status pen_wired_part_make(const pen_cut *cut, uint32_t device, pen_arena *arena,
                               pen_wired_part *out_part) {
    pen_part_end *ends;
    PEN_TRY(PEN_NEW(arena, cut->channel_count, &ends));
    pen_wired_part part = {.part = cut->parts[device], .ends = ends};
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        const bool is_source = channel->source == device;
        if (!is_source && channel->target != device) continue;
        ends[part.end_count++] = (pen_part_end){
            .channel = c, .value = is_source ? channel->from : channel->to, .is_source = is_source};
    }
    *out_part = part;
    return PEN_OK;
}
