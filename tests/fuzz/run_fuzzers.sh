#!/usr/bin/env bash
# Runs fuzzers, FUZZ_SECONDS (60) each, or FUZZ_EXECUTIONS times, FUZZ_JOBS (2) of them at a time,
# and says how often each read.
#   run_fuzzers.sh PROGRAM...
# A fuzzer starts from tests/fuzz/corpus/NAME, which it does not change; what it adds goes to
# build/fuzz/corpus/NAME. The input of a finding is left in build/fuzz/findings: a crash, a leak, a
# wrong answer, more than ten seconds, or more than 256 MiB at once. Exit code 1 when there is one.
# hdf5_file starts a process for each input, which may take long: it gets a thousandth of the
# executions, and more time for each.
set -u

fuzz_one() {
    local program=$1 name
    name=$(basename "$program" _fuzz)
    local log=build/fuzz/$name.log start=$SECONDS arguments=(-timeout=10) share=1
    [ "$name" = hdf5_file ] && arguments=(-timeout=100) && share=1000
    [ -e "tests/fuzz/$name.dict" ] && arguments=(-dict="tests/fuzz/$name.dict")
    if [ -n "${FUZZ_EXECUTIONS:-}" ]; then
        arguments+=(-runs="$((FUZZ_EXECUTIONS / share))")
    else
        arguments+=(-max_total_time="${FUZZ_SECONDS:-60}")
    fi
    mkdir -p "build/fuzz/corpus/$name" build/fuzz/findings "tests/fuzz/corpus/$name"
    if "$program" -rss_limit_mb=2048 -malloc_limit_mb=256 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/findings/$name-" "${arguments[@]}" \
        "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        printf 'passed  %4d s  %-12s %s inputs tried, %s kept\n' $((SECONDS - start)) "$name" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
            "$(find "build/fuzz/corpus/$name" -type f | wc -l)"
    else
        printf 'FAILED  %4d s  %s\n%s\n' $((SECONDS - start)) "$name" "$(tail -n 40 "$log")"
        return 1
    fi
}
export -f fuzz_one

[ $# -gt 0 ] || { echo "there is no fuzzer in tests/fuzz" && exit 1; }
# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\0' "$@" | xargs -0 -n 1 -P "${FUZZ_JOBS:-2}" bash -c 'fuzz_one "$1"' fuzz_one
found=$?
total=0
for program in "$@"; do
    tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$(basename "$program" _fuzz).log")
    total=$((total + ${tried:-0}))
done
if [ "$found" -eq 0 ]; then
    echo "fuzzers: $# ran, $total inputs tried, no finding"
else
    echo "fuzzers: $total inputs tried; there are findings; their inputs are in build/fuzz/findings"
    exit 1
fi
