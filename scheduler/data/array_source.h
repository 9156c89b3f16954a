// Arrays in memory whose first dimension numbers the examples: what idx and npy files are, once
// their headers are read.
//
// Lifetime: the data and path are borrowed from the format; tables live in the dataset's arena.
// Threads:  immutable after pen_array_source_open_…; any thread may read.
#ifndef PEN_SCHEDULER_DATA_ARRAY_SOURCE_H
#define PEN_SCHEDULER_DATA_ARRAY_SOURCE_H

#include "base/format/npy.h"
#include "graph/tensor_type.h"
#include "scheduler/data/dataset.h"
#include "scheduler/data/normalization.h"

typedef struct pen_array_source {
    const char *path;
    pen_npy_element element;
    bool big_endian;
    uint32_t rank;                 // at least 1
    int64_t shape[PEN_RANK_LIMIT]; // with the number of examples; product fits the data
    const uint8_t *data;

    // filled when opened as inputs or labels
    uint64_t example_elements;
    uint64_t example_bytes; // in `data`
    pen_dataset_element wanted;
    bool normalized;
    pen_normalization normalization;
} pen_array_source;

// Makes `field` (whose name is set) that of inputs. If they are `pictures`, a rank of 3 means one
// channel, and uint8 elements are scaled by 1/255 unless the options have a scale.
//   INVALID_INPUT  the shape has no example dimension or an empty one; normalisation does not fit
//   UNSUPPORTED    floating-point elements where int64 is wanted
PEN_NODISCARD pen_status pen_array_source_open_inputs(pen_array_source *source,
                                                      const pen_dataset_options *options,
                                                      pen_dataset_element wanted, bool pictures,
                                                      pen_arena *arena, pen_dataset_field *field);

// Makes `field` that of labels. Real numbers may become int64 where all are whole.
//   INVALID_INPUT  the shape has no example dimension; a label is not whole
PEN_NODISCARD pen_status pen_array_source_open_labels(pen_array_source *source,
                                                      pen_dataset_element wanted,
                                                      pen_dataset_field *field);

// Reads examples, one after another, as the field's elements. Indices are below shape[0].
void pen_array_source_read(const pen_array_source *source, const uint64_t *indices, uint64_t count,
                           void *out_elements);

#endif // PEN_SCHEDULER_DATA_ARRAY_SOURCE_H
