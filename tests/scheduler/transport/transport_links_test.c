// What every transport of the list promises about how links begin and transports end (transport.h).
#include <inttypes.h>

#include "tests/support/check.h"
#include "tests/support/conformance.h"

// ---- links that begin

static _Atomic uint32_t judge_count; // of the thread that judges, and of the test

static pen_status judge_refuses(const pen_introduction *who) {
    return pen_error(PEN_UNSUPPORTED, "peer %u may not", who->peer);
}

static pen_status judge_wants_patience(const pen_introduction *who) {
    return ++judge_count < 3 ? pen_error(PEN_UNAVAILABLE, "not yet, peer %u", who->peer) : PEN_OK;
}

static _Atomic uint32_t taken_count, misled_count; // likewise

static pen_status judge_counts(const pen_introduction *who) {
    if (who->is_misled) {
        misled_count++;
    } else {
        taken_count++;
    }
    return PEN_OK;
}

static station *judge_caller; // of the test

static pen_status judge_sees_it_end(const pen_introduction *who) {
    judge_caller->kind->disconnect(judge_caller->transport, 1);
    return judge_counts(who);
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
    taken_count = misled_count = 0;
    station_set_judge(&one, judge_counts);
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
    CHECK(one.up_count[0] == 0 && one.down_count[0] == 0, "%s: of a misled link", kind_name);
    CHECK(station_link(&zero, &one, 0, 1), "%s: the right one", kind_name);
    CHECK(misled_count == 2 && taken_count == 1, "%s: %u misled, %u not", kind_name, misled_count,
          taken_count);
    station_close(&zero);
    station_close(&one);
}
FOR_EACH_KIND(the_wrong_peer_is_refused)

// Who took a link hears of its end, also of one that never was up.
static void a_link_may_end_while_it_is_taken_of_kind(void) {
    station zero, one;
    open_station(&zero, 0, false, 0);
    open_station(&one, 1, true, 0);
    taken_count = 0;
    judge_caller = &zero;
    station_set_judge(&one, judge_sees_it_end);
    connect_to(&zero, &one, 1, 10);
    CHECK(station_wait_down(&zero, 1, 1), "%s", kind_name);
    station_close(&zero);
    station_close(&one);
    CHECK(taken_count == 1 && one.down_count[0] == 1, "%s: %u taken, %u ended", kind_name,
          taken_count, one.down_count[0]);
}
FOR_EACH_KIND(a_link_may_end_while_it_is_taken)

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

PEN_TEST_MAIN(cmocka_unit_test(a_listener_may_refuse), cmocka_unit_test(the_wrong_peer_is_refused),
              cmocka_unit_test(a_link_may_end_while_it_is_taken),
              cmocka_unit_test(any_peer_learns_its_number),
              cmocka_unit_test(a_newer_link_replaces_the_older), cmocka_unit_test(nobody_listens),
              cmocka_unit_test(a_late_listener_is_found), cmocka_unit_test(every_state_can_end),
              cmocka_unit_test(a_port_is_taken_once), cmocka_unit_test(unknown_kinds_are_named))
