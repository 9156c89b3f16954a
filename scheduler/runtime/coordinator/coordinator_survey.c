// What workers of a survey are asked to measure, and what they answer.

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

#define SURVEY_TICK_SECONDS 0.05

// An answer to an order before this one is passed over: its number is another.
void pen_coordinator_order(pen_coordinator *coordinator, uint32_t worker,
                           const pen_survey_order *order) {
    pen_coordinator *c = coordinator;
    coordinator_worker *asked = &c->workers[worker];
    pen_message message = {.kind = PEN_MESSAGE_SURVEY,
                           .number = (uint32_t)order->kind,
                           .device = order->device,
                           .node = order->node,
                           .worker = order->peer,
                           .count = order->count,
                           .clock = (uint64_t)(order->seconds * 1e9)};
    pen_mutex_lock(&c->lock);
    pen_status_ignore(asked->survey_failure, "nobody waited for it");
    asked->survey_failure = PEN_OK;
    asked->is_surveyed = false;
    asked->survey_sequence += 1;
    message.sequence = asked->survey_sequence;
    pen_mutex_unlock(&c->lock);
    pen_coordinator_tell(c, worker, &message);
}

// Figures of another process: numbers that are none are an error of it. With the lock.
static pen_status survey_read(const pen_coordinator *c, uint32_t peer, const pen_message *message,
                              pen_survey_answer *out_answer) {
    if (message->code != 0) {
        const bool may_be = pen_coordinator_may_fail_with(c, peer, message->code);
        const pen_status_code code =
            may_be ? (pen_status_code)message->code : (pen_status_code)PEN_UNAVAILABLE;
        const char *text =
            strncmp(message->text, "error: ", 7) == 0 ? message->text + 7 : message->text;
        const pen_status status = pen_error(code, "%.*s", (int)strcspn(text, "\n"), text);
        return may_be ? status : pen_coordinator_add_unjust(status, message->code);
    }
    memcpy(out_answer->figures, message->terms, sizeof out_answer->figures);
    for (uint32_t i = 0; i < PEN_SURVEY_FIGURES; i++) {
        if (isfinite(out_answer->figures[i]) && out_answer->figures[i] >= 0) continue;
        return pen_error(PEN_CORRUPT, "a figure is %g", out_answer->figures[i]);
    }
    return PEN_OK;
}

void pen_coordinator_take_survey(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    coordinator_worker *asked = &c->workers[peer];
    bool is_new = false;
    pen_mutex_lock(&c->lock);
    if (!asked->is_surveyed && asked->survey_sequence > 0 &&
        message->sequence == asked->survey_sequence) {
        asked->answer = (pen_survey_answer){0};
        asked->survey_failure = survey_read(c, peer, message, &asked->answer);
        asked->is_surveyed = true;
        is_new = true;
        pen_condition_broadcast(&c->changed);
    }
    pen_mutex_unlock(&c->lock);
    if (!is_new || message->code != 0) return;
    pen_coordinator_tell_lacks(c, peer, message->text, strlen(message->text));
}

// A worker that is lost ends the run, which is noticed by its link, its process or its lease.
pen_status pen_coordinator_await_survey(pen_coordinator *coordinator, uint32_t worker,
                                        double seconds, pen_survey_answer *out_answer,
                                        pen_status *out_failure) {
    pen_coordinator *c = coordinator;
    coordinator_worker *asked = &c->workers[worker];
    const double deadline = pen_clock_seconds() + seconds;
    pen_mutex_lock(&c->lock);
    while (!asked->is_surveyed && !c->is_failed && pen_clock_seconds() < deadline) {
        if (pen_condition_wait_for(&c->changed, &c->lock, SURVEY_TICK_SECONDS)) continue;
        pen_mutex_unlock(&c->lock);
        pen_coordinator_look_for_gone(c);
        pen_mutex_lock(&c->lock);
    }
    const bool is_surveyed = asked->is_surveyed;
    const bool is_failed = c->is_failed;
    *out_answer = asked->answer;
    *out_failure = is_surveyed ? asked->survey_failure : PEN_OK;
    if (is_surveyed) asked->survey_failure = PEN_OK;
    pen_mutex_unlock(&c->lock);
    if (is_surveyed) return PEN_OK;
    if (is_failed) return pen_coordinator_explain(c);
    return pen_error(PEN_DEADLINE, "%s has measured nothing for %.0f s",
                     c->spec->workers[worker].name, seconds);
}
