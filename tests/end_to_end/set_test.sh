# --set: a job with other values, on the verbs that take jobs; what is wrong names the option; plans
# keep what their job was set to, and refuse more.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 24

cat >job.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: adam, batch: 8, steps: 4}
devices: [{name: a, threads: 1}, {name: b, threads: 1}]
placement: {strategy: round_robin}
END
sed 's/optimizer: adam, batch: 8/optimizer: {sgd: {lr: 0.01, momentum: 0.5}}, batch: 6/; s/name: b, /&memory: 1GiB, /' \
    job.yaml >edited.yaml

# values of all kinds, in the order given, are those of the edited job
given=(--set train.optimizer.sgd.lr=7 --set train.optimizer.sgd.lr=0.01
    --set train.optimizer.sgd.momentum=0.5 --set=train.batch=6 --set devices.b.memory=1GiB)
[ "$(train_losses job.yaml "${given[@]}")" = "$(train_losses edited.yaml)" ] ||
    die "set and edited jobs differ"
[ "$(train_losses job.yaml)" != "$(train_losses edited.yaml)" ] || die "the values change nothing"
[ "$(train_losses job.yaml --set 'train.optimizer={sgd: {lr: 0.01, momentum: 0.5}}' \
    --set train.batch=6 --set 'devices[1].memory=1GiB')" = "$(train_losses edited.yaml)" ] ||
    die "a mapping and an index do not do"
penstock train --json -q job.yaml "${given[@]}" >set.json
check 'd["set"][0] == "train.optimizer.sgd.lr=7" and len(d["set"]) == 5' set.json
penstock train --json -q job.yaml >plain.json
check '"set" not in d' plain.json

# null takes a key away, within another one, too, and one that is not there
sed 's/momentum: 0.5/&, nesterov: true/; s/^train: {/&clip_norm: 0.001, /' edited.yaml >more.yaml
[ "$(train_losses more.yaml)" != "$(train_losses edited.yaml)" ] || die "the keys to take away change nothing"
[ "$(train_losses more.yaml --set train.clip_norm=null --set train.optimizer.sgd.nesterov=null --set costs=null)" = \
    "$(train_losses edited.yaml)" ] || die "null does not take keys away"
fails 2 '^--set train.bach=null: error: train: unknown key "bach"' "$PENSTOCK" train job.yaml --set train.bach=null
fails 3 "^job.yaml:5:.*'loss' is missing" "$PENSTOCK" train job.yaml --set train.loss=null

# wrong ones name the option and the path, and mean exit code 2
fails 2 '^--set train.batch=no: error: train.batch: found "no", expected an integer' \
    "$PENSTOCK" train job.yaml --set train.batch=no
fails 2 '^--set train.bach=7: error: train: unknown key "bach", possible: batch' \
    "$PENSTOCK" eval job.yaml --set train.bach=7
fails 2 '^--set devices.c.memory=1GiB: error: devices: found no item .c., possible: a, b, an index from 0 to 1' \
    "$PENSTOCK" plan job.yaml --set devices.c.memory=1GiB
fails 2 '^--set devices.a.memory.x=1: error: devices.a.memory' \
    "$PENSTOCK" train job.yaml --set devices.a.memory=1GiB --set devices.a.memory.x=1
fails 2 '^--set links=.*no device is called "z"' "$PENSTOCK" plan job.yaml --set 'links=[{between: [a, z], bandwidth: 1Gbit/s}]'
fails 2 'found "train.batch", expected PATH=VALUE' "$PENSTOCK" train job.yaml --set train.batch
fails 2 'not YAML' "$PENSTOCK" train job.yaml --set 'train.batch=[1'
fails 2 '^--set train.batch=: error: train.batch: found nothing' \
    "$PENSTOCK" train job.yaml --set train.batch=
fails 2 'unknown option --set' "$PENSTOCK" diff a b --set train.batch=7
# what the file has wrong is still the file's
sed 's/batch: 8/batch: no/' job.yaml >wrong.yaml
fails 3 '^wrong.yaml:5:[0-9]+: error: train.batch: ' "$PENSTOCK" train wrong.yaml --set train.steps=7

# a plan keeps what its job was set to, and takes no more
penstock plan -q job.yaml "${given[@]}" -o plan.yaml
grep -q '^set: \["train.optimizer.sgd.lr=7", ' plan.yaml || die "the plan has no settings"
[ "$(train_losses plan.yaml)" = "$(train_losses edited.yaml)" ] || die "the plan is of another job"
penstock train --json -q plan.yaml >planned.json
check 'len(d["set"]) == 5' planned.json
fails 2 '--set: found a plan, which is made for the values that its job had' \
    "$PENSTOCK" train plan.yaml --set train.batch=7
penstock train -q plan.yaml --report page.html --trace trace.json
grep -qF "\"set\": [\"train.optimizer.sgd.lr=7\", " page.html || die "the page does not say what was set"
penstock verify -q plan.yaml >verified || die "verify of a plan of a job that was set"

# layers, of the job and in a file of their own, each as it would be edited
cat >layers.yaml <<'END'
inputs: {picture: {shape: [28, 28]}}
layers: [flatten, {dense: {units: 8, name: middle}}, {dense: {units: 10, name: last}}]
END
cat >layered.yaml <<'END'
version: 1
model: layers.yaml
data:
  train: {format: npy, inputs: {picture: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.1}}, batch: 8, steps: 3}
END
sed 's/units: 8/units: 5/' layers.yaml >five.yaml
sed 's/layers.yaml/five.yaml/' layered.yaml >layered_five.yaml
{
    sed '/^model:/,$d' layered.yaml
    printf 'model:\n'
    sed 's/^/  /' layers.yaml
    sed '1,/^model:/d' layered.yaml
} >own.yaml
five=$(train_losses layered_five.yaml)
[ "$five" != "$(train_losses layered.yaml)" ] || die "five units give the losses of eight"
for job in layered own; do
    [ "$(train_losses $job.yaml --set 'model.layers[1].dense.units=5')" = "$five" ] ||
        die "$job: layers cannot be set"
done
