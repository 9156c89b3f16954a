#include "scheduler/runtime/executor/executor.h"

#include <math.h>

#include "base/memory.h"
#include "graph/analysis/execution_order.h"
#include "graph/op.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_graph.h"

typedef struct executor_case {
    pen_arena *arena;
    random_graph random;
    pen_updates updates;
    pen_execution_order order;
    pen_device *device;
    pen_executor *executor;
} executor_case;

static const pen_device_kind *kind_called(const char *name) {
    const pen_device_kind *kind = NULL;
    CHECK_OK(pen_device_kind_find(name, &kind));
    return kind;
}

static pen_status executor_case_make(executor_case *c, uint64_t seed, bool accumulate,
                                     const char *kind, uint64_t memory_bytes) {
    *c = (executor_case){.arena = check_arena()};
    c->random = random_graph_forward(c->arena, seed, PEN_FLOAT32, 20);
    random_graph_differentiate(&c->random);
    c->updates = random_graph_update(&c->random, seed, accumulate);
    const pen_execution_options options = {
        .mix_updates = !accumulate, .kept = &c->random.loss, .kept_count = 1};
    CHECK_OK(pen_execution_order_build(c->random.graph, &options, c->arena, &c->order));
    const pen_device_options device = {
        .name = "tested", .thread_count = 1, .memory_bytes = memory_bytes};
    CHECK_OK(kind_called(kind)->open(&device, &c->device));
    const pen_executor_spec spec = {.device = c->device,
                                    .graph = c->random.graph,
                                    .order = c->order.nodes,
                                    .order_count = c->order.count,
                                    .update_first = c->order.update_first,
                                    .kept = &c->random.loss,
                                    .kept_count = 1};
    return pen_executor_create(&spec, &c->executor);
}

static void executor_case_free(executor_case *c) {
    pen_executor_destroy(c->executor);
    c->device->kind->close(c->device);
    pen_arena_destroy(c->arena);
}

// Random numbers into a value, on the device and in the graph that is run node by node.
static void feed(executor_case *c, run_graph *run, pen_value_id value, uint64_t seed) {
    pen_tensor *tensor = &run->tensors[value.index];
    const pen_random_key key = {seed, pen_random_stream("feed", value.index, 0)};
    for (int64_t k = 0; k < pen_tensor_count(tensor); k++) {
        pen_tensor_set(tensor, k, pen_random_normal(key, (uint64_t)k));
    }
    CHECK_OK(pen_executor_write(c->executor, value, 0, tensor->data,
                                pen_tensor_type_bytes(&tensor->type)));
}

static void feed_scalar(executor_case *c, run_graph *run, pen_value_id value, float number) {
    if (!pen_value_is(value)) return;
    pen_tensor_set(&run->tensors[value.index], 0, (double)number);
    CHECK_OK(pen_executor_write(c->executor, value, 0, &number, sizeof number));
}

static void compare(executor_case *c, const run_graph *run, pen_value_id found, pen_value_id value,
                    const char *device) {
    const pen_tensor *expected = &run->tensors[value.index];
    float numbers[256];
    const uint64_t bytes = pen_tensor_type_bytes(&expected->type);
    assert_true(bytes <= sizeof numbers);
    CHECK_OK(pen_executor_read(c->executor, found, 0, numbers, bytes));
    for (int64_t k = 0; k < pen_tensor_count(expected); k++) {
        const double number = pen_tensor_get(expected, k);
        CHECK(fabs((double)numbers[k] - number) <= 1e-4 * (1 + fabs(number)),
              "%s: '%s'[%lld] is %g, expected %g", device, pen_value_name(c->random.graph, value),
              (long long)k, (double)numbers[k], number);
    }
}

// One step, memory shared and orders mixed, gives what all nodes in order, all values kept, give.
static void check_step(uint64_t seed, const char *kind) {
    executor_case c;
    run_graph run;
    CHECK_OK(executor_case_make(&c, seed, false, kind, 0));
    CHECK_OK(run_graph_init(&run, c.random.graph, c.arena));
    for (uint32_t i = 0; i < RANDOM_GRAPH_INPUTS; i++) {
        feed(&c, &run, c.random.inputs[i], seed);
    }
    for (uint32_t i = 0; i < RANDOM_GRAPH_PARAMETERS; i++) {
        if (pen_executor_holds(c.executor, c.random.parameters[i])) {
            feed(&c, &run, c.random.parameters[i], seed);
        }
    }
    feed_scalar(&c, &run, c.random.seed, 1);
    feed_scalar(&c, &run, c.updates.learning_rate, 0.1f);
    feed_scalar(&c, &run, c.updates.step, 1);
    CHECK_OK(run_graph_all(&run));
    const pen_run_context context = {.step = 1, .first_microbatch = true};
    CHECK_OK(pen_executor_run(c.executor, PEN_EXECUTOR_MICROBATCH, 0, &context));
    compare(&c, &run, c.random.loss, c.random.loss, kind);
    for (uint32_t v = 0; v < pen_graph_value_count(c.random.graph); v++) {
        const pen_value *value = pen_graph_value(c.random.graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_COMPUTED || !pen_value_is(value->replaces)) continue;
        compare(&c, &run, value->replaces, (pen_value_id){v}, kind);
    }
    const pen_executor_memory memory = pen_executor_get_memory(c.executor);
    assert_true(memory.arena_bytes >= memory.live_bytes_peak);
    assert_true(memory.owned_bytes == memory.arena_bytes + memory.persistent_bytes);
    executor_case_free(&c);
}

static void steps_are_those_of_the_graph(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        check_step(seed, "reference");
        check_step(seed, "cpu");
    }
}

// Three equal microbatches with a third of the seed each: the update of one. SGD alone: Adam's
// first step is the sign of what may be noise.
static void microbatches_accumulate(void **state) {
    (void)state;
    uint32_t compared = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        executor_case whole, parts;
        run_graph run;
        CHECK_OK(executor_case_make(&whole, seed, false, "reference", 0));
        if (pen_value_is(whole.updates.step)) {
            executor_case_free(&whole);
            continue;
        }
        compared++;
        CHECK_OK(executor_case_make(&parts, seed, true, "cpu", 0));
        executor_case *const cases[2] = {&whole, &parts};
        for (int i = 0; i < 2; i++) {
            executor_case *c = cases[i];
            CHECK_OK(run_graph_init(&run, c->random.graph, c->arena));
            for (uint32_t k = 0; k < RANDOM_GRAPH_INPUTS; k++) {
                feed(c, &run, c->random.inputs[k], seed);
            }
            for (uint32_t k = 0; k < RANDOM_GRAPH_PARAMETERS; k++) {
                if (!pen_executor_holds(c->executor, c->random.parameters[k])) continue;
                feed(c, &run, c->random.parameters[k], seed);
            }
            feed_scalar(c, &run, c->random.seed, i == 0 ? 1 : 1.0f / 3);
            feed_scalar(c, &run, c->updates.learning_rate, 0.1f);
            feed_scalar(c, &run, c->updates.step, 1);
            for (uint64_t m = 0; m < (i == 0 ? 1 : 3); m++) {
                const pen_run_context context = {
                    .step = 1, .microbatch = m, .first_microbatch = m == 0};
                CHECK_OK(pen_executor_run(c->executor, PEN_EXECUTOR_MICROBATCH, 0, &context));
            }
            CHECK_OK(pen_executor_run(c->executor, PEN_EXECUTOR_UPDATE, 0,
                                      &(pen_run_context){.step = 1}));
        }
        for (uint32_t k = 0; k < RANDOM_GRAPH_PARAMETERS; k++) {
            if (!pen_executor_holds(whole.executor, whole.random.parameters[k])) continue;
            float found[2][16];
            const uint64_t bytes = pen_tensor_type_bytes(
                pen_value_type(whole.random.graph, whole.random.parameters[k]));
            for (int i = 0; i < 2; i++) {
                CHECK_OK(pen_executor_read(cases[i]->executor, cases[i]->random.parameters[k], 0,
                                           found[i], bytes));
            }
            for (uint64_t j = 0; j < bytes / sizeof(float); j++) {
                CHECK(fabsf(found[0][j] - found[1][j]) <= 1e-4f * (1 + fabsf(found[0][j])),
                      "seed %llu: w%u[%llu] is %g, not %g", (unsigned long long)seed, k,
                      (unsigned long long)j, (double)found[1][j], (double)found[0][j]);
            }
        }
        executor_case_free(&whole);
        executor_case_free(&parts);
    }
    CHECK(compared > 12, "only %u graphs", compared);
}

static void small_devices_are_refused(void **state) {
    (void)state;
    static const char *const kinds[] = {"reference", "cpu"};
    for (int i = 0; i < 2; i++) {
        executor_case c;
        CHECK_ERROR(executor_case_make(&c, 1, true, kinds[i], 256), PEN_DOES_NOT_FIT, "tested");
        executor_case_free(&c);
    }
}

static void what_was_not_kept_cannot_be_read(void **state) {
    (void)state;
    executor_case c;
    CHECK_OK(executor_case_make(&c, 1, true, "cpu", 0));
    const pen_tensor_type type = {PEN_FLOAT32, {0, {0}}};
    CHECK_OK(pen_executor_write(c.executor, c.random.seed, 0, &(float){1}, 4));
    executor_case_free(&c);
    // an input that nobody reads is written to nowhere
    c = (executor_case){.arena = check_arena()};
    pen_graph *graph;
    CHECK_OK(pen_graph_create(c.arena, "g", &graph));
    const pen_value_id unread = graph_value_of(graph, "unread", PEN_VALUE_INPUT, &type);
    CHECK_OK(kind_called("cpu")->open(&(pen_device_options){.name = "a"}, &c.device));
    const pen_executor_spec spec = {.device = c.device, .graph = graph};
    CHECK_OK(pen_executor_create(&spec, &c.executor));
    assert_false(pen_executor_holds(c.executor, unread));
    float number = 1;
    CHECK_OK(pen_executor_write(c.executor, unread, 0, &number, sizeof number));
    CHECK_ERROR(pen_executor_read(c.executor, unread, 0, &number, sizeof number), PEN_INTERNAL,
                "'unread'");
    pen_executor_destroy(NULL);
    executor_case_free(&c);
}

static void refused_memory_is_an_error(void **state) {
    (void)state;
    executor_case c;
    CHECK_OK(executor_case_make(&c, 1, true, "cpu", 0));
    pen_executor_destroy(c.executor);
    const pen_executor_spec spec = {.device = c.device,
                                    .graph = c.random.graph,
                                    .order = c.order.nodes,
                                    .order_count = c.order.count,
                                    .update_first = c.order.update_first};
    for (uint64_t call = 1;; call++) {
        assert_true(call < 1000);
        c.executor = NULL;
        pen_memory_fail_at(call, 1);
        pen_status status = pen_executor_create(&spec, &c.executor);
        pen_memory_fail_at(0, 0);
        if (status == PEN_OK) break;
        CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
    }
    executor_case_free(&c);
}

PEN_TEST_MAIN(cmocka_unit_test(steps_are_those_of_the_graph),
              cmocka_unit_test(microbatches_accumulate),
              cmocka_unit_test(small_devices_are_refused),
              cmocka_unit_test(what_was_not_kept_cannot_be_read),
              cmocka_unit_test(refused_memory_is_an_error))
