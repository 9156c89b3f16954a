// What the job shards: which nodes its names and patterns mean.
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/shard/shard_layers.h"
#include "partition/spec/name_match.h"
#include "scheduler/compile/compile_pass.h"

// A pattern may mean nodes beside those that can be cut, but not such nodes alone.
static pen_status shard_mark(const pen_graph *graph, const pen_compile_shard *shard,
                             const pen_name_matches *matches, uint32_t *ways) {
    bool any = false;
    for (uint32_t i = 0; i < matches->count; i++) {
        const pen_node_id node = {matches->indices[i]};
        if (!pen_shard_can_cut(graph, node)) continue;
        ways[node.index] = shard->ways;
        any = true;
    }
    if (any) return PEN_OK;
    const pen_node *node = pen_graph_node(graph, (pen_node_id){matches->indices[0]});
    return pen_error(PEN_INVALID_INPUT,
                     "'%s' means no node that can be sharded, as '%s' (%s); these can: products "
                     "with a parameter of two dimensions (matmul, gemm), and embeddings (gather)",
                     shard->nodes, node->name, node->op->name);
}

static pen_status shard_choose(const pen_compilation *compilation, const pen_compile_shard *shard,
                               const pen_name_set *names, uint32_t *ways) {
    pen_name_matches matches;
    PEN_TRY(pen_match_names(names, shard->nodes, compilation->arena, &matches));
    return shard_mark(compilation->graph, shard, &matches, ways);
}

// All nodes that can be cut, for messages, would be few of many: near names are of all.
pen_status pen_compile_shard_nodes(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    const pen_program *program = &compilation->program;
    const uint32_t count = pen_graph_node_count(compilation->graph);
    const char **names;
    uint32_t *ways;
    PEN_TRY(PEN_NEW(compilation->arena, count, &names));
    PEN_TRY(PEN_NEW(compilation->arena, count, &ways));
    for (uint32_t n = 0; n < count; n++) {
        names[n] = pen_node_name(compilation->graph, (pen_node_id){n});
    }
    const pen_name_set set = {.names = names, .count = count, .what = "node"};
    for (uint32_t i = 0; i < request->shard_count; i++) {
        PEN_TRY(pen_compilation_blame_shard(
            compilation, i, shard_choose(compilation, &request->shards[i], &set, ways)));
    }
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(
        pen_compilation_blame_shard(compilation, 0,
                                    pen_shard_nodes(compilation->graph, ways, program->kept_count,
                                                    program->kept, &graph, &map)));
    pen_compilation_follow(compilation, graph, map);
    return PEN_OK;
}
