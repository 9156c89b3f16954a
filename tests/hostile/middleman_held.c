// What a middleman holds back: a list by time, and the thread that sends what is due.
#include "base/clock.h"
#include "base/memory.h"
#include "tests/hostile/middleman_inside.h"

static middleman_lanes *held_lanes(middleman *m, const middleman_held *item) {
    return item->peer < MIDDLEMAN_PEERS ? &m->lanes[item->peer] : NULL;
}

void middleman_hold(middleman *m, const middleman_held *item) {
    middleman_held *held = pen_memory_allocate(1, sizeof *held);
    PEN_ASSERT(held != NULL);
    *held = *item;
    middleman_lanes *lanes = held_lanes(m, item);
    const unsigned lane = item->loan != NULL;
    if (lanes == NULL) held->is_queued = false;
    if (held->is_queued) {
        if (held->due < lanes->free_at[lane]) held->due = lanes->free_at[lane];
        lanes->free_at[lane] = held->due;
        lanes->queued[lane] += 1;
    }
    middleman_held **at = &m->held;
    while (*at != NULL && (*at)->due <= held->due) {
        at = &(*at)->next;
    }
    held->next = *at;
    *at = held;
    pen_condition_signal(&m->changed);
}

// A peer of no link, or one that is down: the frame is let go of, as the transport would.
void middleman_send_frame(middleman *m, uint32_t peer, const pen_frame *frame,
                          pen_memory_place payload, const uint32_t *checksums,
                          middleman_loan *loan) {
    if (peer != PEN_TRANSPORT_ANY_PEER) {
        const pen_status status = m->inner->kind->send_frame(m->inner, peer, frame, payload,
                                                             checksums, (uint64_t)(uintptr_t)loan);
        if (status == PEN_OK) return;
        pen_status_ignore(status, "nobody waits for it");
    }
    middleman_let_go(loan);
}

static void held_send(middleman *m, middleman_held *item, bool is_over) {
    const uint32_t peer = is_over ? PEN_TRANSPORT_ANY_PEER : item->peer;
    if (item->loan != NULL) {
        middleman_send_frame(m, peer, &item->frame, item->payload, item->checksums, item->loan);
        return;
    }
    if (!is_over) {
        const pen_status status =
            m->inner->kind->send_message(m->inner, peer, item->bytes, item->count);
        pen_status_ignore(status, "the link is down");
    }
    pen_memory_free(item->bytes);
}

// The next item that is due, or at the end any. NULL: none is left.
static middleman_held *held_take(middleman *m, bool *out_is_over) {
    middleman_held *item = NULL;
    pen_mutex_lock(&m->lock);
    while (item == NULL) {
        const double now = pen_clock_seconds();
        if (m->held != NULL && (m->is_stopping || m->held->due <= now)) {
            item = m->held;
            m->held = item->next;
        } else if (m->is_stopping) {
            break;
        } else if (m->held != NULL) {
            (void)pen_condition_wait_for(&m->changed, &m->lock, m->held->due - now);
        } else {
            pen_condition_wait(&m->changed, &m->lock);
        }
    }
    *out_is_over = m->is_stopping;
    pen_mutex_unlock(&m->lock);
    return item;
}

void middleman_run(void *context) {
    middleman *m = context;
    middleman_held *item;
    bool is_over;
    while ((item = held_take(m, &is_over)) != NULL) {
        held_send(m, item, is_over);
        middleman_lanes *lanes = held_lanes(m, item);
        pen_mutex_lock(&m->lock);
        if (item->is_queued) lanes->queued[item->loan != NULL] -= 1;
        pen_mutex_unlock(&m->lock);
        pen_memory_free(item);
    }
}
