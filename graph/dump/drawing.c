#include "graph/dump/drawing.h"

#include <stdlib.h>

#include "base/text.h"
#include "graph/dump/drawing_collapse.h"
#include "graph/graph.h"
#include "graph/op.h"

// As "float32[N,64,28,28]"; nothing where the type is not known yet.
static pen_status drawing_type_text(const pen_graph *graph, pen_value_id id, pen_arena *arena,
                                    const char **out_text) {
    pen_text text;
    *out_text = "";
    if (!pen_value_is(id)) return PEN_OK;
    const pen_tensor_type *type = pen_value_type(graph, id);
    if (type->element == PEN_ELEMENT_UNKNOWN) return PEN_OK;
    pen_text_init(&text, arena);
    pen_text_print(&text, "%s[", pen_element_name(type->element));
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        const char *symbol = pen_graph_symbol_name(graph, type->shape.dims[i]);
        if (i > 0) pen_text_add(&text, ",");
        if (symbol != NULL) {
            pen_text_add(&text, symbol);
        } else {
            pen_text_print(&text, "%lld", (long long)type->shape.dims[i]);
        }
    }
    pen_text_add(&text, "]");
    return pen_text_finish(&text, out_text);
}

// ---- boxes

static pen_status drawing_add_value_box(pen_drawing *drawing, const pen_graph *graph,
                                        pen_value_id id, pen_drawing_kind kind, pen_arena *arena) {
    pen_drawing_box *box = &drawing->boxes[drawing->box_count++];
    *box = (pen_drawing_box){
        .kind = kind,
        .name = pen_value_name(graph, id),
        .op = kind == PEN_DRAWING_INPUT ? "input" : "output",
        .group = PEN_DRAWING_NONE,
        .node = PEN_DRAWING_NONE,
    };
    return drawing_type_text(graph, id, arena, &box->shape);
}

// A bundle of several nodes says how many; a single one its operator and shape.
static pen_status drawing_add_bundles(pen_drawing *drawing, const pen_graph *graph,
                                      const pen_drawing_options *options,
                                      const pen_bundling *bundling, pen_arena *arena) {
    for (uint32_t b = 0; b < bundling->bundle_count; b++) {
        const pen_bundle *bundle = &bundling->bundles[b];
        const pen_node *node = pen_graph_node(graph, (pen_node_id){bundle->node_first});
        pen_drawing_box *box = &drawing->boxes[drawing->box_count++];
        *box = (pen_drawing_box){
            .kind = bundle->node_count > 1 ? PEN_DRAWING_NODES : PEN_DRAWING_NODE,
            .name = bundle->name,
            .op = node->op->name,
            .shape = "",
            .group = options->group_of_node != NULL ? options->group_of_node[bundle->node_first]
                                                    : PEN_DRAWING_NONE,
            .node = bundle->node_first,
            .node_count = bundle->node_count,
        };
        if (bundle->node_count > 1) {
            PEN_TRY(pen_arena_format(arena, &box->op, "%u nodes", bundle->node_count));
        } else {
            PEN_TRY(drawing_type_text(graph, node->outputs[0], arena, &box->shape));
        }
    }
    return PEN_OK;
}

// One bundle for each node.
static pen_status drawing_bundle_singly(const pen_graph *graph, const uint32_t *nodes,
                                        uint32_t count, pen_arena *arena,
                                        pen_bundling *out_bundling) {
    out_bundling->bundle_count = count;
    PEN_TRY(PEN_NEW(arena, count, &out_bundling->bundles));
    PEN_TRY(PEN_NEW(arena, count, &out_bundling->bundle_of));
    for (uint32_t i = 0; i < count; i++) {
        out_bundling->bundles[i] =
            (pen_bundle){pen_node_name(graph, (pen_node_id){nodes[i]}), 1, nodes[i]};
        out_bundling->bundle_of[i] = i;
    }
    return PEN_OK;
}

// Forward nodes alone are drawn: backward nodes and updates go where these go. Above the limit,
// nodes become bundles by their names.
static pen_status drawing_add_boxes(pen_drawing *drawing, const pen_graph *graph,
                                    const pen_drawing_options *options, pen_arena *arena) {
    const uint32_t node_count = pen_graph_node_count(graph);
    const uint32_t input_count = pen_graph_input_count(graph);
    const uint32_t output_count = pen_graph_output_count(graph);
    uint32_t *nodes;
    uint32_t count = 0;
    pen_bundling bundling;
    PEN_TRY(PEN_NEW(arena, node_count, &nodes));
    PEN_TRY(PEN_NEW(arena, node_count, &drawing->box_of_node));
    for (uint32_t n = 0; n < node_count; n++) {
        drawing->box_of_node[n] = PEN_DRAWING_NONE;
        if (pen_graph_node(graph, (pen_node_id){n})->role == PEN_ROLE_FORWARD) nodes[count++] = n;
    }
    if (options->box_limit > 0 && count > options->box_limit) {
        const pen_bundling_request request = {nodes, count, options->box_limit,
                                              options->group_of_node};
        PEN_TRY(pen_drawing_collapse(graph, &request, arena, &bundling));
    } else {
        PEN_TRY(drawing_bundle_singly(graph, nodes, count, arena, &bundling));
    }
    PEN_TRY(PEN_NEW(arena, (size_t)input_count + bundling.bundle_count + output_count,
                    &drawing->boxes));
    for (uint32_t i = 0; i < input_count; i++) {
        PEN_TRY(drawing_add_value_box(drawing, graph, pen_graph_input(graph, i), PEN_DRAWING_INPUT,
                                      arena));
    }
    for (uint32_t i = 0; i < count; i++) {
        drawing->box_of_node[nodes[i]] = input_count + bundling.bundle_of[i];
    }
    PEN_TRY(drawing_add_bundles(drawing, graph, options, &bundling, arena));
    for (uint32_t i = 0; i < output_count; i++) {
        PEN_TRY(drawing_add_value_box(drawing, graph, pen_graph_output(graph, i),
                                      PEN_DRAWING_OUTPUT, arena));
    }
    return PEN_OK;
}

// ---- arrows

typedef struct drawing_flow {
    uint32_t source;
    uint32_t target;
    uint32_t order; // in which they were found
    pen_value_id value;
} drawing_flow;

static int drawing_compare_flows(const void *left, const void *right) {
    const drawing_flow *a = left;
    const drawing_flow *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

// The box that a value comes out of.
static uint32_t drawing_box_of_value(const pen_drawing *drawing, const pen_graph *graph,
                                     const uint32_t *box_of_input, pen_value_id id) {
    if (!pen_value_is(id)) return PEN_DRAWING_NONE;
    const pen_value *value = pen_graph_value(graph, id);
    if (value->kind == PEN_VALUE_INPUT) return box_of_input[id.index];
    if (value->kind != PEN_VALUE_COMPUTED) return PEN_DRAWING_NONE;
    return drawing->box_of_node[value->producer.index];
}

// Every value that leaves a box, before those between the same two boxes become one arrow.
static pen_status drawing_find_flows(const pen_drawing *drawing, const pen_graph *graph,
                                     pen_arena *arena, drawing_flow **out_flows,
                                     uint32_t *out_count) {
    uint32_t *box_of_input;
    size_t capacity = pen_graph_output_count(graph);
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(graph), &box_of_input));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        box_of_input[v] = PEN_DRAWING_NONE;
    }
    for (uint32_t i = 0; i < pen_graph_input_count(graph); i++) {
        box_of_input[pen_graph_input(graph, i).index] = i;
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        capacity += pen_graph_node(graph, (pen_node_id){n})->input_count;
    }
    PEN_TRY(PEN_NEW(arena, capacity, out_flows));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        const uint32_t target = drawing->box_of_node[n];
        for (uint32_t i = 0; i < node->input_count && target != PEN_DRAWING_NONE; i++) {
            const uint32_t source =
                drawing_box_of_value(drawing, graph, box_of_input, node->inputs[i]);
            if (source == PEN_DRAWING_NONE || source == target) continue;
            (*out_flows)[count] = (drawing_flow){source, target, count, node->inputs[i]};
            count += 1;
        }
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        const pen_value_id id = pen_graph_output(graph, i);
        const uint32_t source = drawing_box_of_value(drawing, graph, box_of_input, id);
        if (source == PEN_DRAWING_NONE) continue;
        const uint32_t target = drawing->box_count - pen_graph_output_count(graph) + i;
        (*out_flows)[count] = (drawing_flow){source, target, count, id};
        count += 1;
    }
    *out_count = count;
    return PEN_OK;
}

static pen_status drawing_add_arrows(pen_drawing *drawing, const pen_graph *graph,
                                     pen_arena *arena) {
    drawing_flow *flows;
    uint32_t flow_count;
    PEN_TRY(drawing_find_flows(drawing, graph, arena, &flows, &flow_count));
    PEN_TRY(PEN_NEW(arena, flow_count, &drawing->arrows));
    if (flow_count > 0) qsort(flows, flow_count, sizeof *flows, drawing_compare_flows);
    for (uint32_t i = 0; i < flow_count; i++) {
        if (i > 0 && flows[i].source == flows[i - 1].source &&
            flows[i].target == flows[i - 1].target)
            continue;
        pen_drawing_arrow *arrow = &drawing->arrows[drawing->arrow_count++];
        arrow->source = flows[i].source;
        arrow->target = flows[i].target;
        PEN_TRY(drawing_type_text(graph, flows[i].value, arena, &arrow->label));
    }
    return PEN_OK;
}

pen_status pen_drawing_new(const pen_graph *graph, const pen_drawing_options *options,
                           pen_arena *arena, pen_drawing **out_drawing) {
    pen_drawing *drawing;
    PEN_TRY(PEN_NEW(arena, 1, &drawing));
    drawing->title = pen_graph_name(graph);
    drawing->groups = options->groups;
    drawing->group_count = options->group_count;
    PEN_TRY(drawing_add_boxes(drawing, graph, options, arena));
    PEN_TRY(drawing_add_arrows(drawing, graph, arena));
    *out_drawing = drawing;
    return PEN_OK;
}

// ---- colours

uint32_t pen_drawing_box_color(const pen_drawing *drawing, const pen_graph *graph,
                               const pen_drawing_box *box) {
    if (box->group != PEN_DRAWING_NONE) return drawing->groups[box->group].color;
    if (box->kind != PEN_DRAWING_NODE || drawing->group_count > 0) return 9; // grey
    const pen_op *op = pen_graph_node(graph, (pen_node_id){box->node})->op;
    for (uint32_t f = 0; f < pen_op_family_count(); f++) {
        const pen_op_family *family = pen_op_family_at(f);
        for (uint32_t i = 0; i < family->op_count; i++) {
            if (&family->ops[i] == op) return f;
        }
    }
    return 9;
}
