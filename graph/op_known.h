// Operators that passes and others name: an op is told from others by its address,
//
//   if (node->op == PEN_OP(matmul)) …
//   pen_node_spec spec = pen_node_spec_of(PEN_OP(matmul), name);
//
// and a name that is not in the list below does not compile. The list has what somebody names, not
// all ops: adding an op needs no line here. What can be said without knowing which op it is stands
// as a fact at the op (graph/op.h).
//
// Threads: any.
#ifndef PEN_GRAPH_OP_KNOWN_H
#define PEN_GRAPH_OP_KNOWN_H

#include "graph/graph_types.h"

// clang-format off
#define PEN_KNOWN_OPS(X) \
    X(abs) X(accuracy_count) X(add) X(and) X(arg_max) X(attention) X(average_update) \
    X(batch_normalization) \
    X(batch_normalization_add_relu) X(batch_normalization_add_relu_backward) \
    X(batch_normalization_backward) X(batch_normalization_relu) \
    X(batch_normalization_relu_backward) X(binary_cross_entropy) \
    X(binary_cross_entropy_with_logits) X(cast) X(clip) X(clip_scale) X(concat) X(conv) \
    X(conv_backward_input) X(conv_backward_weight) X(copy) X(div) \
    X(dropout) X(einsum) X(equal) X(erf) X(exp) X(expand) X(fold_rows) X(gather) \
    X(gather_backward) X(gather_elements) X(gelu) X(gemm) X(global_average_pool_backward) \
    X(greater) X(group_normalization) X(hard_sigmoid) X(hard_swish) X(identity) \
    X(instance_normalization) X(kl_divergence) X(l1) X(lane_keep) X(lane_order) \
    X(lane_parameter) X(lane_stack) X(layer_normalization) X(less) X(log) X(log_softmax) X(lstm) \
    X(matmul) \
    X(max) X(mean_squared_error) X(mul) X(neg) X(negative_log_likelihood_loss) X(not) X(pow) \
    X(put_position) \
    X(receive) X(reciprocal) X(reduce_max) X(reduce_mean) X(reduce_sum) X(relu) \
    X(relu_backward) X(reorder) X(reshape) X(rms_normalization) X(round) X(rows_total) X(send) \
    X(shape) X(sigmoid) X(slice) X(smooth_l1) X(softmax) X(softmax_cross_entropy_loss) \
    X(softplus) X(split) X(sqrt) X(squared_norm) X(stack_rows) X(stop_gradient) X(sub) \
    X(swish) X(tanh) X(top_k) X(transpose) X(tree_sum) X(tree_total) X(unsqueeze) \
    X(version_gradient) X(where)
// clang-format on

#define PEN_KNOWN_MEMBER(name) PEN_KNOWN_##name,
typedef enum pen_known_op { PEN_KNOWN_OPS(PEN_KNOWN_MEMBER) PEN_KNOWN_COUNT } pen_known_op;
#undef PEN_KNOWN_MEMBER

// The op itself. For tables, which want constants: PEN_KNOWN_matmul, and this when they are read.
const pen_op *pen_op_known(pen_known_op known);
#define PEN_OP(name) pen_op_known(PEN_KNOWN_##name)

#endif // PEN_GRAPH_OP_KNOWN_H
