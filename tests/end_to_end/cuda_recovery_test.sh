# Two emulated GPUs of one worker process, which reach each other: when it is killed, steps are done again with the same
# bits, and copies go from GPU to GPU again. A load that fails when fences, and room for copies, are there, leaves
# nothing, and the next one works.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

stages_job 'optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8, microbatches: 4, steps: 60, epochs: 99' \
    '{name: g, kind: cuda, memory: 1GiB}, {name: h, kind: cuda, gpu: 1, memory: 1GiB}' >job.yaml
echo 'recovery: {grace: 20s}' >>job.yaml

worker=
trap 'case $BASHPID in $$) kill $worker 2>/dev/null || true; rm -rf "$work" ;; esac' EXIT
# start_worker NAME ADDRESS SETTINGS [FAILPOINT]: sets worker and port.
start_worker() {
    mkfifo "pipe.$1"
    FAKE_CUDA="gpus=2 count=1 $3" PENSTOCK_FAILPOINT=${4:-} "$PENSTOCK" worker --listen "$2" --store "$work" \
        --announce 9 9>"pipe.$1" 2>"worker.$1" &
    worker=$!
    port=
    read -r port <"pipe.$1" || die "worker $1 does not listen: $(cat "worker.$1")"
}
# end_worker NAME: it has given back all that it took.
end_worker() {
    kill "$worker"
    wait "$worker" || true
    worker=
    grep -q '^fake driver: 0 things are left$' "worker.$1" || die "worker $1 leaves something: $(cat "worker.$1")"
}
# there: the two GPUs as those of that worker
there() {
    echo "devices=[{name: g, kind: cuda, memory: 1GiB, host: '127.0.0.1:$port'},
        {name: h, kind: cuda, gpu: 1, memory: 1GiB, host: '127.0.0.1:$port'}]"
}
hash() {
    json 'd["parameters_hash"]' <"$1"
}

FAKE_CUDA='gpus=2 peers=1 count=1' penstock train job.yaml --json >whole.json 2>messages
grep -q '^fake driver: 0 things are left$' messages || die "a training leaves something: $(cat messages)"

# ---- both GPUs are lost at once
for peers in 1 0; do
    start_worker "first$peers" 127.0.0.1:0 "peers=$peers"
    "$PENSTOCK" train job.yaml --json --set "$(there)" --checkpoint "kept$peers" --every '10 steps' \
        >lost.json 2>messages &
    training=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(ls "kept$peers/shards" 2>/dev/null | wc -l)" -lt 2 ] || break
        sleep 0.05
    done
    kill -9 "$worker" || die "no worker to be killed: $(cat messages)"
    wait "$worker" 2>/dev/null || true
    start_worker "second$peers" "127.0.0.1:$port" "peers=$peers"
    wait $training || die "peers=$peers: it did not go on: $(cat messages)"
    check 'd["measured"]["recoveries"] == 1' lost.json
    [ "$(hash lost.json)" = "$(hash whole.json)" ] || die "peers=$peers: other bits after a worker was killed"
    end_worker "second$peers"
    across=$(sed -n 's/^fake driver: .*, \([0-9]*\) bytes between GPUs$/\1/p' "worker.second$peers")
    [ $((across > 0)) = $peers ] || die "peers=$peers: $across bytes between GPUs after the recovery"
done

# ---- a load that fails when copies have their room
for peers in 1 0; do
    start_worker "failing$peers" 127.0.0.1:0 "peers=$peers" worker.staged:1:fail
    found=0
    timeout 60 "$PENSTOCK" train job.yaml --set "$(there)" --set recovery.grace=1s >failed 2>messages || found=$?
    [ $found -ne 0 ] && grep -q 'a failpoint' messages || die "peers=$peers: ended with $found: $(cat messages)"
    timeout 60 "$PENSTOCK" train job.yaml --json --set "$(there)" >next.json 2>messages ||
        die "peers=$peers: the next load does not work: $(cat messages "worker.failing$peers")"
    [ "$(hash next.json)" = "$(hash whole.json)" ] || die "peers=$peers: other bits after a load that failed"
    end_worker "failing$peers"
done
