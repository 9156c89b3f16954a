#!/usr/bin/env python3
"""Makes layers.json: models of layers, written as in a job, and what Keras 2.12 makes of them.

Each case is built from its YAML alone: a layer's name chooses Keras' class, its mapping the class's
arguments. Weights and inputs are random, with few digits. Outputs are those of inference; where a
case trains, also the moving statistics after one step.
Needs TensorFlow 2.12: make_layers.py tests/reference/layers/layers.json
"""
import json
import sys

import numpy as np
import tensorflow as tf
import yaml

K = tf.keras.layers
CLASSES = {}
for attribute in dir(K):
    if not isinstance(getattr(K, attribute), type):
        continue
    CLASSES[attribute.lower()] = getattr(K, attribute)

CASES = {
    "dense": "{input: {shape: [5]}}|{dense: {units: 3, activation: relu}}",
    "dense_steps": "{input: {shape: [4, 5]}}|{dense: {units: 3, use_bias: false, activation: softmax}}",
    "dense_picture": "{input: {shape: [5, 5, 2]}}|{conv2d: {filters: 3, kernel_size: 2}}|{dense: {units: 2}}",
    "activations": "{input: {shape: [6]}}|{activation: {activation: selu}}|{activation: {activation: hard_sigmoid}}"
                   "|{activation: {activation: softplus}}|{activation: {activation: softsign}}|{activation: {activation: elu}}"
                   "|{activation: {activation: tanh}}|{activation: {activation: exponential}}|{activation: {activation: sigmoid}}",
    "swish": "{input: {shape: [6]}}|{activation: {activation: swish}}",
    "gelu": "{input: {shape: [6]}}|{activation: {activation: gelu}}",
    "relu6": "{input: {shape: [6]}}|{activation: {activation: relu6}}",
    "leaky_relu_name": "{input: {shape: [6]}}|{activation: {activation: leaky_relu}}",
    "log_softmax": "{input: {shape: [6]}}|{activation: {activation: log_softmax}}",
    "softmax_picture": "{input: {shape: [3, 3, 2]}}|{conv2d: {filters: 4, kernel_size: 2, activation: softmax}}",
    "dropout": "{input: {shape: [4]}}|{dropout: {rate: 0.5}}|{dense: {units: 2}}",
    "flatten": "{input: {shape: [4, 4, 2]}}|{conv2d: {filters: 3, kernel_size: 2}}|{flatten: {}}|{dense: {units: 2}}",
    "flatten_first": "{input: {shape: [2, 3, 4]}}|{flatten: {data_format: channels_first}}",
    "reshape": "{input: {shape: [3, 4]}}|{reshape: {target_shape: [2, -1, 2]}}|{permute: {dims: [3, 1, 2]}}",
    "repeat_vector": "{input: {shape: [3]}}|{repeat_vector: {n: 4}}",
    "embedding": "{input: {shape: [5], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3}}",
    "rescaling": "{input: {shape: [3]}}|{rescaling: {scale: 0.5, offset: -1}}",
    "conv1d": "{input: {shape: [8, 3]}}|{conv1d: {filters: 4, kernel_size: 3, strides: 2, activation: tanh}}",
    "conv1d_causal": "{input: {shape: [8, 3]}}|{conv1d: {filters: 4, kernel_size: 3, padding: causal, dilation_rate: 2}}",
    "conv2d": "{input: {shape: [7, 6, 3]}}|{conv2d: {filters: 4, kernel_size: [3, 2], strides: 2, padding: same}}",
    "conv2d_dilated": "{input: {shape: [9, 9, 2]}}|{conv2d: {filters: 3, kernel_size: 3, dilation_rate: 2, activation: relu}}",
    "conv2d_groups": "{input: {shape: [5, 5, 4]}}|{conv2d: {filters: 6, kernel_size: 3, groups: 2, use_bias: false}}",
    "conv3d": "{input: {shape: [4, 4, 4, 2]}}|{conv3d: {filters: 3, kernel_size: 2, padding: same}}",
    "conv1d_transpose": "{input: {shape: [4, 3]}}|{conv1d_transpose: {filters: 2, kernel_size: 3, strides: 2, padding: same}}",
    "conv2d_transpose": "{input: {shape: [4, 4, 3]}}|{conv2d_transpose: {filters: 2, kernel_size: 3, strides: 2}}",
    "conv2d_transpose_same": "{input: {shape: [4, 3, 3]}}|{conv2d_transpose: {filters: 2, kernel_size: 4, strides: 2, padding: same}}",
    "conv2d_transpose_small": "{input: {shape: [3, 3, 2]}}|{conv2d_transpose: {filters: 2, kernel_size: 2, strides: 3}}",
    "conv2d_transpose_padding": "{input: {shape: [4, 4, 3]}}|{conv2d_transpose: {filters: 2, kernel_size: 3, strides: 2, padding: same, output_padding: 1}}",
    "conv3d_transpose": "{input: {shape: [2, 3, 2, 2]}}|{conv3d_transpose: {filters: 2, kernel_size: 2, strides: 2}}",
    "spatial_dropout1d": "{input: {shape: [4, 2]}}|{spatial_dropout1d: {rate: 0.5}}|{dense: {units: 2}}",
    "spatial_dropout2d": "{input: {shape: [3, 3, 2]}}|{spatial_dropout2d: {rate: 0.5}}",
    "depthwise_conv2d": "{input: {shape: [6, 6, 3]}}|{depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2, padding: same}}",
    "separable_conv1d": "{input: {shape: [6, 3]}}|{separable_conv1d: {filters: 4, kernel_size: 3}}",
    "separable_conv2d": "{input: {shape: [6, 6, 3]}}|{separable_conv2d: {filters: 4, kernel_size: 3, depth_multiplier: 2}}",
    "max_pooling1d": "{input: {shape: [7, 3]}}|{max_pooling1d: {pool_size: 2}}",
    "max_pooling2d": "{input: {shape: [7, 7, 2]}}|{max_pooling2d: {pool_size: 3, strides: 2, padding: same}}",
    "max_pooling3d": "{input: {shape: [4, 4, 4, 2]}}|{max_pooling3d: {}}",
    "average_pooling1d": "{input: {shape: [7, 3]}}|{average_pooling1d: {pool_size: 3, strides: 1, padding: same}}",
    "average_pooling2d": "{input: {shape: [7, 7, 2]}}|{average_pooling2d: {pool_size: [2, 3], strides: 2, padding: same}}",
    "average_pooling3d": "{input: {shape: [4, 4, 4, 2]}}|{average_pooling3d: {}}",
    "global_max_pooling1d": "{input: {shape: [5, 3]}}|{global_max_pooling1d: {}}",
    "global_max_pooling2d": "{input: {shape: [5, 4, 3]}}|{global_max_pooling2d: {keepdims: true}}",
    "global_average_pooling1d": "{input: {shape: [5, 3]}}|{global_average_pooling1d: {}}",
    "global_average_pooling2d": "{input: {shape: [5, 4, 3]}}|{global_average_pooling2d: {}}",
    "batch_normalization": "{input: {shape: [4, 3, 2]}}|{batch_normalization: {}}",
    "batch_normalization_rows": "{input: {shape: [3]}}|{batch_normalization: {momentum: 0.8, scale: false}}",
    "global_max_pooling3d": "{input: {shape: [2, 3, 2, 2]}}|{global_max_pooling3d: {}}",
    "global_average_pooling3d": "{input: {shape: [2, 3, 2, 2]}}|{global_average_pooling3d: {}}",
    "layer_normalization": "{input: {shape: [4, 6]}}|{layer_normalization: {}}",
    "layer_normalization_axes": "{input: {shape: [2, 3, 4]}}|{layer_normalization: {axis: [-2, -1], center: false, epsilon: 0.01}}",
    "group_normalization": "{input: {shape: [3, 3, 6]}}|{group_normalization: {groups: 3}}",
    "relu": "{input: {shape: [8]}}|{relu: {}}",
    "relu_bounds": "{input: {shape: [8]}}|{relu: {max_value: 1, negative_slope: 0.1}}",
    "relu_most": "{input: {shape: [8]}}|{relu: {max_value: 1}}",
    "leaky_relu": "{input: {shape: [8]}}|{leaky_relu: {}}",
    "elu": "{input: {shape: [8]}}|{elu: {alpha: 0.5}}",
    "prelu": "{input: {shape: [3, 4]}}|{prelu: {shared_axes: 1}}",
    "thresholded_relu": "{input: {shape: [8]}}|{thresholded_relu: {}}",
    "softmax": "{input: {shape: [3, 4]}}|{softmax: {axis: 1}}",
    "add": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{add: {from: [a, b]}}",
    "add_pictures": "{input: {shape: [4, 4, 2]}}|{conv2d: {filters: 2, kernel_size: 3, padding: same, name: c}}|{add: {from: [c, input]}}",
    "add_convolutions": "{input: {shape: [4, 4, 2]}}|{conv2d: {filters: 3, kernel_size: 3, padding: same, name: c}}"
                        "|{conv2d: {filters: 3, kernel_size: 1, name: d, from: input}}|{add: {from: [c, d]}}",
    "subtract": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{subtract: {from: [a, b]}}",
    "multiply": "{input: {name: a, shape: [4, 3]}}|{input: {name: b, shape: [1, 3]}}|{multiply: {from: [a, b]}}",
    "average": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{average: {from: [a, b, a]}}",
    "maximum": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{maximum: {from: [a, b]}}",
    "minimum": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{minimum: {from: [a, b]}}",
    "concatenate": "{input: {shape: [4, 4, 2]}}|{conv2d: {filters: 3, kernel_size: 3, padding: same, name: c}}"
                   "|{conv2d: {filters: 2, kernel_size: 1, name: d, from: input}}|{concatenate: {from: [c, d]}}",
    "concatenate_rows": "{input: {shape: [4, 3, 2]}}|{conv2d: {filters: 2, kernel_size: 2, name: c}}"
                        "|{conv2d: {filters: 2, kernel_size: [1, 2], name: d, from: input}}|{concatenate: {from: [c, d], axis: 1}}",
    "dot": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{dot: {from: [a, b], axes: 1}}",
    "dot_steps": "{input: {name: a, shape: [3, 4]}}|{input: {name: b, shape: [4, 2]}}|{dot: {from: [a, b], axes: [2, 1]}}",
    "dot_columns": "{input: {name: a, shape: [3, 4]}}|{input: {name: b, shape: [5, 4]}}|{dot: {from: [a, b], axes: 2}}",
    "zero_padding1d": "{input: {shape: [3, 2]}}|{zero_padding1d: {padding: [1, 2]}}",
    "zero_padding2d": "{input: {shape: [3, 2, 2]}}|{zero_padding2d: {padding: [1, 2, 0, 3]}}",
    "zero_padding3d": "{input: {shape: [2, 2, 2, 2]}}|{zero_padding3d: {}}",
    "cropping1d": "{input: {shape: [5, 2]}}|{cropping1d: {cropping: [1, 2]}}",
    "cropping2d": "{input: {shape: [4, 5, 2]}}|{cropping2d: {cropping: [1, 0, 2, 1]}}",
    "cropping3d": "{input: {shape: [3, 3, 4, 2]}}|{cropping3d: {}}",
    "up_sampling1d": "{input: {shape: [3, 2]}}|{up_sampling1d: {size: 3}}",
    "up_sampling2d": "{input: {shape: [2, 3, 2]}}|{up_sampling2d: {size: [2, 3]}}",
    "lstm": "{input: {shape: [4, 3]}}|{lstm: {units: 2}}",
    "lstm_sequences": "{input: {shape: [4, 3]}}|{lstm: {units: 2, return_sequences: true, recurrent_activation: hard_sigmoid}}",
    "lstm_backwards": "{input: {shape: [4, 3]}}|{lstm: {units: 2, return_sequences: true, go_backwards: true, use_bias: false}}",
    "lstm_states": "{input: {shape: [4, 3]}}|{lstm: {units: 2, return_state: true, name: l}}|{lstm: {units: 2, from: [input, 'l:1', 'l:2']}}",
    "gru": "{input: {shape: [4, 3]}}|{gru: {units: 2}}",
    "gru_before": "{input: {shape: [4, 3]}}|{gru: {units: 2, reset_after: false, return_sequences: true}}",
    "simple_rnn": "{input: {shape: [4, 3]}}|{simple_rnn: {units: 2, activation: relu}}",
    "bidirectional": "{input: {shape: [4, 3]}}|{bidirectional: {layer: {lstm: {units: 2}}}}",
    "bidirectional_sequences": "{input: {shape: [4, 3]}}|{bidirectional: {layer: {gru: {units: 2, return_sequences: true}}}}",
    "bidirectional_sum": "{input: {shape: [4, 3]}}|{bidirectional: {layer: {simple_rnn: {units: 2, return_sequences: true}}, merge_mode: sum}}",
    "bidirectional_mean": "{input: {shape: [4, 3]}}|{bidirectional: {layer: {lstm: {units: 2}}, merge_mode: ave}}",
    "time_distributed": "{input: {shape: [2, 5, 5, 2]}}|{time_distributed: {layer: {conv2d: {filters: 3, kernel_size: 2}}}}"
                        "|{time_distributed: {layer: {flatten: {}}}}|{time_distributed: {layer: {dense: {units: 2}}}}",
    "attention": "{input: {name: q, shape: [3, 4]}}|{input: {name: v, shape: [5, 4]}}|{attention: {from: [q, v], use_scale: true}}",
    "attention_keys": "{input: {name: q, shape: [3, 4]}}|{input: {name: v, shape: [5, 2]}}|{input: {name: k, shape: [5, 4]}}|{attention: {from: [q, v, k]}}",
    "multi_head_attention": "{input: {shape: [4, 6]}}|{multi_head_attention: {num_heads: 2, key_dim: 3}}",
    "multi_head_attention_causal": "{input: {shape: [4, 6]}}|{multi_head_attention: {num_heads: 2, key_dim: 3, value_dim: 2, causal: true, use_bias: false}}",
    "multi_head_attention_cross": "{input: {name: q, shape: [3, 4]}}|{input: {name: v, shape: [5, 2]}}|{multi_head_attention: {from: [q, v], num_heads: 2, key_dim: 3}}",
    "spatial_dropout3d": "{input: {shape: [2, 2, 3, 2]}}|{spatial_dropout3d: {rate: 0.5}}",
    "gaussian_noise": "{input: {shape: [3]}}|{gaussian_noise: {stddev: 0.5}}|{gaussian_dropout: {rate: 0.5}}|{alpha_dropout: {rate: 0.5}}",
    "random_flip": "{input: {shape: [3, 4, 2]}}|{random_flip: {mode: horizontal}}|{random_flip: {}}",
    "activity_regularization": "{input: {shape: [3]}}|{activity_regularization: {l1: 0.1, l2: 0.2}}|{dense: {units: 2, activity_regularizer: {l2: 0.1}}}",
    "shared": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{dense: {units: 2, from: a, name: d}}|{dense: {units: 2, name: e}}|{shared: {layer: d, from: b, name: f}}|{shared: {layer: e, name: g}}|{subtract: {from: [e, g]}}",
    "identity": "{input: {shape: [3]}}|{identity: {}}",
    "masking": "{input: {shape: [4, 2]}}|{masking: {}}|{lstm: {units: 3, return_sequences: true}}|{gru: {units: 2}}",
    "masking_value": "{input: {shape: [4, 2]}}|{masking: {mask_value: -1}}|{simple_rnn: {units: 3, go_backwards: true, return_sequences: true}}",
    "mask_embedding": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{bidirectional: {layer: {lstm: {units: 2, return_sequences: true}}}}"
                      "|{bidirectional: {layer: {gru: {units: 2}}, merge_mode: sum}}",
    "mask_bidirectional": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{bidirectional: {layer: {lstm: {units: 2, return_sequences: true}}, merge_mode: ave}}",
    "mask_zeros": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{lstm: {units: 2, return_sequences: true, zero_output_for_mask: true}}",
    "mask_backwards": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{gru: {units: 2, return_sequences: true, go_backwards: true, reset_after: false}}",
    "mask_states": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: e}}|{lstm: {units: 2, return_state: true, name: l}}|{lstm: {units: 2, return_sequences: true, from: [e, 'l:1', 'l:2']}}",
    "pooling_masked": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{dense: {units: 2, activation: tanh}}|{dropout: {rate: 0.5}}|{global_average_pooling1d: {}}",
    "mask_time_distributed": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{time_distributed: {layer: {dense: {units: 2}}}}|{lstm: {units: 2}}",
    "mask_layer_normalization": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{layer_normalization: {}}|{gru: {units: 2}}",
    "mask_attention": "{input: {name: a, shape: [4], dtype: int64}}|{input: {name: b, shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: q, from: a}}"
                      "|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: v, from: b}}|{attention: {from: [q, v]}}|{global_average_pooling1d: {}}",
    "mask_attention_causal": "{input: {name: a, shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: q}}|{attention: {from: [q, q], causal: true}}|{lstm: {units: 2}}",
    "mask_multi_head": "{input: {shape: [5], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 4, mask_zero: true}}|{multi_head_attention: {num_heads: 2, key_dim: 3}}|{global_average_pooling1d: {}}",
    "mask_multi_head_cross": "{input: {name: a, shape: [4], dtype: int64}}|{input: {name: b, shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 4, mask_zero: true, name: q, from: a}}"
                             "|{embedding: {input_dim: 7, output_dim: 4, mask_zero: true, name: v, from: b}}|{multi_head_attention: {from: [q, v], num_heads: 2, key_dim: 3, causal: false}}|{gru: {units: 2}}",
    "mask_multi_head_causal": "{input: {shape: [5], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 4, mask_zero: true}}|{multi_head_attention: {num_heads: 2, key_dim: 3, causal: true}}|{global_average_pooling1d: {}}",
    "mask_add": "{input: {name: a, shape: [4], dtype: int64}}|{input: {name: b, shape: [4], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: x, from: a}}"
                "|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: y, from: b}}|{add: {from: [x, y]}}|{lstm: {units: 2}}",
    "mask_concatenate": "{input: {name: a, shape: [4], dtype: int64}}|{input: {name: b, shape: [4], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: x, from: a}}"
                        "|{embedding: {input_dim: 7, output_dim: 2, name: y, from: b}}|{concatenate: {from: [x, y]}}|{lstm: {units: 2}}",
    "mask_concatenate_steps": "{input: {name: a, shape: [4], dtype: int64}}|{input: {name: b, shape: [3], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: x, from: a}}"
                              "|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true, name: y, from: b}}|{concatenate: {from: [x, y], axis: 1}}|{lstm: {units: 2}}",
    "mask_dropped": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{conv1d: {filters: 2, kernel_size: 3, padding: same}}|{lstm: {units: 2}}",
    "lstm_dropout": "{input: {shape: [4, 3]}}|{lstm: {units: 2, dropout: 0.3, recurrent_dropout: 0.2, return_sequences: true}}|{gru: {units: 2, recurrent_dropout: 0.5, return_sequences: true}}"
                    "|{gru: {units: 2, recurrent_dropout: 0.5, reset_after: false, return_sequences: true}}|{simple_rnn: {units: 2, dropout: 0.5, recurrent_dropout: 0.1}}",
    "lstm_dropout_mask": "{input: {shape: [6], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, mask_zero: true}}|{bidirectional: {layer: {lstm: {units: 2, recurrent_dropout: 0.2, return_sequences: true}}}}"
                         "|{bidirectional: {layer: {gru: {units: 2, dropout: 0.1, recurrent_dropout: 0.5}}, merge_mode: mul}}",
    "lstm_dropout_states": "{input: {shape: [4, 3]}}|{lstm: {units: 2, return_state: true, recurrent_dropout: 0.5, name: l}}|{lstm: {units: 2, recurrent_dropout: 0.5, go_backwards: true, from: [input, 'l:1', 'l:2']}}",
    "bidirectional_states": "{input: {shape: [4, 3]}}|{bidirectional: {layer: {lstm: {units: 2, return_state: true}}, name: b}}|{concatenate: {from: [b, 'b:1', 'b:4']}}",
    "time_distributed_lstm": "{input: {shape: [2, 4, 3]}}|{time_distributed: {layer: {lstm: {units: 2}}}}|{time_distributed: {layer: {dense: {units: 2, activation: relu}}}}",
    "normalization": "{input: {shape: [4, 3]}}|{normalization: {mean: [1, 2, 3], variance: [4, 0, 2]}}",
    "normalization_one": "{input: {shape: [3]}}|{normalization: {mean: 1, variance: 4}}|{normalization: {mean: 2, variance: 0.5, invert: true}}",
    "discretization": "{input: {shape: [5]}}|{discretization: {bin_boundaries: [-1, 0, 1.5]}}",
    "category_encoding": "{input: {shape: [4], dtype: int64}}|{category_encoding: {num_tokens: 8}}",
    "category_encoding_count": "{input: {shape: [4], dtype: int64}}|{category_encoding: {num_tokens: 8, output_mode: count}}",
    "category_encoding_one": "{input: {shape: [1], dtype: int64}}|{category_encoding: {num_tokens: 8, output_mode: one_hot}}",
    "depthwise_conv1d": "{input: {shape: [6, 3]}}|{depthwise_conv1d: {kernel_size: 3, depth_multiplier: 2, padding: same}}",
    "unit_normalization": "{input: {shape: [3, 4]}}|{unit_normalization: {}}|{unit_normalization: {axis: [1, 2]}}",
    "up_sampling2d_bilinear": "{input: {shape: [2, 3, 2]}}|{up_sampling2d: {size: [2, 3], interpolation: bilinear}}",
    "up_sampling3d": "{input: {shape: [2, 2, 3, 2]}}|{up_sampling3d: {size: [2, 1, 3]}}",
    "resizing": "{input: {shape: [5, 7, 2]}}|{resizing: {height: 3, width: 10}}",
    "resizing_nearest": "{input: {shape: [5, 7, 2]}}|{resizing: {height: 8, width: 3, interpolation: nearest}}",
    "center_crop": "{input: {shape: [5, 7, 2]}}|{center_crop: {height: 2, width: 4}}",
    "additive_attention": "{input: {name: q, shape: [3, 4]}}|{input: {name: v, shape: [5, 4]}}|{additive_attention: {from: [q, v]}}",
    "additive_attention_keys": "{input: {name: q, shape: [3, 4]}}|{input: {name: v, shape: [5, 2]}}|{input: {name: k, shape: [5, 4]}}|{additive_attention: {from: [q, v, k], use_scale: false}}",
    "dot_normalize": "{input: {name: a, shape: [3]}}|{input: {name: b, shape: [3]}}|{dot: {from: [a, b], axes: 1, normalize: true}}",
    "batch_normalization_axis": "{input: {shape: [3, 2, 2]}}|{batch_normalization: {axis: 1, center: false}}",
}


# Loss and gradients, too, of these and all with masks: of a squared error, and what regularizers add.
GRADIENTS = {
    "regularizers": "{input: {shape: [5]}}|{dense: {units: 3, kernel_regularizer: {l1: 0.1}, bias_regularizer: {l2: 0.2}, activity_regularizer: {l1: 0.3, l2: 0.05}}}"
                    "|{dense: {units: 2, kernel_regularizer: {l1: 0.01, l2: 0.02}}}",
    "regularizers_conv": "{input: {shape: [5, 5, 2]}}|{conv2d: {filters: 3, kernel_size: 2, kernel_regularizer: {l2: 0.1}, activity_regularizer: {l2: 0.05}}}"
                         "|{depthwise_conv2d: {kernel_size: 2, depthwise_regularizer: {l2: 0.1}}}|{separable_conv2d: {filters: 2, kernel_size: 2, depthwise_regularizer: {l2: 0.1}, pointwise_regularizer: {l1: 0.1}}}",
    "regularizers_lstm": "{input: {shape: [4, 3]}}|{bidirectional: {layer: {lstm: {units: 2, kernel_regularizer: {l2: 0.1}, recurrent_regularizer: {l2: 0.2}, bias_regularizer: {l1: 0.1}}}}}",
    "regularizers_gru": "{input: {shape: [4, 3]}}|{gru: {units: 2, kernel_regularizer: {l2: 0.1}, recurrent_regularizer: {l1: 0.2}, bias_regularizer: {l2: 0.1}, activity_regularizer: {l2: 0.3}}}",
    "regularizers_attention": "{input: {shape: [4, 6]}}|{multi_head_attention: {num_heads: 2, key_dim: 3, kernel_regularizer: {l2: 0.1}, bias_regularizer: {l1: 0.1}}}",
    "regularizers_embedding": "{input: {shape: [5], dtype: int64}}|{embedding: {input_dim: 7, output_dim: 3, embeddings_regularizer: {l2: 0.1}}}|{layer_normalization: {gamma_regularizer: {l2: 0.1}, beta_regularizer: {l1: 0.1}}}"
                              "|{prelu: {alpha_regularizer: {l2: 0.1}}}",
    "regularizers_frozen": "{input: {shape: [5]}}|{dense: {units: 3, trainable: false, kernel_regularizer: {l2: 0.1}}}|{dense: {units: 2}}",
    "regularizers_time": "{input: {shape: [2, 3, 4]}}|{time_distributed: {layer: {dense: {units: 3, kernel_regularizer: {l2: 0.1}, activity_regularizer: {l2: 0.3}}}}}",
}
CASES.update(GRADIENTS)


def keras_class(name):
    if name == "batch_normalization":
        return K.BatchNormalization
    return CLASSES[name.replace("_", "")]


def make_layer(name, options):
    options = dict(options or {})
    options.pop("from", None)
    options.pop("causal", None)
    for option, given in options.items():
        if option.endswith("_regularizer"):
            options[option] = tf.keras.regularizers.L1L2(**given)
    for pairs in ("padding", "cropping"):
        given = options.get(pairs)
        if name.startswith(("zero_padding", "cropping")) and isinstance(given, list) and len(given) > 2:
            options[pairs] = [given[i:i + 2] for i in range(0, len(given), 2)]
    for wrapped in ("layer",):
        if wrapped in options:
            (inner, inner_options), = options[wrapped].items()
            options[wrapped] = make_layer(inner, inner_options)
    return keras_class(name)(**options)


def build(layers):
    tensors, inputs, last, made = {}, [], None, {}
    for entry in layers:
        (name, options), = entry.items()
        if name == "input":
            last = tf.keras.Input(options["shape"], dtype=options.get("dtype", "float32"), name=options.get("name", "input"))
            inputs.append(last)
            tensors[options.get("name", "input")] = last
            continue
        layer = made[options["layer"]] if name == "shared" else make_layer(name, options)
        made[layer.name] = layer
        sources = (options or {}).get("from")
        if sources is None:
            given = last
        else:
            sources = [sources] if isinstance(sources, str) else sources
            given = [tensors[s] for s in sources]
            given = given[0] if len(given) == 1 else given
        if name == "multi_head_attention":
            given = given if isinstance(given, list) else [given, given]
            last = layer(*given, use_causal_mask=bool(options.get("causal")))
        elif name == "attention":
            last = layer(given, use_causal_mask=bool(options.get("causal")))
        elif name in ("lstm", "gru", "simple_rnn") and isinstance(given, list):
            last = layer(given[0], initial_state=given[1:])
        else:
            last = layer(given)
        results = last if isinstance(last, (list, tuple)) else [last]
        last = results[0]
        for i, result in enumerate(results):
            called = options["name"] if name == "shared" else layer.name
            tensors[called + (":%d" % i if i else "")] = result
    return tf.keras.Model(inputs, last)


def numbers(array):
    return [float("%.7g" % x) for x in np.asarray(array, np.float64).ravel()]


def make_case(name, text, generator):
    tf.keras.backend.clear_session()
    layers = yaml.safe_load("[" + text.replace("|", ", ") + "]")
    model = build(layers)
    weights = []
    for layer in model.layers:
        for variable in layer.weights:
            value = np.round(generator.uniform(-1, 1, variable.shape), 2).astype(np.float32)
            if "variance" in variable.name:
                value = np.abs(value) + np.float32(0.5)
            variable.assign(value)
            parts = variable.name.split(":")[0].split("/")
            weights.append({"layer": layer.name, "name": parts[-1], "shape": list(value.shape), "data": numbers(value)})
    inputs = []
    arrays = []
    for tensor in model.inputs:
        shape = [3] + list(tensor.shape[1:])
        if tensor.dtype == tf.int64:
            array = generator.integers(0, 7, shape)
            if "mask_zero" in text:  # padding behind, in front, and in between
                array = np.maximum(array, 1)
                array[0, -2:] = 0
                array[1, :2] = 0
                array[1, -1] = 0
                array[2, 1] = 0
        else:
            array = np.round(generator.uniform(-2, 2, shape), 2).astype(np.float32)
            if "{masking" in text:
                left_out = -1 if "mask_value" in text else 0
                array[0, -1:] = left_out
                array[1, :2] = left_out
                array[2, 1] = left_out
        arrays.append(array)
        inputs.append({"name": tensor.name, "shape": shape, "data": [float("%.7g" % x) for x in array.ravel()]})
    given = arrays if len(arrays) > 1 else arrays[0]
    output = model(given, training=False).numpy()
    case = {"name": name, "layers": text.split("|"), "inputs": inputs, "weights": weights,
            "output": {"shape": list(output.shape), "data": numbers(output)}}
    if name in GRADIENTS or name.startswith("mask_"):
        case["penalty"] = float(sum(model.losses)) if model.losses else 0.0
        with tf.GradientTape() as tape:
            result = model(given, training=False)
            target = np.linspace(-1, 1, result.numpy().size).reshape(result.shape).astype(np.float32)
            loss = tf.keras.losses.MeanSquaredError()(target, result) + (tf.add_n(model.losses) if model.losses else 0.0)
        case["loss"] = float(loss)
        gradients = tape.gradient(loss, model.trainable_weights)
        case["gradients"] = [numbers(tf.convert_to_tensor(g)) for g in gradients]
    if "batch_normalization" in text:
        trained = model(arrays[0], training=True).numpy()
        case["trained"] = {"shape": list(trained.shape), "data": numbers(trained)}
        case["states"] = [{"layer": layer.name, "name": v.name.split(":")[0].split("/")[-1], "data": numbers(v)}
                          for layer in model.layers for v in layer.non_trainable_weights]
    return case


def main():
    generator = np.random.default_rng(7)
    cases = [make_case(name, text, generator) for name, text in CASES.items()]
    with open(sys.argv[1], "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


main()
