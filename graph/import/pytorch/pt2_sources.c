// What is there before any node runs: parameters, buffers, constants, inputs.
//
// Parameters have the names that state_dict() gives them; of tied ones, the first. Buffers that
// are floats and saved with the model are states, which training may load and keep; others are
// constants, unless a node changes them.

#include "graph/import/pytorch/pt2_importer.h"

#include <string.h>

#include "graph/import/pytorch/pt2_formula.h"
#include "graph/import/tensor_elements.h"

// ---- what becomes of them

// Whose bytes a name of a graph shows.
typedef struct sources_names {
    pen_pt2_importer *import;
    pen_name_map ports; // of names: places in the model's inputs
} sources_names;

static uint32_t sources_port(const sources_names *names, const pen_pt2_item *item) {
    if (item->kind != PEN_PT2_TENSOR) return PEN_NAME_MAP_NONE;
    return pen_name_map_find(&names->ports, item->text);
}

static pen_status sources_add_name(sources_names *names, const pen_pt2_item *item, uint32_t port) {
    const bool is_new = item->kind == PEN_PT2_TENSOR && port != PEN_NAME_MAP_NONE &&
                        sources_port(names, item) == PEN_NAME_MAP_NONE;
    return is_new ? pen_name_map_add(&names->ports, item->text, port) : PEN_OK;
}

static pen_status sources_scan(sources_names *names, const pen_pt2_graph_part *graph);

// The inputs of a nested graph are the last arguments.
static pen_status sources_scan_nested(const sources_names *names, const pen_pt2_node *node,
                                      const pen_pt2_graph_part *graph) {
    sources_names inner = {.import = names->import};
    pen_name_map_init(&inner.ports, names->import->arena);
    if (node->argument_count < graph->input_count) return PEN_OK; // told when it is imported
    const uint32_t first = node->argument_count - graph->input_count;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const pen_pt2_argument *argument = &node->arguments[first + i];
        if (argument->is_list || argument->count == 0) continue;
        PEN_TRY(
            sources_add_name(&inner, &graph->inputs[i], sources_port(names, &argument->items[0])));
    }
    return sources_scan(&inner, graph);
}

// Notes what a node reads and changes, and which of its results show an input's bytes.
static pen_status sources_scan_node(sources_names *names, const pen_pt2_node *node) {
    bool in_place;
    const pen_pt2_mapping *mapping = pen_pt2_mapping_find(node->target, &in_place);
    uint32_t first = PEN_NAME_MAP_NONE;
    for (uint32_t a = 0; a < node->argument_count; a++) {
        for (uint32_t i = 0; i < node->arguments[a].count; i++) {
            const pen_pt2_item *item = &node->arguments[a].items[i];
            const uint32_t port = sources_port(names, item);
            if (item->kind == PEN_PT2_GRAPH) {
                PEN_TRY(sources_scan_nested(names, node, item->graph));
            }
            if (port == PEN_NAME_MAP_NONE) continue;
            names->import->is_read[port] = true;
            if (a == 0 && i == 0) first = port;
        }
    }
    if (first == PEN_NAME_MAP_NONE) return PEN_OK;
    if (in_place) names->import->is_changed[first] = true;
    if (!in_place && (mapping == NULL || mapping->view == PEN_PT2_VIEW_NEVER)) return PEN_OK;
    for (uint32_t r = 0; r < node->result_count; r++) {
        for (uint32_t i = 0; i < node->results[r].count; i++) {
            PEN_TRY(sources_add_name(names, &node->results[r].items[i], first));
        }
    }
    return PEN_OK;
}

static pen_status sources_scan(sources_names *names, const pen_pt2_graph_part *graph) {
    for (uint32_t n = 0; n < graph->node_count; n++) {
        PEN_TRY(sources_scan_node(names, &graph->nodes[n]));
    }
    return PEN_OK;
}

// A buffer that is changed must be a state when it is made, so all nodes are looked at before.
static pen_status sources_scan_all(pen_pt2_importer *import) {
    const pen_pt2_graph_part *graph = &import->model->graph;
    sources_names names = {.import = import};
    PEN_TRY(PEN_NEW(import->arena, graph->input_count, &import->is_read));
    PEN_TRY(PEN_NEW(import->arena, graph->input_count, &import->is_changed));
    pen_name_map_init(&names.ports, import->arena);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (sources_port(&names, &graph->inputs[i]) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_CORRUPT, "the graph has two inputs '%.100s'",
                             graph->inputs[i].text);
        }
        PEN_TRY(sources_add_name(&names, &graph->inputs[i], i));
    }
    PEN_TRY(sources_scan(&names, graph));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const uint32_t port = sources_port(&names, &graph->outputs[i]);
        if (port != PEN_NAME_MAP_NONE) import->is_read[port] = true;
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const pen_pt2_port *port = &import->model->ports[i];
        for (uint32_t o = 0; port->role == PEN_PT2_BUFFER && o < graph->output_count; o++) {
            const char *buffer = import->model->output_buffers[o];
            if (buffer == NULL || strcmp(buffer, port->name) != 0) continue;
            import->is_read[i] = import->is_changed[i] = true;
        }
    }
    return PEN_OK;
}

// ---- tensors of the file

const char *pen_pt2_sources_symbol(const pen_pt2_importer *import, const char *name) {
    const bool is_batch = import->batch != NULL && strcmp(import->batch, name) == 0;
    return is_batch ? "batch" : name;
}

int64_t pen_pt2_sources_dimension(const pen_pt2_importer *import, const char *formula) {
    char own[PEN_PT2_SYMBOL_BYTES];
    if (!pen_pt2_formula_is_symbol(formula, own)) return PEN_DIMENSION_UNKNOWN;
    const char *name = pen_pt2_sources_symbol(import, own);
    for (uint32_t i = 0; i < pen_graph_symbol_count(import->graph); i++) {
        const int64_t dimension = -(1 + (int64_t)i);
        if (strcmp(pen_graph_symbol_name(import->graph, dimension), name) == 0) return dimension;
    }
    return PEN_DIMENSION_UNKNOWN;
}

// What the graph says of a tensor must be what the list of weights says.
static pen_status sources_check(const pen_pt2_importer *import, const pen_pt2_port *port,
                                const char *name, const pen_pt2_weight *weight) {
    const pen_pt2_tensor_meta *meta = pen_pt2_graph_tensor(&import->model->graph, name);
    if (weight == NULL) {
        return pen_error(PEN_CORRUPT, "the archive has no contents for '%.200s'", port->name);
    }
    if (meta != NULL && meta->element == weight->meta.element &&
        pen_shape_equal(&meta->shape, &weight->meta.shape)) {
        return PEN_OK;
    }
    char found[PEN_SHAPE_TEXT_BYTES], said[PEN_SHAPE_TEXT_BYTES] = "nothing";
    if (meta != NULL) pen_shape_format(&meta->shape, said);
    return pen_error(PEN_CORRUPT, "'%.200s' is %s%s, and the graph says %s%s", port->name,
                     pen_pt2_element_name(weight->meta.element_number),
                     pen_shape_format(&weight->meta.shape, found),
                     meta == NULL ? "" : pen_pt2_element_name(meta->element_number), said);
}

// Parameters and states stay of the type that they lie in; constants are read while this is built.
static pen_status sources_make_weight(pen_pt2_importer *import, uint32_t i, pen_pt2_weight *weight,
                                      pen_value_id *out_value) {
    const pen_pt2_port *port = &import->model->ports[i];
    const bool is_float = pen_element_is_float(weight->type.element);
    const bool is_state = port->role == PEN_PT2_BUFFER &&
                          (import->is_changed[i] || (is_float && !weight->is_constant));
    pen_value spec = {.name = weight->name,
                      .kind = port->role == PEN_PT2_PARAMETER && is_float ? PEN_VALUE_PARAMETER
                              : is_state                                  ? PEN_VALUE_STATE
                                                                          : PEN_VALUE_CONSTANT,
                      .type = weight->type,
                      .data_bytes = pen_tensor_type_bytes(&weight->type),
                      .source.file = import->path};
    spec.trainable = spec.kind == PEN_VALUE_PARAMETER && weight->meta.requires_grad;
    PEN_TRY(pen_pt2_weights_data(import->archive, weight, import->arena, &spec.data));
    if (spec.kind == PEN_VALUE_CONSTANT) {
        PEN_TRY(pen_tensor_convert(&weight->stored, spec.type.element, import->arena, &spec.data));
    } else if (weight->stored.element != spec.type.element) {
        spec.stored = weight->stored.element;
    }
    return pen_graph_add_own_value(import->graph, &spec, out_value);
}

// Tied weights are one value, under the name of the first.
static pen_status sources_make_tensor(pen_pt2_importer *import, uint32_t i,
                                      pen_pt2_slot **out_slot) {
    const pen_pt2_port *port = &import->model->ports[i];
    const char *name = import->model->graph.inputs[i].text;
    const pen_pt2_weight *found = pen_pt2_weights_find(import->weights, port->name);
    const pen_pt2_tensor_meta *meta = pen_pt2_graph_tensor(&import->model->graph, name);
    PEN_TRY(sources_check(import, port, name, found));
    pen_value_id *value = &import->weight_values[found->same_as];
    if (!pen_value_is(*value)) {
        pen_pt2_weight *first = &import->weights->entries[found->same_as];
        PEN_TRY(pen_status_add_context(sources_make_weight(import, i, first, value),
                                       "in tensor '%.200s'", port->name));
    }
    PEN_TRY(pen_pt2_slot_new(import, port->name, meta, *value, out_slot));
    if (port->role == PEN_PT2_PARAMETER) (*out_slot)->refused = "parameter";
    return PEN_OK;
}

// ---- inputs

// A size that is no symbol alone gets one of its own, named by input and dimension.
static pen_status sources_make_input(pen_pt2_importer *import, const char *name,
                                     pen_pt2_slot **out_slot) {
    const pen_pt2_tensor_meta *meta = pen_pt2_graph_tensor(&import->model->graph, name);
    if (meta == NULL) return pen_error(PEN_CORRUPT, "nothing is said of input '%.100s'", name);
    pen_value spec = {.name = name, .kind = PEN_VALUE_INPUT, .source.file = import->path};
    spec.type = (pen_tensor_type){pen_pt2_element_of(meta->element_number, true), meta->shape};
    if (spec.type.element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "input '%.100s' is %s, which Penstock has not", name,
                         pen_pt2_element_name(meta->element_number));
    }
    for (uint32_t d = 0; d < meta->shape.rank; d++) {
        char own[PEN_PT2_SYMBOL_BYTES];
        const char *symbol;
        if (meta->shape.dims[d] >= 0) continue;
        if (!pen_pt2_formula_is_symbol(meta->symbols[d], own)) {
            PEN_TRY(pen_arena_format(import->arena, &symbol, "%s_%u", name, d));
        } else {
            if (d == 0 && pen_graph_input_count(import->graph) == 0) {
                PEN_TRY(pen_arena_copy_text(import->arena, own, strlen(own), &import->batch));
            }
            symbol = pen_pt2_sources_symbol(import, own);
        }
        PEN_TRY(pen_graph_add_symbol(import->graph, symbol, &spec.type.shape.dims[d]));
    }
    pen_value_id value;
    PEN_TRY(pen_graph_add_value(import->graph, &spec, &value));
    return pen_pt2_slot_new(import, name, meta, value, out_slot);
}

// An input that is a symbol itself is an integer that the caller gives.
static pen_status sources_make_port(pen_pt2_importer *import, uint32_t i) {
    const pen_pt2_port *port = &import->model->ports[i];
    const pen_pt2_item *input = &import->model->graph.inputs[i];
    pen_pt2_slot *slot;
    if (port->role == PEN_PT2_FIXED) return PEN_OK;
    if (port->role == PEN_PT2_USER_INPUT && input->kind != PEN_PT2_TENSOR) {
        if (input->kind != PEN_PT2_SYMBOL) return PEN_OK;
        return pen_error(PEN_UNSUPPORTED,
                         "input '%.100s' is a number that may change from call to call: leave it "
                         "out of dynamic_shapes, and export again",
                         input->text);
    }
    if (input->kind != PEN_PT2_TENSOR) {
        return pen_error(PEN_CORRUPT, "'%.100s' is no tensor", port->name);
    }
    if (port->role == PEN_PT2_USER_INPUT) {
        PEN_TRY(sources_make_input(import, input->text, &slot));
    } else {
        if (!import->is_read[i]) return PEN_OK;
        PEN_TRY(sources_make_tensor(import, i, &slot));
    }
    import->ports[i] = slot;
    import->port_values[i] = slot->value;
    return pen_pt2_scope_bind(&import->top, input->text, slot);
}

// Inputs come first, in the order of forward()'s arguments, then the others in the file's.
pen_status pen_pt2_sources_make(pen_pt2_importer *import) {
    const uint32_t count = import->model->graph.input_count;
    PEN_TRY(sources_scan_all(import));
    PEN_TRY(PEN_NEW(import->arena, count, &import->ports));
    PEN_TRY(PEN_NEW(import->arena, count, &import->port_values));
    PEN_TRY(PEN_NEW(import->arena, import->weights->count, &import->weight_values));
    for (uint32_t i = 0; i < import->weights->count; i++) {
        import->weight_values[i] = PEN_VALUE_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool is_input = import->model->ports[i].role == PEN_PT2_USER_INPUT;
        if (is_input) PEN_TRY(sources_make_port(import, i));
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool is_input = import->model->ports[i].role == PEN_PT2_USER_INPUT;
        if (!is_input) PEN_TRY(sources_make_port(import, i));
    }
    return PEN_OK;
}

// ---- buffers that were changed

// Whether a value that was computed may take a state's place at once: nothing reads the state
// behind the node that made it, and it takes no other state's place.
static bool sources_may_replace(const pen_graph *graph, pen_value_id value, pen_value_id state) {
    const pen_value *made = pen_graph_value(graph, value);
    if (made->kind != PEN_VALUE_COMPUTED || pen_value_is(made->replaces)) return false;
    for (uint32_t n = made->producer.index + 1; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_same(node->inputs[i], state)) return false;
        }
    }
    return true;
}

static pen_status sources_finish_buffer(pen_pt2_importer *import, pen_pt2_slot *slot,
                                        const pen_pt2_weight *weight) {
    const pen_value_id state = import->weight_values[weight->same_as];
    pen_value_id value = slot->value;
    if (slot->version == 0) return PEN_OK;
    if (pen_graph_value(import->graph, state)->kind != PEN_VALUE_STATE) {
        return pen_error(PEN_UNSUPPORTED, "it is changed where Penstock does not see it");
    }
    if (!sources_may_replace(import->graph, value, state)) {
        const char *name;
        PEN_TRY(pen_arena_format(import->arena, &name, "%s/new", slot->name));
        pen_node_spec spec = pen_node_spec_make("identity", name);
        pen_node_spec_fill(&spec, PEN_INPUTS(value), PEN_NO_ATTRIBUTES);
        spec.output_count = 1;
        PEN_TRY(pen_graph_add_simple(import->graph, &spec, &value));
    }
    pen_graph_set_replaces(import->graph, value, state);
    return PEN_OK;
}

pen_status pen_pt2_sources_finish(pen_pt2_importer *import) {
    for (uint32_t i = 0; i < import->model->graph.input_count; i++) {
        const pen_pt2_port *port = &import->model->ports[i];
        pen_pt2_slot *slot = import->ports[i];
        if (slot == NULL || port->role != PEN_PT2_BUFFER) continue;
        const pen_pt2_weight *weight = pen_pt2_weights_find(import->weights, port->name);
        PEN_TRY(pen_status_add_context(sources_finish_buffer(import, slot, weight),
                                       "in buffer '%.200s'", port->name));
    }
    return PEN_OK;
}
