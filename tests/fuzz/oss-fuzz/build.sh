#!/usr/bin/env bash
# Builds every fuzzer as OSS-Fuzz asks: with $CC, $CFLAGS, $CXX, $CXXFLAGS and $LIB_FUZZING_ENGINE,
# into $OUT. Beside each program are its seeds, its words and its options; $OUT/lib has the shared
# libraries, which programs look for there first. FUZZ='yaml csv' builds these alone.
#
# What it needs is installed by ./dependencies.sh build fuzz, and zip. Without OSS-Fuzz:
#   OUT=/tmp/fuzzers CC=clang CXX=clang++ LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
#     CFLAGS='-O1 -g -fsanitize=address,fuzzer-no-link' CXXFLAGS="$CFLAGS" tests/fuzz/oss-fuzz/build.sh
set -eu
: "${OUT:?the folder for the fuzzers}" "${CC:?}" "${CXX:?}" "${CFLAGS:?}" "${LIB_FUZZING_ENGINE:?}"
cd "$(dirname "$0")/../../.."
folder=build/oss-fuzz

# DT_RPATH, unlike DT_RUNPATH, also holds for libraries of libraries, and for those that are loaded
# shellcheck disable=SC2016 # $ORIGIN is for the loader, $$ for make
make -j"$(nproc)" fuzz-programs FUZZ="${FUZZ:-}" FUZZ_BUILD="$folder" FUZZ_CC="$CC" FUZZ_FLAGS="$CFLAGS" WARNINGS=-w \
    FUZZ_LINK="$CXX ${CXXFLAGS:-$CFLAGS} -Wl,--disable-new-dtags,-rpath,'\$\$ORIGIN/lib'" \
    FUZZ_ENGINE="$LIB_FUZZING_ENGINE"

# What programs need, and what readers load by name; not the C library, which the machine has.
libraries() {
    local loaded
    for loaded in $(ldconfig -p | awk '/lib(zip|hdf5_serial|openblas|microhttpd)\.so\.[0-9]+ / { print $NF }'); do
        echo "$loaded"
        ldd "$loaded" | awk '/=> \// { print $3 }'
    done
    ldd "$@" | awk '/=> \// { print $3 }'
}

mkdir -p "$OUT/lib" "$OUT/tests/fuzz"
cp -r tests/fuzz/folder "$OUT/tests/fuzz/" # external_fuzz reads it
programs=()
for program in "$folder"/*_fuzz; do
    name=$(basename "$program" _fuzz)
    [ -z "${FUZZ:-}" ] || [[ " $FUZZ " == *" $name "* ]] || continue
    programs+=("$program")
    cp "$program" "$OUT/"
    rm -f "$OUT/${name}_fuzz_seed_corpus.zip"
    seeds=("tests/fuzz/corpus/$name")
    [ ! -d "tests/fuzz/kept/$name" ] || seeds+=("tests/fuzz/kept/$name")
    zip -jqr "$OUT/${name}_fuzz_seed_corpus.zip" "${seeds[@]}"
    [ ! -e "tests/fuzz/$name.dict" ] || cp "tests/fuzz/$name.dict" "$OUT/${name}_fuzz.dict"
    printf '[libfuzzer]\nmalloc_limit_mb=256\nrss_limit_mb=2048\n' >"$OUT/${name}_fuzz.options"
done
libraries "${programs[@]}" | sort -u | grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so' |
    xargs -I{} cp -L {} "$OUT/lib/"
echo "$(find "$OUT" -maxdepth 1 -name '*_fuzz' | wc -l) fuzzers are in $OUT"
