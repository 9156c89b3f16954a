# train, save, evaluate, predict, export: what one leaves the next one finds, with the same numbers.
. tests/end_to_end/common.sh

# job NAME MODEL OUTPUTS REFERENCE
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: $2}
data:
  train: {format: npy, inputs: {input: reference/$4/inputs.npy}, labels: reference/$4/labels.npy}
  eval: {format: npy, inputs: {input: reference/$4/inputs.npy}, labels: reference/$4/labels.npy}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8, steps: 6}
outputs: $3
END
}

for model in mlp lenet batchnorm_cnn branching_cnn; do
    job "$model" "reference/$model/model.onnx" "{dir: runs/$model, export: $model.onnx}" "$model"
    penstock train --json --save "$model.safetensors" "$model.yaml" >train.json 2>messages ||
        die "train $model: $(cat messages)"
    cmp "$model.safetensors" "runs/$model/parameters.safetensors" || die "$model: two copies differ"

    # evaluation at the end of the training, and later from the file
    penstock eval --json "$model.yaml" >eval.json
    check 'd["schema"] == "penstock/eval/1" and d["examples"] == d["targets"] == 40' eval.json
    [ "$(json 'd["loss"]' <eval.json)" = "$(json 'd["evaluation"]["loss"]' <train.json)" ] ||
        die "$model: eval $(cat eval.json), train $(json 'd["evaluation"]' <train.json)"
    penstock eval "$model.yaml" --parameters "$model.safetensors" >eval.txt 2>/dev/null
    grep -q "^loss  *$(json '"%.6g" % d["loss"]' <eval.json)\$" eval.txt || die "$model: $(cat eval.txt)"

    # predictions in both forms are the same float32 numbers, and give the accuracy that eval counts
    penstock predict -q "$model.yaml" -o outputs.npy
    penstock predict -q "$model.yaml" -o outputs.csv
    penstock predict -q "$model.yaml" -o first.csv --limit 3
    cmp first.csv <(head -n 4 outputs.csv) || die "$model: --limit 3"
    python3 - "$(json 'd["correct"]' <eval.json)" "reference/$model/labels.npy" <<'END' || die "$model: predictions"
import csv, struct, sys
data = open("outputs.npy", "rb").read()
start = 10 + struct.unpack("<H", data[8:10])[0]
assert b"'shape': (40, 10)" in data[:start], data[:start]
values = struct.unpack("<400f", data[start:])
rows = list(csv.reader(open("outputs.csv")))[1:]
assert [int(r[0]) for r in rows] == list(range(40))
text = [struct.unpack("<f", struct.pack("<f", float(v)))[0] for r in rows for v in r[1:]]
assert text == list(values)
labels = struct.unpack("<40q", open(sys.argv[2], "rb").read()[-320:])
scores = [values[10 * i:10 * i + 10] for i in range(40)]
assert sum(s.index(max(s)) == label for s, label in zip(scores, labels)) == int(sys.argv[1])
END

    # the exported model, written at the end of the training or later, is the trained one
    penstock export -q "$model.yaml" -o later.onnx
    cmp "$model.onnx" later.onnx || die "$model: two exports differ"
    job again "$model.onnx" '{}' "$model"
    penstock predict -q again.yaml -o again.npy 2>messages
    cmp outputs.npy again.npy || die "$model: the exported model predicts something else"
    penstock inspect --json "$model.onnx" >exported.json
    check "d['outputs'][0]['name'] == 'logits'" exported.json
    penstock train --json --no-eval again.yaml >again.json 2>messages || die "$model: cannot go on: $(cat messages)"

    # and training goes on from saved parameters
    penstock train --json --no-eval --overwrite --parameters "$model.safetensors" --steps 1 "$model.yaml" >on.json 2>/dev/null
    check "d['steps'][0]['loss'] < $(json 'd["steps"][0]["loss"]' <train.json)" on.json "$model goes on"
done

# an old file is replaced whole or not at all, and nothing else is left
touch -d 2000-01-01 lenet.safetensors
penstock train -q --steps 1 --overwrite --save lenet.safetensors lenet.yaml
[ "$(find . -name '*.part' | wc -l)" = 0 ] || die "left: $(find . -name '*.part')"
