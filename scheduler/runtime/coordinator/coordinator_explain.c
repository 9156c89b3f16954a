// Why a run failed: what the core says in one word becomes an error for people.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "scheduler/protocol/recovery_policy.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

#define EXPLAIN_SECONDS 0.5       // for workers to say what they waited for
#define EXPLAIN_STAGES_LISTED 32u // in messages

// For messages: a user knows stages from the plan, not workers' numbers.
static const char *explain_stages_of(const pen_coordinator *c, uint32_t worker, char *text,
                                     size_t size) {
    const pen_run_form *form = &c->table->forms[0];
    uint32_t listed[EXPLAIN_STAGES_LISTED], count = 0;
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
        if (i < count || count == EXPLAIN_STAGES_LISTED) continue;
        listed[count++] = task->stage;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", used == 0 ? "" : ", ", task->stage);
    }
    return text;
}

static pen_status explain_add_lines(pen_status status, const char *who, const char *text) {
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        if (length > 0) status = pen_status_add_context(status, "%s: %.*s", who, (int)length, text);
        text += length + (text[length] == '\n');
    }
    return status;
}

// Stops the workers, and waits until each that is there has said what its devices wait for.
static void explain_await_waits(pen_coordinator *c, double deadline) {
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
        pen_mutex_unlock(&c->lock);
    }
}

static bool explain_has_waits(pen_coordinator *c, uint32_t w) {
    pen_mutex_lock(&c->lock);
    const bool is_stopped = c->workers[w].is_stopped;
    pen_mutex_unlock(&c->lock);
    return is_stopped; // and says no more from then on
}

static pen_status explain_list_waits(pen_coordinator *c, pen_status status) {
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (!explain_has_waits(c, w)) continue;
        status = explain_add_lines(status, c->spec->workers[w].name, c->workers[w].waits);
    }
    return status;
}

static pen_status explain_add_waits(pen_coordinator *c, pen_status status, double deadline) {
    explain_await_waits(c, deadline);
    return explain_list_waits(c, status);
}

// Where one device alone computes, and others wait, it is the one that does not get on, such as a
// GPU that hangs. The message names it, since that alone is said again when the training ends.
static pen_status explain_standstill(pen_coordinator *c, const char *why, double deadline) {
    uint32_t computes = 0, count = 0;
    explain_await_waits(c, deadline);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (!explain_has_waits(c, w) || !c->workers[w].computes) continue;
        computes = w;
        count += 1;
    }
    if (count != 1) {
        return explain_list_waits(
            c, pen_error(PEN_DEADLINE, "%s (%.4g s)", why, c->setup.progress_seconds));
    }
    const char *waits = c->workers[computes].waits;
    return explain_list_waits(
        c, pen_error(PEN_DEADLINE, "%s (%.4g s): %s, %.*s", why, c->setup.progress_seconds,
                     c->spec->workers[computes].name, (int)strcspn(waits, "\n"), waits));
}

// "worker 2 (10.0.0.2:7070): connection refused; worker 3 (10.0.0.3:7070): no answer". "" when
// nobody is missing. out_is_absent: somebody is not there at all, as far as can be seen.
static pen_status explain_list_missing(pen_coordinator *c, pen_arena *arena, const char **out_names,
                                       bool *out_is_absent) {
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

static pen_status explain_say_late(pen_coordinator *c, pen_arena *arena) {
    const char *names;
    bool is_absent;
    PEN_TRY(explain_list_missing(c, arena, &names, &is_absent));
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
    pen_status_ignore(explain_say_late(c, arena), "it is said at the deadline again");
    pen_arena_destroy(arena);
}

// All that are missing are named at once, with why each could not be reached, and, where none seems
// to run, how to start one.
static pen_status explain_missing(pen_coordinator *c) {
    pen_arena *arena;
    const char *names;
    bool is_absent;
    const double waited = c->setup.rendezvous == NULL
                              ? c->setup.rendezvous_seconds
                              : pen_clock_seconds() - c->setup.rendezvous->began;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = explain_list_missing(c, arena, &names, &is_absent);
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
static pen_status explain_take_failure(pen_coordinator *c, uint32_t w) {
    pen_mutex_lock(&c->lock);
    const pen_status said = c->workers[w].failure;
    c->workers[w].failure = PEN_OK;
    pen_mutex_unlock(&c->lock);
    return said;
}

// A worker cannot go on, and says why.
static pen_status explain_failure(pen_coordinator *c, uint32_t w) {
    char stages[128];
    const char *name = c->spec->workers[w].name;
    const pen_status said = explain_take_failure(c, w);
    explain_stages_of(c, w, stages, sizeof stages);
    if (said == PEN_OK) return pen_error(PEN_INTERNAL, "%s, stages %s: it failed", name, stages);
    if (w == c->setup.local_worker) return said;
    if (stages[0] == '\0') return pen_status_add_context(said, "%s", name);
    return pen_status_add_context(said, "%s, stages %s", name, stages);
}

static pen_status explain_loss(pen_coordinator *c, uint32_t w, const char *why, double deadline) {
    char stages[128];
    const pen_status said = explain_take_failure(c, w);
    explain_stages_of(c, w, stages, sizeof stages);
    const pen_status status =
        pen_error(PEN_UNAVAILABLE, "lost %s, which runs stages %s: %s", c->spec->workers[w].name,
                  stages, said == PEN_OK ? why : pen_status_message(said));
    pen_status_ignore(said, "its text is in the error");
    return explain_add_waits(c, status, deadline);
}

static pen_status explain_take_fence_failure(pen_coordinator *c) {
    const pen_status failure = c->fence_failure;
    c->fence_failure = PEN_OK;
    return failure;
}

// Its disk has refused, or has not answered.
static pen_status explain_store(pen_coordinator *c) {
    const pen_status failure = explain_take_fence_failure(c);
    if (failure != PEN_OK) return failure;
    return pen_error(PEN_NO_STORAGE, "%s within %.4g s: its disk does not answer",
                     pen_coordinator_reason_text(PEN_COORDINATOR_REASON_STORE),
                     c->setup.write_seconds);
}

static pen_status explain_superseded(pen_coordinator *c, uint32_t w) {
    const pen_status fence = explain_take_fence_failure(c);
    const pen_status said = w > 0 ? explain_take_failure(c, w) : PEN_OK;
    if (fence != PEN_OK) {
        pen_status_ignore(said, "the commit log says it better");
        return fence;
    }
    if (said != PEN_OK) return said;
    return pen_error(PEN_CANCELLED, "%s",
                     pen_coordinator_reason_text(PEN_COORDINATOR_REASON_SUPERSEDED));
}

// Who is not there, or failed, as `cause` did, 0: nobody else. One that only says that its link to
// another is down is none of them.
static void explain_note_missing(pen_coordinator *c, uint32_t cause) {
    pen_mutex_lock(&c->lock);
    const bool is_messenger = c->reason == PEN_COORDINATOR_REASON_FAILED &&
                              pen_coordinator_is_messenger(&c->workers[c->failed_worker]);
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
static bool explain_is_riddle(pen_coordinator_reason reason) {
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
static pen_status explain_reason(pen_coordinator *c, double deadline) {
    const uint32_t w = c->failed_worker;
    const char *why = pen_coordinator_reason_text(c->reason);
    switch (c->reason) {
    case PEN_COORDINATOR_REASON_MISSING:
        return explain_missing(c);
    case PEN_COORDINATOR_REASON_LOST:
    case PEN_COORDINATOR_REASON_LEASE:
    case PEN_COORDINATOR_REASON_LOAD:
    case PEN_COORDINATOR_REASON_WRITE:
    case PEN_COORDINATOR_REASON_PIECE:
        return explain_loss(c, w, why, deadline);
    case PEN_COORDINATOR_REASON_FAILED:
        return explain_failure(c, w);
    case PEN_COORDINATOR_REASON_NONE:
    case PEN_COORDINATOR_REASON_PROGRESS:
        return explain_standstill(c, why, deadline);
    case PEN_COORDINATOR_REASON_SUPERSEDED:
        return explain_superseded(c, w);
    case PEN_COORDINATOR_REASON_STORE:
        return explain_store(c);
    case PEN_COORDINATOR_REASON_SAVE:
    case PEN_COORDINATOR_REASON_LOSS:
    case PEN_COORDINATOR_REASON_CREDIT:
    case PEN_COORDINATOR_REASON_ROUND:
        break;
    }
    return pen_error(PEN_CORRUPT, "%s: %s", c->spec->workers[w].name, why);
}

static pen_status explain_first(pen_coordinator *c) {
    const uint32_t cause = c->reason == PEN_COORDINATOR_REASON_FAILED
                               ? pen_coordinator_find_cause(c, c->failed_worker)
                               : 0;
    const double deadline = pen_clock_seconds() + EXPLAIN_SECONDS;
    explain_note_missing(c, cause);
    if (explain_is_riddle(c->reason)) {
        pen_coordinator_have_dumped(c, pen_coordinator_reason_text(c->reason));
    }
    if (cause == 0) return explain_reason(c, deadline);
    pen_mutex_lock(&c->lock);
    const bool is_own = pen_coordinator_has_own_fault(&c->workers[cause]);
    pen_mutex_unlock(&c->lock);
    if (is_own) return explain_failure(c, cause);
    return explain_loss(c, cause, "its link is down", deadline);
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
    const pen_status status = explain_first(c);
    pen_mutex_lock(&c->lock);
    c->explained_code = pen_status_get_code(status);
    pen_mutex_unlock(&c->lock);
    return status;
}
