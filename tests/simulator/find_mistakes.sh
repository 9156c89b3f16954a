#!/usr/bin/env bash
# Runs the simulator with each planted mistake until it finds it, and says after how many seeds.
# Exit code 1 when one is not found within SIMULATE_BUDGET (100000) seeds.
#   find_mistakes.sh SIMULATE MISTAKE...
set -u
simulate=$1
shift
budget=${SIMULATE_BUDGET:-100000}
missed=0
for mistake in "$@"; do
    output=$("$simulate" --quiet --mistake "$mistake" --seeds "0..$budget" 2>&1)
    code=$?
    if [ "$code" -eq 7 ]; then
        seeds=$(sed -n 's/^found after \([0-9]*\) seeds.*/\1/p' <<<"$output")
        reason=$(grep -aE '^seed [0-9]+, profile [a-z-]+: [A-Za-z0-9]+: |assert' <<<"$output" | tail -n 1)
        printf '%-26s found after %7s seeds  %s\n' "$mistake" "${seeds:-?}" "${reason:0:150}"
    else
        printf '%-26s NOT FOUND in %s seeds (exit %s)\n' "$mistake" "$budget" "$code"
        missed=$((missed + 1))
    fi
done
[ "$missed" -eq 0 ]
