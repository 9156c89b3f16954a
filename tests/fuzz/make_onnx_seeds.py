#!/usr/bin/env python3
"""Writes seeds of the fuzzer of ONNX: what operator sets 18 to 24 brought, and the metadata of PyTorch's exporter.

  make_onnx_seeds.py

Needs the onnx package of today, from a virtual environment. Each seed is a graph of one operator, its operands inputs
or constants; or one whose metadata say which of its values are parameters, and what was made of them.
"""
import os

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "onnx")
FLOAT, HALF, BFLOAT, INT64, INT32, BOOL = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16,
                                           TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


def value(name, shape, element=FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def constant(name, array, element=None):
    array = numpy.asarray(array)
    if element is None:
        return numpy_helper.from_array(array, name)
    return helper.make_tensor(name, element, array.shape, array.flatten().tolist())


def write(name, opset, nodes, inputs, constants=(), infos=(), metadata=(), outputs=None):
    outputs = outputs or [helper.make_empty_tensor_value_info(nodes[-1].output[0])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants), value_info=list(infos))
    for key, text in metadata:
        graph.metadata_props.add(key=key, value=text)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="pytorch")
    with open(os.path.join(CORPUS, name), "wb") as file:
        file.write(model.SerializeToString())


def operator(name, opset, op_type, inputs, constants=(), more=(), **attributes):
    """One node, its operands in order: inputs, then constants, then names ("" for one left out)."""
    operands = [v.name for v in inputs] + [c.name for c in constants] + list(more)
    write(name, opset, [helper.make_node(op_type, operands, ["y"], **attributes)], inputs, constants)


def operators():
    q, k, v = (value(n, [1, 2, 3, 4]) for n in "qkv")
    mask = value("m", [3, 3], BOOL)
    flat = [value(n, [1, 3, 8]) for n in "qkv"]
    table = [constant("cos", numpy.ones((5, 2), "f4")), constant("sin", numpy.zeros((5, 2), "f4")),
             constant("at", numpy.array([[0, 1, 2]]))]
    for opset in (23, 24):
        operator(f"attention_{opset}", opset, "Attention", [q, k, v, mask], scale=0.5)
        operator(f"attention_flat_{opset}", opset, "Attention", flat, is_causal=1, q_num_heads=2, kv_num_heads=2)
        operator(f"rotary_{opset}", opset, "RotaryEmbedding", [q], table)
        operator(f"rotary_flat_{opset}", opset, "RotaryEmbedding", flat[:1], table, num_heads=2, interleaved=1)
        operator(f"rotary_part_{opset}", opset, "RotaryEmbedding", [value("x", [1, 2, 3, 6])], table,
                 rotary_embedding_dim=4)
        operator(f"rms_{opset}", opset, "RMSNormalization", [value("x", [2, 4])], [constant("s", numpy.ones(4, "f4"))])
    operator("swish_24", 24, "Swish", [value("x", [2, 4])], alpha=1.5)
    pads = [constant("p", numpy.array([1, 2])), constant("c", numpy.float32(0)), constant("a", numpy.array([-1]))]
    for opset in (18, 19, 21):
        operator(f"pad_axes_{opset}", opset, "Pad", [value("x", ["n", 3])], pads)
    operator("pad_wrap_19", 19, "Pad", [value("x", [2, 3])], pads[:1] + [constant("c", numpy.float32(0))], mode="wrap")
    operator("dft_20", 20, "DFT", [value("x", [1, 4, 1])], more=("", ""))
    operator("dft_axis_20", 20, "DFT", [value("x", [1, 4, 1])], [constant("n", 4), constant("a", 1)], onesided=1)
    for mode in ("linear", "cubic", "nearest"):
        operator(f"grid_{mode}_20", 20, "GridSample", [value("x", [1, 1, 3, 3]), value("g", [1, 2, 2, 2])], mode=mode)
    operator("gelu_20", 20, "Gelu", [value("x", [2, 4])], approximate="tanh")
    operator("group_norm_21", 21, "GroupNormalization", [value("x", [1, 4, 3])],
             [constant("s", numpy.ones(4, "f4")), constant("b", numpy.zeros(4, "f4"))], num_groups=2)
    operator("cast_like_19", 19, "CastLike", [value("x", [2], INT64), value("t", [], FLOAT)], saturate=1)
    operator("cast_19", 19, "Cast", [value("x", [2])], to=HALF, saturate=0)
    for opset in (21, 23):
        operator(f"dequantize_{opset}", opset, "DequantizeLinear", [value("x", [2, 4], TensorProto.INT8)],
                 [constant("s", numpy.ones(4, "f4"))], axis=1)
    operator("resize_19", 19, "Resize", [value("x", [1, 1, 2, 2])],
             [constant("r", numpy.zeros(0, "f4")), constant("s", numpy.array([2, 2], "f4"))], axes=[2, 3],
             antialias=1, mode="linear")
    operator("split_18", 18, "Split", [value("x", [4, 3])], num_outputs=1)
    operator("reduce_18", 18, "ReduceMean", [value("x", [4, 3])], [constant("a", numpy.array([1]))],
             noop_with_empty_axes=1)


SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
FOLDED = "pkg.onnxscript.optimizer.folded_from"
CALL = "pkg.torch.onnx.fx_node"


def noted(name, shape, **notes):
    info = value(name, shape)
    for key, text in notes.items():
        info.metadata_props.add(key={"kind": KIND, "folded": FOLDED}[key], value=text)
    return info


def marks():
    x, tokens = value("x", [2, 3]), value("i", [2], INT64)
    weight, bias = constant("fc.weight", numpy.ones((3, 4), "f4")), constant("fc.bias", numpy.zeros(4, "f4"))
    product = [helper.make_node("MatMul", ["x", "fc.weight"], ["t"]), helper.make_node("Add", ["t", "fc.bias"], ["y"])]
    lines = ["# inputs", "p_w: PARAMETER target='fc.weight'", "p_b: PARAMETER target='fc.bias'", "x: USER_INPUT", "",
             "# outputs", "y: USER_OUTPUT"]
    write("signed", 20, product, [x], [weight, bias], metadata=[(SIGNATURE, "\n".join(lines))])
    write("kinds", 20, product, [x], [weight, bias],
          [noted("fc.weight", [3, 4], kind="PARAMETER"), noted("fc.bias", [4], kind="CONSTANT_TENSOR")])
    laid = [helper.make_node("MatMul", ["x", "val_0"], ["t"]), helper.make_node("PRelu", ["t", "val_1"], ["y"])]
    write("folded", 20, laid, [x],
          [constant("val_0", numpy.ones((3, 4), "f4")), constant("val_1", numpy.ones(1, "f4"))],
          [noted("val_0", [3, 4], folded="['fc.weight']"), noted("val_1", [1], folded="['fc.bias', 'val_9']")],
          [(SIGNATURE, "\n".join(lines))])
    norm = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    four = [constant(n, numpy.ones(3, "f4")) for n in "sbmv"]
    write("updated", 20, [norm], [x], four, metadata=[(SIGNATURE, "\n".join(
        ["p_s: PARAMETER target='s'", "p_b: PARAMETER target='b'", "b_m: BUFFER target='m' persistent=True",
         "b_v: BUFFER target='v' persistent=True", "a: BUFFER_MUTATION target='m'", "c: BUFFER_MUTATION target='v'"]))])
    write("lost_norm", 20, product, [x], [weight, bias], metadata=[(SIGNATURE, "\n".join(
        lines[1:3] + ["p_g: PARAMETER target='gone'", "b_v: BUFFER target='bn.running_var' persistent=True"]))])
    gather = helper.make_node("Gather", ["fc.weight", "i"], ["y"], axis=0)
    gather.metadata_props.add(key=CALL, value="%e : [num_users=1] = call_function[target=torch.ops.aten.embedding."
                                              "default](args = (%p_w, %i, 0), kwargs = {})")
    write("padding", 20, [gather], [tokens], [weight], metadata=[(SIGNATURE, lines[1])])
    for name, element in (("halves", HALF), ("bhalves", BFLOAT)):
        cast = helper.make_node("Cast", ["t"], ["y"], to=element)
        write(name, 20, [product[0], cast], [value("x", [2, 3], element)],
              [constant("fc.weight", numpy.ones((3, 4)), element)])
    narrow = [helper.make_node("Gather", ["fc.weight", "i"], ["t"]), helper.make_node("Where", ["c", "t", "t"], ["y"])]
    write("narrow", 20, narrow, [value("i", ["?"], INT32), value("c", ["?", 1], BOOL)], [weight])
    free = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(numpy.ones((3, 4), "f4")))
    write("constant_weight", 20, [free, helper.make_node("MatMul", ["x", "w"], ["y"])], [x])


operators()
marks()
