// The layers of a layered layout: its items are the boxes, and the bends of arrows that pass
// layers, one for each layer that is passed.
#ifndef PEN_GRAPH_DUMP_LAYOUT_LAYERS_H
#define PEN_GRAPH_DUMP_LAYOUT_LAYERS_H

#include "graph/dump/drawing.h"

typedef struct pen_layout_layers {
    const pen_drawing *drawing;
    uint32_t box_count; // items below are boxes, the others bends
    uint32_t item_count;
    uint32_t layer_count;
    uint32_t *layer_of;    // [item_count]
    uint32_t *first_item;  // [layer_count + 1], into items
    uint32_t *items;       // [item_count], layer by layer, from left to right
    uint32_t *first_bend;  // [arrow_count] first bend of an arrow, from the upper end on
    uint32_t *bend_count;  // [arrow_count]
    bool *is_upward;       // [arrow_count] its target is above its source
    uint32_t *first_above; // [item_count + 1], into above: neighbours in the layer above
    uint32_t *above;
    uint32_t *first_below; // [item_count + 1], likewise
    uint32_t *below;
} pen_layout_layers;

// Layers with items in some order. Boxes must come in an order in which most arrows go from lower
// to higher; the others count as reversed. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layout_layers_new(const pen_drawing *drawing, pen_arena *arena,
                                               pen_layout_layers *out_layers);

// How far the middles of two neighbours in a layer must be apart.
double pen_layout_distance(const pen_layout_layers *layers, uint32_t left, uint32_t right);

#endif // PEN_GRAPH_DUMP_LAYOUT_LAYERS_H
