"""The models of pt2_models.py as ONNX files, by the exporter that torch.onnx.export uses by default.

  pt2_onnx.py FOLDER [NAME...]

FOLDER/NAME.onnx is what it writes; FOLDER/NAME.plain.onnx what it writes with optimize=False.
"""
import os
import sys
import warnings

import torch

import pt2_models


def main():
    folder, *names = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in names or pt2_models.ZOOS:
        for ending, optimize in ((".plain.onnx", False), (".onnx", True)):
            try:
                program = pt2_models.export(pt2_models.build(name))
                torch.onnx.export(program, (), os.path.join(folder, name + ending), dynamo=True, optimize=optimize,
                                  external_data=False, verbose=False)
                print(f"{name + ending:30} written", flush=True)
            except Exception as reason:  # whatever the exporter says
                print(f"{name + ending:30} {type(reason).__name__}: {str(reason).strip().splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
