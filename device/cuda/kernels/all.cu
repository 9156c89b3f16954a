// All kernels, as one unit. `make cuda-kernels` makes kernels.ptx of it.
#ifndef PEN_CUDA_KERNEL_CODE
#include "device/cuda/kernels/words.cuh"
#endif
#include "device/cuda/kernels/cuda_args.h"

#include "device/cuda/kernels/common.cuh"
#include "device/cuda/kernels/numbers.cuh"
#include "device/cuda/kernels/tile.cuh"

#include "device/cuda/kernels/batch_norm.cu"
#include "device/cuda/kernels/convolution.cu"
#include "device/cuda/kernels/function.cu"
#include "device/cuda/kernels/layer_norm.cu"
#include "device/cuda/kernels/loss.cu"
#include "device/cuda/kernels/map.cu"
#include "device/cuda/kernels/move.cu"
#include "device/cuda/kernels/pair_loss.cu"
#include "device/cuda/kernels/pool.cu"
#include "device/cuda/kernels/product.cu"
#include "device/cuda/kernels/reduction.cu"
#include "device/cuda/kernels/resize.cu"
#include "device/cuda/kernels/rows.cu"
#include "device/cuda/kernels/softmax.cu"
#include "device/cuda/kernels/update.cu"

#include "device/cuda/kernels/adapt.cu"
#include "device/cuda/kernels/attention.cu"
#include "device/cuda/kernels/broadcast.cu"
#include "device/cuda/kernels/cast.cu"
#include "device/cuda/kernels/choice.cu"
#include "device/cuda/kernels/dropout.cu"
#include "device/cuda/kernels/index.cu"
#include "device/cuda/kernels/recurrent.cu"
