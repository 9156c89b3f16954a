#!/bin/sh
# Runs the tests of ONNX 1.23 from its Python package: newest.sh RUNNER [OPTION…]
#
# The package and the tests made from it lie in a virtual environment, $PENSTOCK_ONNX or
# ~/.cache/penstock/onnx-1.23.2, which is made if it is not there.
set -eu
runner=$1
shift
home=${PENSTOCK_ONNX:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/onnx-1.23.2}
if [ ! -x "$home/bin/python" ]; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet onnx==1.23.2
fi
if [ ! -d "$home/tests" ]; then
    "$home/bin/python" tests/conformance/make_data.py "$home/tests.new"
    mv "$home/tests.new" "$home/tests"
fi
exec "$runner" --data "$home/tests" --list tests/conformance/newest.txt "$@"
