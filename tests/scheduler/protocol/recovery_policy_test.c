#include "scheduler/protocol/recovery_policy.h"

#include "tests/support/check.h"

#define WORKERS 3
#define MILLISECOND ((uint64_t)1000000)
#define GRACE (30 * MILLISECOND)

typedef struct scene {
    pen_arena *arena;
    pen_recovery *recovery;
    uint64_t now;
    bool is_missing[WORKERS + 1]; // as the failure said
    bool is_present[WORKERS + 1];
    bool spares[2];
    pen_recovery_decision decision;
} scene;

static scene new_scene(pen_recovery_on_loss on_loss) {
    scene s = {.arena = check_arena(), .now = 5 * MILLISECOND, .is_present = {1, 1, 1, 1}};
    const pen_recovery_options options = {
        .on_loss = on_loss, .grace = GRACE, .attempts = 3, .worker_count = WORKERS};
    CHECK_OK(pen_recovery_new(&options, s.arena, &s.recovery));
    return s;
}

static pen_recovery_situation situation(const scene *s) {
    return (pen_recovery_situation){
        .now = s->now, .is_present = s->is_present, .spare_count = 2, .spare_is_free = s->spares};
}

static void fail_at(scene *s, uint64_t done) {
    pen_recovery_note_failure(s->recovery, s->now, done, s->is_missing);
}

static void lose(scene *s, uint32_t worker, uint64_t done) {
    s->is_missing[worker] = true;
    s->is_present[worker] = false;
    fail_at(s, done);
    s->is_missing[worker] = false;
}

static void decide(scene *s, pen_recovery_decision_kind kind) {
    const pen_recovery_situation now = situation(s);
    pen_recovery_decide(s->recovery, &now, &s->decision);
    CHECK(s->decision.kind == kind, "%u, not %u: %s", (unsigned)s->decision.kind, (unsigned)kind,
          s->decision.text);
    CHECK(s->decision.text[0] != 0, "it says what is done");
}

static void wait_until(scene *s, uint64_t until, uint32_t worker) {
    decide(s, PEN_RECOVERY_WAIT);
    CHECK(s->decision.until == until && s->decision.worker == worker, "until %u, worker %u",
          (unsigned)s->decision.until, s->decision.worker);
}

static bool takes_back(scene *s) {
    const pen_recovery_situation now = situation(s);
    return pen_recovery_takes_back(s->recovery, &now);
}

static void starts_again_when_all_are_there(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_WAIT);
    fail_at(&s, 4);
    decide(&s, PEN_RECOVERY_RESTART);
    s.now += MILLISECOND;
    lose(&s, 2, 7);
    wait_until(&s, s.now + GRACE, 2);
    s.now += GRACE - 1;
    s.is_present[2] = true;
    decide(&s, PEN_RECOVERY_RESTART);
    pen_arena_destroy(s.arena);
}

static void waiting_ends_with_the_grace(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_WAIT);
    lose(&s, 2, 1);
    const uint64_t lost_at = s.now;
    s.now += GRACE / 2;
    s.is_present[3] = false; // another one, later
    wait_until(&s, s.now + GRACE, 2);
    s.is_present[3] = true;
    s.now = lost_at + GRACE - 1;
    wait_until(&s, lost_at + GRACE, 2);
    s.now = lost_at + GRACE;
    decide(&s, PEN_RECOVERY_STOP);
    CHECK(strstr(s.decision.text, "worker 2 did not come back") != NULL, "%s", s.decision.text);
    pen_arena_destroy(s.arena);
}

static void stopping_is_at_once(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_STOP);
    fail_at(&s, 1);
    decide(&s, PEN_RECOVERY_STOP);
    CHECK(strstr(s.decision.text, "on_loss") != NULL, "%s", s.decision.text);
    pen_arena_destroy(s.arena);
}

static void spares_take_the_places_of_the_lost(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_SPARE);
    s.spares[0] = s.spares[1] = true;
    s.is_missing[1] = true;
    s.is_present[1] = false;
    lose(&s, 3, 1);
    wait_until(&s, s.now + GRACE, 1);
    s.now += GRACE;
    decide(&s, PEN_RECOVERY_USE_SPARE);
    CHECK(s.decision.worker == 1 && s.decision.spare == 0, "the first for the first");
    s.is_present[1] = true;
    s.spares[0] = false;
    decide(&s, PEN_RECOVERY_USE_SPARE);
    CHECK(s.decision.worker == 3 && s.decision.spare == 1, "the next for the next");
    s.is_present[3] = true;
    s.spares[1] = false;
    decide(&s, PEN_RECOVERY_RESTART);
    CHECK(!pen_recovery_is_left_out(s.recovery, 1) && !takes_back(&s), "nobody is left out");
    lose(&s, 2, 2);
    s.now += GRACE;
    s.is_missing[1] = false;
    decide(&s, PEN_RECOVERY_STOP);
    CHECK(strstr(s.decision.text, "spares that are there: 0") != NULL, "%s", s.decision.text);
    pen_arena_destroy(s.arena);
}

static void the_rest_goes_on_and_takes_the_lost_back(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_REPLAN);
    lose(&s, 2, 9);
    s.now += GRACE;
    decide(&s, PEN_RECOVERY_REPLAN);
    CHECK(pen_recovery_is_left_out(s.recovery, 2) && !pen_recovery_is_left_out(s.recovery, 1),
          "who");
    CHECK(!takes_back(&s), "it is away");
    fail_at(&s, 10);
    decide(&s, PEN_RECOVERY_RESTART); // without waiting for worker 2
    s.is_present[2] = true;
    CHECK(takes_back(&s), "it is here again");
    CHECK(!pen_recovery_is_left_out(s.recovery, 2) && !takes_back(&s), "once");
    lose(&s, 2, 11);
    s.now += GRACE;
    decide(&s, PEN_RECOVERY_REPLAN);
    s.is_present[2] = true;
    CHECK(!takes_back(&s), "it was lost twice: not at once");
    s.now += PEN_RECOVERY_BACKOFF_LIMIT;
    CHECK(takes_back(&s), "later");
    for (uint32_t i = 3; i < 20; i++) {
        lose(&s, 2, 20 + i);
        s.now += GRACE;
        decide(&s, PEN_RECOVERY_REPLAN);
        s.is_present[2] = true;
        const uint32_t doublings = i < 10 ? i - 2 : 8;
        s.now += (PEN_RECOVERY_BACKOFF_LIMIT << doublings) - 1;
        CHECK(!takes_back(&s), "time %u", i);
        s.now += 1;
        CHECK(takes_back(&s), "time %u", i);
    }
    s.is_present[1] = s.is_present[2] = s.is_present[3] = false;
    s.is_missing[1] = s.is_missing[3] = true;
    lose(&s, 2, 100);
    s.now += GRACE;
    decide(&s, PEN_RECOVERY_STOP);
    CHECK(strstr(s.decision.text, "no worker") != NULL, "%s", s.decision.text);
    pen_arena_destroy(s.arena);
}

static void several_are_left_out_at_once(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_REPLAN);
    s.is_present[1] = false;
    lose(&s, 3, 9);
    wait_until(&s, s.now + GRACE, 1);
    s.now += GRACE;
    decide(&s, PEN_RECOVERY_REPLAN);
    CHECK(strstr(s.decision.text, "and others") != NULL, "%s", s.decision.text);
    CHECK(pen_recovery_is_left_out(s.recovery, 1) && pen_recovery_is_left_out(s.recovery, 3),
          "both");
    pen_arena_destroy(s.arena);
}

static void attempts_without_a_step_come_slower_and_end(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_WAIT);
    fail_at(&s, 0);
    decide(&s, PEN_RECOVERY_RESTART); // no recovery came before it
    fail_at(&s, 0);
    wait_until(&s, s.now + 100 * MILLISECOND, 0);
    s.now += 100 * MILLISECOND;
    decide(&s, PEN_RECOVERY_RESTART);
    fail_at(&s, 0);
    wait_until(&s, s.now + 200 * MILLISECOND, 0);
    s.now += 200 * MILLISECOND;
    decide(&s, PEN_RECOVERY_RESTART);
    fail_at(&s, 0);
    decide(&s, PEN_RECOVERY_STOP);
    CHECK(strstr(s.decision.text, "3 recoveries") != NULL, "%s", s.decision.text);
    fail_at(&s, 1);
    decide(&s, PEN_RECOVERY_RESTART);
    pen_arena_destroy(s.arena);
}

static void the_pause_has_a_limit(void **state) {
    (void)state;
    pen_recovery_options options = {
        .on_loss = PEN_RECOVERY_ON_LOSS_REPLAN, .attempts = UINT32_MAX, .worker_count = WORKERS};
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_WAIT);
    CHECK_OK(pen_recovery_new(&options, s.arena, &s.recovery));
    uint64_t last = 0;
    for (uint32_t i = 0; i < 100; i++) {
        fail_at(&s, 0);
        if (i > 0) {
            decide(&s, PEN_RECOVERY_WAIT);
            const uint64_t pause = s.decision.until - s.now;
            CHECK(pause >= last && pause <= 5000 * MILLISECOND, "%u", (unsigned)i);
            last = pause;
            s.now = s.decision.until;
        }
        decide(&s, PEN_RECOVERY_RESTART);
    }
    CHECK(last == 5000 * MILLISECOND, "the longest");
    pen_arena_destroy(s.arena);
}

// Steps are done, but always the same ones.
static void going_round_in_circles_ends(void **state) {
    (void)state;
    scene s = new_scene(PEN_RECOVERY_ON_LOSS_WAIT);
    for (uint32_t i = 0; i < 30; i++) {
        fail_at(&s, 53);
        decide(&s, PEN_RECOVERY_RESTART);
    }
    fail_at(&s, 52);
    decide(&s, PEN_RECOVERY_STOP);
    CHECK(strstr(s.decision.text, "before step 54") != NULL, "%s", s.decision.text);
    pen_arena_destroy(s.arena);
}

static void what_comes_again_is_not_tried_again(void **state) {
    (void)state;
    static const pen_status_code final[] = {PEN_INVALID_INPUT, PEN_NOT_FINITE, PEN_CANCELLED};
    static const pen_status_code passing[] = {PEN_CORRUPT,       PEN_UNAVAILABLE, PEN_DEADLINE,
                                              PEN_OUT_OF_MEMORY, PEN_IO,          PEN_NO_STORAGE,
                                              PEN_INTERNAL};
    for (size_t i = 0; i < sizeof final / sizeof *final; i++) {
        CHECK(!pen_recovery_may_help(final[i]), "%s", pen_status_code_name(final[i]));
    }
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        CHECK(pen_recovery_may_help(passing[i]), "%s", pen_status_code_name(passing[i]));
    }
}

PEN_TEST_MAIN(cmocka_unit_test(starts_again_when_all_are_there),
              cmocka_unit_test(what_comes_again_is_not_tried_again),
              cmocka_unit_test(waiting_ends_with_the_grace), cmocka_unit_test(stopping_is_at_once),
              cmocka_unit_test(spares_take_the_places_of_the_lost),
              cmocka_unit_test(the_rest_goes_on_and_takes_the_lost_back),
              cmocka_unit_test(several_are_left_out_at_once),
              cmocka_unit_test(attempts_without_a_step_come_slower_and_end),
              cmocka_unit_test(the_pause_has_a_limit),
              cmocka_unit_test(going_round_in_circles_ends))
