#!/usr/bin/env bash
# Draws the time lines of docs/concepts.md with the program itself. Costs are stated, so they are the same everywhere.
#   draw_concepts.sh PENSTOCK [FOLDER]     into FOLDER; else beside this file
#   draw_concepts.sh PENSTOCK --check      says which picture is not what the program draws
set -eu
penstock=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
to=${2:-$here}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

draw() { # draw NAME [--set PATH=VALUE]...
    local name=$1
    shift
    "$penstock" plan --quiet "$here/pipeline.yaml" "$@" -o "$made/plan.yaml" >"$made/said" 2>&1 || { cat "$made/said" && exit 1; }
    "$penstock" simulate --quiet "$made/plan.yaml" -o "$made/$name.svg" >"$made/said" 2>&1 || { cat "$made/said" && exit 1; }
}

draw one_microbatch --set train.microbatches=1
draw gpipe --set pipeline.schedule=gpipe
draw one_f_one_b
draw zero_bubble --set pipeline.schedule=zero_bubble
draw replicas --set placement.replicas=2 --set train.lanes=4 --set 'placement.pin=[]'
rm -f "$made/plan.yaml" "$made/said"

if [ "$to" = --check ]; then
    for file in "$made"/*.svg; do
        cmp -s "$file" "$here/$(basename "$file")" || echo "docs/pictures/$(basename "$file"): is not what the program draws"
    done
else
    cp "$made"/*.svg "$to"
fi
