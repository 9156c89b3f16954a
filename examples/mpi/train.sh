#!/bin/bash
# One process a slot, over the hosts of mpirun (Open MPI): train.sh [OPTION OF mpirun...]
# mpirun ends all processes as soon as one of them is lost, so it is started again: codes 6 and 9, and codes of signals,
# mean that a further start goes on from the last checkpoint (9: a disk or place was full or away, so later).
count=0
until mpirun "$@" penstock train --launched job.yaml; do
    code=$?
    case $code in
    2 | 3 | 4 | 5 | 8) exit "$code" ;; # trying again does not mend it
    esac
    count=$((count + 1))
    [ "$count" -lt 20 ] || exit "$code"
    sleep 1
done
