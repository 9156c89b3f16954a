#!/usr/bin/env python3
"""Writes seeds of the fuzzer of TensorFlow's graphs: one small graph for each operator.

Run with a Python that has tensorflow-cpu 2.12. A graph has an input `x`, the operator, and what the
operator reads as constants.
"""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
R = tf.raw_ops
UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor Inv Log Log1p
LogSoftmax Neg OnesLike Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softmax
Softplus Softsign Sqrt Square Tan Tanh ZerosLike StopGradient PreventGradient Snapshot Shape Size
Rank""".split()
BINARY = """Add AddV2 Div Equal FloorDiv FloorMod Greater GreaterEqual Less LessEqual Maximum Minimum
Mul NotEqual Pow RealDiv SquaredDifference Sub""".split()
REDUCE = "Max Mean Min Prod Sum ArgMax ArgMin".split()


def f(*shape):
    return tf.constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 8)


def i(*numbers):
    return tf.constant(np.array(numbers, np.int32))


def images(x):
    y = R.Conv2D(input=x, filter=f(2, 2, 3, 2), strides=[1, 2, 2, 1], padding="SAME", dilations=[1, 1, 1, 1])
    y = R.BiasAdd(value=y, bias=f(2))
    y = R.DepthwiseConv2dNative(input=y, filter=f(2, 2, 2, 1), strides=[1, 1, 1, 1], padding="SAME")
    return y


def transposed(x):
    return R.Conv2DBackpropInput(input_sizes=i(2, 8, 8, 2), filter=f(2, 2, 2, 3), out_backprop=x,
                                 strides=[1, 2, 2, 1], padding="SAME")


def normed(x):
    return R.FusedBatchNormV3(x=x, scale=f(3), offset=f(3), mean=f(3), variance=f(3), is_training=False)[0]


def shapes(x):
    shape = R.Shape(input=x)
    rows = R.StridedSlice(input=shape, begin=i(0), end=i(1), strides=i(1), shrink_axis_mask=1)
    both = R.Pack(values=[rows, tf.constant(-1)], axis=0)
    joined = R.ConcatV2(values=[both, R.Range(start=1, limit=2, delta=1)], axis=0)
    picked = R.GatherV2(params=joined, indices=i(0, 1), axis=0)
    product = R.Mul(x=R.Prod(input=shape, axis=i(0)), y=R.FloorDiv(x=rows, y=rows))
    flat = R.Reshape(tensor=x, shape=picked)
    filled = R.Fill(dims=R.ExpandDims(input=product, axis=0), value=1.5)
    return flat, filled, R.Slice(input=shape, begin=i(1), size=i(1))


SHAPES = {"vectors": [None, 6], "images": [None, 4, 4, 3]}
CASES = {
    "images": ("images", images), "transposed": ("images", transposed), "normed": ("images", normed),
    "max_pool": ("images", lambda x: R.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")),
    "avg_pool": ("images", lambda x: R.AvgPool(value=x, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME")),
    "lrn": ("images", lambda x: R.LRN(input=x, depth_radius=2)),
    "bilinear": ("images", lambda x: R.ResizeBilinear(images=x, size=i(8, 6), half_pixel_centers=True)),
    "nearest": ("images", lambda x: R.ResizeNearestNeighbor(images=x, size=i(8, 6))),
    "blocks": ("images", lambda x: R.SpaceToDepth(input=x, block_size=2)),
    "depths": ("images", lambda x: R.DepthToSpace(input=R.ConcatV2(values=[x] * 4, axis=3), block_size=2)),
    "mirror": ("images", lambda x: R.MirrorPad(input=x, paddings=tf.constant([[0, 0], [1, 1], [1, 1], [0, 0]]), mode="REFLECT")),
    "pad": ("images", lambda x: R.PadV2(input=x, paddings=tf.constant([[0, 0], [1, 0], [0, 2], [0, 0]]), constant_values=1.0)),
    "leaky": ("vectors", lambda x: R.LeakyRelu(features=x, alpha=0.1)),
    "shapes": ("vectors", shapes),
    "add_n": ("vectors", lambda x: R.AddN(inputs=[x, x])),
    "product": ("vectors", lambda x: R.MatMul(a=x, b=f(6, 2))),
    "batched": ("vectors", lambda x: R.BatchMatMulV2(x=R.ExpandDims(input=x, axis=1), y=f(1, 6, 2), adj_x=False)),
    "einsum": ("vectors", lambda x: R.Einsum(inputs=[x, f(6, 2)], equation="ij,jk->ik")),
    "broadcast": ("vectors", lambda x: R.BroadcastTo(input=f(1, 6), shape=i(3, 6)) + x),
    "cast": ("vectors", lambda x: R.Cast(x=R.Cast(x=x, DstT=tf.int32), DstT=tf.float32)),
    "cumsum": ("vectors", lambda x: R.Cumsum(x=x, axis=1, exclusive=True, reverse=True)),
    "gather": ("vectors", lambda x: R.GatherV2(params=x, indices=i(1, 0, 5), axis=1)),
    "gather_nd": ("vectors", lambda x: R.GatherNd(params=f(4, 6), indices=tf.constant([[1], [2]]))),
    "logic": ("vectors", lambda x: R.LogicalNot(x=R.LogicalAnd(x=x > 0, y=R.LogicalOr(x=x > 1, y=x < 0)))),
    "select": ("vectors", lambda x: R.SelectV2(condition=x > 0, t=x, e=R.ZerosLike(x=x))),
    "band": ("vectors", lambda x: R.MatrixBandPart(input=f(6, 6), num_lower=-1, num_upper=0) + x[:1]),
    "one_hot": ("vectors", lambda x: R.OneHot(indices=R.ArgMax(input=x, dimension=1), depth=6, on_value=1.0, off_value=0.0)),
    "split": ("vectors", lambda x: R.Split(axis=1, value=x, num_split=3)),
    "split_v": ("vectors", lambda x: R.SplitV(value=x, size_splits=i(1, 5), axis=1, num_split=2)),
    "squeeze": ("vectors", lambda x: R.Squeeze(input=R.ExpandDims(input=x, axis=1), axis=[1])),
    "strided": ("vectors", lambda x: R.StridedSlice(input=x, begin=i(0, 5, 0), end=i(0, 0, 0), strides=i(1, -2, 1), begin_mask=1, end_mask=1, new_axis_mask=4)),
    "ellipsis": ("vectors", lambda x: x[..., tf.newaxis, 1]),
    "tile": ("vectors", lambda x: R.Tile(input=x, multiples=i(1, 2))),
    "transpose": ("vectors", lambda x: R.Transpose(x=x, perm=i(1, 0))),
    "unpack": ("vectors", lambda x: R.Unpack(value=x, num=6, axis=1)),
    "identities": ("vectors", lambda x: R.IdentityN(input=[x, R.EnsureShape(input=x, shape=[None, 6]), R.CheckNumerics(tensor=x, message="")])),
    "default": ("vectors", lambda x: x + R.PlaceholderWithDefault(input=f(6), shape=[6])),
}
CASES.update({"unary": ("vectors", lambda x: [one(name, x) for name in UNARY])})
CASES.update({"binary": ("vectors", lambda x: [getattr(R, name)(x=x, y=f(6)) for name in BINARY])})
CASES.update({"reduce": ("vectors", lambda x: [reduce(name, x) for name in REDUCE])})


def one(name, x):
    raw = getattr(R, name)
    for argument in ["x", "input", "features", "logits"]:
        try:
            return raw(**{argument: x})
        except TypeError:
            continue
    raise ValueError(name)


def reduce(name, x):
    if name.startswith("Arg"):
        return getattr(R, name)(input=x, dimension=1)
    return getattr(R, name)(input=x, axis=i(1), keep_dims=True)


def main():
    for name, (shape, build) in CASES.items():
        graph = tf.Graph()
        with graph.as_default():
            build(tf.compat.v1.placeholder(tf.float32, SHAPES[shape], name="x"))
        definition = graph.as_graph_def()
        for node in definition.node:
            for key in [k for k in node.attr if k.startswith("_")]:
                del node.attr[key]
        with open(os.path.join(HERE, "corpus", "graphdef", "op_" + name), "wb") as file:
            file.write(definition.SerializeToString(deterministic=True))


main()
