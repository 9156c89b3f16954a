# The text of the cuda device's kernels is what clang makes of their source today. Where NVIDIA's toolkit is, its
# assembler takes that, and its headers have the functions that we call.
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
[ ! -e /usr/local/cuda/bin/ptxas ] || tests/cuda/check_nvidia.sh /usr/local/cuda
