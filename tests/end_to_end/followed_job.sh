# shellcheck shell=bash
# A training of 6 steps in 2 epochs, evaluated at its end, for those who test what is told of one:
# source behind common.sh. Writes job.yaml and its data.

python3 "$top/tests/end_to_end/make_data.py" . 24

cat >job.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
  eval: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.01}}, batch: 8, epochs: 2}
devices: [{name: a, threads: 1}]
checkpoint: {dir: kept, every: 2 steps}
END
