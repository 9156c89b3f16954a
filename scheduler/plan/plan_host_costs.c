#include "scheduler/plan/plan_host_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cluster_build.h"
#include "partition/costs/cost_key.h"
#include "partition/spec/cluster_spec.h"

typedef struct host_pricing {
    const pen_plan_model *model;
    const pen_cluster *cluster;
    const pen_cost_table *table;
    pen_arena *scratch;
    pen_node_cost *costs; // [row_count][node_count]
    uint32_t node_count;
} host_pricing;

// What a table has of a cpu device where the node would run.
typedef struct host_found {
    const pen_cost_entry *entry; // NULL: nothing
    const pen_cost_rates *rates; // NULL: nothing
} host_found;

// Whether a figure is of kind cpu and was measured at `where`; a host of NULL is this machine.
static bool host_is_of_cpu(const char *kind, const char *host, const char *where) {
    return strcmp(kind, pen_cluster_device_kind_name(PEN_CLUSTER_CPU)) == 0 &&
           strcmp(host == NULL ? "" : host, where) == 0;
}

static bool host_is_nearer(uint32_t threads, uint32_t than, uint32_t wanted) {
    const int64_t a = (int64_t)threads - wanted, b = (int64_t)than - wanted;
    return llabs(a) < llabs(b);
}

// Of those with other numbers of threads the nearest: a time that was measured with two says more
// of three than what is assumed.
static host_found host_search(const pen_cost_table *table, const char *where, const char *op,
                              const char *shape, uint32_t threads) {
    host_found found = {0};
    for (uint32_t i = 0; i < pen_cost_table_count(table); i++) {
        const pen_cost_entry *entry = pen_cost_table_at(table, i);
        if (!host_is_of_cpu(entry->kind, entry->host, where)) continue;
        if (strcmp(entry->op, op) != 0 || strcmp(entry->shape, shape) != 0) continue;
        if (found.entry == NULL || host_is_nearer(entry->threads, found.entry->threads, threads))
            found.entry = entry;
    }
    for (uint32_t i = 0; i < pen_cost_table_rates_count(table); i++) {
        const pen_cost_rates *rates = pen_cost_table_rates_at(table, i);
        if (!host_is_of_cpu(rates->kind, rates->host, where)) continue;
        if (found.rates == NULL || host_is_nearer(rates->threads, found.rates->threads, threads))
            found.rates = rates;
    }
    return found;
}

// On the device's host, else on this machine.
static host_found host_find(const pen_cost_table *table, const pen_cluster_device *device,
                            const char *op, const char *shape) {
    host_found found = {0};
    found = host_search(table, device->host_name, op, shape, device->threads);
    if (device->host_name[0] == '\0') return found;
    const host_found here = host_search(table, "", op, shape, device->threads);
    if (found.entry == NULL) found.entry = here.entry;
    if (found.rates == NULL) found.rates = here.rates;
    return found;
}

// What a cpu device with as many threads takes, measured or by its roofline, and two copies by way
// of the host's memory.
static double host_seconds(const pen_cluster_device *device, const pen_graph *graph,
                           pen_node_id node, const host_found *found) {
    const pen_assumed_link link = pen_cluster_assumed_link(PEN_CARRIER_MEMORY);
    const double flops = (double)pen_node_flops(graph, node);
    const double bytes = (double)pen_node_bytes(graph, node);
    const double copies = bytes / link.bandwidth + 2 * link.latency;
    double flops_rate = PEN_ASSUMED_FLOPS_PER_THREAD * device->threads;
    double bytes_rate = PEN_ASSUMED_MEMORY_BANDWIDTH;
    if (found->entry != NULL) return found->entry->seconds + copies;
    if (found->rates != NULL) {
        flops_rate = found->rates->flops / found->rates->threads * device->threads;
        bytes_rate = found->rates->memory_bandwidth;
    }
    return fmax(flops / flops_rate, bytes / bytes_rate) + copies;
}

// Whether the time was measured on such a GPU, copies included; else what is known of the host.
static pen_status host_is_known(const host_pricing *h, const pen_cluster_device *device,
                                pen_node_id node, bool *out_is_known, host_found *out_found) {
    const pen_graph *graph = h->model->program->graph;
    const pen_cost_entry *entry;
    const pen_cost_rates *rates;
    const char *op = pen_graph_node(graph, node)->op->name, *shape;
    *out_is_known = false;
    *out_found = (host_found){0};
    if (h->table == NULL) return PEN_OK;
    pen_arena_reset(h->scratch);
    PEN_TRY(pen_cost_key(graph, node, h->scratch, &shape));
    pen_cost_model_look_up(h->table, device, op, shape, &entry, &rates);
    *out_is_known = entry != NULL;
    if (!*out_is_known) *out_found = host_find(h->table, device, op, shape);
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
        host_found found;
        bool is_known;
        if (cost->seconds == 0 || !opened->kind->runs_on_host(opened, graph, node)) continue;
        PEN_TRY(host_is_known(h, device, node, &is_known, &found));
        if (is_known) continue;
        cost->seconds = host_seconds(device, graph, node, &found);
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
