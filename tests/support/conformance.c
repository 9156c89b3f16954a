#include "tests/support/conformance.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "tests/support/check.h"

const char *kind_name;
pen_simulated_network *network;
double resume_seconds; // of the transports under test
bool shares_memory;

const pen_transport_kind *kind_at(uint32_t index) {
    uint32_t count = 0;
    while (pen_transport_kinds[count] != NULL) {
        count++;
    }
    if (index == count) return &pen_transport_simulated;
    return index < count ? pen_transport_kinds[index] : NULL;
}

void begin_kind(const pen_transport_kind *kind) {
    kind_name = kind->name;
    network = NULL;
    if (strcmp(kind_name, "simulated") != 0) return;
    const pen_simulated_options options = {
        .seed = 5, .latency_min = 1000, .latency_max = 3000000, .bytes_per_second = 1e9};
    CHECK_OK(pen_simulated_network_create(&options, &network));
}

void end_kind(void) {
    pen_simulated_network_destroy(network);
    network = NULL;
}

double now_seconds(void) {
    return network != NULL ? (double)pen_simulated_network_now(network) * 1e-9
                           : pen_clock_seconds();
}

void open_station(station *s, uint32_t peer, bool listens, uint64_t memory_bytes) {
    const pen_transport_options options = {.self = {.job = "test",
                                                    .peer = peer,
                                                    .generation = 3,
                                                    .incarnation = 70 + peer,
                                                    .shares_memory = shares_memory},
                                           .network = network,
                                           .resume_seconds = resume_seconds};
    CHECK_OK(station_open(s, kind_name, &options, listens ? "127.0.0.1:0" : NULL, memory_bytes));
}

void open_pair(station *zero, station *one, uint64_t memory_bytes) {
    open_station(zero, 0, false, memory_bytes);
    open_station(one, 1, true, memory_bytes);
    CHECK(station_link(zero, one, 0, 1), "%s: no link", kind_name);
}

void send_text(station *s, uint32_t peer, const char *text) {
    CHECK_OK(s->kind->send_message(s->transport, peer, text, strlen(text)));
}

uint8_t *payload;
uint32_t payload_checksums[64];
static uint64_t payload_checked;

void prepare_payload(uint64_t bytes) {
    if (payload == NULL) {
        payload = malloc(34 * MIB);
        for (uint64_t i = 0; i < 34 * MIB; i++) {
            payload[i] = (uint8_t)(i * 31 + i / 251);
        }
    }
    pen_checksum_chunks(payload, bytes, payload_checksums);
    payload_checked = bytes;
}

pen_frame make_frame(uint64_t sequence) {
    return (pen_frame){.kind = PEN_FRAME_VALUE,
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
}

pen_status try_frame(station *s, uint32_t peer, uint64_t sequence, uint64_t token) {
    const pen_frame frame = make_frame(sequence);
    return s->kind->send_frame(s->transport, peer, &frame, pen_memory_place_at(payload),
                               payload_checksums, token);
}

void send_frames(station *s, uint32_t peer, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(try_frame(s, peer, i, i + 1));
    }
}
