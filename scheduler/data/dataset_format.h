// The contract of this folder towards its formats, the *_dataset.c.
//
// What a file format gives to dataset_open.c: a const struct of functions, named in the list there.
//
// Lifetime: a format allocates what lives as long as the dataset from `dataset->arena`, or from
//           the heap and frees it in `close`.
#ifndef PEN_SCHEDULER_DATA_DATASET_FORMAT_H
#define PEN_SCHEDULER_DATA_DATASET_FORMAT_H

#include "base/arena.h"
#include "scheduler/data/dataset.h"

typedef struct pen_dataset_format {
    const char *name;       // as in the job file: "idx"
    const char *token_hint; // NULL: labels are classes. Else they are tokens, and what messages
                            // about one that cannot be end with

    // Fills dataset->info (all but `format`), label_source and state. Called with the dataset
    // otherwise empty. On an error `close` is called too. Codes: see pen_dataset_open.
    PEN_NODISCARD pen_status (*open)(pen_dataset *dataset, const pen_dataset_options *options);

    // As pen_dataset_read, for indices below the format's own example count; class indices need
    // not be checked. `out_inputs` has as many pointers as there are inputs, each may be NULL.
    PEN_NODISCARD pen_status (*read)(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                     void *const *out_inputs, void *out_labels);

    // Releases what `open` took, also after it failed half way.
    void (*close)(pen_dataset *dataset);
} pen_dataset_format;

struct pen_dataset {
    const pen_dataset_format *format;
    pen_arena *arena;
    pen_dataset_info info;
    const char *label_source; // the file that labels come from, for messages
    void *state;              // the format's
    uint32_t class_limit;     // class indices must be below it; 0: not checked
    uint64_t *subset;         // [info.example_count] indices of the format's; NULL: all of them
};

extern const pen_dataset_format pen_dataset_format_idx;
extern const pen_dataset_format pen_dataset_format_npy;
extern const pen_dataset_format pen_dataset_format_csv;
extern const pen_dataset_format pen_dataset_format_images;
extern const pen_dataset_format pen_dataset_format_text;
extern const pen_dataset_format pen_dataset_format_tokens;

// Fills element_count and bytes from element, rank and shape.
//   INVALID_INPUT  a dimension is not positive, or the example is too large; names `what`
PEN_NODISCARD pen_status pen_dataset_field_measure(pen_dataset_field *field, const char *what);

// The only input of formats that have one: its field, allocated from the arena and put into info,
// with the name from the options. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_dataset_add_single_input(pen_dataset *dataset,
                                                      const pen_dataset_options *options,
                                                      pen_dataset_field **out_field);

// Makes the shape one dimension, if the options say so. Call after measuring.
void pen_dataset_field_flatten(pen_dataset_field *field, const pen_dataset_options *options);

#endif // PEN_SCHEDULER_DATA_DATASET_FORMAT_H
