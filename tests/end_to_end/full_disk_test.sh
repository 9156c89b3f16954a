# A disk that takes no more: what was trained outlives the disk of the checkpoints, devices keep it
# while it is tried again, and what a supervisor is told (9) means: later. The limit of a file's size
# stands for the disk, since anybody may set it: parameters have 101 KiB, a checkpoint 308.
. tests/end_to_end/common.sh
export TMPDIR=$work

# job RETRY [DEVICES [MORE]]
job() {
    local one='{name: a, threads: 1}' outputs='outputs: {dir: run1}'
    cat >job.yaml <<YAML
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.001}}, batch: 8, microbatches: 2, steps: 6}
devices: [${2:-$one}]
checkpoint: {dir: kept, every: 4 steps, retry: $1}
${3-$outputs}
YAML
}
two='{name: a, threads: 1}, {name: b, threads: 1, host: localhost}'

# limited KIB COMMAND...: no file may become longer. Its messages go through a pipe, which may
limited() {
    local kib=$1
    shift
    bash -c 'ulimit -S -f "$0" && exec "$@"' "$kib" "$@" 2> >(cat >messages)
}

# ends CODE COMMAND...: within a minute
ends() {
    local code=0 expected=$1
    shift
    "$@" || code=$?
    [ "$code" = "$expected" ] || die "$*: exit code $code, expected $expected: $(cat messages)"
}

job '0 s'
penstock train job.yaml -q --save whole.safetensors 2>messages || die "$(cat messages)"

# ---- outputs are written, checkpoints are not: a warning
for devices in '' "$two"; do
    rm -rf kept run1
    job '1 min' "$devices"
    ends 0 limited 200 timeout 60 "$PENSTOCK" train job.yaml -q
    grep -q 'warning: the last checkpoint is not written: .*File too large.*the trained parameters are' messages ||
        die "what was not written: $(cat messages)"
    cmp run1/parameters.safetensors whole.safetensors
done

# ---- nothing is written: tried again, for as long as the job says
rm -rf kept run1
job '1 s'
began=$(date +%s)
ends 9 limited 50 timeout 60 "$PENSTOCK" train job.yaml -q
[ $(($(date +%s) - began)) -ge 1 ] || die "it was not tried for a second: $(cat messages)"
grep -q 'File too large; tried again for 1 s, while devices keep what they have' messages || die "$(cat messages)"
grep -q 'error: what was trained cannot be written now .*try again later' messages || die "$(cat messages)"
job '1 s' '' '' # likewise where checkpoints alone are wanted
ends 9 limited 50 timeout 60 "$PENSTOCK" train job.yaml -q --continue
rm -rf kept run1
job '1 s' # and where outputs alone are, without a folder of checkpoints
sed -i 's/dir: kept, every: 4 steps, //' job.yaml
grep -q '^checkpoint: {retry: 1 s}$' job.yaml || die "not without a folder: $(cat job.yaml)"
began=$(date +%s%N)
ends 9 limited 50 timeout 60 "$PENSTOCK" train job.yaml -q
[ $(($(date +%s%N) - began)) -ge 1000000000 ] || die "it was not tried for a second: $(cat messages)"
grep -q 'File too large; tried again for 1 s, while devices keep what they have' messages || die "$(cat messages)"
[ ! -e kept ] || die 'there is a folder of checkpoints'

# ---- until there is room: devices kept what they had. Or until somebody has it end
for devices in '' "$two"; do
    for deed in room TERM; do
        rm -rf kept run1
        job '5 min' "$devices"
        code=0
        bash -c 'ulimit -S -f 50 && exec "$0" train job.yaml -q' "$PENSTOCK" 2> >(cat >messages) &
        pid=$!
        for _ in $(seq 300); do
            ! grep -q 'tried again for 300 s' messages || break
            sleep 0.1
        done
        if [ "$deed" = room ]; then
            prlimit --pid "$pid" --fsize=unlimited
            for child in $(pgrep -P "$pid"); do prlimit --pid "$child" --fsize=unlimited; done
            expected=0
        else
            kill -TERM "$pid"
            began=$(date +%s%N)
            expected=9
        fi
        wait "$pid" || code=$?
        [ "$code" = $expected ] || die "$deed, '$devices': exit code $code: $(cat messages)"
        if [ "$deed" = room ]; then
            cmp run1/parameters.safetensors whole.safetensors
            penstock checkpoint ls kept | grep -q '^ *6 ' || die "no checkpoint: $(penstock checkpoint ls kept)"
        else
            took=$((($(date +%s%N) - began) / 1000000))
            [ $took -lt 10000 ] || die "SIGTERM ended it after $took ms"
        fi
    done
done

# ---- a start on a full disk is worth another try
rm -rf kept run1
job '0 s' '' ''
penstock train job.yaml -q 2>messages || die "$(cat messages)"
ends 9 limited 0 timeout 60 "$PENSTOCK" train job.yaml -q --continue --steps 9
grep -q 'error: cannot write .*kept/' messages || die "$(cat messages)"

# ---- and room is looked for before the first step; on a disk of its own, where one may be mounted
cat >small.sh <<'END2'
mount -t tmpfs -o size=400k none small || exit 77
code=0
"$PENSTOCK" train job.yaml -q --checkpoint small/kept --save small/p.safetensors || code=$?
umount small
exit $code
END2
mkdir small
export PENSTOCK
for run in 'unshare -m' 'unshare -Urm'; do
    code=0
    $run bash small.sh 2>messages || code=$?
    [ $code -ne 77 ] && [ $code -ne 1 ] && break
done
if [ $code -eq 77 ] || [ $code -eq 1 ]; then
    echo "no disk can be mounted here: $(cat messages)"
else
    [ $code -eq 9 ] || die "a small disk: exit code $code: $(cat messages)"
    grep -q "error: the disk of 'small/p.safetensors' has .* left, but the training leaves .* there: its outputs, and two checkpoints" messages ||
        die "a small disk: $(cat messages)"
fi
