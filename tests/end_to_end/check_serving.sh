#!/usr/bin/env bash
# `make check-serving`: tritonclient and curl against `penstock serve`. tritonclient is installed from PyPI into
# $SERVING_VENV, outside this tree.
. tests/end_to_end/serve.sh
: "${SERVING_VENV:=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/serving}"
if ! "$SERVING_VENV/bin/python" -c 'import tritonclient.grpc, tritonclient.http' 2>/dev/null; then
    python3 -m venv "$SERVING_VENV" && "$SERVING_VENV/bin/pip" install -q 'tritonclient[grpc,http]' ||
        die 'tritonclient cannot be installed'
fi
job net '{name: a, threads: 1, host: localhost}, {name: b, threads: 1, host: localhost}'
penstock train -q net.yaml
penstock predict -q net.yaml -o outputs.npy --batch 16
serve net
"$SERVING_VENV/bin/python" "$top/tests/end_to_end/check_tritonclient.py" "$http" "$grpc" net inputs.npy outputs.npy
if command -v curl >/dev/null; then
    [ "$(curl -sf "http://127.0.0.1:$http/v2/models/net" | json 'd["name"]')" = net ] || die 'curl'
    echo 'curl: the model'"'"'s metadata'
fi
finish net
