#!/usr/bin/env bash
# Runs the README's commands, as they stand there, and checks what they must reach.
. examples/common.sh database-pictures
commands=$(sed -n '/^```$/,/^```$/p' README.md | sed -n '/^cd /,/^```$/p' | grep -v '^cd \|^```')
say "runs: ${commands//$'\n'/; }"
while IFS= read -r command; do
    case $command in
    'penstock eval '*) command="$command --json" ;;
    esac
    eval "$command" >out 2>messages </dev/null || fail "$command: $(cat messages)"
    case $command in
    'penstock train '*) [ "$(grep -c 'read all' messages)" -eq 2 ] || fail "queries are not read once: $(cat messages)" ;;
    'penstock eval '*) cp out eval.json ;;
    esac
done <<<"$commands"
accuracy=$(/usr/bin/python3 -c 'import json; print(json.load(open("eval.json"))["accuracy"])')
lines=$(wc -l <predictions.csv)
say "accuracy $accuracy, $lines lines of predictions"
[ "$lines" -eq 251 ] || fail "predictions of 250 pictures and a line of names, not $lines lines"
/usr/bin/python3 -c "import sys; sys.exit(not $accuracy > 0.9)" || fail "accuracy $accuracy, expected above 0.9"
