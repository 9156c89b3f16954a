#include "graph/dump/dump_dot.h"

#include "base/format/palette.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"

#define DOT_ROLE_COUNT (PEN_ROLE_TRANSFER + 1)

// Of the palette's series: blue, orange, pink, green, grey.
static const uint32_t dot_role_colors[DOT_ROLE_COUNT] = {
    [PEN_ROLE_FORWARD] = 0, [PEN_ROLE_BACKWARD_INPUT] = 1, [PEN_ROLE_BACKWARD_WEIGHT] = 7,
    [PEN_ROLE_UPDATE] = 2,  [PEN_ROLE_TRANSFER] = 9,
};

void pen_dot_add_escaped(pen_text *text, const char *string) {
    for (const char *c = string; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') {
            pen_text_print(text, "\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7f) {
            pen_text_add(text, " ");
        } else {
            pen_text_append(text, c, 1);
        }
    }
}

static void dot_add_type(pen_text *text, const pen_graph *graph, const pen_value *value) {
    const pen_tensor_type *type = &value->type;
    if (type->element == PEN_ELEMENT_UNKNOWN) {
        pen_text_add(text, "?");
        return;
    }
    pen_text_print(text, "%s[", pen_element_name(type->element));
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        const char *symbol = pen_graph_symbol_name(graph, type->shape.dims[i]);
        if (i > 0) pen_text_add(text, ",");
        if (symbol != NULL) {
            pen_dot_add_escaped(text, symbol);
        } else {
            pen_text_print(text, "%lld", (long long)type->shape.dims[i]);
        }
    }
    pen_text_add(text, "]");
}

static void dot_add_cluster(pen_text *text, const pen_graph *graph, pen_role role) {
    bool opened = false;
    char color[PEN_PALETTE_TEXT_BYTES];
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->role != role) continue;
        if (!opened) {
            pen_text_print(text, "  subgraph cluster_%s {\n    label=\"%s\";\n",
                           pen_role_name(role), pen_role_name(role));
            pen_text_print(text, "    node [fillcolor=\"%s\"];\n",
                           pen_palette_series(dot_role_colors[role], color));
            opened = true;
        }
        pen_text_print(text, "    n%u [label=\"%s\\n", n, node->op->name);
        pen_dot_add_escaped(text, node->name);
        pen_text_print(text, "\"%s];\n", node->accumulates ? ", peripheries=2" : "");
    }
    if (opened) pen_text_add(text, "  }\n");
}

static void dot_add_values(pen_text *text, const pen_graph *graph) {
    for (uint32_t i = 0; i < pen_graph_value_count(graph); i++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){i});
        if (value->kind == PEN_VALUE_COMPUTED || value->kind == PEN_VALUE_CONSTANT) continue;
        pen_text_print(text, "  v%u [shape=ellipse, fillcolor=white, label=\"%s\\n", i,
                       pen_value_kind_name(value->kind));
        pen_dot_add_escaped(text, value->name);
        pen_text_add(text, "\"];\n");
    }
}

// Constants are left out: they are many and small. An update points at the parameter that it
// replaces by a dashed line that does not bend the layout.
static void dot_add_edges(pen_text *text, const pen_graph *graph, uint32_t n) {
    const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value *value = pen_graph_value(graph, node->inputs[i]);
        if (value->kind == PEN_VALUE_CONSTANT) continue;
        if (value->kind == PEN_VALUE_COMPUTED) {
            pen_text_print(text, "  n%u -> n%u [label=\"", value->producer.index, n);
        } else {
            pen_text_print(text, "  v%u -> n%u [label=\"", node->inputs[i].index, n);
        }
        dot_add_type(text, graph, value);
        pen_text_add(text, "\"];\n");
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id old = pen_graph_value(graph, node->outputs[i])->replaces;
        if (!pen_value_is(old)) continue;
        pen_text_print(text, "  n%u -> v%u [style=dashed, constraint=false];\n", n, old.index);
    }
}

static void dot_add_outputs(pen_text *text, const pen_graph *graph) {
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        const pen_value_id id = pen_graph_output(graph, i);
        const pen_value *value = pen_graph_value(graph, id);
        pen_text_print(text, "  o%u [shape=ellipse, fillcolor=white, label=\"output\\n", i);
        pen_dot_add_escaped(text, value->name);
        pen_text_add(text, "\"];\n");
        if (value->kind == PEN_VALUE_CONSTANT) continue;
        if (value->kind == PEN_VALUE_COMPUTED) {
            pen_text_print(text, "  n%u -> o%u [label=\"", value->producer.index, i);
        } else {
            pen_text_print(text, "  v%u -> o%u [label=\"", id.index, i);
        }
        dot_add_type(text, graph, value);
        pen_text_add(text, "\"];\n");
    }
}

pen_status pen_dump_dot(const pen_graph *graph, pen_arena *arena, const char **out_text) {
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add(&text, "digraph \"");
    pen_dot_add_escaped(&text, pen_graph_name(graph));
    pen_text_add(&text, "\" {\n"
                        "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                        "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    dot_add_values(&text, graph);
    for (int role = 0; role < DOT_ROLE_COUNT; role++) {
        dot_add_cluster(&text, graph, (pen_role)role);
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        dot_add_edges(&text, graph, n);
    }
    dot_add_outputs(&text, graph);
    pen_text_add(&text, "}\n");
    return pen_text_finish(&text, out_text);
}
