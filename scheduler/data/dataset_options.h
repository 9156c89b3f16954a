// The contract of this folder towards those who say what is read: options of datasets.
//
// Lifetime: borrowed for the length of pen_dataset_open, but arrays, which outlive the dataset.
// Threads:  plain data.
#ifndef PEN_SCHEDULER_DATA_DATASET_OPTIONS_H
#define PEN_SCHEDULER_DATA_DATASET_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format/npy.h"
#include "base/limits.h"
#include "base/status.h"
#include "graph/tensor_type.h"
#include "scheduler/data/augment/augment_options.h"
#include "scheduler/data/token_mask.h"

#define PEN_DATASET_BROKEN_LIMIT 65536                 // pictures that are left out
#define PEN_DATASET_INPUT_COUNT_LIMIT 64               // inputs of one dataset
#define PEN_DATASET_LABEL_COUNT_LIMIT PEN_LOSSES_LIMIT // labels, and targets, of one dataset

// The element type of a field.
typedef enum pen_dataset_element {
    PEN_DATASET_AUTO, // options only: what the file has; integers stay int64, uint8 and bool
                      // become float32 as inputs and int64 as labels
    PEN_DATASET_FLOAT32,
    PEN_DATASET_INT64,
} pen_dataset_element;

// Whether the first line of a CSV file has names.
typedef enum pen_dataset_header {
    PEN_DATASET_HEADER_AUTO, // yes if one of its fields is not a number
    PEN_DATASET_HEADER_YES,
    PEN_DATASET_HEADER_NO,
} pen_dataset_header;

// The numbers in a file of tokens.
typedef enum pen_token_element {
    PEN_TOKEN_AUTO, // what an NPY file has; else UINT16
    PEN_TOKEN_UINT8,
    PEN_TOKEN_INT8,
    PEN_TOKEN_UINT16,
    PEN_TOKEN_INT16,
    PEN_TOKEN_UINT32,
    PEN_TOKEN_INT32,
    PEN_TOKEN_INT64,
} pen_token_element;

// What the columns of a CSV file that hold words become.
typedef enum pen_dataset_categories {
    PEN_DATASET_CATEGORIES_NONE, // they are refused
    PEN_DATASET_CATEGORIES_ONE_HOT,
    PEN_DATASET_CATEGORIES_INDEX,
} pen_dataset_categories;

// What empty fields of a CSV file become.
typedef enum pen_dataset_missing {
    PEN_DATASET_MISSING_ERROR,
    PEN_DATASET_MISSING_MEAN, // of the column
    PEN_DATASET_MISSING_VALUE,
} pen_dataset_missing;

// Which examples a dataset takes when `holdout` splits its files in two.
typedef enum pen_dataset_part {
    PEN_DATASET_PART_TRAIN, // those not held out
    PEN_DATASET_PART_EVAL,  // those held out
} pen_dataset_part;

// An array in memory. It outlives the dataset.
typedef struct pen_dataset_array {
    const char *name;
    pen_npy_element element;
    uint32_t rank;
    int64_t shape[PEN_RANK_LIMIT]; // the first dimension counts examples
    const void *data;              // in C order, as the machine has numbers
} pen_dataset_array;

// One file of inputs. Several that follow one another under one name are parts of one array.
typedef struct pen_dataset_input {
    const char *name;            // of the graph's input
    const char *path;            // or a pattern of several; arrays: the array's name
    pen_dataset_element element; // what the graph's input takes
} pen_dataset_input;

// What a loss takes of the labels, so that the divisor of its mean is known before a step.
typedef struct pen_dataset_target {
    const char *labels;   // their name; NULL: the only ones
    bool has_classes;     // the labels are class indices; else nothing below counts
    bool ignores;         //
    int64_t ignore_index; // of targets that do not count
    const float *weights; // [weight_count] of the classes, copied; NULL: all 1
    uint32_t weight_count;
} pen_dataset_target;

// Where the examples are and how they are read. All zero but `format` and the files is a good
// choice: each zero means the default stated beside it. Paths are used as they are.
typedef struct pen_dataset_options {
    const char *format; // "idx", "npy", …; pen_dataset_format_name lists them

    // The files. `inputs` are those of npy. The others have one unnamed input:
    const char *path;   // idx: the file of images; images: the folder of folders; else the file
    const char *labels; // idx and npy: the file of labels; NULL: no labels, or those below
    const pen_dataset_input *label_files; // [label_file_count], npy and arrays: with names
    uint32_t label_file_count;
    const char *input_name;          // all but npy: name of the graph's input; NULL: ""
    const pen_dataset_input *inputs; // [input_count], npy and arrays
    uint32_t input_count;
    const pen_dataset_input *weight_files; // [weight_file_count] of weights of the examples, NPY
                                           // files, or arrays; none: all 1, or the column below
    uint32_t weight_file_count;
    const char *weight_column; // csv, sql: of weights of the rows, in csv as label_column;
                               // webdataset: what the part is called, or "json:KEY"; NULL: 1
    const char *weight_table;  // images: a table of their names and weights, csv/csv_weights.h;
                               // NULL: all 1
    const pen_dataset_array *arrays; // [array_count], arrays: those that paths are names of
    uint32_t array_count;
    pen_dataset_element label_element; // AUTO; FLOAT32 for regression on whole numbers

    // Normalisation of float32 inputs: (value * scale - mean) / deviation, rounded to float32 after
    // each of the three. The channel is the first dimension of the unflattened example (idx images
    // have one); for csv it is the column.
    double scale;            // 0: 1/255 for uint8 in idx and for images, else 1
    const double *mean;      // [mean_count]; none, one for all channels, or one a channel
    const double *deviation; // [deviation_count], likewise; none of them 0
    uint32_t mean_count;
    uint32_t deviation_count;
    // Gives an error about `mean`, else `deviation`, the position at which it was written; or NULL.
    pen_status (*blame_normalization)(const void *context, bool is_mean, pen_status status);
    const void *blame_context;
    bool flatten; // inputs have one dimension
    // Changes of pictures that are trained on.
    const pen_augment_step *augment; // [augment_count], in their order
    uint32_t augment_count;
    pen_mix_rule mix; // of batches that are trained on; labels are probabilities in any batch

    // images, and formats that have some
    int64_t image_height;   // 0: 224; the picture is resized, its aspect is not kept
    int64_t image_width;    // 0: as image_height
    int64_t image_channels; // 1 (gray) or 3 (red, green, blue); 0: 3
    bool channels_last;     // shape (height, width, channels), not (channels, height, width)
    bool skips_broken;      // images: all are decoded at first, and those that cannot be left out
    const uint64_t *broken; // [broken_count] known to be so, ascending places in the list of files
    uint32_t broken_count;
    bool broken_is_known; // none is looked for
    uint32_t threads;     // that decode pictures, see decode_team.h; 0: as many as there are cores

    // csv
    const char *label_column; // a name of the header, or an index from 0, or from the end: "-1" is
                              // the last. NULL: no labels
    pen_dataset_header header;
    char delimiter;                    // 0: ','
    const char *words_path;            // the table that says which words there are, and means;
                                       // NULL: `path`
    const char *words_label_column;    // of that table, as label_column, where this one has no
                                       // labels; NULL: it has the same columns. Not sent to
                                       // workers, which read what is trained on
    pen_dataset_categories categories; // of columns of words
    bool unknown_is_own;               // words that are not there are a category more
    pen_dataset_missing missing;       //
    double missing_value;

    // text, tokens
    uint64_t sequence; // tokens of an example, at least 1
    uint64_t stride;   // tokens from where one begins to where the next does; 0: `sequence`
    pen_token_element token_element; // tokens
    const pen_token_mask *mask;      // tokens: to be found, not the next one; NULL: the next one

    // sql; `inputs` and labels are columns, several of one name one behind the other
    const char *connection;    // may have a password
    const char *query;         //
    const char *partition;     // column that rows are ordered by; NULL: none
    const char *cache;         // folder of what was read; webdataset: of the index
    bool cache_only;           // what is not there is not read
    bool refresh;              // what was read before this process began is read anew
    uint32_t byte_element;     // of numbers in bytes: a pen_npy_element and 1; 0: they are pictures
    const int64_t *byte_shape; // [byte_rank] of an example of such inputs
    uint32_t byte_rank;        // 0: one dimension

    // webdataset; `inputs` and `labels` are what the parts of an example are called
    const pen_dataset_input *shards; // [shard_count] tar files
    uint32_t shard_count;

    const pen_dataset_target *targets; // [target_count]; none: the first labels, unweighed
    uint32_t target_count;
    uint32_t class_count;   // class indices must be below it; 0: not checked, see limit_classes
    double holdout;         // fraction held out for evaluation, in [0, 1)
    pen_dataset_part part;  // which part this dataset is; all examples are TRAIN if holdout is 0
    uint64_t seed;          // of the choice of examples held out, and of changes of pictures
    uint64_t example_limit; // take no more than so many examples; 0: all
} pen_dataset_options;

#endif // PEN_SCHEDULER_DATA_DATASET_OPTIONS_H
