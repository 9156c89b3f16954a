# penstock inspect: every model that comes with Penstock, in every form.
. tests/end_to_end/common.sh
ln -s "$top/examples" examples

for model in reference/*/model.onnx examples/*/*.onnx; do
    penstock inspect "$model" >text
    penstock inspect --nodes "$model" >nodes
    penstock inspect --json --batch 3 "$model" >model.json
    check 'd["schema"] == "penstock/inspect/1" and d["batch"] == 3' model.json "$model"
    check 'd["inputs"][0]["shape"][0] == 3 and d["outputs"][0]["shape"][0] == 3' model.json "$model"
    check 'sum(o["flops"] for o in d["operators"]) == d["flops"] > 0' model.json "$model"
    check '0 < d["trainable_parameters"] <= d["parameters"] == d["parameter_bytes"] // 4' model.json "$model"
    [ "$(grep -c '^' <nodes)" -eq "$(json 'sum(o["nodes"] for o in d["operators"]) + '"$(wc -l <text) + 2" <model.json)" ] ||
        die "$model: --nodes lists $(wc -l <nodes) lines"
    # as it runs there are fewer nodes, or as many, for the same parameters
    penstock inspect --fused --json --batch 3 "$model" >fused.json
    nodes=$(json 'sum(o["nodes"] for o in d["operators"])' <model.json) parameters=$(json 'd["parameters"]' <model.json)
    check "sum(o['nodes'] for o in d['operators']) <= $nodes and d['parameters'] == $parameters" fused.json "$model"
    penstock inspect --dump text "$model" >dump
    penstock inspect --dump text "$model" | cmp - dump || die "$model: two dumps differ"
    penstock inspect --dump dot "$model" >dump.dot
    head -n 1 dump.dot | grep -q '^digraph' || die "$model: not DOT"
    if command -v dot >/dev/null; then dot -Tsvg dump.dot >dump.svg || die "$model: dot refuses it"; fi
    if [ "${model##*/}" = model.onnx ]; then
        echo "--- $model"
        cat text
    fi
done

# a job: its model as the job reads it, at its batch
cat >job.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: none.npy}}}
train: {loss: output, optimizer: adam, batch: 7}
devices: [{name: a}]
END
penstock inspect --json job.yaml >of_job.json
penstock inspect --json --batch 7 reference/mlp/model.onnx >of_model.json
cmp of_job.json of_model.json || die "a job and its model differ"
penstock inspect --json --set train.batch=9 job.yaml >of_job.json
check 'd["batch"] == 9' of_job.json
fails 2 "a model has no settings" "$PENSTOCK" inspect --set train.batch=9 reference/mlp/model.onnx
sed 's|mlp/model.onnx|none.onnx|' job.yaml >away.yaml
fails 3 "^away.yaml:2:[0-9]*: error: .*none.onnx" "$PENSTOCK" inspect away.yaml
