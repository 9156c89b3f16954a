#include "tests/hostile/middleman.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/hostile/middleman_inside.h"

#define TOLD_LIMIT 48u
#define TOLD_BYTES 128u
#define MESSAGE_GROWTH 4096u

static const char *const deed_names[MIDDLEMAN_DEED_COUNT] = {
    "dropped",  "repeated", "delayed",          "reordered",    "changed",
    "invented", "misled",   "cut the link for", "pretended for"};

middleman_plan middleman_the_plan;
static pen_mutex told_lock = {PTHREAD_MUTEX_INITIALIZER};
// guarded by told_lock
static char told[TOLD_LIMIT][TOLD_BYTES];
static uint64_t told_count, told_counts[MIDDLEMAN_DEED_COUNT], created_count;

static middleman *middleman_of(pen_transport *transport) {
    return (middleman *)transport;
}

// ---- what was done

void middleman_begin(const middleman_plan *plan) {
    pen_mutex_lock(&told_lock);
    middleman_the_plan = *plan;
    told_count = created_count = 0;
    memset(told_counts, 0, sizeof told_counts);
    pen_mutex_unlock(&told_lock);
}

uint64_t middleman_count(void) {
    pen_mutex_lock(&told_lock);
    const uint64_t count = told_count;
    pen_mutex_unlock(&told_lock);
    return count;
}

uint64_t middleman_count_of(middleman_deed deed) {
    pen_mutex_lock(&told_lock);
    const uint64_t count = told_counts[deed];
    pen_mutex_unlock(&told_lock);
    return count;
}

void middleman_tell(FILE *file) {
    pen_mutex_lock(&told_lock);
    const uint64_t first = told_count > TOLD_LIMIT ? told_count - TOLD_LIMIT : 0;
    for (uint64_t i = first; i < told_count; i++) {
        fprintf(file, "    %" PRIu64 ". %s\n", i + 1, told[i % TOLD_LIMIT]);
    }
    pen_mutex_unlock(&told_lock);
}

static const char *kind_name(uint32_t kind) {
    if (kind == MIDDLEMAN_FRAMES) return "frame";
    return kind < PEN_MESSAGE_KIND_COUNT ? pen_message_kind_name((pen_message_kind)kind) : "other";
}

void middleman_note(middleman_deed deed, uint32_t kind, uint32_t peer, const char *detail) {
    pen_mutex_lock(&told_lock);
    snprintf(told[told_count++ % TOLD_LIMIT], TOLD_BYTES, "%s %s to %" PRIu32 "%s",
             deed_names[deed], kind_name(kind), peer, detail);
    told_counts[deed] += 1;
    pen_mutex_unlock(&told_lock);
}

bool middleman_decides(chance *c, uint32_t kind, middleman_deed *out_deed) {
    const middleman_plan *plan = &middleman_the_plan;
    if (plan->deeds == 0) return false;
    if (plan->only_kind != MIDDLEMAN_ANY_KIND && plan->only_kind != kind) return false;
    if ((plan->spared >> kind & 1) != 0) return false;
    if (!chance_one_in(c, plan->one_in) || middleman_count() >= plan->most) return false;
    do {
        *out_deed = (middleman_deed)chance_below(c, MIDDLEMAN_DEED_COUNT);
    } while ((plan->deeds >> *out_deed & 1) == 0);
    return *out_deed != MIDDLEMAN_PRETEND;
}

// Who it says that it is, from now on.
static pen_introduction middleman_pretend(middleman *m, const pen_introduction *self) {
    pen_introduction who = *self;
    pen_mutex_lock(&m->lock);
    const bool may = (middleman_the_plan.deeds >> MIDDLEMAN_PRETEND & 1) != 0;
    const bool pretends = may && chance_one_in(&m->chance, 4);
    if (pretends) middleman_change_introduction(&m->chance, &who);
    pen_mutex_unlock(&m->lock);
    if (pretends) middleman_note(MIDDLEMAN_PRETEND, MIDDLEMAN_OTHERS, self->peer, "");
    return who;
}

// ---- what comes in, told to who created the middleman

static pen_status middleman_accept(void *context, const pen_introduction *introduction,
                                   const char *address) {
    middleman *m = context;
    return m->events.accept(m->events.context, introduction, address);
}

static void middleman_up(void *context, uint32_t peer) {
    middleman *m = context;
    m->events.up(m->events.context, peer);
}

static void middleman_down(void *context, uint32_t peer, pen_status take_reason) {
    middleman *m = context;
    m->events.down(m->events.context, peer, take_reason);
}

static void middleman_attempt_failed(void *context, uint32_t peer, const char *why) {
    middleman *m = context;
    m->events.attempt_failed(m->events.context, peer, why);
}

static void middleman_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    middleman *m = context;
    m->events.message(m->events.context, peer, bytes, count);
}

static pen_status middleman_begin_frame(void *context, uint32_t peer, const pen_frame *frame,
                                        pen_memory_place *out_place) {
    middleman *m = context;
    return m->events.begin(m->events.context, peer, frame, out_place);
}

static void middleman_end_frame(void *context, uint32_t peer, const pen_frame *frame,
                                const uint32_t *checksums, bool is_compared) {
    middleman *m = context;
    m->events.end(m->events.context, peer, frame, checksums, is_compared);
}

static void middleman_was_let_go(void *context, uint32_t peer, uint64_t token) {
    (void)context;
    (void)peer;
    middleman_let_go((middleman_loan *)(uintptr_t)token); // NOLINT(performance-no-int-to-ptr)
}

void middleman_let_go(middleman_loan *loan) {
    const pen_transport_events *events = &loan->middleman->events;
    if (loan->is_lent) events->let_go(events->context, 0, loan->token);
    pen_memory_free(loan->copy);
    pen_memory_free(loan->checksums);
    pen_memory_free(loan);
}

// ---- messages that are sent

static void *allocate(uint64_t count) {
    void *memory = pen_memory_allocate(count + (count == 0), 1);
    PEN_ASSERT(memory != NULL);
    return memory;
}

static uint32_t message_kind(const void *bytes, uint64_t count) {
    pen_message message;
    const pen_status status = pen_message_decode(bytes, (size_t)count, &message);
    if (status == PEN_OK) return message.kind;
    pen_status_ignore(status, "it is changed already");
    return MIDDLEMAN_OTHERS;
}

// Holds it for `seconds` at most; the caller holds the lock.
static void message_hold(middleman *m, uint32_t peer, const void *bytes, uint64_t count,
                         double seconds, bool is_queued) {
    middleman_held item = {.peer = peer, .count = count, .is_queued = is_queued};
    item.due = pen_clock_seconds() + seconds * (double)chance_below(&m->chance, 1001) / 1000;
    item.bytes = allocate(count);
    memcpy(item.bytes, bytes, count);
    middleman_hold(m, &item);
}

static void message_keep(middleman *m, const void *bytes, uint64_t count) {
    const uint64_t at = chance_below(&m->chance, MIDDLEMAN_KEPT);
    if (count > PEN_MESSAGE_ROOM) return;
    pen_memory_free(m->kept[at]);
    m->kept[at] = allocate(count);
    m->kept_counts[at] = count;
    memcpy(m->kept[at], bytes, count);
}

// Does the deed; the caller holds the lock. Returns whether the message goes on as it is.
static bool message_do(middleman *m, middleman_deed deed, uint32_t peer, const void *bytes,
                       uint64_t count) {
    const double most = middleman_the_plan.delay_seconds;
    switch (deed) {
    case MIDDLEMAN_REPEAT:
        for (uint64_t i = chance_between(&m->chance, 1, 3); i > 0; i--) {
            message_hold(m, peer, bytes, count, i == 1 ? 0 : most, false);
        }
        return true;
    case MIDDLEMAN_DELAY:
    case MIDDLEMAN_REORDER:
        message_hold(m, peer, bytes, count, most, deed == MIDDLEMAN_DELAY);
        return false;
    case MIDDLEMAN_CHANGE: {
        uint8_t *changed = allocate(count + MESSAGE_GROWTH);
        const uint64_t limit = count + MESSAGE_GROWTH;
        const uint64_t length = middleman_change_message(&m->chance, bytes, count, changed, limit);
        message_hold(m, peer, changed, length, 0, true);
        pen_memory_free(changed);
        return false;
    }
    case MIDDLEMAN_INVENT: {
        const uint64_t at = chance_below(&m->chance, MIDDLEMAN_KEPT);
        if (m->kept[at] != NULL) message_hold(m, peer, m->kept[at], m->kept_counts[at], 0, false);
        return true;
    }
    case MIDDLEMAN_MISLEAD:
        message_hold(m, (uint32_t)chance_below(&m->chance, 4), bytes, count, 0, false);
        return false;
    case MIDDLEMAN_CUT:
        return true;
    case MIDDLEMAN_DROP:
    case MIDDLEMAN_PRETEND:
        break;
    }
    return false;
}

static pen_status middleman_send_message(pen_transport *transport, uint32_t peer, const void *bytes,
                                         uint64_t count) {
    middleman *m = middleman_of(transport);
    const uint32_t kind = message_kind(bytes, count);
    middleman_deed deed = MIDDLEMAN_DROP;
    bool passes = true;
    pen_mutex_lock(&m->lock);
    const bool decides = !m->is_stopping && middleman_decides(&m->chance, kind, &deed);
    if (decides) {
        middleman_note(deed, kind, peer, "");
        passes = message_do(m, deed, peer, bytes, count);
    }
    message_keep(m, bytes, count);
    const bool waits = peer < MIDDLEMAN_PEERS && m->lanes[peer].queued[0] > 0 && !m->is_stopping;
    if (passes && waits) {
        message_hold(m, peer, bytes, count, 0, true);
        passes = false;
    }
    pen_mutex_unlock(&m->lock);
    pen_status status = PEN_OK;
    if (passes) status = m->inner->kind->send_message(m->inner, peer, bytes, count);
    if (decides && deed == MIDDLEMAN_CUT) m->inner->kind->disconnect(m->inner, peer);
    return status;
}

// ---- frames that are sent

// A frame of the middleman's own, with a copy of the payload, which may be longer than it was.
static middleman_held frame_copy(middleman *m, uint32_t peer, const pen_frame *frame,
                                 pen_memory_place payload, uint64_t payload_bytes) {
    middleman_loan *loan = pen_memory_allocate(1, sizeof *loan);
    PEN_ASSERT(loan != NULL);
    const uint64_t count = frame->bytes;
    *loan = (middleman_loan){.middleman = m, .copy = allocate(count)};
    memset(loan->copy, 0, count);
    if (count > 0 && payload_bytes > 0) {
        memcpy(loan->copy, pen_memory_place_address(payload),
               payload_bytes < count ? payload_bytes : count);
    }
    loan->checksums = allocate(pen_frame_chunk_count(count) * sizeof(uint32_t));
    pen_checksum_chunks(loan->copy, count, loan->checksums);
    return (middleman_held){.peer = peer,
                            .frame = *frame,
                            .payload = pen_memory_place_at(loan->copy),
                            .checksums = loan->checksums,
                            .loan = loan};
}

static void frame_hold(middleman *m, middleman_held *item, double seconds, bool is_queued) {
    item->due = pen_clock_seconds() + seconds * (double)chance_below(&m->chance, 1001) / 1000;
    item->is_queued = is_queued;
    middleman_hold(m, item);
}

// Does the deed to the frame; the caller holds the lock. Returns whether it goes on as it is.
static bool frame_do(middleman *m, middleman_deed deed, middleman_held *item) {
    const double most = middleman_the_plan.delay_seconds;
    switch (deed) {
    case MIDDLEMAN_REPEAT:
    case MIDDLEMAN_INVENT: {
        middleman_held copy =
            frame_copy(m, item->peer, &item->frame, item->payload, item->frame.bytes);
        frame_hold(m, &copy, deed == MIDDLEMAN_INVENT ? 8 * most : most, false);
        return true;
    }
    case MIDDLEMAN_DELAY:
    case MIDDLEMAN_REORDER:
        frame_hold(m, item, most, deed == MIDDLEMAN_DELAY);
        return false;
    case MIDDLEMAN_CHANGE: {
        pen_frame frame = item->frame;
        if (chance_one_in(&m->chance, 3)) {
            middleman_held copy = frame_copy(m, item->peer, &frame, item->payload, frame.bytes);
            middleman_change_payload(&m->chance, copy.loan->copy, frame.bytes);
            pen_checksum_chunks(copy.loan->copy, frame.bytes, copy.loan->checksums);
            frame_hold(m, &copy, 0, true);
        } else {
            middleman_change_frame(&m->chance, &frame);
            middleman_held copy =
                frame_copy(m, item->peer, &frame, item->payload, item->frame.bytes);
            frame_hold(m, &copy, 0, true);
        }
        item->peer = PEN_TRANSPORT_ANY_PEER;
        frame_hold(m, item, 0, false);
        return false;
    }
    case MIDDLEMAN_MISLEAD:
        item->peer = (uint32_t)chance_below(&m->chance, 4);
        frame_hold(m, item, 0, false);
        return false;
    case MIDDLEMAN_CUT:
        return true;
    case MIDDLEMAN_DROP:
    case MIDDLEMAN_PRETEND:
        item->peer = PEN_TRANSPORT_ANY_PEER; // lets go of it
        frame_hold(m, item, 0, false);
        break;
    }
    return false;
}

static pen_status middleman_post_frame(pen_transport *transport, uint32_t peer,
                                       const pen_frame *frame, pen_memory_place payload,
                                       const uint32_t *checksums, uint64_t token) {
    middleman *m = middleman_of(transport);
    middleman_deed deed = MIDDLEMAN_DROP;
    bool passes = true;
    middleman_loan *loan = pen_memory_allocate(1, sizeof *loan);
    if (loan == NULL) return pen_error_out_of_memory();
    *loan = (middleman_loan){.middleman = m, .is_lent = true, .token = token};
    middleman_held item = {
        .peer = peer, .frame = *frame, .payload = payload, .checksums = checksums, .loan = loan};
    pen_mutex_lock(&m->lock);
    const bool decides = !m->is_stopping && middleman_decides(&m->chance, MIDDLEMAN_FRAMES, &deed);
    if (decides) {
        char detail[64];
        snprintf(detail, sizeof detail, ", kind %d channel %" PRIu32 " microbatch %" PRIu32,
                 (int)frame->kind, frame->channel, frame->microbatch);
        middleman_note(deed, MIDDLEMAN_FRAMES, peer, detail);
        passes = frame_do(m, deed, &item);
    }
    const bool waits = peer < MIDDLEMAN_PEERS && m->lanes[peer].queued[1] > 0 && !m->is_stopping;
    if (passes && waits) {
        frame_hold(m, &item, 0, true);
        passes = false;
    }
    pen_mutex_unlock(&m->lock);
    pen_status status = PEN_OK;
    if (passes) {
        status = m->inner->kind->send_frame(m->inner, peer, frame, payload, checksums,
                                            (uint64_t)(uintptr_t)loan);
        if (status != PEN_OK) pen_memory_free(loan);
    }
    if (decides && deed == MIDDLEMAN_CUT) m->inner->kind->disconnect(m->inner, peer);
    return status;
}

// What the middleman passes on has its checksums, so they are made at once.
static pen_status middleman_sum_frame(pen_transport *transport, uint32_t peer,
                                      const pen_frame *frame, pen_memory_place payload,
                                      uint32_t *checksums, uint64_t token) {
    middleman *m = middleman_of(transport);
    pen_checksum_chunks(pen_memory_place_address(payload), frame->bytes, checksums);
    if (m->events.summed != NULL) m->events.summed(m->events.context, peer, token);
    return middleman_post_frame(transport, peer, frame, payload, checksums, token);
}

// ---- the rest of a transport

static pen_status middleman_create(const pen_transport_options *options,
                                   const pen_transport_events *events,
                                   pen_transport **out_transport) {
    middleman *m = pen_memory_allocate(1, sizeof *m);
    if (m == NULL) return pen_error_out_of_memory();
    memset(m, 0, sizeof *m);
    m->base.kind = &pen_transport_middleman;
    m->events = *events;
    pen_mutex_init(&m->lock);
    pen_condition_init(&m->changed);
    pen_mutex_lock(&told_lock);
    m->chance.state = middleman_the_plan.seed + 0x51ed2701u * ++created_count;
    pen_mutex_unlock(&told_lock);
    const pen_transport_events own = {
        .context = m,
        .accept = events->accept == NULL ? NULL : middleman_accept,
        .up = middleman_up,
        .down = middleman_down,
        .attempt_failed = events->attempt_failed == NULL ? NULL : middleman_attempt_failed,
        .message = middleman_message,
        .begin = middleman_begin_frame,
        .end = middleman_end_frame,
        .let_go = middleman_was_let_go,
    };
    pen_transport_options changed = *options;
    changed.self = middleman_pretend(m, &options->self);
    pen_status status = middleman_the_plan.inner->create(&changed, &own, &m->inner);
    if (status == PEN_OK) status = pen_thread_create("middleman", middleman_run, m, &m->thread);
    if (status != PEN_OK) {
        middleman_the_plan.inner->destroy(m->inner);
        pen_memory_free(m);
        return status;
    }
    *out_transport = &m->base;
    return PEN_OK;
}

static pen_status middleman_introduce(pen_transport *transport, const pen_introduction *self) {
    middleman *m = middleman_of(transport);
    const pen_introduction who = middleman_pretend(m, self);
    return m->inner->kind->introduce(m->inner, &who);
}

static pen_status middleman_listen(pen_transport *transport, const char *address,
                                   uint16_t *out_port) {
    middleman *m = middleman_of(transport);
    return m->inner->kind->listen(m->inner, address, out_port);
}

static pen_status middleman_connect(pen_transport *transport, uint32_t peer, const char *address,
                                    double deadline_seconds) {
    middleman *m = middleman_of(transport);
    return m->inner->kind->connect(m->inner, peer, address, deadline_seconds);
}

static void middleman_disconnect(pen_transport *transport, uint32_t peer) {
    middleman *m = middleman_of(transport);
    m->inner->kind->disconnect(m->inner, peer);
}

static pen_transport_counters middleman_counters(const pen_transport *transport) {
    const middleman *m = (const middleman *)transport;
    return m->inner->kind->counters(m->inner);
}

static void middleman_close(pen_transport *transport) {
    middleman *m = middleman_of(transport);
    m->inner->kind->close(m->inner);
}

// What is held is let go of first: the inner transport waits for all that it was lent.
static void middleman_stop(pen_transport *transport) {
    middleman *m = middleman_of(transport);
    m->inner->kind->close(m->inner);
    pen_mutex_lock(&m->lock);
    m->is_stopping = true;
    pen_condition_signal(&m->changed);
    pen_mutex_unlock(&m->lock);
    pen_thread_join(m->thread);
    m->thread = NULL;
    m->inner->kind->stop(m->inner);
}

static void middleman_destroy(pen_transport *transport) {
    if (transport == NULL) return;
    middleman *m = middleman_of(transport);
    middleman_stop(transport);
    m->inner->kind->destroy(m->inner);
    for (uint32_t i = 0; i < MIDDLEMAN_KEPT; i++) {
        pen_memory_free(m->kept[i]);
    }
    pen_mutex_deinit(&m->lock);
    pen_condition_deinit(&m->changed);
    pen_memory_free(m);
}

const pen_transport_kind pen_transport_middleman = {
    .name = "middleman",
    .summary = "through another transport, which it does harm to",
    .create = middleman_create,
    .introduce = middleman_introduce,
    .listen = middleman_listen,
    .connect = middleman_connect,
    .send_message = middleman_send_message,
    .send_frame = middleman_post_frame,
    .sum_frame = middleman_sum_frame,
    .disconnect = middleman_disconnect,
    .counters = middleman_counters,
    .close = middleman_close,
    .stop = middleman_stop,
    .destroy = middleman_destroy,
};
