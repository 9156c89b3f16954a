// Plans of replicas, judged from the graph and the cluster alone.

#include "partition/plan/plan_check.h"
#include "partition/replicas/replica_plan.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/lanes.h"
#include "partition/plan/plan_file.h"
#include "partition/plan/plan_writer.h"
#include "partition/plan/replica_check.h"
#include "partition/replicas/plan_whole.h"
#include "partition/replicas/replica_search.h"
#include "partition/replicas/replica_view.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

#define FOUR_LINKED(bandwidth)                                                                     \
    "devices:\n"                                                                                   \
    "  - {name: a, memory: 64MiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"              \
    "  - {name: b, memory: 64MiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"              \
    "  - {name: c, memory: 64MiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"              \
    "  - {name: d, memory: 64MiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"              \
    "links:\n"                                                                                     \
    "  - {between: [\"[a-z]\", \"[a-z]\"], latency: 20us, bandwidth: " bandwidth "}\n"
#define FOUR_EQUAL FOUR_LINKED("2GB/s")

// A request that a test may change.
typedef struct replica_case {
    pen_arena *arena;
    pen_plan_job *job;
    pen_plan_request request;
    pen_planned_graph planned;
    pen_placement_spec placement;
} replica_case;

static replica_case open_case(const char *model, uint32_t microbatches, uint32_t lanes,
                              const char *rest) {
    replica_case c = {.arena = check_arena()};
    c.job = planned_start(planned_lanes(c.arena, model, microbatches, lanes, rest));
    c.request = *planned_request(c.job);
    c.planned = *c.request.planned;
    c.placement = *c.request.placement;
    c.request.cut_seconds = 600;
    return c;
}

// Members that a case has are pointed to where it stands.
static const pen_plan_request *case_request(replica_case *c) {
    c->request.planned = &c->planned;
    c->request.placement = &c->placement;
    return &c->request;
}

static void close_case(replica_case *c) {
    pen_plan_job_destroy(c->job);
    pen_arena_destroy(c->arena);
}

static pen_plan *search(replica_case *c, int64_t replicas) {
    pen_plan *plan = NULL;
    c->placement.replicas = replicas;
    CHECK_OK(pen_plan_build(case_request(c), c->arena, &plan));
    return plan;
}

static uint64_t parameter_bytes(const pen_graph *graph, const uint64_t *bytes_of_value) {
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (!pen_node_is(value->producer) || !pen_value_is(value->replaces)) continue;
        if (pen_graph_value(graph, value->replaces)->kind != PEN_VALUE_PARAMETER) continue;
        bytes += bytes_of_value[v];
    }
    return bytes;
}

// What a step sends between replicas, in units of the parameters, by the mean of replicas.
static double exchanged(const replica_case *c, const pen_plan *plan) {
    double bytes = 0.0;
    for (uint32_t e = 0; e < plan->stages.step_edge_count; e++) {
        const pen_stage_step_edge *edge = &plan->stages.step_edges[e];
        uint32_t from = 0, to = 0;
        for (uint32_t r = 0; r < plan->replica_count; r++) {
            const pen_plan_replica *replica = &plan->replicas[r];
            if (edge->source >= replica->first_stage) from = r;
            if (edge->target >= replica->first_stage) to = r;
        }
        if (from != to) bytes += edge->bytes;
    }
    const double unit = (double)parameter_bytes(c->planned.graph, c->planned.bytes_of_value);
    return bytes / unit / plan->replica_count;
}

static void two_replicas_are_planned(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        replica_case c =
            open_case(planned_models[m], 4, 4, FOUR_EQUAL "placement: {time_limit: 200ms}\n");
        const pen_plan *plan = search(&c, 2);
        CHECK_OK(pen_plan_check(plan, false, c.arena));
        CHECK(plan->replica_count == 2, "%u", plan->replica_count);
        CHECK(plan->lower_bound > 0 && plan->lower_bound <= plan->value, "%g, bound %g",
              plan->value, plan->lower_bound);
        close_case(&c);
    }
}

// Replicas of one device each, as many lanes as are said.
static pen_plan *join_lanes(replica_case *c, uint32_t count, const uint32_t *lanes) {
    static const uint32_t devices[] = {0, 1, 2, 3};
    pen_plan_replica replicas[4] = {0};
    const pen_plan *plans[4] = {0};
    pen_replica_planner *planner;
    pen_plan *plan = NULL;
    uint32_t lane = 0;
    CHECK_OK(pen_replica_planner_new(case_request(c), c->arena, &planner));
    for (uint32_t r = 0; r < count; r++) {
        replicas[r] = (pen_plan_replica){
            .first_lane = lane, .lane_count = lanes[r], .device_count = 1, .devices = &devices[r]};
        lane += lanes[r];
        CHECK_OK(pen_replica_plan_one(planner, &replicas[r], count, NULL, c->arena, &plans[r]));
    }
    const pen_replica_parts parts = {.replica_count = count, .replicas = replicas, .plans = plans};
    CHECK_OK(pen_replica_plan_join(planner, &parts, c->arena, &plan));
    return plan;
}

// Bytes that a replica sends in the mean, in units of the gradient: with b blocks of lanes in each,
// a parameter of owner o takes (b + 1) of every other replica. 4 + 4 send 1.0 and so on.
static void replicas_send_what_the_tree_needs(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        uint32_t lanes[4];
        double least; // with the best owners, and
        double most;  // with the worst
    } cases[] = {
        {2, {4, 4}, 1.0, 1.0},
        {4, {2, 2, 2, 2}, 1.5, 1.5},
        {2, {3, 5}, 1.5, 1.5},
        {3, {3, 3, 2}, 5.0 / 3, 2.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        replica_case c = open_case("mlp", 12, 8, FOUR_EQUAL);
        const pen_plan *plan = join_lanes(&c, cases[i].count, cases[i].lanes);
        const double sent = exchanged(&c, plan);
        CHECK(sent >= cases[i].least - 1e-9 && sent <= cases[i].most + 1e-9,
              "case %zu: %g, expected %g to %g", i, sent, cases[i].least, cases[i].most);
        close_case(&c);
    }
}

// Every parameter's optimizer state is on one device, and no replica has much more than its share.
static void optimizer_states_are_there_once(void **state) {
    (void)state;
    static const uint32_t lanes[] = {1, 1, 1, 1}, all[] = {4};
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        replica_case c = open_case(planned_models[m], 4, 4, FOUR_EQUAL);
        const pen_plan *plan = join_lanes(&c, 4, lanes);
        const pen_plan *alone = NULL;
        pen_replica_planner *planner;
        const uint32_t device = 0;
        const pen_plan_replica whole = {
            .lane_count = all[0], .device_count = 1, .devices = &device};
        uint64_t sum = 0, most = 0, largest = 0;
        CHECK_OK(pen_replica_planner_new(&c.request, c.arena, &planner));
        CHECK_OK(pen_replica_plan_one(planner, &whole, 1, NULL, c.arena, &alone));
        for (uint32_t v = 0; v < pen_graph_value_count(c.planned.graph); v++) {
            const pen_value *value = pen_graph_value(c.planned.graph, (pen_value_id){v});
            const bool is_optimizers = value->kind == PEN_VALUE_STATE && value->data == NULL;
            if (is_optimizers && c.planned.bytes_of_value[v] > largest) {
                largest = c.planned.bytes_of_value[v];
            }
        }
        for (uint32_t d = 0; d < 4; d++) {
            const uint64_t own = plan->devices[d].memory.optimizer_state;
            sum += own;
            if (own > most) most = own;
        }
        CHECK(sum == alone->devices[0].memory.optimizer_state, "%s: %llu of %llu",
              planned_models[m], (unsigned long long)sum,
              (unsigned long long)alone->devices[0].memory.optimizer_state);
        CHECK(most <= sum / 4 + 2 * largest, "%s: %llu of %llu, largest %llu", planned_models[m],
              (unsigned long long)most, (unsigned long long)sum, (unsigned long long)largest);
        close_case(&c);
    }
}

// ---- owners of their own

static uint64_t optimizer_bytes(const replica_case *c, uint64_t *out_largest) {
    uint64_t sum = 0;
    *out_largest = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(c->planned.graph); v++) {
        const pen_value *value = pen_graph_value(c->planned.graph, (pen_value_id){v});
        const uint64_t bytes = (c->planned.bytes_of_value[v] + 63) / 64 * 64;
        if (value->kind != PEN_VALUE_STATE || value->data != NULL) continue;
        sum += bytes;
        if (bytes > *out_largest) *out_largest = bytes;
    }
    return sum;
}

// Two devices own all parameters and run nothing; a replica then sends its gradient and nothing
// else, and they send each replica the new values.
static void owners_hold_all_that_is_updated(void **state) {
    (void)state;
    static const char *names[] = {"d", "b"};
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        replica_case c =
            open_case(planned_models[m], 4, 4, FOUR_EQUAL "placement: {time_limit: 200ms}\n");
        c.placement.owners = (pen_option_list){names, 2};
        for (int64_t replicas = 1; replicas <= 2; replicas++) {
            const pen_plan *plan = search(&c, replicas);
            const uint32_t first = plan->stages.stage_count - 2;
            const pen_plan_device *devices = plan->devices;
            uint64_t largest;
            const uint64_t states = optimizer_bytes(&c, &largest);
            const uint64_t own[] = {devices[1].memory.optimizer_state,
                                    devices[3].memory.optimizer_state};
            CHECK_OK(pen_plan_check(plan, false, c.arena));
            CHECK(plan->owner_count == 2 && plan->owners[0] == 1 && plan->owners[1] == 3,
                  "%u owners", plan->owner_count);
            CHECK(own[0] + own[1] == states, "%s: %llu and %llu of %llu", planned_models[m],
                  (unsigned long long)own[0], (unsigned long long)own[1],
                  (unsigned long long)states);
            CHECK(own[0] <= states / 2 + 2 * largest && own[1] <= states / 2 + 2 * largest,
                  "%s: not balanced", planned_models[m]);
            assert_int_equal(devices[0].memory.optimizer_state, 0);
            assert_int_equal(devices[2].memory.optimizer_state, 0);
            for (uint32_t n = 0; n < plan->node_count; n++) {
                assert_true(plan->nodes[n].stage < first);
                assert_true(plan->nodes[n].update_stage >= first);
            }
        }
        close_case(&c);
    }
}

static void owners_are_sent_a_gradient_of_each(void **state) {
    (void)state;
    static const char *names[] = {"c", "d"};
    replica_case c = open_case("mlp", 4, 4, FOUR_EQUAL "placement: {time_limit: 200ms}\n");
    c.placement.owners = (pen_option_list){names, 2};
    const pen_plan *plan = search(&c, 2);
    const double unit = (double)parameter_bytes(c.planned.graph, c.planned.bytes_of_value);
    const uint32_t owners = pen_plan_owner_stage(plan);
    double there = 0.0, back = 0.0;
    for (uint32_t e = 0; e < plan->stages.step_edge_count; e++) {
        const pen_stage_step_edge *edge = &plan->stages.step_edges[e];
        *(edge->phase == 0 ? &there : &back) += edge->bytes;
        CHECK((edge->phase == 0) == (edge->target >= owners), "an edge of phase %u to %u",
              edge->phase, edge->target);
    }
    CHECK(there == 2 * unit && back == 2 * unit, "%g there and %g back of %g", there, back, unit);
    close_case(&c);
}

// ---- the search

#define UNEQUAL                                                                                    \
    "devices:\n"                                                                                   \
    "  - {name: a, memory: 64MiB, threads: 1, flops: 2G, memory_bandwidth: 8GB/s}\n"               \
    "  - {name: b, memory: 64MiB, threads: 1, flops: 4G, memory_bandwidth: 8GB/s}\n"               \
    "  - {name: c, memory: 64MiB, threads: 1, flops: 1G, memory_bandwidth: 8GB/s}\n"               \
    "  - {name: d, memory: 64MiB, threads: 1, flops: 2G, memory_bandwidth: 8GB/s}\n"               \
    "links:\n"                                                                                     \
    "  - {between: [\"[a-z]\", \"[a-z]\"], bandwidth: 2GB/s, latency: 20us}\n"                     \
    "placement: {time_limit: 1s}\n"

typedef struct oracle {
    replica_case *c;
    pen_replica_planner *planner;
    const pen_plan *known[16][8]; // by set of devices and lanes
    double best;
} oracle;

// The best step of a way to divide devices, over all ways to deal the lanes.
static void oracle_deal(oracle *o, uint32_t count, const uint32_t *sets, uint32_t replica,
                        uint32_t *lanes, uint32_t left) {
    if (replica + 1 < count) {
        for (lanes[replica] = 1; lanes[replica] + count - replica - 1 <= left; lanes[replica]++) {
            oracle_deal(o, count, sets, replica + 1, lanes, left - lanes[replica]);
        }
        return;
    }
    pen_plan_replica replicas[4] = {0};
    const pen_plan *plans[4] = {0};
    uint32_t devices[4][4], lane = 0;
    pen_plan *plan = NULL;
    lanes[replica] = left;
    for (uint32_t r = 0; r < count; r++) {
        uint32_t size = 0;
        for (uint32_t d = 0; d < 4; d++) {
            if ((sets[r] >> d & 1) != 0) devices[r][size++] = d;
        }
        replicas[r] = (pen_plan_replica){.first_lane = lane,
                                         .lane_count = lanes[r],
                                         .device_count = size,
                                         .devices = devices[r]};
        lane += lanes[r];
        const pen_plan **known = &o->known[sets[r]][lanes[r]];
        if (*known == NULL) {
            CHECK_OK(
                pen_replica_plan_one(o->planner, &replicas[r], count, NULL, o->c->arena, known));
        }
        plans[r] = *known;
    }
    const pen_replica_parts parts = {.replica_count = count, .replicas = replicas, .plans = plans};
    CHECK_OK(pen_replica_plan_join(o->planner, &parts, o->c->arena, &plan));
    o->best = fmin(o->best, plan->step_seconds);
}

static void oracle_divide(oracle *o, uint32_t device, uint32_t count, uint32_t *sets,
                          uint32_t wanted) {
    uint32_t lanes[4];
    if (device == 4) {
        if (count == wanted) oracle_deal(o, count, sets, 0, lanes, 4);
        return;
    }
    for (uint32_t r = 0; r <= count && r < wanted; r++) {
        if (r == count) sets[r] = 0;
        sets[r] |= 1u << device;
        oracle_divide(o, device + 1, r == count ? count + 1 : count, sets, wanted);
        sets[r] &= ~(1u << device);
    }
}

// All ways to divide four unequal devices and four lanes: what is found is nearly the best of them.
static void finds_what_trying_all_finds(void **state) {
    (void)state;
    static const char *const models[] = {"lenet", "branching_cnn"};
    for (size_t m = 0; m < 2; m++) {
        replica_case c = open_case(models[m], 4, 4, UNEQUAL);
        double least = search(&c, 1)->step_seconds;
        for (uint32_t wanted = 2; wanted <= 4; wanted++) {
            oracle o = {.c = &c, .best = INFINITY};
            uint32_t sets[4] = {0};
            const pen_plan *plan = search(&c, wanted);
            pen_plan_request quick = c.request;
            pen_placement_spec placement = c.placement;
            placement.time_limit_seconds *= 0.5;
            quick.placement = &placement;
            CHECK_OK(pen_replica_planner_new(&quick, c.arena, &o.planner));
            oracle_divide(&o, 0, 0, sets, wanted);
            CHECK(plan->step_seconds <= 1.05 * o.best, "%s: %u replicas take %g, there is %g",
                  models[m], wanted, plan->step_seconds, o.best);
            CHECK(plan->lower_bound <= o.best, "bound %g above %g", plan->lower_bound, o.best);
            least = fmin(least, plan->step_seconds);
        }
        const pen_plan *plan = search(&c, 0);
        CHECK(plan->step_seconds <= least * (1 + 1e-9), "%s: auto takes %g, there is %g", models[m],
              plan->step_seconds, least);
        close_case(&c);
    }
}

// With the memory of their parts, running statistics too.
static void parts_of_replicas_are_measured(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan *plan = NULL;
    pen_plan_job *job = planned_start(planned_lanes(
        arena, "batchnorm_cnn", 4, 4, FOUR_EQUAL "placement: {time_limit: 200ms, replicas: 2}\n"));
    CHECK_OK(pen_plan_job_place(job, arena, &plan));
    CHECK(plan->replica_count == 2, "%u", plan->replica_count);
    pen_plan_job_destroy(job);
    pen_arena_destroy(arena);
}

// ---- wishes

static uint32_t replica_of(const pen_plan *plan, uint32_t stage) {
    uint32_t at = 0;
    while (stage - plan->replicas[at].first_stage >= plan->replicas[at].stage_count)
        at++;
    return at;
}

// A pin binds where its device is, what is forbidden likewise.
static void pins_bind_in_their_replica(void **state) {
    (void)state;
    replica_case c = open_case(
        "lenet", 4, 4,
        FOUR_EQUAL "placement: {time_limit: 200ms, pin: [{nodes: \"^/conv1/\", to: b}], "
                   "forbid: [{nodes: \"^/conv2/\", on: \"[cd]\"}], stages: {maximum: 2}}\n");
    const pen_plan *plan = search(&c, 2);
    bool is_pinned = false;
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        const pen_plan_replica *replica = &plan->replicas[replica_of(plan, node->stage)];
        const uint32_t device = plan->stages.stages[node->stage].device;
        bool has_b = false;
        for (uint32_t i = 0; i < replica->device_count; i++) {
            has_b = has_b || replica->devices[i] == 1;
        }
        if (strstr(node->name, "conv1") != NULL && has_b) {
            CHECK(device == 1, "'%s' on %u", node->name, device);
            is_pinned = true;
        }
        if (strstr(node->name, "conv2") != NULL) CHECK(device < 2, "'%s'", node->name);
    }
    assert_true(is_pinned);
    close_case(&c);
}

static void names_what_cannot_be(void **state) {
    (void)state;
    replica_case c = open_case("mlp", 4, 4, FOUR_EQUAL);
    pen_plan *plan;
    static const char *owners[] = {"a", "x"}, *every = "[a-d]";
    c.placement.replicas = 5;
    CHECK_ERROR(pen_plan_build(case_request(&c), c.arena, &plan), PEN_INVALID_INPUT,
                "placement.replicas: found 5, expected at most 4: each has a device");
    c.placement.replicas = 4;
    c.request.lanes = 3;
    CHECK_ERROR(pen_plan_build(case_request(&c), c.arena, &plan), PEN_INVALID_INPUT,
                "expected at most 3: each has a lane");
    c.placement.replicas = 2;
    c.placement.owners = (pen_option_list){&owners[1], 1};
    CHECK_ERROR(pen_plan_build(case_request(&c), c.arena, &plan), PEN_NOT_FOUND, "x");
    c.request.lanes = 4;
    c.placement.replicas = 4;
    c.placement.owners.items = &owners[0];
    CHECK_ERROR(pen_plan_build(case_request(&c), c.arena, &plan), PEN_INVALID_INPUT,
                "found 4, expected at most 3: each has a device that is none of placement.owners");
    c.placement.owners.items = &every;
    CHECK_ERROR(pen_plan_build(case_request(&c), c.arena, &plan), PEN_INVALID_INPUT,
                "placement.owners: found all 4 devices, expected at most 3");
    close_case(&c);
}

// ---- files

static pen_status parse(const char *text, bool is_edited, pen_arena *arena, pen_plan **out_plan) {
    return pen_plan_parse("plan.yaml", text, strlen(text), is_edited, arena, out_plan);
}

// A copy of `text` with the first `from` replaced.
static const char *edit(pen_arena *arena, const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from), *out;
    CHECK(at != NULL, "no '%s'", from);
    CHECK_OK(
        pen_arena_format(arena, &out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)));
    return out;
}

static void files_hold_replicas(void **state) {
    (void)state;
    static const uint32_t lanes[] = {1, 3};
    replica_case c = open_case("lenet", 4, 4, FOUR_EQUAL "placement: {time_limit: 200ms}\n");
    const pen_plan *plan = join_lanes(&c, 2, lanes);
    const char *text, *again;
    pen_plan *read, *rebuilt;
    CHECK_OK(pen_plan_format(plan, c.arena, &text));
    assert_non_null(strstr(text, "replicas:\n  - {lanes: [0, 0], devices: [\"a\"]}\n"
                                 "  - {lanes: [1, 3], devices: [\"b\"]}\n"));
    CHECK_OK(parse(text, false, c.arena, &read));
    CHECK_OK(pen_plan_format(read, c.arena, &again));
    assert_string_equal(text, again);
    CHECK_OK(pen_plan_rebuild(case_request(&c), read, c.arena, &rebuilt));
    CHECK_OK(pen_plan_format(rebuilt, c.arena, &again));
    assert_string_equal(text, again);
    const char *more = edit(c.arena, text, "lanes: [0, 0]", "lanes: [0, 1]");
    CHECK_ERROR(parse(more, true, c.arena, &read), PEN_INVALID_INPUT,
                "replica 1 has lanes 1 to 3: expected them to begin with 2");
    more = edit(c.arena, more, "lanes: [1, 3]", "lanes: [2, 3]");
    CHECK_OK(parse(more, true, c.arena, &read));
    CHECK_OK(pen_plan_rebuild(case_request(&c), read, c.arena, &rebuilt));
    CHECK(rebuilt->stages.stages[0].microbatch_count == 2, "%u",
          rebuilt->stages.stages[0].microbatch_count);
    CHECK_ERROR(parse(edit(c.arena, text, "[1, 3], devices: [\"b\"]", "[1, 3], devices: [\"a\"]"),
                      true, c.arena, &read),
                PEN_INVALID_INPUT, "replica");
    CHECK_ERROR(parse(edit(c.arena, text, "[1, 3], devices: [\"b\"]", "[1, 3], devices: [\"x\"]"),
                      true, c.arena, &read),
                PEN_INVALID_INPUT, "device 'x' is none of the plan's");
    CHECK_ERROR(parse(edit(c.arena, text, "lanes: [0, 0]", "lanes: [1, 0]"), true, c.arena, &read),
                PEN_INVALID_INPUT, "replica 0: found lanes 1 to 0");
    CHECK_ERROR(parse(edit(c.arena, text, "stage: 1, updates: ", "stage: 0, updates: "), true,
                      c.arena, &read),
                PEN_INVALID_INPUT, "replica 0 twice");
    close_case(&c);
}

// Where links are slow, stages are cut so that exchange overlaps; the plan is what its file says.
static void stages_are_divided(void **state) {
    (void)state;
    static const char *names[] = {"d"};
    replica_case c =
        open_case("mlp", 4, 4, FOUR_LINKED("200MB/s") "placement: {time_limit: 200ms}\n");
    for (uint32_t owner_count = 0; owner_count < 2; owner_count++) {
        const char *text, *again;
        pen_plan *read, *rebuilt;
        c.placement.owners = (pen_option_list){owner_count == 1 ? names : NULL, owner_count};
        c.request.exchange = PEN_EXCHANGE_AFTER_BACKWARD;
        const pen_plan *last = search(&c, 3);
        c.request.exchange = PEN_EXCHANGE_OVERLAPPED;
        const pen_plan *plan = search(&c, 3);
        CHECK(plan->stages.stage_count > last->stages.stage_count, "%u", plan->stages.stage_count);
        CHECK(plan->step_seconds < last->step_seconds, "%g, last %g", plan->step_seconds,
              last->step_seconds);
        CHECK(plan->lower_bound <= plan->step_seconds, "%g", plan->lower_bound);
        CHECK_OK(pen_plan_check(plan, false, c.arena));
        CHECK_OK(pen_plan_format(plan, c.arena, &text));
        assert_non_null(strstr(text, "\nexchange: overlapped\n"));
        CHECK_OK(parse(text, false, c.arena, &read));
        CHECK_OK(pen_plan_rebuild(case_request(&c), read, c.arena, &rebuilt));
        CHECK_OK(pen_plan_format(rebuilt, c.arena, &again));
        assert_string_equal(text, again);
    }
    close_case(&c);
}

static void files_hold_owners(void **state) {
    (void)state;
    static const char *names[] = {"b"};
    replica_case c = open_case("mlp", 4, 4, FOUR_EQUAL "placement: {time_limit: 200ms}\n");
    c.placement.owners = (pen_option_list){names, 1};
    c.request.exchange = PEN_EXCHANGE_AFTER_BACKWARD; // stages in one piece
    const pen_plan *plan = search(&c, 3);
    const char *text, *again;
    pen_plan *read, *rebuilt;
    CHECK_OK(pen_plan_format(plan, c.arena, &text));
    assert_non_null(strstr(text, "\nowners: [\"b\"]\nstages:\n"));
    CHECK_OK(parse(text, false, c.arena, &read));
    CHECK_OK(pen_plan_format(read, c.arena, &again));
    assert_string_equal(text, again);
    CHECK_OK(pen_plan_rebuild(case_request(&c), read, c.arena, &rebuilt));
    CHECK_OK(pen_plan_format(rebuilt, c.arena, &again));
    assert_string_equal(text, again);
    static const struct {
        const char *from, *to, *error;
    } edits[] = {
        {"owners: [\"b\"]", "owners: [\"x\"]", "device 'x' is none of the plan's: a, b, c, d"},
        {"owners: [\"b\"]", "owners: [\"b\", \"b\"]", "device 'b' is an owner twice"},
        {"owners: [\"b\"]", "owners: [\"a\"]", "'b', which is in no replica and no owner"},
        {"owners: [\"b\"]", "owners: [\"a\", \"b\"]", "'a' is an owner and in replica 0"},
        {"updates: 3", "updates: 2", "is updated in stage 2 of replica 2, but the plan has owners"},
        {"stage: 0, updates: 3", "stage: 3, updates: 3", "an owner's and runs no node"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        CHECK_ERROR(parse(edit(c.arena, text, edits[i].from, edits[i].to), true, c.arena, &read),
                    PEN_INVALID_INPUT, edits[i].error);
    }
    close_case(&c);
}

PEN_TEST_MAIN(cmocka_unit_test(two_replicas_are_planned),
              cmocka_unit_test(replicas_send_what_the_tree_needs),
              cmocka_unit_test(optimizer_states_are_there_once),
              cmocka_unit_test(owners_hold_all_that_is_updated),
              cmocka_unit_test(owners_are_sent_a_gradient_of_each),
              cmocka_unit_test(finds_what_trying_all_finds),
              cmocka_unit_test(parts_of_replicas_are_measured),
              cmocka_unit_test(pins_bind_in_their_replica), cmocka_unit_test(names_what_cannot_be),
              cmocka_unit_test(files_hold_replicas), cmocka_unit_test(stages_are_divided),
              cmocka_unit_test(files_hold_owners))
