// One array in several parts: a list of files, each with some of the examples, in their order.
//
// Lifetime: tables live in the arena given; data and paths are borrowed, as those of the sources.
// Threads:  immutable after pen_array_parts_open_…; any thread may read.
#ifndef PEN_SCHEDULER_DATA_ARRAY_PARTS_H
#define PEN_SCHEDULER_DATA_ARRAY_PARTS_H

#include "scheduler/data/array_source.h"

typedef struct pen_array_parts {
    pen_array_source *sources; // [count], at least 1; all of one element, and shape of an example
    uint32_t count;
    uint64_t *starts;       // [count + 1] examples before each; the last: of all
    uint64_t example_bytes; // of an example that is read
} pen_array_parts;

// Makes `field` that of inputs, or of labels. `sources` and `count` are set. As
// pen_array_source_open_inputs, pen_array_source_open_labels
//   INVALID_INPUT  a part has other elements or examples of another shape than the first
PEN_NODISCARD pen_status pen_array_parts_open_inputs(pen_array_parts *parts,
                                                     const pen_dataset_options *options,
                                                     pen_dataset_element wanted, pen_arena *arena,
                                                     pen_dataset_field *field);
PEN_NODISCARD pen_status pen_array_parts_open_labels(pen_array_parts *parts,
                                                     pen_dataset_element wanted, pen_arena *arena,
                                                     pen_dataset_field *field);

// Examples of all parts together.
uint64_t pen_array_parts_count(const pen_array_parts *parts);

// As pen_array_source_read, for indices below that count.
void pen_array_parts_read(const pen_array_parts *parts, const uint64_t *indices, uint64_t count,
                          void *out_elements);

#endif // PEN_SCHEDULER_DATA_ARRAY_PARTS_H
