# An index that is out of range: on an emulated GPU the step fails before anything is updated, also where several
# devices share the model: the loss is not a number then, so that no device updates, and the index is told. What is
# kept is that of a training which ended before, to the bit. (Labels are looked at when they are read; those that only
# the device sees are planted by the tests of lists, which look at parameters, too.)
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

# 6 batches of 8 lines of tokens, of which the last has one that is none of 20
python3 "$top/tests/end_to_end/make_tokens.py" .
job() {
    cat >"$1.yaml" <<Y
version: 1
model:
  inputs: {tokens: {shape: [6], dtype: int64}}
  layers: [embedding: {input_dim: 20, output_dim: 8}, flatten, dense: 16, relu, $2dense: 5]
data: {train: {format: npy, inputs: {tokens: bad.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.01}}, batch: 8, shuffle: false, epochs: 1, $3}
checkpoint: {dir: kept, every: 1 steps}
placement: {strategy: dynamic_programming}
Y
}
# kept OPTION...: hash of what the newest checkpoint has
kept() {
    "$PENSTOCK" checkpoint export kept -o left.safetensors --all "$@" >/dev/null 2>export || die "$(cat export)"
    sha256sum <left.safetensors
    rm left.safetensors
}
one='devices=[{name: g, kind: cuda, memory: 1GiB}]'
two='devices=[{name: g, kind: cuda, memory: 1GiB}, {name: h, kind: cuda, gpu: 1, memory: 1GiB}]'
both='devices=[{name: g, kind: cuda, memory: 1GiB}, {name: a, threads: 1}]'
# ---- told by a worker with a GPU, in the first stage or in the last, it ends the training at once (of the cpu:
# wrong_index_test.sh)
job first '' 'microbatches: 2'
cat >last.yaml <<Y
version: 1
model:
  inputs: {tokens: {shape: [6], dtype: int64}, facts: {shape: [6]}}
  layers:
    - dense: {from: facts, units: 16, name: first}
    - embedding: {from: tokens, input_dim: 20, output_dim: 8}
    - flatten
    - concatenate: {from: [first, flatten]}
    - dense: {units: 5, name: answer}
data: {train: {format: npy, inputs: {tokens: bad.npy, facts: facts.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.01}}, batch: 8, shuffle: false, epochs: 1, microbatches: 2}
checkpoint: {dir: kept, every: 1 steps}
placement: {strategy: dynamic_programming, pin: [{nodes: "^first", to: g}, {nodes: "^(embedding|answer)", to: h}]}
Y
alone=${two//\}/, host: localhost\}}
for FAKE_CUDA in gpus=2 'gpus=2 order=1 late=50'; do
    export FAKE_CUDA
    for name in first last; do
        rm -rf kept
        fails 3 "gather 'embedding': the index at position 11 is outside of \[-20, 20\)" \
            "$PENSTOCK" train $name.yaml -q --set "$alone"
        grep -q "while running gather 'embedding', which reads 'tokens'$" fails.err || die "not of what: $(cat fails.err)"
        ! grep -qE 'goes on after|started again|lost worker' fails.err || die "it was tried again: $(cat fails.err)"
        "$PENSTOCK" checkpoint verify kept >/dev/null || die "$name: no whole checkpoint is left"
    done
done

# ---- on GPUs
job at_once '' 'microbatches: 1'
job many '' 'microbatches: 4'
job clipped '' 'microbatches: 2, clip_norm: 1.0'
job on_host 'reshape: {target_shape: [4, 4]}, gru: {units: 6, activation: softsign}, ' 'microbatches: 2'
for name in at_once many clipped on_host; do
    for devices in "$one" "$two" "$both"; do
        for settings in gpus=2 'gpus=2 order=1 late=50'; do
            export FAKE_CUDA=$settings
            rm -rf kept
            fails 3 "gather 'embedding': the index at position [0-9]* is outside of \[-20, 20\)" \
                "$PENSTOCK" train $name.yaml --set "$devices"
            found=$(kept)
            step=$("$PENSTOCK" checkpoint ls kept --json | json 'd["checkpoints"][0]["step"]')
            rm -rf kept
            penstock train $name.yaml --set "$devices" --set data.train.inputs.tokens=good.npy --set train.steps="$step" \
                >/dev/null 2>messages || die "$(cat messages)"
            [ "$found" = "$(kept)" ] || die "$name, $devices, $settings: other numbers after step $step"
        done
    done
done
