#include "graph/dump/layout_layers.h"

// In pixels.
#define LAYERS_BOX_GAP 22.0
#define LAYERS_BEND_GAP 9.0

// Bends are worth it up to this many a box, and these.
#define LAYERS_BENDS_A_BOX 6
#define LAYERS_BENDS_FREE 4000

// Upper and lower end of an arrow.
static uint32_t layers_upper(const pen_drawing_arrow *arrow) {
    return arrow->source < arrow->target ? arrow->source : arrow->target;
}
static uint32_t layers_lower(const pen_drawing_arrow *arrow) {
    return arrow->source < arrow->target ? arrow->target : arrow->source;
}

// Arrows by upper end, so that one walk over boxes finds longest ways.
static pen_status layers_assign(pen_layout_layers *layers, pen_arena *arena) {
    const pen_drawing *drawing = layers->drawing;
    uint32_t *first;
    uint32_t *by_upper;
    uint32_t *cursor;
    uint32_t *highest; // of the lower ends
    PEN_TRY(PEN_NEW(arena, (size_t)drawing->box_count + 1, &first));
    PEN_TRY(PEN_NEW(arena, drawing->arrow_count, &by_upper));
    PEN_TRY(PEN_NEW(arena, drawing->box_count, &cursor));
    PEN_TRY(PEN_NEW(arena, drawing->box_count, &highest));
    bool *has_above;
    PEN_TRY(PEN_NEW(arena, drawing->box_count, &has_above));
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        first[layers_upper(&drawing->arrows[a]) + 1] += 1;
        has_above[layers_lower(&drawing->arrows[a])] = true;
    }
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        first[b + 1] += first[b];
        highest[b] = UINT32_MAX;
    }
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        const uint32_t upper = layers_upper(&drawing->arrows[a]);
        by_upper[first[upper] + cursor[upper]++] = a;
    }
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        for (uint32_t i = first[b]; i < first[b + 1]; i++) {
            const uint32_t lower = layers_lower(&drawing->arrows[by_upper[i]]);
            if (layers->layer_of[lower] < layers->layer_of[b] + 1)
                layers->layer_of[lower] = layers->layer_of[b] + 1;
        }
    }
    for (uint32_t b = drawing->box_count; b-- > 0;) {
        for (uint32_t i = first[b]; i < first[b + 1]; i++) {
            const uint32_t layer = layers->layer_of[layers_lower(&drawing->arrows[by_upper[i]])];
            if (layer < highest[b]) highest[b] = layer;
        }
        if (!has_above[b] && highest[b] != UINT32_MAX) layers->layer_of[b] = highest[b] - 1;
    }
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        if (layers->layer_of[b] >= layers->layer_count)
            layers->layer_count = layers->layer_of[b] + 1;
    }
    return PEN_OK;
}

// How many layers an arrow may pass and still go around boxes, so that there are few bends enough.
static uint32_t layers_longest_bent(const pen_layout_layers *layers) {
    const pen_drawing *drawing = layers->drawing;
    const uint64_t limit = (uint64_t)LAYERS_BENDS_A_BOX * drawing->box_count + LAYERS_BENDS_FREE;
    for (uint32_t longest = layers->layer_count;; longest /= 2) {
        uint64_t count = 0;
        for (uint32_t a = 0; a < drawing->arrow_count; a++) {
            const uint32_t passed = layers->layer_of[layers_lower(&drawing->arrows[a])] -
                                    layers->layer_of[layers_upper(&drawing->arrows[a])] - 1;
            if (passed <= longest) count += passed;
        }
        if (count <= limit || longest == 0) return longest;
    }
}

// Makes bends, and the pieces of arrows between neighbouring layers: from items to items.
static pen_status layers_bend(pen_layout_layers *layers, pen_arena *arena, uint32_t **out_from,
                              uint32_t **out_to, uint32_t *out_piece_count) {
    const pen_drawing *drawing = layers->drawing;
    const uint32_t longest = layers_longest_bent(layers);
    uint32_t piece_count = 0;
    uint32_t item_count = drawing->box_count;
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        const pen_drawing_arrow *arrow = &drawing->arrows[a];
        const uint32_t passed =
            layers->layer_of[layers_lower(arrow)] - layers->layer_of[layers_upper(arrow)] - 1;
        layers->is_upward[a] = arrow->source > arrow->target;
        layers->first_bend[a] = item_count;
        layers->bend_count[a] = passed <= longest ? passed : 0;
        item_count += layers->bend_count[a];
        if (passed <= longest) piece_count += passed + 1;
    }
    uint32_t *layer_of;
    PEN_TRY(PEN_NEW(arena, item_count, &layer_of));
    PEN_TRY(PEN_NEW(arena, piece_count, out_from));
    PEN_TRY(PEN_NEW(arena, piece_count, out_to));
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        layer_of[b] = layers->layer_of[b];
    }
    uint32_t piece = 0;
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        const pen_drawing_arrow *arrow = &drawing->arrows[a];
        const uint32_t lower = layers_lower(arrow);
        uint32_t from = layers_upper(arrow);
        if (layer_of[lower] - layer_of[from] - 1 > longest) continue;
        for (uint32_t i = 0; i <= layers->bend_count[a]; i++) {
            const bool is_last = i == layers->bend_count[a];
            const uint32_t to = is_last ? lower : layers->first_bend[a] + i;
            if (!is_last) layer_of[to] = layer_of[from] + 1;
            (*out_from)[piece] = from;
            (*out_to)[piece++] = to;
            from = to;
        }
    }
    layers->layer_of = layer_of;
    layers->item_count = item_count;
    *out_piece_count = piece;
    return PEN_OK;
}

// Sorts pieces by one end: the other ends of those at item i are at first[i] up to first[i + 1].
static pen_status layers_neighbours(uint32_t item_count, uint32_t piece_count, const uint32_t *key,
                                    const uint32_t *other, pen_arena *arena,
                                    uint32_t *const out_sorted[2]) {
    uint32_t *first = out_sorted[0];
    uint32_t *cursor;
    PEN_TRY(PEN_NEW(arena, item_count, &cursor));
    for (uint32_t p = 0; p < piece_count; p++) {
        first[key[p] + 1] += 1;
    }
    for (uint32_t i = 0; i < item_count; i++) {
        first[i + 1] += first[i];
    }
    for (uint32_t p = 0; p < piece_count; p++) {
        out_sorted[1][first[key[p]] + cursor[key[p]]++] = other[p];
    }
    return PEN_OK;
}

static pen_status layers_sort_items(pen_layout_layers *layers, pen_arena *arena) {
    uint32_t *cursor;
    PEN_TRY(PEN_NEW(arena, layers->layer_count, &cursor));
    PEN_TRY(PEN_NEW(arena, (size_t)layers->layer_count + 1, &layers->first_item));
    PEN_TRY(PEN_NEW(arena, layers->item_count, &layers->items));
    for (uint32_t i = 0; i < layers->item_count; i++) {
        layers->first_item[layers->layer_of[i] + 1] += 1;
    }
    for (uint32_t l = 0; l < layers->layer_count; l++) {
        layers->first_item[l + 1] += layers->first_item[l];
    }
    for (uint32_t i = 0; i < layers->item_count; i++) {
        const uint32_t layer = layers->layer_of[i];
        layers->items[layers->first_item[layer] + cursor[layer]++] = i;
    }
    return PEN_OK;
}

// Boxes get layers, arrows over several layers get a bend in each, and every item gets lists of its
// neighbours above and below.
pen_status pen_layout_layers_new(const pen_drawing *drawing, pen_arena *arena,
                                 pen_layout_layers *out_layers) {
    pen_layout_layers layers = {.drawing = drawing, .box_count = drawing->box_count};
    uint32_t *from;
    uint32_t *to;
    uint32_t piece_count;
    PEN_TRY(PEN_NEW(arena, drawing->box_count, &layers.layer_of));
    PEN_TRY(PEN_NEW(arena, drawing->arrow_count, &layers.first_bend));
    PEN_TRY(PEN_NEW(arena, drawing->arrow_count, &layers.bend_count));
    PEN_TRY(PEN_NEW(arena, drawing->arrow_count, &layers.is_upward));
    PEN_TRY(layers_assign(&layers, arena));
    PEN_TRY(layers_bend(&layers, arena, &from, &to, &piece_count));
    PEN_TRY(PEN_NEW(arena, (size_t)layers.item_count + 1, &layers.first_above));
    PEN_TRY(PEN_NEW(arena, piece_count, &layers.above));
    PEN_TRY(PEN_NEW(arena, (size_t)layers.item_count + 1, &layers.first_below));
    PEN_TRY(PEN_NEW(arena, piece_count, &layers.below));
    PEN_TRY(layers_neighbours(layers.item_count, piece_count, to, from, arena,
                              (uint32_t *const[]){layers.first_above, layers.above}));
    PEN_TRY(layers_neighbours(layers.item_count, piece_count, from, to, arena,
                              (uint32_t *const[]){layers.first_below, layers.below}));
    PEN_TRY(layers_sort_items(&layers, arena));
    *out_layers = layers;
    return PEN_OK;
}

double pen_layout_distance(const pen_layout_layers *layers, uint32_t left, uint32_t right) {
    const bool left_is_box = left < layers->box_count;
    const bool right_is_box = right < layers->box_count;
    double distance = left_is_box || right_is_box ? LAYERS_BOX_GAP : LAYERS_BEND_GAP;
    if (left_is_box) distance += layers->drawing->boxes[left].width / 2;
    if (right_is_box) distance += layers->drawing->boxes[right].width / 2;
    return distance;
}
