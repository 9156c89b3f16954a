// Gradients that are not finite are refused before they are applied, whichever proof there is that
// others are finite: the factors of a product, the rows that were added to one, or all of it.
#include <float.h>
#include <math.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/gradient/build_updates.h"
#include "scheduler/runtime/executor/executor_inspect.h"
#include "tests/support/check.h"

#define ROWS 40 // of the table, which is the weight of a layer, too
#define COLUMNS 8
#define INNER 2  // of the product: its factors are much smaller than it
#define PICKED 3 // rows of the table that were picked

// table -= rate * gradient, where gradient = a b, to which rows `dy` are added if it is tied.
typedef struct guard_case {
    pen_arena *arena;
    pen_graph *graph;
    pen_device *device;
    pen_executor *executor;
    pen_value_id table, rate, step, a, b, dy, indices;
    pen_node_id order[4];
    uint32_t order_count;
    float numbers_a[ROWS * INNER], numbers_b[INNER * COLUMNS], numbers_dy[PICKED * COLUMNS];
} guard_case;

static pen_value_id guard_value(guard_case *c, const char *name, pen_value_kind kind,
                                pen_tensor_type type) {
    const pen_value value = {.name = name, .kind = kind, .type = type, .trainable = true};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(c->graph, &value, &id));
    return id;
}

static pen_tensor_type guard_matrix(int64_t rows, int64_t columns) {
    return pen_tensor_type_make(PEN_FLOAT32, 2, (const int64_t[]){rows, columns});
}

static pen_value_id guard_node(guard_case *c, const char *op, pen_role role,
                               const pen_value_id *inputs, uint32_t input_count) {
    const pen_attribute_given attributes[] = {
        pen_attribute_int("axis", 0),
        pen_attribute_ints("shape", 2, (const int64_t[]){ROWS, COLUMNS})};
    pen_node_spec spec = pen_node_spec_make(op, op);
    spec.role = role;
    spec.inputs = inputs;
    spec.input_count = input_count;
    spec.output_count = 1;
    spec.attributes = attributes;
    spec.attribute_count = strcmp(op, "gather_backward") == 0 ? 2 : 0;
    CHECK_OK(pen_graph_add_node(c->graph, &spec, &c->order[c->order_count]));
    return pen_graph_node(c->graph, c->order[c->order_count++])->outputs[0];
}

static void guard_begin_with(guard_case *c, bool is_tied, const pen_optimizer *optimizer) {
    *c = (guard_case){.arena = check_arena()};
    CHECK_OK(pen_graph_create(c->arena, "tied", &c->graph));
    c->table = guard_value(c, "table", PEN_VALUE_PARAMETER, guard_matrix(ROWS, COLUMNS));
    c->a = guard_value(c, "a", PEN_VALUE_INPUT, guard_matrix(ROWS, INNER));
    c->b = guard_value(c, "b", PEN_VALUE_INPUT, guard_matrix(INNER, COLUMNS));
    c->dy = guard_value(c, "dy", PEN_VALUE_INPUT, guard_matrix(PICKED, COLUMNS));
    c->indices = guard_value(c, "indices", PEN_VALUE_INPUT,
                             pen_tensor_type_make(PEN_INT64, 1, (const int64_t[]){PICKED}));
    pen_value_id gradient =
        guard_node(c, "matmul", PEN_ROLE_BACKWARD_WEIGHT, (const pen_value_id[]){c->a, c->b}, 2);
    if (is_tied) {
        gradient = guard_node(c, "gather_backward", PEN_ROLE_BACKWARD_WEIGHT,
                              (const pen_value_id[]){c->dy, c->indices, gradient}, 3);
    }
    const pen_node_id reader = c->order[c->order_count - 1];
    const pen_gradients gradients = {
        1, &(pen_gradient){.value = c->table, .use_count = 1, &gradient, &reader}};
    pen_updates updates;
    CHECK_OK(pen_build_updates(c->graph, &gradients, optimizer, false, NULL, &updates));
    c->rate = updates.learning_rate;
    c->step = updates.step;
    c->order[c->order_count++] = (pen_node_id){pen_graph_node_count(c->graph) - 1};
    const pen_device_kind *kind = NULL;
    CHECK_OK(pen_device_kind_find("cpu", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "a", .thread_count = 1}, &c->device));
    const pen_executor_list all = {0, c->order_count};
    const pen_executor_spec spec = {.device = c->device,
                                    .graph = c->graph,
                                    .order = c->order,
                                    .order_count = c->order_count,
                                    .lists = &all,
                                    .list_count = 1,
                                    .defer_contents = true};
    CHECK_OK(pen_executor_create(&spec, &c->executor));
    CHECK_OK(pen_executor_guard(c->executor, PEN_VALUE_NONE));
    assert_true(pen_executor_is_guarded(c->executor));
}

static void guard_begin(guard_case *c, bool is_tied) {
    guard_begin_with(c, is_tied, &(pen_optimizer){.kind = PEN_OPTIMIZER_SGD});
}

static void guard_end(guard_case *c) {
    pen_executor_destroy(c->executor);
    c->device->kind->close(c->device);
    pen_arena_destroy(c->arena);
}

static void guard_fill(float *numbers, size_t count, float number) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = number;
}

// A run with the case's factors and rows, on a table of ones. Refused or not, the table says so.
static void guard_check(guard_case *c, const int64_t indices[PICKED], bool is_refused,
                        const char *what) {
    static const pen_run_context run = {.first_microbatch = true};
    float table[ROWS * COLUMNS];
    const float rate = 1e-38f;
    guard_fill(table, ROWS * COLUMNS, 1);
    CHECK_OK(pen_executor_write(c->executor, c->table, 0, table, sizeof table));
    CHECK_OK(pen_executor_write(c->executor, c->rate, 0, &rate, sizeof rate));
    const float step = 1, zeros[ROWS * COLUMNS] = {0};
    if (pen_value_is(c->step)) {
        CHECK_OK(pen_executor_write(c->executor, c->step, 0, &step, sizeof step));
    }
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        if (pen_graph_value(c->graph, (pen_value_id){v})->kind != PEN_VALUE_STATE) continue;
        const pen_tensor_type *type = pen_value_type(c->graph, (pen_value_id){v});
        CHECK_OK(pen_executor_write(c->executor, (pen_value_id){v}, 0, zeros,
                                    pen_tensor_type_bytes(type)));
    }
    CHECK_OK(pen_executor_write(c->executor, c->a, 0, c->numbers_a, sizeof c->numbers_a));
    CHECK_OK(pen_executor_write(c->executor, c->b, 0, c->numbers_b, sizeof c->numbers_b));
    if (pen_executor_holds(c->executor, c->dy)) {
        CHECK_OK(pen_executor_write(c->executor, c->dy, 0, c->numbers_dy, sizeof c->numbers_dy));
        CHECK_OK(pen_executor_write(c->executor, c->indices, 0, indices, PICKED * sizeof *indices));
    }
    const pen_status status = pen_executor_run(c->executor, 0, 0, &run);
    CHECK((pen_status_get_code(status) == PEN_NOT_FINITE) == is_refused, "%s: %s", what,
          status == PEN_OK ? "was applied" : pen_status_message(status));
    assert_true(pen_executor_has_updated(c->executor) == !is_refused);
    assert_true(!is_refused || strstr(pen_status_message(status), "' is not finite") != NULL);
    pen_status_ignore(status, "looked at");
    CHECK_OK(pen_executor_read(c->executor, c->table, 0, table, sizeof table));
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        CHECK(isfinite(table[i]) && (!is_refused || table[i] == 1), "%s: element %zu is %g", what,
              i, (double)table[i]);
    }
}

static void guard_reset(guard_case *c, float a, float b, float dy) {
    guard_fill(c->numbers_a, ROWS * INNER, a);
    guard_fill(c->numbers_b, INNER * COLUMNS, b);
    guard_fill(c->numbers_dy, PICKED * COLUMNS, dy);
}

static const int64_t apart[PICKED] = {0, 17, ROWS - 1}, together[PICKED] = {5, 5, 5};

static void products_are_known_by_their_factors(void **state) {
    (void)state;
    guard_case c;
    guard_begin(&c, false);
    guard_reset(&c, 1, 2, 0);
    guard_check(&c, apart, false, "small factors");
    guard_reset(&c, 1e19f, 1e19f, 0);
    guard_check(&c, apart, false, "factors that prove nothing of a product that is finite");
    guard_reset(&c, 1e20f, 1e20f, 0);
    guard_check(&c, apart, true, "a product that is infinite");
    guard_reset(&c, 1, 2, 0);
    guard_check(&c, apart, false, "small factors, after what was refused");
    c.numbers_a[ROWS * INNER - 1] = NAN;
    guard_check(&c, apart, true, "a factor that is not a number");
    guard_reset(&c, 1, 2, 0);
    c.numbers_b[0] = -INFINITY;
    guard_check(&c, apart, true, "a factor that is infinite");
    guard_end(&c);
}

static void rows_added_to_a_product_count(void **state) {
    (void)state;
    guard_case c;
    guard_begin(&c, true);
    guard_reset(&c, 1, 2, 3);
    guard_check(&c, apart, false, "small rows");
    guard_check(&c, together, false, "small rows, one on the other");
    c.numbers_dy[COLUMNS + 1] = NAN;
    guard_check(&c, apart, true, "a row that has what is not a number");
    guard_reset(&c, 1, 2, 2e38f);
    guard_check(&c, apart, false, "large rows that lie apart");
    guard_check(&c, together, true, "large rows, one on the other");
    guard_reset(&c, 1e19f, 1e19f, 2e38f);
    guard_check(&c, apart, true, "a large row on a large product");
    guard_reset(&c, 1e20f, 1e20f, 0);
    guard_check(&c, apart, true, "rows of zeros on a product that is infinite");
    guard_reset(&c, 1, 2, 3);
    c.numbers_a[7] = INFINITY;
    guard_check(&c, apart, true, "a factor that is infinite");
    guard_reset(&c, 1, 2, 3);
    guard_check(&c, together, false, "small rows, after what was refused");
    guard_end(&c);
}

// An optimizer is guarded by being listed: no list of the guard's own has it.
static void every_optimizer_is_guarded(void **state) {
    (void)state;
    for (int kind = 0; kind < PEN_OPTIMIZER_COUNT; kind++) {
        const pen_optimizer optimizer = {.kind = (pen_optimizer_kind)kind,
                                         .momentum = 0.9,
                                         .beta1 = 0.9,
                                         .beta2 = 0.99,
                                         .alpha = 0.9,
                                         .rho = 0.9,
                                         .epsilon = 1e-8,
                                         .clip_threshold = 1,
                                         .centered = true};
        guard_case c;
        guard_begin_with(&c, false, &optimizer);
        guard_reset(&c, 1, 2, 0);
        guard_check(&c, apart, false, "small factors");
        guard_reset(&c, 1e20f, 1e20f, 0);
        guard_check(&c, apart, true, "a product that is infinite");
        guard_reset(&c, 1, 2, 0);
        c.numbers_a[3] = NAN;
        guard_check(&c, apart, true, "a factor that is not a number");
        guard_end(&c);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(every_optimizer_is_guarded),
              cmocka_unit_test(products_are_known_by_their_factors),
              cmocka_unit_test(rows_added_to_a_product_count))
