// Reference kernels: one function an op, scalar, written for the eye.
//
// They are the oracle of every other device, and what folds constants at compile time. They
// accept every element type that the op allows: arithmetic on floating types is done in double
// and rounded once at the store; on integer types in int64 (so results are exact and wrap).
//
// Threads: pure functions of their call.
#ifndef PEN_DEVICE_REFERENCE_REFERENCE_KERNEL_H
#define PEN_DEVICE_REFERENCE_REFERENCE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

// A tensor in host memory, dense and row-major.
typedef struct pen_tensor {
    pen_tensor_type type;
    void *data; // NULL: an optional operand left out
} pen_tensor;

typedef struct pen_reference_call {
    const pen_graph *graph;
    const pen_node *node;
    const pen_tensor *inputs;  // [node->input_count]
    const pen_tensor *outputs; // [node->output_count]; contents undefined before the call
    pen_arena *scratch;        // released after the call
    uint64_t seed; // random ops: {seed, pen_random_stream(pen_node_stream(node), step, microbatch)}
    uint64_t step;
    uint64_t microbatch;
    uint32_t lane; // these as in pen_run_context
    uint32_t lane_count;
    uint32_t microbatch_count;
    uint64_t order;
    bool ends_lane;
    const void *rule; // the kernel's
} pen_reference_call;

typedef struct pen_reference_kernel {
    const char *op_name;
    pen_status (*run)(const pen_reference_call *call);
    const void
        *rule; // what `run` needs to know to be this kernel, where it serves several; or NULL
} pen_reference_kernel;

typedef struct pen_reference_family {
    const pen_reference_kernel *kernels; // [kernel_count]
    uint32_t kernel_count;
} pen_reference_family;

// Defines the family `name` of the table <name>_kernels, with which its file ends.
#define PEN_REFERENCE_FAMILY(name)                                                                 \
    const pen_reference_family pen_##name##_reference = {                                          \
        name##_kernels, sizeof name##_kernels / sizeof *name##_kernels}

// The address of a rule, for a row of such a table.
#define PEN_REFERENCE_RULE(type, ...) (&(const type){__VA_ARGS__})

// clang-format off
#define PEN_REFERENCE_FAMILIES(X)                                                                  \
    X(elementwise) X(unary) X(activation) X(gelu) X(comparison) X(reduction) X(softmax) X(loss)    \
    X(matmul) X(convolution) X(pooling) X(normalization) X(layer_norm) X(dropout) X(reshape)       \
    X(movement) X(slice) X(indexing) X(constant) X(optimizer) X(recurrent) X(attention) X(series)  \
    X(selection) X(einsum) X(resize) X(quantization) X(random) X(spectrum) X(unpool)     \
    X(tree) X(version)
// clang-format on
#define PEN_REFERENCE_DECLARE(name) extern const pen_reference_family pen_##name##_reference;
PEN_REFERENCE_FAMILIES(PEN_REFERENCE_DECLARE)

// NULL when no kernel has that op.
const pen_reference_kernel *pen_reference_kernel_find(const char *op_name);

// Runs one node on host tensors. A node that accumulates is handled here: its outputs become
// old + new, unless `first_microbatch`. UNSUPPORTED when there is no kernel for the op.
PEN_NODISCARD pen_status pen_reference_run(const pen_reference_call *call, bool first_microbatch);

// An operand, or NULL where it is left out; the same for a result that nobody wants.
const pen_tensor *pen_reference_input(const pen_reference_call *call, uint32_t input);
const pen_tensor *pen_reference_output(const pen_reference_call *call, uint32_t output);

// Element `index` as pen_element_read and the others there have it.
static inline double pen_tensor_get(const pen_tensor *tensor, int64_t index) {
    return pen_element_read(tensor->type.element, tensor->data, index);
}
static inline void pen_tensor_set(const pen_tensor *tensor, int64_t index, double number) {
    pen_element_write(tensor->type.element, tensor->data, index, number);
}
static inline int64_t pen_tensor_get_int(const pen_tensor *tensor, int64_t index) {
    return pen_element_read_int(tensor->type.element, tensor->data, index);
}
static inline void pen_tensor_set_int(const pen_tensor *tensor, int64_t index, int64_t number) {
    pen_element_write_int(tensor->type.element, tensor->data, index, number);
}
int64_t pen_tensor_count(const pen_tensor *tensor);

// Walks all positions of `shape` in row-major order. For each operand, index[i] follows its own
// strides with dimensions of size 1 (or missing in front) repeated: NumPy's broadcasting.
//   pen_broadcast_walk walk;
//   for (pen_broadcast_start(&walk, &out->type.shape, 2, shapes); pen_broadcast_more(&walk);
//        pen_broadcast_next(&walk)) … walk.index[0], walk.index[1], walk.position
#define PEN_BROADCAST_OPERANDS 4
typedef struct pen_broadcast_walk {
    pen_shape shape;
    uint32_t operand_count;
    int64_t strides[PEN_BROADCAST_OPERANDS][PEN_RANK_LIMIT];
    int64_t at[PEN_RANK_LIMIT];
    int64_t index[PEN_BROADCAST_OPERANDS];
    int64_t position; // in row-major order of `shape`
    int64_t count;
} pen_broadcast_walk;
void pen_broadcast_start(pen_broadcast_walk *walk, const pen_shape *shape, uint32_t operand_count,
                         const pen_shape *const *operand_shapes);
void pen_broadcast_next(pen_broadcast_walk *walk);
static inline bool pen_broadcast_more(const pen_broadcast_walk *walk) {
    return walk->position < walk->count;
}

#endif // PEN_DEVICE_REFERENCE_REFERENCE_KERNEL_H
