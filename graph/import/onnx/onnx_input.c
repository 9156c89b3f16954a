// Inputs of an ONNX graph, as inputs of ours or as constants that the caller has given.

#include <string.h>

#include "graph/import/onnx/onnx_importer.h"
#include "graph/import/tensor_elements.h"

static pen_status input_type(pen_onnx_importer *import, const pen_onnx_value *input,
                             pen_tensor_type *out_type) {
    pen_tensor_type type = {
        .element = pen_onnx_widened(pen_onnx_element_type(input->data_type), import->model->widens),
        .shape = input->shape};
    for (uint32_t d = 0; d < type.shape.rank; d++) {
        if (type.shape.dims[d] >= 0) continue;
        const char *symbol = input->symbols[d];
        // "?" is no name: each is a size of its own
        if (symbol == NULL || symbol[0] == '\0' || strcmp(symbol, "?") == 0) {
            PEN_TRY(pen_arena_format(import->arena, &symbol, "%s_%u", input->name, d));
        }
        PEN_TRY(pen_graph_add_symbol(import->graph, symbol, &type.shape.dims[d]));
    }
    *out_type = type;
    return PEN_OK;
}

static pen_status input_make_fixed(pen_onnx_importer *import, pen_onnx_name *entry) {
    const pen_import_fixed_input *fixed = entry->fixed;
    if (fixed->type.element != pen_onnx_element_type(entry->input->data_type)) {
        return pen_error(PEN_INVALID_INPUT, "input '%s' is of type %s, the contents given are %s",
                         entry->name, pen_onnx_data_type_name(entry->input->data_type),
                         pen_element_name(fixed->type.element));
    }
    entry->made = true;
    return pen_graph_constant(import->graph, entry->name, &fixed->type, fixed->data, &entry->value);
}

// Data are int64 where they are whole, so narrower inputs are cast behind the input itself.
pen_status pen_onnx_importer_make_input(pen_onnx_importer *import, pen_onnx_name *entry) {
    if (entry->fixed != NULL && (!entry->fixed->where_needed || entry->read_as_constant)) {
        return input_make_fixed(import, entry);
    }
    pen_value spec = {.name = entry->name, .kind = PEN_VALUE_INPUT, .source.file = import->path};
    PEN_TRY(input_type(import, entry->input, &spec.type));
    entry->made = true;
    const pen_tensor_type type = spec.type;
    const bool is_wide = pen_element_is_float(type.element) || type.element == PEN_INT64;
    if (is_wide || !import->options->widens_inputs) {
        return pen_graph_add_value(import->graph, &spec, &entry->value);
    }
    spec.type.element = PEN_INT64;
    PEN_TRY(pen_graph_add_value(import->graph, &spec, &entry->value));
    const pen_onnx_extra cast = {
        "cast", "narrowed", PEN_INPUTS(entry->value),
        PEN_WITH(pen_attribute_text("to", pen_element_name(type.element)))};
    const pen_onnx_node node = {.name = entry->name};
    PEN_TRY(pen_onnx_importer_emit(import, &node, &cast, &entry->value));
    pen_graph_set_type(import->graph, entry->value, &type);
    return PEN_OK;
}

// ---- initializers

// What its readers make of an initializer: a state, a trained parameter, or a constant.
static pen_status input_decide_kind(pen_onnx_importer *import, const pen_onnx_name *entry,
                                    pen_value *spec) {
    const bool is_float = pen_element_is_float(spec->type.element);
    spec->kind = PEN_VALUE_CONSTANT;
    if (is_float && entry->read_as_state) {
        spec->kind = PEN_VALUE_STATE;
    } else if (is_float && entry->read_as_weight) {
        PEN_TRY(pen_onnx_weights_decide(import->weights, spec->name, &spec->type, entry->readings,
                                        &spec->trainable));
        if (spec->trainable) spec->kind = PEN_VALUE_PARAMETER;
    }
    return PEN_OK;
}

// An initializer becomes one value, and two where one reader trains it and another needs a
// constant. Weights stay of the type that they lie in; constants are read while this is built.
pen_status pen_onnx_importer_make_tensor(pen_onnx_importer *import, pen_onnx_name *entry) {
    const bool is_read = entry->read_as_weight || entry->read_as_constant || entry->read_as_state;
    if (!is_read) return PEN_OK;
    const pen_tensor_type *stored = &entry->tensor->type;
    pen_value spec = {.name = entry->name, .type = *stored, .source.file = import->path};
    spec.type.element = pen_onnx_widened(stored->element, import->model->widens);
    PEN_TRY(pen_tensor_type_check(&spec.type));
    spec.data_bytes = pen_tensor_type_bytes(&spec.type);
    PEN_TRY(pen_onnx_importer_prefixed(import, entry->name, &spec.name));
    PEN_TRY(pen_onnx_tensor_data(entry->tensor, import->files, import->arena, &spec.data));
    PEN_TRY(input_decide_kind(import, entry, &spec));
    const void *constant = spec.data;
    if (spec.kind == PEN_VALUE_CONSTANT || entry->read_as_constant) {
        PEN_TRY(pen_tensor_convert(stored, spec.type.element, import->arena, &constant));
    }
    if (spec.kind == PEN_VALUE_CONSTANT) {
        spec.data = constant;
    } else if (stored->element != spec.type.element) {
        spec.stored = stored->element;
    }
    PEN_TRY(pen_graph_add_value(import->graph, &spec, &entry->value));
    entry->made = true;
    if (spec.kind == PEN_VALUE_CONSTANT || !entry->read_as_constant) return PEN_OK;
    // read both as a weight and where only a constant will do: the two part ways
    const char *name;
    PEN_TRY(pen_arena_format(import->arena, &name, "%s/constant", spec.name));
    return pen_graph_constant(import->graph, name, &spec.type, constant, &entry->constant);
}
