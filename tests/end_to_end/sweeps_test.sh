# Faults while a training starts, saves, loads and goes on: the n-th allocation, write, sync, rename
# or open is refused. The command ends with the right code and a message, leaves no half of a file,
# and what was kept before goes on to the same numbers. PEN_LONG tries more places.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 24

places=${PEN_LONG:+60}
: "${places:=3}"

cat >job.yaml <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adamw: {lr: 0.01}}, batch: 8, steps: 6}
END
hash_of() {
    json 'd["parameters_hash"]' <"$1"
}
penstock train --json job.yaml >whole.json 2>messages || die "the training itself: $(cat messages)"
hash=$(hash_of whole.json)
penstock train --json job.yaml --steps 3 --checkpoint half >half.json 2>messages || die "the first half: $(cat messages)"

# run PLACE NUMBER ARGUMENT...: trains with that fault; sets `code`, 0 where all went well
run() {
    local place=$1 number=$2
    shift 2
    rm -rf kept out.safetensors
    cp -r half kept
    code=0
    PENSTOCK_FAILPOINT="$place:$number:fail" timeout 120 "$PENSTOCK" train --json job.yaml "$@" \
        >run.json 2>run.err || code=$?
}

# judge WHAT CODES: the code is one of these, an error has a message, and no half of a file stays
judge() {
    [[ " $2 " == *" $code "* ]] || die "$1: exit code $code, expected one of $2: $(tail -5 run.err)"
    if [ "$code" -ne 0 ]; then
        grep -q 'error' run.err || die "$1: exit code $code without a message: $(cat run.err)"
        # nothing is said in JSON when memory is refused before the options are known
        if [ -s run.json ] || [[ $1 != memory* ]]; then
            check "len(d['error']) > 0 and d['exit_code'] == $code" run.json "$1"
        fi
    fi
    ! ls ./*.part 2>/dev/null || die "$1: half of a file stays"
    if [ -e out.safetensors ] && [ "$code" -eq 0 ]; then
        [ "$(hash_of run.json)" = "$hash" ] || die "$1: other parameters"
    fi
}

# afterwards, what was kept goes on to the numbers of the whole
goes_on() {
    penstock train --json job.yaml --continue --checkpoint kept >again.json 2>again.err ||
        die "$1: going on afterwards: $(cat again.err)"
    [ "$(hash_of again.json)" = "$hash" ] || die "$1: going on afterwards gives other parameters"
}

# sweep PLACE CODES ARGUMENT...: from the first time to the last, at `places` of them
sweep() {
    local place=$1 codes=$2 last=1 low number tried=0
    shift 2
    run "$place" 1 "$@"
    while grep -q "failpoint $place" run.err; do # how often it is come by
        low=$last
        last=$((last * 2))
        run "$place" "$last" "$@"
    done
    while [ $((last - ${low:-0})) -gt $(((last + 63) / 64)) ]; do
        number=$(((last + low) / 2))
        run "$place" $number "$@"
        if grep -q "failpoint $place" run.err; then low=$number; else last=$number; fi
    done
    [ -n "${low:-}" ] || die "$place is never come by"
    local step=$((low / places))
    [ "$step" -gt 0 ] || step=1
    for ((number = 1; number <= low; number += step)); do
        run "$place" $number "$@"
        judge "$place $number of $* " "$codes"
        tried=$((tried + 1))
        if [ $((tried % 3)) -eq 1 ]; then goes_on "$place $number of $*"; fi
    done
    printf '%s: %d of about %d tried (%s)\n' "$place" $tried $low "$*" >&2
}

again='--continue --checkpoint kept --save out.safetensors'
# shellcheck disable=SC2086 # words
{
    sweep memory.asked '0 5' $again
    sweep disk.written '0 3 4 9' $again
    sweep disk.synced '0 3 4 9' $again
    sweep disk.published '0 3 4 9' $again
    sweep disk.renamed '0 3 4 9' $again
    sweep disk.created '0 3 4 9' $again
    sweep file.written '0 3 4 9' $again
    sweep file.synced '0 3 4 9' $again
    sweep file.created '0 2 3 4 9' $again
    sweep file.opened '0 2 3 4 9' $again
}

# ---- a disk that is full from the start, or a limit on the size of files
code=0
(ulimit -f 8 && "$PENSTOCK" train --json job.yaml --overwrite --set checkpoint.retry=1s --save out.safetensors >run.json 2>run.err) || code=$?
judge 'a limit on the size of files' '3 4 9'
rm -rf kept
code=0
(ulimit -f 8 && "$PENSTOCK" train --json job.yaml --checkpoint kept --set checkpoint.retry=1s >run.json 2>run.err) || code=$?
judge 'checkpoints beyond the limit on the size of files' '0 3 4 9'
code=0
"$PENSTOCK" train --json job.yaml >/dev/full 2>run.err || code=$?
[ "$code" -eq 1 ] || die "a full standard output: exit code $code: $(cat run.err)"
