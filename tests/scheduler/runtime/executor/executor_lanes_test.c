// Sums over lanes are, bit for bit, those of a tree that is added by hand: on every device, for any
// number of lanes and of microbatches that a step has.
#include "base/random.h"
#include "device/run_context.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/infer_shapes.h"
#include "scheduler/runtime/executor/executor.h"
#include "tests/support/check.h"

#define COUNT 700 // elements: more than a kernel takes at a time
#define LANES_MAX 16
#define MICROBATCHES_MAX 20
#define STACKS_MAX 4

static const char *const kinds[] = {"reference", "cpu"};

typedef struct lanes_case {
    pen_arena *arena;
    pen_graph *graph;
    pen_device *device;
    pen_executor *executor;
    pen_element_type element;
    pen_value_id inputs[STACKS_MAX];
    pen_value_id total;
} lanes_case;

// ---- by hand

// Numbers as floats or doubles; sums are rounded as the element type is.
static double add(pen_element_type element, double left, double right) {
    return element == PEN_FLOAT32 ? (double)((float)left + (float)right) : left + right;
}

// The sum of lanes at, …, at + size - 1, of those below `count`; there is one at least.
static double add_tree(pen_element_type element, const double *sums, uint32_t at, uint32_t size,
                       uint32_t count) {
    const uint32_t half = size / 2;
    if (size == 1) return sums[at];
    const double left = add_tree(element, sums, at, half, count);
    if (at + half >= count) return left;
    return add(element, left, add_tree(element, sums, at + half, half, count));
}

static double random_of(pen_element_type element, uint64_t which, int64_t k) {
    const double number =
        pen_random_normal((pen_random_key){which, pen_random_stream("lanes", 0, 0)}, (uint64_t)k);
    return element == PEN_FLOAT32 ? (double)(float)number : number;
}

// ---- cases

// Of `wished`: its role, inputs and attributes.
static pen_value_id add_node(lanes_case *c, const char *op_name, const pen_node_spec *wished) {
    const pen_op *op;
    pen_value_id value;
    CHECK_OK(pen_op_find(op_name, &op));
    pen_node_spec spec = pen_node_spec_of(op, op_name);
    spec.role = wished->role;
    spec.inputs = wished->inputs;
    spec.input_count = wished->input_count;
    spec.attributes = wished->attributes;
    spec.attribute_count = wished->attribute_count;
    if (spec.role == PEN_ROLE_BACKWARD_WEIGHT) spec.gradient_of = (pen_node_id){0};
    CHECK_OK(pen_graph_add_simple(c->graph, &spec, &value));
    return value;
}

static pen_value_id add_input(lanes_case *c, const char *name, uint32_t rank, int64_t depth) {
    pen_value value = {.name = name, .kind = PEN_VALUE_INPUT};
    value.type = rank == 1 ? (pen_tensor_type){c->element, {1, {COUNT}}}
                           : (pen_tensor_type){c->element, {2, {depth, COUNT}}};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(c->graph, &value, &id));
    return id;
}

static void begin(lanes_case *c, const char *kind_name, pen_element_type element) {
    const pen_device_kind *kind;
    *c = (lanes_case){.arena = check_arena(), .element = element};
    CHECK_OK(pen_graph_create(c->arena, "lanes", &c->graph));
    CHECK_OK(pen_device_kind_find(kind_name, &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "a", .thread_count = 2}, &c->device));
}

static void make(lanes_case *c, uint32_t update_first) {
    const uint32_t count = pen_graph_node_count(c->graph);
    pen_node_id *order;
    CHECK_OK(pen_infer_shapes(c->graph, &(pen_infer_options){0}));
    CHECK_OK(PEN_NEW(c->arena, count, &order));
    for (uint32_t n = 0; n < count; n++) {
        order[n] = (pen_node_id){n};
    }
    const pen_executor_spec spec = {.device = c->device,
                                    .graph = c->graph,
                                    .order = order,
                                    .order_count = count,
                                    .update_first = update_first,
                                    .kept = &c->total,
                                    .kept_count = 1};
    CHECK_OK(pen_executor_create(&spec, &c->executor));
}

static void end(lanes_case *c) {
    pen_executor_destroy(c->executor);
    c->device->kind->close(c->device);
    pen_arena_destroy(c->arena);
}

static void feed(lanes_case *c, pen_value_id value, const double *numbers, int64_t count) {
    static double bytes[STACKS_MAX * LANES_MAX * COUNT];
    for (int64_t k = 0; k < count; k++) {
        pen_element_write(c->element, bytes, k, numbers[k]);
    }
    CHECK_OK(pen_executor_write(c->executor, value, 0, bytes,
                                (uint64_t)count * pen_element_bytes(c->element)));
}

static void compare(lanes_case *c, const double *expected, const char *what) {
    double bytes[COUNT];
    CHECK_OK(
        pen_executor_read(c->executor, c->total, 0, bytes, COUNT * pen_element_bytes(c->element)));
    for (int64_t k = 0; k < COUNT; k++) {
        const double found = pen_element_read(c->element, bytes, k);
        CHECK(found == expected[k], "%s: element %lld is %.17g, expected %.17g", what, (long long)k,
              found, expected[k]);
    }
}

// ---- one stack

// Steps of a full number of microbatches and of fewer, one after the other, on one executor.
static void run_step(lanes_case *c, const pen_lanes *lanes, uint32_t present) {
    static double sums[COUNT][LANES_MAX], x[COUNT], expected[COUNT];
    uint32_t lane_count = 0;
    for (uint32_t m = 0; m < present; m++) {
        pen_run_context run = {.step = 1};
        const uint32_t lane = m * lanes->lanes / lanes->microbatches;
        for (int64_t k = 0; k < COUNT; k++) {
            x[k] = random_of(c->element, present * 100 + m, k);
            sums[k][lane] = lane < lane_count ? add(c->element, sums[k][lane], x[k]) : x[k];
        }
        lane_count = lane + 1;
        feed(c, c->inputs[0], x, COUNT);
        pen_run_context_place(&run, lanes, m, present);
        CHECK_OK(pen_executor_run(c->executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    }
    pen_run_context run = {.step = 1};
    pen_run_context_place_update(&run, lanes, present);
    CHECK_OK(pen_executor_run(c->executor, PEN_EXECUTOR_UPDATE, 0, &run));
    for (int64_t k = 0; k < COUNT; k++) {
        expected[k] = add_tree(c->element, sums[k], 0, LANES_MAX, lane_count);
    }
    char what[80];
    snprintf(what, sizeof what, "%u lanes, %u of %u microbatches", lanes->lanes, present,
             lanes->microbatches);
    compare(c, expected, what);
}

static void check_stack(const char *kind, pen_element_type element, uint32_t lane_count,
                        uint32_t microbatches) {
    lanes_case c;
    const pen_lanes lanes = {lane_count, microbatches};
    const pen_attribute_given end_of = pen_attribute_int("end", lane_count);
    const int64_t bounds[2] = {0, lane_count};
    const pen_attribute_given bounds_of = pen_attribute_ints("bounds", 2, bounds);
    const pen_attribute_given plain[2] = {pen_attribute_int("from_layout", PEN_LAYOUT_PLAIN),
                                          pen_attribute_int("to_layout", PEN_LAYOUT_PLAIN)};
    begin(&c, kind, element);
    c.inputs[0] = add_input(&c, "x", 1, 0);
    const pen_value_id same =
        add_node(&c, "identity", &(pen_node_spec){.inputs = c.inputs, .input_count = 1});
    const pen_value_id sum = add_node(&c, "reorder",
                                      &(pen_node_spec){.role = PEN_ROLE_BACKWARD_WEIGHT,
                                                       .inputs = &same,
                                                       .input_count = 1,
                                                       .attributes = plain,
                                                       .attribute_count = 2});
    const pen_value_id stack = add_node(&c, "tree_sum",
                                        &(pen_node_spec){.role = PEN_ROLE_BACKWARD_WEIGHT,
                                                         .inputs = &sum,
                                                         .input_count = 1,
                                                         .attributes = &end_of,
                                                         .attribute_count = 1});
    c.total = add_node(&c, "tree_total",
                       &(pen_node_spec){.role = PEN_ROLE_UPDATE,
                                        .inputs = &stack,
                                        .input_count = 1,
                                        .attributes = &bounds_of,
                                        .attribute_count = 1});
    pen_graph_set_accumulates(c.graph, pen_graph_value(c.graph, sum)->producer, true);
    pen_graph_set_accumulates(c.graph, pen_graph_value(c.graph, stack)->producer, true);
    make(&c, 3);
    run_step(&c, &lanes, microbatches);
    for (uint32_t present = 1; present <= microbatches; present++) {
        run_step(&c, &lanes, present);
    }
    end(&c);
}

static void lanes_are_added_as_a_tree(void **state) {
    (void)state;
    for (uint32_t d = 0; d < 2; d++) {
        for (uint32_t lanes = 2; lanes <= LANES_MAX; lanes += lanes < 9 ? 1 : 7) {
            check_stack(kinds[d], PEN_FLOAT32, lanes, lanes);
            check_stack(kinds[d], PEN_FLOAT32, lanes, MICROBATCHES_MAX);
        }
        check_stack(kinds[d], PEN_FLOAT64, 7, 10);
    }
}

// ---- several stacks

// Of a stack, or of what of it is sent.
static int64_t rows_of(uint32_t first, uint32_t last, bool is_sent) {
    pen_lane_block blocks[PEN_LANE_BLOCKS];
    return is_sent ? pen_lane_blocks(first, last, blocks) : pen_lane_depth(first, last);
}

// Stacks of ranges of lanes give what one of all lanes gives.
static void check_ranges(const char *kind, const int64_t *bounds, uint32_t stack_count,
                         bool is_sent) {
    static double sums[COUNT][LANES_MAX], stack[LANES_MAX * COUNT], expected[COUNT];
    lanes_case c;
    begin(&c, kind, PEN_FLOAT32);
    for (uint32_t i = 0; i < stack_count; i++) {
        c.inputs[i] = add_input(&c,
                                i == 0   ? "a"
                                : i == 1 ? "b"
                                : i == 2 ? "c"
                                         : "d",
                                2, rows_of((uint32_t)bounds[i], (uint32_t)bounds[i + 1], is_sent));
    }
    const pen_attribute_given bounds_of = pen_attribute_ints("bounds", stack_count + 1, bounds);
    c.total = add_node(&c, "tree_total",
                       &(pen_node_spec){.role = PEN_ROLE_UPDATE,
                                        .inputs = c.inputs,
                                        .input_count = stack_count,
                                        .attributes = &bounds_of,
                                        .attribute_count = 1});
    make(&c, 0);
    for (int64_t k = 0; k < COUNT; k++) {
        for (uint32_t l = 0; l < LANES_MAX; l++) {
            sums[k][l] = random_of(PEN_FLOAT32, l, k);
        }
    }
    for (uint32_t present = 1; present <= (uint32_t)bounds[stack_count]; present++) {
        for (uint32_t i = 0; i < stack_count; i++) {
            pen_lane_block blocks[PEN_LANE_BLOCKS];
            const uint32_t first = (uint32_t)bounds[i], last = (uint32_t)bounds[i + 1];
            const pen_lane_range range = {first, last, present};
            const uint32_t count = pen_lane_blocks_there(range, blocks);
            for (uint32_t b = 0; b < count; b++) {
                for (int64_t k = 0; k < COUNT; k++) {
                    stack[b * COUNT + k] =
                        add_tree(PEN_FLOAT32, sums[k], blocks[b].first, blocks[b].count, present);
                }
            }
            feed(&c, c.inputs[i], stack, COUNT * rows_of(first, last, is_sent));
        }
        for (int64_t k = 0; k < COUNT; k++) {
            expected[k] = add_tree(PEN_FLOAT32, sums[k], 0, LANES_MAX, present);
        }
        const pen_lanes lanes = {(uint32_t)bounds[stack_count], (uint32_t)bounds[stack_count]};
        pen_run_context run = {.step = 1};
        pen_run_context_place_update(&run, &lanes, present);
        CHECK_OK(pen_executor_run(c.executor, PEN_EXECUTOR_UPDATE, 0, &run));
        compare(&c, expected, kind);
    }
    end(&c);
}

static void ranges_are_added_as_one_tree(void **state) {
    (void)state;
    static const int64_t ranges[][STACKS_MAX + 1] = {
        {0, 8},       {0, 4, 8},       {0, 3, 8},       {0, 5, 8},  {0, 1, 4},
        {0, 3, 6, 8}, {0, 2, 4, 6, 8}, {0, 1, 2, 3, 4}, {0, 5, 13}, {0, 7, 9, 16}};
    for (uint32_t d = 0; d < 2; d++) {
        for (uint32_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
            uint32_t count = 0;
            while (count < STACKS_MAX && ranges[r][count + 1] != 0) {
                count++;
            }
            check_ranges(kinds[d], ranges[r], count, false);
            check_ranges(kinds[d], ranges[r], count, true);
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(lanes_are_added_as_a_tree),
              cmocka_unit_test(ranges_are_added_as_one_tree))
