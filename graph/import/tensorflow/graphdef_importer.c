#include "graph/import/tensorflow/graphdef_importer.h"

#include <string.h>

#include "base/pattern.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_coverage.h"
#include "graph/import/tensorflow/graphdef_frames.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/import/tensorflow/ops/graphdef_norm.h"
#include "graph/op.h"

// ---- preparations

static uint32_t import_read(const pen_graphdef_importer *import, const pen_graphdef_input *input) {
    return pen_graphdef_flat_find(import->block->flat, input->node);
}

static void import_count_result(pen_graphdef_importer *import, const pen_graphdef_input *input) {
    const uint32_t n = import_read(import, input);
    if (n == UINT32_MAX || import->result_counts[n] > input->output) return;
    import->result_counts[n] = input->output + 1;
}

static void import_count_results(pen_graphdef_importer *import) {
    const pen_graphdef_block *block = import->block;
    for (uint32_t i = 0; i < block->order.count; i++) {
        const pen_graphdef_node *node = &block->flat->nodes[block->order.nodes[i]];
        import->result_counts[block->order.nodes[i]] = 1;
        for (uint32_t k = 0; k < pen_graphdef_data_inputs(node); k++) {
            import_count_result(import, &node->inputs[k]);
        }
    }
    for (uint32_t i = 0; i < block->output_count; i++) {
        import_count_result(import, &block->outputs[i]);
    }
    for (uint32_t a = 0; a < block->argument_count; a++) { // those that nobody reads, too
        import->result_counts[block->arguments[a]] = 1;
    }
}

// The name of a node in the graph.
static pen_status import_name(const pen_graphdef_importer *import, uint32_t n,
                              const char **out_name) {
    const char *name = import->block->flat->nodes[n].name;
    const size_t shared = import->block->shared_bytes;
    *out_name = name;
    if (!import->is_inner) return PEN_OK;
    const bool is_kept = import->is_kept[n];
    const bool shares = strncmp(name, import->block->shared_name, shared) == 0;
    return pen_arena_format(import->arena, out_name, "%s/%s",
                            is_kept ? import->prefix_kept : import->prefix,
                            shares ? name + shared : name);
}

pen_status pen_graphdef_importer_renew(pen_graphdef_importer *import, uint32_t n) {
    pen_graphdef_result *made;
    const uint32_t count = import->result_counts[n];
    const char *name;
    PEN_TRY(import_name(import, n, &name));
    PEN_TRY(PEN_NEW(import->arena, count, &made));
    PEN_TRY(PEN_NEW(import->arena, count, &import->results[n]));
    for (uint32_t k = 0; k < count; k++) {
        made[k] = (pen_graphdef_result){
            .name = name, .plain = PEN_GRAPHDEF_VALUE_NONE, .first = PEN_GRAPHDEF_VALUE_NONE};
        if (k > 0) PEN_TRY(pen_arena_format(import->arena, &made[k].name, "%s:%u", name, k));
        import->results[n][k] = &made[k];
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
static void import_mark_statistic(pen_graphdef_importer *import, const pen_graphdef_input *input) {
    for (uint32_t steps = 0; steps < import->block->flat->count; steps++) {
        const uint32_t n = import_read(import, input);
        if (n == UINT32_MAX) return;
        const pen_graphdef_node *node = &import->block->flat->nodes[n];
        const uint32_t next = strcmp(node->op, "IdentityN") == 0 ? input->output : 0;
        if (!import_passes_on(node) || next >= node->input_count) {
            import->is_statistic[n] = true;
            return;
        }
        input = &node->inputs[next];
    }
}

static void import_mark_statistics(pen_graphdef_importer *import) {
    for (uint32_t i = 0; i < import->block->order.count; i++) {
        const pen_graphdef_node *node = &import->block->flat->nodes[import->block->order.nodes[i]];
        const pen_graphdef_mapping *mapping = pen_graphdef_mapping_find(node->op);
        pen_graphdef_norm norm;
        if (import->request->options->train_batch_norm &&
            pen_graphdef_norm_match(import->block, import->block->order.nodes[i], &norm)) {
            import->is_statistic[norm.mean.node] = import->is_statistic[norm.variance.node] = true;
        }
        if (mapping == NULL || mapping->statistics == 0) continue;
        for (uint32_t k = 0; k < pen_graphdef_data_inputs(node) && k < 32; k++) {
            if ((mapping->statistics >> k & 1) != 0) {
                import_mark_statistic(import, &node->inputs[k]);
            }
        }
    }
}

// ---- nodes

// The element type of a node's first output, if an attribute says so.
static pen_element_type import_output_element(const pen_graphdef_mapping *mapping,
                                              const pen_graphdef_node *node) {
    static const char *const names[] = {"out_type", "output_type", "DstT", "dtype",
                                        "Tparams",  "T",           "Tidx"};
    const bool asks_shape = strcmp(node->op, "Shape") == 0 || strcmp(node->op, "Size") == 0 ||
                            strcmp(node->op, "Rank") == 0;
    if (mapping->is_truth) return PEN_BOOL;
    if (asks_shape) return pen_graphdef_type(node, "out_type", PEN_INT32); // T is what is asked
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const pen_element_type element = pen_graphdef_type(node, names[i], PEN_ELEMENT_UNKNOWN);
        if (element != PEN_ELEMENT_UNKNOWN) return element;
    }
    return PEN_INT32;
}

static pen_status import_evaluate(pen_graphdef_importer *import, pen_graphdef_draft *draft) {
    pen_graphdef_result *result = draft->results[0];
    if (draft->mapping->evaluate == NULL) return PEN_OK;
    const pen_element_type element = import_output_element(draft->mapping, draft->node);
    if (!pen_element_is_integer(element) && element != PEN_BOOL) return PEN_OK;
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        pen_graphdef_ints_known *ints;
        PEN_TRY(PEN_NEW(import->arena, 1, &ints));
        PEN_TRY(draft->mapping->evaluate(&(pen_graphdef_evaluation){draft, trial, ints}));
        if (ints->is_known) result->ints[trial] = ints;
    }
    return PEN_OK;
}

// Where integers are known, the copy gets them as a constant.
static pen_status import_set_ints(pen_graphdef_importer *import, pen_graphdef_draft *draft,
                                  bool all) {
    pen_graphdef_result *result = draft->results[0];
    const pen_element_type element = import_output_element(draft->mapping, draft->node);
    for (uint32_t copy = all ? 0 : 1; copy < PEN_GRAPHDEF_COPIES; copy++) {
        const pen_graphdef_ints_known *ints = result->ints[copy == 0 ? 0 : copy - 1];
        if (ints == NULL) continue;
        PEN_TRY(pen_graphdef_ints_constant(import->graphs[copy], draft->node->name, ints, element,
                                           &result->plain.in[copy]));
    }
    result->is_made = true;
    return PEN_OK;
}

pen_status pen_graphdef_importer_operand(pen_graphdef_importer *import,
                                         const pen_graphdef_input *input,
                                         pen_graphdef_result **out_operand) {
    const uint32_t read = import_read(import, input);
    const bool is_there = read != UINT32_MAX && input->output < import->result_counts[read] &&
                          import->results[read] != NULL;
    if (is_there && import->results[read][input->output]->is_made) {
        *out_operand = import->results[read][input->output];
        return PEN_OK;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "it reads output %u of '%.100s' (%.100s), which Penstock has not",
                     input->output, input->node,
                     read != UINT32_MAX ? import->block->flat->nodes[read].op : "no node");
}

static pen_status import_operands(pen_graphdef_importer *import, uint32_t n,
                                  pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    uint32_t first = 0, count = pen_graphdef_data_inputs(node);
    if (import->block->order.merged[n] != UINT32_MAX) {
        first = import->block->order.merged[n];
        count = 1;
    } else if (pen_graphdef_reads_first(node) && count > 1) {
        count = 1;
    }
    PEN_TRY(PEN_NEW(import->arena, count, &draft->operands));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(
            pen_graphdef_importer_operand(import, &node->inputs[first + i], &draft->operands[i]));
    }
    draft->operand_count = count;
    return PEN_OK;
}

// The node, under its name in the graph.
static pen_status import_named(const pen_graphdef_importer *import, uint32_t n,
                               const pen_graphdef_node **out_node) {
    const pen_graphdef_node *node = &import->block->flat->nodes[n];
    pen_graphdef_node *named;
    *out_node = node;
    if (!import->is_inner) return PEN_OK;
    PEN_TRY(PEN_NEW(import->arena, 1, &named));
    *named = *node;
    named->name = import->results[n][0]->name;
    *out_node = named;
    return PEN_OK;
}

// Batch normalization in several nodes, of which this is the last.
static pen_status import_norm(pen_graphdef_importer *import, uint32_t n, pen_graphdef_draft *draft,
                              bool *out_is_done) {
    pen_graphdef_norm norm;
    const bool is_one = import->request->options->train_batch_norm && !import->is_inner &&
                        pen_graphdef_norm_match(import->block, n, &norm);
    return is_one ? pen_graphdef_norm_convert(import->results, &norm, draft, out_is_done) : PEN_OK;
}

// Integers first: where both trials know them and agree, the result is a constant and nothing is
// built. Else the conversion runs, and what the trials know goes with its result.
static pen_status import_convert(pen_graphdef_importer *import, uint32_t n) {
    const bool pins = import->request->options->use_device_strings;
    bool is_done = false;
    pen_graphdef_draft draft = {.arena = import->arena,
                                .pins = pins ? &import->totals->pins : NULL,
                                .path = import->path,
                                .options = import->request->options,
                                .mapping =
                                    pen_graphdef_mapping_find(import->block->flat->nodes[n].op),
                                .result_count = import->result_counts[n],
                                .results = import->results[n]};
    memcpy(draft.graphs, import->graphs, sizeof draft.graphs);
    PEN_TRY(import_named(import, n, &draft.node));
    PEN_TRY(import_operands(import, n, &draft));
    if (import->block->controls[n] != NULL) {
        return pen_graphdef_control_convert(import, n, &draft);
    }
    PEN_TRY(import_norm(import, n, &draft, &is_done));
    if (is_done) return PEN_OK;
    PEN_TRY(import_evaluate(import, &draft));
    if (pen_graphdef_ints_agree(draft.results[0])) return import_set_ints(import, &draft, true);
    PEN_TRY(draft.mapping->convert(&draft));
    return draft.mapping->evaluate != NULL && draft.results == import->results[n]
               ? import_set_ints(import, &draft, false)
               : PEN_OK;
}

static const pen_graphdef_port *import_find_port(const pen_graphdef_importer *import, uint32_t n) {
    if (import->is_inner) return NULL;
    for (uint32_t i = 0; i < import->request->input_count; i++) {
        if (import_read(import, &import->request->inputs[i].at) == n) {
            return &import->request->inputs[i];
        }
    }
    return NULL;
}

static pen_status import_node(pen_graphdef_importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->block->flat->nodes[n];
    const pen_graphdef_port *port = import_find_port(import, n);
    if (import->results[n][0]->is_made) return PEN_OK; // an input or argument
    if (import->is_inner && strcmp(node->op, "Placeholder") == 0) {
        return pen_error(PEN_UNSUPPORTED, "an input within a loop");
    }
    if (port != NULL || strcmp(node->op, "Placeholder") == 0) {
        return pen_graphdef_import_input(import, n, port != NULL ? port->name : NULL);
    }
    if (strcmp(node->op, "Const") == 0) return pen_graphdef_import_constant(import, n);
    if (pen_graphdef_is_variable(node)) return pen_graphdef_import_variable(import, n);
    return import_convert(import, n);
}

pen_status pen_graphdef_importer_at(pen_graphdef_importer *import, uint32_t n) {
    const pen_graphdef_node *node = &import->block->flat->nodes[n];
    return pen_status_add_context(import_node(import, n), "in node %u, %.100s '%.100s'",
                                  node->position, node->op, node->name);
}

// Inputs come first, in the order of the signature, or of the file.
static pen_status import_inputs(pen_graphdef_importer *import) {
    for (uint32_t i = 0; i < import->request->input_count; i++) {
        const uint32_t n = import_read(import, &import->request->inputs[i].at);
        if (n != UINT32_MAX && import->results[n] != NULL)
            PEN_TRY(pen_graphdef_importer_at(import, n));
    }
    if (import->request->input_count > 0) return PEN_OK;
    for (uint32_t n = 0; n < import->block->flat->count; n++) {
        const bool is_input = strcmp(import->block->flat->nodes[n].op, "Placeholder") == 0;
        if (is_input && import->results[n] != NULL) PEN_TRY(pen_graphdef_importer_at(import, n));
    }
    return PEN_OK;
}

// ---- outputs

// The type by the trials: dimensions that they disagree on are open, and the first one that has
// the trial's batch is the batch.
static pen_status import_output_type(const pen_graphdef_importer *import,
                                     const pen_graphdef_value *value, pen_tensor_type *out_type) {
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
        const bool is_batch = d == 0 && type->shape.dims[0] == pen_graphdef_trial_batch(0);
        if (is_batch) {
            PEN_TRY(pen_graph_add_symbol(import->graphs[0], "batch", &out_type->shape.dims[0]));
        }
    }
    return PEN_OK;
}

// An output in TensorFlow's form and under its name there. What is not computed gets a node,
// because a graph's outputs are.
static pen_status import_output(pen_graphdef_importer *import, uint32_t index,
                                pen_tensor_type *out_type) {
    const pen_graphdef_port *port = &import->request->outputs[index];
    const uint32_t n = import_read(import, &port->at);
    pen_graphdef_result *operand, **operands = &operand;
    PEN_TRY(pen_graphdef_importer_operand(import, &port->at, &operand));
    pen_graphdef_draft draft = {.arena = import->arena,
                                .path = import->path,
                                .node = &import->block->flat->nodes[n],
                                .operand_count = 1,
                                .operands = operands};
    memcpy(draft.graphs, import->graphs, sizeof draft.graphs);
    pen_graphdef_value value;
    PEN_TRY(pen_graphdef_operand(&draft, 0, &value));
    pen_graph *graph = import->graphs[0];
    if (pen_graph_value(graph, value.in[0])->kind != PEN_VALUE_COMPUTED) {
        PEN_TRY(pen_graphdef_map(&draft, "identity", "output", value, &value));
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

static pen_status import_outputs(pen_graphdef_importer *import, pen_model *model) {
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

pen_status pen_graphdef_importer_init(pen_graphdef_importer *import) {
    const pen_graphdef_block *block = import->block;
    const uint32_t count = block->flat->count;
    PEN_TRY(PEN_NEW(import->arena, count, &import->result_counts));
    PEN_TRY(PEN_NEW(import->arena, count, &import->results));
    PEN_TRY(PEN_NEW(import->arena, count, &import->is_statistic));
    import_count_results(import);
    if (import->is_inner) return PEN_OK; // each round makes its own
    for (uint32_t i = 0; i < block->order.count; i++) {
        PEN_TRY(pen_graphdef_importer_renew(import, block->order.nodes[i]));
    }
    return PEN_OK;
}

static pen_status import_init(pen_graphdef_importer *import) {
    const uint32_t count = import->block->flat->count;
    PEN_TRY(PEN_NEW(import->arena, 1, &import->totals->origin));
    PEN_TRY(PEN_NEW(import->arena, count, &import->totals->origin->value_names));
    PEN_TRY(PEN_NEW(import->arena, count, &import->totals->origin->data_types));
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(pen_graph_create(import->arena, "tensorflow", &import->graphs[copy]));
    }
    return pen_graphdef_importer_init(import);
}

static pen_status import_all(pen_graphdef_importer *import, pen_model *model) {
    import_mark_statistics(import);
    PEN_TRY(import_inputs(import));
    for (uint32_t i = 0; i < import->block->order.count; i++) {
        PEN_TRY(pen_graphdef_importer_at(import, import->block->order.nodes[i]));
    }
    PEN_TRY(import_outputs(import, model));
    if (import->totals->unfreeze == NULL || import->totals->unfrozen_count > 0) return PEN_OK;
    return pen_error(PEN_NOT_FOUND,
                     "unfreeze: no constant of floats matches '%s'; `penstock inspect --nodes` "
                     "shows what there is",
                     import->request->options->unfreeze);
}

static void import_batch(const pen_graphdef_importer *import, pen_model *model) {
    if (pen_graph_input_count(import->graphs[0]) == 0) return;
    const pen_value_id first = pen_graph_input(import->graphs[0], 0);
    const pen_shape *shape = &pen_value_type(import->graphs[0], first)->shape;
    if (shape->rank == 0) return;
    model->batch_symbol = pen_graph_symbol_name(import->graphs[0], shape->dims[0]);
}

static pen_status import_block(const pen_graphdef_request *request, pen_arena *arena,
                               pen_graphdef_block *block) {
    pen_graphdef_input *outputs;
    if (request->output_count == 0) return pen_error(PEN_INVALID_INPUT, "the model has no outputs");
    PEN_TRY(pen_graphdef_frames_fold(request->flat));
    PEN_TRY(PEN_NEW(arena, request->output_count, &outputs));
    for (uint32_t i = 0; i < request->output_count; i++) {
        outputs[i] = request->outputs[i].at;
    }
    *block = (pen_graphdef_block){
        .flat = request->flat, .outputs = outputs, .output_count = request->output_count};
    PEN_TRY(pen_graphdef_block_prepare(block));
    return pen_graphdef_coverage_check(request, block, arena);
}

// The way of a graph of TensorFlow: blocks, coverage, the three copies, then nodes in order.
pen_status pen_graphdef_import(const pen_graphdef_request *request, pen_model *model) {
    pen_graphdef_totals totals = {0};
    pen_graphdef_block block;
    PEN_TRY(import_block(request, model->arena, &block));
    pen_graphdef_importer import = {.totals = &totals,
                                    .request = request,
                                    .block = &block,
                                    .arena = model->arena,
                                    .path = model->path};
    PEN_TRY(import_init(&import));
    if (request->options->unfreeze != NULL) {
        PEN_TRY(pen_status_add_context(
            pen_pattern_create(request->options->unfreeze, &totals.unfreeze), "in unfreeze"));
    }
    const pen_status status = import_all(&import, model);
    pen_pattern_destroy(totals.unfreeze);
    PEN_TRY(status);
    model->graph = import.graphs[0];
    import_batch(&import, model);
    *totals.origin = (pen_graphdef_origin){.flat = request->flat,
                                           .order = block.order,
                                           .inputs = request->inputs,
                                           .input_count = request->input_count,
                                           .outputs = request->outputs,
                                           .output_count = request->output_count,
                                           .producer = request->flat->source->producer,
                                           .value_names = totals.origin->value_names,
                                           .data_types = totals.origin->data_types};
    model->tensorflow = totals.origin;
    model->pins = totals.pins.pins;
    model->pin_count = totals.pins.count;
    return PEN_OK;
}
