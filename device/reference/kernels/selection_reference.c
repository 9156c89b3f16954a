// Elements picked by their value.

#include "device/reference/reference_compare.h"
#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/movement/selection_rule.h"

// ---- top_k

typedef struct top_row {
    const pen_tensor *x;
    int64_t first, stride, count; // elements of the row
    int64_t k;
    bool largest;
} top_row;

// Whether element `a` of the row goes before element `b`. Of equals, the earlier one.
static bool top_before(const top_row *row, int64_t a, int64_t b) {
    const reference_order order = reference_compare(row->x, row->first + a * row->stride, row->x,
                                                    row->first + b * row->stride);
    if (order == REFERENCE_EQUAL) return a < b;
    if (order != REFERENCE_UNORDERED) return (order == REFERENCE_GREATER) == row->largest;
    // not-a-numbers count as the largest
    const double first = pen_tensor_get(row->x, row->first + a * row->stride);
    const double second = pen_tensor_get(row->x, row->first + b * row->stride);
    const bool a_is_nan = first != first, b_is_nan = second != second;
    if (a_is_nan && b_is_nan) return a < b;
    return a_is_nan == row->largest;
}

// The row's best elements in order, kept in a sorted list of at most k.
static void top_find(const top_row *row, int64_t *best) {
    int64_t found = 0;
    for (int64_t i = 0; i < row->count; i++) {
        if (found == row->k && (found == 0 || !top_before(row, i, best[found - 1]))) continue;
        int64_t low = 0, high = found;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (top_before(row, i, best[middle])) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if (found < row->k) found++;
        memmove(best + low + 1, best + low, (size_t)(found - 1 - low) * sizeof *best);
        best[low] = i;
    }
}

// Row by row along the axis; equal values come in the order of their indices.
static pen_status top_k_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_tensor *indices = pen_reference_output(call, 1);
    const pen_shape *shape = &x->type.shape;
    uint32_t axis;
    int64_t *best;
    PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "axis"), &axis));
    const int64_t inner = pen_shape_count(shape, axis + 1, shape->rank);
    const int64_t outer = pen_shape_count(shape, 0, axis);
    top_row row = {.x = x,
                   .stride = inner,
                   .count = shape->dims[axis],
                   .k = y->type.shape.dims[axis],
                   .largest = pen_node_int(call->node, "largest") != 0};
    PEN_TRY(PEN_NEW(call->scratch, (size_t)row.k + 1, &best));
    for (int64_t r = 0; r < outer * inner; r++) {
        row.first = r / inner * inner * row.count + r % inner;
        top_find(&row, best);
        for (int64_t k = 0; k < row.k; k++) {
            const int64_t to = (r / inner * row.k + k) * inner + r % inner;
            reference_copy_element(y, to, x, row.first + best[k] * inner);
            if (indices != NULL) {
                pen_tensor_set_int(indices, to, best[k]);
            }
        }
    }
    return PEN_OK;
}

// ---- compress

// Without an axis the input counts as one row.
static pen_status compress_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *condition = &call->inputs[1], *y = &call->outputs[0];
    const pen_shape *shape = &x->type.shape;
    const bool is_flat = !pen_node_has(call->node, "axis");
    uint32_t axis = 0;
    if (!is_flat) {
        PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "axis"), &axis));
    }
    const int64_t outer = is_flat ? 1 : pen_shape_count(shape, 0, axis);
    const int64_t inner = is_flat ? 1 : pen_shape_count(shape, axis + 1, shape->rank);
    const int64_t dim = is_flat ? pen_tensor_count(x) : shape->dims[axis];
    int64_t to = 0;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < pen_tensor_count(condition); i++) {
            if (pen_tensor_get_int(condition, i) == 0) continue;
            for (int64_t k = 0; k < inner; k++) {
                reference_copy_element(y, to++, x, (o * dim + i) * inner + k);
            }
        }
    }
    return PEN_OK;
}

// ---- unique

// Where element `k` of row `row` lies in x.
typedef struct unique_cut {
    int64_t outer, inner, dim;
} unique_cut;

static int64_t unique_position(const unique_cut *cut, int64_t row, int64_t k) {
    return (k / cut->inner * cut->dim + row) * cut->inner + k % cut->inner;
}

static pen_status unique_write(const pen_reference_call *call, const unique_cut *cut,
                               const pen_unique_found *found) {
    const pen_tensor *x = &call->inputs[0];
    const unique_cut written = {cut->outer, cut->inner, found->count};
    for (int64_t u = 0; u < found->count; u++) {
        for (int64_t k = 0; k < cut->outer * cut->inner; k++) {
            reference_copy_element(&call->outputs[0], unique_position(&written, u, k), x,
                                   unique_position(cut, found->first[u], k));
        }
    }
    for (uint32_t i = 1; i < call->node->output_count; i++) {
        if (call->outputs[i].data == NULL) continue;
        const int64_t *list = i == 1 ? found->first : i == 2 ? found->place : found->counts;
        for (int64_t k = 0; k < pen_tensor_count(&call->outputs[i]); k++) {
            pen_tensor_set_int(&call->outputs[i], k, list[k]);
        }
    }
    return PEN_OK;
}

// Rows are compared by keys, integers that sort as the values do, whatever their type.
static pen_status unique_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0];
    const pen_shape *shape = &x->type.shape;
    const bool is_float = pen_element_is_float(x->type.element);
    unique_cut cut = {1, 1, pen_tensor_count(x)};
    if (pen_node_has(call->node, "axis")) {
        uint32_t axis;
        PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "axis"), &axis));
        cut = (unique_cut){pen_shape_count(shape, 0, axis),
                           pen_shape_count(shape, axis + 1, shape->rank), shape->dims[axis]};
    }
    pen_unique_rows rows = {.row_count = cut.dim,
                            .width = cut.outer * cut.inner,
                            .sorted = pen_node_int(call->node, "sorted") != 0};
    uint64_t *keys;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(x), &keys));
    for (int64_t row = 0; row < rows.row_count; row++) {
        for (int64_t k = 0; k < rows.width; k++) {
            const int64_t from = unique_position(&cut, row, k);
            keys[row * rows.width + k] = is_float
                                             ? pen_order_of_number(pen_tensor_get(x, from))
                                             : pen_order_of_integer(pen_tensor_get_int(x, from));
        }
    }
    pen_unique_found found;
    rows.keys = keys;
    PEN_TRY(pen_unique_find(&rows, call->scratch, &found));
    return unique_write(call, &cut, &found);
}

// ---- non_max_suppression

static pen_status boxes_read(const pen_reference_call *call, uint32_t input,
                             const double **out_numbers) {
    const pen_tensor *from = &call->inputs[input];
    double *numbers;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(from), &numbers));
    for (int64_t i = 0; i < pen_tensor_count(from); i++) {
        numbers[i] = pen_tensor_get(from, i);
    }
    *out_numbers = numbers;
    return PEN_OK;
}

static double boxes_number(const pen_reference_call *call, uint32_t input) {
    const bool has = pen_reference_input(call, input) != NULL;
    return has ? pen_tensor_get(&call->inputs[input], 0) : 0;
}

// The choice is made by the rule that shape inference uses too, since the count must agree.
static pen_status non_max_suppression_run(const pen_reference_call *call) {
    const pen_shape *boxes = &call->inputs[0].type.shape;
    const double limit = boxes_number(call, 2);
    pen_box_request request = {
        .batch_count = boxes->dims[0],
        .box_count = boxes->dims[1],
        .class_count = call->inputs[1].type.shape.dims[1],
        .limit = limit >= (double)boxes->dims[1] ? boxes->dims[1] : (int64_t)limit,
        .overlap_limit = boxes_number(call, 3),
        .score_limit = boxes_number(call, 4),
        .has_score_limit = pen_reference_input(call, 4) != NULL,
        .is_centered = pen_node_int(call->node, "center_point_box") != 0,
    };
    int64_t count;
    int64_t *triples;
    PEN_TRY(boxes_read(call, 0, &request.boxes));
    PEN_TRY(boxes_read(call, 1, &request.scores));
    PEN_TRY(pen_boxes_select(&request, call->scratch, &count, &triples));
    PEN_ASSERT(count == call->outputs[0].type.shape.dims[0]);
    for (int64_t i = 0; i < 3 * count; i++) {
        pen_tensor_set_int(&call->outputs[0], i, triples[i]);
    }
    return PEN_OK;
}

static const pen_reference_kernel selection_kernels[] = {
    {"top_k", top_k_run, NULL},
    {"compress", compress_run, NULL},
    {"unique", unique_run, NULL},
    {"non_max_suppression", non_max_suppression_run, NULL},
};

PEN_REFERENCE_FAMILY(selection);
