#!/usr/bin/env bash
# `make check-followers`: what --tensorboard and --metrics write, opened by TensorBoard and by Prometheus' own reader
# of its text. Both come from PyPI into FOLLOWERS_VENV.
#   check_followers.sh PYTHON     one that has tensorboard and prometheus_client
python=${1:?usage: check_followers.sh PYTHON}
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/followed_job.sh"
sed -i 's/^data:/evaluation: {every: 2 steps, metrics: [f1, top_2]}\ndata:/' job.yaml

# a machine dies before its last steps are kept: they are done again, and TensorBoard forgets those of before
penstock train -q --steps 3 job.yaml --log first.jsonl --tensorboard board/run
cp -r kept before
penstock train -q --continue --steps 5 job.yaml --tensorboard board/run
rm -r kept && mv before kept
penstock train -q --continue job.yaml --log last.jsonl --tensorboard board/run --metrics run.prom
"$python" "$top/tests/end_to_end/check_followers.py" board run.prom first.jsonl last.jsonl
