#include "tests/support/random_case.h"

#include "base/random.h"

int64_t random_between(random_case *random, int64_t first, int64_t last) {
    const pen_random_key key = {random->seed, pen_random_stream("random_case", 0, 0)};
    return first + (int64_t)pen_random_below(key, random->index++, (uint64_t)(last - first + 1));
}

bool random_chance(random_case *random, int percent) {
    return random_between(random, 0, 99) < percent;
}

pen_tensor_type random_type(random_case *random, int64_t rank_first, int64_t rank_last,
                            int64_t dim_last, int64_t count_last) {
    pen_tensor_type type = {PEN_FLOAT32, {0}};
    int64_t left = count_last;
    type.shape.rank = (uint32_t)random_between(random, rank_first, rank_last);
    for (uint32_t d = 0; d < type.shape.rank; d++) {
        const int64_t limit = left < dim_last ? left : dim_last;
        type.shape.dims[d] = random_between(random, 1, limit < 1 ? 1 : limit);
        left /= type.shape.dims[d];
    }
    return type;
}

pen_tensor_type random_broadcast_of(random_case *random, const pen_tensor_type *type) {
    const uint32_t rank = (uint32_t)random_between(random, 0, type->shape.rank);
    pen_tensor_type result = {type->element, {.rank = rank}};
    const int keep_percent = random_chance(random, 50) ? 100 : 50;
    for (uint32_t d = 0; d < rank; d++) {
        const int64_t dim = type->shape.dims[type->shape.rank - rank + d];
        result.shape.dims[d] = random_chance(random, keep_percent) ? dim : 1;
    }
    return result;
}
