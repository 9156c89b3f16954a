#include "device/on_host.h"

#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"

#define ON_HOST_TOLD_LIMIT 64 // operators that are named

static bool on_host_is_told(const pen_op *const *told, uint32_t count, const pen_op *op) {
    for (uint32_t i = 0; i < count; i++) {
        if (told[i] == op) return true;
    }
    return count == ON_HOST_TOLD_LIMIT;
}

// Views move nothing, wherever they are.
pen_status pen_on_host_find(pen_device *device, const pen_graph *graph, const pen_node_id *order,
                            uint32_t order_count, pen_arena *arena, pen_on_host *out_found) {
    const pen_op *told[ON_HOST_TOLD_LIMIT];
    uint32_t told_count = 0;
    pen_text text;
    *out_found = (pen_on_host){.of = order_count, .list = ""};
    if (device->kind->runs_on_host == NULL) return PEN_OK;
    pen_text_init(&text, arena);
    for (uint32_t p = 0; p < order_count; p++) {
        const pen_op *op = pen_graph_node(graph, order[p])->op;
        if (op->is_view || !device->kind->runs_on_host(device, graph, order[p])) continue;
        out_found->count += 1;
        if (on_host_is_told(told, told_count, op)) continue;
        pen_text_print(&text, "%s%s", told_count == 0 ? "" : ", ", op->name);
        told[told_count++] = op;
    }
    return pen_text_finish(&text, &out_found->list);
}
