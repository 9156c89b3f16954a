// Measures how long one node of a graph takes on a device, without the rest of the graph.
//
// Memory for the operands of the one node is taken, filled with benign numbers, and given back, so
// a model larger than the machine can be measured node by node.
//
// What a run costs depends on what is in the caches, and in a training step some operands have just
// been written while others (weights, activations kept for the backward pass) were last touched a
// step ago. A pen_measure_step says, for every operand, how many bytes a step moves between the use
// before and this one. Operands whose distance is beyond `cache_bytes` are cold: each run takes the
// next of several copies, together larger than the cache, so that no sweep disturbs the threads
// between runs. The others are warm: every run uses the same memory.
//
// Threads: the device's.
#ifndef PEN_DEVICE_MEASURE_OP_H
#define PEN_DEVICE_MEASURE_OP_H

#include "base/arena.h"
#include "base/status.h"
#include "device/device.h"
#include "graph/graph.h"

// How far apart the uses of values are in a step.
typedef struct pen_measure_step {
    uint64_t step_bytes;             // moved by a whole step
    const uint32_t *first_of_node;   // [node_count]: where a node's operands start in `distances`:
    const uint64_t *distances;       // its inputs, then its outputs
    const uint64_t *in_place_inputs; // [node_count]: bit i: input i dies at the node, and output 0
                                     // takes over its storage
} pen_measure_step;

// Nodes in `order`, as they run. Lives in `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_measure_step_build(const pen_graph *graph, const pen_node_id *order,
                                                uint32_t order_count, pen_arena *arena,
                                                const pen_measure_step **out_step);

typedef struct pen_measure_options {
    const pen_measure_step *step;   // NULL: all operands are warm
    uint64_t cache_bytes;           // of the last level; 0: what the system says
    uint64_t copies_bytes_limit;    // most memory for copies; 0: eight times the cache
    uint32_t run_minimum;           // 0: 5
    uint32_t run_maximum;           // 0: 101
    double time_limit;              // seconds of runs, after `run_minimum` of them; 0: 0.1. After
                                    // ten times that no run is started, so one is always made
    double (*clock)(void *context); // seconds; NULL: the monotonic clock
    void *clock_context;
} pen_measure_options;

typedef struct pen_op_measurement {
    double seconds; // median of `runs`
    uint64_t workspace_bytes;
    uint32_t runs;
    uint32_t copies; // of cold operands, that runs took in turn
} pen_op_measurement;

// The node of a typed graph whose layouts are final. Views take no time: 0 runs.
//   UNSUPPORTED   the device has no kernel
//   DOES_NOT_FIT  its operands alone are more than the device's memory
//   OUT_OF_MEMORY, and what running returns; all name the node
PEN_NODISCARD pen_status pen_measure_op(pen_device *device, const pen_graph *graph,
                                        pen_node_id node, const pen_measure_options *options,
                                        pen_op_measurement *out_measurement);

// What a device can do at most: a large product of matrices, and a sum of arrays beyond the cache.
typedef struct pen_device_rates {
    double flops;            // a second
    double memory_bandwidth; // bytes a second, read and written
} pen_device_rates;

// As pen_measure_op.
PEN_NODISCARD pen_status pen_measure_rates(pen_device *device, pen_device_rates *out_rates);

// Bytes of the last level of cache, by the system's word; 32 MiB when it does not say.
uint64_t pen_measure_cache_bytes(void);

// Fills `bytes` bytes with benign elements: floats in (0.1, 0.9), integers in [0, limit) (in
// [1, limit) where limit is above 1), truths.
void pen_measure_fill(pen_element_type element, uint64_t limit, void *out_bytes, uint64_t bytes);
// The limit below which integers of an input are valid classes or positions to its reader.
uint64_t pen_measure_integer_limit(const pen_graph *graph, pen_node_id node);

#endif // PEN_DEVICE_MEASURE_OP_H
