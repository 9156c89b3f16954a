// Graphs within graphs: code under no_grad, enable_grad and autocast, which is put in the place of
// the call. Branches and loops (cond, while_loop, scan) are listed among what Penstock has not:
// torch.export takes those that do not depend on data itself; and where both branches were computed
// and one chosen, the other's gradient would be 0 times whatever it is, which is no number where a
// branch stands guard against just that.

#include "graph/import/pytorch/pt2_importer.h"

#include <string.h>

#define NESTED_DEPTH_LIMIT 16

// Operators that run a graph once, as it stands.
typedef struct nested_kind {
    const char *target;
    bool sets_gradient; // argument 0 says whether gradients flow
} nested_kind;

static const nested_kind nested_kinds[] = {
    {"higher_order.wrap_with_set_grad_enabled", true},
    {"higher_order.wrap_with_autocast", false},
};

static const nested_kind *nested_find(const pen_pt2_node *node) {
    for (size_t i = 0; i < sizeof nested_kinds / sizeof nested_kinds[0]; i++) {
        if (strcmp(nested_kinds[i].target, node->target) == 0) return &nested_kinds[i];
    }
    return NULL;
}

bool pen_pt2_is_nested(const pen_pt2_node *node) {
    return nested_find(node) != NULL;
}

// Which argument is the graph.
static pen_status nested_find_graph(const pen_pt2_node *node, uint32_t *out_index) {
    for (uint32_t i = 0; i < node->argument_count; i++) {
        const pen_pt2_argument *argument = &node->arguments[i];
        if (argument->count != 1 || argument->items[0].kind != PEN_PT2_GRAPH) continue;
        if (node->argument_count - i - 1 == argument->items[0].graph->input_count) {
            *out_index = i;
            return PEN_OK;
        }
    }
    return pen_error(PEN_CORRUPT, "it has no graph that takes its other arguments");
}

// Binds an input of the inner graph to what the outer one passes.
static pen_status nested_bind(const pen_pt2_scope *outer, const pen_pt2_argument *argument,
                              const pen_pt2_item *input, pen_pt2_scope *inner) {
    const pen_pt2_item *given = argument->is_list ? NULL : &argument->items[0];
    if (given != NULL && given->kind == PEN_PT2_TENSOR && input->kind == PEN_PT2_TENSOR) {
        pen_pt2_slot *slot = pen_pt2_scope_find(outer, given->text);
        if (slot == NULL) {
            return pen_error(PEN_INVALID_INPUT, "'%.100s' is made by no node", given->text);
        }
        return pen_pt2_scope_bind(inner, input->text, slot);
    }
    if (given != NULL && given->kind == PEN_PT2_SYMBOL && input->kind == PEN_PT2_SYMBOL) {
        const pen_pt2_known_symbol *symbol = pen_pt2_scope_symbol(outer, given->text);
        if (symbol == NULL) {
            return pen_error(PEN_INVALID_INPUT, "'%.100s' is made by no node", given->text);
        }
        return pen_pt2_scope_bind_symbol(inner, input->text, symbol);
    }
    return PEN_OK; // a plain number stands where it is read, too
}

// A tensor that leaves code under no_grad: nothing flows back through it.
static pen_status nested_stop(pen_pt2_importer *import, const pen_pt2_node *node,
                              pen_value_id value, pen_value_id *out_value) {
    const char *name;
    PEN_TRY(pen_pt2_importer_name(import, node, &name));
    pen_node_spec spec = pen_node_spec_make("stop_gradient", name);
    spec.source = (pen_source){.file = import->path, .position = node->position};
    spec.output_count = 1;
    pen_node_spec_fill(&spec, PEN_INPUTS(value), PEN_NO_ATTRIBUTES);
    const pen_element_type element = pen_pt2_importer_element(import, value);
    PEN_TRY(pen_graph_add_simple(import->graph, &spec, out_value));
    return pen_pt2_importer_note(import, *out_value, element);
}

// Behind no_grad, a result has a value of its own, through which no gradient flows. What was there
// before is changed with it.
static pen_status nested_give(pen_pt2_importer *import, pen_pt2_scope *outer,
                              const pen_pt2_scope *inner, const pen_pt2_node *node,
                              const pen_pt2_item *output, const pen_pt2_item *result) {
    if (result->kind == PEN_PT2_SYMBOL && output->kind == PEN_PT2_SYMBOL) {
        const pen_pt2_known_symbol *symbol = pen_pt2_scope_symbol(inner, output->text);
        return symbol == NULL ? PEN_OK : pen_pt2_scope_bind_symbol(outer, result->text, symbol);
    }
    if (result->kind != PEN_PT2_TENSOR || output->kind != PEN_PT2_TENSOR) return PEN_OK;
    pen_pt2_slot *slot = pen_pt2_scope_find(inner, output->text), *origin = slot;
    pen_value_id value;
    if (slot == NULL) {
        return pen_error(PEN_INVALID_INPUT, "'%.100s' is made by no node", output->text);
    }
    if (inner->stops_gradient) {
        PEN_TRY(pen_pt2_slot_read(import, slot, &value));
        PEN_TRY(nested_stop(import, node, value, &value));
        PEN_TRY(pen_pt2_slot_new(import, result->text,
                                 pen_pt2_graph_tensor(outer->graph, result->text), value, &slot));
        if (origin->storage->born < import->unseen_before) {
            slot->origin = origin;
            slot->origin_version = origin->storage->version;
        }
    }
    return pen_pt2_scope_bind(outer, result->text, slot);
}

static pen_status nested_give_all(pen_pt2_importer *import, pen_pt2_scope *outer,
                                  const pen_pt2_scope *inner, const pen_pt2_node *node) {
    uint32_t result = 0;
    for (uint32_t r = 0; r < node->result_count; r++) {
        for (uint32_t i = 0; i < node->results[r].count; i++) {
            if (result >= inner->graph->output_count) return PEN_OK;
            PEN_TRY(nested_give(import, outer, inner, node, &inner->graph->outputs[result++],
                                &node->results[r].items[i]));
        }
    }
    return PEN_OK;
}

// The inner graph has a scope of its own, which shares storage with what is passed to it.
pen_status pen_pt2_nested_import(pen_pt2_importer *import, pen_pt2_scope *outer,
                                 const pen_pt2_node *node) {
    const nested_kind *kind = nested_find(node);
    pen_pt2_scope *inner; // views keep where they were made
    uint32_t at;
    PEN_TRY(nested_find_graph(node, &at));
    const pen_pt2_graph_part *graph = node->arguments[at].items[0].graph;
    if (outer->depth >= NESTED_DEPTH_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "graphs within graphs, %d deep", NESTED_DEPTH_LIMIT);
    }
    PEN_TRY(PEN_NEW(import->arena, 1, &inner));
    PEN_TRY(pen_pt2_scope_init(inner, graph, import->arena));
    inner->depth = outer->depth + 1;
    inner->stops_gradient = kind->sets_gradient && node->arguments[0].count == 1 &&
                            node->arguments[0].items[0].integer == 0;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        PEN_TRY(nested_bind(outer, &node->arguments[at + 1 + i], &graph->inputs[i], inner));
    }
    const uint32_t unseen_before = import->unseen_before;
    if (kind->sets_gradient) {
        import->unseen_before = inner->stops_gradient ? import->storage_count : 0;
    }
    PEN_TRY(pen_pt2_importer_walk(import, inner));
    PEN_TRY(nested_give_all(import, outer, inner, node));
    import->unseen_before = unseen_before;
    return PEN_OK;
}
