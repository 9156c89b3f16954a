// Checks operators on the emulated GPU: that they have a kernel there, and what it computes.
#ifndef PEN_TESTS_SUPPORT_CUDA_CHECK_H
#define PEN_TESTS_SUPPORT_CUDA_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/precision.h"
#include "tests/support/op_check.h"

// A driver is found: the fake one, or with `$PEN_TEST_GPU` set any. With a real one, orders of
// threads are the GPU's.
void cuda_check_driver(void);

// Whether these runs are with NVIDIA's own libraries, on a real GPU with `$PEN_TEST_LIBRARIES`: a
// mode of theirs may round less than its precision, and sums may have any order. Fails where the
// device uses none of them.
bool cuda_has_real_libraries(void);

// The case runs on a kernel of the GPU, or on the host.
void cuda_check_place(const op_case *c, bool on_gpu);

// It runs on a kernel of the GPU, whose threads run in the order that the seed says, and has the
// reference's results within the tolerance (tests/support/device_check.h).
void cuda_check(const op_case *c, uint64_t seed, double tolerance);

// With `wrong` as the contents of input 1 an error with `text` is told when work is awaited, and
// told once; with `right` there is none. Either has `bytes`, at most 512, as input 0 and all
// outputs do.
void cuda_check_refuses(const op_case *c, const void *wrong, const void *right, size_t bytes,
                        const char *text);
// The same of an input of any number, and operands that may be left out.
void cuda_check_refuses_at(const op_case *c, uint32_t input, const void *wrong, const void *right,
                           size_t bytes, const char *text);

// Runs the node of a case without constants on a kernel of the GPU whose products have operands of
// the precision, on what `run` has of its operands; its results are left there, too.
void cuda_run(const op_built *built, pen_precision precision, uint64_t seed, run_graph *run);
// The same under other settings of the fake driver.
void cuda_run_with(const op_built *built, pen_precision precision, uint64_t seed,
                   const char *settings, run_graph *run);

#endif // PEN_TESTS_SUPPORT_CUDA_CHECK_H
