# Evaluations, and a smaller last batch of an epoch, have tables, inputs and working memory of their own. A plan counts
# them: what it says that a GPU takes is what the driver of an emulated one counts, to the byte.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/cuda_memory.sh"

whole=(--set train.drop_last=false --set train.steps=null --set train.epochs=1 --set train.batch=6
    --set data.train.limit=11)
# fed JOB: the key with evaluations of what it trains on, in a batch of six and one of four
fed() {
    sed -n 's|^data: {train: {\(.*\)}}$|data.eval={\1, limit: 10}|p' "$1.yaml"
}
for model in mlp resnet gpt lstm; do
    forms=("${whole[@]}" --set "$(fed $model)")
    told $model "$mixed" "${forms[@]}"
    told $model "$apart" "${forms[@]}"
    penstock plan $model.yaml --set "$one" --json >without.json
    told $model "$one" "${forms[@]}"
    bytes=$(json 'd["devices"][0]["memory"]["total"]' <plan.json)
    [ "$bytes" -gt "$(json 'd["devices"][0]["memory"]["total"]' <without.json)" ] || die "$model: no form is counted"
    FAKE_CUDA="memory=$bytes" penstock train $model.yaml --set "$one" --set "devices[0].memory=${bytes}B" \
        "${forms[@]}" --json >/dev/null 2>messages || die "$model: $bytes bytes are not enough: $(cat messages)"
    fails 5 "device 'g' would need .* of memory" \
        "$PENSTOCK" plan $model.yaml --set "$one" "${forms[@]}" --set "devices[0].memory=$((bytes - 1))B"
done
# tables of the first form fit into the GPU's own room, and not beside them those of the second; then none fit
layers 300 middle
layers 400 large
layers 900 deep
# ended JOB DEVICES: what is told of it, with a smaller batch at the end of an epoch, and of evaluations
ended() {
    told "$1" "$2" "${whole[@]}" --set train.batch=24 --set data.train.limit=46 --set "$(fed "$1")" \
        --set data.eval.limit=50 --set placement.strategy=round_robin --set pipeline.schedule=1f1b
}
ended middle "$one"
ended large "$mixed"
ended large "$apart"
ended deep "$one"
