#include "partition/plan/memory_segments.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "partition/search/linear_orders.h"

#define SEGMENTS_LINES 4
#define SEGMENTS_MEASURES 16384  // kept, a power of two
#define SEGMENTS_PRECISION 1.004 // of the fullness that is searched for
#define SEGMENTS_FULLNESS_MOST 1e9

typedef struct segment_measure {
    uint32_t first;
    uint32_t end; // 0: nothing is kept here
    double bytes;
} segment_measure;

typedef struct segment_search {
    const pen_planner *planner;
    const pen_problem *problem;
    uint32_t used_least; // devices
    uint32_t used_most;
    double deadline;
    pen_arena *scratch;
    uint32_t *line;            // [group_count]
    uint32_t *stage_of_node;   // [node_count of the graph] 1; 0 in the segment that is measured
    segment_measure *measures; // [SEGMENTS_MEASURES] of the line
    uint32_t *devices;         // [device_count] in the order in which they get segments
    uint32_t *length;          // [device_count] of the segments of the last filling
    uint32_t *filled;          // [group_count] devices
    uint32_t *best;            // [group_count]
    double fullness;           // of the best
} segment_search;

static double segment_limit(const segment_search *search, uint32_t device) {
    const pen_cluster *cluster = search->planner->request->cluster;
    const double own = (double)cluster->devices[device].own_bytes;
    return fmax(search->planner->bytes_limit[device] - own, 1.0);
}

static void segment_mark(segment_search *search, uint32_t first, uint32_t end, uint32_t stage) {
    const pen_problem *problem = search->problem;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t g = search->line[i];
        for (uint32_t m = problem->members.first[g]; m < problem->members.first[g + 1]; m++) {
            const uint32_t node = problem->members.ids[m];
            if (node < search->planner->owners->node_count) search->stage_of_node[node] = stage;
        }
    }
}

// What places [first, end) of the line take as one stage with one microbatch in flight.
static pen_status segment_bytes(segment_search *search, uint32_t first, uint32_t end,
                                double *out_bytes) {
    const uint32_t key = (first * 2654435761u + end * 40503u) & (SEGMENTS_MEASURES - 1);
    segment_measure *measure = &search->measures[key];
    if (measure->first != first || measure->end != end) {
        uint32_t device_of_stage[2] = {0, 1}, in_flight[2] = {1, 1};
        const pen_stage_split split = {.stage_count = 1,
                                       .device_of_stage = device_of_stage,
                                       .stage_of_node = search->stage_of_node};
        pen_stage_memory *memory;
        pen_arena_reset(search->scratch);
        segment_mark(search, first, end, 0);
        PEN_TRY(pen_memory_model_stages(search->planner->request->planned, search->planner->owners,
                                        &split, search->scratch, &memory));
        segment_mark(search, first, end, 1);
        const pen_device_memory sum = pen_memory_model_device(memory, &split, in_flight, 0);
        *measure = (segment_measure){first, end, (double)sum.total};
    }
    *out_bytes = measure->bytes;
    return PEN_OK;
}

// Finds how far the segment of `device` that begins at `first` reaches, `most` at most: about where
// it takes `bytes`. `guess` is where the last one ended.
static pen_status segment_reach(segment_search *search, uint32_t first, uint32_t most,
                                uint32_t guess, double bytes, uint32_t *out_end) {
    uint32_t low = first, high = most + 1; // reached, and beyond reach
    uint32_t step = 1;
    uint32_t at = guess < first + 1 ? first + 1 : guess > most ? most : guess;
    while (low + 1 < high) {
        double taken;
        PEN_TRY(segment_bytes(search, first, at, &taken));
        if (taken <= bytes) {
            low = at;
        } else {
            high = at;
        }
        // away from the guess in growing steps, then by halves
        if (high == most + 1 && low > first) {
            at = most - low > step ? low + step : most;
        } else if (low == first && high <= most) {
            at = high - first > step + 1 ? high - step : first + 1;
        } else {
            at = low + (high - low) / 2;
        }
        step *= 2;
    }
    *out_end = low;
    return PEN_OK;
}

// Gives the devices, in order, as much of the line as a share `fullness` of their memory takes.
static pen_status segment_fill(segment_search *search, double fullness, bool *out_is_filled) {
    const pen_problem *problem = search->problem;
    const uint32_t count = problem->group_count;
    uint32_t at = 0, used = 0;
    for (uint32_t i = 0; i < problem->given.device_count && at < count; i++) {
        const uint32_t device = search->devices[i];
        if (used == search->used_most) break;
        const uint32_t others = search->used_least > used + 1 ? search->used_least - used - 1 : 0;
        uint32_t most = at;
        while (most + others < count && pen_problem_allows(problem, search->line[most], device)) {
            most++;
        }
        if (most == at) continue;
        uint32_t end;
        PEN_TRY(segment_reach(search, at, most, at + search->length[i],
                              fullness * segment_limit(search, device), &end));
        search->length[i] = end - at;
        if (end > at) used += 1;
        for (; at < end; at++)
            search->filled[search->line[at]] = device;
    }
    *out_is_filled = at == count && used >= search->used_least;
    return PEN_OK;
}

static void segment_keep(segment_search *search, double fullness) {
    search->fullness = fullness;
    memcpy(search->best, search->filled, search->problem->group_count * sizeof *search->best);
}

static bool segment_is_done(const segment_search *search) {
    return search->fullness <= 1.0 ||
           (search->fullness < INFINITY && pen_clock_seconds() >= search->deadline);
}

// Cuts the line for the devices in their order: as it fits, else with the least fullness.
static pen_status segment_cut(segment_search *search) {
    bool is_filled;
    double low = 1.0, high = search->fullness;
    PEN_TRY(segment_fill(search, 1.0, &is_filled));
    if (is_filled) {
        segment_keep(search, 1.0);
        return PEN_OK;
    }
    while (high / low > SEGMENTS_PRECISION && low < SEGMENTS_FULLNESS_MOST) {
        if (segment_is_done(search)) return PEN_OK;
        const double tried = high == INFINITY ? 2.0 * low : sqrt(low * high);
        PEN_TRY(segment_fill(search, tried, &is_filled));
        if (is_filled) {
            segment_keep(search, tried);
            high = tried;
        } else {
            low = tried;
        }
    }
    return PEN_OK;
}

// Everything on one device.
static pen_status segment_try_single(segment_search *search) {
    const pen_problem *problem = search->problem;
    const uint32_t count = problem->group_count;
    double bytes;
    if (search->used_least > 1) return PEN_OK;
    PEN_TRY(segment_bytes(search, 0, count, &bytes));
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        const double fullness = bytes / segment_limit(search, d);
        bool is_allowed = true;
        for (uint32_t g = 0; g < count && is_allowed; g++)
            is_allowed = pen_problem_allows(problem, g, d);
        if (!is_allowed || fullness >= search->fullness) continue;
        for (uint32_t g = 0; g < count; g++)
            search->filled[g] = d;
        segment_keep(search, fullness);
    }
    return PEN_OK;
}

typedef enum segment_order {
    SEGMENT_ORDER_GIVEN,
    SEGMENT_ORDER_REVERSED,
    SEGMENT_ORDER_LARGEST_FIRST,
    SEGMENT_ORDER_LARGEST_LAST,
    SEGMENT_ORDER_COUNT
} segment_order;

// Whether device `a` is before device `b`.
static bool segment_is_before(const segment_search *search, segment_order order, uint32_t a,
                              uint32_t b) {
    const double left = segment_limit(search, a), right = segment_limit(search, b);
    if (order == SEGMENT_ORDER_REVERSED) return a > b;
    if (order == SEGMENT_ORDER_LARGEST_FIRST && left != right) return left > right;
    if (order == SEGMENT_ORDER_LARGEST_LAST && left != right) return left < right;
    return a < b;
}

// Sorts the devices; false when this is the order before.
static bool segment_sort(segment_search *search, segment_order order) {
    bool is_other = false;
    for (uint32_t i = 0; i < search->problem->given.device_count; i++) {
        const uint32_t device = i;
        uint32_t at = i;
        for (; at > 0 && segment_is_before(search, order, device, search->devices[at - 1]); at--)
            search->devices[at] = search->devices[at - 1];
        search->devices[at] = device;
    }
    for (uint32_t i = 0; i < search->problem->given.device_count && !is_other; i++)
        is_other = search->devices[i] != i;
    return is_other || order == SEGMENT_ORDER_GIVEN;
}

static pen_status segment_search_run(segment_search *search) {
    for (uint32_t variant = 0; variant < SEGMENTS_LINES; variant++) {
        pen_arena_reset(search->scratch);
        PEN_TRY(pen_linear_order(search->problem, 0, variant, search->scratch, search->line));
        memset(search->measures, 0, SEGMENTS_MEASURES * sizeof *search->measures);
        if (variant == 0) PEN_TRY(segment_try_single(search));
        for (int order = 0; order < SEGMENT_ORDER_COUNT; order++) {
            if (segment_is_done(search)) return PEN_OK;
            if (!segment_sort(search, (segment_order)order)) continue;
            PEN_TRY(segment_cut(search));
        }
    }
    return PEN_OK;
}

// Looks for placements along a line that take little memory by the exact model, where searches by
// the linear one found none that fits.
pen_status pen_memory_segments_find(const pen_planner *planner, const pen_problem *problem,
                                    double deadline, pen_arena *arena, uint32_t *device_of_group,
                                    double *out_fullness) {
    const pen_constraints *constraints = &planner->request->placement->constraints;
    const uint32_t device_count = problem->given.device_count;
    segment_search search = {.planner = planner,
                             .problem = problem,
                             .used_least = (uint32_t)constraints->stages.minimum,
                             .used_most = (uint32_t)constraints->stages.maximum,
                             .deadline = deadline,
                             .best = device_of_group,
                             .fullness = INFINITY};
    if (search.used_most == 0) search.used_most = device_count;
    PEN_TRY(pen_arena_create_within(arena, &search.scratch));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search.line));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &search.filled));
    PEN_TRY(PEN_NEW(arena, planner->owners->node_count, &search.stage_of_node));
    PEN_TRY(PEN_NEW(arena, SEGMENTS_MEASURES, &search.measures));
    PEN_TRY(PEN_NEW(arena, device_count, &search.devices));
    PEN_TRY(PEN_NEW(arena, device_count, &search.length));
    for (uint32_t n = 0; n < planner->owners->node_count; n++)
        search.stage_of_node[n] = 1;
    PEN_TRY(segment_search_run(&search));
    *out_fullness = search.fullness;
    return PEN_OK;
}
