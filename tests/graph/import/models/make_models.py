#!/usr/bin/python3
"""Makes the models beside it, which the import tests and the fuzzer read.

Needs Debian's python3-onnx and python3-numpy. Equal runs write equal files.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT = TensorProto.FLOAT


def value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def array(name, data, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def save(name, nodes, inputs, outputs, tensors=(), opset=17, check=True, **more):
    opsets = more.pop("opset_imports", [helper.make_opsetid("", opset)])
    functions = more.pop("functions", [])
    graph = helper.make_graph(nodes, name, inputs, outputs, list(tensors))
    ir_version = more.pop("ir_version", 8)
    model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=ir_version, **more)
    if check:
        onnx.checker.check_model(model)
    with open(os.path.join(HERE, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString(deterministic=True))
    return model


def save_tensor(name, data, title):
    with open(os.path.join(HERE, name + ".pb"), "wb") as file:
        file.write(numpy_helper.from_array(data, title).SerializeToString(deterministic=True))


def encodings():
    """Every element type, raw and as a list; each tensor is [0, 1, 2, 3], bools [0, 1, 1, 1]."""
    kinds = {
        "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
        "bfloat16": TensorProto.BFLOAT16, "int8": TensorProto.INT8, "int16": TensorProto.INT16,
        "int32": TensorProto.INT32, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8,
        "uint16": TensorProto.UINT16, "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64,
        "bool": TensorProto.BOOL,
    }
    tensors, nodes, outputs = [], [], []
    for name, kind in kinds.items():
        numbers = np.arange(4)
        if name == "bfloat16":
            bits = np.arange(4, dtype=np.float32).view(np.uint32) >> 16
            raw = bits.astype(np.uint16).tobytes()
        else:
            raw = numbers.astype(np.dtype(name)).tobytes()
        typed = TensorProto(name="typed_" + name, data_type=kind, dims=[2, 2])
        if name == "float16":
            typed.int32_data.extend(numbers.astype(np.float16).view(np.uint16).tolist())
        elif name == "bfloat16":
            typed.int32_data.extend(bits.tolist())
        elif name == "float32":
            typed.float_data.extend(numbers.tolist())
        elif name == "float64":
            typed.double_data.extend(numbers.tolist())
        elif name == "int64":
            typed.int64_data.extend(numbers.tolist())
        elif name in ("uint32", "uint64"):
            typed.uint64_data.extend(numbers.tolist())
        elif name == "bool":
            typed.int32_data.extend([0, 1, 1, 1])
        else:
            typed.int32_data.extend(numbers.tolist())
        tensors += [TensorProto(name="raw_" + name, data_type=kind, dims=[2, 2], raw_data=raw), typed]
        for form in ("raw_", "typed_"):
            nodes.append(helper.make_node("Shape", [form + name], [form + name + "_shape"]))
            outputs.append(value(form + name + "_shape", [2], TensorProto.INT64))
    save("encodings", nodes, [], outputs, tensors)


def external():
    """Two tensors in external.data, and locations that must be refused."""
    first, second = np.arange(6, dtype=np.float32), np.arange(100, 104, dtype=np.float32)
    with open(os.path.join(HERE, "external.data"), "wb") as file:
        file.write(first.tobytes() + b"\0" * 8 + second.tobytes())

    def tensor(name, count, entries):
        proto = TensorProto(name=name, data_type=FLOAT, dims=[count], data_location=TensorProto.EXTERNAL)
        for key, text in entries.items():
            proto.external_data.add(key=key, value=text)
        return proto

    def model(name, tensors):
        nodes = [helper.make_node("Shape", [t.name], [t.name + "_shape"]) for t in tensors]
        outputs = [value(t.name + "_shape", [1], TensorProto.INT64) for t in tensors]
        save(name, nodes, [], outputs, tensors, check=False)

    model("external", [tensor("first", 6, {"location": "external.data"}),
                       tensor("second", 4, {"location": "external.data", "offset": "32", "length": "16"})])
    model("external_parent", [tensor("t", 6, {"location": "../models/external.data"})])
    model("external_absolute", [tensor("t", 6, {"location": "/etc/hostname"})])
    model("external_missing", [tensor("t", 6, {"location": "nothing.data"})])
    model("external_folder", [tensor("t", 6, {"location": "."})])
    model("external_link", [tensor("t", 6, {"location": "link.data"})])
    model("external_short", [tensor("t", 6, {"location": "external.data", "offset": "30"})])
    model("external_length", [tensor("t", 6, {"location": "external.data", "length": "20"})])
    model("external_number", [tensor("t", 6, {"location": "external.data", "offset": "-4"})])


def opsets():
    """One function in the forms of each operator set: the outputs must be equal."""
    rng = np.random.default_rng(7)
    weight = rng.standard_normal((4, 2, 3, 3)).astype(np.float32)
    scale, bias, mean = (rng.standard_normal(4).astype(np.float32) for _ in range(3))
    variance = rng.uniform(0.5, 2, 4).astype(np.float32)
    matrix = rng.standard_normal((5, 8)).astype(np.float32)
    x = rng.standard_normal((2, 2, 6, 6)).astype(np.float32)

    def build(opset):
        nodes, tensors = [], [array("weight", weight), array("scale", scale), array("bias", bias),
                              array("mean", mean), array("variance", variance), array("matrix", matrix)]

        def add(kind, inputs, outputs, **attributes):
            nodes.append(helper.make_node(kind, inputs, outputs, name=kind + "_" + outputs[0], **attributes))

        def ints(name, numbers):
            tensors.append(array(name, numbers, np.int64))
            return name

        def axes(kind, source, target, numbers, since, **attributes):
            if opset >= since:
                add(kind, [source, ints(target + "_axes", numbers)], [target], **attributes)
            else:
                add(kind, [source], [target], axes=numbers, **attributes)

        if opset >= 11:
            add("Pad", ["x", ints("pads", [0, 0, 1, 1, 0, 0, 1, 1])], ["padded"])
        else:
            add("Pad", ["x"], ["padded"], mode="constant", pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.0)
        add("Conv", ["padded", "weight"], ["conv"], kernel_shape=[3, 3])
        if opset >= 14:
            add("BatchNormalization", ["conv", "scale", "bias", "mean", "variance"], ["norm"], training_mode=0)
        else:
            add("BatchNormalization", ["conv", "scale", "bias", "mean", "variance"], ["norm"], epsilon=1e-5)
        if opset >= 11:
            tensors.extend([array("low", -1.5), array("high", 1.5)])
            add("Clip", ["norm", "low", "high"], ["clipped"])
        else:
            add("Clip", ["norm"], ["clipped"], min=-1.5, max=1.5)
        if opset >= 12:
            tensors.append(array("ratio", 0.25))
            add("Dropout", ["clipped", "ratio"], ["dropped"])
        else:
            add("Dropout", ["clipped"], ["dropped"], ratio=0.25)
        if opset >= 10:
            add("Slice", ["dropped", ints("starts", [1, 0]), ints("ends", [5, 4]), ints("along", [2, 3])], ["slice"])
        else:
            add("Slice", ["dropped"], ["slice"], starts=[1, 0], ends=[5, 4], axes=[2, 3])
        add("MaxPool", ["slice"], ["pool"], kernel_shape=[2, 2], strides=[2, 2])
        if opset >= 13:
            add("Split", ["pool", ints("parts", [1, 3])], ["a", "b"], axis=1)
        else:
            add("Split", ["pool"], ["a", "b"], axis=1, split=[1, 3])
        axes("ReduceSum", "b", "sum", [1], 13, keepdims=1)
        add("Concat", ["a", "sum"], ["joined"], axis=1)
        axes("Unsqueeze", "joined", "more", [0], 13)
        axes("Squeeze", "more", "less", [0], 13)
        if opset >= 13:
            add("Flatten", ["less"], ["flat"], axis=1)
            add("Softmax", ["flat"], ["soft"], axis=-1)
        else:
            add("Softmax", ["less"], ["soft4"], axis=1)  # over all but the first
            add("Flatten", ["soft4"], ["soft"], axis=1)
        if opset >= 11:
            add("Gemm", ["soft", "matrix"], ["y"], transB=1)
        else:
            tensors.append(array("none", np.zeros(5)))
            add("Gemm", ["soft", "matrix", "none"], ["y"], transB=1)
        return save(f"opset_{opset}", nodes, [value("x", ["n", 2, 6, 6])], [value("y", ["n", 5])], tensors,
                    opset=opset)

    for opset in range(7, 18):
        build(opset)

    import torch
    from torch.nn import functional

    t = [torch.from_numpy(a).double() for a in (x, weight, mean, variance, scale, bias, matrix)]
    h = functional.conv2d(t[0], t[1], padding=1)
    h = functional.batch_norm(h, t[2], t[3], t[4], t[5], eps=1e-5).clamp(-1.5, 1.5)[:, :, 1:5, 0:4]
    h = functional.max_pool2d(h, 2)
    h = torch.cat([h[:, :1], h[:, 1:].sum(1, keepdim=True)], 1).flatten(1)
    y = torch.softmax(h, -1) @ t[6].T
    save_tensor("opset_x", x, "x")
    save_tensor("opset_y", y.float().numpy(), "y")


def structure():
    """How names, roles and symbols are read."""
    save("symbols", [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["z"], ["w"])],
         [value("x", ["batch", None, 3]), value("z", ["batch", -1])], [value("y", ["batch", None, 3]), value("w", None)],
         check=False)
    save("initializer_input", [helper.make_node("MatMul", ["x", "w"], ["y"])],
         [value("x", [1, 2]), value("w", [2, 1])], [value("y", [1, 1])], [array("w", [[1], [2]])], ir_version=3)
    save("aliases",
         [helper.make_node("Identity", ["w"], ["second.weight"]),
          helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
          helper.make_node("MatMul", ["a", "second.weight"], ["b"], name="second"),
          helper.make_node("MatMul", ["b", "w"], ["y"], name="tied")],
         [value("x", ["n", 2])], [value("y", ["n", 2])], [array("w", [[1, 2], [3, 4]])])
    names = ["logit_scale", "blocks.3.gain", "onnx::Mul_37", "12", "const_fold_opt__7", "layer/eps"]
    save("scalars",
         [helper.make_node("Mul", [f"x{i}", name], [f"x{i + 1}"]) for i, name in enumerate(names)],
         [value("x0", ["n", 2])], [value(f"x{len(names)}", ["n", 2])],
         [numpy_helper.from_array(np.array(2, np.float32), name) for name in names], producer_name="pytorch")
    save("training",
         [helper.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "variance"],
                           ["y", "mean_out", "variance_out"], name="bn", training_mode=1, momentum=0.9)],
         [value("x", ["n", 2, 3])], [value("y", ["n", 2, 3])],
         [array("scale", [1, 1]), array("bias", [0, 0]), array("mean", [0, 0]), array("variance", [1, 1])],
         producer_name="pytorch")
    save("shared_statistics",
         [helper.make_node("BatchNormalization", [source, "scale", "bias", "mean", "variance"],
                           [target, "mean_" + target, "variance_" + target], name="bn_" + target, training_mode=1)
          for source, target in (("x", "h"), ("h", "y"))],
         [value("x", ["n", 2, 3])], [value("y", ["n", 2, 3])],
         [array("scale", [1, 1]), array("bias", [0, 0]), array("mean", [0, 0]), array("variance", [1, 1])])
    save("two_ways",
         [helper.make_node("Pad", ["x", "pads", "c"], ["p"]), helper.make_node("MatMul", ["p", "c2"], ["q"]),
          helper.make_node("Mul", ["q", "c"], ["y"])],
         [value("x", [1, 2])], [value("y", None)],
         [array("pads", [0, 0, 0, 0], np.int64), array("c", 3), array("c2", [[1], [2]])], check=False,
         producer_name="pytorch")
    save("constants",
         [helper.make_node("Constant", [], ["k"], value=array("", [1.5, 2.5])),
          helper.make_node("Constant", [], ["f"], value_float=0.5),
          helper.make_node("Constant", [], ["i"], value_int=7),
          helper.make_node("Constant", [], ["fs"], value_floats=[0.5, 1.5]),
          helper.make_node("Constant", [], ["is"], value_ints=[7, 8, 9]),
          helper.make_node("ConstantOfShape", ["is"], ["filled"], value=array("", [5], np.int64)),
          helper.make_node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE)],
         [value("x", [2])],
         [value("y", [2], TensorProto.DOUBLE), value("k", [2]), value("f", []), value("i", [], TensorProto.INT64),
          value("fs", [2]), value("is", [3], TensorProto.INT64), value("filled", [7, 8, 9], TensorProto.INT64)])
    shifted = helper.make_function(
        "custom", "Twice", ["a"], ["c"],
        [helper.make_node("MatMul", ["a", "a"], ["b"]), helper.make_node("LeakyRelu", ["b"], ["c"])],
        [helper.make_opsetid("", 17)], ["alpha"])
    shifted.node[1].attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    outer = helper.make_function(
        "custom", "Outer", ["p"], ["r"],
        [helper.make_node("Twice", ["p"], ["q"], domain="custom", alpha=0.25),
         helper.make_node("Transpose", ["q"], ["r"])],
        [helper.make_opsetid("", 17), helper.make_opsetid("custom", 1)])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("custom", 1)]
    save("function",
         [helper.make_node("Outer", ["x"], ["h"], name="one", domain="custom"),
          helper.make_node("Outer", ["h"], ["y"], name="two", domain="custom")],
         [value("x", [2, 2])], [value("y", [2, 2])], functions=[shifted, outer], opset_imports=imports)
    endless = helper.make_function("custom", "Endless", ["a"], ["b"],
                                   [helper.make_node("Endless", ["a"], ["b"], domain="custom")],
                                   [helper.make_opsetid("custom", 1)])
    save("function_endless", [helper.make_node("Endless", ["x"], ["y"], domain="custom")],
         [value("x", [1])], [value("y", [1])], functions=[endless], opset_imports=imports, check=False)


def old_broadcasts():
    """Operator set 6 matches the second operand from an axis on."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 12
    across, slope = np.asarray([10, 20, 30], np.float32), np.asarray([0.5, 0.25, 0.125], np.float32)
    save("broadcast_6",
         [helper.make_node("Add", ["x", "across"], ["sum"], broadcast=1, axis=1),
          helper.make_node("PRelu", ["sum", "slope"], ["bent"]),
          helper.make_node("Mul", ["bent", "last"], ["product"], broadcast=1),
          helper.make_node("Reshape", ["product", "flat"], ["y"])],
         [value("x", [2, 3, 4])], [value("y", [24])],
         [array("across", across), array("slope", slope), array("last", [1, 2, 3, 4]), array("flat", [-1], np.int64)],
         opset=6, check=False)
    total = x + across[:, None]
    bent = np.where(total < 0, total * slope[:, None], total)
    save_tensor("broadcast_6_x", x, "x")
    save_tensor("broadcast_6_y", (bent * np.asarray([1, 2, 3, 4], np.float32)).reshape(24), "y")
    save("cast_like", [helper.make_node("CastLike", ["x", "like"], ["y"])],
         [value("x", [2])], [value("y", [2], TensorProto.INT32)], [array("like", [0], np.int32)])


def shapes():
    """The shape arithmetic that exporters write."""
    save("shape_arithmetic",
         [helper.make_node("Shape", ["x"], ["shape"]),
          helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
          helper.make_node("Unsqueeze", ["batch", "zeros"], ["batch1"]),
          helper.make_node("Mul", ["batch", "two"], ["twice"]),
          helper.make_node("Range", ["zero", "twice", "one"], ["range"]),
          helper.make_node("Cast", ["range"], ["floats"], to=FLOAT),
          helper.make_node("Slice", ["shape", "ones", "ends"], ["tail"]),
          helper.make_node("Concat", ["batch1", "tail"], ["target"], axis=0),
          helper.make_node("ConstantOfShape", ["target"], ["filled"], value=array("", [0.5])),
          helper.make_node("Equal", ["target", "target"], ["same"]),
          helper.make_node("Where", ["same", "target", "target"], ["chosen"]),
          helper.make_node("Expand", ["filled", "chosen"], ["expanded"]),
          helper.make_node("Add", ["x", "expanded"], ["sum"]),
          helper.make_node("Reshape", ["sum", "rows"], ["y"])],
         [value("x", ["n", 2, 3])], [value("y", ["n", 6]), value("floats", [None])],
         [array("zero", 0, np.int64), array("one", 1, np.int64), array("two", 2, np.int64),
          array("zeros", [0], np.int64), array("ones", [1], np.int64), array("ends", [3], np.int64),
          array("rows", [-1, 6], np.int64)])


def recurrent():
    def weights(name, rows, directions=1):
        tensors = [(name + ".w", [directions, rows, 3]), (name + ".r", [directions, rows, 2])]
        return [array(title, np.linspace(-1, 1, np.prod(shape)).reshape(shape)) for title, shape in tensors]
    nodes = [helper.make_node("LSTM", ["x", "lstm.w", "lstm.r", "", "lengths"], ["", "last"], name="lstm", hidden_size=2,
                              activations=["HardSigmoid", "Tanh", "Softsign"], activation_alpha=[0.25],
                              activation_beta=[0.4], clip=3.0),
             helper.make_node("GRU", ["x", "gru.w", "gru.r"], ["y"], name="gru", hidden_size=2,
                              direction="bidirectional", linear_before_reset=1),
             helper.make_node("RNN", ["x", "rnn.w", "rnn.r", "", "", "h"], ["z"], name="rnn", hidden_size=2,
                              direction="reverse", activations=["Relu"])]
    save("recurrent", nodes, [value("x", [4, "N", 3]), value("lengths", ["N"], TensorProto.INT32)],
         [value("last", [1, "N", 2]), value("y", [4, 2, "N", 2]), value("z", [4, 1, "N", 2])],
         weights("lstm", 8) + weights("gru", 6, 2) + weights("rnn", 2) + [array("h", np.ones([1, 1, 2]))])


def wrong():
    """Models that must be refused, with what they lack named."""
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "branch", [], [value("b", [1])])
    save("unsupported",
         [helper.make_node("Gelu", ["x"], [f"g{i}"], name=f"layer{i}/gelu", domain="com.microsoft") for i in range(5)]
         + [helper.make_node("If", ["c"], ["d"], name="choice", then_branch=branch, else_branch=branch),
            helper.make_node("MaxPool", ["x"], ["m"], name="pool", kernel_shape=[2], storage_order=1),
            helper.make_node("Constant", [], ["s"], name="text", value=helper.make_tensor("", TensorProto.STRING, [1], [b"a"])),
            helper.make_node("StringNormalizer", ["t"], ["u"], name="normal")],
         [value("x", [1, 1, 4]), value("c", [], TensorProto.BOOL), value("t", [1], TensorProto.STRING)],
         [value("m", [1, 1, 3])], [helper.make_tensor("words", TensorProto.STRING, [1], [b"w"])],
         opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], check=False)
    save("opset_too_new", [helper.make_node("Identity", ["x"], ["y"])], [value("x", [1])], [value("y", [1])],
         opset=99, check=False)
    save("not_ordered", [helper.make_node("Identity", ["h"], ["y"], name="reader"), helper.make_node("Identity", ["x"], ["h"])],
         [value("x", [1])], [value("y", [1])], check=False)
    save("made_twice", [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["x"], ["y"])],
         [value("x", [1])], [value("y", [1])], check=False)
    save("no_output", [helper.make_node("Identity", ["x"], ["h"])], [value("x", [1])], [value("y", [1])], check=False)
    save("short_tensor", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [value("x", [1, 2])],
         [value("y", [1, 2])], [TensorProto(name="w", data_type=FLOAT, dims=[2, 2], raw_data=b"\0" * 12)], check=False)
    save("bad_bool", [helper.make_node("Not", ["w"], ["y"])], [], [value("y", [2], TensorProto.BOOL)],
         [TensorProto(name="w", data_type=TensorProto.BOOL, dims=[2], raw_data=b"\1\2")], check=False)


def types():
    """One layer, float32[N, 4] -> [N, 3], that differs in element types, ending, or batch."""
    def layer(name, weight="float32", feed="float32", ending=None, batch="N"):
        kinds = {"float32": FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}
        nodes, last = [], "x"
        if feed != weight:
            nodes.append(helper.make_node("Cast", ["x"], ["cast"], to=kinds[weight]))
            last = "cast"
        nodes.append(helper.make_node("MatMul", [last, "fc.weight"], ["y" if ending is None else "h"]))
        if ending is not None:
            nodes.append(helper.make_node(ending, ["h"], ["y"], axis=-1))
        save(name, nodes, [value("x", [batch, 4], kinds[feed])], [value("y", [batch, 3], kinds[weight])],
             [array("fc.weight", np.linspace(-1, 1, 12).reshape(4, 3), np.dtype(weight))])
    layer("layer")
    layer("layer_half", weight="float16")
    layer("layer_half_input", weight="float16", feed="float16")
    layer("layer_double_input", weight="float64", feed="float64")
    layer("layer_softmax", ending="Softmax")
    layer("layer_log_softmax", ending="LogSoftmax")
    layer("layer_fixed_batch", batch=4)


def control():
    """Branches, loops and sequences; x is [2] throughout."""
    node = helper.make_node
    boolean = TensorProto.BOOL

    def body(name, nodes, inputs, outputs, tensors=()):
        return helper.make_graph(nodes, name, inputs, outputs, list(tensors))

    free = [value("x", [2])]
    then_body = body("then", [node("Mul", ["x", "factor"], ["result"])], [], [value("result", [2])],
                     [array("factor", [3, 4])])
    else_body = body("else", [node("Add", ["x", "bias"], ["result"])], [], [value("result", [2])])
    for name, small in (("branch_then", 1), ("branch_else", 9)):
        save(name, [node("Less", ["small", "large"], ["condition"]),
                    node("If", ["condition"], ["y"], name="choice", then_branch=then_body, else_branch=else_body)],
             free, [value("y", [2])],
             [array("small", small, np.int64), array("large", 5, np.int64), array("bias", [10, 20])])
    save("branch_on_data", [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Cast", ["sum"], ["condition"], to=boolean),
                            node("If", ["condition"], ["y"], name="choice", then_branch=then_body, else_branch=else_body)],
         free, [value("y", [2])], [array("bias", [10, 20])])

    rounds = body("rounds", [
        node("Mul", ["state", "two"], ["doubled"]), node("Cast", ["i"], ["number"], to=FLOAT),
        node("Add", ["doubled", "number"], ["next"]), node("Identity", ["next"], ["kept"]),
        node("Less", ["i", "last"], ["again"])],
        [value("i", [], TensorProto.INT64), value("go", [], boolean), value("state", [2])],
        [value("again", [], boolean), value("next", [2]), value("kept", [2])],
        [array("two", [2]), array("last", 2, np.int64)])
    save("loop", [node("Loop", ["count", "", "x"], ["y", "all"], name="loop", body=rounds)], free,
         [value("y", [2]), value("all", [3, 2])], [array("count", 5, np.int64)])
    endless = body("rounds", [node("Identity", ["go"], ["again"]), node("Neg", ["state"], ["next"])],
                   [value("i", [], TensorProto.INT64), value("go", [], boolean), value("state", [2])],
                   [value("again", [], boolean), value("next", [2])])
    save("loop_endless", [node("Loop", ["", "yes", "x"], ["y"], name="loop", body=endless)], free, [value("y", [2])],
         [array("yes", True, bool)])
    sums = body("sums", [node("Add", ["sum", "next"], ["more"]), node("Identity", ["more"], ["kept"])],
                [value("sum", []), value("next", [])], [value("more", []), value("kept", [])])
    save("scan", [node("Scan", ["zero", "x"], ["y", "all"], name="scan", body=sums, num_scan_inputs=1,
                       scan_input_directions=[1])],
         free, [value("y", []), value("all", [2])], [array("zero", 0)])
    twice = body("twice", [node("Add", ["item", "item"], ["double"])], [value("item", [1])], [value("double", [1])])
    save("sequence", [
        node("SplitToSequence", ["x"], ["parts"]), node("SequenceMap", ["parts"], ["doubles"], body=twice),
        node("SequenceInsert", ["doubles", "one", "front"], ["longer"]), node("SequenceErase", ["longer", "last"], ["shorter"]),
        node("Optional", ["shorter"], ["maybe"]), node("OptionalGetElement", ["maybe"], ["surely"]),
        node("ConcatFromSequence", ["surely"], ["y"], axis=0)],
        free, [value("y", [2])],
        [array("one", [1]), array("front", 0, np.int64), array("last", -1, np.int64)], check=False)
    save("gradient_inside", [
        node("Mul", ["x", "x"], ["square"]), node("ReduceSum", ["square"], ["sum"], keepdims=0),
        node("Gradient", ["x"], ["y"], domain="ai.onnx.preview.training", xs=["x"], y="sum")],
        free, [value("y", [2])],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.preview.training", 1)], check=False)


if __name__ == "__main__":
    types()
    encodings()
    external()
    opsets()
    structure()
    old_broadcasts()
    shapes()
    wrong()
    recurrent()
    control()
