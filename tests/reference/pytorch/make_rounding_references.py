"""Writes `halves.onnx`, a model with weights of float16 and bfloat16, and `rounding.npz`: float32 numbers and the bits
that PyTorch makes of them in both types.

    make_rounding_references.py

The numbers are ties, numbers beside ties, small, large and random ones. Needs PyTorch and onnx.
"""
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

SIZE = 16


def bits(tensor, kind):
    return tensor.to(kind).view(torch.int16).numpy().view(np.uint16)


def numbers():
    generator = np.random.default_rng(7)
    halves = torch.from_numpy(generator.integers(0, 31 << 10, 40).astype(np.int16)).view(torch.float16).double().numpy()
    brains = torch.from_numpy(generator.integers(0x3800, 0x4800, 40).astype(np.int16)).view(torch.bfloat16)
    brains = brains.double().numpy()
    ties = [halves + np.spacing(halves.astype(np.float16)).astype(np.float64) / 2, brains * (1 + 2.0**-9), brains]
    near = [ties[0] * (1 + 2.0**-20), ties[0] * (1 - 2.0**-20)]
    edges = [0.0, -0.0, 65504.0, 65519.99, 65520.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 1e-30, 1e30, -2.0**-14]
    made = np.concatenate([edges, *ties, *near]).astype(np.float32)
    rest = generator.standard_normal(SIZE * SIZE - len(made) % (SIZE * SIZE)).astype(np.float32)
    return np.concatenate([made, rest])[: SIZE * SIZE].reshape(SIZE, SIZE)


values = torch.from_numpy(numbers())
np.savez("rounding.npz", float32=values.numpy(), float16=bits(values, torch.float16),
         bfloat16=bits(values, torch.bfloat16))

first = np.random.default_rng(1).standard_normal((2, SIZE, SIZE)).astype(np.float32) / 4
weights = [helper.make_tensor("w", TensorProto.FLOAT16, [SIZE, SIZE], first[0].astype(np.float16).tobytes(), raw=True),
           helper.make_tensor("v", TensorProto.BFLOAT16, [SIZE, SIZE],
                              bits(torch.from_numpy(first[1]), torch.bfloat16).tobytes(), raw=True)]
nodes = [helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16),
         helper.make_node("MatMul", ["half", "w"], ["h"], "first"),
         helper.make_node("Cast", ["h"], ["brain"], to=TensorProto.BFLOAT16),
         helper.make_node("MatMul", ["brain", "v"], ["z"], "second"),
         helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT)]
graph = helper.make_graph(nodes, "halves", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", SIZE])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", SIZE])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "halves.onnx")
