#!/usr/bin/env bash
# What NVIDIA's own packages say of ours, which needs no GPU: their assembler takes the kernels, and their headers have
# the functions as we call them.
#   check_nvidia.sh FOLDER     with bin/ptxas and include/cuda.h; libraries whose headers are there, or in
#                              ../cudnn/include, are compared, too
set -eu

folder=$1
here=$(dirname "$0")
"$here/check_ptx.sh" "$folder/bin/ptxas" device/cuda/kernels/kernels.ptx
gcc -std=c11 -I. -isystem "$folder/include" -isystem "$folder/../cudnn/include" -fsyntax-only "$here/nvidia_prototypes.c"
echo "cuda.h $(sed -n 's/^#define CUDA_VERSION //p' "$folder/include/cuda.h"): functions and numbers are those that we call"
for header in "$folder/include/cublas_v2.h" "$folder/../cudnn/include/cudnn.h"; do
    [ ! -e "$header" ] || echo "${header##*/}: likewise"
done
