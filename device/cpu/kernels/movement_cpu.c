// Ops that only move elements: each is a few strided copies, worked out when prepared.
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/strided_copy.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/movement/slice_range.h"

typedef struct movement_move {
    uint32_t input;
    uint32_t output;
    strided_copy copy;
} movement_move;

typedef struct movement_state {
    uint32_t move_count;
    movement_move *moves;
    bool fills; // output 0 is filled before: with fill_input, if that is there, or zeros
    uint32_t fill_input;
    strided_copy fill;
} movement_state;

static const pen_tensor_type *movement_type(const pen_cpu_request *request, pen_value_id value) {
    return pen_value_type(request->graph, value);
}

// Row-major strides of `shape`.
static void movement_strides(const pen_shape *shape, int64_t *strides) {
    int64_t stride = 1;
    for (uint32_t d = shape->rank; d-- > 0;) {
        strides[d] = stride;
        stride *= shape->dims[d];
    }
}

static bool movement_layouts_are(const pen_cpu_request *request, pen_layout layout) {
    const pen_node *node = request->node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        if (i < 64 && (node->op->constant_inputs >> i & 1) != 0) continue;
        if (pen_graph_value(request->graph, node->inputs[i])->layout != layout) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        if (pen_graph_value(request->graph, node->outputs[i])->layout != layout) return false;
    }
    return true;
}

static bool movement_supports(const pen_cpu_request *request) {
    return movement_layouts_are(request, PEN_LAYOUT_PLAIN);
}

static uint32_t movement_axis(const pen_cpu_request *request, const pen_shape *shape) {
    const int64_t axis = pen_node_int(request->node, "axis");
    return (uint32_t)(axis < 0 ? axis + shape->rank : axis);
}

// Along channels, whole blocks of them lie behind each other in blocked layouts too, which are
// only used where there is no block in part: a copy of channels is the same in every layout.
static bool movement_joins_support(const pen_cpu_request *request) {
    const pen_value *x = pen_graph_value(request->graph, request->node->inputs[0]);
    if (x->layout == PEN_LAYOUT_PLAIN) return movement_supports(request);
    return movement_axis(request, &x->type.shape) == 1 && movement_layouts_are(request, x->layout);
}

static pen_status movement_state_make(const pen_cpu_request *request, uint32_t move_count,
                                      movement_state **out_state) {
    movement_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    PEN_TRY(PEN_NEW(request->arena, move_count, &state->moves));
    const uint32_t bytes =
        (uint32_t)pen_element_bytes(movement_type(request, request->node->inputs[0])->element);
    for (uint32_t i = 0; i < move_count; i++) {
        state->moves[i].copy.element_bytes = bytes;
    }
    state->move_count = move_count;
    *out_state = state;
    return PEN_OK;
}

static pen_status movement_finish(movement_state *state, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    for (uint32_t i = 0; i < state->move_count; i++) {
        strided_copy_settle(&state->moves[i].copy);
    }
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

// Output 0 as one row that repeats one element.
static void movement_fill_with(const pen_cpu_request *request, uint32_t input,
                               movement_state *state) {
    const pen_tensor_type *y = movement_type(request, request->node->outputs[0]);
    state->fills = true;
    state->fill_input = input;
    state->fill = (strided_copy){
        .rank = 1,
        .counts = {pen_shape_element_count(&y->shape)},
        .to_strides = {1},
        .element_bytes = (uint32_t)pen_element_bytes(y->element),
    };
    strided_copy_settle(&state->fill);
}

static pen_status movement_transpose(const pen_cpu_request *request, void **out_state,
                                     uint64_t *out_workspace_bytes) {
    movement_state *state;
    PEN_TRY(movement_state_make(request, 1, &state));
    const pen_shape *x = &movement_type(request, request->node->inputs[0])->shape;
    const pen_shape *y = &movement_type(request, request->node->outputs[0])->shape;
    uint32_t perm_count;
    const int64_t *perm = pen_node_ints(request->node, "perm", &perm_count);
    int64_t strides[PEN_RANK_LIMIT];
    movement_strides(x, strides);
    strided_copy *copy = &state->moves[0].copy;
    copy->rank = x->rank;
    movement_strides(y, copy->to_strides);
    for (uint32_t d = 0; d < x->rank; d++) {
        copy->counts[d] = y->dims[d];
        copy->from_strides[d] = strides[perm != NULL ? (uint32_t)perm[d] : x->rank - 1 - d];
    }
    return movement_finish(state, out_state, out_workspace_bytes);
}

static pen_status movement_expand(const pen_cpu_request *request, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    movement_state *state;
    PEN_TRY(movement_state_make(request, 1, &state));
    const pen_shape *x = &movement_type(request, request->node->inputs[0])->shape;
    const pen_shape *y = &movement_type(request, request->node->outputs[0])->shape;
    int64_t strides[PEN_RANK_LIMIT];
    movement_strides(x, strides);
    strided_copy *copy = &state->moves[0].copy;
    copy->rank = y->rank;
    movement_strides(y, copy->to_strides);
    for (uint32_t d = 0; d < y->rank; d++) {
        copy->counts[d] = y->dims[d];
        const uint32_t missing = y->rank - x->rank;
        const bool repeats = d < missing || x->dims[d - missing] == 1;
        copy->from_strides[d] = repeats ? 0 : strides[d - missing];
    }
    return movement_finish(state, out_state, out_workspace_bytes);
}

// Dimension d of the result is (repetition, element).
static pen_status movement_tile(const pen_cpu_request *request, void **out_state,
                                uint64_t *out_workspace_bytes) {
    movement_state *state;
    PEN_TRY(movement_state_make(request, 1, &state));
    const pen_shape *x = &movement_type(request, request->node->inputs[0])->shape;
    const pen_shape *y = &movement_type(request, request->node->outputs[0])->shape;
    int64_t x_strides[PEN_RANK_LIMIT], y_strides[PEN_RANK_LIMIT];
    movement_strides(x, x_strides);
    movement_strides(y, y_strides);
    strided_copy *copy = &state->moves[0].copy;
    copy->rank = 2 * x->rank;
    for (uint32_t d = 0; d < x->rank; d++) {
        copy->counts[2 * d] = x->dims[d] == 0 ? 0 : y->dims[d] / x->dims[d];
        copy->to_strides[2 * d] = y_strides[d] * x->dims[d];
        copy->counts[2 * d + 1] = x->dims[d];
        copy->from_strides[2 * d + 1] = x_strides[d];
        copy->to_strides[2 * d + 1] = y_strides[d];
    }
    return movement_finish(state, out_state, out_workspace_bytes);
}

// A copy between `whole` and the part of it that begins at `start` along `axis`.
static void movement_part(strided_copy *copy, const pen_shape *whole, const pen_shape *part,
                          uint32_t axis, int64_t start, bool into_whole) {
    const int64_t inner = pen_shape_count(part, axis, part->rank);
    const int64_t whole_inner = pen_shape_count(whole, axis, whole->rank);
    const int64_t offset = start * pen_shape_count(whole, axis + 1, whole->rank);
    copy->rank = 2;
    copy->counts[0] = pen_shape_count(part, 0, axis);
    copy->counts[1] = inner;
    copy->from_strides[0] = into_whole ? inner : whole_inner;
    copy->to_strides[0] = into_whole ? whole_inner : inner;
    copy->from_strides[1] = copy->to_strides[1] = 1;
    copy->from_start = into_whole ? 0 : offset;
    copy->to_start = into_whole ? offset : 0;
}

static pen_status movement_concat(const pen_cpu_request *request, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    movement_state *state;
    const pen_node *node = request->node;
    PEN_TRY(movement_state_make(request, node->input_count, &state));
    const pen_shape *y = &movement_type(request, node->outputs[0])->shape;
    const uint32_t axis = movement_axis(request, y);
    int64_t start = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_shape *x = &movement_type(request, node->inputs[i])->shape;
        state->moves[i].input = i;
        movement_part(&state->moves[i].copy, y, x, axis, start, true);
        start += x->dims[axis];
    }
    return movement_finish(state, out_state, out_workspace_bytes);
}

// Each output is a strided copy of its part of the input.
static pen_status movement_split(const pen_cpu_request *request, void **out_state,
                                 uint64_t *out_workspace_bytes) {
    movement_state *state;
    const pen_node *node = request->node;
    PEN_TRY(movement_state_make(request, node->output_count, &state));
    const pen_shape *x = &movement_type(request, node->inputs[0])->shape;
    const uint32_t axis = movement_axis(request, x);
    uint32_t size_count = 0;
    const int64_t *sizes = NULL;
    if (node->input_count > 1 && pen_value_is(node->inputs[1])) {
        PEN_TRY(pen_value_read_ints(request->graph, node->inputs[1], &size_count, &sizes));
    }
    int64_t start = 0;
    uint32_t made = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) {
            movement_move *move = &state->moves[made++];
            move->output = i;
            movement_part(&move->copy, x, &movement_type(request, node->outputs[i])->shape, axis,
                          start, false);
        }
        start += sizes != NULL ? sizes[i] : x->dims[axis] / node->output_count;
    }
    state->move_count = made;
    return movement_finish(state, out_state, out_workspace_bytes);
}

static pen_status movement_slice_range(const pen_cpu_request *request, const pen_shape *shape,
                                       pen_slice_range *out_range) {
    const pen_node *node = request->node;
    const int64_t *integers[5] = {NULL};
    uint32_t count = 0;
    for (uint32_t i = 1; i < node->input_count && i < 5; i++) {
        uint32_t own_count = 0;
        if (!pen_value_is(node->inputs[i])) continue;
        PEN_TRY(pen_value_read_ints(request->graph, node->inputs[i], &own_count, &integers[i]));
        if (i == 1) count = own_count;
    }
    const pen_slice_spec spec = {count, integers[1], integers[2], integers[3], integers[4]};
    return pen_slice_resolve(&spec, shape, out_range);
}

// The slice of `whole`, from it or into it.
static void movement_slice_copy(strided_copy *copy, const pen_shape *whole,
                                const pen_slice_range *range, bool into_whole) {
    int64_t strides[PEN_RANK_LIMIT], slice_strides[PEN_RANK_LIMIT];
    movement_strides(whole, strides);
    movement_strides(&range->shape, slice_strides);
    copy->rank = whole->rank;
    int64_t start = 0;
    for (uint32_t d = 0; d < whole->rank; d++) {
        const int64_t step = strides[d] * range->step[d];
        start += strides[d] * range->start[d];
        copy->counts[d] = range->shape.dims[d];
        copy->from_strides[d] = into_whole ? slice_strides[d] : step;
        copy->to_strides[d] = into_whole ? step : slice_strides[d];
    }
    copy->from_start = into_whole ? 0 : start;
    copy->to_start = into_whole ? start : 0;
}

static pen_status movement_slice(const pen_cpu_request *request, void **out_state,
                                 uint64_t *out_workspace_bytes) {
    movement_state *state;
    PEN_TRY(movement_state_make(request, 1, &state));
    const pen_shape *x = &movement_type(request, request->node->inputs[0])->shape;
    pen_slice_range range;
    PEN_TRY(movement_slice_range(request, x, &range));
    movement_slice_copy(&state->moves[0].copy, x, &range, false);
    return movement_finish(state, out_state, out_workspace_bytes);
}

static pen_status movement_slice_backward(const pen_cpu_request *request, void **out_state,
                                          uint64_t *out_workspace_bytes) {
    movement_state *state;
    PEN_TRY(movement_state_make(request, 1, &state));
    const pen_shape *dx = &movement_type(request, request->node->outputs[0])->shape;
    pen_slice_range range;
    PEN_TRY(movement_slice_range(request, dx, &range));
    movement_slice_copy(&state->moves[0].copy, dx, &range, true);
    movement_fill_with(request, PEN_ID_NONE, state);
    return movement_finish(state, out_state, out_workspace_bytes);
}

static bool movement_pad_supports(const pen_cpu_request *request) {
    return strcmp(pen_node_text(request->node, "mode"), "constant") == 0 &&
           movement_supports(request);
}

// The copy of what stays; negative pads cut.
static pen_status movement_pad(const pen_cpu_request *request, void **out_state,
                               uint64_t *out_workspace_bytes) {
    movement_state *state;
    const pen_node *node = request->node;
    PEN_TRY(movement_state_make(request, 1, &state));
    const pen_shape *x = &movement_type(request, node->inputs[0])->shape;
    const pen_shape *y = &movement_type(request, node->outputs[0])->shape;
    uint32_t count;
    const int64_t *pads; // before, then behind; negative ones cut
    PEN_TRY(pen_value_read_ints(request->graph, node->inputs[1], &count, &pads));
    strided_copy *copy = &state->moves[0].copy;
    movement_strides(x, copy->from_strides);
    movement_strides(y, copy->to_strides);
    copy->rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++) {
        const int64_t first = pads[d] < 0 ? -pads[d] : 0; // of x, that is kept
        const int64_t behind = pads[x->rank + d] < 0 ? -pads[x->rank + d] : 0;
        const int64_t kept = x->dims[d] - first - behind;
        copy->counts[d] = kept < 0 ? 0 : kept;
        copy->from_start += first * copy->from_strides[d];
        copy->to_start += (pads[d] < 0 ? 0 : pads[d]) * copy->to_strides[d];
    }
    movement_fill_with(request, node->input_count > 2 ? 2 : PEN_ID_NONE, state);
    return movement_finish(state, out_state, out_workspace_bytes);
}

static pen_status movement_run(const pen_cpu_call *call) {
    static const uint64_t zero = 0;
    const movement_state *state = call->state;
    if (state->fills) {
        const void *element =
            state->fill_input == PEN_ID_NONE ? NULL : call->inputs[state->fill_input];
        strided_copy_run(&state->fill, element == NULL ? &zero : element, call->outputs[0]);
    }
    for (uint32_t i = 0; i < state->move_count; i++) {
        const movement_move *move = &state->moves[i];
        strided_copy_run(&move->copy, call->inputs[move->input], call->outputs[move->output]);
    }
    return PEN_OK;
}

static const pen_cpu_kernel movement_kernels[] = {
    {PEN_CPU_ENTRY("transpose", "cpu", movement_supports, movement_transpose, movement_run)},
    {PEN_CPU_ENTRY("expand", "cpu", movement_supports, movement_expand, movement_run)},
    {PEN_CPU_ENTRY("tile", "cpu", movement_supports, movement_tile, movement_run)},
    {PEN_CPU_ENTRY("concat", "cpu", movement_joins_support, movement_concat, movement_run)},
    {PEN_CPU_ENTRY("split", "cpu", movement_joins_support, movement_split, movement_run)},
    {PEN_CPU_ENTRY("slice", "cpu", movement_supports, movement_slice, movement_run)},
    {PEN_CPU_ENTRY("slice_backward", "cpu", movement_supports, movement_slice_backward,
                   movement_run)},
    {PEN_CPU_ENTRY("pad", "cpu", movement_pad_supports, movement_pad, movement_run)},
};

PEN_CPU_FAMILY_OF(movement);
