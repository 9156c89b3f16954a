# numerics.level: each level has bits of its own, the same on any threads and devices; plans and
# checkpoints keep the level, and whoever cannot or will not run at it is told so by name.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_training_models.py" . branching tied

levels=$(penstock doctor | sed -n 's/.*kernel level \(v[234]\).*/\1/p' | head -n 1)
case $levels in
v4) levels='v2 v3 v4' ;;
v3) levels='v2 v3' ;;
v2) levels='v2' ;;
*) exit 0 ;; # a machine that has one level
esac
best=${levels##* }

# job FILE MODEL LEVEL DEVICE...
job() {
    local file=$1 model=$2 level=$3 device
    shift 3
    {
        cat <<END
version: 1
model: {file: $model.onnx}
data: {train: {format: npy, inputs: {x: ${model}_x.npy}, labels: ${model}_y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 8, seed: 3}
placement: {strategy: greedy}
numerics: {level: $level}
devices:
END
        for device; do echo "  - $device"; done
    } >"$file"
}
# hash JOB [OPTION...]
hash() {
    penstock train --json "$@" 2>messages >out.json || die "$*: $(cat messages)"
    json 'd["parameters_hash"]' <out.json
}
# refused CODE TEXT WORD...: the command ends with the code and says the text
refused() {
    local code=0
    penstock "${@:3}" >out 2>messages || code=$?
    [ "$code" = "$1" ] || die "${*:3}: exit code $code: $(cat messages)"
    grep -qF "$2" messages || die "${*:3}: $(cat messages)"
}

for model in branching tied; do
    for level in $levels; do
        job one.yaml $model "$level" '{name: a, threads: 1}'
        one=$(hash one.yaml)
        echo "$model $one" >>hashes
        job two.yaml $model "$level" '{name: a, threads: 2}'
        [ "$(hash two.yaml)" = "$one" ] || die "$model, $level: two threads have other bits"
        job mixed.yaml $model "$level" '{name: a, threads: 3}' '{name: b, threads: 1, host: localhost}'
        [ "$(hash mixed.yaml)" = "$one" ] || die "$model, $level: two processes have other bits"
        penstock verify mixed.yaml --steps 2 >out 2>messages || die "$level: $(cat messages out)"
        [ "$level" != "$best" ] || continue
        job one.yaml $model auto '{name: a, threads: 1}'
        [ "$(hash one.yaml)" != "$one" ] || die "$model: $level has the bits of $best"
    done
done
# auto is the best
job one.yaml tied auto '{name: a, threads: 1}'
[ "tied $(hash one.yaml)" = "$(tail -n 1 hashes)" ] || die "auto is not $best"
[ "$levels" != v2 ] || exit 0

# a plan keeps the level it was made at
job v2.yaml tied v2 '{name: a, threads: 1}' '{name: b, threads: 2}'
penstock plan -q v2.yaml -o made.plan.yaml >out 2>messages || die "plan: $(cat messages)"
grep -qx 'numerics: {level: v2}' made.plan.yaml || die "the plan has no level: $(head -n 8 made.plan.yaml)"
v2=$(hash v2.yaml)
sed -i 's/numerics: .*/numerics: {level: auto}/' v2.yaml
[ "$(hash made.plan.yaml)" = "$v2" ] || die 'a plan of v2 has other bits'
sed -i 's/numerics: .*/numerics: {level: v3}/' v2.yaml
refused 3 'v2.yaml:6:19: error: kernel level v3: the plan is of v2, which rounds otherwise' train made.plan.yaml
sed 's/level: v2/level: v5/' made.plan.yaml >v5.plan.yaml
refused 3 'numerics.level: found "v5"' train v5.plan.yaml

# so does a checkpoint
job kept.yaml tied v2 '{name: a, threads: 1}'
penstock train -q kept.yaml --steps 3 --checkpoint kept >out 2>messages || die "checkpoint: $(cat messages)"
sed -i 's/numerics: .*/numerics: {level: auto}/' kept.yaml
[ "$(hash kept.yaml --checkpoint kept --continue)" = "$v2" ] || die 'going on had other bits'
sed -i 's/numerics: .*/numerics: {level: v3}/' kept.yaml
refused 3 'kept.yaml:6:19: error: kernel level v3: the checkpoint is of v2' \
    train kept.yaml --checkpoint kept --continue
penstock checkpoint ls --json kept >out 2>messages || die "ls: $(cat messages)"
check 'all(c["level"] == "v2" for c in d["checkpoints"])' out

# a worker takes the level of its first training; one that needs another is told
mkfifo announced
"$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>announced 2>worker.log &
worker=$!
trap 'kill $worker 2>/dev/null || true; rm -rf "$work"' EXIT
read -r port <announced
job far.yaml tied v2 '{name: a, threads: 1}' "{name: b, threads: 2, host: '127.0.0.1:$port'}"
[ "$(hash far.yaml)" = "$v2" ] || die "a worker at v2 has other bits"
sed -i "s/numerics: .*/numerics: {level: v3}/; s/^devices:/pipeline: {rendezvous_timeout: 5 s}\n&/" far.yaml
refused 6 'kernel level v3 was asked for, but this process runs at v2 already' train far.yaml
