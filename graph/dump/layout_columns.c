#include "graph/dump/layout_columns.h"

#include <math.h>

// In pixels.
#define COLUMNS_LAYER 74.0 // from layer to layer
#define COLUMNS_GAP 90.0   // between columns
#define COLUMNS_MARGIN 24.0
#define COLUMNS_ASPECT 1.7 // of the whole, wanted
#define COLUMNS_LIMIT 64
#define COLUMNS_SLACK 12u // layers, by which columns may be uneven
#define COLUMNS_TURN 14.0 // of an arrow that changes columns

typedef struct columns_state {
    const pen_layout_layers *layers;
    uint32_t *crossing; // [layer_count + 1] arrows that cross the gap above a layer
    double *left;       // [layer_count]
    double *right;      // [layer_count]
    uint32_t count;
    uint32_t first[COLUMNS_LIMIT + 1]; // first layers
    double gap[COLUMNS_LIMIT];         // middle of the gap before a column
    uint32_t *column_of;               // [layer_count]
} columns_state;

// How wide each layer is and how many arrows cross from one to the next: a long drawing is cut into
// columns where few do.
static void columns_measure(columns_state *columns, const pen_drawing *drawing, const double *x) {
    const pen_layout_layers *layers = columns->layers;
    for (uint32_t l = 0; l < layers->layer_count; l++) {
        columns->left[l] = INFINITY;
        columns->right[l] = -INFINITY;
    }
    for (uint32_t i = 0; i < layers->item_count; i++) {
        const uint32_t l = layers->layer_of[i];
        const double half = i < layers->box_count ? drawing->boxes[i].width / 2 : 4;
        columns->left[l] = fmin(columns->left[l], x[i] - half);
        columns->right[l] = fmax(columns->right[l], x[i] + half);
    }
    // counted where they begin and end, then summed
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        const uint32_t s = layers->layer_of[drawing->arrows[a].source];
        const uint32_t t = layers->layer_of[drawing->arrows[a].target];
        columns->crossing[(s < t ? s : t) + 1] += 1;
        if ((s < t ? t : s) < layers->layer_count) columns->crossing[(s < t ? t : s) + 1] -= 1;
    }
    for (uint32_t l = 1; l <= layers->layer_count; l++) {
        columns->crossing[l] += columns->crossing[l - 1];
    }
}

// Cuts into `count` columns of nearly equal height, where few arrows cross.
static void columns_cut(columns_state *columns, uint32_t count) {
    const uint32_t layer_count = columns->layers->layer_count;
    const uint32_t quarter = layer_count / count / 4;
    const uint32_t slack = quarter < COLUMNS_SLACK ? quarter : COLUMNS_SLACK;
    columns->count = count;
    columns->first[0] = 0;
    for (uint32_t c = 1; c < count; c++) {
        const uint32_t even = (uint32_t)((uint64_t)layer_count * c / count);
        uint32_t best = even;
        for (uint32_t i = 0; i <= 2 * slack; i++) { // the nearest first
            const uint32_t l = i % 2 == 0 ? even + i / 2 : even - (i + 1) / 2;
            if (l <= columns->first[c - 1] || l >= layer_count) continue;
            if (columns->crossing[l] < columns->crossing[best]) best = l;
        }
        columns->first[c] = best;
    }
    columns->first[count] = layer_count;
}

static double columns_left(const columns_state *columns, uint32_t c) {
    double left = INFINITY;
    for (uint32_t l = columns->first[c]; l < columns->first[c + 1]; l++) {
        left = fmin(left, columns->left[l]);
    }
    return left;
}

static double columns_width(const columns_state *columns, uint32_t c) {
    double right = -INFINITY;
    for (uint32_t l = columns->first[c]; l < columns->first[c + 1]; l++) {
        right = fmax(right, columns->right[l]);
    }
    return right - columns_left(columns, c);
}

static double columns_total_width(const columns_state *columns) {
    double width = COLUMNS_GAP * (columns->count - 1);
    for (uint32_t c = 0; c < columns->count; c++) {
        width += columns_width(columns, c);
    }
    return width;
}

static double columns_height(const columns_state *columns) {
    uint32_t most = 1;
    for (uint32_t c = 0; c < columns->count; c++) {
        const uint32_t count = columns->first[c + 1] - columns->first[c];
        if (count > most) most = count;
    }
    return COLUMNS_LAYER * most;
}

// As many columns as make the whole about as wide as wanted.
static void columns_choose(columns_state *columns) {
    const uint32_t layer_count = columns->layers->layer_count;
    uint32_t count = 1;
    columns_cut(columns, 1);
    while (count < COLUMNS_LIMIT && layer_count / (count + 1) >= 8 &&
           columns_total_width(columns) < COLUMNS_ASPECT * columns_height(columns)) {
        columns_cut(columns, ++count);
    }
    // the last one may have made it too wide
    if (count > 1 && columns_total_width(columns) > 2 * COLUMNS_ASPECT * columns_height(columns)) {
        columns_cut(columns, count - 1);
    }
}

// The route of an arrow, from end to end. To another column it goes down below its last point, up
// in the gap before that column, and down from above the next point.
typedef struct columns_route {
    const columns_state *columns;
    pen_drawing *drawing;
    const pen_drawing_point *middle;
} columns_route;

static void columns_add_point(pen_drawing *drawing, double x, double y) {
    drawing->points[drawing->point_count++] = (pen_drawing_point){x, y};
}

static void columns_step(const columns_route *route, uint32_t from, uint32_t to) {
    const columns_state *columns = route->columns;
    const uint32_t source = columns->column_of[columns->layers->layer_of[from]];
    const uint32_t target = columns->column_of[columns->layers->layer_of[to]];
    if (source == target) return;
    const double gap = columns->gap[source < target ? target : source];
    const double away = source < target ? COLUMNS_TURN : -COLUMNS_TURN;
    const double below = route->middle[from].y + COLUMNS_LAYER / 2;
    const double above = route->middle[to].y - COLUMNS_LAYER / 2;
    columns_add_point(route->drawing, gap - away, below);
    columns_add_point(route->drawing, gap, below);
    columns_add_point(route->drawing, gap, above);
    columns_add_point(route->drawing, gap + away, above);
}

// An arrow goes through its bends, and through the gap between columns where it changes them.
// Upward ones go through their bends backwards.
static pen_status columns_route_arrows(const columns_route *route, pen_arena *arena) {
    pen_drawing *drawing = route->drawing;
    const pen_layout_layers *layers = route->columns->layers;
    size_t point_count = 0;
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        // each way from item to item may change the column
        point_count += 2 + (size_t)layers->bend_count[a] * 5 + 4;
    }
    PEN_TRY(PEN_NEW(arena, point_count, &drawing->points));
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        pen_drawing_arrow *arrow = &drawing->arrows[a];
        const bool is_upward = layers->is_upward[a];
        const double half = drawing->boxes[arrow->source].height / (is_upward ? -2 : 2);
        uint32_t from = arrow->source;
        arrow->point_first = drawing->point_count;
        columns_add_point(drawing, route->middle[from].x, route->middle[from].y + half);
        for (uint32_t i = 0; i < layers->bend_count[a]; i++) {
            const uint32_t bend =
                layers->first_bend[a] + (is_upward ? layers->bend_count[a] - 1 - i : i);
            columns_step(route, from, bend);
            columns_add_point(drawing, route->middle[bend].x, route->middle[bend].y);
            from = bend;
        }
        columns_step(route, from, arrow->target);
        columns_add_point(drawing, route->middle[arrow->target].x,
                          route->middle[arrow->target].y - half);
        arrow->point_count = drawing->point_count - arrow->point_first;
    }
    return PEN_OK;
}

// A deep network is a tall strip: cut into columns beside each other it fits on a page.
pen_status pen_layout_columns(pen_drawing *drawing, const pen_layout_layers *layers,
                              const double *x, pen_arena *arena) {
    columns_state columns = {.layers = layers};
    pen_drawing_point *middle;
    PEN_TRY(PEN_NEW(arena, (size_t)layers->layer_count + 2, &columns.crossing));
    PEN_TRY(PEN_NEW(arena, layers->layer_count, &columns.left));
    PEN_TRY(PEN_NEW(arena, layers->layer_count, &columns.right));
    PEN_TRY(PEN_NEW(arena, layers->layer_count, &columns.column_of));
    PEN_TRY(PEN_NEW(arena, layers->item_count, &middle));
    if (layers->layer_count == 0) {
        drawing->width = 2 * COLUMNS_MARGIN;
        drawing->height = 2 * COLUMNS_MARGIN;
        return PEN_OK;
    }
    columns_measure(&columns, drawing, x);
    columns_choose(&columns);
    double left = COLUMNS_MARGIN;
    for (uint32_t c = 0; c < columns.count; c++) {
        columns.gap[c] = left - COLUMNS_GAP / 2;
        for (uint32_t l = columns.first[c]; l < columns.first[c + 1]; l++) {
            columns.column_of[l] = c;
        }
        const double shift = left - columns_left(&columns, c);
        for (uint32_t k = layers->first_item[columns.first[c]];
             k < layers->first_item[columns.first[c + 1]]; k++) {
            const uint32_t item = layers->items[k];
            const uint32_t row = layers->layer_of[item] - columns.first[c];
            middle[item].x = x[item] + shift;
            middle[item].y = COLUMNS_MARGIN + COLUMNS_LAYER * (row + 0.5);
        }
        left += columns_width(&columns, c) + COLUMNS_GAP;
    }
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        drawing->boxes[b].x = middle[b].x - drawing->boxes[b].width / 2;
        drawing->boxes[b].y = middle[b].y - drawing->boxes[b].height / 2;
    }
    drawing->width = left - COLUMNS_GAP + COLUMNS_MARGIN;
    drawing->height = 2 * COLUMNS_MARGIN + columns_height(&columns);
    const columns_route route = {&columns, drawing, middle};
    return columns_route_arrows(&route, arena);
}
