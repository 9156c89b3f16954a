// What the driver of a GPU that there is not counts, and how it is made to fail. For tests that
// load it (tests/cuda/fake_driver.h).
#ifndef PEN_TESTS_SUPPORT_FAKE_CUDA_H
#define PEN_TESTS_SUPPORT_FAKE_CUDA_H

#include <stdbool.h>

#include "tests/cuda/fake_driver.h"

// Whether this process finds the fake driver, and no real one.
bool fake_cuda_is_here(void);
fake_counts fake_cuda_count(void);
// So many seconds pass on the clocks of GPUs, at once: the host's clock does not move.
void fake_cuda_pass(double seconds);
// The next kernel of this name fails as one that reads where nothing is.
void fake_cuda_break(const char *kernel);

#endif // PEN_TESTS_SUPPORT_FAKE_CUDA_H
