// What a Keras layer is configured with, as options of our layers.
//
// Initialisers are left out, for the contents come from the file, and so is what only says how
// Keras would compute. What would change the numbers and is not known here is refused, all of it in
// one error.
//
// Threads: one at a time.
#ifndef PEN_GRAPH_IMPORT_KERAS_KERAS_OPTIONS_H
#define PEN_GRAPH_IMPORT_KERAS_KERAS_OPTIONS_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/keras/keras_config.h"

// Finds the layer that builds each layer of `model` and of the models within it, and reads its
// options. `file` is the model's name in messages.
//   UNSUPPORTED    lists layers, options and arguments that Penstock does not have, with the names
//                  of the layers
//   INVALID_INPUT  an option has no value that it may have
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_keras_options_read(pen_keras_model *model, const char *file,
                                                pen_arena *arena);

#endif // PEN_GRAPH_IMPORT_KERAS_KERAS_OPTIONS_H
