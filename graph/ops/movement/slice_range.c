#include "graph/ops/movement/slice_range.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/integer.h"

// A position as written, negative from the end, brought into [low, high].
static int64_t slice_clamp(int64_t position, int64_t dim, int64_t low, int64_t high) {
    if (position < 0) position += dim;
    return pen_max_i64(low, pen_min_i64(position, high));
}

// Starts and ends are clamped as NumPy does it, so any numbers are possible.
pen_status pen_slice_resolve(const pen_slice_spec *spec, const pen_shape *shape,
                             pen_slice_range *out_range) {
    pen_slice_range range = {.shape = *shape};
    bool named[PEN_RANK_LIMIT] = {false};
    for (uint32_t d = 0; d < shape->rank; d++) {
        range.step[d] = 1;
    }
    for (uint32_t i = 0; i < spec->count; i++) {
        uint32_t axis;
        PEN_TRY(
            pen_shape_axis(shape->rank, spec->axes != NULL ? spec->axes[i] : (int64_t)i, &axis));
        if (named[axis]) return pen_error(PEN_INVALID_INPUT, "axis %u is named twice", axis);
        named[axis] = true;
        int64_t step = spec->steps != NULL ? spec->steps[i] : 1;
        if (step == 0) return pen_error(PEN_INVALID_INPUT, "the step along axis %u is 0", axis);
        const int64_t dim = shape->dims[axis];
        // steps beyond the dimension take one element, so that nothing below can overflow
        step = pen_max_i64(-(dim + 1), pen_min_i64(step, dim + 1));
        const int64_t low = step > 0 ? 0 : -1;
        const int64_t high = step > 0 ? dim : dim - 1;
        const int64_t start = slice_clamp(spec->starts[i], dim, low, high);
        const int64_t end = slice_clamp(spec->ends[i], dim, low, high);
        const int64_t distance = step > 0 ? end - start : start - end;
        const int64_t stride = step > 0 ? step : -step;
        range.start[axis] = start;
        range.step[axis] = step;
        range.shape.dims[axis] = distance > 0 ? (distance - 1) / stride + 1 : 0;
    }
    *out_range = range;
    return PEN_OK;
}
