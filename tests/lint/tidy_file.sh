#!/usr/bin/env bash
# Runs clang-tidy on one file, unless what the compiler sees of it passed before.
#   tidy_file.sh FILE        with CPPFLAGS and CFLAGS in the environment; DEEP=1 follows more paths
set -u
file=$1
level=()
checks=()
if [[ $file == device/cpu/kernels/* && $(uname -m) == x86_64 ]]; then
    level=(-DPEN_CPU_LEVEL=v3 -march=x86-64-v3)
fi
if [[ $file == examples/* ]]; then # programs see what is installed
    mkdir -p build/lint/include/penstock
    ln -sfn "$PWD/scheduler/penstock.h" "$PWD/graph/layers.h" "$PWD/base" build/lint/include/penstock/
    level=(-isystem build/lint/include)
fi
# tests run under the sanitizers, which find more in them than the analyser does
[[ $file == tests/* ]] && checks=(--checks='-clang-analyzer-*')
# A third of what clang's analyzer explores by itself, in half of the time; check-long asks for all.
paths=(-Xclang -analyzer-config -Xclang max-nodes=75000)
[ -n "${DEEP:-}" ] && paths=()
flags="$CPPFLAGS $CFLAGS"
# shellcheck disable=SC2086 # a list of flags
key=$({ cat .clang-tidy && echo "${paths[@]}" && eval clang $flags '"${level[@]}"' -E '"$file"'; } 2>&1 | sha256sum | cut -c1-40)
stamp=build/lint/$file.$key
[ -e "$stamp" ] && exit 0
# shellcheck disable=SC2086
found=$(eval clang-tidy --quiet '"${checks[@]}" "$file"' -- $flags '"${level[@]}" "${paths[@]}"' 2>&1 |
    grep -v -E '^[0-9]+ warnings? (generated|and)')
if [ -n "$found" ]; then
    # the finding and its line, without the path that leads there
    printf '%s\n' "$found" | sed "s|$PWD/||" | grep -A2 -E '(warning|error): '
    exit 1
fi
mkdir -p "${stamp%/*}"
rm -f build/lint/"$file".*
: >"$stamp"
