// Waiting for what moves elsewhere.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/interrupt.h"
#include "base/text.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/run/run_wire.h"

#define COORDINATOR_ANSWER_SECONDS 5.0 // and behind the lease: who stands still is lost before
#define COORDINATOR_TICK_SECONDS 0.05
#define COORDINATOR_STILL_SECONDS 0.9 // without any movement, and somebody wants to stop
#define COORDINATOR_ANSWER_LEAST 0.05 // of a worker, when the others have taken all of it

// ---- asking

static bool coordinator_is_answered(const pen_coordinator *c) {
    return c->is_answered || !c->workers[c->asked_worker].is_up || c->is_failed;
}

// Asks for one part of an answer; false: none came in time. Without the lock.
static bool coordinator_ask(pen_coordinator *c, uint32_t worker, pen_run_inquiry what,
                            uint64_t offset, double seconds) {
    const double deadline = pen_clock_seconds() + seconds;
    pen_message ask = {.kind = PEN_MESSAGE_ASK, .number = (uint32_t)what, .offset = offset};
    pen_mutex_lock(&c->lock);
    c->asked_worker = worker;
    c->asked_what = (uint32_t)what;
    c->asked_offset = offset;
    c->is_answered = false;
    c->part_length = 0;
    pen_mutex_unlock(&c->lock);
    pen_coordinator_tell(c, worker, &ask);
    pen_mutex_lock(&c->lock);
    while (!coordinator_is_answered(c) && pen_clock_seconds() < deadline) {
        if (what == PEN_RUN_INQUIRY_WAITS && pen_interrupt_wished(c->setup.cancel)) break;
        (void)pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS);
    }
    const bool is_answered = c->is_answered;
    pen_mutex_unlock(&c->lock);
    return is_answered;
}

static double coordinator_question_seconds(const pen_coordinator *c) {
    return fmax(c->question_end - pen_clock_seconds(), COORDINATOR_ANSWER_LEAST);
}

// Who asks how it stands (SIGUSR1) does not wait for those that stand still.
static double coordinator_answer_seconds(const pen_coordinator *c, pen_run_inquiry what) {
    if (what == PEN_RUN_INQUIRY_WAITS) return coordinator_question_seconds(c);
    return c->setup.lease_seconds + COORDINATOR_ANSWER_SECONDS;
}

// Why a worker does not answer: the run is over, or it does not. Why it is over is told once, and
// not to somebody who asks how it stands: the training must hear it.
static pen_status coordinator_explain_silence(pen_coordinator *c, uint32_t worker,
                                              bool may_explain) {
    if (may_explain && pen_coordinator_is_failed(c)) return pen_coordinator_explain(c);
    return pen_error(PEN_UNAVAILABLE, "%s does not answer", c->spec->workers[worker].name);
}

// ---- waiting

void pen_coordinator_look_for_gone(pen_coordinator *c) {
    for (uint32_t w = 1; c->setup.is_gone != NULL && w <= c->table->worker_count; w++) {
        pen_mutex_lock(&c->lock);
        const bool is_up = c->workers[w].is_up;
        pen_mutex_unlock(&c->lock);
        if (!is_up || w == c->setup.local_worker) continue;
        if (!c->setup.is_gone(c->setup.is_gone_context, w)) continue;
        pen_coordinator_lose(c, w, pen_error(PEN_UNAVAILABLE, "its process has ended"));
    }
}

// What was done counts from the first round on: until then nothing is lost.
bool pen_coordinator_may_stop(const pen_coordinator *c) {
    return !c->has_begun && pen_interrupt_wished(c->setup.cancel);
}

// How often this was looked at since somebody wished to stop, and nothing had moved.
typedef struct coordinator_stillness {
    double moved_at;
    uint32_t count;
} coordinator_stillness;

// Whether the step under way, which would be finished first, does not get on: for longer than ever
// before, by far, and for a moment at least. Looks are counted, since who stood still sees nothing.
static bool coordinator_is_still(const pen_coordinator *c, coordinator_stillness *still) {
    const bool is_step = c->has_begun && !pen_coordinator_core_is_quiet(c->core);
    if (!is_step || !pen_interrupt_wished(c->setup.cancel) || c->moved_at != still->moved_at) {
        *still = (coordinator_stillness){.moved_at = c->moved_at};
        return false;
    }
    const double most = fmax(COORDINATOR_STILL_SECONDS, 4 * c->longest_still);
    return ++still->count * COORDINATOR_TICK_SECONDS > most;
}

static pen_status coordinator_refuse_to_wait(void) {
    return pen_error(PEN_CANCELLED, "stopped while workers take what they are to run");
}

// Every wait of the training goes through here: it ends by what it waits for, or by a failure, as
// which the core tells of its deadlines. Meanwhile it answers SIGUSR1 and looks for workers that
// are gone.
pen_status pen_coordinator_await(pen_coordinator *c, pen_coordinator_test is_done,
                                 uint64_t argument) {
    coordinator_stillness still = {0};
    while (!is_done(c, argument)) {
        if (pen_interrupt_take_question()) {
            pen_mutex_unlock(&c->lock);
            pen_coordinator_answer_question(c);
            pen_mutex_lock(&c->lock);
        }
        if (c->is_failed) {
            pen_mutex_unlock(&c->lock);
            const pen_status status = pen_coordinator_explain(c);
            pen_mutex_lock(&c->lock);
            return status;
        }
        if (pen_coordinator_may_stop(c)) return coordinator_refuse_to_wait();
        if (coordinator_is_still(c, &still)) {
            return pen_error(PEN_CANCELLED, "stopped: the step under way does not get on");
        }
        if (pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS)) continue;
        pen_mutex_unlock(&c->lock);
        pen_coordinator_look_for_gone(c);
        pen_mutex_lock(&c->lock);
    }
    return PEN_OK;
}

// ---- what callers ask

// Bytes of a list of what was sent, of each microbatch on each channel.
static uint64_t coordinator_sent_limit(const pen_coordinator *c) {
    uint64_t count = 0;
    for (uint32_t f = 0; f < c->table->form_count; f++) {
        const pen_run_form *form = &c->table->forms[f];
        for (uint32_t i = 0; i < form->channel_count; i++) {
            count += pen_run_slots(form, &form->channels[i]);
        }
    }
    return count * PEN_RUN_SENT_BYTES;
}

// Bytes that an answer may have.
static uint64_t coordinator_answer_limit(const pen_coordinator *c, pen_run_inquiry what) {
    const uint64_t base = (uint64_t)1 << 16;
    switch (what) {
    case PEN_RUN_INQUIRY_WAITS:
    case PEN_RUN_INQUIRY_DUMP: // has no answer
        break;
    case PEN_RUN_INQUIRY_SHARD: // asked for in another way
    case PEN_RUN_INQUIRY_EVIDENCE:
        break;
    case PEN_RUN_INQUIRY_SENT:
        return base + coordinator_sent_limit(c);
    case PEN_RUN_INQUIRY_FIGURES:
        return base + (uint64_t)c->table->device_count * 64;
    case PEN_RUN_INQUIRY_TRACE:
        return base + (uint64_t)c->spec->trace_limit * (c->table->device_count + 1) * 256;
    }
    return base;
}

// Answers longer than a message come in parts. Their length is bounded by what the question can
// have as an answer.
pen_status pen_coordinator_inquire(pen_coordinator *coordinator, uint32_t worker,
                                   pen_run_inquiry what, pen_arena *arena, const void **out_bytes,
                                   uint64_t *out_count) {
    pen_coordinator *c = coordinator;
    char *bytes = NULL;
    uint64_t count = 0, total = 0;
    do {
        if (!coordinator_ask(c, worker, what, count, coordinator_answer_seconds(c, what))) {
            return coordinator_explain_silence(c, worker, what != PEN_RUN_INQUIRY_WAITS);
        }
        if (bytes == NULL) {
            total = c->part_total;
            if (total > coordinator_answer_limit(c, what)) {
                return pen_error(PEN_CORRUPT, "%s answers with %llu bytes, at most %llu go",
                                 c->spec->workers[worker].name, (unsigned long long)total,
                                 (unsigned long long)coordinator_answer_limit(c, what));
            }
            PEN_TRY(PEN_NEW(arena, total, &bytes));
        }
        if (c->part_total != total || c->part_length > total - count ||
            (c->part_length == 0 && total > 0)) {
            return pen_error(PEN_CORRUPT, "%s answers with parts that do not go together",
                             c->spec->workers[worker].name);
        }
        memcpy(bytes + count, c->part, c->part_length);
        count += c->part_length;
    } while (count < total);
    *out_bytes = bytes;
    *out_count = total;
    return PEN_OK;
}

// The difference of two clocks, taken at the middle of a round trip. Of five tries the quickest has
// the least error.
static pen_status coordinator_compare_clocks(pen_coordinator *c, uint32_t worker, double seconds,
                                             bool may_explain, double *out_seconds) {
    double least = 0;
    *out_seconds = 0;
    for (uint32_t i = 0; i < 5; i++) { // the quickest answer says most
        pen_mutex_lock(&c->lock);
        c->ping_sequence += 1;
        c->is_ponged = false;
        pen_message ping = {.kind = PEN_MESSAGE_PING, .sequence = c->ping_sequence};
        pen_mutex_unlock(&c->lock);
        const double sent = pen_clock_seconds();
        pen_coordinator_tell(c, worker, &ping);
        pen_mutex_lock(&c->lock);
        while (!c->is_ponged && c->workers[worker].is_up && !c->is_failed &&
               !pen_coordinator_may_stop(c) && pen_clock_seconds() < sent + seconds) {
            (void)pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS);
        }
        const bool is_ponged = c->is_ponged;
        const double there = (double)c->pong_here * 1e-9;
        pen_mutex_unlock(&c->lock);
        const double took = pen_clock_seconds() - sent;
        if (!is_ponged && pen_coordinator_may_stop(c)) return coordinator_refuse_to_wait();
        if (!is_ponged) return coordinator_explain_silence(c, worker, may_explain);
        if (i > 0 && took >= least) continue;
        least = took;
        *out_seconds = sent + took / 2 - there;
    }
    return PEN_OK;
}

pen_status pen_coordinator_compare_clocks(pen_coordinator *coordinator, uint32_t worker,
                                          double *out_seconds) {
    return coordinator_compare_clocks(
        coordinator, worker, coordinator_answer_seconds(coordinator, PEN_RUN_INQUIRY_FIGURES), true,
        out_seconds);
}

pen_status pen_coordinator_ask_clock(pen_coordinator *c, uint32_t worker, double *out_seconds) {
    return coordinator_compare_clocks(c, worker, coordinator_question_seconds(c), false,
                                      out_seconds);
}
