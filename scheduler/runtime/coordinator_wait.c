// Waiting for what moves elsewhere, and saying why it does not.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "scheduler/runtime/coordinator_link.h"

#define COORDINATOR_PATIENCE_SECONDS 20.0 // without anything moving, before workers are asked
#define COORDINATOR_ANSWER_SECONDS 5.0
#define COORDINATOR_STOP_SECONDS 0.3 // for workers to say what they waited for
#define COORDINATOR_LOST_SECONDS 0.2 // for another's link to go down, too
#define COORDINATOR_TICK_SECONDS 0.1

// ---- asking

static bool coordinator_is_answered(const pen_coordinator *c) {
    return c->is_answered || !c->workers[c->asked_worker].is_up;
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
    while (!coordinator_is_answered(c)) {
        const double left = deadline - pen_clock_seconds();
        if (left <= 0) break;
        (void)pen_condition_wait_for(&c->changed, &c->lock, left);
    }
    const bool is_answered = c->is_answered;
    pen_mutex_unlock(&c->lock);
    return is_answered;
}

// ---- waiting

// Whether a device computes, as workers say. Without the lock.
static bool coordinator_is_computing(pen_coordinator *c) {
    bool is_computing = false;
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (!coordinator_ask(c, w, PEN_RUN_INQUIRY_WAITS, 0, COORDINATOR_ANSWER_SECONDS)) {
            continue;
        }
        if (c->part_length > 0 && *(const char *)c->part == 'r') is_computing = true;
    }
    return is_computing;
}

static pen_status coordinator_give_up(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    c->is_failed = true;
    c->reason = PEN_COORDINATOR_REASON_NONE;
    pen_mutex_unlock(&c->lock);
    return pen_coordinator_explain(c);
}

// Nothing moved for a while: that is right where a device computes for long.
static pen_status coordinator_look_around(pen_coordinator *c, uint64_t moved_before) {
    if (coordinator_is_computing(c)) return PEN_OK;
    pen_mutex_lock(&c->lock);
    const bool has_moved = c->moved_count != moved_before || c->is_failed;
    pen_mutex_unlock(&c->lock);
    return has_moved ? PEN_OK : coordinator_give_up(c);
}

pen_status pen_coordinator_await(pen_coordinator *c, pen_coordinator_test is_done,
                                 uint64_t argument) {
    uint64_t moved = c->moved_count;
    double patient_until = pen_clock_seconds() + COORDINATOR_PATIENCE_SECONDS;
    pen_status status = PEN_OK;
    while (status == PEN_OK && !is_done(c, argument)) {
        if (c->is_failed) {
            pen_mutex_unlock(&c->lock);
            status = pen_coordinator_explain(c);
            pen_mutex_lock(&c->lock);
            break;
        }
        if (c->moved_count != moved) {
            moved = c->moved_count;
            patient_until = pen_clock_seconds() + COORDINATOR_PATIENCE_SECONDS;
        }
        const double left = patient_until - pen_clock_seconds();
        if (left > 0) {
            (void)pen_condition_wait_for(&c->changed, &c->lock, left);
            continue;
        }
        pen_mutex_unlock(&c->lock);
        status = coordinator_look_around(c, moved);
        pen_mutex_lock(&c->lock);
        patient_until = pen_clock_seconds() + COORDINATOR_PATIENCE_SECONDS;
    }
    return status;
}

// ---- what callers ask

pen_status pen_coordinator_inquire(pen_coordinator *coordinator, uint32_t worker,
                                   pen_run_inquiry what, pen_arena *arena, const void **out_bytes,
                                   uint64_t *out_count) {
    pen_coordinator *c = coordinator;
    char *bytes = NULL;
    uint64_t count = 0, total = 0;
    do {
        if (!coordinator_ask(c, worker, what, count, COORDINATOR_ANSWER_SECONDS)) {
            return pen_error(PEN_UNAVAILABLE, "%s does not answer", c->spec->workers[worker].name);
        }
        if (bytes == NULL) {
            total = c->part_total;
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

pen_status pen_coordinator_compare_clocks(pen_coordinator *coordinator, uint32_t worker,
                                          double *out_seconds) {
    pen_coordinator *c = coordinator;
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
        while (!c->is_ponged && pen_clock_seconds() < sent + COORDINATOR_ANSWER_SECONDS) {
            (void)pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS);
        }
        const bool is_ponged = c->is_ponged;
        const double there = (double)c->pong_here * 1e-9;
        pen_mutex_unlock(&c->lock);
        const double took = pen_clock_seconds() - sent;
        if (!is_ponged) {
            return pen_error(PEN_UNAVAILABLE, "%s does not answer", c->spec->workers[worker].name);
        }
        if (i > 0 && took >= least) continue;
        least = took;
        *out_seconds = sent + took / 2 - there;
    }
    return PEN_OK;
}

// ---- why it failed

static const char *coordinator_stages_of(const pen_coordinator *c, uint32_t worker, char *text,
                                         size_t size) {
    const pen_run_form *form = &c->table->forms[0];
    size_t used = 0;
    uint32_t last = UINT32_MAX;
    text[0] = '\0';
    for (uint32_t t = 0; t < form->task_count && used + 16 < size; t++) {
        uint32_t device = 0;
        while (device + 1 < c->table->device_count &&
               !(form->devices[device].task_first <= t && t < form->devices[device].task_end)) {
            device++;
        }
        const pen_task *task = &form->tasks[t].task;
        if (form->devices[device].worker != worker || task->kind != PEN_TASK_FORWARD ||
            task->microbatch != 0 || task->stage == last) {
            continue;
        }
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", used == 0 ? "" : ", ", task->stage);
        last = task->stage;
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
static pen_status coordinator_add_waits(pen_coordinator *c, pen_status status) {
    const pen_coordinator_event stop = {.kind = PEN_COORDINATOR_EVENT_STOP};
    const double deadline = pen_clock_seconds() + COORDINATOR_STOP_SECONDS;
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

static pen_status coordinator_explain_missing(pen_coordinator *c) {
    pen_text text;
    pen_arena *arena;
    const char *names;
    PEN_TRY(pen_arena_create(&arena));
    pen_text_init(&text, arena);
    pen_mutex_lock(&c->lock);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (pen_coordinator_core_is_present(c->core, w)) continue;
        pen_text_print(&text, "%s%s", text.length == 0 ? "" : ", ", c->spec->workers[w].name);
    }
    pen_mutex_unlock(&c->lock);
    pen_status status = pen_text_finish(&text, &names);
    if (status == PEN_OK) {
        status = pen_error(PEN_UNAVAILABLE,
                           "not there after %.4g s: %s; `penstock worker --listen HOST:PORT` "
                           "starts one",
                           c->setup.rendezvous_seconds, names);
    }
    pen_arena_destroy(arena);
    pen_mutex_lock(&c->lock);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (c->workers[w].failure == PEN_OK) continue;
        status = pen_status_join(status, c->workers[w].failure);
        c->workers[w].failure = PEN_OK;
    }
    pen_mutex_unlock(&c->lock);
    return status;
}

static pen_status coordinator_explain_worker(pen_coordinator *c, uint32_t w, bool is_lost) {
    char stages[128];
    const char *name = c->spec->workers[w].name;
    coordinator_stages_of(c, w, stages, sizeof stages);
    pen_mutex_lock(&c->lock);
    pen_status said = c->workers[w].failure;
    c->workers[w].failure = PEN_OK;
    pen_mutex_unlock(&c->lock);
    if (said != PEN_OK && !is_lost && w == c->setup.local_worker) return said;
    if (said != PEN_OK && !is_lost) {
        return pen_status_add_context(said, "%s, stages %s", name, stages);
    }
    pen_status status =
        pen_error(PEN_UNAVAILABLE, "lost %s, which runs stages %s: %s", name, stages,
                  said == PEN_OK ? "its link is down" : pen_status_message(said));
    pen_status_ignore(said, "its text is in the error");
    return coordinator_add_waits(c, status);
}

// A worker that says it lost a link may be the first to notice that another is gone: who that is
// soon shows. 0: nobody.
static uint32_t coordinator_find_lost(pen_coordinator *c, uint32_t failed) {
    const double deadline = pen_clock_seconds() + COORDINATOR_LOST_SECONDS;
    uint32_t lost = 0;
    pen_mutex_lock(&c->lock);
    while (pen_status_get_code(c->workers[failed].failure) == PEN_UNAVAILABLE) {
        for (uint32_t w = 1; w <= c->table->worker_count && lost == 0; w++) {
            if (w != failed && !c->workers[w].is_up) lost = w;
        }
        const double left = deadline - pen_clock_seconds();
        if (lost != 0 || left <= 0) break;
        (void)pen_condition_wait_for(&c->changed, &c->lock, left);
    }
    pen_mutex_unlock(&c->lock);
    return lost;
}

static void coordinator_note_missing(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    for (uint32_t w = 1; c->setup.is_missing != NULL && w <= c->table->worker_count; w++) {
        c->setup.is_missing[w] = !c->workers[w].is_up || w == c->failed_worker;
    }
    pen_mutex_unlock(&c->lock);
}

pen_status pen_coordinator_explain(pen_coordinator *c) {
    coordinator_note_missing(c);
    const uint32_t w = c->failed_worker;
    const uint32_t lost =
        c->reason == PEN_COORDINATOR_REASON_FAILED ? coordinator_find_lost(c, w) : 0;
    if (lost != 0) return coordinator_explain_worker(c, lost, true);
    switch (c->reason) {
    case PEN_COORDINATOR_REASON_MISSING:
        return coordinator_explain_missing(c);
    case PEN_COORDINATOR_REASON_LOST:
        return coordinator_explain_worker(c, w, true);
    case PEN_COORDINATOR_REASON_FAILED:
        return coordinator_explain_worker(c, w, false);
    case PEN_COORDINATOR_REASON_NONE:
        return coordinator_add_waits(c, pen_error(PEN_DEADLINE,
                                                  "nothing moved for %.0f s and no device computes",
                                                  COORDINATOR_PATIENCE_SECONDS));
    case PEN_COORDINATOR_REASON_LOSS:
    case PEN_COORDINATOR_REASON_CREDIT:
    case PEN_COORDINATOR_REASON_ROUND:
    case PEN_COORDINATOR_REASON_SAVE:
        break;
    case PEN_COORDINATOR_REASON_LEASE:
    case PEN_COORDINATOR_REASON_LOAD:
        return pen_error(PEN_UNAVAILABLE, "%s: %s", c->spec->workers[w].name,
                         pen_coordinator_reason_text(c->reason));
    case PEN_COORDINATOR_REASON_PROGRESS:
        return coordinator_add_waits(
            c, pen_error(PEN_DEADLINE, "%s", pen_coordinator_reason_text(c->reason)));
    case PEN_COORDINATOR_REASON_SUPERSEDED:
        return pen_error(PEN_CANCELLED, "%s", pen_coordinator_reason_text(c->reason));
    case PEN_COORDINATOR_REASON_STORE:
        return pen_error(PEN_IO, "%s", pen_coordinator_reason_text(c->reason));
    }
    return pen_error(PEN_CORRUPT, "%s: %s", c->spec->workers[w].name,
                     pen_coordinator_reason_text(c->reason));
}
