// Times by a GPU's own clock: a kernel that is slow shows at its own node, without a wait for each.
#include "base/clock.h"
#include "device/cuda/cuda_inside.h"
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
    CHECK_OK(pen_executor_run(c.executor, 0, 0, &run)); // the first waits for the clock, too
    for (uint32_t i = 0; i < NODES; i++)
        seconds[i] = 0;
    const uint64_t waits = fake_cuda_count().waits;
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

// By a clock that tells milliseconds only, though the device says that it tells more: what is
// shorter is run so often in a row that its time is told. A cost of 0 would be none.
static void what_is_shorter_than_a_tick_is_no_nothing(void **state) {
    (void)state;
    const pen_measure_options options = {.run_minimum = 3, .run_maximum = 3, .cache_bytes = 1};
    clock_case c;
    clock_begin(&c, "tick_ns=4000000");
    for (uint32_t i = 0; i < NODES; i++) {
        pen_op_measurement found;
        CHECK_OK(pen_measure_op(c.device, c.graph, c.order[i], &options, &found));
        CHECK(found.seconds > 0 && found.seconds < 4e-3, "node %u: %g s", i, found.seconds);
        CHECK(found.runs == 3, "%u runs", found.runs);
    }
    clock_end(&c);
}

// Spans between marks, one after another, from `from` on to the last: none begins before the one
// before it ended, and together they are the whole. All lie between two of the host's times.
static void check_spans(const clock_case *c, uint32_t from, uint32_t count, double before,
                        double after) {
    const pen_device_kind *kind = c->device->kind;
    double seconds = 0, end = before;
    pen_span whole, span;
    CHECK_OK(kind->marked(c->device, from, from + count - 1, &whole));
    CHECK(whole.start_seconds >= before - 1e-6, "%.9f, %.9f", whole.start_seconds, before);
    CHECK(whole.start_seconds + whole.seconds <= after + 1e-6, "%.9f + %.9f, %.9f",
          whole.start_seconds, whole.seconds, after);
    for (uint32_t m = from; m + 1 < from + count; m++) {
        CHECK_OK(kind->marked(c->device, m, m + 1, &span));
        CHECK(span.seconds >= 0 && span.start_seconds >= end - 1e-6, "mark %u: %.9f, %.9f", m,
              span.start_seconds, end);
        end = span.start_seconds + span.seconds;
        seconds += span.seconds;
    }
    const double off = seconds - whole.seconds; // each is told in steps of half a microsecond
    CHECK(off <= 1e-6 && off >= -0.5e-6 * count, "%.9f, %.9f", seconds, whole.seconds);
}

// Also when more and more marks are used, and when nobody asked for them the last time.
static void marks_lie_on_the_hosts_clock(void **state) {
    (void)state;
    const pen_run_context run = {.first_microbatch = true};
    clock_case c;
    clock_begin(&c, "");
    const pen_device_kind *kind = c.device->kind;
    for (uint32_t count = 10; count <= 1000; count *= 10) {
        const double before = pen_clock_seconds();
        for (uint32_t m = 0; m < 2 * count; m++) {
            CHECK_OK(kind->mark(c.device, m));
            if (m % 100 == 0) CHECK_OK(pen_executor_enqueue(c.executor, 0, 0, &run));
        }
        CHECK_OK(kind->mark(c.device, 0)); // again: only the last counts
        CHECK_OK(kind->synchronize(c.device));
        check_spans(&c, 1, count, before, pen_clock_seconds());
    }
    clock_end(&c);
}

// On both clocks: the host's is as much later than the times at which it recorded origins.
static void pass_an_hour(const clock_case *c) {
    cuda_device *device = (cuda_device *)(void *)c->device;
    fake_cuda_pass(3600);
    for (uint32_t i = 0; i < 2; i++)
        device->clock.origins[i].seconds -= 3600;
}

// Distances are told as float32: after an hour in steps of a quarter of a millisecond. What takes
// 30 ms and a half is not told as more, or less, than the host saw of it, behind or before an idle
// hour; and lies where it was.
static void hours_of_idleness_make_times_no_coarser(void **state) {
    (void)state;
    const pen_run_context run = {.first_microbatch = true};
    clock_case c;
    clock_begin(&c, "slow=softmax slow_us=30500");
    const pen_device_kind *kind = c.device->kind;
    CHECK_OK(kind->mark(c.device, 0));
    CHECK_OK(kind->mark(c.device, 1));
    CHECK_OK(kind->synchronize(c.device)); // nobody asks: the list has failed
    for (uint32_t i = 0; i < 8; i++) {
        pen_span first, second;
        pass_an_hour(&c);
        const double before = pen_clock_seconds();
        CHECK_OK(kind->mark(c.device, 0));
        CHECK_OK(kind->mark(c.device, 1));
        CHECK_OK(pen_executor_enqueue(c.executor, 0, 0, &run));
        CHECK_OK(kind->mark(c.device, 2));
        CHECK_OK(kind->synchronize(c.device));
        const double after = pen_clock_seconds();
        if (i % 2 == 1) pass_an_hour(&c); // before it is asked
        CHECK_OK(kind->marked(c.device, 0, 1, &first));
        CHECK_OK(kind->marked(c.device, 1, 2, &second));
        CHECK(first.seconds >= 0 && second.seconds >= 0.0305 &&
                  first.seconds + second.seconds <= after - before + 1e-6,
              "%.9f and %.9f of %.9f s", first.seconds, second.seconds, after - before);
        CHECK(i % 2 == 1 || (second.start_seconds >= before - 1e-6 &&
                             second.start_seconds + second.seconds <= after + 1e-6),
              "%.9f + %.9f, %.9f to %.9f", second.start_seconds, second.seconds, before, after);
    }
    clock_end(&c);
}

PEN_TEST_MAIN(cmocka_unit_test(a_slow_node_is_told_by_name),
              cmocka_unit_test(an_operator_is_measured_by_it),
              cmocka_unit_test(what_is_shorter_than_a_tick_is_no_nothing),
              cmocka_unit_test(marks_lie_on_the_hosts_clock),
              cmocka_unit_test(hours_of_idleness_make_times_no_coarser))
