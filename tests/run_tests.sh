#!/usr/bin/env bash
# Runs test programs, each its own process, TEST_JOBS (2) at a time, and ends with
# "N passed, N failed". Exit code 1 when one failed or none ran.
#   run_tests.sh BUILD_FOLDER PROGRAM...
# A program is an executable, or a shell script that finds the command in $PENSTOCK. Beside a script
# there may be NAME.stdout.exact: what its standard output must be. Exit code 77 means skipped; the
# last line it printed says why.
set -u

run_one() {
    local program=$1 folder=$PENSTOCK_BUILD/tests
    local name=${program#"$folder"/}
    name=${name#tests/}
    local log=$folder/$name.log start=$EPOCHREALTIME code=0 outcome=passed
    mkdir -p "${log%/*}"
    if [[ $program == *.sh ]]; then
        timeout "${TEST_TIMEOUT:-300}" bash "$program" >"$log.stdout" 2>"$log" || code=$?
        if [ "$code" -eq 0 ] && [ -n "${PEN_GOLDEN:-}" ] && [ -e "${program%.sh}.stdout.exact" ]; then
            cp "$log.stdout" "${program%.sh}.stdout.exact"
        elif [ "$code" -eq 0 ] && [ -e "${program%.sh}.stdout.exact" ]; then
            diff -u "${program%.sh}.stdout.exact" "$log.stdout" >>"$log" || code=1
        fi
        cat "$log.stdout" >>"$log"
    else
        timeout "${TEST_TIMEOUT:-300}" "$program" >"$log" 2>&1 || code=$?
    fi
    local micros=$((${EPOCHREALTIME/./} - ${start/./}))
    local detail
    case $code in
    0) detail= ;;
    77) outcome=skipped detail=" ($(tail -n 1 "$log"))" ;;
    124) outcome=FAILED detail=" (still running after ${TEST_TIMEOUT:-300} s)" ;;
    *) outcome=FAILED detail=" (exit $code)" ;;
    esac
    local text
    printf -v text '%-7s %4d.%02d s  %s%s\n' "$outcome" $((micros / 1000000)) \
        $((micros % 1000000 / 10000)) "$name" "$detail"
    if [ "$outcome" = FAILED ]; then text+=$(tail -n 60 "$log")$'\n'; fi
    printf '%s' "$text" # one write, so that lines of two programs do not mix
    printf '%s\n' "$outcome" >"$log.outcome"
    printf '%s\n' "$log.outcome" >>"$RUN_TESTS_OUTCOMES"
}
export -f run_one

export PENSTOCK_BUILD=$1
export PENSTOCK=$PWD/$1/penstock
shift
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# refused memory is NULL, as it is without the sanitizer
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}
# other libraries are not instrumented: what they do among themselves looks like races
export TSAN_OPTIONS=${TSAN_OPTIONS:-allocator_may_return_null=1 ignore_noninstrumented_modules=1}
if [[ $PENSTOCK_BUILD == *clang*-thread* ]]; then # OpenMP tells the sanitizer what waits for what
    OMP_TOOL_LIBRARIES=${OMP_TOOL_LIBRARIES:-$(clang -print-resource-dir)/../../libarcher.so}
    export OMP_TOOL_LIBRARIES
fi
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} # programs that run beside each other share cores
RUN_TESTS_OUTCOMES=$(mktemp)
export RUN_TESTS_OUTCOMES
trap 'rm -f "$RUN_TESTS_OUTCOMES"' EXIT

# shellcheck disable=SC2016 # expanded by the inner shell
[ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 -n 1 -P "${TEST_JOBS:-2}" bash -c 'run_one "$1"' run_one

outcomes=$(xargs -r cat <"$RUN_TESTS_OUTCOMES")
passed=$(grep -c '^passed$' <<<"$outcomes")
skipped=$(grep -c '^skipped$' <<<"$outcomes")
failed=$(($# - passed - skipped)) # a program without an outcome has failed
if [ "$skipped" -gt 0 ]; then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
else
    printf '%d passed, %d failed\n' "$passed" "$failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
