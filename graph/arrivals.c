#include "graph/arrivals.h"

#include <string.h>

#include "base/planted.h"
#include "base/random.h"
#include "base/status.h"

// ---- the decision

// Whether one more version leaves no lane that still computes too far behind. Those that were
// applied in this step need not be asked: they got a version that is newer than what the others
// have.
static bool arrivals_may_apply(const pen_arrivals_step *step) {
    const uint64_t next = step->at->version + 1;
    const uint64_t limit = (uint64_t)step->staleness + (PEN_PLANTED(one_too_stale) ? 1 : 0);
    for (uint32_t lane = 0; lane < step->lanes; lane++) {
        if (((step->waiting | step->applied) >> lane & 1) != 0) continue;
        if (next - step->at->base[lane] > limit) return false;
    }
    return true;
}

static void arrivals_apply(pen_arrivals_step *step, uint64_t tick) {
    pen_arrivals *at = step->at;
    for (uint32_t lane = 0; lane < step->lanes; lane++) {
        if ((step->waiting >> lane & 1) == 0) continue;
        const uint64_t staleness = at->version - at->base[lane];
        at->gradients += 1;
        at->staleness += staleness;
        if (staleness > at->staleness_worst) at->staleness_worst = staleness;
        at->base[lane] = at->version + (PEN_PLANTED(goes_on_with_the_old) ? 0 : 1);
        at->start[lane] = tick;
    }
    at->version += 1;
    at->clock = tick;
    step->applied |= step->waiting;
    step->waiting = 0;
}

// A step's last lane finds nobody in its way.
uint32_t pen_arrivals_take(pen_arrivals_step *step, uint32_t lane, uint64_t tick) {
    PEN_ASSERT(lane < step->lanes && step->lanes <= PEN_ARRIVALS_LANES);
    PEN_ASSERT(((step->waiting | step->applied) >> lane & 1) == 0);
    step->waiting |= 1u << lane;
    if (PEN_PLANTED(applies_alone)) step->waiting = 1u << lane;
    if (!arrivals_may_apply(step)) return 0;
    const uint32_t made_of = step->waiting;
    arrivals_apply(step, tick);
    return made_of;
}

// ---- an order as a number

bool pen_arrivals_order_is_whole(pen_arrivals_order order, uint32_t count) {
    uint32_t seen = 0;
    PEN_ASSERT(count <= PEN_ARRIVALS_LANES);
    for (uint32_t place = 0; place < count; place++) {
        seen |= 1u << pen_arrivals_order_lane(order, place);
    }
    const bool has_more = count < PEN_ARRIVALS_LANES && order >> (4 * count) != 0;
    return seen == (1u << count) - 1 && !has_more;
}

pen_arrivals_order pen_arrivals_order_of_one(uint32_t count) {
    pen_arrivals_order order = 0;
    PEN_ASSERT(count <= PEN_ARRIVALS_LANES);
    for (uint32_t lane = 0; lane < count; lane++) {
        order = pen_arrivals_order_add(order, lane, lane);
    }
    return order;
}

// ---- who has come

static void arrivals_come(pen_arrivals_tally *tally, uint32_t lane) {
    if ((tally->come >> lane & 1) != 0) return;
    tally->order = pen_arrivals_order_add(tally->order, tally->count, lane);
    tally->count += 1;
    tally->come |= 1u << lane;
}

void pen_arrivals_expect(pen_arrivals_tally *tally, uint32_t lane) {
    PEN_ASSERT(lane < PEN_ARRIVALS_LANES);
    tally->left[lane] += 1;
}

void pen_arrivals_tell(pen_arrivals_tally *tally, uint32_t lane) {
    PEN_ASSERT(lane < PEN_ARRIVALS_LANES);
    if (tally->left[lane] > 0) tally->left[lane] -= 1;
    if (tally->left[lane] == 0 || PEN_PLANTED(comes_with_its_first)) arrivals_come(tally, lane);
}

void pen_arrivals_settle(pen_arrivals_tally *tally, uint32_t count) {
    PEN_ASSERT(count <= PEN_ARRIVALS_LANES);
    for (uint32_t lane = 0; lane < count; lane++) {
        if (tally->left[lane] == 0) arrivals_come(tally, lane);
    }
}

// ---- the order that is drawn

#define ARRIVALS_DURATIONS 64

// Equally likely: quantiles (i + 1/2) / 64 of a logarithmic normal distribution. A table, since
// libraries round logarithms differently.
static const uint16_t arrivals_durations[ARRIVALS_DURATIONS] = {
    484,  551,  589,  619,  643,  664,  683,  700,  716,  731,  746,  760,  773,  786,  798,  811,
    823,  835,  846,  858,  869,  881,  892,  903,  914,  926,  937,  948,  960,  971,  983,  994,
    1006, 1018, 1030, 1042, 1055, 1067, 1080, 1094, 1107, 1121, 1135, 1150, 1166, 1182, 1198, 1215,
    1233, 1252, 1272, 1294, 1316, 1341, 1367, 1396, 1429, 1465, 1507, 1556, 1617, 1696, 1815, 2065};

static uint32_t arrivals_duration(const pen_arrivals_options *options, uint32_t lane) {
    uint32_t numbers[4];
    const pen_random_key key = {options->seed, pen_random_stream("arrivals", options->step, lane)};
    pen_random_block(key, 0, numbers);
    return arrivals_durations[numbers[0] % ARRIVALS_DURATIONS];
}

// The step's lanes by the tick at which they are done, then by number. Returns the longest time
// that one takes.
static uint64_t arrivals_draw_order(const pen_arrivals_options *options, const pen_arrivals *at,
                                    uint64_t out_tick[PEN_ARRIVALS_LANES],
                                    uint32_t out_lanes[PEN_ARRIVALS_LANES]) {
    uint64_t longest = 0;
    for (uint32_t lane = 0; lane < options->count; lane++) {
        const uint64_t duration = arrivals_duration(options, lane);
        uint32_t place = lane;
        out_tick[lane] = at->start[lane] + duration;
        if (duration > longest) longest = duration;
        for (; place > 0 && out_tick[out_lanes[place - 1]] > out_tick[lane]; place--) {
            out_lanes[place] = out_lanes[place - 1];
        }
        out_lanes[place] = lane;
    }
    return longest;
}

// Whether no lane has a version that was not made.
static bool arrivals_are_possible(const pen_arrivals *at, uint32_t lanes) {
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (at->base[lane] > at->version) return false;
    }
    return true;
}

// ---- a step

// In a free order nobody knows when lanes would have come if they had not waited.
static uint64_t arrivals_find_order(const pen_arrivals_options *options, const pen_arrivals *at,
                                    uint64_t out_tick[PEN_ARRIVALS_LANES],
                                    uint32_t out_lanes[PEN_ARRIVALS_LANES]) {
    if (!options->is_free) return arrivals_draw_order(options, at, out_tick, out_lanes);
    for (uint32_t place = 0; place < options->count; place++) {
        out_tick[place] = 0;
        out_lanes[place] = pen_arrivals_order_lane(options->order, place);
    }
    return 0;
}

// A lane that is done before the last step's slowest one waits for it.
bool pen_arrivals_draw(const pen_arrivals_options *options, pen_arrivals *at,
                       uint32_t out_version[PEN_ARRIVALS_LANES], uint32_t *out_count) {
    PEN_ASSERT(options->count > 0 && options->count <= options->lanes);
    PEN_ASSERT(options->lanes <= PEN_ARRIVALS_LANES);
    uint64_t tick[PEN_ARRIVALS_LANES];
    uint32_t lanes[PEN_ARRIVALS_LANES], versions = 0;
    pen_arrivals_step step = {at, options->count, options->staleness, 0, 0};
    *out_count = 0;
    if (!arrivals_are_possible(at, options->lanes)) return false;
    if (options->is_free && !pen_arrivals_order_is_whole(options->order, options->count)) {
        return false;
    }
    at->synchronous += arrivals_find_order(options, at, tick, lanes);
    for (uint32_t lane = 0; lane < PEN_ARRIVALS_LANES; lane++) {
        out_version[lane] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < options->count; i++) {
        const uint64_t now = tick[lanes[i]] > at->clock ? tick[lanes[i]] : at->clock;
        const uint32_t made_of = pen_arrivals_take(&step, lanes[i], now);
        for (uint32_t lane = 0; lane < options->count; lane++) {
            if ((made_of >> lane & 1) != 0) out_version[lane] = versions;
        }
        if (made_of != 0) versions += 1;
    }
    for (uint32_t lane = options->count; lane < options->lanes; lane++) {
        at->base[lane] = at->version;
        at->start[lane] = at->clock;
    }
    *out_count = versions;
    return true;
}

// ---- as a tensor

void pen_arrivals_read(const int64_t *words, uint32_t lanes, pen_arrivals *out_at) {
    PEN_ASSERT(lanes <= PEN_ARRIVALS_LANES);
    uint64_t *const fields[] = {&out_at->version,   &out_at->clock,     &out_at->synchronous,
                                &out_at->gradients, &out_at->staleness, &out_at->staleness_worst};
    *out_at = (pen_arrivals){0};
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        *fields[i] = (uint64_t)words[i];
    }
    memcpy(out_at->base, words + 6, lanes * sizeof *words);
    memcpy(out_at->start, words + 6 + lanes, lanes * sizeof *words);
}

void pen_arrivals_write(const pen_arrivals *at, uint32_t lanes, int64_t *out_words) {
    PEN_ASSERT(lanes <= PEN_ARRIVALS_LANES);
    const uint64_t fields[] = {at->version,   at->clock,     at->synchronous,
                               at->gradients, at->staleness, at->staleness_worst};
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        out_words[i] = (int64_t)fields[i];
    }
    memcpy(out_words + 6, at->base, lanes * sizeof *out_words);
    memcpy(out_words + 6 + lanes, at->start, lanes * sizeof *out_words);
}
