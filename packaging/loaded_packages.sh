#!/bin/sh
# Packages of the libraries that are opened when a file asks for them, as `Recommends` wants them: those of this
# system, whose names the sources have.
#   loaded_packages.sh [--files]      --files: the libraries' paths, a line each
set -eu
cd "$(dirname "$0")/.."

# ldconfig is not in the PATH of Debian's users. OpenBLAS is always needed, and NVIDIA's driver (libcuda) belongs to a
# GPU: where packages are made it may be there or not, and it is never passed on.
known=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p)
files=$(grep -rhoE '"lib[a-z0-9_]+\.so\.[0-9]+"' --include='*.c' base graph partition scheduler device |
    tr -d '"' | grep -v -e openblas -e libcuda | sort -u | while read -r name; do
        printf '%s\n' "$known" | awk -v name="$name" '$1 == name && path == "" { path = $NF } END { if (path) print path }'
    done)
if [ "${1:-}" = --files ]; then
    printf '%s\n' "$files"
    exit
fi
# where /lib is a link to /usr/lib, a package may know a file by either
for file in $files; do
    dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "/usr${file#/usr}" 2>/dev/null || dpkg-query -S "${file#/usr}"
done | cut -d: -f1 | sort -u | paste -sd, | sed 's/,/, /g'
