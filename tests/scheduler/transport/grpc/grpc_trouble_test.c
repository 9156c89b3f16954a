// Peers that are strangers, that refuse, that break off, that die.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/station.h"

#define MIB ((uint64_t)1 << 20)

static pen_transport_options options_of(uint32_t peer) {
    return (pen_transport_options){
        .self = {.job = "test", .peer = peer, .generation = 3, .incarnation = 77 + peer}};
}

static void open_station(station *s, uint32_t peer, uint64_t memory_bytes) {
    const pen_transport_options options = options_of(peer);
    CHECK_OK(station_open(s, "grpc", &options, "127.0.0.1:0", memory_bytes));
    s->frees_tokens = true; // nothing is sent yet
}

static pen_status connect_to(station *from, const station *to, uint32_t peer, double seconds) {
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", to->port);
    return from->kind->connect(from->transport, peer, address, seconds);
}

// False: there is no link.
static bool try_frame(station *s, uint32_t peer, uint64_t sequence, const uint8_t *bytes,
                      uint64_t count) {
    uint32_t *checksums = malloc(sizeof *checksums * (pen_frame_chunk_count(count) + 1));
    pen_checksum_chunks(bytes, count, checksums);
    const pen_frame frame = {.type = pen_tensor_type_make(PEN_UINT8, 2, (int64_t[]){3, 5}),
                             .sequence = sequence,
                             .channel = 8,
                             .bytes = count};
    // the checksums live as long as the frame: stations here free their tokens
    const pen_status status =
        s->kind->send_frame(s->transport, peer, &frame, pen_memory_place_at(bytes), checksums,
                            (uint64_t)(uintptr_t)checksums);
    if (status == PEN_OK) return true;
    assert_int_equal(pen_status_get_code(status), PEN_UNAVAILABLE);
    pen_status_ignore(status, "the caller decides");
    free(checksums);
    return false;
}

static void send_frame(station *s, uint32_t peer, uint64_t sequence, const uint8_t *bytes,
                       uint64_t count) {
    assert_true(try_frame(s, peer, sequence, bytes, count));
}

// ---- strangers

static void any_grpc_client_can_talk(void **state) {
    (void)state;
    station one;
    char command[600];
    uint8_t bytes[15];
    for (uint8_t i = 0; i < 15; i++)
        bytes[i] = i;
    const char *folder = scratch_path("python");
    open_station(&one, 1, 2 * MIB);
    snprintf(
        command, sizeof command,
        "mkdir -p %s && exec /usr/bin/python3 tests/scheduler/transport/grpc/grpc_client.py %u %s",
        folder, one.port, folder);
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    assert_true(station_wait_up(&one, 7, 1));
    assert_true(station_wait(&one, &one.frame_count, 1));
    assert_string_equal(one.introduction,
                        "job 'test' peer 7 generation 3 incarnation 99 certificate 'none'");
    assert_string_equal(one.last_message, "from python");
    assert_int_equal(one.up_count[8], 8); // those who lie, or say too much
    assert_int_equal(one.down_count[8], 8);
    assert_int_equal(one.wrong_count, 0);
    assert_int_equal(one.last_frame.bytes, MIB + 12);
    assert_int_equal(one.last_frame.step, 4);
    assert_int_equal(one.last_frame.type.shape.dims[0], 262147);
    CHECK_OK(one.kind->send_message(one.transport, 7, "to python", 9));
    send_frame(&one, 7, 0, bytes, 15);
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "grpc_client.py failed");
    assert_true(station_wait_down(&one, 7, 1));
    CHECK(strstr(one.down_text, "all is said") != NULL, "%s", one.down_text);
    assert_int_equal(one.kind->counters(one.transport).refusals, 15);
    station_close(&one);
}

static int open_socket(uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(descriptor >= 0, "no socket");
    CHECK(connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0,
          "cannot connect");
    return descriptor;
}

static void half_open_connections_and_noise_do_no_harm(void **state) {
    (void)state;
    station zero, one;
    int sockets[60];
    open_station(&zero, 0, 0);
    open_station(&one, 1, 0);
    for (int i = 0; i < 60; i++) {
        sockets[i] = open_socket(one.port);
        const char noise[] = "GET / HTTP/1.1\r\n\r\n\xff\xfe\x01";
        if (i % 3 == 1) assert_int_equal(write(sockets[i], noise, sizeof noise), sizeof noise);
        const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00";
        if (i % 3 == 2) {
            assert_int_equal(write(sockets[i], preface, sizeof preface), sizeof preface);
        }
    }
    assert_true(station_link(&zero, &one, 0, 1));
    for (int i = 0; i < 60; i++)
        close(sockets[i]);
    CHECK_OK(zero.kind->send_message(zero.transport, 1, "x", 1));
    assert_true(station_wait(&one, &one.message_count, 1));
    station_close(&zero);
    station_close(&one);
}

static bool is_closed_by_peer(int descriptor) {
    uint8_t byte;
    for (;;) {
        const ssize_t count = recv(descriptor, &byte, 1, MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN) return false;
        if (count <= 0) return true;
    }
}

// Connections on which nothing is said are closed after the handshake's 5 seconds.
static void half_open_connections_are_shed(void **state) {
    (void)state;
    enum { COUNT = 50 };
    station one;
    int sockets[COUNT];
    open_station(&one, 1, 0);
    for (int i = 0; i < COUNT; i++)
        sockets[i] = open_socket(one.port);
    const double start = pen_clock_seconds();
    for (int i = 0; i < COUNT; i++) {
        while (!is_closed_by_peer(sockets[i]) && pen_clock_seconds() - start < 30)
            usleep(20000);
        CHECK(is_closed_by_peer(sockets[i]), "connection %d is still there", i);
        close(sockets[i]);
    }
    CHECK(pen_clock_seconds() - start > 2, "%.1f s", pen_clock_seconds() - start);
    station_close(&one);
}

// ---- refusals

static pen_status judge_generation(const pen_introduction *who) {
    if (who->generation == 4) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "generation %" PRIu64 " is over, now is 4",
                     who->generation);
}

static _Atomic int judge_count;

static pen_status judge_later(const pen_introduction *who) {
    (void)who;
    judge_count += 1;
    return judge_count < 4 ? pen_error(PEN_UNAVAILABLE, "still loading") : PEN_OK;
}

static void refusals_are_told(void **state) {
    (void)state;
    station zero, one;
    open_station(&zero, 0, 0);
    open_station(&one, 1, 0);
    station_set_judge(&one, judge_generation);
    CHECK_OK(connect_to(&zero, &one, 1, 10));
    assert_true(station_wait_down(&zero, 1, 1));
    CHECK(strstr(zero.down_text, "it refuses: generation 3 is over, now is 4") != NULL, "%s",
          zero.down_text);
    assert_int_equal(zero.down_code, PEN_INVALID_INPUT);
    assert_int_equal(one.down_count[0], 0);
    assert_int_equal(one.kind->counters(one.transport).refusals, 1);
    station_set_judge(&one, judge_later);
    // who is only not ready is asked again, also who is another then
    CHECK_OK(connect_to(&zero, &one, 2, 10));
    assert_true(station_wait_down(&zero, 2, 1));
    CHECK(strstr(zero.down_text, "here is peer 1, not 2") != NULL, "%s", zero.down_text);
    assert_int_equal(judge_count, 4);
    judge_count = 0;
    assert_true(station_link(&zero, &one, 0, 1));
    assert_int_equal(judge_count, 4);
    station_close(&zero);
    station_close(&one);
}

static void a_refused_frame_ends_the_link_at_both_ends(void **state) {
    (void)state;
    for (int turn = 0; turn < 2; turn++) { // the caller refuses, the called one refuses
        station zero, one;
        open_station(&zero, 0, 4 * MIB);
        open_station(&one, 1, 4 * MIB);
        assert_true(station_link(&zero, &one, 0, 1));
        station *from = turn == 0 ? &one : &zero, *to = turn == 0 ? &zero : &one;
        const uint32_t from_peer = turn == 0 ? 0 : 1, to_peer = 1 - from_peer;
        station_refuse_frames(to);
        uint8_t *bytes = calloc(1, 8 * MIB);
        uint64_t sent_count = 0;
        while (sent_count < 5 && try_frame(from, from_peer, sent_count, bytes, 8 * MIB)) {
            sent_count += 1;
        }
        assert_true(sent_count > 0);
        assert_true(station_wait_down(from, from_peer, 1));
        assert_true(station_wait_down(to, to_peer, 1));
        CHECK(strstr(from->down_text, "channel 8 is not in the plan") != NULL, "%s",
              from->down_text);
        CHECK(strstr(to->down_text, "channel 8 is not in the plan") != NULL, "%s", to->down_text);
        assert_int_equal(from->down_code, PEN_INVALID_INPUT);
        assert_true(station_wait(from, &from->let_go_count, sent_count));
        station_close(&zero);
        station_close(&one);
        free(bytes);
        assert_int_equal(from->let_go_count, sent_count);
    }
}

// ---- ends

static void breaking_off_in_a_frame_gives_all_back(void **state) {
    (void)state;
    uint8_t *bytes = calloc(1, 40 * MIB);
    for (int turn = 0; turn < 6; turn++) {
        station zero, one;
        open_station(&zero, 0, 40 * MIB);
        open_station(&one, 1, 40 * MIB);
        assert_true(station_link(&zero, &one, 0, 1));
        for (uint64_t i = 0; i < 4; i++) {
            send_frame(&zero, 1, i, bytes, 40 * MIB);
            send_frame(&one, 0, i, bytes, 40 * MIB);
        }
        usleep((useconds_t)(turn * 2500));
        station *who = turn % 2 == 0 ? &zero : &one;
        if (turn < 4) {
            who->kind->disconnect(who->transport, turn % 2 == 0 ? 1 : 0);
            assert_true(station_wait_down(&zero, 1, 1));
            assert_true(station_wait_down(&one, 0, 1));
            assert_true(station_wait(&zero, &zero.let_go_count, 4));
            assert_true(station_wait(&one, &one.let_go_count, 4));
            CHECK(strstr(turn % 2 == 0 ? one.down_text : zero.down_text, "the link was closed") !=
                      NULL,
                  "%s / %s", zero.down_text, one.down_text);
        }
        station_close(&zero); // in the last turns while all is on its way
        station_close(&one);
        assert_int_equal(zero.let_go_count, 4);
        assert_int_equal(one.let_go_count, 4);
        assert_int_equal(zero.down_count[1], 1);
        assert_int_equal(one.down_count[0], 1);
        assert_int_equal(zero.wrong_count + one.wrong_count, 0);
    }
    free(bytes);
}

static void links_come_up_again(void **state) {
    (void)state;
    station zero, one;
    open_station(&zero, 0, 0);
    open_station(&one, 1, 0);
    for (uint32_t turn = 1; turn <= 10; turn++) {
        assert_true(station_link(&zero, &one, 0, 1));
        CHECK_OK(zero.kind->send_message(zero.transport, 1, "last words", 10));
        zero.kind->disconnect(zero.transport, 1);
        assert_true(station_wait_down(&zero, 1, turn));
        assert_true(station_wait_down(&one, 0, turn));
        assert_true(station_wait(&one, &one.message_count, turn)); // what was queued still came
    }
    station other; // a second process that says it is peer 0: the newer one counts
    open_station(&other, 0, 0);
    assert_true(station_link(&zero, &one, 0, 1));
    assert_true(station_link(&other, &one, 0, 1));
    assert_true(station_wait_down(&zero, 1, 11));
    CHECK(strstr(zero.down_text, "opened another link") != NULL, "%s", zero.down_text);
    CHECK_OK(one.kind->send_message(one.transport, 0, "you", 3));
    assert_true(station_wait(&other, &other.message_count, 1));
    station_close(&other);
    station_close(&zero);
    station_close(&one);
}

static void *keep_calling(void *context) {
    station *s = context;
    for (uint32_t peer = 2; peer < 400; peer++) {
        const pen_status status = s->kind->connect(s->transport, peer, "127.0.0.1:1", 10);
        if (status == PEN_OK) continue;
        pen_status_ignore(status, "it is closing");
        break;
    }
    return NULL;
}

// Links that are asked for at the moment when the transport closes end with it. Where one did not,
// the transport could not be taken down.
static void calls_end_with_the_transport(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        station s;
        pthread_t caller;
        const pen_transport_options options = options_of(1);
        CHECK_OK(station_open(&s, "grpc", &options, NULL, MIB));
        assert_int_equal(pthread_create(&caller, NULL, keep_calling, &s), 0);
        usleep(i * 50);
        s.kind->close(s.transport);
        assert_int_equal(pthread_join(caller, NULL), 0);
        station_close(&s);
    }
}

static void many_links_at_once(void **state) {
    (void)state;
    enum { COUNT = 8 };
    static station stations[COUNT];
    uint8_t bytes[4096] = {1, 2, 3};
    for (uint32_t i = 0; i < COUNT; i++)
        open_station(&stations[i], i, MIB);
    for (uint32_t i = 0; i < COUNT; i++) {
        for (uint32_t j = i + 1; j < COUNT; j++) {
            CHECK_OK(connect_to(&stations[i], &stations[j], j, 20));
        }
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        for (uint32_t j = 0; j < COUNT; j++) {
            if (i != j) CHECK(station_wait_up(&stations[i], j, 1), "%u to %u", i, j);
        }
    }
    for (uint64_t n = 0; n < 20; n++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            for (uint32_t j = 0; j < COUNT; j++) {
                if (i == j) continue;
                send_frame(&stations[i], j, n, bytes, sizeof bytes);
                CHECK_OK(stations[i].kind->send_message(stations[i].transport, j, &n, sizeof n));
            }
        }
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        station *s = &stations[i];
        assert_true(station_wait(s, &s->frame_count, 20 * (COUNT - 1)));
        assert_true(station_wait(s, &s->message_count, 20 * (COUNT - 1)));
        assert_true(station_wait(s, &s->let_go_count, 20 * (COUNT - 1)));
        assert_int_equal(s->wrong_count, 0);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        station_close(&stations[i]);
}

// ---- deaths. The peer is this program, run anew: a process cannot be forked once it has used
// gRPC.

// Peer 0 of a link to port `port`, that sends frames until it is killed.
static int run_victim(const char *port) {
    station zero;
    char address[64];
    static uint8_t bytes[4 << 20];
    const pen_transport_options options = options_of(0);
    snprintf(address, sizeof address, "127.0.0.1:%s", port);
    CHECK_OK(station_open(&zero, "grpc", &options, NULL, 0));
    zero.frees_tokens = true;
    CHECK_OK(zero.kind->connect(zero.transport, 1, address, 10));
    if (!station_wait_up(&zero, 1, 1)) return 1;
    for (uint64_t i = 0;; i++) {
        send_frame(&zero, 1, i, bytes, sizeof bytes);
        if (!station_wait(&zero, &zero.let_go_count, i)) return 1;
    }
}

static void a_killed_peer_is_missed_at_once(void **state) {
    (void)state;
    station one;
    open_station(&one, 1, 4 * MIB);
    for (uint32_t turn = 1; turn <= 3; turn++) {
        char port[16], path[512] = {0};
        snprintf(port, sizeof port, "%u", one.port);
        CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0, "no path");
        const uint64_t frames = one.frame_count;
        const pid_t child = fork();
        if (child == 0) {
            execl(path, path, "victim", port, (char *)NULL);
            _exit(127);
        }
        assert_true(station_wait(&one, &one.frame_count, frames + 3));
        const double start = pen_clock_seconds();
        kill(child, SIGKILL);
        assert_true(station_wait_down(&one, 0, turn));
        CHECK(pen_clock_seconds() - start < 10, "noticed after %.1f s",
              pen_clock_seconds() - start);
        CHECK(strstr(one.down_text, "broke") != NULL, "%s", one.down_text);
        assert_int_equal(one.down_code, PEN_UNAVAILABLE);
        int status;
        waitpid(child, &status, 0);
    }
    assert_int_equal(one.wrong_count, 0);
    station_close(&one);
}

// Only keepalive can tell: the connection of a stopped process stays as it is.
static void a_frozen_peer_is_given_up(void **state) {
    (void)state;
    if (getenv("PEN_LONG") == NULL) skip(); // takes up to 13 seconds
    station one;
    char port[16], path[512] = {0};
    open_station(&one, 1, 4 * MIB);
    snprintf(port, sizeof port, "%u", one.port);
    CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0, "no path");
    const pid_t child = fork();
    if (child == 0) {
        execl(path, path, "victim", port, (char *)NULL);
        _exit(127);
    }
    assert_true(station_wait(&one, &one.frame_count, 3));
    const double start = pen_clock_seconds();
    kill(child, SIGSTOP);
    const bool is_down = station_wait_down(&one, 0, 1) || station_wait_down(&one, 0, 1);
    const double seconds = pen_clock_seconds() - start;
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    CHECK(is_down && seconds > 1 && seconds < 13, "after %.1f s", seconds);
    station_close(&one);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_grpc_client_can_talk),
        cmocka_unit_test(half_open_connections_and_noise_do_no_harm),
        cmocka_unit_test(half_open_connections_are_shed),
        cmocka_unit_test(refusals_are_told),
        cmocka_unit_test(a_refused_frame_ends_the_link_at_both_ends),
        cmocka_unit_test(breaking_off_in_a_frame_gives_all_back),
        cmocka_unit_test(links_come_up_again),
        cmocka_unit_test(calls_end_with_the_transport),
        cmocka_unit_test(many_links_at_once),
        cmocka_unit_test(a_killed_peer_is_missed_at_once),
        cmocka_unit_test(a_frozen_peer_is_given_up),
    };
    if (count == 3 && strcmp(arguments[1], "victim") == 0) return run_victim(arguments[2]);
    cmocka_set_test_filter(getenv("PEN_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
