#include <string.h>

#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_importer.h"
#include "graph/import/tensorflow/graphdef_tensor.h"

// Sizes of axis `i` in the trials, where the model leaves it open: primes, none of them usual.
static const int64_t given_sizes[PEN_GRAPHDEF_TRIALS][PEN_RANK_LIMIT] = {
    {3, 17, 23, 31, 41, 47, 59, 67},
    {5, 19, 29, 37, 43, 53, 61, 71},
};

int64_t pen_graphdef_trial_batch(uint32_t trial) {
    return given_sizes[trial][0];
}

static pen_status import_add_value(pen_graphdef_importer *import, const pen_value *spec,
                                   pen_graphdef_value *out_value) {
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(pen_graph_add_own_value(import->graphs[copy], spec, &out_value->in[copy]));
    }
    return PEN_OK;
}

// Small integers are noted, since TensorFlow gives shapes and axes as operands.
static pen_status import_note_ints(pen_graphdef_importer *import, const pen_tensor_type *type,
                                   const void *data, pen_graphdef_result *result) {
    const bool has_ints = pen_element_is_integer(type->element) || type->element == PEN_BOOL;
    if (!has_ints || type->shape.rank > 1) return PEN_OK;
    const int64_t count = pen_shape_element_count(&type->shape);
    if (count > PEN_GRAPHDEF_INTS_LIMIT) return PEN_OK;
    pen_graphdef_ints_known *ints;
    PEN_TRY(PEN_NEW(import->arena, 1, &ints));
    const size_t size = pen_element_bytes(type->element);
    for (int64_t i = 0; i < count; i++) {
        int64_t integer = 0;
        memcpy(&integer, (const uint8_t *)data + (size_t)i * size, size);
        const unsigned shift = 64 - 8 * (unsigned)size;
        const bool is_signed = pen_element_is_signed(type->element);
        if (is_signed) integer = (int64_t)((uint64_t)integer << shift) >> shift;
        ints->integers[i] = integer;
    }
    ints->is_known = true;
    ints->is_scalar = type->shape.rank == 0;
    ints->count = (uint32_t)count;
    result->ints[0] = result->ints[1] = ints;
    return PEN_OK;
}

// Whether the user wants what is called so trained; it is counted.
static bool import_unfreezes(pen_graphdef_importer *import, const char *name) {
    const pen_pattern *unfreeze = import->totals->unfreeze;
    if (unfreeze == NULL || !pen_pattern_matches(unfreeze, name)) return false;
    import->totals->unfrozen_count++;
    return true;
}

// A frozen graph has weights as constants: those that the job names can be trained again.
pen_status pen_graphdef_import_constant(pen_graphdef_importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->block->flat->nodes[n];
    const pen_graphdef_attribute *value = pen_graphdef_attribute_find(node, "value");
    pen_graphdef_result *result = import->results[n][0];
    int64_t data_type;
    pen_value spec = {.name = node->name,
                      .kind = PEN_VALUE_CONSTANT,
                      .source = {.file = import->path, .position = node->position}};
    if (value == NULL || value->kind != PEN_GRAPHDEF_TENSOR) {
        return pen_error(PEN_INVALID_INPUT, "it has no value");
    }
    result->is_made = true;
    PEN_TRY(pen_graphdef_tensor_type(&value->message, &spec.type, &data_type));
    if (spec.type.element == PEN_ELEMENT_UNKNOWN) return PEN_OK; // said by who reads it
    PEN_TRY(pen_graphdef_tensor_data(&value->message, &spec.type, import->arena,
                                     &import->totals->splat_bytes, &spec.data));
    spec.data_bytes = pen_tensor_type_bytes(&spec.type);
    const bool can_train = pen_element_is_float(spec.type.element) && spec.type.shape.rank > 0 &&
                           !import->is_statistic[n];
    if (can_train && import_unfreezes(import, node->name)) {
        spec.kind = PEN_VALUE_PARAMETER;
        spec.trainable = true;
        if (!import->is_inner) import->totals->origin->value_names[n] = node->name;
    }
    if (import->is_statistic[n] && !import->is_inner &&
        import->request->options->train_batch_norm) {
        spec.kind = PEN_VALUE_STATE;
        import->totals->origin->value_names[n] = node->name;
    }
    PEN_TRY(import_note_ints(import, &spec.type, spec.data, result));
    return import_add_value(import, &spec, &result->plain);
}

// Moments of batch normalization are states, other floats are parameters.
pen_status pen_graphdef_import_variable(pen_graphdef_importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->block->flat->nodes[n];
    const pen_graphdef_request *request = import->request;
    pen_graphdef_contents contents = {.name = node->name};
    if (request->find_variable != NULL) {
        PEN_TRY(request->find_variable(request->variable_context, node, &contents));
    }
    if (contents.data == NULL) {
        return pen_error(
            PEN_INVALID_INPUT,
            "variable '%.100s' has no contents: give a SavedModel whose variables were "
            "saved, or a graph that was frozen",
            contents.name);
    }
    const bool is_float = pen_element_is_float(contents.type.element);
    pen_value spec = {.name = contents.name,
                      .type = contents.type,
                      .kind = !is_float                 ? PEN_VALUE_CONSTANT
                              : import->is_statistic[n] ? PEN_VALUE_STATE
                                                        : PEN_VALUE_PARAMETER,
                      .data = contents.data,
                      .data_bytes = pen_tensor_type_bytes(&contents.type),
                      .source = {.file = import->path, .position = node->position}};
    spec.trainable = spec.kind == PEN_VALUE_PARAMETER && !contents.is_frozen;
    if (spec.kind == PEN_VALUE_PARAMETER && import_unfreezes(import, contents.name)) {
        spec.trainable = true;
    }
    pen_graphdef_result *result = import->results[n][0];
    result->is_made = true;
    PEN_TRY(import_add_value(import, &spec, &result->plain));
    if (!import->is_inner)
        import->totals->origin->value_names[n] =
            pen_value_name(import->graphs[0], result->plain.in[0]);
    import->totals->origin->data_types[n] = pen_graphdef_data_type(contents.type.element);
    return import_note_ints(import, &spec.type, spec.data, result);
}

static pen_status import_input_type(pen_graphdef_importer *import, const char *name,
                                    pen_tensor_type *type, pen_tensor_type *out_trials) {
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        out_trials[trial] = *type;
        for (uint32_t d = 0; d < type->shape.rank; d++) {
            if (type->shape.dims[d] >= 0) continue;
            out_trials[trial].shape.dims[d] = given_sizes[trial][d];
        }
        PEN_TRY(pen_tensor_type_check(&out_trials[trial]));
    }
    for (uint32_t d = 0; d < type->shape.rank; d++) {
        const char *symbol = "batch";
        if (type->shape.dims[d] >= 0) continue;
        if (d > 0) PEN_TRY(pen_arena_format(import->arena, &symbol, "%s_%u", name, d));
        PEN_TRY(pen_graph_add_symbol(import->graphs[0], symbol, &type->shape.dims[d]));
    }
    return PEN_OK;
}

// Data sets give integers as int64: so does the graph's input, whatever TensorFlow's is.
static pen_status import_narrow(pen_graphdef_importer *import, uint32_t n, pen_element_type element,
                                pen_graphdef_value *value) {
    const pen_graphdef_value wide = *value;
    pen_graphdef_draft draft = {
        .arena = import->arena, .path = import->path, .node = &import->block->flat->nodes[n]};
    memcpy(draft.graphs, import->graphs, sizeof draft.graphs);
    return pen_graphdef_cast(&draft, "narrow", wide, element, value);
}

// Narrow integers come in as int64, which our data reader gives, and are cast behind the input.
pen_status pen_graphdef_import_input(pen_graphdef_importer *import, uint32_t n, const char *name) {
    const pen_graphdef_node *node = &import->block->flat->nodes[n];
    const pen_graphdef_attribute *shape = pen_graphdef_attribute_find(node, "shape");
    pen_value spec = {.name = name != NULL ? name : node->name,
                      .kind = PEN_VALUE_INPUT,
                      .source = {.file = import->path, .position = node->position}};
    bool is_known = false;
    pen_tensor_type trials[PEN_GRAPHDEF_TRIALS];
    if (shape != NULL && shape->kind == PEN_GRAPHDEF_SHAPE) {
        PEN_TRY(pen_graphdef_shape_read(&shape->message, &spec.type.shape, &is_known));
    }
    spec.type.element = pen_graphdef_type(node, "dtype", PEN_ELEMENT_UNKNOWN);
    if (!is_known) {
        return pen_error(PEN_UNSUPPORTED,
                         "input '%.100s' has an unknown number of dimensions; expected a shape",
                         spec.name);
    }
    const pen_element_type element = spec.type.element;
    const bool is_narrow =
        pen_element_is_integer(element) && pen_element_is_signed(element) && element != PEN_INT64;
    if (is_narrow) spec.type.element = PEN_INT64;
    pen_graphdef_result *result = import->results[n][0];
    result->is_made = true;
    PEN_TRY(import_input_type(import, spec.name, &spec.type, trials));
    PEN_TRY(pen_graph_add_value(import->graphs[0], &spec, &result->plain.in[0]));
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        spec.type = trials[trial];
        PEN_TRY(
            pen_graph_add_value(import->graphs[trial + 1], &spec, &result->plain.in[trial + 1]));
    }
    if (!import->is_inner) import->totals->origin->value_names[n] = spec.name;
    return is_narrow ? import_narrow(import, n, element, &result->plain) : PEN_OK;
}
