#include "graph/import/tensorflow/graphdef_import.h"

#include <string.h>

#include "base/pattern.h"
#include "base/text.h"
#include "graph/import/tensorflow/graphdef_coverage.h"
#include "graph/import/tensorflow/graphdef_draft.h"
#include "graph/import/tensorflow/graphdef_tensor.h"
#include "graph/op.h"

// Sizes of axis `i` in the trials, where the model leaves it open: primes, none of them usual.
static const int64_t import_sizes[PEN_GRAPHDEF_TRIALS][PEN_RANK_LIMIT] = {
    {3, 17, 23, 31, 41, 47, 59, 67},
    {5, 19, 29, 37, 43, 53, 61, 71},
};

typedef struct importer {
    const pen_graphdef_request *request;
    const pen_graphdef_flat *flat;
    pen_graphdef_order order;
    pen_arena *arena;
    const char *path;
    pen_graph *graphs[PEN_GRAPHDEF_COPIES];
    pen_pattern *unfreeze; // or NULL
    uint32_t unfrozen_count;
    uint32_t *result_counts;        // [flat's count]
    pen_graphdef_result ***results; // [flat's count][result_counts]
    bool *is_statistic;             // [flat's count]
    uint64_t splat_bytes;
    pen_graphdef_origin *origin;
    pen_graphdef_pins pins;
} importer;

// ---- preparations

static uint32_t import_read(const importer *import, const pen_graphdef_input *input) {
    return pen_graphdef_flat_find(import->flat, input->node);
}

static void import_count_result(importer *import, const pen_graphdef_input *input) {
    const uint32_t n = import_read(import, input);
    if (n == UINT32_MAX || import->result_counts[n] > input->output) return;
    import->result_counts[n] = input->output + 1;
}

static pen_status import_make_results(importer *import) {
    const pen_graphdef_request *request = import->request;
    for (uint32_t i = 0; i < import->order.count; i++) {
        const pen_graphdef_node *node = &import->flat->nodes[import->order.nodes[i]];
        for (uint32_t k = 0; k < pen_graphdef_data_inputs(node); k++) {
            import_count_result(import, &node->inputs[k]);
        }
    }
    for (uint32_t i = 0; i < request->output_count; i++) {
        import_count_result(import, &request->outputs[i].at);
    }
    for (uint32_t i = 0; i < import->order.count; i++) {
        const uint32_t n = import->order.nodes[i];
        pen_graphdef_result *made;
        const uint32_t count = import->result_counts[n];
        PEN_TRY(PEN_NEW(import->arena, count, &made));
        PEN_TRY(PEN_NEW(import->arena, count, &import->results[n]));
        for (uint32_t k = 0; k < count; k++) {
            made[k] = (pen_graphdef_result){.name = import->flat->nodes[n].name,
                                            .plain = PEN_GRAPHDEF_VALUE_NONE,
                                            .first = PEN_GRAPHDEF_VALUE_NONE};
            if (k > 0) {
                PEN_TRY(pen_arena_format(import->arena, &made[k].name, "%s:%u",
                                         import->flat->nodes[n].name, k));
            }
            import->results[n][k] = &made[k];
        }
    }
    return PEN_OK;
}

static bool import_passes_on(const pen_graphdef_node *node) {
    static const char *const passing[] = {"Identity", "ReadVariableOp", "IdentityN", "Cast",
                                          "StopGradient"};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        if (strcmp(node->op, passing[i]) == 0) return true;
    }
    return false;
}

// Follows an operand to the constant or variable it is, and marks that.
static void import_mark_statistic(importer *import, const pen_graphdef_input *input) {
    for (uint32_t steps = 0; steps < import->flat->count; steps++) {
        const uint32_t n = import_read(import, input);
        if (n == UINT32_MAX) return;
        const pen_graphdef_node *node = &import->flat->nodes[n];
        const uint32_t next = strcmp(node->op, "IdentityN") == 0 ? input->output : 0;
        if (!import_passes_on(node) || next >= node->input_count) {
            import->is_statistic[n] = true;
            return;
        }
        input = &node->inputs[next];
    }
}

static void import_mark_statistics(importer *import) {
    for (uint32_t i = 0; i < import->order.count; i++) {
        const pen_graphdef_node *node = &import->flat->nodes[import->order.nodes[i]];
        const pen_graphdef_mapping *mapping = pen_graphdef_mapping_find(node->op);
        if (mapping == NULL || mapping->statistics == 0) continue;
        for (uint32_t k = 0; k < pen_graphdef_data_inputs(node) && k < 32; k++) {
            if ((mapping->statistics >> k & 1) != 0) {
                import_mark_statistic(import, &node->inputs[k]);
            }
        }
    }
}

// ---- given values

static pen_status import_add_value(importer *import, const pen_value *spec,
                                   pen_graphdef_value *out_value) {
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(pen_graph_add_own_value(import->graphs[copy], spec, &out_value->in[copy]));
    }
    return PEN_OK;
}

static pen_status import_note_ints(importer *import, const pen_tensor_type *type, const void *data,
                                   pen_graphdef_result *result) {
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

static pen_status import_constant(importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->flat->nodes[n];
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
                                     &import->splat_bytes, &spec.data));
    spec.data_bytes = pen_tensor_type_bytes(&spec.type);
    const bool can_train = pen_element_is_float(spec.type.element) && spec.type.shape.rank > 0 &&
                           !import->is_statistic[n];
    if (can_train && import->unfreeze != NULL &&
        pen_pattern_matches(import->unfreeze, node->name)) {
        spec.kind = PEN_VALUE_PARAMETER;
        spec.trainable = true;
        import->unfrozen_count++;
        import->origin->value_names[n] = node->name;
    }
    PEN_TRY(import_note_ints(import, &spec.type, spec.data, result));
    return import_add_value(import, &spec, &result->plain);
}

static pen_status import_variable(importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->flat->nodes[n];
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
    if (spec.kind == PEN_VALUE_PARAMETER && import->unfreeze != NULL &&
        pen_pattern_matches(import->unfreeze, contents.name)) {
        spec.trainable = true;
        import->unfrozen_count++;
    }
    pen_graphdef_result *result = import->results[n][0];
    result->is_made = true;
    PEN_TRY(import_add_value(import, &spec, &result->plain));
    import->origin->value_names[n] = pen_value_name(import->graphs[0], result->plain.in[0]);
    import->origin->data_types[n] = pen_graphdef_data_type(contents.type.element);
    return import_note_ints(import, &spec.type, spec.data, result);
}

static pen_status import_input_type(importer *import, const char *name, pen_tensor_type *type,
                                    pen_tensor_type *out_trials) {
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        out_trials[trial] = *type;
        for (uint32_t d = 0; d < type->shape.rank; d++) {
            if (type->shape.dims[d] >= 0) continue;
            out_trials[trial].shape.dims[d] = import_sizes[trial][d];
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

static pen_status import_input(importer *import, uint32_t n, const char *name) {
    const pen_graphdef_node *node = &import->flat->nodes[n];
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
    pen_graphdef_result *result = import->results[n][0];
    result->is_made = true;
    PEN_TRY(import_input_type(import, spec.name, &spec.type, trials));
    PEN_TRY(pen_graph_add_value(import->graphs[0], &spec, &result->plain.in[0]));
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        spec.type = trials[trial];
        PEN_TRY(
            pen_graph_add_value(import->graphs[trial + 1], &spec, &result->plain.in[trial + 1]));
    }
    import->origin->value_names[n] = spec.name;
    return PEN_OK;
}

// ---- nodes

// The element type of a node's first output, if an attribute says so.
static pen_element_type import_output_element(const pen_graphdef_node *node) {
    static const char *const names[] = {"out_type", "output_type", "DstT", "dtype",
                                        "Tparams",  "T",           "Tidx"};
    const bool asks_shape = strcmp(node->op, "Shape") == 0 || strcmp(node->op, "Size") == 0 ||
                            strcmp(node->op, "Rank") == 0;
    if (asks_shape) return pen_graphdef_type(node, "out_type", PEN_INT32); // T is what is asked
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const pen_element_type element = pen_graphdef_type(node, names[i], PEN_ELEMENT_UNKNOWN);
        if (element != PEN_ELEMENT_UNKNOWN) return element;
    }
    return PEN_INT32;
}

static pen_status import_evaluate(importer *import, pen_graphdef_draft *draft) {
    pen_graphdef_result *result = draft->results[0];
    if (draft->mapping->evaluate == NULL) return PEN_OK;
    if (!pen_element_is_integer(import_output_element(draft->node))) return PEN_OK;
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        pen_graphdef_ints_known *ints;
        PEN_TRY(PEN_NEW(import->arena, 1, &ints));
        PEN_TRY(draft->mapping->evaluate(draft, trial, ints));
        if (ints->is_known) result->ints[trial] = ints;
    }
    return PEN_OK;
}

// Where integers are known, the copy gets them as a constant.
static pen_status import_set_ints(importer *import, pen_graphdef_draft *draft, bool all) {
    pen_graphdef_result *result = draft->results[0];
    const pen_element_type element = import_output_element(draft->node);
    for (uint32_t copy = all ? 0 : 1; copy < PEN_GRAPHDEF_COPIES; copy++) {
        const pen_graphdef_ints_known *ints = result->ints[copy == 0 ? 0 : copy - 1];
        if (ints == NULL) continue;
        PEN_TRY(pen_graphdef_ints_constant(import->graphs[copy], draft->node->name, ints, element,
                                           &result->plain.in[copy]));
    }
    result->is_made = true;
    return PEN_OK;
}

static pen_status import_operand(importer *import, const pen_graphdef_input *input,
                                 pen_graphdef_result **out_operand) {
    const uint32_t read = import_read(import, input);
    const bool is_there = read != UINT32_MAX && input->output < import->result_counts[read] &&
                          import->results[read] != NULL;
    if (is_there && import->results[read][input->output]->is_made) {
        *out_operand = import->results[read][input->output];
        return PEN_OK;
    }
    return pen_error(
        PEN_UNSUPPORTED, "it reads output %u of '%.100s' (%.100s), which Penstock has not",
        input->output, input->node, read != UINT32_MAX ? import->flat->nodes[read].op : "no node");
}

static pen_status import_operands(importer *import, uint32_t n, pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    uint32_t first = 0, count = pen_graphdef_data_inputs(node);
    if (import->order.merged[n] != UINT32_MAX) {
        first = import->order.merged[n];
        count = 1;
    } else if (pen_graphdef_reads_first(node) && count > 1) {
        count = 1;
    }
    PEN_TRY(PEN_NEW(import->arena, count, &draft->operands));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(import_operand(import, &node->inputs[first + i], &draft->operands[i]));
    }
    draft->operand_count = count;
    return PEN_OK;
}

static pen_status import_convert(importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->flat->nodes[n];
    pen_graphdef_draft draft = {.arena = import->arena,
                                .pins = import->request->options->use_device_strings ? &import->pins
                                                                                     : NULL,
                                .path = import->path,
                                .node = node,
                                .mapping = pen_graphdef_mapping_find(node->op),
                                .result_count = import->result_counts[n],
                                .results = import->results[n]};
    memcpy(draft.graphs, import->graphs, sizeof draft.graphs);
    PEN_TRY(import_operands(import, n, &draft));
    PEN_TRY(import_evaluate(import, &draft));
    if (pen_graphdef_ints_agree(draft.results[0])) return import_set_ints(import, &draft, true);
    PEN_TRY(draft.mapping->convert(&draft));
    return draft.mapping->evaluate != NULL && draft.results == import->results[n]
               ? import_set_ints(import, &draft, false)
               : PEN_OK;
}

static const pen_graphdef_port *import_find_port(const importer *import, uint32_t n) {
    for (uint32_t i = 0; i < import->request->input_count; i++) {
        if (import_read(import, &import->request->inputs[i].at) == n) {
            return &import->request->inputs[i];
        }
    }
    return NULL;
}

static pen_status import_node(importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->flat->nodes[n];
    const pen_graphdef_port *port = import_find_port(import, n);
    if (import->results[n][0]->is_made) return PEN_OK; // an input
    if (port != NULL || strcmp(node->op, "Placeholder") == 0) {
        return import_input(import, n, port != NULL ? port->name : NULL);
    }
    if (strcmp(node->op, "Const") == 0) return import_constant(import, n);
    if (pen_graphdef_is_variable(node)) return import_variable(import, n);
    return import_convert(import, n);
}

static pen_status import_at(importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->flat->nodes[n];
    return pen_status_add_context(import_node(import, n), "in node %u, %.100s '%.100s'",
                                  node->position, node->op, node->name);
}

// Inputs come first, in the order of the signature, or of the file.
static pen_status import_inputs(importer *import) {
    for (uint32_t i = 0; i < import->request->input_count; i++) {
        const uint32_t n = import_read(import, &import->request->inputs[i].at);
        if (n != UINT32_MAX && import->results[n] != NULL) PEN_TRY(import_at(import, n));
    }
    if (import->request->input_count > 0) return PEN_OK;
    for (uint32_t n = 0; n < import->flat->count; n++) {
        const bool is_input = strcmp(import->flat->nodes[n].op, "Placeholder") == 0;
        if (is_input && import->results[n] != NULL) PEN_TRY(import_at(import, n));
    }
    return PEN_OK;
}

// ---- outputs

static pen_status import_output_type(const importer *import, const pen_graphdef_value *value,
                                     pen_tensor_type *out_type) {
    const pen_graphdef_draft draft = {
        .graphs = {import->graphs[0], import->graphs[1], import->graphs[2]}};
    const pen_tensor_type *type = pen_graphdef_value_type(&draft, value, 0);
    if (type == NULL) return PEN_OK;
    pen_shape shape;
    const pen_status status = pen_graphdef_value_shape(&draft, value, &shape);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the type stays unknown");
        return PEN_OK;
    }
    *out_type = (pen_tensor_type){type->element, shape};
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (shape.dims[d] >= 0) continue;
        out_type->shape.dims[d] = PEN_DIMENSION_UNKNOWN;
        const bool is_batch = d == 0 && type->shape.dims[0] == import_sizes[0][0];
        if (is_batch) {
            PEN_TRY(pen_graph_add_symbol(import->graphs[0], "batch", &out_type->shape.dims[0]));
        }
    }
    return PEN_OK;
}

static pen_status import_output(importer *import, uint32_t index, pen_tensor_type *out_type) {
    const pen_graphdef_port *port = &import->request->outputs[index];
    const uint32_t n = import_read(import, &port->at);
    pen_graphdef_result *operand, **operands = &operand;
    PEN_TRY(import_operand(import, &port->at, &operand));
    pen_graphdef_draft draft = {.arena = import->arena,
                                .path = import->path,
                                .node = &import->flat->nodes[n],
                                .operand_count = 1,
                                .operands = operands};
    memcpy(draft.graphs, import->graphs, sizeof draft.graphs);
    pen_graphdef_value value;
    PEN_TRY(pen_graphdef_operand(&draft, 0, &value));
    pen_graph *graph = import->graphs[0];
    if (pen_graph_value(graph, value.in[0])->kind != PEN_VALUE_COMPUTED) {
        PEN_TRY(pen_graphdef_emit_simple(&draft, "identity", "output", value, NULL, &value));
    }
    const char *name = port->name;
    if (name == NULL && port->at.output == 0) name = port->at.node;
    if (name == NULL) name = operand->name;
    if (strcmp(pen_value_name(graph, value.in[0]), name) != 0) {
        PEN_TRY(pen_graph_rename_value(graph, value.in[0], name));
    }
    PEN_TRY(import_output_type(import, &value, out_type));
    return pen_graph_add_output(graph, value.in[0]);
}

static pen_status import_outputs(importer *import, pen_model *model) {
    pen_tensor_type *types;
    PEN_TRY(PEN_NEW(import->arena, import->request->output_count, &types));
    for (uint32_t i = 0; i < import->request->output_count; i++) {
        PEN_TRY(pen_status_add_context(import_output(import, i, &types[i]),
                                       "as output %u, '%.100s'", i,
                                       import->request->outputs[i].at.node));
    }
    model->output_types = types;
    return PEN_OK;
}

// ---- all of it

static pen_status import_init(importer *import) {
    const uint32_t count = import->flat->count;
    PEN_TRY(PEN_NEW(import->arena, count, &import->result_counts));
    PEN_TRY(PEN_NEW(import->arena, count, &import->results));
    PEN_TRY(PEN_NEW(import->arena, count, &import->is_statistic));
    PEN_TRY(PEN_NEW(import->arena, 1, &import->origin));
    PEN_TRY(PEN_NEW(import->arena, count, &import->origin->value_names));
    PEN_TRY(PEN_NEW(import->arena, count, &import->origin->data_types));
    for (uint32_t i = 0; i < import->order.count; i++) {
        import->result_counts[import->order.nodes[i]] = 1;
    }
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(pen_graph_create(import->arena, "tensorflow", &import->graphs[copy]));
    }
    return PEN_OK;
}

static pen_status import_all(importer *import, pen_model *model) {
    PEN_TRY(import_make_results(import));
    import_mark_statistics(import);
    PEN_TRY(import_inputs(import));
    for (uint32_t i = 0; i < import->order.count; i++) {
        PEN_TRY(import_at(import, import->order.nodes[i]));
    }
    PEN_TRY(import_outputs(import, model));
    if (import->unfreeze == NULL || import->unfrozen_count > 0) return PEN_OK;
    return pen_error(PEN_NOT_FOUND,
                     "unfreeze: no constant of floats matches '%s'; `penstock inspect --nodes` "
                     "shows what there is",
                     import->request->options->unfreeze);
}

static void import_batch(const importer *import, pen_model *model) {
    if (pen_graph_input_count(import->graphs[0]) == 0) return;
    const pen_value_id first = pen_graph_input(import->graphs[0], 0);
    const pen_shape *shape = &pen_value_type(import->graphs[0], first)->shape;
    if (shape->rank == 0) return;
    model->batch_symbol = pen_graph_symbol_name(import->graphs[0], shape->dims[0]);
}

pen_status pen_graphdef_import(const pen_graphdef_request *request, pen_model *model) {
    importer import = {
        .request = request, .flat = request->flat, .arena = model->arena, .path = model->path};
    pen_graphdef_input *outputs;
    if (request->output_count == 0) return pen_error(PEN_INVALID_INPUT, "the model has no outputs");
    PEN_TRY(PEN_NEW(model->arena, request->output_count, &outputs));
    for (uint32_t i = 0; i < request->output_count; i++) {
        outputs[i] = request->outputs[i].at;
    }
    PEN_TRY(pen_graphdef_resolve(request->flat, outputs, request->output_count, &import.order));
    PEN_TRY(pen_graphdef_coverage_check(request, &import.order, model->arena));
    PEN_TRY(import_init(&import));
    if (request->options->unfreeze != NULL) {
        PEN_TRY(pen_status_add_context(
            pen_pattern_create(request->options->unfreeze, &import.unfreeze), "in unfreeze"));
    }
    const pen_status status = import_all(&import, model);
    pen_pattern_destroy(import.unfreeze);
    PEN_TRY(status);
    model->graph = import.graphs[0];
    import_batch(&import, model);
    *import.origin = (pen_graphdef_origin){.flat = request->flat,
                                           .order = import.order,
                                           .inputs = request->inputs,
                                           .input_count = request->input_count,
                                           .outputs = request->outputs,
                                           .output_count = request->output_count,
                                           .producer = request->flat->source->producer,
                                           .value_names = import.origin->value_names,
                                           .data_types = import.origin->data_types};
    model->tensorflow = import.origin;
    model->pins = import.pins.pins;
    model->pin_count = import.pins.count;
    return PEN_OK;
}
