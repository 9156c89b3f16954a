#!/bin/sh
# Installs what Penstock needs from Debian's archive (or a derivative's). Touches nothing, not even
# the package lists, when all is there.
#   dependencies.sh [--check | --list] SET...      sets: build demo test databases lint
#   fuzz faults engines coverage pages examples bench packages
# With --check nothing is installed: what is missing is named, with the command that installs it. --list prints names.
# Debian 12 and 13 have packages of these names: all is tested on 12, what docs/install.md says on 13. Ubuntu's have the
# same names, by their lists: not tried. Penstock takes oneDNN 2 and oneDNN 3.
set -u

packages_of() {
    case $1 in
    build) echo gcc libc6-dev make pkg-config libopenblas-dev libopenblas0-openmp libdnnl-dev \
        libyaml-dev libjansson-dev libmetis-dev libjpeg-dev libpng-dev libwebp-dev zlib1g-dev \
        libgrpc-dev libssl-dev libhdf5-dev libzip-dev libpq-dev libsqlite3-dev libarchive-dev \
        libmicrohttpd-dev libseccomp-dev ;;
    demo) echo dataset-fashion-mnist ;;
    test) echo bsdutils fish g++ groff-base libcmocka-dev libonnx-testdata libturbojpeg0-dev openssl protobuf-compiler python3 python3-grpcio \
        python3-jsonschema python3-numpy python3-onnx python3-yaml zsh ;;
    databases) echo postgresql ;;
    lint) echo clang clang-format clang-tidy cppcheck eslint libomp-dev libcmocka-dev python3-tinycss2 ;;
    fuzz) echo clang libclang-rt-dev libomp-dev ;;
    faults) echo iproute2 iptables util-linux ;;
    engines) echo munge openmpi-bin procps python3-jsonschema python3-numpy python3-yaml slurm-client slurmctld slurmd ;;
    coverage) echo lcov ;;
    pages) echo chromium fonts-dejavu-core python3 python3-numpy python3-onnx ;;
    examples) echo dict-devil bible-kjv bible-kjv-text dataset-fashion-mnist python3-torch \
        python3-torchvision python3-onnx python3-numpy ;;
    bench) echo python3-torch python3-torchvision python3-onnx python3-numpy ;;
    packages) echo autopkgtest build-essential debhelper debootstrap dh-python dpkg-dev fakeroot lintian python3 python3-venv ;;
    *)
        echo "dependencies.sh: there is no set '$1': build demo test databases lint fuzz faults engines coverage pages examples bench packages" >&2
        return 1
        ;;
    esac
}

# What Fedora and its like call the set `build`, by their lists of packages. Not tried.
fedora_build='gcc make pkgconf-pkg-config openblas-devel openblas-openmp onednn-devel libyaml-devel jansson-devel
metis-devel libjpeg-turbo-devel libpng-devel libwebp-devel zlib-devel grpc-devel openssl-devel hdf5-devel libzip-devel libpq-devel sqlite-devel
libarchive-devel libmicrohttpd-devel libseccomp-devel'

mode=install
case ${1:-} in --check | --list)
    mode=${1#--}
    shift
    ;;
esac

wanted=
for set_name in "$@"; do
    names=$(packages_of "$set_name") || exit 2
    wanted="$wanted $names"
done

if [ "$mode" = list ]; then
    # shellcheck disable=SC2086 # a list of names
    printf '%s\n' $wanted
    exit 0
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "dependencies.sh: this is not a Debian system; it needs what Debian calls:$wanted" >&2
    # shellcheck disable=SC2086 # a list of names
    if command -v dnf >/dev/null 2>&1; then
        echo "what a build needs may be here, which nobody has tried yet:" >&2
        echo "  dnf install" $fedora_build >&2
    fi
    [ "$mode" = check ] && exit 0 # the compiler will say what is not there
    exit 1
fi

missing=
for name in $wanted; do
    case " $missing " in *" $name "*) continue ;; esac
    status=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)
    [ "$status" = installed ] || missing="$missing $name"
done
[ -z "$missing" ] && exit 0

by_hand="apt-get install --no-install-recommends$missing"
if [ "$mode" = check ]; then
    printf '%s\n' "not installed:$missing" "'./dependencies.sh $*' installs it; or, as root:" \
        "  $by_hand" >&2
    exit 1
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=sudo
else
    printf '%s\n' "not installed:$missing" \
        "This user is not root and cannot use sudo here. Please run, as root:" "  $by_hand" >&2
    exit 1
fi

echo "installing:$missing" >&2
apt() {
    # shellcheck disable=SC2086 # empty when we are root
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" >&2
}
apt update || echo "dependencies.sh: the package lists were not renewed; trying with those there are" >&2
# shellcheck disable=SC2086 # a list of names
if ! apt install --no-install-recommends $missing; then
    printf '%s\n' "dependencies.sh: apt-get could not install:$missing" \
        "(the lines above say why)" >&2
    exit 1
fi
