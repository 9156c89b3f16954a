// Small models and data to train in tests, written as files.
#ifndef PEN_TESTS_SUPPORT_TINY_MODEL_H
#define PEN_TESTS_SUPPORT_TINY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

#define TINY_FEATURES 6
#define TINY_HIDDEN 5
#define TINY_CLASSES 3

// A perceptron float32[batch,6] -> float32[batch,3] with a weight used twice, a bias that is added
// as float32[1,5], and a second output that no loss depends on:
//   h = tanh(tanh(x·fc1.weight + fc1.bias)·twice)·twice;  y = h·fc2.weight + fc2.bias
//   aux = h·aux.weight
typedef struct tiny_model {
    bool has_dropout;  // behind h
    bool in_double;    // computes y, but not x, in float64
    bool fixed_batch;  // 4 instead of a symbol
    bool is_exploding; // parameters so large that the loss is not finite
} tiny_model;

// Writes the model as ONNX and returns its path, which lives until the process ends. Fails the test
// on error, as all here does.
const char *tiny_model_write(const tiny_model *model, const char *name);

// Random inputs [example_count][6] and labels in [0, 3) as scratch files `<name>_x.npy` and
// `<name>_y.npy`; returns their common path without "_x.npy".
const char *tiny_data_write(const char *name, uint32_t example_count, uint64_t seed);

// Any NPY file of float32 or int64 zeros.
const char *tiny_npy_write(const char *name, bool is_float, uint32_t rank, const int64_t *dims);

#endif // PEN_TESTS_SUPPORT_TINY_MODEL_H
