// Runs kernels of the cuda device on the host: words.cuh's words for a C compiler.
//
// Blocks run one after the other, a block's threads as fibers: each warp as far as it gets before
// the next one runs at all, so that what a missing barrier would let happen does happen. The order
// of warps and lanes is a choice. Shared memory begins as what is not a number in each block.
//
// Threads: one launch at a time in a process.
#ifndef PEN_TESTS_CUDA_EMULATOR_H
#define PEN_TESTS_CUDA_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct emulated_size {
    uint32_t x, y, z;
} emulated_size;

typedef struct emulated_kernel emulated_kernel;
struct emulated_kernel {
    const char *name;
    void (*run)(const void *args);
    size_t args_bytes;
    emulated_kernel *next;
};

typedef enum emulator_order {
    EMULATOR_FORWARDS,
    EMULATOR_BACKWARDS,
    EMULATOR_ROTATED, // another warp first each time
} emulator_order;

// What a driver's addresses have in their uppermost bits, which the host's have not. 0: nothing.
extern uint64_t emulator_tag, emulator_tag_bits;

// NULL: there is none of that name.
const emulated_kernel *emulator_find(const char *name);

// Runs a kernel in all blocks of a grid. NULL, or what went wrong: a barrier or an exchange between
// lanes that some threads never reach, a block of too many threads.
const char *emulator_launch(const emulated_kernel *kernel, emulated_size grid, uint32_t threads,
                            const void *args, emulator_order order);

// ---- what kernels are written in; see device/cuda/kernels/words.cuh
#define PEN_CUDA_KERNEL_CODE

extern emulated_size emulated_block, emulated_grid;
extern uint32_t emulated_thread, emulated_threads;
void emulator_register(emulated_kernel *kernel);
void emulator_barrier(void);
float emulator_from_lane(float v, uint32_t lane);

// The kernel, what calls it, and its entry in the list.
#define KERNEL(kernel, args)                                                                       \
    static void kernel(const struct args a);                                                       \
    static void kernel##_call(const void *given) {                                                 \
        kernel(*(const struct args *)given);                                                       \
    }                                                                                              \
    __attribute__((constructor)) static void kernel##_register(void) {                             \
        static emulated_kernel entry = {#kernel, kernel##_call, sizeof(struct args), NULL};        \
        emulator_register(&entry);                                                                 \
    }                                                                                              \
    static void kernel(const struct args a)
#define DEVICE static inline __attribute__((unused))
#define SHARED static __attribute__((section("emulated_shared")))
#define BLOCK_X emulated_block.x
#define BLOCK_Y emulated_block.y
#define BLOCK_Z emulated_block.z
#define BLOCKS_X emulated_grid.x
#define THREAD emulated_thread
#define THREADS emulated_threads
#define UNROLLED _Pragma("GCC unroll 4")
#define barrier() emulator_barrier()
#define from_lane_xor(v, o) emulator_from_lane(v, emulated_thread % 32 ^ (uint32_t)(o))
#define multiply_add(x, y, z) __builtin_fmaf(x, y, z)
#define square_root(x) __builtin_sqrtf(x)
#define wide_square_root(x) __builtin_sqrt(x)

static inline float float_of_bits(uint32_t bits) {
    const union {
        uint32_t bits;
        float number;
    } both = {.bits = bits};
    return both.number;
}
static inline uint32_t bits_of_float(float number) {
    const union {
        float number;
        uint32_t bits;
    } both = {.number = number};
    return both.bits;
}
static inline void raise_to(uint32_t *p, uint32_t value) {
    if (value > *p) *p = value;
}
// Addresses of the fake driver's memory have bits of their own.
void emulator_reach(void *words, size_t bytes);
#define reach(a) emulator_reach(&(a), sizeof(a))

#endif // PEN_TESTS_CUDA_EMULATOR_H
