# Checkpoints in two folders: whichever is lost, damaged, away or full, the training goes on, from
# the other where it must, with the bits of one that nothing happened to.
. tests/end_to_end/common.sh
export TMPDIR=$work

# job [DEVICES [SHARED]]
job() {
    cat >job.yaml <<YAML
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.001}}, batch: 8, microbatches: 2, steps: 12}
devices: [${1:-"{name: a, threads: 1}"}]
checkpoint: {dir: kept, mirror: mirror, every: 2 steps, retry: 0 s, shared: ${2:-true}}
YAML
}
two='{name: a, threads: 1}, {name: b, threads: 1, host: localhost}'

# train MESSAGES ARGUMENTS...: goes well
train() {
    local messages=$1
    shift
    timeout 60 "$PENSTOCK" train job.yaml -q "$@" 2>"$messages" || die "$*: exit code $?: $(cat "$messages")"
}

# goes_on: to the end, with the same parameters
goes_on() {
    train messages --continue --save again.safetensors
    cmp whole.safetensors again.safetensors || die "other parameters: $(cat messages)"
}

says() {
    grep -q "$1" messages || die "$1 is not said: $(cat messages)"
}

# damage FOLDER: every file of it gets a byte that is wrong
damage() {
    local file
    for file in "$1"/*/*; do
        [ -f "$file" ] || continue # the folder of a worker
        printf '\377' | dd of="$file" bs=1 seek=20 conv=notrunc status=none
    done
}

# ---- one is lost, or has nothing that is whole
for setting in '' "$two" "$two|false"; do
    job "${setting%|*}" "$([ "$setting" = "$two|false" ] && echo false || echo true)"
    rm -rf kept mirror
    rm -f whole.safetensors
    train messages --save whole.safetensors
    says 'warning: checkpoint.mirror: mirror is on the disk that kept is on'
    for lost in kept mirror; do
        for how in removed damaged; do
            [ -z "$setting" ] || [ $how = removed ] || continue # files are the same
            rm -rf kept mirror
            train messages --steps 6 --log log
            [ "$(grep -c '"copies": 2' log)" -ge 3 ] || die "copies: $(cat log)"
            rm log
            if [ $how = removed ]; then rm -rf $lost; else damage $lost; fi
            goes_on
            penstock checkpoint verify kept --mirror mirror >verified || [ $how = damaged ] || die "$(cat verified)"
            grep -q 'step 12: .*, whole in both folders' verified || die "$lost $how: $(cat verified)"
        done
    done
done

# ---- what is damaged is named, and read from the other
job
rm -rf kept mirror
train messages --steps 6
printf '\377' | dd of=kept/shards/g1-s6-w0.safetensors bs=1 seek=20000 conv=notrunc status=none
fails_as_damaged() {
    local code=0
    penstock checkpoint verify kept --mirror mirror >verified || code=$?
    [ $code -eq 7 ] || die "exit code $code: $(cat verified)"
}
fails_as_damaged
grep -q "'kept/shards/g1-s6-w0.safetensors' is damaged" verified || die "$(cat verified)"
goes_on
says 'the copy in mirror is used: .*kept/shards/g1-s6-w0.safetensors. is damaged'
rm -rf kept # the mirror is a folder of checkpoints like any other
penstock checkpoint ls kept --mirror mirror | grep -q '^ *12 .* yes, one of two' || die "$(penstock checkpoint ls kept --mirror mirror)"
penstock checkpoint ls mirror | grep -q '^ *12 .* yes$' || die "$(penstock checkpoint ls mirror)"

# ---- one is away when the training goes on, and comes back
for away in kept mirror; do
    job "$two"
    rm -rf kept mirror
    train messages --steps 4
    mv $away elsewhere
    : >$away
    train messages --continue --steps 8 --report page.html --log log --json >result
    says "warning: .*$away"
    says "warning: the checkpoint of step 8 is in .* alone, .*: $away has not got it"
    grep -q '"notice": *"the checkpoint of step 8 is in [a-z]* alone' page.html || die "page: $(grep -o '"notice".\{60\}' page.html)"
    grep -q "\"without\": *\"$away\"" result || die "result: $(cat result)"
    grep -q "\"without\": *\"$away\"" log || die "log: $(cat log)"
    rm log page.html
    rm $away
    mv elsewhere $away
    goes_on
    penstock checkpoint verify kept --mirror mirror | grep -q 'step 12: .*, whole in both folders' || die "$(cat messages)"
done

# ---- two folders of two trainings, or one folder twice, are a mistake
rm -rf mirror
penstock train job.yaml -q --checkpoint mirror --steps 2 2>messages || die "$(cat messages)"
fails 4 'kept and its mirror mirror have checkpoints of two trainings' "$PENSTOCK" train job.yaml -q --continue
sed -i 's/mirror: mirror/mirror: kept/' job.yaml
fails 3 'mirror: found the folder that `dir` is' "$PENSTOCK" train job.yaml -q
sed -i 's|mirror: kept|mirror: kept/shards|' job.yaml
fails 3 '^job.yaml:[0-9]*:[0-9]*: error: .*mirror: found kept/shards and `dir` kept, one within the other' "$PENSTOCK" train job.yaml -q
rm -r kept/shards

# ---- a disk fills while it trains; when it is lost, nothing is
cat >small.sh <<'END2'
mount -t tmpfs -o size=800k none $1 || exit 77
code=0
timeout 60 "$PENSTOCK" train job.yaml -q --save again.safetensors || code=$?
umount $1
exit $code
END2
export PENSTOCK
for devices in '' "$two"; do
    for full in kept mirror; do
        job "$devices"
        rm -rf kept mirror
        rm -f again.safetensors
        mkdir kept mirror
        for run in 'unshare -m' 'unshare -Urm'; do
            code=0
            $run bash small.sh $full 2>messages || code=$?
            [ $code -ne 77 ] && [ $code -ne 1 ] && break
        done
        if [ $code -eq 77 ] || [ $code -eq 1 ]; then
            echo "no disk can be mounted here: $(cat messages)"
            break 2
        fi
        [ $code -eq 0 ] || die "$full is full: exit code $code: $(cat messages)"
        says "warning: .*$full.*No space left"
        cmp whole.safetensors again.safetensors
        goes_on # the disk is gone
        penstock checkpoint verify kept --mirror mirror | grep -q 'step 12: .*, whole' || die "$full"
    done
done

# ---- `dir` goes away while workers train, and comes back: no checkpoint is lost, wherever they write
mkfifo pipe
"$PENSTOCK" worker --listen 127.0.0.1:0 --store . --announce 9 9>pipe 2>worker.log &
read -r port <pipe
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
for devices in "$two" "{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: \"127.0.0.1:$port\"}"; do
    for how in file removed; do
        job "$devices"
        sed -i 's/every: 2 steps/every: 1 steps, keep: 100/; s/steps: 12}/steps: 1000000}/' job.yaml
        rm -rf kept mirror log
        "$PENSTOCK" train job.yaml -q --log log 2>messages &
        training=$!
        copied() { # COPIES: the checkpoints so far in as many folders
            cat log 2>/dev/null | grep -c "\"copies\": $1" || true
        }
        await() { # COUNT COPIES: as many checkpoints more, in so many folders
            local goal=$(($(copied "$2") + $1))
            for _ in $(seq 600); do
                [ "$(copied "$2")" -lt $goal ] || return 0
                kill -0 $training 2>/dev/null || die "$how: it has ended: $(cat messages)"
                sleep 0.1
            done
            die "$how: no $1 checkpoints with $2 copies: $(cat messages)"
        }
        await 2 2
        if [ $how = file ]; then
            mv kept elsewhere
            until (: >kept) 2>/dev/null; do # it may have been made again meanwhile
                rm -rf kept || true
            done
            await 3 1
            rm kept
            mv elsewhere kept
        else
            mv kept gone
            rm -rf gone
        fi
        await 3 2
        kill $training
        wait $training || die "$how: exit code $?: $(cat messages)"
        [ $how = removed ] || says 'warning: kept .*mirror '
        [ "$(grep -c 'is given up' messages)" -le 2 ] || die "given up: $(cat messages)"
        penstock checkpoint verify kept --mirror mirror >verified || die "$how: $(cat verified)"
    done
done
