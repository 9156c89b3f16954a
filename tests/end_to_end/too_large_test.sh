# A model that no worker holds alone: a process limited to M bytes of data cannot train it, and says
# so before; four workers under the same limit train it, with the numbers of one device without
# limit, and each has resident at most what the plan says, within a tenth.
. tests/end_to_end/common.sh
case $PENSTOCK in *address* | *thread*)
    echo 'skipped: sanitizers take memory of their own'
    exit 0
    ;;
esac
python3 "$top/tests/end_to_end/make_training_models.py" . wide:2048 # 128 MiB of weights, 4 times that with Adam's states

# Two buffers of OpenBLAS (128 MiB of address space each) and small stacks of threads, so that the limit,
# which counts what is reserved, is on what is used.
export OMP_NUM_THREADS=1
ulimit -s 1024
limit=$((480 << 20)) # of data, for every process of a training
memory=240MiB        # of a device: its buffers

# job FILE DEVICE...
job() {
    local file=$1 device
    shift
    {
        cat <<'END'
version: 1
model: {file: wide.onnx}
data: {train: {format: npy, inputs: {x: wide_x.npy}, labels: wide_y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {adamw: {lr: 0.001}}, batch: 16, microbatches: 4, steps: 6, seed: 3}
placement: {strategy: auto, time_limit: 2s}
devices:
END
        for device; do echo "  - $device"; done
    } >"$file"
}
job one.yaml '{name: a, threads: 1}'
job limited.yaml "{name: a, threads: 1, memory: $memory}"
job four.yaml "{name: a, threads: 1, memory: $memory, host: localhost}" "{name: b, threads: 1, memory: $memory, host: localhost}" \
    "{name: c, threads: 1, memory: $memory, host: localhost}" "{name: d, threads: 1, memory: $memory, host: localhost}"

limited=(prlimit --data="$limit" "$PENSTOCK")

# alone: the plan says so, and a device without a stated memory has the limit's
fails 5 "'a' would need 5[0-9][0-9] MiB of memory and may use 240 MiB" "${limited[@]}" plan limited.yaml
fails 5 "a buffer of 5[0-9][0-9] MiB does not fit.*of 240 MiB" "${limited[@]}" train limited.yaml
fails 5 "does not fit.*of 480 MiB" "${limited[@]}" train one.yaml
# and with the check off memory ends
fails 5 'out of memory' "${limited[@]}" train limited.yaml --no-memory-check

# four do
penstock train one.yaml --json >one.json 2>messages || die "without limit: $(cat messages)"
"${limited[@]}" train four.yaml --json >four.json 2>messages || die "four workers: $(cat messages)"
numbers='[s["loss"] for s in d["steps"]] + [d["parameters_hash"]]'
[ "$(json "$numbers" <one.json)" = "$(json "$numbers" <four.json)" ] ||
    die "four workers: $(json "$numbers" <four.json), not $(json "$numbers" <one.json)"

# each within a tenth of what was said
python3 - four.json "${TOO_LARGE_FIGURES:-/dev/null}" <<'END' || die "resident peaks and what the plan says: $(cat four.json)"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
said = {d["name"]: d["process_bytes"] for d in report["predicted"]["devices"]}
wrong = 0
with open(sys.argv[2], "a", encoding="utf-8") as out:
    for device in report["measured"]["devices"]:
        found, plan = device["process_bytes"], said[device["name"]]
        ratio = found / plan
        out.write(f"{device['name']}: {found / 2**20:.1f} MiB resident, {plan / 2**20:.1f} MiB said, {ratio:.3f}\n")
        wrong += not 0.9 <= ratio <= 1.1
sys.exit(wrong > 0 or len(said) != 4)
END
