// IDX, the format of the MNIST files: two zero bytes, element type, rank, big-endian dimensions of
// four bytes, big-endian elements. Also compressed by gzip.
#ifndef PEN_SCHEDULER_DATA_IDX_DATASET_H
#define PEN_SCHEDULER_DATA_IDX_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/array_source.h"

// Reads a whole file that is in memory. `out_source` has the file's element, rank, shape and data,
// which is in `bytes`, or, if they are compressed, in *out_inflated (free with pen_memory_free;
// NULL otherwise and after an error). `path` is for messages and is kept.
//   CORRUPT      not IDX, cut short, bytes left over
//   UNSUPPORTED  an unknown element type, or more than PEN_RANK_LIMIT dimensions
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_idx_read(const uint8_t *bytes, size_t size, const char *path,
                                      pen_array_source *out_source, void **out_inflated);

#endif // PEN_SCHEDULER_DATA_IDX_DATASET_H
