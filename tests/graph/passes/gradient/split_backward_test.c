#include "graph/passes/gradient/split_backward.h"

#include "graph/dump/dump_text.h"
#include "graph/op.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/verify.h"
#include "tests/support/check.h"
#include "tests/support/small_graph.h"

static const pen_verify_options typed = {.types = true};

static bool is_backward(pen_role role) {
    return role == PEN_ROLE_BACKWARD_INPUT || role == PEN_ROLE_BACKWARD_WEIGHT;
}

// Whatever the roles were, they come out as the gradient rules give them.
static void derives_roles(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    const char *text[2];
    CHECK_OK(pen_dump_text(small.graph, arena, &text[0]));
    const pen_role wrong[] = {PEN_ROLE_BACKWARD_INPUT, PEN_ROLE_BACKWARD_WEIGHT};
    for (int w = 0; w < 2; w++) {
        for (uint32_t n = 0; n < pen_graph_node_count(small.graph); n++) {
            const pen_node_id node = {n};
            if (is_backward(pen_graph_node(small.graph, node)->role)) {
                pen_graph_set_role(small.graph, node, wrong[w]);
            }
        }
        CHECK_OK(pen_split_backward(small.graph));
        CHECK_OK(pen_dump_text(small.graph, arena, &text[1]));
        assert_string_equal(text[0], text[1]);
    }
    pen_graph_set_role(small.graph, (pen_node_id){0}, PEN_ROLE_FORWARD);
    pen_graph_set_role(small.graph, (pen_node_id){pen_graph_node_count(small.graph) - 1},
                       PEN_ROLE_FORWARD);
    CHECK_ERROR(pen_split_backward(small.graph), PEN_INTERNAL,
                "forward node 'fc2.weight/update' reads the gradient 'fc2.weight/gradient'");
    pen_arena_destroy(arena);
}

// On random graphs with many readers of everything, the input half never waits for the other.
static void halves_are_apart(void **state) {
    (void)state;
    uint32_t counts[2] = {0};
    for (uint64_t seed = 0; seed < 60; seed++) {
        pen_arena *arena = check_arena();
        const small_graph small = small_graph_random(arena, seed, 16);
        pen_gradients *gradients;
        const pen_value ones = {
            .name = "ones", .kind = PEN_VALUE_INPUT, .type = *pen_value_type(small.graph, small.y)};
        pen_value_id seed_value;
        CHECK_OK(pen_graph_add_value(small.graph, &ones, &seed_value));
        CHECK_OK(
            pen_build_gradients(small.graph, small.y, seed_value, 2, small.weights, &gradients));
        CHECK_OK(pen_split_backward(small.graph));
        CHECK_OK(pen_graph_verify(small.graph, &typed));
        for (uint32_t n = 0; n < pen_graph_node_count(small.graph); n++) {
            const pen_role role = pen_graph_node(small.graph, (pen_node_id){n})->role;
            counts[0] += role == PEN_ROLE_BACKWARD_INPUT;
            counts[1] += role == PEN_ROLE_BACKWARD_WEIGHT;
        }
        pen_arena_destroy(arena);
    }
    CHECK(counts[0] > 50 && counts[1] > 50, "%u and %u nodes in the halves", counts[0], counts[1]);
}

PEN_TEST_MAIN(cmocka_unit_test(derives_roles), cmocka_unit_test(halves_are_apart))
