// Operators of TensorFlow on images. Ours want channels first, and filters as (out, in, height,
// width); TensorFlow has filters as (height, width, in, out), and so they are kept and trained.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_IMAGE_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_IMAGE_H

#include <stdbool.h>

#include "graph/import/tensorflow/graphdef_mapping.h"

// Whether the node has channels last.
bool pen_graphdef_image_is_last(const pen_graphdef_draft *draft);

// Operand `input` with channels first, of a node that has them last or not.
PEN_NODISCARD pen_status pen_graphdef_image_operand(pen_graphdef_draft *draft, uint32_t input,
                                                    bool is_last, pen_graphdef_value *out_value);

// Adds a node whose output has channels first; it is the result, in the form that the node has.
PEN_NODISCARD pen_status pen_graphdef_image_emit(pen_graphdef_draft *draft,
                                                 pen_graphdef_emission emission, bool is_last);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_IMAGE_H
