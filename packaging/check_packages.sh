#!/usr/bin/env bash
# Tries what `make deb`, `make wheel` and `make sbom` have made, as root:
#   check_packages.sh VERSION PYTHON     PYTHON: that of the environment with auditwheel and spdx-tools
# - a second build, in another folder, gives the same packages and wheel to the last byte;
# - so does a user who is not root, in a fresh Debian with what dependencies.sh installs;
# - lintian has no complaint, and the SBOM is valid SPDX;
# - in a fresh Debian with the packages, the tests of packaging/debian/tests pass (autopkgtest);
# - in a fresh Debian that has only Python, the wheel trains over two processes; and with a worker of the packages.
# The roots are made in a folder of $TMPDIR or /tmp (about 6 GB), which goes at the end. PEN_BASE_ROOT=DIR keeps the
# first root, a Debian without anything, for the next time.
set -eu -o pipefail
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that has called us
version=$1
python=$2
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "check-packages: needs root, for chroot" >&2 && exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/penstock-packages.XXXXXX")
worker=
clean() {
    [ -z "$worker" ] || pkill -KILL -P "$worker" 2>/dev/null || true # unshare, which ends what it has started
    rm -rf --one-file-system "$work"
}
trap clean EXIT
port=17171

say() { printf 'check-packages: %s\n' "$*"; }
fail() { say "$*" >&2 && exit 1; }

# in_root ROOT COMMAND...: there, with /proc and /dev of its own, which go with the command
in_root() {
    local root=$1
    shift
    # shellcheck disable=SC2016 # the inner shell's
    unshare --mount --pid --fork --kill-child sh -c '
        mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"' "$root" "$@"
}

install_in() { # install_in ROOT PACKAGE...
    local root=$1
    shift
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    in_root "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >"$work/apt.log" 2>&1 ||
        { tail -n 20 "$work/apt.log" >&2 && fail "apt could not install $*"; }
}

# ---- the same bytes in two builds
say "building a second time, in $work/again"
packaging/build_deb.sh "$work/again" "$version" >/dev/null
rm "$work/again/penstock-$version"/build/gcc/{penstock,libpenstock.so} # the package's are linked by Debian's flags
make -s -C "$work/again/penstock-$version" wheel WHEEL_VENV="$(dirname "$(dirname "$python")")" >/dev/null
mv "$work/again/penstock-$version/build/wheel"/*.whl "$work/again/"
for file in build/deb/*.deb build/wheel/*.whl; do
    cmp "$file" "$work/again/$(basename "$file")" || fail "$(basename "$file") is another in a second build"
    say "equal in two builds: $(sha256sum "$file" | cut -c 1-16) $(basename "$file")"
done
made=(build debian/{penstock,libpenstock0,libpenstock-dev,python3-penstock,tmp,wheel,.debhelper})
tar -c -f "$work/source.tar" -C "$work/again" --anchored "${made[@]/#/--exclude=penstock-$version/}" "penstock-$version"
rm -rf "$work/again"

# ---- what judges say
lintian --allow-root --fail-on error,warning build/deb/*.changes || fail "lintian complains"
say "lintian has no complaint"
"$(dirname "$python")/pyspdxtools" -i build/penstock.spdx.json --version SPDX-2.3 || fail "the SBOM is not valid"
say "the SBOM is valid SPDX 2.3"

# ---- built as docs/install.md says, in a Debian that has nothing of a developer's
base=${PEN_BASE_ROOT:-$work/base}
if [ ! -x "$base/usr/bin/apt-get" ]; then
    debootstrap --variant=minbase bookworm "$base" >"$work/debootstrap.log" || fail "$(tail -n 5 "$work/debootstrap.log")"
fi
built_with() { # built_with FOLDER: versions of what can change the bytes of packages
    sed -n '/^Installed-Build-Depends:/,/^[A-Z][a-z]*:/p' "$1"/*.buildinfo | grep -E -- '-dev |^ (gcc|cpp|binutils|dpkg|debhelper|dh-|dwz|python3)'
}
cp -a "$base" "$work/user"
in_root "$work/user" apt-get update -q >/dev/null
install_in "$work/user" make
in_root "$work/user" useradd --create-home user
tar -x -f "$work/source.tar" -C "$work/user/home/user" --anchored --exclude="penstock-$version/debian"
there=/home/user/penstock-$version
if ! in_root "$work/user" sh -e -c "cd $there && ./dependencies.sh build packages && chown -R user:user /home/user" >"$work/user.log" 2>&1 ||
    ! in_root "$work/user" su - user -c "cd $there && make deb" >>"$work/user.log" 2>&1; then
    tail -n 40 "$work/user.log" >&2
    fail "a user of a fresh Debian cannot make the packages"
fi
alike=yes
[ "$(built_with build/deb)" = "$(built_with "$work/user$there/build/deb")" ] || alike=
for file in build/deb/*.deb; do
    built=$work/user$there/$file
    for field in Depends Recommends Suggests; do
        [ "$(dpkg-deb -f "$file" $field)" = "$(dpkg-deb -f "$built" $field)" ] ||
            fail "$(basename "$file"): $field of a user's is '$(dpkg-deb -f "$built" $field)', not '$(dpkg-deb -f "$file" $field)'"
    done
    [ -z "$alike" ] || cmp "$file" "$built" || fail "$(basename "$file") is another when a user makes it"
done
if [ -n "$alike" ]; then
    say "equal when a user of a fresh Debian makes them"
else
    say "a user of a fresh Debian can make them; it has other versions of packages than this machine, so bytes were not compared"
fi
rm -rf --one-file-system "$work/user"

# ---- the packages, in a Debian of their own
cp -a "$base" "$work/packages"
cp -a "$base" "$work/python"
mkdir "$work/packages/debs"
cp build/deb/*.deb "$work/packages/debs/"
tar -x -f "$work/source.tar" -C "$work"
in_root "$work/packages" apt-get update -q >/dev/null
# shellcheck disable=SC2016 # the inner shell's
unshare --mount sh -c 'mount --make-rprivate / && mount -t proc proc "$0/packages/proc" && mount --rbind /dev "$0/packages/dev" &&
    shift && exec autopkgtest --apt-upgrade "$@" -- chroot "$0/packages"' "$work" -- \
    build/deb/*.deb "$work/penstock-$version/" >"$work/autopkgtest.log" 2>&1 || {
    tail -n 60 "$work/autopkgtest.log" >&2
    fail "a test of the packages failed"
}
grep -a -E '^(demo|c-program|python) +PASS' "$work/autopkgtest.log" | sort -u
say "$(grep -a -o 'demo: test accuracy.*' "$work/autopkgtest.log" | tail -n 1)"

# ---- the wheel, where there is only Python
install_in "$work/python" python3 python3-venv
cp build/wheel/*.whl packaging/train_two.py "$work/python/tmp/"
in_root "$work/python" sh -e -c 'python3 -m venv /opt/v && /opt/v/bin/pip install -q --no-index /tmp/penstock-*.whl &&
    /opt/v/bin/penstock doctor && /opt/v/bin/python /tmp/train_two.py' | tee "$work/wheel.log"
grep -q 'are those of one device' "$work/wheel.log" || fail "the wheel did not train over two processes"
grep -q '^device .*OpenBLAS' "$work/wheel.log" || fail "the wheel has no OpenBLAS"

# ---- both together: the wheel's Python trains with a worker of the package
install_in "$work/packages" "/debs/penstock_${version}_$(dpkg --print-architecture).deb"
head -c 32 /dev/urandom | od -A n -t x1 | tr -d ' \n' >"$work/packages/token"
chmod 600 "$work/packages/token"
cp -p "$work/packages/token" "$work/python/token"
in_root "$work/packages" penstock worker --listen "127.0.0.1:$port" --token-file /token --store /tmp >"$work/worker.log" 2>&1 &
worker=$!
in_root "$work/python" /opt/v/bin/python /tmp/train_two.py "127.0.0.1:$port" /token | tee "$work/both.log" ||
    { cat "$work/worker.log" >&2 && fail "the wheel did not train with a worker of the package"; }
grep -q 'are those of one device' "$work/both.log" || fail "the wheel did not train with a worker of the package"
say "the wheel and a worker of the package trained together"
