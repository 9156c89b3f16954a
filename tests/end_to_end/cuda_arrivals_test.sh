# What comes to a GPU from elsewhere is copied from where it arrives, whatever its size: frames of other processes, of
# this one's coordinator, what a worker reads itself, and values of a cpu device. Small frames and some of 4.4 MB.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

python3 - <<'P'
import array, struct
def save(name, kind, shape, pieces):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)).encode()
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head + b" " * (117 - len(head)) + b"\n")
        for piece in pieces: file.write(piece.tobytes())
values = array.array("f", ((i * 7919 % 4001 - 2000) / 2000 for i in range(1100 * 1000)))
save("large.npy", "<f4", (8, 1, 1100, 1000), (values[i * 1000:] + values[:i * 1000] for i in range(8)))
save("labels.npy", "<i8", (8,), [array.array("q", range(8))])
P
# job NAME LAYERS SHAPE INPUTS LABELS BATCH
job() {
    cat >"$1.yaml" <<Y
version: 1
model: {inputs: {input: {shape: $3}}, layers: [$2]}
data: {train: {format: npy, inputs: {input: $4}, labels: $5}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: $6, microbatches: 4, steps: 4, epochs: 99}
devices:
- {name: g, kind: cuda, memory: 1GiB, host: localhost}
- {name: h, kind: cuda, gpu: 1, memory: 1GiB, host: localhost}
placement: {strategy: dynamic_programming, pin: [{nodes: relu, to: g}]}
pipeline: {schedule: 1f1b}
Y
}
job small 'flatten, {dense: 32}, relu, {dense: 16}, softmax, {dense: 32}, {dense: 10}' '[1, 28, 28]' \
    reference/mlp/inputs.npy reference/mlp/labels.npy 8
job large 'relu, {average_pooling2d: {pool_size: 50, data_format: channels_first}}, flatten, {dense: 10}' \
    '[1, 1100, 1000]' large.npy labels.npy 4
one='devices=[{name: g, kind: cuda, memory: 1GiB}]'
within='devices=[{name: g, kind: cuda, memory: 1GiB}, {name: h, kind: cuda, gpu: 1, memory: 1GiB}]'
mixed='devices=[{name: g, threads: 1}, {name: h, kind: cuda, memory: 1GiB}]'

# hash JOB SETTINGS [OPTION...]
hash() {
    FAKE_CUDA="gpus=2 $2" timeout -k 5 120 "$PENSTOCK" train "$1.yaml" --json "${@:3}" 2>messages |
        json 'd["parameters_hash"]' || die "$1, $2: $(cat messages)"
}

# ---- places are written again only when they were copied, however late that is
for name in small large; do
    right=$(hash $name '' --set "$one")
    for settings in '' 'late=3000 late_role=1' 'late=3000 late_role=0'; do
        for read_on in coordinator workers; do
            [ "$(hash $name "$settings" --set data.read_on=$read_on)" = "$right" ] ||
                die "$name: other bits with '$settings', read on $read_on"
        done
        [ "$(hash $name "$settings" --set "$within")" = "$right" ] || die "$name: other bits within a process, '$settings'"
    done
    right=$(hash $name '' --set "$mixed")
    for settings in 'late=3000 late_role=1' 'late=3000 late_role=0' 'late=200'; do
        [ "$(hash $name "$settings" --set "$mixed")" = "$right" ] || die "$name: other bits behind a cpu, '$settings'"
    done
done

# ---- threads that launch wait for four losses and once at the end of each GPU's step, for no frame
# counts STEPS PROCESSES [OPTION...]: waits of threads that launch, and of others, in all processes
counts() {
    told_by "$2" gpus=2 "$PENSTOCK" train large.yaml --set "train.steps=$1" "${@:3}"
    sed -nE 's/^fake driver: [0-9]+ launches, ([0-9]+) waits$/\1 0/p
        s/^fake driver: [0-9]+ launches ahead of copies, ([0-9]+) waits beside$/0 \1/p' told |
        awk '{waits += $1; beside += $2} END {print waits, beside}'
}
for option in pipeline.schedule=1f1b "$within"; do
    [ "$option" = "$within" ] && processes=1 || processes=2
    read -r few few_beside <<<"$(counts 4 $processes --set "$option")"
    read -r many many_beside <<<"$(counts 12 $processes --set "$option")"
    [ $((many - few)) = $((8 * (4 + 2))) ] || die "$((many - few)) waits in 8 steps, $option"
    # of four microbatches, the input and the labels at least
    [ $((many_beside - few_beside)) -ge $((8 * 4 * 2)) ] || die "$((many_beside - few_beside)) places in 8 steps, $option"
done
