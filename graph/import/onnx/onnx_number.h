// One number of any element type, from and to its bytes.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_NUMBER_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_NUMBER_H

#include "graph/tensor_type.h"

#define PEN_ONNX_NUMBER_BYTES 8

// The element at `data`, aligned or not.
double pen_onnx_number_read(pen_element_type element, const void *data);

// The bytes of `number` as that type: rounded to nearest, ties to even (16-bit floats may have
// been rounded to float32 before); integers are cut off. Bytes behind the element are 0.
void pen_onnx_number_write(pen_element_type element, double number,
                           uint8_t out_bytes[PEN_ONNX_NUMBER_BYTES]);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_NUMBER_H
