// Executors that share memory with another: of another form of their part, or of another device.
#include "scheduler/runtime/executor/executor.h"

#include <math.h>

#include "tests/support/random_graph.h"

static pen_device *open_device(const char *kind_name) {
    const pen_device_kind *kind = NULL;
    pen_device *device = NULL;
    CHECK_OK(pen_device_kind_find(kind_name, &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "a", .thread_count = 1}, &device));
    return device;
}

static pen_tensor_type floats(int64_t count) {
    return pen_tensor_type_make(PEN_FLOAT32, 1, &count);
}

static const uint32_t *copies_of(pen_arena *arena, const pen_graph *graph, const char *name,
                                 uint32_t copies) {
    uint32_t *all;
    pen_value_id value;
    CHECK_OK(PEN_NEW(arena, pen_graph_value_count(graph), &all));
    CHECK_OK(pen_graph_find_value(graph, name, &value));
    all[value.index] = copies;
    return all;
}

// ---- one device's values in another's graph

#define LENT_COUNT 5

// x -> exp -> h on one device, h -> tanh -> y on the other.
typedef struct lent_case {
    pen_arena *arena;
    pen_device *devices[2];
    pen_executor *maker;
    pen_executor *reader;
    pen_value_id x;
    pen_value_id made;
    pen_value_id lent;
    pen_value_id y;
} lent_case;

static lent_case lent_start(const char *kind, uint32_t copies) {
    lent_case c = {.arena = check_arena(), .devices = {open_device(kind), open_device(kind)}};
    const pen_tensor_type type = floats(LENT_COUNT);
    pen_graph *first, *second;
    CHECK_OK(pen_graph_create(c.arena, "first", &first));
    CHECK_OK(pen_graph_create(c.arena, "second", &second));
    c.x = graph_value_of(first, "x", PEN_VALUE_INPUT, &type);
    c.made = graph_apply(first, "exp", "h", c.x, PEN_VALUE_NONE, PEN_VALUE_NONE);
    c.lent = graph_value_of(second, "h", PEN_VALUE_INPUT, &type);
    c.y = graph_apply(second, "tanh", "y", c.lent, PEN_VALUE_NONE, PEN_VALUE_NONE);
    static const pen_node_id order[] = {{0}};
    static const pen_executor_list list[] = {{0, 1}};
    pen_executor_spec spec = {.device = c.devices[0],
                              .graph = first,
                              .order = order,
                              .order_count = 1,
                              .lists = list,
                              .list_count = 1,
                              .copies_of_value =
                                  copies_of(c.arena, first, pen_value_name(first, c.made), copies)};
    CHECK_OK(pen_executor_create(&spec, &c.maker));
    spec.device = c.devices[1];
    spec.graph = second;
    spec.copies_of_value = NULL;
    spec.lent = &c.lent;
    spec.lent_count = 1;
    spec.kept = &c.y;
    spec.kept_count = 1;
    CHECK_OK(pen_executor_create(&spec, &c.reader));
    return c;
}

static void lent_free(lent_case *c) {
    pen_executor_destroy(c->reader);
    pen_executor_destroy(c->maker);
    c->devices[0]->kind->close(c->devices[0]);
    c->devices[1]->kind->close(c->devices[1]);
    pen_arena_destroy(c->arena);
}

// All copies are made before any is read.
static void lent_values_are_read_where_they_were_made(void **state) {
    (void)state;
    static const char *const kinds[] = {"reference", "cpu"};
    for (int k = 0; k < 2; k++) {
        lent_case c = lent_start(kinds[k], 3);
        CHECK_OK(pen_executor_lend(c.reader, c.lent, c.maker, c.made));
        CHECK_OK(pen_executor_bind(c.reader));
        assert_int_equal(pen_executor_copies(c.reader, c.lent), 3);
        const pen_run_context run = {.step = 1};
        for (uint64_t s = 10; s < 13; s++) {
            float x[LENT_COUNT];
            for (uint64_t i = 0; i < LENT_COUNT; i++) {
                x[i] = 0.25f * (float)s - (float)i;
            }
            CHECK_OK(pen_executor_write(c.maker, c.x, s, x, sizeof x));
            CHECK_OK(pen_executor_run(c.maker, 0, s, &run));
        }
        for (uint64_t s = 10; s < 13; s++) {
            float y[LENT_COUNT];
            assert_ptr_equal(pen_executor_address(c.reader, c.lent, s),
                             pen_executor_address(c.maker, c.made, s));
            CHECK_OK(pen_executor_run(c.reader, 0, s, &run));
            CHECK_OK(pen_executor_read(c.reader, c.y, s, y, sizeof y));
            for (uint64_t i = 0; i < LENT_COUNT; i++) {
                const double expected = tanh(exp(0.25 * (double)s - (double)i));
                CHECK(fabs((double)y[i] - expected) < 1e-6, "%s, %llu: %g, not %g", kinds[k],
                      (unsigned long long)s, (double)y[i], expected);
            }
        }
        const pen_executor_memory memory = pen_executor_get_memory(c.reader);
        assert_int_equal(memory.copies_bytes, 0);
        assert_int_equal(memory.persistent_bytes, 0);
        assert_int_equal(pen_executor_get_memory(c.maker).copies_bytes, 3 * 64);
        lent_free(&c);
    }
}

static void what_nobody_lent_is_an_error(void **state) {
    (void)state;
    lent_case c = lent_start("cpu", 1);
    CHECK_ERROR(pen_executor_bind(c.reader), PEN_INTERNAL, "reads 'h', which has no place");
    lent_free(&c);
    c = lent_start("cpu", 1);
    CHECK_ERROR(pen_executor_lend(c.reader, c.lent, c.reader, c.lent), PEN_INTERNAL,
                "'h' cannot be lent");
    CHECK_OK(pen_executor_lend(c.reader, c.lent, c.maker, c.made));
    CHECK_ERROR(pen_executor_lend(c.reader, c.lent, c.maker, c.made), PEN_INTERNAL, "lent before");
    lent_free(&c);
}

// ---- forms of one part

// y = exp(x * w) for `count` examples, where exp is a task of its own.
typedef struct form {
    pen_executor *executor;
    pen_value_id x;
    pen_value_id w;
    pen_value_id y;
} form;

static form form_make(pen_arena *arena, pen_device *device, int64_t count, uint32_t copies,
                      pen_executor *shared) {
    static const float number = 3;
    const pen_tensor_type type = floats(count), one = floats(1);
    static const pen_node_id order[] = {{0}, {1}};
    static const pen_executor_list lists[] = {{0, 1}, {1, 2}};
    form f;
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "form", &graph));
    f.x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &type);
    const pen_value w = {.name = "w",
                         .kind = PEN_VALUE_PARAMETER,
                         .type = one,
                         .data = &number,
                         .data_bytes = sizeof number};
    CHECK_OK(pen_graph_add_value(graph, &w, &f.w));
    const pen_value_id product = graph_apply(graph, "mul", "product", f.x, f.w, PEN_VALUE_NONE);
    f.y = graph_apply(graph, "exp", "y", product, PEN_VALUE_NONE, PEN_VALUE_NONE);
    const pen_executor_spec spec = {
        .device = device,
        .graph = graph,
        .order = order,
        .order_count = 2,
        .lists = lists,
        .list_count = 2,
        .copies_of_value = copies_of(arena, graph, pen_value_name(graph, product), copies),
        .kept = &f.y,
        .kept_count = 1,
        .defer_contents = true,
        .shared = shared};
    CHECK_OK(pen_executor_create(&spec, &f.executor));
    return f;
}

static void form_check(const form *f, uint32_t count, float w) {
    float x[64], y[64];
    const pen_run_context run = {.step = 1};
    for (uint32_t i = 0; i < count; i++) {
        x[i] = (float)i / 64;
    }
    CHECK_OK(pen_executor_write(f->executor, f->x, 7, x, count * sizeof *x));
    CHECK_OK(pen_executor_run(f->executor, 0, 7, &run));
    CHECK_OK(pen_executor_run(f->executor, 1, 7, &run));
    CHECK_OK(pen_executor_read(f->executor, f->y, 7, y, count * sizeof *y));
    for (uint32_t i = 0; i < count; i++) {
        CHECK(fabsf(y[i] - expf(x[i] * w)) < 1e-5f * y[i], "[%u] is %g", i, (double)y[i]);
    }
}

static void forms_share_parameters_and_working_memory(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_device *device = open_device("cpu");
    const form whole = form_make(arena, device, 64, 4, NULL);
    const form rest = form_make(arena, device, 16, 2, whole.executor);
    const form larger = form_make(arena, device, 64, 9, whole.executor);
    const pen_executor_memory memory = pen_executor_get_memory(whole.executor);
    assert_int_equal(memory.copies_bytes, 4 * 256);
    assert_int_equal(memory.arena_bytes, 256);
    assert_int_equal(memory.owned_bytes, 64 + 256 + 5 * 256); // w, x, and the two above
    assert_int_equal(pen_executor_get_memory(rest.executor).owned_bytes, 64); // its own x
    assert_int_equal(pen_executor_get_memory(larger.executor).owned_bytes, 256 + 10 * 256);
    form_check(&whole, 64, 0); // contents come later
    const float number = 2;
    CHECK_OK(pen_executor_write_part(rest.executor, rest.w, 0, &number, sizeof number));
    form_check(&whole, 64, 2);
    form_check(&rest, 16, 2);
    form_check(&larger, 64, 2);
    pen_executor_destroy(larger.executor);
    pen_executor_destroy(rest.executor);
    pen_executor_destroy(whole.executor);
    device->kind->close(device);
    pen_arena_destroy(arena);
}

// What one list makes and another reads needs a place of its own.
static void values_between_lists_need_copies(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_device *device = open_device("cpu");
    const pen_tensor_type type = floats(4);
    static const pen_node_id order[] = {{0}, {1}};
    static const pen_executor_list lists[] = {{0, 1}, {1, 2}};
    pen_graph *graph;
    pen_executor *executor = NULL;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &type);
    const pen_value_id h = graph_apply(graph, "exp", "h", x, PEN_VALUE_NONE, PEN_VALUE_NONE);
    (void)graph_apply(graph, "tanh", "y", h, PEN_VALUE_NONE, PEN_VALUE_NONE);
    const pen_executor_spec spec = {.device = device,
                                    .graph = graph,
                                    .order = order,
                                    .order_count = 2,
                                    .lists = lists,
                                    .list_count = 2};
    CHECK_ERROR(pen_executor_create(&spec, &executor), PEN_INTERNAL, "'h");
    device->kind->close(device);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(lent_values_are_read_where_they_were_made),
              cmocka_unit_test(what_nobody_lent_is_an_error),
              cmocka_unit_test(forms_share_parameters_and_working_memory),
              cmocka_unit_test(values_between_lists_need_copies))
