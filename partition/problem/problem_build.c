#include "partition/problem/problem_build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sets/components.h"
#include "base/sets/order.h"

static bool problem_is_amount(double number) {
    return number >= 0.0 && number < PEN_PROBLEM_COST_LIMIT;
}

// How many figures of `table` are amounts, up to the first that is none.
static uint64_t problem_count_amounts(const double *table, uint64_t count) {
    bool is_amount = true;
    for (uint64_t i = 0; i < count; i++)
        is_amount &= table[i] >= 0.0 && table[i] < PEN_PROBLEM_COST_LIMIT;
    if (is_amount) return count;
    uint64_t first = 0;
    while (problem_is_amount(table[first]))
        first++;
    return first;
}

// Links of all pairs of devices: tables of millions of figures, looked at in their order.
static pen_status problem_check_links(const pen_problem_given *given) {
    const uint64_t pairs = (uint64_t)given->device_count * given->device_count;
    const uint64_t costs = problem_count_amounts(given->link, pairs);
    if (costs < pairs) {
        return pen_error(PEN_INVALID_INPUT, "links must cost finite amounts, found %g",
                         given->link[costs]);
    }
    const uint64_t latencies =
        given->link_latency == NULL ? pairs : problem_count_amounts(given->link_latency, pairs);
    if (latencies < pairs) {
        return pen_error(PEN_INVALID_INPUT, "links must have a finite latency, found %g",
                         given->link_latency[latencies]);
    }
    for (uint64_t i = 0; given->handling != NULL && i < pairs; i++) {
        const uint32_t number = given->handling_of_pair[i];
        if (i > 0 && number == given->handling_of_pair[i - 1]) continue;
        const pen_link_handling *handling = &given->handling[number];
        if (problem_is_amount(handling->send) && problem_is_amount(handling->receive) &&
            problem_is_amount(handling->message)) {
            continue;
        }
        return pen_error(PEN_INVALID_INPUT,
                         "what the ends of a link compute must be finite, found %g, %g and %g",
                         handling->send, handling->receive, handling->message);
    }
    return PEN_OK;
}

// Figures come from users and files; sums over them must stay finite and positive.
static pen_status problem_check_devices(const pen_problem_given *given) {
    char name[PEN_PROBLEM_NAME_BYTES];
    if (given->device_count == 0) return pen_error(PEN_INVALID_INPUT, "there is no device");
    if (given->device_count > PEN_PROBLEM_DEVICE_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%u devices, at most %d are possible",
                         given->device_count, PEN_PROBLEM_DEVICE_LIMIT);
    }
    for (uint32_t d = 0; d < given->device_count; d++) {
        const pen_problem_device *device = &given->devices[d];
        PEN_ASSERT(device->kind < given->kind_count);
        if (!problem_is_amount(device->send) || !problem_is_amount(device->receive) ||
            !problem_is_amount(device->slowness) || device->slowness == 0.0 ||
            !(device->bytes_limit >= 0.0)) {
            return pen_error(PEN_INVALID_INPUT, "device %s: its figures must be positive numbers",
                             pen_problem_device_name(given, d, name));
        }
    }
    PEN_ASSERT(given->link != NULL || (given->link_latency == NULL && given->handling == NULL));
    return given->link == NULL ? PEN_OK : problem_check_links(given);
}

// What is asked of the whole: objective and number of devices.
static pen_status problem_check_wishes(const pen_problem_given *given) {
    const uint32_t least = given->devices_used_minimum, most = given->devices_used_maximum;
    if (least > given->device_count) {
        return pen_error(PEN_INVALID_INPUT, "at least %u devices are to be used, there are %u",
                         least, given->device_count);
    }
    if (most > 0 && least > most) {
        return pen_error(PEN_INVALID_INPUT,
                         "at least %u devices are to be used, but at most %u may be", least, most);
    }
    if (given->objective != PEN_OBJECTIVE_STEP_TIME) return PEN_OK;
    if (given->step_time == NULL) {
        return pen_error(PEN_INVALID_INPUT, "the objective step_time needs a schedule to judge by");
    }
    if (given->microbatch_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "the objective step_time needs at least 1 microbatch");
    }
    return PEN_OK;
}

// Also checks that all sums stay finite.
static pen_status problem_check_nodes(const pen_problem_given *given) {
    char name[PEN_PROBLEM_NAME_BYTES];
    double total = 0.0;
    for (uint32_t v = 0; v < given->node_count; v++) {
        const pen_problem_node *node = &given->nodes[v];
        PEN_ASSERT(node->pin == PEN_PROBLEM_ANY || node->pin < given->device_count);
        PEN_ASSERT(node->role != PEN_ROLE_TRANSFER);
        bool is_right = problem_is_amount(node->bytes) && problem_is_amount(node->transfer) &&
                        problem_is_amount(node->bytes_in_flight) &&
                        problem_is_amount(node->workspace_bytes);
        for (uint32_t k = 0; k < given->kind_count; k++) {
            const double cost = given->compute[(uint64_t)k * given->node_count + v];
            is_right = is_right && cost >= 0.0;
            if (cost < INFINITY) total += cost;
        }
        total += node->bytes + node->transfer + node->bytes_in_flight;
        if (!is_right || !problem_is_amount(total)) {
            return pen_error(PEN_INVALID_INPUT,
                             "node %s: costs and bytes must be numbers from 0 to %g, sums too",
                             pen_problem_node_name(given, v, name), PEN_PROBLEM_COST_LIMIT);
        }
    }
    return PEN_OK;
}

// Topological order of the nodes; the smallest of those that are ready need not come first.
static pen_status problem_order_nodes(pen_problem *problem, pen_arena *arena) {
    const uint32_t count = problem->given.node_count;
    uint32_t *waits;
    PEN_TRY(PEN_NEW(arena, count, &waits));
    PEN_TRY(PEN_NEW(arena, count, &problem->node_order));
    uint32_t filled = 0;
    for (uint32_t v = 0; v < count; v++) {
        waits[v] = problem->predecessors.first[v + 1] - problem->predecessors.first[v];
        if (waits[v] == 0) problem->node_order[filled++] = v;
    }
    for (uint32_t i = 0; i < filled; i++) {
        const uint32_t v = problem->node_order[i];
        for (uint32_t e = problem->successors.first[v]; e < problem->successors.first[v + 1]; e++) {
            const uint32_t target = problem->successors.ids[e];
            if (--waits[target] == 0) problem->node_order[filled++] = target;
        }
    }
    if (filled == count) return PEN_OK;
    uint32_t on_cycle = 0;
    while (waits[on_cycle] == 0)
        on_cycle++;
    char name[PEN_PROBLEM_NAME_BYTES];
    return pen_error(PEN_INVALID_INPUT, "the graph has a cycle: node %s waits for itself",
                     pen_problem_node_name(&problem->given, on_cycle, name));
}

// ---- groups

// Numbers the groups by their first node, so that equal partitions of the nodes are equal arrays.
static uint32_t problem_number_groups(uint32_t node_count, const uint32_t *label, uint32_t *scratch,
                                      uint32_t *out_group) {
    uint32_t group_count = 0;
    memset(scratch, 0xff, node_count * sizeof *scratch);
    for (uint32_t v = 0; v < node_count; v++) {
        if (scratch[label[v]] == UINT32_MAX) scratch[label[v]] = group_count++;
        out_group[v] = scratch[label[v]];
    }
    return group_count;
}

static int problem_compare_pairs(const void *left, const void *right) {
    const pen_problem_edge *a = left, *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    return a->target < b->target ? -1 : a->target > b->target;
}

// Labels nodes by their colour: label[v] is the first node of v's colour.
static pen_status problem_label_colors(const pen_problem_given *given, pen_arena *arena,
                                       uint32_t *label) {
    pen_problem_edge *pairs; // colour, node
    PEN_TRY(PEN_NEW(arena, given->node_count, &pairs));
    uint32_t count = 0;
    for (uint32_t v = 0; v < given->node_count; v++) {
        label[v] = v;
        if (given->nodes[v].color == PEN_PROBLEM_ANY) continue;
        pairs[count++] = (pen_problem_edge){given->nodes[v].color, v};
    }
    if (count > 1) qsort(pairs, count, sizeof *pairs, problem_compare_pairs);
    for (uint32_t i = 1; i < count; i++) {
        if (pairs[i].source == pairs[i - 1].source) {
            label[pairs[i].target] = label[pairs[i - 1].target];
        }
    }
    return PEN_OK;
}

// The edges between groups that forward nodes make: `after` and `before`.
static pen_status problem_link_groups(pen_problem *problem, pen_arena *arena) {
    const pen_problem_given *given = &problem->given;
    pen_problem_edge *edges;
    PEN_TRY(PEN_NEW(arena, problem->successors.first[given->node_count], &edges));
    uint32_t count = 0;
    for (uint32_t u = 0; u < given->node_count; u++) {
        if (!pen_problem_is_forward(given, u)) continue;
        for (uint32_t e = problem->successors.first[u]; e < problem->successors.first[u + 1]; e++) {
            const uint32_t v = problem->successors.ids[e];
            const pen_problem_edge edge = {problem->group_of_node[u], problem->group_of_node[v]};
            if (edge.source != edge.target && pen_problem_is_forward(given, v)) {
                edges[count++] = edge;
            }
        }
    }
    PEN_TRY(
        pen_problem_lists_build(problem->group_count, edges, count, false, arena, &problem->after));
    return pen_problem_lists_build(problem->group_count, edges, count, true, arena,
                                   &problem->before);
}

// What strategies move is a group, so costs, bytes and pins are summed once. Two pins of one group
// contradict each other.
static pen_status problem_sum_groups(pen_problem *problem, pen_arena *arena) {
    const pen_problem_given *given = &problem->given;
    const uint32_t group_count = problem->group_count;
    PEN_TRY(PEN_NEW(arena, (uint64_t)given->kind_count * group_count, &problem->group_compute));
    PEN_TRY(PEN_NEW(arena, group_count, &problem->group_bytes));
    problem->group_bytes_in_flight = NULL;
    for (uint32_t v = 0; v < given->node_count; v++) {
        if (given->nodes[v].bytes_in_flight == 0.0) continue;
        PEN_TRY(PEN_NEW(arena, group_count, &problem->group_bytes_in_flight));
        break;
    }
    PEN_TRY(PEN_NEW(arena, group_count, &problem->group_pin));
    for (uint32_t g = 0; g < group_count; g++)
        problem->group_pin[g] = PEN_PROBLEM_ANY;
    for (uint32_t v = 0; v < given->node_count; v++) {
        const pen_problem_node *node = &given->nodes[v];
        const uint32_t g = problem->group_of_node[v];
        problem->group_bytes[g] += node->bytes;
        if (problem->group_bytes_in_flight != NULL) {
            problem->group_bytes_in_flight[g] += node->bytes_in_flight;
        }
        for (uint32_t k = 0; k < given->kind_count; k++) {
            problem->group_compute[(uint64_t)k * group_count + g] +=
                given->compute[(uint64_t)k * given->node_count + v];
        }
        if (node->pin == PEN_PROBLEM_ANY) continue;
        if (problem->group_pin[g] != PEN_PROBLEM_ANY && problem->group_pin[g] != node->pin) {
            char name[PEN_PROBLEM_NAME_BYTES], first[PEN_PROBLEM_NAME_BYTES];
            char second[PEN_PROBLEM_NAME_BYTES];
            return pen_error(PEN_INVALID_INPUT,
                             "node %s is pinned to device %s, but nodes that must share its device "
                             "are pinned to device %s",
                             pen_problem_node_name(given, v, name),
                             pen_problem_device_name(given, node->pin, first),
                             pen_problem_device_name(given, problem->group_pin[g], second));
        }
        problem->group_pin[g] = node->pin;
    }
    return PEN_OK;
}

static pen_status problem_list_members(pen_problem *problem, pen_arena *arena) {
    pen_problem_edge *pairs;
    const uint32_t count = problem->given.node_count;
    PEN_TRY(PEN_NEW(arena, count, &pairs));
    for (uint32_t v = 0; v < count; v++) {
        pairs[v] = (pen_problem_edge){problem->group_of_node[v], v};
    }
    return pen_problem_lists_build(problem->group_count, pairs, count, false, arena,
                                   &problem->members);
}

// Every group must run somewhere, taken alone.
static pen_status problem_check_homes(const pen_problem *problem) {
    const pen_problem_given *given = &problem->given;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        uint32_t nearest = PEN_PROBLEM_ANY; // of the devices that may run it
        double missing = INFINITY;
        for (uint32_t d = 0; d < given->device_count && missing > 0.0; d++) {
            if (!pen_problem_allows(problem, g, d)) continue;
            const double lack =
                pen_problem_bytes(problem, g, d) - pen_problem_bytes_limit(problem, d);
            if (lack >= missing) continue;
            missing = lack;
            nearest = d;
        }
        if (missing <= 0.0) continue;
        char name[PEN_PROBLEM_NAME_BYTES], device[PEN_PROBLEM_NAME_BYTES];
        const uint32_t first = problem->members.first[g];
        const uint32_t others = problem->members.first[g + 1] - first - 1;
        const char *node = pen_problem_node_name(given, problem->members.ids[first], name);
        char with[64] = ""; // the others of the group
        if (others > 0) {
            snprintf(with, sizeof with, " and the %u others that must share its device", others);
        }
        if (nearest == PEN_PROBLEM_ANY) {
            return pen_error(PEN_DOES_NOT_FIT, "no device can run node %s%s", node, with);
        }
        return pen_error(PEN_DOES_NOT_FIT,
                         "node %s%s: %.15g bytes are needed, the device that comes nearest, %s, "
                         "has %.15g",
                         node, with, pen_problem_bytes(problem, g, nearest),
                         pen_problem_device_name(given, nearest, device),
                         given->devices[nearest].bytes_limit);
    }
    return PEN_OK;
}

// ---- outputs

// One node's result, before those with the same readers are put together.
typedef struct outputs_draft {
    uint32_t owner;
    uint32_t reader_first; // in outputs_build.readers
    uint32_t reader_count;
    double cost;
} outputs_draft;

typedef struct outputs_build {
    outputs_draft *drafts;
    uint32_t draft_count;
    uint32_t *readers;
    uint32_t reader_count;
} outputs_build;

// The readers of node u that are in other groups, ascending, each once.
static void outputs_collect(const pen_problem *problem, uint32_t u, outputs_build *build) {
    const uint32_t owner = problem->group_of_node[u];
    uint32_t *readers = build->readers + build->reader_count;
    uint32_t count = 0;
    for (uint32_t e = problem->successors.first[u]; e < problem->successors.first[u + 1]; e++) {
        const uint32_t reader = problem->group_of_node[problem->successors.ids[e]];
        if (reader != owner) readers[count++] = reader;
    }
    if (count == 0) return;
    pen_sort_ids(readers, count);
    uint32_t distinct = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (readers[i] != readers[i - 1]) readers[distinct++] = readers[i];
    }
    build->drafts[build->draft_count++] = (outputs_draft){
        .owner = owner,
        .reader_first = build->reader_count,
        .reader_count = distinct,
        .cost = problem->given.nodes[u].transfer,
    };
    build->reader_count += distinct;
}

static bool outputs_have_same_readers(const outputs_build *build, const outputs_draft *a,
                                      const outputs_draft *b) {
    return a->reader_count == b->reader_count &&
           memcmp(build->readers + a->reader_first, build->readers + b->reader_first,
                  a->reader_count * sizeof *build->readers) == 0;
}

// How far back an output looks for one of its group with the same readers.
#define OUTPUTS_LOOK_BACK 64

// Results of one group with the same readers become one output with the sum of their costs: moves
// then look at it once.
static pen_status outputs_write(pen_problem *problem, const outputs_build *build,
                                pen_arena *arena) {
    uint32_t reader_count = 0;
    PEN_TRY(PEN_NEW(arena, build->draft_count, &problem->output_owner));
    PEN_TRY(PEN_NEW(arena, build->draft_count, &problem->output_cost));
    PEN_TRY(PEN_NEW(arena, build->draft_count, &problem->output_results));
    PEN_TRY(PEN_NEW(arena, (size_t)build->draft_count + 1, &problem->readers.first));
    PEN_TRY(PEN_NEW(arena, build->reader_count, &problem->readers.ids));
    PEN_TRY(PEN_NEW(arena, (size_t)problem->group_count + 1, &problem->own_first));
    uint32_t *draft_of; // of each output
    PEN_TRY(PEN_NEW(arena, build->draft_count, &draft_of));
    for (uint32_t i = 0; i < build->draft_count; i++) {
        const outputs_draft *draft = &build->drafts[i];
        bool is_known = false;
        uint32_t o = problem->output_count;
        for (uint32_t looked = 0; !is_known && o > 0 && looked < OUTPUTS_LOOK_BACK; looked++) {
            if (problem->output_owner[o - 1] != draft->owner) break;
            o--;
            is_known = outputs_have_same_readers(build, draft, &build->drafts[draft_of[o]]);
        }
        if (is_known) {
            problem->output_cost[o] += draft->cost;
            problem->output_results[o] += 1.0;
            continue;
        }
        o = problem->output_count++;
        draft_of[o] = i;
        problem->output_owner[o] = draft->owner;
        problem->output_cost[o] = draft->cost;
        problem->output_results[o] = 1.0;
        memcpy(problem->readers.ids + reader_count, build->readers + draft->reader_first,
               draft->reader_count * sizeof *problem->readers.ids);
        reader_count += draft->reader_count;
        problem->readers.first[o + 1] = reader_count;
        problem->own_first[draft->owner + 1] = problem->output_count;
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (problem->own_first[g + 1] < problem->own_first[g]) {
            problem->own_first[g + 1] = problem->own_first[g];
        }
    }
    return PEN_OK;
}

static pen_status outputs_list_reads(pen_problem *problem, pen_arena *arena) {
    pen_problem_edge *pairs; // group, output
    const uint32_t count =
        problem->output_count == 0 ? 0 : problem->readers.first[problem->output_count];
    PEN_TRY(PEN_NEW(arena, count, &pairs));
    for (uint32_t o = 0; o < problem->output_count; o++) {
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            pairs[r] = (pen_problem_edge){problem->readers.ids[r], o};
        }
    }
    return pen_problem_lists_build(problem->group_count, pairs, count, false, arena,
                                   &problem->reads);
}

static pen_status problem_form_outputs(pen_problem *problem, pen_arena *arena) {
    const uint32_t node_count = problem->given.node_count;
    outputs_build build = {0};
    PEN_TRY(PEN_NEW(arena, node_count, &build.drafts));
    PEN_TRY(PEN_NEW(arena, problem->successors.first[node_count], &build.readers));
    problem->output_count = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        for (uint32_t m = problem->members.first[g]; m < problem->members.first[g + 1]; m++) {
            const uint32_t u = problem->members.ids[m];
            if (problem->given.nodes[u].transfer > 0.0) outputs_collect(problem, u, &build);
        }
    }
    PEN_TRY(outputs_write(problem, &build, arena));
    return outputs_list_reads(problem, arena);
}

// ---- groups
// Fills in all about groups from group_of_node. Scratch stays in the arena.
static pen_status problem_form_groups(pen_problem *problem, uint32_t *label, pen_arena *arena) {
    const pen_problem_given *given = &problem->given;
    uint32_t *scratch;
    PEN_TRY(PEN_NEW(arena, given->node_count, &scratch));
    PEN_TRY(PEN_NEW(arena, given->node_count, &problem->group_of_node));
    problem->group_count =
        problem_number_groups(given->node_count, label, scratch, problem->group_of_node);
    PEN_TRY(problem_link_groups(problem, arena));
    if (given->is_contiguous) {
        uint32_t *component; // of each group
        uint32_t component_count;
        PEN_TRY(PEN_NEW(arena, problem->group_count, &component));
        PEN_TRY(pen_components_find(problem->group_count, problem->after.first, problem->after.ids,
                                    arena, component, &component_count));
        if (component_count < problem->group_count) {
            for (uint32_t v = 0; v < given->node_count; v++) {
                label[v] = component[problem->group_of_node[v]];
            }
            problem->group_count =
                problem_number_groups(given->node_count, label, scratch, problem->group_of_node);
            PEN_TRY(problem_link_groups(problem, arena));
        }
    }
    PEN_TRY(problem_sum_groups(problem, arena));
    PEN_TRY(problem_list_members(problem, arena));
    PEN_TRY(problem_check_homes(problem));
    return problem_form_outputs(problem, arena);
}

// ---- the whole

// Checks, then groups: nodes of one colour share a device, and where contiguity asks for it, so do
// nodes that wait for each other.
pen_status pen_problem_build(const pen_problem_given *given, pen_arena *arena,
                             pen_problem **out_problem) {
    pen_problem *problem;
    pen_problem_edge *edges;
    uint32_t *label;
    PEN_TRY(problem_check_devices(given));
    PEN_TRY(problem_check_nodes(given));
    PEN_TRY(problem_check_wishes(given));
    PEN_TRY(PEN_NEW(arena, 1, &problem));
    PEN_TRY(PEN_NEW(arena, given->node_count, &label));
    PEN_TRY(PEN_NEW(arena, given->edge_count, &edges));
    PEN_TRY(pen_problem_adopt(given, arena, &problem->given));
    uint32_t edge_count = 0; // without loops
    for (uint32_t e = 0; e < given->edge_count; e++) {
        PEN_ASSERT(given->edges[e].source < given->node_count);
        PEN_ASSERT(given->edges[e].target < given->node_count);
        if (given->edges[e].source != given->edges[e].target) edges[edge_count++] = given->edges[e];
    }
    PEN_TRY(pen_problem_lists_build(given->node_count, edges, edge_count, false, arena,
                                    &problem->successors));
    PEN_TRY(pen_problem_lists_build(given->node_count, edges, edge_count, true, arena,
                                    &problem->predecessors));
    PEN_TRY(problem_order_nodes(problem, arena));
    PEN_TRY(problem_label_colors(given, arena, label));
    PEN_TRY(problem_form_groups(problem, label, arena));
    *out_problem = problem;
    return PEN_OK;
}

pen_status pen_problem_merge(const pen_problem *problem, const uint32_t *class_of_group,
                             bool is_contiguous, pen_arena *arena, pen_problem **out_problem) {
    pen_problem *merged;
    uint32_t *label;
    PEN_TRY(PEN_NEW(arena, 1, &merged));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &label));
    merged->given = problem->given;
    merged->given.is_contiguous = is_contiguous;
    merged->successors = problem->successors;
    merged->predecessors = problem->predecessors;
    merged->node_order = problem->node_order;
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        label[v] = class_of_group[problem->group_of_node[v]];
        PEN_ASSERT(label[v] < problem->group_count);
    }
    PEN_TRY(problem_form_groups(merged, label, arena));
    *out_problem = merged;
    return PEN_OK;
}
