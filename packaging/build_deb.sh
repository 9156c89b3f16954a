#!/bin/sh
# Makes the Debian packages penstock, libpenstock0, libpenstock-dev and python3-penstock of this source tree.
#   build_deb.sh FOLDER VERSION     into FOLDER; FOLDER/penstock-VERSION is where they are built
# The same sources give the same bytes in any folder, on the same release of Debian.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that has called us

folder=$(mkdir -p "$1" && cd "$1" && pwd)
version=$2
cd "$(dirname "$0")/.."
tree=$folder/penstock-$version
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(packaging/release_date.sh)}
export SOURCE_DATE_EPOCH
# Debian's tools have a home of their own, but a compiler's cache is where it is
if command -v ccache >/dev/null 2>&1; then CCACHE_DIR=$(ccache --get-config cache_dir) && export CCACHE_DIR; fi

rm -rf "$tree" "$folder"/*.deb "$folder"/*.buildinfo "$folder"/*.changes
mkdir -p "$tree"
# without git, or where it refuses a tree of another user, what .gitignore names is left out by hand
{ git ls-files --cached --others --exclude-standard 2>/dev/null ||
    find . -type d \( -path ./build -o -path ./env -o -path ./.git -o -path './examples/*/run*' -o -name __pycache__ -o -name penstock-cache \) -prune -o \
        -type f ! -path './examples/database-pictures/*.db' ! -path './examples/*/predictions.csv' ! -name '*.swp' -print; } |
    while IFS= read -r file; do [ ! -e "$file" ] || printf '%s\n' "$file"; done |
    tar -c -f - --verbatim-files-from -T - | tar -x -f - -C "$tree"

# What stands elsewhere in the tree is taken from there: versions and dates, who made it, what a build needs.
debian=$tree/debian
cp -r packaging/debian "$debian"
maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control.in)
needed=$(./dependencies.sh --list build | tr '\n' ' ' | sed 's/ *$//; s/ /, /g')
sed "s|@build_depends@|$needed|" packaging/debian/control.in >"$debian/control"
rm "$debian/control.in"
sed -n 's/^## \[\(.*\)\] - \(.*\)/\1 \2/p' CHANGELOG.md | while read -r number day; do
    printf 'penstock (%s) unstable; urgency=medium\n\n  * What changed is in CHANGELOG.md.\n\n -- %s  %s\n\n' \
        "$number" "$maintainer" "$(LC_ALL=C date -u -R -d "$day")"
done >"$debian/changelog"

cd "$tree"
dpkg-buildpackage -b -us -uc -rfakeroot >"$folder/build.log" 2>&1 || {
    tail -n 40 "$folder/build.log" >&2
    echo "build_deb.sh: the packages could not be built; all that was said is in $folder/build.log" >&2
    exit 1
}
ls "$folder"/*.deb
