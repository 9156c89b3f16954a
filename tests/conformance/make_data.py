#!/usr/bin/env python3
"""Writes the tests of the `onnx` that this Python has as files: make_data.py FOLDER

The tests of operators are made anew, for the package has them as code; the others are copied. Each
is FOLDER/KIND/NAME/ with model.onnx and test_data_set_N/input_M.pb and output_M.pb, as Debian's
libonnx-testdata has them. What FOLDER had of them before is replaced.
"""
import os
import shutil
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import DATA_DIR


def to_message(value, described):
    kind = described.type.WhichOneof("value")
    if not isinstance(value, (numpy.ndarray, numpy.generic, list, tuple, dict, type(None))):
        return value  # a message already
    if kind == "map_type":
        return numpy_helper.from_dict(value, described.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, described.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, described.name)
    return numpy_helper.from_array(numpy.asarray(value), described.name)


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def write_case(case, folder):
    write(os.path.join(folder, "model.onnx"), case.model)
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets):
        place = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(place)
        for what, values, described in (("input", inputs, graph.input),
                                        ("output", outputs, graph.output)):
            for i, value in enumerate(values):
                write(os.path.join(place, f"{what}_{i}.pb"), to_message(value, described[i]))


def main():
    target = sys.argv[1]
    warnings.filterwarnings("ignore")  # of infinities that are meant
    for kind in ("simple", "pytorch-converted", "pytorch-operator", "node"):
        shutil.rmtree(os.path.join(target, kind), ignore_errors=True)
        if kind != "node":
            shutil.copytree(os.path.join(DATA_DIR, kind), os.path.join(target, kind))
    os.makedirs(os.path.join(target, "real"), exist_ok=True)
    for case in collect_testcases(None):
        folder = os.path.join(target, "node", case.name)
        os.makedirs(folder)
        write_case(case, folder)
    print(f"onnx {onnx.__version__}: {target}")


main()
