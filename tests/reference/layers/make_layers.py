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
    "batch_normalization_axis": "{input: {shape: [3, 2, 2]}}|{batch_normalization: {axis: 1, center: false}}",
}


def keras_class(name):
    if name == "batch_normalization":
        return K.BatchNormalization
    return CLASSES[name.replace("_", "")]


def make_layer(name, options):
    options = dict(options or {})
    options.pop("from", None)
    options.pop("causal", None)
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
    tensors, inputs, last = {}, [], None
    for entry in layers:
        (name, options), = entry.items()
        if name == "input":
            last = tf.keras.Input(options["shape"], dtype=options.get("dtype", "float32"), name=options.get("name", "input"))
            inputs.append(last)
            tensors[options.get("name", "input")] = last
            continue
        layer = make_layer(name, options)
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
        elif name in ("lstm", "gru", "simple_rnn") and isinstance(given, list):
            last = layer(given[0], initial_state=given[1:])
        else:
            last = layer(given)
        results = last if isinstance(last, (list, tuple)) else [last]
        last = results[0]
        for i, result in enumerate(results):
            tensors[layer.name + (":%d" % i if i else "")] = result
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
        else:
            array = np.round(generator.uniform(-2, 2, shape), 2).astype(np.float32)
        arrays.append(array)
        inputs.append({"name": tensor.name, "shape": shape, "data": [float("%.7g" % x) for x in array.ravel()]})
    output = model(arrays if len(arrays) > 1 else arrays[0], training=False).numpy()
    case = {"name": name, "layers": text.split("|"), "inputs": inputs, "weights": weights,
            "output": {"shape": list(output.shape), "data": numbers(output)}}
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
