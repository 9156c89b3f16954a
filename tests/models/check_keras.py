"""Models of Keras, there and back: check_keras.py --penstock PROGRAM [NAME …]

Each model is made, compiled and trained for a step by Keras 3.15, and saved; Penstock trains the file for three steps
and writes it back; Keras loads that, and must compute what `predict` computes, to 1e-6 of the largest output. What is
not a weight must be as it was. Needs Keras 3.15 with a backend, and h5py.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import h5py
import keras
import numpy as np
from keras import layers

OUTPUTS = 1e-6


def pictures():
    picture = keras.Input((12, 12, 3), name="picture")
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(picture)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    y = layers.DepthwiseConv2D(3, padding="same")(x)
    y = layers.BatchNormalization(momentum=0.9)(y)
    x = layers.Add()([x, layers.Conv2D(8, 1)(y)])
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(picture, layers.Dense(4)(layers.Dropout(0.2)(x))), "float"


def transposed():
    picture = keras.Input((6, 6, 2), name="picture")
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu")(picture)
    x = layers.SeparableConv2D(4, 3, padding="same")(x)
    return keras.Model(picture, layers.Dense(3)(layers.Flatten()(x))), "float"


def words():
    tokens = keras.Input((9,), name="tokens", dtype="int32")
    x = layers.Embedding(20, 8)(tokens)
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    x = layers.GRU(6)(x)
    return keras.Model(tokens, layers.Dense(4)(x)), "tokens"


def attention():
    tokens = keras.Input((9,), name="tokens", dtype="int32")
    x = layers.Embedding(20, 8)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    x = layers.RMSNormalization()(layers.Add()([x, layers.GroupQueryAttention(4, 4, 2)(x, x, use_causal_mask=True)]))
    inner = keras.Sequential([keras.Input((9, 8)), layers.Dense(16, "gelu"), layers.Dense(8)], name="inner")
    x = layers.Add()([x, inner(x)])
    return keras.Model(tokens, layers.Dense(4)(layers.GlobalAveragePooling1D()(x))), "tokens"


MODELS = {make.__name__: make for make in (pictures, transposed, words, attention)}
JOB = """version: 1
model: {file: net.keras}
data:
  train: {format: npy, inputs: {%(input)s: x.npy}, labels: y.npy}
  eval: {format: npy, inputs: {%(input)s: x.npy}, labels: y.npy}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 4, steps: 3}
devices: [{name: a, threads: 2}]
outputs: {dir: out}
"""


def contents(path):
    """All but the weights, and which datasets the weights are."""
    with zipfile.ZipFile(path) as archive:
        rest = [(entry.filename, entry.date_time, archive.read(entry)) for entry in archive.infolist()
                if entry.filename != "model.weights.h5"]
        kept, weights = {}, {}
        with h5py.File(archive.open("model.weights.h5")) as file:
            def visit(name, item):
                if isinstance(item, h5py.Dataset):
                    (kept if name.startswith("optimizer") else weights)[name] = item[...]
            file.visititems(visit)
        return rest, kept, weights


def check(name, penstock, folder):
    rng = np.random.default_rng(3)
    keras.utils.set_random_seed(3)
    model, kind = MODELS[name]()
    shape = (12,) + tuple(model.inputs[0].shape[1:])
    x = rng.integers(0, 20, shape).astype("int64") if kind == "tokens" else rng.standard_normal(shape).astype("float32")
    y = rng.integers(0, 4 if name != "transposed" else 3, 12)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=12, verbose=0)
    model.save(os.path.join(folder, "net.keras"))
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y.astype("int64"))
    with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
        file.write(JOB % {"input": model.inputs[0].name})
    for words_given in (["train", "-q"], ["export", "-o", "trained.keras"], ["predict", "-q", "-o", "p.npy"]):
        done = subprocess.run([penstock, words_given[0], "job.yaml", *words_given[1:]], cwd=folder, text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr[-600:])
        if words_given[0] == "export" and "older than the weights" not in done.stderr:
            raise AssertionError(f"it does not say that the optimizer's state is older: {done.stderr}")
    before, after = (contents(os.path.join(folder, file)) for file in ("net.keras", "trained.keras"))
    assert before[0] == after[0], "another file of the archive changed"
    assert all(np.array_equal(before[1][key], after[1][key]) for key in before[1]), "the optimizer's state changed"
    moved = sum(not np.array_equal(before[2][key], after[2][key]) for key in before[2])
    expected = keras.models.load_model(os.path.join(folder, "trained.keras"))(x, training=False)
    expected = keras.ops.convert_to_numpy(expected)
    off = np.abs(np.load(os.path.join(folder, "p.npy")) - expected).max() / max(1, np.abs(expected).max())
    print(f"{name}: {moved} of {len(before[2])} weights moved, outputs off by {off:.1e}")
    return off <= OUTPUTS and moved > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", required=True)
    parser.add_argument("names", nargs="*", default=[])
    given = parser.parse_args()
    good = True
    for name in given.names or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            good = check(name, os.path.abspath(given.penstock), folder) and good
    sys.exit(0 if good else 1)


main()
