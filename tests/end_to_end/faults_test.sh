# Real processes over gRPC are killed at named places, frozen and cut off: the numbers are those of
# one device that nothing happens to. Some cases of tests/faults/kill_matrix.sh and replica_kills.py; `make faults` runs
# all of them, and the network's, the nodes' and the disks'.
set -eu -o pipefail
: "${PENSTOCK:=$PWD/build/gcc/penstock}"
export PENSTOCK
python3 tests/faults/kill_matrix.py --short
python3 tests/faults/kill_matrix.py --lanes 3 --only '^(coordinator coordinator.losses|middle worker.(task_done|updated)) kill'
python3 tests/faults/replica_kills.py --short
