#include "graph/analysis/training_types.h"

#include "graph/graph.h"

pen_status pen_check_parameter_types(const pen_graph *graph) {
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        const pen_element_type element = value->type.element;
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        if (!pen_element_is_half(element)) continue;
        return pen_error(
            PEN_UNSUPPORTED,
            "the model's parameter '%s' is %s, expected float32: export the model with "
            "float32 parameters",
            value->name, pen_element_name(element));
    }
    return PEN_OK;
}

pen_status pen_check_input_types(const pen_graph *graph) {
    for (uint32_t i = 0; i < pen_graph_input_count(graph); i++) {
        const pen_value_id input = pen_graph_input(graph, i);
        const pen_element_type element = pen_value_type(graph, input)->element;
        if (!pen_element_is_half(element) && element != PEN_FLOAT64) continue;
        return pen_error(PEN_UNSUPPORTED,
                         "the model's input '%s' takes %s, but data are float32 or int64: export "
                         "the model with float32 inputs",
                         pen_value_name(graph, input), pen_element_name(element));
    }
    return PEN_OK;
}
