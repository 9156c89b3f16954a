#include "scheduler/protocol/recovery_policy.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/planted.h"

#define RECOVERY_STEPLESS_FACTOR 10
#define RECOVERY_RETURN_LIMIT 10 // doublings of the time that a worker stays out

typedef struct recovery_worker {
    bool is_missing;
    bool is_left_out;
    uint32_t left_out_count;
    uint64_t missing_since;
    uint64_t left_out_at;
} recovery_worker;

struct pen_recovery {
    pen_recovery_options options;
    recovery_worker *workers; // [worker_count + 1]
    uint32_t recovery_count;  // decided
    uint32_t idle_count;      // recoveries one after another in which no step was done
    uint32_t stale_count;     // and without a step that was not done before
    uint64_t highest_step;
    uint64_t retry_at;
    bool has_decided; // since the failure
};

pen_status pen_recovery_new(const pen_recovery_options *options, pen_arena *arena,
                            pen_recovery **out_recovery) {
    PEN_ASSERT(options->attempts > 0);
    PEN_ASSERT(options->worker_count > 0);
    pen_recovery *recovery;
    PEN_TRY(PEN_NEW(arena, 1, &recovery));
    recovery->options = *options;
    PEN_TRY(PEN_NEW(arena, (size_t)options->worker_count + 1, &recovery->workers));
    *out_recovery = recovery;
    return PEN_OK;
}

// Of a worker, INVALID_INPUT is what a node found in its operands, or who reads data in a file:
// what comes over links has checksums, and is CORRUPT before a node sees it.
bool pen_recovery_may_help(pen_status_code code) {
    switch (code) {
    case PEN_INVALID_INPUT:
    case PEN_NOT_FINITE:
    case PEN_CANCELLED:
        return false;
    case PEN_CODE_OK:
    case PEN_NOT_FOUND:
    case PEN_UNSUPPORTED:
    case PEN_DOES_NOT_FIT:
    case PEN_OUT_OF_MEMORY:
    case PEN_IO:
    case PEN_CORRUPT:
    case PEN_UNAVAILABLE:
    case PEN_DEADLINE:
    case PEN_INTERNAL:
    case PEN_NO_STORAGE:
        break;
    }
    return true;
}

static uint64_t recovery_backoff(uint32_t count) {
    uint64_t pause = count == 0 ? 0 : PEN_RECOVERY_BACKOFF_FIRST;
    for (uint32_t i = 1; i < count && pause < PEN_RECOVERY_BACKOFF_LIMIT; i++) {
        pause *= 2;
    }
    return pause < PEN_RECOVERY_BACKOFF_LIMIT ? pause : PEN_RECOVERY_BACKOFF_LIMIT;
}

static void recovery_set_missing(recovery_worker *worker, bool is_missing, uint64_t now) {
    PEN_ASSERT(!worker->is_missing || worker->missing_since <= now);
    if (is_missing && !worker->is_missing) worker->missing_since = now;
    worker->is_missing = is_missing;
}

void pen_recovery_note_failure(pen_recovery *recovery, uint64_t now, uint64_t step,
                               const bool *is_missing) {
    const bool was_recovery = recovery->recovery_count > 0;
    PEN_ASSERT(recovery->idle_count <= recovery->stale_count);
    recovery->idle_count = step > 0 || !was_recovery ? 0 : recovery->idle_count + 1;
    recovery->stale_count =
        step > recovery->highest_step || !was_recovery ? 0 : recovery->stale_count + 1;
    if (step > recovery->highest_step) recovery->highest_step = step;
    recovery->retry_at = now + recovery_backoff(recovery->idle_count);
    recovery->has_decided = false;
    for (uint32_t i = 1; i <= recovery->options.worker_count; i++) {
        recovery_worker *worker = &recovery->workers[i];
        if (worker->is_left_out) continue;
        worker->is_missing = false; // what was before is over
        recovery_set_missing(worker, is_missing[i], now);
    }
}

// ---- deciding

static void recovery_decided(pen_recovery *recovery) {
    recovery->recovery_count += 1;
    recovery->has_decided = true;
}

// Whether there is nothing more to try, whoever may come.
static bool recovery_is_hopeless(const pen_recovery *recovery, pen_recovery_decision *decision) {
    const pen_recovery_options *options = &recovery->options;
    PEN_ASSERT(!recovery->has_decided);
    PEN_ASSERT(recovery->idle_count <= recovery->stale_count);
    if (options->on_loss == PEN_RECOVERY_ON_LOSS_STOP) {
        snprintf(decision->text, sizeof decision->text, "the job's recovery.on_loss is stop");
        return true;
    }
    if (recovery->idle_count >= options->attempts) {
        snprintf(decision->text, sizeof decision->text,
                 "%" PRIu32 " recoveries, one after another, failed before a step was done",
                 recovery->idle_count);
        return true;
    }
    if (recovery->stale_count >= (uint64_t)RECOVERY_STEPLESS_FACTOR * options->attempts) {
        snprintf(decision->text, sizeof decision->text,
                 "%" PRIu32 " recoveries, one after another, failed before step %" PRIu64
                 " was done",
                 recovery->stale_count, recovery->highest_step + 1);
        return true;
    }
    return false;
}

static void recovery_wait(pen_recovery_decision *decision, uint64_t until, uint32_t worker) {
    decision->kind = PEN_RECOVERY_WAIT;
    decision->until = until;
    decision->worker = worker;
    if (worker > 0) {
        snprintf(decision->text, sizeof decision->text, "waiting for worker %" PRIu32, worker);
    } else {
        snprintf(decision->text, sizeof decision->text, "waiting before the next attempt");
    }
}

// The grace of those who are missing is over.
static void recovery_do_without(pen_recovery *recovery, const pen_recovery_situation *situation,
                                uint32_t first_missing, uint32_t missing_count,
                                pen_recovery_decision *decision) {
    PEN_ASSERT(missing_count > 0);
    PEN_ASSERT(recovery->workers[first_missing].is_missing);
    uint32_t free_count = 0, taking_part = 0;
    for (uint32_t i = situation->spare_count; i > 0; i--) {
        if (!situation->spare_is_free[i - 1]) continue;
        decision->spare = i - 1;
        free_count++;
    }
    for (uint32_t i = 1; i <= recovery->options.worker_count; i++) {
        if (!recovery->workers[i].is_left_out) taking_part++;
    }
    decision->kind = PEN_RECOVERY_STOP;
    switch (recovery->options.on_loss) {
    case PEN_RECOVERY_ON_LOSS_WAIT:
    case PEN_RECOVERY_ON_LOSS_STOP:
        snprintf(decision->text, sizeof decision->text,
                 "worker %" PRIu32 " did not come back within recovery.grace", first_missing);
        return;
    case PEN_RECOVERY_ON_LOSS_SPARE:
        if (free_count < missing_count) {
            snprintf(decision->text, sizeof decision->text,
                     "worker %" PRIu32 " did not come back within recovery.grace; %" PRIu32
                     " missing, spares that are there: %" PRIu32,
                     first_missing, missing_count, free_count);
            return;
        }
        decision->kind = PEN_RECOVERY_USE_SPARE;
        decision->worker = first_missing;
        snprintf(decision->text, sizeof decision->text,
                 "spare %" PRIu32 " takes the place of worker %" PRIu32, decision->spare + 1,
                 first_missing);
        return;
    case PEN_RECOVERY_ON_LOSS_REPLAN:
        if (missing_count == taking_part) {
            snprintf(decision->text, sizeof decision->text,
                     "no worker came back within recovery.grace");
            return;
        }
        break;
    }
    decision->kind = PEN_RECOVERY_REPLAN;
    for (uint32_t i = 1; i <= recovery->options.worker_count; i++) {
        recovery_worker *worker = &recovery->workers[i];
        if (!worker->is_missing || worker->is_left_out) continue;
        worker->is_left_out = true;
        worker->left_out_at = situation->now;
        if (worker->left_out_count < RECOVERY_RETURN_LIMIT) worker->left_out_count += 1;
    }
    snprintf(decision->text, sizeof decision->text,
             "placing the work anew without worker %" PRIu32 "%s", first_missing,
             missing_count > 1 ? " and others" : "");
    recovery_decided(recovery);
}

// Waits while somebody may still come back, then while failures follow each other too fast; then
// decides what to do without those who are missing.
void pen_recovery_decide(pen_recovery *recovery, const pen_recovery_situation *situation,
                         pen_recovery_decision *out_decision) {
    PEN_ASSERT(!recovery->has_decided);
    *out_decision = (pen_recovery_decision){.kind = PEN_RECOVERY_STOP};
    if (recovery_is_hopeless(recovery, out_decision)) return;
    uint32_t first_missing = 0, missing_count = 0;
    uint64_t grace_end = 0;
    for (uint32_t i = 1; i <= recovery->options.worker_count; i++) {
        recovery_worker *worker = &recovery->workers[i];
        if (worker->is_left_out) continue;
        recovery_set_missing(worker, !situation->is_present[i], situation->now);
        if (!worker->is_missing) continue;
        if (missing_count++ == 0) first_missing = i;
        const uint64_t end = worker->missing_since + recovery->options.grace;
        if (end > grace_end) grace_end = end;
    }
    const bool is_grace = situation->now < grace_end || PEN_PLANTED(waits_for_the_lost);
    if (missing_count > 0 && is_grace) {
        recovery_wait(out_decision, grace_end, first_missing);
        return;
    }
    if (situation->now < recovery->retry_at) {
        recovery_wait(out_decision, recovery->retry_at, first_missing);
        return;
    }
    if (missing_count > 0) {
        recovery_do_without(recovery, situation, first_missing, missing_count, out_decision);
        return;
    }
    out_decision->kind = PEN_RECOVERY_RESTART;
    snprintf(out_decision->text, sizeof out_decision->text, "starting again");
    recovery_decided(recovery);
}

bool pen_recovery_is_left_out(const pen_recovery *recovery, uint32_t worker) {
    PEN_ASSERT(worker > 0 && worker <= recovery->options.worker_count);
    return recovery->workers[worker].is_left_out;
}

bool pen_recovery_takes_back(pen_recovery *recovery, const pen_recovery_situation *situation) {
    bool is_anyone = false;
    for (uint32_t i = 1; i <= recovery->options.worker_count; i++) {
        recovery_worker *worker = &recovery->workers[i];
        if (!worker->is_left_out || !situation->is_present[i]) continue;
        PEN_ASSERT(situation->now >= worker->left_out_at);
        PEN_ASSERT(worker->left_out_count > 0);
        // once: whenever it comes; then 1, 2, 4, … times the longest pause
        const uint64_t pause = worker->left_out_count == 1
                                   ? 0
                                   : PEN_RECOVERY_BACKOFF_LIMIT << (worker->left_out_count - 2);
        if (situation->now - worker->left_out_at < pause) continue;
        worker->is_left_out = false;
        worker->is_missing = false;
        is_anyone = true;
    }
    return is_anyone;
}
