// What the two formats of TensorFlow share: which outputs a graph has.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FORMAT_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FORMAT_H

#include "base/status.h"
#include "graph/import/tensorflow/graphdef_import.h"

// The outputs that the options name, or, without names, every output that no node reads, of nodes
// that compute something.
//   NOT_FOUND      a name is not there
//   INVALID_INPUT  there is nothing
PEN_NODISCARD pen_status pen_graphdef_choose_outputs(const pen_graphdef_flat *flat,
                                                     const pen_import_options *options,
                                                     uint32_t *out_count,
                                                     pen_graphdef_port **out_ports);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FORMAT_H
