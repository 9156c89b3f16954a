// Runs plans without numbers: every byte of memory says which value it holds, and a node that reads
// finds its operands whole.

#include "graph/analysis/memory_plan.h"

#include "graph/analysis/execution_order.h"
#include "graph/op.h"
#include "tests/support/random_case.h"
#include "tests/support/random_graph.h"

#define ELEMENT_BYTES 64 // so that no plan loses bytes to alignment
#define TAG_EMPTY UINT32_MAX
#define TAG_WORKSPACE (UINT32_MAX - 1)

typedef struct plan_case {
    pen_arena *arena;
    random_graph random;
    const pen_graph *graph;
    pen_execution_order order;
    pen_memory_request request;
    pen_memory_plan *plan;
    uint32_t *tags[3]; // per region and unit of ELEMENT_BYTES: the content there
} plan_case;

static void plan_case_sizes(plan_case *c, random_case *dice) {
    uint64_t *bytes, *workspace;
    const uint32_t value_count = pen_graph_value_count(c->graph);
    const uint32_t node_count = pen_graph_node_count(c->graph);
    CHECK_OK(PEN_NEW(c->arena, value_count, &bytes));
    CHECK_OK(PEN_NEW(c->arena, node_count, &workspace));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_tensor_type *type = pen_value_type(c->graph, (pen_value_id){v});
        bytes[v] = (uint64_t)pen_shape_element_count(&type->shape) * ELEMENT_BYTES;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        if (random_chance(dice, 20)) {
            workspace[n] = (uint64_t)random_between(dice, 1, 10) * ELEMENT_BYTES;
        }
    }
    c->request.bytes_of_value = bytes;
    c->request.workspace_of_node = workspace;
}

// The loss, a parameter, and some computed values must be there at the end.
static void plan_case_keep(plan_case *c, random_case *dice) {
    pen_value_id *kept;
    CHECK_OK(PEN_NEW(c->arena, 8, &kept));
    kept[c->request.kept_count++] = c->random.loss;
    kept[c->request.kept_count++] = c->random.parameters[0];
    while (c->request.kept_count < 5) {
        const uint32_t node = (uint32_t)random_between(dice, 0, c->random.forward_count - 1);
        kept[c->request.kept_count++] = pen_graph_node(c->graph, (pen_node_id){node})->outputs[0];
    }
    c->request.kept = kept;
}

static plan_case plan_case_make(uint64_t seed) {
    plan_case c = {.arena = check_arena()};
    random_case dice = {.seed = seed};
    const bool mix = random_chance(&dice, 50);
    c.random = random_graph_forward(c.arena, seed, PEN_FLOAT32, 30);
    if (random_chance(&dice, 80)) {
        random_graph_differentiate(&c.random);
        random_graph_update(&c.random, seed, !mix);
    }
    c.graph = c.random.graph;
    plan_case_sizes(&c, &dice);
    plan_case_keep(&c, &dice);
    const pen_execution_options options = {
        .mix_updates = mix, .kept = c.request.kept, .kept_count = c.request.kept_count};
    CHECK_OK(pen_execution_order_build(c.graph, &options, c.arena, &c.order));
    c.request.graph = c.graph;
    c.request.order = c.order.nodes;
    c.request.order_count = c.order.count;
    CHECK_OK(pen_memory_plan_build(&c.request, c.arena, &c.plan));
    const uint64_t sizes[3] = {0, c.plan->persistent_bytes, c.plan->arena_bytes};
    for (int r = 1; r < 3; r++) {
        CHECK_OK(PEN_NEW(c.arena, sizes[r] / ELEMENT_BYTES, &c.tags[r]));
        memset(c.tags[r], 0xff, sizes[r] / ELEMENT_BYTES * sizeof *c.tags[r]);
    }
    return c;
}

typedef struct span {
    pen_memory_region region;
    uint64_t first; // units
    uint64_t count;
} span;

static span span_of(const plan_case *c, pen_value_id value) {
    const pen_memory_slot slot = c->plan->values[value.index];
    CHECK(slot.offset % PEN_MEMORY_ALIGNMENT == 0, "value %u is not aligned", value.index);
    return (span){slot.region, slot.offset / ELEMENT_BYTES,
                  c->request.bytes_of_value[value.index] / ELEMENT_BYTES};
}

static bool spans_overlap(span a, span b) {
    return a.region == b.region && a.first < b.first + b.count && b.first < a.first + a.count;
}

static void mark(plan_case *c, span place, uint32_t tag) {
    const uint64_t bytes =
        place.region == PEN_MEMORY_ARENA ? c->plan->arena_bytes : c->plan->persistent_bytes;
    CHECK((place.first + place.count) * ELEMENT_BYTES <= bytes, "a value lies beyond the end");
    for (uint64_t i = 0; i < place.count; i++) {
        c->tags[place.region][place.first + i] = tag;
    }
}

// The value whose bytes a value has: another one for views only.
static uint32_t content_of(const plan_case *c, pen_value_id value) {
    for (;;) {
        const pen_value *subject = pen_graph_value(c->graph, value);
        if (subject->kind != PEN_VALUE_COMPUTED) return value.index;
        const pen_node *producer = pen_graph_node(c->graph, subject->producer);
        if (!producer->op->is_view) return value.index;
        value = producer->inputs[0];
    }
}

static void check_holds(const plan_case *c, pen_value_id value, const char *reader) {
    const span place = span_of(c, value);
    CHECK(place.region != PEN_MEMORY_NONE, "'%s' reads '%s', which is nowhere", reader,
          pen_value_name(c->graph, value));
    for (uint64_t i = 0; i < place.count; i++) {
        const uint32_t tag = c->tags[place.region][place.first + i];
        CHECK(tag == content_of(c, value), "'%s' reads '%s' and finds value %u", reader,
              pen_value_name(c->graph, value), tag);
    }
}

static bool reads_early(const pen_node *node, uint32_t input) {
    return (node->op->constant_inputs >> input & 1) != 0;
}

// Whether output `output` may lie where input `input` does.
static bool may_share(const plan_case *c, const pen_node *node, uint32_t output, uint32_t input) {
    if (output == 0 && node->op->is_view && input == 0) return true;
    const pen_value_id replaces = pen_graph_value(c->graph, node->outputs[output])->replaces;
    if (pen_value_is(replaces) && content_of(c, node->inputs[input]) == replaces.index) return true;
    return output == 0 && (node->op->in_place_inputs >> input & 1) != 0;
}

static void check_output(plan_case *c, const pen_node *node, uint32_t output, span workspace) {
    const span place = span_of(c, node->outputs[output]);
    CHECK(place.region != PEN_MEMORY_NONE, "'%s' writes nowhere", node->name);
    if (node->accumulates) assert_int_equal(place.region, PEN_MEMORY_PERSISTENT);
    CHECK(!spans_overlap(place, workspace), "'%s': the workspace is an output", node->name);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i]) || reads_early(node, i)) continue;
        const span input = span_of(c, node->inputs[i]);
        if (!spans_overlap(place, input)) continue;
        CHECK(place.first == input.first && place.count == input.count &&
                  may_share(c, node, output, i),
              "'%s' may not overwrite its input %u", node->name, i);
    }
    for (uint32_t o = 0; o < output; o++) {
        if (!pen_value_is(node->outputs[o])) continue;
        CHECK(!spans_overlap(place, span_of(c, node->outputs[o])), "'%s': outputs overlap",
              node->name);
    }
}

static void run_node(plan_case *c, pen_node_id id) {
    const pen_node *node = pen_graph_node(c->graph, id);
    span workspace = {PEN_MEMORY_ARENA, c->plan->workspace_offsets[id.index] / ELEMENT_BYTES,
                      c->request.workspace_of_node[id.index] / ELEMENT_BYTES};
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i]) || reads_early(node, i)) continue;
        check_holds(c, node->inputs[i], node->name);
        CHECK(!spans_overlap(workspace, span_of(c, node->inputs[i])),
              "'%s': the workspace is an input", node->name);
    }
    mark(c, workspace, TAG_WORKSPACE);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        check_output(c, node, i, workspace);
        mark(c, span_of(c, node->outputs[i]), content_of(c, node->outputs[i]));
    }
}

static void run_plan(plan_case *c) {
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        const pen_value *value = pen_graph_value(c->graph, (pen_value_id){v});
        const span place = span_of(c, (pen_value_id){v});
        if (value->kind == PEN_VALUE_COMPUTED || place.region == PEN_MEMORY_NONE) continue;
        assert_int_equal(place.region, PEN_MEMORY_PERSISTENT);
        for (uint64_t i = 0; i < place.count; i++) {
            CHECK(c->tags[place.region][place.first + i] == TAG_EMPTY, "'%s' is not alone",
                  value->name);
        }
        mark(c, place, v);
    }
    for (uint32_t p = 0; p < c->order.count; p++) {
        run_node(c, c->order.nodes[p]);
    }
}

// Whether an update made its own output of a sum over microbatches, its last reader.
static bool was_ended(const plan_case *c, pen_value_id sum) {
    const pen_memory_slot *slot = &c->plan->values[sum.index];
    for (uint32_t n = 0; n < pen_graph_node_count(c->graph); n++) {
        const pen_node *node = pen_graph_node(c->graph, (pen_node_id){n});
        if (node->role != PEN_ROLE_UPDATE) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_same(node->inputs[i], sum)) continue;
            const pen_memory_slot *own = &c->plan->values[node->outputs[0].index];
            if (own->region == slot->region && own->offset == slot->offset) return true;
        }
    }
    return false;
}

// What persists, and what was asked for, is there at the end: a parameter as what replaced it.
static void check_end(plan_case *c) {
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        const pen_value_id id = {v};
        const pen_value *value = pen_graph_value(c->graph, id);
        if (value->kind != PEN_VALUE_COMPUTED) continue;
        if (c->plan->values[v].region == PEN_MEMORY_NONE) continue;
        const bool persists =
            pen_value_is(value->replaces) || pen_graph_node(c->graph, value->producer)->accumulates;
        if (persists && !was_ended(c, id)) check_holds(c, id, "the end");
    }
    for (uint32_t i = 0; i < c->request.kept_count; i++) {
        const pen_value_id kept = c->request.kept[i];
        if (pen_graph_value(c->graph, kept)->kind != PEN_VALUE_COMPUTED) {
            assert_int_equal(c->plan->values[kept.index].region, PEN_MEMORY_PERSISTENT);
        } else if (pen_graph_value(c->graph, (pen_value_id){content_of(c, kept)})->kind ==
                   PEN_VALUE_COMPUTED) {
            check_holds(c, kept, "the end"); // a view of a parameter changes with it
        }
    }
}

// Bytes in use at each node, counted from the reads themselves: the highest count.
static uint64_t count_peak(plan_case *c) {
    const uint64_t units = c->plan->arena_bytes / ELEMENT_BYTES;
    uint32_t *until; // per content: the last position that reads or writes it
    uint64_t *live;  // per position
    CHECK_OK(PEN_NEW(c->arena, pen_graph_value_count(c->graph), &until));
    CHECK_OK(PEN_NEW(c->arena, c->order.count + 1, &live));
    for (uint32_t p = 0; p < c->order.count; p++) {
        const pen_node *node = pen_graph_node(c->graph, c->order.nodes[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) until[content_of(c, node->inputs[i])] = p;
        }
    }
    for (uint32_t i = 0; i < c->request.kept_count; i++) {
        until[content_of(c, c->request.kept[i])] = c->order.count;
    }
    uint64_t peak = 0;
    memset(c->tags[PEN_MEMORY_ARENA], 0xff, units * sizeof(uint32_t));
    for (uint32_t p = 0; p < c->order.count; p++) {
        const pen_node_id id = c->order.nodes[p];
        const pen_node *node = pen_graph_node(c->graph, id);
        for (uint64_t u = 0; u < units; u++) { // what is read no more is gone
            uint32_t *tag = &c->tags[PEN_MEMORY_ARENA][u];
            if (*tag == TAG_WORKSPACE || (*tag < TAG_WORKSPACE && until[*tag] < p)) {
                *tag = TAG_EMPTY;
            }
        }
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            const span place = span_of(c, node->outputs[i]);
            if (place.region == PEN_MEMORY_ARENA) mark(c, place, content_of(c, node->outputs[i]));
        }
        uint64_t used = c->request.workspace_of_node[id.index] / ELEMENT_BYTES;
        for (uint64_t u = 0; u < units; u++) {
            used += c->tags[PEN_MEMORY_ARENA][u] != TAG_EMPTY;
        }
        if (used > peak) peak = used;
    }
    return peak * ELEMENT_BYTES;
}

static void random_plans_hold(void **state) {
    (void)state;
    uint64_t in_place_count = 0;
    double ratio_sum = 0, ratio_worst = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        plan_case c = plan_case_make(seed);
        run_plan(&c);
        check_end(&c);
        assert_true(count_peak(&c) == c.plan->live_bytes_peak);
        assert_true(c.plan->arena_bytes >= c.plan->live_bytes_peak);
        const double ratio = (double)c.plan->arena_bytes / (double)c.plan->live_bytes_peak;
        ratio_sum += ratio;
        if (ratio > ratio_worst) ratio_worst = ratio;
        in_place_count += c.plan->in_place_count;
        pen_arena_destroy(c.arena);
    }
    printf("arena / least possible: mean %.4f, worst %.4f\n", ratio_sum / 300, ratio_worst);
    CHECK(ratio_worst <= 1.2, "an arena is %g times as large as what lives", ratio_worst);
    CHECK(ratio_sum / 300 <= 1.04, "arenas are %g times as large as what lives", ratio_sum / 300);
    CHECK(in_place_count > 1000, "only %llu in place", (unsigned long long)in_place_count);
}

static void equal_requests_have_equal_plans(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        plan_case a = plan_case_make(seed), b = plan_case_make(seed);
        const uint32_t value_count = pen_graph_value_count(a.graph);
        assert_true(a.plan->arena_bytes == b.plan->arena_bytes);
        for (uint32_t v = 0; v < value_count; v++) {
            assert_int_equal(a.plan->values[v].region, b.plan->values[v].region);
            assert_true(a.plan->values[v].offset == b.plan->values[v].offset);
        }
        pen_arena_destroy(a.arena);
        pen_arena_destroy(b.arena);
    }
}

// tanh of tanh of … takes one place; what is kept does not give its own away.
static void chains_run_in_place(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "chain", &graph));
    const pen_tensor_type type = {PEN_FLOAT32, {1, {100}}};
    pen_value_id values[6] = {graph_value_of(graph, "x", PEN_VALUE_INPUT, &type)};
    pen_node_id order[5];
    uint64_t bytes[6];
    for (uint32_t i = 0; i < 6; i++) {
        bytes[i] = 400;
        if (i == 0) continue;
        values[i] = graph_apply(graph, "tanh", "t", values[i - 1], PEN_VALUE_NONE, PEN_VALUE_NONE);
        order[i - 1] = (pen_node_id){i - 1};
    }
    pen_memory_request request = {.graph = graph,
                                  .order = order,
                                  .order_count = 5,
                                  .bytes_of_value = bytes,
                                  .kept = &values[5],
                                  .kept_count = 1};
    pen_memory_plan *plan;
    CHECK_OK(pen_memory_plan_build(&request, arena, &plan));
    assert_int_equal(plan->persistent_bytes, 448); // x, rounded up
    assert_int_equal(plan->arena_bytes, 448);
    assert_int_equal(plan->live_bytes_peak, 400);
    assert_int_equal(plan->in_place_count, 4);
    const pen_value_id kept[2] = {values[5], values[2]};
    request.kept = kept;
    request.kept_count = 2;
    CHECK_OK(pen_memory_plan_build(&request, arena, &plan));
    assert_int_equal(plan->arena_bytes, 896);
    assert_int_equal(plan->in_place_count, 3);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(random_plans_hold),
              cmocka_unit_test(equal_requests_have_equal_plans),
              cmocka_unit_test(chains_run_in_place))
