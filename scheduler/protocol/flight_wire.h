// How events of the flight recorder lie in memory and in files: as words, each field named. Shared
// by flight_recorder.c and flight_dump.c; nobody else includes this.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_FLIGHT_WIRE_H
#define PEN_SCHEDULER_PROTOCOL_FLIGHT_WIRE_H

#include "base/record/record.h"
#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/worker_core.h"

#define FLIGHT_MAGIC "PENFLGHT"
#define FLIGHT_MAGIC_BYTES 8
#define FLIGHT_VERSION 4u
#define FLIGHT_PAYLOAD_WORDS 16u
#define FLIGHT_NO_IDENTITY UINT32_MAX
#define FLIGHT_REASON_BYTES 256

// Of an event in a file, in order: number, clock, outcome (0: none), kind, payload.
#define FLIGHT_EVENT_WORDS (4 + FLIGHT_PAYLOAD_WORDS)

// What stands before each piece of a file behind the reason.
typedef enum flight_tag {
    FLIGHT_TAG_END, // then the checksum of all before it
    FLIGHT_TAG_IDENTITY,
    FLIGHT_TAG_EVENT,
} flight_tag;

void flight_pack_worker(const pen_worker_event *event, uint64_t words[FLIGHT_PAYLOAD_WORDS]);
// CORRUPT: a number that does not fit
PEN_NODISCARD pen_status flight_unpack_worker(const uint64_t words[FLIGHT_PAYLOAD_WORDS],
                                              pen_worker_event *out_event);
// `identity` is the number of the identity that goes with it.
void flight_pack_coordinator(const pen_coordinator_event *event, uint32_t identity,
                             uint64_t words[FLIGHT_PAYLOAD_WORDS]);
PEN_NODISCARD pen_status flight_unpack_coordinator(const uint64_t words[FLIGHT_PAYLOAD_WORDS],
                                                   pen_coordinator_event *out_event,
                                                   uint32_t *out_identity);

// What is known of a process, and of a coordinator.
extern const pen_record flight_identity_record;
extern const pen_record flight_options_record;

// The checksum of a dump is pen_hash_bytes: each step is a bijection, so that a single changed byte
// always shows. This is a step of such a kind over a word, for outcomes; from PEN_HASH_START.
uint64_t flight_mix(uint64_t digest, uint64_t word);

// Names of kinds, which files have, so that other builds may number them otherwise. NULL: there is
// no such kind.
#define FLIGHT_KIND_LIMIT 64u
const char *flight_worker_event_name(uint64_t kind);
const char *flight_coordinator_event_name(uint64_t kind);

#endif // PEN_SCHEDULER_PROTOCOL_FLIGHT_WIRE_H
