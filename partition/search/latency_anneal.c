// The energy is the finish time and a little of the time of all pieces together, which tells
// apart placements of one critical path:
//     finish + weight · total
// The weight shrinks to nothing as the search cools, for what counts in the end is the finish time.

#include "partition/search/latency_anneal.h"

#include <math.h>
#include <string.h>

#include "partition/objective/latency.h"
#include "partition/search/candidate.h"

#define LATENCY_TOTAL_WEIGHT 0.1 // of the energy, at first
#define LATENCY_LOOK_STEPS 16

typedef struct latency_anneal {
    pen_candidate candidate; // its value is the finish time
    pen_latency *latency;
    double total;
    double weight;
    double finish_new; // of the change that is weighed
    double total_new;
} latency_anneal;

// ---- choices

// From `group` on along the line, and onward, every border between two devices moves ahead by
// `size` groups, or less where the run behind it is not twice as long: where all memory is full,
// nothing else makes room.
static void latency_shift(latency_anneal *anneal, uint32_t group, uint32_t size) {
    pen_region *region = &anneal->candidate.region;
    const uint32_t *line = region->line, *device_of_group = region->device_of_group;
    const uint32_t count = anneal->candidate.problem->group_count;
    const uint32_t step = pen_random_next(region->random) & 1 ? 1 : UINT32_MAX;
    const uint32_t length = 1 + pen_region_below(region, count);
    for (uint32_t i = 0, at = region->line_at[group]; i < length; i++, at -= step) {
        const uint32_t next = at - step;
        if (at >= count || next >= count) return;
        const uint32_t home = device_of_group[line[at]], device = device_of_group[line[next]];
        if (home == device) continue;
        uint32_t run = 0;
        for (uint32_t j = at; j < count && run < 2 * size; j += step, run++) {
            if (device_of_group[line[j]] != home) break;
        }
        if (run < 2 * size || region->count + size > PEN_REGION_LIMIT) continue;
        for (uint32_t j = 0; j < size; j++)
            pen_region_add(region, line[at + j * step], device);
    }
}

// Of 16 moves, six are of one group, two each of a cluster and of two groups that exchange their
// devices, five of stretches, and one is a shift.
static bool latency_propose(void *search) {
    latency_anneal *anneal = search;
    pen_region *region = &anneal->candidate.region;
    const uint32_t count = anneal->candidate.problem->group_count;
    const uint32_t group = pen_region_below(region, count);
    const uint32_t home = region->device_of_group[group];
    const uint32_t device = pen_region_device(region, group);
    pen_region_clear(region);
    if (device == home) return false;
    const uint32_t size = 2 + pen_region_below(region, 1u << (1 + pen_region_below(region, 5)));
    const uint32_t kind = pen_region_below(region, 16);
    if (kind < 6) {
        pen_region_add(region, group, device);
    } else if (kind < 8) {
        pen_region_add_cluster(region, group, device, size);
    } else if (kind < 10) {
        const uint32_t other = pen_region_below(region, count);
        if (region->device_of_group[other] == home) return false;
        pen_region_add(region, group, region->device_of_group[other]);
        pen_region_add(region, other, home);
    } else if (kind < 15) {
        pen_region_add_stretch(region, group, device, size, 0);
    } else {
        latency_shift(anneal, pen_region_below(region, count), size / 2);
    }
    return region->count > 0;
}

// ---- the run

static void latency_refuse(void *search) {
    latency_anneal *anneal = search;
    const pen_region *region = &anneal->candidate.region;
    for (uint32_t i = region->count; i-- > 0;)
        pen_candidate_put(&anneal->candidate, region->group[i], region->home[i]);
}

static double latency_weigh(void *search, double bearable) {
    latency_anneal *anneal = search;
    pen_candidate *candidate = &anneal->candidate;
    const pen_region *region = &candidate->region;
    (void)bearable;
    for (uint32_t i = 0; i < region->count; i++)
        pen_candidate_put(candidate, region->group[i], region->goal[i]);
    if (!pen_candidate_is_right(candidate)) return INFINITY;
    anneal->finish_new =
        pen_latency_evaluate(anneal->latency, candidate->device_of_node, &anneal->total_new);
    const double loss = anneal->finish_new - candidate->value +
                        anneal->weight * (anneal->total_new - anneal->total);
    return loss / candidate->best_value;
}

static void latency_keep(void *search) {
    latency_anneal *anneal = search;
    anneal->candidate.value = anneal->finish_new;
    anneal->total = anneal->total_new;
    pen_candidate_note(&anneal->candidate, anneal->finish_new);
}

static bool latency_look(void *search, uint64_t step) {
    latency_anneal *anneal = search;
    pen_annealing *annealing = &anneal->candidate.annealing;
    const double done = (double)step / (double)annealing->options->step_count;
    if (!pen_annealing_cool(annealing, done, anneal->candidate.best_value)) return false;
    anneal->weight = LATENCY_TOTAL_WEIGHT * (1.0 - annealing->progress);
    return true;
}

static const pen_annealing_objective latency_objective = {.look_steps = LATENCY_LOOK_STEPS,
                                                          .look = latency_look,
                                                          .propose = latency_propose,
                                                          .weigh = latency_weigh,
                                                          .keep = latency_keep,
                                                          .refuse = latency_refuse};

// Every move is judged by the whole evaluation, as a longest path has no small changes.
pen_status pen_latency_anneal(const pen_problem *problem, const uint32_t *line,
                              const pen_annealing_options *options, uint32_t *device_of_group,
                              double *out_value) {
    latency_anneal anneal = {0};
    pen_candidate *candidate = &anneal.candidate;
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_annealing_begin(&candidate->annealing, "latency search", options);
    pen_status status = pen_candidate_init(candidate, problem, line, device_of_group, arena);
    if (status == PEN_OK) status = pen_latency_new(problem, arena, &anneal.latency);
    if (status == PEN_OK) {
        candidate->region.ties = PEN_REGION_EDGES;
        candidate->value =
            pen_latency_evaluate(anneal.latency, candidate->device_of_node, &anneal.total);
        pen_candidate_note(candidate, candidate->value);
        if (problem->group_count > 0 && problem->given.device_count > 1) {
            pen_annealing_run(&candidate->annealing, &latency_objective, &anneal);
        }
        memcpy(device_of_group, candidate->best, problem->group_count * sizeof *device_of_group);
        *out_value = candidate->best_value;
    }
    pen_arena_destroy(arena);
    return status;
}
