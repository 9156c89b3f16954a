#include "partition/objective/latency.h"

#define LATENCY_NONE UINT32_MAX

struct pen_latency {
    const pen_problem *problem;
    uint32_t *position;    // [node_count] in node_order
    uint32_t *level;       // [node_count] of the device at hand
    uint32_t *piece;       // [node_count] of each node
    uint32_t *first_at;    // [device_count] position of the device's first node
    uint32_t *last_at;     // [device_count]
    uint32_t *piece_first; // [node_count] first node of a piece
    uint32_t *node_next;   // [node_count] next node of the same piece
    uint32_t *piece_after; // [node_count] the next piece of the same device
    uint32_t *waits;       // [node_count] of a piece: what it still waits for
    uint32_t *queue;       // [node_count] pieces
    uint32_t *read_by;     // [node_count] of a piece: 1 + the last node seen to be read by it
    double *cost;          // [node_count] of a piece
    double *ready;         // [node_count] of a piece
    uint32_t piece_count;
};

// Arrays by node; positions in one topological order are found once.
pen_status pen_latency_new(const pen_problem *problem, pen_arena *arena,
                           pen_latency **out_latency) {
    pen_latency *latency;
    const uint32_t count = problem->given.node_count;
    PEN_TRY(PEN_NEW(arena, 1, &latency));
    latency->problem = problem;
    uint32_t **const arrays[] = {&latency->position,    &latency->level,     &latency->piece,
                                 &latency->piece_first, &latency->node_next, &latency->piece_after,
                                 &latency->waits,       &latency->queue,     &latency->read_by};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        PEN_TRY(PEN_NEW(arena, count, arrays[i]));
    }
    PEN_TRY(PEN_NEW(arena, count, &latency->cost));
    PEN_TRY(PEN_NEW(arena, count, &latency->ready));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &latency->first_at));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &latency->last_at));
    for (uint32_t i = 0; i < count; i++)
        latency->position[problem->node_order[i]] = i;
    *out_latency = latency;
    return PEN_OK;
}

static uint32_t latency_open_piece(pen_latency *latency) {
    const uint32_t piece = latency->piece_count++;
    latency->piece_first[piece] = LATENCY_NONE;
    latency->piece_after[piece] = LATENCY_NONE;
    latency->waits[piece] = 0;
    latency->read_by[piece] = 0;
    latency->cost[piece] = 0.0;
    latency->ready[piece] = 0.0;
    return piece;
}

static void latency_put(pen_latency *latency, uint32_t node, uint32_t piece) {
    latency->piece[node] = piece;
    latency->node_next[node] = latency->piece_first[piece];
    latency->piece_first[piece] = node;
}

// Cuts device `device` into pieces by how often a path to a node has left it.
static void latency_cut_device(pen_latency *latency, const uint32_t *device_of_node,
                               uint32_t device) {
    const pen_problem *problem = latency->problem;
    const uint32_t first_at = latency->first_at[device];
    uint32_t *level = latency->level;
    uint32_t level_most = 0;
    const uint32_t base = latency->piece_count;
    for (uint32_t i = first_at; i <= latency->last_at[device]; i++) {
        const uint32_t v = problem->node_order[i];
        const bool is_here = device_of_node[v] == device;
        uint32_t most = is_here ? 1 : 0;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            if (latency->position[u] < first_at || level[u] == 0) continue;
            const uint32_t reached = level[u] + (is_here && device_of_node[u] != device);
            if (reached > most) most = reached;
        }
        level[v] = most;
        if (!is_here) continue;
        while (level_most < most) {
            const uint32_t piece = latency_open_piece(latency);
            if (level_most++ > 0) {
                latency->piece_after[piece - 1] = piece;
                latency->waits[piece] += 1;
            }
        }
        latency_put(latency, v, base + most - 1);
    }
}

// A device computes one piece at a time, and a piece waits for all that it reads: pieces are cut so
// that no two wait for each other. Cores run every node by itself.
static void latency_cut(pen_latency *latency, const uint32_t *device_of_node) {
    const pen_problem_given *given = &latency->problem->given;
    for (uint32_t d = 0; d < given->device_count; d++)
        latency->first_at[d] = LATENCY_NONE;
    latency->piece_count = 0;
    for (uint32_t i = 0; i < given->node_count; i++) {
        const uint32_t v = latency->problem->node_order[i];
        const uint32_t d = device_of_node[v];
        if (given->devices[d].is_parallel) {
            latency_put(latency, v, latency_open_piece(latency));
            continue;
        }
        if (latency->first_at[d] == LATENCY_NONE) latency->first_at[d] = i;
        latency->last_at[d] = i;
    }
    for (uint32_t d = 0; d < given->device_count; d++) {
        if (latency->first_at[d] == LATENCY_NONE) continue;
        latency_cut_device(latency, device_of_node, d);
    }
}

// The cut that never blocks, level by level.
static void latency_cut_by_changes(pen_latency *latency, const uint32_t *device_of_node) {
    const pen_problem *problem = latency->problem;
    uint32_t *level = latency->level;
    uint32_t *last_piece = latency->first_at; // of each device
    uint32_t *last_level = latency->last_at;
    for (uint32_t d = 0; d < problem->given.device_count; d++)
        last_piece[d] = LATENCY_NONE;
    latency->piece_count = 0;
    uint32_t level_most = 0;
    for (uint32_t i = 0; i < problem->given.node_count; i++) {
        const uint32_t v = problem->node_order[i];
        level[v] = 0;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            const uint32_t reached = level[u] + (device_of_node[u] != device_of_node[v]);
            if (reached > level[v]) level[v] = reached;
        }
        if (level[v] > level_most) level_most = level[v];
    }
    for (uint32_t wanted = 0; wanted <= level_most; wanted++) {
        for (uint32_t i = 0; i < problem->given.node_count; i++) {
            const uint32_t v = problem->node_order[i];
            const uint32_t d = device_of_node[v];
            if (level[v] != wanted) continue;
            if (problem->given.devices[d].is_parallel) {
                latency_put(latency, v, latency_open_piece(latency));
                continue;
            }
            if (last_piece[d] == LATENCY_NONE || last_level[d] != wanted) {
                const uint32_t piece = latency_open_piece(latency);
                if (last_piece[d] != LATENCY_NONE) {
                    latency->piece_after[last_piece[d]] = piece;
                    latency->waits[piece] += 1;
                }
                last_piece[d] = piece;
                last_level[d] = wanted;
            }
            latency_put(latency, v, last_piece[d]);
        }
    }
}

// Costs of all pieces, and how many edges lead into each.
static void latency_sum(pen_latency *latency, const uint32_t *device_of_node) {
    const pen_problem *problem = latency->problem;
    const pen_problem_given *given = &problem->given;
    for (uint32_t u = 0; u < given->node_count; u++) {
        const uint32_t home = device_of_node[u];
        const uint32_t piece = latency->piece[u];
        const pen_problem_device *device = &given->devices[home];
        const double transfer = given->nodes[u].transfer;
        bool is_sent = false;
        latency->cost[piece] +=
            given->compute[(uint64_t)device->kind * given->node_count + u] * device->slowness;
        for (uint32_t e = problem->successors.first[u]; e < problem->successors.first[u + 1]; e++) {
            const uint32_t v = problem->successors.ids[e];
            const uint32_t reader = latency->piece[v];
            if (reader == piece) continue;
            is_sent = true;
            latency->waits[reader] += 1;
            if (latency->read_by[reader] == u + 1) continue;
            latency->read_by[reader] = u + 1;
            const uint32_t there = device_of_node[v];
            double factor = given->devices[there].receive;
            if (given->link != NULL && there != home) {
                const uint64_t at = (uint64_t)home * given->device_count + there;
                factor += given->link[at];
                if (given->link_latency != NULL && transfer > 0.0) {
                    latency->cost[reader] += given->link_latency[at];
                }
            }
            latency->cost[reader] += transfer * factor;
        }
        if (is_sent) latency->cost[piece] += transfer * device->send;
    }
}

static inline void latency_tell(pen_latency *latency, uint32_t piece, double finish,
                                uint32_t *queue_count) {
    if (finish > latency->ready[piece]) latency->ready[piece] = finish;
    if (--latency->waits[piece] == 0) latency->queue[(*queue_count)++] = piece;
}

// Runs all pieces; returns whether all could.
static bool latency_run(pen_latency *latency, double *out_finish, double *out_total) {
    const pen_problem *problem = latency->problem;
    uint32_t queue_count = 0;
    double last = 0.0, total = 0.0;
    for (uint32_t p = 0; p < latency->piece_count; p++) {
        if (latency->waits[p] == 0) latency->queue[queue_count++] = p;
    }
    for (uint32_t i = 0; i < queue_count; i++) {
        const uint32_t p = latency->queue[i];
        const double finish = latency->ready[p] + latency->cost[p];
        total += latency->cost[p];
        if (finish > last) last = finish;
        for (uint32_t u = latency->piece_first[p]; u != LATENCY_NONE; u = latency->node_next[u]) {
            for (uint32_t e = problem->successors.first[u]; e < problem->successors.first[u + 1];
                 e++) {
                const uint32_t reader = latency->piece[problem->successors.ids[e]];
                if (reader != p) latency_tell(latency, reader, finish, &queue_count);
            }
        }
        if (latency->piece_after[p] != LATENCY_NONE) {
            latency_tell(latency, latency->piece_after[p], finish, &queue_count);
        }
    }
    *out_finish = last;
    *out_total = total;
    return queue_count == latency->piece_count;
}

double pen_latency_evaluate(pen_latency *latency, const uint32_t *device_of_node,
                            double *out_total) {
    double finish = 0.0, total = 0.0;
    latency_cut(latency, device_of_node);
    latency_sum(latency, device_of_node);
    if (!latency_run(latency, &finish, &total)) {
        latency_cut_by_changes(latency, device_of_node);
        latency_sum(latency, device_of_node);
        PEN_ASSERT(latency_run(latency, &finish, &total));
    }
    if (out_total != NULL) *out_total = total;
    return finish;
}
