# Costs grow with the size of a graph, not with its square: ten times the layers may take 25 times
# the processor's time to plan and to set up, start of the program aside. What is in proportion took
# 12 to 14 times (caches); what grows with the square takes 60 and more. Of three runs the shortest
# counts, since other programs only make them longer.
. tests/end_to_end/common.sh

python3 - <<'PYTHON'
import struct

def npy(name, kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += ' ' * (63 - (10 + len(head)) % 64) + '\n'
    with open(name, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data)

npy('x.npy', '<f4', (8, 8), struct.pack('<64f', *(i / 64 for i in range(64))))
npy('y.npy', '<i8', (8,), struct.pack('<8q', *range(8)))
PYTHON

# chain LAYERS: dense layers one after another, each with its activation
chain() {
    printf 'version: 1\nmodel:\n  inputs: {x: {shape: [8]}}\n  layers:\n'
    yes '    - {dense: {units: 8, activation: relu}}' | head -n "$1"
    printf 'data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}}\n'
    printf 'train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.01}}, batch: 8, steps: 1, seed: 1}\n'
    printf 'devices: [{name: a, threads: 1, memory: 4GiB}]\n'
}
for layers in 5 900 9000; do
    (set +o pipefail && chain "$layers") >"chain$layers.yaml"
done

# milliseconds COMMAND...: of the processor, the least of three runs. The system's share is counted:
# their sum is exact, where either is an estimate.
milliseconds() {
    local least=999999 own its TIMEFORMAT='%3U %3S'
    for _ in 1 2 3; do
        { time "$@" >out 2>&1; } 2>taken || die "$*: $(cat out)"
        read -r own its <taken
        own=$((10#${own/./} + 10#${its/./}))
        [ "$own" -ge "$least" ] || least=$own
    done
    echo "$least"
}

for verb in plan train; do
    start=$(milliseconds "$PENSTOCK" "$verb" chain5.yaml -q)
    small=$(($(milliseconds "$PENSTOCK" "$verb" chain900.yaml -q) - start))
    large=$(($(milliseconds "$PENSTOCK" "$verb" chain9000.yaml -q) - start))
    echo "$verb: start $start ms, 900 layers $small ms more, 9000 layers $large ms more"
    [ "$small" -gt 5 ] || small=5 # below, the clock's steps count
    [ "$large" -le $((25 * small)) ] || die "$verb: ten times the layers take $large ms in place of $small ms"
done
