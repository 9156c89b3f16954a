#!/usr/bin/env bash
# Trains the example and checks that it learned; run it from the top of the source tree.
. examples/common.sh bert-classifier
command -v bible >/dev/null || needs /usr/bin/bible "bible-kjv and bible-kjv-text"
needs_python torch python3-torch

bible -f "gen1:1-rev22:21" </dev/null | "$PEN_PYTHON" prepare.py
"$PEN_PYTHON" export_model.py 2>/dev/null
say "training over two devices"
penstock train --json job.yaml >train.json
least "accuracy on passages held out, of which 0.22 are of the commonest part," "$(figure train.json evaluation accuracy)" 0.78
