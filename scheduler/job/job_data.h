// The contract of job_data_table.c.
//
// The part of a job that says what is trained and evaluated on: `data`. See scheduler/job/job.h.
//
// Lifetime: lives in the arena that the job was read into.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_JOB_JOB_DATA_H
#define PEN_SCHEDULER_JOB_JOB_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option/option.h"
#include "scheduler/data/dataset.h"

typedef enum pen_job_format {
    PEN_JOB_IDX,
    PEN_JOB_NPY,
    PEN_JOB_CSV,
    PEN_JOB_IMAGES,
    PEN_JOB_TEXT,
    PEN_JOB_TOKENS,
    PEN_JOB_SQL,
    PEN_JOB_WEBDATASET,
    PEN_JOB_ARRAYS, // of the program that opens the job
} pen_job_format;

typedef enum pen_job_label_type {
    PEN_JOB_LABEL_AUTO,  // what the file has
    PEN_JOB_LABEL_INDEX, // class indices
    PEN_JOB_LABEL_NUMBER,
} pen_job_label_type;

typedef struct pen_job_idx {
    const char *images;
    const char *labels;      // NULL: none
    pen_option_list weights; // of const char *, NPY files; none: all 1
    const char *input;       // NULL: the model's only input
} pen_job_idx;

// One entry of `inputs` or `labels`: {NAME: FILES}, or {NAME: ARRAY}.
typedef struct pen_job_array {
    const char *name;      // of the graph's input, or that losses give labels
    pen_option_list files; // of const char *
} pen_job_array;

typedef struct pen_job_npy {
    pen_option_list inputs;      // of pen_job_array
    const char *labels;          // NULL: none, or
    pen_option_list label_files; // of pen_job_array
    pen_option_list weights;     // of const char *; none: all 1
} pen_job_npy;

typedef struct pen_job_csv {
    const char *file;
    const char *label_column;  // a name, or an index from 0 or (negative) from the end; NULL: none
    const char *weight_column; // likewise
    bool header_is_given;      // else found out
    bool header;
    const char *delimiter; // one character
    pen_dataset_categories categories;
    unsigned unknown;    // 1: words that the training has not are a category more
    const char *missing; // "error", "mean", or a number
    const char *input;   // NULL: the model's only input
} pen_job_csv;

typedef struct pen_job_images {
    const char *folder;
    pen_option_list size; // of int64_t: side, or height and width
    int64_t channels;     // 1 or 3
    unsigned data_format; // 1: channels last
    unsigned on_error;    // 1: broken pictures are left out
    const char *weights;  // a table of names and weights; NULL: all 1
    const char *input;    // NULL: the model's only input
} pen_job_images;

typedef struct pen_job_text {
    const char *file;
    int64_t sequence;
    int64_t stride;    // 0: as sequence
    const char *input; // NULL: the model's only input
} pen_job_text;

// Tokens to be found by those around them: scheduler/data/token_mask.h.
typedef struct pen_job_mask {
    pen_token_mask rule;
    pen_option_list keep; // of int64_t
} pen_job_mask;

typedef struct pen_job_tokens {
    const char *file;
    pen_token_element element;
    int64_t sequence;
    int64_t stride;    // 0: as sequence
    const char *input; // NULL: the model's only input
    pen_job_mask mask;
    bool has_mask;
} pen_job_tokens;

typedef struct pen_job_sql {
    const char *connection;
    const char *query;
    pen_job_npy columns;   // names of columns in place of files
    const char *weights;   // a column; NULL: all 1
    const char *partition; // NULL: none
    const char *cache;     // NULL: beside what the training writes
    bool refresh;
    unsigned element;      // 0: bytes are pictures; else 1 and a pen_npy_element
    pen_option_list shape; // of int64_t; empty: one dimension
    pen_option_list size;  // of int64_t: side, or height and width
    int64_t channels;      // 1 or 3
    unsigned data_format;  // 1: channels last
} pen_job_sql;

typedef struct pen_job_webdataset {
    pen_option_list shards; // of const char *, paths
    pen_job_npy parts;      // what they are called, in place of files; labels have no names
    const char *weights;    // the part, or json:KEY; NULL: all 1
    const char *cache;      // NULL: beside what the training writes
    pen_option_list size;   // of int64_t: side, or height and width
    int64_t channels;       // 1 or 3
    unsigned data_format;   // 1: channels last
} pen_job_webdataset;

typedef struct pen_job_dataset {
    pen_job_format format; // says which of those below is meant
    pen_job_idx idx;
    pen_job_npy npy;
    pen_job_csv csv;
    pen_job_images images;
    pen_job_text text;
    pen_job_tokens tokens;
    pen_job_sql sql;
    pen_job_webdataset webdataset;
    pen_job_npy arrays; // names in place of files
    int64_t limit;      // most examples used; 0: all
    pen_job_label_type label_type;
} pen_job_dataset;

// (value * scale - mean) / std
typedef struct pen_job_normalize {
    double scale;         // 0: 1/255 for bytes, else 1
    pen_option_list mean; // of double: none, one, or one a channel
    pen_option_list std;
} pen_job_normalize;

// An item of `augment`. Each kind fills the same struct; `step.kind` says which did.
typedef struct pen_job_augment {
    pen_augment_step step;
    pen_option_list scale; // of double: least and most; empty: as it is usual
    pen_option_list ratio;
} pen_job_augment;

// `mix`: an alpha of 0 was not given.
typedef struct pen_job_mix {
    double mixup;
    double cutmix;
    double probability;
    int64_t classes; // 0: as the data knows, or labels are numbers
} pen_job_mix;

// Who reads what is trained on.
typedef enum pen_job_read_on {
    PEN_JOB_READ_ON_AUTO, // workers, where this process starts all of them
    PEN_JOB_READ_ON_WORKERS,
    PEN_JOB_READ_ON_COORDINATOR,
} pen_job_read_on;

typedef struct pen_job_data {
    pen_job_dataset train;
    pen_job_dataset eval;
    bool has_train;
    bool has_eval;
    pen_job_normalize normalize;
    bool flatten;
    pen_option_list augment; // of pen_job_augment
    pen_job_mix mix;
    bool has_mix;
    pen_job_read_on read_on;
    int64_t threads;  // that decode pictures at once; 0: as many as there are cores
    unsigned balance; // 1: each class is trained on as often as any other
    double holdout;   // fraction of `train` kept for evaluation when there is no `eval`
} pen_job_data;

// Whether there are data to evaluate on: some of their own, or what is held out of those to train
// on.
bool pen_job_data_can_evaluate(const pen_job_data *data);

// Whether its examples have weights of their own in the loss.
bool pen_job_dataset_is_weighted(const pen_job_dataset *dataset);
// Whether those of either of the job's datasets have.
bool pen_job_data_is_weighted(const pen_job_data *data);

#endif // PEN_SCHEDULER_JOB_JOB_DATA_H
