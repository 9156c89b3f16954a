// The table of ONNX operators, in alphabetical order, and what most conversions share.

#include <stdlib.h>
#include <string.h>

#include "graph/import/onnx/onnx_mapping.h"
#include "graph/import/onnx/onnx_tensor.h"

// What has more to say than its names.
#define OP(type, name, ...)                                                                        \
    { .op_type = (type), .op_name = (name), __VA_ARGS__ }
// One to one from operator set `first` on.
#define SAME(type, name, first) OP(type, name, .opset_first = (first))
// The same, where operator set 6 and before had hints about memory.
#define HINTED(type, name) OP(type, name, .taken = "consumed_inputs")
// Arithmetic whose operands are broadcast, from 7 on as in NumPy.
#define BROADCAST(type, name)                                                                      \
    OP(type, name, .taken = "axis broadcast consumed_inputs", .convert = pen_onnx_convert_broadcast)
#define REDUCE(type, name) OP(type, name, .taken = "axes", .convert = pen_onnx_convert_axes)
// Initial states are data, not weights.
#define RECURRENT(type, name)                                                                      \
    OP(type, #name, .taken = "activations output_sequence", .constant_inputs = 1u << 5 | 1u << 6,  \
       .convert = pen_onnx_convert_##name)
#define RANDOM(type, name, first)                                                                  \
    OP(type, name, .opset_first = (first), .taken = "dtype", .convert = pen_onnx_convert_cast)
#define WINDOW(type, name)                                                                         \
    OP(type, name, .opset_first = 17, .taken = "output_datatype",                                  \
       .convert = pen_onnx_convert_output_type)
// The domain of optimizers.
#define ONNX_TRAINING "ai.onnx.preview.training"
#define SOFTMAX(type, name) OP(type, name, .taken = "axis", .convert = pen_onnx_convert_softmax)

static const pen_onnx_mapping ops_table[] = {
    HINTED("Abs", "abs"),
    SAME("Acos", "acos", 7),
    SAME("Acosh", "acosh", 9),
    OP("Adagrad", "sub", .domain = ONNX_TRAINING, .taken = "decay_factor epsilon norm_coefficient",
       .own_arity = true, .is_several = true, .convert = pen_onnx_convert_adagrad),
    OP("Adam", "sub", .domain = ONNX_TRAINING,
       .taken = "alpha beta epsilon norm_coefficient norm_coefficient_post", .own_arity = true,
       .is_several = true, .convert = pen_onnx_convert_adam),
    BROADCAST("Add", "add"),
    BROADCAST("And", "and"),
    SAME("ArgMax", "arg_max", 1),
    SAME("ArgMin", "arg_min", 1),
    SAME("Asin", "asin", 7),
    SAME("Asinh", "asinh", 9),
    SAME("Atan", "atan", 7),
    SAME("Atanh", "atanh", 9),
    OP("Attention", "matmul",
       .taken = "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap "
                "softmax_precision=1 left_window_size=-1 right_window_size=-1",
       .opset_first = 23, .own_arity = true, .is_several = true,
       .convert = pen_onnx_convert_attention),
    SAME("AveragePool", "average_pool", 1),
    OP("BatchNormalization", "batch_normalization",
       .taken = "consumed_inputs is_test spatial=1 training_mode",
       .state_inputs = 1u << 3 | 1u << 4, .own_arity = true,
       .convert = pen_onnx_convert_batch_normalization),
    RANDOM("Bernoulli", "bernoulli", 15),
    SAME("BitShift", "bit_shift", 11),
    WINDOW("BlackmanWindow", "blackman_window"),
    OP("Cast", "cast", .taken = "round_mode saturate to", .opset_first = 6,
       .convert = pen_onnx_convert_cast),
    OP("CastLike", "cast", .taken = "round_mode saturate", .opset_first = 15, .own_arity = true,
       .convert = pen_onnx_convert_cast_like),
    HINTED("Ceil", "ceil"),
    SAME("Celu", "celu", 12),
    OP("Clip", "clip", .taken = "consumed_inputs max min", .constant_inputs = 1u << 1 | 1u << 2,
       .convert = pen_onnx_convert_clip),
    SAME("Compress", "compress", 9),
    SAME("Concat", "concat", 4),
    OP("Constant", "identity", .taken = "value value_float value_floats value_int value_ints",
       .own_arity = true, .convert = pen_onnx_convert_constant),
    OP("ConstantOfShape", "constant_of_shape", .taken = "value",
       .convert = pen_onnx_convert_constant_of_shape),
    SAME("Conv", "conv", 1),
    OP("ConvInteger", "conv", .opset_first = 10, .own_arity = true, .is_several = true,
       .convert = pen_onnx_convert_conv_integer),
    SAME("ConvTranspose", "conv_transpose", 1),
    SAME("Cos", "cos", 7),
    SAME("Cosh", "cosh", 9),
    SAME("CumSum", "cum_sum", 11),
    OP("DFT", "dft", .taken = "axis", .opset_first = 17, .constant_inputs = 1u << 2,
       .own_arity = true, .convert = pen_onnx_convert_dft),
    SAME("DepthToSpace", "depth_to_space", 1),
    OP("DequantizeLinear", "dequantize_linear", .taken = "block_size=0 output_dtype=0",
       .opset_first = 10),
    SAME("Det", "det", 11),
    BROADCAST("Div", "div"),
    OP("Dropout", "dropout", .taken = "consumed_inputs is_test ratio seed",
       .constant_inputs = 1u << 1, .own_arity = true, .convert = pen_onnx_convert_dropout),
    SAME("DynamicQuantizeLinear", "dynamic_quantize_linear", 11),
    SAME("Einsum", "einsum", 12),
    HINTED("Elu", "elu"),
    BROADCAST("Equal", "equal"),
    SAME("Erf", "erf", 9),
    HINTED("Exp", "exp"),
    SAME("Expand", "expand", 8),
    OP("EyeLike", "eye_like", .taken = "dtype", .convert = pen_onnx_convert_cast),
    SAME("Flatten", "flatten", 1),
    HINTED("Floor", "floor"),
    RECURRENT("GRU", gru),
    OP("Gather", "gather", .convert = pen_onnx_convert_gather),
    SAME("GatherElements", "gather_elements", 11),
    SAME("GatherND", "gather_nd", 11),
    SAME("Gelu", "gelu", 20),
    OP("Gemm", "gemm", .taken = "broadcast"), // it only allowed what is normal
    SAME("GlobalAveragePool", "global_average_pool", 1),
    SAME("GlobalMaxPool", "global_max_pool", 1),
    BROADCAST("Greater", "greater"),
    SAME("GreaterOrEqual", "greater_or_equal", 12),
    OP("GridSample", "grid_sample", .taken = "mode", .opset_first = 16,
       .convert = pen_onnx_convert_grid_sample),
    OP("GroupNormalization", "group_normalization", .taken = "stash_type=1", .opset_first = 18),
    WINDOW("HammingWindow", "hamming_window"),
    WINDOW("HannWindow", "hann_window"),
    HINTED("HardSigmoid", "hard_sigmoid"),
    SAME("HardSwish", "hard_swish", 14),
    SOFTMAX("Hardmax", "hardmax"),
    OP("Identity", "identity", .opset_first = 1, .convert = pen_onnx_convert_identity),
    HINTED("InstanceNormalization", "instance_normalization"),
    SAME("IsInf", "isinf", 10),
    SAME("IsNaN", "isnan", 9),
    SAME("LRN", "lrn", 1),
    RECURRENT("LSTM", lstm),
    OP("LayerNormalization", "layer_normalization", .taken = "stash_type=1", .opset_first = 17),
    HINTED("LeakyRelu", "leaky_relu"),
    BROADCAST("Less", "less"),
    SAME("LessOrEqual", "less_or_equal", 12),
    HINTED("Log", "log"),
    SOFTMAX("LogSoftmax", "log_softmax"),
    SAME("MatMul", "matmul", 1),
    OP("MatMulInteger", "matmul", .opset_first = 10, .own_arity = true, .is_several = true,
       .convert = pen_onnx_convert_matmul_integer),
    HINTED("Max", "max"),
    OP("MaxPool", "max_pool", .taken = "storage_order=0"),
    SAME("MaxUnpool", "max_unpool", 9),
    HINTED("Mean", "mean"),
    OP("MeanVarianceNormalization", "div", .taken = "axes", .opset_first = 9, .own_arity = true,
       .is_several = true, .convert = pen_onnx_convert_mean_variance),
    WINDOW("MelWeightMatrix", "mel_weight_matrix"),
    HINTED("Min", "min"),
    SAME("Mish", "mish", 18),
    SAME("Mod", "mod", 10),
    OP("Momentum", "sub", .domain = ONNX_TRAINING, .taken = "alpha beta mode norm_coefficient",
       .own_arity = true, .is_several = true, .convert = pen_onnx_convert_momentum),
    BROADCAST("Mul", "mul"),
    RANDOM("Multinomial", "multinomial", 7),
    HINTED("Neg", "neg"),
    SAME("NegativeLogLikelihoodLoss", "negative_log_likelihood_loss", 12),
    SAME("NonMaxSuppression", "non_max_suppression", 10),
    SAME("NonZero", "non_zero", 9),
    SAME("Not", "not", 1),
    OP("OneHot", "one_hot", .opset_first = 9, .constant_inputs = 1u << 2),
    BROADCAST("Or", "or"),
    OP("PRelu", "prelu", .taken = "consumed_inputs", .convert = pen_onnx_convert_broadcast),
    OP("Pad", "pad", .taken = "pads paddings value", .constant_inputs = 1u << 2 | 1u << 3,
       .own_arity = true, .convert = pen_onnx_convert_pad_axes),
    BROADCAST("Pow", "pow"),
    OP("QLinearConv", "conv", .opset_first = 10, .own_arity = true, .is_several = true,
       .convert = pen_onnx_convert_qlinear_conv),
    OP("QLinearMatMul", "quantize_linear", .opset_first = 10, .own_arity = true, .is_several = true,
       .convert = pen_onnx_convert_qlinear_matmul),
    OP("QuantizeLinear", "quantize_linear",
       .taken = "block_size=0 output_dtype=0 precision=0 saturate=1", .opset_first = 10),
    OP("RMSNormalization", "rms_normalization", .taken = "stash_type=1", .opset_first = 23),
    RECURRENT("RNN", rnn),
    RANDOM("RandomNormal", "random_normal", 1),
    RANDOM("RandomNormalLike", "random_normal_like", 1),
    RANDOM("RandomUniform", "random_uniform", 1),
    RANDOM("RandomUniformLike", "random_uniform_like", 1),
    SAME("Range", "range", 11),
    HINTED("Reciprocal", "reciprocal"),
    REDUCE("ReduceL1", "reduce_l1"),
    REDUCE("ReduceL2", "reduce_l2"),
    REDUCE("ReduceLogSum", "reduce_log_sum"),
    REDUCE("ReduceLogSumExp", "reduce_log_sum_exp"),
    REDUCE("ReduceMax", "reduce_max"),
    REDUCE("ReduceMean", "reduce_mean"),
    REDUCE("ReduceMin", "reduce_min"),
    REDUCE("ReduceProd", "reduce_prod"),
    REDUCE("ReduceSum", "reduce_sum"),
    REDUCE("ReduceSumSquare", "reduce_sum_square"),
    HINTED("Relu", "relu"),
    SAME("Reshape", "reshape", 5),
    OP("Resize", "resize", .opset_first = 10,
       .taken = "antialias=0 keep_aspect_ratio_policy=stretch", .constant_inputs = 0xe,
       .convert = pen_onnx_convert_resize),
    SAME("ReverseSequence", "reverse_sequence", 10),
    OP("RoiAlign", "roi_align", .opset_first = 10, .convert = pen_onnx_convert_roi_align),
    OP("RotaryEmbedding", "reshape", .taken = "interleaved num_heads rotary_embedding_dim",
       .opset_first = 23, .own_arity = true, .is_several = true,
       .convert = pen_onnx_convert_rotary),
    SAME("Round", "round", 11),
    OP("STFT", "stft", .opset_first = 17, .constant_inputs = 1u << 2),
    SAME("Scatter", "scatter_elements", 9),
    SAME("ScatterElements", "scatter_elements", 11),
    SAME("ScatterND", "scatter_nd", 11),
    HINTED("Selu", "selu"),
    SAME("Shape", "shape", 1),
    SAME("Shrink", "shrink", 9),
    HINTED("Sigmoid", "sigmoid"),
    SAME("Sign", "sign", 9),
    SAME("Sin", "sin", 7),
    SAME("Sinh", "sinh", 9),
    SAME("Size", "size", 1),
    OP("Slice", "slice", .taken = "axes ends starts", .own_arity = true,
       .convert = pen_onnx_convert_slice),
    SOFTMAX("Softmax", "softmax"),
    SAME("SoftmaxCrossEntropyLoss", "softmax_cross_entropy_loss", 12),
    SAME("Softplus", "softplus", 1),
    SAME("Softsign", "softsign", 1),
    SAME("SpaceToDepth", "space_to_depth", 1),
    OP("Split", "split", .taken = "num_outputs split", .convert = pen_onnx_convert_split),
    HINTED("Sqrt", "sqrt"),
    REDUCE("Squeeze", "squeeze"),
    BROADCAST("Sub", "sub"),
    HINTED("Sum", "sum"),
    SAME("Swish", "swish", 24),
    SAME("Tan", "tan", 7),
    HINTED("Tanh", "tanh"),
    SAME("ThresholdedRelu", "thresholded_relu", 10),
    SAME("Tile", "tile", 6),
    OP("TopK", "top_k", .taken = "k", .convert = pen_onnx_convert_top_k),
    SAME("Transpose", "transpose", 1),
    SAME("Trilu", "trilu", 14),
    SAME("Unique", "unique", 11),
    REDUCE("Unsqueeze", "unsqueeze"),
    OP("Upsample", "resize", .opset_first = 7, .taken = "scales", .constant_inputs = 0x2,
       .convert = pen_onnx_convert_upsample),
    SAME("Where", "where", 9),
    BROADCAST("Xor", "xor"),
};

const pen_spelling pen_onnx_spellings[] = {
    {.op_name = "mish", .chain = {"softplus", "tanh"}, .with = "mul"},
    {.op_name = "log_sigmoid", .chain = {"neg", "softplus", "neg"}},
    {.op_name = "tanh_shrink", .chain = {"tanh"}, .with = "sub"},
};
const uint32_t pen_onnx_spelling_count = sizeof pen_onnx_spellings / sizeof *pen_onnx_spellings;
#define OPS_COUNT (sizeof ops_table / sizeof ops_table[0])

static int ops_compare(const void *key, const void *entry) {
    const pen_onnx_mapping *mapping = entry;
    return strcmp(key, mapping->op_type);
}

const pen_onnx_mapping *pen_onnx_mapping_find(const char *op_type) {
    return bsearch(op_type, ops_table, OPS_COUNT, sizeof ops_table[0], ops_compare);
}

const pen_onnx_mapping *pen_onnx_mapping_of_node(const pen_onnx_node *node) {
    const pen_onnx_mapping *mapping = pen_onnx_mapping_find(node->op_type);
    if (mapping == NULL) return NULL;
    return strcmp(node->domain, mapping->domain == NULL ? "" : mapping->domain) == 0 ? mapping
                                                                                     : NULL;
}

const pen_onnx_mapping *pen_onnx_mapping_of_op(const char *op_name) {
    const bool passes = strcmp(op_name, "identity") == 0 || strcmp(op_name, "stop_gradient") == 0;
    if (passes) return pen_onnx_mapping_find("Identity");
    if (strcmp(op_name, "scatter_elements") == 0) return pen_onnx_mapping_find("ScatterElements");
    for (size_t i = 0; i < OPS_COUNT; i++) {
        if (ops_table[i].is_several) continue;
        if (strcmp(ops_table[i].op_name, op_name) == 0) return &ops_table[i];
    }
    return NULL;
}

const pen_onnx_mapping *pen_onnx_mapping_at(uint32_t index) {
    return index < OPS_COUNT ? &ops_table[index] : NULL;
}

// ---- drafts

const pen_onnx_attribute *pen_onnx_draft_attribute(const pen_onnx_draft *draft, const char *name) {
    return pen_onnx_attribute_find(draft->node, name);
}

int64_t pen_onnx_draft_int(const pen_onnx_draft *draft, const char *name, int64_t fallback) {
    const pen_onnx_attribute *attribute = pen_onnx_draft_attribute(draft, name);
    return attribute != NULL && attribute->type == PEN_ONNX_INT ? attribute->integer : fallback;
}

double pen_onnx_draft_float(const pen_onnx_draft *draft, const char *name, double fallback) {
    const pen_onnx_attribute *attribute = pen_onnx_draft_attribute(draft, name);
    return attribute != NULL && attribute->type == PEN_ONNX_FLOAT ? attribute->number : fallback;
}

bool pen_onnx_draft_has(const pen_onnx_draft *draft, uint32_t input) {
    return input < draft->input_count && pen_value_is(draft->inputs[input]);
}

bool pen_onnx_draft_rank(const pen_onnx_draft *draft, uint32_t input, uint32_t *out_rank) {
    if (!pen_onnx_draft_has(draft, input)) return false;
    const pen_tensor_type *type = pen_value_type(draft->graph, draft->inputs[input]);
    *out_rank = type->shape.rank;
    return type->element != PEN_ELEMENT_UNKNOWN;
}

void pen_onnx_draft_set_input(pen_onnx_draft *draft, uint32_t input, pen_value_id value) {
    PEN_ASSERT(input < draft->node->input_count + PEN_ONNX_DRAFT_ROOM);
    while (draft->input_count <= input) {
        draft->inputs[draft->input_count++] = PEN_VALUE_NONE;
    }
    draft->inputs[input] = value;
}

void pen_onnx_draft_add_attribute(pen_onnx_draft *draft, pen_attribute_given attribute) {
    PEN_ASSERT(draft->attribute_count < draft->node->attribute_count + PEN_ONNX_DRAFT_ROOM);
    draft->attributes[draft->attribute_count++] = attribute;
}

static pen_status draft_suffixed(const pen_onnx_draft *draft, const char *suffix,
                                 const char **out_name) {
    return pen_arena_format(pen_graph_arena(draft->graph), out_name, "%s/%s", draft->name, suffix);
}

pen_status pen_onnx_draft_list(pen_onnx_draft *draft, const char *suffix, uint32_t count,
                               const int64_t *integers, pen_value_id *out_value) {
    const char *name;
    PEN_TRY(draft_suffixed(draft, suffix, &name));
    return pen_graph_constant_ints(draft->graph, name, count, integers, out_value);
}

pen_status pen_onnx_draft_ints(pen_onnx_draft *draft, uint32_t input, const char *suffix,
                               uint32_t count, const int64_t *integers) {
    pen_value_id value;
    PEN_TRY(pen_onnx_draft_list(draft, suffix, count, integers, &value));
    pen_onnx_draft_set_input(draft, input, value);
    return PEN_OK;
}

pen_status pen_onnx_draft_floats(pen_onnx_draft *draft, uint32_t input, const char *suffix,
                                 uint32_t count, const double *numbers) {
    const char *name;
    pen_value_id value;
    float *data;
    const int64_t dim = count;
    PEN_TRY(PEN_NEW(pen_graph_arena(draft->graph), count, &data));
    for (uint32_t i = 0; i < count; i++) {
        data[i] = (float)numbers[i];
    }
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 1, &dim);
    PEN_TRY(draft_suffixed(draft, suffix, &name));
    PEN_TRY(pen_graph_constant(draft->graph, name, &type, data, &value));
    pen_onnx_draft_set_input(draft, input, value);
    return PEN_OK;
}

pen_status pen_onnx_draft_number(pen_onnx_draft *draft, uint32_t input, const char *suffix,
                                 double number) {
    const char *name;
    pen_value_id value;
    pen_element_type element = PEN_FLOAT32;
    if (pen_onnx_draft_has(draft, 0)) {
        const pen_element_type known = pen_value_type(draft->graph, draft->inputs[0])->element;
        if (known == PEN_FLOAT64) element = PEN_FLOAT64;
    }
    PEN_TRY(draft_suffixed(draft, suffix, &name));
    PEN_TRY(pen_graph_constant_number(draft->graph, name, element, number, &value));
    pen_onnx_draft_set_input(draft, input, value);
    return PEN_OK;
}

pen_status pen_onnx_draft_extra(pen_onnx_draft *draft, const pen_onnx_extra *extra,
                                pen_value_id *out_value) {
    const char *name;
    PEN_TRY(draft_suffixed(draft, extra->suffix, &name));
    pen_node_spec spec = pen_node_spec_make(extra->op_name, name);
    spec.source = draft->source;
    pen_node_spec_fill(&spec, extra->inputs, extra->attributes);
    return pen_graph_add_simple(draft->graph, &spec, out_value);
}
