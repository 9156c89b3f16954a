#include "partition/costs/cost_model.h"

#include <math.h>

#include "graph/op.h"
#include "partition/costs/cost_key.h"
#include "tests/support/check.h"
#include "tests/support/small_graph.h"

static pen_cluster_device device_of(const char *name, uint32_t threads, double flops,
                                    pen_figure_source source) {
    return (pen_cluster_device){.name = name,
                                .host_name = "",
                                .kind = "cpu",
                                .threads = threads,
                                .bytes_limit = 1 << 30,
                                .flops = flops,
                                .flops_source = source,
                                .memory_bandwidth = 1e9,
                                .memory_bandwidth_source = source};
}

static double roofline(const pen_graph *graph, uint32_t node, double flops, double bandwidth) {
    return fmax((double)pen_node_flops(graph, (pen_node_id){node}) / flops,
                (double)pen_node_bytes(graph, (pen_node_id){node}) / bandwidth) +
           1e-6;
}

static void check_seconds(double found, double expected) {
    CHECK(fabs(found - expected) <= 1e-12, "found %g, expected %g", found, expected);
}

static void estimates_are_rooflines(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    const pen_cluster_device devices[] = {
        device_of("a", 1, 1e6, PEN_FIGURE_ASSUMED),
        device_of("b", 1, 2e6, PEN_FIGURE_STATED),
        device_of("c", 1, 1e6, PEN_FIGURE_ASSUMED),
    };
    const pen_cluster cluster = {.device_count = 3, .devices = devices};
    const pen_cost_model *model;
    CHECK_OK(pen_cost_model_build(small.graph, &cluster, NULL, arena, &model));
    assert_int_equal(model->row_count, 2);
    assert_int_equal(model->row_of_device[0], model->row_of_device[2]);
    assert_int_equal(model->node_count, pen_graph_node_count(small.graph));
    uint32_t running = 0;
    for (uint32_t n = 0; n < model->node_count; n++) {
        const pen_node_cost *a = pen_cost_model_at(model, 0, (pen_node_id){n});
        const pen_node_cost *b = pen_cost_model_at(model, 1, (pen_node_id){n});
        const bool is_free = pen_node_flops(small.graph, (pen_node_id){n}) == 0 &&
                             pen_node_bytes(small.graph, (pen_node_id){n}) == 0;
        running += !is_free;
        check_seconds(a->seconds, is_free ? 0 : roofline(small.graph, n, 1e6, 1e9));
        check_seconds(b->seconds, is_free ? 0 : roofline(small.graph, n, 2e6, 1e9));
        if (is_free) continue;
        assert_int_equal(a->source, PEN_FIGURE_ASSUMED);
        assert_int_equal(b->source, PEN_FIGURE_STATED);
    }
    assert_true(running > 0);
    assert_int_equal(model->assumed_count, running);
    assert_int_equal(model->measured_count, 0);
    pen_arena_destroy(arena);
}

static pen_cost_table *table_of_first(const small_graph *small, pen_arena *arena) {
    pen_cost_table *table;
    const char *shape;
    CHECK_OK(pen_cost_table_new(arena, &table));
    CHECK_OK(pen_cost_key(small->graph, (pen_node_id){0}, arena, &shape));
    const pen_cost_entry entry = {"matmul", shape, "cpu", 1, 0.25, 77, 5, NULL};
    CHECK_OK(pen_cost_table_set(table, &entry));
    return table;
}

static void what_was_measured_is_taken(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    const pen_cluster_device devices[] = {
        device_of("a", 1, 1e6, PEN_FIGURE_MEASURED),
        device_of("b", 2, 1e6, PEN_FIGURE_MEASURED),
    };
    const pen_cluster cluster = {.device_count = 2, .devices = devices};
    const pen_cost_model *model;
    pen_cost_table *table = table_of_first(&small, arena);
    CHECK_OK(pen_cost_model_build(small.graph, &cluster, table, arena, &model));
    const pen_node_cost *measured = pen_cost_model_at(model, 0, (pen_node_id){0});
    assert_true(measured->seconds == 0.25);
    assert_int_equal(measured->source, PEN_FIGURE_MEASURED);
    assert_int_equal(measured->workspace_bytes, 77);
    // other threads, other shapes
    assert_int_equal(pen_cost_model_at(model, 1, (pen_node_id){0})->source, PEN_FIGURE_ASSUMED);
    assert_int_equal(pen_cost_model_at(model, 0, (pen_node_id){1})->source, PEN_FIGURE_ASSUMED);
    assert_int_equal(model->measured_count, 1);
    assert_true(model->assumed_count > 1);

    // written by hand
    const char *shape = pen_cost_table_at(table, 0)->shape;
    const pen_cost_entry stated = {"matmul", shape, "cpu", 1, 0.5, 0, 0, NULL};
    CHECK_OK(pen_cost_table_set(table, &stated));
    CHECK_OK(pen_cost_model_build(small.graph, &cluster, table, arena, &model));
    assert_int_equal(pen_cost_model_at(model, 0, (pen_node_id){0})->source, PEN_FIGURE_STATED);
    assert_true(pen_cost_model_at(model, 0, (pen_node_id){0})->seconds == 0.5);
    pen_arena_destroy(arena);
}

// Nobody measured on another host: what was measured here is a guess there.
static void other_hosts_are_not_measured(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_cluster_device devices[] = {
        device_of("a", 1, 1e6, PEN_FIGURE_ASSUMED),
        device_of("b", 1, 1e6, PEN_FIGURE_ASSUMED),
        device_of("c", 1, 1e6, PEN_FIGURE_STATED),
    };
    devices[1].is_remote = devices[2].is_remote = true;
    const pen_cluster cluster = {.device_count = 3, .devices = devices};
    const pen_cost_model *model;
    CHECK_OK(
        pen_cost_model_build(small.graph, &cluster, table_of_first(&small, arena), arena, &model));
    const pen_figure_source sources[] = {PEN_FIGURE_MEASURED, PEN_FIGURE_ASSUMED,
                                         PEN_FIGURE_STATED};
    for (uint32_t d = 0; d < 3; d++) {
        const pen_node_cost *cost = pen_cost_model_at(model, d, (pen_node_id){0});
        assert_true(cost->seconds == 0.25);
        assert_int_equal(cost->source, sources[d]);
    }
    pen_arena_destroy(arena);
}

// Hosts that were measured have figures of their own; others get those of this machine.
static void hosts_have_costs_of_their_own(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_cluster_device devices[] = {
        device_of("a", 1, 1e6, PEN_FIGURE_ASSUMED),
        device_of("b", 1, 1e6, PEN_FIGURE_ASSUMED),
        device_of("c", 1, 1e6, PEN_FIGURE_ASSUMED),
        device_of("d", 1, 1e6, PEN_FIGURE_ASSUMED),
    };
    static const char *const hosts[] = {"", "n1", "n2", "n2"};
    for (uint32_t d = 1; d < 4; d++) {
        devices[d].host_name = hosts[d];
        devices[d].is_remote = true;
    }
    const pen_cluster cluster = {.device_count = 4, .devices = devices};
    pen_cost_table *table = table_of_first(&small, arena);
    const pen_cost_entry slow = {"matmul", pen_cost_table_at(table, 0)->shape, "cpu", 1, 0.75, 9, 5,
                                 "n2"};
    const pen_cost_model *model;
    CHECK_OK(pen_cost_table_set(table, &slow));
    CHECK_OK(pen_cost_model_build(small.graph, &cluster, table, arena, &model));
    static const double seconds[] = {0.25, 0.25, 0.75, 0.75};
    static const pen_figure_source sources[] = {PEN_FIGURE_MEASURED, PEN_FIGURE_ASSUMED,
                                                PEN_FIGURE_MEASURED, PEN_FIGURE_MEASURED};
    for (uint32_t d = 0; d < 4; d++) {
        const pen_node_cost *cost = pen_cost_model_at(model, d, (pen_node_id){0});
        CHECK(cost->seconds == seconds[d], "%u: %g", d, cost->seconds);
        assert_int_equal(cost->source, sources[d]);
    }
    assert_int_equal(model->row_count, 3);
    pen_arena_destroy(arena);
}

static void stated_rates_scale_what_was_measured(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_cost_table *table = table_of_first(&small, arena);
    CHECK_OK(pen_cost_table_set_rates(table, &(pen_cost_rates){"cpu", 1, 1e6, 1e9, NULL}));
    const pen_cluster_device devices[] = {
        device_of("a", 1, 1e6, PEN_FIGURE_STATED), // the rates of the table
        device_of("slow", 1, 0.5e6, PEN_FIGURE_STATED),
        device_of("unsaid", 1, 0.5e6, PEN_FIGURE_ASSUMED),
    };
    const pen_cluster cluster = {.device_count = 3, .devices = devices};
    const pen_cost_model *model;
    CHECK_OK(pen_cost_model_build(small.graph, &cluster, table, arena, &model));
    const pen_node_id node = {0};
    assert_true(pen_cost_model_at(model, 0, node)->seconds == 0.25);
    assert_int_equal(pen_cost_model_at(model, 0, node)->source, PEN_FIGURE_MEASURED);
    check_seconds(pen_cost_model_at(model, 1, node)->seconds,
                  0.25 * roofline(small.graph, 0, 0.5e6, 1e9) / roofline(small.graph, 0, 1e6, 1e9));
    assert_int_equal(pen_cost_model_at(model, 1, node)->source, PEN_FIGURE_STATED);
    assert_true(pen_cost_model_at(model, 2, node)->seconds == 0.25);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(estimates_are_rooflines),
              cmocka_unit_test(what_was_measured_is_taken),
              cmocka_unit_test(other_hosts_are_not_measured),
              cmocka_unit_test(hosts_have_costs_of_their_own),
              cmocka_unit_test(stated_rates_scale_what_was_measured))
