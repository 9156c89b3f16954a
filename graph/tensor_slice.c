#include "graph/tensor_slice.h"

#include <string.h>

#include "base/integer.h"

pen_tensor_slice pen_tensor_slice_of(const char *whole, const pen_shape *shape, uint32_t axis,
                                     int64_t blocks, int64_t first, int64_t count) {
    const uint64_t inner = (uint64_t)pen_shape_count(shape, axis + 1, shape->rank);
    return (pen_tensor_slice){.whole = whole,
                              .shape = *shape,
                              .start = (uint64_t)first * inner,
                              .run = (uint64_t)count * inner,
                              .stride = (uint64_t)(shape->dims[axis] / blocks) * inner};
}

pen_status pen_tensor_slice_copy(const pen_tensor_slice *slice, pen_arena *arena,
                                 const pen_tensor_slice **out_copy) {
    pen_tensor_slice *copy;
    *out_copy = NULL;
    if (slice == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &copy));
    *copy = *slice;
    PEN_TRY(pen_arena_copy_text(arena, slice->whole, strlen(slice->whole), &copy->whole));
    *out_copy = copy;
    return PEN_OK;
}

uint64_t pen_tensor_slice_count(const pen_tensor_slice *slice) {
    const uint64_t all = (uint64_t)pen_shape_element_count(&slice->shape);
    return slice->stride == 0 ? 0 : all / slice->stride * slice->run;
}

bool pen_tensor_slice_is_range(const pen_tensor_slice *slice) {
    return slice->stride == (uint64_t)pen_shape_element_count(&slice->shape) ||
           slice->run == slice->stride;
}

uint64_t pen_tensor_slice_before(const pen_tensor_slice *slice, uint64_t at) {
    if (slice->stride == 0) return 0;
    const uint64_t rest = at % slice->stride;
    const uint64_t within = rest <= slice->start ? 0 : pen_min_u64(rest - slice->start, slice->run);
    return at / slice->stride * slice->run + within;
}

uint64_t pen_tensor_slice_place(const pen_tensor_slice *slice, uint64_t at) {
    if (slice->run == 0) return slice->start;
    return at / slice->run * slice->stride + slice->start + at % slice->run;
}

// What of the slice lies in a range: its elements from `at` up to `end`.
typedef struct slice_walk {
    const pen_tensor_slice *slice;
    uint64_t at;
    uint64_t end;
} slice_walk;

static slice_walk slice_walk_of(const pen_tensor_slice *slice, const pen_tensor_range *range) {
    return (slice_walk){slice, pen_tensor_slice_before(slice, range->first),
                        pen_tensor_slice_before(slice, range->first + range->count)};
}

// The elements from `at` on that follow each other in the tensor, too.
static uint64_t slice_walk_step(const slice_walk *walk) {
    return pen_min_u64(walk->slice->run - walk->at % walk->slice->run, walk->end - walk->at);
}

void pen_tensor_slice_gather(const pen_tensor_slice *slice, const pen_tensor_range *range,
                             const void *whole, void *out_part) {
    slice_walk walk = slice_walk_of(slice, range);
    char *part = out_part;
    while (walk.at < walk.end) {
        const uint64_t count = slice_walk_step(&walk);
        const uint64_t place = pen_tensor_slice_place(slice, walk.at) - range->first;
        memcpy(part, (const char *)whole + place * range->size, count * range->size);
        part += count * range->size;
        walk.at += count;
    }
}

void pen_tensor_slice_scatter(const pen_tensor_slice *slice, const pen_tensor_range *range,
                              const void *part, void *out_whole) {
    slice_walk walk = slice_walk_of(slice, range);
    const char *from = part;
    while (walk.at < walk.end) {
        const uint64_t count = slice_walk_step(&walk);
        const uint64_t place = pen_tensor_slice_place(slice, walk.at) - range->first;
        memcpy((char *)out_whole + place * range->size, from, count * range->size);
        from += count * range->size;
        walk.at += count;
    }
}
