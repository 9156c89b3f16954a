// A libcublas.so.12 for machines without a GPU, over the fake driver, and stricter than the library
// must be: it refuses what the library would do otherwise than the device wants it.
//
// - Matrices lie by columns. A leading dimension that is less than a column, or an operand that is
//   not whole in one allocation, is CUBLAS_STATUS_INVALID_VALUE.
// - A product needs a stream and, set after it, a workspace of the device's own memory, which is
//   written at both ends when the product runs. The library would take memory by itself.
// - A product runs when its stream comes to it, and is captured as a launch is.
// - Operands are rounded by the type of compute, at most as far as the library may: to tf32,
//   bfloat16 or float16. Sums are of doubles, rounded once.
// - Its handles count among what nobody released (fake_driver.h).
//
// FAKE_CUDA has `blas_fails=15`: products have that status. `blas_begins=3`: handles have it,
// with `begins_gpu=1` those of this GPU alone.
// `count=1` tells at the end, on stderr, how many products the host asked for and how many ran.
//
// Its version is 12.4.5. A copy whose name ends in `.so.13` is 13.4.5, and has no kernels for GPUs
// of a compute capability below 7.5: a handle is CUBLAS_STATUS_ARCH_MISMATCH.
//
// With FAKE_OLD it is built without cublasSetWorkspace_v2, as an old library.
#ifndef PEN_TESTS_CUDA_FAKE_CUBLAS_H
#define PEN_TESTS_CUDA_FAKE_CUBLAS_H

#include <stdint.h>

typedef struct fake_cublas_counts {
    uint64_t calls;   // by the host
    uint64_t batched; // of them, of several products
    uint64_t runs;    // calls that have run, also those of graphs
} fake_cublas_counts;

// Mistakes that the device might make in how it asks, planted here: tests must find them.
typedef enum fake_cublas_mistake {
    FAKE_CUBLAS_RIGHT,
    FAKE_CUBLAS_SWAPPED_TRANSPOSES,
    FAKE_CUBLAS_WRONG_LEADING, // the first operand has that of the second
    FAKE_CUBLAS_WRONG_STRIDES, // all of a batch are the first
    FAKE_CUBLAS_LOST_SUMS,     // what y holds, where a product adds
    FAKE_CUBLAS_NOT_ROUNDED,
} fake_cublas_mistake;

typedef void (*fake_cublas_counts_fn)(fake_cublas_counts *out_counts);
typedef void (*fake_cublas_plant_fn)(fake_cublas_mistake planted);

#endif // PEN_TESTS_CUDA_FAKE_CUBLAS_H
