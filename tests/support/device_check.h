// Compares devices with the reference kernels, one operator at a time.
#ifndef PEN_TESTS_SUPPORT_DEVICE_CHECK_H
#define PEN_TESTS_SUPPORT_DEVICE_CHECK_H

#include "device/device.h"
#include "tests/support/op_check.h"

// Runs the case on the reference kernels and on every other device of the list that is here, with
// teams of 1, 2 and, by the seed, 3 to 16 threads, and compares all outputs: each element must be
// within
//     tolerance * (1 + |expected|),
// integers and booleans equal, and the bits those of one thread. Where the op allows it, output 0
// also takes the storage of an input. With floating outputs it is run once more as a node that
// accumulates, over old contents.
void op_check_device(const op_case *c, uint64_t seed, double tolerance);

// A line for `$PEN_TEST_RECORD`, if that names a file: which bits an output had. With it, runs on
// two drivers of a GPU are compared (tests/cuda/check_gpu.sh).
void op_check_record(const char *op, uint64_t seed, uint32_t mode, uint32_t output, uint64_t bits);

// Whether this machine has a device of the kind: a GPU, say, or what tests have in its place.
bool op_check_is_here(const pen_device_kind *kind);

// The kernel level of these runs: $PEN_TEST_LEVEL, or the best of this machine.
pen_kernel_level op_check_level(void);
// Libraries of these runs: $PEN_TEST_LIBRARIES, or none.
pen_libraries op_check_libraries(void);

#endif // PEN_TESTS_SUPPORT_DEVICE_CHECK_H
