// Checks of operands that shape rules share, with their error messages. See shape_rule.h for more.
#ifndef PEN_GRAPH_OPS_SHARED_INFER_CHECKS_H
#define PEN_GRAPH_OPS_SHARED_INFER_CHECKS_H

#include "graph/op.h"
#include "graph/ops/shared/shape_rule.h"

// Input `input` has an element type of `allowed`. INVALID_INPUT names it and lists those allowed.
PEN_NODISCARD pen_status pen_infer_check_element(const pen_infer_context *context, uint32_t input,
                                                 uint32_t allowed);
// Input `input` has the element type of input `reference`. INVALID_INPUT.
PEN_NODISCARD pen_status pen_infer_check_same_element(const pen_infer_context *context,
                                                      uint32_t input, uint32_t reference);
// Input `input` has shape `expected`. INVALID_INPUT.
PEN_NODISCARD pen_status pen_infer_check_shape(const pen_infer_context *context, uint32_t input,
                                               const pen_shape *expected);

#endif // PEN_GRAPH_OPS_SHARED_INFER_CHECKS_H
