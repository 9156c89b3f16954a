# shellcheck shell=bash
# What the end-to-end scripts share: `. tests/end_to_end/common.sh` first. They run in a folder of
# their own that goes when they end, with `reference` and `models` in it as links to models.
set -eu -o pipefail

top=$PWD
: "${PENSTOCK:=$PWD/build/gcc/penstock}"
work=$(mktemp -d)
# a subshell that is killed as it starts runs the trap, too, where `[` cannot be relied on
trap 'case $BASHPID in $$) rm -rf "$work" ;; esac' EXIT
cd "$work"
export XDG_STATE_HOME=$work/state # workers by hand keep nothing elsewhere
ln -s "$top/tests/reference" reference
ln -s "$top/tests/graph/import/models" models

penstock() {
    "$PENSTOCK" "$@"
}

die() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# json EXPRESSION <FILE: prints an expression of the object `d`, with math as `m`; fails when the
# input is not one JSON object.
json() {
    python3 -c 'import json, math as m, sys
d = json.load(sys.stdin)
assert isinstance(d, dict), "not one object"
print(eval(sys.argv[1]))' "$1"
}

# check EXPRESSION FILE [TEXT]: the expression of the object in FILE must be true.
check() {
    [ "$(json "$1" <"$2")" = True ] || die "${3:-$2}: $1 does not hold: $(cat "$2")"
}

# fails CODE PATTERN COMMAND...: the command must end with this exit code within a minute, say the
# pattern (grep -E) on standard error, and nothing on standard output.
fails() {
    local code=$1 pattern=$2 found=0
    shift 2
    timeout 60 "$@" >fails.out 2>fails.err || found=$?
    [ "$found" -eq "$code" ] || die "$*: exit code $found, expected $code: $(cat fails.err)"
    grep -qE -- "$pattern" fails.err || die "$*: said '$(cat fails.err)', expected '$pattern'"
    [ ! -s fails.out ] || die "$*: wrote to standard output: $(cat fails.out)"
}

# show COMMAND...: prints the command as a user types it, its messages, and its exit code.
show() {
    local code=0
    printf '$ %s\n' "${*/#$PENSTOCK/penstock}"
    timeout 60 "$@" </dev/null >show.out 2>&1 || code=$?
    cat show.out
    printf 'exit %d\n\n' "$code"
}

# train_losses JOB [OPTION...]: the losses of all steps, in full.
train_losses() {
    penstock train --json "$@" 2>messages >losses.json || die "train $*: $(cat messages)"
    json '" ".join(repr(s["loss"]) for s in d["steps"])' <losses.json
}
