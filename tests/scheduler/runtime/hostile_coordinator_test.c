// A coordinator that orders workers to write where it likes: they write beneath their own folder,
// or not at all.

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/protocol/message.h"
#include "tests/support/check.h"
#include "tests/support/generation_case.h"
#include "tests/support/scratch.h"

#define HOSTILE_SHARD "g1-s1-w2.safetensors"

// What is told in place of the folder that workers are to write to.
static struct hostile_order {
    const char *folder;
    bool is_local;
} hostile_order;

static const pen_transport_kind *hostile_real;
static pen_transport_kind hostile_kind;

static pen_status hostile_send(pen_transport *transport, uint32_t peer, const void *bytes,
                               uint64_t count) {
    uint8_t changed[PEN_MESSAGE_ROOM];
    pen_message message;
    CHECK_OK(pen_message_decode(bytes, (size_t)count, &message));
    if (message.kind != PEN_MESSAGE_SNAPSHOT) {
        return hostile_real->send_message(transport, peer, bytes, count);
    }
    snprintf(message.text, sizeof message.text, "%s", hostile_order.folder);
    message.is_local = hostile_order.is_local;
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
    hostile_real = g.transport;
    hostile_kind = *hostile_real;
    hostile_kind.create = hostile_create;
    hostile_kind.send_message = hostile_send;
    g.transport = &hostile_kind;
    const char *outside = scratch_file("outside/" HOSTILE_SHARD, "theirs", 6);
    (void)scratch_file("generations/own", "", 0);
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
            hostile_order = (struct hostile_order){folders[i], is_local != 0};
            save_as_ordered(coordinator, step++, g.folder, &saved);
            CHECK(saved.state == PEN_SAVE_FAILED, "'%s' was written to", folders[i]);
            CHECK(strstr(saved.failure, "beneath") != NULL ||
                      strstr(saved.failure, "something else than a folder") != NULL ||
                      strstr(saved.failure, "cannot open the folder") != NULL,
                  "'%s': %s", folders[i], saved.failure);
        }
    }
    struct stat about;
    assert_int_equal(count_names(scratch_path("outside")), 1);
    assert_int_equal(stat(outside, &about), 0);
    assert_int_equal(about.st_size, 6);
    assert_int_not_equal(stat(scratch_path("made"), &about), 0);
    // as it should be, it goes on
    hostile_order = (struct hostile_order){"mine/worker", true};
    save_as_ordered(coordinator, step, g.folder, &saved);
    CHECK(saved.state == PEN_SAVE_DURABLE, "%s", saved.failure);
    assert_int_not_equal(count_names(scratch_path("generations/mine/worker")), 0);
    pen_coordinator_committed(coordinator, step);
    pen_coordinator_destroy(coordinator);
    generation_case_deinit(&g);
}

PEN_TEST_MAIN(cmocka_unit_test(workers_write_beneath_their_folder_alone))
