// Models of layers for C programs: built here, trained with penstock.h.
//
//   pen_layers *model;
//   pen_status status = pen_layers_create(&model);
//   if (status == PEN_OK) status = pen_layers_input(model, "picture", 3, (int64_t[]){28, 28, 1});
//   if (status == PEN_OK) status = pen_layers_add(model, "conv2d", "filters: 32, kernel_size: 3");
//   if (status == PEN_OK) status = pen_layers_add(model, "flatten", NULL);
//   if (status == PEN_OK) status = pen_layers_add(model, "dense", "units: 10");
//   if (status == PEN_OK) status = pen_layers_save(model, "job.yaml", "data: …\ntrain: …\n");
//   pen_layers_destroy(model);
//
// Layers and their options are those of a job's `model: {layers: …}` (Keras' names and defaults),
// options being what stands between the braces there: "units: 10, activation: relu". A layer reads
// the one before it, or those that its option `from` names: "from: [left, right]".
//
// What comes out is a job file, so that everything a job can have is there: data, optimizer,
// several devices and how the model is placed on them. pen_training_open trains it, and so does
// `penstock train`.
//
// No pointer may be NULL where nothing is said of it.
//
// Lifetime: pen_layers_create to pen_layers_destroy.
// Threads:  one at a time uses a model.
#ifndef PEN_GRAPH_LAYERS_H
#define PEN_GRAPH_LAYERS_H

#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pen_layers pen_layers;

// An empty model. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layers_create(pen_layers **out_layers);
// Accepts NULL.
void pen_layers_destroy(pen_layers *layers);

// What decides the first contents of the weights; 0 when it is not called.
void pen_layers_set_seed(pen_layers *layers, uint32_t seed);

// Adds an input of floating numbers, of this shape without the batch: [rank] of `dims`.
//   INVALID_INPUT  no dimension, one below 1, a name that an input or a layer has already, or one
//   with other characters than letters, digits, _ - .
PEN_NODISCARD pen_status pen_layers_input(pen_layers *layers, const char *name, uint32_t rank,
                                          const int64_t *dims);
// The same for indices, int64, which an embedding reads.
PEN_NODISCARD pen_status pen_layers_input_indices(pen_layers *layers, const char *name,
                                                  uint32_t rank, const int64_t *dims);

// Adds a layer. `options` may be NULL: its defaults.
//   NOT_FOUND      there is no such layer: the message lists those there are
//   INVALID_INPUT  the options are not the layer's, or it has the name of another layer or input
PEN_NODISCARD pen_status pen_layers_add(pen_layers *layers, const char *layer, const char *options);

// Makes a layer that was added an output of the model, by its name: that of its options, or
// "dense", "dense_1" as they are added. The last layer is an output, when none is made.
//   NOT_FOUND      there is no such layer so far: the message lists those there are
//   INVALID_INPUT  it is an output already
PEN_NODISCARD pen_status pen_layers_output(pen_layers *layers, const char *name);

// Whether the layers go together: builds them, and forgets what was built.
//   INVALID_INPUT  shapes that do not suit a layer, a name that is not there
PEN_NODISCARD pen_status pen_layers_check(const pen_layers *layers);

// Checks the model and writes it to a YAML file: with `job`, the text of a job without its model
// ("data: …\ntrain: …\n"), as a job; without, as a model that jobs may name. IO, and as above.
PEN_NODISCARD pen_status pen_layers_save(const pen_layers *layers, const char *path,
                                         const char *job);

#ifdef __cplusplus
}
#endif

#endif // PEN_GRAPH_LAYERS_H
