// The public operator-placement benchmark's JSON: workloads in, placements out.
//
//   {"maxFPGAs": 6, "maxCPUs": 1, "maxSizePerFPGA": 17185374208.0,
//    "nodes": [{"id": 7, "supportedOnFpga": 1, "cpuLatency": 20.5, "fpgaLatency": 2.05,
//               "isBackwardNode": 0, "colorClass": 7, "size": 1048576}, …],
//    "edges": [{"sourceId": 7, "destId": 8, "cost": 0.02}, …]}
//
// Accelerators ("FPGAs" there) are devices 0 … k-1, cores k … k+l-1. Cores have no memory limit and
// move data for nothing. colorClass and size may be missing; flags are 0, 1, false or true; all
// edges of one source have one cost. Times are what they are in the file: milliseconds.
//
// Lifetime: a workload lives in the arena it was read into.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_PROBLEM_WORKLOAD_H
#define PEN_PARTITION_PROBLEM_WORKLOAD_H

#include "base/format/json_writer.h"
#include "partition/problem/problem.h"

#define PEN_WORKLOAD_BYTES_LIMIT (1ull << 30) // a workload file

typedef struct pen_workload {
    pen_problem_given given; // objective throughput, not contiguous: the caller's to set
    int64_t *id_of_node;     // [node_count]
    uint32_t accelerator_count;
    uint32_t core_count;
} pen_workload;

// Reads a file. NOT_FOUND, IO, OUT_OF_MEMORY; INVALID_INPUT names the entry, what was found there
// and what is possible.
PEN_NODISCARD pen_status pen_workload_read(const char *path, pen_arena *arena,
                                           pen_workload **out_workload);

// Reads text that is in memory; `name` stands for it in messages. INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_workload_parse(const char *name, const char *bytes, size_t length,
                                            pen_arena *arena, pen_workload **out_workload);

// Writes the key "placement" with {"<id>": device, …} into an open object.
void pen_workload_write_placement(const pen_workload *workload, const uint32_t *device_of_node,
                                  pen_json_writer *json);

// Reads a placement, {"<id>": device, …}, or the same under "placement": fills
// out_device_of_node [node_count]; nodes that are not in it get PEN_PROBLEM_ANY.
// NOT_FOUND, IO, OUT_OF_MEMORY; INVALID_INPUT names the entry
PEN_NODISCARD pen_status pen_workload_read_placement(const pen_workload *workload, const char *path,
                                                     pen_arena *arena,
                                                     uint32_t *out_device_of_node);

// Reads a placement that is in memory; `name` stands for it in messages. INVALID_INPUT,
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_workload_parse_placement(const pen_workload *workload,
                                                      const char *name, const char *bytes,
                                                      size_t length, pen_arena *arena,
                                                      uint32_t *out_device_of_node);

#endif // PEN_PARTITION_PROBLEM_WORKLOAD_H
