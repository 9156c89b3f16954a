#!/bin/bash
# Trains in tasks that Open MPI's mpirun starts: the numbers of one device; what mpirun does when one is killed. Exit
# code 77: there is no mpirun.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
. tests/engines/common.sh
trap 'rm -rf "$work"' EXIT
mpi=(mpirun --oversubscribe --bind-to none)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)

job plain
timeout 100 "${mpi[@]}" -np 4 "$PENSTOCK" train --launched --json plain.yaml >plain.out 2>plain.err || die "$(cat plain.err)"
same plain
none_left plain
echo 'mpi: same ok'

# mpirun ends all when one is lost; the example's loop goes on from what was kept
job killed
mkdir -p bin
cat >bin/penstock <<END
#!/bin/bash
[ "\$OMPI_COMM_WORLD_RANK" != "\$(cat role)" ] || [ -e was ] || { touch was; export PENSTOCK_FAILPOINT="\$(cat place)"; }
exec $PENSTOCK "\$@" --json
END
chmod +x bin/penstock
while read -r role place; do
    rm -rf killed was killed.out
    echo "$role" >role
    echo "$place:kill" >place
    cp killed.yaml job.yaml
    PATH=$work/bin:$PATH timeout 200 "$top/examples/mpi/train.sh" "${mpi[@]:1}" -np 4 </dev/null >killed.out 2>killed.err ||
        die "$role at $place: $(cat killed.err)"
    same killed
    none_left killed
    echo "mpi: task $role killed at $place: mpirun ended all, the next start had the same numbers"
done <<<"$kills_short"
