// The last step of a layered layout: layers are cut into columns, and everything gets its place.
#ifndef PEN_GRAPH_DUMP_LAYOUT_COLUMNS_H
#define PEN_GRAPH_DUMP_LAYOUT_COLUMNS_H

#include "graph/dump/drawing.h"
#include "graph/dump/layout_layers.h"

// x: [item_count], middles of items. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layout_columns(pen_drawing *drawing, const pen_layout_layers *layers,
                                            const double *x, pen_arena *arena);

#endif // PEN_GRAPH_DUMP_LAYOUT_COLUMNS_H
