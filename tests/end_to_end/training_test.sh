# What a job can ask of the training: optimizers, schedules, batches, frozen parts, parts in files.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 40

# job NAME TRAIN [MODEL [MORE]]: `train: {loss: …, batch: 16, seed: 1, TRAIN}`
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/${3:-mlp}/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, $2}
${4:-}
END
}
sgd='optimizer: {sgd: {lr: 0.1}}'

# two equal runs print equal losses; 17 digits read back as what they were
job plain "$sgd, batch: 16, epochs: 2"
first=$(train_losses plain.yaml)
check 'd["schema"] == "penstock/train/1" and [s["step"] for s in d["steps"]] == list(range(1, 7))' losses.json
check 'all({"epoch", "loss", "seconds", "accuracy", "learning_rate"} <= set(s) for s in d["steps"])' losses.json
check 'len(d["parameters_hash"]) == 16 and d["devices"] == ["cpu"]' losses.json
check 'd["predicted"]["device_bytes"] > 0 and d["measured"]["seconds"] > 0' losses.json
[ "$(train_losses plain.yaml)" = "$first" ] || die 'two equal runs differ'
grep -qE '"loss": [0-9]\.[0-9]{16}[,}]' losses.json || die 'no loss has 17 digits'
sed 's/seed: 1/seed: 2/' plain.yaml >seed.yaml
[ "$(train_losses seed.yaml)" != "$first" ] || die 'the seed changes nothing'
[ "$(train_losses plain.yaml --steps 2)" = "$(cut -d' ' -f1-2 <<<"$first")" ] || die '--steps 2'
job six "$sgd, batch: 16, steps: 4"
[ "$(train_losses six.yaml)" = "$(cut -d' ' -f1-4 <<<"$first")" ] || die 'steps: 4'

# each optimizer learns, and none does what another does
seen=
for optimizer in '{sgd: {lr: 0.1}}' '{sgd: {lr: 0.1, momentum: 0.9}}' \
    '{sgd: {lr: 0.1, momentum: 0.9, nesterov: true}}' '{sgd: {lr: 0.1, weight_decay: 0.01}}' \
    adam '{adam: {lr: 0.003, weight_decay: 0.01}}' adamw '{adamw: {lr: 0.003}}'; do
    job optimizer "optimizer: $optimizer, batch: 20, epochs: 25"
    losses=$(train_losses optimizer.yaml)
    check 'd["steps"][-1]["loss"] < d["steps"][0]["loss"] - 0.2' losses.json "$optimizer"
    ! grep -qxF "$losses" <<<"$seen" || die "$optimizer has the losses of another"
    seen+=$losses$'\n'
done

# rates [MORE]: the learning rates of 6 steps, in thousandths
rates() {
    job rate "$sgd, batch: 20, epochs: 3, $1"
    train_losses rate.yaml >/dev/null
    json '" ".join("%.0f" % (1000 * s["learning_rate"]) for s in d["steps"])' <losses.json
}
expect_rates() {
    local found
    found=$(rates "$1")
    [ "$found" = "$2" ] || die "$1: rates $found, expected $2"
}
expect_rates 'learning_rate: constant' '100 100 100 100 100 100'
expect_rates 'learning_rate: {step: {every: 2 steps, factor: 0.5}}' '100 100 50 50 25 25'
expect_rates 'learning_rate: {step: {every: 1 epochs}}' '100 100 10 10 1 1'
expect_rates 'warmup: 4 steps' '25 50 75 100 100 100'
case $(rates 'learning_rate: linear') in 100\ *) ;; *) die "linear: $(rates 'learning_rate: linear')" ;; esac
for kind in linear cosine; do
    rates "learning_rate: {$kind: {final: 0.02}}" >/dev/null
    check 'all(a["learning_rate"] > b["learning_rate"] >= 0.02 for a, b in zip(d["steps"], d["steps"][1:]))' \
        losses.json "$kind"
done

# batches: the last is short, or left out; microbatches change rounding alone, also when the last
# batch does not divide (40 = 24 + 16, microbatches of 6: 6 6 4)
job short "$sgd, batch: 24, epochs: 2"
whole=$(train_losses short.yaml)
check '[s["examples"] for s in d["steps"]] == [24, 16, 24, 16]' losses.json
job dropped "$sgd, batch: 24, epochs: 2, drop_last: true"
train_losses dropped.yaml >/dev/null
check '[s["examples"] for s in d["steps"]] == [24, 24]' losses.json
for count in 2 4 24; do
    job parts "$sgd, batch: 24, microbatches: $count, epochs: 2"
    # shellcheck disable=SC2086 # numbers apart
    python3 - "$whole" "$(train_losses parts.yaml)" <<'END' || die "$count microbatches: losses differ"
import sys
a, b = ([float(v) for v in text.split()] for text in sys.argv[1:])
assert len(a) == len(b) == 4 and all(abs(x - y) <= 1e-5 * abs(x) for x, y in zip(a, b)), (a, b)
END
done

# holdout: neither part is empty, and nothing is in both
sed 's/^train:/  holdout: 0.25\ntrain:/' plain.yaml >holdout.yaml
train_losses holdout.yaml >/dev/null
check 'd["evaluation"]["examples"] == 10 and sum(s["examples"] for s in d["steps"]) == 60' losses.json
train_losses holdout.yaml --no-eval >/dev/null
check '"evaluation" not in d' losses.json

# tensors FILE: name and a hash of each tensor of a safetensors file
tensors() {
    python3 - "$1" <<'END'
import hashlib, json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
for name, about in sorted(json.loads(data[8:8 + size]).items()):
    if name != "__metadata__":
        first, last = about["data_offsets"]
        print(name, hashlib.sha256(data[8 + size + first:8 + size + last]).hexdigest())
END
}
job frozen "$sgd, batch: 16, freeze: \"^layers\\\\.0\""
penstock train -q frozen.yaml --save start.safetensors --steps 1
penstock train -q frozen.yaml --save later.safetensors --steps 3
changed=$(comm -3 <(tensors start.safetensors) <(tensors later.safetensors) | awk '{ print $1 }' | sort -u)
[ "$changed" = $'layers.1.bias\nlayers.1.weight\nlayers.2.bias\nlayers.2.weight' ] ||
    die "frozen layers.0, but what changed is: $changed"

# clipping keeps a wild rate finite, and does nothing when the norm is never reached
job wild "optimizer: {sgd: {lr: 1000000}}, batch: 8, epochs: 2"
fails 8 'the loss of step [0-9]+ is (not a number|infinite)' "$PENSTOCK" train -q wild.yaml
job clipped "optimizer: {sgd: {lr: 0.1}}, clip_norm: 0.0001, batch: 16, epochs: 2"
train_losses clipped.yaml >/dev/null
check 'all(abs(s["loss"] - d["steps"][0]["loss"]) < 0.2 for s in d["steps"])' losses.json clipped
job loose "$sgd, batch: 16, epochs: 2, clip_norm: 1e9"
[ "$(train_losses loose.yaml)" = "$first" ] || die 'a norm that is never reached changes losses'

# the reference device has the cpu's losses, up to rounding
for model in mlp lenet branching_cnn batchnorm_cnn; do
    for kind in cpu reference; do
        job "$kind" "$sgd, batch: 8, steps: 2" "$model" "devices: [{name: a, kind: $kind, threads: 1}]"
        sed -i "s#inputs.npy#reference/$model/inputs.npy#; s#labels.npy#reference/$model/labels.npy#" "$kind.yaml"
    done
    python3 - "$(train_losses cpu.yaml)" "$(train_losses reference.yaml)" <<'END' || die "$model: devices differ"
import sys
a, b = ([float(v) for v in text.split()] for text in sys.argv[1:])
assert len(a) == len(b) == 2 and all(abs(x - y) <= 1e-4 * abs(x) for x, y in zip(a, b)), (a, b)
END
done

# a last batch that the model cannot train on is refused before the first
job last "$sgd, batch: 13, epochs: 2" batchnorm_cnn
sed -i "s#inputs.npy#reference/batchnorm_cnn/inputs.npy#" last.yaml
fails 4 'for the last 1 examples of an epoch; drop_last: true' "$PENSTOCK" train last.yaml
sed -i 's/batch: 13/drop_last: true, batch: 13/' last.yaml
train_losses last.yaml >/dev/null

# parts in files of their own, in another folder: paths are those of the job file's folder
mkdir part
cat >part/data.yaml <<'END'
train: part/train.yaml
END
echo '{format: npy, inputs: {input: inputs.npy}, labels: labels.npy}' >part/train.yaml
echo '{loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.1}}, batch: 16, epochs: 2}' >part/how.yaml
printf '%s\n' 'version: 1' 'model: {file: reference/mlp/model.onnx}' 'data: part/data.yaml' \
    'train: part/how.yaml' >parts.yaml
[ "$(train_losses parts.yaml)" = "$first" ] || die 'parts in files of their own: other losses'
