// A drawing as a picture: SVG that needs nothing else.
//
// Boxes say operator and name, and, to whoever points at one, its shape; colours are of groups (of
// operator families where there are none).
//
// Equal drawings give equal texts, which live in `arena`.
#ifndef PEN_GRAPH_DUMP_DUMP_SVG_H
#define PEN_GRAPH_DUMP_DUMP_SVG_H

#include "graph/dump/drawing.h"

// The drawing has been laid out (layered_layout.h). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_dump_svg(const pen_drawing *drawing, const pen_graph *graph,
                                      pen_arena *arena, const char **out_text);

#endif // PEN_GRAPH_DUMP_DUMP_SVG_H
