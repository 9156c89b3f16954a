#!/usr/bin/env python3
"""Writes home.keras, what Keras computes of it, and the same archive with other weights.

    python make_keras3_references.py [FOLDER]

Needs Keras 3.15 with TensorFlow 2.21. home.keras was trained for a step, so that it has an optimizer's
state; home_after.keras, deflated here, is what Keras saves once its weights were set to others: the two
differ in nothing but these. home.npz has inputs, and the outputs of home.keras in inference mode.
packed.h5 has a kernel that is compressed.
"""
import os
import sys
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import h5py
import keras
import numpy as np
from keras import layers

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))


def make():
    """Weights that lie in the graph otherwise than in the file: of convolutions, of both directions of an
    LSTM, of heads; running statistics; a frozen layer; a model within, and random numbers."""
    picture = keras.Input((6, 5, 2), name="picture")
    x = layers.Conv2D(4, 3, padding="same", name="stem")(picture)
    x = layers.BatchNormalization(momentum=0.8, name="norm")(x)
    x = layers.SeparableConv2D(4, 2, activation="relu", name="apart")(x)
    x = layers.Dropout(0.25, name="drop")(x)
    x = layers.Reshape((5, 16), name="rows")(x)
    x = layers.Bidirectional(layers.LSTM(4, return_sequences=True), name="both")(x)
    x = layers.Add(name="around")([x, layers.MultiHeadAttention(2, 3, name="seen")(x, x)])
    x = layers.GroupQueryAttention(3, 4, 2, name="grouped")(x, x)
    x = layers.GRU(5, name="last")(x)
    inner = keras.Sequential([keras.Input((5,)), layers.Dense(4, "tanh"), layers.LayerNormalization()], name="inner")
    x = layers.Dense(4, trainable=False, name="frozen")(inner(x))
    return keras.Model(picture, layers.Dense(3, name="answer")(x), name="home")


def stir(model, rng):
    for variable in model.weights:
        if "seed" in variable.path:
            continue
        value = rng.standard_normal(variable.shape).astype("float32") * np.float32(0.4)
        variable.assign(np.abs(value) + np.float32(0.5) if "variance" in variable.path else value)


def pack(path):
    """The same archive, deflated."""
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members:
            archive.writestr(zipfile.ZipInfo(name), contents, zipfile.ZIP_DEFLATED)


def main():
    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(7)
    model = make()
    pictures = rng.standard_normal((3, 6, 5, 2)).astype("float32")
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse")
    stir(model, rng)
    model.fit(pictures, rng.standard_normal((3, 3)), verbose=0)
    arrays = {"input_0": pictures, "output_0": model(pictures, training=False).numpy()}
    model.save(os.path.join(FOLDER, "home.keras"))
    stir(model, rng)
    model.save(os.path.join(FOLDER, "home_after.keras"))
    pack(os.path.join(FOLDER, "home_after.keras"))
    small = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="dense")], name="packed")
    small.save(os.path.join(FOLDER, "packed.h5"), include_optimizer=False)
    with h5py.File(os.path.join(FOLDER, "packed.h5"), "a") as file:
        group = file["model_weights/dense/packed/dense"]
        kernel = group["kernel"][...]
        del group["kernel"]
        group.create_dataset("kernel", data=kernel, compression="gzip")
    np.savez_compressed(os.path.join(FOLDER, "home.npz"), **arrays)


if __name__ == "__main__":
    main()
