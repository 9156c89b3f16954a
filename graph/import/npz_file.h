// NumPy's NPZ archives: arrays by name, each a .npy file in a zip archive.
//
// Opening one reads the headers of its arrays alone. An array is unpacked when it is asked for, so
// that an archive takes no more memory than what is wanted of it, whatever else is in it. Where all
// members are stored as they are, which is how numpy.savez writes them, arrays are borrowed from
// the archive's bytes and take none.
//
// Lifetime: an archive borrows its bytes until it is closed. What is read lives in the arena given,
//           or as long as the archive's bytes.
// Threads:  functions share nothing; an archive belongs to one thread at a time.
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
    uint32_t entry; // its place in an archive that is all stored
} pen_npz_array;

typedef struct pen_npz {
    const char *name;
    uint32_t count;
    const pen_npz_array *arrays;         // [count], as in the archive
    struct pen_zip *zip;                 // NULL: all are stored
    const struct pen_stored_zip *stored; // NULL: some are packed
} pen_npz;

// Lists the arrays. `name` stands for the file in messages, and is borrowed. Members that are no
// .npy files are passed over.
//   CORRUPT        it is no archive, or damaged, or an array is
//   UNSUPPORTED    an array in Fortran order, or of elements that Penstock does not have
//   INVALID_INPUT  too many members
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_npz_open(const char *name, const void *bytes, size_t length,
                                      pen_arena *arena, pen_npz *out_npz);
// Accepts one that is all zero.
void pen_npz_close(pen_npz *npz);

// The contents of an array: the bytes of its type, at any alignment. CORRUPT, OUT_OF_MEMORY,
// CANCELLED: the user wants the command to stop
PEN_NODISCARD pen_status pen_npz_read(const pen_npz *npz, uint32_t index, pen_arena *arena,
                                      const void **out_data);

#endif // PEN_GRAPH_IMPORT_NPZ_FILE_H
