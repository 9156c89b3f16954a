#!/usr/bin/env bash
# Trains the example and checks that it learned; run it from the top of the source tree.
. examples/common.sh keras-yaml
needs /usr/share/datasets/fashion-mnist dataset-fashion-mnist

say "a row of layers"
penstock train --json job.yaml >job.json
least "accuracy on test pictures" "$(figure job.json evaluation accuracy)" 0.86
say "layers with branches"
penstock train --json branches.yaml >branches.json
least "accuracy on test pictures" "$(figure branches.json evaluation accuracy)" 0.80
