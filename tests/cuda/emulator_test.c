// Kernels run in every order of threads, and mistakes that are planted in them are found.
#include "tests/cuda/emulator.h"

#include <string.h>

#include "device/cuda/kernels/cuda_args.h"
#include "tests/support/check.h"

#define COUNT 300
#define BLOCK 128

struct turn_args {
    const float *x;
    float *y;
    uint32_t count;
};

// Turns each block's part of x around.
KERNEL(turn, turn_args) {
    SHARED float room[BLOCK];
    const uint32_t i = BLOCK_X * BLOCK + THREAD;
    room[THREAD] = i < a.count ? a.x[i] : 0;
    barrier();
    if (i < a.count) a.y[i] = room[BLOCK - 1 - THREAD];
}

// The same without the barrier.
KERNEL(turn_early, turn_args) {
    SHARED float room[BLOCK];
    const uint32_t i = BLOCK_X * BLOCK + THREAD;
    room[THREAD] = i < a.count ? a.x[i] : 0;
    if (i < a.count) a.y[i] = room[BLOCK - 1 - THREAD];
}

// Threads without an element leave before the barrier.
KERNEL(turn_and_leave, turn_args) {
    SHARED float room[BLOCK];
    const uint32_t i = BLOCK_X * BLOCK + THREAD;
    if (i >= a.count) return;
    room[THREAD] = a.x[i];
    barrier();
    a.y[i] = room[BLOCK - 1 - THREAD];
}

// Writes shared memory again while other warps may still read it.
KERNEL(turn_twice, turn_args) {
    SHARED float room[BLOCK];
    const uint32_t i = BLOCK_X * BLOCK + THREAD;
    float x = i < a.count ? a.x[i] : 0;
    for (uint32_t round = 0; round < 2; round++) {
        room[THREAD] = x;
        barrier();
        x = room[BLOCK - 1 - THREAD];
    }
    if (i < a.count) a.y[i] = x;
}

// Only half a warp takes part in an exchange.
KERNEL(exchange_of_some, turn_args) {
    if (THREAD % 32 < 16 && THREAD < a.count) a.y[THREAD] = from_lane_xor(a.x[THREAD], 1);
}

KERNEL(exchange, turn_args) {
    const uint32_t i = BLOCK_X * BLOCK + THREAD;
    const float other = from_lane_xor(i < a.count ? a.x[i] : -1.0f, 3);
    if (i < a.count) a.y[i] = other;
}

static float numbers[BLOCK * 3], found[BLOCK * 3];

static const char *run(const char *name, uint32_t count, emulator_order order) {
    const emulated_kernel *kernel = emulator_find(name);
    CHECK(kernel != NULL, "no kernel %s", name);
    const struct turn_args args = {numbers, found, count};
    memset(found, 0xff, sizeof found);
    for (uint32_t i = 0; i < BLOCK * 3; i++)
        numbers[i] = (float)i;
    return emulator_launch(kernel, (emulated_size){3, 1, 1}, BLOCK, &args, order);
}

static uint32_t wrong_turns(uint32_t count) {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = i / BLOCK * BLOCK + BLOCK - 1 - i % BLOCK;
        wrong += !(found[i] == (from < count ? numbers[from] : 0));
    }
    return wrong;
}

static void right_kernels_run_in_every_order(void **state) {
    (void)state;
    for (int order = EMULATOR_FORWARDS; order <= EMULATOR_ROTATED; order++) {
        const char *wrong = run("turn", COUNT, (emulator_order)order);
        CHECK(wrong == NULL, "order %d: %s", order, wrong);
        CHECK(wrong_turns(COUNT) == 0, "order %d: %u wrong", order, wrong_turns(COUNT));
        wrong = run("exchange", COUNT, (emulator_order)order);
        CHECK(wrong == NULL, "order %d: %s", order, wrong);
        for (uint32_t i = 0; i < COUNT; i++) {
            const float expected = (i ^ 3) < COUNT ? numbers[i ^ 3] : -1;
            CHECK(found[i] == expected, "order %d: %g at %u", order, (double)found[i], i);
        }
    }
}

static void missing_barriers_are_found(void **state) {
    (void)state;
    for (int order = EMULATOR_FORWARDS; order <= EMULATOR_ROTATED; order++) {
        CHECK(run("turn_early", COUNT, (emulator_order)order) == NULL, "order %d", order);
        CHECK(wrong_turns(COUNT) > 0, "order %d does not find it", order);
    }
    uint32_t finders = 0;
    for (int order = EMULATOR_FORWARDS; order <= EMULATOR_ROTATED; order++) {
        CHECK(run("turn_twice", BLOCK * 3, (emulator_order)order) == NULL, "order %d", order);
        for (uint32_t i = 0; i < BLOCK * 3; i++) {
            if (found[i] == numbers[i]) continue;
            finders += 1;
            break;
        }
    }
    CHECK(finders > 0, "no order finds memory that is written too early");
}

static void what_not_all_threads_reach_is_an_error(void **state) {
    (void)state;
    for (int order = EMULATOR_FORWARDS; order <= EMULATOR_ROTATED; order++) {
        const char *wrong = run("turn_and_leave", COUNT, (emulator_order)order);
        CHECK(wrong != NULL && strstr(wrong, "a barrier that some") != NULL, "order %d", order);
        wrong = run("exchange_of_some", BLOCK, (emulator_order)order);
        CHECK(wrong != NULL && strstr(wrong, "an exchange that some") != NULL, "order %d", order);
        wrong = run("turn", COUNT, (emulator_order)order); // and all is well again
        CHECK(wrong == NULL && wrong_turns(COUNT) == 0, "order %d", order);
    }
    const emulated_kernel *turn = emulator_find("turn");
    const struct turn_args args = {numbers, found, 0};
    CHECK(emulator_launch(turn, (emulated_size){1, 1, 1}, 2000, &args, EMULATOR_FORWARDS) != NULL,
          "a block of 2000 threads");
    CHECK(emulator_find("no such") == NULL, "found");
}

PEN_TEST_MAIN(cmocka_unit_test(right_kernels_run_in_every_order),
              cmocka_unit_test(missing_barriers_are_found),
              cmocka_unit_test(what_not_all_threads_reach_is_an_error))
