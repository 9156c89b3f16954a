// A list of launches runs as one. Its updates become one launch, and give the bits that they give
// one by one, whatever the order of threads and however late commands are.
#include <math.h>

#include "device/device.h"
#include "graph/graph.h"
#include "graph/passes/gradient/build_updates.h"
#include "scheduler/runtime/executor/executor_inspect.h"
#include "tests/support/check.h"
#include "tests/support/fake_cuda.h"

#define PARAMETERS 5u
#define NODES 64u
#define BYTES_MOST 40000u
#define RESULTS_MOST (4 * PARAMETERS * BYTES_MOST)

// Parameters, whose gradients are rectified inputs, and their updates.
typedef struct updates_case {
    pen_arena *arena;
    pen_graph *graph;
    pen_updates updates;
    pen_value_id gradients[PARAMETERS]; // that are fed
    bool has_labels;                    // of a loss, which is made before the updates
    pen_value_id labels;
    pen_device *device;
    pen_node_id order[NODES];
    pen_executor_list all;
    pen_executor_spec spec;
    pen_executor *executor;
    double seconds[NODES];
} updates_case;

// Of less than a block of threads, of one, of many, and of several blocks of a norm.
static const int64_t sizes[PARAMETERS] = {1, 256, 9000, 70, 4097};

static pen_value_id updates_add_value(updates_case *c, const char *name, pen_value_kind kind,
                                      int64_t size) {
    const pen_value value = {.name = name,
                             .kind = kind,
                             .type = pen_tensor_type_make(PEN_FLOAT32, 1, &size),
                             .trainable = true};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(c->graph, &value, &id));
    return id;
}

static void updates_build(updates_case *c, const pen_optimizer *optimizer) {
    static const char *const names[2][PARAMETERS] = {{"p0", "p1", "p2", "p3", "p4"},
                                                     {"g0", "g1", "g2", "g3", "g4"}};
    pen_gradient items[PARAMETERS];
    pen_value_id uses[PARAMETERS];
    pen_node_id readers[PARAMETERS];
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        const pen_value_id parameter =
            updates_add_value(c, names[0][i], PEN_VALUE_PARAMETER, sizes[i]);
        c->gradients[i] = updates_add_value(c, names[1][i], PEN_VALUE_INPUT, sizes[i]);
        pen_node_spec spec = pen_node_spec_make("relu", "relu");
        spec.role = PEN_ROLE_BACKWARD_WEIGHT;
        spec.inputs = &c->gradients[i];
        spec.input_count = spec.output_count = 1;
        CHECK_OK(pen_graph_add_node(c->graph, &spec, &readers[i]));
        uses[i] = pen_graph_node(c->graph, readers[i])->outputs[0];
        items[i] = (pen_gradient){parameter, 1, &uses[i], &readers[i]};
    }
    const pen_gradients gradients = {PARAMETERS, items};
    CHECK_OK(pen_build_updates(c->graph, &gradients, optimizer, false, NULL, &c->updates));
}

// The loss of four scores of three classes.
static void updates_add_loss(updates_case *c) {
    static const int64_t scores[2] = {4, 3};
    pen_value value = {.name = "scores", .kind = PEN_VALUE_INPUT};
    pen_value_id inputs[2];
    pen_node_id node;
    value.type = pen_tensor_type_make(PEN_FLOAT32, 2, scores);
    CHECK_OK(pen_graph_add_value(c->graph, &value, &inputs[0]));
    value.name = "labels";
    value.type = pen_tensor_type_make(PEN_INT64, 1, scores);
    CHECK_OK(pen_graph_add_value(c->graph, &value, &inputs[1]));
    c->labels = inputs[1];
    pen_node_spec spec = pen_node_spec_make("softmax_cross_entropy_loss", "loss");
    spec.inputs = inputs;
    spec.input_count = 2;
    spec.output_count = 1;
    CHECK_OK(pen_graph_add_node(c->graph, &spec, &node));
}

static void updates_begin_with(updates_case *c, const pen_optimizer *optimizer,
                               const char *settings, bool has_labels) {
    const pen_device_kind *kind;
    *c = (updates_case){.arena = check_arena(), .has_labels = has_labels};
    CHECK_OK(pen_graph_create(c->arena, "updates", &c->graph));
    if (has_labels) updates_add_loss(c);
    updates_build(c, optimizer);
    setenv("FAKE_CUDA", settings, 1);
    CHECK(fake_cuda_is_here(), "no fake driver");
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "g"}, &c->device));
    const uint32_t count = pen_graph_node_count(c->graph);
    CHECK(count <= NODES, "%u nodes", count);
    for (uint32_t i = 0; i < count; i++)
        c->order[i] = (pen_node_id){i};
    c->all = (pen_executor_list){0, count};
    c->spec = (pen_executor_spec){.device = c->device,
                                  .graph = c->graph,
                                  .order = c->order,
                                  .order_count = count,
                                  .lists = &c->all,
                                  .list_count = 1,
                                  .defer_contents = true};
    CHECK_OK(pen_executor_create(&c->spec, &c->executor));
}

static void updates_begin(updates_case *c, const pen_optimizer *optimizer, const char *settings) {
    updates_begin_with(c, optimizer, settings, false);
}

static void updates_end(updates_case *c) {
    pen_executor_destroy(c->executor);
    c->device->kind->close(c->device);
    pen_arena_destroy(c->arena);
    CHECK(fake_cuda_count().blocks == 0, "%llu things are left",
          (unsigned long long)fake_cuda_count().blocks);
}

static bool updates_is_kept(const updates_case *c, uint32_t v) {
    const pen_value_kind kind = pen_graph_value(c->graph, (pen_value_id){v})->kind;
    return kind == PEN_VALUE_PARAMETER || kind == PEN_VALUE_STATE;
}

// Numbers that follow from the value and the place.
static void updates_feed(const updates_case *c) {
    static float numbers[BYTES_MOST / sizeof(float)];
    const float rate = 0.125f, step = 3;
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        const pen_value *value = pen_graph_value(c->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_INPUT && !updates_is_kept(c, v)) continue;
        if (c->has_labels && v == c->labels.index) continue;
        const uint64_t bytes = pen_tensor_type_bytes(&value->type);
        for (uint32_t i = 0; i < bytes / sizeof(float); i++)
            numbers[i] = (float)((i * 37 + v * 11) % 101) / 64;
        CHECK_OK(pen_executor_write(c->executor, (pen_value_id){v}, 0, numbers, bytes));
    }
    CHECK_OK(pen_executor_write(c->executor, c->updates.learning_rate, 0, &rate, sizeof rate));
    if (!pen_value_is(c->updates.step)) return;
    CHECK_OK(pen_executor_write(c->executor, c->updates.step, 0, &step, sizeof step));
}

// Parameters and states, behind each other.
static uint64_t updates_collect(const updates_case *c, char *out_results) {
    uint64_t end = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        if (!updates_is_kept(c, v)) continue;
        const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(c->graph, (pen_value_id){v}));
        CHECK_OK(pen_executor_read(c->executor, (pen_value_id){v}, 0, out_results + end, bytes));
        end += bytes;
    }
    return end;
}

typedef struct updates_cost {
    uint64_t kernels, launches; // of a step
} updates_cost;

// Three steps on the fed numbers; returns what the last one takes.
static updates_cost updates_run(const updates_case *c, char *out_results, uint64_t *out_bytes) {
    const pen_run_context run = {.first_microbatch = true};
    updates_cost cost = {0, 0};
    updates_feed(c);
    for (uint32_t i = 0; i < 3; i++) {
        const fake_counts before = fake_cuda_count();
        CHECK_OK(pen_executor_run(c->executor, 0, 0, &run));
        const fake_counts after = fake_cuda_count();
        cost = (updates_cost){after.kernels - before.kernels, after.launches - before.launches};
    }
    *out_bytes = updates_collect(c, out_results);
    return cost;
}

// Nodes that are timed run one by one. As one, the first step launches kernels, the second makes a
// graph of them, and the third launches it.
static void updates_check(const pen_optimizer *optimizer, const char *settings, uint64_t one_by_one,
                          uint64_t as_one) {
    static char results[2][RESULTS_MOST];
    updates_case c;
    uint64_t bytes[2];
    updates_begin(&c, optimizer, settings);
    // as one first: what is read before it was made is none of a run before
    const updates_cost after = updates_run(&c, results[1], &bytes[1]);
    pen_executor_time_nodes(c.executor, c.seconds);
    const updates_cost before = updates_run(&c, results[0], &bytes[0]);
    CHECK(before.kernels == one_by_one && before.launches == one_by_one, "%llu kernels",
          (unsigned long long)before.kernels);
    CHECK(after.kernels == as_one && after.launches == 1, "%llu kernels, %llu launches",
          (unsigned long long)after.kernels, (unsigned long long)after.launches);
    CHECK(bytes[0] == bytes[1] && memcmp(results[0], results[1], bytes[0]) == 0, "other bits");
    updates_end(&c);
}

static const char *const all_settings[] = {"order=0", "order=1", "order=2 late=200"};

// Each a rectifier and an update.
static void updates_are_one_launch(void **state) {
    (void)state;
    static const pen_optimizer sgd = {
        .kind = PEN_OPTIMIZER_SGD, .momentum = 0.5, .weight_decay = 0.25, .clip_value = 1};
    static const pen_optimizer plain = {.kind = PEN_OPTIMIZER_SGD};
    for (uint32_t i = 0; i < 3; i++) {
        updates_check(&sgd, all_settings[i], 2 * PARAMETERS, PARAMETERS + 1);
        updates_check(&plain, all_settings[i], 2 * PARAMETERS, PARAMETERS + 1);
    }
}

// Each a rectifier, two launches of a norm and an update; and one scale of all.
static void norms_are_two_launches(void **state) {
    (void)state;
    static const pen_optimizer adam = {.kind = PEN_OPTIMIZER_ADAM,
                                       .beta1 = 0.875,
                                       .beta2 = 0.75,
                                       .epsilon = 1e-8,
                                       .clip_norm = 0.5};
    for (uint32_t i = 0; i < 3; i++)
        updates_check(&adam, all_settings[i], 4 * PARAMETERS + 1, PARAMETERS + 4);
}

// ---- guards

// An infinite element of gradient `which`.
static void updates_feed_bad(const updates_case *c, uint32_t which) {
    static float numbers[BYTES_MOST / sizeof(float)];
    const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(c->graph, c->gradients[which]));
    numbers[sizes[which] - 1] = INFINITY;
    CHECK_OK(pen_executor_write(c->executor, c->gradients[which], 0, numbers, bytes));
    numbers[sizes[which] - 1] = 0;
}

// A step with a bad gradient changes nothing and is told, once; the next step is as any.
static void updates_check_guard(const pen_optimizer *optimizer, const char *settings) {
    static char results[2][RESULTS_MOST];
    const pen_run_context run = {.first_microbatch = true};
    updates_case c;
    updates_begin(&c, optimizer, settings);
    CHECK_OK(pen_executor_guard(c.executor, PEN_VALUE_NONE));
    CHECK(pen_executor_is_late(c.executor), "the host looks");
    for (uint32_t which = 0; which < PARAMETERS; which++) {
        updates_feed(&c);
        const uint64_t bytes = updates_collect(&c, results[0]);
        updates_feed_bad(&c, which);
        CHECK_OK(pen_executor_enqueue(c.executor, 0, 0, &run));
        CHECK_ERROR(pen_executor_finish(c.executor), PEN_NOT_FINITE, "' is not finite");
        CHECK(!pen_executor_has_updated(c.executor), "updates of gradient %u", which);
        CHECK(updates_collect(&c, results[1]) == bytes &&
                  memcmp(results[0], results[1], bytes) == 0,
              "gradient %u was applied", which);
        updates_feed(&c);
        CHECK_OK(pen_executor_run(c.executor, 0, 0, &run));
        (void)updates_collect(&c, results[1]);
        CHECK(memcmp(results[0], results[1], bytes) != 0, "nothing was applied");
    }
    updates_end(&c);
}

static void bad_gradients_stop_all_updates(void **state) {
    (void)state;
    static const pen_optimizer sgd = {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.5};
    static const pen_optimizer clipped = {.kind = PEN_OPTIMIZER_ADAM,
                                          .beta1 = 0.875,
                                          .beta2 = 0.75,
                                          .epsilon = 1e-8,
                                          .clip_norm = 0.5};
    for (uint32_t i = 0; i < 3; i++) {
        updates_check_guard(&sgd, all_settings[i]);
        updates_check_guard(&clipped, all_settings[i]);
    }
}

// With an average of each parameter, too. LAMB and Adafactor take several launches, one parameter
// after the other: those before a bad gradient are made, and told, as on the host.
static void every_optimizer_heeds_the_flag(void **state) {
    (void)state;
    for (int kind = 0; kind < PEN_OPTIMIZER_COUNT; kind++) {
        if (kind == PEN_OPTIMIZER_LAMB || kind == PEN_OPTIMIZER_ADAFACTOR) continue;
        const pen_optimizer optimizer = {.kind = (pen_optimizer_kind)kind,
                                         .momentum = 0.5,
                                         .beta1 = 0.875,
                                         .beta2 = 0.75,
                                         .epsilon = 1e-8,
                                         .alpha = 0.75,
                                         .rho = 0.75,
                                         .momentum_decay = 0.004,
                                         .beta2_decay = -0.75,
                                         .epsilon2 = 0.001,
                                         .clip_threshold = 1,
                                         .lr = 0.125,
                                         .average = {.decay = 0.75, .from = 1}};
        updates_check_guard(&optimizer, all_settings[kind % 3]);
    }
}

// ---- wrong data

// A label that is no class: the step changes nothing and is told, once; the next step is as any.
// Launches that are timed are enqueued one by one.
static void updates_check_labels(const char *settings, bool is_timed) {
    static const pen_optimizer sgd = {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.5};
    static const int64_t right[4] = {0, 1, 2, 0}, wrong[4] = {0, 1, 3, 0};
    static char results[2][RESULTS_MOST];
    const pen_run_context run = {.first_microbatch = true};
    updates_case c;
    updates_begin_with(&c, &sgd, settings, true);
    if (is_timed) pen_executor_time_nodes(c.executor, c.seconds);
    if (!is_timed) CHECK_OK(pen_executor_guard(c.executor, PEN_VALUE_NONE));
    for (uint32_t i = 0; i < 4; i++) { // the second time it becomes a graph
        updates_feed(&c);
        const uint64_t bytes = updates_collect(&c, results[0]);
        CHECK_OK(pen_executor_write(c.executor, c.labels, 0, wrong, sizeof wrong));
        CHECK_ERROR(pen_executor_run(c.executor, 0, 0, &run), PEN_INVALID_INPUT,
                    "the label of target 2 is not one of 3 classes");
        (void)updates_collect(&c, results[1]);
        CHECK(memcmp(results[0], results[1], bytes) == 0, "updates of step %u were applied", i);
        CHECK_OK(pen_executor_write(c.executor, c.labels, 0, right, sizeof right));
        CHECK_OK(pen_executor_run(c.executor, 0, 0, &run));
        (void)updates_collect(&c, results[1]);
        CHECK(memcmp(results[0], results[1], bytes) != 0, "nothing was applied");
    }
    updates_end(&c);
}

static void wrong_labels_stop_all_updates(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        updates_check_labels(all_settings[i], false);
        updates_check_labels(all_settings[i], true);
    }
}

// A driver that makes no graph: launches are enqueued one by one, to the same bits.
static void a_refused_graph_changes_nothing(void **state) {
    (void)state;
    static const pen_optimizer sgd = {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.5};
    static const char *const settings[] = {"order=0", "graphless=1"};
    static char results[2][RESULTS_MOST];
    uint64_t bytes[2];
    for (uint32_t i = 0; i < 2; i++) {
        updates_case c;
        updates_begin(&c, &sgd, settings[i]);
        const updates_cost cost = updates_run(&c, results[i], &bytes[i]);
        CHECK(cost.launches == (i == 0 ? 1 : PARAMETERS + 1), "%llu launches",
              (unsigned long long)cost.launches);
        updates_end(&c);
    }
    CHECK(bytes[0] == bytes[1] && memcmp(results[0], results[1], bytes[0]) == 0, "other bits");
}

// ---- memory

#define SHARERS 400u

// Lists of executors of one device have its room as long as they all fit, and then memory that
// their executor took: no list asks the driver for more. When all are gone, the room is free again.
static void executors_share_the_room(void **state) {
    (void)state;
    static const pen_optimizer adam = {.kind = PEN_OPTIMIZER_ADAM, .epsilon = 1e-8};
    static pen_executor *sharers[SHARERS];
    const pen_run_context run = {.first_microbatch = true};
    updates_case c;
    updates_begin(&c, &adam, "order=0");
    const pen_device_kind *kind = c.device->kind;
    const uint64_t list = kind->list_bytes(c.graph, c.order, c.all.end);
    const uint64_t fitting = kind->list_room_bytes / list - 1; // beside the first
    CHECK(list > 0 && fitting < SHARERS - 20, "lists keep %llu bytes", (unsigned long long)list);
    c.spec.shared = c.executor;
    for (uint32_t round = 0; round < 2; round++) {
        uint64_t own = pen_executor_get_memory(c.executor).owned_bytes;
        for (uint32_t i = 0; i < SHARERS; i++) {
            CHECK_OK(pen_executor_create(&c.spec, &sharers[i]));
            const uint64_t bytes = pen_executor_get_memory(sharers[i]).owned_bytes;
            const uint64_t first = pen_executor_get_memory(sharers[0]).owned_bytes;
            CHECK(bytes - first == (i < fitting ? 0 : list), "number %u takes %llu bytes", i,
                  (unsigned long long)bytes);
            own += bytes;
        }
        const uint64_t taken = fake_cuda_count().bytes;
        CHECK(taken == own + kind->own_bytes(c.device), "%llu bytes", (unsigned long long)taken);
        updates_feed(&c);
        for (uint32_t i = 0; i < SHARERS; i++)
            CHECK_OK(pen_executor_run(sharers[i], 0, 0, &run));
        CHECK(fake_cuda_count().bytes == taken, "lists took memory of the driver");
        for (uint32_t i = 0; i < SHARERS; i++)
            pen_executor_destroy(sharers[i]);
        pen_executor_destroy(c.executor);
        c.spec.shared = NULL;
        CHECK_OK(pen_executor_create(&c.spec, &c.executor));
        c.spec.shared = c.executor;
    }
    updates_end(&c);
}

// ---- waits

// What is fed, run and fetched waits for nothing; all of it is awaited once. Late commands would
// show what is read or used too early.
static void a_step_is_awaited_once(void **state) {
    (void)state;
    static const pen_optimizer sgd = {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.5};
    const pen_run_context run = {.first_microbatch = true};
    updates_case c;
    updates_begin(&c, &sgd, "late=200");
    CHECK_OK(pen_executor_guard(c.executor, PEN_VALUE_NONE));
    for (uint32_t step = 0; step < 5; step++) {
        float before[1] = {NAN}, after[1] = {NAN};
        const uint64_t waits = fake_cuda_count().waits;
        const pen_value_id first = {0}; // the parameter of one element
        updates_feed(&c);
        CHECK_OK(pen_executor_fetch(c.executor, first, 0, before, sizeof before));
        CHECK_OK(pen_executor_enqueue(c.executor, 0, 0, &run));
        CHECK_OK(pen_executor_fetch(c.executor, first, 0, after, sizeof after));
        CHECK(fake_cuda_count().waits == waits, "it waited before the end");
        CHECK_OK(pen_executor_finish(c.executor));
        CHECK(fake_cuda_count().waits == waits + 1, "%llu waits",
              (unsigned long long)(fake_cuda_count().waits - waits));
        CHECK(isfinite(before[0]) && isfinite(after[0]), "%g, %g", (double)before[0],
              (double)after[0]);
    }
    updates_end(&c);
}

// ---- graphs: what differs from run to run

#define DRAWN 1000u
#define DRAWN_BYTES (DRAWN * (uint32_t)sizeof(float))

// y = dropout of x, and z adds up minus y over microbatches.
typedef struct drawn_case {
    pen_arena *arena;
    pen_graph *graph;
    pen_value_id x, y, z;
    pen_node_id order[2];
    pen_device *device;
    pen_executor *executor;
    double seconds[2];
} drawn_case;

static pen_value_id drawn_node(drawn_case *c, uint32_t at, const char *op,
                               const pen_value_id *inputs, uint32_t input_count) {
    pen_node_spec spec = pen_node_spec_make(op, op);
    spec.inputs = inputs;
    spec.input_count = input_count;
    spec.output_count = 1;
    CHECK_OK(pen_graph_add_node(c->graph, &spec, &c->order[at]));
    return pen_graph_node(c->graph, c->order[at])->outputs[0];
}

static void drawn_begin(drawn_case *c) {
    const int64_t size = DRAWN;
    const pen_value value = {
        .name = "x", .kind = PEN_VALUE_INPUT, .type = pen_tensor_type_make(PEN_FLOAT32, 1, &size)};
    pen_value_id inputs[3];
    const pen_device_kind *kind;
    *c = (drawn_case){.arena = check_arena()};
    CHECK_OK(pen_graph_create(c->arena, "drawn", &c->graph));
    CHECK_OK(pen_graph_add_value(c->graph, &value, &c->x));
    inputs[0] = c->x;
    CHECK_OK(pen_graph_constant_number(c->graph, "ratio", PEN_FLOAT32, 0.25, &inputs[1]));
    CHECK_OK(pen_graph_constant_number(c->graph, "training", PEN_BOOL, 1, &inputs[2]));
    c->y = drawn_node(c, 0, "dropout", inputs, 3);
    c->z = drawn_node(c, 1, "neg", &c->y, 1);
    pen_graph_set_accumulates(c->graph, c->order[1], true);
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "g"}, &c->device));
    const pen_executor_list all = {0, 2};
    const pen_value_id kept[2] = {c->y, c->z};
    const pen_executor_spec spec = {.device = c->device,
                                    .graph = c->graph,
                                    .order = c->order,
                                    .order_count = 2,
                                    .lists = &all,
                                    .list_count = 1,
                                    .kept = kept,
                                    .kept_count = 2};
    CHECK_OK(pen_executor_create(&spec, &c->executor));
}

// Three steps of three microbatches, of which the first begins the sum. Returns launches in all.
static uint64_t drawn_run(const drawn_case *c, float results[9][2][DRAWN]) {
    const uint64_t before = fake_cuda_count().launches;
    for (uint32_t i = 0; i < 9; i++) {
        const pen_run_context run = {
            .seed = 5, .step = 1 + i / 3, .microbatch = i % 3, .first_microbatch = i % 3 == 0};
        CHECK_OK(pen_executor_enqueue(c->executor, 0, 0, &run));
        CHECK_OK(pen_executor_read(c->executor, c->y, 0, results[i][0], DRAWN_BYTES));
        CHECK_OK(pen_executor_read(c->executor, c->z, 0, results[i][1], DRAWN_BYTES));
    }
    return fake_cuda_count().launches - before;
}

static void graphs_draw_and_add_as_launches_do(void **state) {
    (void)state;
    static float results[2][9][2][DRAWN], x[DRAWN];
    for (uint32_t i = 0; i < DRAWN; i++)
        x[i] = 1 + (float)i;
    for (uint32_t s = 0; s < 3; s++) {
        drawn_case c;
        setenv("FAKE_CUDA", all_settings[s], 1);
        drawn_begin(&c);
        CHECK_OK(pen_executor_write(c.executor, c.x, 0, x, sizeof x));
        const uint64_t as_one = drawn_run(&c, results[1]);
        pen_executor_time_nodes(c.executor, c.seconds);
        const uint64_t one_by_one = drawn_run(&c, results[0]);
        // both variants run once before they are a graph
        CHECK(one_by_one == 18 && as_one == 2 * 2 + 7, "%llu launches, %llu launches",
              (unsigned long long)one_by_one, (unsigned long long)as_one);
        CHECK(memcmp((const char *)results[0], (const char *)results[1], sizeof results[0]) == 0,
              "other bits");
        CHECK(memcmp((const char *)results[1][7][0], (const char *)results[1][8][0], DRAWN_BYTES) !=
                  0,
              "drawn once for all");
        CHECK(results[1][7][1][0] == -results[1][6][0][0] - results[1][7][0][0], "not added");
        pen_executor_destroy(c.executor);
        c.device->kind->close(c.device);
        pen_arena_destroy(c.arena);
        CHECK(fake_cuda_count().blocks == 0, "something is left");
    }
}

PEN_TEST_MAIN(cmocka_unit_test(updates_are_one_launch), cmocka_unit_test(norms_are_two_launches),
              cmocka_unit_test(bad_gradients_stop_all_updates),
              cmocka_unit_test(every_optimizer_heeds_the_flag),
              cmocka_unit_test(wrong_labels_stop_all_updates),
              cmocka_unit_test(a_refused_graph_changes_nothing),
              cmocka_unit_test(executors_share_the_room), cmocka_unit_test(a_step_is_awaited_once),
              cmocka_unit_test(graphs_draw_and_add_as_launches_do))
