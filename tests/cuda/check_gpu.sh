#!/usr/bin/env bash
# The tests of the device on the GPU that this machine has: operators beside reference, and bit by bit beside the
# emulator; once more beside reference with NVIDIA's libraries; under NVIDIA's compute-sanitizer, where that is;
# trainings beside PyTorch's losses.
#   check_gpu.sh BUILD PROGRAM...     PROGRAM: tests of operators
# CUDA_DRIVER is the driver's library; else the system's is taken. cuBLAS and cuDNN are those that LD_LIBRARY_PATH or
# the system has; it fails where there is neither.
set -eu

build=$1
shift
driver=${CUDA_DRIVER:-$(ldconfig -p | awk '/libcuda\.so\.1 .*x86-64/ { print $NF; exit }')}
[ -n "$driver" ] || {
    echo "found no libcuda.so.1, the driver of NVIDIA's GPUs: nothing is checked" >&2
    exit 1
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# on_gpu COMMAND...
on_gpu() {
    PEN_TEST_GPU=1 LD_PRELOAD=$driver "$@"
}
# run NAME COMMAND...: shows what it said if it failed
run() {
    local name=$1
    shift
    "$@" >"$folder/said" 2>&1 || {
        echo "FAILED  $name"
        tail -n 40 "$folder/said"
        return 1
    }
    echo "passed  $name"
}

# number NAME: the outputs that a program told, in its order, which is always the same
number() {
    [ -e "$folder/told" ] || return 0 # it ended before
    awk -v name="$1" '{ print name ":" NR, $0 }' "$folder/told"
    rm "$folder/told"
}

failed=0
for program in "$@"; do
    name=${program##*/}
    PEN_TEST_RECORD=$folder/told run "$name, emulated" "$program" || failed=1
    number "$name" >>"$folder/emulated"
    PEN_TEST_RECORD=$folder/told run "$name" on_gpu "$program" || failed=1
    number "$name" >>"$folder/gpu"
done
awk 'NR == FNR { line[$1] = $0; next }
    { n[$2]++; if (line[$1] != $0) other[$2]++; delete line[$1] }
    END { for (op in n) { all++; if (op in other) { wrong = 1; printf "other bits than the emulator: %s, %d of %d outputs\n", op, other[op], n[op] } }
        for (missing in line) { wrong = 1; print "not told by the GPU: " line[missing] }
        if (all == 0) { print "no outputs were compared"; exit 1 }
        printf "bits of the emulator: %d of %d operators\n", all - length(other), all; exit wrong }' \
    "$folder/emulated" "$folder/gpu" || failed=1

# ---- with NVIDIA's libraries: beside the reference alone, since sums of theirs have another order
# Programs are copied: the run path of those in the build has old fake libraries, before all others.
on_gpu "$build/penstock" doctor >"$folder/doctor" || failed=1
grep '^cu\(BLAS\|DNN\) ' "$folder/doctor" || echo "doctor tells of no libraries"
mkdir -p "$folder/tests/device/cuda"
for name in operators windows precision sequences; do
    cp "$build/tests/device/cuda/cuda_${name}_test" "$folder/tests/device/cuda"
    PEN_TEST_LIBRARIES=auto run "cuda_${name}_test, libraries" on_gpu "$folder/tests/device/cuda/cuda_${name}_test" ||
        failed=1
done

if command -v compute-sanitizer >/dev/null; then
    for program in "$@"; do
        for tool in memcheck initcheck racecheck synccheck; do
            run "${program##*/}, $tool" on_gpu compute-sanitizer --tool $tool --error-exitcode 9 "$program" || failed=1
        done
    done
else
    echo "no compute-sanitizer: not run"
fi
on_gpu tests/run_tests.sh "$build" tests/end_to_end/cuda_{planes,sequences}_test.sh || failed=1
exit $failed
