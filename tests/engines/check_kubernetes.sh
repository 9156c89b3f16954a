#!/bin/bash
# The manifests of examples/kubernetes against the API's own schemas, from the package kubernetes-validate of PyPI; and
# what they call, against the command. Exit code 77: the package cannot be had.
top=$PWD
: "${PENSTOCK:=$PWD/build/gcc/penstock}"
tools=$top/build/kubernetes-validate
if [ ! -x "$tools/bin/python" ] || ! "$tools/bin/python" -c 'import kubernetes_validate' 2>/dev/null; then
    python3 -m venv --clear "$tools" && "$tools/bin/pip" install --quiet kubernetes-validate==1.37.0 ||
        { echo "no kubernetes-validate" >&2; exit 77; }
fi
exec "$tools/bin/python" tests/engines/check_kubernetes.py examples/kubernetes "$PENSTOCK"
