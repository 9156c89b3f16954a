// A picture of a graph before it is drawn: boxes, arrows between them, groups of boxes.
//
// Forward nodes become boxes, and so do the graph's inputs and outputs; parameters and constants
// are part of what reads them. Past a number of boxes, nodes whose names begin alike are drawn as
// one: "/layer1/*". Groups (devices and stages, say) are the caller's, and no box spans two.
//
// Lifetime: in the arena it was made with; borrows graph and groups.
// Threads:  belongs to one thread.
#ifndef PEN_GRAPH_DUMP_DRAWING_H
#define PEN_GRAPH_DUMP_DRAWING_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"

#define PEN_DRAWING_NONE UINT32_MAX

typedef enum pen_drawing_kind {
    PEN_DRAWING_NODE,  // one node
    PEN_DRAWING_NODES, // several
    PEN_DRAWING_INPUT,
    PEN_DRAWING_OUTPUT,
} pen_drawing_kind;

typedef struct pen_drawing_box {
    pen_drawing_kind kind;
    const char *name;
    const char *op;      // "matmul", "12 nodes", "input"
    const char *shape;   // of its first output, "float32[32,10]"; "" where there is none
    uint32_t group;      // or PEN_DRAWING_NONE
    uint32_t node;       // the node, or the first of them; PEN_DRAWING_NONE
    uint32_t node_count; // 0 for inputs and outputs
    double x;            // left upper corner, in pixels; set by the layout
    double y;
    double width;
    double height;
} pen_drawing_box;

typedef struct pen_drawing_point {
    double x;
    double y;
} pen_drawing_point;

typedef struct pen_drawing_arrow {
    uint32_t source; // boxes
    uint32_t target;
    const char *label;    // shape of what flows; of the first value, if there are several
    uint32_t point_first; // set by the layout: the points it goes through, from end to end
    uint32_t point_count; // at least 2
} pen_drawing_arrow;

typedef struct pen_drawing_group {
    const char *name;
    uint32_t parent; // a lower group that contains it, or PEN_DRAWING_NONE
    uint32_t color;  // number of a colour: pen_palette_series
} pen_drawing_group;

typedef struct pen_drawing_options {
    uint32_t box_limit;            // of nodes' boxes; 0: none
    const uint32_t *group_of_node; // [node_count] of the graph; PEN_DRAWING_NONE; or NULL
    const pen_drawing_group *groups;
    uint32_t group_count;
} pen_drawing_options;

typedef struct pen_drawing {
    const char *title;
    uint32_t box_count;
    pen_drawing_box *boxes; // inputs, then nodes in the order of the first of each, then outputs
    uint32_t arrow_count;
    pen_drawing_arrow *arrows;
    uint32_t group_count;
    const pen_drawing_group *groups;
    uint32_t *box_of_node; // [node_count] of the graph; PEN_DRAWING_NONE for other than forward
    uint32_t point_count;  // set by the layout, as are width and height
    pen_drawing_point *points;
    double width;
    double height;
} pen_drawing;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_drawing_new(const pen_graph *graph, const pen_drawing_options *options,
                                         pen_arena *arena, pen_drawing **out_drawing);

// The colour of a box: of its group, or grey outside of all; without groups, of its operator's
// family.
uint32_t pen_drawing_box_color(const pen_drawing *drawing, const pen_graph *graph,
                               const pen_drawing_box *box);

#endif // PEN_GRAPH_DUMP_DRAWING_H
