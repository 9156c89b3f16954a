#include "device/reference/reference_kernel.h"

#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"

#define REFERENCE_ADDRESS(name) &pen_##name##_reference,
static const pen_reference_family *const reference_families[] = {
    PEN_REFERENCE_FAMILIES(REFERENCE_ADDRESS)};

const pen_reference_kernel *pen_reference_kernel_find(const char *op_name) {
    for (size_t f = 0; f < sizeof reference_families / sizeof *reference_families; f++) {
        const pen_reference_family *family = reference_families[f];
        for (uint32_t i = 0; i < family->kernel_count; i++) {
            if (strcmp(family->kernels[i].op_name, op_name) == 0) return &family->kernels[i];
        }
    }
    return NULL;
}

const pen_tensor *pen_reference_input(const pen_reference_call *call, uint32_t input) {
    const bool is_there = input < call->node->input_count && call->inputs[input].data != NULL;
    return is_there ? &call->inputs[input] : NULL;
}

const pen_tensor *pen_reference_output(const pen_reference_call *call, uint32_t output) {
    const bool is_there = output < call->node->output_count && call->outputs[output].data != NULL;
    return is_there ? &call->outputs[output] : NULL;
}

int64_t pen_tensor_count(const pen_tensor *tensor) {
    return pen_shape_element_count(&tensor->type.shape);
}

// Runs an accumulating node: into fresh tensors, then added to the old contents.
static pen_status reference_run_adding(const pen_reference_call *call,
                                       const pen_reference_kernel *kernel) {
    const uint32_t count = call->node->output_count;
    pen_tensor *fresh;
    PEN_TRY(PEN_NEW(call->scratch, count, &fresh));
    for (uint32_t i = 0; i < count; i++) {
        fresh[i] = call->outputs[i];
        if (fresh[i].data == NULL) continue;
        char *bytes;
        PEN_TRY(PEN_NEW(call->scratch, pen_tensor_type_bytes(&fresh[i].type), &bytes));
        fresh[i].data = bytes;
    }
    pen_reference_call inner = *call;
    inner.outputs = fresh;
    PEN_TRY(kernel->run(&inner));
    for (uint32_t i = 0; i < count; i++) {
        if (fresh[i].data == NULL) continue;
        for (int64_t k = 0; k < pen_tensor_count(&fresh[i]); k++) {
            pen_tensor_set(&call->outputs[i], k,
                           pen_tensor_get(&call->outputs[i], k) + pen_tensor_get(&fresh[i], k));
        }
    }
    return PEN_OK;
}

pen_status pen_reference_run(const pen_reference_call *call, bool first_microbatch) {
    const pen_reference_kernel *kernel = pen_reference_kernel_find(call->node->op->name);
    if (kernel == NULL) {
        return pen_error(PEN_UNSUPPORTED, "the reference device has no kernel for '%s'",
                         call->node->op->name);
    }
    pen_reference_call ruled = *call;
    ruled.rule = kernel->rule;
    if (call->node->accumulates && !first_microbatch) return reference_run_adding(&ruled, kernel);
    return kernel->run(&ruled);
}

void pen_broadcast_start(pen_broadcast_walk *walk, const pen_shape *shape, uint32_t operand_count,
                         const pen_shape *const *operand_shapes) {
    PEN_ASSERT(operand_count <= PEN_BROADCAST_OPERANDS);
    memset(walk, 0, sizeof *walk);
    walk->shape = *shape;
    walk->operand_count = operand_count;
    walk->count = pen_shape_element_count(shape);
    for (uint32_t o = 0; o < operand_count; o++) {
        const pen_shape *operand = operand_shapes[o];
        PEN_ASSERT(operand->rank <= shape->rank);
        int64_t stride = 1;
        for (uint32_t i = 0; i < operand->rank; i++) { // counted from the last dimension
            const int64_t dim = operand->dims[operand->rank - 1 - i];
            walk->strides[o][shape->rank - 1 - i] = dim == 1 ? 0 : stride;
            stride *= dim;
        }
    }
}

void pen_broadcast_next(pen_broadcast_walk *walk) {
    walk->position += 1;
    for (uint32_t d = walk->shape.rank; d-- > 0;) {
        walk->at[d] += 1;
        for (uint32_t o = 0; o < walk->operand_count; o++) {
            walk->index[o] += walk->strides[o][d];
        }
        if (walk->at[d] < walk->shape.dims[d]) return;
        for (uint32_t o = 0; o < walk->operand_count; o++) {
            walk->index[o] -= walk->strides[o][d] * walk->shape.dims[d];
        }
        walk->at[d] = 0;
    }
}
