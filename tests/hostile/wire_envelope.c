// What is done to one envelope on its way.
#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/transport/wire_format.h"
#include "tests/hostile/wire_proxy_inside.h"

#define ENVELOPE_GROWTH 4096u
#define REORDER_SECONDS 0.005

static void wire_queue(wire_call *call, unsigned way, grpc_slice bytes, double seconds,
                       bool lets_pass) {
    wire_way *w = &call->ways[way];
    wire_item *item = pen_memory_allocate(1, sizeof *item);
    PEN_ASSERT(item != NULL);
    *item =
        (wire_item){.due = pen_clock_seconds() + seconds, .lets_pass = lets_pass, .bytes = bytes};
    wire_item **at = &w->queue;
    while (*at != NULL && !((*at)->next == NULL && (*at)->lets_pass)) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        (*at)->lets_pass = false;
        (*at)->due = item->due;
    }
    item->next = *at;
    *at = item;
    w->queued += 1;
}

static bool wire_read(const uint8_t *bytes, size_t count, pen_wire_envelope *out_envelope) {
    const pen_wire_piece piece = {bytes, count};
    const pen_status status = pen_wire_read((pen_wire_pieces){&piece, 1}, out_envelope);
    const bool is_read = status == PEN_OK;
    pen_status_ignore(status, "whoever receives it says so, too");
    return is_read;
}

// The kind of what it carries, as the plan counts them.
static uint32_t wire_kind(grpc_slice slice) {
    const uint8_t *bytes = GRPC_SLICE_START_PTR(slice);
    pen_wire_envelope envelope;
    pen_message message;
    if (!wire_read(bytes, GRPC_SLICE_LENGTH(slice), &envelope)) return MIDDLEMAN_OTHERS;
    if (envelope.kind == PEN_WIRE_CHUNK) return MIDDLEMAN_FRAMES;
    if (envelope.kind != PEN_WIRE_MESSAGE) return MIDDLEMAN_OTHERS;
    const pen_status status = pen_message_decode(bytes + envelope.message.offset,
                                                 (size_t)envelope.message.count, &message);
    if (status == PEN_OK) return message.kind;
    pen_status_ignore(status, "it was changed before");
    return MIDDLEMAN_OTHERS;
}

// The same chunk with the checksum of the payload that it has now.
static grpc_slice wire_sum_up(const pen_wire_envelope *envelope, const uint8_t *bytes) {
    const pen_wire_span payload = envelope->chunk.payload;
    pen_wire_envelope summed = *envelope;
    uint8_t head[2 * PEN_WIRE_HEAD_LIMIT];
    summed.chunk.checksum = pen_checksum(bytes + payload.offset, payload.count);
    const size_t whole = pen_record_encode(&pen_wire_envelope_record, &summed, head, sizeof head);
    const size_t length =
        whole - (size_t)payload.count; // a span's bytes come after what is written
    PEN_ASSERT(length <= sizeof head);
    grpc_slice slice = grpc_slice_malloc(whole);
    memcpy(GRPC_SLICE_START_PTR(slice), head, length);
    memcpy(GRPC_SLICE_START_PTR(slice) + length, bytes + payload.offset, (size_t)payload.count);
    return slice;
}

static grpc_slice wire_change(chance *c, grpc_slice slice) {
    const size_t count = GRPC_SLICE_LENGTH(slice), limit = count + ENVELOPE_GROWTH;
    pen_wire_envelope envelope;
    uint8_t *bytes = pen_memory_allocate(limit, 1);
    PEN_ASSERT(bytes != NULL);
    const uint64_t length =
        middleman_change_envelope(c, GRPC_SLICE_START_PTR(slice), count, bytes, limit);
    const bool is_read = wire_read(bytes, length, &envelope);
    const grpc_slice changed = is_read && envelope.kind == PEN_WIRE_CHUNK
                                   ? wire_sum_up(&envelope, bytes)
                                   : grpc_slice_from_copied_buffer((char *)bytes, length);
    pen_memory_free(bytes);
    grpc_slice_unref(slice);
    return changed;
}

// A stream of the proxy, by chance this one.
static wire_call *wire_other(wire_call *call) {
    wire_call *other = call->proxy->calls;
    for (uint64_t i = chance_below(&call->proxy->chance, 8); i > 0 && other->next != NULL; i--) {
        other = other->next;
    }
    return other;
}

static void wire_do(wire_call *call, unsigned way, middleman_deed deed, grpc_slice bytes) {
    wire_proxy *proxy = call->proxy;
    const double seconds =
        middleman_the_plan.delay_seconds * (double)chance_below(&proxy->chance, 1001) / 1000;
    const grpc_slice kept = proxy->kept[chance_below(&proxy->chance, WIRE_KEPT)];
    switch (deed) {
    case MIDDLEMAN_REPEAT:
        wire_queue(call, way, grpc_slice_ref(bytes), 0, false);
        break;
    case MIDDLEMAN_DELAY:
        wire_queue(call, way, bytes, seconds, false);
        return;
    case MIDDLEMAN_REORDER:
        wire_queue(call, way, bytes, REORDER_SECONDS, true);
        return;
    case MIDDLEMAN_CHANGE:
        bytes = wire_change(&proxy->chance, bytes);
        break;
    case MIDDLEMAN_INVENT:
        wire_queue(call, way, grpc_slice_ref(kept), 0, false);
        break;
    case MIDDLEMAN_MISLEAD:
        wire_queue(wire_other(call), way, bytes, 0, false);
        return;
    case MIDDLEMAN_CUT:
        (void)grpc_call_cancel(call->ways[0].from, NULL);
        (void)grpc_call_cancel(call->ways[0].to, NULL);
        break;
    case MIDDLEMAN_DROP:
    case MIDDLEMAN_PRETEND:
        grpc_slice_unref(bytes);
        return;
    }
    wire_queue(call, way, bytes, 0, false);
}

void wire_pass(wire_call *call, unsigned way, grpc_slice bytes) {
    wire_proxy *proxy = call->proxy;
    const uint32_t kind = wire_kind(bytes);
    middleman_deed deed;
    const bool decides = middleman_decides(&proxy->chance, kind, &deed);
    if (kind != MIDDLEMAN_FRAMES) {
        grpc_slice *kept = &proxy->kept[chance_below(&proxy->chance, WIRE_KEPT)];
        grpc_slice_unref(*kept);
        *kept = grpc_slice_ref(bytes);
    }
    if (!decides) {
        wire_queue(call, way, bytes, 0, false);
        return;
    }
    middleman_note(deed, kind, way, way == 0 ? ": whom is called" : ": who called");
    wire_do(call, way, deed, bytes);
}
