// Sums of products by an equation: a loop over the result, and one over what is summed.

#include "device/reference/reference_kernel.h"
#include "graph/ops/product/einsum_equation.h"

typedef struct einsum_loops {
    pen_einsum einsum;
    uint32_t label_count;
    uint8_t labels[PEN_EINSUM_LABELS]; // those of the result, then the summed ones
    uint32_t output_count;
    int64_t strides[PEN_EINSUM_OPERANDS_LIMIT][PEN_EINSUM_LABELS]; // by position in `labels`
} einsum_loops;

static void einsum_add_label(einsum_loops *loops, uint8_t label) {
    for (uint32_t i = 0; i < loops->label_count; i++) {
        if (loops->labels[i] == label) return;
    }
    loops->labels[loops->label_count++] = label;
}

static void einsum_find_strides(einsum_loops *loops, uint32_t operand, const pen_shape *shape) {
    const pen_einsum_term *term = &loops->einsum.operands[operand];
    int64_t stride = 1;
    for (uint32_t d = term->rank; d-- > 0;) {
        for (uint32_t i = 0; i < loops->label_count; i++) {
            // a label that is there twice goes along the diagonal
            const bool moves = loops->labels[i] == term->labels[d] && shape->dims[d] != 1;
            if (moves) loops->strides[operand][i] += stride;
        }
        stride *= shape->dims[d];
    }
}

static pen_status einsum_init(const pen_reference_call *call, einsum_loops *loops) {
    PEN_TRY(pen_einsum_of(call->graph, call->node, &loops->einsum));
    const pen_einsum_term *output = &loops->einsum.output;
    for (uint32_t d = 0; d < output->rank; d++) {
        einsum_add_label(loops, output->labels[d]);
    }
    loops->output_count = loops->label_count;
    for (uint32_t o = 0; o < loops->einsum.operand_count; o++) {
        for (uint32_t d = 0; d < loops->einsum.operands[o].rank; d++) {
            einsum_add_label(loops, loops->einsum.operands[o].labels[d]);
        }
    }
    for (uint32_t o = 0; o < loops->einsum.operand_count; o++) {
        einsum_find_strides(loops, o, &call->inputs[o].type.shape);
    }
    return PEN_OK;
}

// One step over labels [first, end), the last one fastest. False: all have been seen.
static bool einsum_step(const einsum_loops *loops, uint32_t first, uint32_t end, int64_t *at,
                        int64_t *index) {
    for (uint32_t i = end; i-- > first;) {
        const int64_t size = loops->einsum.sizes[loops->labels[i]];
        at[i]++;
        for (uint32_t o = 0; o < loops->einsum.operand_count; o++) {
            index[o] += loops->strides[o][i];
        }
        if (at[i] < size) return true;
        at[i] = 0;
        for (uint32_t o = 0; o < loops->einsum.operand_count; o++) {
            index[o] -= loops->strides[o][i] * size;
        }
    }
    return false;
}

// Loops over all labels, as the definition says; integers are multiplied unsigned, where they may
// wrap.
static pen_status einsum_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const bool is_float = pen_element_is_float(y->type.element);
    einsum_loops *loops;
    int64_t at[PEN_EINSUM_LABELS] = {0}, index[PEN_EINSUM_OPERANDS_LIMIT] = {0};
    PEN_TRY(PEN_NEW(call->scratch, 1, &loops));
    PEN_TRY(einsum_init(call, loops));
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        double sum = 0;
        uint64_t integer_sum = 0;
        do {
            double product = 1;
            uint64_t integer = 1;
            for (uint32_t o = 0; o < loops->einsum.operand_count; o++) {
                if (is_float) {
                    product *= pen_tensor_get(&call->inputs[o], index[o]);
                } else {
                    integer *= (uint64_t)pen_tensor_get_int(&call->inputs[o], index[o]);
                }
            }
            sum += product;
            integer_sum += integer;
        } while (einsum_step(loops, loops->output_count, loops->label_count, at, index));
        if (is_float) {
            pen_tensor_set(y, k, sum);
        } else {
            pen_tensor_set_int(y, k, (int64_t)integer_sum);
        }
        einsum_step(loops, 0, loops->output_count, at, index);
    }
    return PEN_OK;
}

static const pen_reference_kernel einsum_kernels[] = {
    {"einsum", einsum_run, NULL},
};

PEN_REFERENCE_FAMILY(einsum);
