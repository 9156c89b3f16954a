// The weights and constants of a `.pt2` file: which bytes of the archive each name stands for.
//
// `data/weights/model_weights_config.json` has the parameters and the buffers that are saved,
// `data/constants/model_constants_config.json` the other buffers and the tensors that code made.
// Contents are borrowed from where they lie, of the type that they have there. Copied are only
// those whose elements do not lie row by row.
//
// Two names may stand for the same bytes: tied weights. The second one has the place of the first
// in `same_as`.
//
// Lifetime: borrows the archive; the list and copies are in the arena.
// Threads:  immutable once read.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_WEIGHTS_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/name_map.h"
#include "base/status.h"
#include "graph/import/pytorch/pt2_model.h"
#include "graph/import/stored_zip.h"

typedef struct pen_pt2_weight {
    const char *name;                  // in state_dict(): "layers.0.weight"
    const pen_stored_zip_entry *entry; // the file of the archive
    pen_pt2_tensor_meta meta;          // as it lies there
    bool is_parameter;
    bool is_constant;       // of the constants' list
    uint32_t same_as;       // the entry of the list with the same bytes; its own place: none before
    pen_tensor_type type;   // as the graph has it: half types are float32
    pen_tensor_type stored; // as the file has it, and `data`
    const void *data;       // NULL until pen_pt2_weights_data
} pen_pt2_weight;

typedef struct pen_pt2_weights {
    uint32_t count;
    pen_pt2_weight *entries; // [count]: weights in the order of the file, then constants
    pen_name_map index;
    uint32_t widened_count; // parameters and buffers of 16 bits
} pen_pt2_weights;

// Reads both lists; that of constants may be missing. No contents are touched.
//   CORRUPT      a tensor lies outside its file or over another one, or contradicts itself
//   UNSUPPORTED  a pickle, an element type that Penstock has not, or names that share bytes without
//                being one tensor
//   NOT_FOUND    a list or a file is missing
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pt2_weights_read(const pen_stored_zip *archive, pen_arena *arena,
                                              pen_pt2_weights *out_weights);

// NULL when there is none of that name.
pen_pt2_weight *pen_pt2_weights_find(const pen_pt2_weights *weights, const char *name);

// Its contents, row by row, of the type `stored`.
//   CORRUPT  a bool that is neither 0 nor 1
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pt2_weights_data(const pen_stored_zip *archive, pen_pt2_weight *entry,
                                              pen_arena *arena, const void **out_data);

// The way back: puts elements of type `from` to where the file of the archive has them, in that
// file's contents. Rounds to halves where the file has those.
void pen_pt2_weight_store(const pen_pt2_weight *weight, pen_element_type from, const void *data,
                          void *out_contents);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_WEIGHTS_H
