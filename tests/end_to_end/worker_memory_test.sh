# A worker that may not use as much memory as the plan takes there is refused, with exit code 5 and both figures,
# before it loads anything: by --memory, by a limit of its process, by its cgroup, and as a task.
. tests/end_to_end/common.sh
case $PENSTOCK in *address* | *thread*)
    echo 'skipped: sanitizers take memory of their own'
    exit 0
    ;;
esac
python3 "$top/tests/end_to_end/make_training_models.py" . wide:2048 # 128 MiB of weights, 4 times that with Adam's states
# small stacks of threads, so that a limit on what is reserved is one on what is used
export OMP_NUM_THREADS=1
ulimit -s 1024
group= started=
trap '[ -z "$started" ] || kill $started 2>/dev/null || true
    [ -z "$group" ] || { sleep 0.3; rmdir "$group"; } 2>/dev/null || true
    rm -rf "$work"' EXIT

start_worker() { # NAME [OPTION...]: sets `started` and `port`
    local name=$1
    shift
    rm -f pipe
    mkfifo pipe
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 "$@" 9>pipe 2>"$name.log" &
    started=$!
    read -r port <pipe
}
end_worker() {
    kill "$started"
    wait "$started" || die "the worker's exit code: $?"
    started=
}
# job FILE DEVICE [MORE]: the device says 4 GiB
job() {
    cat >"$1" <<END
version: 1
model: {file: wide.onnx}
data: {train: {format: npy, inputs: {x: wide_x.npy}, labels: wide_y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {adamw: {lr: 0.001}}, batch: 16, microbatches: 4, steps: 2, seed: 3}
devices: [{name: big, threads: 1, memory: 4GiB, host: "$2"}]
${3:-}
END
}
refused="device 'big' needs [5-9][0-9][0-9] MiB of memory with its process, and worker 1 \(.*\) may use"

start_worker stated --memory 64MiB
job stated.yaml "127.0.0.1:$port"
fails 5 "$refused 64.0 MiB" "$PENSTOCK" train stated.yaml
# nothing was loaded, and it serves who fits
[ "$(awk '/VmHWM/ {print $2}' "/proc/$started/status")" -lt 131072 ] || die 'the worker loaded something'
end_worker
grep -q "does not take this worker: device 'big'" stated.log || die "the worker says: $(cat stated.log)"
fails 2 "memory.*expected" "$PENSTOCK" worker --listen 127.0.0.1:0 --memory 0

# enough is enough
start_worker enough --memory 1GiB
job enough.yaml "127.0.0.1:$port"
penstock train enough.yaml --json >enough.json 2>messages || die "with 1 GiB: $(cat messages)"
end_worker

# a limit of the process, also of those that the command starts
limited=(prlimit "--data=$((480 << 20))")
rm -f pipe && mkfifo pipe
"${limited[@]}" "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>pipe 2>limited.log &
started=$!
read -r port <pipe
job limited.yaml "127.0.0.1:$port"
fails 5 "$refused 480 MiB" "$PENSTOCK" train limited.yaml
end_worker
job own.yaml localhost
fails 5 "$refused 480 MiB" "${limited[@]}" "$PENSTOCK" train own.yaml

# the check can be taken off
start_worker unchecked --memory 64MiB
job unchecked.yaml "127.0.0.1:$port"
penstock train unchecked.yaml --no-memory-check -q >/dev/null 2>messages || die "unchecked: $(cat messages)"
end_worker

# a task that may use less than it was granted
job task.yaml x 'checkpoint: {dir: kept}'
sed -i 's/^devices:.*/devices: [{name: big, threads: 1, memory: 4GiB, per: task}]/' task.yaml
tasks=()
for r in 0 1; do
    verb=(worker --memory 64MiB)
    [ $r = 1 ] || verb=(train)
    PENSTOCK_RANK=$r PENSTOCK_SIZE=2 timeout 50 "$PENSTOCK" "${verb[@]}" task.yaml --launched >/dev/null 2>"task.$r" &
    tasks+=($!)
done
for task in "${tasks[@]}"; do
    code=0
    wait "$task" || code=$?
    [ $code = 5 ] || die "a task's exit code $code: $(cat task.0 task.1)"
done
grep -q 'may use 6[0-9.]* MiB' task.0 || die "the task says: $(cat task.0)"

# a cgroup below the one of this test, where the system lets us make one
own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
for parent in "/sys/fs/cgroup/memory$own" "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)"; do
    file=memory.limit_in_bytes
    [ -e "$parent/$file" ] || file=memory.max
    [ -e "$parent/$file" ] && mkdir "$parent/penstock-$$" 2>/dev/null || continue
    group=$parent/penstock-$$
    echo $((400 << 20)) >"$group/$file" 2>/dev/null && break
    rmdir "$group"
    group=
done
if [ -z "$group" ]; then
    echo 'skipped: no cgroup for memory can be made here'
    exit 0
fi
rm -f pipe && mkfifo pipe
bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' in "$group" \
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>pipe 2>grouped.log &
started=$!
read -r port <pipe
job grouped.yaml "127.0.0.1:$port"
fails 5 "$refused 400 MiB" "$PENSTOCK" train grouped.yaml
end_worker
