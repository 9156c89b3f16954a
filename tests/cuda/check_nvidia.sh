#!/usr/bin/env bash
# What NVIDIA's own packages say of ours, which needs no GPU: their assembler takes the kernels, and their headers have
# the functions as we call them.
#   check_nvidia.sh FOLDER     with bin/ptxas and include/cuda.h, and cublas_v2.h where cuBLAS is to be compared, too
set -eu

folder=$1
here=$(dirname "$0")
"$here/check_ptx.sh" "$folder/bin/ptxas" device/cuda/kernels/kernels.ptx
gcc -std=c11 -I. -isystem "$folder/include" -fsyntax-only "$here/nvidia_prototypes.c"
echo "cuda.h $(sed -n 's/^#define CUDA_VERSION //p' "$folder/include/cuda.h"): functions and numbers are those that we call"
[ ! -e "$folder/include/cublas_v2.h" ] || echo "cublas_v2.h: likewise"
