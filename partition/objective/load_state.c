#include "partition/objective/load_state.h"

#include <string.h>

// Where groups and devices are few, readers are a table; else they are hashed.
pen_status pen_load_state_new(const pen_problem *problem, const uint32_t *device_of_group,
                              pen_arena *arena, pen_load_state **out_state) {
    pen_load_state *state;
    PEN_TRY(PEN_NEW(arena, 1, &state));
    const uint32_t device_count = problem->given.device_count;
    state->problem = problem;
    state->device_count = device_count;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &state->device_of_group));
    PEN_TRY(PEN_NEW(arena, device_count, &state->load));
    PEN_TRY(PEN_NEW(arena, device_count, &state->bytes));
    PEN_TRY(PEN_NEW(arena, device_count, &state->group_total));
    PEN_TRY(pen_reader_counts_init(&state->readers, problem, PEN_READER_COUNTS_TABLE_LIMIT, arena));
    PEN_TRY(PEN_NEW(arena, problem->output_count, &state->away_total));
    PEN_TRY(PEN_NEW(arena, device_count, &state->change));
    PEN_TRY(PEN_NEW(arena, device_count, &state->touched));
    PEN_TRY(PEN_NEW(arena, device_count, &state->is_touched));
    PEN_TRY(PEN_NEW(arena, device_count, &state->load_kept));
    PEN_TRY(PEN_NEW(arena, device_count, &state->changed));
    PEN_TRY(PEN_NEW(arena, device_count, &state->is_changed));
    pen_load_state_set(state, device_of_group);
    *out_state = state;
    return PEN_OK;
}

void pen_load_state_set(pen_load_state *state, const uint32_t *device_of_group) {
    const pen_problem *problem = state->problem;
    pen_reader_counts_clear(&state->readers);
    memmove(state->device_of_group, device_of_group,
            problem->group_count * sizeof *device_of_group);
    for (uint32_t o = 0; o < problem->output_count; o++) {
        const uint32_t home = device_of_group[problem->output_owner[o]];
        state->away_total[o] = 0;
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            const uint32_t device = device_of_group[problem->readers.ids[r]];
            if (pen_reader_counts_add(&state->readers, o, device) == 0 && device != home) {
                state->away_total[o] += 1;
            }
        }
    }
    pen_load_state_refresh(state);
}

// Sums anew from nothing: roundings of many moves would gather otherwise.
void pen_load_state_refresh(pen_load_state *state) {
    const pen_problem *problem = state->problem;
    const pen_problem_device *devices = problem->given.devices;
    const double *link = problem->given.link;
    const uint32_t device_count = state->device_count;
    memset(state->load, 0, device_count * sizeof *state->load);
    memset(state->bytes, 0, device_count * sizeof *state->bytes);
    memset(state->group_total, 0, device_count * sizeof *state->group_total);
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t device = state->device_of_group[g];
        state->load[device] += pen_problem_compute(problem, g, device);
        state->bytes[device] += pen_problem_bytes(problem, g, device);
        state->group_total[device] += 1;
    }
    for (uint32_t o = 0; o < problem->output_count; o++) {
        if (state->away_total[o] == 0) continue;
        const uint32_t home = state->device_of_group[problem->output_owner[o]];
        const double cost = problem->output_cost[o];
        uint32_t cursor = 0, d;
        state->load[home] += cost * devices[home].send;
        while (pen_reader_counts_next(&state->readers, o, &cursor, &d)) {
            if (d == home) continue;
            state->load[d] += cost * devices[d].receive;
            if (link == NULL) continue;
            const double moved = pen_problem_link_cost(problem, o, home, d);
            state->load[home] += moved;
            state->load[d] += moved;
        }
    }
}

static inline void load_state_add(pen_load_state *state, uint32_t device, double amount) {
    if (!state->is_touched[device]) {
        state->is_touched[device] = true;
        state->touched[state->touched_count++] = device;
    }
    state->change[device] += amount;
}

// The transfers of one output over links when its owner is on `home`, times `sign`.
static void load_state_add_links(pen_load_state *state, uint32_t output, uint32_t home,
                                 double sign) {
    uint32_t cursor = 0, d;
    while (pen_reader_counts_next(&state->readers, output, &cursor, &d)) {
        if (d == home) continue;
        const double moved = sign * pen_problem_link_cost(state->problem, output, home, d);
        load_state_add(state, home, moved);
        load_state_add(state, d, moved);
    }
}

// The group's own outputs when it leaves `from` for `to`.
static void load_state_weigh_own(pen_load_state *state, uint32_t group, uint32_t from,
                                 uint32_t to) {
    const pen_problem *problem = state->problem;
    const pen_problem_device *devices = problem->given.devices;
    double change_from = 0.0, change_to = 0.0;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        const bool is_read_here = pen_reader_counts_get(&state->readers, o, from) > 0;
        const bool is_read_there = pen_reader_counts_get(&state->readers, o, to) > 0;
        const double cost = problem->output_cost[o];
        const uint32_t away = state->away_total[o];
        const uint32_t away_then = away - is_read_there + is_read_here;
        if (away > 0) change_from -= cost * devices[from].send;
        if (away_then > 0) change_to += cost * devices[to].send;
        if (is_read_here) change_from += cost * devices[from].receive;
        if (is_read_there) change_to -= cost * devices[to].receive;
        if (problem->given.link == NULL) continue;
        load_state_add_links(state, o, from, -1.0);
        load_state_add_links(state, o, to, 1.0);
    }
    state->change[from] += change_from;
    state->change[to] += change_to;
}

// What the group reads when it leaves `from` for `to`.
static void load_state_weigh_reads(pen_load_state *state, uint32_t group, uint32_t from,
                                   uint32_t to) {
    const pen_problem *problem = state->problem;
    const pen_problem_device *devices = problem->given.devices;
    const double *link = problem->given.link;
    double change_from = 0.0, change_to = 0.0;
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const bool ends = pen_reader_counts_get(&state->readers, o, from) == 1;
        const bool begins = pen_reader_counts_get(&state->readers, o, to) == 0;
        if (!ends && !begins) continue;
        const uint32_t home = state->device_of_group[problem->output_owner[o]];
        const double cost = problem->output_cost[o];
        uint32_t away = state->away_total[o];
        const bool was_away = away > 0;
        if (ends && from != home) {
            change_from -= cost * devices[from].receive;
            away -= 1;
        }
        if (begins && to != home) {
            change_to += cost * devices[to].receive;
            away += 1;
        }
        if (was_away != (away > 0)) {
            load_state_add(state, home, (was_away ? -cost : cost) * devices[home].send);
        }
        if (link == NULL) continue;
        if (ends && from != home) {
            const double moved = pen_problem_link_cost(problem, o, home, from);
            change_from -= moved;
            load_state_add(state, home, -moved);
        }
        if (begins && to != home) {
            const double moved = pen_problem_link_cost(problem, o, home, to);
            change_to += moved;
            load_state_add(state, home, moved);
        }
    }
    state->change[from] += change_from;
    state->change[to] += change_to;
}

void pen_load_state_weigh(pen_load_state *state, uint32_t group, uint32_t device) {
    const uint32_t from = state->device_of_group[group];
    for (uint32_t i = 0; i < state->touched_count; i++) {
        state->change[state->touched[i]] = 0.0;
        state->is_touched[state->touched[i]] = false;
    }
    state->touched_count = 0;
    load_state_add(state, from, -pen_problem_compute(state->problem, group, from));
    load_state_add(state, device, pen_problem_compute(state->problem, group, device));
    load_state_weigh_own(state, group, from, device);
    load_state_weigh_reads(state, group, from, device);
}

// All of a move but the loads.
static void load_state_place(pen_load_state *state, uint32_t group, uint32_t device) {
    const pen_problem *problem = state->problem;
    const uint32_t from = state->device_of_group[group];
    state->bytes[from] -= pen_problem_bytes(problem, group, from);
    state->bytes[device] += pen_problem_bytes(problem, group, device);
    state->group_total[from] -= 1;
    state->group_total[device] += 1;
    state->device_of_group[group] = device;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        state->away_total[o] += (uint32_t)(pen_reader_counts_get(&state->readers, o, from) > 0) -
                                (uint32_t)(pen_reader_counts_get(&state->readers, o, device) > 0);
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t home = state->device_of_group[problem->output_owner[o]];
        if (pen_reader_counts_remove(&state->readers, o, from) == 0 && from != home) {
            state->away_total[o] -= 1;
        }
        if (pen_reader_counts_add(&state->readers, o, device) == 0 && device != home) {
            state->away_total[o] += 1;
        }
    }
}

// Uses the changes of the loads that the weighing of this very move left behind.
void pen_load_state_move(pen_load_state *state, uint32_t group, uint32_t device) {
    for (uint32_t i = 0; i < state->touched_count; i++)
        state->load[state->touched[i]] += state->change[state->touched[i]];
    load_state_place(state, group, device);
}

static void load_state_step(pen_load_state *state, uint32_t group, uint32_t device) {
    if (state->device_of_group[group] == device) return;
    pen_load_state_weigh(state, group, device);
    for (uint32_t i = 0; i < state->touched_count; i++) {
        const uint32_t d = state->touched[i];
        if (state->is_changed[d]) continue;
        state->is_changed[d] = true;
        state->load_kept[d] = state->load[d];
        state->changed[state->changed_count++] = d;
    }
    pen_load_state_move(state, group, device);
}

// Weighing one group costs half of making and undoing its move, and most moves are of one; what
// several do together shows only when they are made.
void pen_load_state_try(pen_load_state *state, const uint32_t *groups, const uint32_t *goals,
                        uint32_t count) {
    const pen_problem *problem = state->problem;
    for (uint32_t i = 0; i < state->changed_count && state->is_made; i++)
        state->is_changed[state->changed[i]] = false;
    state->changed_count = 0;
    state->is_made = count > 1;
    for (uint32_t i = 0; i < count && state->is_made; i++)
        load_state_step(state, groups[i], goals[i]);
    if (state->is_made) return;
    state->home = state->device_of_group[groups[0]];
    state->goal = goals[0];
    state->home_bytes = pen_problem_bytes(problem, groups[0], state->home);
    state->goal_bytes = pen_problem_bytes(problem, groups[0], state->goal);
    pen_load_state_weigh(state, groups[0], state->goal);
    for (uint32_t i = 0; i < state->touched_count; i++)
        state->changed[state->changed_count++] = state->touched[i];
}

void pen_load_state_keep(pen_load_state *state, const uint32_t *groups, const uint32_t *goals) {
    if (!state->is_made) pen_load_state_move(state, groups[0], goals[0]);
}

// Loads are put back as they were: they need no weighing, and adding and taking away fractions
// would leave a little.
void pen_load_state_undo(pen_load_state *state, const uint32_t *groups, const uint32_t *homes,
                         uint32_t count) {
    if (!state->is_made) return;
    for (uint32_t i = count; i-- > 0;) {
        if (state->device_of_group[groups[i]] != homes[i])
            load_state_place(state, groups[i], homes[i]);
    }
    for (uint32_t i = 0; i < state->changed_count; i++)
        state->load[state->changed[i]] = state->load_kept[state->changed[i]];
}

double pen_load_state_worst(const pen_load_state *state) {
    double worst = 0.0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        if (state->load[d] > worst) worst = state->load[d];
    }
    return worst;
}
