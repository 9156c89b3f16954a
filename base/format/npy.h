// NumPy's array files: the header of versions 1 to 3, read from memory and written to a FILE.
//
//   "\x93NUMPY" major minor length "{'descr': '<f4', 'fortran_order': False, 'shape': (60, 28), }"
//
// `length` has two bytes in version 1, four in 2 and 3, little-endian; then come spaces, a newline,
// and the elements in C order.
//
// Threads: functions share nothing.
#ifndef PEN_BASE_FORMAT_NPY_H
#define PEN_BASE_FORMAT_NPY_H

#include <stdint.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/status.h"

// Element types that arrays have here; little-endian.
typedef enum pen_npy_element {
    PEN_NPY_BOOL,
    PEN_NPY_UINT8,
    PEN_NPY_INT8,
    PEN_NPY_UINT16,
    PEN_NPY_INT16,
    PEN_NPY_UINT32,
    PEN_NPY_INT32,
    PEN_NPY_INT64,
    PEN_NPY_FLOAT32,
    PEN_NPY_FLOAT64,
    PEN_NPY_FLOAT16,
    PEN_NPY_BFLOAT16, // as ml_dtypes has NumPy write it: two bytes without a meaning
} pen_npy_element;

typedef struct pen_npy_header {
    pen_npy_element element;
    uint32_t rank;
    int64_t shape[PEN_RANK_LIMIT];
    uint64_t element_count; // product of shape
    uint64_t data_offset;   // bytes from the start of the file to the elements
    uint64_t data_bytes;    // element_count elements
} pen_npy_header;

// Bytes of one element.
uint64_t pen_npy_element_bytes(pen_npy_element element);

// "float32"
const char *pen_npy_element_name(pen_npy_element element);

// Reads the header of a file whose `size` bytes are in memory, and checks that exactly the elements
// it announces follow. Messages name `path`.
//   CORRUPT      not an .npy file, cut short, or the header contradicts itself
//   UNSUPPORTED  Fortran order; big-endian, object, structured and other element types; a version
//                above 3; more than PEN_RANK_LIMIT dimensions
PEN_NODISCARD pen_status pen_npy_read_header(const void *bytes, size_t size, const char *path,
                                             pen_npy_header *out_header);

// How many bytes the header has, as the first 12 bytes of a file say, so that it can be read
// without what follows; 0 where they are not those of an .npy file.
size_t pen_npy_header_bytes(const void *bytes, size_t size);

// Writes a version 1 header, a multiple of 64 bytes long. The caller writes the elements after it.
// Dimensions are not negative. IO.
PEN_NODISCARD pen_status pen_npy_write_header(FILE *file, pen_npy_element element, uint32_t rank,
                                              const int64_t *shape);

// Writes a whole array. IO.
PEN_NODISCARD pen_status pen_npy_write(FILE *file, pen_npy_element element, uint32_t rank,
                                       const int64_t *shape, const void *data);

#endif // PEN_BASE_FORMAT_NPY_H
