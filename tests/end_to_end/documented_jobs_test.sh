#!/usr/bin/env bash
# Every job, and part of a job, that README.md and docs/ show is one that the command accepts:
# it goes on to look for the data, which are not there, instead of refusing the job.
# What is said of files, of patterns of files, and of a database on another host:
missing='cannot open .*: No such file or directory$|no file is called as .* says$|could not translate host name'
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# the yaml blocks, each a file; what a block leaves out is taken from a plain job
awk -v folder="$folder" -v plain="{format: npy, inputs: {x: x.npy}}" '
    /^```yaml$/ { inside = 1; file = folder "/" ++count ".yaml"; keys = ""; next }
    inside && /^```$/ {
        inside = 0
        if (keys !~ / version:/) print "version: 1" >file
        if (keys !~ / model:/) print "model: {file: none.onnx}" >file
        if (keys !~ / data:/) print "data: {train: " plain ", eval: " plain "}" >file
        if (keys !~ / train:/) print "train: {loss: output, optimizer: {sgd: {lr: 1}}, batch: 1}" >file
        close(file)
        next
    }
    inside { print >file }
    inside && /^[a-z]+:/ { keys = keys " " $1 }
' README.md docs/job.md docs/layers.md docs/cluster.md docs/run.md docs/recovery.md docs/serving.md docs/your-model.md

count=0
failed=0
for job in "$folder"/*.yaml; do
    count=$((count + 1))
    "$PENSTOCK" train "$job" --quiet 2>"$folder/errors"
    code=$?
    expected=3
    grep -q 'connection: postgresql' "$job" && expected=6
    if [ "$code" -ne "$expected" ] || ! grep -qE "error: .*($missing)" "$folder/errors"; then
        failed=1
        echo "exit code $code, expected $expected for data that are not there, for:"
        cat "$job" "$folder/errors"
    fi
done
echo "$count jobs"
[ "$count" -ge 5 ] && [ "$failed" -eq 0 ]
