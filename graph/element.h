// Element types: what there is to know of each, and numbers from and to their bytes.
//
// Nothing else in the tree tells element types apart by a list of them. A format that numbers or
// names them in its own way keeps a table by element type (graph/import/tensor_elements.h,
// scheduler/store/safetensors_header.c, graph/import/npz_file.c).
//
// Threads: pure functions.
#ifndef PEN_GRAPH_ELEMENT_H
#define PEN_GRAPH_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum pen_element_type {
    PEN_ELEMENT_UNKNOWN = 0,
    PEN_FLOAT32,
    PEN_FLOAT64,
    PEN_FLOAT16,
    PEN_BFLOAT16,
    PEN_INT8,
    PEN_INT16,
    PEN_INT32,
    PEN_INT64,
    PEN_UINT8,
    PEN_UINT16,
    PEN_UINT32,
    PEN_UINT64,
    PEN_BOOL, // one byte, 0 or 1
    PEN_ELEMENT_TYPE_COUNT,
} pen_element_type;

// Sets of element types: bit `pen_element_type` of a word.
#define PEN_ELEMENT_BIT(element) (1u << (element))
#define PEN_ELEMENTS_TRAINED (PEN_ELEMENT_BIT(PEN_FLOAT32) | PEN_ELEMENT_BIT(PEN_FLOAT64))
#define PEN_ELEMENTS_HALF (PEN_ELEMENT_BIT(PEN_FLOAT16) | PEN_ELEMENT_BIT(PEN_BFLOAT16))
#define PEN_ELEMENTS_FLOAT (PEN_ELEMENTS_TRAINED | PEN_ELEMENTS_HALF)
#define PEN_ELEMENTS_SIGNED_INTEGER                                                                \
    (PEN_ELEMENT_BIT(PEN_INT8) | PEN_ELEMENT_BIT(PEN_INT16) | PEN_ELEMENT_BIT(PEN_INT32) |         \
     PEN_ELEMENT_BIT(PEN_INT64))
#define PEN_ELEMENTS_SIGNED (PEN_ELEMENTS_FLOAT | PEN_ELEMENTS_SIGNED_INTEGER)
#define PEN_ELEMENTS_UNSIGNED                                                                      \
    (PEN_ELEMENT_BIT(PEN_UINT8) | PEN_ELEMENT_BIT(PEN_UINT16) | PEN_ELEMENT_BIT(PEN_UINT32) |      \
     PEN_ELEMENT_BIT(PEN_UINT64))
#define PEN_ELEMENTS_WIDE_INTEGER                                                                  \
    (PEN_ELEMENT_BIT(PEN_INT32) | PEN_ELEMENT_BIT(PEN_INT64) | PEN_ELEMENT_BIT(PEN_UINT32) |       \
     PEN_ELEMENT_BIT(PEN_UINT64))
#define PEN_ELEMENTS_NUMBER (PEN_ELEMENTS_SIGNED | PEN_ELEMENTS_UNSIGNED)
#define PEN_ELEMENTS_ANY (PEN_ELEMENTS_NUMBER | PEN_ELEMENT_BIT(PEN_BOOL))

static inline bool pen_element_is_in(pen_element_type element, uint32_t elements) {
    return (PEN_ELEMENT_BIT(element) & elements) != 0;
}

// Bytes of one element; 0 for PEN_ELEMENT_UNKNOWN.
size_t pen_element_bytes(pen_element_type element);
// "float32"; "unknown" for PEN_ELEMENT_UNKNOWN.
const char *pen_element_name(pen_element_type element);
// NOT_FOUND lists the names there are.
PEN_NODISCARD pen_status pen_element_find(const char *name, pen_element_type *out_element);
bool pen_element_is_float(pen_element_type element);   // the four floating types
bool pen_element_is_half(pen_element_type element);    // floating, of 16 bits: storage only
bool pen_element_is_trained(pen_element_type element); // float32, float64: losses and gradients
bool pen_element_is_integer(pen_element_type element); // signed or unsigned, not bool
bool pen_element_is_signed(pen_element_type element);  // floating or signed integer

// Element `index` of any known type as double, and back: rounded to nearest even for floating
// types (bfloat16 by way of float32), truncated and held within int64 for integers (uint64 up to
// 2^64), != 0 for bool. `elements` may be misaligned.
double pen_element_read(pen_element_type element, const void *elements, int64_t index);
void pen_element_write(pen_element_type element, void *elements, int64_t index, double number);
// The same for integers and bool, exact over 64 bits, wrapping at the store; floating types go by
// way of double.
int64_t pen_element_read_int(pen_element_type element, const void *elements, int64_t index);
void pen_element_write_int(pen_element_type element, void *elements, int64_t index, int64_t number);

// `count` elements from element `first` on as another type, by way of double: the one place where
// weights change their type.
void pen_element_convert(pen_element_type from, const void *elements, int64_t first, int64_t count,
                         pen_element_type to, void *out_elements);

#endif // PEN_GRAPH_ELEMENT_H
