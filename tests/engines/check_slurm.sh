#!/bin/bash
# Trains under a Slurm of four nodes on this host: the numbers of one device, also when tasks or srun are killed; many
# jobs at once; preemption; nodes of two kinds. tests/engines/check_slurm.sh [PART...]; exit code 77: Slurm is not there.
for program in munged slurmctld slurmd srun; do
    command -v "$program" >/dev/null || { echo "no $program" >&2; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "slurmctld and slurmd need root" >&2; exit 77; }
. tests/engines/common.sh
. "$top/tests/engines/slurm_cluster.sh"
trap 'slurm_stop; rm -rf "$work"' EXIT
slurm_start "$work/slurm" || die 'Slurm did not start'

# run NAME ROLE PLACE: trains; task ROLE dies where it first comes to PLACE the given time
run() {
    local name=$1 role=$2 place=$3 found=0
    rm -rf "$name"
    job "$name"
    timeout 100 srun -N4 -n4 --kill-on-bad-exit=0 bash -c "
        [ \"\$SLURM_PROCID\" != $role ] || export PENSTOCK_FAILPOINT=$place
        exec $PENSTOCK train --launched --json $name.yaml" </dev/null >"$name.out" 2>"$name.err" || found=$?
    code=$found
}

part_same() {
    run plain 9 -
    [ "$code" -eq 0 ] || die "exit code $code: $(cat plain.err)"
    same plain
    none_left plain
}

part_kills() {
    local role place
    while read -r role place; do
        run killed "$role" "$place:kill"
        [ "$code" -eq 137 ] || die "$role at $place: exit code $code, expected 137: $(cat killed.err)"
        same killed
        none_left killed
        echo "task $role killed at $place: same numbers, nothing left"
    done <<<"$kills"
}

# srun made the allocation: when it is killed, Slurm ends the tasks at once. Nothing is left, and a further start goes
# on with the same numbers.
part_srun() {
    job gone
    srun -N4 -n4 bash -c "PENSTOCK_FAILPOINT=coordinator.losses:5:sleep=2 exec $PENSTOCK train --launched --json gone.yaml" \
        >first.out 2>first.err &
    local pid=$!
    until grep -q '"step": 2' first.out 2>/dev/null; do sleep 0.1; done
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    for _ in $(seq 150); do [ -n "$(squeue -h)" ] || break; sleep 0.2; done
    none_left gone
    timeout 100 srun -N4 -n4 "$PENSTOCK" train --launched --json gone.yaml >gone.out 2>gone.err || die "$(cat gone.err)"
    same gone
    none_left gone
}

part_many() {
    local i pids=()
    for ((i = 0; i < 50; i++)); do
        job "many$i"
        timeout 500 srun -n2 "$PENSTOCK" train --launched --json "many$i.yaml" >"many$i.out" 2>"many$i.err" &
        pids+=($!)
    done
    for ((i = 0; i < 50; i++)); do
        wait "${pids[i]}" || die "job $i of 50: $(cat "many$i.err")"
        same "many$i"
    done
    none_left many
}

# A job of a higher partition takes the nodes; both finish, with the right numbers.
part_preempt() {
    local name
    for name in low high; do
        job "$name"
        sed "s#penstock train --launched job.yaml#env PENSTOCK_FAILPOINT=\${STALL:-} $PENSTOCK train --launched --json $name.yaml#; /^#SBATCH --nodes/d" \
            "$top/examples/slurm/train.sbatch" >"$name.sbatch"
    done
    STALL=$(seq -s, -f coordinator.losses:%g:sleep=3 3 10) sbatch --quiet -N4 -n4 --exclusive -p low -o low.out -J low low.sbatch
    until grep -qs '"step": 2' low.out; do sleep 0.1; done
    sbatch --quiet -N4 -n4 --exclusive -p high -o high.out -J high high.sbatch
    for _ in $(seq 600); do [ -n "$(squeue -h)" ] || break; sleep 0.3; done
    [ -z "$(squeue -h)" ] || die "still queued: $(squeue) $(cat low.out high.out)"
    same high
    same low
    grep -q 'told to end' low.out || die "low was not preempted: $(cat low.out)"
    none_left low
}

# The example with nodes of two kinds, smaller ones: each device has the cores and the memory of its own task.
part_heterogeneous() {
    job mixed
    sed -i 's/, threads: 1//' mixed.yaml
    sed "s#penstock train --launched job.yaml#$PENSTOCK train --launched --json mixed.yaml#
        s/--cpus-per-task=32 --mem-per-cpu=4G/--cpus-per-task=2 --mem-per-cpu=160M/
        s/--cpus-per-task=4 --mem-per-cpu=2G/--cpus-per-task=1 --mem-per-cpu=240M/" \
        "$top/examples/slurm/heterogeneous.sbatch" >mixed.sbatch
    [ "$(grep -c -- '--mem-per-cpu=[0-9]*M' mixed.sbatch)" -eq 2 ] || die 'the example says other sizes'
    timeout 200 sbatch --quiet --wait -o mixed.out mixed.sbatch || die "$(cat mixed.out)"
    same mixed
    none_left mixed
}

for part in "${@:-same kills srun many preempt heterogeneous}"; do
    for one in $part; do
        "part_$one"
        echo "slurm: $one ok"
    done
done
