#include "graph/import/export_contents.h"

#include <string.h>

#include "base/integer.h"

const char *const pen_export_types_names[] = {[PEN_EXPORT_TYPES_AUTO] = "auto",
                                              [PEN_EXPORT_TYPES_FLOAT32] = "float32",
                                              [PEN_EXPORT_TYPES_OWN] = "own",
                                              [PEN_EXPORT_TYPES_OWN + 1] = NULL};

const void *pen_export_contents_find(const pen_export_contents *contents, const pen_graph *graph,
                                     pen_value_id value) {
    if (contents->find == NULL) return NULL;
    if (pen_graph_value(graph, value)->kind == PEN_VALUE_CONSTANT) return NULL;
    return contents->find(contents->context, graph, value);
}

pen_export_tensor pen_export_contents_tensor(const pen_export_contents *contents,
                                             const pen_graph *graph, pen_value_id id) {
    const pen_value *value = pen_graph_value(graph, id);
    const pen_element_type stored = pen_value_stored(value);
    pen_export_tensor tensor = {.type = value->type,
                                .data = pen_export_contents_find(contents, graph, id),
                                .from = value->type.element};
    if (tensor.data == NULL) {
        tensor.data = value->data;
        tensor.from = stored;
    }
    if (contents->keeps_halves && pen_element_is_half(stored)) tensor.type.element = stored;
    return tensor;
}

void pen_export_tensor_copy(const pen_export_tensor *tensor, uint64_t first, void *out,
                            uint64_t bytes) {
    const pen_element_type element = tensor->type.element;
    const size_t width = pen_element_bytes(element);
    if (tensor->data == NULL) {
        memset(out, 0, bytes);
        return;
    }
    pen_element_convert(tensor->from, tensor->data, (int64_t)(first / width),
                        (int64_t)(bytes / width), element, out);
}

pen_status pen_export_tensor_write(const pen_export_tensor *tensor, pen_file *file) {
    uint64_t piece[512];
    const uint64_t length = pen_tensor_type_bytes(&tensor->type);
    if (tensor->data != NULL && tensor->from == tensor->type.element) {
        return pen_file_write(file, tensor->data, length);
    }
    for (uint64_t first = 0; first < length; first += sizeof piece) {
        const uint64_t bytes = pen_min_u64(length - first, sizeof piece);
        pen_export_tensor_copy(tensor, first, piece, bytes);
        PEN_TRY(pen_file_write(file, piece, bytes));
    }
    return PEN_OK;
}
