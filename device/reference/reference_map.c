#include "device/reference/reference_map.h"

#include <string.h>

#include "graph/op.h"

static const reference_map *map_find(const char *op_name, const reference_map *maps, uint32_t count,
                                     bool *out_is_backward) {
    for (uint32_t i = 0; i < count; i++) {
        const size_t length = strlen(maps[i].op_name);
        if (strncmp(op_name, maps[i].op_name, length) != 0) continue;
        *out_is_backward = strcmp(op_name + length, "_backward") == 0;
        if (*out_is_backward || op_name[length] == '\0') return &maps[i];
    }
    return NULL;
}

pen_status reference_map_run(const pen_reference_call *call, const reference_map *maps,
                             uint32_t count) {
    bool is_backward = false;
    const reference_map *map = map_find(call->node->op->name, maps, count, &is_backward);
    PEN_ASSERT(map != NULL);
    double p[REFERENCE_MAP_PARAMETERS] = {0};
    for (uint32_t i = 0; i < REFERENCE_MAP_PARAMETERS && map->parameters[i] != NULL; i++) {
        p[i] = pen_node_float(call->node, map->parameters[i]);
    }
    const pen_tensor *in = call->inputs, *out = &call->outputs[0];
    const pen_element_type element = in[0].type.element;
    const bool is_exact = map->integer != NULL && pen_element_is_integer(element);
    for (int64_t k = 0; k < pen_tensor_count(out); k++) {
        if (is_backward) {
            const double dy = pen_tensor_get(&in[0], k), v = pen_tensor_get(&in[1], k);
            pen_tensor_set(out, k, map->backward(dy, v, p));
        } else if (is_exact) {
            const int64_t x = pen_tensor_get_int(&in[0], k);
            pen_tensor_set_int(out, k, map->integer(x, pen_element_is_signed(element)));
        } else {
            pen_tensor_set(out, k, map->forward(pen_tensor_get(&in[0], k), p));
        }
    }
    return PEN_OK;
}
