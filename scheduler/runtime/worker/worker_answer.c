#include "scheduler/runtime/worker/worker_answer.h"

#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/system/failpoint.h"
#include "base/system/machine.h"
#include "scheduler/protocol/flight_recorder.h"
#include "scheduler/runtime/run/run_wire.h"

#define INQUIRY_TEXT_BYTES 8192

// Sends `length` bytes of an answer that has `count` in all.
static pen_status answer_send_part(pen_transport *transport, const pen_message *ask,
                                   pen_arena *arena, const void *bytes, uint64_t length,
                                   uint64_t count) {
    const pen_message part = {.kind = PEN_MESSAGE_PART,
                              .protocol = PEN_PROTOCOL_VERSION,
                              .generation = ask->generation,
                              .number = ask->number,
                              .offset = ask->offset,
                              .byte_count = count,
                              .bytes = bytes,
                              .bytes_length = (size_t)length};
    uint8_t *encoded;
    PEN_TRY(PEN_NEW(arena, PEN_MESSAGE_ROOM + (size_t)length, &encoded));
    const size_t size = pen_message_encode(&part, encoded, PEN_MESSAGE_ROOM + (size_t)length);
    return transport->kind->send_message(transport, 0, encoded, size);
}

// Sends what is asked for of an answer of `count` bytes.
static pen_status answer_send(pen_transport *transport, const pen_message *ask, pen_arena *arena,
                              const void *bytes, uint64_t count) {
    if (ask->offset > count) {
        return pen_error(PEN_CORRUPT, "asked for byte %llu of an answer of %llu",
                         (unsigned long long)ask->offset, (unsigned long long)count);
    }
    const uint64_t length = pen_min_u64(count - ask->offset, PEN_MESSAGE_PART_LIMIT);
    return answer_send_part(transport, ask, arena, (const char *)bytes + ask->offset, length,
                            count);
}

static pen_status answer_waits(pen_worker_run *run, pen_transport *transport,
                               const pen_message *ask, pen_arena *arena) {
    char text[INQUIRY_TEXT_BYTES];
    bool is_running;
    pen_worker_run_describe_waits(run, text + 1, sizeof text - 1, &is_running);
    text[0] = is_running ? 'r' : 'w';
    return answer_send(transport, ask, arena, text, strlen(text));
}

static void answer_dump(pen_worker_run *run, const pen_message *ask) {
    pen_worker_run_note_waits(run, pen_run_clock_unpack(ask->offset));
    (void)pen_flight_dump("the coordinator asked"); // where there is no folder, none is wanted
}

// What the process and its devices took, as measured here: the coordinator puts it beside the plan.
static pen_status answer_figures(pen_worker_run *run, pen_transport *transport,
                                 const pen_message *ask, pen_arena *arena) {
    const uint32_t count = pen_worker_run_device_count(run);
    pen_run_device_figures *devices;
    const void *bytes = NULL;
    uint64_t byte_count;
    PEN_TRY(PEN_NEW(arena, count, &devices));
    const pen_run_inquiry_figures figures = {.process = (uint64_t)getpid(),
                                             .process_bytes = pen_machine_resident_peak(),
                                             .sent_bytes =
                                                 transport->kind->counters(transport).bytes_sent};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t device = pen_worker_run_device_at(run, i);
        devices[i] =
            (pen_run_device_figures){.device = device,
                                     .bytes = pen_worker_run_device_bytes(run, device),
                                     .wait_seconds = pen_worker_run_wait_seconds(run, device)};
    }
    PEN_TRY(pen_run_figures_encode(&figures, devices, count, arena, &bytes, &byte_count));
    return answer_send(transport, ask, arena, bytes, byte_count);
}

static pen_status answer_trace(pen_worker_run *run, pen_transport *transport,
                               const pen_message *ask, pen_arena *arena) {
    const pen_trace_recorder *recorder = pen_worker_run_trace(run);
    const pen_trace_event *events = NULL;
    const void *bytes = NULL;
    uint32_t count = 0;
    uint64_t lost = 0, byte_count = 0;
    if (recorder != NULL) {
        PEN_TRY(pen_trace_recorder_read(recorder, arena, &events, &count, &lost));
    }
    PEN_TRY(pen_trace_encode(events, count, arena, &bytes, &byte_count));
    return answer_send(transport, ask, arena, bytes, byte_count);
}

static pen_status answer_sent(pen_worker_run *run, pen_transport *transport, const pen_message *ask,
                              pen_arena *arena) {
    const pen_run_sent *sent;
    const void *bytes;
    uint32_t count;
    uint64_t byte_count;
    PEN_TRY(pen_worker_run_list_sent(run, arena, &sent, &count));
    PEN_TRY(pen_run_sent_encode(sent, count, arena, &bytes, &byte_count));
    return answer_send(transport, ask, arena, bytes, byte_count);
}

// A part of the shard that was written last; an empty one where it cannot be read.
static pen_status answer_shard(pen_worker_run *run, pen_transport *transport,
                               const pen_message *ask, pen_arena *arena) {
    uint8_t *bytes;
    uint64_t count = 0;
    PEN_TRY(PEN_NEW(arena, PEN_MESSAGE_PART_LIMIT, &bytes));
    const pen_status status =
        pen_worker_run_read_shard(run, ask->offset, bytes, PEN_MESSAGE_PART_LIMIT, &count);
    if (status != PEN_OK) pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
    pen_status_ignore(status, "the coordinator gives that checkpoint up");
    return answer_send_part(transport, ask, arena, bytes, count, 0);
}

// Straight from where it lies, since it is as large as a stage.
static pen_status answer_evidence(pen_worker_run *run, pen_transport *transport,
                                  const pen_message *ask, pen_arena *arena) {
    uint64_t count;
    if (PEN_FAILPOINT("worker.evidence_asked")) return PEN_OK; // the coordinator does without
    const void *bytes = pen_worker_run_find_evidence(run, &count);
    PEN_TRY(answer_send(transport, ask, arena, bytes == NULL ? "" : bytes, count));
    if (count - ask->offset <= PEN_MESSAGE_PART_LIMIT) pen_worker_run_drop_evidence(run);
    return PEN_OK;
}

// The question's kind comes from outside, so it is a number until it was looked at.
pen_status pen_worker_answer(pen_worker_run *run, pen_transport *transport,
                             const pen_message *ask) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = PEN_OK;
    switch (ask->number) {
    case PEN_RUN_INQUIRY_WAITS:
        status = answer_waits(run, transport, ask, arena);
        break;
    case PEN_RUN_INQUIRY_DUMP:
        answer_dump(run, ask);
        break;
    case PEN_RUN_INQUIRY_FIGURES:
        status = answer_figures(run, transport, ask, arena);
        break;
    case PEN_RUN_INQUIRY_TRACE:
        status = answer_trace(run, transport, ask, arena);
        break;
    case PEN_RUN_INQUIRY_SENT:
        status = answer_sent(run, transport, ask, arena);
        break;
    case PEN_RUN_INQUIRY_SHARD:
        status = answer_shard(run, transport, ask, arena);
        break;
    case PEN_RUN_INQUIRY_EVIDENCE:
        status = answer_evidence(run, transport, ask, arena);
        break;
    default:
        status = pen_error(PEN_CORRUPT, "asked for %u, which is nothing", ask->number);
        break;
    }
    pen_arena_destroy(arena);
    return status;
}
