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

// Between two memories, whose bytes are not looked at.
static dnnl_status_t reorder_describe(const_dnnl_memory_t from, const_dnnl_memory_t to,
                                      dnnl_primitive_desc_t *out_description) {
    pen_onednn_md from_md, to_md;
    dnnl_primitive_attr_t attributes;
    dnnl_status_t status = pen_onednn_operation_attributes(&attributes);
    if (status == dnnl_success) status = dnnl_memory_get_memory_desc(from, &from_md);
    if (status == dnnl_success) status = dnnl_memory_get_memory_desc(to, &to_md);
    if (status == dnnl_success) {
        status = dnnl_reorder_primitive_desc_create(out_description, from_md, pen_onednn_engine(),
                                                    to_md, pen_onednn_engine(), attributes);
    }
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t reorder_describe_tensors(const pen_onednn_tensor *from,
                                              const pen_onednn_tensor *to,
                                              dnnl_primitive_desc_t *out_description) {
    dnnl_memory_t from_memory = NULL, to_memory = NULL;
    dnnl_status_t status = pen_onednn_memory_create(from, pen_onednn_engine(), &from_memory);
    if (status == dnnl_success) {
        status = pen_onednn_memory_create(to, pen_onednn_engine(), &to_memory);
    }
    if (status == dnnl_success) status = reorder_describe(from_memory, to_memory, out_description);
    if (from_memory != NULL) dnnl_memory_destroy(from_memory);
    if (to_memory != NULL) dnnl_memory_destroy(to_memory);
    return status;
}

// A reorder is a primitive like any other, with both layouts given.
static pen_status reorder_prepare(const pen_cpu_request *request, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    pen_onednn_operand operands[] = {
        {.argument = DNNL_ARG_FROM, .is_output = false, .index = 0},
        {.argument = DNNL_ARG_TO, .is_output = true, .index = 0},
    };
    PEN_TRY(pen_onednn_layout_of_value(request->graph, node->inputs[0], &operands[0].lies));
    PEN_TRY(pen_onednn_layout_of_value(request->graph, node->outputs[0], &operands[1].lies));
    pen_onednn_operation_spec spec = {.operands = operands, .operand_count = 2};
    PEN_TRY(pen_onednn_status(
        reorder_describe_tensors(&operands[0].lies, &operands[1].lies, &spec.primitive),
        "making a reorder"));
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
