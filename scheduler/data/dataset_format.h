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

    // Fills dataset->info (all but `format` and targets), label_sources and state; and weights,
    // where they are a column. Called with the dataset otherwise empty. On an error `close` is
    // called too. Codes: see pen_dataset_open.
    PEN_NODISCARD pen_status (*open)(pen_dataset *dataset, const pen_dataset_options *options);

    // As pen_dataset_read, for indices below the format's own example count; class indices need
    // not be checked. `out_inputs` has as many pointers as there are inputs, and `out_labels` as
    // there are labels; each may be NULL.
    PEN_NODISCARD pen_status (*read)(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                     void *const *out_inputs, void *const *out_labels);

    // What tells all the contents apart, where a sample of them does not; NULL: one does.
    uint64_t (*digest)(const pen_dataset *dataset);

    // Releases what `open` took, also after it failed half way.
    void (*close)(pen_dataset *dataset);
} pen_dataset_format;

// A target, and what is known of its labels.
typedef struct pen_dataset_known_target {
    pen_dataset_target rule;
    uint32_t labels;      // position; PEN_DATASET_NO_LABELS: they are not there, or no indices
    uint32_t class_limit; // indices must be below it; 0: not checked
    bool is_weighed;
    pen_target_sum sum; // of all examples, when weighed
} pen_dataset_known_target;
#define PEN_DATASET_NO_LABELS UINT32_MAX

struct pen_dataset {
    const pen_dataset_format *format;
    pen_arena *arena;
    pen_dataset_info info;
    // the files that labels come from, for messages
    const char *label_sources[PEN_DATASET_LABEL_COUNT_LIMIT];
    pen_dataset_known_target *targets; // [info.target_count]
    void *state;                       // the format's
    struct pen_decode_team *team;      // that decodes its pictures; NULL: it has none
    const volatile int *cancel;        // not 0: nothing is read any more; NULL: nobody may say so
    struct pen_augment *augment;       // NULL: pictures stay as they are
    struct pen_mix *mix;               // NULL: batches stay as they are
    uint32_t spread_count;             // classes that the only labels are spread over; 0: not done
    bool is_changed;                   // what is being read, for `epoch`
    uint64_t epoch;                    // that is read for; 0: none
    uint64_t *subset;          // [info.example_count] indices of the format's; NULL: all of them
    float *weights;            // of all the format's examples, in losses; NULL: 1
    const char *weight_source; // the file that they come from, for messages
};

extern const pen_dataset_format pen_dataset_format_idx;
extern const pen_dataset_format pen_dataset_format_npy;
extern const pen_dataset_format pen_dataset_format_arrays;
extern const pen_dataset_format pen_dataset_format_csv;
extern const pen_dataset_format pen_dataset_format_images;
extern const pen_dataset_format pen_dataset_format_sql;
extern const pen_dataset_format pen_dataset_format_webdataset;
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

// Labels are those of the whole dataset: their field, put into info, with the file they come from.
void pen_dataset_set_labels(pen_dataset *dataset, const pen_dataset_field *labels,
                            const char *source);

// The target whose labels they are is looked up when the dataset is opened (dataset_target.c).
//   INVALID_INPUT  the data has other labels; names them
PEN_NODISCARD pen_status pen_dataset_open_targets(pen_dataset *dataset,
                                                  const pen_dataset_options *options);
// Whether labels that were read are classes that the model knows; `indices` are the format's.
//   INVALID_INPUT  one is not
PEN_NODISCARD pen_status pen_dataset_check_targets(const pen_dataset *dataset,
                                                   const uint64_t *indices, uint64_t count,
                                                   void *const *labels);

// Labels that are class indices become probabilities of all classes, if batches are to be mixed.
//   INVALID_INPUT  it is not known how many classes there are, or there is not one label an example
PEN_NODISCARD pen_status pen_dataset_open_spread(pen_dataset *dataset,
                                                 const pen_dataset_options *options);
// Does so with what was just read; `indices` are the format's.
//   INVALID_INPUT  one is no class
PEN_NODISCARD pen_status pen_dataset_spread(const pen_dataset *dataset, const uint64_t *indices,
                                            uint64_t count, void *const *labels);

// Changes of pictures (dataset_augment.c), as the options say. As pen_augment_create
PEN_NODISCARD pen_status pen_dataset_open_augment(pen_dataset *dataset,
                                                  const pen_dataset_options *options);
// Changes what was just read, if it is for training; `indices` are the format's. As
// pen_augment_apply
PEN_NODISCARD pen_status pen_dataset_change(const pen_dataset *dataset, const uint64_t *indices,
                                            uint64_t count, void *const *inputs);

// Takes memory for a weight of each of info.example_count examples. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_dataset_make_weights(pen_dataset *dataset, const char *source);
// Reads weights that are in files of their own, and checks those that there are. Called before a
// part of the examples is taken.
//   INVALID_INPUT  one is negative or not finite, or there are not as many as examples
//   else           see pen_dataset_open
PEN_NODISCARD pen_status pen_dataset_open_weights(pen_dataset *dataset,
                                                  const pen_dataset_options *options);

// What the loss that takes labels of this name wants of them.
pen_dataset_element pen_dataset_label_element(const pen_dataset_options *options, const char *name);

// Keeps the shape of a picture, then makes it one dimension if the options say so. Call after
// measuring.
void pen_dataset_field_flatten(pen_dataset_field *field, const pen_dataset_options *options);

#endif // PEN_SCHEDULER_DATA_DATASET_FORMAT_H
