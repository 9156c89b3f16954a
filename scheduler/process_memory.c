#include "scheduler/process_memory.h"

#include <string.h>

#include "base/name_map.h"
#include "graph/op.h"
#include "partition/cost_table.h"

#define PROCESS_BYTES ((uint64_t)19 << 20) // the program, its libraries and their tables
#define PROCESS_CONVOLUTIONS_BYTES ((uint64_t)3 << 20) // the library of convolutions, once used
#define PROCESS_CONVOLUTION_BYTES ((uint64_t)96 << 10) // code made for each kind of convolution
#define PROCESS_NODE_BYTES ((uint64_t)18 << 10)        // in graph, kernels and order
#define PROCESS_BATCHES 2                              // one in use, one being read

// Adds the kinds of convolutions of a program: nodes that do equal work share their code.
static pen_status process_add_kinds(const pen_program *program, pen_arena *arena,
                                    pen_name_map *kinds) {
    for (uint32_t i = 0; i < program->order_count; i++) {
        const pen_node_id id = program->order[i];
        const pen_op *op = pen_graph_node(program->graph, id)->op;
        const char *shape, *kind;
        if (strncmp(op->name, "conv", 4) != 0) continue;
        PEN_TRY(pen_cost_key(program->graph, id, arena, &shape));
        PEN_TRY(pen_arena_format(arena, &kind, "%s %s", op->name, shape));
        if (pen_name_map_find(kinds, kind) != PEN_NAME_MAP_NONE) continue;
        PEN_TRY(pen_name_map_add(kinds, kind, kinds->count));
    }
    return PEN_OK;
}

static uint64_t process_example_bytes(const pen_dataset_info *info) {
    uint64_t bytes = 0;
    if (info == NULL) return 0;
    for (uint32_t i = 0; i < info->input_count; i++) {
        bytes += info->inputs[i].bytes;
    }
    return info->labels == NULL ? bytes : bytes + info->labels->bytes;
}

pen_status pen_process_memory_estimate(const pen_process_memory_request *request, pen_arena *arena,
                                       uint64_t *out_bytes) {
    uint64_t bytes = PROCESS_BYTES;
    pen_name_map kinds;
    pen_name_map_init(&kinds, arena);
    for (uint32_t p = 0; p < request->program_count; p++) {
        const pen_program *program = request->programs[p];
        PEN_TRY(process_add_kinds(program, arena, &kinds));
        bytes += pen_graph_node_count(program->graph) * PROCESS_NODE_BYTES;
    }
    if (kinds.count > 0) bytes += PROCESS_CONVOLUTIONS_BYTES;
    bytes += kinds.count * PROCESS_CONVOLUTION_BYTES;
    bytes += PROCESS_BATCHES * request->batch * process_example_bytes(request->info);
    *out_bytes = bytes;
    return PEN_OK;
}
