// ONNX in: see import.h for what comes out.
//
// The parts: onnx_message.c reads the messages, onnx_function.c inlines model-local functions,
// onnx_coverage.c lists what cannot be imported, onnx_import.c builds the graph, with the mapping
// of operators in onnx_ops.c and the conversions of older forms in onnx_convert.c.

#include "graph/import/import.h"
#include "graph/import/model_format.h"

#include <string.h>

#include "graph/import/onnx/onnx_coverage.h"
#include "graph/import/onnx/onnx_function.h"
#include "graph/import/onnx/onnx_importer.h"
#include "graph/import/onnx/onnx_mapping.h"
#include "graph/import/onnx/onnx_model.h"
#include "graph/op.h"

static const pen_import_fixed_input *import_find_fixed(const pen_onnx_importer *import,
                                                       const char *name) {
    for (uint32_t i = 0; i < import->options->fixed_input_count; i++) {
        const pen_import_fixed_input *fixed = &import->options->fixed_inputs[i];
        if (strcmp(fixed->name, name) == 0) return fixed;
    }
    return NULL;
}

// Initializers first: from IR version 3 on they need not be inputs as well, before they had to.
static pen_status import_add_givens(pen_onnx_importer *import) {
    const pen_onnx_model *model = import->model;
    pen_onnx_name *entry = NULL;
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        PEN_TRY(pen_onnx_importer_add(import, model->tensors[i].name, &entry));
        entry->tensor = &model->tensors[i];
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        const char *name = model->inputs[i].name;
        const pen_onnx_name *known = pen_onnx_importer_find(import, name);
        if (known != NULL && known->tensor != NULL && known->input == NULL) continue;
        PEN_TRY(pen_onnx_importer_add(import, name, &entry));
        entry->input = &model->inputs[i];
        entry->fixed = import_find_fixed(import, name);
    }
    return PEN_OK;
}

static bool import_wants_constant(const pen_onnx_mapping *mapping, const pen_op *op,
                                  uint32_t input) {
    if (input < 32 && (mapping->constant_inputs >> input & 1) != 0) return true;
    return input < 64 && (op->constant_inputs >> input & 1) != 0;
}

static bool import_is(const pen_onnx_node *node, const char *op_type) {
    return node->domain[0] == '\0' && strcmp(node->op_type, op_type) == 0;
}

// An initializer under another name. What the file marks as a parameter keeps its own name, by
// which it is known to be trained: an Identity of it is a node.
static bool import_is_alias(const pen_onnx_importer *import, const pen_onnx_node *node) {
    if (import->parent != NULL) return false;
    if (!import_is(node, "Identity") || node->input_count != 1 || node->output_count != 1) {
        return false;
    }
    const pen_onnx_name *source = pen_onnx_importer_find(import, node->inputs[0]);
    if (source == NULL || source->tensor == NULL) return false;
    const pen_onnx_target *target =
        pen_onnx_origins_target(&import->weights->origins, node->inputs[0]);
    return target == NULL || !target->is_parameter;
}

// A Cast that makes float32 of an initializer of 16 bits, where that is read as float32 anyway.
static const pen_onnx_name *import_find_widened(const pen_onnx_importer *import,
                                                const pen_onnx_node *node) {
    if (import->parent != NULL || !import->model->widens || !import_is(node, "Cast")) return NULL;
    if (node->input_count != 1 || node->output_count != 1 || node->attribute_count != 1)
        return NULL;
    const pen_onnx_attribute *to = &node->attributes[0];
    const pen_onnx_name *source = pen_onnx_importer_find(import, node->inputs[0]);
    if (source == NULL || source->tensor == NULL) return NULL;
    const bool is_widening = pen_element_is_half(source->tensor->type.element) &&
                             to->type == PEN_ONNX_INT && strcmp(to->name, "to") == 0 &&
                             pen_onnx_element_type(to->integer) == PEN_FLOAT32;
    return is_widening ? source : NULL;
}

static pen_status import_note_reads(pen_onnx_importer *import, const pen_onnx_node *node);

static void import_note_output(pen_onnx_name *read) {
    read->read_as_weight = true;
    read->readings |= PEN_ONNX_READ_OTHERWISE;
}

// What a branch or loop and its bodies read. Names of the bodies' own that are also names outside
// are noted in vain, which does no harm.
static pen_status import_note_control(pen_onnx_importer *import, const pen_onnx_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        pen_onnx_name *read = pen_onnx_importer_find(import, node->inputs[i]);
        if (read == NULL) continue;
        const bool is_constant = i < 32 && (pen_onnx_control_constants(node) >> i & 1) != 0;
        read->read_as_constant = read->read_as_constant || is_constant;
        read->read_as_weight = read->read_as_weight || !is_constant;
        read->readings |= PEN_ONNX_READ_OTHERWISE;
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        pen_onnx_model body;
        if (node->attributes[i].type != PEN_ONNX_GRAPH) continue;
        PEN_TRY(
            pen_onnx_model_read_body(import->model, &node->attributes[i], import->arena, &body));
        for (uint32_t n = 0; n < body.node_count; n++) {
            if (import_is_alias(import, &body.nodes[n])) continue; // made when the body is
            PEN_TRY(import_note_reads(import, &body.nodes[n]));
        }
        for (uint32_t o = 0; o < body.output_count; o++) {
            pen_onnx_name *read = pen_onnx_importer_find(import, body.outputs[o].name);
            if (read != NULL) import_note_output(read);
        }
    }
    return PEN_OK;
}

// Notes who reads what. Nodes stand in topological order, so aliases come before their readers.
static pen_status import_note_reads(pen_onnx_importer *import, const pen_onnx_node *node) {
    if (import_is_alias(import, node)) {
        pen_onnx_name *entry = NULL;
        const pen_onnx_tensor *tensor = pen_onnx_importer_find(import, node->inputs[0])->tensor;
        PEN_TRY(pen_onnx_importer_add(import, node->outputs[0], &entry));
        entry->tensor = tensor;
        return PEN_OK;
    }
    const pen_onnx_name *widened = import_find_widened(import, node);
    if (widened != NULL) {
        pen_onnx_name *entry = NULL;
        const uint32_t place = (uint32_t)(widened - import->names);
        PEN_TRY(pen_onnx_importer_add(import, node->outputs[0], &entry));
        entry->stands_for = place + 1;
        return PEN_OK;
    }
    if (pen_onnx_is_control(node)) return import_note_control(import, node);
    const pen_onnx_mapping *mapping = pen_onnx_mapping_of_node(node);
    const pen_op *op = NULL;
    PEN_TRY(pen_op_find(mapping->op_name, &op));
    for (uint32_t i = 0; i < node->input_count; i++) {
        pen_onnx_name *read = pen_onnx_importer_find(import, node->inputs[i]);
        if (read == NULL) continue;
        const bool is_state = i < 32 && (mapping->state_inputs >> i & 1) != 0;
        const bool is_constant = import_wants_constant(mapping, op, i);
        read->read_as_state = read->read_as_state || is_state;
        read->read_as_constant = read->read_as_constant || is_constant;
        if (is_state || is_constant) continue;
        read->read_as_weight = true;
        read->readings |= pen_onnx_weights_reading(node->op_type, i);
    }
    return PEN_OK;
}

static pen_status import_note(pen_onnx_importer *import) {
    for (uint32_t i = 0; i < import->model->node_count; i++) {
        PEN_TRY(import_note_reads(import, &import->model->nodes[i]));
    }
    for (uint32_t i = 0; i < import->model->output_count; i++) {
        pen_onnx_name *read = pen_onnx_importer_find(import, import->model->outputs[i].name);
        if (read != NULL) import_note_output(read);
    }
    return PEN_OK;
}

// ---- initializers

static pen_status import_make_givens(pen_onnx_importer *import) {
    for (uint32_t i = 0; i < import->name_count; i++) {
        pen_onnx_name *entry = &import->names[i];
        if (entry->input != NULL) PEN_TRY(pen_onnx_importer_make_input(import, entry));
    }
    for (uint32_t i = 0; i < import->name_count; i++) {
        pen_onnx_name *entry = &import->names[i];
        if (entry->tensor != NULL) PEN_TRY(pen_onnx_importer_make_tensor(import, entry));
    }
    return PEN_OK;
}

// ---- nodes

static bool import_attribute_taken(const char *taken, const char *name) {
    const size_t name_length = strlen(name);
    for (const char *word = taken; word != NULL && *word != '\0';) {
        const size_t length = strcspn(word, " ");
        const size_t word_name = strcspn(word, "= ");
        if (word_name == name_length && strncmp(word, name, name_length) == 0) return true;
        word += length + strspn(word + length, " ");
    }
    return false;
}

// All attributes but those that the table says the conversion takes.
static pen_status import_draft_attributes(pen_onnx_importer *import,
                                          const pen_onnx_mapping *mapping, pen_onnx_draft *draft) {
    const pen_onnx_node *node = draft->node;
    PEN_TRY(
        PEN_NEW(import->arena, node->attribute_count + PEN_ONNX_DRAFT_ROOM, &draft->attributes));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const pen_onnx_attribute *from = &node->attributes[i];
        if (import_attribute_taken(mapping->taken, from->name)) continue;
        pen_attribute_given to = {.name = from->name};
        to.value.integer = from->integer;
        to.value.number = from->number;
        to.value.text = from->text;
        to.value.count = from->count;
        to.value.integers = from->integers;
        to.value.numbers = from->numbers;
        to.kind = from->type == PEN_ONNX_INT      ? PEN_ATTRIBUTE_INT
                  : from->type == PEN_ONNX_FLOAT  ? PEN_ATTRIBUTE_FLOAT
                  : from->type == PEN_ONNX_STRING ? PEN_ATTRIBUTE_TEXT
                  : from->type == PEN_ONNX_INTS   ? PEN_ATTRIBUTE_INTS
                                                  : PEN_ATTRIBUTE_FLOATS;
        draft->attributes[draft->attribute_count++] = to;
    }
    return PEN_OK;
}

// Operands left out are PEN_VALUE_NONE, those at the end do not count. Where only a constant
// will do, the constant form of a value is taken.
static pen_status import_draft_operands(pen_onnx_importer *import, const pen_onnx_mapping *mapping,
                                        const pen_op *op, pen_onnx_draft *draft) {
    const pen_onnx_node *node = draft->node;
    PEN_TRY(PEN_NEW(import->arena, node->input_count + PEN_ONNX_DRAFT_ROOM, &draft->inputs));
    PEN_TRY(PEN_NEW(import->arena, node->output_count + PEN_ONNX_DRAFT_ROOM, &draft->output_names));
    for (uint32_t i = 0; i < node->input_count; i++) {
        draft->inputs[i] = PEN_VALUE_NONE;
        if (node->inputs[i][0] == '\0') continue;
        const pen_onnx_name *read;
        PEN_TRY(pen_onnx_importer_read(import, node, i, &read));
        if (read->is_sequence || read->is_empty) {
            return pen_error(PEN_INVALID_INPUT, "it reads '%s', which is %s", node->inputs[i],
                             read->is_sequence ? "a sequence" : "an optional without a value");
        }
        const bool wants_constant = import_wants_constant(mapping, op, i);
        draft->inputs[i] =
            wants_constant && pen_value_is(read->constant) ? read->constant : read->value;
        draft->input_count = i + 1; // operands left out at the end do not count
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        PEN_TRY(pen_onnx_importer_prefixed(import, node->outputs[i], &draft->output_names[i]));
        if (node->outputs[i][0] != '\0') draft->output_count = i + 1;
    }
    return PEN_OK;
}

// The new running statistics take the place of the old ones.
static pen_status import_replace_states(pen_onnx_importer *import, const pen_onnx_draft *draft,
                                        pen_node_id node) {
    const pen_node *made = pen_graph_node(import->graph, node);
    for (uint32_t i = 1; i < made->output_count && i <= 2; i++) {
        pen_onnx_name *state = pen_onnx_importer_find(import, draft->node->inputs[i + 2]);
        const pen_value_id output = made->outputs[i];
        if (!pen_value_is(output) || state == NULL) continue;
        if (pen_graph_value(import->graph, state->value)->kind != PEN_VALUE_STATE) continue;
        if (state->replaced) {
            return pen_error(PEN_UNSUPPORTED, "running statistic '%s' is updated by two nodes",
                             state->name);
        }
        state->replaced = true;
        pen_graph_set_replaces(import->graph, output, state->value);
    }
    return PEN_OK;
}

// The outputs are values that the conversion has made; they take the outputs' names.
static pen_status import_emit_values(pen_onnx_importer *import, const pen_onnx_draft *draft) {
    for (uint32_t i = 0; i < draft->value_count; i++) {
        const char *name = draft->node->outputs[i];
        if (name[0] == '\0') continue;
        PEN_TRY(pen_graph_rename_value(import->graph, draft->values[i], draft->output_names[i]));
        PEN_TRY(pen_onnx_importer_bind_value(import, name, draft->values[i]));
    }
    return PEN_OK;
}

// What the conversion has left in the draft: a value, several values, or a node whose outputs
// get the model's names.
static pen_status import_emit(pen_onnx_importer *import, const pen_onnx_mapping *mapping,
                              const pen_onnx_draft *draft) {
    if (draft->is_value) {
        return pen_onnx_importer_bind_value(import, draft->node->outputs[0], draft->value);
    }
    if (draft->value_count > 0) return import_emit_values(import, draft);
    pen_node_spec spec = pen_node_spec_make(draft->op_name, draft->name);
    spec.source = draft->source;
    spec.inputs = draft->inputs;
    spec.input_count = draft->input_count;
    spec.output_count = draft->output_count;
    spec.output_names = draft->output_names;
    spec.attributes = draft->attributes;
    spec.attribute_count = draft->attribute_count;
    for (uint32_t i = 0; i < spec.output_count; i++) {
        const char *name = i < draft->node->output_count ? draft->node->outputs[i] : "";
        if (name[0] == '\0' || pen_onnx_importer_find_here(import, name) == NULL) continue;
        return pen_error(PEN_INVALID_INPUT, "value '%s' is made twice", name);
    }
    pen_node_id node;
    PEN_TRY(pen_graph_add_node(import->graph, &spec, &node));
    for (uint32_t i = 0; i < spec.output_count; i++) {
        const pen_value_id output = pen_graph_node(import->graph, node)->outputs[i];
        if (i >= draft->node->output_count) break; // an output only we asked for
        PEN_TRY(pen_onnx_importer_bind_value(import, draft->node->outputs[i], output));
    }
    return mapping->state_inputs != 0 ? import_replace_states(import, draft, node) : PEN_OK;
}

// Identity of a sequence or optional: another name for it.
static bool import_passes_on(const pen_onnx_importer *import, const pen_onnx_node *node) {
    if (!import_is(node, "Identity") || node->input_count != 1 || node->output_count != 1) {
        return false;
    }
    const pen_onnx_name *source = pen_onnx_importer_find(import, node->inputs[0]);
    return source != NULL && (source->is_sequence || source->is_empty);
}

// One node: control flow by itself, all others by the table and its conversion.
static pen_status import_node(pen_onnx_importer *import, const pen_onnx_node *node) {
    if (pen_onnx_is_control(node)) return pen_onnx_control_import(import, node);
    const pen_onnx_mapping *mapping = pen_onnx_mapping_of_node(node);
    const pen_op *op = NULL;
    if (import_passes_on(import, node)) {
        return pen_onnx_importer_bind(import, node->outputs[0],
                                      pen_onnx_importer_find(import, node->inputs[0]));
    }
    PEN_TRY(pen_op_find(mapping->op_name, &op));
    pen_onnx_draft draft = {.graph = import->graph,
                            .model = import->model,
                            .options = import->options,
                            .files = import->files,
                            .weights = import->weights,
                            .node = node,
                            .source = {.file = import->path, .position = node->position},
                            .op_name = mapping->op_name};
    PEN_TRY(pen_onnx_importer_name(import, node, &draft.name));
    PEN_TRY(import_draft_attributes(import, mapping, &draft));
    PEN_TRY(import_draft_operands(import, mapping, op, &draft));
    if (mapping->convert != NULL) PEN_TRY(mapping->convert(&draft));
    return import_emit(import, mapping, &draft);
}

static pen_status import_nodes(pen_onnx_importer *import) {
    for (uint32_t i = 0; i < import->model->node_count; i++) {
        const pen_onnx_node *node = &import->model->nodes[i];
        // the name of an alias was made before; that of an overwritten value is found when bound
        const pen_onnx_name *output =
            node->output_count == 1 ? pen_onnx_importer_find(import, node->outputs[0]) : NULL;
        const bool is_other_name =
            import_is_alias(import, node) || import_find_widened(import, node) != NULL;
        if (is_other_name && output != NULL && output->tensor != NULL) continue;
        PEN_TRY(pen_status_add_context(import_node(import, node), "in node %u, %.100s '%.100s'",
                                       node->position, node->op_type, node->name));
    }
    return PEN_OK;
}

// ---- outputs

static int64_t import_find_symbol(const pen_onnx_importer *import, const char *name) {
    for (uint32_t i = 0; name != NULL && i < pen_graph_symbol_count(import->graph); i++) {
        const int64_t dimension = -(1 + (int64_t)i);
        if (strcmp(pen_graph_symbol_name(import->graph, dimension), name) == 0) return dimension;
    }
    return PEN_DIMENSION_UNKNOWN;
}

// Types are taken as the file declares them: they name the symbols, and hold where inference
// knows less.
static pen_status import_outputs(pen_onnx_importer *import, pen_model *model) {
    const pen_onnx_model *from = import->model;
    pen_tensor_type *types;
    if (from->output_count == 0) return pen_error(PEN_INVALID_INPUT, "the model has no outputs");
    PEN_TRY(PEN_NEW(import->arena, from->output_count, &types));
    for (uint32_t i = 0; i < from->output_count; i++) {
        const pen_onnx_value *output = &from->outputs[i];
        const pen_onnx_name *made = pen_onnx_importer_find(import, output->name);
        if (made == NULL || !made->made) {
            return pen_error(PEN_INVALID_INPUT, "output '%s' is made by no node", output->name);
        }
        if (made->is_sequence || made->is_empty) {
            return pen_error(PEN_UNSUPPORTED,
                             "output '%s' is a sequence, or an optional without a "
                             "value",
                             output->name);
        }
        PEN_TRY(pen_graph_add_output(import->graph, made->value));
        if (!output->has_shape) continue; // the element stays unknown
        types[i] = (pen_tensor_type){
            pen_onnx_widened(pen_onnx_element_type(output->data_type), from->widens),
            output->shape};
        for (uint32_t d = 0; d < output->shape.rank; d++) {
            if (output->shape.dims[d] >= 0) continue;
            types[i].shape.dims[d] = import_find_symbol(import, output->symbols[d]);
        }
    }
    model->output_types = types;
    return PEN_OK;
}

static void import_batch(const pen_onnx_importer *import, pen_model *model) {
    if (pen_graph_input_count(import->graph) == 0) return;
    const pen_value_id first = pen_graph_input(import->graph, 0);
    const pen_shape *shape = &pen_value_type(import->graph, first)->shape;
    if (shape->rank == 0) return;
    model->batch_symbol = pen_graph_symbol_name(import->graph, shape->dims[0]);
}

static pen_status import_init(pen_onnx_importer *import) {
    const pen_onnx_model *model = import->model;
    uint64_t count = (uint64_t)model->tensor_count + model->input_count;
    for (uint32_t i = 0; i < model->node_count; i++) {
        count += model->nodes[i].output_count;
    }
    if (count > PEN_VALUE_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the graph has more than %u values",
                         PEN_VALUE_COUNT_LIMIT);
    }
    import->name_capacity = (uint32_t)count;
    pen_name_map_init(&import->index, import->arena);
    return PEN_NEW(import->arena, count, &import->names);
}

// ---- bodies of branches and loops

// The initializers of a body are made once, however many rounds it has.
pen_status pen_onnx_importer_open_body(pen_onnx_importer *outer, const pen_onnx_model *body,
                                       const char *prefix, pen_onnx_importer *out_frame) {
    pen_onnx_importer frame = *outer;
    if (body->sparse_count > 0) return pen_error(PEN_UNSUPPORTED, "a sparse initializer");
    frame.parent = outer;
    frame.model = body;
    frame.prefix = prefix;
    frame.name_count = 0;
    PEN_TRY(import_init(&frame));
    for (uint32_t i = 0; i < body->tensor_count; i++) {
        pen_onnx_name *entry;
        PEN_TRY(pen_onnx_importer_add(&frame, body->tensors[i].name, &entry));
        entry->tensor = &body->tensors[i];
        if (body->tensors[i].type.element == PEN_ELEMENT_UNKNOWN) {
            return pen_error(PEN_UNSUPPORTED, "initializer '%s' of element type %s", entry->name,
                             pen_onnx_data_type_name(body->tensors[i].data_type));
        }
    }
    PEN_TRY(import_note(&frame));
    PEN_TRY(import_make_givens(&frame));
    *out_frame = frame;
    return PEN_OK;
}

// A round is a scope of its own within the body's, so that names are free again in the next.
// What all rounds together add is bounded, since a small file can ask for endless nodes.
pen_status pen_onnx_importer_run_body(pen_onnx_importer *frame, const char *prefix,
                                      uint32_t argument_count, const pen_onnx_name *arguments,
                                      pen_onnx_name *out_results) {
    pen_onnx_importer scope = *frame;
    const pen_onnx_model *body = frame->model;
    pen_onnx_unrolled *unrolled = frame->unrolled;
    const bool is_outermost = frame->parent->parent == NULL;
    PEN_ASSERT(argument_count == body->input_count);
    scope.parent = frame;
    scope.prefix = prefix;
    scope.name_count = 0;
    if (is_outermost) unrolled->bytes_before = pen_arena_bytes(frame->arena) - unrolled->bytes;
    unrolled->node_count += body->node_count + 1;
    unrolled->bytes = pen_arena_bytes(frame->arena) - unrolled->bytes_before;
    if (unrolled->node_count > PEN_INLINED_NODES_LIMIT ||
        unrolled->bytes > PEN_INLINED_BYTES_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "with its loops unrolled the model has more than %u nodes, or needs more "
                         "than %u bytes",
                         PEN_INLINED_NODES_LIMIT, PEN_INLINED_BYTES_LIMIT);
    }
    PEN_TRY(import_init(&scope));
    for (uint32_t i = 0; i < argument_count; i++) {
        PEN_TRY(pen_onnx_importer_bind(&scope, body->inputs[i].name, &arguments[i]));
    }
    PEN_TRY(import_nodes(&scope));
    for (uint32_t i = 0; i < body->output_count; i++) {
        const pen_onnx_name *made = pen_onnx_importer_find(&scope, body->outputs[i].name);
        if (made == NULL || !made->made) {
            return pen_error(PEN_INVALID_INPUT, "output '%s' of its body is made by no node",
                             body->outputs[i].name);
        }
        out_results[i] = *made;
    }
    unrolled->bytes = pen_arena_bytes(frame->arena) - unrolled->bytes_before;
    return PEN_OK;
}

// What the file says of its values, and what it has of them.
static pen_status import_weights(const pen_onnx_importer *import, pen_onnx_weights *weights) {
    const pen_onnx_model *model = import->model;
    PEN_TRY(pen_onnx_origins_read(&model->graph, import->arena, &weights->origins));
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        pen_onnx_target *target =
            pen_onnx_origins_target(&weights->origins, model->tensors[i].name);
        if (target != NULL) target->is_found = true;
    }
    for (uint32_t i = 0; i < model->node_count; i++) {
        weights->keeps_constants =
            weights->keeps_constants || import_is(&model->nodes[i], "Constant");
    }
    if (import->options->unfreeze == NULL) return PEN_OK;
    return pen_status_add_context(pen_pattern_create(import->options->unfreeze, &weights->unfreeze),
                                  "in unfreeze");
}

// Whether weights are of 16 bits, which nothing here trains: then all of the model is float32.
static pen_status import_widen(pen_onnx_model *read, pen_model *model) {
    uint32_t count = 0;
    const char **warnings;
    for (uint32_t i = 0; i < read->tensor_count; i++) {
        count += pen_element_is_half(read->tensors[i].type.element);
    }
    read->widens = count > 0;
    if (count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(model->arena, 1, &warnings));
    model->warnings = warnings;
    model->warning_count = 1;
    return pen_arena_format(model->arena, &warnings[0],
                            "%u tensor%s of the model %s float16 or bfloat16; all of it is read as "
                            "float32",
                            count, count == 1 ? "" : "s", count == 1 ? "is" : "are");
}

// What is asked of weights at the end needs every one of them decided.
static pen_status import_build(pen_onnx_importer *import, pen_model *model) {
    pen_onnx_weights *weights = import->weights;
    PEN_TRY(import_weights(import, weights));
    PEN_TRY(import_init(import));
    PEN_TRY(pen_graph_create(model->arena, import->model->graph_name, &import->graph));
    PEN_TRY(import_add_givens(import));
    PEN_TRY(import_note(import));
    PEN_TRY(import_make_givens(import));
    PEN_TRY(import_nodes(import));
    PEN_TRY(import_outputs(import, model));
    PEN_TRY(pen_onnx_weights_finish(weights));
    model->graph = import->graph;
    model->producer = import->model->producer;
    model->hides_frozen = strcmp(model->producer, "pytorch") == 0;
    model->opset = import->model->opset;
    model->weights = weights->list;
    model->weight_count = weights->count;
    model->lost = weights->lost;
    model->lost_count = weights->lost_count;
    import_batch(import, model);
    return PEN_OK;
}

// The way of an ONNX file. Who reads an initializer is noted before values are made, because it
// decides what they become.
static pen_status import_model(const pen_model_input *input, pen_model *model) {
    pen_onnx_model read = {0};
    pen_onnx_unrolled unrolled = {0};
    PEN_TRY(pen_onnx_model_read(input->bytes, input->length, model->arena, &read));
    PEN_TRY(pen_onnx_functions_inline(&read, model->arena));
    PEN_TRY(pen_onnx_coverage_check(&read, model->arena));
    if (input->options->widens_halves) PEN_TRY(import_widen(&read, model));
    pen_onnx_weights weights = {
        .arena = model->arena, .producer = read.producer, .options = input->options};
    pen_onnx_importer import = {.arena = model->arena,
                                .path = model->path,
                                .model = &read,
                                .options = input->options,
                                .files = input->files,
                                .unrolled = &unrolled,
                                .weights = &weights};
    const pen_status status = import_build(&import, model);
    pen_pattern_destroy(weights.unfreeze);
    return status;
}

const pen_model_format pen_model_format_onnx = {
    .name = "onnx",
    .summary = "an ONNX model",
    .suffixes = ".onnx",
    .import = import_model,
};
