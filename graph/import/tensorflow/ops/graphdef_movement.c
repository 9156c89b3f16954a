// Operators of TensorFlow that put elements elsewhere.

#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/import/tensorflow/ops/graphdef_slice.h"

// ---- slices

static pen_status movement_slice(pen_graphdef_draft *draft, const char *suffix,
                                 pen_graphdef_value x, const pen_graphdef_slice *slice,
                                 pen_graphdef_value *out_value) {
    pen_graphdef_value operands[5] = {x};
    PEN_TRY(pen_graphdef_ints_value(draft, "starts", slice->count, slice->starts, &operands[1]));
    PEN_TRY(pen_graphdef_ints_value(draft, "ends", slice->count, slice->ends, &operands[2]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", slice->count, slice->axes, &operands[3]));
    PEN_TRY(pen_graphdef_ints_value(draft, "steps", slice->count, slice->steps, &operands[4]));
    return pen_graphdef_emit(draft, "slice", suffix, (pen_graphdef_inputs){operands, 5},
                             PEN_NO_ATTRIBUTES, out_value);
}

// Slice, then take out the dimensions that single indices pick, then put in the new ones.
static pen_status convert_strided_slice(pen_graphdef_draft *draft) {
    const pen_graphdef_ints_known *begin, *end, *strides;
    pen_graphdef_slice slice;
    uint32_t rank = 0;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &begin));
    PEN_TRY(pen_graphdef_operand_ints(draft, 2, &end));
    PEN_TRY(pen_graphdef_operand_ints(draft, 3, &strides));
    if (!pen_graphdef_operand_rank(draft, 0, &rank)) rank = 0;
    PEN_TRY(pen_graphdef_slice_read(draft->node, begin, end, strides, rank, &slice));
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    if (slice.count > 0) PEN_TRY(movement_slice(draft, "slice", x, &slice, &x));
    if (slice.squeezed_count > 0) {
        PEN_TRY(pen_graphdef_emit_with_ints(
            draft, "squeeze", "squeeze", x,
            (pen_graphdef_integers){slice.squeezed_count, slice.squeezed}, &x));
    }
    if (slice.added_count > 0) {
        PEN_TRY(pen_graphdef_emit_with_ints(draft, "unsqueeze", "unsqueeze", x,
                                            (pen_graphdef_integers){slice.added_count, slice.added},
                                            &x));
    }
    return pen_graphdef_set(draft, 0, x);
}

// Of a list: an element, or a range.
static pen_status evaluate_strided_slice(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *in[4];
    pen_graphdef_slice slice;
    for (uint32_t i = 0; i < 4; i++) {
        in[i] = pen_graphdef_known(known, i);
        if (in[i] == NULL) return PEN_OK;
    }
    if (in[0]->is_scalar || in[1]->count != 1) return PEN_OK;
    PEN_TRY(pen_graphdef_slice_read(known->draft->node, in[1], in[2], in[3], 1, &slice));
    if (slice.added_count > 0) return PEN_OK;
    const int64_t count = in[0]->count;
    int64_t start = 0, end = count, step = 1;
    if (slice.count == 1) {
        step = slice.steps[0];
        start = slice.starts[0] < 0 && slice.starts[0] >= -count ? slice.starts[0] + count
                                                                 : slice.starts[0];
        end = slice.ends[0] < 0 && slice.ends[0] >= -count ? slice.ends[0] + count : slice.ends[0];
    }
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? count : count - 1;
    start = pen_max_i64(lowest, pen_min_i64(highest, start));
    end = pen_max_i64(lowest, pen_min_i64(highest, end));
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step) {
        known->out->integers[known->out->count++] = in[0]->integers[i];
        if (step > count || step < -count) break;
    }
    known->out->is_scalar = slice.squeezed_count > 0;
    known->out->is_known = !known->out->is_scalar || known->out->count == 1;
    return PEN_OK;
}

// Whether the sizes that the trials have of a dimension reach its end in each of them.
static bool movement_reaches_end(const pen_graphdef_draft *draft, const pen_graphdef_value *x,
                                 int64_t begin, const int64_t sizes[2], uint32_t dimension) {
    for (uint32_t trial = 0; trial < 2; trial++) {
        const pen_tensor_type *type = pen_graphdef_value_type(draft, x, trial);
        if (type == NULL || dimension >= type->shape.rank) return false;
        if (sizes[trial] != type->shape.dims[dimension] - begin) return false;
    }
    return true;
}

// A size that depends on what the model leaves open is possible where it reaches the end of its
// dimension in both trials.
static pen_status convert_slice(pen_graphdef_draft *draft) {
    const pen_graphdef_ints_known *begin, *size;
    pen_graphdef_slice slice = {0};
    pen_graphdef_value x, result;
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &begin));
    PEN_TRY(pen_graphdef_draft_need(draft, 3));
    size = pen_graphdef_operand_trial(draft, 2, 0);
    const pen_graphdef_ints_known *other = pen_graphdef_operand_trial(draft, 2, 1);
    if (size == NULL || other == NULL || size->count != begin->count ||
        other->count != begin->count || begin->count > PEN_RANK_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "its sizes depend on data");
    }
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    for (uint32_t d = 0; d < begin->count; d++) {
        const int64_t sizes[2] = {size->integers[d], other->integers[d]};
        const bool is_open = sizes[0] != sizes[1], is_rest = sizes[0] < 0 || is_open;
        if (is_open && !movement_reaches_end(draft, &x, begin->integers[d], sizes, d)) {
            return pen_error(PEN_UNSUPPORTED,
                             "its size %u is open; possible where it reaches the end", d);
        }
        slice.axes[slice.count] = d;
        slice.starts[slice.count] = begin->integers[d];
        slice.steps[slice.count] = 1;
        if (is_rest ||
            !pen_i64_add(begin->integers[d], size->integers[d], &slice.ends[slice.count])) {
            slice.ends[slice.count] = INT64_MAX;
        }
        slice.count++;
    }
    PEN_TRY(movement_slice(draft, NULL, x, &slice, &result));
    return pen_graphdef_set(draft, 0, result);
}

static pen_status evaluate_slice(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *x = pen_graphdef_known(known, 0);
    const pen_graphdef_ints_known *begin = pen_graphdef_known(known, 1);
    const pen_graphdef_ints_known *size = pen_graphdef_known(known, 2);
    if (x == NULL || begin == NULL || size == NULL || x->is_scalar) return PEN_OK;
    if (begin->count != 1 || size->count != 1) return PEN_OK;
    const int64_t first = begin->integers[0], count = x->count;
    const int64_t taken = size->integers[0] < 0 ? count - first : size->integers[0];
    if (first < 0 || first > count || taken < 0 || taken > count - first) return PEN_OK;
    memcpy(known->out->integers, x->integers + first, (size_t)taken * sizeof x->integers[0]);
    known->out->count = (uint32_t)taken;
    known->out->is_known = true;
    return PEN_OK;
}

// All of an axis, from its last element to its first.
static pen_status convert_reverse(pen_graphdef_draft *draft) {
    const pen_graphdef_ints_known *axes;
    pen_graphdef_slice slice = {0};
    pen_graphdef_value x, result;
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &axes));
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    for (uint32_t i = 0; i < axes->count && i < PEN_RANK_LIMIT; i++) {
        slice.axes[i] = axes->integers[i];
        slice.starts[i] = INT64_MAX;
        slice.ends[i] = INT64_MIN;
        slice.steps[i] = -1;
        slice.count++;
    }
    PEN_TRY(movement_slice(draft, NULL, x, &slice, &result));
    return pen_graphdef_set(draft, 0, result);
}

// ---- side by side

// `last`: of TensorFlow's form; the axis of the channels-first form.
static int64_t movement_axis_first(int64_t axis) {
    static const int64_t places[] = {0, 2, 3, 1};
    if (axis < 0) axis += 4;
    return axis >= 0 && axis < 4 ? places[axis] : axis;
}

static pen_status movement_concat(pen_graphdef_draft *draft, uint32_t first, uint32_t count,
                                  uint32_t axis_input) {
    int64_t axis;
    bool is_first = count > 0;
    pen_graphdef_value *operands;
    PEN_TRY(pen_graphdef_operand_int(draft, axis_input, &axis));
    PEN_TRY(PEN_NEW(draft->arena, (size_t)count + 1, &operands));
    for (uint32_t i = 0; i < count; i++) {
        is_first = is_first && pen_graphdef_operand_is_first(draft, first + i);
    }
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_graphdef_operand_form(draft, first + i, is_first, &operands[i]));
    }
    return pen_graphdef_give_form(
        draft, is_first, "concat", (pen_graphdef_inputs){operands, count},
        PEN_WITH(pen_attribute_int("axis", is_first ? movement_axis_first(axis) : axis)));
}

static pen_status convert_concat_v2(pen_graphdef_draft *draft) {
    PEN_TRY(pen_graphdef_draft_need(draft, 2));
    const uint32_t count = draft->operand_count - 1;
    return movement_concat(draft, 0, count, count);
}

static pen_status convert_concat(pen_graphdef_draft *draft) {
    PEN_TRY(pen_graphdef_draft_need(draft, 2));
    return movement_concat(draft, 1, draft->operand_count - 1, 0);
}

// Lists one after the other; of scalars, for Pack.
static pen_status movement_join(const pen_graphdef_evaluation *known, uint32_t count,
                                bool of_scalars) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        const pen_graphdef_ints_known *part = pen_graphdef_known(known, i);
        if (part == NULL || part->is_scalar != of_scalars) return PEN_OK;
        if (part->count > PEN_GRAPHDEF_INTS_LIMIT - total) return PEN_OK;
        memcpy(known->out->integers + total, part->integers,
               part->count * sizeof part->integers[0]);
        total += part->count;
    }
    known->out->count = total;
    known->out->is_known = true;
    return PEN_OK;
}

static pen_status evaluate_concat_v2(const pen_graphdef_evaluation *known) {
    const uint32_t count = known->draft->operand_count;
    return count == 0 ? PEN_OK : movement_join(known, count - 1, false);
}

static pen_status evaluate_pack(const pen_graphdef_evaluation *known) {
    return movement_join(known, known->draft->operand_count, true);
}

static pen_status convert_pack(pen_graphdef_draft *draft) {
    const int64_t axis = pen_graphdef_int(draft->node, "axis", 0);
    const uint32_t count = draft->operand_count;
    pen_graphdef_value *operands;
    PEN_TRY(pen_graphdef_draft_need(draft, 1));
    PEN_TRY(PEN_NEW(draft->arena, count, &operands));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_graphdef_operand(draft, i, &operands[i]));
        PEN_TRY(pen_graphdef_emit_with_int(draft, "unsqueeze", "part", operands[i], axis,
                                           &operands[i]));
    }
    return pen_graphdef_give(draft, "concat", (pen_graphdef_inputs){operands, count},
                             PEN_WITH(pen_attribute_int("axis", axis)));
}

// ---- apart

// Split, SplitV and Unpack; the last takes the axis out of each part.
static pen_status movement_split(pen_graphdef_draft *draft, pen_graphdef_value x, int64_t axis,
                                 const pen_graphdef_value *sizes, uint32_t count, bool squeezes) {
    const pen_graphdef_value operands[] = {x, sizes != NULL ? *sizes : x};
    pen_graphdef_value *parts;
    if (count == 0 || count > PEN_NODE_ARITY_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it has %u parts; from 1 to %d are possible", count,
                         PEN_NODE_ARITY_LIMIT);
    }
    PEN_TRY(PEN_NEW(draft->arena, count, &parts));
    PEN_TRY(pen_graphdef_emit_node(
        draft,
        &(pen_graphdef_emission){.op_name = "split",
                                 .suffix = squeezes ? "parts" : NULL,
                                 .inputs = (pen_graphdef_inputs){operands, sizes != NULL ? 2 : 1},
                                 .attributes = PEN_WITH(pen_attribute_int("axis", axis)),
                                 .output_count = count},
        parts));
    for (uint32_t i = 0; i < count; i++) {
        if (squeezes) {
            PEN_TRY(
                pen_graphdef_emit_with_int(draft, "squeeze", "part", parts[i], axis, &parts[i]));
        }
        pen_graphdef_set(draft, i, parts[i]);
    }
    return PEN_OK;
}

static uint32_t movement_part_count(const pen_graphdef_draft *draft, const char *name) {
    const int64_t count = pen_graphdef_int(draft->node, name, 0);
    return count > 0 && count <= PEN_NODE_ARITY_LIMIT ? (uint32_t)count : 0;
}

static pen_status convert_split(pen_graphdef_draft *draft) {
    int64_t axis;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand_int(draft, 0, &axis));
    PEN_TRY(pen_graphdef_operand(draft, 1, &x));
    return movement_split(draft, x, axis, NULL, movement_part_count(draft, "num_split"), false);
}

// One size may be -1, what is left of the axis, which must be known then.
static pen_status convert_split_v(pen_graphdef_draft *draft) {
    int64_t axis, total = 0, sizes[PEN_GRAPHDEF_INTS_LIMIT];
    const pen_graphdef_ints_known *given;
    uint32_t open = PEN_GRAPHDEF_INTS_LIMIT;
    pen_graphdef_value x, operand;
    pen_shape shape;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &given));
    PEN_TRY(pen_graphdef_operand_int(draft, 2, &axis));
    for (uint32_t i = 0; i < given->count; i++) {
        sizes[i] = given->integers[i];
        if (sizes[i] < 0) open = i;
        if (sizes[i] >= 0 && !pen_i64_add(total, sizes[i], &total)) total = INT64_MAX;
    }
    if (open < given->count) { // -1: what is left
        uint32_t place;
        PEN_TRY(pen_graphdef_value_shape(draft, &x, &shape));
        PEN_TRY(pen_shape_axis(shape.rank, axis, &place));
        if (shape.dims[place] < total) {
            return pen_error(PEN_UNSUPPORTED, "the size of its axis %lld is open, or too small",
                             (long long)axis);
        }
        sizes[open] = shape.dims[place] - total;
    }
    PEN_TRY(pen_graphdef_ints_value(draft, "sizes", given->count, sizes, &operand));
    return movement_split(draft, x, axis, &operand, given->count, false);
}

static pen_status convert_unpack(pen_graphdef_draft *draft) {
    const int64_t axis = pen_graphdef_int(draft->node, "axis", 0);
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    return movement_split(draft, x, axis, NULL, movement_part_count(draft, "num"), true);
}

// ---- the rest

static pen_status convert_transpose(pen_graphdef_draft *draft) {
    const pen_graphdef_ints_known *permutation;
    pen_graphdef_value x, result;
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &permutation));
    // where the model itself puts channels first, or last, the form that is there is taken
    static const int64_t to_first[] = {0, 3, 1, 2};
    const bool is_to_first =
        permutation->count == 4 && memcmp(permutation->integers, to_first, sizeof to_first) == 0;
    if (is_to_first && pen_graphdef_operand_is_first(draft, 0)) {
        PEN_TRY(pen_graphdef_operand_first(draft, 0, &x));
        return pen_graphdef_set(draft, 0, x);
    }
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_emit_transpose(draft, NULL, x, permutation->count, permutation->integers,
                                        &result));
    return pen_graphdef_set(draft, 0, result);
}

static pen_status convert_tile(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_operand_int64s(draft, 1, &operands[1]));
    return pen_graphdef_give_pair(draft, false, "tile", operands[0], operands[1]);
}

// Pairs of pads, one a dimension, to all begins and then all ends.
static pen_status movement_pads(pen_graphdef_draft *draft, bool is_first, int64_t *out_pads,
                                uint32_t *out_count) {
    static const uint32_t places[] = {0, 2, 3, 1};
    const pen_graphdef_node *node = draft->node;
    pen_graphdef_value value;
    pen_shape shape;
    PEN_TRY(pen_graphdef_operand(draft, 1, &value));
    PEN_TRY(pen_graphdef_value_shape(draft, &value, &shape));
    const pen_graph *graph = draft->graphs[0];
    const pen_value *pads = pen_graph_value(graph, value.in[0]);
    if (pads->kind != PEN_VALUE_CONSTANT || shape.rank != 2 || shape.dims[1] != 2 ||
        shape.dims[0] > PEN_RANK_LIMIT || (is_first && shape.dims[0] != 4)) {
        return pen_error(PEN_UNSUPPORTED, "%s needs constant pads, a pair a dimension", node->op);
    }
    const uint32_t rank = (uint32_t)shape.dims[0];
    uint32_t count;
    const int64_t *integers;
    PEN_TRY(pen_value_read_ints(graph, value.in[0], &count, &integers));
    for (uint32_t d = 0; d < rank && 2 * d + 1 < count; d++) {
        const uint32_t place = is_first ? places[d] : d;
        out_pads[place] = integers[2 * d];
        out_pads[rank + place] = integers[2 * d + 1];
    }
    *out_count = 2 * rank;
    return PEN_OK;
}

// `count` elements of one end along an axis, turned round.
static pen_status movement_turned_end(pen_graphdef_draft *draft, uint32_t axis, bool is_back,
                                      int64_t count, pen_graphdef_value x,
                                      pen_graphdef_value *out_value) {
    static const char *const words[] = {"starts", "ends", "axes", "steps"};
    const int64_t range[] = {is_back ? INT64_MAX : count - 1, is_back ? -count - 1 : INT64_MIN,
                             axis, -1};
    pen_arena *arena = draft->arena;
    const char *end = is_back ? "back" : "front", *suffix;
    pen_graphdef_value operands[5] = {x};
    for (uint32_t i = 0; i < 4; i++) {
        PEN_TRY(pen_arena_format(arena, &suffix, "%s_%s_%u", end, words[i], axis));
        PEN_TRY(pen_graphdef_ints_value(draft, suffix, 1, &range[i], &operands[1 + i]));
    }
    PEN_TRY(pen_arena_format(arena, &suffix, "%s_%u", end, axis));
    return pen_graphdef_emit(draft, "slice", suffix, (pen_graphdef_inputs){operands, 5},
                             PEN_NO_ATTRIBUTES, out_value);
}

// Mirrored with the border itself: the ends, turned round, before and behind, axis by axis.
static pen_status movement_mirror(pen_graphdef_draft *draft) {
    int64_t pads[2 * PEN_RANK_LIMIT] = {0};
    uint32_t count;
    pen_shape shape;
    pen_graphdef_value x;
    const char *suffix;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_value_shape(draft, &x, &shape));
    PEN_TRY(movement_pads(draft, false, pads, &count));
    for (uint32_t d = 0; d < count / 2; d++) {
        const int64_t before = pads[d], behind = pads[count / 2 + d];
        pen_graphdef_value parts[3];
        uint32_t part_count = 0;
        if (before == 0 && behind == 0) continue;
        if (d >= shape.rank || before < 0 || behind < 0 || before > shape.dims[d] ||
            behind > shape.dims[d]) {
            return pen_error(PEN_INVALID_INPUT,
                             "it mirrors %lld and %lld elements of dimension %u, which has %lld "
                             "(-1: open)",
                             (long long)before, (long long)behind, d,
                             d < shape.rank ? (long long)shape.dims[d] : 0);
        }
        if (before > 0) {
            PEN_TRY(movement_turned_end(draft, d, false, before, x, &parts[part_count++]));
        }
        parts[part_count++] = x;
        if (behind > 0) {
            PEN_TRY(movement_turned_end(draft, d, true, behind, x, &parts[part_count++]));
        }
        const pen_attribute_given axis = pen_attribute_int("axis", d);
        PEN_TRY(pen_arena_format(draft->arena, &suffix, "mirrored_%u", d));
        PEN_TRY(pen_graphdef_emit(draft, "concat", suffix, (pen_graphdef_inputs){parts, part_count},
                                  PEN_WITH(axis), &x));
    }
    return pen_graphdef_set(draft, 0, x);
}

// Pad, PadV2 and MirrorPad. SYMMETRIC is no mode of ours and is made of slices.
static pen_status convert_pad(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    const bool is_first = pen_graphdef_operand_is_first(draft, 0);
    const bool has_value = strcmp(node->op, "PadV2") == 0;
    const char *mode = "constant";
    pen_graphdef_value operands[3];
    int64_t pads[2 * PEN_RANK_LIMIT];
    uint32_t count;
    if (strcmp(node->op, "MirrorPad") == 0) {
        mode = "reflect";
        if (strcmp(pen_graphdef_text(node, "mode", ""), "SYMMETRIC") == 0) {
            return movement_mirror(draft);
        }
        if (strcmp(pen_graphdef_text(node, "mode", ""), "REFLECT") != 0) {
            return pen_error(PEN_UNSUPPORTED, "mode is '%s'; REFLECT and SYMMETRIC are possible",
                             pen_graphdef_text(node, "mode", ""));
        }
    }
    PEN_TRY(pen_graphdef_operand_form(draft, 0, is_first, &operands[0]));
    PEN_TRY(movement_pads(draft, is_first, pads, &count));
    PEN_TRY(pen_graphdef_ints_value(draft, "pads", count, pads, &operands[1]));
    if (has_value) PEN_TRY(pen_graphdef_operand(draft, 2, &operands[2]));
    return pen_graphdef_give_form(draft, is_first, "pad",
                                  (pen_graphdef_inputs){operands, has_value ? 3 : 2},
                                  PEN_WITH(pen_attribute_text("mode", mode)));
}

// ---- along matrices and axes

static pen_status movement_triangle(pen_graphdef_draft *draft, bool is_upper, int64_t diagonal,
                                    pen_graphdef_value *x) {
    pen_graphdef_value operands[2] = {*x};
    PEN_TRY(
        pen_graphdef_number_value(draft, "diagonal", PEN_INT64, (double)diagonal, &operands[1]));
    return pen_graphdef_emit(draft, "trilu", is_upper ? "upper" : "lower",
                             PEN_GRAPHDEF_INPUTS(operands[0], operands[1]),
                             PEN_WITH(pen_attribute_int("upper", is_upper)), x);
}

// A band of a matrix is one triangle of another of its triangles.
static pen_status convert_band(pen_graphdef_draft *draft) {
    int64_t lower, upper;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_operand_int(draft, 1, &lower));
    PEN_TRY(pen_graphdef_operand_int(draft, 2, &upper));
    if (lower > INT32_MAX || upper > INT32_MAX) {
        return pen_error(PEN_INVALID_INPUT, "it keeps %lld and %lld diagonals", (long long)lower,
                         (long long)upper);
    }
    if (upper >= 0) PEN_TRY(movement_triangle(draft, false, upper, &x));
    if (lower >= 0) PEN_TRY(movement_triangle(draft, true, -lower, &x));
    return pen_graphdef_set(draft, 0, x);
}

static pen_status convert_cumulate(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    int64_t axis;
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operand_int(draft, 1, &axis));
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_number_value(draft, "axis", PEN_INT64, (double)axis, &operands[1]));
    return pen_graphdef_give(
        draft, "cum_sum", PEN_GRAPHDEF_ALL(operands),
        PEN_WITH(pen_attribute_int("exclusive", pen_graphdef_int(node, "exclusive", 0)),
                 pen_attribute_int("reverse", pen_graphdef_int(node, "reverse", 0))));
}

static pen_status convert_einsum(pen_graphdef_draft *draft) {
    const uint32_t count = draft->operand_count;
    pen_graphdef_value *operands;
    PEN_TRY(pen_graphdef_draft_need(draft, 1));
    PEN_TRY(PEN_NEW(draft->arena, count, &operands));
    PEN_TRY(pen_graphdef_operands(draft, count, operands));
    return pen_graphdef_give(
        draft, "einsum", (pen_graphdef_inputs){operands, count},
        PEN_WITH(pen_attribute_text("equation", pen_graphdef_text(draft->node, "equation", ""))));
}

static const pen_graphdef_mapping movement_mappings[] = {
    {.op = "Concat", .convert = convert_concat},
    {.op = "ConcatV2", .convert = convert_concat_v2, .evaluate = evaluate_concat_v2},
    {.op = "Cumsum", .convert = convert_cumulate},
    {.op = "Einsum", .convert = convert_einsum},
    {.op = "MatrixBandPart", .convert = convert_band},
    {.op = "MirrorPad", .convert = convert_pad},
    {.op = "Pack", .convert = convert_pack, .evaluate = evaluate_pack},
    {.op = "Pad", .convert = convert_pad},
    {.op = "PadV2", .convert = convert_pad},
    {.op = "ReverseV2", .convert = convert_reverse},
    {.op = "Slice", .convert = convert_slice, .evaluate = evaluate_slice},
    {.op = "Split", .convert = convert_split},
    {.op = "SplitV", .convert = convert_split_v},
    {.op = "StridedSlice", .convert = convert_strided_slice, .evaluate = evaluate_strided_slice},
    {.op = "Tile", .convert = convert_tile},
    {.op = "Transpose", .convert = convert_transpose},
    {.op = "Unpack", .convert = convert_unpack},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_movement, movement_mappings);
