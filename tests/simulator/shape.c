#include "tests/simulator/shape.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulator/shape_table.h"
#include "tests/support/chance.h"

static pen_arena *shape_arena;
static shape *shapes[SHAPE_COUNT];

// ---- the undisturbed training

uint64_t shape_input(const shape *s, uint32_t stage, uint32_t step, uint32_t microbatch,
                     bool is_evaluation) {
    const uint64_t place = ((uint64_t)step << 32) | (microbatch << 1) | is_evaluation;
    return shape_hash(shape_hash(s->seed, stage + 1), place);
}

uint64_t shape_step_input(const shape *s, uint32_t stage, uint32_t step) {
    return shape_hash(shape_hash(s->seed, 1000 + stage), step);
}

uint64_t shape_loss(const shape *s, uint32_t step, uint32_t microbatch, uint64_t word,
                    bool is_evaluation) {
    if (step == s->not_finite_step && microbatch == 0 && !is_evaluation) {
        return 0x7ff8000000000000u;
    }
    return 0x3ff0000000000000u | (word >> 12);
}

uint64_t shape_expect(const shape *s, shape_content content, uint32_t number, uint32_t step,
                      uint32_t microbatch, bool is_evaluation) {
    const shape_values *values;
    switch (content) {
    case SHAPE_FORWARD:
        values = &s->values[step][s->edges[number].source];
        return is_evaluation ? values->evaluated[microbatch] : values->forward[microbatch];
    case SHAPE_GRADIENT:
        return s->values[step][s->edges[number].target].backward[microbatch];
    case SHAPE_EXCHANGE:
        return s->values[step][s->exchanges[number].source].sent;
    case SHAPE_FEED:
        return shape_input(s, number, step, microbatch, is_evaluation);
    case SHAPE_STEP_FEED:
        return shape_step_input(s, number, step);
    }
    PEN_NEVER("a channel carries one of these");
}

static uint64_t shape_forward(const shape *s, uint32_t stage, uint32_t step, uint32_t microbatch,
                              bool is_evaluation) {
    const uint32_t from = is_evaluation ? step : step - 1;
    uint64_t word = shape_hash(1, s->parameters[from][stage]);
    for (uint32_t e = 0; e < s->edge_count; e++) {
        if (s->edges[e].target != stage) continue;
        const shape_values *source = &s->values[step][s->edges[e].source];
        word = shape_hash(word, is_evaluation ? source->evaluated[microbatch]
                                              : source->forward[microbatch]);
    }
    if (s->is_fed[stage]) {
        word = shape_hash(word, shape_input(s, stage, step, microbatch, is_evaluation));
    }
    return word;
}

static uint64_t shape_backward(const shape *s, uint32_t stage, uint32_t step, uint32_t microbatch) {
    uint64_t word = shape_hash(2, s->parameters[step - 1][stage]);
    word = shape_hash(word, s->values[step][stage].forward[microbatch]);
    for (uint32_t e = 0; e < s->edge_count; e++) {
        if (s->edges[e].source != stage) continue;
        word = shape_hash(word, s->values[step][s->edges[e].target].backward[microbatch]);
    }
    return word;
}

static void shape_update(shape *s, uint32_t step) {
    for (uint32_t i = 0; i < s->stage_count; i++) {
        shape_values *values = &s->values[step][i];
        values->sent = shape_hash(4, values->gradient);
    }
    for (uint32_t i = 0; i < s->stage_count; i++) {
        uint64_t word = shape_hash(5, s->parameters[step - 1][i]);
        word = shape_hash(word, s->values[step][i].gradient);
        if (s->is_step_fed[i]) word = shape_hash(word, shape_step_input(s, i, step));
        for (uint32_t e = 0; e < s->exchange_count; e++) {
            if (s->exchanges[e].target != i) continue;
            word = shape_hash(word, s->values[step][s->exchanges[e].source].sent);
        }
        s->parameters[step][i] = word;
    }
}

static void shape_train(shape *s) {
    for (uint32_t step = 1; step <= s->step_count; step++) {
        const uint32_t count = s->counts[step][0] + s->counts[step][1];
        for (uint32_t m = 0; m < count; m++) {
            for (uint32_t i = 0; i < s->stage_count; i++) {
                s->values[step][i].forward[m] = shape_forward(s, i, step, m, false);
            }
            for (uint32_t i = s->stage_count; i-- > 0;) {
                shape_values *values = &s->values[step][i];
                values->backward[m] = shape_backward(s, i, step, m);
                values->gradient = shape_hash(values->gradient ^ 3, values->backward[m]);
            }
        }
        shape_update(s, step);
        if (!s->is_evaluated[step]) continue;
        for (uint32_t m = 0; m < s->microbatch_count; m++) {
            for (uint32_t i = 0; i < s->stage_count; i++) {
                s->values[step][i].evaluated[m] = shape_forward(s, i, step, m, true);
            }
        }
    }
}

// ---- making

static void shape_draw_edges(shape *s, chance *c) {
    const uint64_t density = chance_below(c, 4);
    for (uint32_t source = 0; source < s->stage_count; source++) {
        for (uint32_t target = source + 1; target < s->stage_count; target++) {
            const bool is_chain = target == source + 1;
            if (!is_chain && chance_below(c, 12) >= density) continue;
            if (s->edge_count == SHAPE_EDGES) return;
            s->edges[s->edge_count++] = (shape_edge){source, target};
        }
    }
}

static void shape_draw_exchanges(shape *s, chance *c) {
    if (!chance_one_in(c, 4)) return;
    for (uint32_t source = 0; source < s->stage_count; source++) {
        for (uint32_t target = 0; target < s->stage_count; target++) {
            if (source == target || !chance_one_in(c, 3)) continue;
            if (s->exchange_count == SHAPE_EDGES) return;
            s->exchanges[s->exchange_count++] = (shape_edge){source, target};
        }
    }
}

static void shape_draw(shape *s) {
    chance c = {.state = s->seed};
    s->stage_count = (uint32_t)chance_between(&c, 1, SHAPE_STAGES);
    const uint32_t microbatches = chance_one_in(&c, 4) ? SHAPE_MICROBATCHES : 2;
    s->microbatch_count = (uint32_t)chance_between(&c, 1, microbatches);
    s->worker_limit = s->stage_count < SHAPE_WORKERS ? s->stage_count : SHAPE_WORKERS;
    s->step_count = chance_one_in(&c, 10) ? (uint32_t)chance_between(&c, 10, SHAPE_STEPS)
                                          : (uint32_t)chance_between(&c, 4, 8);
    shape_draw_edges(s, &c);
    shape_draw_exchanges(s, &c);
    for (uint32_t i = 0; i < s->stage_count; i++) {
        s->is_fed[i] = i == 0 || i + 1 == s->stage_count || chance_one_in(&c, 6);
        s->is_step_fed[i] = chance_one_in(&c, 5);
    }
    const bool is_split = chance_one_in(&c, 4);
    const uint64_t evaluates = chance_one_in(&c, 3) ? chance_between(&c, 2, 5) : 0;
    for (uint32_t step = 1; step <= s->step_count; step++) {
        const uint32_t most = s->microbatch_count;
        s->counts[step][0] = most;
        if (chance_one_in(&c, 4)) s->counts[step][0] = (uint32_t)chance_between(&c, 1, most);
        if (is_split && chance_one_in(&c, 2)) {
            s->counts[step][0] = most;
            s->counts[step][1] = (uint32_t)chance_between(&c, 1, most);
        }
        s->is_evaluated[step] = evaluates > 0 && step % evaluates == 0;
    }
    if (chance_one_in(&c, 16)) s->not_finite_step = (uint32_t)chance_between(&c, 1, s->step_count);
    for (uint32_t i = 0; i < s->stage_count; i++) {
        s->parameters[0][i] = chance_next(&c);
    }
}

// Drawn apart, so that nothing else depends on it.
static void shape_draw_lanes(shape *s) {
    chance c = {.state = shape_hash(s->seed, 2000)};
    const uint32_t microbatches = 2 * s->microbatch_count;
    s->tells_gradients = chance_one_in(&c, 3);
    s->lanes = (pen_lanes){(uint32_t)chance_between(&c, 1, microbatches), microbatches};
}

shape *shape_get(uint32_t number) {
    PEN_ASSERT(number < SHAPE_COUNT);
    if (shapes[number] != NULL) return shapes[number];
    if (shape_arena == NULL && pen_arena_create(&shape_arena) != PEN_OK) abort();
    shape *s;
    if (PEN_NEW(shape_arena, 1, &s) != PEN_OK) abort();
    s->number = number;
    s->seed = chance_mix(number + 1);
    shape_draw(s);
    shape_draw_lanes(s);
    shape_train(s);
    shapes[number] = s;
    return s;
}

const shape_table *shape_get_table(shape *s, uint32_t worker_count, uint32_t variant) {
    PEN_ASSERT(worker_count >= 1 && worker_count <= s->worker_limit);
    PEN_ASSERT(variant < SHAPE_VARIANTS);
    const shape_table **place = &s->tables[worker_count][variant];
    if (*place == NULL) *place = shape_table_make(s, worker_count, variant, shape_arena);
    return *place;
}
