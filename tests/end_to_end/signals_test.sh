# Signals: Ctrl-C and SIGTERM end a training after a step with a checkpoint, twice at once; SIGUSR1
# says who waits for whom, and leaves dumps.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/signals.sh"
export TMPDIR=$work

one='{name: a, threads: 1}'
two="$one, {name: b, threads: 1, host: localhost}"
job() { # STEPS [DEVICES [MORE]]
    signal_job "$1" "${2:-$one}" reference '' "${3:-}"
}

# begin ARGUMENT...: trains in the background, until some steps are done. Sets $pid
begin() {
    rm -f steps messages
    "$PENSTOCK" train job.yaml --json --progress "$@" >steps 2>messages &
    pid=$!
    wait_for 'step +[3-9]|step [0-9]{2,}' messages
}

# ---- one wish: a checkpoint is kept, and the training goes on from it as if nothing had been
for devices in '' "$two"; do
    for signal in INT TERM; do
        rm -rf kept
        job 100000 "$devices"
        begin --checkpoint kept
        kill -s "$signal" "$pid"
        ends "$pid" 0
        grep -q 'stopping: the step under way is finished' messages || die "what was understood: $(cat messages)"
        grep -qE 'the checkpoint of step [0-9]+ is in kept: --continue' messages || die "where: $(cat messages)"
        done=$(json 'len(d["steps"])' <steps)
        job $((done + 3)) "$devices"
        penstock train job.yaml --json -q --checkpoint kept --continue >more 2>messages || die "goes on: $(cat messages)"
        penstock train job.yaml --json -q >whole 2>messages || die "undisturbed: $(cat messages)"
        [ "$(json 'd["parameters_hash"]' <more)" = "$(json 'd["parameters_hash"]' <whole)" ] ||
            die "$signal, $devices: other numbers after $done steps"
        check 'len(d["steps"]) == 3' more
    done
done
# nothing to keep it in
job 100000
begin
kill -s INT "$pid"
ends "$pid" 6
grep -qE 'stopped after step [0-9]+, of which nothing is kept' messages || die "nothing is kept: $(cat messages)"

# ---- two wishes
job 100000 "$two"
rm -rf kept
begin --checkpoint kept
kill -s STOP "$pid" # both are there when it goes on
kill -s INT "$pid"
kill -s TERM "$pid"
kill -s CONT "$pid"
ends "$pid" 130

# ---- questions
begin --checkpoint kept --overwrite
kill -s USR1 "$pid"
wait_for 'what was done last is in kept/flight' messages
wait_for "generation [0-9]+, (step [0-9]+, round [0-9]+|no round)" messages
wait_for "device 'a' (runs|waits|has nothing|is about)" messages
wait_for "device 'b' (runs|waits|has nothing|is about)" messages
sleep 1
penstock diagnose kept/flight --json >found 2>messages.diagnose || die "diagnose: $(cat messages.diagnose)"
check 'sorted(x["role"] for x in d["dumps"]) == ["coordinator", "worker", "worker"]' found
check 'len({x["process"] for x in d["dumps"]}) == 2 and all(x["clock_is_compared"] for x in d["dumps"])' found
check 'all(not any("something else" in line for line in x["replay"]) for x in d["dumps"])' found
check 'any("device" in line for x in d["dumps"] for line in x["waits"] + x["state"])' found
kill -s INT "$pid"
ends "$pid" 0
job 100000
begin
kill -s USR1 "$pid"
wait_for 'step [0-9]+ is done; nobody is waited for' messages
kill -s INT "$pid"
ends "$pid" 6
[ ! -e "$work/penstock-flight-$pid" ] || die 'a folder without need'

# ---- a worker
"$PENSTOCK" worker --listen 127.0.0.1:0 >messages 2>&1 &
pid=$!
wait_for 'takes links at port' messages
kill -s USR1 "$pid"
wait_for 'nothing was recorded yet' messages
kill -s TERM "$pid"
ends "$pid" 0
