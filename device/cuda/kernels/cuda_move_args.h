// Arguments of the kernels of elements that change their places, as those in cuda_args.h. This
// header is a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_MOVE_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_MOVE_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// y[y_first + sum of position * y_strides] = the same of x, for each position in a box of `dims`.
struct cuda_move_args {
    uint32_t adds, bytes, rank; // bytes: of an element
    uint64_t count;             // of the box
    int64_t x_first, y_first;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
    uint64_t dims[PEN_CUDA_RANK];
    int64_t x_strides[PEN_CUDA_RANK], y_strides[PEN_CUDA_RANK];
};

// Parts of a whole [outer, dim, inner]: part p is [outer, starts[p + 1] - starts[p], inner], from
// starts[p] on. A launch has `count` of them.
#define PEN_CUDA_PARTS 32
struct cuda_parts_args {
    uint32_t adds, bytes, is_split, count;
    uint64_t outer, dim, inner;
    PEN_CUDA_PLACE(void) whole;
    PEN_CUDA_PLACE(void) parts[PEN_CUDA_PARTS];
    uint64_t starts[PEN_CUDA_PARTS + 1];
};

// y of `dims` is x of `x_dims` with a border, of which `before` comes before x: zeros or `value`,
// the outermost elements, all elements mirrored, or all elements again and again. Backward x is the
// gradient of what has the border.
enum {
    PEN_CUDA_BORDER_CONSTANT,
    PEN_CUDA_BORDER_EDGE,
    PEN_CUDA_BORDER_REFLECT,
    PEN_CUDA_BORDER_REPEAT,
};
struct cuda_border_args {
    uint32_t adds, mode, bytes, rank; // mode: one of the above
    uint64_t count, x_count;          // elements with the border, and without
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(const void) value;
    PEN_CUDA_PLACE(void) y;
    uint64_t dims[PEN_CUDA_RANK], x_dims[PEN_CUDA_RANK];
    int64_t before[PEN_CUDA_RANK];
};

// Of y[count] x_count elements become x, or x is added to them. They begin at `turn` times the
// stream of `place`, UINT64_MAX: nowhere. All else becomes zeros, unless something is added.
struct cuda_stack_args {
    uint32_t adds, bytes, is_float;
    uint64_t count, x_count, turn;
    PEN_CUDA_PLACE(const struct cuda_random) place;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
};

// Elements picked one by one along an axis of data, whose other positions are those of the indices:
// `strides` are the data's, `dims` the indices', `dim` the data's along the axis. y: what is
// picked, or the data in which `updates` replace what is picked, or are joined with it: `put`, of
// elements of `type`, as cuda_cast_args'. `error` is raised to count - k where index k is outside.
enum { PEN_CUDA_PUT, PEN_CUDA_PUT_ADD, PEN_CUDA_PUT_MUL, PEN_CUDA_PUT_MAX, PEN_CUDA_PUT_MIN };
struct cuda_elements_args {
    uint32_t adds, bytes, indices_are_wide, put, type, rank, axis;
    uint64_t count, dim;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(const void) indices;
    PEN_CUDA_PLACE(const void) updates;
    PEN_CUDA_PLACE(void) y;
    PEN_CUDA_PLACE(unsigned int) error;
    uint64_t dims[PEN_CUDA_RANK], strides[PEN_CUDA_RANK];
};

// Of matrices [rows, columns] what lies on one side of a diagonal.
struct cuda_triangle_args {
    uint32_t adds, bytes, is_upper;
    uint64_t count, rows, columns;
    int64_t diagonal;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
};

// Of x [outer, length, inner]; type: cuda_cast_args'.
struct cuda_running_sum_args {
    uint32_t adds, type, is_reverse, is_exclusive;
    uint64_t outer, length, inner;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_MOVE_ARGS_H
