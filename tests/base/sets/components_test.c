// Two numbers are of one component where each reaches the other, and what comes earlier has the
// larger number: against the closure of random graphs.
#include "base/sets/components.h"

#include "tests/support/check.h"
#include "tests/support/random_case.h"

#define COUNT 12

typedef struct edges {
    bool has[COUNT][COUNT];
    uint32_t first[COUNT + 1];
    uint32_t ids[COUNT * COUNT];
} edges;

static void edges_list(edges *e) {
    uint32_t filled = 0;
    for (uint32_t a = 0; a < COUNT; a++) {
        e->first[a] = filled;
        for (uint32_t b = 0; b < COUNT; b++) {
            if (e->has[a][b]) e->ids[filled++] = b;
        }
    }
    e->first[COUNT] = filled;
}

static void edges_close(bool reach[COUNT][COUNT]) {
    for (int k = 0; k < COUNT; k++) {
        for (int a = 0; a < COUNT; a++) {
            for (int b = 0; b < COUNT; b++)
                reach[a][b] = reach[a][b] || (reach[a][k] && reach[k][b]);
        }
    }
}

static void components_reach_each_other(void **state) {
    (void)state;
    random_case random = {.seed = 5};
    for (int i = 0; i < 300; i++) {
        pen_arena *arena = check_arena();
        edges e = {0};
        uint32_t component[COUNT], component_count;
        for (int64_t count = random_between(&random, 0, 30); count > 0; count--) {
            const int64_t a = random_between(&random, 0, COUNT - 1);
            e.has[a][random_between(&random, 0, COUNT - 1)] = true;
        }
        edges_list(&e);
        CHECK_OK(pen_components_find(COUNT, e.first, e.ids, arena, component, &component_count));
        edges_close(e.has);
        for (int a = 0; a < COUNT; a++) {
            assert_true(component[a] < component_count);
            for (int b = 0; b < COUNT; b++) {
                const bool is_same = a == b || (e.has[a][b] && e.has[b][a]);
                assert_int_equal(component[a] == component[b], is_same);
                if (!is_same && e.has[a][b]) assert_true(component[a] > component[b]);
            }
        }
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(components_reach_each_other))
