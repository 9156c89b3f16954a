#include "scheduler/schedule/stage_index.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/stage_chain.h"

#define CHECK_REFUSED(text)                                                                        \
    CHECK_ERROR(pen_stage_index_new(&graph, arena, &index), PEN_INVALID_INPUT, text)

static void sorts_edges_and_links(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    // 0 -> 1 -> 3, 0 -> 2 -> 3 on devices 0, 1, 1, 0; 0 is frozen
    const pen_stage stages[] = {{.device = 0},
                                {.device = 1, .has_backward = true, .has_update = true},
                                {.device = 1, .has_backward = true, .has_update = true},
                                {.device = 0, .has_backward = true, .has_update = true}};
    const pen_stage_edge edges[] = {{.source = 1, .target = 3, .has_gradient = true},
                                    {.source = 0, .target = 2},
                                    {.source = 2, .target = 3, .has_gradient = true},
                                    {.source = 0, .target = 1}};
    const double bytes_limit[] = {INFINITY, INFINITY};
    const pen_stage_graph graph = {4, 4, 2, 1, stages, edges, bytes_limit, 0, 0, NULL, NULL, 0};
    const pen_stage_index *index;
    CHECK_OK(pen_stage_index_new(&graph, arena, &index));
    static const uint32_t first_output[] = {0, 2, 3, 4, 4};
    static const uint32_t out_edges[] = {1, 3, 0, 2};
    static const uint32_t first_input[] = {0, 0, 1, 2, 4};
    static const uint32_t in_edges[] = {3, 1, 0, 2};
    static const uint32_t device_stages[] = {0, 3, 1, 2};
    assert_memory_equal(index->first_output, first_output, sizeof first_output);
    assert_memory_equal(index->out_edges, out_edges, sizeof out_edges);
    assert_memory_equal(index->first_input, first_input, sizeof first_input);
    assert_memory_equal(index->in_edges, in_edges, sizeof in_edges);
    assert_memory_equal(index->device_stages, device_stages, sizeof device_stages);
    CHECK(index->link_count == 2, "%u", index->link_count);
    CHECK(index->forward_link[0] == index->forward_link[2] &&
              index->forward_link[0] == index->backward_link[1] &&
              index->forward_link[1] == index->backward_link[0],
          "links by ordered pair");
    CHECK(!index->has_backward[0] && index->has_backward[1] && index->has_backward[2] &&
              index->has_backward[3],
          "frozen stages");
    CHECK(!index->has_update[0] && index->has_update[3], "updates");
    CHECK(index->gradient_count[0] == 0 && index->gradient_count[1] == 1, "gradients");
    pen_arena_destroy(arena);
}

static void refuses_what_is_wrong(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage_graph graph = *stage_chain(arena, 2, 4, 1, 1, 0);
    pen_stage stages[2];
    pen_stage_edge edge;
    const pen_stage_index *index;
    memcpy(stages, graph.stages, sizeof stages);
    edge = graph.edges[0];
    graph.stages = stages;
    graph.edges = &edge;
    CHECK_OK(pen_stage_index_new(&graph, arena, &index));
    stages[1].device = 2;
    CHECK_REFUSED("stage 1 is on device 2, there are 2 devices");
    stages[1].device = 1;
    stages[1].activation_bytes = -1;
    CHECK_REFUSED("stage 1: activation_bytes is -1, expected a number from 0 up");
    stages[1].activation_bytes = 1;
    stages[0].forward_seconds = INFINITY;
    CHECK_REFUSED("stage 0: forward_seconds is inf");
    stages[0].forward_seconds = 1;
    edge.target = 2;
    CHECK_REFUSED("edge 0 goes from stage 0 to 2, expected a lower to a higher of 2");
    edge.target = 0;
    CHECK_REFUSED("edge 0 goes from stage 0 to 0");
    edge.target = 1;
    edge.backward_seconds = NAN;
    CHECK_REFUSED("edge 0 from stage 0 to 1 has nan bytes or seconds");
    edge.backward_seconds = 0;
    graph.microbatch_count = UINT32_MAX;
    CHECK_REFUSED("2 stages for 4294967295 microbatches are too many tasks");
    pen_arena_destroy(arena);
}

static void numbers_many_links(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const uint32_t count = 300;
    pen_stage_graph graph = *stage_chain(arena, count, 1, 1, 1, 0);
    const pen_stage_index *index;
    bool seen[600] = {false};
    CHECK_OK(pen_stage_index_new(&graph, arena, &index));
    CHECK(index->link_count == 2 * (count - 1), "%u", index->link_count);
    for (uint32_t e = 0; e + 1 < count; e++) {
        CHECK(!seen[index->forward_link[e]] && !seen[index->backward_link[e]], "edge %u", e);
        seen[index->forward_link[e]] = true;
        seen[index->backward_link[e]] = true;
    }
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(sorts_edges_and_links), cmocka_unit_test(refuses_what_is_wrong),
              cmocka_unit_test(numbers_many_links))
