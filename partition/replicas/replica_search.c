#include "partition/replicas/replica_search.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/lanes.h"
#include "partition/plan/plan_build.h"
#include "partition/replicas/replica_divide.h"
#include "partition/replicas/replica_plan.h"
#include "partition/replicas/replica_spec.h"
#include "partition/replicas/replica_view.h"

#define SEARCH_FEW_DEVICES 8    // for which every number of replicas is tried
#define SEARCH_QUICK_SHARE 0.02 // of the time limit, for a replica that is tried
#define SEARCH_FULL_SHARE 0.5   // for all replicas of those that are planned again
#define SEARCH_PLANS_FEW 96u    // replicas that are planned, while moves are tried
#define SEARCH_PLANS_MANY 24u
#define SEARCH_JUDGED_FEW 400u // choices that are judged meanwhile
#define SEARCH_JUDGED_MANY 80u
#define SEARCH_IMPROVED 2 // of the numbers of replicas: those that begin best
#define SEARCH_GAIN 1e-6  // of a step, that a move must bring
#define SEARCH_MEMORY_ROUNDS 3
#define SEARCH_COUNTS 24 // numbers of replicas tried

// Replicas as they are tried: of every device which, of every replica how many lanes.
typedef struct search_choice {
    uint32_t count;
    uint32_t *replica_of_device; // [device_count] PEN_ID_NONE: an owner
    uint32_t *lanes;             // [count]
    double step_seconds;         // INFINITY: does not fit
    uint32_t slowest_replica;    // by its own step
} search_choice;

// A replica that was planned.
typedef struct search_known {
    pen_plan_replica replica;
    uint32_t replica_count;
    double share;         // of the time limit
    uint64_t reserved;    // bytes on any of its devices
    const pen_plan *plan; // NULL: does not fit
    struct search_known *next;
} search_known;

typedef struct search {
    const pen_plan_request *request;
    const pen_replica_planner *planner;
    pen_arena *arena;
    uint32_t device_count;
    uint32_t lane_count;
    uint32_t owner_count;
    const uint32_t *owners; // [owner_count] that run no replica
    uint32_t line_count;    // the others
    uint32_t *line;         // [line_count] devices in the order of hosts
    double *speed;          // [device_count] microbatches a second, alone
    uint32_t *alike;        // [device_count] the lowest that is like it
    search_known *known;
    uint32_t planned;   // replicas
    uint32_t judged;    // choices
    pen_status refusal; // why the last does not fit
} search;

// ---- what is alike

static bool search_devices_alike(const pen_plan_request *request, uint32_t a, uint32_t b) {
    const pen_cluster_device *x = &request->cluster->devices[a], *y = &request->cluster->devices[b];
    const pen_constraints *constraints = &request->placement->constraints;
    if (constraints->pins.count > 0 || constraints->forbidden.count > 0 ||
        constraints->kept_count > 0) {
        return a == b;
    }
    return request->costs->row_of_device[a] == request->costs->row_of_device[b] &&
           x->bytes_limit == y->bytes_limit && x->memory_bandwidth == y->memory_bandwidth;
}

static bool search_links_alike(const pen_cluster_link *a, const pen_cluster_link *b) {
    return a->bandwidth == b->bandwidth && a->latency == b->latency && a->send == b->send &&
           a->receive == b->receive && a->message == b->message;
}

static uint32_t search_microbatches(const search *s, const pen_plan_replica *replica) {
    return pen_replica_microbatch(s->request, replica->first_lane + replica->lane_count) -
           pen_replica_microbatch(s->request, replica->first_lane);
}

static uint32_t search_depth(const pen_plan_replica *replica) {
    return pen_lane_depth(replica->first_lane, replica->first_lane + replica->lane_count);
}

// Whether a plan of one replica is one of the other.
static bool search_replicas_alike(const search *s, const pen_plan_replica *a,
                                  const pen_plan_replica *b) {
    const pen_cluster *cluster = s->request->cluster;
    if (a->device_count != b->device_count ||
        search_microbatches(s, a) != search_microbatches(s, b) ||
        search_depth(a) != search_depth(b)) {
        return false;
    }
    for (uint32_t i = 0; i < a->device_count; i++) {
        const pen_cluster_device *x = &cluster->devices[a->devices[i]];
        const pen_cluster_device *y = &cluster->devices[b->devices[i]];
        if (s->alike[a->devices[i]] != s->alike[b->devices[i]]) return false;
        for (uint32_t j = 0; j < a->device_count; j++) {
            const pen_cluster_device *v = &cluster->devices[a->devices[j]];
            const pen_cluster_device *w = &cluster->devices[b->devices[j]];
            if (i == j) continue;
            if ((x->host_index == v->host_index) != (y->host_index == w->host_index) ||
                (x->process == v->process) != (y->process == w->process) ||
                !search_links_alike(pen_cluster_link_at(cluster, a->devices[i], a->devices[j]),
                                    pen_cluster_link_at(cluster, b->devices[i], b->devices[j]))) {
                return false;
            }
        }
    }
    return true;
}

// ---- planning and judging

// A replica's plan, made once for all that are alike.
static pen_status search_plan(search *s, const pen_plan_replica *replica, uint32_t replica_count,
                              double share, const uint64_t *reserved, const pen_plan **out_plan) {
    pen_plan_request request = *s->request;
    pen_placement_spec placement = *s->request->placement;
    pen_replica_planner planner = *s->planner;
    uint64_t most = 0;
    search_known *known;
    for (uint32_t i = 0; i < replica->device_count && reserved != NULL; i++) {
        if (reserved[replica->devices[i]] > most) most = reserved[replica->devices[i]];
    }
    for (known = s->known; known != NULL; known = known->next) {
        if (known->replica_count != replica_count || known->share != share ||
            known->reserved != most || !search_replicas_alike(s, &known->replica, replica)) {
            continue;
        }
        *out_plan = known->plan;
        return PEN_OK;
    }
    PEN_TRY(PEN_NEW(s->arena, 1, &known));
    placement.time_limit_seconds *= share;
    request.placement = &placement;
    request.is_final = share >= SEARCH_QUICK_SHARE && s->request->is_final;
    planner.request = &request;
    *known = (search_known){.replica = *replica,
                            .replica_count = replica_count,
                            .share = share,
                            .reserved = most,
                            .next = s->known};
    const pen_status status =
        pen_replica_plan_one(&planner, replica, replica_count, reserved, s->arena, &known->plan);
    s->planned += 1;
    s->known = known;
    const pen_status_code code = pen_status_get_code(status);
    if (code == PEN_DOES_NOT_FIT || code == PEN_INVALID_INPUT) {
        // what the whole cluster allows, some of its devices may not
        pen_status_ignore(s->refusal, "a later one is told");
        s->refusal = status;
        known->plan = NULL;
    } else {
        PEN_TRY(status);
    }
    *out_plan = known->plan;
    return PEN_OK;
}

// Replicas of a choice, with their lanes in order.
static pen_status search_list(const search *s, const search_choice *choice, pen_arena *arena,
                              pen_plan_replica **out_replicas) {
    pen_plan_replica *replicas;
    uint32_t lane = 0;
    PEN_TRY(PEN_NEW(arena, choice->count, &replicas));
    for (uint32_t r = 0; r < choice->count; r++) {
        uint32_t *devices, count = 0;
        PEN_TRY(PEN_NEW(arena, s->device_count, &devices));
        for (uint32_t d = 0; d < s->device_count; d++) {
            if (choice->replica_of_device[d] == r) devices[count++] = d;
        }
        replicas[r] = (pen_plan_replica){.first_lane = lane,
                                         .lane_count = choice->lanes[r],
                                         .device_count = count,
                                         .devices = devices};
        lane += choice->lanes[r];
    }
    *out_replicas = replicas;
    return PEN_OK;
}

// Plans the replicas of a choice and puts them together. Where a device takes more than it has, its
// replica is planned again with so much less. *out_plan is NULL where nothing fits.
static pen_status search_try(search *s, search_choice *choice, double share, pen_arena *arena,
                             pen_plan **out_plan) {
    pen_plan_replica *replicas;
    const pen_plan **plans;
    uint64_t *reserved, *excess;
    PEN_TRY(search_list(s, choice, s->arena, &replicas));
    PEN_TRY(PEN_NEW(s->arena, choice->count, &plans));
    PEN_TRY(PEN_NEW(s->arena, s->device_count, &reserved));
    PEN_TRY(PEN_NEW(s->arena, s->device_count, &excess));
    choice->step_seconds = INFINITY;
    *out_plan = NULL;
    for (uint32_t round = 0; round < SEARCH_MEMORY_ROUNDS; round++) {
        for (uint32_t r = 0; r < choice->count; r++) {
            PEN_TRY(search_plan(s, &replicas[r], choice->count, share, reserved, &plans[r]));
            if (plans[r] == NULL) return PEN_OK;
        }
        const pen_replica_parts parts = {.replica_count = choice->count,
                                         .replicas = replicas,
                                         .plans = plans,
                                         .owner_count = s->owner_count,
                                         .owners = s->owners,
                                         .excess = excess};
        const pen_status status = pen_replica_plan_join(s->planner, &parts, arena, out_plan);
        if (status == PEN_OK) break;
        if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
        pen_status_ignore(s->refusal, "a later one is told");
        s->refusal = status;
        *out_plan = NULL;
        for (uint32_t d = 0; d < s->device_count; d++) {
            reserved[d] += excess[d] + excess[d] / 8;
        }
    }
    if (*out_plan == NULL) return PEN_OK;
    choice->step_seconds = (*out_plan)->step_seconds;
    for (uint32_t r = 0; r < choice->count; r++) {
        const double own = plans[r]->step_seconds;
        if (own > plans[choice->slowest_replica]->step_seconds) choice->slowest_replica = r;
    }
    return PEN_OK;
}

// The step of a choice alone.
static pen_status search_judge(search *s, search_choice *choice) {
    pen_arena *scratch;
    pen_plan *plan;
    choice->slowest_replica = 0;
    s->judged += 1;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = search_try(s, choice, SEARCH_QUICK_SHARE, scratch, &plan);
    pen_arena_destroy(scratch);
    return status;
}

// ---- where to begin

static pen_status search_choice_new(const search *s, uint32_t count, search_choice *out_choice) {
    *out_choice = (search_choice){.count = count, .step_seconds = INFINITY};
    PEN_TRY(PEN_NEW(s->arena, s->device_count, &out_choice->replica_of_device));
    for (uint32_t i = 0; i < s->owner_count; i++) {
        out_choice->replica_of_device[s->owners[i]] = PEN_ID_NONE;
    }
    return PEN_NEW(s->arena, count, &out_choice->lanes);
}

static void search_copy(const search *s, const search_choice *from, search_choice *to) {
    uint32_t *replica_of_device = to->replica_of_device, *lanes = to->lanes;
    memcpy(replica_of_device, from->replica_of_device, s->device_count * sizeof *lanes);
    memcpy(lanes, from->lanes, from->count * sizeof *lanes);
    *to = *from;
    to->replica_of_device = replica_of_device;
    to->lanes = lanes;
}

// Lanes by `weight` [count], each replica at least one: the next goes to who has least for its
// weight.
static void search_deal_lanes(const search *s, const double *weight, search_choice *choice) {
    for (uint32_t r = 0; r < choice->count; r++) {
        choice->lanes[r] = 1;
    }
    for (uint32_t lane = choice->count; lane < s->lane_count; lane++) {
        uint32_t best = 0;
        for (uint32_t r = 1; r < choice->count; r++) {
            const double here = (choice->lanes[r] + 1) / weight[r];
            if (here < (choice->lanes[best] + 1) / weight[best]) best = r;
        }
        choice->lanes[best] += 1;
    }
}

static pen_status search_weigh(const search *s, const search_choice *choice, double **out_weight) {
    double *weight;
    PEN_TRY(PEN_NEW(s->arena, choice->count, &weight));
    PEN_ASSERT(weight != NULL);
    for (uint32_t i = 0; i < s->line_count; i++) {
        weight[choice->replica_of_device[s->line[i]]] += s->speed[s->line[i]];
    }
    *out_weight = weight;
    return PEN_OK;
}

// Runs of the line: of equal speed, or of equal numbers; no run is empty.
static pen_status search_divide(const search *s, bool is_by_speed, search_choice *choice) {
    double all = 0.0, done = 0.0, *weight;
    uint32_t r = 0, own = 0;
    for (uint32_t i = 0; i < s->line_count; i++) {
        all += is_by_speed ? s->speed[s->line[i]] : 1.0;
    }
    for (uint32_t i = 0; i < s->line_count; i++) {
        const double amount = is_by_speed ? s->speed[s->line[i]] : 1.0;
        const uint32_t left = s->line_count - i, after = choice->count - 1 - r;
        const bool is_full = done + 0.5 * amount > all * (r + 1) / choice->count;
        if (own > 0 && after > 0 && (is_full || left <= after)) {
            r++;
            own = 0;
        }
        choice->replica_of_device[s->line[i]] = r;
        done += amount;
        own++;
    }
    PEN_TRY(search_weigh(s, choice, &weight));
    for (uint32_t i = 0; i < choice->count && !is_by_speed; i++) {
        weight[i] = 1.0;
    }
    search_deal_lanes(s, weight, choice);
    return PEN_OK;
}

static pen_status search_begin(search *s, uint32_t count, search_choice *out_choice) {
    search_choice equal;
    PEN_TRY(search_choice_new(s, count, out_choice));
    PEN_TRY(search_choice_new(s, count, &equal));
    PEN_TRY(search_divide(s, true, out_choice));
    PEN_TRY(search_divide(s, false, &equal));
    PEN_TRY(search_judge(s, out_choice));
    if (memcmp(equal.replica_of_device, out_choice->replica_of_device,
               s->device_count * sizeof *equal.lanes) == 0 &&
        memcmp(equal.lanes, out_choice->lanes, count * sizeof *equal.lanes) == 0) {
        return PEN_OK;
    }
    PEN_TRY(search_judge(s, &equal));
    if (equal.step_seconds < out_choice->step_seconds) *out_choice = equal;
    return PEN_OK;
}

// ---- moves

// Moves end with so many replicas planned, or choices judged.
typedef struct search_limit {
    uint32_t planned;
    uint32_t judged;
} search_limit;

static bool search_is_over(const search *s, search_limit limit) {
    return s->planned >= limit.planned || s->judged >= limit.judged;
}

// Judges a changed choice and keeps it if the step falls; else it is as `best` again.
static pen_status search_offer(search *s, search_choice *changed, search_choice *best,
                               bool *out_is_better) {
    PEN_TRY(search_judge(s, changed));
    *out_is_better = changed->step_seconds < best->step_seconds * (1.0 - SEARCH_GAIN);
    search_copy(s, *out_is_better ? changed : best, *out_is_better ? best : changed);
    return PEN_OK;
}

static uint32_t search_size(const search *s, const search_choice *choice, uint32_t replica) {
    uint32_t size = 0;
    for (uint32_t d = 0; d < s->device_count; d++) {
        size += choice->replica_of_device[d] == replica;
    }
    return size;
}

// A lane of the slowest replica goes elsewhere.
static pen_status search_move_lane(search *s, search_limit limit, search_choice *changed,
                                   search_choice *best, bool *out_is_better) {
    const uint32_t from = best->slowest_replica;
    for (uint32_t to = 0; to < best->count && !search_is_over(s, limit); to++) {
        if (to == from || best->lanes[from] == 1) continue;
        changed->lanes[from] -= 1;
        changed->lanes[to] += 1;
        PEN_TRY(search_offer(s, changed, best, out_is_better));
        if (*out_is_better) return PEN_OK;
    }
    return PEN_OK;
}

// A device goes to the slowest replica, or in exchange for one of it, and lanes are dealt anew or
// stay.
static pen_status search_move_device(search *s, search_limit limit, search_choice *changed,
                                     search_choice *best, bool *out_is_better) {
    const uint32_t to = best->slowest_replica;
    double *weight;
    for (uint32_t d = 0; d < s->device_count; d++) {
        const uint32_t from = best->replica_of_device[d];
        if (from == to || from == PEN_ID_NONE) continue;
        for (uint32_t e = 0; e <= s->device_count && !search_is_over(s, limit); e++) {
            const bool is_swap = e < s->device_count;
            if (is_swap && (best->replica_of_device[e] != to || s->alike[d] == s->alike[e])) {
                continue;
            }
            if (!is_swap && search_size(s, best, from) == 1) continue;
            for (int deals = 0; deals < 2; deals++) {
                changed->replica_of_device[d] = to;
                if (is_swap) changed->replica_of_device[e] = from;
                PEN_TRY(search_weigh(s, changed, &weight));
                if (deals == 1) search_deal_lanes(s, weight, changed);
                PEN_TRY(search_offer(s, changed, best, out_is_better));
                if (*out_is_better) return PEN_OK;
            }
        }
    }
    return PEN_OK;
}

static pen_status search_improve(search *s, search_choice *best) {
    const bool is_few = s->device_count <= SEARCH_FEW_DEVICES;
    const search_limit limit = {
        .planned = s->planned + (is_few ? SEARCH_PLANS_FEW : SEARCH_PLANS_MANY),
        .judged = s->judged + (is_few ? SEARCH_JUDGED_FEW : SEARCH_JUDGED_MANY)};
    search_choice changed;
    bool is_better = true; // where nothing fits yet, moves may find what does
    PEN_TRY(search_choice_new(s, best->count, &changed));
    search_copy(s, best, &changed);
    while (is_better && !search_is_over(s, limit)) {
        is_better = false;
        PEN_TRY(search_move_lane(s, limit, &changed, best, &is_better));
        if (!is_better) PEN_TRY(search_move_device(s, limit, &changed, best, &is_better));
    }
    return PEN_OK;
}

// ---- all together

static bool search_is_owner(const search *s, uint32_t device) {
    for (uint32_t i = 0; i < s->owner_count; i++) {
        if (s->owners[i] == device) return true;
    }
    return false;
}

// The line of devices by hosts; who is like whom, and how fast.
static void search_order_devices(search *s) {
    const pen_cluster *cluster = s->request->cluster;
    const pen_cost_model *costs = s->request->costs;
    const pen_planned_graph *planned = s->request->planned;
    uint32_t count = 0;
    for (uint32_t d = 0; d < s->device_count; d++) {
        double seconds = 0.0;
        uint32_t at = count;
        if (search_is_owner(s, d)) continue;
        count++;
        while (at > 0 &&
               cluster->devices[s->line[at - 1]].host_index > cluster->devices[d].host_index) {
            s->line[at] = s->line[at - 1];
            at--;
        }
        s->line[at] = d;
        while (search_is_owner(s, s->alike[d]) || !search_devices_alike(s->request, s->alike[d], d))
            s->alike[d] += 1;
        if (s->alike[d] < d) {
            s->speed[d] = s->speed[s->alike[d]];
            continue;
        }
        for (uint32_t p = 0; p < planned->order_count; p++) {
            const pen_node_id node = planned->order[p];
            if (pen_graph_node(planned->graph, node)->role == PEN_ROLE_UPDATE) continue;
            seconds += pen_cost_model_at(costs, d, node)->seconds;
        }
        s->speed[d] = seconds > 0.0 ? 1.0 / seconds : 1.0;
    }
}

// Numbers of replicas that are tried, ascending.
static uint32_t search_counts(const search *s, uint32_t out_counts[SEARCH_COUNTS]) {
    const uint32_t asked = (uint32_t)s->request->placement->replicas;
    const uint32_t most = s->line_count < s->lane_count ? s->line_count : s->lane_count;
    uint32_t count = 0;
    for (uint32_t r = s->owner_count > 0 ? 1 : 2; r <= most && count < SEARCH_COUNTS; r++) {
        const bool divides = s->line_count % r == 0 || s->lane_count % r == 0;
        if (asked > 0 ? r == asked : s->line_count <= SEARCH_FEW_DEVICES || divides) {
            out_counts[count++] = r;
        }
    }
    return count;
}

// The best of `choices` first.
static void search_sort(search_choice *choices, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        const search_choice choice = choices[i];
        uint32_t at = i;
        for (; at > 0 && choices[at - 1].step_seconds > choice.step_seconds; at--) {
            choices[at] = choices[at - 1];
        }
        choices[at] = choice;
    }
}

static uint32_t search_distinct(const search *s, const search_choice *choice,
                                const pen_plan_replica *replicas) {
    uint32_t distinct = 0;
    for (uint32_t r = 0; r < choice->count; r++) {
        bool is_new = true;
        for (uint32_t q = 0; q < r && is_new; q++) {
            is_new = !search_replicas_alike(s, &replicas[q], &replicas[r]);
        }
        distinct += is_new;
    }
    return distinct;
}

// Plans a choice as it was tried, and again with more time; keeps the better.
static pen_status search_finish(search *s, search_choice *choice, pen_plan **best) {
    pen_plan_replica *replicas;
    PEN_TRY(search_list(s, choice, s->arena, &replicas));
    const double full = SEARCH_FULL_SHARE / search_distinct(s, choice, replicas);
    const double shares[] = {SEARCH_QUICK_SHARE, full};
    for (int i = 0; i < 2; i++) {
        pen_plan *plan;
        if (i == 1 && full <= SEARCH_QUICK_SHARE) continue;
        PEN_TRY(search_try(s, choice, shares[i], s->arena, &plan));
        if (plan == NULL) continue;
        if (*best == NULL || plan->step_seconds < (*best)->step_seconds) *best = plan;
    }
    return PEN_OK;
}

// Without replicas; the bound of the two is what holds for both.
static pen_status search_alone(search *s, pen_plan **best) {
    pen_plan_request request = *s->request;
    pen_placement_spec placement = *s->request->placement;
    pen_plan *plan;
    placement.replicas = 1;
    request.placement = &placement;
    const pen_status status = pen_pipeline_build(&request, s->arena, &plan);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(s->refusal, "a later one is told");
        s->refusal = status;
        return PEN_OK;
    }
    PEN_TRY(status);
    plan->lower_bound = fmin(plan->lower_bound, s->planner->lower_bound);
    *best = plan;
    return PEN_OK;
}

// Beginnings for all numbers of replicas, moves for the best of them, then plans with more time.
static pen_status search_run(search *s, pen_plan **out_plan) {
    const bool is_auto = s->request->placement->replicas == 0 && s->owner_count == 0;
    uint32_t counts[SEARCH_COUNTS];
    search_choice choices[SEARCH_COUNTS];
    const uint32_t count = search_counts(s, counts);
    *out_plan = NULL;
    search_order_devices(s);
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(search_begin(s, counts[i], &choices[i]));
    }
    search_sort(choices, count);
    for (uint32_t i = 0; i < count && i < SEARCH_IMPROVED; i++) {
        PEN_TRY(search_improve(s, &choices[i]));
    }
    search_sort(choices, count);
    if (is_auto) PEN_TRY(search_alone(s, out_plan));
    for (uint32_t i = 0; i < count && i < SEARCH_IMPROVED; i++) {
        PEN_TRY(search_finish(s, &choices[i], out_plan));
    }
    return *out_plan == NULL ? PEN_OK : pen_replica_divide(s->request, s->arena, out_plan);
}

// The plan that is found is joined in the arena of the search: it is the caller's.
pen_status pen_replica_search(const pen_plan_request *request, pen_arena *arena,
                              pen_plan **out_plan) {
    const void *field;
    pen_replica_planner *planner;
    search s = {.request = request,
                .arena = arena,
                .device_count = request->cluster->device_count,
                .lane_count = request->lanes > 1 ? request->lanes : 1};
    PEN_TRY(
        pen_replicas_check_spec(request->placement, request->cluster, s.lane_count, arena, &field));
    PEN_TRY(pen_replicas_find_owners(request->placement, request->cluster, arena, &s.owners,
                                     &s.owner_count, &field));
    s.line_count = s.device_count - s.owner_count;
    PEN_TRY(pen_replica_planner_new(request, arena, &planner));
    s.planner = planner;
    PEN_TRY(PEN_NEW(arena, s.device_count, &s.line));
    PEN_TRY(PEN_NEW(arena, s.device_count, &s.speed));
    PEN_TRY(PEN_NEW(arena, s.device_count, &s.alike));
    const pen_status status = search_run(&s, out_plan);
    if (status != PEN_OK) return pen_status_join(status, s.refusal);
    if (*out_plan != NULL) {
        pen_status_ignore(s.refusal, "there is a plan");
        return PEN_OK;
    }
    if (s.refusal == PEN_OK) return pen_error(PEN_DOES_NOT_FIT, "no replicas fit");
    return pen_status_add_context(s.refusal, "while planning replicas");
}
