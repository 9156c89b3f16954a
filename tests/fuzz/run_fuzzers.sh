#!/usr/bin/env bash
# Runs fuzzers, FUZZ_JOBS (2) of them at a time, and prints a table of what each did.
#   run_fuzzers.sh PROGRAM...
# Each runs for FUZZ_SECONDS (60), or FUZZ_EXECUTIONS times. FUZZ_QUIET=n lets it run until n
# executions in a row have reached no new edge (a jump of the compiled code), FUZZ_EXECUTIONS times
# at least. Where FUZZ_SECONDS is given beside one of these, it ends a fuzzer that takes longer.
#
# A fuzzer starts from its seeds in tests/fuzz/corpus/NAME, from tests/fuzz/kept/NAME, and from
# FUZZ_CORPUS/NAME (build/fuzz/corpus), where its own inputs are kept for the next time; afterwards
# those that others make superfluous are dropped. FUZZ_KEEP=1 makes tests/fuzz/kept/NAME anew: the
# few inputs that reach all edges which are known and no seed reaches.
#
# The input of a finding is left in build/fuzz/findings: a crash, a leak, a wrong answer, more than
# ten seconds, or more than 256 MiB at once. Exit code 1 when there is one. hdf5_file starts a
# process for each input: it gets a thousandth of the executions, and more time for each.
set -u
export FUZZ_CORPUS=${FUZZ_CORPUS:-build/fuzz/corpus}

# Prints what a log says: executions, edges of the corpus, edges at the end, and at which execution
# the last edge beyond $2 was new (0: none was).
fuzz_read_log() {
    awk -v known="$2" '
        /^#[0-9]+\t/ && match($0, /cov: [0-9]+/) {
            edges = substr($0, RSTART + 5, RLENGTH - 5) + 0
            if (!begun && $2 == "INITED") { begun = 1; first = edges; known = known < edges ? edges : known }
            if (begun && edges > known) { known = edges; last = substr($1, 2) + 0 }
            count = substr($1, 2) + 0
        }
        /^stat::number_of_executed_units:/ { count = $2 }
        END { print count + 0, first + 0, known + 0, last + 0 }' "$1"
}

# Drops inputs that reach nothing that others do not.
fuzz_merge() {
    local program=$1 name=$2 folder=$FUZZ_CORPUS/$2
    rm -rf "$folder.merged" && mkdir -p "$folder.merged"
    if "$program" -merge=1 -timeout=100 -rss_limit_mb=2048 "$folder.merged" "$folder" \
        >"build/fuzz/$name.merge.log" 2>&1; then
        rm -rf "$folder" && mv "$folder.merged" "$folder"
    else
        rm -rf "$folder.merged"
    fi
}

fuzz_keep() {
    local program=$1 name=$2 kept=tests/fuzz/kept/$2 all input
    all=$(mktemp -d) || return
    cp "tests/fuzz/corpus/$name"/* "$all"
    if "$program" -merge=1 -use_counters=0 -timeout=100 -rss_limit_mb=2048 "$all" "$kept" "$FUZZ_CORPUS/$name" \
        >"build/fuzz/$name.keep.log" 2>&1; then
        rm -f "$kept"/*
        for input in "$all"/*; do
            [ -e "tests/fuzz/corpus/$name/$(basename "$input")" ] || cp "$input" "$kept/"
        done
    fi
    rm -rf "$all"
}

fuzz_one() {
    local program=$1 name share=1 patience=10 start=$SECONDS
    name=$(basename "$program" _fuzz)
    [ "$name" = hdf5_file ] && patience=100 && share=1000
    local arguments=(-timeout="$patience" -rss_limit_mb=2048 -malloc_limit_mb=256 -print_final_stats=1
        -artifact_prefix="build/fuzz/findings/$name-")
    [ -e "tests/fuzz/$name.dict" ] && arguments+=(-dict="tests/fuzz/$name.dict")
    local least=$((${FUZZ_EXECUTIONS:-0} / share)) quiet=$((${FUZZ_QUIET:-0} / share))
    local seconds=${FUZZ_SECONDS:-} log=build/fuzz/$name.log outcome=passed
    [ -z "$seconds" ] && [ "$least" -eq 0 ] && [ "$quiet" -eq 0 ] && seconds=60
    mkdir -p "$FUZZ_CORPUS/$name" "tests/fuzz/corpus/$name" "tests/fuzz/kept/$name"

    # rounds: libFuzzer itself cannot stop when nothing is new
    local total=0 first='' edges=0 last=0 round=$quiet count begun known at
    [ "$quiet" -eq 0 ] && round=${least/#0/-1}
    while :; do
        local left=0
        [ -n "$seconds" ] && left=$((seconds - SECONDS + start)) && [ "$left" -le 0 ] && break
        "$program" "${arguments[@]}" -runs="$round" -max_total_time="$left" \
            "$FUZZ_CORPUS/$name" "tests/fuzz/corpus/$name" "tests/fuzz/kept/$name" >"$log" 2>&1 || outcome=FAILED
        read -r count begun known at < <(fuzz_read_log "$log" "$edges")
        [ "$at" -gt 0 ] && last=$((total + at))
        first=${first:-$begun} edges=$known total=$((total + count))
        if [ "$outcome" = FAILED ] || [ "$quiet" -eq 0 ]; then break; fi
        [ $((total - last)) -lt "$quiet" ] || [ "$total" -lt "$least" ] || break
    done
    local taken=$((SECONDS - start))
    [ "$outcome" = passed ] && fuzz_merge "$program" "$name"
    [ -z "${FUZZ_KEEP:-}" ] || fuzz_keep "$program" "$name"
    printf '%-14s %-6s %10d %6d %6d %10d %8d %6d %6d\n' "$name" "$outcome" "$total" "$edges" \
        "$((edges - ${first:-0}))" $((total - last)) $((total / (taken > 0 ? taken : 1))) \
        "$(find "$FUZZ_CORPUS/$name" -type f | wc -l)" "$taken" >"build/fuzz/results/$name"
    cat "build/fuzz/results/$name"
    [ "$outcome" = passed ] && return
    tail -n 40 "$log"
    return 1
}
export -f fuzz_one fuzz_read_log fuzz_merge fuzz_keep

[ $# -gt 0 ] || { echo "there is no fuzzer in tests/fuzz" && exit 1; }
rm -rf build/fuzz/results
mkdir -p build/fuzz/results build/fuzz/findings
# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\0' "$@" | xargs -0 -n 1 -P "${FUZZ_JOBS:-2}" bash -c 'fuzz_one "$1"' fuzz_one
found=$?
printf '\n%-14s %-6s %10s %6s %6s %10s %8s %6s %6s\n' fuzzer result executions edges new 'quiet for' 'a second' \
    kept time
sort build/fuzz/results/*
total=$(cat build/fuzz/results/* | awk '{ total += $3 } END { printf "%d", total }')
if [ "$found" -eq 0 ]; then
    echo "fuzzers: $# ran, $total inputs tried, no finding"
else
    echo "fuzzers: $total inputs tried; there are findings; their inputs are in build/fuzz/findings"
    exit 1
fi
