#!/usr/bin/python3
"""Ends with code 1 unless two models differ in the layer `fc` and in no other trained weight.

  check_trunk.py fresh.onnx finetuned.onnx
"""
import sys

import onnx
import onnx.numpy_helper


def weights(path):
    return {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


before, after = weights(sys.argv[1]), weights(sys.argv[2])
names = [name for name in before if name.endswith((".weight", ".bias"))]
changed = [name for name in names if (before[name] != after[name]).any()]
print(f"{len(names)} weights, changed: {', '.join(changed)}")
sys.exit(sorted(changed) != ["fc.bias", "fc.weight"])
