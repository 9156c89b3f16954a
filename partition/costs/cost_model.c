#include "partition/costs/cost_model.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cost_key.h"

// What starting any operator costs: a call through the device, and a team that wakes up.
#define COST_MODEL_OVERHEAD_SECONDS 1e-6
// Rates that differ by less than this are those of one device.
#define COST_MODEL_SAME_RATE 0.01

// Hosts that are measured have costs of their own.
static bool cost_model_is_alike(const pen_cost_table *table, const pen_cluster_device *a,
                                const pen_cluster_device *b) {
    const bool has_hosts = table != NULL && pen_cost_table_has_hosts(table);
    if (has_hosts && strcmp(a->host_name, b->host_name) != 0) return false;
    return strcmp(pen_cluster_cost_kind(a), pen_cluster_cost_kind(b)) == 0 &&
           a->is_remote == b->is_remote && a->threads == b->threads && a->flops == b->flops &&
           a->slowness == b->slowness && a->memory_bandwidth == b->memory_bandwidth &&
           a->flops_source == b->flops_source &&
           a->memory_bandwidth_source == b->memory_bandwidth_source;
}

// Rows by their first device, [row_count]; fills row_of_device.
static pen_status cost_model_find_rows(const pen_cluster *cluster, const pen_cost_table *table,
                                       pen_arena *arena, pen_cost_model *model,
                                       const uint32_t **out_first) {
    uint32_t *row_of_device, *first;
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &row_of_device));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &first));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        uint32_t row = 0;
        while (row < model->row_count &&
               !cost_model_is_alike(table, &cluster->devices[first[row]], &cluster->devices[d])) {
            row += 1;
        }
        if (row == model->row_count) {
            first[row] = d;
            model->row_count += 1;
        }
        row_of_device[d] = row;
    }
    model->row_of_device = row_of_device;
    *out_first = first;
    return PEN_OK;
}

static double cost_model_roofline(uint64_t flops, uint64_t bytes, double flops_rate,
                                  double bytes_rate) {
    return fmax((double)flops / flops_rate, (double)bytes / bytes_rate) +
           COST_MODEL_OVERHEAD_SECONDS;
}

// Whether the user says that this device has another rate than the one that was measured.
static bool cost_model_differs(double stated, pen_figure_source source, double measured) {
    return source == PEN_FIGURE_STATED && fabs(stated - measured) > COST_MODEL_SAME_RATE * measured;
}

// Of a roofline: the user's where both rates are; from measured ones it is a guess.
static pen_figure_source cost_model_estimate_source(const pen_cluster_device *device) {
    return device->flops_source == PEN_FIGURE_STATED &&
                   device->memory_bandwidth_source == PEN_FIGURE_STATED
               ? PEN_FIGURE_STATED
               : PEN_FIGURE_ASSUMED;
}

// Of a time of the table as it is: one that was measured here is a guess for another host.
static pen_figure_source cost_model_entry_source(const pen_cluster_device *device,
                                                 const pen_cost_entry *entry) {
    if (entry->runs == 0) return PEN_FIGURE_STATED;
    const bool is_guess = device->is_remote && entry->host[0] == '\0';
    return is_guess ? cost_model_estimate_source(device) : PEN_FIGURE_MEASURED;
}

static pen_node_cost cost_model_price(const pen_cluster_device *device, uint64_t flops,
                                      uint64_t bytes, const pen_cost_entry *entry,
                                      const pen_cost_rates *rates) {
    const double estimate =
        cost_model_roofline(flops, bytes, device->flops, device->memory_bandwidth);
    if (entry == NULL) return (pen_node_cost){estimate, cost_model_estimate_source(device), 0};
    const bool is_other =
        rates != NULL &&
        (cost_model_differs(device->flops, device->flops_source, rates->flops) ||
         cost_model_differs(device->memory_bandwidth, device->memory_bandwidth_source,
                            rates->memory_bandwidth));
    if (!is_other) {
        return (pen_node_cost){entry->seconds, cost_model_entry_source(device, entry),
                               entry->workspace_bytes};
    }
    const double there = cost_model_roofline(flops, bytes, rates->flops, rates->memory_bandwidth);
    return (pen_node_cost){entry->seconds * estimate / there, cost_model_estimate_source(device),
                           entry->workspace_bytes};
}

void pen_cost_model_look_up(const pen_cost_table *table, const pen_cluster_device *device,
                            const char *op, const char *shape, const pen_cost_entry **out_entry,
                            const pen_cost_rates **out_rates) {
    const char *kind = pen_cluster_cost_kind(device);
    const uint32_t threads = pen_cluster_cost_threads(device);
    *out_rates = pen_cost_table_find_rates_at(table, device->host_name, kind, threads);
    *out_entry = pen_cost_table_find_at(table, device->host_name, op, shape, kind, threads);
    if (*out_entry != NULL) return;
    *out_entry = pen_cost_table_find(table, op, shape, kind, threads);
    *out_rates = pen_cost_table_find_rates(table, kind, threads);
}

static void cost_model_count(pen_cost_model *model, pen_figure_source source) {
    switch (source) {
    case PEN_FIGURE_MEASURED:
        model->measured_count += 1;
        break;
    case PEN_FIGURE_ASSUMED:
        model->assumed_count += 1;
        break;
    case PEN_FIGURE_STATED:
        break;
    }
}

// Devices that compute alike share a row, so that a thousand equal ones cost as much as one.
pen_status pen_cost_model_build(const pen_graph *graph, const pen_cluster *cluster,
                                const pen_cost_table *table, pen_arena *arena,
                                const pen_cost_model **out_model) {
    pen_cost_model *model;
    pen_node_cost *costs;
    const uint32_t *first;
    pen_arena *scratch;
    PEN_TRY(PEN_NEW(arena, 1, &model));
    PEN_TRY(cost_model_find_rows(cluster, table, arena, model, &first));
    model->node_count = pen_graph_node_count(graph);
    PEN_TRY(PEN_NEW(arena, (size_t)model->row_count * model->node_count, &costs));
    PEN_TRY(pen_arena_create_within(arena, &scratch));
    for (uint32_t n = 0; n < model->node_count; n++) {
        const pen_op *op = pen_graph_node(graph, (pen_node_id){n})->op;
        const uint64_t flops = pen_node_flops(graph, (pen_node_id){n});
        const uint64_t bytes = pen_node_bytes(graph, (pen_node_id){n});
        if (op->is_view || (flops == 0 && bytes == 0)) continue; // costs nothing
        const char *shape = "";
        pen_arena_reset(scratch);
        if (table != NULL) PEN_TRY(pen_cost_key(graph, (pen_node_id){n}, scratch, &shape));
        for (uint32_t row = 0; row < model->row_count; row++) {
            const pen_cluster_device *device = &cluster->devices[first[row]];
            const pen_cost_entry *entry = NULL;
            const pen_cost_rates *rates = NULL;
            if (table != NULL)
                pen_cost_model_look_up(table, device, op->name, shape, &entry, &rates);
            pen_node_cost *cost = &costs[(size_t)row * model->node_count + n];
            *cost = cost_model_price(device, flops, bytes, entry, rates);
            if (device->slowness > 0) cost->seconds *= device->slowness;
            cost_model_count(model, cost->source);
        }
    }
    model->costs = costs;
    *out_model = model;
    return PEN_OK;
}
