// Lists with several microbatches under way give the numbers of one list after the other.
#include "base/memory.h"
#include "base/sanitizer.h"
#include "base/system/machine.h"
#include "graph/analysis/execution_order.h"
#include "graph/op.h"
#include "graph/passes/gradient/split_backward.h"
#include "scheduler/compile/compile.h"
#include "scheduler/runtime/executor/executor.h"
#include "tests/support/dice.h"
#include "tests/support/loss_request.h"
#include "tests/support/random_graph.h"
#include "tests/support/tiny_model.h"

#define LISTS_MAX 24
#define MICROBATCHES_MAX 7
#define ROUNDS 3
#define CLASSES 3 // labels are below this

// A training graph, and its nodes in the order of lists.
typedef struct lists_case {
    pen_arena *arena;
    pen_device *device;
    const pen_program *program; // NULL: a random graph
    const pen_graph *graph;
    const pen_node_id *plain_order; // as one device runs it
    pen_node_id *order;             // by list
    uint32_t order_count;
    uint32_t update_first;
    pen_value_id loss;
    pen_executor_list lists[LISTS_MAX]; // the last is the update
    uint32_t list_count;
    uint32_t reads[LISTS_MAX]; // bits: lists whose values it reads
    uint32_t loss_list;        // makes the loss
    uint32_t *uses;            // [value_count] bits: lists that use the value
} lists_case;

typedef struct list_task {
    uint32_t list;
    uint32_t microbatch;
} list_task;

typedef enum task_order {
    ORDER_ALL_FORWARD_FIRST,
    ORDER_FORWARD_AND_BACKWARD,
    ORDER_RANDOM
} task_order;

// ---- cases

static pen_device *open_device(const char *kind_name) {
    const pen_device_kind *kind = NULL;
    pen_device *device = NULL;
    CHECK_OK(pen_device_kind_find(kind_name, &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "a", .thread_count = 1}, &device));
    return device;
}

// Appends the nodes of a role, cut into `pieces` lists.
static void add_role(lists_case *c, pen_role role, uint32_t pieces) {
    uint32_t count = 0, taken = 0;
    for (uint32_t p = 0; p < c->update_first; p++) {
        count += pen_graph_node(c->graph, c->plain_order[p])->role == role;
    }
    uint32_t at = c->list_count == 0 ? 0 : c->lists[c->list_count - 1].end;
    for (uint32_t k = 0; k < pieces; k++) {
        c->lists[c->list_count + k].first = at;
        for (uint32_t p = 0, seen = 0; p < c->update_first; p++) {
            if (pen_graph_node(c->graph, c->plain_order[p])->role != role) continue;
            if (seen++ != taken || taken * pieces >= (k + 1) * count) continue;
            c->order[at++] = c->plain_order[p];
            taken++;
        }
        c->lists[c->list_count + k].end = at;
    }
    assert_int_equal(taken, count);
    c->list_count += pieces;
}

// The value whose bytes it is.
static pen_value_id root_of(const pen_graph *graph, pen_value_id value) {
    for (;;) {
        const pen_value *subject = pen_graph_value(graph, value);
        if (pen_value_is(subject->replaces)) return subject->replaces;
        if (subject->kind != PEN_VALUE_COMPUTED) return value;
        const pen_node *node = pen_graph_node(graph, subject->producer);
        if (!node->op->is_view) return value;
        value = node->inputs[0];
    }
}

static bool has_no_copies(const pen_graph *graph, pen_value_id root) {
    const pen_value *value = pen_graph_value(graph, root);
    if (value->kind == PEN_VALUE_INPUT) return false;
    return value->kind != PEN_VALUE_COMPUTED || pen_graph_node(graph, value->producer)->accumulates;
}

// Which lists use each value, and which lists so depend on which.
static void find_uses(lists_case *c) {
    const uint32_t value_count = pen_graph_value_count(c->graph);
    uint32_t *made; // bits: lists that make the value
    CHECK_OK(PEN_NEW(c->arena, value_count, &made));
    CHECK_OK(PEN_NEW(c->arena, value_count, &c->uses));
    c->loss_list = PEN_ID_NONE;
    for (uint32_t l = 0; l < c->list_count; l++) {
        for (uint32_t p = c->lists[l].first; p < c->lists[l].end; p++) {
            const pen_node *node = pen_graph_node(c->graph, c->order[p]);
            for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
                const bool is_input = i < node->input_count;
                const pen_value_id value =
                    is_input ? node->inputs[i] : node->outputs[i - node->input_count];
                if (!pen_value_is(value)) continue;
                if (!is_input && pen_value_same(value, c->loss)) c->loss_list = l;
                const pen_value_id root = root_of(c->graph, value);
                if (has_no_copies(c->graph, root)) continue;
                if (is_input) c->reads[l] |= made[root.index] & ~(1u << l);
                if (!is_input) made[root.index] = 1u << l;
                c->uses[root.index] |= 1u << l;
            }
        }
    }
}

static void cut_into_lists(lists_case *c, uint32_t pieces) {
    CHECK_OK(PEN_NEW(c->arena, c->order_count, &c->order));
    add_role(c, PEN_ROLE_FORWARD, pieces);
    add_role(c, PEN_ROLE_BACKWARD_INPUT, pieces);
    add_role(c, PEN_ROLE_BACKWARD_WEIGHT, pieces);
    assert_int_equal(c->lists[c->list_count - 1].end, c->update_first);
    for (uint32_t p = c->update_first; p < c->order_count; p++) {
        c->order[p] = c->plain_order[p];
    }
    c->lists[c->list_count++] = (pen_executor_list){c->update_first, c->order_count};
    find_uses(c);
}

static lists_case case_of_model(const char *path, uint64_t size, const char *device,
                                uint32_t pieces) {
    lists_case c = {.arena = check_arena(), .device = open_device(device)};
    const pen_compile_request request = {
        .model_path = path,
        .mode = PEN_COMPILE_TRAIN,
        .microbatch_size = size,
        .accumulate = true,
        .losses = LOSS_REQUEST(PEN_LOSS_SOFTMAX_CROSS_ENTROPY),
        .loss_count = 1,
        .optimizer = {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.9, .clip_norm = 1},
        .device = c.device};
    CHECK_OK(pen_compile(&request, &c.program));
    c.graph = c.program->graph;
    c.plain_order = c.program->order;
    c.order_count = c.program->order_count;
    c.update_first = c.program->update_first;
    c.loss = c.program->loss;
    cut_into_lists(&c, pieces);
    return c;
}

static lists_case case_of_random_graph(uint64_t seed, const char *device, uint32_t pieces) {
    lists_case c = {.arena = check_arena(), .device = open_device(device)};
    random_graph random = random_graph_forward(c.arena, seed, PEN_FLOAT32, 24);
    random_graph_differentiate(&random);
    (void)random_graph_update(&random, seed, true);
    CHECK_OK(pen_split_backward(random.graph));
    pen_execution_order order;
    const pen_execution_options options = {.kept = &random.loss, .kept_count = 1};
    CHECK_OK(pen_execution_order_build(random.graph, &options, c.arena, &order));
    c.graph = random.graph;
    c.plain_order = order.nodes;
    c.order_count = order.count;
    c.update_first = order.update_first;
    c.loss = random.loss;
    cut_into_lists(&c, pieces);
    return c;
}

static void case_free(lists_case *c) {
    c->device->kind->close(c->device);
    if (c->program != NULL) pen_program_destroy(c->program);
    pen_arena_destroy(c->arena);
}

// ---- orders of tasks

static bool task_may_run(const lists_case *c, const uint32_t *done, uint32_t list,
                         uint32_t microbatch_count) {
    const uint32_t microbatch = done[list];
    if (microbatch == microbatch_count) return false;
    for (uint32_t l = 0; l < c->list_count - 1; l++) {
        if ((c->reads[list] >> l & 1) != 0 && done[l] <= microbatch) return false;
    }
    return true;
}

static uint32_t next_list(const lists_case *c, const uint32_t *done, uint32_t microbatch_count,
                          task_order order, dice *d) {
    uint32_t ready[LISTS_MAX], ready_count = 0;
    uint32_t finished = microbatch_count, run_count = 0;
    for (uint32_t l = 0; l < c->list_count - 1; l++) {
        if (task_may_run(c, done, l, microbatch_count)) ready[ready_count++] = l;
        if (done[l] < finished) finished = done[l];
        run_count += done[l];
    }
    assert_true(ready_count > 0);
    switch (order) {
    case ORDER_ALL_FORWARD_FIRST:
        break;
    case ORDER_FORWARD_AND_BACKWARD: // by turns, two or three at once
        if (run_count % 2 == 1) return ready[ready_count - 1];
        for (uint32_t i = 0; i < ready_count; i++) {
            if (done[ready[i]] < finished + 3) return ready[i];
        }
        break;
    case ORDER_RANDOM:
        return ready[dice_between(d, 0, ready_count - 1)];
    }
    return ready[0];
}

static uint32_t order_tasks(const lists_case *c, uint32_t microbatch_count, task_order order,
                            dice *d, list_task *tasks) {
    uint32_t done[LISTS_MAX] = {0}, count = 0;
    while (count < (c->list_count - 1) * microbatch_count) {
        const uint32_t list = next_list(c, done, microbatch_count, order, d);
        tasks[count++] = (list_task){list, done[list]++};
    }
    return count;
}

// How many microbatches of a value there are at once, in one list: none that matter.
static uint32_t count_copies(uint32_t uses, const list_task *tasks, uint32_t task_count) {
    bool is_there[MICROBATCHES_MAX] = {false};
    uint32_t left[MICROBATCHES_MAX] = {0}, there = 0, most = 0;
    if ((uses & (uses - 1)) == 0) return 0;
    for (uint32_t t = 0; t < task_count; t++) {
        left[tasks[t].microbatch] += uses >> tasks[t].list & 1;
    }
    for (uint32_t t = 0; t < task_count; t++) {
        const uint32_t m = tasks[t].microbatch;
        if ((uses >> tasks[t].list & 1) == 0) continue;
        if (!is_there[m]) there++;
        is_there[m] = true;
        if (there > most) most = there;
        left[m]--;
        if (left[m] == 0) there--;
    }
    return most;
}

static const uint32_t *plan_copies(const lists_case *c, const list_task *tasks, uint32_t task_count,
                                   uint32_t too_few) {
    uint32_t *copies;
    const uint32_t value_count = pen_graph_value_count(c->graph);
    CHECK_OK(PEN_NEW(c->arena, value_count, &copies));
    for (uint32_t v = 0; v < value_count; v++) {
        uint32_t uses = c->uses[v];
        const bool is_fed =
            pen_graph_value(c->graph, (pen_value_id){v})->kind == PEN_VALUE_INPUT && uses != 0;
        copies[v] = count_copies(uses, tasks, task_count);
        if (is_fed && copies[v] == 0) copies[v] = 1;
        if (copies[v] > too_few) copies[v] -= too_few;
    }
    return copies;
}

// ---- running

// Numbers into a value: of the seed, but not of the order in which it is called.
static void write_random(const lists_case *c, pen_executor *executor, uint32_t v, uint64_t seed,
                         uint64_t sequence) {
    const pen_value *value = pen_graph_value(c->graph, (pen_value_id){v});
    const uint64_t count = (uint64_t)pen_shape_element_count(&value->type.shape);
    const pen_random_key key = {seed, pen_random_stream("lists", v, 0)};
    const uint64_t bytes = pen_tensor_type_bytes(&value->type);
    void *host = pen_memory_allocate(bytes + 1, 1);
    assert_non_null(host);
    for (uint64_t k = 0; k < count; k++) {
        if (value->type.element == PEN_INT64) {
            ((int64_t *)host)[k] = (int64_t)pen_random_below(key, k, CLASSES);
        } else {
            assert_int_equal(value->type.element, PEN_FLOAT32);
            ((float *)host)[k] = (float)pen_random_normal(key, k);
        }
    }
    CHECK_OK(pen_executor_write(executor, (pen_value_id){v}, sequence, host, bytes));
    pen_memory_free(host);
}

static void write_persistent(const lists_case *c, pen_executor *executor, uint64_t step,
                             float share) {
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        const pen_value *value = pen_graph_value(c->graph, (pen_value_id){v});
        if (!pen_executor_holds(executor, (pen_value_id){v})) continue;
        if (value->kind == PEN_VALUE_PARAMETER && value->data == NULL && step == 1) {
            write_random(c, executor, v, 5, 0);
        }
        if (value->kind != PEN_VALUE_SCALAR) continue;
        const bool is_step = strstr(value->name, "step") != NULL;
        const bool is_rate = strstr(value->name, "rate") != NULL;
        const float number = is_step ? (float)step : is_rate ? 0.05f : share;
        CHECK_OK(pen_executor_write(executor, (pen_value_id){v}, 0, &number, sizeof number));
    }
}

// Those that one of `lists` uses, but none of `before`: bits.
static void write_inputs(const lists_case *c, pen_executor *executor, uint64_t sequence,
                         uint32_t lists, uint32_t before) {
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        if (pen_graph_value(c->graph, (pen_value_id){v})->kind != PEN_VALUE_INPUT) continue;
        if ((c->uses[v] & lists) != 0 && (c->uses[v] & before) == 0) {
            write_random(c, executor, v, 100 + sequence, sequence);
        }
    }
}

static float read_loss(const lists_case *c, pen_executor *executor, uint64_t sequence) {
    float loss;
    CHECK_OK(pen_executor_read(executor, c->loss, sequence, &loss, sizeof loss));
    return loss;
}

static pen_run_context context_of(uint64_t step, uint32_t microbatch) {
    return (pen_run_context){
        .seed = 9, .step = step, .microbatch = microbatch, .first_microbatch = microbatch == 0};
}

// Losses of all microbatches, then the hash of everything persistent.
typedef struct outcome {
    float losses[ROUNDS * MICROBATCHES_MAX];
    uint64_t hash;
} outcome;

static uint64_t hash_persistent(const lists_case *c, pen_executor *executor) {
    uint64_t hash = 1;
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        const pen_value *value = pen_graph_value(c->graph, (pen_value_id){v});
        const bool persists = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
        if (!persists || !pen_executor_holds(executor, (pen_value_id){v})) continue;
        const uint64_t bytes = pen_tensor_type_bytes(&value->type);
        unsigned char *host = pen_memory_allocate(bytes + 1, 1);
        assert_non_null(host);
        CHECK_OK(pen_executor_read_part(executor, (pen_value_id){v}, 0, host, bytes));
        for (uint64_t k = 0; k < bytes; k++) {
            hash = (hash ^ host[k]) * 0x100000001b3u;
        }
        pen_memory_free(host);
    }
    return hash;
}

static pen_executor_spec spec_of(const lists_case *c) {
    return (pen_executor_spec){.device = c->device,
                               .graph = c->graph,
                               .order = c->plain_order,
                               .order_count = c->order_count,
                               .update_first = c->update_first,
                               .kept = &c->loss,
                               .kept_count = 1};
}

static outcome run_plainly(const lists_case *c, uint32_t microbatch_count) {
    outcome result = {.hash = 0};
    pen_executor *executor = NULL;
    const pen_executor_spec spec = spec_of(c);
    CHECK_OK(pen_executor_create(&spec, &executor));
    for (uint64_t r = 0; r < ROUNDS; r++) {
        write_persistent(c, executor, r + 1, 1 / (float)microbatch_count);
        for (uint32_t m = 0; m < microbatch_count; m++) {
            const uint64_t sequence = r * microbatch_count + m;
            const pen_run_context run = context_of(r + 1, m);
            write_inputs(c, executor, sequence, UINT32_MAX, 0);
            CHECK_OK(pen_executor_run(executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
            result.losses[sequence] = read_loss(c, executor, 0);
        }
        const pen_run_context run = context_of(r + 1, 0);
        CHECK_OK(pen_executor_run(executor, PEN_EXECUTOR_UPDATE, 0, &run));
    }
    result.hash = hash_persistent(c, executor);
    pen_executor_destroy(executor);
    return result;
}

static void run_tasks(const lists_case *c, pen_executor *executor, const list_task *tasks,
                      uint32_t task_count, uint64_t step, outcome *result) {
    uint32_t before[MICROBATCHES_MAX] = {0}; // bits: lists that have run
    const uint32_t microbatch_count = task_count / (c->list_count - 1);
    for (uint32_t t = 0; t < task_count; t++) {
        const uint32_t m = tasks[t].microbatch;
        const uint64_t sequence = (step - 1) * microbatch_count + m;
        const pen_run_context run = context_of(step, m);
        write_inputs(c, executor, sequence, 1u << tasks[t].list, before[m]);
        before[m] |= 1u << tasks[t].list;
        const uint64_t calls = pen_memory_call_count();
        CHECK_OK(pen_executor_run(executor, tasks[t].list, sequence, &run));
        if (step > 1) assert_int_equal(pen_memory_call_count(), calls); // first: reference kernels'
        if (tasks[t].list != c->loss_list) continue;
        result->losses[sequence] = read_loss(c, executor, sequence);
    }
    const pen_run_context run = context_of(step, 0);
    CHECK_OK(pen_executor_run(executor, c->list_count - 1, 0, &run));
}

static outcome run_in_tasks(const lists_case *c, uint32_t microbatch_count, task_order order,
                            uint32_t too_few) {
    outcome result = {.hash = 0};
    list_task tasks[LISTS_MAX * MICROBATCHES_MAX];
    dice d = {.seed = microbatch_count};
    const uint32_t task_count = order_tasks(c, microbatch_count, order, &d, tasks);
    pen_executor *executor = NULL;
    pen_executor_spec spec = spec_of(c);
    spec.order = c->order;
    spec.lists = c->lists;
    spec.list_count = c->list_count;
    spec.copies_of_value = plan_copies(c, tasks, task_count, too_few);
    CHECK_OK(pen_executor_create(&spec, &executor));
    for (uint64_t r = 0; r < ROUNDS; r++) {
        write_persistent(c, executor, r + 1, 1 / (float)microbatch_count);
        run_tasks(c, executor, tasks, task_count, r + 1, &result);
    }
    result.hash = hash_persistent(c, executor);
    pen_executor_destroy(executor);
    return result;
}

static bool is_same(const outcome *a, const outcome *b) {
    const unsigned char *first = (const unsigned char *)a->losses; // their bits, not their values
    const unsigned char *second = (const unsigned char *)b->losses;
    return a->hash == b->hash && memcmp(first, second, sizeof a->losses) == 0;
}

static const task_order all_orders[] = {ORDER_ALL_FORWARD_FIRST, ORDER_FORWARD_AND_BACKWARD,
                                        ORDER_RANDOM};

static void check_orders(const lists_case *c, const char *what, uint32_t microbatch_count) {
    const outcome expected = run_plainly(c, microbatch_count);
    for (size_t o = 0; o < sizeof all_orders / sizeof all_orders[0]; o++) {
        const outcome found = run_in_tasks(c, microbatch_count, all_orders[o], 0);
        CHECK(is_same(&expected, &found), "%s, %u microbatches, order %d: loss %.9g, not %.9g",
              what, microbatch_count, (int)all_orders[o], (double)found.losses[0],
              (double)expected.losses[0]);
    }
}

static void check_model(const char *path, uint64_t size, const uint32_t *microbatch_counts,
                        int first_device) {
    static const char *const devices[] = {"reference", "cpu"};
    for (int d = first_device; d < 2; d++) {
        for (uint32_t pieces = d == 0 ? 3 : 1; pieces <= 3; pieces += 2) {
            lists_case c = case_of_model(path, size, devices[d], pieces);
            for (const uint32_t *count = microbatch_counts; *count != 0; count++) {
                check_orders(&c, path, *count);
            }
            case_free(&c);
        }
    }
}

static void perceptrons_with_dropout_are_the_same(void **state) {
    (void)state;
    const char *path = tiny_model_write(&(tiny_model){.has_dropout = true}, "lists.onnx");
    check_model(path, 4, (const uint32_t[]){1, 2, 3, 7, 0}, 0);
    check_model("tests/reference/mlp/model.onnx", 3, (const uint32_t[]){4, 0}, 0);
}

static void convolutional_nets_are_the_same(void **state) {
    (void)state;
    check_model("tests/reference/batchnorm_cnn/model.onnx", 2, (const uint32_t[]){3, 0}, 0);
    check_model("tests/reference/branching_cnn/model.onnx", 2, (const uint32_t[]){3, 0}, 1);
}

static void recurrent_nets_are_the_same(void **state) {
    (void)state;
    check_model("tests/reference/recurrent/model.onnx", 2, (const uint32_t[]){3, 0}, 0);
}

static void random_graphs_are_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        lists_case c = case_of_random_graph(seed, seed % 2 == 0 ? "cpu" : "reference",
                                            1 + (uint32_t)(seed % 7));
        check_orders(&c, "a random graph", 1 + (uint32_t)(seed * 5 % MICROBATCHES_MAX));
        case_free(&c);
    }
}

// With a copy less than there are microbatches at once, numbers of one microbatch are read for
// another's: so the counts above are needed, and used.
static void a_copy_less_is_not_the_same(void **state) {
    (void)state;
    const char *path = tiny_model_write(&(tiny_model){0}, "lists.onnx");
    lists_case c = case_of_model(path, 4, "cpu", 2);
    const outcome expected = run_plainly(&c, 5);
    for (size_t o = 0; o < sizeof all_orders / sizeof all_orders[0]; o++) {
        const outcome found = run_in_tasks(&c, 5, all_orders[o], 1);
        assert_false(is_same(&expected, &found));
    }
    case_free(&c);
}

static void ten_thousand_steps_take_no_memory(void **state) {
    (void)state;
    lists_case c = case_of_model(tiny_model_write(&(tiny_model){0}, "lists.onnx"), 4, "cpu", 2);
    list_task tasks[LISTS_MAX * MICROBATCHES_MAX];
    dice d = {.seed = 1};
    const uint32_t task_count = order_tasks(&c, 3, ORDER_FORWARD_AND_BACKWARD, &d, tasks);
    pen_executor *executor = NULL;
    pen_executor_spec spec = spec_of(&c);
    spec.order = c.order;
    spec.lists = c.lists;
    spec.list_count = c.list_count;
    spec.copies_of_value = plan_copies(&c, tasks, task_count, 0);
    CHECK_OK(pen_executor_create(&spec, &executor));
    uint64_t resident = 0;
    for (uint64_t step = 1; step <= 10000; step++) {
        for (uint32_t t = 0; t < task_count; t++) {
            const pen_run_context run = context_of(step, tasks[t].microbatch);
            const uint64_t sequence = 3 * step + tasks[t].microbatch;
            CHECK_OK(pen_executor_run(executor, tasks[t].list, sequence, &run));
        }
        const pen_run_context run = context_of(step, 0);
        CHECK_OK(pen_executor_run(executor, c.list_count - 1, 0, &run));
        // asking takes memory itself, the first time
        if (step == 10 || step == 20) resident = pen_machine_resident_peak();
    }
    // the address sanitizer keeps what libraries free
    CHECK(PEN_IS_SANITIZED || pen_machine_resident_peak() <= resident + 65536,
          "%llu bytes at step 20, then %llu", (unsigned long long)resident,
          (unsigned long long)pen_machine_resident_peak());
    pen_executor_destroy(executor);
    case_free(&c);
}

PEN_TEST_MAIN(cmocka_unit_test(ten_thousand_steps_take_no_memory),
              cmocka_unit_test(perceptrons_with_dropout_are_the_same),
              cmocka_unit_test(convolutional_nets_are_the_same),
              cmocka_unit_test(random_graphs_are_the_same),
              cmocka_unit_test(a_copy_less_is_not_the_same),
              cmocka_unit_test(recurrent_nets_are_the_same))
