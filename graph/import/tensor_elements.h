// What the element types of a tensor message (ONNX, TensorFlow) have in common: each has a number
// and a name in its format and, where contents are not raw bytes, a list field.
//
// Threads: any; what is returned is constant.
#ifndef PEN_GRAPH_IMPORT_TENSOR_ELEMENTS_H
#define PEN_GRAPH_IMPORT_TENSOR_ELEMENTS_H

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/status.h"
#include "graph/tensor_type.h"

typedef struct pen_tensor_element {
    pen_element_type element; // PEN_ELEMENT_UNKNOWN: known by name only
    const char *name;
    uint32_t field; // the list that its numbers are in; 0: none
} pen_tensor_element;

// Those of a format.
typedef struct pen_tensor_elements {
    const pen_tensor_element *elements; // [count], indexed by the number in the format
    uint32_t count;
} pen_tensor_elements;

// What a number of the format stands for: never NULL, an unknown number is "of unknown number".
const pen_tensor_element *pen_tensor_elements_at(const pen_tensor_elements *elements,
                                                 int64_t number);
// The way back; 0 where the format has no such type.
int32_t pen_tensor_elements_number(const pen_tensor_elements *elements, pen_element_type element);
// How a number in its list travels.
pen_protobuf_wire pen_tensor_element_wire(const pen_tensor_element *element);

// The contents that `bytes` (as many as the type says) are: borrowed, or a copy where they are
// misaligned and few.
//   CORRUPT  a bool that is neither 0 nor 1
PEN_NODISCARD pen_status pen_tensor_borrow(const pen_tensor_type *type, const uint8_t *bytes,
                                           pen_arena *arena, const void **out_data);

// Contents of a type become those of `element`: they stay where they are, or are copied.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_tensor_convert(const pen_tensor_type *type, pen_element_type element,
                                            pen_arena *arena, const void **io_data);

// Reads the numbers of the message's lists of `element` into memory of that type: a list of 32-bit
// integers holds narrower types, and the bits of 16-bit floats. At most `room` are written, all are
// counted; `out_bytes` NULL: only counted.
//   CORRUPT  a bool that is neither 0 nor 1
PEN_NODISCARD pen_status pen_tensor_read_list(const pen_protobuf_reader *message,
                                              const pen_tensor_element *element, uint8_t *out_bytes,
                                              uint64_t room, uint64_t *out_count);

#endif // PEN_GRAPH_IMPORT_TENSOR_ELEMENTS_H
