// What every transport of the list promises (transport.h).
#include <inttypes.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "tests/support/check.h"
#include "tests/support/station.h"

#define MIB ((uint64_t)1 << 20)

// The kind under test.
static const char *kind_name;
static pen_simulated_network *network;
static double resume_seconds; // of the transports under test
static bool shares_memory;

// Those of the list, then the tests' own.
static const pen_transport_kind *kind_at(uint32_t index) {
    uint32_t count = 0;
    while (pen_transport_kinds[count] != NULL) {
        count++;
    }
    if (index == count) return &pen_transport_simulated;
    return index < count ? pen_transport_kinds[index] : NULL;
}

static void begin_kind(const pen_transport_kind *kind) {
    kind_name = kind->name;
    network = NULL;
    if (strcmp(kind_name, "simulated") != 0) return;
    const pen_simulated_options options = {
        .seed = 5, .latency_min = 1000, .latency_max = 3000000, .bytes_per_second = 1e9};
    CHECK_OK(pen_simulated_network_create(&options, &network));
}

static void end_kind(void) {
    pen_simulated_network_destroy(network);
    network = NULL;
}

#define FOR_EACH_KIND(test)                                                                        \
    static void test(void **state) {                                                               \
        (void)state;                                                                               \
        for (uint32_t k = 0; kind_at(k) != NULL; k++) {                                            \
            resume_seconds = 0;                                                                    \
            shares_memory = false;                                                                 \
            begin_kind(kind_at(k));                                                                \
            test##_of_kind();                                                                      \
            end_kind();                                                                            \
            if (strcmp(kind_name, "grpc") != 0) continue;                                          \
            resume_seconds = 20; /* links that outlive connections promise the same */             \
            test##_of_kind();                                                                      \
            shares_memory = true; /* and those whose frames go through shared memory */            \
            test##_of_kind();                                                                      \
            resume_seconds = 0;                                                                    \
            test##_of_kind();                                                                      \
        }                                                                                          \
    }

static double now_seconds(void) {
    return network != NULL ? (double)pen_simulated_network_now(network) * 1e-9
                           : pen_clock_seconds();
}

static void open_station(station *s, uint32_t peer, bool listens, uint64_t memory_bytes) {
    const pen_transport_options options = {.self = {.job = "test",
                                                    .peer = peer,
                                                    .generation = 3,
                                                    .incarnation = 70 + peer,
                                                    .shares_memory = shares_memory},
                                           .network = network,
                                           .resume_seconds = resume_seconds};
    CHECK_OK(station_open(s, kind_name, &options, listens ? "127.0.0.1:0" : NULL, memory_bytes));
}

static void open_pair(station *zero, station *one, uint64_t memory_bytes) {
    open_station(zero, 0, false, memory_bytes);
    open_station(one, 1, true, memory_bytes);
    CHECK(station_link(zero, one, 0, 1), "%s: no link", kind_name);
}

static void send_text(station *s, uint32_t peer, const char *text) {
    CHECK_OK(s->kind->send_message(s->transport, peer, text, strlen(text)));
}

// A pattern that all frames send from, and the checksums of its beginnings.
static uint8_t *payload;
static uint32_t payload_checksums[64];
static uint64_t payload_checked;

static void prepare_payload(uint64_t bytes) {
    if (payload == NULL) {
        payload = malloc(34 * MIB);
        for (uint64_t i = 0; i < 34 * MIB; i++) {
            payload[i] = (uint8_t)(i * 31 + i / 251);
        }
    }
    pen_checksum_chunks(payload, bytes, payload_checksums);
    payload_checked = bytes;
}

static pen_status try_frame(station *s, uint32_t peer, uint64_t sequence, uint64_t token) {
    const pen_frame frame = {.kind = PEN_FRAME_VALUE,
                             .generation = 3,
                             .incarnation = 77,
                             .step = 5,
                             .form = 1,
                             .microbatch = 2,
                             .channel = 9,
                             .layout = 4,
                             .type = pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){3, 4}),
                             .sequence = sequence,
                             .bytes = payload_checked};
    return s->kind->send_frame(s->transport, peer, &frame, pen_memory_place_at(payload),
                               payload_checksums, token);
}

static void send_frames(station *s, uint32_t peer, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(try_frame(s, peer, i, i + 1));
    }
}

// ---- messages and frames

static void messages_go_both_ways_of_kind(void) {
    station zero, one;
    open_pair(&zero, &one, 0);
    CHECK(strcmp(one.introduction,
                 "job 'test' peer 0 generation 3 incarnation 70 certificate 'none'") == 0,
          "%s: %s", kind_name, one.introduction);
    send_text(&zero, 1, "hello");
    CHECK(station_wait(&one, &one.message_count, 1), "%s", kind_name);
    CHECK(strcmp(one.last_message, "hello") == 0, "%s: '%s'", kind_name, one.last_message);
    send_text(&one, 0, "");
    send_text(&one, 0, "and back");
    CHECK(station_wait(&zero, &zero.message_count, 2), "%s", kind_name);
    CHECK(strcmp(zero.last_message, "and back") == 0, "%s: '%s'", kind_name, zero.last_message);
    char *large = malloc(MIB + 1);
    memset(large, 'x', MIB + 1);
    CHECK_OK(zero.kind->send_message(zero.transport, 1, large, MIB));
    CHECK(station_wait(&one, &one.message_count, 2), "%s", kind_name);
    CHECK(one.message_bytes == MIB + 5, "%s: %" PRIu64, kind_name, one.message_bytes);
    CHECK_ERROR(zero.kind->send_message(zero.transport, 1, large, MIB + 1), PEN_INTERNAL,
                "at most");
    CHECK_ERROR(zero.kind->send_message(zero.transport, 2, large, 1), PEN_UNAVAILABLE,
                "no link to peer 2");
    free(large);
    station_close(&zero);
    CHECK(station_wait_down(&one, 0, 1), "%s", kind_name);
    CHECK(strstr(one.down_text, "peer 0 closed the link") != NULL, "%s: %s", kind_name,
          one.down_text);
    station_close(&one);
    CHECK(zero.down_count[1] == 1 && one.down_count[0] == 1, "%s: once each", kind_name);
}
FOR_EACH_KIND(messages_go_both_ways)

static void frames_arrive_whole_of_kind(void) {
    static const uint64_t sizes[] = {0,       1, 63, 4096, MIB - 1, MIB, MIB + 1, 5 * MIB + 12345,
                                     33 * MIB};
    const uint64_t count = sizeof sizes / sizeof *sizes;
    station zero, one;
    open_pair(&zero, &one, 33 * MIB);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        prepare_payload(sizes[i]);
        memset(one.memory, 0, sizes[i]);
        CHECK_OK(try_frame(&zero, 1, i, 100 + i));
        sum += sizes[i];
        CHECK(station_wait(&one, &one.frame_count, i + 1), "%s: frame %" PRIu64, kind_name, i);
        CHECK(memcmp(one.memory, payload, sizes[i]) == 0, "%s: frame %" PRIu64, kind_name, i);
        CHECK(station_wait(&zero, &zero.let_go_count, i + 1), "%s: lent", kind_name);
    }
    CHECK(one.wrong_count == 0, "%s: order, checksums", kind_name);
    CHECK(one.last_frame.layout == 4 && one.last_frame.type.shape.dims[1] == 4 &&
              one.last_frame.channel == 9 && one.last_frame.form == 1 &&
              one.last_frame.incarnation == 77,
          "%s: the header", kind_name);
    CHECK(zero.token_sum == 100 * count + count * (count - 1) / 2, "%s: tokens", kind_name);
    const pen_transport_counters sent = zero.kind->counters(zero.transport);
    const pen_transport_counters got = one.kind->counters(one.transport);
    CHECK(sent.bytes_sent == sum && sent.frames_sent == count, "%s: sent", kind_name);
    CHECK(got.bytes_received == sum && got.frames_received == count, "%s: received", kind_name);
    CHECK(sent.bytes_copied == (shares_memory ? sum : 0) && got.bytes_copied == sum,
          "%s: one copy, or one into shared memory and one out of it", kind_name);
    station_close(&zero);
    station_close(&one);
}
FOR_EACH_KIND(frames_arrive_whole)

static void both_directions_at_once_of_kind(void) {
    station zero, one;
    prepare_payload(300000);
    open_pair(&zero, &one, 300000);
    for (uint32_t i = 0; i < 100; i++) {
        CHECK_OK(try_frame(&zero, 1, i, i));
        CHECK_OK(try_frame(&one, 0, i, i));
        send_text(&zero, 1, "there");
        send_text(&one, 0, "back");
    }
    CHECK(station_wait(&zero, &zero.frame_count, 100), "%s", kind_name);
    CHECK(station_wait(&one, &one.frame_count, 100), "%s", kind_name);
    CHECK(station_wait(&zero, &zero.message_count, 100), "%s", kind_name);
    CHECK(station_wait(&one, &one.message_count, 100), "%s", kind_name);
    CHECK(station_wait(&zero, &zero.let_go_count, 100), "%s", kind_name);
    CHECK(station_wait(&one, &one.let_go_count, 100), "%s", kind_name);
    CHECK(zero.wrong_count + one.wrong_count == 0, "%s: order", kind_name);
    station_close(&one);
    station_close(&zero);
}
FOR_EACH_KIND(both_directions_at_once)

#define MANY 5

static void many_peers_of_kind(void) {
    station all[MANY];
    prepare_payload(70000);
    for (uint32_t i = 0; i < MANY; i++) {
        open_station(&all[i], i, true, 70000);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        for (uint32_t j = i + 1; j < MANY; j++) {
            CHECK(station_link(&all[i], &all[j], i, j), "%s: %u to %u", kind_name, i, j);
        }
    }
    for (uint32_t n = 0; n < 20; n++) {
        for (uint32_t i = 0; i < MANY; i++) {
            for (uint32_t j = 0; j < MANY; j++) {
                if (i != j) CHECK_OK(try_frame(&all[i], j, n, 1));
            }
        }
    }
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK(station_wait(&all[i], &all[i].frame_count, 20 * (MANY - 1)), "%s", kind_name);
        CHECK(station_wait(&all[i], &all[i].let_go_count, 20 * (MANY - 1)), "%s", kind_name);
        CHECK(all[i].wrong_count == 0, "%s: order", kind_name);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        station_close(&all[i]);
    }
}
FOR_EACH_KIND(many_peers)

static void messages_overtake_frames_of_kind(void) {
    station zero, one;
    prepare_payload(8 * MIB);
    open_pair(&zero, &one, 8 * MIB);
    send_frames(&zero, 1, 20);
    send_text(&zero, 1, "quick");
    CHECK(station_wait(&one, &one.frame_count, 20), "%s", kind_name);
    CHECK(station_wait(&one, &one.message_count, 1), "%s", kind_name);
    CHECK(one.frames_at_message < 18, "%s: the message came after %" PRIu64 " frames", kind_name,
          one.frames_at_message);
    CHECK(one.wrong_count == 0, "%s: order", kind_name);
    station_close(&zero);
    station_close(&one);
}
FOR_EACH_KIND(messages_overtake_frames)

// ---- links that end

static void lent_memory_comes_back_once_of_kind(void) {
    station zero, one;
    prepare_payload(2 * MIB);
    open_pair(&zero, &one, 2 * MIB);
    send_frames(&zero, 1, 30);
    zero.kind->disconnect(zero.transport, 1);
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    CHECK(zero.down_code == PEN_CANCELLED, "%s: %s", kind_name, zero.down_text);
    CHECK(station_wait(&zero, &zero.let_go_count, 30), "%s: let go", kind_name);
    CHECK(station_wait_down(&one, 0, 1), "%s", kind_name);
    CHECK(strstr(one.down_text, "peer 0 closed the link") != NULL, "%s: %s", kind_name,
          one.down_text);
    CHECK_ERROR(try_frame(&zero, 1, 0, 1), PEN_UNAVAILABLE, "no link to peer 1");
    CHECK_ERROR(one.kind->send_message(one.transport, 0, "x", 1), PEN_UNAVAILABLE,
                "no link to peer 0");
    zero.kind->disconnect(zero.transport, 1); // nothing
    CHECK(station_link(&zero, &one, 0, 1), "%s: once more", kind_name);
    send_frames(&one, 0, 10);
    zero.kind->disconnect(zero.transport, 1); // by the receiver
    CHECK(station_wait(&one, &one.let_go_count, 10), "%s: let go", kind_name);
    station_close(&zero);
    station_close(&one);
    CHECK(zero.let_go_count == 30 && zero.token_sum == 31 * 15, "%s: each once", kind_name);
    CHECK(one.let_go_count == 10 && one.token_sum == 55, "%s: each once", kind_name);
    CHECK(zero.down_count[1] == 2 && one.down_count[0] == 2, "%s: once for each up", kind_name);
    CHECK(zero.up_count[1] == 2 && one.up_count[0] == 2, "%s: ups", kind_name);
}
FOR_EACH_KIND(lent_memory_comes_back_once)

static void stopping_waits_for_lent_memory_of_kind(void) {
    for (uint32_t who = 0; who < 2; who++) {
        station zero, one;
        prepare_payload(2 * MIB);
        open_pair(&zero, &one, 2 * MIB);
        send_frames(&zero, 1, 10);
        send_frames(&one, 0, 10);
        station_close(who == 0 ? &zero : &one);
        station_close(who == 0 ? &one : &zero);
        CHECK(zero.let_go_count == 10 && zero.token_sum == 55, "%s: each once", kind_name);
        CHECK(one.let_go_count == 10 && one.token_sum == 55, "%s: each once", kind_name);
        CHECK(zero.down_count[1] == 1 && one.down_count[0] == 1, "%s: once each", kind_name);
    }
}
FOR_EACH_KIND(stopping_waits_for_lent_memory)

static void a_refused_frame_ends_the_link_of_kind(void) {
    station zero, one;
    prepare_payload(3 * MIB);
    open_pair(&zero, &one, 3 * MIB);
    station_refuse_frames(&one);
    uint64_t sent = 0;
    for (uint32_t i = 0; i < 3; i++) { // the first one may be refused before the last is sent
        const pen_status status = try_frame(&zero, 1, i, i + 1);
        if (status == PEN_OK) sent++;
        pen_status_ignore(status, "counted");
    }
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    CHECK(zero.down_code == PEN_INVALID_INPUT, "%s: %s", kind_name, zero.down_text);
    CHECK(strstr(zero.down_text, "channel 9 is not in the plan") != NULL, "%s: %s", kind_name,
          zero.down_text);
    CHECK(station_wait_down(&one, 0, 1), "%s", kind_name);
    CHECK(strstr(one.down_text, "channel 9 is not in the plan") != NULL, "%s: %s", kind_name,
          one.down_text);
    CHECK(station_wait(&zero, &zero.let_go_count, sent), "%s: let go", kind_name);
    station_close(&zero);
    station_close(&one);
    CHECK(sent > 0 && zero.let_go_count == sent && one.frame_count == 0, "%s", kind_name);
}
FOR_EACH_KIND(a_refused_frame_ends_the_link)

// Memory of a device that this process does not see is refused where it is named, not read.
static void foreign_memory_is_refused_of_kind(void) {
    static const pen_memory_domain elsewhere = {.name = "another planet"};
    station zero, one;
    const pen_frame frame = {.kind = PEN_FRAME_VALUE, .bytes = 64};
    prepare_payload(64);
    open_pair(&zero, &one, 64);
    CHECK_ERROR(zero.kind->send_frame(zero.transport, 1, &frame, (pen_memory_place){&elsewhere, 64},
                                      payload_checksums, 1),
                PEN_UNSUPPORTED, "memory of another planet");
    station_set_domain(&one, &elsewhere);
    send_frames(&zero, 1, 1);
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    CHECK(strstr(zero.down_text, "memory of another planet") != NULL, "%s: %s", kind_name,
          zero.down_text);
    CHECK(station_wait_down(&one, 0, 1), "%s", kind_name);
    CHECK(station_wait(&zero, &zero.let_go_count, 1), "%s: let go", kind_name);
    station_close(&zero);
    station_close(&one);
    CHECK(zero.let_go_count == 1 && one.frame_count == 0, "%s: nothing came", kind_name);
}
FOR_EACH_KIND(foreign_memory_is_refused)

// ---- links that begin

static _Atomic uint32_t judge_count; // of the thread that judges, and of the test

static pen_status judge_refuses(const pen_introduction *who) {
    return pen_error(PEN_UNSUPPORTED, "peer %u may not", who->peer);
}

static pen_status judge_wants_patience(const pen_introduction *who) {
    return ++judge_count < 3 ? pen_error(PEN_UNAVAILABLE, "not yet, peer %u", who->peer) : PEN_OK;
}

static void connect_to(station *from, const station *to, uint32_t peer, double seconds) {
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", to->port);
    CHECK_OK(from->kind->connect(from->transport, peer, address, seconds));
}

static void a_listener_may_refuse_of_kind(void) {
    station zero, one;
    open_station(&zero, 0, false, 0);
    open_station(&one, 1, true, 0);
    station_set_judge(&one, judge_refuses);
    connect_to(&zero, &one, 1, 10);
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    CHECK(zero.down_code == PEN_UNSUPPORTED, "%s: %s", kind_name, zero.down_text);
    CHECK(strstr(zero.down_text, "peer 0 may not") != NULL, "%s: %s", kind_name, zero.down_text);
    CHECK(one.kind->counters(one.transport).refusals == 1, "%s: counted", kind_name);
    station_set_judge(&one, judge_wants_patience);
    judge_count = 0;
    CHECK(station_link(&zero, &one, 0, 1), "%s: patience", kind_name);
    CHECK(judge_count == 3, "%s: asked %u times", kind_name, judge_count);
    station_close(&zero);
    station_close(&one);
    CHECK(zero.up_count[1] == 1 && one.up_count[0] == 1, "%s: up", kind_name);
    CHECK(zero.down_count[1] == 2 && one.down_count[0] == 1, "%s: down", kind_name);
}
FOR_EACH_KIND(a_listener_may_refuse)

static void the_wrong_peer_is_refused_of_kind(void) {
    station zero, one;
    open_station(&one, 1, true, 0);
    const pen_transport_options other = {.self = {.job = "another", .peer = 0}, .network = network};
    CHECK_OK(station_open(&zero, kind_name, &other, NULL, 0));
    connect_to(&zero, &one, 1, 10);
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    CHECK(strstr(zero.down_text, "here is job 'test', not 'another'") != NULL, "%s: %s", kind_name,
          zero.down_text);
    const pen_introduction self = {.job = "test", .peer = 0};
    CHECK_OK(zero.kind->introduce(zero.transport, &self));
    connect_to(&zero, &one, 2, 10);
    CHECK(station_wait_down(&zero, 2, 1), "%s", kind_name);
    CHECK(strstr(zero.down_text, "here is peer 1, not 2") != NULL, "%s: %s", kind_name,
          zero.down_text);
    CHECK(station_link(&zero, &one, 0, 1), "%s: the right one", kind_name);
    station_close(&zero);
    station_close(&one);
}
FOR_EACH_KIND(the_wrong_peer_is_refused)

static void any_peer_learns_its_number_of_kind(void) {
    station zero, any, two;
    const pen_transport_options unnamed = {.self = {.peer = PEN_TRANSPORT_ANY_PEER},
                                           .network = network};
    open_station(&zero, 0, false, 0);
    open_station(&two, 2, true, 0);
    CHECK_OK(station_open(&any, kind_name, &unnamed, "127.0.0.1:0", 0));
    CHECK(station_link(&zero, &any, 0, 1), "%s: it takes any number", kind_name);
    const pen_introduction self = {.job = "test", .peer = 1, .generation = 9};
    CHECK_OK(any.kind->introduce(any.transport, &self));
    CHECK(station_link(&any, &two, 1, 2), "%s: as peer 1", kind_name);
    CHECK(strstr(two.introduction, "job 'test' peer 1 generation 9") != NULL, "%s: %s", kind_name,
          two.introduction);
    send_text(&zero, 1, "still there");
    CHECK(station_wait(&any, &any.message_count, 1), "%s", kind_name);
    station_close(&zero);
    station_close(&any);
    station_close(&two);
}
FOR_EACH_KIND(any_peer_learns_its_number)

static void a_newer_link_replaces_the_older_of_kind(void) {
    station zero, again, one;
    open_pair(&zero, &one, 0);
    open_station(&again, 0, false, 0);
    CHECK(station_link(&again, &one, 0, 1), "%s", kind_name);
    CHECK(station_wait_down(&one, 0, 1), "%s", kind_name);
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    send_text(&one, 0, "to the newer");
    CHECK(station_wait(&again, &again.message_count, 1), "%s", kind_name);
    CHECK(zero.message_count == 0, "%s", kind_name);
    station_close(&one);
    station_close(&again);
    station_close(&zero);
    CHECK(one.up_count[0] == 2 && one.down_count[0] == 2, "%s: one's", kind_name);
    CHECK(zero.down_count[1] == 1 && again.down_count[1] == 1, "%s: theirs", kind_name);
}
FOR_EACH_KIND(a_newer_link_replaces_the_older)

static void nobody_listens_of_kind(void) {
    station one, zero;
    open_station(&one, 1, true, 0);
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", one.port);
    station_close(&one);
    open_station(&zero, 0, false, 0);
    const double start = now_seconds();
    CHECK_OK(zero.kind->connect(zero.transport, 1, address, 0.3));
    CHECK_ERROR(zero.kind->connect(zero.transport, 1, address, 0.3), PEN_INVALID_INPUT, "already");
    CHECK_ERROR(zero.kind->send_message(zero.transport, 1, "x", 1), PEN_UNAVAILABLE, "no link");
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    CHECK(now_seconds() - start >= 0.29, "%s: too soon", kind_name);
    CHECK(now_seconds() - start < 3, "%s: too late", kind_name);
    CHECK(zero.down_code == PEN_UNAVAILABLE, "%s: %s", kind_name, zero.down_text);
    CHECK(strstr(zero.down_text, "within 0.3 s: connection refused") != NULL, "%s: %s", kind_name,
          zero.down_text);
    CHECK_ERROR(zero.kind->connect(zero.transport, 1, "nowhere", 1), PEN_INVALID_INPUT, "nowhere");
    station_close(&zero);
    CHECK(zero.up_count[1] == 0 && zero.down_count[1] == 1, "%s: once", kind_name);
}
FOR_EACH_KIND(nobody_listens)

static void a_late_listener_is_found_of_kind(void) {
    station one, zero;
    open_station(&one, 1, true, 0);
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", one.port);
    station_close(&one);
    open_station(&zero, 0, false, 0);
    CHECK_OK(zero.kind->connect(zero.transport, 1, address, 10));
    if (network != NULL) {
        for (uint32_t i = 0; i < 5; i++) {
            CHECK(pen_simulated_network_step(network), "it tries");
        }
    }
    const pen_transport_options options = {.self = {.job = "test", .peer = 1}, .network = network};
    CHECK_OK(station_open(&one, kind_name, &options, address, 0));
    CHECK(station_wait_up(&zero, 1, 1), "%s: %s", kind_name, zero.down_text);
    station_close(&zero);
    station_close(&one);
}
FOR_EACH_KIND(a_late_listener_is_found)

// ---- ends of transports

static void every_state_can_end_of_kind(void) {
    station zero, one;
    for (uint32_t state = 0; state < 6; state++) {
        open_station(&zero, 0, false, MIB);
        open_station(&one, 1, true, MIB);
        prepare_payload(MIB);
        if (state == 1) { // connecting to nobody
            CHECK_OK(zero.kind->connect(zero.transport, 7, "127.0.0.1:1", 100));
        } else if (state == 2) { // just connecting
            connect_to(&zero, &one, 1, 100);
        } else if (state >= 3) {
            CHECK(station_link(&zero, &one, 0, 1), "%s", kind_name);
        }
        if (state >= 4) send_frames(&zero, 1, 5);
        if (state >= 4) send_text(&one, 0, "under way");
        if (state == 5) one.kind->close(one.transport);
        zero.kind->close(zero.transport);
        zero.kind->close(zero.transport);
        CHECK_ERROR(zero.kind->connect(zero.transport, 9, "127.0.0.1:9", 1), PEN_CANCELLED,
                    "closed");
        const pen_status status = zero.kind->send_message(zero.transport, 1, "x", 1);
        CHECK(status != PEN_OK, "%s: sent in state %u", kind_name, state);
        pen_status_ignore(status, "closed");
        zero.kind->stop(zero.transport);
        const uint64_t ups = zero.up_count[1];
        CHECK(zero.down_count[1] + zero.down_count[7] == (state == 0 ? 0 : 1), "%s: state %u",
              kind_name, state);
        CHECK(zero.let_go_count == (state >= 4 ? 5 : 0), "%s: state %u", kind_name, state);
        zero.kind->stop(zero.transport);
        station_close(&zero);
        station_close(&one);
        CHECK(one.up_count[0] == one.down_count[0] && ups <= 1, "%s: state %u", kind_name, state);
        zero.kind->destroy(NULL);
    }
}
FOR_EACH_KIND(every_state_can_end)

static void a_port_is_taken_once_of_kind(void) {
    station one, two;
    open_station(&one, 1, true, 0);
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", one.port);
    const pen_transport_options options = {.self = {.job = "test", .peer = 2}, .network = network};
    CHECK_ERROR(station_open(&two, kind_name, &options, address, 0), PEN_IO, "127.0.0.1");
    uint16_t port;
    CHECK_ERROR(one.kind->listen(one.transport, "127.0.0.1:0", &port), PEN_INTERNAL, "once");
    station_close(&one);
}
FOR_EACH_KIND(a_port_is_taken_once)

static void unknown_kinds_are_named(void **state) {
    (void)state;
    const pen_transport_kind *kind;
    CHECK_ERROR(pen_transport_kind_find("pigeon", &kind), PEN_NOT_FOUND, "local");
    CHECK_OK(pen_transport_kind_find("grpc", &kind));
    CHECK(strcmp(kind->name, "grpc") == 0, "%s", kind->name);
}

PEN_TEST_MAIN(cmocka_unit_test(messages_go_both_ways), cmocka_unit_test(frames_arrive_whole),
              cmocka_unit_test(both_directions_at_once), cmocka_unit_test(many_peers),
              cmocka_unit_test(messages_overtake_frames),
              cmocka_unit_test(lent_memory_comes_back_once),
              cmocka_unit_test(stopping_waits_for_lent_memory),
              cmocka_unit_test(a_refused_frame_ends_the_link),
              cmocka_unit_test(foreign_memory_is_refused), cmocka_unit_test(a_listener_may_refuse),
              cmocka_unit_test(the_wrong_peer_is_refused),
              cmocka_unit_test(any_peer_learns_its_number),
              cmocka_unit_test(a_newer_link_replaces_the_older), cmocka_unit_test(nobody_listens),
              cmocka_unit_test(a_late_listener_is_found), cmocka_unit_test(every_state_can_end),
              cmocka_unit_test(a_port_is_taken_once), cmocka_unit_test(unknown_kinds_are_named))
