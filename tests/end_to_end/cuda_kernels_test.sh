# The text of the cuda device's kernels is what clang makes of their source today, and, where
# NVIDIA's assembler is, that takes it for every kind of GPU from sm_75 to sm_90.
set -eu

kernels=device/cuda/kernels
clang=$(command -v clang-14) || { echo "no clang-14, of which version the text is"; exit 77; }
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s cuda-kernels CUDA_CLANG="$clang" \
    cuda_text="$made/kernels.ptx"
diff "$kernels/kernels.ptx" "$made/kernels.ptx" >"$made/difference" || {
    head -n 20 "$made/difference"
    echo "$kernels/kernels.ptx is not what is made of its source; see \`make cuda-kernels\`"
    exit 1
}
for name in $(sed -n '/^#define PEN_CUDA_KERNELS/,/clang-format/p' "$kernels/cuda_args.h" | grep -o 'X([a-z_]*)'); do
    [ "$name" = "X(X)" ] && continue
    name=${name#X(}
    grep -q "^.visible .entry ${name%)}(" "$kernels/kernels.ptx" || { echo "no kernel ${name%)}"; exit 1; }
done
ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || exit 0
for kind in sm_75 sm_80 sm_90; do
    "$ptxas" -arch=$kind "$kernels/kernels.ptx" -o "$made/$kind.cubin"
done
