#!/usr/bin/env bash
# Trains the network of examples/fashion-cnn on Fashion-MNIST and ends with
#   demo: test accuracy 0.xxxx after E epochs in S s
# Exit code 1 when the accuracy is below 0.90.
#   demo.sh PENSTOCK
set -eu -o pipefail

penstock=$1
job=examples/fashion-cnn/job.yaml
accuracy_minimum=0.90
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo "training the network of examples/fashion-cnn on Fashion-MNIST"
start=$(date +%s)
"$penstock" train "$job" 2>&1 | tee "$folder/log"
seconds=$(($(date +%s) - start))
accuracy=$(sed -n 's/^evaluation: .*accuracy \([0-9.]*\) .*/\1/p' "$folder/log")
epochs=$(sed -n 's/^ *epochs: *\([0-9]*\).*/\1/p' "$job")
if [ -z "$accuracy" ]; then
    echo "demo: the training ended without an evaluation" >&2
    exit 1
fi
if ! awk -v found="$accuracy" -v least="$accuracy_minimum" 'BEGIN { exit !(found >= least) }'; then
    echo "demo: the test accuracy is below $accuracy_minimum" >&2
    echo "demo: test accuracy $accuracy after $epochs epochs in $seconds s"
    exit 1
fi
echo "demo: test accuracy $accuracy after $epochs epochs in $seconds s"
