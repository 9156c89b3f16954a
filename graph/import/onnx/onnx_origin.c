#include "graph/import/onnx/onnx_origin.h"

#include <string.h>

#include "base/format/quantity.h"
#include "base/limits.h"
#include "base/reserve.h"

#define ORIGIN_SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define ORIGIN_KIND "pkg.torch.export.graph_signature.InputSpec.kind"
#define ORIGIN_CALL "pkg.torch.onnx.fx_node"
#define ORIGIN_FOLDED "pkg.onnxscript.optimizer.folded_from"

// What stands before `separator`; the rest stays in *rest. All of it where there is none.
static pen_onnx_text origin_cut(pen_onnx_text *rest, char separator) {
    const char *found = rest->length == 0 ? NULL : memchr(rest->bytes, separator, rest->length);
    const size_t length = found == NULL ? rest->length : (size_t)(found - rest->bytes);
    const pen_onnx_text part = {rest->bytes, length};
    const size_t passed = found == NULL ? length : length + 1;
    *rest = (pen_onnx_text){rest->bytes + passed, rest->length - passed};
    return part;
}

static bool origin_has(pen_onnx_text text, const char *word) {
    const size_t length = strlen(word);
    for (size_t i = 0; i + length <= text.length; i++) {
        if (memcmp(text.bytes + i, word, length) == 0) return true;
    }
    return false;
}

// What stands between the next two single quotes; false: there are none.
static bool origin_quoted(pen_onnx_text *rest, pen_onnx_text *out_text) {
    origin_cut(rest, '\'');
    if (rest->length == 0) return false;
    *out_text = origin_cut(rest, '\'');
    return out_text->length > 0 && out_text->length <= PEN_NAME_BYTES_LIMIT;
}

// "… target=torch.ops.aten.embedding.default](args = (%p_tok_weight, %x, 0), kwargs = {})"
void pen_onnx_origin_read_padding(const pen_onnx_entry *entry, bool *out_has_padding,
                                  int64_t *out_row) {
    static const char call[] = "aten.embedding.default](args = (";
    if (!pen_onnx_text_is(entry->key, ORIGIN_CALL)) return;
    pen_onnx_text rest = entry->value;
    while (rest.length > 0) {
        origin_cut(&rest, '.');
        const size_t length = sizeof call - 1;
        if (rest.length < length || memcmp(rest.bytes, call, length) != 0) continue;
        rest = (pen_onnx_text){rest.bytes + length, rest.length - length};
        pen_onnx_text arguments = origin_cut(&rest, ')');
        origin_cut(&arguments, ',');
        origin_cut(&arguments, ',');
        char number[24];
        pen_onnx_text third = origin_cut(&arguments, ',');
        if (third.length == 0 || third.length >= sizeof number) return;
        memcpy(number, third.bytes + 1, third.length - 1); // behind a space
        number[third.length - 1] = '\0';
        if (pen_integer_parse(number, out_row)) *out_has_padding = *out_row >= 0;
        return;
    }
}

// ---- what the model had

pen_onnx_target *pen_onnx_origins_target(const pen_onnx_origins *origins, const char *name) {
    const uint32_t index = pen_name_map_find(&origins->target_index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &origins->targets[index];
}

const pen_onnx_computed *pen_onnx_origins_computed(const pen_onnx_origins *origins,
                                                   const char *name) {
    const uint32_t index = pen_name_map_find(&origins->computed_index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &origins->computed[index];
}

// The one of that name, added if it is not there.
static pen_status origin_target(pen_onnx_origins *origins, const char *name,
                                pen_onnx_target **out_target) {
    *out_target = pen_onnx_origins_target(origins, name);
    if (*out_target != NULL) return PEN_OK;
    PEN_TRY(PEN_RESERVE(origins->arena, &origins->targets, origins->target_count,
                        &origins->target_capacity, 32));
    PEN_TRY(pen_name_map_add(&origins->target_index, name, origins->target_count));
    *out_target = &origins->targets[origins->target_count++];
    **out_target = (pen_onnx_target){.name = name};
    return PEN_OK;
}

// "p_fc_weight: PARAMETER target='fc.weight'", or what a run gives:
// "add: BUFFER_MUTATION target='bn.running_mean'".
static pen_status origin_read_line(pen_onnx_origins *origins, pen_onnx_text line) {
    const bool is_parameter = origin_has(line, ": PARAMETER target='");
    const bool is_updated = origin_has(line, ": BUFFER_MUTATION target='");
    pen_onnx_text quoted;
    const char *name;
    pen_onnx_target *target;
    if (!origin_has(line, " target='") || !origin_quoted(&line, &quoted)) return PEN_OK;
    PEN_TRY(pen_arena_copy_text(origins->arena, quoted.bytes, quoted.length, &name));
    PEN_TRY(origin_target(origins, name, &target));
    target->is_parameter = target->is_parameter || is_parameter;
    target->is_updated = target->is_updated || is_updated;
    return PEN_OK;
}

static pen_status origin_read_signature(pen_onnx_origins *origins, pen_onnx_text text) {
    while (text.length > 0) {
        PEN_TRY(origin_read_line(origins, origin_cut(&text, '\n')));
    }
    origins->is_signed = origins->target_count > 0;
    origins->is_marked = origins->is_signed;
    return PEN_OK;
}

// ---- what was computed

// "['blocks.0.qkv.weight', 'val_3']"; the signature has been read.
static pen_status origin_read_folded(pen_onnx_origins *origins, const char *name,
                                     pen_onnx_text sources) {
    pen_onnx_computed computed = {.name = name};
    pen_onnx_text quoted;
    if (pen_name_map_find(&origins->computed_index, name) != PEN_NAME_MAP_NONE) return PEN_OK;
    while (origin_quoted(&sources, &quoted)) {
        char source[PEN_NAME_BYTES_LIMIT + 1];
        memcpy(source, quoted.bytes, quoted.length);
        source[quoted.length] = '\0';
        pen_onnx_target *target = pen_onnx_origins_target(origins, source);
        computed.source_count += 1;
        if (target == NULL) continue;
        target->folded_into = name;
        if (!target->is_parameter) continue;
        if (computed.parameter_count == 0) computed.parameter = target->name;
        computed.parameter_count += 1;
    }
    PEN_TRY(PEN_RESERVE(origins->arena, &origins->computed, origins->computed_count,
                        &origins->computed_capacity, 32));
    PEN_TRY(pen_name_map_add(&origins->computed_index, name, origins->computed_count));
    origins->computed[origins->computed_count++] = computed;
    return PEN_OK;
}

// An entry of metadata of the value `name`.
static pen_status origin_read_mark(pen_onnx_origins *origins, const char *name,
                                   const pen_protobuf_reader *message) {
    pen_onnx_entry entry;
    pen_onnx_target *target;
    PEN_TRY(pen_onnx_entry_read(message, &entry));
    if (pen_onnx_text_is(entry.key, ORIGIN_FOLDED))
        return origin_read_folded(origins, name, entry.value);
    if (!pen_onnx_text_is(entry.key, ORIGIN_KIND) || origins->is_signed) return PEN_OK;
    PEN_TRY(origin_target(origins, name, &target));
    target->is_parameter = pen_onnx_text_is(entry.value, "PARAMETER");
    origins->is_marked = origins->is_marked || target->is_parameter;
    return PEN_OK;
}

// A ValueInfoProto: the name, then the metadata, in whatever order they stand.
static pen_status origin_read_value(pen_onnx_origins *origins, const pen_protobuf_reader *message) {
    enum { VALUE_NAME = 1, VALUE_METADATA = 4 };
    const char *name = "";
    pen_protobuf_reader reader = *message;
    pen_protobuf_field field = {.number = VALUE_NAME};
    while (field.number != 0) {
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number != VALUE_NAME) continue;
        PEN_TRY(pen_protobuf_name(&reader, &field, origins->arena, &name));
    }
    reader = *message;
    while (true) {
        pen_protobuf_reader entry;
        bool more;
        PEN_TRY(pen_protobuf_next_message(&reader, VALUE_METADATA, &entry, &more));
        if (!more) return PEN_OK;
        PEN_TRY(origin_read_mark(origins, name, &entry));
    }
}

static pen_status origin_read_graph_entry(pen_onnx_origins *origins,
                                          const pen_protobuf_reader *message) {
    pen_onnx_entry entry;
    PEN_TRY(pen_onnx_entry_read(message, &entry));
    if (!pen_onnx_text_is(entry.key, ORIGIN_SIGNATURE)) return PEN_OK;
    return origin_read_signature(origins, entry.value);
}

static pen_status origin_read_each(pen_onnx_origins *origins, const pen_protobuf_reader *graph,
                                   uint32_t number,
                                   pen_status (*read)(pen_onnx_origins *origins,
                                                      const pen_protobuf_reader *message)) {
    pen_protobuf_reader reader = *graph;
    while (true) {
        pen_protobuf_reader message;
        bool more;
        PEN_TRY(pen_protobuf_next_message(&reader, number, &message, &more));
        if (!more) return PEN_OK;
        PEN_TRY(read(origins, &message));
    }
}

// The signature first: what it lists tells the parameters among what others were computed from.
pen_status pen_onnx_origins_read(const pen_protobuf_reader *graph, pen_arena *arena,
                                 pen_onnx_origins *out_origins) {
    enum { GRAPH_VALUE = 13, GRAPH_METADATA = 16 };
    pen_onnx_origins origins = {.arena = arena};
    pen_name_map_init(&origins.target_index, arena);
    pen_name_map_init(&origins.computed_index, arena);
    PEN_TRY(origin_read_each(&origins, graph, GRAPH_METADATA, origin_read_graph_entry));
    PEN_TRY(origin_read_each(&origins, graph, GRAPH_VALUE, origin_read_value));
    *out_origins = origins;
    return PEN_OK;
}
