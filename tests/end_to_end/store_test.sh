# Where workers write: those that were started by hand beneath --store, or the user's folder for what programs keep;
# those that the command starts beneath the job's checkpoints. A job that wants it elsewhere is refused when it starts.
. tests/end_to_end/common.sh

start_worker() { # NAME [OPTION...]: sets `started` and `port`
    local name=$1
    shift
    mkfifo "$name.pipe"
    mkdir -p "cwd_$name"
    (cd "cwd_$name" && exec "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 "$@" 9>"$work/$name.pipe" 2>"$work/$name.log") &
    started=$!
    read -r port <"$name.pipe"
}

job() { # NAME HOST CHECKPOINT
    cat >"$1.yaml" <<YAML
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 2, steps: 6}
devices: [{name: b, threads: 1, memory: 1GiB, host: "$2"}, {name: a, threads: 1}]
placement: {strategy: round_robin}
pipeline: {rendezvous_timeout: 10s}
checkpoint: {every: 2 steps, $3}
YAML
}

# a folder that it cannot have is found out when it starts
echo text >file
for store in file file/beneath; do
    fails 2 "cannot create the folder 'file'.*" "$PENSTOCK" worker --listen 127.0.0.1:0 --store "$store"
done

trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
files() { # FOLDER: what is in it
    (cd "$1" && find . -mindepth 1 | sort)
}

start_worker user
user=$started
here=127.0.0.1:$port
job shared "$here" 'dir: kept'
job apart "$here" 'dir: apart, shared: false'
job second "$here" 'dir: second, shared: false'
job started localhost 'dir: by_command'
expected=$(train_losses started.yaml)

# the job wants one folder for all, and the worker has another: both remedies are named, and nothing is written
fails 3 "^shared.yaml:8:.*error: worker .*$here.* writes only beneath '$work/state/penstock', where it does not see '$work/kept/shards'.*penstock worker --store DIR.*checkpoint: \{shared: false\}" \
    "$PENSTOCK" train -q shared.yaml
[ -z "$(ls state/penstock)" ] || die "the worker wrote: $(files state)"
[ ! -e kept/shards ] || [ -z "$(ls kept/shards)" ] || die "shards: $(ls kept/shards)"

# one remedy: each worker has its own; the coordinator copies what it wrote
[ "$(train_losses apart.yaml)" = "$expected" ] || die 'apart: other losses'
penstock checkpoint verify apart >verified || die "apart: $(cat verified)"
files state/penstock | grep -qE '^\./penstock-[0-9a-f]{16}/worker-2/g1-s6-w2\.safetensors$' || die "state: $(files state)"
[ -z "$(files cwd_user)" ] || die "beside: $(files cwd_user)"
# a second training has a folder of its own there, and leaves that of the first alone
before=$(files state/penstock | grep 's6')
[ "$(train_losses second.yaml)" = "$expected" ] || die 'second: other losses'
[ -z "$(comm -23 <(echo "$before") <(files state/penstock))" ] || die "gone: $(files state/penstock)"

# the other: it is told of the folder, or of one above
for store in "$work/kept/shards" "$work"; do
    start_worker "told_${#store}" --store "$store"
    job told "127.0.0.1:$port" 'dir: kept'
    [ "$(train_losses told.yaml --overwrite)" = "$expected" ] || die "--store $store: other losses"
    penstock checkpoint verify kept >verified || die "--store $store: $(cat verified)"
    kill "$started"
    wait "$started" || die "$store: $? $(cat told_${#store}.log)"
done

# one folder is one, whatever it is called here and there; one of that name elsewhere is another. A mark of a
# command that was killed goes with the next
mkdir -p share/runs/one/shards
touch share/runs/one/shards/.penstock-0123456789abcdef
ln -s share here
start_worker linked --store "$work/share"
job linked "127.0.0.1:$port" 'dir: here/runs/one'
[ "$(train_losses linked.yaml)" = "$expected" ] || die 'linked: other losses'
penstock checkpoint verify share/runs/one >verified || die "linked: $(cat verified)"
[ -z "$(find share -name '.penstock-*')" ] || die "marks stay: $(find share -name '.penstock-*')"
if unshare -Urm true 2>/dev/null; then
    mkfifo apart.pipe
    mkdir other
    unshare -Urm bash -c "mount --bind other share && exec '$PENSTOCK' worker --listen 127.0.0.1:0 --announce 9 --store share" 9>apart.pipe 2>apart.log &
    read -r port <apart.pipe
    job namesake "127.0.0.1:$port" 'dir: share/runs/two'
    fails 3 "does not see '$work/share/runs/two/shards'" "$PENSTOCK" train -q namesake.yaml
    [ -z "$(files other)" ] || die "namesake: $(files other)"
else
    echo 'no folder can be mounted here'
fi

# of two folders it sees one, though both end alike, which is said; with the second one it sees both, and nothing is
start_worker single --store "$work/double"
job double "127.0.0.1:$port" 'dir: double, mirror: second_one'
penstock train -q double.yaml 2>messages || die "double: $(cat messages)"
grep -q "does not see '$work/second_one/shards' .*--store DIR --mirror DIR" messages || die "double: $(cat messages)"
penstock checkpoint verify double --mirror second_one | grep -q 'step 6: .*, whole in both folders' || die 'double: not in both'
start_worker both --store "$work/double" --mirror "$work/second_one"
job double "127.0.0.1:$port" 'dir: double, mirror: second_one'
penstock train -q double.yaml --overwrite 2>messages || die "both: $(cat messages)"
! grep -q 'does not see' messages || die "both: $(cat messages)"
fails 2 '^error: --mirror is given, but no --store' "$PENSTOCK" worker --listen 127.0.0.1:0 --mirror double

# what it did last is written there, too, when the coordinator asks for it
sed -i 's/steps: 6}/steps: 1000000}/; s/every: 2 steps/every: 100000 steps/; s/dir: second/dir: third/' second.yaml
trap '' USR1 # from its first instruction on
: >asked
"$PENSTOCK" train -q second.yaml >asked 2>&1 &
asked=$!
for _ in $(seq 600); do
    [ ! -e state/penstock/flight ] || break
    ! grep -q 'error' asked || die "third: $(cat asked)"
    kill -s USR1 "$asked"
    sleep 0.1
done
kill "$asked"
wait "$asked" || true # it may not have begun yet
files state/penstock/flight | grep -q '^./flight-g.*\.bin$' || die "flight: $(files state/penstock)"
[ -z "$(files cwd_user)" ] || die "beside: $(files cwd_user)"
kill "$user"
wait "$user" || die "the first worker: $? $(cat user.log)"

# nor has one whose user's folder cannot be made any: it serves, and a job with checkpoints is told
XDG_STATE_HOME=$work/file start_worker none
grep -q "keeps no checkpoints without --store: cannot create the folder '$work/file'" none.log || die "$(cat none.log)"
job none "127.0.0.1:$port" 'dir: none'
fails 3 "has no folder to write in, and the checkpoints .*'$work/none/shards': .*--store $work/none/shards" "$PENSTOCK" train -q none.yaml
job none_apart "127.0.0.1:$port" 'dir: none, shared: false'
fails 3 "has no folder to write in, and the job wants .*--store DIR" "$PENSTOCK" train -q none_apart.yaml
kill "$started"
wait "$started" || die "none: $? $(cat none.log)"
