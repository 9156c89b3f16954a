#!/usr/bin/env bash
# Follows the README in a folder of its own: check.sh PENSTOCK VENV. Optuna is installed into VENV when it is missing.
set -eu
penstock=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
venv=$2
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import optuna' 2>/dev/null || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet optuna
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/*.py "$here"/job.yaml "$work"
cd "$work"
python3 make_points.py
for name in one two; do
    "$venv/bin/python" search.py --trials 10 --penstock "$penstock" 2>"$name.messages" >"$name" ||
        { cat "$name.messages"; exit 1; }
done
cmp one two || { echo "check-optuna: a second search finds something else" >&2; exit 1; }
python3 -c 'import json, sys
best = json.load(open("one"))
print("check-optuna:", best)
sys.exit(best["trials"] != 10 or not best["loss"] < 0.66)'
