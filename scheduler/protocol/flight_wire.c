#include "scheduler/protocol/flight_wire.h"

#define FLIGHT_PRIME 0x100000001b3u

static uint64_t flight_pair(uint32_t low, uint32_t high) {
    return (uint64_t)high << 32 | low;
}

static uint32_t flight_low(uint64_t word) {
    return (uint32_t)word;
}

static uint32_t flight_high(uint64_t word) {
    return (uint32_t)(word >> 32);
}

void flight_pack_worker(const pen_worker_event *event, uint64_t words[FLIGHT_PAYLOAD_WORDS]) {
    words[0] = (uint64_t)event->kind;
    words[1] = event->generation;
    words[2] = event->round;
    words[3] = event->sequence;
    words[4] = flight_pair(event->form, event->count);
    words[5] = flight_pair(event->channel, event->device);
    words[6] = event->updates;
    for (uint32_t i = 7; i < FLIGHT_PAYLOAD_WORDS; i++) {
        words[i] = 0;
    }
}

void flight_unpack_worker(const uint64_t words[FLIGHT_PAYLOAD_WORDS], pen_worker_event *out_event) {
    *out_event = (pen_worker_event){.kind = (pen_worker_event_kind)words[0],
                                    .generation = words[1],
                                    .round = words[2],
                                    .sequence = words[3],
                                    .form = flight_low(words[4]),
                                    .count = flight_high(words[4]),
                                    .channel = flight_low(words[5]),
                                    .device = flight_high(words[5]),
                                    .updates = words[6] != 0};
}

void flight_pack_coordinator(const pen_coordinator_event *event, uint32_t identity,
                             uint64_t words[FLIGHT_PAYLOAD_WORDS]) {
    words[0] = flight_pair((uint32_t)event->kind, event->worker);
    words[1] = event->incarnation;
    words[2] = event->generation;
    words[3] = event->round;
    words[4] = event->sequence;
    words[5] = event->now;
    words[6] = flight_pair(event->form, event->count);
    words[7] = flight_pair(event->channel, event->microbatch);
    words[8] = flight_pair(event->stage, event->updates);
    words[9] = event->loss.value;
    words[10] = event->loss.correct_count;
    words[11] = event->loss.target_count;
    words[12] = flight_pair(identity, event->code);
    words[13] = event->step;
    for (uint32_t i = 14; i < FLIGHT_PAYLOAD_WORDS; i++) {
        words[i] = 0;
    }
}

void flight_unpack_coordinator(const uint64_t words[FLIGHT_PAYLOAD_WORDS],
                               pen_coordinator_event *out_event, uint32_t *out_identity) {
    *out_event = (pen_coordinator_event){
        .kind = (pen_coordinator_event_kind)flight_low(words[0]),
        .worker = flight_high(words[0]),
        .incarnation = words[1],
        .generation = words[2],
        .round = words[3],
        .sequence = words[4],
        .now = words[5],
        .form = flight_low(words[6]),
        .count = flight_high(words[6]),
        .channel = flight_low(words[7]),
        .microbatch = flight_high(words[7]),
        .stage = flight_low(words[8]),
        .updates = flight_high(words[8]) != 0,
        .code = flight_high(words[12]),
        .step = words[13],
        .loss = {.value = words[9], .correct_count = words[10], .target_count = words[11]}};
    *out_identity = flight_low(words[12]);
}

uint64_t flight_checksum(uint64_t checksum, const void *bytes, uint64_t count) {
    const uint8_t *at = bytes;
    for (uint64_t i = 0; i < count; i++) {
        checksum = (checksum ^ at[i]) * FLIGHT_PRIME;
    }
    return checksum;
}

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
    };
    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

const char *flight_coordinator_event_name(uint64_t kind) {
    static const char *const names[] = {
        [PEN_COORDINATOR_EVENT_HELLO] = "hello",
        [PEN_COORDINATOR_EVENT_READY] = "ready",
        [PEN_COORDINATOR_EVENT_LOSS] = "loss",
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
    };
    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}
