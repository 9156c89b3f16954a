// The energy is the finish time and a little of the time of all pieces together, which tells
// apart placements of one critical path:
//     finish + weight · total
// The weight shrinks to nothing as the search cools, for what counts in the end is the finish time.

#include "partition/search/latency_search.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "partition/objective/latency.h"

#define LATENCY_TOTAL_WEIGHT 0.1 // of the energy, at first
#define LATENCY_REGION_LIMIT 256
#define LATENCY_LOOK_STEPS 16

typedef struct latency_search {
    const pen_problem *problem;
    const uint32_t *line;
    uint32_t *line_at; // [group_count]
    pen_latency *latency;
    uint32_t *device_of_group;
    uint32_t *device_of_node;
    double *bytes; // [device_count]
    uint32_t region[LATENCY_REGION_LIMIT];
    uint32_t home[LATENCY_REGION_LIMIT];
    uint32_t region_count;
    uint32_t *rank; // [device_count] order of devices, when contiguous
    uint32_t *best;
    double best_finish;
    double finish; // of the placement at hand
    double total;
    double weight;
    uint64_t random;
} latency_search;

static uint32_t latency_random(latency_search *search) { // xorshift64*
    search->random ^= search->random >> 12;
    search->random ^= search->random << 25;
    search->random ^= search->random >> 27;
    return (uint32_t)((search->random * 0x2545f4914f6cdd1du) >> 32);
}

static uint32_t latency_below(latency_search *search, uint32_t limit) {
    return (uint32_t)(((uint64_t)latency_random(search) * limit) >> 32);
}

static void latency_put_group(latency_search *search, uint32_t group, uint32_t device) {
    const pen_problem *problem = search->problem;
    const uint32_t from = search->device_of_group[group];
    search->bytes[from] -= pen_problem_bytes(problem, group, from);
    search->bytes[device] += pen_problem_bytes(problem, group, device);
    search->device_of_group[group] = device;
    for (uint32_t m = problem->members.first[group]; m < problem->members.first[group + 1]; m++) {
        search->device_of_node[problem->members.ids[m]] = device;
    }
}

// Whether the region's groups may be where they are now.
static bool latency_is_right(const latency_search *search) {
    const pen_problem *problem = search->problem;
    for (uint32_t i = 0; i < search->region_count; i++) {
        const uint32_t g = search->region[i], d = search->device_of_group[g];
        if (!pen_problem_allows(problem, g, d)) return false;
        if (search->bytes[d] > pen_problem_bytes_limit(problem, d)) return false;
        if (!problem->given.is_contiguous) continue;
        const uint32_t rank = search->rank[d];
        for (uint32_t e = problem->before.first[g]; e < problem->before.first[g + 1]; e++) {
            if (search->rank[search->device_of_group[problem->before.ids[e]]] > rank) return false;
        }
        for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++) {
            if (search->rank[search->device_of_group[problem->after.ids[e]]] < rank) return false;
        }
    }
    return true;
}

// ---- choices: each fills the region and moves its groups

static void latency_join(latency_search *search, uint32_t group, uint32_t device) {
    search->region[search->region_count] = group;
    search->home[search->region_count++] = search->device_of_group[group];
    latency_put_group(search, group, device);
}

static uint32_t latency_neighbour(latency_search *search, uint32_t group) {
    const pen_problem *problem = search->problem;
    const uint32_t before = problem->before.first[group + 1] - problem->before.first[group];
    const uint32_t after = problem->after.first[group + 1] - problem->after.first[group];
    if (before + after == 0) return group;
    const uint32_t i = latency_below(search, before + after);
    return i < before ? problem->before.ids[problem->before.first[group] + i]
                      : problem->after.ids[problem->after.first[group] + i - before];
}

static void latency_move_stretch(latency_search *search, uint32_t group, uint32_t device,
                                 uint32_t size) {
    const uint32_t home = search->device_of_group[group];
    const bool is_up = latency_random(search) & 1;
    for (uint32_t at = search->line_at[group];
         at < search->problem->group_count && search->region_count < size;
         at += is_up ? 1 : UINT32_MAX) {
        const uint32_t next = search->line[at];
        if (search->device_of_group[next] != home) break;
        latency_join(search, next, device);
    }
}

static void latency_move_cluster(latency_search *search, uint32_t group, uint32_t device,
                                 uint32_t size) {
    const uint32_t home = search->device_of_group[group];
    latency_join(search, group, device);
    for (uint32_t tries = 0; tries < 3 * size && search->region_count < size; tries++) {
        const uint32_t from = search->region[latency_below(search, search->region_count)];
        const uint32_t next = latency_neighbour(search, from);
        if (search->device_of_group[next] == home && home != device) {
            latency_join(search, next, device);
        }
    }
}

static void latency_swap(latency_search *search, uint32_t group, uint32_t other) {
    const uint32_t here = search->device_of_group[group], there = search->device_of_group[other];
    latency_join(search, group, there);
    latency_join(search, other, here);
}

// From `group` on along the line, and onward, every border between two devices moves ahead by
// `size` groups, or less where the run behind it is not twice as long: where all memory is full,
// nothing else makes room.
static void latency_shift(latency_search *search, uint32_t group, uint32_t size) {
    const uint32_t *line = search->line, *device_of_group = search->device_of_group;
    const uint32_t count = search->problem->group_count;
    const bool is_up = latency_random(search) & 1;
    const uint32_t step = is_up ? 1 : UINT32_MAX;
    const uint32_t length = 1 + latency_below(search, count);
    // against the direction of the shift, so that what is read is not moved yet
    for (uint32_t i = 0, at = search->line_at[group]; i < length; i++, at -= step) {
        const uint32_t next = at - step;
        if (at >= count || next >= count) return;
        const uint32_t home = device_of_group[line[at]], device = device_of_group[line[next]];
        if (home == device) continue;
        uint32_t run = 0;
        for (uint32_t j = at; j < count && run < 2 * size; j += step, run++) {
            if (device_of_group[line[j]] != home) break;
        }
        if (run < 2 * size || search->region_count + size > LATENCY_REGION_LIMIT) continue;
        for (uint32_t j = 0; j < size; j++)
            latency_join(search, line[at + j * step], device);
    }
}

static bool latency_choose(latency_search *search) {
    const uint32_t group = latency_below(search, search->problem->group_count);
    const uint32_t neighbour = latency_neighbour(search, group);
    uint32_t device = search->device_of_group[neighbour];
    if ((latency_random(search) & 3) == 0) {
        device = latency_below(search, search->problem->given.device_count);
    }
    search->region_count = 0;
    if (device == search->device_of_group[group]) return false;
    const uint32_t size = 2 + latency_below(search, 1u << (1 + latency_below(search, 5)));
    const uint32_t kind = latency_below(search, 16);
    if (kind == 15) {
        latency_shift(search, latency_below(search, search->problem->group_count), size / 2);
        return search->region_count > 0;
    }
    switch (kind / 2) {
    case 0:
    case 1:
    case 2:
        latency_move_cluster(search, group, device, 1);
        return true;
    case 3:
        latency_move_cluster(search, group, device, size);
        return true;
    case 4: {
        const uint32_t other = latency_below(search, search->problem->group_count);
        if (search->device_of_group[other] == search->device_of_group[group]) return false;
        latency_swap(search, group, other);
        return true;
    }
    default:
        latency_move_stretch(search, group, device, size);
        return true;
    }
}

static void latency_step(latency_search *search, double warmth) {
    if (!latency_choose(search)) return;
    bool is_accepted = latency_is_right(search);
    if (is_accepted) {
        double total;
        const double finish = pen_latency_evaluate(search->latency, search->device_of_node, &total);
        const double loss = finish - search->finish + search->weight * (total - search->total);
        const double luck = (latency_random(search) + 0.5) * 0x1p-32;
        is_accepted = loss <= -warmth * search->best_finish * log(luck);
        if (is_accepted) {
            search->finish = finish;
            search->total = total;
        }
        if (is_accepted && finish < search->best_finish) {
            search->best_finish = finish;
            memcpy(search->best, search->device_of_group,
                   search->problem->group_count * sizeof *search->best);
        }
    }
    if (is_accepted) return;
    for (uint32_t i = search->region_count; i-- > 0;) {
        latency_put_group(search, search->region[i], search->home[i]);
    }
}

static pen_status latency_begin(latency_search *search, pen_arena *arena) {
    const pen_problem *problem = search->problem;
    PEN_TRY(pen_latency_new(problem, arena, &search->latency));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search->line_at));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search->best));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &search->device_of_node));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &search->bytes));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &search->rank));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        search->line_at[search->line[g]] = g;
        search->best[g] = search->device_of_group[g];
        const uint32_t d = search->device_of_group[g];
        search->bytes[d] += pen_problem_bytes(problem, g, d);
        latency_put_group(search, g, search->device_of_group[g]);
    }
    pen_rank_devices(problem, search->device_of_group, search->rank);
    search->best_finish = search->finish =
        pen_latency_evaluate(search->latency, search->device_of_node, &search->total);
    return PEN_OK;
}

static void latency_run(latency_search *search, const pen_anneal_options *options) {
    const double begin = pen_clock_seconds();
    const double span = options->deadline - begin;
    const double decay = log(options->warmth_last / options->warmth_first);
    double warmth = options->warmth_first;
    for (uint64_t step = 0; step < options->step_count; step++) {
        if (step % LATENCY_LOOK_STEPS == 0) {
            double progress = (double)step / (double)options->step_count;
            if (options->deadline < INFINITY) {
                const double spent = span > 0 ? (pen_clock_seconds() - begin) / span : 1.0;
                if (!options->is_counted || spent >= 1.0) progress = fmax(progress, spent);
            }
            if (progress >= 1.0 || search->best_finish <= options->enough) return;
            if (options->stop != NULL &&
                atomic_load_explicit(options->stop, memory_order_relaxed)) {
                return;
            }
            warmth = options->warmth_first * exp(decay * progress);
            search->weight = LATENCY_TOTAL_WEIGHT * (1.0 - progress);
        }
        latency_step(search, warmth);
    }
}

pen_status pen_latency_search(const pen_problem *problem, const uint32_t *line,
                              const pen_anneal_options *options, uint32_t *device_of_group,
                              double *out_value) {
    latency_search search = {.problem = problem, .line = line, .device_of_group = device_of_group};
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = latency_begin(&search, arena);
    if (status == PEN_OK) {
        search.random = pen_random_stream("latency search", options->seed, 0) | 1;
        if (problem->group_count > 0 && problem->given.device_count > 1) {
            latency_run(&search, options);
        }
        memcpy(device_of_group, search.best, problem->group_count * sizeof *search.best);
        *out_value = search.best_finish;
    }
    pen_arena_destroy(arena);
    return status;
}
