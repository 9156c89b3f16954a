#include "scheduler/engine/pipeline_audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/interrupt.h"
#include "scheduler/audit/audit_core.h"
#include "scheduler/engine/audit_room.h"
#include "scheduler/runtime/executor/evidence.h"
#include "scheduler/runtime/worker/recompute.h"

#define AUDIT_SECONDS 60.0     // for each answer, and
#define AUDIT_STEPS 100.0      // planned steps besides
#define AUDIT_HOLD_SECONDS 5.0 // at most, before a step that is due
#define AUDIT_TEXT_BYTES 1024

struct pipeline_audit {
    pen_audit_core *core;
    double seconds;
    uint64_t step;     // of the audit under way
    pen_run_note note; // of it,
    uint32_t noting;   // whose worker keeps it; 0: nothing is waited for
    pen_arena *kept;   // as it comes from there; NULL: it was not asked for
    pen_arena *arena;  // the same, packed to be computed again
    pen_coordinator_package package;
    uint32_t asked_worker; // 0: nobody
    uint32_t asked;
    bool has_verdict;         // that a worker computed wrongly:
    pen_audit_action verdict; // nothing may be kept of what was trained since
    uint64_t passed_count;
    uint64_t given_up_count;
    char why[AUDIT_TEXT_BYTES]; // the last was given up
};

// Processes of one machine are other workers, too: they find bits that flip, if not a core that is
// always wrong.
pen_status pen_pipeline_prepare_audit(pipeline_engine *p) {
    pipeline_audit *audit;
    const bool *has_room;
    p->audit = NULL;
    if (p->job->recovery.audit == 0 || pipeline_is_forward(p) || p->workers.count < 2) {
        return PEN_OK;
    }
    PEN_TRY(PEN_NEW(p->placed, 1, &audit));
    PEN_TRY(pen_audit_room_find(p->plan, p->request->cluster, &p->workers, p->placed, &has_room));
    audit->seconds = AUDIT_SECONDS + AUDIT_STEPS * p->plan->step_seconds;
    const pen_audit_options options = {.every = (uint64_t)p->job->recovery.audit,
                                       .seed = (uint64_t)p->job->train.seed,
                                       .deadline = (uint64_t)(audit->seconds * 1e9),
                                       .has_room = has_room};
    PEN_TRY(pen_audit_core_new(p->forms.spec->table, &options, p->placed, &audit->core));
    if (!pen_audit_core_is_on(audit->core)) {
        pen_log(PEN_LOG_NOTE, "nobody checks what workers compute: none has memory left for what "
                              "another does (recovery.audit)");
        return PEN_OK;
    }
    p->audit = audit;
    return PEN_OK;
}

// What comes late, or goes, is of no interest any more.
static void audit_forget(pipeline_engine *p) {
    pipeline_audit *audit = p->audit;
    if (p->coordinator != NULL) pen_coordinator_forget_audit(p->coordinator);
    pen_arena_destroy(audit->kept);
    pen_arena_destroy(audit->arena);
    audit->kept = audit->arena = NULL;
    audit->package = (pen_coordinator_package){0};
    audit->noting = audit->asked_worker = 0;
}

static void audit_say(const pipeline_audit *audit) {
    if (audit->passed_count > 0) {
        pen_log(PEN_LOG_NOTE,
                "what workers computed was computed again by others %" PRIu64
                " times, with the same bits",
                audit->passed_count);
    }
    if (audit->given_up_count > 0) {
        pen_log(PEN_LOG_NOTE,
                "%" PRIu64 " times nobody could compute again what a worker did, the last time: %s",
                audit->given_up_count, audit->why[0] == '\0' ? "there was no answer" : audit->why);
    }
}

void pen_pipeline_release_audit(pipeline_engine *p) {
    if (p->audit == NULL) return;
    audit_say(p->audit);
    audit_forget(p);
    p->audit = NULL;
}

// ---- what the core says

static const char *audit_name(const pipeline_engine *p, uint32_t worker) {
    return p->workers.list[worker].name;
}

static void audit_note(pipeline_engine *p, const pen_audit_action *action) {
    pipeline_audit *audit = p->audit;
    audit->note = (pen_run_note){
        .device = action->device, .stage = action->stage, .microbatch = action->microbatch};
    pen_coordinator_note(p->coordinator, action->worker, &audit->note);
    audit->step = action->step;
    audit->noting = action->worker;
}

static void audit_ask(pipeline_engine *p, const pen_audit_action *action) {
    pipeline_audit *audit = p->audit;
    audit->asked_worker = action->worker;
    audit->asked = action->asked;
    pen_coordinator_recompute(p->coordinator, action->worker, action->asked, &audit->package);
}

static pen_status audit_blame(const pipeline_engine *p, const pen_audit_action *action) {
    return pen_error(
        PEN_NOT_FINITE,
        "step %" PRIu64 ": %s computed stage %u of microbatch %u wrongly: from the same bytes %s "
        "came to others%s. Its hardware is not to be trusted, nor are parameters since the "
        "audit before",
        action->step, audit_name(p, action->worker), action->stage, action->microbatch,
        action->is_repeat ? "it" : audit_name(p, action->other),
        action->is_repeat ? " the next time" : ", and so did a third");
}

static pen_status audit_divide(const pipeline_engine *p, const pen_audit_action *action) {
    return pen_error(
        PEN_NOT_FINITE,
        "step %" PRIu64 ": %s and %s come to different bits of stage %u of microbatch %u from the "
        "same bytes, and nobody can say who is wrong. The hardware of one of them is not to be "
        "trusted, nor are parameters since the audit before",
        action->step, audit_name(p, action->worker), audit_name(p, action->other), action->stage,
        action->microbatch);
}

// Who computed wrongly ends the training: nobody knows since when, nor what is right.
static pen_status audit_carry_out(pipeline_engine *p, const pen_audit_action *action) {
    switch (action->kind) {
    case PEN_AUDIT_ACTION_NOTE:
        audit_note(p, action);
        return PEN_OK;
    case PEN_AUDIT_ACTION_ASK:
        audit_ask(p, action);
        return PEN_OK;
    case PEN_AUDIT_ACTION_PASS:
        p->audit->passed_count += 1;
        return PEN_OK;
    case PEN_AUDIT_ACTION_GIVE_UP:
        p->audit->given_up_count += 1;
        return PEN_OK;
    case PEN_AUDIT_ACTION_BLAME:
        return audit_blame(p, action);
    case PEN_AUDIT_ACTION_DIVIDED:
        return audit_divide(p, action);
    }
    PEN_NEVER("an action of an audit");
}

static void audit_step(pipeline_engine *p, pen_audit_event event, pen_status *status) {
    pen_audit_action actions[PEN_AUDIT_ACTIONS];
    uint32_t count;
    event.now = (uint64_t)(pen_clock_seconds() * 1e9);
    pen_audit_core_step(p->audit->core, &event, actions, &count);
    for (uint32_t i = 0; i < count && *status == PEN_OK; i++) {
        *status = audit_carry_out(p, &actions[i]);
        p->audit->has_verdict = *status != PEN_OK;
        p->audit->verdict = actions[i];
    }
    if (!pen_audit_core_is_busy(p->audit->core)) audit_forget(p);
}

// ---- what happens

// What the worker kept is packed for others. Where it has nothing, it says so.
static pen_status audit_pack(pipeline_engine *p, pen_recompute_bytes evidence,
                             uint64_t *out_digest) {
    pipeline_audit *audit = p->audit;
    pen_recompute_bytes package;
    PEN_TRY(pen_evidence_read(evidence.bytes, evidence.count, out_digest));
    PEN_TRY(pen_arena_create(&audit->arena));
    PEN_TRY(pen_recompute_pack(p->forms.spec, audit->noting, evidence, audit->arena, &package));
    audit->package = (pen_coordinator_package){
        .device = audit->note.device, .bytes = package.bytes, .byte_count = package.count};
    pen_coordinator_forget_audit(p->coordinator);
    pen_arena_destroy(audit->kept);
    audit->kept = NULL;
    return PEN_OK;
}

// Asks for it, or looks how much is there. A worker that is lost meanwhile is noticed by the
// training.
static pen_status audit_fetch(pipeline_engine *p, pen_recompute_bytes *out_evidence) {
    pipeline_audit *audit = p->audit;
    *out_evidence = (pen_recompute_bytes){0};
    if (audit->kept == NULL) {
        PEN_TRY(pen_arena_create(&audit->kept));
        return pen_coordinator_fetch_evidence(p->coordinator, audit->noting, audit->kept);
    }
    return pen_coordinator_find_evidence(p->coordinator, audit->kept, &out_evidence->bytes,
                                         &out_evidence->count);
}

static void audit_take_evidence(pipeline_engine *p, pen_status *status) {
    pipeline_audit *audit = p->audit;
    pen_recompute_bytes evidence;
    pen_audit_event event = {.worker = audit->noting, .step = audit->step};
    const bool is_done = audit->kept != NULL ||
                         pen_coordinator_get_figures(p->coordinator, audit->note.round, p->figures);
    if (!is_done) return;
    pen_status fetched = audit_fetch(p, &evidence);
    if (fetched == PEN_OK && evidence.bytes == NULL) return;
    if (fetched == PEN_OK) fetched = audit_pack(p, evidence, &event.digest);
    audit->noting = 0;
    event.kind = fetched == PEN_OK ? PEN_AUDIT_EVENT_EVIDENCE : PEN_AUDIT_EVENT_NO_EVIDENCE;
    if (fetched != PEN_OK) {
        snprintf(audit->why, sizeof audit->why, "%s", pen_status_message(fetched));
    }
    pen_status_ignore(fetched, "there is no audit this time");
    audit_step(p, event, status);
}

static void audit_take_opinion(pipeline_engine *p, pen_status *status) {
    pipeline_audit *audit = p->audit;
    bool is_failed;
    pen_audit_event event = {.worker = audit->asked_worker, .asked = audit->asked};
    if (!pen_coordinator_find_digest(p->coordinator, &event.digest, &is_failed, audit->why,
                                     sizeof audit->why)) {
        return;
    }
    event.kind = is_failed ? PEN_AUDIT_EVENT_NO_OPINION : PEN_AUDIT_EVENT_OPINION;
    audit->asked_worker = 0;
    audit_step(p, event, status);
}

pen_status pen_pipeline_advance_audit(pipeline_engine *p, double seconds) {
    const double deadline = pen_clock_seconds() + seconds;
    pen_status status = PEN_OK;
    if (p->audit == NULL) return PEN_OK;
    if (p->audit->has_verdict) return audit_carry_out(p, &p->audit->verdict);
    while (pen_audit_core_is_busy(p->audit->core)) {
        if (p->audit->noting != 0) audit_take_evidence(p, &status);
        if (status == PEN_OK && p->audit->asked_worker != 0) audit_take_opinion(p, &status);
        if (status == PEN_OK) {
            audit_step(p, (pen_audit_event){.kind = PEN_AUDIT_EVENT_TICK}, &status);
        }
        if (status != PEN_OK || pen_coordinator_is_failed(p->coordinator)) break;
        if (pen_interrupt_wished(p->options.cancel)) break; // ends within a second, audit or not
        if (pen_clock_seconds() >= deadline || !pen_audit_core_is_busy(p->audit->core)) break;
        pen_coordinator_await_audit(p->coordinator);
    }
    return status;
}

pen_status pen_pipeline_begin_audit(pipeline_engine *p, uint64_t step, uint32_t count) {
    pen_status status = PEN_OK;
    if (p->audit == NULL || !pen_audit_core_is_due(p->audit->core, step)) return PEN_OK;
    PEN_TRY(pen_pipeline_advance_audit(p, 0));
    const bool is_noting = p->audit->noting != 0 && p->audit->kept == NULL;
    if (is_noting) return PEN_OK; // its round may never end: a loss is not finite
    PEN_TRY(pen_pipeline_advance_audit(p, AUDIT_HOLD_SECONDS));
    if (pen_audit_core_is_busy(p->audit->core)) return PEN_OK;
    audit_step(p, (pen_audit_event){.kind = PEN_AUDIT_EVENT_STEP, .step = step, .count = count},
               &status);
    return status;
}

void pen_pipeline_forget_audit(pipeline_engine *p) {
    pen_status status = PEN_OK;
    if (p->audit == NULL) return;
    audit_step(p, (pen_audit_event){.kind = PEN_AUDIT_EVENT_FORGET}, &status);
    PEN_ASSERT(status == PEN_OK);
}
