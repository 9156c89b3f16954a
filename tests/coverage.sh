#!/usr/bin/env bash
# Says which share of the lines the tests ran, for each folder of the product.
#   coverage.sh BUILD_FOLDER
set -eu -o pipefail
build=$1
lcov --quiet --capture --directory "$build" --base-directory . --no-external \
    --ignore-errors gcov,source --output-file "$build/all.info" 2>"$build/lcov.log"
lcov --quiet --remove "$build/all.info" '*/tests/*' --output-file "$build/coverage.info" 2>>"$build/lcov.log"
awk -v top="$PWD/" '
    /^SF:/ { file = substr($0, 4); sub(top, "", file); folder = file; sub(/\/[^\/]*$/, "", folder) }
    /^LF:/ { found[folder] += substr($0, 4) }
    /^LH:/ { hit[folder] += substr($0, 4) }
    END {
        for (folder in found) {
            if (found[folder] == 0) continue
            printf "%6.1f %%  %6d lines  %s\n", 100 * hit[folder] / found[folder], found[folder], folder | "sort -k5"
            all += found[folder]
            ran += hit[folder]
        }
        close("sort -k5")
        if (all == 0) exit 1
        printf "%6.1f %%  %6d lines  in all\n", 100 * ran / all, all
    }' "$build/coverage.info"
