# What a plan says that a GPU takes is what the driver of an emulated one counts, to the byte: for four models,
# on one GPU, on a GPU beside a cpu device, and on two GPUs in processes of their own. It is enough, and a byte
# less is refused when it is planned. The host's memory has its own figure, with what is pinned.
. tests/end_to_end/common.sh

. "$top/tests/end_to_end/cuda_memory.sh"

for model in mlp resnet gpt lstm; do
    told $model "$one"
    bytes=$(json 'd["devices"][0]["memory"]["total"]' <plan.json)
    # exactly that much, by the job's limit and by what the GPU has; and a byte less
    FAKE_CUDA="memory=$bytes" penstock train $model.yaml --set "$one" --set "devices[0].memory=${bytes}B" \
        --json >/dev/null 2>messages || die "$model: $bytes bytes are not enough: $(cat messages)"
    fails 5 "device 'g' would need .* of memory" \
        "$PENSTOCK" plan $model.yaml --set "$one" --set "devices[0].memory=$((bytes - 1))B"
    told $model "$mixed"
    told $model "$apart"
done

# ---- of several devices, too, a limit is exact
bytes=$(json 'd["devices"][1]["memory"]["total"]' <plan.json)
penstock train lstm.yaml --set "$apart" --set "devices[1].memory=${bytes}B" --json >/dev/null 2>messages ||
    die "$bytes bytes are not enough: $(cat messages)"
# the search counts what a GPU has of its own: with a byte less, it moves nodes
penstock plan lstm.yaml --set "$apart" --set "devices[1].memory=$((bytes - 1))B" --json >plan.json 2>messages
check "d['devices'][1]['memory']['total'] < $bytes" plan.json "nothing was moved"

# ---- a fast GPU beside a slow cpu: `auto` gives it as much as fits, of two limits, and of just enough
beside() {
    printf 'devices=[{name: a, threads: 1}, {name: g, kind: cuda, memory: %sB, flops: 10T, memory_bandwidth: 500GB/s}]' "$1"
}
for limit in 3000000 6000000; do
    told wide "$(beside $limit)"
    bytes=$(json 'd["devices"][1]["memory"]["total"]' <plan.json)
    [ "$bytes" -le $limit ] && [ "$bytes" -gt $((limit - 1000000)) ] || die "of $limit bytes, $bytes are used"
done
FAKE_CUDA="memory=$bytes" penstock train wide.yaml --set "$(beside "$bytes")" --json >/dev/null 2>messages ||
    die "$bytes bytes are not enough: $(cat messages)"

# ---- a model with 1802 parameters: tables of launches take more than a GPU has of its own for them, and are counted, too
layers 900 deep
for devices in "$one" "$mixed" "$apart"; do
    told deep "$devices" --set placement.strategy=round_robin --set pipeline.schedule=1f1b
done
json '[x["memory"]["workspace"] for x in d["devices"]]' <plan.json
told deep "$one"
bytes=$(json 'd["devices"][0]["memory"]["total"]' <plan.json)
[ "$(json 'd["devices"][0]["memory"]["workspace"]' <plan.json)" -gt $((2 * 266496)) ] || die "no table is counted"
FAKE_CUDA="memory=$bytes" penstock train deep.yaml --set "$one" --set "devices[0].memory=${bytes}B" --json \
    >/dev/null 2>messages || die "$bytes bytes are not enough: $(cat messages)"

# ---- checkpoints of a GPU's tensors lie in the host's memory, and nothing of the GPU is in the host's figure
penstock plan mlp.yaml --set "$mixed" --set 'checkpoint={dir: kept}' --json >kept.json
check '[x["memory"]["saved"] for x in d["devices"] if x["name"] == "g"] == [0]' kept.json
penstock plan mlp.yaml --set "$mixed" --json >plan.json
python3 - <<'P' || die "copies for checkpoints are in no figure"
import json
with_copies, without = (json.load(open(f))["devices"][0]["process_bytes"] for f in ("kept.json", "plan.json"))
assert with_copies > without, (with_copies, without)
P
penstock plan mlp.yaml --set "$one" >plan.txt
grep -q '^unproven     what the driver of a device of kind cuda takes for itself' plan.txt || die "$(cat plan.txt)"
# the process takes six pieces of pinned memory, one for numbers that are fetched, and a page of words more than with
# a cpu device, whatever the GPU has
penstock plan mlp.yaml --set "$one" --json >gpu.json
penstock plan mlp.yaml --set 'devices=[{name: a, threads: 1}]' --json >cpu.json
python3 - <<'P' || die "the host's memory has what is the GPU's"
import json
gpu, cpu = (json.load(open(f))["process_bytes"] for f in ("gpu.json", "cpu.json"))
assert gpu - cpu == (6 << 20) + 65536 + 4096, (gpu, cpu)
P
large='devices=[{name: g, kind: cuda, memory: 100TiB}]'
penstock plan mlp.yaml --set "$large" >/dev/null || die "a GPU's memory is taken from the host's"
