#!/usr/bin/env bash
# Trains the example and checks that it learned; run it from the top of the source tree.
. examples/common.sh resnet-finetune
needs /usr/share/datasets/fashion-mnist dataset-fashion-mnist
needs_python torchvision python3-torchvision

"$PEN_PYTHON" prepare.py
"$PEN_PYTHON" export_model.py 2>/dev/null
say "training the trunk on five classes"
penstock train -q pretrain.yaml
"$PEN_PYTHON" new_head.py run-source/trained.onnx fresh.onnx
say "training a new head for five others, from 60 pictures each"
penstock train --json finetune.yaml >train.json
"$PEN_PYTHON" check_trunk.py fresh.onnx run-target/finetuned.onnx || fail "the frozen trunk was trained"
least "accuracy on pictures held out" "$(figure train.json evaluation accuracy)" 0.84
