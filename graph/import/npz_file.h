// NumPy's NPZ archives: arrays by name, each a .npy file in a zip archive.
//
// Lifetime: what is read lives in the arena given.
// Threads:  functions share nothing.
#ifndef PEN_GRAPH_IMPORT_NPZ_FILE_H
#define PEN_GRAPH_IMPORT_NPZ_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/tensor_type.h"

typedef struct pen_npz_array {
    const char *name; // without ".npy"
    pen_tensor_type type;
    const void *data; // the bytes of `type`, at any alignment
} pen_npz_array;

typedef struct pen_npz {
    uint32_t count;
    const pen_npz_array *arrays; // [count], as in the archive
} pen_npz;

// Reads all arrays. `name` stands for the file in messages. Members that are no .npy files are
// passed over.
//   CORRUPT        it is no archive, or damaged, or an array is
//   UNSUPPORTED    an array in Fortran order, or of elements that Penstock does not have
//   INVALID_INPUT  too many members
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_npz_read(const char *name, const void *bytes, size_t length,
                                      pen_arena *arena, pen_npz *out_npz);

#endif // PEN_GRAPH_IMPORT_NPZ_FILE_H
