#include "base/thread.h"

#include "tests/support/check.h"

#include "base/clock.h"
#include "base/memory.h"

#define ROUNDS 2000

// Two threads that hand a number to each other, turn by turn.
typedef struct ping {
    pen_mutex mutex;
    pen_condition changed;
    int number; // guarded by mutex; the thread adds to odd ones
} ping;

static void ping_add(ping *game, int parity) {
    for (int i = 0; i < ROUNDS; i++) {
        pen_mutex_lock(&game->mutex);
        while (game->number % 2 != parity) {
            pen_condition_wait(&game->changed, &game->mutex);
        }
        game->number += 1;
        pen_condition_broadcast(&game->changed);
        pen_mutex_unlock(&game->mutex);
    }
}

static void ping_thread(void *context) {
    ping_add(context, 1);
}

static void threads_take_turns(void **state) {
    (void)state;
    ping game = {.number = 0};
    pen_mutex_init(&game.mutex);
    pen_condition_init(&game.changed);
    pen_thread *thread = NULL;
    CHECK_OK(pen_thread_create("a name longer than the kernel keeps", ping_thread, &game, &thread));
    ping_add(&game, 0);
    pen_thread_join(thread);
    assert_int_equal(game.number, 2 * ROUNDS);
    pen_condition_deinit(&game.changed);
    pen_mutex_deinit(&game.mutex);
}

static void no_memory_no_thread(void **state) {
    (void)state;
    pen_thread *thread = NULL;
    pen_memory_fail_at(1, 1);
    const pen_status status = pen_thread_create("x", ping_thread, NULL, &thread);
    pen_memory_fail_at(0, 0);
    CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "out of memory");
    pen_thread_join(thread);
}

static void the_clock_does_not_go_back(void **state) {
    (void)state;
    double last = pen_clock_seconds();
    for (int i = 0; i < 1000; i++) {
        const double now = pen_clock_seconds();
        CHECK(now >= last, "%.9f after %.9f", now, last);
        last = now;
    }
}

static void a_pause_lasts(void **state) {
    (void)state;
    const double seconds[] = {0, 0.003, 1.02};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        const double began = pen_clock_seconds();
        pen_clock_pause(seconds[i]);
        const double passed = pen_clock_seconds() - began;
        CHECK(passed >= seconds[i], "%.6f s instead of %.6f s", passed, seconds[i]);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(threads_take_turns), cmocka_unit_test(no_memory_no_thread),
              cmocka_unit_test(the_clock_does_not_go_back), cmocka_unit_test(a_pause_lasts))
