// The stored numbers of PyTorch: tests/reference/README.md says what they are.
#ifndef PEN_TESTS_SUPPORT_REFERENCE_MODEL_H
#define PEN_TESTS_SUPPORT_REFERENCE_MODEL_H

#include "base/arena.h"

// One array of a model: a parameter, or a running statistic.
typedef struct reference_array {
    const char *name;
    const char *kind; // "parameter", "running", "running_biased"
    uint64_t offset;  // elements, in the flat files
    uint64_t count;
} reference_array;

typedef struct reference_model {
    const char *folder; // "tests/reference/mlp"
    uint32_t array_count;
    const reference_array *arrays;
    uint64_t parameter_elements; // of the arrays of kind "parameter", which come first
} reference_model;

// Reads the index of the model in `folder`. Fails the test on error; so do all below.
reference_model reference_model_open(const char *folder, pen_arena *arena);

// A flat float32 file of the model: "gradient_1.npy"; NULL if there is none.
const float *reference_floats(const reference_model *model, const char *name, pen_arena *arena,
                              uint64_t *out_count);

// Column `column` of a CSV file of the model: numbers of its rows; text is 0.
const double *reference_column(const reference_model *model, const char *name, const char *column,
                               pen_arena *arena, uint32_t *out_count);

#endif // PEN_TESTS_SUPPORT_REFERENCE_MODEL_H
