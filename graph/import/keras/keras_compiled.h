// What a Keras model was compiled with, as a job would say it.
#ifndef PEN_GRAPH_IMPORT_KERAS_KERAS_COMPILED_H
#define PEN_GRAPH_IMPORT_KERAS_KERAS_COMPILED_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"

// From `training_config` of .h5, or `compile_config` of .keras: "loss: softmax_cross_entropy,
// optimizer: {adam: {lr: 0.001}}". What a job cannot say stands as Keras calls it, in brackets.
// NULL: it says nothing. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_keras_compiled_read(const json_t *compiled, pen_arena *arena,
                                                 const char **out_text);

#endif // PEN_GRAPH_IMPORT_KERAS_KERAS_COMPILED_H
