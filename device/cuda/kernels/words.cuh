// The words in which kernels of the cuda device are written: a subset of C11 that is CUDA C++, too.
//
//   KERNEL(name, args)   a kernel; its one argument, struct args, is called `a`
//   DEVICE               a function that kernels call
//   SHARED               memory of a block, whose contents nobody has set
//   BLOCK_X, BLOCK_Y, BLOCK_Z, BLOCKS_X, THREAD, THREADS    where one stands
//   UNROLLED             before a loop of few turns that are known: what it indexes are registers
//   barrier()            which all threads of a block reach
//   from_lane_xor(v, o)  v of the lane of this warp whose number differs in the bits of o; all call
//                        it
//   multiply_add(x, y, z)   rounded once
//   square_root(x)       rounded correctly; wide_square_root(x) of a double
//   float_of_bits(u), bits_of_float(x)
//   raise_to(p, u)       *p = max(*p, u), whoever else does so
//   reach(a)             after a struct was read from the device's memory: its pointers can be used
//
// Here they are for clang, which needs nothing of NVIDIA's: clang -x cuda -nocudainc -nocudalib.
// tests/cuda/emulator.h has them for a C compiler, whose kernels run on the host. Arithmetic is
// rounded operation by operation on both, so that results have the same bits.
#ifndef PEN_CUDA_KERNEL_CODE
#define PEN_CUDA_KERNEL_CODE

typedef unsigned int uint32_t;
typedef signed int int32_t;
typedef unsigned long long uint64_t;
typedef signed long long int64_t;

#define KERNEL(name, args) extern "C" __attribute__((global)) void name(const struct args a)
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED __attribute__((shared))
#define BLOCK_X ((uint32_t)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCK_Y ((uint32_t)__nvvm_read_ptx_sreg_ctaid_y())
#define BLOCK_Z ((uint32_t)__nvvm_read_ptx_sreg_ctaid_z())
#define BLOCKS_X ((uint32_t)__nvvm_read_ptx_sreg_nctaid_x())
#define THREAD ((uint32_t)__nvvm_read_ptx_sreg_tid_x())
#define THREADS ((uint32_t)__nvvm_read_ptx_sreg_ntid_x())
#define UNROLLED _Pragma("unroll")
#define barrier() __syncthreads()
#define from_lane_xor(v, o) __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, o, 31)
#define multiply_add(x, y, z) __nvvm_fma_rn_f(x, y, z)
#define square_root(x) __nvvm_sqrt_rn_f(x)
#define wide_square_root(x) __nvvm_sqrt_rn_d(x)
#define float_of_bits(u) __builtin_bit_cast(float, (uint32_t)(u))
#define bits_of_float(x) __builtin_bit_cast(uint32_t, (float)(x))
#define raise_to(p, u) __nvvm_atom_max_gen_ui(p, u)
#define reach(a) (void)0

#endif // PEN_CUDA_KERNEL_CODE
