#!/usr/bin/env bash
# Every command line that README.md, docs/ and the examples show names a verb and options that there are.
set -u
text=$(mktemp)
trap 'rm -f "$text"' EXIT
python3 tests/docs/commands.py "$PENSTOCK" README.md CONTRIBUTING.md docs/*.md examples/*/README.md python/README.md || exit 1

# What is wrong is found: in backquotes, in a block, and behind the end of a line.
cat >"$text" <<'END'
Try `penstock trian job.yaml`, or
```
$ penstock train --stpes 3 job.yaml   # not an option: --foo
penstock plan job.yaml \
    --objectiv traffic
```
END
found=$(python3 tests/docs/commands.py "$PENSTOCK" "$text" | grep -c 'has no')
[ "$found" -eq 3 ] || { echo "found $found of 3 mistakes" && exit 1; }
