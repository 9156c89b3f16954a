# A value in the data that the model cannot take, such as index 20 of a table of 20 rows, is found by a worker: the
# training ends at once, as on one device, with the same message and code. Nobody is lost, nothing is tried again, no
# process is left, and the checkpoint from before goes on with the numbers of one device.
. tests/end_to_end/common.sh

# 6 batches of 8 examples; in the last one a token is none of 20
python3 "$top/tests/end_to_end/make_tokens.py" .

# job NAME TABLE'S-DEVICE OTHER'S-DEVICE: the worker that reads the table runs the first stage, or the last
job() {
    cat >"$1.yaml" <<Y
version: 1
model:
  inputs: {tokens: {shape: [6], dtype: int64}, facts: {shape: [6]}}
  layers:
    - dense: {from: facts, units: 16, name: first}
    - embedding: {from: tokens, input_dim: 20, output_dim: 8, name: table}
    - flatten: {name: flat}
    - concatenate: {from: [first, flat]}
    - dense: {units: 5, name: answer}
data: {train: {format: npy, inputs: {tokens: bad.npy, facts: facts.npy}, labels: labels.npy}}
train:
  {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.01}}, batch: 8, microbatches: 4, lanes: 2, shuffle: false, epochs: 1}
checkpoint: {dir: kept, every: 1 steps}
devices: [{name: a, threads: 1}, {name: b, threads: 1}]
placement:
  strategy: dynamic_programming
  pin: [{nodes: "^(table|flat)", to: $2}, {nodes: "^first", to: $3}, {nodes: "^answer", to: b}]
Y
}
job early a b
job late b a
sed '/^devices/,$d' late.yaml >one.yaml
echo 'devices: [{name: a, threads: 1}]' >>one.yaml
good=data.train.inputs.tokens=good.npy
hosts='devices=[{name: a, threads: 1, host: localhost}, {name: b, threads: 1, host: localhost}]'
twice='placement={replicas: 2}'

fails 3 "gather 'table': index 20 at position 11 is outside of \[-20, 20\)" "$PENSTOCK" train one.yaml -q
expected=$(grep '^error:' fails.err)
rm -rf kept
penstock train one.yaml --json --set "$good" >one.json 2>messages || die "$(cat messages)"
hash=$(json 'd["parameters_hash"]' <one.json)

# ends WHAT STEPS COMMAND...: with the words and the code of one device, in the first generation, and without a process
ends() {
    local what=$1 code=0 child
    shift
    rm -rf kept log.jsonl
    setsid timeout 60 "$PENSTOCK" train "$@" -q --log log.jsonl >out 2>err &
    child=$!
    wait "$child" || code=$?
    [ "$code" -eq 3 ] || die "$what: exit code $code, expected 3: $(cat err)"
    [ "$(sed "s/'table@[0-9]*'/'table'/" err | grep '^error:')" = "$expected" ] || die "$what: said $(cat err)"
    grep -qE "^  while running gather 'table(@1)?', which reads 'tokens'$" err || die "$what: not of what: $(cat err)"
    grep -q '^  in step 6, stage ' err || die "$what: not which step: $(cat err)"
    ! grep -qE 'goes on after|started again|lost worker' err || die "$what: it was tried again: $(cat err)"
    ! grep -qE '"event": *"(lost|recovery)"' log.jsonl || die "$what: a loss in $(cat log.jsonl)"
    ! pgrep -s "$child" >left || die "$what: processes are left: $(cat left)"
    "$PENSTOCK" checkpoint verify kept >verified 2>&1 || die "$what: $(cat verified)"
    "$PENSTOCK" checkpoint ls kept --json >ls.json
    check 'd["checkpoints"][0]["step"] >= 4 and all(c["generation"] == 1 for c in d["checkpoints"])' ls.json "$what"
    penstock train "$@" --set "$good" --continue --json >again.json 2>messages || die "$what: $(cat messages)"
    check "d['parameters_hash'] == '$hash'" again.json "$what"
}
ends 'threads' late.yaml
ends 'the first stage, workers read' early.yaml --set "$hosts" --set data.read_on=workers
ends 'the last stage, workers are fed' late.yaml --set "$hosts" --set data.read_on=coordinator
ends 'replicas' late.yaml --set "$hosts" --set "$twice"

# ---- workers that were there before serve the next training
for name in a b; do
    mkfifo "$name.pipe"
    "$PENSTOCK" worker --listen 127.0.0.1:0 --store "$work/kept-$name" --data . --announce 9 9>"$name.pipe" 2>"$name.log" &
    started="${started:-} $!"
    trap 'case $BASHPID in $$) kill $started 2>/dev/null || true; rm -rf "$work" ;; esac' EXIT
    read -r "port_$name" <"$name.pipe"
done
# shellcheck disable=SC2154
hosts="devices=[{name: a, threads: 1, host: \"127.0.0.1:$port_a\"}, {name: b, threads: 1, host: \"127.0.0.1:$port_b\"}]"
ends 'workers by hand' late.yaml --set "$hosts" --set checkpoint.shared=false
jobs -pr >there
[ "$(wc -l <there)" -eq 2 ] || die "workers have ended: $(cat a.log b.log)"

# ---- forward passes alone, and evaluations while it trains
judged='data.eval={format: npy, inputs: {tokens: bad.npy, facts: facts.npy}, labels: labels.npy}'
for verb in eval 'predict -o predicted.npy'; do
    # shellcheck disable=SC2086 # the options of the verb
    fails 3 "gather 'table': index 20 at position [0-9]* is outside of" "$PENSTOCK" $verb late.yaml --set "$hosts" --set "$judged"
    ! grep -qE 'goes on after|lost worker' fails.err || die "$verb: it was tried again: $(cat fails.err)"
done
rm -rf kept
fails 3 'in the evaluation after step 2' "$PENSTOCK" train late.yaml -q --set "$hosts" --set "$good" --set "$judged" \
    --set checkpoint.shared=false --set 'evaluation={every: 2 steps}'
grep -q '^  in stage 1$' fails.err || die "an evaluation has no step: $(cat fails.err)"
! grep -qE 'goes on after|lost worker' fails.err || die "an evaluation was tried again: $(cat fails.err)"
xargs kill <there
wait
