// The list of layers: a line each.
//
// X(name, Keras' class, option table, build function, input_rank, input_min, input_max, summary)
// with tables called pen_layer_<table>_options and functions pen_layer_<function>_build, which are
// in the file of their family.
#ifndef PEN_GRAPH_LAYERS_LAYER_LIST_H
#define PEN_GRAPH_LAYERS_LAYER_LIST_H

#include "graph/layers/layer.h"

#define PEN_LAYERS_ANY UINT32_MAX

#define PEN_LAYERS(X)                                                                              \
    X(input, "InputLayer", input, input, 0, 0, 0, "an input of the model")                         \
    X(dense, "Dense", dense, dense, 0, 1, 1, "a matrix product and a bias")                        \
    X(activation, "Activation", activation, activation, 0, 1, 1, "an activation by name")          \
    X(dropout, "Dropout", dropout, dropout, 0, 1, 1, "drops elements at random in training")       \
    X(flatten, "Flatten", flatten, flatten, 0, 1, 1, "all dimensions but the batch as one")        \
    X(reshape, "Reshape", reshape, reshape, 0, 1, 1, "another shape, one dimension may be -1")     \
    X(permute, "Permute", permute, permute, 0, 1, 1, "dimensions in another order, from 1")        \
    X(repeat_vector, "RepeatVector", repeat_vector, repeat_vector, 2, 1, 1, "a row n times")       \
    X(embedding, "Embedding", embedding, embedding, 0, 1, 1, "a row of a table for each index")    \
    X(rescaling, "Rescaling", rescaling, rescaling, 0, 1, 1, "x * scale + offset")                 \
    X(conv1d, "Conv1D", conv1d, conv, 3, 1, 1, "convolution over a sequence")                      \
    X(conv2d, "Conv2D", conv, conv, 4, 1, 1, "convolution over a picture")                         \
    X(conv3d, "Conv3D", conv, conv, 5, 1, 1, "convolution over a volume")                          \
    X(conv1d_transpose, "Conv1DTranspose", conv_transpose, conv_transpose, 3, 1, 1,                \
      "transposed convolution over a sequence")                                                    \
    X(conv2d_transpose, "Conv2DTranspose", conv_transpose, conv_transpose, 4, 1, 1,                \
      "transposed convolution over a picture")                                                     \
    X(depthwise_conv2d, "DepthwiseConv2D", depthwise_conv2d, depthwise_conv2d, 4, 1, 1,            \
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
    X(batch_normalization, "BatchNormalization", batch_normalization, batch_normalization, 0, 1,   \
      1, "normalises each channel over the batch")

typedef enum pen_layer_index {
#define PEN_LAYERS_INDEX(name, class_name, table, function, rank, least, most, summary)            \
    PEN_LAYER_AT_##name,
    PEN_LAYERS(PEN_LAYERS_INDEX)
#undef PEN_LAYERS_INDEX
        PEN_LAYER_AT_END,
} pen_layer_index;

#define PEN_LAYERS_DECLARE(name, class_name, table, function, rank, least, most, summary)          \
    extern const pen_option_table pen_layer_##table##_options;                                     \
    PEN_NODISCARD pen_status pen_layer_##function##_build(                                         \
        pen_layer_builder *builder, const pen_layer_call *call, pen_layer_result *out_result);
PEN_LAYERS(PEN_LAYERS_DECLARE)
#undef PEN_LAYERS_DECLARE

#endif // PEN_GRAPH_LAYERS_LAYER_LIST_H
