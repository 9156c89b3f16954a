#include "scheduler/plan/kernel_sizes.h"

#include <string.h>

#include "base/name_map.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cost_key.h"

#define SIZES_FIRST_LIMIT 64

struct pen_kernel_sizes {
    pen_device *device;
    pen_arena *arena;
    pen_name_map known; // kinds of work
    uint64_t *bytes;    // [known.count], room for `limit`
    uint32_t limit;
};

pen_status pen_kernel_sizes_new(pen_device *device, pen_arena *arena,
                                pen_kernel_sizes **out_sizes) {
    pen_kernel_sizes *sizes;
    PEN_TRY(PEN_NEW(arena, 1, &sizes));
    sizes->device = device;
    sizes->arena = arena;
    pen_name_map_init(&sizes->known, arena);
    *out_sizes = sizes;
    return PEN_OK;
}

uint64_t pen_kernel_sizes_of_value(const void *context, const pen_graph *graph,
                                   pen_value_id value) {
    const pen_kernel_sizes *sizes = *(pen_kernel_sizes *const *)context;
    const pen_device_kind *kind = sizes->device->kind;
    return kind->value_bytes != NULL ? kind->value_bytes(sizes->device, graph, value)
                                     : pen_tensor_type_bytes(pen_value_type(graph, value));
}

static pen_status sizes_measure(const pen_kernel_sizes *sizes, const pen_graph *graph,
                                pen_node_id node, uint64_t *out_bytes) {
    const pen_device_kind *kind = sizes->device->kind;
    pen_arena *scratch;
    pen_kernel *kernel;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = kind->prepare(sizes->device, graph, node, scratch, &kernel);
    if (status == PEN_OK) {
        *out_bytes = kind->workspace_bytes(kernel);
        kind->release(sizes->device, kernel);
    }
    pen_arena_destroy(scratch);
    return status;
}

static pen_status sizes_add(pen_kernel_sizes *sizes, const char *key, uint64_t bytes) {
    const uint32_t count = sizes->known.count;
    if (count == sizes->limit) {
        const uint32_t limit = count == 0 ? SIZES_FIRST_LIMIT : 2 * count;
        uint64_t *grown;
        PEN_TRY(PEN_NEW(sizes->arena, limit, &grown));
        if (count > 0) memcpy(grown, sizes->bytes, count * sizeof *grown);
        sizes->bytes = grown;
        sizes->limit = limit;
    }
    sizes->bytes[count] = bytes;
    return pen_name_map_add(&sizes->known, key, count);
}

pen_status pen_kernel_sizes_of_node(const void *context, const pen_graph *graph, pen_node_id node,
                                    uint64_t *out_bytes) {
    pen_kernel_sizes *sizes = *(pen_kernel_sizes *const *)context;
    const char *shape, *key;
    PEN_TRY(pen_cost_key(graph, node, sizes->arena, &shape));
    PEN_TRY(pen_arena_format(sizes->arena, &key, "%s %s", pen_graph_node(graph, node)->op->name,
                             shape));
    const uint32_t found = pen_name_map_find(&sizes->known, key);
    if (found != PEN_NAME_MAP_NONE) {
        *out_bytes = sizes->bytes[found];
        return PEN_OK;
    }
    PEN_TRY(sizes_measure(sizes, graph, node, out_bytes));
    return sizes_add(sizes, key, *out_bytes);
}

pen_status pen_kernel_sizes_of_all(pen_kernel_sizes *sizes, const pen_graph *graph,
                                   const pen_node_id *order, uint32_t order_count,
                                   uint64_t **out_bytes, uint64_t **out_workspace) {
    const uint32_t value_count = pen_graph_value_count(graph);
    uint64_t *bytes, *workspace;
    PEN_TRY(PEN_NEW(sizes->arena, value_count, &bytes));
    PEN_TRY(PEN_NEW(sizes->arena, pen_graph_node_count(graph), &workspace));
    for (uint32_t v = 0; v < value_count; v++) {
        bytes[v] = pen_kernel_sizes_of_value(&sizes, graph, (pen_value_id){v});
    }
    for (uint32_t i = 0; i < order_count; i++) {
        const pen_node_id node = order[i];
        if (pen_graph_node(graph, node)->op->is_view) continue;
        PEN_TRY(pen_kernel_sizes_of_node(&sizes, graph, node, &workspace[node.index]));
    }
    *out_bytes = bytes;
    *out_workspace = workspace;
    return PEN_OK;
}
