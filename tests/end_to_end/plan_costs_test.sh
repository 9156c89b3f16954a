# A training by a plan is predicted with the costs that the plan was made with, also where only `--costs` named them.
. tests/end_to_end/common.sh
/usr/bin/python3 -c 'import numpy
numpy.save("x.npy", numpy.zeros([64, 256], numpy.float32))
numpy.save("y.npy", numpy.zeros([64], numpy.int64))'
cat >job.yaml <<'END'
version: 1
model:
  inputs: {x: {shape: [256]}}
  layers: [dense: {units: 256}, dense: {units: 256}, dense: {units: 4}]
data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 32, microbatches: 4}
devices: [{name: a, threads: 1}, {name: b, threads: 1}]
placement: {stages: {minimum: 2}}
outputs: {dir: out}
END
cat >costs.yaml <<'END'
version: 1
rates: [{kind: cpu, threads: 1, flops: 1G, memory_bandwidth: 1GB/s}]
END
penstock plan job.yaml --json >assumed.json
penstock plan job.yaml --costs costs.yaml -o made.plan --json >made.json
planned=$(json 'd["step_seconds"]' <made.json)
check "d['step_seconds'] < 0.5 * $planned" assumed.json 'the costs make no difference'
penstock train made.plan --json >trained.json 2>messages || die "$(cat messages)"
check "abs(d['predicted']['step_seconds'] - $planned) < 1e-4 * $planned" trained.json 'the training is predicted without the costs'

# without the table it trains all the same, and says so
rm costs.yaml
penstock train made.plan --overwrite --json >trained.json 2>messages || die "$(cat messages)"
grep -q "warning: the plan's cost table '.*costs.yaml' cannot be read" messages || die "$(cat messages)"
