// Processes that share memory with one that is killed, or that writes anything into it.
//   ring_trouble_test victim WHAT SEED PORT   the other process: PORT 0 listens, else it calls
//   there
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/random.h"
#include "scheduler/transport/ring/ring.h"
#include "tests/support/check.h"
#include "tests/support/station.h"

#define MIB ((uint64_t)1 << 20)
#define FRAME_MOST (3 * MIB)
#define LENT_MOST 6 // frames under way

// What a victim does besides sending and taking frames.
typedef enum deed {
    DEED_NOTHING,
    DEED_COUNTERS, // writes into the counters of the rings
    DEED_RECORDS,  // and into what they hold
    DEED_COUNT,
} deed;

static uint8_t payload[FRAME_MOST];
static uint32_t checksums[LENT_MOST][8]; // of frames under way

static void open_station(station *s, uint32_t peer, bool listens, double resume_seconds) {
    const pen_transport_options options = {.self = {.job = "test",
                                                    .peer = peer,
                                                    .generation = 3,
                                                    .incarnation = (uint64_t)getpid(),
                                                    .shares_memory = true},
                                           .resume_seconds = resume_seconds};
    CHECK_OK(station_open(s, "grpc", &options, listens ? "127.0.0.1:0" : NULL, FRAME_MOST));
}

// Sends a frame as long as few are under way. False: there is no link.
static bool send_some(station *s, uint32_t peer, uint64_t *sent) {
    pen_mutex_lock(&s->lock);
    const bool is_much = *sent - s->let_go_count >= LENT_MOST;
    pen_mutex_unlock(&s->lock);
    if (is_much) {
        usleep(200);
        return true;
    }
    const pen_frame frame = {
        .kind = PEN_FRAME_VALUE, .sequence = *sent, .bytes = *sent * 7919 % FRAME_MOST};
    const pen_status status = s->kind->sum_frame(
        s->transport, peer, &frame, pen_memory_place_at(payload), checksums[*sent % LENT_MOST], 1);
    const bool is_sent = status == PEN_OK;
    pen_status_ignore(status, "the link is down");
    *sent += is_sent;
    return is_sent;
}

// ---- the victim

typedef struct scribbler {
    deed what;
    uint32_t seed;
} scribbler;

// Writes into all rings of this process for ever. By way of the kernel, for they may go meanwhile.
static void scribble(void *context) {
    const scribbler *s = context;
    pen_random_sequence draw = pen_random_sequence_of(pen_random_stream("victim", s->seed, 0));
    const int memory = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    for (;;) {
        FILE *maps = fopen("/proc/self/maps", "re");
        char line[400];
        while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
            uint64_t first, end;
            if (strstr(line, "memfd:penstock-ring") == NULL) continue;
            if (sscanf(line, "%" SCNx64 "-%" SCNx64, &first, &end) != 2) continue;
            const bool has_counters = end - first == PEN_RING_FILE_BYTES;
            if (s->what == DEED_COUNTERS && !has_counters) continue;
            const uint64_t from = s->what == DEED_RECORDS && has_counters ? 4096 : 0;
            const uint64_t limit = s->what == DEED_COUNTERS ? 256 : end - first - from;
            for (uint32_t i = 0; i < 200; i++) {
                const uint64_t at = pen_random_next_below(&draw, (uint32_t)limit) / 8 * 8;
                const uint32_t value = pen_random_next(&draw) >> pen_random_next_below(&draw, 32);
                const ssize_t count =
                    pwrite(memory, &value, sizeof value, (off_t)(first + from + at));
                (void)count; // it has gone
            }
        }
        if (maps != NULL) fclose(maps);
        usleep(pen_random_next_below(&draw, 300));
    }
}

static int run_victim(char **arguments) {
    static scribbler s;
    station me;
    pen_thread *thread;
    const uint16_t port = (uint16_t)atoi(arguments[2]);
    const uint32_t own = port == 0 ? 1 : 0;
    uint64_t sent = 0;
    s = (scribbler){(deed)atoi(arguments[0]), (uint32_t)atoi(arguments[1])};
    open_station(&me, own, port == 0, 20);
    if (port == 0) {
        printf("%u\n", me.port);
        fflush(stdout);
    } else {
        char address[64];
        snprintf(address, sizeof address, "127.0.0.1:%u", port);
        CHECK_OK(me.kind->connect(me.transport, 1, address, 20));
    }
    if (!station_wait_up(&me, 1 - own, 1)) return 1;
    if (s.what != DEED_NOTHING) CHECK_OK(pen_thread_create("scribbler", scribble, &s, &thread));
    while (send_some(&me, 1 - own, &sent)) {
    }
    for (;;) // the link is down; it is killed
        pause();
}

// ---- who survives it

typedef struct match {
    station me;
    pid_t victim;
    uint32_t other;
} match;

// Starts a victim that calls us, or that we call, and links with it.
static void begin_match(match *m, deed what, uint32_t seed, bool victim_listens) {
    char texts[2][16], port[16] = "0";
    int ends[2];
    m->other = victim_listens ? 1 : 0;
    open_station(&m->me, 1 - m->other, !victim_listens, 20);
    snprintf(texts[0], sizeof texts[0], "%d", (int)what);
    snprintf(texts[1], sizeof texts[1], "%u", seed);
    if (!victim_listens) snprintf(port, sizeof port, "%u", m->me.port);
    assert_int_equal(pipe(ends), 0);
    m->victim = fork();
    if (m->victim == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // none is left when a check fails
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "ring_trouble_test", "victim", texts[0], texts[1], port,
              (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    if (victim_listens) {
        FILE *from = fdopen(ends[0], "r");
        char address[64];
        assert_non_null(fgets(port, sizeof port, from));
        fclose(from);
        snprintf(address, sizeof address, "127.0.0.1:%d", atoi(port));
        CHECK_OK(m->me.kind->connect(m->me.transport, 1, address, 20));
    } else {
        close(ends[0]);
    }
    assert_true(station_wait_up(&m->me, m->other, 1));
}

// Sends as long as there is a link, for `seconds` at most. Returns the frames that were sent.
static uint64_t send_for(match *m, double seconds, uint64_t sent) {
    const double end = pen_clock_seconds() + seconds;
    while (pen_clock_seconds() < end && send_some(&m->me, m->other, &sent)) {
    }
    return sent;
}

// Sends until some frames have gone each way.
static uint64_t send_first(match *m) {
    const double end = pen_clock_seconds() + 20;
    uint64_t sent = 0;
    while (pen_clock_seconds() < end) {
        sent = send_for(m, 0.01, sent);
        pen_mutex_lock(&m->me.lock);
        const bool is_moving = m->me.frame_count >= 5 && m->me.let_go_count >= 5;
        const bool is_down = m->me.down_count[m->other] != 0;
        pen_mutex_unlock(&m->me.lock);
        if (is_moving || is_down) break;
    }
    return sent;
}

static void end_match(match *m, uint64_t sent) {
    int status;
    kill(m->victim, SIGKILL);
    waitpid(m->victim, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the victim ended by itself: %d",
          status);
    assert_true(station_wait_down(&m->me, m->other, 1));
    assert_true(station_wait(&m->me, &m->me.let_go_count, sent));
    station_close(&m->me);
    assert_int_equal(m->me.let_go_count, sent);
    assert_int_equal(m->me.down_count[m->other], 1);
    assert_int_equal(m->me.lie_count, 0);
}

// The end of its socket tells it, where gRPC alone would wait for the process to come back.
static void a_killed_peer_is_missed_at_once(void **state) {
    (void)state;
    for (uint32_t turn = 0; turn < 4; turn++) {
        match m;
        begin_match(&m, DEED_NOTHING, turn, turn % 2 == 1);
        uint64_t sent = send_for(&m, 0.02 * turn, send_first(&m));
        const pen_transport_counters before = m.me.kind->counters(m.me.transport);
        CHECK(before.bytes_copied == before.bytes_sent + before.bytes_received &&
                  before.frames_received > 0 && before.frames_sent > 0,
              "turn %u: not through shared memory", turn);
        kill(m.victim, SIGKILL);
        const double start = pen_clock_seconds();
        sent = send_for(&m, 20, sent);
        const double seconds = pen_clock_seconds() - start;
        CHECK(seconds < 10, "turn %u: after %.1f s", turn, seconds);
        end_match(&m, sent);
        assert_int_equal(m.me.wrong_count, 0);
        assert_true(m.me.compared_count > 0);
        assert_int_equal(m.me.down_code, PEN_UNAVAILABLE);
    }
}

// It may take the link down, or damage frames, which their checksums tell; nothing else.
static void a_peer_may_write_anything(void **state) {
    (void)state;
    uint32_t down_count = 0;
    for (uint32_t seed = 0; seed < 8; seed++) {
        match m;
        const deed what = seed % 2 == 0 ? DEED_COUNTERS : DEED_RECORDS;
        begin_match(&m, what, seed, seed % 4 >= 2);
        const uint64_t sent = send_for(&m, what == DEED_COUNTERS ? 20 : 0.3, send_first(&m));
        pen_mutex_lock(&m.me.lock);
        const bool is_down = m.me.down_count[m.other] != 0;
        const pen_status_code code = m.me.down_code;
        pen_mutex_unlock(&m.me.lock);
        CHECK(is_down || what == DEED_RECORDS, "seed %u: the link is still there", seed);
        CHECK(!is_down || code == PEN_CORRUPT || code == PEN_INVALID_INPUT ||
                  code == PEN_UNAVAILABLE,
              "seed %u: %s", seed, m.me.down_text);
        if (is_down && what == DEED_COUNTERS) {
            CHECK(strstr(m.me.down_text, "shared memory") != NULL, "seed %u: %s", seed,
                  m.me.down_text);
        }
        down_count += is_down;
        end_match(&m, sent);
    }
    assert_true(down_count >= 4);
}

// ---- memory that nobody takes

static bool is_socket_of_ours(uint64_t inode) {
    char wanted[40], found[40];
    snprintf(wanted, sizeof wanted, "socket:[%" PRIu64 "]", inode);
    for (int descriptor = 0; descriptor < 200; descriptor++) {
        char path[40];
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
        const ssize_t length = readlink(path, found, sizeof found - 1);
        found[length > 0 ? length : 0] = '\0';
        if (strcmp(found, wanted) == 0) return true;
    }
    return false;
}

// Takes away the places where stations of this process take rings, as a cleaner of /tmp may. The
// kernel lists sockets by the names that they had before they listened. Returns how many.
static uint32_t remove_meetings(void) {
    FILE *list = fopen("/proc/net/unix", "re");
    char line[400];
    uint32_t count = 0;
    assert_non_null(list);
    while (fgets(line, sizeof line, list) != NULL) {
        uint64_t inode;
        char path[200];
        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %199s", &inode, path) != 2) continue;
        char *suffix = strstr(path, ".new");
        if (strstr(path, "penstock") == NULL || suffix == NULL) continue;
        *suffix = '\0';
        if (is_socket_of_ours(inode)) count += unlink(path) == 0;
    }
    fclose(list);
    return count;
}

// Frames that waited for shared memory, and whose checksums nobody has made yet, go over gRPC.
static void frames_go_another_way_when_memory_is_refused(void **state) {
    (void)state;
    const uint64_t sizes[] = {2 * MIB + 7, 0, 100, MIB};
    const uint64_t count = sizeof sizes / sizeof *sizes;
    station zero, one;
    open_station(&zero, 0, false, 20);
    open_station(&one, 1, true, 20);
    assert_true(station_link(&zero, &one, 0, 1));
    assert_int_equal(remove_meetings(), 2);
    for (uint64_t i = 0; i < count; i++) {
        const pen_frame frame = {.kind = PEN_FRAME_VALUE, .sequence = i, .bytes = sizes[i]};
        CHECK_OK(zero.kind->sum_frame(zero.transport, 1, &frame, pen_memory_place_at(payload),
                                      checksums[i], 1));
    }
    assert_true(station_wait(&one, &one.frame_count, count));
    assert_true(station_wait(&zero, &zero.let_go_count, count));
    const pen_transport_counters sent = zero.kind->counters(zero.transport);
    assert_int_equal(sent.bytes_copied, 0);
    assert_int_equal(zero.summed_count, count);
    assert_int_equal(one.compared_count, 0);
    assert_int_equal(one.wrong_count, 0);
    station_close(&zero);
    station_close(&one);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_peer_is_missed_at_once),
        cmocka_unit_test(a_peer_may_write_anything),
        cmocka_unit_test(frames_go_another_way_when_memory_is_refused),
    };
    for (uint64_t i = 0; i < FRAME_MOST; i++)
        payload[i] = (uint8_t)(i * 31 + i / 251);
    if (count == 5 && strcmp(arguments[1], "victim") == 0) return run_victim(arguments + 2);
    cmocka_set_test_filter(getenv("PEN_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
