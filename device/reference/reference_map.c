#include "device/reference/reference_map.h"

#include "graph/op.h"

static void map_read_parameters(const pen_reference_call *call, const reference_map *map,
                                double p[REFERENCE_MAP_PARAMETERS]) {
    for (uint32_t i = 0; i < REFERENCE_MAP_PARAMETERS && map->parameters[i] != NULL; i++) {
        p[i] = pen_node_float(call->node, map->parameters[i]);
    }
}

pen_status reference_map_run(const pen_reference_call *call) {
    const reference_map *map = call->rule;
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_element_type element = x->type.element;
    const bool is_exact = map->integer != NULL && pen_element_is_integer(element);
    double p[REFERENCE_MAP_PARAMETERS] = {0};
    map_read_parameters(call, map, p);
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        if (is_exact) {
            const int64_t integer = pen_tensor_get_int(x, k);
            pen_tensor_set_int(y, k, map->integer(integer, pen_element_is_signed(element)));
        } else {
            pen_tensor_set(y, k, map->forward(pen_tensor_get(x, k), p));
        }
    }
    return PEN_OK;
}

pen_status reference_map_run_backward(const pen_reference_call *call) {
    const reference_map *map = call->rule;
    const pen_tensor *dy = &call->inputs[0], *v = &call->inputs[1], *dx = &call->outputs[0];
    double p[REFERENCE_MAP_PARAMETERS] = {0};
    map_read_parameters(call, map, p);
    for (int64_t k = 0; k < pen_tensor_count(dx); k++) {
        pen_tensor_set(dx, k, map->backward(pen_tensor_get(dy, k), pen_tensor_get(v, k), p));
    }
    return PEN_OK;
}
