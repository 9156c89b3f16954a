// What every transport of the list promises about what it carries (transport.h).
#include <inttypes.h>

#include "tests/support/check.h"
#include "tests/support/conformance.h"

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

// The transport makes the checksums, and says so before the frame is there.
static void frames_are_summed_up_of_kind(void) {
    static const uint64_t sizes[] = {0, 1, 65536, 65537, MIB, 3 * MIB, 3 * MIB + 70001};
    const uint64_t count = sizeof sizes / sizeof *sizes;
    uint32_t made[4];
    station zero, one;
    open_pair(&zero, &one, 4 * MIB);
    for (uint64_t i = 0; i < count; i++) {
        prepare_payload(sizes[i]);
        const pen_frame frame = make_frame(i);
        memset(made, 0xaa, sizeof made);
        CHECK_OK(
            zero.kind->sum_frame(zero.transport, 1, &frame, pen_memory_place_at(payload), made, 1));
        CHECK(station_wait(&one, &one.frame_count, i + 1), "%s: frame %" PRIu64, kind_name, i);
        pen_mutex_lock(&zero.lock);
        CHECK(zero.summed_count == i + 1, "%s: frame %" PRIu64, kind_name, i);
        pen_mutex_unlock(&zero.lock);
        CHECK(memcmp(made, payload_checksums, pen_frame_chunk_count(sizes[i]) * sizeof *made) == 0,
              "%s: checksums of frame %" PRIu64, kind_name, i);
        CHECK(memcmp(one.memory, payload, sizes[i]) == 0, "%s: frame %" PRIu64, kind_name, i);
    }
    CHECK(one.wrong_count == 0 && one.lie_count == 0, "%s: checksums", kind_name);
    // shared memory compares all but small ones, and the empty one, which has no checksum
    CHECK(one.compared_count == (shares_memory ? 4 : 0), "%s: who compares", kind_name);
    CHECK(station_wait(&zero, &zero.let_go_count, count), "%s: lent", kind_name);
    station_close(&zero);
    station_close(&one);
}
FOR_EACH_KIND(frames_are_summed_up)

// A checksum that the payload does not have arrives with it, and nobody says that it was compared.
static void wrong_checksums_are_told_of_kind(void) {
    station zero, one;
    open_pair(&zero, &one, 3 * MIB);
    prepare_payload(3 * MIB - 5);
    for (uint32_t i = 0; i < 3; i++) {
        payload_checksums[i] ^= 1;
        CHECK_OK(try_frame(&zero, 1, i, 1));
        CHECK(station_wait(&one, &one.frame_count, i + 1), "%s: frame %u", kind_name, i);
        CHECK(station_wait(&zero, &zero.let_go_count, i + 1), "%s: frame %u", kind_name, i);
        payload_checksums[i] ^= 1;
    }
    CHECK(one.wrong_count == 3 && one.compared_count == 0, "%s: %" PRIu64 " wrong", kind_name,
          one.wrong_count);
    station_close(&zero);
    station_close(&one);
}
FOR_EACH_KIND(wrong_checksums_are_told)

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

PEN_TEST_MAIN(cmocka_unit_test(messages_go_both_ways), cmocka_unit_test(frames_arrive_whole),
              cmocka_unit_test(frames_are_summed_up), cmocka_unit_test(wrong_checksums_are_told),
              cmocka_unit_test(both_directions_at_once), cmocka_unit_test(many_peers),
              cmocka_unit_test(messages_overtake_frames),
              cmocka_unit_test(lent_memory_comes_back_once),
              cmocka_unit_test(stopping_waits_for_lent_memory),
              cmocka_unit_test(a_refused_frame_ends_the_link),
              cmocka_unit_test(foreign_memory_is_refused))
