#include "scheduler/plan/saved_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "graph/graph.h"

// A tensor that a device holds.
typedef struct saved_tensor {
    const char *name;
    uint32_t device;
    uint64_t bytes;
} saved_tensor;

static int saved_compare(const void *left, const void *right) {
    const saved_tensor *a = left, *b = right;
    const int order = strcmp(a->name, b->name);
    if (order != 0) return order;
    return a->device < b->device ? -1 : a->device > b->device;
}

// Parameters, and states of the forward pass and of the optimizer. Counts them, or lists them, too.
static uint32_t saved_list(const pen_cut *cut, saved_tensor *out_tensors) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < cut->device_count; d++) {
        const pen_graph *graph = cut->parts[d].graph;
        for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
            const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
            if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
            if (out_tensors != NULL) {
                out_tensors[count] =
                    (saved_tensor){value->name, d, pen_tensor_type_bytes(&value->type)};
            }
            count++;
        }
    }
    return count;
}

static bool saved_fits(const pen_saved_memory_device *devices, uint32_t device_count,
                       uint32_t worker, const uint64_t *bytes) {
    for (uint32_t d = 0; d < device_count; d++) {
        if (devices[d].worker != worker) continue;
        if (devices[d].bytes + (double)bytes[d] > devices[d].bytes_limit) return false;
    }
    return true;
}

static pen_status saved_add_up(const pen_cut *cut, const pen_saved_memory_device *devices,
                               pen_arena *arena, uint64_t *out_bytes) {
    saved_tensor *tensors;
    uint64_t *wanted;
    const uint32_t count = saved_list(cut, NULL);
    PEN_TRY(PEN_NEW(arena, count, &tensors));
    PEN_TRY(PEN_NEW(arena, cut->device_count, &wanted));
    saved_list(cut, tensors);
    if (count > 1) qsort(tensors, count, sizeof *tensors, saved_compare);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(tensors[i].name, tensors[i - 1].name) == 0) continue;
        wanted[tensors[i].device] += tensors[i].bytes;
    }
    for (uint32_t d = 0; d < cut->device_count; d++) {
        const bool fits = saved_fits(devices, cut->device_count, devices[d].worker, wanted);
        out_bytes[d] = fits ? wanted[d] : 0;
    }
    return PEN_OK;
}

pen_status pen_saved_memory_find(const pen_cut *cut, const pen_saved_memory_device *devices,
                                 uint64_t *out_bytes) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = saved_add_up(cut, devices, arena, out_bytes);
    pen_arena_destroy(arena);
    return status;
}
