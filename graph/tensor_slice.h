// A slice of a tensor: out of every `stride` elements, `run` of them from `start` on. Of a matrix,
// some rows are one run, and some columns a run in each row. A slice of a range of whole runs of
// the tensor is one range of the slice: so whoever reads a tensor from front to end reads each of
// its slices from front to end.
//
// Threads: any; nothing here is shared.
#ifndef PEN_GRAPH_TENSOR_SLICE_H
#define PEN_GRAPH_TENSOR_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/tensor_type.h"

typedef struct pen_tensor_slice {
    const char *whole; // name of the tensor that it is a slice of
    pen_shape shape;   // of that
    // in elements
    uint64_t start;
    uint64_t run;
    uint64_t stride; // divides the elements of the tensor
} pen_tensor_slice;

// The indices from `first` on, `count` of them, of each of `blocks` equal parts of dimension
// `axis`: a single block is the dimension itself.
pen_tensor_slice pen_tensor_slice_of(const char *whole, const pen_shape *shape, uint32_t axis,
                                     int64_t blocks, int64_t first, int64_t count);

// A copy in the arena, with its text. NULL stays NULL. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_tensor_slice_copy(const pen_tensor_slice *slice, pen_arena *arena,
                                               const pen_tensor_slice **out_copy);

// Elements of the slice.
uint64_t pen_tensor_slice_count(const pen_tensor_slice *slice);
// Whether its elements follow each other in the tensor.
bool pen_tensor_slice_is_range(const pen_tensor_slice *slice);
// Elements of the slice that lie before element `at` of the tensor.
uint64_t pen_tensor_slice_before(const pen_tensor_slice *slice, uint64_t at);
// The element of the tensor that element `at` of the slice is.
uint64_t pen_tensor_slice_place(const pen_tensor_slice *slice, uint64_t at);

// `count` elements of a tensor, of `size` bytes each, from element `first` on.
typedef struct pen_tensor_range {
    uint64_t first;
    uint64_t count;
    size_t size;
} pen_tensor_range;

// Copies what the slice has of a range: `whole` has the range, and `part` the slice's elements from
// pen_tensor_slice_before(first) on.
void pen_tensor_slice_gather(const pen_tensor_slice *slice, const pen_tensor_range *range,
                             const void *whole, void *out_part);
void pen_tensor_slice_scatter(const pen_tensor_slice *slice, const pen_tensor_range *range,
                              const void *part, void *out_whole);

#endif // PEN_GRAPH_TENSOR_SLICE_H
