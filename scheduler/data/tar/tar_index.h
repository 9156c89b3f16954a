// Examples in tar files, as WebDataset has them: members of one name up to the first point behind
// the last '/' are of one example, and follow one another. What is behind that point says what each
// is.
//
//   a/0001.jpg a/0001.cls a/0002.jpg a/0002.cls     two examples, with the parts jpg and cls
//
// A row of the index: [0] the shard, [1] the class, [2 + 2 f] where the bytes of input f begin,
// [3 + 2 f] how many there are; behind them, where examples have weights, that, as the bits of a
// float32.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_DATA_TAR_TAR_INDEX_H
#define PEN_SCHEDULER_DATA_TAR_TAR_INDEX_H

#include <stdbool.h>

#include "base/system/file.h"
#include "scheduler/data/dataset.h"

typedef struct pen_tar_parts {
    const pen_dataset_input *inputs; // [input_count] path is what the part is called: "jpg"; those
    uint32_t input_count;            // of one name one behind the other: any of them
    const char *label;               // what the part with the class is called; NULL: none
    const char *weight; // what the part is called that says a weight: "weight", or "json:KEY",
                        // which is a number of the object in the part "json"; NULL: none
} pen_tar_parts;

// How many fields a row has for inputs: names that differ.
uint32_t pen_tar_parts_fields(const pen_tar_parts *parts);

// Numbers of a row.
uint32_t pen_tar_parts_row_length(const pen_tar_parts *parts);
// The weight in a row of parts that have one.
float pen_tar_row_weight(const pen_tar_parts *parts, const int64_t *row);

// Takes rows [pen_tar_parts_row_length] of an index.
typedef pen_status (*pen_tar_take)(void *context, const int64_t *row);

// Gives all examples of a shard in memory, with number `shard`.
//   INVALID_INPUT  an example lacks a part, or has it twice; a class or weight is no number; names
//                  the member
//   CORRUPT, UNSUPPORTED, NOT_FOUND  as pen_tar_walk
PEN_NODISCARD pen_status pen_tar_index_read(const pen_tar_parts *parts, const pen_mapping *file,
                                            const char *path, uint32_t shard, pen_tar_take take,
                                            void *context);

#endif // PEN_SCHEDULER_DATA_TAR_TAR_INDEX_H
