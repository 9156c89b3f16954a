// A coordinator that orders workers to write where it likes: they write beneath their own folder,
// or not at all. And one that says what it asks for twice, as workers do then, too.

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/protocol/message.h"
#include "scheduler/store/shared_folder.h"
#include "tests/support/check.h"
#include "tests/support/generation_case.h"
#include "tests/support/scratch.h"

#define HOSTILE_MARK 7
#define HOSTILE_SHARD "g1-s1-w2.safetensors"

// What is told in place of the folder that workers are to write to.
static struct hostile_order {
    const char *folder;
    bool is_local;
    uint64_t mark; // that is said to be in it; 0: the right one
} hostile_order;

static bool hostile_repeats; // in place of such an order
static const pen_transport_kind *hostile_real;
static pen_transport_kind hostile_kind;

static pen_status hostile_send(pen_transport *transport, uint32_t peer, const void *bytes,
                               uint64_t count) {
    uint8_t changed[PEN_MESSAGE_ROOM];
    pen_message message;
    CHECK_OK(pen_message_decode(bytes, (size_t)count, &message));
    const bool asks = message.kind == PEN_MESSAGE_PULL || message.kind == PEN_MESSAGE_SNAPSHOT;
    if (hostile_repeats && asks) {
        PEN_TRY(hostile_real->send_message(transport, peer, bytes, count));
    }
    if (hostile_repeats || message.kind != PEN_MESSAGE_SNAPSHOT) {
        return hostile_real->send_message(transport, peer, bytes, count);
    }
    snprintf(message.text, sizeof message.text, "%s", hostile_order.folder);
    message.is_local = hostile_order.is_local;
    if (hostile_order.mark != 0) message.mark = hostile_order.mark;
    const size_t length = pen_message_encode(&message, changed, sizeof changed);
    return hostile_real->send_message(transport, peer, changed, length);
}

static pen_status hostile_create(const pen_transport_options *options,
                                 const pen_transport_events *events,
                                 pen_transport **out_transport) {
    PEN_TRY(hostile_real->create(options, events, out_transport));
    (*out_transport)->kind = &hostile_kind;
    return PEN_OK;
}

static void hostile_begin(generation_case *g, bool repeats) {
    hostile_repeats = repeats;
    hostile_real = g->transport;
    hostile_kind = *hostile_real;
    hostile_kind.create = hostile_create;
    hostile_kind.send_message = hostile_send;
    g->transport = &hostile_kind;
}

static uint32_t count_names(const char *folder) {
    DIR *list = opendir(folder);
    uint32_t count = 0;
    assert_non_null(list);
    while (readdir(list) != NULL) {
        count += 1;
    }
    closedir(list);
    return count - 2; // "." and ".."
}

static void save_as_ordered(pen_coordinator *coordinator, uint64_t step, const char *folder,
                            pen_coordinator_saved *out_saved) {
    CHECK_OK(pen_coordinator_save(coordinator, step, folder));
    CHECK_OK(pen_coordinator_await_saved(coordinator, out_saved));
}

static void workers_write_beneath_their_folder_alone(void **unused) {
    (void)unused;
    generation_case g;
    pen_coordinator *coordinator;
    pen_coordinator_saved saved;
    generation_case_init(&g, "local");
    hostile_begin(&g, false);
    const char *outside = scratch_file("outside/" HOSTILE_SHARD, "theirs", 6);
    (void)scratch_file("generations/own", "", 0);
    CHECK_OK(pen_shared_folder_mark(scratch_path("outside"), HOSTILE_MARK));
    assert_int_equal(symlink(scratch_path("outside"), scratch_path("generations/link")), 0);
    CHECK_OK(generation_begin(&g, 1, &coordinator));
    CHECK_OK(generation_write(&g, coordinator));
    const char *const folders[] = {"../outside",
                                   scratch_path("outside"),
                                   "link",
                                   "link/more",
                                   "a/../../outside",
                                   "/tmp",
                                   "",
                                   "..",
                                   "../made"};
    uint64_t step = 1;
    for (int is_local = 0; is_local < 2; is_local++) {
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
            hostile_order = (struct hostile_order){folders[i], is_local != 0, HOSTILE_MARK};
            save_as_ordered(coordinator, step++, g.folder, &saved);
            CHECK(saved.state == PEN_SAVE_FAILED, "'%s' was written to", folders[i]);
            CHECK(strstr(saved.failure, "beneath") != NULL ||
                      strstr(saved.failure, "something else than a folder") != NULL ||
                      strstr(saved.failure, "cannot open the folder") != NULL,
                  "'%s': %s", folders[i], saved.failure);
        }
    }
    struct stat about;
    assert_int_equal(count_names(scratch_path("outside")), 2); // and the mark
    assert_int_equal(stat(outside, &about), 0);
    assert_int_equal(about.st_size, 6);
    assert_int_not_equal(stat(scratch_path("made"), &about), 0);
    // as it should be, it goes on
    hostile_order = (struct hostile_order){"mine/worker", true, 0};
    save_as_ordered(coordinator, step, g.folder, &saved);
    CHECK(saved.state == PEN_SAVE_DURABLE, "%s", saved.failure);
    assert_int_not_equal(count_names(scratch_path("generations/mine/worker")), 0);
    pen_coordinator_committed(coordinator, step);
    pen_coordinator_destroy(coordinator);
    generation_case_deinit(&g);
}

// Half of the rounds, and a checkpoint; then the same step once more, which is another order, while
// the others run. `out_checksum` is of all parameters in the end.
static void train_and_save(generation_case *g, uint64_t generation, uint32_t *out_checksum) {
    pen_coordinator *coordinator;
    pen_coordinator_saved saved;
    CHECK_OK(generation_begin(g, generation, &coordinator));
    CHECK_OK(generation_write(g, coordinator));
    for (uint32_t r = 0; r < GENERATION_ROUNDS; r++) {
        uint64_t round;
        double loss;
        if (r % 2 == 1) {
            CHECK_OK(pen_coordinator_save(coordinator, r / 4 + 1, g->folder));
            CHECK_OK(generation_begin_round(g, coordinator, &round));
            CHECK_OK(pen_coordinator_await_saved(coordinator, &saved));
            CHECK(saved.state == PEN_SAVE_DURABLE, "%s", saved.failure);
            pen_coordinator_committed(coordinator, r / 4 + 1);
        } else {
            CHECK_OK(generation_begin_round(g, coordinator, &round));
        }
        CHECK_OK(generation_finish_round(g, coordinator, round, &loss));
    }
    CHECK_OK(generation_read(g, coordinator, out_checksum));
    pen_coordinator_destroy(coordinator);
}

static void what_is_asked_twice_is_answered_once(void **unused) {
    (void)unused;
    static const char *const transports[] = {"local", "grpc"};
    for (size_t t = 0; t < sizeof transports / sizeof *transports; t++) {
        generation_case g;
        uint32_t expected, checksum;
        generation_case_init(&g, transports[t]);
        train_and_save(&g, 1, &expected);
        hostile_begin(&g, true);
        for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) { // they repeat, too
            generation_end_worker(&g, w);
            generation_start_worker(&g, w);
        }
        for (uint64_t generation = 2; generation < 5; generation++) {
            train_and_save(&g, generation, &checksum);
            assert_int_equal(checksum, expected);
        }
        generation_case_deinit(&g);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(workers_write_beneath_their_folder_alone),
              cmocka_unit_test(what_is_asked_twice_is_answered_once))
