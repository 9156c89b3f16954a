#include "graph/ops/shared/infer_checks.h"

#include <stdio.h>

#include "graph/graph.h"

static const char *infer_input_name(const pen_infer_context *context, uint32_t input) {
    return pen_value_name(pen_infer_graph(context), pen_infer_node(context)->inputs[input]);
}

pen_status pen_infer_check_element(const pen_infer_context *context, uint32_t input,
                                   uint32_t allowed) {
    const pen_element_type element = pen_infer_input(context, input)->element;
    if (allowed >> element & 1) return PEN_OK;
    char list[192] = "";
    size_t length = 0;
    for (uint32_t e = 1; e < PEN_ELEMENT_TYPE_COUNT; e++) {
        if (!(allowed >> e & 1) || length >= sizeof list) continue;
        const int written =
            snprintf(list + length, sizeof list - length, "%s%s", length == 0 ? "" : ", ",
                     pen_element_name((pen_element_type)e));
        length += written > 0 ? (size_t)written : 0;
    }
    return pen_infer_error(context, PEN_INVALID_INPUT, "input %u ('%s') is %s; it may be %s", input,
                           infer_input_name(context, input), pen_element_name(element), list);
}

pen_status pen_infer_check_same_element(const pen_infer_context *context, uint32_t input,
                                        uint32_t reference) {
    const pen_element_type found = pen_infer_input(context, input)->element;
    const pen_element_type expected = pen_infer_input(context, reference)->element;
    if (found == expected) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "input %u ('%s') is %s, but input %u ('%s') is %s", input,
                           infer_input_name(context, input), pen_element_name(found), reference,
                           infer_input_name(context, reference), pen_element_name(expected));
}

pen_status pen_infer_check_shape(const pen_infer_context *context, uint32_t input,
                                 const pen_shape *expected) {
    const pen_shape *found = &pen_infer_input(context, input)->shape;
    if (pen_shape_equal(found, expected)) return PEN_OK;
    char found_text[PEN_SHAPE_TEXT_BYTES], expected_text[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT, "input %u ('%s') is %s, expected %s", input,
                           infer_input_name(context, input), pen_shape_format(found, found_text),
                           pen_shape_format(expected, expected_text));
}
