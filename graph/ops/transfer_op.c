// Ops that move values: between layouts of one device here; between stages when there are several.

#include <stddef.h>

#include "graph/op_table.h"

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

static const pen_attribute_schema reorder_attributes[] = {
    {.name = "from_layout", .kind = PEN_ATTRIBUTE_INT, .required = true},
    {.name = "to_layout", .kind = PEN_ATTRIBUTE_INT, .required = true},
};

static const pen_op transfer_ops[] = {
    {
        .name = "reorder",
        .summary = "its input in another memory layout",
        .input_min = 1,
        .input_max = 1,
        .output_min = 1,
        .output_max = 1,
        .attributes = reorder_attributes,
        .attribute_count = 2,
        .infer = reorder_infer,
    },
};

const pen_op_family pen_transfer_family = {"transfer", transfer_ops,
                                           sizeof transfer_ops / sizeof *transfer_ops};
