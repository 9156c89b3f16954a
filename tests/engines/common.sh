# shellcheck shell=bash
# What the checks of engines share: models and data in a folder of their own, and the numbers of one device.
set -u -o pipefail
top=$PWD
: "${PENSTOCK:=$PWD/build/gcc/penstock}"
work=$(mktemp -d /tmp/penstock-engines.XXXXXX)

die() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# job NAME: NAME.yaml, which keeps in NAME
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, epochs: 2}
devices: [{name: n, per: task, threads: 1}]
placement: {strategy: round_robin}
pipeline: {rendezvous_timeout: ${RENDEZVOUS:-20} s}
recovery: {on_loss: replan, grace: 0.5 s, lease: 5 s}
checkpoint: {dir: $1, every: 3 steps}
END
}

# same NAME: NAME.out has the hash of one device
same() {
    grep -q "\"parameters_hash\": \"$hash\"" "$1.out" || die "$1: other numbers: $(cat "$1".err* "$1.out" 2>/dev/null | tail -30)"
}

# none_left NAME: two seconds after the end no process of it is there
none_left() {
    local i
    for i in $(seq 20); do
        pgrep -f "$PENSTOCK train .*$1" >/dev/null || return 0
        sleep 0.1
    done
    die "$1: processes are left: $(pgrep -af "$PENSTOCK train .*$1")"
}

cd "$work" || exit 1
ln -s "$top/tests/reference" reference
python3 "$top/tests/end_to_end/make_data.py" . 70
job one
sed 's/per: task, //' one.yaml >single.yaml
hash=$("$PENSTOCK" train --json single.yaml 2>/dev/null | grep -o '"parameters_hash": "[^"]*"' | cut -d'"' -f4)
rm -rf one

# shellcheck disable=SC2034 # for those that read this file
# task, and the place that it dies at: at the start, in steps, while it saves
kills='0 task.listening:1
0 task.published:1
0 task.coordinates:1
0 task.gathered:1
0 coordinator.fenced:1
0 coordinator.assigned:1
0 coordinator.started:1
0 coordinator.round_begun:5
0 coordinator.losses:5
0 coordinator.gone:5
0 coordinator.snapped:2
0 coordinator.shards_durable:2
0 coordinator.manifest_written:2
0 coordinator.manifest_published:2
0 coordinator.committed:2
2 task.published:1
2 worker.assigned:1
2 worker.described:1
2 worker.loaded:1
2 worker.ready:1
2 worker.round_begun:5
2 worker.task_done:9
2 worker.updated:5
2 worker.snapped:2
2 worker.shard_written:2
2 worker.shard_told:2'
kills_short='0 coordinator.losses:5
2 worker.loaded:1'
