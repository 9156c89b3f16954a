// Waiting for what moves elsewhere, and saying why it does not.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/interrupt.h"
#include "base/text.h"
#include "scheduler/protocol/recovery_policy.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/run/run_wire.h"

#define COORDINATOR_ANSWER_SECONDS 5.0  // and behind the lease: who stands still is lost before
#define COORDINATOR_EXPLAIN_SECONDS 0.5 // for workers to say what they waited for,
#define COORDINATOR_LOST_SECONDS 1.0    // and for another's link to go down, too
#define COORDINATOR_TICK_SECONDS 0.05
#define COORDINATOR_STILL_SECONDS 0.9 // without any movement, and somebody wants to stop
#define COORDINATOR_ANSWER_LEAST 0.05 // of a worker, when the others have taken all of it
#define COORDINATOR_STAGES_LISTED 32u // in messages

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

// ---- why it failed

// For messages: a user knows stages from the plan, not workers' numbers.
static const char *coordinator_stages_of(const pen_coordinator *c, uint32_t worker, char *text,
                                         size_t size) {
    const pen_run_form *form = &c->table->forms[0];
    uint32_t listed[COORDINATOR_STAGES_LISTED], count = 0;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t t = 0; t < form->task_count && used + 16 < size; t++) {
        uint32_t device = 0;
        while (device + 1 < c->table->device_count &&
               !(form->devices[device].task_first <= t && t < form->devices[device].task_end)) {
            device++;
        }
        const pen_task *task = &form->tasks[t].task;
        if (form->devices[device].worker != worker) continue;
        uint32_t i = 0;
        while (i < count && listed[i] != task->stage)
            i++;
        if (i < count || count == COORDINATOR_STAGES_LISTED) continue;
        listed[count++] = task->stage;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", used == 0 ? "" : ", ", task->stage);
    }
    return text;
}

static pen_status coordinator_add_lines(pen_status status, const char *who, const char *text) {
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        if (length > 0) status = pen_status_add_context(status, "%s: %.*s", who, (int)length, text);
        text += length + (text[length] == '\n');
    }
    return status;
}

// What the devices of each worker that is still there waited for, as it says when it stops.
static pen_status coordinator_add_waits(pen_coordinator *c, pen_status status, double deadline) {
    const pen_coordinator_event stop = {.kind = PEN_COORDINATOR_EVENT_STOP};
    pen_coordinator_step(c, &stop);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        coordinator_worker *worker = &c->workers[w];
        pen_mutex_lock(&c->lock);
        while (worker->is_up && !worker->is_stopped) {
            const double left = deadline - pen_clock_seconds();
            if (left <= 0) break;
            (void)pen_condition_wait_for(&c->changed, &c->lock, left);
        }
        const bool is_stopped = worker->is_stopped;
        pen_mutex_unlock(&c->lock);
        if (!is_stopped) continue;
        status = coordinator_add_lines(status, c->spec->workers[w].name, worker->waits);
    }
    return status;
}

// "worker 2 (10.0.0.2:7070): connection refused; worker 3 (10.0.0.3:7070): no answer". "" when
// nobody is missing. out_is_absent: somebody is not there at all, as far as can be seen.
static pen_status coordinator_list_missing(pen_coordinator *c, pen_arena *arena,
                                           const char **out_names, bool *out_is_absent) {
    pen_text text;
    pen_text_init(&text, arena);
    *out_is_absent = false;
    pen_mutex_lock(&c->lock);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        const coordinator_worker *worker = &c->workers[w];
        if (pen_coordinator_core_is_present(c->core, w)) continue;
        const char *why = worker->is_up ? "it has not introduced itself" : "no answer";
        if (!worker->is_up && worker->trouble[0] != '\0') why = worker->trouble;
        if (!worker->is_up && (why != worker->trouble || strcmp(why, "connection refused") == 0)) {
            *out_is_absent = true;
        }
        pen_text_print(&text, "%s%s: %s", text.length == 0 ? "" : "; ", c->spec->workers[w].name,
                       why);
    }
    pen_mutex_unlock(&c->lock);
    return pen_text_finish(&text, out_names);
}

static pen_status coordinator_say_late(pen_coordinator *c, pen_arena *arena) {
    const char *names;
    bool is_absent;
    PEN_TRY(coordinator_list_missing(c, arena, &names, &is_absent));
    if (names[0] == '\0') return PEN_OK;
    pen_log(PEN_LOG_WARNING, "still waiting, for up to %.0f s more, for %s",
            fmax(c->setup.rendezvous->end - pen_clock_seconds(), 0), names);
    return PEN_OK;
}

// Once in a rendezvous: its deadline may be long, and what is wrong seldom mends itself.
void pen_coordinator_say_late(pen_coordinator *c) {
    pen_coordinator_rendezvous *rendezvous = c->setup.rendezvous;
    pen_arena *arena;
    if (rendezvous == NULL || rendezvous->is_said) return;
    if (pen_clock_seconds() < rendezvous->began + PEN_COORDINATOR_SAY_SECONDS) return;
    rendezvous->is_said = true;
    if (pen_arena_create(&arena) != PEN_OK) return;
    pen_status_ignore(coordinator_say_late(c, arena), "it is said at the deadline again");
    pen_arena_destroy(arena);
}

// All that are missing are named at once, with why each could not be reached, and, where none seems
// to run, how to start one.
static pen_status coordinator_explain_missing(pen_coordinator *c) {
    pen_arena *arena;
    const char *names;
    bool is_absent;
    const double waited = c->setup.rendezvous == NULL
                              ? c->setup.rendezvous_seconds
                              : pen_clock_seconds() - c->setup.rendezvous->began;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = coordinator_list_missing(c, arena, &names, &is_absent);
    if (status == PEN_OK) {
        status = pen_error(PEN_UNAVAILABLE, "not there after %.4g s: %s%s",
                           waited < 1 ? waited : round(waited), names,
                           is_absent ? "; `penstock worker --listen HOST:PORT` starts one" : "");
    }
    pen_arena_destroy(arena);
    pen_mutex_lock(&c->lock);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (c->workers[w].trouble[0] != '\0') { // its last failure says the same
            pen_status_ignore(c->workers[w].failure, "why is among the names");
        } else if (c->workers[w].failure != PEN_OK) {
            status = pen_status_join(status, c->workers[w].failure);
        }
        c->workers[w].failure = PEN_OK;
    }
    pen_mutex_unlock(&c->lock);
    return status;
}

// Takes what a worker said, or why its link is down.
static pen_status coordinator_take_failure(pen_coordinator *c, uint32_t w) {
    pen_mutex_lock(&c->lock);
    const pen_status said = c->workers[w].failure;
    c->workers[w].failure = PEN_OK;
    pen_mutex_unlock(&c->lock);
    return said;
}

// A worker cannot go on, and says why.
static pen_status coordinator_explain_failure(pen_coordinator *c, uint32_t w) {
    char stages[128];
    const char *name = c->spec->workers[w].name;
    const pen_status said = coordinator_take_failure(c, w);
    coordinator_stages_of(c, w, stages, sizeof stages);
    if (said == PEN_OK) return pen_error(PEN_INTERNAL, "%s, stages %s: it failed", name, stages);
    if (w == c->setup.local_worker) return said;
    if (stages[0] == '\0') return pen_status_add_context(said, "%s", name);
    return pen_status_add_context(said, "%s, stages %s", name, stages);
}

static pen_status coordinator_explain_loss(pen_coordinator *c, uint32_t w, const char *why,
                                           double deadline) {
    char stages[128];
    const pen_status said = coordinator_take_failure(c, w);
    coordinator_stages_of(c, w, stages, sizeof stages);
    const pen_status status =
        pen_error(PEN_UNAVAILABLE, "lost %s, which runs stages %s: %s", c->spec->workers[w].name,
                  stages, said == PEN_OK ? why : pen_status_message(said));
    pen_status_ignore(said, "its text is in the error");
    return coordinator_add_waits(c, status, deadline);
}

static pen_status coordinator_take_fence_failure(pen_coordinator *c) {
    const pen_status failure = c->fence_failure;
    c->fence_failure = PEN_OK;
    return failure;
}

// Its disk has refused, or has not answered.
static pen_status coordinator_explain_store(pen_coordinator *c) {
    const pen_status failure = coordinator_take_fence_failure(c);
    if (failure != PEN_OK) return failure;
    return pen_error(PEN_NO_STORAGE, "%s within %.4g s: its disk does not answer",
                     pen_coordinator_reason_text(PEN_COORDINATOR_REASON_STORE),
                     c->setup.write_seconds);
}

static pen_status coordinator_explain_superseded(pen_coordinator *c, uint32_t w) {
    const pen_status fence = coordinator_take_fence_failure(c);
    const pen_status said = w > 0 ? coordinator_take_failure(c, w) : PEN_OK;
    if (fence != PEN_OK) {
        pen_status_ignore(said, "the commit log says it better");
        return fence;
    }
    if (said != PEN_OK) return said;
    return pen_error(PEN_CANCELLED, "%s",
                     pen_coordinator_reason_text(PEN_COORDINATOR_REASON_SUPERSEDED));
}

// Whether a worker only says that its link to another is down.
static bool coordinator_is_messenger(const coordinator_worker *worker) {
    return !worker->is_unjust && pen_status_get_code(worker->failure) == PEN_UNAVAILABLE;
}

static bool coordinator_has_own_fault(const coordinator_worker *worker) {
    return worker->has_said && !coordinator_is_messenger(worker);
}

// The first of the others that said what went wrong there, or else that is lost. 0: nobody.
static uint32_t coordinator_find_other(const pen_coordinator *c, uint32_t failed) {
    uint32_t lost = 0;
    for (uint32_t w = c->table->worker_count; w > 0; w--) {
        if (w != failed && c->workers[w].is_lost) lost = w;
    }
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (w != failed && coordinator_has_own_fault(&c->workers[w])) return w;
    }
    return lost;
}

// A worker that says it lost a link may be the first to notice that another is gone, or leaves the
// run because it failed: who that is soon shows. 0: nobody.
static uint32_t coordinator_find_cause(pen_coordinator *c, uint32_t failed) {
    const double deadline = pen_clock_seconds() + COORDINATOR_LOST_SECONDS;
    uint32_t cause = 0;
    pen_mutex_lock(&c->lock);
    while (coordinator_is_messenger(&c->workers[failed])) {
        cause = coordinator_find_other(c, failed);
        const double left = deadline - pen_clock_seconds();
        if (cause != 0 || left <= 0) break;
        (void)pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS);
        pen_mutex_unlock(&c->lock);
        pen_coordinator_look_for_gone(c);
        pen_mutex_lock(&c->lock);
    }
    pen_mutex_unlock(&c->lock);
    return cause;
}

// Who is not there, or failed, as `cause` did, 0: nobody else. One that only says that its link to
// another is down is none of them.
static void coordinator_note_missing(pen_coordinator *c, uint32_t cause) {
    pen_mutex_lock(&c->lock);
    const bool is_messenger = c->reason == PEN_COORDINATOR_REASON_FAILED &&
                              coordinator_is_messenger(&c->workers[c->failed_worker]);
    for (uint32_t w = 1; c->setup.is_refused != NULL && w <= c->table->worker_count; w++) {
        c->setup.is_refused[w] = c->workers[w].is_refused;
    }
    for (uint32_t w = 1; c->setup.was_there != NULL && w <= c->table->worker_count; w++) {
        c->setup.was_there[w] = c->workers[w].was_up;
    }
    for (uint32_t w = 1; c->setup.is_missing != NULL && w <= c->table->worker_count; w++) {
        const bool is_blamed =
            pen_coordinator_core_is_missing(c->core, w) && !(is_messenger && w == c->failed_worker);
        c->setup.is_missing[w] = c->workers[w].is_lost || is_blamed || w == cause;
    }
    pen_mutex_unlock(&c->lock);
}

// Whether what everybody did last is worth keeping: not when one is gone, which says it all.
static bool coordinator_is_riddle(pen_coordinator_reason reason) {
    switch (reason) {
    case PEN_COORDINATOR_REASON_NONE:
    case PEN_COORDINATOR_REASON_PROGRESS:
    case PEN_COORDINATOR_REASON_LEASE:
    case PEN_COORDINATOR_REASON_LOAD:
    case PEN_COORDINATOR_REASON_WRITE:
    case PEN_COORDINATOR_REASON_PIECE:
    case PEN_COORDINATOR_REASON_SAVE:
    case PEN_COORDINATOR_REASON_LOSS:
    case PEN_COORDINATOR_REASON_CREDIT:
    case PEN_COORDINATOR_REASON_ROUND:
        return true;
    case PEN_COORDINATOR_REASON_MISSING:
    case PEN_COORDINATOR_REASON_LOST:
    case PEN_COORDINATOR_REASON_FAILED:
    case PEN_COORDINATOR_REASON_SUPERSEDED:
    case PEN_COORDINATOR_REASON_STORE:
        return false;
    }
    return false;
}

// The core says that a run failed and why in one word; here it becomes an error for people, which
// asks the others who waited for whom.
static pen_status coordinator_explain_reason(pen_coordinator *c, double deadline) {
    const uint32_t w = c->failed_worker;
    const char *why = pen_coordinator_reason_text(c->reason);
    switch (c->reason) {
    case PEN_COORDINATOR_REASON_MISSING:
        return coordinator_explain_missing(c);
    case PEN_COORDINATOR_REASON_LOST:
    case PEN_COORDINATOR_REASON_LEASE:
    case PEN_COORDINATOR_REASON_LOAD:
    case PEN_COORDINATOR_REASON_WRITE:
    case PEN_COORDINATOR_REASON_PIECE:
        return coordinator_explain_loss(c, w, why, deadline);
    case PEN_COORDINATOR_REASON_FAILED:
        return coordinator_explain_failure(c, w);
    case PEN_COORDINATOR_REASON_NONE:
    case PEN_COORDINATOR_REASON_PROGRESS:
        return coordinator_add_waits(
            c, pen_error(PEN_DEADLINE, "%s (%.4g s)", why, c->setup.progress_seconds), deadline);
    case PEN_COORDINATOR_REASON_SUPERSEDED:
        return coordinator_explain_superseded(c, w);
    case PEN_COORDINATOR_REASON_STORE:
        return coordinator_explain_store(c);
    case PEN_COORDINATOR_REASON_SAVE:
    case PEN_COORDINATOR_REASON_LOSS:
    case PEN_COORDINATOR_REASON_CREDIT:
    case PEN_COORDINATOR_REASON_ROUND:
        break;
    }
    return pen_error(PEN_CORRUPT, "%s: %s", c->spec->workers[w].name, why);
}

static pen_status coordinator_explain_first(pen_coordinator *c) {
    const double deadline = pen_clock_seconds() + COORDINATOR_EXPLAIN_SECONDS;
    const uint32_t cause = c->reason == PEN_COORDINATOR_REASON_FAILED
                               ? coordinator_find_cause(c, c->failed_worker)
                               : 0;
    coordinator_note_missing(c, cause);
    if (coordinator_is_riddle(c->reason)) {
        pen_coordinator_have_dumped(c, pen_coordinator_reason_text(c->reason));
    }
    if (cause == 0) return coordinator_explain_reason(c, deadline);
    pen_mutex_lock(&c->lock);
    const bool is_own = coordinator_has_own_fault(&c->workers[cause]);
    pen_mutex_unlock(&c->lock);
    if (is_own) return coordinator_explain_failure(c, cause);
    return coordinator_explain_loss(c, cause, "its link is down", deadline);
}

// Whoever asks again hears a code, too, by which the run is not tried again in vain.
pen_status pen_coordinator_explain(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    const bool is_again = c->is_explained;
    const pen_status_code code =
        pen_recovery_may_help(c->explained_code) ? PEN_UNAVAILABLE : c->explained_code;
    c->is_explained = true;
    pen_mutex_unlock(&c->lock);
    if (is_again) return pen_error(code, "the run is over");
    const pen_status status = coordinator_explain_first(c);
    pen_mutex_lock(&c->lock);
    c->explained_code = pen_status_get_code(status);
    pen_mutex_unlock(&c->lock);
    return status;
}
