#include "tests/cuda/emulator.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

// No power of two: the tops of stacks would share few lines of a cache.
#define EMULATOR_STACK_BYTES (((size_t)64 << 10) + 448)
#define EMULATOR_THREADS 1024u
#define EMULATOR_WARP 32u

typedef enum fiber_state {
    FIBER_READY,
    FIBER_AT_BARRIER,
    FIBER_AT_EXCHANGE,
    FIBER_ENDED
} fiber_state;

// What the compiler's own jumps need: those of the C library also look for handlers of cleanup, for
// longer than a thread of a small kernel runs.
typedef void *fiber_place[5];

// A thread of a block. Fibers are made once, and run a thread of each later block.
typedef struct fiber {
    fiber_place place; // where it goes on
    bool was_begun;
    fiber_state state;
    uint32_t index;
    float given, taken; // in an exchange
    uint32_t from;
} fiber;

emulated_size emulated_block, emulated_grid;
uint32_t emulated_thread, emulated_threads;

static emulated_kernel *kernels;
static fiber fibers[EMULATOR_THREADS];
static char *stacks;
static fiber *current;
static fiber_place scheduler;
static const emulated_kernel *running;
static const void *running_args;

uint64_t emulator_tag, emulator_tag_bits;

void emulator_reach(void *words, size_t bytes) {
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (uint8_t *)words + at, sizeof word);
        if (emulator_tag == 0 || (word & emulator_tag_bits) != emulator_tag) continue;
        word &= ~emulator_tag_bits;
        memcpy((uint8_t *)words + at, &word, sizeof word);
    }
}

void emulator_register(emulated_kernel *kernel) {
    kernel->next = kernels;
    kernels = kernel;
}

const emulated_kernel *emulator_find(const char *name) {
    for (const emulated_kernel *k = kernels; k != NULL; k = k->next)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

// ---- fibers: begun as contexts are, then left and entered by jumps, which ask the kernel nothing

// A call of its own: a compiler sees no way back from a jump in the function that notes the place.
static __attribute__((noinline, noreturn)) void fiber_jump(fiber_place place) {
    __builtin_longjmp(place, 1);
}

static __attribute__((noinline)) void fiber_leave(fiber_state state) {
    current->state = state;
    if (__builtin_setjmp(current->place) == 0) fiber_jump(scheduler);
}

static void fiber_main(void) {
    for (;;) {
        running->run(running_args);
        fiber_leave(FIBER_ENDED);
    }
}

static void fiber_begin(fiber *one) {
    static ucontext_t context;
    one->was_begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + one->index * EMULATOR_STACK_BYTES;
    context.uc_stack.ss_size = EMULATOR_STACK_BYTES;
    context.uc_link = NULL;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

static __attribute__((noinline)) void fiber_enter(fiber *one) {
    current = one;
    emulated_thread = one->index;
    if (__builtin_setjmp(scheduler) != 0) return;
    if (one->was_begun) fiber_jump(one->place);
    fiber_begin(one);
}

void emulator_barrier(void) {
    fiber_leave(FIBER_AT_BARRIER);
}

float emulator_from_lane(float v, uint32_t lane) {
    current->given = v;
    current->from = lane;
    fiber_leave(FIBER_AT_EXCHANGE);
    return current->taken;
}

// ---- blocks

// Of shared memory that a kernel declares, the linker makes one part.
extern char __start_emulated_shared[] __attribute__((weak));
extern char __stop_emulated_shared[] __attribute__((weak));

static void emulator_spoil_shared(void) {
    if (__start_emulated_shared == NULL) return;
    memset(__start_emulated_shared, 0xff,
           (size_t)(__stop_emulated_shared - __start_emulated_shared));
}

// Runs the threads of a warp until all have ended or are at a barrier.
static const char *emulator_run_warp(fiber *warp, uint32_t count, emulator_order order) {
    for (;;) {
        uint32_t exchanging = 0;
        for (uint32_t k = 0; k < count; k++) {
            fiber *one = &warp[order == EMULATOR_BACKWARDS ? count - 1 - k : k];
            if (one->state == FIBER_READY) fiber_enter(one);
        }
        for (uint32_t k = 0; k < count; k++)
            exchanging += warp[k].state == FIBER_AT_EXCHANGE;
        if (exchanging == 0) return NULL;
        if (exchanging != count) return "an exchange that some threads of a warp never reach";
        for (uint32_t k = 0; k < count; k++) {
            fiber *one = &warp[k];
            one->taken = one->from < count ? warp[one->from].given : one->given;
            one->state = FIBER_READY;
        }
    }
}

static const char *emulator_run_block(uint32_t threads, emulator_order order) {
    static uint32_t turn;
    const uint32_t warps = (threads + EMULATOR_WARP - 1) / EMULATOR_WARP;
    emulator_spoil_shared();
    for (uint32_t i = 0; i < threads; i++) {
        fibers[i].index = i;
        fibers[i].state = FIBER_READY;
    }
    for (;;) {
        uint32_t waiting = 0, ended = 0;
        turn += 1;
        for (uint32_t i = 0; i < warps; i++) {
            const uint32_t warp = order == EMULATOR_FORWARDS    ? i
                                  : order == EMULATOR_BACKWARDS ? warps - 1 - i
                                                                : (i + turn) % warps;
            const uint32_t first = warp * EMULATOR_WARP, rest = threads - first;
            const char *wrong = emulator_run_warp(
                &fibers[first], rest < EMULATOR_WARP ? rest : EMULATOR_WARP, order);
            if (wrong != NULL) return wrong;
        }
        for (uint32_t i = 0; i < threads; i++) {
            waiting += fibers[i].state == FIBER_AT_BARRIER;
            ended += fibers[i].state == FIBER_ENDED;
        }
        if (ended == threads) return NULL;
        if (waiting != threads) return "a barrier that some threads of a block never reach";
        for (uint32_t i = 0; i < threads; i++)
            fibers[i].state = FIBER_READY;
    }
}

// A fiber that is left in the middle begins anew, since what it was in is gone.
static void emulator_forget_fibers(void) {
    for (uint32_t i = 0; i < EMULATOR_THREADS; i++)
        fibers[i].was_begun = false;
}

const char *emulator_launch(const emulated_kernel *kernel, emulated_size grid, uint32_t threads,
                            const void *args, emulator_order order) {
    if (threads == 0 || threads > EMULATOR_THREADS) return "a block of too many threads, or none";
    if (stacks == NULL) {
        stacks = mmap(NULL, EMULATOR_STACK_BYTES * EMULATOR_THREADS, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED) stacks = NULL;
        if (stacks == NULL) return "no memory for the stacks of threads";
    }
    running = kernel;
    running_args = args;
    emulated_grid = grid;
    emulated_threads = threads;
    const uint64_t count = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t i = 0; i < count; i++) {
        emulated_block = (emulated_size){(uint32_t)(i % grid.x), (uint32_t)(i / grid.x % grid.y),
                                         (uint32_t)(i / grid.x / grid.y)};
        const char *wrong = emulator_run_block(threads, order);
        if (wrong == NULL) continue;
        emulator_forget_fibers();
        return wrong;
    }
    return NULL;
}
