#include "partition/search/objective_anneal.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "partition/objective/reader_counts.h"
#include "partition/objective/step_time.h"

#define JUDGED_REGION_LIMIT 256
#define JUDGED_PASSED_LIMIT 512 // groups of other devices between those of a stretch
#define JUDGED_LOOK_TRAFFIC 256 // steps between two looks at the clock
#define JUDGED_LOOK_STEP 4
#define JUDGED_REFRESH_STEPS 65536 // between two sums of traffic anew
#define JUDGED_MISFIT 1e6          // times the crowding: value of what no schedule fits

// Nominal times, a third above those of a common machine. A step takes the first two; weighing a
// step time takes those of stages besides, weighing traffic that of ties.
#define JUDGED_STEP_SECONDS 120e-9
#define JUDGED_GROUP_SECONDS 100e-9 // for each group moved
#define JUDGED_TIE_SECONDS 15e-9    // for each output that a group makes or reads, on average
#define JUDGED_STAGES_SECONDS 3e-6
#define JUDGED_PART_SECONDS 12e-9 // for each node and edge
#define JUDGED_TASK_SECONDS 80e-9 // for each stage, microbatch and kind of task
#define JUDGED_TASK_KINDS 3

typedef struct judged_search {
    const pen_problem *problem;
    const uint32_t *line;
    uint32_t *line_at; // [group_count]
    uint32_t *device_of_group;
    uint32_t *device_of_node;  // [node_count], for step time
    pen_step_time *step;       // or NULL
    const pen_problem *loads;  // the problem as throughput, for step time
    double *work;              // [device_count] compute of a step, likewise: no step takes less
    pen_reader_counts readers; // for traffic
    double traffic;
    double *bytes;         // [device_count]
    uint32_t *group_total; // [device_count]
    uint32_t used_count;
    double *rank; // [device_count] order of devices, when contiguous
    uint32_t region[JUDGED_REGION_LIMIT];
    uint32_t home[JUDGED_REGION_LIMIT];
    uint32_t region_count;
    uint32_t ranked[2];  // devices whose ranks this step changed,
    double rank_kept[2]; // and what they were
    uint32_t ranked_count;
    uint32_t *best;
    double best_value;       // INFINITY until there is one that fits
    double value;            // of the placement at hand
    double seconds;          // nominal time of all steps so far
    double seconds_weighing; // of one that weighs, but for its stages
    uint64_t random;
    pen_status status;
} judged_search;

static uint32_t judged_random(judged_search *search) { // xorshift64*
    search->random ^= search->random >> 12;
    search->random ^= search->random << 25;
    search->random ^= search->random >> 27;
    return (uint32_t)((search->random * 0x2545f4914f6cdd1du) >> 32);
}

static uint32_t judged_below(judged_search *search, uint32_t limit) {
    return (uint32_t)(((uint64_t)judged_random(search) * limit) >> 32);
}

// ---- the placement at hand

// What moving `group` does to the traffic: its own outputs, then what it reads.
static void judged_move_traffic(judged_search *search, uint32_t group, uint32_t from, uint32_t to) {
    const pen_problem *problem = search->problem;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        const double cost = problem->output_cost[o];
        if (pen_reader_counts_get(&search->readers, o, from) > 0) search->traffic += cost;
        if (pen_reader_counts_get(&search->readers, o, to) > 0) search->traffic -= cost;
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t home = search->device_of_group[problem->output_owner[o]];
        const double cost = problem->output_cost[o];
        const bool ends = pen_reader_counts_remove(&search->readers, o, from) == 0;
        const bool begins = pen_reader_counts_add(&search->readers, o, to) == 0;
        if (ends && from != home) search->traffic -= cost;
        if (begins && to != home) search->traffic += cost;
    }
}

// What `group` computes on `device` in a step.
static double judged_work(const judged_search *search, uint32_t group, uint32_t device) {
    return pen_problem_compute(search->loads, group, device) *
           search->problem->given.microbatch_count;
}

static void judged_put(judged_search *search, uint32_t group, uint32_t device) {
    const pen_problem *problem = search->problem;
    const uint32_t from = search->device_of_group[group];
    search->bytes[from] -= pen_problem_bytes(problem, group, from);
    search->bytes[device] += pen_problem_bytes(problem, group, device);
    if (--search->group_total[from] == 0) search->used_count -= 1;
    if (search->group_total[device]++ == 0) search->used_count += 1;
    if (search->step == NULL) {
        judged_move_traffic(search, group, from, device);
        search->device_of_group[group] = device;
        return;
    }
    search->device_of_group[group] = device;
    search->work[from] -= judged_work(search, group, from);
    search->work[device] += judged_work(search, group, device);
    for (uint32_t m = problem->members.first[group]; m < problem->members.first[group + 1]; m++)
        search->device_of_node[problem->members.ids[m]] = device;
}

// How full of stages the fullest device is, when no schedule fits: what to make smaller first.
static double judged_crowding(judged_search *search) {
    const pen_stage_graph *graph;
    double most = 0.0;
    search->seconds += search->seconds_weighing;
    search->status = pen_step_time_stages(search->step, search->device_of_node, &graph, NULL);
    if (search->status != PEN_OK) return INFINITY;
    const uint32_t in_flight =
        graph->microbatch_count < search->used_count ? graph->microbatch_count : search->used_count;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        const double bytes =
            stage->fixed_bytes + stage->workspace_bytes + stage->activation_bytes * in_flight;
        most = fmax(most, bytes / fmax(graph->bytes_limit[stage->device], 1.0));
    }
    return most;
}

// The value of the placement at hand, and whether it fits.
static double judged_evaluate(judged_search *search, bool *out_fits) {
    const pen_step_prediction *prediction;
    *out_fits = true;
    if (search->step == NULL) return search->traffic;
    const pen_status status =
        pen_step_time_evaluate(search->step, search->device_of_node, &prediction);
    if (status == PEN_OK) return prediction->step_seconds;
    *out_fits = false;
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) {
        search->status = status;
        return INFINITY;
    }
    pen_status_ignore(status, "the search goes on from what does not fit");
    return JUDGED_MISFIT * (1.0 + judged_crowding(search));
}

static void judged_sum_traffic(judged_search *search) {
    const pen_problem *problem = search->problem;
    search->traffic = 0.0;
    for (uint32_t o = 0; o < problem->output_count; o++) {
        const uint32_t home = search->device_of_group[problem->output_owner[o]];
        uint32_t cursor = 0, d;
        while (pen_reader_counts_next(&search->readers, o, &cursor, &d)) {
            if (d != home) search->traffic += problem->output_cost[o];
        }
    }
}

static void judged_rank(judged_search *search, uint32_t *scratch) {
    if (!search->problem->given.is_contiguous) return;
    pen_rank_devices(search->problem, search->device_of_group, scratch);
    for (uint32_t d = 0; d < search->problem->given.device_count; d++)
        search->rank[d] = scratch[d];
}

static void judged_set_rank(judged_search *search, uint32_t device, double rank) {
    search->ranked[search->ranked_count] = device;
    search->rank_kept[search->ranked_count++] = search->rank[device];
    search->rank[device] = rank;
}

// Gives an empty device a place beside that of `beside`.
static void judged_rank_beside(judged_search *search, uint32_t device, uint32_t beside) {
    const double here = search->rank[beside];
    const bool is_behind = judged_random(search) & 1;
    double next = is_behind ? here + 2.0 : here - 2.0;
    for (uint32_t d = 0; d < search->problem->given.device_count; d++) {
        const double rank = search->rank[d];
        if (search->group_total[d] == 0) continue;
        if (is_behind ? rank > here && rank < next : rank < here && rank > next) next = rank;
    }
    judged_set_rank(search, device, (here + next) / 2.0);
}

// Whether the region's groups may be where they are now.
static bool judged_is_right(const judged_search *search) {
    const pen_problem *problem = search->problem;
    const pen_problem_given *given = &problem->given;
    if (search->used_count < given->devices_used_minimum ||
        (given->devices_used_maximum > 0 && search->used_count > given->devices_used_maximum)) {
        return false;
    }
    for (uint32_t i = 0; i < search->region_count; i++) {
        const uint32_t g = search->region[i], d = search->device_of_group[g];
        if (!pen_problem_allows(problem, g, d)) return false;
        if (search->bytes[d] > pen_problem_bytes_limit(problem, d)) return false;
        if (!given->is_contiguous) continue;
        for (uint32_t e = problem->before.first[g]; e < problem->before.first[g + 1]; e++) {
            const uint32_t other = search->device_of_group[problem->before.ids[e]];
            if (other != d && search->rank[other] >= search->rank[d]) return false;
        }
        for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++) {
            const uint32_t other = search->device_of_group[problem->after.ids[e]];
            if (other != d && search->rank[other] <= search->rank[d]) return false;
        }
    }
    return true;
}

// ---- choices: each fills the region and moves its groups

static void judged_join(judged_search *search, uint32_t group, uint32_t device) {
    search->region[search->region_count] = group;
    search->home[search->region_count++] = search->device_of_group[group];
    judged_put(search, group, device);
}

// A group that an output ties to `group`, or itself.
static uint32_t judged_neighbour(judged_search *search, uint32_t group) {
    const pen_problem *problem = search->problem;
    const uint32_t own_count = problem->own_first[group + 1] - problem->own_first[group];
    const uint32_t read_count = problem->reads.first[group + 1] - problem->reads.first[group];
    if (own_count + read_count == 0) return group;
    const uint32_t i = judged_below(search, own_count + read_count);
    uint32_t output;
    if (i < own_count) {
        output = problem->own_first[group] + i;
    } else {
        output = problem->reads.ids[problem->reads.first[group] + i - own_count];
        if (judged_random(search) & 3) return problem->output_owner[output];
    }
    const uint32_t first = problem->readers.first[output];
    return problem->readers
        .ids[first + judged_below(search, problem->readers.first[output + 1] - first)];
}

static void judged_move_stretch(judged_search *search, uint32_t group, uint32_t device,
                                uint32_t size) {
    const uint32_t home = search->device_of_group[group];
    const uint32_t step = judged_random(search) & 1 ? 1 : UINT32_MAX;
    uint32_t passed = 0; // groups of other devices
    for (uint32_t at = search->line_at[group];
         at < search->problem->group_count && search->region_count < size; at += step) {
        const uint32_t next = search->line[at];
        if (search->device_of_group[next] == home) {
            judged_join(search, next, device);
        } else if (!search->problem->given.is_contiguous || ++passed > JUDGED_PASSED_LIMIT) {
            break;
        }
    }
}

static void judged_move_cluster(judged_search *search, uint32_t group, uint32_t device,
                                uint32_t size) {
    const uint32_t home = search->device_of_group[group];
    judged_join(search, group, device);
    for (uint32_t tries = 0; tries < 3 * size && search->region_count < size; tries++) {
        const uint32_t from = search->region[judged_below(search, search->region_count)];
        const uint32_t next = judged_neighbour(search, from);
        if (search->device_of_group[next] == home) judged_join(search, next, device);
    }
}

static void judged_swap(judged_search *search, uint32_t group, uint32_t other) {
    const uint32_t here = search->device_of_group[group], there = search->device_of_group[other];
    judged_join(search, group, there);
    judged_join(search, other, here);
}

// Exchanges all groups of two devices, and their places in the order but where one was just given
// a place. False when there are too many groups.
static bool judged_exchange(judged_search *search, uint32_t device, uint32_t other) {
    const uint32_t count = search->problem->group_count;
    if (search->group_total[device] + search->group_total[other] > JUDGED_REGION_LIMIT) {
        return false;
    }
    for (uint32_t g = 0; g < count; g++) {
        const uint32_t d = search->device_of_group[g];
        if (d == device) judged_join(search, g, other);
        if (d == other) judged_join(search, g, device);
    }
    if (search->problem->given.is_contiguous && search->ranked_count == 0) {
        const double rank = search->rank[device];
        judged_set_rank(search, device, search->rank[other]);
        judged_set_rank(search, other, rank);
    }
    return true;
}

static uint32_t judged_choose_device(judged_search *search, uint32_t group) {
    const uint32_t neighbour = judged_neighbour(search, group);
    if (judged_random(search) & 3) return search->device_of_group[neighbour];
    return judged_below(search, search->problem->given.device_count);
}

// Returns whether the region is worth weighing; what was moved is in it in any case.
static bool judged_choose(judged_search *search) {
    const uint32_t group = judged_below(search, search->problem->group_count);
    const uint32_t home = search->device_of_group[group];
    const uint32_t device = judged_choose_device(search, group);
    const uint32_t size = 2 + judged_below(search, 1u << (1 + judged_below(search, 7)));
    search->region_count = 0;
    search->ranked_count = 0;
    if (device == home) return false;
    if (search->problem->given.is_contiguous && search->group_total[device] == 0) {
        judged_rank_beside(search, device, home);
    }
    switch (judged_below(search, 16)) {
    case 0: {
        const uint32_t other = judged_below(search, search->problem->group_count);
        if (search->device_of_group[other] == home) return false;
        judged_swap(search, group, other);
        return true;
    }
    case 1:
        return judged_exchange(search, home, device);
    case 2: // all of it
        judged_move_stretch(search, group, device, JUDGED_REGION_LIMIT);
        return true;
    case 3:
    case 4:
    case 5:
        judged_move_cluster(search, group, device, 1);
        return true;
    case 6:
    case 7:
    case 8:
        judged_move_cluster(search, group, device, size < JUDGED_REGION_LIMIT ? size : 1);
        return true;
    default:
        judged_move_stretch(search, group, device, size);
        return true;
    }
}

// ---- the run

static void judged_take_back(judged_search *search) {
    for (uint32_t i = search->region_count; i-- > 0;)
        judged_put(search, search->region[i], search->home[i]);
    for (uint32_t i = search->ranked_count; i-- > 0;)
        search->rank[search->ranked[i]] = search->rank_kept[i];
}

static void judged_note(judged_search *search, double value) {
    if (value >= search->best_value) return;
    search->best_value = value;
    memcpy(search->best, search->device_of_group,
           search->problem->group_count * sizeof *search->best);
}

// Whether the devices of the region have more to compute than `limit`.
static bool judged_is_overworked(const judged_search *search, double limit) {
    for (uint32_t i = 0; search->step != NULL && i < search->region_count; i++) {
        if (search->work[search->device_of_group[search->region[i]]] > limit) return true;
    }
    return false;
}

// Takes note of what weighing the placement at hand cost.
static void judged_charge(judged_search *search) {
    search->seconds += search->seconds_weighing;
    if (search->step == NULL) return;
    search->seconds += JUDGED_TASK_SECONDS * JUDGED_TASK_KINDS *
                       search->problem->given.microbatch_count *
                       pen_step_time_stage_count(search->step);
}

static void judged_step(judged_search *search, double warmth) {
    const double value_before = search->value;
    const double scale = search->best_value < INFINITY ? search->best_value : value_before;
    bool is_accepted = judged_choose(search);
    search->seconds += JUDGED_STEP_SECONDS + JUDGED_GROUP_SECONDS * search->region_count;
    const double luck = (judged_random(search) + 0.5) * 0x1p-32;
    const double limit = value_before - warmth * scale * log(luck);
    is_accepted = is_accepted && !judged_is_overworked(search, limit) && judged_is_right(search);
    if (is_accepted) {
        bool fits;
        const double value = judged_evaluate(search, &fits);
        judged_charge(search);
        is_accepted = search->status == PEN_OK && value <= limit;
        if (is_accepted) search->value = value;
        if (is_accepted && fits) judged_note(search, value);
    }
    if (!is_accepted) judged_take_back(search);
}

static double judged_weighing_seconds(const pen_problem *problem) {
    const pen_problem_given *given = &problem->given;
    const uint32_t groups = problem->group_count > 0 ? problem->group_count : 1;
    const double ties = problem->output_count + problem->reads.first[problem->group_count];
    if (given->objective == PEN_OBJECTIVE_TRAFFIC) return JUDGED_TIE_SECONDS * ties / groups;
    return JUDGED_STAGES_SECONDS +
           JUDGED_PART_SECONDS *
               ((double)given->node_count + problem->successors.first[given->node_count]);
}

static pen_status judged_begin(judged_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    const uint32_t device_count = problem->given.device_count;
    uint32_t *rank;
    bool fits;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search->line_at));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search->best));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search->device_of_node));
    PEN_TRY(PEN_NEW(arena, device_count, &search->bytes));
    PEN_TRY(PEN_NEW(arena, device_count, &search->group_total));
    PEN_TRY(PEN_NEW(arena, device_count, &search->rank));
    PEN_TRY(PEN_NEW(arena, device_count, &rank));
    if (problem->given.objective == PEN_OBJECTIVE_STEP_TIME) {
        PEN_TRY(pen_step_time_new(problem, arena, &search->step));
        PEN_TRY(pen_problem_as_throughput(problem, arena, &search->loads));
        PEN_TRY(PEN_NEW(arena, device_count, &search->work));
    } else {
        PEN_TRY(pen_reader_counts_init(&search->readers, problem, PEN_READER_COUNTS_TABLE_LIMIT,
                                       arena));
        pen_reader_counts_clear(&search->readers);
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t d = search->device_of_group[g];
        search->line_at[search->line[g]] = g;
        search->best[g] = d;
        search->bytes[d] += pen_problem_bytes(problem, g, d);
        if (search->group_total[d]++ == 0) search->used_count += 1;
        if (search->step != NULL) search->work[d] += judged_work(search, g, d);
        for (uint32_t m = problem->members.first[g]; m < problem->members.first[g + 1]; m++)
            search->device_of_node[problem->members.ids[m]] = d;
    }
    for (uint32_t o = 0; search->step == NULL && o < problem->output_count; o++) {
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            pen_reader_counts_add(&search->readers, o,
                                  search->device_of_group[problem->readers.ids[r]]);
        }
    }
    if (search->step == NULL) judged_sum_traffic(search);
    judged_rank(search, rank);
    search->seconds_weighing = judged_weighing_seconds(problem);
    search->value = judged_evaluate(search, &fits);
    if (fits) search->best_value = search->value;
    return search->status;
}

static void judged_run(judged_search *search, const pen_anneal_options *options) {
    const double planned =
        (double)options->step_count * pen_judged_search_step_seconds(search->problem);
    const double decay = log(options->warmth_last / options->warmth_first);
    const uint32_t look = search->step == NULL ? JUDGED_LOOK_TRAFFIC : JUDGED_LOOK_STEP;
    double warmth = options->warmth_first;
    for (uint64_t step = 0; search->status == PEN_OK; step++) {
        if (step % look == 0) {
            const double progress = search->seconds / planned;
            if (progress >= 1.0 || search->best_value <= options->enough) return;
            if (options->deadline < INFINITY && pen_clock_seconds() >= options->deadline) return;
            if (options->stop != NULL &&
                atomic_load_explicit(options->stop, memory_order_relaxed)) {
                return;
            }
            warmth = options->warmth_first * exp(decay * progress);
        }
        if (search->step == NULL && step % JUDGED_REFRESH_STEPS == JUDGED_REFRESH_STEPS - 1) {
            judged_sum_traffic(search); // rounding has piled up
            search->value = search->traffic;
        }
        judged_step(search, warmth);
    }
}

// The traffic that was kept up to date may have drifted.
static void judged_settle(judged_search *search, uint32_t *device_of_group) {
    const pen_problem *problem = search->problem;
    memcpy(device_of_group, search->best, problem->group_count * sizeof *search->best);
    if (search->step != NULL) return;
    pen_reader_counts_clear(&search->readers);
    for (uint32_t o = 0; o < problem->output_count; o++) {
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++)
            pen_reader_counts_add(&search->readers, o, device_of_group[problem->readers.ids[r]]);
    }
    judged_sum_traffic(search);
    search->best_value = search->traffic;
}

pen_status pen_judged_search(const pen_problem *problem, const uint32_t *line,
                             const pen_anneal_options *options, uint32_t *device_of_group,
                             double *out_value) {
    judged_search search = {.problem = problem,
                            .line = line,
                            .device_of_group = device_of_group,
                            .best_value = INFINITY};
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = judged_begin(&search, arena);
    if (status == PEN_OK) {
        search.random = pen_random_stream("judged search", options->seed, 0) | 1;
        if (problem->group_count > 0 && problem->given.device_count > 1) {
            judged_run(&search, options);
        }
        status = search.status;
        judged_settle(&search, device_of_group);
        *out_value = search.best_value;
    }
    pen_arena_destroy(arena);
    return status;
}

double pen_judged_search_step_seconds(const pen_problem *problem) {
    const pen_problem_given *given = &problem->given;
    const double seconds = judged_weighing_seconds(problem) + JUDGED_STEP_SECONDS;
    if (given->objective == PEN_OBJECTIVE_TRAFFIC) return seconds + JUDGED_GROUP_SECONDS;
    const uint32_t groups = problem->group_count;
    const double stages = given->device_count < groups ? given->device_count : groups;
    return seconds + JUDGED_TASK_SECONDS * JUDGED_TASK_KINDS * given->microbatch_count * stages;
}
