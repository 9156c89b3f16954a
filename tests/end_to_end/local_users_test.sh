# On one host a worker serves its own user, and others only with the same token file.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70

start_worker() { # [OPTION...]: sets `started` and `port`
    rm -f pipe
    mkfifo pipe
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 --insecure "$@" 9>pipe 2>worker.log &
    started=$!
    read -r port <pipe
}
trap 'kill $(jobs -p) 2>/dev/null || :; wait; rm -rf "$work"' EXIT

write_job() { # SECONDS [LINE]: a training that waits so long for the worker
    cat >job.yaml <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, steps: 3}
devices: [{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: "127.0.0.1:$port"}]
placement: {strategy: round_robin}
pipeline: {rendezvous_timeout: $1 s}
${2-}
END
}

# as one user, nothing is to be said
start_worker
write_job 60
own=$(train_losses job.yaml)

# before a command: as the user nobody, who may read what is here
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >setpriv.out; then
    echo 'skipped: only root can be another user'
    exit 0
fi
chmod 755 . && chmod -R a+rX .

# another user's training is refused, by name, and the worker says so
write_job 4
fails 6 'user 65534 calls, and this process belongs to user 0.*--token-file FILE' \
    "${other[@]}" "$PENSTOCK" train job.yaml --insecure -q
grep -q 'refused a link from 127.0.0.1:[0-9]*: user 65534 calls' worker.log || die "$(cat worker.log)"
[ "$(train_losses job.yaml)" = "$own" ] || die 'the worker does not serve its user any more'

# a file that both have lets it in
printf '%s\n' 'a secret of root and nobody' >token
chgrp 65534 token
chmod 644 token
fails 2 'can be read or written by everybody' "$PENSTOCK" worker --listen 127.0.0.1:0 --token-file token
chmod 640 token
kill "$started"
wait "$started" || :
start_worker --token-file token
write_job 60 'token_file: token'
found=$("${other[@]}" "$PENSTOCK" train --json job.yaml 2>messages | json '" ".join(repr(s["loss"]) for s in d["steps"])') ||
    die "$(cat messages)"
[ "$found" = "$own" ] || die "found $found, expected $own"
# the same user needs none, also where the worker has one
write_job 60
[ "$(train_losses job.yaml)" = "$own" ] || die 'other losses'

# the other way round: a worker of another user is not trusted with the model
kill "$started"
wait "$started" || :
rm -f pipe
mkfifo -m 622 pipe
chmod 777 .
"${other[@]}" "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>pipe 2>worker.log &
read -r port <pipe
write_job 4
fails 6 'user 0 calls, and this process belongs to user 65534' "$PENSTOCK" train job.yaml -q
