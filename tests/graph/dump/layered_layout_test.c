#include "graph/dump/layered_layout.h"

#include <math.h>

#include "tests/support/chain_graph.h"
#include "tests/support/check.h"

static pen_drawing *lay_out(const pen_graph *graph, uint32_t box_limit, pen_arena *arena) {
    const pen_drawing_options options = {.box_limit = box_limit};
    pen_drawing *drawing;
    CHECK_OK(pen_drawing_new(graph, &options, arena, &drawing));
    CHECK_OK(pen_layered_layout(drawing, arena));
    return drawing;
}

static void check_boxes_apart(const pen_drawing *drawing) {
    for (uint32_t a = 0; a < drawing->box_count; a++) {
        const pen_drawing_box *box = &drawing->boxes[a];
        CHECK(box->x >= 0 && box->y >= 0 && box->x + box->width <= drawing->width &&
                  box->y + box->height <= drawing->height,
              "box %u at %g, %g of %g, %g", a, box->x, box->y, drawing->width, drawing->height);
        for (uint32_t b = 0; b < a; b++) {
            const pen_drawing_box *other = &drawing->boxes[b];
            const bool apart =
                box->x >= other->x + other->width || other->x >= box->x + box->width ||
                box->y >= other->y + other->height || other->y >= box->y + box->height;
            CHECK(apart, "boxes %u and %u overlap", a, b);
        }
    }
}

static void check_arrows_attached(const pen_drawing *drawing) {
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        const pen_drawing_arrow *arrow = &drawing->arrows[a];
        const pen_drawing_box *source = &drawing->boxes[arrow->source];
        const pen_drawing_box *target = &drawing->boxes[arrow->target];
        const pen_drawing_point *points = &drawing->points[arrow->point_first];
        const pen_drawing_point *last = &points[arrow->point_count - 1];
        CHECK(arrow->point_count >= 2 &&
                  arrow->point_first + arrow->point_count <= drawing->point_count,
              "arrow %u has %u points", a, arrow->point_count);
        const bool is_upward = arrow->source > arrow->target;
        CHECK(fabs(points->x - (source->x + source->width / 2)) < 1e-6 &&
                  fabs(points->y - (source->y + (is_upward ? 0 : source->height))) < 1e-6,
              "arrow %u begins at %g, %g", a, points->x, points->y);
        CHECK(fabs(last->x - (target->x + target->width / 2)) < 1e-6 &&
                  fabs(last->y - (target->y + (is_upward ? target->height : 0))) < 1e-6,
              "arrow %u ends at %g, %g", a, last->x, last->y);
    }
}

static void places_random_graphs(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pen_arena *arena = check_arena();
        const uint32_t count = 5 + (uint32_t)seed * 2;
        const pen_graph *graph = random_graph_forward(arena, seed, PEN_FLOAT64, count).graph;
        const pen_drawing *drawing = lay_out(graph, 0, arena);
        check_boxes_apart(drawing);
        check_arrows_attached(drawing);
        const pen_drawing *again = lay_out(graph, 0, arena);
        for (uint32_t b = 0; b < drawing->box_count; b++) {
            CHECK(drawing->boxes[b].x == again->boxes[b].x &&
                      drawing->boxes[b].y == again->boxes[b].y,
                  "box %u moved", b);
        }
        pen_arena_destroy(arena);
    }
}

// Bundles may read each other in a circle; some arrows then go up.
static void places_collapsed_graphs(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pen_arena *arena = check_arena();
        const pen_graph *graph = random_graph_forward(arena, seed, PEN_FLOAT64, 100).graph;
        const pen_drawing *drawing = lay_out(graph, 20, arena);
        check_boxes_apart(drawing);
        check_arrows_attached(drawing);
        pen_arena_destroy(arena);
    }
}

static void points_down_within_a_column(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_drawing *drawing =
        lay_out(chain_graph(arena, "chain", 12, chain_flat_name), 0, arena);
    for (uint32_t b = 1; b < drawing->box_count; b++) {
        CHECK(drawing->boxes[b].y > drawing->boxes[b - 1].y, "box %u", b);
        // a chain is straight
        CHECK(fabs(drawing->boxes[b].x + drawing->boxes[b].width / 2 - drawing->width / 2) < 1e-6,
              "box %u at %g", b, drawing->boxes[b].x);
    }
    pen_arena_destroy(arena);
}

static void cuts_long_graphs_into_columns(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_drawing *drawing =
        lay_out(chain_graph(arena, "chain", 400, chain_flat_name), 0, arena);
    const double aspect = drawing->width / drawing->height;
    CHECK(aspect > 0.8 && aspect < 4, "%g wide, %g high", drawing->width, drawing->height);
    check_boxes_apart(drawing);
    check_arrows_attached(drawing);
    pen_arena_destroy(arena);
}

static void places_nothing(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "empty", &graph));
    const pen_drawing *drawing = lay_out(graph, 0, arena);
    CHECK(drawing->box_count == 0 && drawing->width > 0, "%g", drawing->width);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(places_random_graphs), cmocka_unit_test(places_collapsed_graphs),
              cmocka_unit_test(points_down_within_a_column),
              cmocka_unit_test(cuts_long_graphs_into_columns), cmocka_unit_test(places_nothing))
