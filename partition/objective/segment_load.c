#include "partition/objective/segment_load.h"

pen_status pen_segment_load_new(const pen_problem *problem, pen_arena *arena,
                                pen_segment_load **out_segment) {
    pen_segment_load *segment;
    PEN_TRY(PEN_NEW(arena, 1, &segment));
    segment->problem = problem;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &segment->is_inside));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &segment->is_before));
    PEN_TRY(PEN_NEW(arena, problem->output_count, &segment->read_inside));
    PEN_TRY(PEN_NEW(arena, problem->output_count, &segment->read_before));
    PEN_TRY(PEN_NEW(arena, problem->given.kind_count, &segment->compute));
    PEN_TRY(PEN_NEW(arena, problem->given.kind_count, &segment->barred));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &segment->pinned));
    *out_segment = segment;
    return PEN_OK;
}

static inline uint32_t segment_reader_count(const pen_problem *problem, uint32_t output) {
    return problem->readers.first[output + 1] - problem->readers.first[output];
}

// One group joins a contiguous segment: what it sends and receives changes by its own results and
// by those it reads.
void pen_segment_load_add(pen_segment_load *segment, uint32_t group) {
    const pen_problem *problem = segment->problem;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        const double cost = problem->output_cost[o];
        const uint32_t inside = segment->read_inside[o];
        if (inside > 0) segment->received -= cost;
        if (inside < segment_reader_count(problem, o)) segment->sent += cost;
        if (segment->read_before[o] > 0) segment->sent_fixed += cost;
    }
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t owner = problem->output_owner[o];
        const uint32_t inside = ++segment->read_inside[o];
        if (segment->is_inside[owner]) {
            if (inside == segment_reader_count(problem, o)) {
                segment->sent -= problem->output_cost[o];
            }
        } else if (inside == 1) {
            segment->received += problem->output_cost[o];
            if (segment->is_before[owner]) segment->received_fixed += problem->output_cost[o];
        }
    }
    for (uint32_t k = 0; k < problem->given.kind_count; k++) {
        const double cost = problem->group_compute[(uint64_t)k * problem->group_count + group];
        if (cost < PEN_PROBLEM_COST_LIMIT) {
            segment->compute[k] += cost;
        } else {
            segment->barred[k] += 1;
        }
    }
    if (problem->group_pin[group] != PEN_PROBLEM_ANY) {
        segment->pinned[problem->group_pin[group]] += 1;
        segment->pinned_count += 1;
    }
    segment->bytes += problem->group_bytes[group];
    if (problem->group_bytes_in_flight != NULL) {
        segment->bytes_in_flight += problem->group_bytes_in_flight[group];
    }
    segment->is_inside[group] = true;
    segment->count += 1;
}

// Sums are set back to 0 with the last group, so that rounding does not pile up.
static void segment_load_settle(pen_segment_load *segment) {
    for (uint32_t k = 0; k < segment->problem->given.kind_count; k++)
        segment->compute[k] = 0.0;
    segment->bytes = segment->bytes_in_flight = 0.0;
    segment->sent = segment->received = 0.0;
    segment->sent_fixed = segment->received_fixed = 0.0;
}

// The reverse of adding, in the reverse order. An empty segment is set to exact zeros, so that
// roundings do not gather.
void pen_segment_load_remove(pen_segment_load *segment, uint32_t group) {
    const pen_problem *problem = segment->problem;
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t owner = problem->output_owner[o];
        const uint32_t inside = segment->read_inside[o]--;
        if (segment->is_inside[owner]) {
            if (inside == segment_reader_count(problem, o)) {
                segment->sent += problem->output_cost[o];
            }
        } else if (inside == 1) {
            segment->received -= problem->output_cost[o];
            if (segment->is_before[owner]) segment->received_fixed -= problem->output_cost[o];
        }
    }
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++) {
        const double cost = problem->output_cost[o];
        const uint32_t inside = segment->read_inside[o];
        if (inside > 0) segment->received += cost;
        if (inside < segment_reader_count(problem, o)) segment->sent -= cost;
        if (segment->read_before[o] > 0) segment->sent_fixed -= cost;
    }
    for (uint32_t k = 0; k < problem->given.kind_count; k++) {
        const double cost = problem->group_compute[(uint64_t)k * problem->group_count + group];
        if (cost < PEN_PROBLEM_COST_LIMIT) {
            segment->compute[k] -= cost;
        } else {
            segment->barred[k] -= 1;
        }
    }
    if (problem->group_pin[group] != PEN_PROBLEM_ANY) {
        segment->pinned[problem->group_pin[group]] -= 1;
        segment->pinned_count -= 1;
    }
    segment->bytes -= problem->group_bytes[group];
    if (problem->group_bytes_in_flight != NULL) {
        segment->bytes_in_flight -= problem->group_bytes_in_flight[group];
    }
    segment->is_inside[group] = false;
    if (--segment->count == 0) segment_load_settle(segment);
}

void pen_segment_load_advance(pen_segment_load *segment, uint32_t group) {
    const pen_problem *problem = segment->problem;
    segment->is_before[group] = true;
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        segment->read_before[problem->reads.ids[r]] += 1;
    }
}

void pen_segment_load_retreat(pen_segment_load *segment, uint32_t group) {
    const pen_problem *problem = segment->problem;
    segment->is_before[group] = false;
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        segment->read_before[problem->reads.ids[r]] -= 1;
    }
}
