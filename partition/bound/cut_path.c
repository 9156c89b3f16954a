#include "partition/bound/cut_path.h"

#include <math.h>

// A path while its places are found.
typedef struct cut_walk {
    const pen_kept_edges *kept;
    const double *least;
    const double *begin;
    uint32_t *nodes; // [node_count] of the path, in its order
    uint32_t node_count;
    uint32_t *place_of_group; // [group_count] or PEN_PROBLEM_ANY
    uint32_t *place_of_node;  // [node_count] of the path's nodes that have a place, or ANY
    bool *follows;            // [node_count] waits for the path up to its place
    bool *leads;              // [node_count] what is left of the path after its place waits for it
    pen_cut_path *path;
} cut_walk;

// Back from the node that ends last, always to the one it waits for.
static pen_status cut_walk_trace(cut_walk *walk, pen_arena *arena) {
    const pen_problem *problem = walk->kept->problem;
    const uint32_t count = problem->given.node_count;
    uint32_t last = 0;
    PEN_TRY(PEN_NEW(arena, count, &walk->nodes));
    for (uint32_t v = 1; v < count; v++) {
        if (walk->begin[v] + walk->least[v] > walk->begin[last] + walk->least[last]) last = v;
    }
    for (uint32_t v = last, next = PEN_PROBLEM_ANY;; v = next, next = PEN_PROBLEM_ANY) {
        walk->nodes[walk->node_count++] = v;
        double latest = -1.0;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            const double end = walk->begin[u] + walk->least[u];
            if (end <= latest || !pen_kept_edges_has(walk->kept, u, v)) continue;
            latest = end;
            next = u;
        }
        if (next == PEN_PROBLEM_ANY) break;
    }
    for (uint32_t i = 0; i < walk->node_count / 2; i++) {
        const uint32_t v = walk->nodes[i];
        walk->nodes[i] = walk->nodes[walk->node_count - 1 - i];
        walk->nodes[walk->node_count - 1 - i] = v;
    }
    return PEN_OK;
}

// The least that a byte takes from one device to another, and the least latency.
static void cut_walk_link(const pen_problem_given *given, double *out_seconds,
                          double *out_latency) {
    const uint32_t count = given->device_count;
    double seconds = INFINITY, latency = INFINITY;
    for (uint32_t from = 0; from < count; from++) {
        const double *link = given->link == NULL ? NULL : &given->link[(size_t)from * count];
        const double *wait = link == NULL || given->link_latency == NULL
                                 ? NULL
                                 : &given->link_latency[(size_t)from * count];
        for (uint32_t to = 0; to < count; to++) {
            if (from == to) continue;
            const double byte = given->devices[from].send + given->devices[to].receive +
                                (link == NULL ? 0.0 : link[to]);
            const double first = wait == NULL ? 0.0 : wait[to];
            seconds = byte < seconds ? byte : seconds;
            latency = first < latency ? first : latency;
        }
    }
    *out_seconds = seconds;
    *out_latency = latency;
}

// What it takes at least to send the result of a node; no more than costs may be.
static double cut_walk_send(const cut_walk *walk, uint32_t node, double seconds, double latency) {
    const double moved = walk->kept->problem->given.nodes[node].transfer;
    if (!(moved > 0.0)) return 0.0;
    return fmin(PEN_PROBLEM_COST_LIMIT, moved * seconds + latency);
}

// Forward nodes of the path make the places; a group that the path comes to again gets another,
// which has no work.
static void cut_walk_go_there(cut_walk *walk, double seconds, double latency) {
    const pen_problem *problem = walk->kept->problem;
    pen_cut_path *path = walk->path;
    uint32_t group = PEN_PROBLEM_ANY;
    for (uint32_t i = 0; i < walk->node_count; i++) {
        const uint32_t v = walk->nodes[i], g = problem->group_of_node[v];
        if (!pen_problem_is_forward(&problem->given, v)) return;
        if (g != group) {
            pen_cut_place *place = &path->places[path->place_count++];
            place->head = walk->begin[v];
            if (i > 0) {
                place->cut_there = cut_walk_send(walk, walk->nodes[i - 1], seconds, latency);
            }
            if (walk->place_of_group[g] == PEN_PROBLEM_ANY) {
                walk->place_of_group[g] = path->place_count - 1;
            }
            group = g;
        }
        path->places[path->place_count - 1].forward += walk->least[v];
        walk->place_of_node[v] = path->place_count - 1;
        walk->follows[v] = true;
    }
}

// Backward-input nodes of the path belong to places as long as they go back in their order.
static void cut_walk_go_back(cut_walk *walk, double seconds, double latency) {
    const pen_problem *problem = walk->kept->problem;
    pen_cut_path *path = walk->path;
    uint32_t lowest = path->place_count, before = PEN_PROBLEM_ANY;
    for (uint32_t i = 0; i < walk->node_count; i++) {
        const uint32_t v = walk->nodes[i];
        const uint32_t p = walk->place_of_group[problem->group_of_node[v]];
        if (pen_problem_is_forward(&problem->given, v)) continue;
        if (problem->given.nodes[v].role != PEN_ROLE_BACKWARD_INPUT || p == PEN_PROBLEM_ANY ||
            p > lowest) {
            path->aside += walk->least[v];
            before = PEN_PROBLEM_ANY;
            continue;
        }
        if (before == p + 1) {
            path->places[before].cut_back =
                cut_walk_send(walk, walk->nodes[i - 1], seconds, latency);
        }
        path->places[p].backward += walk->least[v];
        path->places[p].tail = path->seconds - (walk->begin[v] + walk->least[v]);
        walk->place_of_node[v] = p;
        walk->follows[v] = walk->leads[v] = true;
        lowest = before = p;
    }
    for (uint32_t i = 0; i < walk->node_count; i++) { // the path itself leads from there to back
        const uint32_t v = walk->nodes[i];
        const uint32_t p = walk->place_of_group[problem->group_of_node[v]];
        if (!pen_problem_is_forward(&problem->given, v)) return;
        walk->leads[v] = path->places[p].backward > 0.0;
    }
}

// Whether a kept edge leads between two nodes of a group.
static bool cut_walk_is_within(const cut_walk *walk, uint32_t u, uint32_t v) {
    const uint32_t *group = walk->kept->problem->group_of_node;
    return group[u] == group[v] && pen_kept_edges_has(walk->kept, u, v);
}

// The work of places: what follows the path within their groups, and what of that leads back to it.
static void cut_walk_gather(cut_walk *walk) {
    const pen_problem *problem = walk->kept->problem;
    const uint32_t count = problem->given.node_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = problem->node_order[i];
        for (uint32_t e = problem->predecessors.first[v];
             e < problem->predecessors.first[v + 1] && !walk->follows[v]; e++) {
            const uint32_t u = problem->predecessors.ids[e];
            walk->follows[v] = walk->follows[u] && cut_walk_is_within(walk, u, v);
        }
    }
    for (uint32_t i = count; i-- > 0;) {
        const uint32_t v = problem->node_order[i];
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            if (walk->leads[v] && cut_walk_is_within(walk, u, v)) walk->leads[u] = true;
        }
    }
    for (uint32_t v = 0; v < count; v++) {
        const uint32_t p = walk->place_of_group[problem->group_of_node[v]];
        const pen_role role = problem->given.nodes[v].role;
        if (p == PEN_PROBLEM_ANY || !walk->follows[v]) continue;
        const double times = role == PEN_ROLE_UPDATE ? 1.0 : problem->given.microbatch_count;
        walk->path->places[p].all += walk->least[v] * times;
        if (role != PEN_ROLE_FORWARD && role != PEN_ROLE_BACKWARD_INPUT) continue;
        if (walk->leads[v]) walk->path->places[p].early += walk->least[v];
    }
}

// ---- ways around

#define CUT_SEGMENT_SLACK 2 // places that a way around may lengthen another's segment by

// The result of a node in place `low`, or a gradient back to there, that goes around to `high`.
typedef struct cut_way {
    uint32_t low;
    uint32_t high;
    uint32_t node; // that is sent
    double line;   // seconds that it takes the line
    double longer; // seconds that it is on its way longer than the path
    bool is_back;
} cut_way;

// Ways between nodes of the path that are not beside each other.
static uint32_t cut_walk_list_ways(const cut_walk *walk, double seconds, double latency,
                                   cut_way *ways) {
    const pen_problem *problem = walk->kept->problem;
    uint32_t count = 0;
    for (uint32_t i = 0; i < walk->node_count; i++) {
        const uint32_t v = walk->nodes[i], to = walk->place_of_node[v];
        const bool is_back = !pen_problem_is_forward(&problem->given, v);
        if (to == PEN_PROBLEM_ANY) continue;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e], from = walk->place_of_node[u];
            if (from == PEN_PROBLEM_ANY || !pen_kept_edges_has(walk->kept, u, v)) continue;
            if (pen_problem_is_forward(&problem->given, u) == is_back) continue;
            const double between = walk->begin[v] - walk->begin[u] - walk->least[u];
            const double sent = cut_walk_send(walk, u, seconds, latency);
            const uint32_t low = is_back ? to : from, high = is_back ? from : to;
            if (low + 1 >= high || !(sent > 0.0)) continue;
            ways[count++] =
                (cut_way){.low = low,
                          .high = high,
                          .node = u,
                          .line = fmin(sent, problem->given.nodes[u].transfer * seconds),
                          .longer = sent - between,
                          .is_back = is_back};
        }
    }
    return count;
}

// What is known of a place, to say what stages are around a cut.
typedef struct cut_closure {
    bool *is_whole;       // [place_count] its group's forward nodes are the path's, of no loop
    uint32_t *reads_from; // [place_count] 1 + the first place that it reads; 0 if it reads others
} cut_closure;

// Whether the stages on either side of any single cut between the places of a way are known: none
// of the places behind the first reads what is not of these places. Then none can come later for
// the sake of a third device.
static bool cut_closure_holds(const cut_closure *closure, const cut_way *way) {
    for (uint32_t p = way->low; p <= way->high; p++) {
        if (!closure->is_whole[p]) return false;
        if (p > way->low && closure->reads_from[p] < way->low + 1) return false;
    }
    return true;
}

// A place is whole if no forward node of its group is off the path, and no node but its first reads
// another place: else the group's nodes may be in several stages.
static pen_status cut_walk_close(const cut_walk *walk, pen_arena *arena, cut_closure *closure) {
    const pen_problem *problem = walk->kept->problem;
    uint32_t *left; // [group_count] forward nodes that the path does not have
    PEN_TRY(PEN_NEW(arena, walk->node_count, &closure->is_whole));
    PEN_TRY(PEN_NEW(arena, walk->node_count, &closure->reads_from));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &left));
    for (uint32_t v = 0; v < problem->given.node_count; v++)
        left[problem->group_of_node[v]] += pen_problem_is_forward(&problem->given, v);
    for (uint32_t i = 0; i < walk->node_count; i++)
        left[problem->group_of_node[walk->nodes[i]]] -=
            pen_problem_is_forward(&problem->given, walk->nodes[i]);
    for (uint32_t i = 0; i < walk->node_count; i++) {
        const uint32_t v = walk->nodes[i], p = walk->place_of_node[v];
        const uint32_t g = problem->group_of_node[v];
        if (!pen_problem_is_forward(&problem->given, v)) break;
        const bool is_first = i == 0 || walk->place_of_node[walk->nodes[i - 1]] != p;
        if (is_first) closure->is_whole[p] = left[g] == 0 && walk->place_of_group[g] == p;
        if (is_first) closure->reads_from[p] = p + 1;
        if (problem->given.nodes[v].loop != 0) closure->is_whole[p] = false;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t from = walk->place_of_node[problem->predecessors.ids[e]];
            const uint32_t reads = from == PEN_PROBLEM_ANY ? 0 : from + 1;
            if (reads < closure->reads_from[p]) closure->reads_from[p] = reads;
            if (!is_first && from != p) closure->is_whole[p] = false;
        }
    }
    return PEN_OK;
}

// Divides places into segments: each begins with the shortest way around from there, and is longer
// by what ways from within it need, if that is little.
static void cut_walk_set_segments(const cut_walk *walk, const cut_way *ways, uint32_t way_count,
                                  uint32_t *nearest) {
    pen_cut_path *path = walk->path;
    uint32_t segment = 0;
    for (uint32_t p = 0; p < path->place_count; p++)
        nearest[p] = PEN_PROBLEM_ANY;
    for (uint32_t i = 0; i < way_count; i++) {
        const cut_way *way = &ways[i];
        if (way->high < nearest[way->low]) nearest[way->low] = way->high;
    }
    for (uint32_t p = 0; p < path->place_count;) {
        uint32_t end = nearest[p];
        if (end == PEN_PROBLEM_ANY) {
            p++;
            continue;
        }
        const uint32_t most = end + CUT_SEGMENT_SLACK;
        for (uint32_t q = p + 1; q < end; q++) {
            if (nearest[q] != PEN_PROBLEM_ANY && nearest[q] <= most && nearest[q] > end) {
                end = nearest[q];
            }
        }
        segment++;
        for (uint32_t q = p + 1; q <= end; q++)
            path->places[q].segment = segment;
        p = end;
    }
}

// Finds segments, and for each cut in one what a way around it takes that is within the segment: of
// closed places the same line for both, or what it is longer than the path.
static pen_status cut_walk_go_around(const cut_walk *walk, double seconds, double latency,
                                     pen_arena *arena) {
    const pen_problem *problem = walk->kept->problem;
    pen_cut_place *places = walk->path->places;
    cut_way *ways;
    uint32_t *nearest;
    cut_closure closure;
    PEN_TRY(PEN_NEW(arena, problem->predecessors.first[problem->given.node_count], &ways));
    PEN_TRY(PEN_NEW(arena, walk->node_count, &nearest));
    PEN_TRY(cut_walk_close(walk, arena, &closure));
    const uint32_t count = cut_walk_list_ways(walk, seconds, latency, ways);
    cut_walk_set_segments(walk, ways, count, nearest);
    for (uint32_t i = 0; i < count; i++) {
        const cut_way *way = &ways[i];
        const uint32_t segment = places[way->high].segment;
        if (segment == 0 || places[way->low + 1].segment != segment) continue;
        const bool is_closed = !problem->given.is_finer && cut_closure_holds(&closure, way);
        for (uint32_t p = way->low + 1; p <= way->high; p++) {
            double *around = way->is_back ? &places[p].around_back : &places[p].around_there;
            const double cut = way->is_back ? places[p].cut_back : places[p].cut_there;
            // beside its own node's cut the same result is not sent twice
            const bool is_beside = p == (way->is_back ? way->high : way->low + 1);
            const bool shares = is_closed && cut > 0.0 && !is_beside;
            *around = fmax(*around, shares ? cut + way->line : way->longer);
        }
    }
    return PEN_OK;
}

// First the nodes of the path, then its places, on the way there and back, then their work.
pen_status pen_cut_path_find(const pen_kept_edges *kept, const double *least, const double *begin,
                             pen_arena *arena, pen_cut_path *out_path) {
    const pen_problem *problem = kept->problem;
    const uint32_t node_count = problem->given.node_count;
    cut_walk walk = {.kept = kept, .least = least, .begin = begin, .path = out_path};
    double seconds, latency;
    *out_path = (pen_cut_path){0};
    if (node_count == 0) return PEN_OK;
    PEN_TRY(cut_walk_trace(&walk, arena));
    PEN_TRY(PEN_NEW(arena, node_count, &walk.follows));
    PEN_TRY(PEN_NEW(arena, node_count, &walk.leads));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &walk.place_of_group));
    PEN_TRY(PEN_NEW(arena, walk.node_count, &out_path->places));
    PEN_TRY(PEN_NEW(arena, node_count, &walk.place_of_node));
    for (uint32_t v = 0; v < node_count; v++)
        walk.place_of_node[v] = PEN_PROBLEM_ANY;
    for (uint32_t g = 0; g < problem->group_count; g++)
        walk.place_of_group[g] = PEN_PROBLEM_ANY;
    const uint32_t last = walk.nodes[walk.node_count - 1];
    out_path->seconds = begin[last] + least[last];
    cut_walk_link(&problem->given, &seconds, &latency);
    cut_walk_go_there(&walk, seconds, latency);
    cut_walk_go_back(&walk, seconds, latency);
    cut_walk_gather(&walk);
    return cut_walk_go_around(&walk, seconds, latency, arena);
}
