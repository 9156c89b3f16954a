#!/usr/bin/env python3
"""Makes the models of Keras in this folder, and what Keras computes of them.

Run with a Python that has tensorflow-cpu 2.12: `make_keras_references.py`. The files are named
as those of make_tensorflow_references.py. SavedModels have the signature alone: functions that it
does not call are taken out of them.
"""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import shutil
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

HERE = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(31)
keras, layers = tf.keras, tf.keras.layers


def write(name, kind, arrays):
    for i, array in enumerate(arrays):
        np.save(os.path.join(HERE, f"{name}.{kind}_{i}.npy"), np.asarray(array))


def shake(model):
    """Weights that are not those of a beginning: no bias is zero."""
    for variable in model.variables:
        variable.assign(random.normal(size=variable.shape, scale=0.4).astype(np.float32))


def strip(graph):
    """Takes out what nobody reads, for small files: hints, and where nodes came from."""
    for nodes in [graph.node] + [f.node_def for f in graph.library.function]:
        for node in nodes:
            node.ClearField("experimental_debug_info")
            for key in [k for k in node.attr if k.startswith("_") or k == "output_shapes"]:
                del node.attr[key]
    for function in graph.library.function:
        function.arg_attr.clear()
        function.attr.clear()
        function.resource_arg_unique_id.clear()
    kept = [n for n in graph.node if not n.name.startswith("unused_control_flow_input")]
    del graph.node[:]
    graph.node.extend(kept)
    return graph


def concrete_of(model):
    specs = [tf.TensorSpec([None] + list(i.shape[1:]), i.dtype, name=i.name) for i in model.inputs]
    return tf.function(lambda x: model(x)).get_concrete_function(*specs)


def freeze(name, model, x, lower):
    """A frozen graph, with loops of the older kind where `lower`."""
    graph = convert_variables_to_constants_v2(concrete_of(model), lower_control_flow=lower)
    with open(os.path.join(HERE, f"{name}.pb"), "wb") as file:
        file.write(strip(graph.graph.as_graph_def()).SerializeToString(deterministic=True))
    outputs = model(x)
    write(name, "input", [x])
    write(name, "output", outputs if isinstance(outputs, (list, tuple)) else [outputs])


def reachable(graph):
    """The functions that the graph's own nodes call."""
    functions = {f.signature.name: f for f in graph.library.function}
    found, wanted = {}, [graph.node]
    while wanted:
        for node in wanted.pop():
            names = [node.op] + [a.func.name for a in node.attr.values() if a.HasField("func")]
            for name in names:
                if name in functions and name not in found:
                    found[name] = functions[name]
                    wanted.append(functions[name].node_def)
    return [found[name] for name in sorted(found)]


def save(name, model):
    """A SavedModel of the variables and one signature."""
    module = tf.Module()
    module.kept = model.variables
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    spec = model.inputs[0]
    signature = tf.function(lambda x: {"y": model(x)}, input_signature=[
        tf.TensorSpec([None] + list(spec.shape[1:]), spec.dtype, name="x")])
    tf.saved_model.save(module, folder, signatures={"serving_default": signature})
    path = os.path.join(folder, "saved_model.pb")
    saved = saved_model_pb2.SavedModel()
    with open(path, "rb") as file:
        saved.ParseFromString(file.read())
    meta = saved.meta_graphs[0]
    kept = reachable(meta.graph_def)
    del meta.graph_def.library.function[:]
    del meta.graph_def.library.gradient[:]
    meta.graph_def.library.function.extend(kept)
    strip(meta.graph_def)
    meta.object_graph_def.concrete_functions.clear()
    meta.meta_info_def.stripped_op_list.Clear()
    with open(path, "wb") as file:
        file.write(saved.SerializeToString(deterministic=True))
    os.remove(os.path.join(folder, "fingerprint.pb"))
    os.rmdir(os.path.join(folder, "assets"))


def train(name, model, x, classes, training=False):
    """Inputs, outputs, labels, and every variable after a step of SGD on a mean cross entropy."""
    labels = random.integers(0, classes, size=len(x)).astype(np.int64)
    write(name, "input", [x])
    write(name, "output", [model(x)])
    np.save(os.path.join(HERE, f"{name}.labels.npy"), labels)
    with tf.GradientTape() as tape:
        logits = model(x, training=training)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    variables = model.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    for variable in model.variables:
        step_name = variable.name.split(":")[0].replace("/", "+")
        np.save(os.path.join(HERE, f"{name}.step_{step_name}.npy"), variable.numpy())


def chain(activation):
    """Every kind of net, one after the other."""
    x = keras.Input((5, 3), name="x")
    y = layers.LSTM(4, return_sequences=True, activation=activation, name="lstm")(x)
    y = layers.GRU(3, return_sequences=True, activation=activation, name="gru")(y)
    y = layers.GRU(4, return_sequences=True, reset_after=False, activation=activation,
                   name="gru_before")(y)
    y = layers.SimpleRNN(3, activation=activation, name="rnn")(y)
    return keras.Model(x, layers.Dense(3, name="dense")(y))


def masked():
    ids = keras.Input((6,), dtype="int32", name="x")
    y = layers.Embedding(9, 3, mask_zero=True, name="table")(ids)
    y = layers.Bidirectional(layers.GRU(3), name="both")(y)
    return keras.Model(ids, layers.Dense(3, name="dense")(y))


def directions():
    """Both directions, states that are handed on, functions of their own."""
    x = keras.Input((4, 3), name="x")
    both = layers.Bidirectional(layers.GRU(2, return_sequences=True), merge_mode="sum")(x)
    back, h, c = layers.LSTM(3, return_state=True, go_backwards=True, activation="relu")(x)
    handed = layers.LSTM(3, recurrent_activation="hard_sigmoid")(x, initial_state=[h, c])
    return keras.Model(x, [both, back, handed])


def normalized():
    """Batch normalization of images, which is one node, and of vectors and sequences, of several."""
    x = keras.Input((6, 6, 2), name="x")
    y = layers.Conv2D(4, 3, strides=2, use_bias=False, name="conv")(x)
    y = layers.ReLU()(layers.BatchNormalization(momentum=0.9, name="norm")(y))
    y = layers.Reshape((4, 4))(y)
    y = layers.BatchNormalization(momentum=0.9, scale=False, name="norm_sequence")(y)
    y = layers.Dense(5, activation="tanh", name="hidden")(layers.Flatten()(y))
    y = layers.BatchNormalization(momentum=0.9, name="norm_vector")(y)
    return keras.Model(x, layers.Dense(3, name="dense")(y))


def images():
    x = keras.Input((3, 5, 4, 2), name="x")
    return keras.Model(x, layers.ConvLSTM2D(2, 3, padding="same", return_sequences=True)(x))


def loop(name, goes_on):
    """A loop that doubles, as a frozen graph: what cannot be unrolled."""
    def function(x):
        return tf.while_loop(lambda i, y: goes_on(i, y), lambda i, y: (i + 1, 2.0 * y), (0, x))[1]
    concrete = tf.function(function).get_concrete_function(
        tf.TensorSpec([None, 2], tf.float32, name="x"))
    with open(os.path.join(HERE, f"{name}.pb"), "wb") as file:
        file.write(strip(concrete.graph.as_graph_def()).SerializeToString(deterministic=True))


def open_length():
    """A net for sequences of any length."""
    x = keras.Input((None, 3), name="x")
    y = layers.GRU(2, return_sequences=True)(layers.LSTM(2, return_sequences=True)(x))
    return keras.Model(x, y)


def main():
    loop("loop_long", lambda i, y: i < 5000)
    loop("loop_data", lambda i, y: tf.reduce_sum(y) < 100.0)
    loop("loop_open", lambda i, y: i < tf.shape(y)[0])
    x = random.normal(size=(6, 5, 3)).astype(np.float32)
    fused, loops = chain("tanh"), chain(lambda z: tf.tanh(z) + 0.0)
    shake(fused)
    loops.set_weights(fused.get_weights())
    save("recurrent", fused)
    freeze("recurrent_loops", loops, x, False)
    train("recurrent", fused, x, 3)
    ids = random.integers(1, 9, size=(4, 6)).astype(np.int32)
    ids[0, 4:] = ids[1, 1:] = ids[2, 2] = 0
    model = masked()
    shake(model)
    save("masked", model)
    train("masked", model, ids, 3)
    model = directions()
    shake(model)
    freeze("directions", model, random.normal(size=(2, 4, 3)).astype(np.float32), False)
    model = open_length()
    shake(model)
    freeze("open_length", model, random.normal(size=(2, 3, 3)).astype(np.float32), False)
    model = normalized()
    shake(model)
    for variable in model.variables:
        if "variance" in variable.name:
            variable.assign(tf.abs(variable) + 0.5)
    x = random.normal(size=(8, 6, 6, 2)).astype(np.float32)
    save("normalized", model)
    train("normalized", model, x, 3, training=True)
    model = images()
    shake(model)
    freeze("convolved", model, random.normal(size=(2, 3, 5, 4, 2)).astype(np.float32), True)


if __name__ == "__main__":
    main()
