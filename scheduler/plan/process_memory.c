#include "scheduler/plan/process_memory.h"

#include "base/integer.h"
#include "base/name_map.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cost_key.h"

// How these were found: VmHWM at the end of trainings of the reference models (31 to 246 nodes) and
// of perceptrons and residual networks of 30 to 600 MiB, less the buffers of the devices: of a
// single device, of 2 and 4 devices of one process, and of 1, 2 and 4 workers with a process each.
// Numbers of nodes and kinds of convolutions explain most of the differences; what evaluations and
// exports take was found with convolutional SavedModels of 3 MiB, what is held with recurrent
// networks of layers.
//
// Of the program and its libraries, what is resident is what the kernel maps around each page that
// is touched, and that is what it has read ahead from the disk. When the program was 2 MiB smaller,
// a training of `mlp` took 20.9 MiB in all without read-ahead, 23.6 with 32 KiB, 26.0 with 128 KiB
// (what Linux sets), 26.9 with 8 MiB. It takes 29.5 to 31 with 128 KiB now.
//
// Allocators of threads keep what they once had, so a process grows over its first thousand steps,
// by up to 8 MiB: workers are fitted to what they take then. For 1, 2 and 4 workers of five
// reference models this predicts 0.92 to 1.14 of the peak.
#define MIB ((uint64_t)1 << 20)
#define PROCESS_BYTES (22 * MIB)              // the program, its libraries and their tables
#define PROCESS_PRODUCTS_BYTES (15 * MIB / 2) // the library of matrix products, once used
#define PROCESS_PACKED_SHARE 4                // of an operand, rearranged while it is multiplied
#define PROCESS_PACKED_LIMIT (8 * MIB)
#define PROCESS_CONVOLUTIONS_BYTES (3 * MIB)           // the library of convolutions, once used
#define PROCESS_CONVOLUTION_BYTES ((uint64_t)96 << 10) // code made for each kind of convolution
#define PROCESS_NODE_BYTES ((uint64_t)9 << 10)         // in graph, kernels and order
#define PROCESS_HELD_NODE_BYTES                                                                    \
    ((uint64_t)6 << 10)            // of the former, in a program: what it holds
                                   // beyond are first contents that were drawn
#define PROCESS_EVALUATION_SHARE 2 // of a training's nodes, in an evaluation
#define PROCESS_EXPORT_SHARE 2     // of the tensors: their file, and the model
#define PROCESS_BUFFER_SHARE 16    // of buffers: huge pages that are not full
#define PROCESS_BUFFER_LIMIT (4 * MIB)
#define PROCESS_EXPORT_LIMIT (96 * MIB)
#define PROCESS_BATCHES 2 // one in use, one being read

#define COORDINATOR_BYTES (23 * MIB)
#define COORDINATOR_NETWORK_BYTES (7 * MIB / 2)     // what moves tensors between processes, threads
#define COORDINATOR_NODE_BYTES ((uint64_t)33 << 10) // in graph, plan, parts and descriptions
#define COORDINATOR_MODEL_SHARE 7 / 10              // of the mapped file, while weights are sent
#define COORDINATOR_MODEL_LIMIT (48 * MIB)
#define WORKER_BYTES (27 * MIB)                      // with what moves tensors, and its threads
#define WORKER_NODE_BYTES ((uint64_t)30 << 10)       // in description, part, kernels, launches
#define WORKER_WITHIN_NODE_BYTES ((uint64_t)8 << 10) // where the graphs are there already
#define WORKER_BUFFER_SHARE 8         // of buffers: huge pages that are not full, pieces of weights
#define WORKER_BUFFER_LIMIT (4 * MIB) // that arrive

// What the nodes of some graphs need of libraries.
typedef struct process_needs {
    pen_arena *arena;
    pen_name_map kinds;    // of convolutions: nodes that do equal work share their code
    bool has_convolutions; // or pooling, which is of the same library
    bool has_products;
    uint64_t packed_bytes; // of the operand of a matrix product, at most
    uint64_t node_count;
    uint64_t tensor_bytes; // of the model's
    uint64_t model_bytes;  // of those of one program, at most
    uint64_t held_bytes;   // by programs, beyond what is usual for their nodes
} process_needs;

// Notes which libraries a node brings into the process, and what these keep for it. Nodes of equal
// work share the code of a convolution, which the key of their costs tells.
static pen_status process_add_node(process_needs *needs, const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    const pen_op *op = node->op;
    const char *shape, *kind;
    switch (op->work) {
    case PEN_WORK_PRODUCT:
    case PEN_WORK_RECURRENT:
        needs->has_products = true;
        needs->packed_bytes = pen_max_u64(
            needs->packed_bytes,
            pen_tensor_type_bytes(pen_value_type(graph, node->inputs[1])) / PROCESS_PACKED_SHARE);
        return PEN_OK;
    case PEN_WORK_POOLING:
        needs->has_convolutions = true;
        return PEN_OK;
    case PEN_WORK_CONVOLUTION:
        needs->has_convolutions = true;
        break;
    case PEN_WORK_OTHER:
        return PEN_OK;
    }
    PEN_TRY(pen_cost_key(graph, id, needs->arena, &shape));
    PEN_TRY(pen_arena_format(needs->arena, &kind, "%s %s", op->name, shape));
    if (pen_name_map_find(&needs->kinds, kind) != PEN_NAME_MAP_NONE) return PEN_OK;
    return pen_name_map_add(&needs->kinds, kind, needs->kinds.count);
}

static pen_status process_add_graph(process_needs *needs, const pen_graph *graph) {
    const uint32_t node_count = pen_graph_node_count(graph);
    for (uint32_t n = 0; n < node_count; n++) {
        PEN_TRY(process_add_node(needs, graph, (pen_node_id){n}));
    }
    needs->node_count += node_count;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        needs->tensor_bytes += pen_graph_value(graph, (pen_value_id){v})->data_bytes;
    }
    return PEN_OK;
}

static uint64_t process_convolutions(const process_needs *needs) {
    if (!needs->has_convolutions) return 0;
    return PROCESS_CONVOLUTIONS_BYTES + needs->kinds.count * PROCESS_CONVOLUTION_BYTES;
}

static uint64_t process_products(const process_needs *needs) {
    if (!needs->has_products) return 0;
    return PROCESS_PRODUCTS_BYTES + pen_min_u64(needs->packed_bytes, PROCESS_PACKED_LIMIT);
}

static pen_status process_add_program(process_needs *needs, const pen_program *program) {
    const uint64_t usual = pen_graph_node_count(program->graph) * PROCESS_HELD_NODE_BYTES;
    const uint64_t before = needs->tensor_bytes;
    if (program->held_bytes > usual) needs->held_bytes += program->held_bytes - usual;
    PEN_TRY(process_add_graph(needs, program->graph));
    needs->model_bytes = pen_max_u64(needs->model_bytes, needs->tensor_bytes - before);
    return PEN_OK;
}

// What evaluations that are compiled later add to a training.
static void process_add_evaluations(process_needs *needs, uint32_t count) {
    const uint64_t held_bytes = needs->held_bytes;
    const uint64_t node_count = needs->node_count / PROCESS_EVALUATION_SHARE;
    needs->held_bytes += count * held_bytes;
    needs->node_count += count * node_count;
}

static uint64_t process_export(const process_needs *needs) {
    return pen_min_u64(needs->model_bytes * PROCESS_EXPORT_SHARE, PROCESS_EXPORT_LIMIT);
}

static uint64_t process_example_bytes(const pen_dataset_info *info) {
    uint64_t bytes = 0;
    if (info == NULL) return 0;
    for (uint32_t i = 0; i < info->input_count; i++) {
        bytes += info->inputs[i].bytes;
    }
    for (uint32_t i = 0; i < info->label_count; i++) {
        bytes += info->labels[i].bytes;
    }
    return bytes;
}

// What a process takes besides buffers, as a sum of parts whose constants were measured. A
// coordinator has no kernels, but keeps the whole graph.
pen_status pen_process_memory_estimate(const pen_process_memory_request *request, pen_arena *arena,
                                       uint64_t *out_bytes) {
    process_needs needs = {.arena = arena};
    pen_name_map_init(&needs.kinds, arena);
    for (uint32_t p = 0; p < request->program_count; p++) {
        PEN_TRY(process_add_program(&needs, request->programs[p]));
    }
    process_add_evaluations(&needs, request->evaluation_count);
    uint64_t bytes = PROCESS_BATCHES * request->batch * process_example_bytes(request->info);
    bytes += process_convolutions(&needs) + needs.held_bytes;
    bytes += pen_min_u64(request->buffer_bytes / PROCESS_BUFFER_SHARE, PROCESS_BUFFER_LIMIT);
    if (request->exports) bytes += process_export(&needs);
    if (request->is_coordinator) {
        bytes += COORDINATOR_BYTES + needs.node_count * COORDINATOR_NODE_BYTES;
        if (request->is_networked) bytes += COORDINATOR_NETWORK_BYTES;
        bytes += pen_min_u64(needs.tensor_bytes * COORDINATOR_MODEL_SHARE, COORDINATOR_MODEL_LIMIT);
    } else {
        bytes += PROCESS_BYTES + needs.node_count * PROCESS_NODE_BYTES + process_products(&needs);
    }
    *out_bytes = bytes;
    return PEN_OK;
}

pen_status pen_worker_memory_estimate(const pen_worker_memory_request *request, pen_arena *arena,
                                      uint64_t *out_bytes) {
    process_needs needs = {.arena = arena};
    pen_name_map_init(&needs.kinds, arena);
    for (uint32_t g = 0; g < request->graph_count; g++) {
        PEN_TRY(process_add_graph(&needs, request->graphs[g]));
    }
    *out_bytes = process_products(&needs) + request->data_bytes +
                 pen_min_u64(request->buffer_bytes / WORKER_BUFFER_SHARE, WORKER_BUFFER_LIMIT);
    if (request->is_within) {
        *out_bytes += needs.node_count * WORKER_WITHIN_NODE_BYTES;
    } else {
        *out_bytes +=
            WORKER_BYTES + needs.node_count * WORKER_NODE_BYTES + process_convolutions(&needs);
    }
    return PEN_OK;
}
