# Values between GPUs are copied beside the work, and events keep the order: late commands of any stream change no
# bit, and an event that is missing does. Three stages on emulated GPUs, which reach each other or do not.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

stages_job 'optimizer: {sgd: {lr: 0.05}}, batch: 32, microbatches: 16, steps: 2, epochs: 9' \
    '{name: g, kind: cuda, memory: 1GiB}, {name: h, kind: cuda, gpu: 1, memory: 1GiB}, {name: i, kind: cuda, gpu: 2, memory: 1GiB}' >job.yaml

# hash SETTINGS [OPTION...]: of the parameters
hash() {
    FAKE_CUDA="gpus=3 $1" timeout -k 5 120 "$PENSTOCK" train job.yaml --json "${@:2}" 2>messages |
        json 'd["parameters_hash"]' || die "$1: $(cat messages)"
}
# is_found SETTINGS: a step has other bits, or numbers that are not finite (exit code 8). A crash or a hang is neither.
is_found() {
    local code=0
    FAKE_CUDA="gpus=3 late=10000 $1" timeout -k 5 120 "$PENSTOCK" train job.yaml --steps 1 --json >lost.json \
        2>messages || code=$?
    [ $code != 8 ] || return 0
    [ $code = 0 ] || die "$1: exit code $code: $(cat messages)"
    [ "$(json 'd["parameters_hash"]' <lost.json)" != "$after_one" ]
}
right=$(hash "")
after_one=$(hash "" --steps 1)
one='devices=[{name: g, kind: cuda, memory: 1GiB}]'
[ "$(hash "" --set "$one")" = "$right" ] || die "other bits than on one GPU"
for schedule in gpipe zero_bubble; do
    [ "$(hash late=50 --set pipeline.schedule=$schedule)" = "$right" ] || die "other bits with $schedule"
done
for settings in 'order=1 late=50' 'late=2000 late_role=0' 'late=2000 late_role=1' 'late=2000 late_role=2' \
    'late=2000 late_gpu=1 late_role=0' 'order=2 late=300 late_gpu=2'; do
    [ "$(hash "$settings")" = "$right" ] || die "other bits with $settings"
done
# of streams 0 of work, 1 of copies in, 2 of copies out: one does not wait for the other, which is late
for lost in 'late_role=0 lost_stream=2 lost_event=0' 'late_role=1 lost_stream=2 lost_event=1' \
    'late_role=2 lost_stream=1 lost_event=2' 'late_gpu=1 late_role=0 lost_stream=1 lost_event=0' \
    'late_role=1 lost_stream=0 lost_event=1'; do
    is_found "$lost" || die "a missing event is not found: $lost"
done

# ---- GPUs that reach each other: the same bits, and nothing by way of the host
for settings in '' 'order=1 late=50' 'late=2000 late_role=0' 'late=2000 late_role=1' 'late=2000 late_gpu=1 late_role=0' \
    'late=2000 late_gpu=2 late_role=1'; do
    [ "$(hash "peers=1 $settings")" = "$right" ] || die "other bits between peers with $settings"
done
[ "$(hash 'peers=1 late=50' --set pipeline.schedule=zero_bubble)" = "$right" ] || die "other bits between peers"
for lost in 'late_role=0 lost_stream=1 lost_event=0' 'late_role=1 lost_stream=0 lost_event=1'; do
    is_found "peers=1 $lost" || die "a missing event between peers is not found: $lost"
done
# bytes HOW: that are read by the host, and that go between GPUs
bytes() {
    FAKE_CUDA="gpus=3 count=1 $1" "$PENSTOCK" train job.yaml 2>&1 >/dev/null |
        sed -n 's/^fake driver: \([0-9]*\) bytes read, \([0-9]*\) bytes between GPUs$/\1 \2/p'
}
read -r host_read host_across <<<"$(bytes peers=0)"
read -r peer_read peer_across <<<"$(bytes peers=1)"
[ "$host_across" = 0 ] || die "$host_across bytes between GPUs that do not reach each other"
[ "$peer_across" -gt 0 ] || die "no bytes between GPUs that reach each other"
read -r refused_read refused_across <<<"$(bytes peers=2)"
[ "$refused_read $refused_across" = "$host_read 0" ] || die "a peer that is refused is not gone round: $refused_across"
[ "$(hash peers=2)" = "$right" ] || die "other bits where a peer is refused"
[ $((host_read - peer_read)) = "$peer_across" ] || die "$host_read bytes are read, $peer_read with peers"

# ---- a plan counts what is on the host: as much less between peers as the driver counts less of pinned memory
# pinned HOW, planned HOW: bytes of the host's memory that a training pins, and that its plan has for the process
pinned() {
    rm -f counted
    FAKE_CUDA="gpus=3 tell=$work/counted $1" "$PENSTOCK" train job.yaml >/dev/null 2>&1
    awk 'END {print $3}' counted # each line says what all pin
}
planned() {
    FAKE_CUDA="gpus=3 $1" "$PENSTOCK" plan job.yaml --json 2>messages | json 'd["devices"][0]["process_bytes"]'
}
less=$(($(planned peers=0) - $(planned peers=1)))
[ $less -gt 0 ] || die "a plan counts as much on the host between peers"
[ $(($(pinned peers=0) - $(pinned peers=1))) = $less ] || die "$less bytes less are planned, others are pinned"
[ "$(LD_LIBRARY_PATH='' planned peers=1)" = "$(planned peers=0)" ] || die "without a driver, peers are taken for granted"
