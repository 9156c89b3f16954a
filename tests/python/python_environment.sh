#!/bin/sh
# Prints the Python that has what is asked for; makes its virtual environment when something is missing.
#   python_environment.sh FOLDER MODULES REQUIREMENT...     MODULES: what to import, such as numpy,ray
set -eu

folder=${1:?usage: python_environment.sh FOLDER MODULES REQUIREMENT...}
modules=$2
shift 2
if ! "$folder/bin/python" -c "import $modules" 2>/dev/null; then
    echo "installing $* into $folder" >&2
    python3 -m venv --clear "$folder" >&2
    "$folder/bin/pip" install --quiet "$@" >&2
fi
echo "$folder/bin/python"
