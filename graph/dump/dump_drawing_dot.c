#include "graph/dump/dump_drawing_dot.h"

#include "base/format/palette.h"
#include "base/text.h"
#include "graph/dump/dump_dot.h"

static void dot_add_box(pen_text *text, const pen_drawing *drawing, const pen_graph *graph,
                        uint32_t b) {
    const pen_drawing_box *box = &drawing->boxes[b];
    const bool is_value = box->kind == PEN_DRAWING_INPUT || box->kind == PEN_DRAWING_OUTPUT;
    char color[PEN_PALETTE_TEXT_BYTES];
    pen_text_print(text, "  b%u [label=\"%s\\n", b, box->op);
    pen_dot_add_escaped(text, box->name);
    pen_text_print(text, "\", fillcolor=\"%s\"",
                   is_value
                       ? "#ffffff"
                       : pen_palette_series(pen_drawing_box_color(drawing, graph, box), color));
    if (is_value) pen_text_add(text, ", shape=ellipse");
    if (box->kind == PEN_DRAWING_NODES) pen_text_add(text, ", peripheries=2");
    pen_text_add(text, "];\n");
}

// A group with those in it. Groups come after their parents, so this ends.
static void dot_add_cluster(pen_text *text, const pen_drawing *drawing, const pen_graph *graph,
                            uint32_t g) {
    pen_text_print(text, "  subgraph cluster_%u {\n  label=\"", g);
    pen_dot_add_escaped(text, drawing->groups[g].name);
    pen_text_add(text, "\";\n");
    for (uint32_t child = g + 1; child < drawing->group_count; child++) {
        if (drawing->groups[child].parent == g) dot_add_cluster(text, drawing, graph, child);
    }
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        if (drawing->boxes[b].group == g) dot_add_box(text, drawing, graph, b);
    }
    pen_text_add(text, "  }\n");
}

// Groups are clusters, which Graphviz draws around their boxes; clusters within clusters come with
// their parents.
pen_status pen_dump_drawing_dot(const pen_drawing *drawing, const pen_graph *graph,
                                pen_arena *arena, const char **out_text) {
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add(&text, "digraph \"");
    pen_dot_add_escaped(&text, drawing->title);
    pen_palette_add(&text,
                    "\" {\n"
                    "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                    "  edge [fontname=\"sans-serif\", fontsize=9];\n"
                    "  graph [fontname=\"sans-serif\", style=rounded, color=\"var(--arrow)\"];\n");
    for (uint32_t g = 0; g < drawing->group_count; g++) {
        if (drawing->groups[g].parent == PEN_DRAWING_NONE)
            dot_add_cluster(&text, drawing, graph, g);
    }
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        if (drawing->boxes[b].group == PEN_DRAWING_NONE) dot_add_box(&text, drawing, graph, b);
    }
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        const pen_drawing_arrow *arrow = &drawing->arrows[a];
        pen_text_print(&text, "  b%u -> b%u [label=\"", arrow->source, arrow->target);
        pen_dot_add_escaped(&text, arrow->label);
        pen_text_add(&text, "\"];\n");
    }
    pen_text_add(&text, "}\n");
    return pen_text_finish(&text, out_text);
}
