#include "scheduler/data/decode_team.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/support/check.h"

#define PIECES 300

typedef struct work {
    atomic_int done[PIECES];
    atomic_int at_once, at_once_most;
    atomic_int used[2 * PEN_DECODE_THREADS_LIMIT]; // by a piece that is under way
    atomic_int nice_least, nice_most;
    uint64_t fails_from;
} work;

static void keep_most(atomic_int *most, int value) {
    int known = atomic_load(most);
    while (value > known && !atomic_compare_exchange_weak(most, &known, value)) {
    }
}

static bool work_piece(void *context, uint32_t member, uint64_t place) {
    work *w = context;
    assert_int_equal(atomic_fetch_add(&w->used[member], 1), 0);
    keep_most(&w->at_once_most, atomic_fetch_add(&w->at_once, 1) + 1);
    const int priority = getpriority(PRIO_PROCESS, 0); // of this thread
    keep_most(&w->nice_most, priority);
    keep_most(&w->nice_least, -priority); // its negative
    atomic_fetch_add(&w->done[place], 1);
    usleep(200);
    atomic_fetch_sub(&w->at_once, 1);
    atomic_fetch_sub(&w->used[member], 1);
    return place < w->fails_from;
}

static void work_init(work *w, uint64_t fails_from) {
    memset(w, 0, sizeof *w);
    w->fails_from = fails_from;
    w->nice_least = w->nice_most = -100;
}

static void each_piece_is_done_once_by_so_many_threads(void **state) {
    (void)state;
    static const uint32_t thread_counts[] = {1, 2, 5};
    for (size_t i = 0; i < 3; i++) {
        pen_decode_team *team;
        static work w;
        CHECK_OK(pen_decode_team_create(thread_counts[i], &team));
        assert_int_equal(pen_decode_team_member_count(team), 2 * thread_counts[i]);
        for (int run = 0; run < 3; run++) {
            work_init(&w, UINT64_MAX);
            pen_decode_team_run(team, run == 1 ? 0 : PIECES, work_piece, &w);
            for (size_t p = 0; p < PIECES; p++)
                assert_int_equal(w.done[p], run == 1 ? 0 : 1);
            assert_true(w.at_once_most <= (int)thread_counts[i]);
        }
        pen_decode_team_destroy(team);
    }
}

// What was begun before the one that failed is done all the same.
static void nothing_is_begun_after_a_failure(void **state) {
    (void)state;
    pen_decode_team *team;
    static work w;
    CHECK_OK(pen_decode_team_create(3, &team));
    work_init(&w, 40);
    pen_decode_team_run(team, PIECES, work_piece, &w);
    for (size_t p = 0; p <= 40; p++)
        assert_int_equal(w.done[p], 1);
    for (size_t p = 40 + 3; p < PIECES; p++)
        assert_int_equal(w.done[p], 0);
    pen_decode_team_destroy(team);
}

static void threads_stand_back_unless_somebody_waits(void **state) {
    (void)state;
    pen_decode_team *team;
    static work w;
    const int usual = getpriority(PRIO_PROCESS, 0);
    const int back = usual + 10 < 19 ? usual + 10 : 19;
    CHECK_OK(pen_decode_team_create(2, &team));
    pen_decode_team_hurry(NULL, true);
    for (int hurries = 1; hurries >= 0; hurries--) {
        pen_decode_team_hurry(team, hurries == 1);
        work_init(&w, UINT64_MAX);
        pen_decode_team_run(team, 50, work_piece, &w);
        assert_int_equal(w.nice_most, hurries == 1 ? usual : back);
        assert_int_equal(-w.nice_least, hurries == 1 ? usual : back);
    }
    assert_int_equal(getpriority(PRIO_PROCESS, 0), usual);
    pen_decode_team_destroy(team);
}

typedef struct flips {
    pen_decode_team *team;
    atomic_bool ended;
} flips;

static void flip(void *context) {
    flips *f = context;
    for (int i = 0; !atomic_load(&f->ended); i++) {
        pen_decode_team_hurry(f->team, i % 2 == 0);
        usleep(50);
    }
}

static void hurrying_at_any_time_loses_no_piece(void **state) {
    (void)state;
    static work w;
    flips f = {NULL, false};
    pen_thread *thread;
    CHECK_OK(pen_decode_team_create(2, &f.team));
    CHECK_OK(pen_thread_create("flips", flip, &f, &thread));
    for (int run = 0; run < 10; run++) {
        work_init(&w, UINT64_MAX);
        pen_decode_team_run(f.team, PIECES / 3, work_piece, &w);
        for (size_t p = 0; p < PIECES / 3; p++)
            assert_int_equal(w.done[p], 1);
        assert_true(w.at_once_most <= 4);
    }
    atomic_store(&f.ended, true);
    pen_thread_join(thread);
    pen_decode_team_destroy(f.team);
}

PEN_TEST_MAIN(cmocka_unit_test(each_piece_is_done_once_by_so_many_threads),
              cmocka_unit_test(nothing_is_begun_after_a_failure),
              cmocka_unit_test(threads_stand_back_unless_somebody_waits),
              cmocka_unit_test(hurrying_at_any_time_loses_no_piece))
