// Ops that move values: between layouts of one device, between devices, and into a device's own
// copy of a parameter.
//
// `send` and `receive` are the ends of a channel (graph/passes/cut/cut_stages.h): whoever runs a
// part moves the bytes; no kernel does.

#include "graph/graph.h"
#include "graph/ops/shared/infer_checks.h"

static pen_status reorder_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const char *const names[] = {"from_layout", "to_layout"};
    for (int i = 0; i < 2; i++) {
        const int64_t layout = pen_node_int(node, names[i]);
        if (layout < 0 || layout > UINT16_MAX) {
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "%s is %lld, layouts are numbers from 0 to %d", names[i],
                                   (long long)layout, UINT16_MAX);
        }
    }
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

static pen_status copy_infer(pen_infer_context *context) {
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

static pen_status transfer_check_channel(const pen_infer_context *context) {
    const int64_t channel = pen_node_int(pen_infer_node(context), "channel");
    if (channel >= 0 && channel < UINT32_MAX) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "channel is %lld, channels are numbers from 0 on", (long long)channel);
}

static pen_status send_infer(pen_infer_context *context) {
    return transfer_check_channel(context);
}

static pen_status receive_infer(pen_infer_context *context) {
    pen_element_type element;
    uint32_t rank;
    PEN_TRY(transfer_check_channel(context));
    const pen_node *node = pen_infer_node(context);
    PEN_TRY(pen_infer_wrap(context, pen_element_find(pen_node_text(node, "element"), &element)));
    const int64_t *dims = pen_node_ints(node, "shape", &rank);
    if (rank > PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the shape has %u dimensions, at most %d are possible", rank,
                               PEN_RANK_LIMIT);
    }
    const pen_tensor_type type = pen_tensor_type_make(element, rank, dims);
    return pen_infer_set(context, 0, &type);
}

static const pen_attribute_schema send_attributes[] = {
    PEN_MUST("channel", INT),
};

static const pen_attribute_schema receive_attributes[] = {
    PEN_MUST("channel", INT), PEN_MUST("element", TEXT),
    PEN_MAY("shape", INTS), // left out: a scalar
};

static const pen_attribute_schema reorder_attributes[] = {
    PEN_MUST("from_layout", INT),
    PEN_MUST("to_layout", INT),
};

static const pen_op transfer_ops[] = {
    {"reorder", "its input in another memory layout", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(reorder_attributes), .infer = reorder_infer},
    {"copy", "its input, in memory of its own", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     .infer = copy_infer},
    {"send", "its input goes to another device", PEN_TAKES(1, 1), PEN_ATTRIBUTES(send_attributes),
     .infer = send_infer},
    {"receive", "what comes from another device", PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(receive_attributes), .infer = receive_infer},
};

PEN_OP_FAMILY(transfer);
