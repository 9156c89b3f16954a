#include "graph/keras_layers/layer_window.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"

static int64_t window_pads(pen_layer_padding padding, int64_t reach, int64_t stride, int64_t size) {
    switch (padding) {
    case PEN_LAYER_PADDING_VALID:
        break;
    case PEN_LAYER_PADDING_CAUSAL:
        return reach - 1;
    case PEN_LAYER_PADDING_SAME: {
        const int64_t results = (size + stride - 1) / stride;
        const int64_t needed = (results - 1) * stride + reach - size;
        return needed > 0 ? needed : 0;
    }
    }
    return 0;
}

// From Keras' padding to pads in numbers; 'same' puts the odd one behind.
pen_status pen_layer_window_resolve(const pen_layer_window *window, const int64_t *sizes,
                                    pen_layer_window_attributes *out_attributes) {
    const uint32_t rank = window->rank;
    memcpy(out_attributes->kernel, window->kernel, sizeof window->kernel);
    memcpy(out_attributes->strides, window->strides, sizeof window->strides);
    memcpy(out_attributes->dilations, window->dilations, sizeof window->dilations);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t reach;
        if (!pen_i64_mul(window->kernel[i] - 1, window->dilations[i], &reach)) reach = INT32_MAX;
        reach += 1;
        const int64_t pads = window_pads(window->padding, reach, window->strides[i], sizes[i]);
        const bool is_same = window->padding == PEN_LAYER_PADDING_SAME;
        const int64_t room = sizes[i] + pads - reach;
        if (room < 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "a window of %" PRId64 " does not fit into %" PRId64
                             " elements of dimension %u; padding 'same' is possible",
                             reach, sizes[i], i + 1);
        }
        out_attributes->pads[i] = is_same ? pads / 2 : pads;
        out_attributes->pads[rank + i] = is_same ? pads - pads / 2 : 0;
        out_attributes->output[i] = room / window->strides[i] + 1;
    }
    out_attributes->given[0] = pen_attribute_ints("kernel_shape", rank, out_attributes->kernel);
    out_attributes->given[1] = pen_attribute_ints("strides", rank, out_attributes->strides);
    out_attributes->given[2] = pen_attribute_ints("dilations", rank, out_attributes->dilations);
    out_attributes->given[3] = pen_attribute_ints("pads", 2 * rank, out_attributes->pads);
    out_attributes->count = 4;
    return PEN_OK;
}
