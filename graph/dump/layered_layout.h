// Where the boxes of a drawing go: in layers from top to bottom, after Sugiyama, Tagawa and Toda
// ("Methods for visual understanding of hierarchical system structures", 1981).
//
//   layers    the longest way from a source; sources without one just above what reads them
//   order     sweeps down and up, each box to the barycentre of its neighbours
//   places    each box as near to its neighbours as the order allows, by least squares
//   columns   a drawing much higher than wide is cut between layers, where few arrows cross, and
//             goes on at the top of the next column
//
// Arrows that pass layers go around their boxes, unless there are too many of them: then the
// longest are drawn straight.
#ifndef PEN_GRAPH_DUMP_LAYERED_LAYOUT_H
#define PEN_GRAPH_DUMP_LAYERED_LAYOUT_H

#include "graph/dump/drawing.h"

// Sets sizes and places of boxes, points of arrows, and the drawing's width and height. Time grows
// as boxes and arrows do, times their logarithm. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layered_layout(pen_drawing *drawing, pen_arena *arena);

#endif // PEN_GRAPH_DUMP_LAYERED_LAYOUT_H
