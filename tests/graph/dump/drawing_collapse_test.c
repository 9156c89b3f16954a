#include "graph/dump/drawing_collapse.h"

#include "graph/dump/drawing.h"
#include "tests/support/chain_graph.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"

#define NODE_LIMIT 500

static pen_bundling collapse(const pen_graph *graph, const pen_drawing_options *options,
                             pen_arena *arena) {
    uint32_t nodes[NODE_LIMIT];
    const uint32_t count = pen_graph_node_count(graph);
    pen_bundling bundling;
    CHECK(count <= NODE_LIMIT, "%u nodes", count);
    for (uint32_t n = 0; n < count; n++) {
        nodes[n] = n;
    }
    const pen_bundling_request request = {nodes, count, options->box_limit, options->group_of_node};
    CHECK_OK(pen_drawing_collapse(graph, &request, arena, &bundling));
    // every node is in one bundle, and the bundles say so
    uint32_t counts[NODE_LIMIT] = {0};
    uint32_t firsts[NODE_LIMIT];
    for (uint32_t n = count; n-- > 0;) {
        CHECK(bundling.bundle_of[n] < bundling.bundle_count, "node %u", n);
        counts[bundling.bundle_of[n]] += 1;
        firsts[bundling.bundle_of[n]] = n;
    }
    for (uint32_t b = 0; b < bundling.bundle_count; b++) {
        CHECK(counts[b] > 0 && counts[b] == bundling.bundles[b].node_count, "bundle %u", b);
        CHECK(firsts[b] == bundling.bundles[b].node_first, "bundle %u", b);
        CHECK(b == 0 || firsts[b] > firsts[b - 1], "bundle %u", b);
    }
    return bundling;
}

static void bundles_by_paths(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_graph *graph = chain_graph(arena, "chain", 120, chain_path_name);
    pen_drawing_options options = {.box_limit = 40};
    pen_bundling bundling = collapse(graph, &options, arena);
    CHECK(bundling.bundle_count == 12, "%u", bundling.bundle_count);
    assert_string_equal(bundling.bundles[11].name, "/block.11/relu.*");
    options.box_limit = 120;
    bundling = collapse(graph, &options, arena);
    CHECK(bundling.bundle_count == 120, "%u", bundling.bundle_count);
    assert_string_equal(bundling.bundles[119].name, "/block.11/relu.9");
    pen_arena_destroy(arena);
}

static void cuts_flat_names_in_order(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_graph *graph = chain_graph(arena, "chain", 500, chain_flat_name);
    const pen_drawing_options options = {.box_limit = 40};
    const pen_bundling bundling = collapse(graph, &options, arena);
    CHECK(bundling.bundle_count > 30 && bundling.bundle_count <= 40, "%u", bundling.bundle_count);
    for (uint32_t n = 1; n < 500; n++) {
        CHECK(bundling.bundle_of[n] >= bundling.bundle_of[n - 1], "node %u", n);
    }
    pen_arena_destroy(arena);
}

static uint64_t drawn_seed;

// Paths of up to four parts, some empty, some parts also whole names.
static const char *drawn_name(uint32_t index, char *room) {
    dice d = {.seed = drawn_seed * 1000 + index};
    static const char *const parts[] = {"/a", "/bb", ".c", ":d", "/", "e"};
    room[0] = '\0';
    size_t length = 0;
    const int64_t count = dice_between(&d, 0, 4);
    for (int64_t i = 0; i < count; i++) {
        length += (size_t)snprintf(room + length, 64, "%s", parts[dice_between(&d, 0, 5)]);
    }
    snprintf(room + length, 64, "%u", index % 7);
    return room;
}

static void keeps_limits_and_groups(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        pen_arena *arena = check_arena();
        dice d = {.seed = seed};
        uint32_t group_of_node[NODE_LIMIT];
        drawn_seed = seed;
        const uint32_t count = (uint32_t)dice_between(&d, 1, NODE_LIMIT);
        const pen_graph *graph = chain_graph(arena, "drawn", count, drawn_name);
        const uint32_t group_count = (uint32_t)dice_between(&d, 1, 5);
        for (uint32_t n = 0; n < count; n++) {
            group_of_node[n] = (uint32_t)dice_between(&d, 0, group_count - 1);
        }
        const pen_drawing_options options = {.box_limit = (uint32_t)dice_between(&d, 1, 200),
                                             .group_of_node = group_of_node};
        const pen_bundling bundling = collapse(graph, &options, arena);
        const uint32_t most = options.box_limit > group_count ? options.box_limit : group_count;
        CHECK(bundling.bundle_count <= most, "seed %llu: %u bundles, %u at most",
              (unsigned long long)seed, bundling.bundle_count, most);
        for (uint32_t n = 0; n < count; n++) {
            const uint32_t first = bundling.bundles[bundling.bundle_of[n]].node_first;
            CHECK(group_of_node[n] == group_of_node[first], "node %u", n);
        }
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(bundles_by_paths), cmocka_unit_test(cuts_flat_names_in_order),
              cmocka_unit_test(keeps_limits_and_groups))
