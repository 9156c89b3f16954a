#include "tests/support/placement_judge.h"

#include <math.h>

#include "tests/support/check.h"

bool placement_judge_same(double a, double b) {
    if (a == b) return true;
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

static double judge_compute(const pen_problem_given *given, uint32_t v, uint32_t d) {
    return given->compute[given->devices[d].kind * given->node_count + v] *
           given->devices[d].slowness;
}

static bool judge_is_edge(const pen_problem_given *given, uint32_t u, uint32_t v) {
    for (uint32_t e = 0; e < given->edge_count && u != v; e++) {
        if (given->edges[e].source == u && given->edges[e].target == v) return true;
    }
    return false;
}

// What moving the result of u over a link costs each end.
static double judge_link(const pen_problem_given *given, uint32_t u, uint32_t from, uint32_t to) {
    const double cost = given->nodes[u].transfer;
    if (given->link == NULL || from == to || cost == 0.0) return 0.0;
    double moved = cost * given->link[from * given->device_count + to];
    if (given->link_latency != NULL) moved += given->link_latency[from * given->device_count + to];
    return moved;
}

static double judge_bytes(const pen_problem_given *given, uint32_t v, uint32_t d) {
    const uint32_t microbatches = given->devices[d].microbatches;
    return given->nodes[v].bytes +
           given->nodes[v].bytes_in_flight * (microbatches == 0 ? 1 : microbatches);
}

// Whether some reader of u is on device d.
static bool judge_is_read_on(const pen_problem_given *given, const uint32_t *device_of_node,
                             uint32_t u, uint32_t d) {
    for (uint32_t e = 0; e < given->edge_count; e++) {
        const pen_problem_edge edge = given->edges[e];
        if (edge.source == u && edge.target != u && device_of_node[edge.target] == d) return true;
    }
    return false;
}

void placement_judge_loads(const pen_problem_given *given, const uint32_t *device_of_node,
                           double *out_load, double *out_bytes) {
    for (uint32_t d = 0; d < given->device_count; d++) {
        out_load[d] = out_bytes[d] = 0.0;
        for (uint32_t u = 0; u < given->node_count; u++) {
            const double cost = given->nodes[u].transfer;
            const uint32_t home = device_of_node[u];
            if (home == d) {
                out_load[d] += judge_compute(given, u, d);
                out_bytes[d] += judge_bytes(given, u, d);
                bool is_read_elsewhere = false;
                for (uint32_t other = 0; other < given->device_count; other++) {
                    if (other == d || !judge_is_read_on(given, device_of_node, u, other)) continue;
                    is_read_elsewhere = true;
                    out_load[d] += judge_link(given, u, d, other);
                }
                if (is_read_elsewhere) out_load[d] += cost * given->devices[d].send;
            } else if (judge_is_read_on(given, device_of_node, u, d)) {
                out_load[d] += cost * given->devices[d].receive;
                out_load[d] += judge_link(given, u, home, d);
            }
        }
    }
}

#define JUDGE_DEVICES 64

// Whether each device that waits for another, directly or not, is not waited for by it.
static bool judge_is_acyclic(const pen_problem_given *given, const uint32_t *device_of_node) {
    bool waits[JUDGE_DEVICES][JUDGE_DEVICES] = {{false}};
    CHECK(given->device_count <= JUDGE_DEVICES, "%u devices", given->device_count);
    for (uint32_t e = 0; e < given->edge_count; e++) {
        const pen_problem_edge edge = given->edges[e];
        if (given->nodes[edge.source].role != PEN_ROLE_FORWARD ||
            given->nodes[edge.target].role != PEN_ROLE_FORWARD)
            continue;
        const uint32_t from = device_of_node[edge.source], to = device_of_node[edge.target];
        if (from != to) waits[to][from] = true;
    }
    for (uint32_t k = 0; k < given->device_count; k++) {
        for (uint32_t i = 0; i < given->device_count; i++) {
            for (uint32_t j = 0; j < given->device_count; j++)
                waits[i][j] = waits[i][j] || (waits[i][k] && waits[k][j]);
        }
    }
    for (uint32_t d = 0; d < given->device_count; d++) {
        if (waits[d][d]) return false;
    }
    return true;
}

const char *placement_judge_fault(const pen_problem_given *given, const uint32_t *device_of_node) {
    double bytes[JUDGE_DEVICES] = {0.0};
    bool is_used[JUDGE_DEVICES] = {false};
    uint32_t used = 0;
    CHECK(given->device_count <= JUDGE_DEVICES, "%u devices", given->device_count);
    for (uint32_t v = 0; v < given->node_count; v++) {
        const uint32_t d = device_of_node[v];
        const pen_problem_node *node = &given->nodes[v];
        if (d >= given->device_count) return "a node has no device";
        if (isinf(judge_compute(given, v, d))) return "a node is on a device that cannot run it";
        if (node->pin != PEN_PROBLEM_ANY && node->pin != d) return "a pin is not kept";
        for (uint32_t u = 0; u < v && node->color != PEN_PROBLEM_ANY; u++) {
            if (given->nodes[u].color == node->color && device_of_node[u] != d) {
                return "a colour is on two devices";
            }
        }
        bytes[d] += judge_bytes(given, v, d);
        is_used[d] = true;
    }
    for (uint32_t d = 0; d < given->device_count; d++) {
        if (bytes[d] > given->devices[d].bytes_limit * (1.0 + 2e-9)) return "a memory is exceeded";
    }
    for (uint32_t i = 0; i < given->forbidden_count; i++) {
        if (device_of_node[given->forbidden[i].node] == given->forbidden[i].device) {
            return "a node is on a device that it may not use";
        }
    }
    for (uint32_t d = 0; d < given->device_count; d++)
        used += is_used[d];
    if (used < given->devices_used_minimum) return "too few devices are used";
    if (given->devices_used_maximum > 0 && used > given->devices_used_maximum) {
        return "too many devices are used";
    }
    if (given->is_contiguous && !judge_is_acyclic(given, device_of_node)) {
        return "the devices wait for each other in a circle";
    }
    return NULL;
}

// ---- latency

typedef struct judge_pieces {
    const pen_problem_given *given;
    const uint32_t *device_of_node;
    uint32_t *order; // [node_count] topological
    uint32_t *level; // [node_count] which piece of its device
    double *finish;  // [node_count] of a node's piece
    bool *is_done;   // [node_count]
} judge_pieces;

static void judge_order(judge_pieces *pieces) {
    const uint32_t count = pieces->given->node_count;
    for (uint32_t filled = 0; filled < count;) {
        for (uint32_t v = 0; v < count; v++) {
            bool is_ready = !pieces->is_done[v];
            for (uint32_t u = 0; u < count && is_ready; u++) {
                if (judge_is_edge(pieces->given, u, v)) is_ready = pieces->is_done[u];
            }
            if (!is_ready) continue;
            pieces->is_done[v] = true;
            pieces->order[filled++] = v;
        }
    }
}

// The most times that a path to node v leaves the device `d`.
static void judge_level_device(judge_pieces *pieces, uint32_t d, uint32_t *times) {
    const uint32_t count = pieces->given->node_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = pieces->order[i];
        times[v] = 0;
        for (uint32_t u = 0; u < count; u++) {
            if (!judge_is_edge(pieces->given, u, v)) continue;
            const bool leaves = pieces->device_of_node[u] == d && pieces->device_of_node[v] != d;
            const uint32_t reached = times[u] + leaves;
            if (reached > times[v]) times[v] = reached;
        }
        if (pieces->device_of_node[v] == d) pieces->level[v] = times[v];
    }
}

static void judge_level_by_changes(judge_pieces *pieces) {
    const uint32_t count = pieces->given->node_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = pieces->order[i];
        pieces->level[v] = 0;
        for (uint32_t u = 0; u < count; u++) {
            if (!judge_is_edge(pieces->given, u, v)) continue;
            const uint32_t reached =
                pieces->level[u] + (pieces->device_of_node[u] != pieces->device_of_node[v]);
            if (reached > pieces->level[v]) pieces->level[v] = reached;
        }
    }
}

static bool judge_same_piece(const judge_pieces *pieces, uint32_t u, uint32_t v) {
    const uint32_t d = pieces->device_of_node[v];
    if (pieces->given->devices[d].is_parallel) return u == v;
    return pieces->device_of_node[u] == d && pieces->level[u] == pieces->level[v];
}

// What the piece of node v takes.
static double judge_piece_cost(const judge_pieces *pieces, uint32_t v) {
    const pen_problem_given *given = pieces->given;
    const uint32_t here = pieces->device_of_node[v];
    double cost = 0.0;
    for (uint32_t u = 0; u < given->node_count; u++) {
        const uint32_t home = pieces->device_of_node[u];
        const bool is_inside = judge_same_piece(pieces, u, v);
        bool is_sent = false, is_read = false;
        for (uint32_t w = 0; w < given->node_count; w++) {
            if (!judge_is_edge(given, u, w)) continue;
            if (judge_same_piece(pieces, w, v)) {
                is_read = true;
            } else {
                is_sent = true;
            }
        }
        if (is_inside) {
            cost += judge_compute(given, u, here);
            if (is_sent) cost += given->nodes[u].transfer * given->devices[here].send;
        } else if (is_read) {
            cost += given->nodes[u].transfer * given->devices[here].receive;
            cost += judge_link(given, u, home, here);
        }
    }
    return cost;
}

// Tries to finish the piece of node v; false while it must wait.
static bool judge_run_piece(judge_pieces *pieces, uint32_t v) {
    const pen_problem_given *given = pieces->given;
    double ready = 0.0;
    for (uint32_t m = 0; m < given->node_count; m++) {
        if (judge_same_piece(pieces, m, v)) {
            for (uint32_t u = 0; u < given->node_count; u++) {
                if (judge_same_piece(pieces, u, v) || !judge_is_edge(given, u, m)) continue;
                if (!pieces->is_done[u]) return false;
                ready = fmax(ready, pieces->finish[u]);
            }
        } else if (!given->devices[pieces->device_of_node[v]].is_parallel &&
                   pieces->device_of_node[m] == pieces->device_of_node[v] &&
                   pieces->level[m] < pieces->level[v]) { // the device is still busy
            if (!pieces->is_done[m]) return false;
            ready = fmax(ready, pieces->finish[m]);
        }
    }
    const double finish = ready + judge_piece_cost(pieces, v);
    for (uint32_t m = 0; m < given->node_count; m++) {
        if (!judge_same_piece(pieces, m, v)) continue;
        pieces->is_done[m] = true;
        pieces->finish[m] = finish;
    }
    return true;
}

// Runs pieces until none can; INFINITY when some wait for each other in a circle.
static double judge_run(judge_pieces *pieces) {
    const uint32_t count = pieces->given->node_count;
    double last = 0.0;
    memset(pieces->is_done, 0, count * sizeof *pieces->is_done);
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (uint32_t v = 0; v < count; v++) {
            if (!pieces->is_done[v] && judge_run_piece(pieces, v)) goes_on = true;
        }
    }
    for (uint32_t v = 0; v < count; v++) {
        if (!pieces->is_done[v]) return INFINITY;
        last = fmax(last, pieces->finish[v]);
    }
    return last;
}

static double judge_latency(const pen_problem_given *given, const uint32_t *device_of_node,
                            pen_arena *arena) {
    judge_pieces pieces = {.given = given, .device_of_node = device_of_node};
    uint32_t *times;
    CHECK_OK(PEN_NEW(arena, given->node_count, &times));
    CHECK_OK(PEN_NEW(arena, given->node_count, &pieces.order));
    CHECK_OK(PEN_NEW(arena, given->node_count, &pieces.level));
    CHECK_OK(PEN_NEW(arena, given->node_count, &pieces.finish));
    CHECK_OK(PEN_NEW(arena, given->node_count, &pieces.is_done));
    judge_order(&pieces);
    for (uint32_t d = 0; d < given->device_count; d++)
        judge_level_device(&pieces, d, times);
    const double finish = judge_run(&pieces);
    if (finish < INFINITY) return finish;
    judge_level_by_changes(&pieces);
    return judge_run(&pieces);
}

// ---- values

static double judge_traffic(const pen_problem_given *given, const uint32_t *device_of_node) {
    double traffic = 0.0;
    for (uint32_t u = 0; u < given->node_count; u++) {
        for (uint32_t d = 0; d < given->device_count; d++) {
            if (d == device_of_node[u] || !judge_is_read_on(given, device_of_node, u, d)) continue;
            traffic += given->nodes[u].transfer;
        }
    }
    return traffic;
}

double placement_judge_value(const pen_problem_given *given, const uint32_t *device_of_node,
                             pen_arena *arena) {
    double load[JUDGE_DEVICES], bytes[JUDGE_DEVICES], worst = 0.0;
    CHECK(given->device_count <= JUDGE_DEVICES, "%u devices", given->device_count);
    switch (given->objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
        placement_judge_loads(given, device_of_node, load, bytes);
        for (uint32_t d = 0; d < given->device_count; d++)
            worst = fmax(worst, load[d]);
        return worst;
    case PEN_OBJECTIVE_LATENCY:
        return judge_latency(given, device_of_node, arena);
    case PEN_OBJECTIVE_TRAFFIC:
        return judge_traffic(given, device_of_node);
    case PEN_OBJECTIVE_STEP_TIME:
        break;
    }
    CHECK(false, "objective %d", (int)given->objective);
    return 0.0;
}

double placement_judge_best(const pen_problem_given *given, pen_arena *arena) {
    uint32_t *device_of_node;
    double best = INFINITY;
    CHECK_OK(PEN_NEW(arena, given->node_count, &device_of_node));
    for (;;) {
        if (placement_judge_fault(given, device_of_node) == NULL) {
            pen_arena *scratch = check_arena();
            best = fmin(best, placement_judge_value(given, device_of_node, scratch));
            pen_arena_destroy(scratch);
        }
        uint32_t v = 0;
        while (v < given->node_count && ++device_of_node[v] == given->device_count)
            device_of_node[v++] = 0;
        if (v == given->node_count) return best;
    }
}
