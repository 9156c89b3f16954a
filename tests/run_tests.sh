#!/usr/bin/env bash
# Runs test programs one after another, each its own process, and ends with
# "N passed, N failed". Exit code 1 when one failed or none ran.
#   run_tests.sh BUILD_FOLDER PROGRAM...
set -u
build=$1
shift
passed=0
failed=0
export PENSTOCK_BUILD=$build
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
for program in "$@"; do
    log=$program.log
    if timeout "${TEST_TIMEOUT:-300}" "$program" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '== %s failed (exit %s)\n' "$program" "$?"
        tail -n 60 "$log"
    fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
