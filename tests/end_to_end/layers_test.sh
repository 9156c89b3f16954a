#!/usr/bin/env bash
# Models that a job writes in layers: one device and three give the same parameters bit for bit, the
# trained model as ONNX says what the model itself says, a training that was cut goes on, and a
# model may be a file of its own.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_pictures.py" .

job() { # job DEVICES: a picture model with branches, batch normalisation, dropout and an LSTM
    cat <<END
version: 1
model:
  seed: 3
  inputs: {picture: {shape: [28, 28, 1]}}
  layers:
    - conv2d: {filters: 4, kernel_size: 3, strides: 2, name: stem}
    - batch_normalization
    - activation: {activation: relu, name: start}
    - depthwise_conv2d: {kernel_size: 3, padding: same, activation: swish, name: left}
    - conv2d: {filters: 4, kernel_size: 1, activation: gelu, from: start, name: right}
    - add: {from: [left, right]}
    - spatial_dropout2d: {rate: 0.1}
    - max_pooling2d
    - dropout: {rate: 0.2}
    - reshape: {target_shape: [6, 24]}
    - layer_normalization
    - multi_head_attention: {num_heads: 2, key_dim: 4}
    - bidirectional: {layer: {gru: {units: 5, return_sequences: true}}}
    - lstm: {units: 6}
    - dense: {units: 10, activation: softmax, name: shares}
data:
  train: {format: idx, images: train-images-idx3-ubyte.gz, labels: train-labels-idx1-ubyte.gz}
  eval: {format: idx, images: t10k-images-idx3-ubyte.gz, labels: t10k-labels-idx1-ubyte.gz}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.01}}, batch: 32, microbatches: 2, steps: 6, seed: 5}
devices: [$1]
END
}

job '{name: a, threads: 1}' >one.yaml
job '{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}' >three.yaml
echo 'outputs: {dir: run, export: trained.onnx}' >>one.yaml
echo 'placement: {strategy: round_robin}' >>three.yaml
penstock train --json one.yaml >one.json
penstock train --json three.yaml >three.json
[ "$(json 'd["parameters_hash"]' <one.json)" = "$(json 'd["parameters_hash"]' <three.json)" ] || die "three devices trained another model"
check 'd["steps"][-1]["loss"] < 2.6 and m.isfinite(d["evaluation"]["loss"])' one.json

# the model back from ONNX: what it predicts
penstock predict -q one.yaml -o own.npy
sed -e '/^model:$/,/name: shares}$/c\model: {file: trained.onnx}' -e '/^outputs:/d' one.yaml >read_back.yaml
penstock predict -q read_back.yaml -o back.npy
/usr/bin/python3 -c 'import numpy as n
a, b = n.load("own.npy"), n.load("back.npy")
assert a.shape == (64, 10) and abs(a.sum(1) - 1).max() < 1e-5 and abs(a - b).max() < 1e-5, abs(a - b).max()'

# and it trains on as the model itself does: dropout drops the same, batches have their statistics
sed '/^outputs:/d' one.yaml >again.yaml
penstock train --json --no-eval --parameters run/parameters.safetensors again.yaml >again.json
penstock train --json --no-eval read_back.yaml >back.json 2>messages
python3 -c 'import json
a, b = ([s["loss"] for s in json.load(open(f))["steps"]] for f in ("again.json", "back.json"))
assert len(a) == 6 and max(abs(p - q) for p, q in zip(a, b)) < 1e-4, (a, b)'
grep -q 'keep their stored statistics' messages && die "its batch statistics do not learn: $(cat messages)"

# cut after three steps, and on from there
sed '/^outputs:/d' one.yaml >cut.yaml
penstock train -q cut.yaml --checkpoint kept --every "3 steps" --steps 3
penstock train --json cut.yaml --checkpoint kept --every "3 steps" --continue >cut.json
[ "$(json 'd["parameters_hash"]' <one.json)" = "$(json 'd["parameters_hash"]' <cut.json)" ] || die "the training that went on is another"

# a file of its own
sed -n '/^  seed: 3$/,/name: shares}$/s/^  //p' one.yaml >net.yaml
sed -e '/^model:$/,/name: shares}$/c\model: {file: net.yaml}' -e '/^outputs:/d' one.yaml >named.yaml
penstock train --json named.yaml >named.json
[ "$(json 'd["parameters_hash"]' <one.json)" = "$(json 'd["parameters_hash"]' <named.json)" ] || die "a file of its own is another model"
penstock inspect net.yaml | grep -q 'lstm  *1 ' || die "inspect does not know the model"

sed -e 's/kernel_size: 1,/kernel_size: 99,/' -e '/^outputs:/d' one.yaml >wrong.yaml
fails 3 "^wrong.yaml:10:7: error: conv2d 'right': a window of 99 does not fit" "$PENSTOCK" train wrong.yaml

# padded texts: masks, regularizers and dropout between steps, over one device and three, and back
# from ONNX
/usr/bin/python3 -c 'import numpy as n
r = n.random.default_rng(1)
words, length = r.integers(1, 50, (96, 12)), r.integers(1, 13, 96)
for i in range(96): words[i, :12 - length[i]] = 0
for i in range(0, 96, 2): words[i] = words[i, ::-1]
n.save("words.npy", words.astype(n.int64))
n.save("labels.npy", (words.max(1) % 3).astype(n.int64))
n.save("tags.npy", (words % 4).astype(n.int64))'
texts() { # texts LABELS OUTPUT DEVICES
    cat <<END
version: 1
model:
  seed: 3
  inputs: {words: {shape: [12], dtype: int64}}
  layers:
    - embedding: {input_dim: 50, output_dim: 8, mask_zero: true, embeddings_regularizer: {l2: 0.001}}
    - lstm: {units: 6, return_sequences: true, dropout: 0.1, kernel_regularizer: {l1: 0.001, l2: 0.01}}
    - bidirectional: {layer: {gru: {units: 5, return_sequences: true, recurrent_dropout: 0.2}}}
    - multi_head_attention: {num_heads: 2, key_dim: 4, kernel_regularizer: {l2: 0.01}, name: seen}
    - time_distributed: {layer: {dense: 4}, name: steps}
    - global_average_pooling1d: {from: seen}
    - dense: {units: 3, activity_regularizer: {l1: 0.01}, name: whole}
  outputs: $2
data: {train: {format: npy, inputs: {words: words.npy}, labels: $1.npy}, holdout: 0.25}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.01}}, batch: 24, microbatches: 3, steps: 6, seed: 5}
devices: [$3]
END
}
three='{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}'
for kind in labels:whole tags:steps; do
    texts ${kind%:*} ${kind#*:} '{name: a, threads: 1}' >text.yaml
    texts ${kind%:*} ${kind#*:} "$three" >text3.yaml
    echo 'outputs: {dir: run_text, export: text.onnx}' >>text.yaml
    penstock train --json --overwrite text.yaml >text.json
    penstock train --json text3.yaml >text3.json
    [ "$(json 'd["parameters_hash"]' <text.json)" = "$(json 'd["parameters_hash"]' <text3.json)" ] || die "three devices trained other words"
    check 'd["steps"][-1]["loss"] < d["steps"][0]["loss"]' text.json
    [ $kind = tags:steps ] || continue
    penstock predict -q text.yaml -o own.npy
    sed -e '/^model:$/,/^  outputs:/c\model: {file: text.onnx}' -e '/^outputs:/d' text.yaml >read_back.yaml
    penstock predict -q read_back.yaml -o back.npy
    /usr/bin/python3 -c 'import numpy as n
a, b = n.load("own.npy"), n.load("back.npy")
assert a.shape == b.shape == (24, 12, 4) and abs(a - b).max() < 1e-5, abs(a - b).max()'
done

# a job of layers goes on under another name
penstock train -q --overwrite text.yaml --checkpoint goes --every 2 --steps 4 >none.txt
cp text.yaml renamed.yaml
penstock train -q --continue renamed.yaml --checkpoint goes --every 2 --json >renamed.json
[ "$(json 'd["parameters_hash"]' <text.json)" = "$(json 'd["parameters_hash"]' <renamed.json)" ] || die "went on with other numbers"
