// A graph as a picture, for graphviz: `dot -Tsvg`.
//
// Nodes are boxes, in one cluster per role; values that no node computes are ellipses (constants
// are left out). Edges carry the shape of what flows.
#ifndef PEN_GRAPH_DUMP_DUMP_DOT_H
#define PEN_GRAPH_DUMP_DUMP_DOT_H

#include "base/arena.h"
#include "base/text.h"
#include "graph/graph_types.h"

// The text lives in `arena`; the same graph always gives the same text. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_dump_dot(const pen_graph *graph, pen_arena *arena,
                                      const char **out_text);

// What stands within quotes. Backslashes are doubled, so that no name is read as an escape.
void pen_dot_add_escaped(pen_text *text, const char *string);

#endif // PEN_GRAPH_DUMP_DUMP_DOT_H
