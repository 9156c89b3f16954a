#!/usr/bin/env bash
# Trains the examples and checks that they learned; run it from the top of the source tree.
. examples/common.sh keras-yaml
needs /usr/share/datasets/fashion-mnist dataset-fashion-mnist

say "training layers one after the other"
penstock train --json job.yaml >train.json
least "accuracy on test pictures" "$(figure train.json evaluation accuracy)" 0.885
say "the trained model as ONNX"
sed -e '/^model:$/,/name: scores}$/c\model: {file: run/trained.onnx}' -e '/^outputs:/d' job.yaml >read_back.yaml
penstock eval --json read_back.yaml >eval.json
least "its accuracy" "$(figure eval.json accuracy)" "$(python3 -c 'import sys; print(float(sys.argv[1]) - 0.0005)' "$(figure train.json evaluation accuracy)")"
say "training branches"
penstock train --json branches.yaml >branches.json
least "accuracy on test pictures" "$(figure branches.json evaluation accuracy)" 0.835
