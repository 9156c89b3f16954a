// What tests of every transport share: the kind that is under test, and stations of it.
//
// The state is global: FOR_EACH_KIND sets it before each run of a test.
#ifndef PEN_TESTS_SUPPORT_CONFORMANCE_H
#define PEN_TESTS_SUPPORT_CONFORMANCE_H

#include "tests/support/station.h"

#define MIB ((uint64_t)1 << 20)

// The kind under test.
extern const char *kind_name;
extern pen_simulated_network *network; // NULL: the kind is not simulated
extern double resume_seconds;          // of the transports under test
extern bool shares_memory;

// Those of the list, then the tests' own; NULL after the last.
const pen_transport_kind *kind_at(uint32_t index);
// Around each run of a test, with a network if the kind is simulated.
void begin_kind(const pen_transport_kind *kind);
void end_kind(void);
double now_seconds(void);
void open_station(station *s, uint32_t peer, bool listens, uint64_t memory_bytes);
void open_pair(station *zero, station *one, uint64_t memory_bytes);
void send_text(station *s, uint32_t peer, const char *text);
// A pattern that all frames send from, and the checksums of its beginnings.
extern uint8_t *payload;
extern uint32_t payload_checksums[64];

void prepare_payload(uint64_t bytes);
pen_frame make_frame(uint64_t sequence);
// Frames of `payload`: as much as prepare_payload was told.
pen_status try_frame(station *s, uint32_t peer, uint64_t sequence, uint64_t token);
void send_frames(station *s, uint32_t peer, uint32_t count);

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

#endif
