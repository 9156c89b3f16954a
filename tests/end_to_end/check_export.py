#!/usr/bin/python3
"""Checks an exported model without Penstock and without onnxruntime.

  check_export.py ORIGINAL.onnx EXPORTED.onnx INPUTS.npy OUTPUTS.npy [--relative R] [--absolute A]
                  [--output NAME]

1. onnx.checker accepts EXPORTED, with full shape inference.
2. Its interface is ORIGINAL's: same inputs and outputs by name, type and rank; every float
   initialiser of ORIGINAL is there with its shape, or counted as folded away.
3. Its value on INPUTS, computed here by NumPy and PyTorch in double precision operator by operator,
   is OUTPUTS: |a - b| <= A + R * max|b|.
Status 0 if all three hold, 1 if one does not, 2 if the check could not be made.
INPUTS.npy goes to the first graph input that is no initialiser; for several inputs, write
NAME=FILE,NAME=FILE. `-` for OUTPUTS.npy skips comparison 3 but still evaluates.
"""
import argparse
import sys

import numpy
import onnx
import onnx.numpy_helper
import onnx.shape_inference
import torch
from google.protobuf.message import DecodeError
from torch.nn import functional

OPERATORS = {}


class Failed(Exception):
    """A check that does not hold."""


class Unable(Exception):
    """The check cannot be made."""


def operator(*names):
    def add(function):
        for name in names:
            OPERATORS[name] = function
        return function
    return add


def as_list(value):
    return [int(v) for v in numpy.asarray(value).ravel()]


def axis_of(attributes, rank, default):
    axis = attributes.get("axis", default)
    return axis + rank if axis < 0 else axis


def argument(inputs, index, attributes, name, default=None):
    """A parameter that newer opsets take as an input and older ones as an attribute."""
    if len(inputs) > index and inputs[index] is not None:
        return inputs[index]
    return attributes.get(name, default)


def pads_of(x, attributes, kernel, strides, dilations):
    """[(before, after)] of each spatial axis."""
    rank = x.dim() - 2
    mode = attributes.get("auto_pad", b"NOTSET").decode()
    if mode in ("NOTSET", ""):
        pads = attributes.get("pads", [0] * 2 * rank)
        return list(zip(pads[:rank], pads[rank:]))
    if mode == "VALID":
        return [(0, 0)] * rank
    pads = []
    for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations):
        total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return pads


def padded(x, pads, value=0.0):
    flat = [p for pair in reversed(pads) for p in pair]
    return functional.pad(x, flat, value=value) if any(flat) else x


def window(x, attributes, kernel):
    rank = x.dim() - 2
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    return strides, dilations, pads_of(x, attributes, kernel, strides, dilations)


@operator("Conv")
def conv(inputs, attributes, _):
    x, weight = inputs[:2]
    bias = inputs[2] if len(inputs) > 2 else None
    strides, dilations, pads = window(x, attributes, list(weight.shape[2:]))
    function = [functional.conv1d, functional.conv2d, functional.conv3d][x.dim() - 3]
    return function(padded(x, pads), weight, bias, strides, 0, dilations,
                    attributes.get("group", 1))


@operator("ConvTranspose")
def conv_transpose(inputs, attributes, _):
    x, weight = inputs[:2]
    bias = inputs[2] if len(inputs) > 2 else None
    if "output_shape" in attributes or attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise Unable("ConvTranspose with output_shape or auto_pad")
    rank = x.dim() - 2
    pads = attributes.get("pads", [0] * 2 * rank)
    if pads[:rank] != pads[rank:]:
        raise Unable("ConvTranspose with unequal pads")
    function = [functional.conv_transpose1d, functional.conv_transpose2d,
                functional.conv_transpose3d][rank - 1]
    return function(x, weight, bias, attributes.get("strides", [1] * rank), pads[:rank],
                    attributes.get("output_padding", [0] * rank), attributes.get("group", 1),
                    attributes.get("dilations", [1] * rank))


@operator("MaxPool", "AveragePool")
def pool(inputs, attributes, node):
    """By unfolding windows, with ceil_mode's partial windows as padding at the end."""
    x, kernel = inputs[0], attributes["kernel_shape"]
    strides, dilations, pads = window(x, attributes, kernel)
    extra = []
    for size, k, s, d, (before, after) in zip(x.shape[2:], kernel, strides, dilations, pads):
        span, length = (k - 1) * d + 1, size + before + after
        count = (length - span) // s + 1
        if attributes.get("ceil_mode", 0):
            count = -(-(length - span) // s) + 1
            if (count - 1) * s >= size + before:
                count -= 1  # a window may not begin in the padding after
        extra.append(max(0, (count - 1) * s + span - length))
    largest = node.op_type == "MaxPool"
    inside = padded(torch.ones_like(x), pads, 1.0 if attributes.get("count_include_pad") else 0.0)
    x = padded(x, pads, -numpy.inf if largest else 0.0)
    x, inside = (padded(t, [(0, e) for e in extra], f)
                 for t, f in ((x, -numpy.inf if largest else 0.0), (inside, 0.0)))
    for i, (k, s, d) in enumerate(zip(kernel, strides, dilations)):
        span = (k - 1) * d + 1
        x, inside = (t.unfold(2 + i, span, s)[..., ::d] for t in (x, inside))
    axes = list(range(-len(kernel), 0))
    return torch.amax(x, axes) if largest else x.sum(axes) / inside.sum(axes)


@operator("GlobalAveragePool")
def global_average_pool(inputs, _attributes, _):
    return inputs[0].mean(list(range(2, inputs[0].dim())), keepdim=True)


@operator("GlobalMaxPool")
def global_max_pool(inputs, _attributes, _):
    return inputs[0].amax(list(range(2, inputs[0].dim())), keepdim=True)


@operator("BatchNormalization")
def batch_normalization(inputs, attributes, _):
    """As for inference, whatever the node says: an export is a trained model."""
    x = inputs[0]
    scale, bias, mean, variance = (
        v.reshape([1, -1] + [1] * (x.dim() - 2)) for v in inputs[1:5])
    return (x - mean) / torch.sqrt(variance + attributes.get("epsilon", 1e-5)) * scale + bias


@operator("LRN")
def lrn(inputs, attributes, _):
    x, size = inputs[0], attributes["size"]
    before = (size - 1) // 2
    squares = torch.zeros_like(x)
    for offset in range(-before, size - before):
        first, last = max(0, -offset), min(x.shape[1], x.shape[1] - offset)
        squares[:, first:last] += x[:, first + offset:last + offset] ** 2
    scale = attributes.get("bias", 1.0) + attributes.get("alpha", 1e-4) / size * squares
    return x / scale ** attributes.get("beta", 0.75)


@operator("Gemm")
def gemm(inputs, attributes, _):
    a, b = inputs[:2]
    a = a.T if attributes.get("transA") else a
    b = b.T if attributes.get("transB") else b
    result = attributes.get("alpha", 1.0) * (a @ b)
    if len(inputs) > 2 and inputs[2] is not None:
        result = result + attributes.get("beta", 1.0) * inputs[2]
    return result


@operator("MatMul")
def matmul(inputs, _attributes, _):
    return torch.matmul(inputs[0], inputs[1])


def divide(a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


BINARY = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": divide, "Pow": torch.pow,
          "Equal": torch.eq, "Less": torch.lt, "Greater": torch.gt, "And": torch.logical_and,
          "Or": torch.logical_or}
UNARY = {"Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Erf": torch.erf,
         "Exp": torch.exp, "Log": torch.log, "Sqrt": torch.sqrt, "Neg": torch.neg,
         "Abs": torch.abs, "Reciprocal": torch.reciprocal, "Not": torch.logical_not,
         "HardSwish": lambda x: x * torch.clamp(x / 6 + 0.5, 0, 1), "Identity": lambda x: x,
         "Softplus": functional.softplus}


@operator(*BINARY)
def binary(inputs, _attributes, node):
    return BINARY[node.op_type](inputs[0], inputs[1])


@operator(*UNARY)
def unary(inputs, _attributes, node):
    return UNARY[node.op_type](inputs[0])


@operator("LeakyRelu")
def leaky_relu(inputs, attributes, _):
    return functional.leaky_relu(inputs[0], attributes.get("alpha", 0.01))


@operator("HardSigmoid")
def hard_sigmoid(inputs, attributes, _):
    scaled = attributes.get("alpha", 0.2) * inputs[0] + attributes.get("beta", 0.5)
    return torch.clamp(scaled, 0, 1)


@operator("Clip")
def clip(inputs, attributes, _):
    low = argument(inputs, 1, attributes, "min", -numpy.inf)
    high = argument(inputs, 2, attributes, "max", numpy.inf)
    return torch.clamp(inputs[0], float(low), float(high))


@operator("Dropout")
def dropout(inputs, _attributes, _):
    return inputs[0]


@operator("Softmax", "LogSoftmax")
def softmax(inputs, attributes, node):
    function = torch.softmax if node.op_type == "Softmax" else torch.log_softmax
    x = inputs[0]
    if attributes["opset"] >= 13:
        return function(x, attributes.get("axis", -1))
    axis = axis_of(attributes, x.dim(), 1)  # older: everything from the axis on, as one
    return function(x.reshape(x.shape[:axis].numel(), -1), 1).reshape(x.shape)


@operator("Flatten")
def flatten(inputs, attributes, _):
    axis = axis_of(attributes, inputs[0].dim(), 1)
    return inputs[0].reshape(inputs[0].shape[:axis].numel(), inputs[0].shape[axis:].numel())


@operator("Reshape")
def reshape(inputs, attributes, _):
    shape = as_list(inputs[1])
    if not attributes.get("allowzero"):
        shape = [inputs[0].shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return inputs[0].reshape(shape)


@operator("Transpose")
def transpose(inputs, attributes, _):
    order = attributes.get("perm", list(reversed(range(inputs[0].dim()))))
    return inputs[0].permute(order)


@operator("Concat")
def concat(inputs, attributes, _):
    return torch.cat(inputs, attributes["axis"])


@operator("Split")
def split(inputs, attributes, node):
    sizes = argument(inputs, 1, attributes, "split")
    axis = attributes.get("axis", 0)
    if sizes is None:
        sizes = [inputs[0].shape[axis] // len(node.output)] * len(node.output)
    return tuple(torch.split(inputs[0], as_list(sizes), axis))


@operator("Slice")
def slice_values(inputs, attributes, _):
    x = inputs[0]
    starts = as_list(argument(inputs, 1, attributes, "starts"))
    ends = as_list(argument(inputs, 2, attributes, "ends"))
    axes = as_list(argument(inputs, 3, attributes, "axes", range(len(starts))))
    steps = as_list(argument(inputs, 4, attributes, "steps", [1] * len(starts)))
    index = [slice(None)] * x.dim()
    for start, end, axis, step in zip(starts, ends, axes, steps):
        if step < 0 and end < -x.shape[axis]:
            end = None
        index[axis] = slice(start, end, step)
    return torch.from_numpy(numpy.ascontiguousarray(x.numpy()[tuple(index)]))


@operator("Pad")
def pad(inputs, attributes, _):
    x = inputs[0]
    pads = as_list(argument(inputs, 1, attributes, "pads"))
    value = float(argument(inputs, 2, attributes, "value", 0.0))
    mode = attributes.get("mode", b"constant").decode()
    pairs = list(zip(pads[:x.dim()], pads[x.dim():]))
    if min(pads) < 0:
        raise Unable("Pad with negative pads")
    if mode == "constant":
        result = numpy.pad(x.numpy(), pairs, constant_values=value)
    else:
        result = numpy.pad(x.numpy(), pairs, mode={"reflect": "reflect", "edge": "edge"}[mode])
    return torch.from_numpy(result)


@operator("Squeeze", "Unsqueeze")
def squeeze(inputs, attributes, node):
    x = inputs[0]
    axes = argument(inputs, 1, attributes, "axes")
    if node.op_type == "Squeeze":
        axes = [i for i, d in enumerate(x.shape) if d == 1] if axes is None else as_list(axes)
        return torch.from_numpy(numpy.squeeze(x.numpy(), tuple(axes)))
    return torch.from_numpy(numpy.expand_dims(x.numpy(), tuple(as_list(axes))))


@operator("Expand")
def expand(inputs, _attributes, _):
    shape = numpy.broadcast_shapes(tuple(inputs[0].shape), tuple(as_list(inputs[1])))
    return inputs[0].expand(shape).clone()


@operator("ReduceSum", "ReduceMean", "ReduceMax")
def reduce(inputs, attributes, node):
    x = inputs[0]
    axes = argument(inputs, 1, attributes, "axes")
    if axes is None or not as_list(axes):
        if attributes.get("noop_with_empty_axes"):
            return x
        axes = range(x.dim())
    function = {"ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax}
    keep = attributes.get("keepdims", 1) == 1
    return function[node.op_type](x, as_list(list(axes)), keepdim=keep)


@operator("Constant")
def constant(_inputs, attributes, _):
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        if name in attributes:
            value = attributes[name]
            return to_torch(onnx.numpy_helper.to_array(value) if name == "value"
                            else numpy.array(value))
    raise Unable("Constant of a kind that is not a number")


@operator("ConstantOfShape")
def constant_of_shape(inputs, attributes, _):
    value = numpy.zeros(1, numpy.float32)
    if "value" in attributes:
        value = onnx.numpy_helper.to_array(attributes["value"])
    return to_torch(numpy.full(as_list(inputs[0]), value.ravel()[0]))


@operator("Shape")
def shape_of(inputs, attributes, _):
    dimensions = list(inputs[0].shape)
    return torch.tensor(dimensions[attributes.get("start", 0):attributes.get("end")])


@operator("Gather")
def gather(inputs, attributes, _):
    return torch.from_numpy(numpy.asarray(
        numpy.take(inputs[0].numpy(), inputs[1].numpy(), attributes.get("axis", 0))))


@operator("Range")
def range_of(inputs, _attributes, _):
    return torch.arange(*(v.item() for v in inputs))


@operator("Where")
def where(inputs, _attributes, _):
    return torch.where(*inputs)


@operator("Cast")
def cast(inputs, attributes, _):
    kind = onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[attributes["to"]]
    return to_torch(inputs[0].numpy().astype(kind))


def to_torch(array):
    """Floating point becomes float64: what is compared is the model, not rounding."""
    array = numpy.array(array)
    return torch.from_numpy(array.astype(numpy.float64) if array.dtype.kind == "f" else array)


def evaluate(model, feeds):
    """Values of the graph's outputs by name."""
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
    values = {i.name: to_torch(onnx.numpy_helper.to_array(i)) for i in model.graph.initializer}
    values.update({name: to_torch(array) for name, array in feeds.items()})
    for node in model.graph.node:
        function = OPERATORS.get(node.op_type)
        if function is None or node.domain not in ("", "ai.onnx"):
            raise Unable(f"operator {node.op_type} of node '{node.name}' is not known here")
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes["opset"] = opset
        missing = [name for name in node.input if name and name not in values]
        if missing:
            raise Failed(f"node '{node.name}' reads {missing}, which nothing has written")
        inputs = [values[name] if name else None for name in node.input]
        try:
            results = function(inputs, attributes, node)
        except (RuntimeError, ValueError, IndexError, KeyError) as error:
            raise Failed(f"{node.op_type} '{node.name}' cannot be evaluated: {error}") from error
        results = results if isinstance(results, tuple) else (results,)
        values.update(zip((name for name in node.output), results))
    return {o.name: values[o.name].numpy() for o in model.graph.output}


def interface(values):
    return [(v.name, v.type.tensor_type.elem_type, len(v.type.tensor_type.shape.dim))
            for v in values]


def real_inputs(graph):
    initializers = {i.name for i in graph.initializer}
    return [i for i in graph.input if i.name not in initializers]


def compare_interfaces(original, exported):
    for kind, a, b in (("inputs", real_inputs(original.graph), real_inputs(exported.graph)),
                       ("outputs", original.graph.output, exported.graph.output)):
        if interface(a) != interface(b):
            raise Failed(f"{kind} differ (name, type, rank): found {interface(b)}, expected "
                         f"{interface(a)}")
    after = {i.name: list(i.dims) for i in exported.graph.initializer}
    folded = 0
    for initializer in original.graph.initializer:
        if initializer.data_type != onnx.TensorProto.FLOAT:
            continue
        if initializer.name not in after:
            folded += 1
        elif after[initializer.name] != list(initializer.dims):
            raise Failed(f"initialiser '{initializer.name}': found shape "
                         f"{after[initializer.name]}, expected {list(initializer.dims)}")
    return folded


def read_feeds(model, text):
    names = [i.name for i in real_inputs(model.graph)]
    if "=" not in text:
        return {names[0]: numpy.load(text)}
    feeds = dict(part.split("=", 1) for part in text.split(","))
    for name in feeds:
        if name not in names:
            raise Unable(f"no input '{name}'; the model has {names}")
    return {name: numpy.load(path) for name, path in feeds.items()}


def compare(found, expected, options):
    if found.shape != expected.shape:
        raise Failed(f"shapes differ: the exported model gives {found.shape}, the file has "
                     f"{expected.shape}")
    if not (numpy.isfinite(found).all() and numpy.isfinite(expected).all()):
        raise Failed("values that are not finite")
    size = float(numpy.abs(expected).max()) if expected.size else 0.0
    error = numpy.abs(found - expected)
    worst = float(error.max()) if error.size else 0.0
    if worst > options.absolute + options.relative * size:
        where_worst = tuple(int(i) for i in numpy.unravel_index(error.argmax(), error.shape))
        raise Failed(f"outputs differ by {worst:.3g} at {where_worst}: the exported model gives "
                     f"{found[where_worst]:.9g}, the file has {expected[where_worst]:.9g}; allowed "
                     f"{options.absolute + options.relative * size:.3g}")
    return worst


def check_inference(exported):
    """Other programs take the model for inference: nothing drops, no statistics are the batch's."""
    for node in exported.graph.node:
        trains = any(a.name == "training_mode" and a.i for a in node.attribute)
        if trains or node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
            raise Failed(f"{node.op_type} '{node.name}' has the form of training")


def check(options):
    original = onnx.load(options.original)
    try:
        exported = onnx.load(options.exported)
    except DecodeError as error:
        raise Failed(f"no ONNX file: {error}") from error
    try:
        # The model, not its path: given a path, a full check rewrites the file.
        onnx.checker.check_model(exported, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise Failed(f"onnx.checker: {error}") from error
    check_inference(exported)
    folded = compare_interfaces(original, exported)
    outputs = evaluate(exported, read_feeds(exported, options.inputs))
    name = options.output or exported.graph.output[0].name
    if name not in outputs:
        raise Unable(f"no output '{name}'; the model has {list(outputs)}")
    if options.outputs == "-":
        print(f"check_export: {options.exported}: ok, evaluated to {outputs[name].shape}")
        return
    worst = compare(outputs[name], numpy.load(options.outputs), options)
    print(f"check_export: {options.exported}: ok, {len(exported.graph.node)} nodes, {folded} "
          f"initialisers folded away, largest difference {worst:.3g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("original", "exported", "inputs", "outputs"):
        parser.add_argument(name)
    parser.add_argument("--relative", type=float, default=1e-5)
    parser.add_argument("--absolute", type=float, default=1e-6)
    parser.add_argument("--output", metavar="NAME", help="compare this output, not the first")
    options = parser.parse_args()
    try:
        check(options)
    except Failed as error:
        sys.exit(f"check_export: {options.exported}: {error}")
    except (Unable, OSError) as error:
        print(f"check_export: cannot check {options.exported}: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
