// Times by a GPU's own clock: a kernel that is slow shows at its own node, without a wait for each.
#include "base/clock.h"
#include "device/measure_op.h"
#include "graph/graph.h"
#include "scheduler/runtime/executor/executor.h"
#include "tests/support/check.h"
#include "tests/support/fake_cuda.h"

#define COUNT 100
#define NODES 4u
#define SLOW 0.05 // seconds, as the fake driver's default
#define SETTINGS "slow=softmax"

typedef struct clock_case {
    pen_arena *arena;
    pen_graph *graph;
    pen_node_id order[NODES];
    pen_device *device;
    pen_executor *executor;
} clock_case;

// relu, softmax, neg, exp: of which softmax is slow.
static void clock_begin(clock_case *c, const char *settings) {
    static const char *const ops[NODES] = {"relu", "softmax", "neg", "exp"};
    const int64_t size = COUNT;
    const pen_value value = {
        .name = "x", .kind = PEN_VALUE_INPUT, .type = pen_tensor_type_make(PEN_FLOAT32, 1, &size)};
    const pen_device_kind *kind;
    const pen_executor_list all = {0, NODES};
    pen_value_id last;
    setenv("FAKE_CUDA", settings, 1);
    CHECK(fake_cuda_is_here(), "no fake driver");
    *c = (clock_case){.arena = check_arena()};
    CHECK_OK(pen_graph_create(c->arena, "clock", &c->graph));
    CHECK_OK(pen_graph_add_value(c->graph, &value, &last));
    for (uint32_t i = 0; i < NODES; i++) {
        pen_node_spec spec = pen_node_spec_make(ops[i], ops[i]);
        spec.inputs = &last;
        spec.input_count = spec.output_count = 1;
        CHECK_OK(pen_graph_add_node(c->graph, &spec, &c->order[i]));
        last = pen_graph_node(c->graph, c->order[i])->outputs[0];
    }
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "g"}, &c->device));
    const pen_executor_spec spec = {.device = c->device,
                                    .graph = c->graph,
                                    .order = c->order,
                                    .order_count = NODES,
                                    .lists = &all,
                                    .list_count = 1};
    CHECK_OK(pen_executor_create(&spec, &c->executor));
}

static void clock_end(clock_case *c) {
    pen_executor_destroy(c->executor);
    c->device->kind->close(c->device);
    pen_arena_destroy(c->arena);
    CHECK(fake_cuda_count().blocks == 0, "%llu things are left",
          (unsigned long long)fake_cuda_count().blocks);
}

// What `profile` does: a node's seconds are those of its kernels.
static void a_slow_node_is_told_by_name(void **state) {
    (void)state;
    const pen_run_context run = {.first_microbatch = true};
    double seconds[NODES] = {0};
    clock_case c;
    clock_begin(&c, SETTINGS);
    pen_executor_time_nodes(c.executor, seconds);
    CHECK_OK(pen_executor_run(c.executor, 0, 0, &run)); // the first waits until the clock is set
    const uint64_t waits = fake_cuda_count().waits;
    for (uint32_t i = 0; i < NODES; i++)
        seconds[i] = 0;
    CHECK_OK(pen_executor_enqueue(c.executor, 0, 0, &run));
    CHECK(fake_cuda_count().waits == waits + 1, "%llu waits",
          (unsigned long long)(fake_cuda_count().waits - waits));
    for (uint32_t i = 0; i < NODES; i++)
        CHECK((seconds[i] >= SLOW) == (i == 1) && seconds[i] > 0, "node %u: %g s", i, seconds[i]);
    clock_end(&c);
}

static void an_operator_is_measured_by_it(void **state) {
    (void)state;
    const pen_measure_options options = {.run_minimum = 2, .run_maximum = 2, .cache_bytes = 1};
    clock_case c;
    clock_begin(&c, SETTINGS);
    for (uint32_t i = 0; i < NODES; i++) {
        pen_op_measurement found;
        CHECK_OK(pen_measure_op(c.device, c.graph, c.order[i], &options, &found));
        CHECK((found.seconds >= SLOW) == (i == 1), "node %u: %g s", i, found.seconds);
    }
    clock_end(&c);
}

// Marks lie between what the host saw before and after, also when more and more of them are used,
// and when they were not read the last time.
static void marks_lie_on_the_hosts_clock(void **state) {
    (void)state;
    const pen_run_context run = {.first_microbatch = true};
    clock_case c;
    clock_begin(&c, "");
    const pen_device_kind *kind = c.device->kind;
    double before = pen_clock_seconds();
    for (uint32_t count = 1; count <= 1000; count *= 10) {
        double last = before;
        for (uint32_t m = 0; m < count; m++) {
            CHECK_OK(kind->mark(c.device, m));
            if (m % 100 == 0) CHECK_OK(pen_executor_enqueue(c.executor, 0, 0, &run));
        }
        CHECK_OK(kind->mark(c.device, 0)); // again: only the last counts
        CHECK_OK(kind->synchronize(c.device));
        const double after = pen_clock_seconds();
        for (uint32_t m = 1; m <= count; m++) {
            double at;
            CHECK_OK(kind->marked(c.device, m % count, &at));
            CHECK(at >= last - 1e-6 && at <= after + 1e-6, "mark %u of %u: %.9f, %.9f, %.9f", m,
                  count, last, at, after);
            last = at;
        }
        before = last;
        pen_clock_pause(0.01);
    }
    clock_end(&c);
}

PEN_TEST_MAIN(cmocka_unit_test(a_slow_node_is_told_by_name),
              cmocka_unit_test(an_operator_is_measured_by_it),
              cmocka_unit_test(marks_lie_on_the_hosts_clock))
