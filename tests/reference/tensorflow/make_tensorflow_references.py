#!/usr/bin/env python3
"""Makes the models of TensorFlow in this folder, and what TensorFlow 2.12 computes of them.

Run with a Python that has tensorflow-cpu 2.12: `make_tensorflow_references.py`. The tests need only
what it wrote: for NAME.pb (a frozen graph) or NAME/ (a SavedModel), NAME.input_I.npy and
NAME.output_I.npy, in the order of the model's inputs and outputs, which is that of their names.
For a model that is trained, NAME.step_PARAMETER.npy is a parameter after one step of SGD, with '/'
in the name as '+'.
"""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import shutil
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

HERE = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(20)


def weight(*shape, scale=0.5):
    return random.normal(size=shape, scale=scale).astype(np.float32)


def write(name, kind, arrays):
    for i, array in enumerate(arrays):
        np.save(os.path.join(HERE, f"{name}.{kind}_{i}.npy"), np.asarray(array))


def freeze(name, function, inputs):
    """Writes a frozen graph of `function`, and its results for `inputs` (by name, sorted)."""
    signature = [tf.TensorSpec([None] + list(x.shape[1:]), x.dtype, name=n) for n, x in inputs]
    concrete = tf.function(function).get_concrete_function(*signature)
    frozen = convert_variables_to_constants_v2(concrete)
    graph = frozen.graph.as_graph_def()
    with open(os.path.join(HERE, f"{name}.pb"), "wb") as file:
        file.write(graph.SerializeToString(deterministic=True))
    arrays = [x for _, x in inputs]
    results = function(*[tf.constant(x) for x in arrays])
    write(name, "input", arrays)
    write(name, "output", [r.numpy() for r in results])
    print(name, sorted({n.op for n in graph.node}))


def images(x):
    """Convolutions, pools and normalisations in both paddings, with branches."""
    y = tf.nn.conv2d(x, IMAGE["a"], strides=2, padding="SAME", name="first")
    y = tf.nn.bias_add(y, IMAGE["a_bias"])
    y, _, _ = tf.compat.v1.nn.fused_batch_norm(
        y, IMAGE["scale"], IMAGE["offset"], IMAGE["mean"], IMAGE["variance"], epsilon=1e-3,
        is_training=False)
    y = tf.nn.relu6(y)
    side = tf.nn.depthwise_conv2d(y, IMAGE["deep"], strides=[1, 1, 1, 1], padding="SAME")
    side = side * IMAGE["gain"] + IMAGE["shift"]
    pooled = tf.nn.max_pool2d(side, 3, 2, "SAME")
    mean = tf.nn.avg_pool2d(side, 2, 2, "VALID")
    joined = tf.concat([pooled, mean], axis=3)
    padded = tf.pad(joined, [[0, 0], [1, 0], [0, 2], [0, 0]], constant_values=0.25)
    up = tf.nn.conv2d_transpose(padded, IMAGE["up"], [tf.shape(x)[0], 8, 11, 3], 2, "SAME")
    gate = tf.sigmoid(tf.reduce_mean(up, axis=[1, 2], keepdims=True))
    gated = tf.nn.leaky_relu(up * gate, 0.1)
    flat = tf.reshape(gated, [tf.shape(gated)[0], -1])
    valid = tf.nn.conv2d(x, IMAGE["b"], strides=1, padding="VALID", dilations=2)
    vector = tf.squeeze(tf.reduce_max(valid, axis=[1, 2], keepdims=True), axis=[1, 2])
    logits = tf.matmul(flat, IMAGE["out"]) + tf.matmul(vector, IMAGE["head"])
    return tf.nn.softmax(logits), valid


def tokens(ids, scale):
    """What transformers are made of, with shapes computed in the graph."""
    x = tf.gather(TEXT["table"], ids)
    batch, length = tf.shape(ids)[0], tf.shape(ids)[1]
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    x = (x - mean) * tf.math.rsqrt(variance + 1e-5) * TEXT["gamma"] + TEXT["beta"]
    q, k, v = tf.split(tf.matmul(tf.reshape(x, [-1, 8]), TEXT["qkv"]), 3, axis=1)

    def heads(t):
        return tf.transpose(tf.reshape(t, [batch, length, 2, 4]), [0, 2, 1, 3])
    scores = tf.matmul(heads(q), heads(k), transpose_b=True) * 0.5
    allowed = tf.linalg.band_part(tf.ones([6, 6]), -1, 0) > 0
    scores = tf.where(allowed, scores, -1e9)
    y = tf.matmul(tf.nn.softmax(scores), heads(v))
    y = tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [batch, length, 8])
    y = y + tf.one_hot(tf.clip_by_value(ids, 0, 7), 8)
    y = 0.5 * y * (1 + tf.math.erf(y / np.float32(np.sqrt(2))))
    first = y[:, 0, tf.newaxis, :]
    tail = y[:, -2:, ::2]
    parts = tf.unstack(tf.tile(first, [1, 2, 1]), axis=1)
    stacked = tf.stack([parts[0], parts[1] * scale], axis=1)
    squared = tf.math.squared_difference(stacked, tf.reduce_sum(stacked, axis=-1, keepdims=True))
    top = tf.cast(tf.argmax(y, axis=-1), tf.float32)
    return squared, tail, top


def branches(x):
    return tf.nn.relu(tf.matmul(x, TEXT["qkv"][:, :4])), -x


def conditional():
    """An If of TensorFlow 2 on a constant, with a call of a function in each branch."""
    @tf.function
    def bend(x):
        return tf.tanh(x) + 1.0

    @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.float32, name="x")])
    def choose(x):
        no = tf.logical_and(tf.constant(True), tf.logical_not(tf.constant(True)))
        return tf.cond(no, lambda: bend(x) * 2.0, lambda: bend(-x))
    x = np.linspace(-2, 2, 10, dtype=np.float32).reshape(2, 5)
    with open(os.path.join(HERE, "conditional.pb"), "wb") as file:
        graph = choose.get_concrete_function().graph.as_graph_def()
        file.write(graph.SerializeToString(deterministic=True))
    write("conditional", "input", [x])
    write("conditional", "output", [choose(x)])


def switched():
    """A graph of TensorFlow 1 with a condition that a placeholder's default decides."""
    graph = tf.Graph()
    x = random.normal(size=(2, 8)).astype(np.float32)
    with graph.as_default():
        tf.compat.v1.disable_control_flow_v2()
        given = tf.compat.v1.placeholder(tf.float32, [None, 8], name="x")
        trains = tf.compat.v1.placeholder_with_default(False, [], name="trains")
        w = tf.constant(weight(8, 4), name="w")
        y = tf.matmul(given, w, name="product")
        y = tf.compat.v1.cond(trains, lambda: y * 0.0, lambda: tf.tanh(y) + tf.constant(1.0))
        y = tf.identity(y, name="y")
        with tf.compat.v1.Session(graph=graph) as session:
            result = session.run(y, {given: x})
    with open(os.path.join(HERE, "switched.pb"), "wb") as file:
        file.write(graph.as_graph_def().SerializeToString(deterministic=True))
    write("switched", "input", [x])
    write("switched", "output", [result])


class Classifier(tf.Module):
    def __init__(self):
        super().__init__()
        self.filters = tf.Variable(weight(3, 3, 1, 4), name="conv/filters")
        self.conv_bias = tf.Variable(weight(4), name="conv/bias")
        self.weights = tf.Variable(weight(36, 3), name="dense/weights")
        self.bias = tf.Variable(weight(3), name="dense/bias")
        self.mean = tf.Variable(weight(4), trainable=False, name="norm/mean")
        self.variance = tf.Variable(np.abs(weight(4)) + 0.5, trainable=False, name="norm/variance")
        self.gain = tf.Variable(weight(4), name="norm/gain")
        self.offset = tf.Variable(weight(4), name="norm/offset")

    @tf.function
    def features(self, x):
        y = tf.nn.conv2d(x, self.filters, 2, "SAME") + self.conv_bias
        y, _, _ = tf.compat.v1.nn.fused_batch_norm(
            y, self.gain, self.offset, self.mean, self.variance, epsilon=1e-3, is_training=False)
        return tf.nn.elu(y)

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 1], tf.float32, name="image")])
    def __call__(self, image):
        y = tf.reshape(self.features(image), [tf.shape(image)[0], 36])
        return {"logits": tf.matmul(y, self.weights) + self.bias}


def trained():
    """A SavedModel, and its parameters after one step of SGD on a mean cross entropy."""
    model = Classifier()
    x = random.normal(size=(8, 6, 6, 1)).astype(np.float32)
    train("classifier", model, x, random.integers(0, 3, size=8).astype(np.int64))


def train(name, model, x, labels):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    tf.saved_model.save(model, folder, signatures={"serving_default": model.__call__})
    for unneeded in ["fingerprint.pb", "assets"]:
        path = os.path.join(folder, unneeded)
        if os.path.isdir(path):
            os.rmdir(path)
        elif os.path.exists(path):
            os.remove(path)
    write(name, "input", [x])
    write(name, "output", [model(x)["logits"]])
    np.save(os.path.join(HERE, f"{name}.labels.npy"), labels)
    with tf.GradientTape() as tape:
        logits = model(x)["logits"]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    variables = model.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        if gradient is not None:
            variable.assign_sub(0.1 * gradient)
        parameter = variable.name.split(":")[0].replace("/", "+")
        np.save(os.path.join(HERE, f"{name}.step_{parameter}.npy"), variable.numpy())


class Stopped(tf.Module):
    """Straight through a rounding, moments by hand and of TensorFlow, and a target that is no
    variable of the loss."""
    def __init__(self):
        super().__init__()
        self.first = tf.Variable(weight(8, 6), name="first/weights")
        self.scale = tf.Variable(weight(6) + 1, name="norm/scale")
        self.target = tf.Variable(weight(8, 6), name="target/weights")
        self.last = tf.Variable(weight(6, 3), name="last/weights")

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="x")])
    def __call__(self, x):
        y = tf.matmul(x, self.first)
        y = y + tf.stop_gradient(tf.round(y * 4.0) / 4.0 - y)
        mean, variance = tf.nn.moments(y, [1], keepdims=True)
        y = (y - mean) * tf.math.rsqrt(variance + 1e-3) * self.scale
        target = tf.stop_gradient(tf.tanh(tf.matmul(x, self.target)))
        gate = tf.sigmoid(tf.stop_gradient(y) * 2.0) + tf.stop_gradient(self.last[:, 0])
        y = y * gate - target * tf.reduce_mean(y, axis=1, keepdims=True)
        largest = tf.stop_gradient(tf.reduce_max(y, axis=1, keepdims=True))
        return {"logits": tf.matmul(tf.exp(y - largest), self.last)}


def stopped():
    """Gradients that are stopped, in a SavedModel, and its parameters after one step."""
    global random
    random = np.random.default_rng(77)
    model = Stopped()
    x = random.normal(size=(8, 8)).astype(np.float32)
    train("stopped", model, x, random.integers(0, 3, size=8).astype(np.int64))


def public():
    """Of the public files, by NumPy from their constants and variables."""
    def save(name, x, y):
        write(name, "input", [x])
        write(name, "output", [y.astype(np.float32)])

    x = random.normal(size=(3, 4)).astype(np.float32)
    graph = tf.compat.v1.GraphDef()
    with open(os.path.join(HERE, "public", "tfnet.pb"), "rb") as file:
        graph.ParseFromString(file.read())
    w = {n.name: tf.make_ndarray(n.attr["value"].tensor) for n in graph.node if n.op == "Const"}
    hidden = np.maximum(x @ w["dense/kernel"] + w["dense/bias"], 0)
    save("tfnet", x, 1 / (1 + np.exp(-(hidden @ w["dense_1/kernel"] + w["dense_1/bias"]))))
    shard = os.path.join(HERE, "public", "saved-model-signature", "variables",
                         "variables.data-00000-of-00001")
    values = np.fromfile(shard, np.float32)  # by name: dense/bias, dense/kernel
    save("signature", x, x @ values[10:].reshape(4, 10) + values[:10])


def normed():
    """Keras' layer normalisation in both of its forms, and gated activations."""
    def layer(epsilon):
        norm = tf.keras.layers.LayerNormalization(epsilon=epsilon)
        norm.build([None, 6, 8])
        norm.gamma.assign(weight(8) + 1)
        norm.beta.assign(weight(8))
        return norm
    fused, plain, w = layer(1e-3), layer(1e-12), weight(8, 8)

    def function(x):
        y = tf.nn.gelu(tf.matmul(fused(x), w))
        y = tf.nn.silu(tf.matmul(plain(x + y), w))
        return [tf.nn.gelu(y, approximate=True)]
    freeze("normed", function, [("x", random.normal(size=(3, 6, 8)).astype(np.float32))])


def picked(x, ids):
    """Losses, the largest, truths, what is written and what is turned round."""
    values, places = tf.math.top_k(x, 3)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(ids, x)
    dense = tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x * 2.0), x)
    some = tf.cast(tf.reduce_any(x > 1.0, axis=1), tf.float32)
    every = tf.cast(tf.reduce_all(x > -1.5, axis=[0], keepdims=True), tf.float32)
    bounded = tf.clip_by_value(x, -0.5, 0.75)
    ratio = tf.math.divide_no_nan(x, tf.nn.relu(x - 0.5))
    written = tf.scatter_nd([[1], [3], [1]], tf.transpose(x)[:3],
                            tf.stack([5, tf.shape(x)[0]]))
    changed = tf.tensor_scatter_nd_update(bounded[0], [[2], [0]], [9.0, 8.0])
    changed = tf.tensor_scatter_nd_add(changed, [[2], [2]], [1.0, 2.0])
    around = tf.reverse(x, axis=[1])
    return [values, tf.cast(places, tf.float32), sparse, dense, some, every, bounded, ratio,
            written, changed, around, tf.nn.l2_loss(x)]


def volumes(x):
    """Convolutions and pools of three dimensions, and images that are cut into blocks."""
    y = tf.nn.conv3d(x, VOLUME["a"], [1, 1, 2, 1, 1], "SAME")
    y = tf.nn.max_pool3d(y, 2, 1, "VALID")
    y = tf.nn.avg_pool3d(y, [1, 2, 2], [1, 2, 2], "SAME")
    image = tf.reduce_sum(x, axis=1)
    cut = tf.space_to_batch_nd(image, [2, 3], [[1, 0], [0, 1]])
    whole = tf.batch_to_space(tf.tanh(cut), [2, 3], [[0, 1], [2, 0]])
    padded = tf.pad(image, [[0, 0], [1, 2], [0, 1], [0, 0]])
    return y, cut, whole, tf.nn.conv2d(padded, VOLUME["b"], 2, "VALID")


def dropped():
    """A graph of training: with dropout, whose results here are those without."""
    dropout = tf.keras.layers.Dropout(0.25)
    x = random.normal(size=(4, 8)).astype(np.float32)
    first, last = weight(8, 6), weight(6, 3)

    def function(x, training):
        y = dropout(tf.tanh(tf.matmul(x, first)), training=training)
        return tf.matmul(y, last)
    concrete = tf.function(lambda x: function(x, True)).get_concrete_function(
        tf.TensorSpec([None, 8], tf.float32, name="x"))
    with open(os.path.join(HERE, "dropped.pb"), "wb") as file:
        file.write(concrete.graph.as_graph_def().SerializeToString(deterministic=True))
    write("dropped", "input", [x])
    write("dropped", "output", [function(x, False)])


IMAGE = {
    "a": weight(3, 3, 3, 4), "a_bias": weight(4), "scale": weight(4), "offset": weight(4),
    "mean": weight(4), "variance": np.abs(weight(4)) + 0.5, "deep": weight(3, 3, 4, 2),
    "gain": weight(8), "shift": weight(8), "up": weight(3, 3, 3, 16), "b": weight(3, 3, 3, 5),
    "out": weight(264, 6, scale=0.1), "head": weight(5, 6),
}
TEXT = {"table": weight(20, 8), "gamma": weight(8), "beta": weight(8), "qkv": weight(8, 24)}
VOLUME = {"a": weight(2, 3, 3, 2, 4), "b": weight(2, 3, 2, 3)}


def sized(ids, x):
    """Pictures of sizes whose quotients are rounded, and indices that no row has."""
    raw = tf.raw_ops
    rows = tf.one_hot(ids, 4, on_value=2.0, off_value=-1.0, axis=1)
    near = raw.ResizeNearestNeighbor(images=x, size=[10, 11])
    smooth = raw.ResizeBilinear(images=x, size=[10, 11], align_corners=True)
    return rows, near, smooth, tf.slice(x, [0, 1, 2, 0], [tf.shape(x)[0], 3, -1, 1])


def rolled(x, ids):
    """What is rolled, gathered in batches, divided downwards, and sums of exponentials."""
    turned = tf.roll(x, [-2, 3, 9], axis=[1, -1, 2])
    picked = tf.gather(x, tf.abs(ids) % 5, axis=1, batch_dims=1)
    halves = tf.cast(tf.math.floordiv(ids, [2, -2, 3]), tf.float32)
    rests = tf.cast(tf.math.floormod(ids, [2, -2, 3]), tf.float32)
    mirrored = tf.pad(x, [[0, 0], [2, 1], [4, 0]], "SYMMETRIC")
    return (turned, picked, halves, rests, mirrored, tf.reduce_logsumexp(x, axis=-1),
            tf.reduce_logsumexp(tf.math.log(tf.nn.relu(x)), axis=1, keepdims=True))


def main():
    freeze("images", images, [("x", random.normal(size=(2, 12, 15, 3)).astype(np.float32))])
    freeze("tokens", tokens, [("ids", random.integers(0, 20, size=(3, 6)).astype(np.int64)),
                              ("scale", random.normal(size=(3, 8)).astype(np.float32))])
    freeze("branches", branches, [("x", random.normal(size=(3, 8)).astype(np.float32))])
    conditional()
    switched()
    trained()
    public()
    normed()
    freeze("picked", picked, [("x", random.normal(size=(4, 5)).astype(np.float32)),
                              ("ids", random.integers(0, 5, size=4).astype(np.int64))])
    freeze("volumes", volumes, [("x", random.normal(size=(2, 3, 5, 8, 2)).astype(np.float32))])
    dropped()
    freeze("sized", sized, [("ids", np.array([[-1, 3], [0, 4], [2, -4]], np.int64)),
                            ("x", random.normal(size=(3, 6, 7, 2)).astype(np.float32))])
    stopped()
    freeze("rolled", rolled, [("x", random.normal(size=(4, 5, 4)).astype(np.float32)),
                              ("ids", random.integers(-9, 9, size=(4, 3)).astype(np.int32))])


if __name__ == "__main__":
    main()
