#!/usr/bin/env bash
# Trains the network of examples/fashion-cnn on Fashion-MNIST over four workers, processes on this
# machine, and the first steps of the same job on one device; ends with
#   demo: test accuracy 0.xxxx on 4 workers, same losses as one device: yes
# Exit code 1 when the accuracy is below 0.90, or a loss differs in any digit.
#   demo.sh PENSTOCK [PAGE]    PAGE: build/demo.html
set -eu -o pipefail

penstock=$1
page=${2:-build/demo.html}
job=examples/fashion-cnn/workers.yaml
compared=40 # steps
accuracy_minimum=0.90
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# losses FILE: of all steps, with all their digits, a line each
losses() {
    sed 's/"parameters_hash".*//' "$1" | tr '{' '\n' | sed -n 's/^"step": \([0-9]*\),.*"loss": \([^,}]*\).*/\1 \2/p'
}

workers=$(grep -c '^  - {name:' "$job")
echo "training the network of examples/fashion-cnn on Fashion-MNIST over $workers workers"
start=$(date +%s)
"$penstock" train "$job" --json --progress --report "$page" --save "$folder/workers.safetensors" >"$folder/workers.json"
seconds=$(($(date +%s) - start))

echo "the first $compared steps again on one device"
{
    sed -e '/^devices:/,$d' -e "s#file: fashion_cnn#file: $PWD/examples/fashion-cnn/fashion_cnn#" "$job"
    echo 'devices: [{name: one, threads: 1}]'
} >"$folder/one.yaml"
"$penstock" train "$folder/one.yaml" --json --steps "$compared" --no-eval --save "$folder/one.safetensors" >"$folder/one.json"
losses "$folder/workers.json" | sed -n "1,${compared}p" >"$folder/workers"
losses "$folder/one.json" >"$folder/one"
same=yes
if [ "$(wc -l <"$folder/one")" -ne "$compared" ] || ! cmp -s "$folder/workers" "$folder/one"; then
    same=no
    echo "demo: losses on $workers workers (<) and on one device (>) differ:" >&2
    diff "$folder/workers" "$folder/one" | sed -n 1,6p >&2 || true
fi

accuracy=$(sed -n 's/.*"evaluation": {[^}]*"accuracy": \([0-9.e-]*\).*/\1/p' "$folder/workers.json")
if [ -z "$accuracy" ]; then
    echo "demo: the training ended without an evaluation" >&2
    exit 1
fi
code=0
if [ "$same" != yes ]; then code=1; fi
if ! awk -v found="$accuracy" -v least="$accuracy_minimum" 'BEGIN { exit !(found >= least) }'; then
    echo "demo: the test accuracy is below $accuracy_minimum" >&2
    code=1
fi
echo "demo: trained in $seconds s; who did what when: $page"
LC_ALL=C printf 'demo: test accuracy %.4f on %d workers, same losses as one device: %s\n' "$accuracy" "$workers" "$same"
exit "$code"
