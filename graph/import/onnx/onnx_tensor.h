// TensorProto: the tensors of an ONNX file, in every encoding it knows.
//
// Contents are borrowed from the mapped file whenever they lie there as they are used: raw data,
// external data, and packed lists of the element type itself. They are copied only where the file
// has them misaligned or in a wider type.
//
// Lifetime: tensors borrow the model's bytes; mapped external files live as long as their
//           pen_external_files.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_TENSOR_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_TENSOR_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/status.h"
#include "graph/import/external_files.h"
#include "graph/tensor_type.h"

typedef struct pen_onnx_tensor {
    const char *name;     // "" when it has none
    pen_tensor_type type; // checked; element PEN_ELEMENT_UNKNOWN when Penstock has no such type
    int64_t data_type;    // as in the file
    pen_protobuf_reader message;
} pen_onnx_tensor;

// Reads name and type. CORRUPT, INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_onnx_tensor_open(const pen_protobuf_reader *message, pen_arena *arena,
                                              pen_onnx_tensor *out_tensor);

// The contents: as many bytes as the type has.
//   UNSUPPORTED    the element type is
//   INVALID_INPUT  the external file's name is not allowed
//   NOT_FOUND, IO  of the external file
//   CORRUPT        the contents do not have the size of the type, or are no bool
PEN_NODISCARD pen_status pen_onnx_tensor_data(const pen_onnx_tensor *tensor,
                                              pen_external_files *files, pen_arena *arena,
                                              const void **out_data);

// float32 for float16 and bfloat16, if they are widened.
pen_element_type pen_onnx_widened(pen_element_type element, bool widens);

// The element type with that number in ONNX; PEN_ELEMENT_UNKNOWN when Penstock has none.
pen_element_type pen_onnx_element_type(int64_t data_type);
// The number of an element type in ONNX; 0 for PEN_ELEMENT_UNKNOWN.
int32_t pen_onnx_data_type(pen_element_type element);
// What ONNX calls the type: "float", "string", "type 99".
const char *pen_onnx_data_type_name(int64_t data_type);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_TENSOR_H
