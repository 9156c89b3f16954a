#!/usr/bin/env python3
"""Writes the Keras models of this folder, and what Keras says they compute.

    python make_keras_references.py [FOLDER]

Needs TensorFlow 2.12 (its Keras wrote the files that are here). Each model NAME gives NAME.h5 or
NAME.keras, or both, and NAME.npz: its inputs "input_0", … and outputs "output_0", …, in the
model's order, computed in inference mode.
"""
import os
import sys
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))


def sequential_cnn():
    """Convolutions of each kind, pooling, normalisation, one path."""
    return keras.Sequential(
        [
            layers.Conv2D(4, 3, padding="same", activation="relu", input_shape=(8, 8, 3)),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.DepthwiseConv2D(3, padding="valid", depth_multiplier=2),
            layers.LeakyReLU(0.2),
            layers.SeparableConv2D(5, 2, padding="same", activation="elu"),
            layers.Flatten(),
            layers.Dropout(0.25),
            layers.Dense(6, activation="tanh", use_bias=False),
            layers.Dense(3, activation="softmax"),
        ],
        name="sequential_cnn",
    )


def branching():
    """Two inputs, two outputs, joins, a layer that is used twice."""
    left = keras.Input((6, 6, 2), name="left")
    right = keras.Input((6, 6, 2), name="right")
    shared = layers.Conv2D(3, 3, padding="same", name="shared")
    a = shared(left)
    b = shared(right)
    joined = layers.Add(name="joined")([a, b])
    wide = layers.Concatenate(name="wide")([a, layers.ReLU(name="clip")(joined)])
    up = layers.Conv2DTranspose(2, 3, strides=2, padding="same", name="up")(wide)
    pooled = layers.AveragePooling2D(2, padding="same", name="pooled")(up)
    padded = layers.ZeroPadding2D(((1, 0), (0, 1)), name="padded")(pooled)
    first = layers.GlobalAveragePooling2D(name="first")(padded)
    second = layers.Dense(4, activation="sigmoid", name="second")(
        layers.Flatten(name="flat")(joined)
    )
    return keras.Model([left, right], [first, second], name="branching")


def recurrent():
    """Tokens, and each recurrent layer."""
    return keras.Sequential(
        [
            layers.Embedding(11, 5, input_length=7),
            layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
            layers.GRU(3, return_sequences=True),
            layers.SimpleRNN(4, return_sequences=True),
            layers.TimeDistributed(layers.Dense(3, activation="relu")),
            layers.LSTM(3),
            layers.Dense(2),
        ],
        name="recurrent",
    )


def nested():
    """A frozen trunk, which is a model of its own, under a new head."""
    picture = keras.Input((4, 4, 2), name="picture")
    x = layers.Conv2D(3, 2, use_bias=False, name="conv")(picture)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.Activation("relu", name="act")(x)
    trunk = keras.Model(picture, layers.GlobalMaxPooling2D(name="pool")(x), name="trunk")
    trunk.trainable = False
    return keras.Sequential(
        [keras.Input((4, 4, 2)), trunk, layers.Dense(4, "relu"), layers.Dense(2)], name="nested"
    )


def attending():
    """A block of a transformer."""
    tokens = keras.Input((5, 6), name="tokens")
    x = layers.LayerNormalization(name="before")(tokens)
    x = layers.MultiHeadAttention(2, 3, name="attention")(x, x)
    x = layers.Add(name="around")([tokens, x])
    y = layers.Dense(8, activation="gelu", name="wide")(x)
    y = layers.Dense(6, name="narrow")(y)
    out = layers.LayerNormalization(name="after")(layers.Add(name="through")([x, y]))
    return keras.Model(tokens, out, name="attending")


def transfer():
    """Models that are applied like layers: a trunk, and a sequence applied twice."""
    picture = keras.Input((4, 4, 2), name="picture")
    trunk = keras.Model(picture, layers.Conv2D(3, 2, name="conv")(picture), name="trunk")
    block = keras.Sequential([layers.Dense(3, "tanh", input_shape=(3, 3, 3))], name="block")
    late = keras.Sequential([layers.Flatten(), layers.Dense(4)], name="late")
    image = keras.Input((4, 4, 2), name="image")
    once = block(trunk(image))
    x = layers.Subtract(name="change")([block(once), once])
    y = layers.Reshape((2, 2), name="table")(late(x))
    return keras.Model(image, [layers.Dot(axes=(1, 2), name="dot")([y, y]), late(once)], name="transfer")


def masked():
    """A classifier of texts of any length, padded: masks, regularizers, dropout between steps."""
    words = keras.Input((None,), name="words")
    x = layers.Embedding(11, 4, mask_zero=True, name="table", embeddings_initializer=keras.initializers.RandomNormal(stddev=0.02))(words)
    x = layers.SpatialDropout1D(0.2, name="drop")(x)
    both = layers.Bidirectional(
        layers.LSTM(3, return_sequences=True, dropout=0.1, recurrent_dropout=0.2, kernel_regularizer="l2",
                    recurrent_regularizer=keras.regularizers.L1(0.02)), name="both")(x)
    seen = layers.MultiHeadAttention(2, 3, name="attention")(both, both)
    joined = layers.Add(name="joined")([both, seen])
    pooled = layers.GlobalAveragePooling1D(name="pooled")(joined)
    last = layers.GRU(3, name="last", bias_regularizer=keras.regularizers.L1L2(0.01, 0.03))(both)
    top = layers.Concatenate(name="top")([pooled, last])
    steps = layers.TimeDistributed(layers.Dense(2), name="steps")(joined)
    answer = layers.Dense(3, activity_regularizer=keras.regularizers.L2(0.1), name="answer")(top)
    return keras.Model(words, [answer, steps], name="masked")


def prepared():
    """Pictures and numbers that are prepared within the model."""
    picture = keras.Input((5, 6, 2), name="picture")
    numbers = keras.Input((3,), name="numbers")
    scale = layers.Normalization(name="scale")
    scale.adapt(np.array([[1, 2, 3], [3, 1, 7], [2, 2, 1]], "float32"))
    x = layers.RandomFlip("horizontal", name="flip")(picture)
    x = layers.Resizing(4, 4, name="resize")(x)
    x = layers.CenterCrop(3, 2, name="crop")(x)
    x = layers.UpSampling2D(2, interpolation="bilinear", name="up")(x)
    x = layers.Rescaling(0.5, offset=-1, name="rescale")(x)
    x = layers.DepthwiseConv2D(2, name="depth", depthwise_regularizer="l1")(x)
    x = layers.UnitNormalization(name="unit")(x)
    x = layers.GaussianNoise(0.1, name="noise")(x)
    x = layers.SpatialDropout2D(0.1, name="drop")(x)
    x = layers.Flatten(name="flat")(x)
    y = layers.GaussianDropout(0.1, name="other")(scale(numbers))
    y = layers.ActivityRegularization(l1=0.1, name="small")(y)
    bins = layers.Discretization(bin_boundaries=[-1.0, 0.0, 1.0], name="bins")(numbers)
    bins = layers.CategoryEncoding(4, output_mode="count", name="counts")(bins)
    return keras.Model([picture, numbers], layers.Concatenate(name="all")([x, y, bins]), name="prepared")


def example(model, rng):
    arrays = []
    for tensor in model.inputs:
        shape = [3] + [9 if size is None else size for size in tensor.shape[1:]]
        if model.name == "masked":
            tokens = rng.integers(1, 11, shape).astype("float32")
            tokens[0, :4] = 0
            tokens[1, -3:] = 0
            tokens[2, 2] = 0
            arrays.append(tokens)
        elif model.name == "recurrent":
            arrays.append(rng.integers(0, 11, shape).astype("float32"))
        else:
            arrays.append(rng.standard_normal(shape).astype("float32"))
    return arrays


def stir(model, rng):
    """Numbers that no layer would do without: biases and statistics, too."""
    weights = []
    for variable in model.weights:
        value = np.asarray(rng.standard_normal(variable.shape)).astype("float32") * np.float32(0.4)
        if "variance" in variable.name:
            value = np.abs(value) + np.float32(0.5)
        if "count" in variable.name:
            value = variable.numpy()
        weights.append(value)
    model.set_weights(weights)


def pack(path):
    """The same archive, deflated."""
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members:
            archive.writestr(zipfile.ZipInfo(name), contents, zipfile.ZIP_DEFLATED)


FORMS = {
    sequential_cnn: ("keras",),
    branching: ("h5",),
    recurrent: ("h5", "keras"),
    nested: ("h5", "keras"),
    attending: ("keras",),
    transfer: ("h5", "keras"),
    masked: ("h5", "keras"),
    prepared: ("h5", "keras"),
}


def main():
    rng = np.random.default_rng(20)
    for make, forms in FORMS.items():
        keras.utils.set_random_seed(1)
        keras.backend.clear_session()
        model = make()
        stir(model, rng)
        inputs = example(model, rng)
        outputs = model(inputs if len(inputs) > 1 else inputs[0], training=False)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        path = os.path.join(FOLDER, make.__name__)
        if "h5" in forms:
            model.save(path + ".h5", include_optimizer=False)
        if "keras" in forms:
            model.save(path + ".keras", save_format="keras_v3")
            if model.name != "sequential_cnn":  # this one stays as Keras writes it
                pack(path + ".keras")
        arrays = {f"input_{i}": a for i, a in enumerate(inputs)}
        arrays.update({f"output_{i}": o.numpy() for i, o in enumerate(outputs)})
        np.savez_compressed(path + ".npz", **arrays)
        print(make.__name__, [o.shape for o in outputs])
    small = keras.Sequential([layers.Dense(2, input_shape=(3,))])
    small.compile(keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True), keras.losses.BinaryCrossentropy(from_logits=True))
    small.save(os.path.join(FOLDER, "compiled.h5"))


if __name__ == "__main__":
    main()
