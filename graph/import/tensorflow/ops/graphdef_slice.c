#include "graph/import/tensorflow/ops/graphdef_slice.h"
#include "graph/import/tensorflow/graphdef_mapping.h"

typedef struct slice_masks {
    int64_t begin, end, ellipsis, new_axis, shrink;
} slice_masks;

static bool slice_has(int64_t mask, uint32_t i) {
    return i < 63 && (mask >> i & 1) != 0;
}

// One of the dimensions that are sliced, at `axis` of the operand.
static pen_status slice_add(const slice_masks *masks, uint32_t i, int64_t axis,
                            const int64_t range[3], pen_graphdef_slice *slice) {
    const bool shrinks = slice_has(masks->shrink, i);
    const int64_t step = shrinks ? 1 : range[2];
    int64_t start = range[0], end = range[1];
    if (step == 0 || slice->count == PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it has a step of 0, or slices more than %d dimensions",
                         PEN_RANK_LIMIT);
    }
    if (shrinks) {
        end = start == -1 ? INT64_MAX : start + 1;
    } else {
        if (slice_has(masks->begin, i)) start = step > 0 ? 0 : INT64_MAX;
        if (slice_has(masks->end, i)) end = step > 0 ? INT64_MAX : INT64_MIN;
    }
    const bool is_all =
        !shrinks && step == 1 && slice_has(masks->begin, i) && slice_has(masks->end, i);
    if (is_all) return PEN_OK;
    slice->axes[slice->count] = axis;
    slice->starts[slice->count] = start;
    slice->ends[slice->count] = end;
    slice->steps[slice->count] = step;
    slice->count++;
    return PEN_OK;
}

// Bits of five masks say what each entry means: a range, a new axis, one index, or "all between".
pen_status pen_graphdef_slice_read(const pen_graphdef_node *node,
                                   const pen_graphdef_ints_known *begin,
                                   const pen_graphdef_ints_known *end,
                                   const pen_graphdef_ints_known *strides, uint32_t rank,
                                   pen_graphdef_slice *out_slice) {
    const slice_masks masks = {
        pen_graphdef_int(node, "begin_mask", 0), pen_graphdef_int(node, "end_mask", 0),
        pen_graphdef_int(node, "ellipsis_mask", 0), pen_graphdef_int(node, "new_axis_mask", 0),
        pen_graphdef_int(node, "shrink_axis_mask", 0)};
    const uint32_t count = begin->count;
    int64_t axis = 0, place = 0; // of the operand, of the result
    uint32_t taken = 0;          // dimensions of the operand that entries stand for
    *out_slice = (pen_graphdef_slice){0};
    if (end->count != count || strides->count != count || count > 2 * PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it has %u begins, %u ends and %u strides", count,
                         end->count, strides->count);
    }
    for (uint32_t i = 0; i < count; i++) {
        taken += slice_has(masks.new_axis, i) || slice_has(masks.ellipsis, i) ? 0 : 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        const int64_t range[3] = {begin->integers[i], end->integers[i], strides->integers[i]};
        if (slice_has(masks.ellipsis, i)) {
            if (rank == 0 || taken > rank) {
                return pen_error(PEN_UNSUPPORTED,
                                 "it has an ellipsis, and the rank of its operand is not known");
            }
            axis += rank - taken;
            place += rank - taken;
        } else if (slice_has(masks.new_axis, i)) {
            if (out_slice->added_count == PEN_RANK_LIMIT) break;
            out_slice->added[out_slice->added_count++] = place++;
        } else {
            PEN_TRY(slice_add(&masks, i, axis, range, out_slice));
            if (slice_has(masks.shrink, i)) {
                out_slice->squeezed[out_slice->squeezed_count++] = axis;
            } else {
                place++;
            }
            axis++;
        }
    }
    return PEN_OK;
}
