// Small random decisions for tests of many cases, all from one seed.
#ifndef PEN_TESTS_SUPPORT_RANDOM_CASE_H
#define PEN_TESTS_SUPPORT_RANDOM_CASE_H

#include <stdint.h>

#include "graph/tensor_type.h"

typedef struct random_case {
    uint64_t seed;
    uint64_t index;
} random_case;

// Uniform in [first, last].
int64_t random_between(random_case *random, int64_t first, int64_t last);
bool random_chance(random_case *random, int percent);

// A float32 type of rank [rank_first, rank_last] with dimensions in [1, dim_last], at most
// `count_last` elements.
pen_tensor_type random_type(random_case *random, int64_t rank_first, int64_t rank_last,
                            int64_t dim_last, int64_t count_last);

// `type` with leading dimensions dropped and others set to 1, as broadcasting allows.
pen_tensor_type random_broadcast_of(random_case *random, const pen_tensor_type *type);

#endif // PEN_TESTS_SUPPORT_RANDOM_CASE_H
