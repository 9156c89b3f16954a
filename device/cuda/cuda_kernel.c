#include "device/cuda/cuda_kernel.h"

#include <string.h>

#include "base/integer.h"
#include "graph/ops/product/convolution_geometry.h"

#define CUDA_BLOCKS_MOST 65535u

#define CUDA_FAMILY_ADDRESS(name) &pen_##name##_cuda,
static const pen_cuda_family *const cuda_families[] = {PEN_CUDA_FAMILIES(CUDA_FAMILY_ADDRESS)};

static const pen_cuda_entry *cuda_entry_of(const char *op_name) {
    for (size_t f = 0; f < sizeof cuda_families / sizeof *cuda_families; f++) {
        for (uint32_t i = 0; i < cuda_families[f]->entry_count; i++) {
            const pen_cuda_entry *entry = &cuda_families[f]->entries[i];
            if (strcmp(entry->op_name, op_name) == 0) return entry;
        }
    }
    return NULL;
}

static bool cuda_is_plain(const pen_graph *graph, pen_value_id value) {
    return !pen_value_is(value) || pen_graph_value(graph, value)->layout == PEN_LAYOUT_PLAIN;
}

const pen_cuda_entry *pen_cuda_entry_find(const pen_graph *graph, const pen_node *node) {
    const pen_cuda_entry *entry = cuda_entry_of(node->op->name);
    if (entry == NULL || (node->accumulates && !entry->can_accumulate)) return NULL;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!cuda_is_plain(graph, node->inputs[i])) return NULL;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!cuda_is_plain(graph, node->outputs[i])) return NULL;
    return entry->supports(graph, node) ? entry : NULL;
}

bool pen_cuda_can_raise(const pen_cuda_entry *entry, const pen_graph *graph, const pen_node *node) {
    if (entry->blame == NULL) return false;
    return entry->can_raise == NULL || entry->can_raise(graph, node);
}

uint32_t pen_cuda_rule(const pen_node *node) {
    return cuda_entry_of(node->op->name)->rule;
}

bool pen_cuda_is_float(const pen_graph *graph, pen_value_id value) {
    return !pen_value_is(value) || pen_value_type(graph, value)->element == PEN_FLOAT32;
}

bool pen_cuda_all_float(const pen_graph *graph, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!pen_cuda_is_float(graph, node->inputs[i])) return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!pen_cuda_is_float(graph, node->outputs[i])) return false;
    return true;
}

bool pen_cuda_has(const pen_node *node, uint32_t i) {
    return i < node->input_count && pen_value_is(node->inputs[i]);
}

pen_cuda_address pen_cuda_input(const pen_cuda_call *call, uint32_t i) {
    return pen_cuda_has(call->node, i) ? call->inputs[i] : 0;
}

pen_cuda_address pen_cuda_output(const pen_cuda_call *call, uint32_t i) {
    const pen_node *node = call->node;
    return i < node->output_count && pen_value_is(node->outputs[i]) ? call->outputs[i] : 0;
}

bool pen_cuda_type(const pen_graph *graph, pen_value_id value, uint32_t *out_type) {
    static const struct {
        pen_element_type element;
        uint32_t type;
    } types[] = {{PEN_FLOAT32, PEN_CUDA_FLOAT32},
                 {PEN_FLOAT64, PEN_CUDA_FLOAT64},
                 {PEN_INT32, PEN_CUDA_INT32},
                 {PEN_INT64, PEN_CUDA_INT64},
                 {PEN_BOOL, PEN_CUDA_BOOL}};
    const pen_element_type element = pen_value_type(graph, value)->element;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        *out_type = types[i].type;
        if (types[i].element == element) return true;
    }
    return false;
}

uint32_t pen_cuda_axis(const pen_node *node, const pen_shape *shape) {
    const int64_t given = pen_node_int(node, "axis");
    return (uint32_t)(given < 0 ? given + shape->rank : given);
}

uint64_t pen_cuda_count(const pen_graph *graph, pen_value_id value) {
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, value)->shape);
}

uint32_t pen_cuda_blocks(uint64_t count) {
    return (uint32_t)pen_min_u64(count, CUDA_BLOCKS_MOST);
}

void pen_cuda_copy_sizes(uint32_t *to, const int64_t *from) {
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++)
        to[d] = (uint32_t)from[d];
}

uint32_t pen_cuda_blocks_for(uint64_t count) {
    return pen_cuda_blocks((count + PEN_CUDA_BLOCK - 1) / PEN_CUDA_BLOCK);
}
