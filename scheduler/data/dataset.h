// The contract of this folder towards its users, defined in dataset_open.c and dataset_*.c.
//
// Examples to learn from: one interface over the file formats (idx, npy, csv, images,
// text, tokens).
//
// A dataset is a numbered list of examples. Each has one or more named inputs, and labels if the
// files have them, one or more: class indices (int64) or targets (float32). All examples have one
// shape.
//
// Lifetime: from pen_dataset_open to pen_dataset_close; what pen_dataset_get_info points at lives
//           as long as the dataset. Options are borrowed for the length of pen_dataset_open.
// Threads:  one thread at a time reads a dataset (formats keep scratch memory). The info may be
//           read by any thread.
// Files:    npy and plain idx files stay memory-mapped while the dataset is open, and must not be
//           made shorter in that time.
#ifndef PEN_SCHEDULER_DATA_DATASET_H
#define PEN_SCHEDULER_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/dataset_options.h"

// One input, or the labels, of one example.
typedef struct pen_dataset_field {
    const char *name;            // of the graph's input; "" if there is one that was not named
    pen_dataset_element element; // never AUTO
    uint32_t rank;               // 0 for one class index an example
    int64_t shape[PEN_RANK_LIMIT - 1]; // of one example: without the batch dimension
    uint64_t element_count;            // product of shape
    uint64_t bytes;                    // of one example
    int64_t picture[3]; // its dimensions, however it is flattened; 0: it is no picture
    bool is_decoded;    // from files of pictures
} pen_dataset_field;

typedef struct pen_dataset_info {
    const char *format;
    uint64_t example_count;          // at least 1
    uint32_t input_count;            // at least 1
    const pen_dataset_field *inputs; // [input_count]
    uint32_t label_count;
    const pen_dataset_field *labels; // [label_count]; NULL: no labels
    uint32_t target_count;           // at least 1 where there are labels
    uint32_t class_count;            // 0: not known
    const char *const *class_names;  // [class_count]; NULL: they have none. Of a table without
                                     // labels those of the training's
    uint64_t held_bytes;    // of memory while it is open: files inflated or parsed, but not mapped
    uint64_t skipped_count; // images: files that are no pictures, and left out
    const char *skipped_path; // the first of them; NULL: none
    const uint64_t *broken;   // [broken_count] images: left out, as options have them
    uint32_t broken_count;
    const char *broken_text; // what is wrong with the first of them; NULL: none, or known before
} pen_dataset_info;

typedef struct pen_dataset pen_dataset;

// Opens the files and checks what can be checked without reading all examples.
//   INVALID_INPUT  an option is wrong, or contradicts the file
//   NOT_FOUND      a file, column or format is not there
//   UNSUPPORTED    a well-formed file of a kind that is not read
//   CORRUPT        a file contradicts itself
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_dataset_open(const pen_dataset_options *options,
                                          pen_dataset **out_dataset);

// Accepts NULL.
void pen_dataset_close(pen_dataset *dataset);

const pen_dataset_info *pen_dataset_get_info(const pen_dataset *dataset);

// Reads `count` examples: input i of example indices[j] to out_inputs[i] + j * inputs[i].bytes,
// labels likewise. `out_inputs` or `out_labels`, or one of their pointers, may be NULL: these are
// not read. Every index is below example_count. On an error the memory written to is unspecified.
//   CORRUPT, UNSUPPORTED, INVALID_INPUT  an example cannot be read, or its class index is out of
//                                        range; names the file and the example
//   IO, NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_dataset_read(pen_dataset *dataset, const uint64_t *indices,
                                          uint64_t count, void *const *out_inputs,
                                          void *const *out_labels);
// The same for training in `epoch`: pictures are changed as the options say.
PEN_NODISCARD pen_status pen_dataset_read_epoch(pen_dataset *dataset, uint64_t epoch,
                                                const uint64_t *indices, uint64_t count,
                                                void *const *out_inputs, void *const *out_labels);

// Mixes the examples of batch `batch` of an epoch, as the options say, all that it has: `inputs` or
// `labels`, or one of their pointers, may be NULL.
void pen_dataset_mix(pen_dataset *dataset, uint64_t epoch, uint64_t batch, uint64_t count,
                     void *const *inputs, void *const *labels);

// From now on reading ends with CANCELLED once the number is not 0 (pen_interrupt_wished).
void pen_dataset_set_cancel(pen_dataset *dataset, const volatile int *cancel);

// What tells two datasets apart that should be one: number and shapes of examples, and what eight
// of them hold, spread from the first to the last. As pen_dataset_read
PEN_NODISCARD pen_status pen_dataset_fingerprint(pen_dataset *dataset, uint64_t *out_fingerprint);

// Looks for a float32 among what pen_dataset_read gave for `count` examples that is infinite or no
// number. `labels` may be NULL.
//   NOT_FINITE  there is one; names the example, as the files number it, and the input
PEN_NODISCARD pen_status pen_dataset_check_finite(const pen_dataset *dataset,
                                                  const uint64_t *indices, uint64_t count,
                                                  void *const *inputs, void *const *labels);

// The labels that a loss takes, by their name in the data; NULL: the only ones.
//   INVALID_INPUT  there are none of that name, or several and no name
PEN_NODISCARD pen_status pen_dataset_find_labels(const pen_dataset_info *info, const char *name,
                                                 uint32_t *out_labels);

// Says how many classes the model knows for a target, and reads all its labels to see that they are
// class indices below it, or ignored. Does nothing if there are no labels, or they are float32.
//   INVALID_INPUT  one is not; names the file, the example, and the index found. Or all are ignored
PEN_NODISCARD pen_status pen_dataset_limit_classes(pen_dataset *dataset, uint32_t target,
                                                   uint32_t class_count);

// What some targets weigh.
typedef struct pen_target_sum {
    uint64_t count; // that are not ignored; 0 where there are no classes
    double weight;  // the sum of weight of the example * weight of the label
} pen_target_sum;

// Of target `target` in the labels of `count` examples, as pen_dataset_read gave them. Where it has
// no classes, or they are not there, the sum is that of the examples' weights.
pen_target_sum pen_dataset_weigh(const pen_dataset *dataset, uint32_t target,
                                 const uint64_t *indices, uint64_t count, void *const *labels);
// Of all examples: reads their labels, the first time. As pen_dataset_read
PEN_NODISCARD pen_status pen_dataset_weigh_all(pen_dataset *dataset, uint32_t target,
                                               pen_target_sum *out_sum);

// The weight of an example in losses, at least 0; 1 where the data have none.
double pen_dataset_weight(const pen_dataset *dataset, uint64_t example);

// What losses are means over: a step's examples, or all of a dataset.
typedef struct pen_dataset_part_sum {
    uint64_t example_count;
    double weight; // of their targets
    bool is_whole; // all of a dataset, so that those of a batch may weigh nothing
} pen_dataset_part_sum;

// What the losses of `count` examples are scaled by: example_count * weight of the example / weight
// of all targets; 0 where none counts.
//   INVALID_INPUT  the weights of all examples of a step are 0; names one
PEN_NODISCARD pen_status pen_dataset_scale(const pen_dataset *dataset, const uint64_t *indices,
                                           uint64_t count, const pen_dataset_part_sum *of,
                                           float *out_scales);

#endif // PEN_SCHEDULER_DATA_DATASET_H
