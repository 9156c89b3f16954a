// TensorProto of TensorFlow: tensors as they stand in attributes of nodes.
//
// Contents are borrowed from the mapped file where they lie there whole. A shorter list of numbers
// repeats its last one; such tensors are filled, within PEN_SPLAT_BYTES_LIMIT.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_TENSOR_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/status.h"
#include "graph/import/tensorflow/graphdef_types.h"
#include "graph/tensor_type.h"

// A shape; dimensions that are not known become -1. *out_is_known: whether the rank is.
//   CORRUPT; UNSUPPORTED  too many dimensions
PEN_NODISCARD pen_status pen_graphdef_shape_read(const pen_protobuf_reader *message,
                                                 pen_shape *out_shape, bool *out_is_known);

// The type of a tensor, checked. *out_data_type is its number in the file; the element is
// PEN_ELEMENT_UNKNOWN when we have none.
PEN_NODISCARD pen_status pen_graphdef_tensor_type(const pen_protobuf_reader *message,
                                                  pen_tensor_type *out_type,
                                                  int64_t *out_data_type);

// The contents of a tensor of that type. `splat_bytes` counts what was filled so far.
//   CORRUPT        they do not have the size of the type, or are no bool
//   INVALID_INPUT  too much would be filled
PEN_NODISCARD pen_status pen_graphdef_tensor_data(const pen_protobuf_reader *message,
                                                  const pen_tensor_type *type, pen_arena *arena,
                                                  uint64_t *splat_bytes, const void **out_data);

// The strings of a tensor of strings; those that are no names are "".
PEN_NODISCARD pen_status pen_graphdef_tensor_texts(const pen_protobuf_reader *message,
                                                   pen_arena *arena, uint32_t *out_count,
                                                   const char ***out_texts);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_TENSOR_H
