#!/usr/bin/env bash
# Compiles the text of the GPU's kernels for real processors, as a driver does, which needs no GPU. A kernel that is
# refused, or that keeps registers in memory, is an error.
#   check_ptx.sh PTXAS KERNELS.ptx
set -eu

ptxas=$1 text=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$ptxas" --version | tail -n 2 | head -n 1
count=$(grep -c '^\.visible \.entry\|^\.entry' "$text")
for processor in sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
    "$ptxas" -v -arch=$processor -o "$folder/kernels" "$text" 2>"$folder/messages" || {
        cat "$folder/messages" >&2
        exit 1
    }
    compiled=$(grep -c 'Used [0-9]* registers' "$folder/messages")
    [ "$compiled" = "$count" ] || {
        echo "$processor: $compiled of $count kernels" >&2
        exit 1
    }
    if spilled=$(grep -B 2 '[1-9][0-9]* bytes spill' "$folder/messages"); then
        printf '%s: registers are kept in memory\n%s\n' $processor "$spilled" >&2
        exit 1
    fi
    most=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$folder/messages" | sort -n | tail -n 1)
    echo "$processor: $compiled kernels, at most $most registers"
done
