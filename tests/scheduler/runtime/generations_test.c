// Generations follow one another over the same workers, however the one before ended.

#include <sys/stat.h>

#include "base/clock.h"
#include "base/thread.h"
#include "scheduler/protocol/message.h"
#include "scheduler/store/shard.h"
#include "tests/support/check.h"
#include "tests/support/generation_case.h"
#include "tests/support/scratch.h"
#include "tests/support/station.h"

#define DESTROY_SECONDS 10.0 // far more than it takes on a busy machine, far less than leases

typedef struct numbers {
    double losses[GENERATION_ROUNDS];
    uint32_t checksum;
} numbers;

static void destroy_quickly(pen_coordinator *coordinator) {
    const double began = pen_clock_seconds();
    pen_coordinator_destroy(coordinator);
    const double took = pen_clock_seconds() - began;
    CHECK(took < DESTROY_SECONDS, "destroying took %.3f s", took);
}

static numbers train(generation_case *g, uint64_t generation) {
    pen_coordinator *coordinator;
    numbers found = {0};
    CHECK_OK(generation_begin(g, generation, &coordinator));
    CHECK_OK(generation_train(g, coordinator, found.losses, &found.checksum));
    assert_false(pen_coordinator_is_failed(coordinator));
    destroy_quickly(coordinator);
    return found;
}

static void compare(const numbers *expected, const numbers *found) {
    assert_memory_equal(expected->losses, found->losses, sizeof expected->losses);
    assert_int_equal(expected->checksum, found->checksum);
}

// Ends in the middle of rounds, right after them, before any, and while tensors move.
static void leave_early(generation_case *g, uint64_t generation) {
    pen_coordinator *coordinator;
    uint64_t rounds[3];
    CHECK_OK(generation_begin(g, generation, &coordinator));
    if (generation % 4 > 0) CHECK_OK(generation_write(g, coordinator));
    for (uint32_t r = 0; r < generation % 4; r++) {
        CHECK_OK(generation_begin_round(g, coordinator, &rounds[r]));
    }
    destroy_quickly(coordinator);
}

static void follow_one_another(const char *transport) {
    generation_case g;
    generation_case_init(&g, transport);
    const numbers expected = train(&g, 1);
    assert_true(expected.losses[0] > expected.losses[GENERATION_ROUNDS - 1]);
    for (uint64_t generation = 2; generation <= 11; generation++) {
        if (generation % 2 == 0) {
            leave_early(&g, generation);
        } else {
            const numbers found = train(&g, generation);
            compare(&expected, &found);
        }
    }
    generation_case_deinit(&g);
}

static void follow_one_another_in_a_process(void **unused) {
    (void)unused;
    follow_one_another("local");
}

static void follow_one_another_over_grpc(void **unused) {
    (void)unused;
    follow_one_another("grpc");
}

// A worker ends while nothing, tensors, or rounds are under way, and another takes its place.
static void lose_a_worker(const char *transport) {
    generation_case g;
    generation_case_init(&g, transport);
    const numbers expected = train(&g, 1);
    for (uint64_t generation = 2; generation <= 7; generation++) {
        const uint32_t lost = generation % 2 == 0 ? 2 : 3;
        pen_coordinator *coordinator;
        uint64_t round;
        double loss;
        CHECK_OK(generation_begin(&g, generation, &coordinator));
        if (generation > 3) CHECK_OK(generation_write(&g, coordinator));
        if (generation > 5) CHECK_OK(generation_begin_round(&g, coordinator, &round));
        generation_end_worker(&g, lost);
        pen_status status = PEN_OK;
        for (uint32_t r = 0; r < 100 && status == PEN_OK; r++) {
            status = generation_begin_round(&g, coordinator, &round);
            if (status == PEN_OK) status = generation_finish_round(&g, coordinator, round, &loss);
        }
        CHECK_ERROR(status, PEN_UNAVAILABLE, "lost worker");
        assert_true(pen_coordinator_is_failed(coordinator));
        for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
            CHECK(g.is_missing[w] == (w == lost), "worker %u is %smissing, %u was lost", w,
                  g.is_missing[w] ? "" : "not ", lost);
        }
        destroy_quickly(coordinator);
        generation_start_worker(&g, lost);
    }
    const numbers found = train(&g, 8);
    compare(&expected, &found);
    generation_case_deinit(&g);
}

static void lose_a_worker_in_a_process(void **unused) {
    (void)unused;
    lose_a_worker("local");
}

static void lose_a_worker_over_grpc(void **unused) {
    (void)unused;
    lose_a_worker("grpc");
}

// The labels of a step, of all its microbatches.
static int64_t *find_labels(const generation_case *g) {
    const pen_run_form *form = &g->spec.table->forms[0];
    for (uint32_t c = 0; c < form->channel_count; c++) {
        const bool is_fed = form->channels[c].source_worker == 0;
        if (is_fed && g->spec.forms[0].channels[c].type.element == PEN_INT64) {
            return (int64_t *)(uintptr_t)g->feeds[c];
        }
    }
    fail_msg("no labels are fed");
    return NULL;
}

// A label that is no class is told by the worker that computes with it as what it is, to all that
// ask, and who comes after it has the numbers of before.
static void is_told_of_wrong_data(const char *transport) {
    generation_case g;
    pen_coordinator *coordinator;
    uint64_t round;
    double loss;
    generation_case_init(&g, transport);
    const numbers expected = train(&g, 1);
    int64_t *labels = find_labels(&g);
    const int64_t right = labels[0];
    labels[0] = 12;
    CHECK_OK(generation_begin(&g, 2, &coordinator));
    CHECK_OK(generation_write(&g, coordinator));
    CHECK_OK(generation_begin_round(&g, coordinator, &round));
    CHECK_ERROR(generation_finish_round(&g, coordinator, round, &loss), PEN_INVALID_INPUT,
                "label 12 of target 0 is not one of");
    CHECK_ERROR(generation_begin_round(&g, coordinator, &round), PEN_INVALID_INPUT,
                "the run is over");
    destroy_quickly(coordinator);
    labels[0] = right;
    const numbers found = train(&g, 3);
    compare(&expected, &found);
    generation_case_deinit(&g);
}

static void is_told_of_wrong_data_in_a_process(void **unused) {
    (void)unused;
    is_told_of_wrong_data("local");
}

static void is_told_of_wrong_data_over_grpc(void **unused) {
    (void)unused;
    is_told_of_wrong_data("grpc");
}

// Workers that have something to save.
static uint32_t count_savers(const generation_case *g) {
    bool saves[GENERATION_WORKERS + 1] = {false};
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->spec.saved_count; i++) {
        saves[g->spec.table->forms[0].devices[g->spec.saved[i].device].worker] = true;
    }
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        count += saves[w];
    }
    return count;
}

// Shards are written, whole, while the next rounds run.
static void saves_while_it_trains(void **unused) {
    (void)unused;
    generation_case g;
    pen_coordinator *coordinator;
    double loss;
    uint64_t round;
    generation_case_init(&g, "local");
    CHECK_OK(generation_begin(&g, 1, &coordinator));
    CHECK_OK(generation_write(&g, coordinator));
    pen_coordinator_saved saved;
    pen_coordinator_poll_saved(coordinator, &saved);
    assert_int_equal(saved.state, PEN_SAVE_NONE);
    for (uint64_t step = 1; step <= 5; step++) {
        CHECK_OK(generation_begin_round(&g, coordinator, &round));
        CHECK_OK(generation_finish_round(&g, coordinator, round, &loss));
        CHECK_OK(pen_coordinator_save(coordinator, step, g.folder));
        CHECK_OK(generation_begin_round(&g, coordinator, &round));
        CHECK_OK(generation_finish_round(&g, coordinator, round, &loss));
        CHECK_OK(pen_coordinator_await_saved(coordinator, &saved));
        CHECK(saved.state == PEN_SAVE_DURABLE, "%s", saved.failure);
        assert_int_equal(saved.step, step);
        assert_int_equal(saved.summary_count, count_savers(&g));
        for (uint32_t i = 0; i < saved.summary_count; i++) {
            CHECK_OK(pen_shard_verify(pen_disk_of_machine(), g.folder, &saved.summaries[i]));
        }
        if (step % 2 == 0) {
            pen_coordinator_give_save_up(coordinator, step, PEN_IO);
        } else {
            pen_coordinator_committed(coordinator, step);
        }
    }
    destroy_quickly(coordinator);
    generation_case_deinit(&g);
}

// The caller comes for what is durable when it has time, which is not the disk's fault.
static void a_caller_may_take_its_time(void **unused) {
    (void)unused;
    generation_case g;
    pen_coordinator *coordinator;
    pen_coordinator_saved saved;
    double loss;
    uint64_t round;
    generation_case_init(&g, "local");
    g.write_seconds = 4;
    CHECK_OK(generation_begin(&g, 1, &coordinator));
    CHECK_OK(pen_coordinator_save(coordinator, 1, g.folder));
    pen_clock_pause(g.write_seconds + 1.5);
    pen_coordinator_poll_saved(coordinator, &saved);
    CHECK(saved.state == PEN_SAVE_DURABLE, "%s", saved.failure);
    for (int i = 0; i < 55; i++) { // a disk that is slow, and gets on
        pen_coordinator_keep_publishing(coordinator);
        pen_clock_pause(0.1);
    }
    pen_coordinator_committed(coordinator, 1);
    CHECK_OK(generation_begin_round(&g, coordinator, &round));
    CHECK_OK(generation_finish_round(&g, coordinator, round, &loss));
    destroy_quickly(coordinator);
    generation_case_deinit(&g);
}

// A folder in which nothing can be written: the save fails at once. One that workers do not see, or
// have no room in: it fails by itself. The training goes on.
static void a_save_that_fails_ends_alone(void **unused) {
    (void)unused;
    generation_case g;
    pen_coordinator *coordinator;
    pen_coordinator_saved saved;
    double loss;
    uint64_t round;
    generation_case_init(&g, "local");
    CHECK_OK(generation_begin(&g, 1, &coordinator));
    for (uint64_t step = 1; step <= 2; step++) {
        CHECK_ERROR(pen_coordinator_save(coordinator, step, "/dev/null/shards"), PEN_IO,
                    "cannot create the folder '/dev/null'");
        CHECK_OK(pen_coordinator_save(coordinator, step, scratch_path("elsewhere")));
        CHECK_OK(pen_coordinator_await_saved(coordinator, &saved));
        assert_int_equal(saved.state, PEN_SAVE_FAILED);
        CHECK(strstr(saved.failure, "/elsewhere' is not seen here beneath '") != NULL, "%s",
              saved.failure);
        CHECK_OK(generation_begin_round(&g, coordinator, &round));
        CHECK_OK(generation_finish_round(&g, coordinator, round, &loss));
    }
    CHECK_OK(pen_coordinator_save(coordinator, 3, g.folder));
    CHECK_OK(pen_coordinator_await_saved(coordinator, &saved));
    CHECK(saved.state == PEN_SAVE_DURABLE, "%s", saved.failure);
    pen_coordinator_committed(coordinator, 3);
    destroy_quickly(coordinator);
    generation_case_deinit(&g);
}

// Somebody who calls a worker by another's number is not linked, and the worker does not wait for
// that link to end when it leaves.
static void a_misled_caller_is_forgotten(void **unused) {
    (void)unused;
    generation_case g;
    station caller;
    pen_coordinator *coordinator;
    const pen_transport_options options = {
        .self = {.job = "generations", .peer = 5, .generation = 1, .incarnation = 99}};
    generation_case_init(&g, "local");
    CHECK_OK(generation_begin(&g, 1, &coordinator));
    CHECK_OK(station_open(&caller, "local", &options, NULL, 0));
    CHECK_OK(caller.kind->connect(caller.transport, 4, g.workers[2].address, 10));
    CHECK(station_wait_down(&caller, 4, 1), "it was taken");
    CHECK(strstr(caller.down_text, "here is peer 2, not 4") != NULL, "%s", caller.down_text);
    destroy_quickly(coordinator);
    station_close(&caller);
    generation_case_deinit(&g);
}

// ---- a coordinator that falls silent, made of a bare transport

typedef struct silent {
    pen_transport *transport;
    pen_mutex lock;
    pen_condition changed;
    uint64_t incarnation; // of the worker, as its HELLO says
    bool is_down;
} silent;

static void silent_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    silent *s = context;
    pen_message message;
    (void)peer;
    CHECK_OK(pen_message_decode(bytes, (size_t)count, &message));
    if (message.kind != PEN_MESSAGE_HELLO) return;
    pen_mutex_lock(&s->lock);
    s->incarnation = message.incarnation;
    pen_condition_broadcast(&s->changed);
    pen_mutex_unlock(&s->lock);
}

static void silent_up(void *context, uint32_t peer) {
    (void)context;
    (void)peer;
}

static void silent_down(void *context, uint32_t peer, pen_status take_reason) {
    silent *s = context;
    (void)peer;
    pen_status_ignore(take_reason, "it is expected");
    pen_mutex_lock(&s->lock);
    s->is_down = true;
    pen_condition_broadcast(&s->changed);
    pen_mutex_unlock(&s->lock);
}

static void silent_await(silent *s, const bool *is_down, double seconds, const char *what) {
    const double deadline = pen_clock_seconds() + seconds;
    pen_mutex_lock(&s->lock);
    while (is_down != NULL ? !*is_down : s->incarnation == 0) {
        const double left = deadline - pen_clock_seconds();
        CHECK(left > 0, "%s", what);
        (void)pen_condition_wait_for(&s->changed, &s->lock, left);
    }
    pen_mutex_unlock(&s->lock);
}

// It assigns worker 1 as that number, with a lease, and is never heard of again: the worker leaves
// by itself, and serves the next coordinator.
static void silent_assigns(uint32_t number) {
    generation_case g;
    silent s = {0};
    uint8_t bytes[PEN_MESSAGE_ROOM];
    generation_case_init(&g, "local");
    pen_mutex_init(&s.lock);
    pen_condition_init(&s.changed);
    const pen_transport_options options = {
        .self = {.job = "generations", .generation = 1, .incarnation = 77}};
    const pen_transport_events events = {
        .context = &s, .up = silent_up, .down = silent_down, .message = silent_message};
    CHECK_OK(g.transport->create(&options, &events, &s.transport));
    CHECK_OK(g.transport->connect(s.transport, 1, g.workers[1].address, 5));
    silent_await(&s, NULL, 5, "the worker says nothing");
    const pen_message assign = {.kind = PEN_MESSAGE_ASSIGN,
                                .protocol = PEN_PROTOCOL_VERSION,
                                .generation = 1,
                                .incarnation = 77,
                                .job = "generations",
                                .worker = number,
                                .target_incarnation = s.incarnation,
                                .clock = 300000000};
    const size_t length = pen_message_encode(&assign, bytes, sizeof bytes);
    CHECK_OK(g.transport->send_message(s.transport, 1, bytes, length));
    silent_await(&s, &s.is_down, 3, "the worker stays with a coordinator that is silent");
    const numbers found = train(&g, 2);
    assert_true(found.losses[0] > 0);
    g.transport->close(s.transport);
    g.transport->stop(s.transport);
    g.transport->destroy(s.transport);
    pen_condition_deinit(&s.changed);
    pen_mutex_deinit(&s.lock);
    generation_case_deinit(&g);
}

static void silence_ends_a_run(void **unused) {
    (void)unused;
    silent_assigns(1);
}

// Also by a worker that has the description, since it is in the coordinator's process.
static void a_number_that_nobody_has_is_refused(void **unused) {
    (void)unused;
    silent_assigns(GENERATION_WORKERS + 6);
}

// ---- of two coordinators the higher generation has the workers

static void a_higher_generation_takes_over(void **unused) {
    (void)unused;
    generation_case g;
    pen_coordinator *old, *new;
    double loss;
    uint64_t round;
    generation_case_init(&g, "local");
    generation_end_worker(&g, 1); // its spec may not change while it runs
    g.running[1] = NULL;
    const pen_worker_options options = {.transport = g.transport, .address = "127.0.0.1:0"};
    pen_worker *first;
    uint16_t port;
    CHECK_OK(pen_worker_create(&options, &first, &port));
    CHECK_OK(pen_arena_format(g.arena, &g.workers[1].address, "127.0.0.1:%u", port));
    pen_coordinator_setup setup = {.spec = &g.spec,
                                   .transport = g.transport,
                                   .job = "generations",
                                   .rendezvous_seconds = 20,
                                   .generation = 4,
                                   .lease_seconds = 2};
    CHECK_OK(pen_coordinator_create(&setup, &old));
    setup.generation = 5;
    CHECK_OK(pen_coordinator_create(&setup, &new));
    pen_status status = PEN_OK;
    for (uint32_t r = 0; r < 100 && status == PEN_OK; r++) {
        status = generation_begin_round(&g, old, &round);
        if (status == PEN_OK) status = generation_finish_round(&g, old, round, &loss);
    }
    CHECK_ERROR(status, PEN_UNAVAILABLE, "lost worker");
    destroy_quickly(old);
    setup.generation = 4;
    CHECK_ERROR(pen_coordinator_create(&setup, &old), PEN_CANCELLED, "superseded by generation 5");
    CHECK_OK(generation_begin_round(&g, new, &round));
    CHECK_OK(generation_finish_round(&g, new, round, &loss));
    destroy_quickly(new);
    pen_worker_destroy(first);
    generation_case_deinit(&g);
}

// ---- the fence

static pen_status fence_count(void *context, uint64_t generation) {
    uint64_t *generations = context;
    *generations += generation;
    return PEN_OK;
}

static pen_status fence_refuse(void *context, uint64_t generation) {
    (void)context;
    return pen_error(PEN_CANCELLED, "superseded by generation %llu",
                     (unsigned long long)generation + 1);
}

static void nobody_is_assigned_before_the_fence(void **unused) {
    (void)unused;
    generation_case g;
    pen_coordinator *coordinator;
    uint64_t fenced = 0;
    generation_case_init(&g, "local");
    pen_coordinator_setup setup = {.spec = &g.spec,
                                   .transport = g.transport,
                                   .job = "generations",
                                   .rendezvous_seconds = 20,
                                   .local_worker = 1,
                                   .generation = 3,
                                   .fence = fence_refuse};
    CHECK_ERROR(pen_coordinator_create(&setup, &coordinator), PEN_CANCELLED,
                "superseded by generation 4");
    setup.fence = fence_count;
    setup.fence_context = &fenced;
    CHECK_OK(pen_coordinator_create(&setup, &coordinator));
    assert_int_equal(fenced, 3);
    destroy_quickly(coordinator);
    generation_case_deinit(&g);
}

PEN_TEST_MAIN(cmocka_unit_test(follow_one_another_in_a_process),
              cmocka_unit_test(follow_one_another_over_grpc),
              cmocka_unit_test(a_misled_caller_is_forgotten),
              cmocka_unit_test(lose_a_worker_in_a_process),
              cmocka_unit_test(lose_a_worker_over_grpc),
              cmocka_unit_test(is_told_of_wrong_data_in_a_process),
              cmocka_unit_test(is_told_of_wrong_data_over_grpc),
              cmocka_unit_test(saves_while_it_trains), cmocka_unit_test(a_caller_may_take_its_time),
              cmocka_unit_test(a_save_that_fails_ends_alone), cmocka_unit_test(silence_ends_a_run),
              cmocka_unit_test(a_number_that_nobody_has_is_refused),
              cmocka_unit_test(a_higher_generation_takes_over),
              cmocka_unit_test(nobody_is_assigned_before_the_fence))
