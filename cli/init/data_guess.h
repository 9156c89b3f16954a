// What the files are that somebody names after a model: by their names, and whether they are
// folders. Nothing is read of them.
//
//   a folder                    images: a folder of pictures for each class
//   *.npy                       npy: arrays, one for each input of the model, then the labels
//   *.csv, *.tsv                csv: a table
//   *ubyte, *.idx, also .gz     idx: images, then labels
//   *.txt                       text: for a model of sequences
//
// An array may have a name: x=inputs.npy is for the model's input x, labels=y.npy are the labels.
//
// Threads: functions share nothing.
#ifndef PEN_CLI_INIT_DATA_GUESS_H
#define PEN_CLI_INIT_DATA_GUESS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define PEN_DATA_GUESS_INPUT_LIMIT 16

typedef enum pen_data_guess_kind {
    PEN_DATA_GUESS_NONE, // no files were named
    PEN_DATA_GUESS_IMAGES,
    PEN_DATA_GUESS_NPY,
    PEN_DATA_GUESS_CSV,
    PEN_DATA_GUESS_IDX,
    PEN_DATA_GUESS_TEXT,
} pen_data_guess_kind;

typedef struct pen_data_guess {
    pen_data_guess_kind kind;
    const char *files[PEN_DATA_GUESS_INPUT_LIMIT]; // [file_count]: of NPY by input, else the one
    const char *names[PEN_DATA_GUESS_INPUT_LIMIT]; // [file_count] of NPY: the model's input
    uint32_t file_count;
    const char *labels; // NULL: none, or they are with the rest
} pen_data_guess;

// `operands` [count], for a model whose inputs are `inputs` [input_count].
//   INVALID_INPUT  a file is of no kind that is known, they are of several, or too many or few
PEN_NODISCARD pen_status pen_data_guess_read(const char *const *operands, uint32_t count,
                                             const char *const *inputs, uint32_t input_count,
                                             pen_arena *arena, pen_data_guess *out_guess);

#endif // PEN_CLI_INIT_DATA_GUESS_H
