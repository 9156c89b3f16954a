#include "graph/analysis/causality.h"

#include "graph/axis_link.h"
#include "graph/graph.h"
#include "graph/op.h"

typedef struct causality_search {
    const pen_graph *graph;
    const pen_causality_request *request;
    bool *follows;
    uint32_t *axis;
    bool *is_whole;
    bool *is_kept;
} causality_search;

// Whether the node computes the value: folding leaves nodes whose results became constants.
static bool causality_computes(const causality_search *search, pen_value_id output) {
    return pen_value_is(output) &&
           pen_graph_value(search->graph, output)->kind == PEN_VALUE_COMPUTED;
}

static bool causality_node_follows(const causality_search *search, const pen_node *node) {
    if (node->op->reads_no_data) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id input = node->inputs[i];
        if (pen_value_is(input) && search->follows[input.index]) return true;
    }
    return false;
}

static void causality_mark_followers(causality_search *search) {
    search->follows[search->request->input.index] = true;
    for (uint32_t n = 0; n < pen_graph_node_count(search->graph); n++) {
        const pen_node *node = pen_graph_node(search->graph, (pen_node_id){n});
        if (!causality_node_follows(search, node)) continue;
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (causality_computes(search, node->outputs[i])) {
                search->follows[node->outputs[i].index] = true;
            }
        }
    }
}

// `why` follows the node's name.
static pen_status causality_refuse(const causality_search *search, const pen_node *node,
                                   const char *why, pen_value_id input) {
    const pen_status status = pen_error(PEN_UNSUPPORTED, "%s '%s' %s '%s'", node->op->name,
                                        node->name, why, pen_value_name(search->graph, input));
    if (node->source.file == NULL || node->source.line == 0) return status;
    return pen_status_at_position(status, node->source.file, node->source.line,
                                  node->source.column);
}

// One position of `value` is needed by `node`. Of what does not follow, positions along several
// axes are cut from the whole.
static pen_status causality_need(causality_search *search, const pen_node *node, pen_value_id value,
                                 uint32_t axis) {
    uint32_t *known = &search->axis[value.index];
    if (*known == axis) return PEN_OK;
    if (*known == PEN_AXIS_NONE) {
        *known = axis;
    } else if (search->follows[value.index]) {
        return causality_refuse(search, node, "takes positions of another axis than others do of",
                                value);
    } else {
        search->is_whole[value.index] = true;
    }
    return PEN_OK;
}

// What is reached from one position of the output is one position, or whole if it is the same for
// all inputs.
static pen_status causality_read(causality_search *search, const pen_node *node, uint32_t input,
                                 pen_axis_link link) {
    const pen_value_id value = node->inputs[input];
    const bool follows = search->follows[value.index];
    switch (link.reads) {
    case PEN_READS_SAME:
        return causality_need(search, node, value, link.axis);
    case PEN_READS_EARLIER:
        if (!follows) break;
        search->is_kept[value.index] = true;
        return causality_need(search, node, value, link.axis);
    case PEN_READS_ALL:
        if (follows) return causality_refuse(search, node, "may read all positions of", value);
        break;
    case PEN_READS_UNKNOWN:
        return causality_refuse(search, node, "does not say which positions it reads of", value);
    }
    search->is_whole[value.index] = true;
    return PEN_OK;
}

static void causality_take_whole(causality_search *search, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (pen_value_is(node->inputs[i])) search->is_whole[node->inputs[i].index] = true;
    }
}

// Whether the node says of all its inputs how it reads them.
static bool causality_is_known(const causality_search *search, const pen_node *node,
                               uint32_t axis) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_axis_link link = pen_node_axis_link(search->graph, node, axis, i);
        if (link.reads == PEN_READS_UNKNOWN) return false;
    }
    return true;
}

// The axis along which one position of the node's outputs is needed; NONE: of none.
static pen_status causality_axis_of(const causality_search *search, const pen_node *node,
                                    bool *out_is_whole, uint32_t *out_axis) {
    *out_axis = PEN_AXIS_NONE;
    *out_is_whole = false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!causality_computes(search, node->outputs[i])) continue;
        const uint32_t v = node->outputs[i].index, axis = search->axis[v];
        *out_is_whole = *out_is_whole || search->is_whole[v];
        if (axis == PEN_AXIS_NONE) continue;
        if (*out_axis != PEN_AXIS_NONE && *out_axis != axis) {
            return causality_refuse(search, node, "gives positions of several axes, also of",
                                    node->outputs[i]);
        }
        *out_axis = axis;
    }
    return PEN_OK;
}

// The outputs are computed whole, and positions cut from them.
static void causality_cut(causality_search *search, const pen_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!causality_computes(search, node->outputs[i])) continue;
        search->is_whole[node->outputs[i].index] = true;
        search->axis[node->outputs[i].index] = PEN_AXIS_NONE;
    }
    causality_take_whole(search, node);
}

static pen_status causality_visit(causality_search *search, const pen_node *node) {
    bool is_whole;
    uint32_t axis;
    PEN_TRY(causality_axis_of(search, node, &is_whole, &axis));
    if (is_whole) causality_take_whole(search, node);
    if (axis == PEN_AXIS_NONE) return PEN_OK;
    if (!causality_node_follows(search, node) && !causality_is_known(search, node, axis)) {
        causality_cut(search, node);
        return PEN_OK;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        PEN_TRY(causality_read(search, node, i, pen_node_axis_link(search->graph, node, axis, i)));
    }
    return PEN_OK;
}

static pen_status causality_check_ends(const causality_search *search) {
    const pen_causality_request *request = search->request;
    const char *output = pen_value_name(search->graph, request->output);
    const char *input = pen_value_name(search->graph, request->input);
    const uint32_t axis = search->axis[request->input.index];
    if (axis == PEN_AXIS_NONE) {
        return pen_error(PEN_UNSUPPORTED, "output '%s' does not depend on input '%s'", output,
                         input);
    }
    if (axis == request->input_axis) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "positions of output '%s' are those of axis %u of input '%s', expected "
                     "axis %u",
                     output, axis, input, request->input_axis);
}

// Readers stand behind what they read, so a walk from the last node meets all readers of a value
// before its producer.
pen_status pen_causality_find(const pen_graph *graph, const pen_causality_request *request,
                              pen_arena *arena, pen_causality *out_causality) {
    const uint32_t value_count = pen_graph_value_count(graph);
    causality_search search = {.graph = graph, .request = request};
    pen_value_id *kept;
    uint32_t kept_count = 0;
    PEN_TRY(PEN_NEW(arena, value_count, &search.follows));
    PEN_TRY(PEN_NEW(arena, value_count, &search.axis));
    PEN_TRY(PEN_NEW(arena, value_count, &search.is_whole));
    PEN_TRY(PEN_NEW(arena, value_count, &search.is_kept));
    PEN_TRY(PEN_NEW(arena, value_count, &kept));
    for (uint32_t v = 0; v < value_count; v++)
        search.axis[v] = PEN_AXIS_NONE;
    causality_mark_followers(&search);
    search.axis[request->output.index] = request->output_axis;
    for (uint32_t n = pen_graph_node_count(graph); n-- > 0;) {
        PEN_TRY(causality_visit(&search, pen_graph_node(graph, (pen_node_id){n})));
    }
    PEN_TRY(causality_check_ends(&search));
    for (uint32_t v = 0; v < value_count; v++) {
        if (search.is_kept[v]) kept[kept_count++] = (pen_value_id){v};
    }
    *out_causality = (pen_causality){.follows = search.follows,
                                     .axis = search.axis,
                                     .is_whole = search.is_whole,
                                     .kept = kept,
                                     .kept_count = kept_count};
    return PEN_OK;
}
