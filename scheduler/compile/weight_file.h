// First contents of a model from another file, by name: safetensors, and NumPy's NPZ archives.
//
// Names are compared with those of the model's parameters and running statistics, after the
// beginnings that `renames` has were replaced. Everything that does not fit is said at once. Of a
// model of PyTorch the file may have all of state_dict(): other names of tied weights, with the
// same numbers, and buffers that are constants of the graph, with those that the model has.
//
// Models of layers have two layouts: ours, which trainings save, and Keras', in which kernels of
// convolutions are [height, width, channels, filters] and gates of LSTM stand otherwise. Names of
// Keras' may end in ":0".
//
// float16 and bfloat16 become the float32 of the model; float64, too. Other differences of type are
// errors.
//
// Lifetime: the model borrows contents from the file; it is closed after the model is destroyed.
// Threads:  one at a time.
#ifndef PEN_SCHEDULER_COMPILE_WEIGHT_FILE_H
#define PEN_SCHEDULER_COMPILE_WEIGHT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/import/import.h"

typedef struct pen_weight_rename {
    const char *from; // a beginning of names in the file; "" for all
    const char *to;   // what it is in the model
} pen_weight_rename;

typedef enum pen_weight_layout {
    PEN_WEIGHTS_BY_SHAPE, // the one that fits; an error where both would, and mean other numbers
    PEN_WEIGHTS_KERAS,
    PEN_WEIGHTS_PENSTOCK,
} pen_weight_layout;

typedef struct pen_weight_options {
    const char *path;                 // FILE.safetensors or FILE.npz
    const pen_weight_rename *renames; // [rename_count]; the longest beginning that fits is taken
    uint32_t rename_count;
    bool is_partial; // the file may lack tensors of the model, and have others
    pen_weight_layout layout;
} pen_weight_options;

typedef struct pen_weight_file pen_weight_file;

// Sets the contents of the model's parameters and states.
//   INVALID_INPUT  lists what the file lacks, what the model has not, and what has another type;
//                  with is_partial, only the last, or that no name is the same; or the layout
//                  cannot be told, or is Keras' of what is no model of layers
//   UNSUPPORTED    another kind of file
//   NOT_FOUND, IO, CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_weight_file_apply(const pen_weight_options *options, pen_model *model,
                                               pen_weight_file **out_file);
// How many tensors were float16 or bfloat16 in the file.
uint32_t pen_weight_file_halves_count(const pen_weight_file *file);
// Accepts NULL.
void pen_weight_file_close(pen_weight_file *file);

#endif // PEN_SCHEDULER_COMPILE_WEIGHT_FILE_H
