# shellcheck shell=bash
# What the examples' run.sh share: `. examples/common.sh NAME`. The example runs in a copy of its
# folder, which goes when it ends.
#   PENSTOCK    the command
#   PEN_PYTHON  a Python with torch and onnx, for models that are exported first; else Debian's
set -eu -o pipefail

: "${PENSTOCK:=build/gcc/penstock}"
: "${PEN_PYTHON:=/usr/bin/python3}"
PENSTOCK=$(realpath "$PENSTOCK")
example=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "examples/$example/." "$work"
cd "$work"
rm -rf run run-* # what somebody trained there

penstock() {
    "$PENSTOCK" "$@"
}

# say TEXT: what the example does now
say() {
    printf '%s: %s\n' "$example" "$*"
}

fail() {
    say "FAILED: $*" >&2
    exit 1
}

# needs FILE PACKAGE: ends with code 77, which skips, when the package is not installed
needs() {
    [ -e "$1" ] || {
        say "left out: $1 is not there; install $2"
        exit 77
    }
}

# needs_python MODULE PACKAGE
needs_python() {
    "$PEN_PYTHON" -c "import $1" 2>/dev/null || {
        say "left out: $PEN_PYTHON has no $1; install $2"
        exit 77
    }
}

# figure FILE KEY...: a number of a JSON object: `figure train.json evaluation loss`
figure() {
    python3 -c 'import json, sys
value = json.load(open(sys.argv[1], encoding="utf-8"))
for key in sys.argv[2:]:
    value = value[key]
print(value)' "$@"
}

# most NAME FOUND LIMIT, least NAME FOUND LIMIT: the example fails beyond the limit
most() {
    say "$1 $2 (at most $3)"
    python3 -c 'import sys; sys.exit(not float(sys.argv[1]) <= float(sys.argv[2]))' "$2" "$3" || fail "$1 is $2, expected at most $3"
}
least() {
    say "$1 $2 (at least $3)"
    python3 -c 'import sys; sys.exit(not float(sys.argv[1]) >= float(sys.argv[2]))' "$2" "$3" || fail "$1 is $2, expected at least $3"
}

# does_not_fit JOB: training by it must be refused for want of memory
does_not_fit() {
    local code=0
    penstock train -q "$1" >refused 2>&1 || code=$?
    [ "$code" -eq 5 ] || fail "$1 ended with code $code, expected 5: $(cat refused)"
    say "as expected, one worker alone does not have the memory"
}
