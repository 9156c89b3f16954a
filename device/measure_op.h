// The contract of measuring: how long one node takes on a device, without the rest of its graph.
//
// measure_op.c runs the node, measure_step.c says what a step does between two runs of it, and
// measure_rates.c how fast the machine moves bytes.
//
// Memory for the operands of the one node is taken, filled with benign numbers, and given back, so
// a model larger than the machine can be measured node by node.
//
// What a run costs depends on what is in the caches, and in a training step some operands have just
// been written while others (weights, activations kept for the backward pass) were last touched a
// step ago. A pen_measure_step says, for every operand, how many bytes a step moves between the use
// before and this one. So that as many are moved between two runs that touch the same memory, each
// operand has as many copies as runs move that many bytes, and runs take them in turn. No sweep
// disturbs threads and caches between runs. Contents matter where kernels branch on them: see
// device/measure_fill.h; an operand that another node computes from operands that are also here
// (the maxima of a pool) is computed.
//
// Threads: the device's.
#ifndef PEN_DEVICE_MEASURE_OP_H
#define PEN_DEVICE_MEASURE_OP_H

#include "base/arena.h"
#include "base/status.h"
#include "device/device.h"
#include "graph/graph_types.h"

// How far apart the uses of memory are in a step.
typedef struct pen_measure_step {
    uint64_t step_bytes;           // moved by a whole step
    const uint32_t *first_of_node; // [node_count]: where a node's operands start in the others:
                                   // its inputs, then its outputs
    const uint64_t *distances;     // bytes moved since the operand's memory was last touched
    const uint32_t *same_as;       // the operand of the node whose memory it has, or itself
} pen_measure_step;

// Nodes in `order`, as they run, on memory as it will be planned. Nothing is allocated but in
// `arena`. OUT_OF_MEMORY
typedef struct pen_measure_program {
    const pen_graph *graph;
    const pen_node_id *order; // [order_count]
    uint32_t order_count;
    const pen_value_id *kept; // [kept_count]
    uint32_t kept_count;
} pen_measure_program;
PEN_NODISCARD pen_status pen_measure_step_build(pen_device *device,
                                                const pen_measure_program *program,
                                                pen_arena *arena,
                                                const pen_measure_step **out_step);

typedef struct pen_measure_options {
    const pen_measure_step *step;   // NULL: every run touches the same memory
    uint64_t cache_bytes;           // of the last level; 0: what the system says
    uint32_t run_minimum;           // 0: 5
    uint32_t run_maximum;           // 0: 301
    double time_limit;              // seconds of runs, after `run_minimum` of them; 0: 0.1. After
                                    // ten times that no run is started, so one is always made
    double cores;                   // that the process gets while the device computes
                                    // (pen_machine_measure_cores); 0: as many as it uses
    double (*clock)(void *context); // seconds; NULL: the monotonic clock
    void *clock_context;
} pen_measure_options;

typedef struct pen_op_measurement {
    double seconds; // above 0: median of `runs`, each of one run or, where that is too short for
                    // the device's clock, the mean of several in a row; with `cores`, no less than
                    // what they computed takes of so many: a container's share runs out between
                    // runs as often as in them
    uint64_t workspace_bytes;
    uint32_t runs;
    uint32_t copies; // most of any operand, that runs took in turn
} pen_op_measurement;

// The node of a typed graph whose layouts are final. Views take no time: 0 runs.
//   UNSUPPORTED   the device has no kernel
//   DOES_NOT_FIT  its operands alone are more than the device's memory
//   INTERNAL      it takes no time that the clock tells, however often it is run in a row
//   OUT_OF_MEMORY, and what running returns; all name the node
PEN_NODISCARD pen_status pen_measure_op(pen_device *device, const pen_graph *graph,
                                        pen_node_id node, const pen_measure_options *options,
                                        pen_op_measurement *out_measurement);

// What a device can do at most: a large product of matrices, and a sum of arrays beyond the cache.
typedef struct pen_device_rates {
    double flops;            // a second
    double memory_bandwidth; // bytes a second, read and written
} pen_device_rates;

// `cores` as in pen_measure_options. As pen_measure_op.
PEN_NODISCARD pen_status pen_measure_rates(pen_device *device, double cores,
                                           pen_device_rates *out_rates);

// What `cores` is for a device of so many threads: 0 where it gets nearly as many cores.
// UNAVAILABLE: no thread
PEN_NODISCARD pen_status pen_measure_cores(uint32_t threads, double *out_cores);

// Bytes of the last level of cache, by the system's word; 32 MiB when it does not say.
uint64_t pen_measure_cache_bytes(void);

#endif // PEN_DEVICE_MEASURE_OP_H
