#include "partition/replicas/replica_view.h"

#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/lanes.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "partition/costs/cluster_links.h"
#include "partition/replicas/replica_spec.h"
#include "partition/spec/name_match.h"

typedef struct view_builder {
    const pen_plan_request *whole;
    const pen_plan_replica *replica;
    pen_replica_view *view;
    pen_arena *arena;
} view_builder;

uint32_t pen_replica_microbatch(const pen_plan_request *request, uint32_t lane) {
    const uint64_t lanes = request->lanes > 1 ? request->lanes : 1;
    const uint64_t microbatches = request->planned->microbatch_count;
    return (uint32_t)((lane * microbatches + lanes - 1) / lanes);
}

// Where a device of the whole is among the replica's; its device count: nowhere.
static uint32_t view_find(const view_builder *b, uint32_t device) {
    uint32_t at = 0;
    while (at < b->replica->device_count && b->replica->devices[at] != device)
        at++;
    return at;
}

// Devices, links and rows of costs of the replica alone.
static pen_status view_cluster(view_builder *b, const uint64_t *reserved) {
    const pen_cluster *whole = b->whole->cluster;
    const uint32_t count = b->replica->device_count;
    pen_cluster_device *devices;
    pen_link_set links;
    uint32_t *rows;
    PEN_TRY(PEN_NEW(b->arena, count, &devices));
    PEN_TRY(PEN_NEW(b->arena, count, &rows));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = b->replica->devices[i];
        devices[i] = whole->devices[from];
        if (reserved != NULL) {
            devices[i].bytes_limit -= pen_min_u64(devices[i].bytes_limit, reserved[from]);
        }
        rows[i] = b->whole->costs->row_of_device[from];
    }
    b->view->cluster = (pen_cluster){.device_count = count, .devices = devices};
    PEN_TRY(pen_link_set_cut(whole, b->replica->devices, count, b->arena, &links));
    PEN_TRY(pen_cluster_link_up(&b->view->cluster, &links));
    b->view->costs = *b->whole->costs;
    b->view->costs.row_of_device = rows;
    return PEN_OK;
}

// A stack of sums of lanes: it adds up what adds up itself.
bool pen_replica_is_stack(const pen_graph *graph, const pen_value *value) {
    if (value->kind != PEN_VALUE_COMPUTED || pen_value_is(value->replaces)) return false;
    const pen_node *node = pen_graph_node(graph, value->producer);
    if (!node->accumulates || node->input_count != 1) return false;
    const pen_node_id maker = pen_graph_value(graph, node->inputs[0])->producer;
    return pen_node_is(maker) && pen_graph_node(graph, maker)->accumulates;
}

bool pen_replica_is_apart(const pen_graph *graph, const pen_value *value) {
    const pen_node *node = pen_graph_node(graph, value->producer);
    return node->op == PEN_OP(tree_sum) && pen_node_int(node, "apart") != 0;
}

// Rows of all microbatches, of which a replica has its own.
static bool view_is_rows(const pen_graph *graph, const pen_value *value) {
    return value->kind == PEN_VALUE_COMPUTED &&
           pen_graph_node(graph, value->producer)->op == PEN_OP(stack_rows);
}

// The graph is the whole one; bytes and microbatches are the replica's.
static pen_status view_graph(view_builder *b, uint32_t replica_count) {
    const pen_planned_graph *whole = b->whole->planned;
    const uint32_t first = b->replica->first_lane, end = first + b->replica->lane_count;
    const uint32_t value_count = pen_graph_value_count(whole->graph);
    const uint32_t lanes = b->whole->lanes > 1 ? b->whole->lanes : 1;
    const uint64_t all = pen_lane_depth(0, lanes), own = pen_lane_depth(first, end);
    const bool has_owners = pen_replicas_have_owners(b->whole->placement);
    const uint32_t share =
        pen_replica_microbatch(b->whole, end) - pen_replica_microbatch(b->whole, first);
    uint64_t *bytes;
    PEN_TRY(PEN_NEW(b->arena, value_count, &bytes));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(whole->graph, (pen_value_id){v});
        bytes[v] = whole->bytes_of_value[v];
        if (pen_replica_is_stack(whole->graph, value)) {
            const bool is_apart = pen_replica_is_apart(whole->graph, value);
            bytes[v] = is_apart ? bytes[v] / lanes * (end - first) : bytes[v] / all * own;
        }
        if (view_is_rows(whole->graph, value))
            bytes[v] = bytes[v] * share / whole->microbatch_count;
        if (value->kind != PEN_VALUE_STATE || value->data != NULL) continue;
        bytes[v] = has_owners ? 0 : bytes[v] / replica_count;
    }
    b->view->planned = *whole;
    b->view->planned.bytes_of_value = bytes;
    b->view->planned.microbatch_count = share;
    b->view->planned.is_local = false;
    return PEN_OK;
}

static pen_status view_pins(view_builder *b) {
    const pen_constraints *whole = &b->whole->placement->constraints;
    const pen_constraint_pin *items = whole->pins.items;
    pen_constraint_pin *kept;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(b->arena, whole->pins.count, &kept));
    for (uint32_t i = 0; i < whole->pins.count; i++) {
        for (uint32_t d = 0; d < b->view->cluster.device_count; d++) {
            if (strcmp(b->view->cluster.devices[d].name, items[i].to) == 0)
                kept[count++] = items[i];
        }
    }
    b->view->placement.constraints.pins = (pen_option_list){kept, count};
    return PEN_OK;
}

// An entry for each device that is meant and is the replica's.
static pen_status view_forbidden(view_builder *b) {
    const pen_cluster *cluster = b->whole->cluster;
    const pen_constraints *whole = &b->whole->placement->constraints;
    const pen_constraint_forbid *items = whole->forbidden.items;
    const size_t most = (size_t)whole->forbidden.count * b->replica->device_count;
    pen_constraint_forbid *kept;
    const char **names;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(b->arena, most, &kept));
    PEN_TRY(PEN_NEW(b->arena, cluster->device_count, &names));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        names[d] = cluster->devices[d].name;
    }
    const pen_name_set set = {names, cluster->device_count, "device"};
    for (uint32_t i = 0; i < whole->forbidden.count; i++) {
        pen_name_matches matches;
        PEN_TRY(pen_constraints_blame(whole, &items[i].on,
                                      pen_match_devices(&set, items[i].on, b->arena, &matches)));
        for (uint32_t m = 0; m < matches.count; m++) {
            if (view_find(b, matches.indices[m]) == b->replica->device_count) continue;
            kept[count++] = (pen_constraint_forbid){items[i].nodes, names[matches.indices[m]]};
        }
    }
    b->view->placement.constraints.forbidden = (pen_option_list){kept, count};
    return PEN_OK;
}

// The whole request, with what of it is the replica's put in place.
pen_status pen_replica_view_new(const pen_plan_request *whole, const pen_plan_replica *replica,
                                uint32_t replica_count, const uint64_t *reserved, pen_arena *arena,
                                const pen_replica_view **out_view) {
    view_builder b = {.whole = whole, .replica = replica, .arena = arena};
    PEN_TRY(PEN_NEW(arena, 1, &b.view));
    b.view->request = *whole;
    b.view->placement = *whole->placement;
    b.view->placement.replicas = 1;
    b.view->placement.owners = (pen_option_list){0};
    b.view->placement.constraints.source = NULL; // entries are the view's own
    PEN_TRY(view_cluster(&b, reserved));
    PEN_TRY(view_graph(&b, replica_count));
    PEN_TRY(view_pins(&b));
    PEN_TRY(view_forbidden(&b));
    b.view->request.planned = &b.view->planned;
    b.view->request.cluster = &b.view->cluster;
    b.view->request.costs = &b.view->costs;
    b.view->request.placement = &b.view->placement;
    *out_view = b.view;
    return PEN_OK;
}
