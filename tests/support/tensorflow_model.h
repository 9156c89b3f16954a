// Models of TensorFlow, run and compared with what TensorFlow computed of them:
// tests/reference/tensorflow.
#ifndef PEN_TESTS_SUPPORT_TENSORFLOW_MODEL_H
#define PEN_TESTS_SUPPORT_TENSORFLOW_MODEL_H

#include "graph/import/import.h"

#define TENSORFLOW_MODELS "tests/reference/tensorflow/"

// Opens a model; an error ends the test. `options` may be NULL.
pen_model *tensorflow_open(const char *path, const pen_import_options *options);

// Infers its shapes with that batch.
void tensorflow_bind(const pen_model *model, int64_t batch);

// Runs a model that is open on the inputs stored as `name`, compares its outputs with those
// stored, and closes it. A batch of 0: its shapes are inferred.
void tensorflow_check(pen_model *model, const char *name, int64_t batch);

#endif // PEN_TESTS_SUPPORT_TENSORFLOW_MODEL_H
