#include "scheduler/protocol/flight_wire.h"

#include <string.h>

#include "base/record/record.h"

// The payload of each kind of event: members behind each other, little endian, and zeros.
#define WORKER(member) PEN_RECORD_ROW(NUMBER, 0, #member, pen_worker_event, member, NULL)
#define WORKER_WORD(member)                                                                        \
    PEN_RECORD_ROW(NUMBER, 0, #member, pen_worker_event, member, NULL, .packed_size = 8)
#define COORDINATOR(name, member)                                                                  \
    PEN_RECORD_ROW(NUMBER, 0, name, flight_coordinator_event, member, NULL)
#define EVENT(member) COORDINATOR(#member, event.member)

static const pen_record_field worker_fields[] = {
    WORKER_WORD(kind), WORKER(generation), WORKER(round),  WORKER(sequence),     WORKER(form),
    WORKER(count),     WORKER(channel),    WORKER(device), WORKER_WORD(updates),
};
static const pen_record worker_record = {.name = "worker", PEN_RECORD_FIELDS(worker_fields)};

typedef struct flight_coordinator_event {
    pen_coordinator_event event;
    uint32_t identity;
} flight_coordinator_event;

static const pen_record_field coordinator_fields[] = {
    EVENT(kind),
    EVENT(worker),
    EVENT(incarnation),
    EVENT(generation),
    EVENT(round),
    EVENT(sequence),
    EVENT(now),
    EVENT(form),
    EVENT(count),
    EVENT(channel),
    EVENT(microbatch),
    EVENT(stage),
    PEN_RECORD_ROW(NUMBER, 0, "updates", flight_coordinator_event, event.updates, NULL,
                   .packed_size = 4),
    EVENT(loss.value),
    EVENT(loss.correct_count),
    EVENT(loss.target_count),
    COORDINATOR("identity", identity),
    EVENT(code),
    EVENT(step),
    EVENT(order),
};
static const pen_record coordinator_record = {.name = "coordinator",
                                              PEN_RECORD_FIELDS(coordinator_fields)};

void flight_pack_worker(const pen_worker_event *event, uint64_t words[FLIGHT_PAYLOAD_WORDS]) {
    memset(words, 0, FLIGHT_PAYLOAD_WORDS * sizeof *words);
    pen_record_pack(&worker_record, event, words);
}

pen_status flight_unpack_worker(const uint64_t words[FLIGHT_PAYLOAD_WORDS],
                                pen_worker_event *out_event) {
    *out_event = (pen_worker_event){0};
    return pen_record_unpack(&worker_record, words, out_event);
}

void flight_pack_coordinator(const pen_coordinator_event *event, uint32_t identity,
                             uint64_t words[FLIGHT_PAYLOAD_WORDS]) {
    memset(words, 0, FLIGHT_PAYLOAD_WORDS * sizeof *words);
    pen_record_pack(&coordinator_record, &(flight_coordinator_event){*event, identity}, words);
}

pen_status flight_unpack_coordinator(const uint64_t words[FLIGHT_PAYLOAD_WORDS],
                                     pen_coordinator_event *out_event, uint32_t *out_identity) {
    flight_coordinator_event read = {.identity = 0};
    PEN_TRY(pen_record_unpack(&coordinator_record, words, &read));
    *out_event = read.event;
    *out_identity = read.identity;
    return PEN_OK;
}

#define IDENTITY(kind, type, member, bytes)                                                        \
    PEN_RECORD_ROW(kind, 0, #member, type, member, NULL, .packed_size = bytes)
#define OPTION(member)                                                                             \
    PEN_RECORD_ROW(NUMBER, 0, #member, pen_coordinator_options, member, NULL, .packed_size = 8)

static const pen_record_field identity_fields[] = {
    IDENTITY(NUMBER, pen_coordinator_identity, protocol, 8),
    IDENTITY(NUMBER, pen_coordinator_identity, device_count, 8),
    IDENTITY(NUMBER, pen_coordinator_identity, plan_hash, 8),
    IDENTITY(NUMBER, pen_coordinator_identity, memory_bytes, 8),
    IDENTITY(NUMBER, pen_coordinator_identity, needed_bytes, 8),
    IDENTITY(TEXT, pen_coordinator_identity, build, 0),
    IDENTITY(TEXT, pen_coordinator_identity, isa, 0),
};
const pen_record flight_identity_record = {.name = "identity", PEN_RECORD_FIELDS(identity_fields)};

static const pen_record_field options_fields[] = {
    OPTION(generation),
    OPTION(first_round),
    IDENTITY(NUMBER, pen_coordinator_options, self.protocol, 8),
    IDENTITY(NUMBER, pen_coordinator_options, self.device_count, 8),
    IDENTITY(NUMBER, pen_coordinator_options, self.plan_hash, 8),
    IDENTITY(TEXT, pen_coordinator_options, self.build, 0),
    IDENTITY(TEXT, pen_coordinator_options, self.isa, 0),
    OPTION(allows_other_build),
    OPTION(allows_other_isa),
    OPTION(deadline),
    OPTION(lease),
    OPTION(progress),
    OPTION(load),
    OPTION(write),
    OPTION(needs_fence),
    IDENTITY(NUMBER, pen_coordinator_options, lanes.lanes, 8),
    IDENTITY(NUMBER, pen_coordinator_options, lanes.microbatches, 8),
};
const pen_record flight_options_record = {.name = "options", PEN_RECORD_FIELDS(options_fields)};

uint64_t flight_mix(uint64_t digest, uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 32;
}

const char *flight_worker_event_name(uint64_t kind) {
    static const char *const names[] = {
        [PEN_WORKER_EVENT_ASSIGN] = "assign",
        [PEN_WORKER_EVENT_LOADED] = "loaded",
        [PEN_WORKER_EVENT_START] = "start",
        [PEN_WORKER_EVENT_ROUND] = "round",
        [PEN_WORKER_EVENT_GO] = "go",
        [PEN_WORKER_EVENT_FRAME] = "frame",
        [PEN_WORKER_EVENT_CREDIT] = "credit",
        [PEN_WORKER_EVENT_STOP] = "stop",
        [PEN_WORKER_EVENT_LET_GO] = "memory free",
        [PEN_WORKER_EVENT_TASK_DONE] = "task done",
        [PEN_WORKER_EVENT_READ] = "read",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

// Names are written into each dump, so that a later build with other numbers can read it.
const char *flight_coordinator_event_name(uint64_t kind) {
    static const char *const names[] = {
        [PEN_COORDINATOR_EVENT_HELLO] = "hello",
        [PEN_COORDINATOR_EVENT_READY] = "ready",
        [PEN_COORDINATOR_EVENT_LOSS] = "loss",
        [PEN_COORDINATOR_EVENT_GRADIENT] = "gradient",
        [PEN_COORDINATOR_EVENT_ROUND_DONE] = "round done",
        [PEN_COORDINATOR_EVENT_CREDIT] = "credit",
        [PEN_COORDINATOR_EVENT_SNAPPED] = "tensors copied",
        [PEN_COORDINATOR_EVENT_SHARD] = "shard",
        [PEN_COORDINATOR_EVENT_COMPUTES] = "computes",
        [PEN_COORDINATOR_EVENT_HEARD] = "sign of life",
        [PEN_COORDINATOR_EVENT_FENCED] = "fenced",
        [PEN_COORDINATOR_EVENT_SAVE] = "save",
        [PEN_COORDINATOR_EVENT_PUBLISHED] = "published",
        [PEN_COORDINATOR_EVENT_FAILED] = "failed",
        [PEN_COORDINATOR_EVENT_LOST] = "lost",
        [PEN_COORDINATOR_EVENT_LET_GO] = "memory free",
        [PEN_COORDINATOR_EVENT_BEGIN] = "begin",
        [PEN_COORDINATOR_EVENT_TICK] = "tick",
        [PEN_COORDINATOR_EVENT_STOP] = "stop",
        [PEN_COORDINATOR_EVENT_OWED] = "pieces owed",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}
