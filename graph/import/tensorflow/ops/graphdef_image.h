// Operators of TensorFlow on images. Ours want channels first, and filters as (out, in, height,
// width); TensorFlow has filters as (height, width, in, out), and so they are kept and trained.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_IMAGE_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_IMAGE_H

#include <stdbool.h>

#include "graph/import/tensorflow/graphdef_convert.h"

// Whether the node has channels last.
bool pen_graphdef_image_is_last(const pen_graphdef_draft *draft);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_IMAGE_H
