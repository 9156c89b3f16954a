#!/bin/sh
# When this version was made, by CHANGELOG.md: seconds since 1970, for SOURCE_DATE_EPOCH.
set -eu
cd "$(dirname "$0")/.."
date -u -d "$(sed -n 's/^## \[.*\] - //p' CHANGELOG.md | head -n 1)" +%s
