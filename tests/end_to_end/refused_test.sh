# A worker of another build is refused by name, in the middle of a pipeline too. One that comes back so while a training runs is
# as good as lost. The other build is the same command under the name that a sanitizer gives it.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70

start_worker() { # COMMAND PORT: sets `started` and `port`
    rm -f pipe
    mkfifo pipe
    "$1" worker --listen "127.0.0.1:$2" --store . --announce 9 9>pipe 2>>worker.log &
    started=$!
    read -r port <pipe
}
command=
start_worker "$PENSTOCK" 0
trap 'kill $started $command 2>/dev/null || true; rm -rf "$work"' EXIT
cat >job.yaml <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, epochs: 100000}
devices: [{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: "127.0.0.1:$port"}]
placement: {strategy: round_robin}
recovery: {on_loss: replan, grace: 1 s, lease: 5 s}
checkpoint: {dir: kept, every: 200 steps}
END
another=$top/$PENSTOCK_BUILD/tests/other_build/penstock
build() {
    "$1" doctor --json | json 'd["build"]'
}
name=$(build "$PENSTOCK") other=$(build "$another")
if [[ $name == *-* ]]; then
    [[ $other == ${name%%+*}+???????? ]] || die "the other build is '$other'"
else
    [[ $other == ${name%%+*}+????????-address ]] || die "the other build is '$other'"
fi
[ "${name%-*}" != "${other%-*}" ] || die "one hash for '$name' and '$other'"

# in the middle of three
middle=$started
start_worker "$another" 0
other_worker=$started
sed "s/^devices: .*/devices: [{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: \"127.0.0.1:$port\"}, {name: c, threads: 1}]/" \
    job.yaml >middle.yaml
fails 6 "worker [0-9] runs build '${other/+/[+]}', the coordinator '${name/+/[+]}'" "$PENSTOCK" train -q middle.yaml
kill "$other_worker"
wait "$other_worker" || die 'the other build does not end well'
started=$middle port=$(sed -n 's/.*127.0.0.1:\([0-9]*\).*/\1/p' job.yaml)

"$PENSTOCK" train job.yaml >said 2>&1 &
command=$!
until_said() { # PATTERN: what the training says, within half a minute
    for _ in $(seq 300); do
        ! grep -qE "$1" said || return 0
        kill -0 $command 2>/dev/null || die "it ended: $(cat said)"
        sleep 0.1
    done
    die "not '$1': $(cat said)"
}
until_said 'step [0-9]+' # before the first, another build is an error
kill -9 $started
wait $started 2>/dev/null || true
start_worker "$another" "$port"
until_said "worker [0-9] runs build '${other/+/[+]}'"
until_said "goes on without device 'b'"
until_said 'goes on after step [0-9]+'
kill -INT $command
code=0
wait $command || code=$?
[ $code -eq 0 ] || die "exit code $code: $(cat said)"

# who asks is shown what is compared: the build, and the numerics of its device
penstock doctor --json >doctor.json
check "d['build'] == '$name' and d['protocol'] == 1" doctor.json
check "'kernel level' in d['numerics'] and 'oneDNN' in d['numerics'] and d['numerics'] in d['device']" doctor.json
id() { # MAKE'S ARGUMENTS: what build.c would be given
    env -u MAKEFLAGS -u MAKELEVEL make -C "$top" -s --no-print-directory "$@" print-build-id
}
id SANITIZE=address,undefined | grep -qE '^[0-9a-f]{8}-address-undefined$' || die "its name: $(id SANITIZE=address,undefined)"
