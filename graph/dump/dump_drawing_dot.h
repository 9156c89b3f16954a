// A drawing for graphviz: `dot -Tsvg`, which gives the boxes their places.
// Groups are clusters. Equal drawings give equal texts, which live in `arena`.
#ifndef PEN_GRAPH_DUMP_DUMP_DRAWING_DOT_H
#define PEN_GRAPH_DUMP_DUMP_DRAWING_DOT_H

#include "graph/dump/drawing.h"

// No layout is needed: graphviz makes its own. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_dump_drawing_dot(const pen_drawing *drawing, const pen_graph *graph,
                                              pen_arena *arena, const char **out_text);

#endif // PEN_GRAPH_DUMP_DUMP_DRAWING_DOT_H
