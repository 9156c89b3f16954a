// What each node costs on each device: seconds and where the figure comes from.
//
// Devices that compute alike (kind, threads, rates) share a row. A figure is measured (found in the
// cost table by operator, shapes, kind and threads) or an estimate by the roofline
//     seconds = max(flops / device.flops, bytes / device.memory_bandwidth) + overhead
// with the flops and bytes that graph/op.h counts, either times the device's slowness. The table's
// own `rates` are where its figures were measured: where the user states other rates for a device
// of that kind and threads, measured figures are scaled by the ratio of the two rooflines, and
// count as estimates.
//
// The source of an estimate is the user's (stated) when both rates are stated or measured, else
// assumed. An entry with 0 runs was written by hand: stated. Views, and operators without flops
// and bytes, cost 0 seconds and are not counted.
//
// Time grows with nodes times rows; the clusters of a real fleet have few rows.
//
// Lifetime: a model lives in the arena it was made with, and borrows graph and cluster.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_COSTS_COST_MODEL_H
#define PEN_PARTITION_COSTS_COST_MODEL_H

#include "graph/graph_types.h"
#include "partition/costs/cluster.h"
#include "partition/costs/cost_table.h"

typedef struct pen_node_cost {
    double seconds; // of one run: a microbatch, or for updates a step
    pen_figure_source source;
    uint64_t workspace_bytes; // known where measured, else 0
} pen_node_cost;

typedef struct pen_cost_model {
    uint32_t row_count;
    uint32_t node_count;
    const uint32_t *row_of_device; // [cluster's device_count]
    const pen_node_cost *costs;    // [row_count][node_count]
    uint32_t measured_count;       // of all costs of nodes that run, over all rows
    uint32_t assumed_count;
} pen_cost_model;

static inline const pen_node_cost *pen_cost_model_at(const pen_cost_model *model, uint32_t device,
                                                     pen_node_id node) {
    return &model->costs[(uint64_t)model->row_of_device[device] * model->node_count + node.index];
}

// What the table knows of a node with that key (pen_cost_key) on a device: measured on its host,
// else on this one. *out_entry NULL: nothing. *out_rates NULL: of that kind and threads no rates.
void pen_cost_model_look_up(const pen_cost_table *table, const pen_cluster_device *device,
                            const char *op, const char *shape, const pen_cost_entry **out_entry,
                            const pen_cost_rates **out_rates);

// Costs of all nodes of a typed graph whose layouts are final. `table` may be NULL. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cost_model_build(const pen_graph *graph, const pen_cluster *cluster,
                                              const pen_cost_table *table, pen_arena *arena,
                                              const pen_cost_model **out_model);

#endif // PEN_PARTITION_COSTS_COST_MODEL_H
