#!/usr/bin/env bash
# The Python module with the library of this build, and Debian's Python and NumPy.
set -eu -o pipefail
case $PENSTOCK_BUILD in *address* | *thread* | *undefined*)
    echo 'skipped: an instrumented library cannot be loaded into Python'
    exit 77
    ;;
esac
export PENSTOCK_LIBRARY=$PWD/$PENSTOCK_BUILD/libpenstock.so PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 -W error::ResourceWarning -m unittest discover -s tests/python
