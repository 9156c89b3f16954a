# Numbers that are not finite: the step is computed again, and the node named, or the hardware.
. tests/end_to_end/common.sh

# models: a logarithm of what becomes negative; a square root of zero, whose gradient is infinite
/usr/bin/python3 - <<'END'
import numpy, onnx
from onnx import helper as h, numpy_helper as n, TensorProto as t
random = numpy.random.RandomState(3)
def save(name, middle):
    w = n.from_array(random.uniform(0.1, 1, (4, 3)).astype("float32"), "weight")
    scale = n.from_array(numpy.ones(3, "float32"), "scale")
    nodes = [h.make_node("MatMul", ["x", "weight"], ["hidden"], "dense"), *middle,
             h.make_node("Mul", ["middle", "scale"], ["y"], "last")]
    graph = h.make_graph(nodes, name, [h.make_tensor_value_info("x", t.FLOAT, ["batch", 4])],
                         [h.make_tensor_value_info("y", t.FLOAT, ["batch", 3])], [w, scale])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)]), name + ".onnx")
save("log", [h.make_node("Log", ["hidden"], ["middle"], "logarithm")])
save("root", [h.make_node("Sqrt", ["hidden"], ["middle"], "root")])
x = random.uniform(0.5, 1, (24, 4)).astype("float32")
numpy.save("good.npy", x)
for number in (-1, 0):  # in the third microbatch of the second step of 12
    x[12 + 2 * 4 + 1] = number
    numpy.save(f"row{number}.npy", x)
numpy.save("labels.npy", numpy.arange(24) % 3)
END

job() { # MODEL INPUTS [MICROBATCHES [OPTIMIZER]]
    local plain='sgd: {lr: 0.001}'
    cat >job.yaml <<END
version: 1
model: {file: $1.onnx}
data:
  train: {format: npy, inputs: {x: $2.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {${4:-$plain}}, batch: 12, microbatches: ${3:-3}, steps: 2,
  shuffle: false}
devices: [{name: a, threads: 1}]
END
}

# ---- the numbers' fault
job log row-1
fails 8 "step 2, microbatch 2 on device 'a': first in log 'logarithm': 3 of 12 elements are not a number" \
    "$PENSTOCK" train job.yaml -q
grep -q "an undefined operation in it, 'hidden' from -" fails.err || die "where it came from: $(cat fails.err)"
grep -q 'Computed again, the bits are the same' fails.err || die "again: $(cat fails.err)"
grep -q 'the loss of step 2 is not a number' fails.err || die "the loss: $(cat fails.err)"
job log row-1 1 # updates come with gradients, but not before the loss
fails 8 "step 2, microbatch 0 on device 'a': first in log 'logarithm': 3 of 36" "$PENSTOCK" train job.yaml -q
# the loss is finite, a gradient is not: nothing is updated
for optimizer in 'sgd: {lr: 0.001}' 'adam: {lr: 0.001}' clip; do
    if [ "$optimizer" = clip ]; then
        job root row0 3
        sed -i 's/shuffle: false/&, clip_norm: 1/' job.yaml
    else
        job root row0 3 "$optimizer"
    fi
    fails 8 "step 2, microbatch 2 on device 'a': first in .*root" "$PENSTOCK" train job.yaml -q
    grep -q 'finite, but a gradient is not' fails.err || die "$optimizer: $(cat fails.err)"
done
job root row0 '3, lanes: 3' # it comes in the last lane; and is seen before the first update
fails 8 "step 2, microbatch 2 on device 'a': first in .*root" "$PENSTOCK" train job.yaml -q
grep -q 'finite, but a gradient is not' fails.err || die "lanes: $(cat fails.err)"
job root row0 1
fails 8 'gradient' "$PENSTOCK" train job.yaml -q

# ---- good numbers
job root good
penstock train job.yaml --json -q >good.json || die 'good numbers'
check 'len(d["steps"]) == 2' good.json

# ---- the hardware's: a bit changes once, where it makes a loss that is not a number
cat >mlp.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.1}}, batch: 8, microbatches: 2, steps: 2}
devices: [{name: a, threads: 1}]
END
spoiled() { # NODES PATTERN: the bit changes when so many nodes have run
    PENSTOCK_FAILPOINT=$1 fails 6 "$2" "$PENSTOCK" train mlp.yaml -q
}
spoiled executor.node_run:1:fail \
    "step 1, microbatch 0: device 'a' gave a loss of nan the first time, and gives 2.38746309 twice since"
spoiled executor.node_run:1:fail,executor.node_run:43:fail \
    "device 'a' gives different bits from one computation to the next, first in gemm '/layers.0/Gemm'"

# ---- over devices: one device computes it again
sed -i "s/^devices:.*/devices: [{name: a, threads: 1}, {name: b, threads: 1, host: localhost}]\nplacement: {strategy: round_robin}/" mlp.yaml
spoiled executor.node_run:2:fail \
    "step 1, microbatch 1: device 'a' of this process gave other bits of '/layers.0/Gemm_output_0' the first time"
# only the second worker's hardware is bad: with what came from the first, it made a bad loss
PENSTOCK_FAILPOINT=executor.node_run:2:fail "$PENSTOCK" worker --listen 127.0.0.1:0 >worker.out 2>&1 &
worker=$!
for i in $(seq 100); do
    port=$(sed -n 's/.*takes links at port \([0-9]*\).*/\1/p' worker.out)
    [ -n "$port" ] && break
    sleep 0.1
done
sed "s/localhost/127.0.0.1:$port/" mlp.yaml >elsewhere.yaml
fails 6 "device 'b' of .*127.0.0.1:$port.* gave other bits of .* the first time than .* the hardware of device 'b' of" \
    "$PENSTOCK" train elsewhere.yaml -q
kill "$worker"
sed -i 's/lr: 0.1/lr: 1e30/' mlp.yaml
fails 8 "step 2, microbatch 0: first in gemm '/layers.1/Gemm': .*which device 'a' of this process runs" "$PENSTOCK" train mlp.yaml -q
job root row0
sed -i 's/^devices:.*/devices: [{name: a, threads: 1}, {name: b, threads: 1}]\nplacement: {strategy: round_robin}/' job.yaml
fails 8 "'weight/gradient' is not finite" "$PENSTOCK" train job.yaml -q
