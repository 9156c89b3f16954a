# What a training over several devices writes back as a GraphDef runs in TensorFlow, which has other
# devices: they stand in it where they are asked for.
. tests/end_to_end/common.sh

job() {
    cat <<END
version: 1
model: {file: reference/tensorflow/classifier$1}
data: {train: {format: npy, inputs: {image: reference/tensorflow/classifier.input_0.npy}, labels: reference/tensorflow/classifier.labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 8, microbatches: 2, steps: 1}
devices: [{name: first, threads: 1}, {name: second, threads: 1}]
outputs: {dir: run, export: trained.pb}
END
}
job '' >job.yaml
penstock train -q job.yaml 2>said || die "train: $(cat said)"
grep -aq /job: trained.pb && die "devices were written"
penstock plan -q job.yaml --strategy round_robin -o made.plan >/dev/null 2>said || die "plan: $(cat said)"
penstock export -q made.plan -o placed.pb 2>said || die "export: $(cat said)"
grep -aq /job:second placed.pb || die "no devices of the plan"
job ', use_device_strings: true' >pinned.yaml
penstock train -q --overwrite pinned.yaml 2>said || die "train: $(cat said)"
grep -aq /job:first trained.pb || die "no devices where they are asked for"
