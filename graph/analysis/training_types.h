// Whether the element types of a model let it be trained.
//
// Data are float32 or int64, and gradients, optimizers and parameter files know float32 and
// float64. What is float16 or bfloat16, or takes float64 from the data, can be looked at but not
// trained or evaluated.
//
// Threads: any.
#ifndef PEN_GRAPH_ANALYSIS_TRAINING_TYPES_H
#define PEN_GRAPH_ANALYSIS_TRAINING_TYPES_H

#include "base/status.h"
#include "graph/graph_types.h"

// UNSUPPORTED names the first parameter or input that has another type.
PEN_NODISCARD pen_status pen_check_parameter_types(const pen_graph *graph);
PEN_NODISCARD pen_status pen_check_input_types(const pen_graph *graph);

#endif // PEN_GRAPH_ANALYSIS_TRAINING_TYPES_H
