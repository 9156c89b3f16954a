// Looking at numbers in memory: how large they are, whether all are finite, and which bits they
// have.
//
// Threads: any.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_FINITE_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_FINITE_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/tensor_type.h"

// The largest magnitude; infinite when one is infinite or not a number. Element types without
// such, and no bytes: 0. `bytes` is a multiple of the element's.
double pen_finite_magnitude(const void *memory, uint64_t bytes, pen_element_type element);

// What is in a tensor, for people.
typedef struct pen_finite_summary {
    uint64_t count;     // elements
    uint64_t nan_count; // not a number
    uint64_t infinite_count;
    double minimum; // of the finite ones; both 0 when there are none
    double maximum;
} pen_finite_summary;
pen_finite_summary pen_finite_summarize(const void *memory, uint64_t bytes,
                                        pen_element_type element);

// Of bytes: other bits give, but for one in 2^64, another hash.
uint64_t pen_finite_hash(const void *memory, uint64_t bytes);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_FINITE_H
