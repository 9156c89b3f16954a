#!/bin/sh
# A training of MINUTES (30) with a random fault every 15 seconds: tests/faults/soak.sh [MINUTES] [OPTION OF soak.py...]
minutes=${1:-30}
[ $# -eq 0 ] || shift
exec python3 "$(dirname "$0")/soak.py" "$minutes" "$@"
