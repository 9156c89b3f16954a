// The contract between the table of layers and their families: the list of layers, a line each.
//
// X(name, Keras' class, option table, build function, input_rank, input_min, input_max, summary)
// with tables called pen_layer_<table>_options and functions pen_layer_<function>_build, which are
// in the file of their family.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_LIST_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_LIST_H

#include <stdint.h>

#include "base/option/option.h"
#include "base/status.h"

typedef struct pen_layer_call pen_layer_call; // graph/keras_layers/layer.h
typedef struct pen_layer_result pen_layer_result;

#define PEN_LAYERS_ANY UINT32_MAX

#define PEN_LAYERS(X)                                                                              \
    X(input, "InputLayer", input, input, 0, 0, 0, "an input of the model")                         \
    X(dense, "Dense", dense, dense, 0, 1, 1, "a matrix product and a bias")                        \
    X(activation, "Activation", activation, activation, 0, 1, 1, "an activation by name")          \
    X(dropout, "Dropout", shaped_dropout, dropout, 0, 1, 1,                                        \
      "drops elements at random in training")                                                      \
    X(spatial_dropout1d, "SpatialDropout1D", dropout, spatial_dropout, 3, 1, 1,                    \
      "drops whole channels at random in training")                                                \
    X(spatial_dropout2d, "SpatialDropout2D", dropout, spatial_dropout, 4, 1, 1,                    \
      "drops whole channels at random in training")                                                \
    X(spatial_dropout3d, "SpatialDropout3D", dropout, spatial_dropout, 5, 1, 1,                    \
      "drops whole channels at random in training")                                                \
    X(gaussian_noise, "GaussianNoise", gaussian_noise, gaussian_noise, 0, 1, 1,                    \
      "adds normal numbers in training")                                                           \
    X(gaussian_dropout, "GaussianDropout", dropout, gaussian_dropout, 0, 1, 1,                     \
      "a normal factor of mean 1 for each element in training")                                    \
    X(alpha_dropout, "AlphaDropout", dropout, alpha_dropout, 0, 1, 1,                              \
      "dropout that keeps mean and variance, for selu")                                            \
    X(random_flip, "RandomFlip", random_flip, random_flip, 4, 1, 1,                                \
      "turns pictures at random in training")                                                      \
    X(activity_regularization, "ActivityRegularization", activity_regularization,                  \
      activity_regularization, 0, 1, 1, "adds what it reads to the loss")                          \
    X(identity, "Identity", identity, identity, 0, 1, 1, "what it reads")                          \
    X(shared, "", shared, shared, 0, 1, PEN_LAYERS_ANY, "a layer again, with the weights it has")  \
    X(masking, "Masking", masking, masking, 0, 1, 1, "leaves out steps of one number alone")       \
    X(flatten, "Flatten", flatten, flatten, 0, 1, 1, "all dimensions but the batch as one")        \
    X(reshape, "Reshape", reshape, reshape, 0, 1, 1, "another shape, one dimension may be -1")     \
    X(permute, "Permute", permute, permute, 0, 1, 1, "dimensions in another order, from 1")        \
    X(repeat_vector, "RepeatVector", repeat_vector, repeat_vector, 2, 1, 1, "a row n times")       \
    X(embedding, "Embedding", embedding, embedding, 0, 1, 1, "a row of a table for each index")    \
    X(rescaling, "Rescaling", rescaling, rescaling, 0, 1, 1, "x * scale + offset")                 \
    X(normalization, "Normalization", normalization, normalization, 0, 1, 1,                       \
      "less a mean, by the root of a variance")                                                    \
    X(discretization, "Discretization", discretization, discretization, 0, 1, 1,                   \
      "the index of the bin of each number")                                                       \
    X(category_encoding, "CategoryEncoding", category_encoding, category_encoding, 0, 1, 1,        \
      "indices as ones in a row of zeros")                                                         \
    X(conv1d, "Conv1D", conv1d, conv, 3, 1, 1, "convolution over a sequence")                      \
    X(conv2d, "Conv2D", conv, conv, 4, 1, 1, "convolution over a picture")                         \
    X(conv3d, "Conv3D", conv, conv, 5, 1, 1, "convolution over a volume")                          \
    X(conv1d_transpose, "Conv1DTranspose", conv_transpose, conv_transpose, 3, 1, 1,                \
      "transposed convolution over a sequence")                                                    \
    X(conv2d_transpose, "Conv2DTranspose", conv_transpose, conv_transpose, 4, 1, 1,                \
      "transposed convolution over a picture")                                                     \
    X(conv3d_transpose, "Conv3DTranspose", conv_transpose, conv_transpose, 5, 1, 1,                \
      "transposed convolution over a volume")                                                      \
    X(depthwise_conv1d, "DepthwiseConv1D", depthwise_conv, depthwise_conv, 3, 1, 1,                \
      "convolution of each channel alone")                                                         \
    X(depthwise_conv2d, "DepthwiseConv2D", depthwise_conv, depthwise_conv, 4, 1, 1,                \
      "convolution of each channel alone")                                                         \
    X(separable_conv1d, "SeparableConv1D", separable_conv, separable_conv, 3, 1, 1,                \
      "depthwise convolution, then one over channels")                                             \
    X(separable_conv2d, "SeparableConv2D", separable_conv, separable_conv, 4, 1, 1,                \
      "depthwise convolution, then one over channels")                                             \
    X(max_pooling1d, "MaxPooling1D", pooling, max_pooling, 3, 1, 1, "largest of each window")      \
    X(max_pooling2d, "MaxPooling2D", pooling, max_pooling, 4, 1, 1, "largest of each window")      \
    X(max_pooling3d, "MaxPooling3D", pooling, max_pooling, 5, 1, 1, "largest of each window")      \
    X(average_pooling1d, "AveragePooling1D", pooling, average_pooling, 3, 1, 1,                    \
      "mean of each window")                                                                       \
    X(average_pooling2d, "AveragePooling2D", pooling, average_pooling, 4, 1, 1,                    \
      "mean of each window")                                                                       \
    X(average_pooling3d, "AveragePooling3D", pooling, average_pooling, 5, 1, 1,                    \
      "mean of each window")                                                                       \
    X(global_max_pooling1d, "GlobalMaxPooling1D", global_pooling, global_max_pooling, 3, 1, 1,     \
      "largest of each channel")                                                                   \
    X(global_max_pooling2d, "GlobalMaxPooling2D", global_pooling, global_max_pooling, 4, 1, 1,     \
      "largest of each channel")                                                                   \
    X(global_average_pooling1d, "GlobalAveragePooling1D", global_pooling, global_average_pooling,  \
      3, 1, 1, "mean of each channel")                                                             \
    X(global_average_pooling2d, "GlobalAveragePooling2D", global_pooling, global_average_pooling,  \
      4, 1, 1, "mean of each channel")                                                             \
    X(global_max_pooling3d, "GlobalMaxPooling3D", global_pooling, global_max_pooling, 5, 1, 1,     \
      "largest of each channel")                                                                   \
    X(global_average_pooling3d, "GlobalAveragePooling3D", global_pooling, global_average_pooling,  \
      5, 1, 1, "mean of each channel")                                                             \
    X(batch_normalization, "BatchNormalization", batch_normalization, batch_normalization, 0, 1,   \
      1, "normalises each channel over the batch")                                                 \
    X(layer_normalization, "LayerNormalization", layer_normalization, layer_normalization, 0, 1,   \
      1, "normalises each example, or row")                                                        \
    X(group_normalization, "GroupNormalization", group_normalization, group_normalization, 0, 1,   \
      1, "normalises groups of channels of each example")                                          \
    X(rms_normalization, "RMSNormalization", rms_normalization, rms_normalization, 0, 1, 1,        \
      "by the root of the mean of the squares")                                                    \
    X(layer_scale, "LayerScale", layer_scale, layer_scale, 0, 1, 1, "a factor for each channel")   \
    X(unit_normalization, "UnitNormalization", unit_normalization, unit_normalization, 0, 1, 1,    \
      "makes rows of length 1")                                                                    \
    X(relu, "ReLU", relu, relu, 0, 1, 1, "max(x, 0), with bounds and slopes")                      \
    X(leaky_relu, "LeakyReLU", leaky_relu, leaky_relu, 0, 1, 1, "x, or alpha x below 0")           \
    X(elu, "ELU", elu, elu, 0, 1, 1, "x, or alpha (e^x - 1) below 0")                              \
    X(prelu, "PReLU", prelu, prelu, 0, 1, 1, "x, or a trained slope times x below 0")              \
    X(thresholded_relu, "ThresholdedReLU", thresholded_relu, thresholded_relu, 0, 1, 1,            \
      "x, or 0 where it is not above theta")                                                       \
    X(softmax, "Softmax", softmax, softmax, 0, 1, 1, "shares that sum to 1 over a dimension")      \
    X(add, "Add", merge, merge, 0, 2, PEN_LAYERS_ANY, "the sum of several")                        \
    X(subtract, "Subtract", merge, merge, 0, 2, 2, "the first less the second")                    \
    X(multiply, "Multiply", merge, merge, 0, 2, PEN_LAYERS_ANY, "the product of several")          \
    X(average, "Average", merge, average, 0, 2, PEN_LAYERS_ANY, "the mean of several")             \
    X(maximum, "Maximum", merge, merge, 0, 2, PEN_LAYERS_ANY, "the largest of several")            \
    X(minimum, "Minimum", merge, merge, 0, 2, PEN_LAYERS_ANY, "the smallest of several")           \
    X(concatenate, "Concatenate", concatenate, concatenate, 0, 1, PEN_LAYERS_ANY,                  \
      "several, one behind the other along a dimension")                                           \
    X(dot, "Dot", dot, dot, 0, 2, 2, "products of two, summed over a dimension of each")           \
    X(zero_padding1d, "ZeroPadding1D", zero_padding, zero_padding, 3, 1, 1, "zeros around")        \
    X(zero_padding2d, "ZeroPadding2D", zero_padding, zero_padding, 4, 1, 1, "zeros around")        \
    X(zero_padding3d, "ZeroPadding3D", zero_padding, zero_padding, 5, 1, 1, "zeros around")        \
    X(cropping1d, "Cropping1D", cropping, cropping, 3, 1, 1, "without its borders")                \
    X(cropping2d, "Cropping2D", cropping, cropping, 4, 1, 1, "without its borders")                \
    X(cropping3d, "Cropping3D", cropping, cropping, 5, 1, 1, "without its borders")                \
    X(up_sampling1d, "UpSampling1D", up_sampling, up_sampling, 3, 1, 1, "each step several times") \
    X(up_sampling2d, "UpSampling2D", up_sampling2d, up_sampling2d, 4, 1, 1,                        \
      "each row and column several times")                                                         \
    X(up_sampling3d, "UpSampling3D", up_sampling, up_sampling, 5, 1, 1,                            \
      "each plane, row and column several times")                                                  \
    X(resizing, "Resizing", resizing, resizing, 4, 1, 1, "pictures of another size")               \
    X(center_crop, "CenterCrop", center_crop, center_crop, 4, 1, 1, "the middle of pictures")      \
    X(lstm, "LSTM", lstm, recurrent, 0, 1, 3, "long short-term memory")                            \
    X(gru, "GRU", gru, recurrent, 0, 1, 2, "gated recurrent unit")                                 \
    X(simple_rnn, "SimpleRNN", simple_rnn, recurrent, 0, 1, 2, "the state goes back into itself")  \
    X(bidirectional, "Bidirectional", bidirectional, bidirectional, 0, 1, 1,                       \
      "a recurrent layer in both directions")                                                      \
    X(time_distributed, "TimeDistributed", time_distributed, time_distributed, 0, 1, 1,            \
      "a layer for every step")                                                                    \
    X(attention, "Attention", attention, attention, 0, 2, 3,                                       \
      "of a query, values and keys: values by how queries and keys agree")                         \
    X(additive_attention, "AdditiveAttention", additive_attention, additive_attention, 0, 2, 3,    \
      "the same, with sums in place of products")                                                  \
    X(multi_head_attention, "MultiHeadAttention", multi_head_attention, multi_head_attention, 0,   \
      1, 3, "attention of several heads, with trained products")                                   \
    X(group_query_attention, "GroupQueryAttention", group_query_attention, group_query_attention,  \
      0, 1, 3, "the same, with a head of keys and values for several of queries")

typedef enum pen_layer_index {
#define PEN_LAYERS_INDEX(name, class_name, table, function, rank, least, most, summary)            \
    PEN_LAYER_AT_##name,
    PEN_LAYERS(PEN_LAYERS_INDEX)
#undef PEN_LAYERS_INDEX
        PEN_LAYER_AT_END,
} pen_layer_index;

#define PEN_LAYERS_DECLARE(name, class_name, table, function, rank, least, most, summary)          \
    extern const pen_option_table pen_layer_##table##_options;                                     \
    PEN_NODISCARD pen_status pen_layer_##function##_build(const pen_layer_call *call,              \
                                                          pen_layer_result *out_result);
PEN_LAYERS(PEN_LAYERS_DECLARE)
#undef PEN_LAYERS_DECLARE

// The name in the options of `shared`.
const char *pen_layer_shared_name(const void *options);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_LIST_H
