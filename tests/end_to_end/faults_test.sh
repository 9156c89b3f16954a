# Real processes over gRPC are killed at named places, frozen and cut off: the numbers are those of
# one device that nothing happens to. Some cases of tests/faults/kill_matrix.sh; `make faults` runs
# all of them, and the network's, the nodes' and the disks'.
set -eu -o pipefail
: "${PENSTOCK:=$PWD/build/gcc/penstock}"
export PENSTOCK
python3 tests/faults/kill_matrix.py --short
