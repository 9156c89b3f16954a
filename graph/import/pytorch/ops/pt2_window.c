// Windows along dimensions, as dimensions of their own, and back.

#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/pytorch/ops/pt2_movement.h"
#include "graph/import/pytorch/pt2_mapping.h"

#define WINDOW_LIMIT ((int64_t)1 << 24) // elements of all windows of a dimension

// [windows, size] or [size, windows]: where the elements of a dimension's windows lie.
typedef struct window {
    int64_t count, size, step, dilation;
    bool is_by_element; // [size, windows]
} window;

// The windows of a dimension, which becomes two. Its size, from the file, is bounded here.
static pen_status window_gather(pen_pt2_draft *draft, const window *w, uint32_t axis,
                                pen_value_id x, pen_value_id *out_value) {
    const bool flips = w->is_by_element;
    const int64_t dims[] = {flips ? w->size : w->count, flips ? w->count : w->size};
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 2, dims);
    int64_t *indices;
    void *table = NULL;
    pen_value_id list;
    if (w->count < 1 || w->size < 1 || w->count > WINDOW_LIMIT / w->size) {
        return pen_pt2_refuse(draft, "it has %lld windows of %lld", (long long)w->count,
                              (long long)w->size);
    }
    PEN_TRY(pen_pt2_table(draft, w->count * w->size, sizeof *indices, &table));
    indices = table;
    for (int64_t i = 0; i < w->count * w->size; i++) {
        const int64_t row = i / dims[1], column = i % dims[1];
        indices[i] = (flips ? column : row) * w->step + (flips ? row : column) * w->dilation;
    }
    PEN_TRY(pen_graph_constant(pen_pt2_graph(draft), "window_indices", &type, indices, &list));
    return pen_pt2_emit(draft, "gather", "windows", PEN_INPUTS(x, list),
                        PEN_WITH(pen_attribute_int("axis", axis)), out_value);
}

// Windows of a dimension, whose elements become the last dimension.
static pen_status convert_unfold(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const uint32_t rank = shape->rank;
    const uint32_t axis = pen_pt2_axis(draft, "dimension", rank, 0);
    window w = {.size = pen_pt2_int(draft, "size", 1),
                .step = pen_pt2_int(draft, "step", 1),
                .dilation = 1};
    int64_t order[PEN_RANK_LIMIT];
    pen_value_id x;
    if (rank == 0 || rank == PEN_RANK_LIMIT || shape->dims[axis] < 0 || w.step < 1 || w.size < 1 ||
        w.size > shape->dims[axis]) {
        return pen_pt2_refuse(draft, "the size of its dimension must be known");
    }
    w.count = (shape->dims[axis] - w.size) / w.step + 1;
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = d <= axis ? d : d + 1;
    }
    order[rank] = axis + 1;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(window_gather(draft, &w, axis, x, &x));
    PEN_TRY(pen_pt2_transpose(draft, NULL, x, (pen_pt2_list){rank + 1, order}, &x));
    return pen_pt2_set(draft, 0, x);
}

typedef struct columns {
    int64_t kernel[2], strides[2], dilations[2], pads[2];
    int64_t count[2]; // windows along each dimension of a plane of these sizes
} columns;

static pen_status columns_read(pen_pt2_draft *draft, const int64_t sizes[2], columns *out_work) {
    columns *c = out_work;
    pen_pt2_ints_each(draft, "kernel_size", 2, 1, c->kernel);
    pen_pt2_ints_each(draft, "stride", 2, 1, c->strides);
    pen_pt2_ints_each(draft, "dilation", 2, 1, c->dilations);
    pen_pt2_ints_each(draft, "padding", 2, 0, c->pads);
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_sound = sizes[i] > 0 && sizes[i] < WINDOW_LIMIT && c->kernel[i] > 0 &&
                              c->kernel[i] < WINDOW_LIMIT && c->strides[i] > 0 &&
                              c->dilations[i] > 0 && c->dilations[i] < WINDOW_LIMIT &&
                              c->pads[i] >= 0 && c->pads[i] < WINDOW_LIMIT;
        if (!is_sound) return pen_pt2_refuse(draft, "its planes or windows have no known size");
        const int64_t extent = (c->kernel[i] - 1) * c->dilations[i] + 1;
        const int64_t room = sizes[i] + 2 * c->pads[i] - extent;
        if (room < 0) return pen_pt2_refuse(draft, "its windows are larger than its planes");
        c->count[i] = room / c->strides[i] + 1;
    }
    return PEN_OK;
}

// Windows of a plane as columns: [n, c, h, w] to [n, c · size of a window, windows].
static pen_status convert_im2col(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const int64_t order[] = {0, 1, 2, 4, 3, 5};
    columns c;
    pen_value_id x;
    if (shape->rank != 4) return pen_pt2_refuse(draft, "its operand has no batch");
    PEN_TRY(columns_read(draft, &shape->dims[2], &c));
    const int64_t pads[] = {0, 0, c.pads[0], c.pads[1], 0, 0, c.pads[0], c.pads[1]};
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_with_ints(draft, "pad", "padded", x, (pen_pt2_list){8, pads}, &x));
    for (uint32_t i = 0; i < 2; i++) {
        const window w = {c.count[i], c.kernel[i], c.strides[i], c.dilations[i], true};
        PEN_TRY(window_gather(draft, &w, i == 0 ? 2 : 4, x, &x));
    }
    PEN_TRY(pen_pt2_transpose(draft, "turned", x, (pen_pt2_list){6, order}, &x));
    PEN_TRY(pen_pt2_reshape_to(draft, NULL, x, 0, &x));
    return pen_pt2_set(draft, 0, x);
}

// [channels · size, 1, kernel]: number j of a channel's columns belongs to element j of the window.
static pen_status columns_kernel(pen_pt2_draft *draft, const columns *c, int64_t channels,
                                 pen_value_id *out_value) {
    const pen_element_type element = pen_pt2_own_element(draft);
    const int64_t size = c->kernel[0] * c->kernel[1];
    const int64_t dims[] = {channels * size, 1, c->kernel[0], c->kernel[1]};
    const pen_tensor_type type = pen_tensor_type_make(element, 4, dims);
    double *numbers;
    void *table = NULL;
    if (size > WINDOW_LIMIT || channels < 1 || channels > WINDOW_LIMIT / size / size) {
        return pen_pt2_refuse(draft, "its windows have %lld elements", (long long)size);
    }
    const int64_t count = channels * size * size;
    PEN_TRY(pen_pt2_table(draft, count, sizeof *numbers, &table));
    numbers = table;
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = i / size % size == i % size ? 1 : 0;
    }
    return pen_pt2_constant_numbers(draft, "window_elements", &type, numbers, out_value);
}

// Columns put back where im2col would take them, sums where windows overlap: a transposed
// convolution whose kernels have a single 1.
static pen_status convert_col2im(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    int64_t plane[2], rest[2];
    columns c;
    pen_value_id x, kernel;
    pen_pt2_ints_each(draft, "output_size", 2, 1, plane);
    if (shape->rank != 3) return pen_pt2_refuse(draft, "its operand has no batch");
    PEN_TRY(columns_read(draft, plane, &c));
    const int64_t channels = shape->dims[1] / (c.kernel[0] * c.kernel[1]);
    const int64_t sizes[] = {0, shape->dims[1], c.count[0], c.count[1]};
    const int64_t pads[] = {c.pads[0], c.pads[1], c.pads[0], c.pads[1]};
    for (uint32_t i = 0; i < 2; i++) {
        rest[i] = plane[i] + 2 * c.pads[i] - (c.kernel[i] - 1) * c.dilations[i] - 1 -
                  (c.count[i] - 1) * c.strides[i];
    }
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(columns_kernel(draft, &c, channels, &kernel));
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "planes", x, (pen_pt2_list){4, sizes}, &x));
    return pen_pt2_give(draft, "conv_transpose", PEN_INPUTS(x, kernel),
                        PEN_WITH(pen_attribute_ints("strides", 2, c.strides),
                                 pen_attribute_ints("dilations", 2, c.dilations),
                                 pen_attribute_ints("pads", 4, pads),
                                 pen_attribute_ints("output_padding", 2, rest),
                                 pen_attribute_int("group", channels)));
}

static const pen_pt2_mapping window_rows[] = {
    {.target = "aten.unfold.default", .convert = convert_unfold, .view = PEN_PT2_VIEW_ALWAYS},
    PEN_PT2_ROW("im2col.default", im2col),
    PEN_PT2_ROW("col2im.default", col2im),
};

PEN_PT2_FAMILY(pen_pt2_windows, window_rows);
