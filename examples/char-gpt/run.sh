#!/usr/bin/env bash
# Trains the example and checks that it learned; run it from the top of the source tree.
. examples/common.sh char-gpt
needs /usr/share/dictd/devil.dict.dz dict-devil
needs_python torch python3-torch

"$PEN_PYTHON" export_model.py 2>/dev/null
sed '/name: [bcd],/d' job.yaml >one.yaml
does_not_fit one.yaml
say "training over four workers"
penstock train --json job.yaml >train.json
most "loss of text held out" "$(figure train.json evaluation loss)" 2.1
least "next bytes that were right" "$(figure train.json evaluation accuracy)" 0.38
penstock predict -q job.yaml --sample 300 --prompt "LOVE, n. " --temperature 0.7 --top-k 40 --seed 1 >sample.txt
penstock predict -q job.yaml --sample 300 --prompt "LOVE, n. " --temperature 0.7 --top-k 40 --seed 1 -o again.txt
cmp sample.txt again.txt || fail "the same seed wrote two texts"
cat sample.txt
