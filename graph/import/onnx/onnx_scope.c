#include "graph/import/onnx/onnx_importer.h"

pen_onnx_name *pen_onnx_importer_find_here(const pen_onnx_importer *import, const char *name) {
    const uint32_t index = pen_name_map_find(&import->index, name);
    if (index == PEN_NAME_MAP_NONE) return NULL;
    const uint32_t initializer = import->names[index].stands_for;
    return &import->names[initializer > 0 ? initializer - 1 : index];
}

pen_onnx_name *pen_onnx_importer_find(const pen_onnx_importer *import, const char *name) {
    for (const pen_onnx_importer *scope = import; scope != NULL; scope = scope->parent) {
        pen_onnx_name *found = pen_onnx_importer_find_here(scope, name);
        if (found != NULL) return found;
    }
    return NULL;
}

pen_status pen_onnx_importer_add(pen_onnx_importer *import, const char *name,
                                 pen_onnx_name **out_name) {
    if (pen_name_map_find(&import->index, name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "value '%s' is made twice", name);
    }
    PEN_ASSERT(import->name_count < import->name_capacity);
    PEN_TRY(pen_name_map_add(&import->index, name, import->name_count));
    pen_onnx_name *entry = &import->names[import->name_count++];
    *entry = (pen_onnx_name){.name = name, .value = PEN_VALUE_NONE, .constant = PEN_VALUE_NONE};
    *out_name = entry;
    return PEN_OK;
}

pen_status pen_onnx_importer_prefixed(const pen_onnx_importer *import, const char *name,
                                      const char **out_name) {
    *out_name = name;
    if (import->prefix == NULL || name[0] == '\0') return PEN_OK;
    return pen_arena_format(import->arena, out_name, "%s/%s", import->prefix, name);
}

pen_status pen_onnx_importer_read(const pen_onnx_importer *import, const pen_onnx_node *node,
                                  uint32_t input, const pen_onnx_name **out_name) {
    if (input >= node->input_count || node->inputs[input][0] == '\0') {
        return pen_error(PEN_INVALID_INPUT, "input %u is left out", input);
    }
    const pen_onnx_name *read = pen_onnx_importer_find(import, node->inputs[input]);
    if (read == NULL || !read->made) {
        return pen_error(PEN_INVALID_INPUT,
                         "it reads '%s', which no node before it and no initializer makes",
                         node->inputs[input]);
    }
    *out_name = read;
    return PEN_OK;
}

pen_status pen_onnx_importer_bind(pen_onnx_importer *import, const char *name,
                                  const pen_onnx_name *meaning) {
    pen_onnx_name *entry = NULL;
    if (name == NULL || name[0] == '\0') return PEN_OK;
    PEN_TRY(pen_onnx_importer_add(import, name, &entry));
    const char *own = entry->name;
    *entry = *meaning;
    entry->name = own;
    entry->tensor = NULL; // not an initializer of this scope
    entry->input = NULL;
    entry->made = true;
    return PEN_OK;
}

pen_status pen_onnx_importer_bind_value(pen_onnx_importer *import, const char *name,
                                        pen_value_id value) {
    const pen_onnx_name meaning = {.value = value, .constant = PEN_VALUE_NONE};
    return pen_value_is(value) ? pen_onnx_importer_bind(import, name, &meaning) : PEN_OK;
}

pen_status pen_onnx_importer_name(const pen_onnx_importer *import, const pen_onnx_node *node,
                                  const char **out_name) {
    const char *name = node->name;
    if (name[0] == '\0') {
        PEN_TRY(pen_arena_format(import->arena, &name, "%s_%u", node->op_type, node->position));
    }
    return pen_onnx_importer_prefixed(import, name, out_name);
}

pen_status pen_onnx_importer_emit(pen_onnx_importer *import, const pen_onnx_node *node,
                                  const pen_onnx_extra *extra, pen_value_id *out_value) {
    const char *name;
    PEN_TRY(pen_onnx_importer_name(import, node, &name));
    PEN_TRY(pen_arena_format(import->arena, &name, "%s/%s", name, extra->suffix));
    pen_node_spec spec = pen_node_spec_make(extra->op_name, name);
    spec.source = (pen_source){.file = import->path, .position = node->position};
    pen_node_spec_fill(&spec, extra->inputs, extra->attributes);
    return pen_graph_add_simple(import->graph, &spec, out_value);
}
