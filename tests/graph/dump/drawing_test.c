#include "graph/dump/drawing.h"

#include "tests/support/chain_graph.h"
#include "tests/support/check.h"
#include "tests/support/small_graph.h"

static void draws_forward_nodes(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    const pen_drawing_options options = {0};
    pen_drawing *drawing;
    CHECK_OK(pen_drawing_new(small.graph, &options, arena, &drawing));
    // x and seed; fc1 and fc2; y
    CHECK(drawing->box_count == 5, "%u boxes", drawing->box_count);
    assert_string_equal(drawing->boxes[0].name, "x");
    assert_string_equal(drawing->boxes[2].name, "fc1");
    assert_string_equal(drawing->boxes[2].op, "matmul");
    assert_string_equal(drawing->boxes[4].op, "output");
    CHECK(drawing->boxes[4].kind == PEN_DRAWING_OUTPUT, "kind");
    CHECK(drawing->arrow_count == 3, "%u arrows", drawing->arrow_count);
    CHECK(drawing->arrows[0].source == 0 && drawing->arrows[0].target == 2, "x to fc1");
    CHECK(drawing->arrows[1].source == 2 && drawing->arrows[1].target == 3, "fc1 to fc2");
    CHECK(drawing->arrows[2].source == 3 && drawing->arrows[2].target == 4, "fc2 to y");
    assert_string_equal(drawing->arrows[0].label, "float32[4,3]");
    uint32_t forward_count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(small.graph); n++) {
        const pen_node *node = pen_graph_node(small.graph, (pen_node_id){n});
        const bool is_drawn = drawing->box_of_node[n] != PEN_DRAWING_NONE;
        CHECK(is_drawn == (node->role == PEN_ROLE_FORWARD), "%s", node->name);
        forward_count += is_drawn;
    }
    CHECK(forward_count == 2, "%u", forward_count);
    pen_arena_destroy(arena);
}

static void collapses_what_is_alike(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = chain_graph(arena, "chain", 200, chain_path_name);
    const pen_drawing_options options = {.box_limit = 30};
    pen_drawing *drawing;
    CHECK_OK(pen_drawing_new(graph, &options, arena, &drawing));
    CHECK(drawing->box_count == 22, "%u boxes", drawing->box_count);
    assert_string_equal(drawing->boxes[1].name, "/block.0/relu.*");
    assert_string_equal(drawing->boxes[1].op, "10 nodes");
    CHECK(drawing->arrow_count == 21, "%u arrows", drawing->arrow_count);
    CHECK(drawing->box_of_node[15] == 2, "%u", drawing->box_of_node[15]);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(draws_forward_nodes), cmocka_unit_test(collapses_what_is_alike))
