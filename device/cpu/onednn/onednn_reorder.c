// Reorders between the cpu device's layouts, by oneDNN.
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/onednn/onednn_layout.h"
#include "device/cpu/onednn/onednn_operation.h"
#include "graph/graph.h"

static bool reorder_supports(const pen_cpu_request *request) {
    const pen_value *x = pen_graph_value(request->graph, request->node->inputs[0]);
    const pen_value *y = pen_graph_value(request->graph, request->node->outputs[0]);
    return x->type.element == PEN_FLOAT32 && pen_shape_element_count(&x->type.shape) > 0 &&
           x->type.shape.rank >= 3 && x->type.shape.rank <= 5 && x->layout < PEN_CPU_LAYOUT_COUNT &&
           y->layout < PEN_CPU_LAYOUT_COUNT;
}

static bool copy_supports(const pen_cpu_request *request) {
    const pen_value *x = pen_graph_value(request->graph, request->node->inputs[0]);
    const pen_value *y = pen_graph_value(request->graph, request->node->outputs[0]);
    return reorder_supports(request) && x->layout != PEN_LAYOUT_PLAIN && x->layout == y->layout;
}

// A reorder is a primitive like any other, with both layouts given.
static pen_status reorder_prepare(const pen_cpu_request *request, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    pen_onednn_operand operands[] = {
        {.argument = DNNL_ARG_FROM, .is_output = false, .index = 0},
        {.argument = DNNL_ARG_TO, .is_output = true, .index = 0},
    };
    PEN_TRY(pen_onednn_layout_md_of_value(request->graph, node->inputs[0], &operands[0].lies));
    PEN_TRY(pen_onednn_layout_md_of_value(request->graph, node->outputs[0], &operands[1].lies));
    pen_onednn_operation_spec spec = {.operands = operands, .operand_count = 2};
    dnnl_primitive_attr_t attributes;
    dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
        if (status == dnnl_success) {
            status = dnnl_reorder_primitive_desc_create(&spec.primitive, &operands[0].lies,
                                                        pen_onednn_engine(), &operands[1].lies,
                                                        pen_onednn_engine(), attributes);
        }
        dnnl_primitive_attr_destroy(attributes);
    }
    PEN_TRY(pen_onednn_status(status, "making a reorder"));
    pen_onednn_operation *operation;
    PEN_TRY(pen_onednn_operation_make(request, &spec, &operation, out_workspace_bytes));
    *out_state = operation;
    return PEN_OK;
}

static const pen_cpu_kernel onednn_reorder_kernels[] = {
    {PEN_CPU_ENTRY("reorder", "onednn", reorder_supports, reorder_prepare,
                   pen_onednn_operation_run),
     .release = pen_onednn_operation_release},
    // in a layout of its own; plain ones are the reference kernel's
    {PEN_CPU_ENTRY("copy", "onednn", copy_supports, reorder_prepare, pen_onednn_operation_run),
     .release = pen_onednn_operation_release},
};

PEN_CPU_FAMILY_OF(onednn_reorder);
