// Fourier transforms, windows, and determinants.
//
//   dft(x; axis, inverse, onesided)       x is […,n,…,1] (real) or […,n,…,2] (complex)
//   stft(x, step, window, length)         dft of overlapping frames of x, [batch,n,1]
//   hann_window(n), hamming_window(n), blackman_window(n)
//   mel_weight_matrix(bins, length, rate, low, high)   from a spectrum to bands of the mel scale
//   det(x)                                of matrices, the last two dimensions
//
// Operands that say lengths are constants. dft and stft have no gradient; that of det is dy times
// each element's cofactor.
//
// flops: 8 for each element of a dft and term of its sum; 2/3 m^3 for a determinant.

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/shared/shape_rule.h"

// Constant operand `input` as one number; `fallback` where it is left out.
static pen_status spectrum_length(const pen_infer_context *context, uint32_t input,
                                  int64_t fallback, int64_t *out_length) {
    uint32_t count;
    const int64_t *integers;
    *out_length = fallback;
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    PEN_TRY(pen_infer_ints(context, input, &count, &integers));
    if (count != 1 || integers[0] < 1 || integers[0] > INT32_MAX) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "input %u is %lld (of %u numbers), it must be one length from 1 on",
                               input, count > 0 ? (long long)integers[0] : 0, count);
    }
    *out_length = integers[0];
    return PEN_OK;
}

// Complex numbers are a last dimension of 2; of a real signal, half the terms may be left out.
static pen_status dft_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    pen_tensor_type type = *pen_infer_input(context, 0);
    const uint32_t rank = type.shape.rank;
    uint32_t axis;
    int64_t length;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_axis(context, rank, pen_node_int(node, "axis"), &axis));
    const bool fits = rank >= 2 && axis + 1 < rank && type.shape.dims[axis] > 0 &&
                      (type.shape.dims[rank - 1] == 1 || type.shape.dims[rank - 1] == 2);
    if (!fits) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "a transform along axis %u of %s; real and imaginary parts must "
                               "follow in a last dimension of 1 or 2",
                               axis, pen_shape_format(&type.shape, text));
    }
    const bool onesided = pen_node_int(node, "onesided") != 0;
    if (onesided && pen_node_int(node, "inverse") != 0) {
        return pen_infer_error(context, PEN_UNSUPPORTED, "inverse and onesided together");
    }
    PEN_TRY(spectrum_length(context, 1, type.shape.dims[axis], &length));
    type.shape.dims[axis] = onesided ? length / 2 + 1 : length;
    type.shape.dims[rank - 1] = 2;
    return pen_infer_set(context, 0, &type);
}

static uint64_t dft_flops(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    const pen_shape *x = &pen_value_type(graph, node->inputs[0])->shape;
    uint32_t axis = 0;
    const pen_status status = pen_shape_axis(x->rank, pen_node_int(node, "axis"), &axis);
    pen_status_ignore(status, "the shape rule has checked the axis");
    return 4 * pen_flops_of_output(graph, id) * (uint64_t)x->dims[axis];
}

// Window and length may each be left out if the other is there.
static pen_status stft_infer(pen_infer_context *context) {
    const pen_tensor_type *x = pen_infer_input(context, 0);
    int64_t step, length = 0;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(spectrum_length(context, 1, 1, &step));
    if (pen_infer_has_input(context, 2)) {
        PEN_TRY(pen_infer_check_same_element(context, 2, 0));
        length = pen_shape_element_count(&pen_infer_input(context, 2)->shape);
    }
    const int64_t window = length;
    PEN_TRY(spectrum_length(context, 3, length, &length));
    const bool fits = (x->shape.rank == 2 ||
                       (x->shape.rank == 3 && (x->shape.dims[2] == 1 || x->shape.dims[2] == 2))) &&
                      length >= 1 && length <= x->shape.dims[1] &&
                      (window == 0 || window == length);
    if (!fits) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "frames of %lld of a signal %s with a window of %lld; [batch,n] or "
                               "[batch,n,1 or 2] and equal lengths up to n are possible",
                               (long long)length, pen_shape_format(&x->shape, text),
                               (long long)window);
    }
    const bool onesided = pen_node_int(pen_infer_node(context), "onesided") != 0;
    const int64_t dims[] = {x->shape.dims[0], (x->shape.dims[1] - length) / step + 1,
                            onesided ? length / 2 + 1 : length, 2};
    const pen_tensor_type type = pen_tensor_type_make(x->element, 4, dims);
    return pen_infer_set(context, 0, &type);
}

static pen_status window_infer(pen_infer_context *context) {
    int64_t length;
    pen_element_type element;
    PEN_TRY(spectrum_length(context, 0, 1, &length));
    PEN_TRY(pen_infer_wrap(
        context,
        pen_element_find(pen_node_text(pen_infer_node(context), "output_datatype"), &element)));
    const pen_tensor_type type = pen_tensor_type_make(element, 1, &length);
    return pen_infer_set(context, 0, &type);
}

// All inputs are numbers that have to be known, since the shape follows from them.
static pen_status mel_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    int64_t bins, length, rate;
    double edges[2];
    pen_element_type element;
    PEN_TRY(spectrum_length(context, 0, 1, &bins));
    PEN_TRY(spectrum_length(context, 1, 1, &length));
    PEN_TRY(spectrum_length(context, 2, 1, &rate));
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(pen_infer_wrap(context, pen_value_read_number(pen_infer_graph(context),
                                                              node->inputs[3 + i], &edges[i])));
    }
    if (!(edges[0] >= 0 && edges[0] <= edges[1] && edges[1] <= (double)rate / 2)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "bands from %g to %g at a rate of %lld; 0 to half the rate is "
                               "possible",
                               edges[0], edges[1], (long long)rate);
    }
    PEN_TRY(pen_infer_wrap(context,
                           pen_element_find(pen_node_text(node, "output_datatype"), &element)));
    const int64_t dims[] = {length / 2 + 1, bins};
    const pen_tensor_type type = pen_tensor_type_make(element, 2, dims);
    return pen_infer_set(context, 0, &type);
}

// ---- det

static pen_status det_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    const uint32_t rank = type.shape.rank;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    if (rank < 2 || type.shape.dims[rank - 1] != type.shape.dims[rank - 2]) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT, "%s holds no square matrices",
                               pen_shape_format(&type.shape, text));
    }
    type.shape.rank = rank - 2;
    return pen_infer_set(context, 0, &type);
}

static pen_status det_backward_infer(pen_infer_context *context) {
    pen_shape wanted = pen_infer_input(context, 1)->shape;
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_FLOAT));
    if (wanted.rank < 2 || wanted.dims[wanted.rank - 1] != wanted.dims[wanted.rank - 2]) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "input 1 holds no square matrices");
    }
    wanted.rank -= 2;
    PEN_TRY(pen_infer_check_shape(context, 0, &wanted));
    return pen_infer_set(context, 0, pen_infer_input(context, 1));
}

static uint64_t det_flops(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    const pen_shape *x = &pen_value_type(graph, node->inputs[node->input_count - 1])->shape;
    return (uint64_t)pen_shape_element_count(x) * (uint64_t)x->dims[x->rank - 1] * 2 / 3;
}

static const pen_attribute_schema dft_attributes[] = {
    PEN_INT_OR("axis", 1),
    PEN_INT_OR("inverse", 0),
    PEN_INT_OR("onesided", 0),
};
static const pen_attribute_schema stft_attributes[] = {
    PEN_INT_OR("onesided", 1),
};
static const pen_attribute_schema window_attributes[] = {
    PEN_INT_OR("periodic", 1),
    PEN_TEXT_OR("output_datatype", "float32"),
};

#define WINDOW(op, does)                                                                           \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(1, 1), PEN_GIVES(1, 1),                            \
        PEN_ATTRIBUTES(window_attributes), .constant_inputs = 1, .infer = window_infer             \
    }

static const pen_op spectrum_ops[] = {
    {"dft", "discrete Fourier transform along an axis", PEN_TAKES(1, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(dft_attributes), .constant_inputs = 2, .infer = dft_infer, .flops = dft_flops},
    {"stft", "discrete Fourier transforms of overlapping frames", PEN_TAKES(2, 4), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(stft_attributes), .constant_inputs = 0xa, .infer = stft_infer},
    WINDOW(hann_window, "a raised cosine"),
    WINDOW(hamming_window, "a raised cosine that does not reach 0"),
    WINDOW(blackman_window, "a sum of two cosines"),
    {"mel_weight_matrix", "weights that make bands of the mel scale of a spectrum", PEN_TAKES(5, 5),
     PEN_GIVES(1, 1), .attributes = &window_attributes[1], .attribute_count = 1,
     .constant_inputs = 0x1f, .infer = mel_infer},
    {"det", "determinants of the matrices in the last two dimensions", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), .infer = det_infer, .gradient = pen_gradient_from_input, .flops = det_flops},
    {"det_backward", "gradient of det from dy and the matrices", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     .infer = det_backward_infer, .flops = det_flops},
};

PEN_OP_FAMILY(spectrum);
