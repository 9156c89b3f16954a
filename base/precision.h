// Precisions in which a device can take the operands of products: matrix products, convolutions,
// attention, recurrent layers. Their sums, and all else, are float32.
//
// Kernels of GPUs read this header, too: it includes nothing.
#ifndef PEN_BASE_PRECISION_H
#define PEN_BASE_PRECISION_H

typedef enum pen_precision {
    PEN_PRECISION_FLOAT32,
    PEN_PRECISION_TF32,     // float32's range, 10 bits of mantissa
    PEN_PRECISION_BFLOAT16, // float32's range, 7 bits
    PEN_PRECISION_FLOAT16,  // up to 65504, 10 bits
    PEN_PRECISION_COUNT,
} pen_precision;

// "float32", "tf32", "bfloat16", "float16", NULL: by the numbers above.
extern const char *const pen_precision_names[];

// What a precision adds to a set of them. A set without bits is float32 alone.
#define PEN_PRECISION_BIT(precision) (1u << (precision))

#endif // PEN_BASE_PRECISION_H
