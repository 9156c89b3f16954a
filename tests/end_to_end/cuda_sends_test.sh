# GPUs in processes of their own: what one sends is copied to the host beside its work, and the next tasks are enqueued
# meanwhile. Waits of threads that enqueue are counted, bits are those of one GPU, and what goes wrong ends.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

stages_job 'optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, steps: 4, epochs: 99' \
    '{name: g, kind: cuda, memory: 1GiB, host: localhost}, {name: h, kind: cuda, gpu: 1, memory: 1GiB, host: localhost}' >job.yaml
one='devices=[{name: g, kind: cuda, memory: 1GiB}]'

# ---- the same bits, whatever is late
hash() { # hash SETTINGS [OPTION...]
    FAKE_CUDA="gpus=2 $1" timeout -k 5 120 "$PENSTOCK" train job.yaml --json "${@:2}" 2>messages |
        json 'd["parameters_hash"]' || die "$1: $(cat messages)"
}
right=$(hash '' --set "$one")
for settings in '' 'late=3000 late_role=2' 'late=3000 late_role=1' 'late=1000 late_gpu=1' \
    'slow=softmax slow_us=20000'; do
    [ "$(hash "$settings")" = "$right" ] || die "other bits with '$settings'"
done
for schedule in gpipe zero_bubble; do
    [ "$(hash 'late=200' --set pipeline.schedule=$schedule)" = "$right" ] || die "other bits with $schedule"
done

# ---- a step of both is awaited for its four losses and its two updates; frames, by other threads
# counts SETTINGS STEPS: of both processes, waits of threads that launch, launches ahead of copies, other waits
counts() {
    told_by 2 "gpus=2 $1" "$PENSTOCK" train job.yaml --set "train.steps=$2"
    sed -nE 's/^fake driver: [0-9]+ launches, ([0-9]+) waits$/\1 0 0/p
        s/^fake driver: ([0-9]+) launches ahead of copies, ([0-9]+) waits beside$/0 \1 \2/p' told |
        awk '{waits += $1; ahead += $2; beside += $3} END {print waits, ahead, beside}'
}
read -r few few_ahead few_beside <<<"$(counts 'slow=softmax slow_us=30000' 4)"
read -r many many_ahead many_beside <<<"$(counts 'slow=softmax slow_us=30000' 12)"
[ $((many - few)) = $((8 * (4 + 2))) ] || die "$((many - few)) waits in 8 steps"
[ $((many_beside - few_beside)) -ge $((8 * 8)) ] || die "$((many_beside - few_beside)) frames awaited in 8 steps"
# the softmax is of stage 0: while it keeps the copy of a microbatch waiting, the next is enqueued
[ $((many_ahead - few_ahead)) -ge $((8 * 3)) ] || die "$((many_ahead - few_ahead)) launches ahead in 8 steps"

# ---- a GPU that fails while frames wait for it is named, and nothing hangs
for kernel in softmax loss; do
    found=0
    FAKE_CUDA="gpus=2 fails=$kernel fails_at=6" timeout -k 5 120 "$PENSTOCK" train job.yaml \
        --set 'recovery={grace: 1s, attempts: 1}' >out 2>messages || found=$?
    case $found in 1 | 6) ;; *) die "$kernel fails, ended with $found: $(cat messages)" ;; esac
    grep -q "device '[gh]': .*CUDA_ERROR_ILLEGAL_ADDRESS" messages || die "not named: $(cat messages)"
done
# one that is told to end while its copies take long does
FAKE_CUDA='gpus=2 late=100000 late_role=2' "$PENSTOCK" train job.yaml --set train.steps=1000 >out 2>messages &
training=$!
for ((i = 0; i < 200; i++)); do
    ! grep -q '^job.yaml: ' messages || break
    sleep 0.05
done
sleep 1
kill -TERM $training
timeout 60 tail --pid=$training -f /dev/null || die "it does not end"
found=0
wait $training || found=$?
[ $found -eq 6 ] && grep -q '^error: stopped after step' messages || die "ended with $found: $(cat messages)"
