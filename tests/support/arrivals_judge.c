#include "tests/support/arrivals_judge.h"

#include <stddef.h>

// Counts again what the product counted.
typedef struct judge {
    uint32_t lanes;
    uint32_t staleness;
    uint64_t version;
    uint64_t worst;
    uint64_t sum;
    uint64_t base[PEN_ARRIVALS_LANES]; // version that each lane has
    arrivals_tally *tally;
} judge;

// A version is made of the lanes that are said to be in it.
static const char *judge_version(judge *j, const uint32_t *version, uint32_t count, uint32_t v) {
    uint32_t of = 0;
    for (uint32_t lane = 0; lane < count; lane++) {
        if (version[lane] != v) continue;
        const uint64_t staleness = j->version - j->base[lane];
        if (staleness > j->staleness) return "a gradient is too many versions behind";
        j->tally->at_the_limit += staleness == j->staleness && staleness > 0;
        j->sum += staleness;
        if (staleness > j->worst) j->worst = staleness;
        of++;
    }
    if (of == 0) return "a version of no gradient";
    j->tally->alone += of == 1;
    j->tally->together += of > 1;
    j->version += 1;
    for (uint32_t lane = 0; lane < count; lane++) {
        if (version[lane] == v) j->base[lane] = j->version;
    }
    return NULL;
}

// Of lanes that came as they came, none goes into a version before that of one that came sooner.
static const char *judge_order(const pen_arrivals_options *options, const uint32_t *version) {
    for (uint32_t place = 1; options->is_free && place < options->count; place++) {
        const uint32_t before = pen_arrivals_order_lane(options->order, place - 1);
        const uint32_t lane = pen_arrivals_order_lane(options->order, place);
        if (version[lane] < version[before]) return "a lane is applied before one that came sooner";
    }
    return NULL;
}

static const char *judge_step(judge *j, const pen_arrivals_options *options, pen_arrivals *at) {
    uint32_t version[PEN_ARRIVALS_LANES], versions;
    const uint64_t clock = at->clock;
    if (!pen_arrivals_draw(options, at, version, &versions)) return "a gradient is never applied";
    for (uint32_t lane = 0; lane < PEN_ARRIVALS_LANES; lane++) {
        const bool is_there = lane < options->count;
        if (is_there != (version[lane] < versions)) return "a lane is not applied once in a step";
    }
    for (uint32_t v = 0; v < versions; v++) {
        const char *wrong = judge_version(j, version, options->count, v);
        if (wrong != NULL) return wrong;
    }
    const char *order = judge_order(options, version);
    if (order != NULL) return order;
    for (uint32_t lane = options->count; lane < j->lanes; lane++) {
        j->base[lane] = j->version;
    }
    if (at->version != j->version) return "versions are counted wrongly";
    if (at->staleness != j->sum || at->staleness_worst != j->worst) return "staleness is";
    for (uint32_t lane = 0; lane < j->lanes; lane++) {
        if (at->base[lane] != j->base[lane]) return "a lane goes on with another version";
    }
    if (at->clock < clock) return "time goes back";
    if (at->clock > at->synchronous) return "it takes longer than if lanes waited";
    return NULL;
}

// Any order of a step's lanes.
static pen_arrivals_order judge_draw(pen_random_key key, uint32_t count) {
    uint32_t left[PEN_ARRIVALS_LANES];
    pen_arrivals_order order = 0;
    for (uint32_t lane = 0; lane < count; lane++) {
        left[lane] = lane;
    }
    for (uint32_t place = 0; place < count; place++) {
        const uint32_t rest = count - place;
        const uint32_t at = (uint32_t)pen_random_below(key, place, rest);
        order = pen_arrivals_order_add(order, place, left[at]);
        left[at] = left[rest - 1];
    }
    return order;
}

const char *arrivals_judge(uint64_t seed, arrivals_tally *tally) {
    const pen_random_key key = {seed, pen_random_stream("judge", 0, 0)};
    judge j = {.lanes = 2 + (uint32_t)pen_random_below(key, 0, PEN_ARRIVALS_LANES - 1),
               .tally = tally};
    j.staleness = (uint32_t)pen_random_below(key, 1, 2 * j.lanes);
    pen_arrivals at = {0};
    const uint64_t steps = 1 + pen_random_below(key, 2, 12);
    const bool is_free = pen_random_below(key, 3, 2) == 1;
    for (uint64_t step = 1; step <= steps; step++) {
        pen_arrivals_options options = {.seed = seed,
                                        .step = step,
                                        .lanes = j.lanes,
                                        .count = j.lanes,
                                        .staleness = j.staleness};
        if (pen_random_below(key, 10 + step, 6) == 0) {
            options.count = 1 + (uint32_t)pen_random_below(key, 100 + step, j.lanes);
            tally->short_steps += 1;
        }
        if (is_free) {
            const pen_random_key own = {seed, pen_random_stream("order", step, 0)};
            options.is_free = true;
            options.order = judge_draw(own, options.count);
            tally->free_steps += 1;
        }
        const char *wrong = judge_step(&j, &options, &at);
        if (wrong != NULL) return wrong;
    }
    return NULL;
}
