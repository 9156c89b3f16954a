#!/bin/sh
# Prints the Python that has the PyTorch whose .pt2 files are checked; makes its virtual environment when it is missing.
#   pt2_environment.sh FOLDER
set -eu

folder=${1:?usage: pt2_environment.sh FOLDER}
wanted=$(dirname "$0")/pt2_requirements.txt
# An environment that somebody made is taken as it is. One of ours is made anew when other versions are wanted.
if [ -x "$folder/bin/python" ] && { [ ! -e "$folder/wanted.txt" ] || cmp -s "$wanted" "$folder/wanted.txt"; }; then
    echo "$folder/bin/python"
    exit 0
fi
echo "installing PyTorch into $folder (PT2_VENV names another folder)" >&2
/usr/bin/python3 -m venv --clear "$folder" >&2
"$folder/bin/pip" install --quiet --requirement "$wanted" >&2
cp "$wanted" "$folder/wanted.txt"
echo "$folder/bin/python"
