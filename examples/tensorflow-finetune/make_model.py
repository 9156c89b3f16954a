#!/usr/bin/env python3
"""Made clothes.pb: a convolutional network trained by TensorFlow on 2000 pictures of Fashion-MNIST,
then frozen. Not needed to run the example.

  make_model.py [-o clothes.pb]

Needs TensorFlow 2 (`pip install tensorflow`) and Debian's dataset-fashion-mnist.
"""
import argparse
import gzip

import numpy
import tensorflow.compat.v1 as tf

DATASET = "/usr/share/datasets/fashion-mnist"
BATCH, STEPS, EXAMPLES = 50, 300, 2000


def read():
    with gzip.open(f"{DATASET}/train-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 28, 28, 1)
    with gzip.open(f"{DATASET}/train-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read(), numpy.uint8, offset=8).astype(numpy.int64)
    return (images[:EXAMPLES].astype(numpy.float32) / 255 - 0.286) / 0.353, labels[:EXAMPLES]


def layer(x, name, shape, strides):
    scale = (2 / numpy.prod(shape[:-1])) ** 0.5
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", shape,
                                  initializer=tf.random_normal_initializer(stddev=scale, seed=1))
        bias = tf.get_variable("bias", shape[-1:], initializer=tf.zeros_initializer())
        y = tf.nn.conv2d(x, weights, strides, "SAME") if strides else tf.matmul(x, weights)
        return tf.nn.bias_add(y, bias)


def build(image):
    x = tf.nn.relu(layer(image, "conv1", [3, 3, 1, 16], 2))
    x = tf.nn.relu(layer(x, "conv2", [3, 3, 16, 32], 2))
    x = tf.nn.relu(layer(x, "conv3", [3, 3, 32, 32], 1))
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.reshape(x, [-1, 4 * 4 * 32])
    return tf.identity(layer(x, "head", [4 * 4 * 32, 10], 0), name="logits")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-o", "--output", default="clothes.pb")
    options = parser.parse_args()
    tf.disable_eager_execution()
    tf.set_random_seed(1)
    image = tf.placeholder(tf.float32, [None, 28, 28, 1], name="image")
    label = tf.placeholder(tf.int64, [None], name="label")
    logits = build(image)
    loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
    step = tf.train.AdamOptimizer(0.002).minimize(loss)
    images, labels = read()
    order = numpy.random.RandomState(1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            rows = order.randint(0, len(labels), BATCH)
            session.run(step, {image: images[rows], label: labels[rows]})
        frozen = tf.graph_util.convert_variables_to_constants(
            session, session.graph_def, ["logits"])
    with open(options.output, "wb") as file:
        file.write(frozen.SerializeToString())


if __name__ == "__main__":
    main()
