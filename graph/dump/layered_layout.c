#include "graph/dump/layered_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/dump/layout_columns.h"
#include "graph/dump/layout_layers.h"

// In pixels.
#define LAYOUT_BOX_HEIGHT 34.0
#define LAYOUT_LETTER 6.6
#define LAYOUT_WIDTH_MINIMUM 70.0
#define LAYOUT_WIDTH_MAXIMUM 210.0

#define LAYOUT_SWEEP_COUNT 10
#define LAYOUT_WINDOW 20u // layers each way, whose drift is taken out

typedef struct layout_key {
    double barycentre;
    uint32_t place; // before
    uint32_t item;
} layout_key;

static int layout_compare_keys(const void *left, const void *right) {
    const layout_key *a = left;
    const layout_key *b = right;
    if (a->barycentre != b->barycentre) return a->barycentre < b->barycentre ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

// Mean of `at` over the neighbours above or below; `own` where there are none.
static double layout_barycentre(const pen_layout_layers *layers, uint32_t item, bool above,
                                const double *at, double own) {
    const uint32_t *first = above ? layers->first_above : layers->first_below;
    const uint32_t *neighbours = above ? layers->above : layers->below;
    const uint32_t count = first[item + 1] - first[item];
    double sum = 0;
    if (count == 0) return own;
    for (uint32_t i = first[item]; i < first[item + 1]; i++) {
        sum += at[neighbours[i]];
    }
    return sum / count;
}

static void layout_sort_layer(pen_layout_layers *layers, uint32_t layer, bool above,
                              layout_key *keys, double *at) {
    const uint32_t first = layers->first_item[layer];
    const uint32_t count = layers->first_item[layer + 1] - first;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t item = layers->items[first + i];
        keys[i] = (layout_key){layout_barycentre(layers, item, above, at, at[item]), i, item};
    }
    qsort(keys, count, sizeof *keys, layout_compare_keys);
    for (uint32_t i = 0; i < count; i++) {
        layers->items[first + i] = keys[i].item;
        // layers of different breadth are compared by where in them an item is
        at[keys[i].item] = (i + 0.5) / count;
    }
}

// Sorts layers by where their neighbours are, down and up in turn: few arrows cross after some
// sweeps (Sugiyama and others, 1981).
static pen_status layout_order(pen_layout_layers *layers, pen_arena *arena) {
    layout_key *keys;
    double *at;
    PEN_TRY(PEN_NEW(arena, layers->item_count, &keys));
    PEN_TRY(PEN_NEW(arena, layers->item_count, &at));
    for (uint32_t layer = 0; layer < layers->layer_count; layer++) {
        const uint32_t first = layers->first_item[layer];
        const uint32_t count = layers->first_item[layer + 1] - first;
        for (uint32_t i = 0; i < count; i++) {
            at[layers->items[first + i]] = (i + 0.5) / count;
        }
    }
    for (uint32_t sweep = 0; sweep < LAYOUT_SWEEP_COUNT; sweep++) {
        for (uint32_t i = 0; i < layers->layer_count; i++) {
            const bool down = sweep % 2 == 0;
            layout_sort_layer(layers, down ? i : layers->layer_count - 1 - i, down, keys, at);
        }
    }
    return PEN_OK;
}

// A run of items that stand close together, for least squares.
typedef struct layout_block {
    double weight;
    double place; // of its first item, without the distances
    uint32_t count;
} layout_block;

// Puts the items of a layer as near to their neighbours as their order and sizes allow: of places
// p with p[i+1] - p[i] at least a distance, those that minimise the sum of weighted squares. With
// the distances subtracted that is regression to a rising sequence, solved by pooling neighbours
// that fall.
static void layout_place_layer(const pen_layout_layers *layers, uint32_t layer, bool above,
                               layout_block *blocks, double *x) {
    uint32_t block_count = 0;
    double offset = 0;
    const uint32_t first = layers->first_item[layer];
    const uint32_t end = layers->first_item[layer + 1];
    for (uint32_t i = first; i < end; i++) {
        const uint32_t item = layers->items[i];
        if (i > first) offset += pen_layout_distance(layers, layers->items[i - 1], item);
        const bool is_bend = item >= layers->box_count;
        layout_block block = {
            .weight = is_bend ? 3 : 1,
            .place = layout_barycentre(layers, item, above, x, x[item]) - offset,
            .count = 1,
        };
        while (block_count > 0 && blocks[block_count - 1].place > block.place) {
            const layout_block *last = &blocks[--block_count];
            const double weight = last->weight + block.weight;
            block.place = (last->place * last->weight + block.place * block.weight) / weight;
            block.weight = weight;
            block.count += last->count;
        }
        blocks[block_count++] = block;
    }
    uint32_t i = first;
    offset = 0;
    for (uint32_t b = 0; b < block_count; b++) {
        for (uint32_t k = 0; k < blocks[b].count; k++, i++) {
            const uint32_t item = layers->items[i];
            if (i > first) offset += pen_layout_distance(layers, layers->items[i - 1], item);
            x[item] = blocks[b].place + offset;
        }
    }
}

// Starts packed to the left, then moves boxes towards their neighbours, down and up in turn,
// without changing their order.
static pen_status layout_place(const pen_layout_layers *layers, pen_arena *arena, double *x) {
    layout_block *blocks;
    PEN_TRY(PEN_NEW(arena, layers->item_count, &blocks));
    for (uint32_t layer = 0; layer < layers->layer_count; layer++) {
        double at = 0;
        for (uint32_t i = layers->first_item[layer]; i < layers->first_item[layer + 1]; i++) {
            const uint32_t item = layers->items[i];
            if (i > layers->first_item[layer])
                at += pen_layout_distance(layers, layers->items[i - 1], item);
            x[item] = at;
        }
    }
    for (uint32_t sweep = 0; sweep < LAYOUT_SWEEP_COUNT; sweep++) {
        for (uint32_t i = 0; i < layers->layer_count; i++) {
            const bool down = sweep % 2 == 0;
            layout_place_layer(layers, down ? i : layers->layer_count - 1 - i, down, blocks, x);
        }
    }
    return PEN_OK;
}

// Takes out slow drifts: a graph of many like blocks may go a little to one side with each. Layers
// move by the mean of where layers near them have their middles.
static pen_status layout_straighten(const pen_layout_layers *layers, pen_arena *arena, double *x) {
    double *sum; // of the middles of the layers before
    PEN_TRY(PEN_NEW(arena, (size_t)layers->layer_count + 1, &sum));
    for (uint32_t layer = 0; layer < layers->layer_count; layer++) {
        double left = INFINITY;
        double right = -INFINITY;
        for (uint32_t i = layers->first_item[layer]; i < layers->first_item[layer + 1]; i++) {
            left = fmin(left, x[layers->items[i]]);
            right = fmax(right, x[layers->items[i]]);
        }
        sum[layer + 1] = sum[layer] + (left + right) / 2;
    }
    for (uint32_t layer = 0; layer < layers->layer_count; layer++) {
        const uint32_t first = layer > LAYOUT_WINDOW ? layer - LAYOUT_WINDOW : 0;
        const uint32_t end = layer + LAYOUT_WINDOW + 1 < layers->layer_count
                                 ? layer + LAYOUT_WINDOW + 1
                                 : layers->layer_count;
        const double mean = (sum[end] - sum[first]) / (end - first);
        for (uint32_t i = layers->first_item[layer]; i < layers->first_item[layer + 1]; i++) {
            x[layers->items[i]] -= mean;
        }
    }
    return PEN_OK;
}

static void layout_size_boxes(pen_drawing *drawing) {
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        pen_drawing_box *box = &drawing->boxes[b];
        const size_t name_length = strlen(box->name);
        const size_t op_length = strlen(box->op);
        const size_t length = name_length > op_length ? name_length : op_length;
        box->width = fmin(fmax((double)length * LAYOUT_LETTER + 12, LAYOUT_WIDTH_MINIMUM),
                          LAYOUT_WIDTH_MAXIMUM);
        box->height = LAYOUT_BOX_HEIGHT;
    }
}

pen_status pen_layered_layout(pen_drawing *drawing, pen_arena *arena) {
    pen_layout_layers layers;
    double *x;
    layout_size_boxes(drawing);
    PEN_TRY(pen_layout_layers_new(drawing, arena, &layers));
    PEN_TRY(PEN_NEW(arena, layers.item_count, &x));
    PEN_TRY(layout_order(&layers, arena));
    PEN_TRY(layout_place(&layers, arena, x));
    PEN_TRY(layout_straighten(&layers, arena, x));
    return pen_layout_columns(drawing, &layers, x, arena);
}
