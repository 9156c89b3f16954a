#!/usr/bin/env bash
# Trains the example and checks that it learned; run it from the top of the source tree.
. examples/common.sh lstm-text
command -v bible >/dev/null || needs /usr/bin/bible "bible-kjv and bible-kjv-text"
needs_python torch python3-torch

bible -f "gen1:1-rev22:21" </dev/null | "$PEN_PYTHON" prepare.py tokens.bin
"$PEN_PYTHON" export_model.py 2>/dev/null
say "training on one device"
penstock train --json job.yaml >train.json
most "loss of text held out" "$(figure train.json evaluation loss)" 1.35
prompt=$(printf 'and god said ' | "$PEN_PYTHON" prepare.py --encode)
penstock predict -q job.yaml --sample 200 --prompt "$prompt" --temperature 0.6 --seed 1 >sample.txt
[ "$(wc -w <sample.txt)" -eq $((200 + $(wc -w <<<"$prompt"))) ] || fail "the sample has $(wc -w <sample.txt) tokens"
"$PEN_PYTHON" prepare.py --decode <sample.txt
