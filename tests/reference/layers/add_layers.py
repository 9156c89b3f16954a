#!/usr/bin/env python3
"""Adds to layers.json the layers that Keras 2.12 has not, by Keras 3.15: add_layers.py tests/reference/layers/layers.json

The form is that of make_layers.py, which writes the file anew: run this one after it.
"""
import json
import sys

import keras
import numpy as np
from keras.src.applications.convnext import LayerScale

CASES = {
    "rms_normalization": ([3, 4], keras.layers.RMSNormalization(name="rms_normalization"), "{rms_normalization: {}}"),
    "rms_normalization_axes": ([2, 3, 4], keras.layers.RMSNormalization(axis=[-2, -1], epsilon=0.01, name="rms_normalization"),
                               "{rms_normalization: {axis: [2, 3], epsilon: 0.01}}"),
    "layer_scale": ([3, 4], LayerScale(0.5, 4, name="layer_scale"), "{layer_scale: {projection_dim: 4, init_values: 0.5}}"),
    "dropout_noise_shape": ([3, 4], keras.layers.Dropout(0.5, noise_shape=(None, 1, 4), name="dropout"),
                            "{dropout: {rate: 0.5, noise_shape: [0, 1, 4]}}"),
    "group_query_attention": ([3, 4], keras.layers.GroupQueryAttention(2, 4, 2, name="group_query_attention"),
                              "{group_query_attention: {head_dim: 2, num_query_heads: 4, num_key_value_heads: 2}}"),
}


def numbers(array):
    return [float("%.7g" % x) for x in np.asarray(array).ravel()]


def make_case(name, shape, layer, text, generator):
    given = np.round(generator.uniform(-2, 2, [3] + shape), 2).astype(np.float32)
    is_attention = isinstance(layer, keras.layers.GroupQueryAttention)
    arguments = (given, given) if is_attention else (given,)
    layer.build(*(argument.shape for argument in arguments))
    weights = []
    for variable in layer.weights:
        if "seed" in variable.path:
            continue
        value = np.round(generator.uniform(-1, 1, variable.shape), 2).astype(np.float32)
        variable.assign(value)
        own = "gamma" if isinstance(layer, LayerScale) else variable.name  # which that layer does not name
        weights.append({"layer": layer.name, "name": own, "shape": list(value.shape), "data": numbers(value)})
    output = keras.ops.convert_to_numpy(layer(*arguments, training=False))
    return {"name": name, "layers": [f"{{input: {{shape: {shape}}}}}", text],
            "inputs": [{"name": "input", "shape": list(given.shape), "data": numbers(given)}], "weights": weights,
            "output": {"shape": list(output.shape), "data": numbers(output)}}


def main():
    generator = np.random.default_rng(8)
    with open(sys.argv[1]) as file:
        cases = [case for case in json.load(file) if case["name"] not in CASES]
    cases += [make_case(name, *case, generator) for name, case in CASES.items()]
    with open(sys.argv[1], "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


main()
