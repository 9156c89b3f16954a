// Rings in shared memory, and how they are handed over.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "scheduler/transport/ring/ring.h"
#include "scheduler/transport/ring/ring_memory.h"
#include "scheduler/transport/ring/ring_socket.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

typedef struct pair {
    void *memory, *again; // the same, mapped by each
    pen_ring writer, reader;
} pair;

static void open_pair(pair *p) {
    int descriptor;
    CHECK_OK(pen_ring_memory_create(&p->memory, &descriptor));
    CHECK_OK(pen_ring_memory_open(descriptor, &p->again));
    close(descriptor);
    pen_ring_init(&p->writer, p->memory);
    pen_ring_init(&p->reader, p->again);
}

static void close_pair(pair *p) {
    pen_ring_memory_close(p->memory);
    pen_ring_memory_close(p->again);
}

static bool put(pen_ring *writer, const uint8_t *head, uint32_t head_count, const uint8_t *payload,
                uint32_t payload_count) {
    memcpy(pen_ring_place(writer), payload, payload_count);
    return pen_ring_put(writer, head, head_count, payload_count);
}

// What record `number` holds.
static uint8_t byte_of(uint64_t number, uint64_t index) {
    return (uint8_t)(number * 131 + index * 7 + index / 256);
}

static void fill(uint8_t *bytes, uint64_t count, uint64_t number) {
    for (uint64_t i = 0; i < count; i++)
        bytes[i] = byte_of(number, i);
}

static bool is_filled(const uint8_t *bytes, uint64_t count, uint64_t number) {
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] != byte_of(number, i)) return false;
    }
    return true;
}

// Each end is a process that moves records, sleeps when there is nothing to do, and wakes when the
// other rings. In any order of their steps nothing is lost, and never do both sleep with work left.
static void nothing_is_lost_in_any_order(void **state) {
    (void)state;
    static uint8_t payload[PEN_RING_PIECE_BYTES];
    pair p;
    open_pair(&p);
    for (uint32_t seed = 1; seed <= 20; seed++) {
        pen_random_sequence draw = pen_random_sequence_of(pen_random_stream("ring", seed, 0));
        const uint64_t count = 60;
        uint64_t written = 0, read = 0;
        bool writer_sleeps = false, reader_sleeps = false;
        uint32_t steps = 0;
        while (read < count) {
            CHECK(++steps < 100000, "seed %u: nothing moves", seed);
            CHECK(!writer_sleeps || !reader_sleeps, "seed %u: both sleep", seed);
            if (pen_random_next_below(&draw, 2) == 0 && written < count) {
                bool has_room;
                if (writer_sleeps) continue;
                CHECK_OK(pen_ring_has_room(&p.writer, &has_room));
                if (!has_room) {
                    CHECK_OK(pen_ring_writer_sleeps(&p.writer, &writer_sleeps));
                    continue;
                }
                // sizes of their own for each record, often the largest
                const uint32_t size = (uint32_t)(written * 2654435761u % 5 == 0
                                                     ? PEN_RING_PIECE_BYTES
                                                     : written * 40503u % PEN_RING_PIECE_BYTES);
                const uint32_t head = (uint32_t)(written * 37 % (PEN_RING_HEAD_LIMIT + 1));
                uint8_t bytes[PEN_RING_HEAD_LIMIT];
                fill(payload, size, written);
                fill(bytes, head, written + 1);
                if (put(&p.writer, bytes, head, payload, size)) reader_sleeps = false;
                written += 1;
            } else if (!reader_sleeps) {
                pen_ring_record record;
                bool is_there;
                CHECK_OK(pen_ring_take(&p.reader, &record, &is_there));
                if (!is_there) {
                    reader_sleeps = pen_ring_reader_sleeps(&p.reader);
                    continue;
                }
                CHECK(is_filled(record.head, record.head_count, read + 1), "seed %u: head", seed);
                CHECK(is_filled(record.payload, record.payload_count, read), "seed %u", seed);
                if (pen_ring_give(&p.reader, &record)) writer_sleeps = false;
                read += 1;
            }
        }
        CHECK(written == count, "seed %u: all written", seed);
    }
    close_pair(&p);
}

static void counters_that_cannot_be_are_refused(void **state) {
    (void)state;
    const uint8_t bytes[100] = {1};
    pen_ring_record record;
    bool is_so;
    pair p;
    open_pair(&p);
    (void)put(&p.writer, bytes, 10, bytes, 100);
    const uint64_t written = p.writer.own;

    atomic_store(&p.writer.control->read, written + 64); // more than was written
    CHECK_ERROR(pen_ring_has_room(&p.writer, &is_so), PEN_CORRUPT, "shared memory");
    atomic_store(&p.writer.control->read, 1); // between records
    CHECK_ERROR(pen_ring_has_room(&p.writer, &is_so), PEN_CORRUPT, "shared memory");
    atomic_store(&p.writer.control->read, written);
    CHECK_OK(pen_ring_has_room(&p.writer, &is_so));
    atomic_store(&p.writer.control->read, 0); // it falls
    CHECK_ERROR(pen_ring_has_room(&p.writer, &is_so), PEN_CORRUPT, "shared memory");

    static const uint64_t wrong[] = {1, PEN_RING_BYTES + 64, UINT64_MAX, UINT64_MAX - 63, 64};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) { // the last: half a record
        atomic_store(&p.reader.control->written, wrong[i]);
        CHECK_ERROR(pen_ring_take(&p.reader, &record, &is_so), PEN_CORRUPT, "shared memory");
        pen_ring_init(&p.reader, p.again);
    }
    atomic_store(&p.reader.control->written, written);
    CHECK_OK(pen_ring_take(&p.reader, &record, &is_so));
    assert_true(is_so);
    assert_int_equal(record.payload_count, 100);
    (void)pen_ring_give(&p.reader, &record);
    atomic_store(&p.reader.control->written, 0); // it falls
    CHECK_ERROR(pen_ring_take(&p.reader, &record, &is_so), PEN_CORRUPT, "shared memory");
    close_pair(&p);
}

static void lengths_that_cannot_be_are_refused(void **state) {
    (void)state;
    static const uint32_t wrong[][2] = {{PEN_RING_HEAD_LIMIT + 1, 0},
                                        {0, PEN_RING_PIECE_BYTES + 1},
                                        {UINT32_MAX, UINT32_MAX},
                                        {0, UINT32_MAX - 60},
                                        {10, 200}}; // more than is written
    pen_ring_record record;
    const uint8_t bytes[100] = {1};
    bool is_there;
    pair p;
    open_pair(&p);
    (void)put(&p.writer, bytes, 10, bytes, 100);
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(p.writer.records, wrong[i], sizeof wrong[i]);
        CHECK_ERROR(pen_ring_take(&p.reader, &record, &is_there), PEN_CORRUPT, "shared memory");
    }
    close_pair(&p);
}

// The whole of the memory is anything, again and again, while both ends use it: each use ends with
// a record or an error, within the memory.
static void any_memory_is_survived(void **state) {
    (void)state;
    static uint8_t payload[PEN_RING_PIECE_BYTES];
    pen_random_sequence draw = pen_random_sequence_of(pen_random_stream("scribble", 0, 0));
    uint64_t errors = 0, records = 0, sum = 0;
    pair p;
    open_pair(&p);
    for (uint32_t i = 0; i < 20000; i++) {
        // a place in the counters or at the record that is read next, and small or wild numbers
        uint8_t *at = pen_random_next_below(&draw, 2) == 0
                          ? (uint8_t *)p.again + pen_random_next_below(&draw, 32) * 8
                          : p.reader.records + p.reader.own % PEN_RING_BYTES +
                                (size_t)pen_random_next_below(&draw, 4) * 4;
        const uint32_t value = pen_random_next(&draw) >> pen_random_next_below(&draw, 32);
        const uint32_t aligned = pen_random_next_below(&draw, 2) == 0 ? value : value / 64 * 64;
        if (pen_random_next_below(&draw, 3) == 0) memcpy(at, &aligned, sizeof aligned);
        pen_ring_record record;
        bool is_so = false;
        pen_status status = pen_ring_has_room(&p.writer, &is_so);
        if (status == PEN_OK && is_so) (void)put(&p.writer, payload, 9, payload, value % 999);
        errors += status != PEN_OK;
        pen_status_ignore(status, "counted");
        status = pen_ring_take(&p.reader, &record, &is_so);
        const bool is_taken = status == PEN_OK && is_so;
        if (is_taken) {
            for (uint32_t k = 0; k < record.payload_count; k++)
                sum += record.payload[k];
            records += 1;
            (void)pen_ring_give(&p.reader, &record);
        }
        if (status != PEN_OK || pen_random_next_below(&draw, 50) == 0) {
            memset(p.again, 0, PEN_RING_CONTROL_BYTES);
            pen_ring_init(&p.writer, p.memory);
            pen_ring_init(&p.reader, p.again);
        }
        errors += status != PEN_OK;
        pen_status_ignore(status, "counted");
    }
    CHECK(errors > 100 && records > 100, "%" PRIu64 " errors, %" PRIu64 " records, sum %" PRIu64,
          errors, records, sum);
    close_pair(&p);
}

// ---- the memory

static void memory_keeps_its_size(void **state) {
    (void)state;
    void *memory = NULL;
    int descriptor;
    CHECK_OK(pen_ring_memory_create(&memory, &descriptor));
    assert_int_equal(ftruncate(descriptor, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(descriptor, (off_t)PEN_RING_FILE_BYTES * 2), -1);
    pen_ring_memory_close(memory);
    close(descriptor);

    const int open_size = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(open_size, (off_t)PEN_RING_FILE_BYTES), 0);
    CHECK_ERROR(pen_ring_memory_open(open_size, &memory), PEN_CORRUPT, "sealed size");
    assert_int_equal(ftruncate(open_size, 4096), 0);
    assert_int_equal(fcntl(open_size, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    CHECK_ERROR(pen_ring_memory_open(open_size, &memory), PEN_CORRUPT, "size of a ring");
    close(open_size);
    const int other = open("/dev/zero", O_RDWR | O_CLOEXEC);
    CHECK_ERROR(pen_ring_memory_open(other, &memory), PEN_CORRUPT, "sealed size");
    close(other);
}

// ---- handing over

static void a_folder_must_be_ours_alone(void **state) {
    (void)state;
    pen_ring_meeting meeting;
    const char *folder = scratch_path("meeting");
    CHECK_OK(pen_ring_meeting_make(folder, &meeting));
    struct stat made;
    assert_int_equal(stat(folder, &made), 0);
    assert_int_equal(made.st_mode & 0777, 0700);
    const uint64_t host = meeting.host;
    CHECK_OK(pen_ring_meeting_make(folder, &meeting));
    assert_int_equal(meeting.host, host);
    assert_int_equal(chmod(folder, 0750), 0);
    CHECK_ERROR(pen_ring_meeting_make(folder, &meeting), PEN_UNAVAILABLE, "this user alone");
    assert_int_equal(chmod(folder, 0700), 0);
    const char *link = scratch_path("link");
    assert_int_equal(symlink(folder, link), 0);
    CHECK_ERROR(pen_ring_meeting_make(link, &meeting), PEN_UNAVAILABLE, "this user alone");
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        CHECK_ERROR(pen_ring_meeting_make(folder, &meeting), PEN_UNAVAILABLE, "this user alone");
    }
}

static void memory_is_handed_over(void **state) {
    (void)state;
    pen_ring_meeting meeting;
    void *memory = NULL;
    int listener, caller, descriptor, taken;
    bool asks;
    uint64_t token;
    CHECK_OK(pen_ring_meeting_make(scratch_path("handing"), &meeting));
    CHECK_ERROR(pen_ring_call(&meeting, 5, &caller), PEN_UNAVAILABLE, "No such file");
    CHECK_OK(pen_ring_listen(&meeting, 5, &listener));
    assert_int_equal(pen_ring_accept(listener), -1);
    CHECK_OK(pen_ring_call(&meeting, 5, &caller));
    const int called = pen_ring_accept(listener);
    assert_true(called >= 0);
    CHECK_OK(pen_ring_receive(called, &token, &taken, &asks));
    assert_int_equal(taken, -1); // not yet
    CHECK_OK(pen_ring_memory_create(&memory, &descriptor));
    CHECK_OK(pen_ring_hand_over(caller, 0x1234567890abcdef, descriptor));
    CHECK_OK(pen_ring_receive(called, &token, &taken, &asks));
    assert_int_equal(token, 0x1234567890abcdef);
    pen_ring_memory_close(memory);
    CHECK_OK(pen_ring_memory_open(taken, &memory));
    pen_ring_memory_close(memory);
    close(taken);
    assert_int_equal(pen_ring_hear(caller), PEN_RING_SILENCE);
    pen_ring_sound(called);
    assert_int_equal(pen_ring_hear(caller), PEN_RING_BELL);
    assert_int_equal(pen_ring_hear(caller), PEN_RING_SILENCE);
    for (uint32_t i = 0; i < 10000; i++)
        pen_ring_sound(called); // until nothing more fits: that is no reason to wait
    assert_int_equal(pen_ring_hear(caller), PEN_RING_BELL);
    uint8_t noise[16] = {9};
    assert_int_equal(send(caller, noise, sizeof noise, 0), sizeof noise);
    CHECK_ERROR(pen_ring_receive(called, &token, &taken, &asks), PEN_CORRUPT, "greeting");
    close(descriptor);
    close(caller);
    assert_int_equal(pen_ring_hear(called), PEN_RING_GONE);
    close(called);
    pen_ring_unlisten(&meeting, 5, listener);
    CHECK_ERROR(pen_ring_call(&meeting, 5, &caller), PEN_UNAVAILABLE, "No such file");
}

// A process that was killed leaves its socket: the next one takes it away, and no other.
static void what_the_dead_leave_is_swept(void **state) {
    (void)state;
    pen_ring_meeting meeting;
    int dead, alive, next, caller;
    char path[PEN_RING_FOLDER_LIMIT + 32];
    CHECK_OK(pen_ring_meeting_make(scratch_path("dead"), &meeting));
    CHECK_OK(pen_ring_listen(&meeting, 7, &dead));
    CHECK_OK(pen_ring_listen(&meeting, 8, &alive));
    close(dead);
    snprintf(path, sizeof path, "%s/%016x", meeting.folder, 7);
    assert_int_equal(access(path, F_OK), 0);
    CHECK_OK(pen_ring_listen(&meeting, 9, &next));
    assert_int_equal(access(path, F_OK), -1);
    CHECK_OK(pen_ring_call(&meeting, 8, &caller));
    close(caller);
    pen_ring_unlisten(&meeting, 8, alive);
    pen_ring_unlisten(&meeting, 9, next);
}

// Only root can pose as another user, and the folder must let that user in first.
static void other_users_are_refused(void **state) {
    (void)state;
    pen_ring_meeting meeting;
    int listener;
    if (geteuid() != 0) skip();
    CHECK_OK(pen_ring_meeting_make(scratch_path("others"), &meeting));
    CHECK_OK(pen_ring_listen(&meeting, 5, &listener));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%016x", meeting.folder, 5);
    assert_int_equal(chmod(scratch_path("."), 0755), 0);
    assert_int_equal(chmod(meeting.folder, 0755), 0);
    assert_int_equal(chmod(address.sun_path, 0777), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        const int caller = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if (setuid(65534) != 0) _exit(2);
        if (connect(caller, (const struct sockaddr *)&address, sizeof address) != 0) _exit(3);
        _exit(recv(caller, &byte, 1, 0) <= 0 ? 0 : 4); // it is closed
    }
    int status = -1;
    while (waitpid(child, &status, WNOHANG) == 0) {
        assert_int_equal(pen_ring_accept(listener), -1);
        usleep(1000);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other user: %d", status);
    pen_ring_unlisten(&meeting, 5, listener);
}

PEN_TEST_MAIN(cmocka_unit_test(nothing_is_lost_in_any_order),
              cmocka_unit_test(counters_that_cannot_be_are_refused),
              cmocka_unit_test(lengths_that_cannot_be_are_refused),
              cmocka_unit_test(any_memory_is_survived), cmocka_unit_test(memory_keeps_its_size),
              cmocka_unit_test(a_folder_must_be_ours_alone),
              cmocka_unit_test(memory_is_handed_over),
              cmocka_unit_test(what_the_dead_leave_is_swept),
              cmocka_unit_test(other_users_are_refused))
