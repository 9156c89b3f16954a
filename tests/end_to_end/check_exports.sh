#!/usr/bin/env bash
# Trains the reference models and one of layers for a few steps, exports them, and lets ONNX's checker
# and PyTorch judge the files (check_export.py). Needs python3-onnx and python3-torch, so `make check-long` runs it.
#   check_exports.sh PENSTOCK
PENSTOCK=$(realpath "$1")
export PENSTOCK
. tests/end_to_end/common.sh

for model in mlp lenet branching_cnn batchnorm_cnn resnet18; do
    cat >job.yaml <<END
version: 1
model: {file: reference/$model/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/$model/inputs.npy}, labels: reference/$model/labels.npy}
  eval: {format: npy, inputs: {input: reference/$model/inputs.npy}, labels: reference/$model/labels.npy}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8, steps: 10}
outputs: {dir: run, export: $model.onnx}
END
    penstock train -q --overwrite job.yaml
    penstock predict -q job.yaml -o outputs.npy
    /usr/bin/python3 "$top/tests/end_to_end/check_export.py" "reference/$model/model.onnx" "$model.onnx" \
        "reference/$model/inputs.npy" outputs.npy --relative 1e-4
done

/usr/bin/python3 -c 'import numpy
random = numpy.random.RandomState(1)
numpy.save("pictures.npy", random.rand(40, 12, 12, 3).astype("f4"))
numpy.save("labels.npy", random.randint(0, 5, 40))'
cat >layers.yaml <<END
version: 1
model:
  inputs: {picture: {shape: [12, 12, 3]}}
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same}
    - batch_normalization
    - activation: {activation: relu}
    - average_pooling2d: {pool_size: 3, strides: 2, padding: same}
    - spatial_dropout2d: {rate: 0.2}
    - separable_conv2d: {filters: 12, kernel_size: 3, activation: sigmoid}
    - flatten
    - dropout: {rate: 0.3}
    - dense: {units: 5, name: scores}
data:
  train: {format: npy, inputs: {picture: pictures.npy}, labels: labels.npy}
  eval: {format: npy, inputs: {picture: pictures.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8, steps: 10}
outputs: {dir: run_layers, export: layers.onnx}
END
penstock train -q --overwrite layers.yaml
penstock predict -q layers.yaml -o outputs.npy
/usr/bin/python3 "$top/tests/end_to_end/check_export.py" layers.onnx layers.onnx pictures.npy outputs.npy --relative 1e-4
