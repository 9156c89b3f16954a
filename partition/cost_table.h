// Measured costs: operators, rates of devices, links. A YAML file that people can read and edit.
//
//   version: 1
//   rates:
//     - {kind: cpu, threads: 2, flops: 95G, memory_bandwidth: 21GB/s}
//   operators:
//     - {op: matmul, shape: "float32[64,784] float32[784,512] -> float32[64,512]", kind: cpu,
//        threads: 2, seconds: 310us, workspace: 0, runs: 9}
//   links:
//     - {from: a, to: b, bandwidth: 9.4Gbit/s, latency: 41us}
//
// An operator's entry is found by op, the text of its shape (element types, sizes, layouts and
// attributes; see pen_cost_key), kind of device and threads.
//
// Lifetime: a table lives in the arena it was made with.
// Threads:  one thread changes it; once it is no longer changed, any may read.
#ifndef PEN_PARTITION_COST_TABLE_H
#define PEN_PARTITION_COST_TABLE_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph.h"

typedef struct pen_cost_table pen_cost_table;

typedef struct pen_cost_entry {
    const char *op;
    const char *shape; // pen_cost_key
    const char *kind;  // of device
    uint32_t threads;
    double seconds; // median of `runs`
    uint64_t workspace_bytes;
    uint32_t runs;
} pen_cost_entry;

typedef struct pen_cost_rates {
    const char *kind;
    uint32_t threads;
    double flops;            // a second
    double memory_bandwidth; // bytes a second
} pen_cost_rates;

typedef struct pen_cost_link {
    const char *from; // names of devices
    const char *to;
    double bandwidth; // bytes a second
    double latency;   // seconds
} pen_cost_link;

PEN_NODISCARD pen_status pen_cost_table_new(pen_arena *arena, pen_cost_table **out_table);
// INVALID_INPUT with position; NOT_FOUND, IO, OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_cost_table_read(const char *path, pen_arena *arena,
                                             pen_cost_table **out_table);
PEN_NODISCARD pen_status pen_cost_table_parse(const char *path, const char *bytes, size_t length,
                                              pen_arena *arena, pen_cost_table **out_table);
// Written beside and renamed. Entries are sorted, so equal tables give equal files.
PEN_NODISCARD pen_status pen_cost_table_write(const pen_cost_table *table, const char *path);

// Adds, or replaces the entry of the same key. Texts are copied.
PEN_NODISCARD pen_status pen_cost_table_set(pen_cost_table *table, const pen_cost_entry *entry);
PEN_NODISCARD pen_status pen_cost_table_set_rates(pen_cost_table *table,
                                                  const pen_cost_rates *rates);
PEN_NODISCARD pen_status pen_cost_table_set_link(pen_cost_table *table, const pen_cost_link *link);

// NULL when there is none.
const pen_cost_entry *pen_cost_table_find(const pen_cost_table *table, const char *op,
                                          const char *shape, const char *kind, uint32_t threads);
const pen_cost_rates *pen_cost_table_find_rates(const pen_cost_table *table, const char *kind,
                                                uint32_t threads);
const pen_cost_link *pen_cost_table_find_link(const pen_cost_table *table, const char *from,
                                              const char *to);

// What of a node decides how long it runs: types, sizes and layouts of operands, attributes,
// whether it accumulates. Equal texts, equal work. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cost_key(const pen_graph *graph, pen_node_id node, pen_arena *arena,
                                      const char **out_shape);

#endif // PEN_PARTITION_COST_TABLE_H
