#include "device/measure_op.h"

#include "device/measure_fill.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/device_check.h"
#include "tests/support/small_graph.h"

static pen_device *open_device(const char *kind_name, uint64_t memory_bytes) {
    const pen_device_kind *kind;
    pen_device *device;
    CHECK_OK(pen_device_kind_find(kind_name, &kind));
    const pen_device_options options = {.thread_count = 1, .memory_bytes = memory_bytes};
    CHECK_OK(kind->open(&options, &device));
    return device;
}

static pen_value_id add_input(pen_graph *graph, const char *name, pen_element_type element,
                              int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    const pen_value value = {.name = name,
                             .kind = PEN_VALUE_INPUT,
                             .type = pen_tensor_type_make(element, columns > 0 ? 2 : 1, dims)};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

static pen_node_id add_binary(pen_graph *graph, const char *op, pen_value_id a, pen_value_id b) {
    const pen_value_id inputs[] = {a, b};
    pen_node_spec spec = pen_node_spec_make(op, op);
    spec.inputs = inputs;
    spec.input_count = 2;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    return node;
}

static pen_node_id add_product(pen_graph *graph, int64_t side) {
    char name[16];
    snprintf(name, sizeof name, "x%d", (int)side);
    const pen_value_id x = add_input(graph, name, PEN_FLOAT32, side, side);
    return add_binary(graph, "matmul", x, x);
}

// Of a hundredth of a core an operator takes a hundred times what it computes.
static void a_share_of_a_core_makes_operators_slow(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const pen_node_id node = add_product(graph, 192);
    pen_device *device = open_device("cpu", 0);
    pen_op_measurement whole, part;
    pen_measure_options options = {.run_minimum = 5, .run_maximum = 9, .time_limit = 1};
    CHECK_OK(pen_measure_op(device, graph, node, &options, &whole));
    options.cores = 0.01;
    CHECK_OK(pen_measure_op(device, graph, node, &options, &part));
    CHECK(part.seconds > 20 * whole.seconds, "%g, %g", whole.seconds, part.seconds);
    options.cores = 1000;
    CHECK_OK(pen_measure_op(device, graph, node, &options, &part));
    CHECK(part.seconds > 0 && part.seconds < 20 * whole.seconds, "%g", part.seconds);
    device->kind->close(device);
    pen_arena_destroy(arena);
}

static void larger_operators_take_longer(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const pen_node_id small = add_product(graph, 8), large = add_product(graph, 192);
    for (uint32_t k = 0; k < pen_device_kind_count(); k++) {
        if (!op_check_is_here(pen_device_kind_at(k))) continue;
        pen_device *device = open_device(pen_device_kind_at(k)->name, 0);
        const pen_measure_options options = {.run_minimum = 5, .run_maximum = 9, .time_limit = 1};
        pen_op_measurement a, b;
        CHECK_OK(pen_measure_op(device, graph, small, &options, &a));
        CHECK_OK(pen_measure_op(device, graph, large, &options, &b));
        CHECK(a.seconds > 0 && b.seconds > 4 * a.seconds, "%g, %g", a.seconds, b.seconds);
        assert_true(a.runs >= 5 && b.runs >= 5);
        device->kind->close(device);
    }
    pen_arena_destroy(arena);
}

// Each reading is later than the one before by the next of `steps`, over and over.
typedef struct fake_clock {
    const double *steps;
    uint32_t count;
    uint32_t readings;
    double now;
} fake_clock;

static double read_fake_clock(void *context) {
    fake_clock *clock = context;
    clock->now += clock->steps[clock->readings++ % clock->count];
    return clock->now;
}

static pen_op_measurement measure_by(fake_clock *clock, pen_measure_options options) {
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    pen_device *device = open_device("reference", 0);
    options.clock = read_fake_clock;
    options.clock_context = clock;
    pen_op_measurement measured;
    CHECK_OK(pen_measure_op(device, graph, add_product(graph, 4), &options, &measured));
    device->kind->close(device);
    pen_arena_destroy(arena);
    return measured;
}

static void check_near(double found, double expected) {
    CHECK(found > expected - 1e-9 && found < expected + 1e-9, "found %.12g, expected %.12g", found,
          expected);
}

static void the_median_is_that_of_the_clock(void **state) {
    (void)state;
    // between two runs 1 s passes; runs take 2, 9 and 4 in turn, and two runs do not count
    const double steps[] = {1, 2, 1, 9, 1, 4};
    fake_clock clock = {.steps = steps, .count = 6};
    pen_op_measurement measured = measure_by(
        &clock, (pen_measure_options){.run_minimum = 3, .run_maximum = 3, .time_limit = 100});
    assert_int_equal(measured.runs, 3);
    check_near(measured.seconds, 4);
    // an even number: between the two in the middle
    clock = (fake_clock){.steps = steps, .count = 6};
    measured = measure_by(
        &clock, (pen_measure_options){.run_minimum = 4, .run_maximum = 4, .time_limit = 100});
    assert_int_equal(measured.runs, 4);
    check_near(measured.seconds, 4); // 4 2 9 4
}

static void measuring_ends_in_time(void **state) {
    (void)state;
    const double second[] = {0, 1};
    fake_clock clock = {.steps = second, .count = 2};
    // as many runs as the limit allows
    assert_int_equal(
        measure_by(&clock,
                   (pen_measure_options){.run_minimum = 2, .run_maximum = 50, .time_limit = 7})
            .runs,
        7);
    // no fewer than the minimum
    assert_int_equal(
        measure_by(&clock,
                   (pen_measure_options){.run_minimum = 5, .run_maximum = 50, .time_limit = 3})
            .runs,
        5);
    // unless that takes far too long
    assert_int_equal(
        measure_by(&clock,
                   (pen_measure_options){.run_minimum = 40, .run_maximum = 50, .time_limit = 0.5})
            .runs,
        5);
    assert_int_equal(
        measure_by(&clock,
                   (pen_measure_options){.run_minimum = 40, .run_maximum = 50, .time_limit = 0.01})
            .runs,
        1);
    // no more than the maximum
    assert_int_equal(
        measure_by(&clock, (pen_measure_options){.run_maximum = 9, .time_limit = 1000}).runs, 9);
}

// By a clock that stands still.
static void what_takes_no_time_is_told(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    pen_device *device = open_device("reference", 0);
    const double none = 0;
    fake_clock clock = {.steps = &none, .count = 1};
    const pen_measure_options options = {
        .run_minimum = 2, .run_maximum = 2, .clock = read_fake_clock, .clock_context = &clock};
    pen_op_measurement measured;
    CHECK_ERROR(pen_measure_op(device, graph, add_product(graph, 4), &options, &measured),
                PEN_INTERNAL, "1024 runs in a row took no time that the clock tells");
    CHECK(measured.runs == 0, "%u runs", measured.runs);
    device->kind->close(device);
    pen_arena_destroy(arena);
}

static void views_take_no_time(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const int64_t shape[] = {12};
    pen_value_id target;
    CHECK_OK(pen_graph_constant_ints(graph, "shape", 1, shape, &target));
    const pen_node_id node =
        add_binary(graph, "reshape", add_input(graph, "x", PEN_FLOAT32, 3, 4), target);
    pen_device *device = open_device("cpu", 0);
    pen_op_measurement measured = {.runs = 7};
    CHECK_OK(pen_measure_op(device, graph, node, &(pen_measure_options){0}, &measured));
    assert_int_equal(measured.runs, 0);
    assert_true(measured.seconds == 0);
    device->kind->close(device);
    pen_arena_destroy(arena);
}

static void what_does_not_fit_is_named_and_memory_given_back(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const pen_node_id small = add_product(graph, 16), large = add_product(graph, 64);
    pen_device *device = open_device("cpu", 16384);
    const pen_measure_options options = {.run_minimum = 1, .run_maximum = 1};
    pen_op_measurement measured;
    for (int i = 0; i < 30; i++) { // 30 times 2 KiB would be too much
        CHECK_OK(pen_measure_op(device, graph, small, &options, &measured));
        CHECK_ERROR(pen_measure_op(device, graph, large, &options, &measured), PEN_DOES_NOT_FIT,
                    "while measuring matmul 'matmul_2'");
        assert_int_equal(measured.runs, 0);
    }
    device->kind->close(device);
    pen_arena_destroy(arena);
}

// Every node of a training step, whatever it needs: classes, states, constants, updates in place.
static void every_node_of_a_step_can_be_measured(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    const uint32_t count = pen_graph_node_count(small.graph);
    pen_node_id *order;
    CHECK_OK(PEN_NEW(arena, count, &order));
    for (uint32_t n = 0; n < count; n++) {
        order[n] = (pen_node_id){n};
    }
    for (uint32_t k = 0; k < pen_device_kind_count(); k++) {
        if (!op_check_is_here(pen_device_kind_at(k))) continue;
        pen_device *device = open_device(pen_device_kind_at(k)->name, 0);
        const pen_measure_program program = {
            .graph = small.graph, .order = order, .order_count = count};
        const pen_measure_step *step;
        CHECK_OK(pen_measure_step_build(device, &program, arena, &step));
        for (uint32_t n = 0; n < count; n++) {
            const pen_measure_options options = {
                .step = step, .run_minimum = 2, .run_maximum = 2, .cache_bytes = 4096};
            pen_op_measurement measured;
            CHECK_OK(pen_measure_op(device, small.graph, order[n], &options, &measured));
            if (!pen_graph_node(small.graph, order[n])->op->is_view) {
                assert_int_equal(measured.runs, 2);
            }
        }
        device->kind->close(device);
    }
    pen_arena_destroy(arena);
}

// rnn over 5 steps of 33 examples, the batch first, whose lengths are `rows`.
static pen_node_id add_net(pen_graph *graph, pen_value_id rows) {
    const int64_t dims[3][3] = {{33, 5, 2}, {1, 3, 2}, {1, 3, 3}};
    pen_value_id operands[5] = {[3] = PEN_VALUE_NONE, [4] = rows};
    static const char *const names[3] = {"x", "w", "r"};
    for (int i = 0; i < 3; i++) {
        const pen_value value = {.name = names[i],
                                 .kind = PEN_VALUE_INPUT,
                                 .type = pen_tensor_type_make(PEN_FLOAT32, 3, dims[i])};
        CHECK_OK(pen_graph_add_own_value(graph, &value, &operands[i]));
    }
    const pen_attribute_given layout = pen_attribute_int("layout", 1);
    pen_node_spec spec = pen_node_spec_make("rnn", "net");
    spec.inputs = operands;
    spec.input_count = 5;
    spec.attributes = &layout;
    spec.attribute_count = 1;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    return node;
}

static void integers_are_what_readers_know(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const pen_value_id table = add_input(graph, "table", PEN_FLOAT32, 900, 4);
    const pen_value_id rows = add_input(graph, "rows", PEN_INT64, 33, 0);
    const pen_node_id gather = add_binary(graph, "gather", table, rows);
    assert_int_equal(pen_measure_integer_limit(graph, gather), 900);
    const pen_value_id logits = add_input(graph, "logits", PEN_FLOAT32, 33, 7);
    const pen_node_id loss = add_binary(graph, "softmax_cross_entropy_loss", logits, rows);
    assert_int_equal(pen_measure_integer_limit(graph, loss), 7);
    const pen_node_id net = add_net(graph, rows);
    assert_int_equal(pen_measure_integer_limit(graph, net), 6);
    for (uint32_t k = 0; k < pen_device_kind_count(); k++) {
        if (!op_check_is_here(pen_device_kind_at(k))) continue;
        pen_device *device = open_device(pen_device_kind_at(k)->name, 0);
        const pen_measure_options options = {.run_minimum = 1, .run_maximum = 1};
        pen_op_measurement measured;
        CHECK_OK(pen_measure_op(device, graph, gather, &options, &measured));
        CHECK_OK(pen_measure_op(device, graph, loss, &options, &measured));
        CHECK_OK(pen_measure_op(device, graph, net, &options, &measured));
        device->kind->close(device);
    }
    pen_arena_destroy(arena);
}

static void rates_are_measured(void **state) {
    (void)state;
    for (uint32_t k = 0; k < pen_device_kind_count(); k++) {
        if (!op_check_is_here(pen_device_kind_at(k))) continue;
        pen_device *device = open_device(pen_device_kind_at(k)->name, 1 << 20);
        pen_device_rates rates;
        CHECK_OK(pen_measure_rates(device, 0, &rates));
        CHECK(rates.flops > 1e6 && rates.flops < 1e14, "%g", rates.flops);
        CHECK(rates.memory_bandwidth > 1e6 && rates.memory_bandwidth < 1e14, "%g",
              rates.memory_bandwidth);
        device->kind->close(device);
    }
    pen_device *device = open_device("cpu", 4096);
    pen_device_rates rates;
    CHECK_ERROR(pen_measure_rates(device, 0, &rates), PEN_DOES_NOT_FIT,
                "while measuring rates of a device");
    device->kind->close(device);
}

PEN_TEST_MAIN(cmocka_unit_test(larger_operators_take_longer),
              cmocka_unit_test(a_share_of_a_core_makes_operators_slow),
              cmocka_unit_test(the_median_is_that_of_the_clock),
              cmocka_unit_test(measuring_ends_in_time), cmocka_unit_test(views_take_no_time),
              cmocka_unit_test(what_takes_no_time_is_told),
              cmocka_unit_test(what_does_not_fit_is_named_and_memory_given_back),
              cmocka_unit_test(every_node_of_a_step_can_be_measured),
              cmocka_unit_test(integers_are_what_readers_know),
              cmocka_unit_test(rates_are_measured))
