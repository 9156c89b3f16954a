#include "scheduler/plan/plan_host_costs.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cluster_build.h"
#include "partition/costs/cost_key.h"

typedef struct host_pricing {
    const pen_plan_model *model;
    const pen_cluster *cluster;
    const pen_cost_table *table;
    pen_arena *scratch;
    pen_node_cost *costs; // [row_count][node_count]
    uint32_t node_count;
} host_pricing;

// The roofline of a cpu device with as many threads, and two copies by way of the host's memory.
static double host_seconds(const pen_cluster_device *device, const pen_graph *graph,
                           pen_node_id node) {
    const pen_assumed_link link = pen_cluster_assumed_link(PEN_CARRIER_MEMORY);
    const double flops = (double)pen_node_flops(graph, node);
    const double bytes = (double)pen_node_bytes(graph, node);
    return fmax(flops / (PEN_ASSUMED_FLOPS_PER_THREAD * device->threads),
                bytes / PEN_ASSUMED_MEMORY_BANDWIDTH) +
           bytes / link.bandwidth + 2 * link.latency;
}

static pen_status host_is_known(const host_pricing *h, const pen_cluster_device *device,
                                pen_node_id node, bool *out_is_known) {
    const pen_graph *graph = h->model->program->graph;
    const pen_cost_entry *entry;
    const pen_cost_rates *rates;
    const char *shape;
    *out_is_known = false;
    if (h->table == NULL) return PEN_OK;
    pen_arena_reset(h->scratch);
    PEN_TRY(pen_cost_key(graph, node, h->scratch, &shape));
    pen_cost_model_look_up(h->table, device, pen_graph_node(graph, node)->op->name, shape, &entry,
                           &rates);
    *out_is_known = entry != NULL;
    return PEN_OK;
}

static pen_status host_price_row(const host_pricing *h, uint32_t d, uint32_t row) {
    const pen_cluster_device *device = &h->cluster->devices[d];
    pen_device *opened = h->model->devices[h->model->number_of_device[d]];
    const pen_graph *graph = h->model->program->graph;
    if (opened->kind->runs_on_host == NULL) return PEN_OK;
    for (uint32_t n = 0; n < h->node_count; n++) {
        const pen_node_id node = {n};
        pen_node_cost *cost = &h->costs[(size_t)row * h->node_count + n];
        bool is_known;
        if (cost->seconds == 0 || !opened->kind->runs_on_host(opened, graph, node)) continue;
        PEN_TRY(host_is_known(h, device, node, &is_known));
        if (is_known) continue;
        cost->seconds = host_seconds(device, graph, node);
        if (device->slowness > 0) cost->seconds *= device->slowness;
        cost->source = PEN_FIGURE_ASSUMED;
    }
    return PEN_OK;
}

// Devices of a row are alike: it is priced by its first.
pen_status pen_plan_price_host(const pen_plan_model *model, const pen_cluster *cluster,
                               const pen_cost_table *table, pen_arena *arena,
                               const pen_cost_model **costs) {
    const pen_cost_model *before = *costs;
    const size_t count = (size_t)before->row_count * before->node_count;
    host_pricing h = {
        .model = model, .cluster = cluster, .table = table, .node_count = before->node_count};
    pen_cost_model *priced;
    bool *is_done, has_host = false;
    for (uint32_t k = 0; k < model->device_count; k++) {
        has_host = has_host || model->devices[k]->kind->runs_on_host != NULL;
    }
    if (!has_host) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &priced));
    PEN_TRY(PEN_NEW(arena, count, &h.costs));
    PEN_TRY(PEN_NEW(arena, before->row_count, &is_done));
    PEN_TRY(pen_arena_create_within(arena, &h.scratch));
    if (count > 0) memcpy(h.costs, before->costs, count * sizeof *h.costs);
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const uint32_t row = before->row_of_device[d];
        if (is_done[row]) continue;
        is_done[row] = true;
        PEN_TRY(host_price_row(&h, d, row));
    }
    *priced = *before;
    priced->costs = h.costs;
    *costs = priced;
    return PEN_OK;
}
