// METIS: groups weigh what they cost and hold, edges what is moved; parts are sized by the speed of
// their devices. METIS knows nothing of an order of devices, charges an output for each cut edge,
// and balances rather than limits memory, so its parts are repaired and the cut is refined after.
//
// METIS may raise signals and reseeds rand: it runs on the planning thread, before others start.

#include "partition/strategies/metis_strategy.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <metis.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "partition/search/initial_placement.h"
#include "partition/search/large_anneal.h"
#include "partition/search/large_search.h"
#include "partition/search/linear_orders.h"
#include "partition/search/load_anneal.h"
#include "partition/strategies/strategy.h"

#define METIS_BYTES_SPREAD 1.25      // share of the bytes, over share of the work, at most
#define METIS_BYTES_LEAST 1e-9       // so that not all is 0
#define METIS_WEIGHT_TOTAL 1000000.0 // of all groups, and of all edges
#define METIS_REFINE_SHARE 0.6       // of the time limit, at so many seconds a step
#define METIS_STEP_SECONDS 0.25e-6
#define METIS_STEPS_LIMIT 1000000 // of one try
#define METIS_WARMTH_FIRST 0.02
#define METIS_WARMTH_LAST 0.0003
#define METIS_TRIES_SMALL 9
#define METIS_SMALL 5000 // groups

typedef struct metis_input {
    idx_t group_count;
    idx_t constraint_count;
    idx_t part_count;
    idx_t *edge_first; // [group_count + 1]
    idx_t *edge_target;
    idx_t *edge_weight;
    idx_t *group_weight; // [group_count][constraint_count]
    real_t *share;       // [part_count][constraint_count]
    idx_t *part;         // [group_count]
} metis_input;

// A pair of groups that exchange something.
static void metis_count_edges(const pen_problem *problem, metis_input *input) {
    for (uint32_t o = 0; o < problem->output_count; o++) {
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            input->edge_first[problem->output_owner[o] + 1] += 1;
            input->edge_first[problem->readers.ids[r] + 1] += 1;
        }
    }
    for (idx_t g = 0; g < input->group_count; g++) {
        input->edge_first[g + 1] += input->edge_first[g];
    }
}

// Doubled edges are allowed: METIS adds them up as it coarsens.
static pen_status metis_fill_edges(const pen_problem *problem, pen_arena *arena,
                                   metis_input *input) {
    idx_t *filled;
    double total = 0.0;
    PEN_TRY(PEN_NEW(arena, (size_t)input->group_count, &filled));
    for (uint32_t o = 0; o < problem->output_count; o++)
        total += problem->output_cost[o];
    for (uint32_t o = 0; o < problem->output_count; o++) {
        const uint32_t owner = problem->output_owner[o];
        const double weight = 1.0 + problem->output_cost[o] / total * METIS_WEIGHT_TOTAL;
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            const uint32_t reader = problem->readers.ids[r];
            const idx_t there = input->edge_first[owner] + filled[owner]++;
            const idx_t back = input->edge_first[reader] + filled[reader]++;
            input->edge_target[there] = (idx_t)reader;
            input->edge_target[back] = (idx_t)owner;
            input->edge_weight[there] = input->edge_weight[back] = (idx_t)weight;
        }
    }
    return PEN_OK;
}

static double metis_least(const pen_problem *problem, uint32_t group) {
    double least = PEN_PROBLEM_COST_LIMIT;
    for (uint32_t k = 0; k < problem->given.kind_count; k++) {
        least = fmin(least, problem->group_compute[(size_t)k * problem->group_count + group]);
    }
    return least;
}

static void metis_fill_weights(const pen_problem *problem, metis_input *input) {
    double compute = 0.0, bytes = 0.0;
    const idx_t stride = input->constraint_count;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        compute += metis_least(problem, g);
        bytes += pen_problem_bytes(problem, g, 0);
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const double part = compute > 0.0 ? metis_least(problem, g) / compute : 0.0;
        input->group_weight[(idx_t)g * stride] = 1 + (idx_t)(part * METIS_WEIGHT_TOTAL);
        if (stride < 2) continue;
        input->group_weight[(idx_t)g * stride + 1] =
            (idx_t)(pen_problem_bytes(problem, g, 0) / bytes * METIS_WEIGHT_TOTAL);
    }
}

// Each device's share of the work is its speed: the inverse of what it would need for everything.
// Its share of the bytes is as large or, where its memory is smaller, that.
static pen_status metis_fill_shares(const pen_problem *problem, pen_arena *arena,
                                    metis_input *input) {
    const uint32_t device_count = problem->given.device_count;
    const idx_t stride = input->constraint_count;
    double *speed, *kind_time, *room, speed_total = 0.0, bytes_total = 0.0, room_total = 0.0;
    PEN_TRY(PEN_NEW(arena, device_count, &room));
    PEN_TRY(PEN_NEW(arena, device_count, &speed));
    PEN_TRY(PEN_NEW(arena, problem->given.kind_count, &kind_time));
    for (size_t i = 0; i < (size_t)problem->given.kind_count * problem->group_count; i++) {
        const double cost = problem->group_compute[i];
        if (cost < PEN_PROBLEM_COST_LIMIT) kind_time[i / problem->group_count] += cost;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        const pen_problem_device *device = &problem->given.devices[d];
        const double time = kind_time[device->kind] * device->slowness;
        speed[d] = time > 0.0 ? 1.0 / time : 0.0;
        speed_total += speed[d];
    }
    for (uint32_t g = 0; g < problem->group_count; g++)
        bytes_total += pen_problem_bytes(problem, g, 0);
    for (uint32_t d = 0; d < device_count; d++) {
        const double share = speed_total > 0.0 ? speed[d] / speed_total : 1.0 / device_count;
        room[d] = fmin(problem->given.devices[d].bytes_limit,
                       METIS_BYTES_SPREAD * share * bytes_total + METIS_BYTES_LEAST);
        room_total += room[d];
    }
    for (uint32_t d = 0; d < device_count; d++) {
        const double even = 1.0 / device_count;
        const double share = speed_total > 0.0 ? speed[d] / speed_total : even;
        input->share[(idx_t)d * stride] = (real_t)(0.999 * share + 0.001 * even);
        if (stride < 2) continue;
        input->share[(idx_t)d * stride + 1] = (real_t)(0.999 * room[d] / room_total + 0.001 * even);
    }
    return PEN_OK;
}

// Memory is a second constraint only where it may be short, because METIS balances both.
static pen_status metis_prepare(const pen_problem *problem, pen_arena *arena, metis_input *input) {
    const size_t group_count = problem->group_count;
    const size_t edge_count =
        problem->output_count == 0 ? 0 : problem->readers.first[problem->output_count];
    double bytes = 0.0;
    bool is_limited = false;
    for (uint32_t g = 0; g < problem->group_count; g++)
        bytes += pen_problem_bytes(problem, g, 0);
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        is_limited = is_limited || problem->given.devices[d].bytes_limit < bytes;
    }
    input->group_count = (idx_t)group_count;
    input->part_count = (idx_t)problem->given.device_count;
    input->constraint_count = bytes > 0.0 && is_limited ? 2 : 1;
    PEN_TRY(PEN_NEW(arena, group_count + 1, &input->edge_first));
    PEN_TRY(PEN_NEW(arena, 2 * edge_count, &input->edge_target));
    PEN_TRY(PEN_NEW(arena, 2 * edge_count, &input->edge_weight));
    PEN_TRY(PEN_NEW(arena, 2 * group_count, &input->group_weight));
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)input->part_count, &input->share));
    PEN_TRY(PEN_NEW(arena, group_count, &input->part));
    metis_count_edges(problem, input);
    PEN_TRY(metis_fill_edges(problem, arena, input));
    metis_fill_weights(problem, input);
    return metis_fill_shares(problem, arena, input);
}

// METIS prints its complaints to standard output, which is the program's: what it prints is lost.
static int metis_silence(void) {
    fflush(stdout);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int kept = nowhere >= 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    if (kept >= 0) dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0) close(nowhere);
    return kept;
}

static void metis_speak(int kept) {
    if (kept < 0) return;
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

static pen_status metis_run(metis_input *input, uint64_t seed, uint32_t variant) {
    static const real_t imbalances[] = {1.03f, 1.10f, 1.25f};
    idx_t options[METIS_NOPTIONS];
    real_t imbalance[2] = {imbalances[variant % 3], 1.25f};
    idx_t cut;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)((seed * 31 + variant) % 1000000);
    options[METIS_OPTION_NUMBERING] = 0;
    const int kept = metis_silence();
    const int result = METIS_PartGraphKway(
        &input->group_count, &input->constraint_count, input->edge_first, input->edge_target,
        input->group_weight, NULL, input->edge_weight, &input->part_count, input->share, imbalance,
        options, &cut, input->part);
    metis_speak(kept);
    if (result == METIS_OK) return PEN_OK;
    if (result == METIS_ERROR_MEMORY) return pen_error_out_of_memory();
    return pen_error(PEN_UNSUPPORTED, "METIS refuses this graph (its code %d)", result);
}

// How partitions are refined.
typedef struct metis_refine {
    const pen_problem *problem;
    const uint32_t *line;
    bool is_large;
    uint64_t seed;
    uint64_t step_count;
    double deadline;
} metis_refine;

// One partition, repaired and refined; kept when it is the best.
static pen_status metis_try(const metis_refine *refine, const metis_input *input, uint32_t try,
                            pen_arena *arena, uint32_t *out_best, double *io_value) {
    const pen_problem *problem = refine->problem;
    uint32_t *device_of_group;
    double value;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &device_of_group));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        device_of_group[g] = (uint32_t)input->part[g];
    }
    PEN_TRY(pen_initial_repair(problem, refine->line, arena, device_of_group));
    const double cooler = refine->is_large ? 0.1 : 1.0;
    const pen_annealing_options options = {.seed = refine->seed + try,
                                           .step_count = refine->step_count,
                                           .deadline = refine->deadline,
                                           .is_counted = true,
                                           .warmth_first = cooler * METIS_WARMTH_FIRST,
                                           .warmth_last = cooler * METIS_WARMTH_LAST};
    PEN_TRY((refine->is_large ? pen_large_anneal : pen_load_anneal)(problem, refine->line, &options,
                                                                    device_of_group, &value));
    if (value >= *io_value) return PEN_OK;
    *io_value = value;
    memcpy(out_best, device_of_group, problem->group_count * sizeof *out_best);
    return PEN_OK;
}

static bool metis_takes(const pen_problem *problem) {
    const uint64_t ties =
        problem->output_count == 0 ? 0 : problem->readers.first[problem->output_count];
    return problem->group_count >= 2 * problem->given.device_count && ties > 0 &&
           problem->given.device_count >= 2 && ties <= INT_MAX / 4;
}

pen_status pen_metis_partition(const pen_problem *problem, uint64_t seed, pen_arena *arena,
                               uint32_t *out_device_of_group) {
    metis_input input = {0};
    if (!metis_takes(problem)) {
        return pen_error(PEN_UNSUPPORTED, "%u groups on %u devices are nothing METIS can cut",
                         problem->group_count, problem->given.device_count);
    }
    PEN_TRY(metis_prepare(problem, arena, &input));
    PEN_TRY(metis_run(&input, seed, 0));
    for (uint32_t g = 0; g < problem->group_count; g++)
        out_device_of_group[g] = (uint32_t)input.part[g];
    return PEN_OK;
}

// METIS knows nothing of directions and links: its parts are repaired and refined, and the best try
// stays.
static pen_status metis_place(const pen_problem *problem, const pen_strategy_options *options,
                              pen_arena *arena, pen_strategy_result *out_result) {
    metis_input input = {0};
    uint32_t *line;
    double value = INFINITY;
    const double begin = pen_clock_seconds();
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    for (uint32_t g = 0; g < problem->group_count; g++)
        line[g] = g;
    if (problem->given.is_contiguous) PEN_TRY(pen_linear_order(problem, 0, 0, arena, line));
    if (!metis_takes(problem)) {
        PEN_ASSERT(problem->given.device_count > 0);
        // too small to cut (METIS leaves parts empty, or worse), or too large for its integers
        for (uint32_t g = 0; g < problem->group_count; g++) {
            out_result->device_of_group[g] = g % problem->given.device_count;
        }
        return pen_initial_repair(problem, line, arena, out_result->device_of_group);
    }
    PEN_TRY(metis_prepare(problem, arena, &input));
    const uint32_t try_count = problem->group_count <= METIS_SMALL ? METIS_TRIES_SMALL : 1;
    const bool is_large = pen_problem_is_large(problem);
    const double steps =
        METIS_REFINE_SHARE * options->time_limit_seconds / METIS_STEP_SECONDS / try_count;
    const metis_refine refine = {
        .problem = problem,
        .is_large = is_large,
        .line = line,
        .seed = options->seed,
        .step_count =
            !is_large && steps > METIS_STEPS_LIMIT ? METIS_STEPS_LIMIT : 1 + (uint64_t)steps,
        .deadline = begin + options->time_limit_seconds,
    };
    for (uint32_t i = 0; i < try_count; i++) {
        PEN_TRY(metis_run(&input, options->seed, i));
        PEN_TRY(metis_try(&refine, &input, i, arena, out_result->device_of_group, &value));
        out_result->is_cut = pen_clock_seconds() >= refine.deadline;
        if (out_result->is_cut) break;
    }
    return PEN_OK;
}

extern const pen_strategy pen_strategy_metis;
const pen_strategy pen_strategy_metis = {
    .name = "metis",
    .summary = "METIS's partition, made right and refined",
    .place = metis_place,
};

const char *pen_metis_version(void) {
#define METIS_TEXT(major, minor, patch)                                                            \
    METIS_QUOTE(major) "." METIS_QUOTE(minor) "." METIS_QUOTE(patch)
#define METIS_QUOTE(number) #number
    return METIS_TEXT(METIS_VER_MAJOR, METIS_VER_MINOR, METIS_VER_SUBMINOR);
}
