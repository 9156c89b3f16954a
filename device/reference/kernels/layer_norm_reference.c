#include <math.h>

#include "device/reference/reference_kernel.h"
#include "graph/op.h"
#include "graph/ops/reduction/layer_norm_geometry.h"

typedef struct layer_norm_row {
    double mean; // 0 for root mean square
    double inverse;
} layer_norm_row;

static layer_norm_row layer_norm_statistics(const pen_reference_call *call,
                                            const pen_layer_norm *norm, const pen_tensor *x,
                                            int64_t r) {
    const int64_t first = r * norm->columns;
    double sum = 0, squares = 0;
    for (int64_t j = 0; norm->is_centred && j < norm->columns; j++) {
        sum += pen_tensor_get(x, first + j);
    }
    const double mean = sum / (double)norm->columns;
    for (int64_t j = 0; j < norm->columns; j++) {
        const double distance = pen_tensor_get(x, first + j) - mean;
        squares += distance * distance;
    }
    const double epsilon = pen_node_float(call->node, "epsilon");
    return (layer_norm_row){mean, 1 / sqrt(squares / (double)norm->columns + epsilon)};
}

static double layer_norm_get(const pen_reference_call *call, uint32_t input, int64_t index,
                             double absent) {
    if (pen_reference_input(call, input) == NULL) return absent;
    return pen_tensor_get(&call->inputs[input], index);
}

static pen_status layer_norm_forward(const pen_reference_call *call) {
    pen_layer_norm norm;
    pen_layer_norm_of(call->graph, call->node, &norm);
    const pen_tensor *x = &call->inputs[0];
    for (int64_t r = 0; norm.columns > 0 && r < norm.rows; r++) {
        const layer_norm_row row = layer_norm_statistics(call, &norm, x, r);
        for (int64_t j = 0; j < norm.columns; j++) {
            const int64_t at = r * norm.columns + j, w = pen_layer_norm_weight(&norm, r, j);
            const double normal = (pen_tensor_get(x, at) - row.mean) * row.inverse;
            pen_tensor_set(&call->outputs[0], at,
                           normal * layer_norm_get(call, 1, w, 1) + layer_norm_get(call, 2, w, 0));
        }
        if (pen_reference_output(call, 1) != NULL) pen_tensor_set(&call->outputs[1], r, row.mean);
        if (pen_reference_output(call, 2) != NULL)
            pen_tensor_set(&call->outputs[2], r, row.inverse);
    }
    return PEN_OK;
}

// Two passes: the second needs the row's sums of the gradient and of its product with the
// normalised values.
static void layer_norm_backward_row(const pen_reference_call *call, const pen_layer_norm *norm,
                                    int64_t r, double *dscale, double *dbias) {
    const pen_tensor *dy = &call->inputs[0], *x = &call->inputs[1];
    const layer_norm_row row = layer_norm_statistics(call, norm, x, r);
    const int64_t first = r * norm->columns;
    double sum = 0, product = 0; // of g, and of g and the normalised
    for (int64_t j = 0; j < norm->columns; j++) {
        const int64_t w = pen_layer_norm_weight(norm, r, j);
        const double d = pen_tensor_get(dy, first + j);
        const double normal = (pen_tensor_get(x, first + j) - row.mean) * row.inverse;
        const double g = d * layer_norm_get(call, 2, w, 1);
        sum += g;
        product += g * normal;
        dscale[w] += d * normal;
        dbias[w] += d;
    }
    const double shift = norm->is_centred ? sum / (double)norm->columns : 0;
    const double tilt = product / (double)norm->columns;
    for (int64_t j = 0; j < norm->columns; j++) {
        const int64_t w = pen_layer_norm_weight(norm, r, j);
        const double normal = (pen_tensor_get(x, first + j) - row.mean) * row.inverse;
        const double g = pen_tensor_get(dy, first + j) * layer_norm_get(call, 2, w, 1);
        pen_tensor_set(&call->outputs[0], first + j, (g - shift - normal * tilt) * row.inverse);
    }
}

static pen_status layer_norm_backward(const pen_reference_call *call) {
    pen_layer_norm norm;
    pen_layer_norm_of(call->graph, call->node, &norm);
    double *sums[2];
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(PEN_NEW(call->scratch, (size_t)norm.weight_count, &sums[i]));
    }
    for (int64_t r = 0; norm.columns > 0 && r < norm.rows; r++) {
        layer_norm_backward_row(call, &norm, r, sums[0], sums[1]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        for (int64_t w = 0; pen_reference_output(call, i + 1) != NULL && w < norm.weight_count;
             w++) {
            pen_tensor_set(&call->outputs[i + 1], w, sums[i][w]);
        }
    }
    return PEN_OK;
}

static const pen_reference_kernel layer_norm_kernels[] = {
    {"layer_normalization", layer_norm_forward, NULL},
    {"layer_normalization_backward", layer_norm_backward, NULL},
    {"rms_normalization", layer_norm_forward, NULL},
    {"rms_normalization_backward", layer_norm_backward, NULL},
    {"instance_normalization", layer_norm_forward, NULL},
    {"instance_normalization_backward", layer_norm_backward, NULL},
    {"group_normalization", layer_norm_forward, NULL},
    {"group_normalization_backward", layer_norm_backward, NULL},
};

PEN_REFERENCE_FAMILY(layer_norm);
