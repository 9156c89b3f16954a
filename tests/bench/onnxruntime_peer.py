"""What ONNX Runtime does with a model: onnxruntime_peer.py MODEL.onnx ROWS.npy BATCH THREADS SECONDS OUTPUTS.npy

Prints rows a second, and writes the outputs for the first batch.
"""
import sys
import time

import numpy
import onnxruntime

model, rows, batch, threads, seconds, path = sys.argv[1:]
settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads = int(threads)
settings.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
given = {session.get_inputs()[0].name: numpy.load(rows)[: int(batch)]}
numpy.save(path, session.run(None, given)[0])
session.run(None, given)
count, started = 0, time.monotonic()
while time.monotonic() < started + float(seconds):
    session.run(None, given)
    count += int(batch)
print(count / (time.monotonic() - started))
