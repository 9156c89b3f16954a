#include "partition/replicas/replica_divide.h"

#include "partition/plan/replica_check.h"
#include "partition/replicas/replica_rebuild.h"

#define DIVIDE_PIECES_LIMIT 8u
#define DIVIDE_GAIN 1e-3 // of a step, that more pieces must bring

// How much of its stage a node is: half of it by time, half by bytes.
typedef struct divide_totals {
    double seconds;
    double bytes;
    double passed; // of the nodes before
} divide_totals;

static double divide_share(const divide_totals *totals, const pen_plan_node *node) {
    double share = 0.0;
    if (totals->seconds > 0.0) share += node->seconds / totals->seconds;
    if (totals->bytes > 0.0) share += (double)node->bytes / totals->bytes;
    return share;
}

// Stages of the pieces, in the order of the stages that they are of: all pieces of all stages,
// whether or not a node is in them. Nodes come in the order in which one device would run them.
static pen_status divide_nodes(const pen_plan *plan, uint32_t pieces, pen_arena *arena,
                               pen_plan_node *nodes) {
    divide_totals *totals;
    PEN_TRY(PEN_NEW(arena, plan->stages.stage_count, &totals));
    for (uint32_t n = 0; n < plan->node_count; n++) {
        totals[plan->nodes[n].stage].seconds += plan->nodes[n].seconds;
        totals[plan->nodes[n].stage].bytes += (double)plan->nodes[n].bytes;
    }
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        divide_totals *total = &totals[node->stage];
        const double whole = (total->seconds > 0.0) + (total->bytes > 0.0);
        const double share = divide_share(total, node);
        const double middle = whole > 0.0 ? (total->passed + share / 2) / whole : 0.0;
        uint32_t piece = (uint32_t)(middle * pieces);
        if (piece >= pieces) piece = pieces - 1;
        nodes[n] = *node;
        nodes[n].stage = node->stage * pieces + piece;
        nodes[n].update_stage = node->update_stage * pieces;
        total->passed += share;
    }
    return PEN_OK;
}

// Numbers the stages that have nodes. `number` [stages of all pieces]: its own, or PEN_ID_NONE.
static pen_status divide_number(const pen_plan *plan, uint32_t pieces, const pen_plan_node *nodes,
                                pen_arena *arena, uint32_t **out_number, uint32_t *out_count) {
    const uint32_t stage_count = plan->stages.stage_count * pieces;
    uint32_t *number, count = 0;
    PEN_TRY(PEN_NEW(arena, stage_count, &number));
    for (uint32_t n = 0; n < plan->node_count; n++) {
        number[nodes[n].stage] = 1;
    }
    for (uint32_t s = pen_plan_owner_stage(plan); s < plan->stages.stage_count; s++) {
        number[s * pieces] = 1; // owners have no nodes, and are not cut
    }
    for (uint32_t s = 0; s < stage_count; s++) {
        number[s] = number[s] == 1 ? count++ : PEN_ID_NONE;
    }
    *out_number = number;
    *out_count = count;
    return PEN_OK;
}

// The stage of the first piece of `stage` that has nodes.
static uint32_t divide_first(const uint32_t *number, uint32_t stage, uint32_t pieces) {
    uint32_t s = stage * pieces;
    while (number[s] == PEN_ID_NONE)
        s++;
    return number[s];
}

// The plan with its stages in pieces: what a person would write by hand. Figures are those of whole
// stages; they are worked out anew.
static pen_status divide_write(const pen_plan *plan, uint32_t pieces, pen_arena *arena,
                               pen_plan *out_given) {
    pen_plan_node *nodes;
    pen_plan_stage *figures;
    pen_plan_replica *replicas;
    pen_stage *stages;
    uint32_t *number;
    pen_plan given = *plan;
    PEN_TRY(PEN_NEW(arena, plan->node_count, &nodes));
    PEN_TRY(divide_nodes(plan, pieces, arena, nodes));
    PEN_TRY(divide_number(plan, pieces, nodes, arena, &number, &given.stages.stage_count));
    PEN_TRY(PEN_NEW(arena, given.stages.stage_count, &stages));
    PEN_TRY(PEN_NEW(arena, given.stages.stage_count, &figures));
    PEN_TRY(PEN_NEW(arena, plan->replica_count, &replicas));
    for (uint32_t s = 0; s < plan->stages.stage_count * pieces; s++) {
        if (number[s] == PEN_ID_NONE) continue;
        stages[number[s]] = plan->stages.stages[s / pieces];
        figures[number[s]] = plan->stage_figures[s / pieces];
    }
    for (uint32_t n = 0; n < plan->node_count; n++) {
        nodes[n].stage = number[nodes[n].stage];
        nodes[n].update_stage = divide_first(number, plan->nodes[n].update_stage, pieces);
    }
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const uint32_t end = plan->replicas[r].first_stage + plan->replicas[r].stage_count;
        replicas[r] = plan->replicas[r];
        replicas[r].first_stage = divide_first(number, replicas[r].first_stage, pieces);
        replicas[r].stage_count =
            (end < plan->stages.stage_count ? divide_first(number, end, pieces)
                                            : given.stages.stage_count) -
            replicas[r].first_stage;
    }
    given.nodes = nodes;
    given.stages.stages = stages;
    given.stage_figures = figures;
    given.replicas = replicas;
    *out_given = given;
    return PEN_OK;
}

pen_status pen_replica_divide(const pen_plan_request *request, pen_arena *arena, pen_plan **plan) {
    const pen_plan *whole = *plan;
    if (request->exchange != PEN_EXCHANGE_OVERLAPPED || whole->replica_count == 0) return PEN_OK;
    for (uint32_t pieces = 2; pieces <= DIVIDE_PIECES_LIMIT; pieces *= 2) {
        pen_plan given, *divided;
        PEN_TRY(divide_write(whole, pieces, arena, &given));
        const pen_status status = pen_replica_plan_rebuild(request, &given, arena, &divided);
        const pen_status_code code = pen_status_get_code(status);
        if (code == PEN_DOES_NOT_FIT || code == PEN_INVALID_INPUT) {
            pen_status_ignore(status, "there is a plan");
            continue;
        }
        PEN_TRY(status);
        divided->is_cut = whole->is_cut;
        if (divided->step_seconds < (*plan)->step_seconds * (1.0 - DIVIDE_GAIN)) *plan = divided;
    }
    return PEN_OK;
}
