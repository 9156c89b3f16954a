#!/bin/sh
# Kills each role of a training at each of its named places, REPEATS times:
#   tests/faults/kill_matrix.sh [REPEATS] [OPTION OF kill_matrix.py...]
repeats=${1:-1}
[ $# -eq 0 ] || shift
exec python3 "$(dirname "$0")/kill_matrix.py" --repeats "$repeats" "$@"
