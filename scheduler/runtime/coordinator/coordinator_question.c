// How a run stands, for somebody who asks (SIGUSR1): who waits for what, on standard error, and
// dumps of the flight recorders of all processes.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

#define QUESTION_LINE_BYTES 512
#define QUESTION_SECONDS 2.0 // for all workers together: one may stand still

// "step 12, round 37"; under the lock.
static void question_describe_round(const pen_coordinator *c, char *text, size_t size) {
    uint64_t end;
    (void)pen_coordinator_core_can_begin(c->core, &end);
    if (pen_coordinator_core_is_quiet(c->core)) {
        snprintf(text, size, "no round is under way");
        return;
    }
    const uint64_t round = c->losses_end < end ? c->losses_end : end - 1;
    const pen_coordinator_round *announced = &c->announced[round % COORDINATOR_ROUNDS].round;
    snprintf(text, size, "step %" PRIu64 ", round %" PRIu64 " of %" PRIu32 " microbatches",
             announced->step, round, announced->count);
}

static void question_note(pen_coordinator *c, const char *who, const char *line, int length) {
    char text[QUESTION_LINE_BYTES];
    snprintf(text, sizeof text, "waits: %s: %.*s", who, length, line);
    (void)pen_text_clean(text, false);
    pen_mutex_lock(&c->lock);
    pen_flight_record_note(c->recorder, text);
    pen_mutex_unlock(&c->lock);
    pen_log(PEN_LOG_NOTE, "  %s", text + strlen("waits: "));
}

// A worker that does not answer is a line of the answer, too.
static void question_ask_worker(pen_coordinator *c, uint32_t worker, pen_arena *arena) {
    const void *answer;
    uint64_t count;
    const char *who = c->spec->workers[worker].name;
    const pen_status status =
        pen_coordinator_inquire(c, worker, PEN_RUN_INQUIRY_WAITS, arena, &answer, &count);
    if (status != PEN_OK) {
        pen_log(PEN_LOG_NOTE, "  %s", pen_status_message(status));
        pen_status_ignore(status, "said");
        return;
    }
    const char *line = answer;
    const char *end = line + count;
    for (line += count > 0; line < end;) { // behind whether it computes
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((stop == NULL ? end : stop) - line);
        question_note(c, who, line, length < 400 ? (int)length : 400);
        line += length + 1;
    }
}

void pen_coordinator_have_dumped(pen_coordinator *c, const char *reason) {
    c->question_end = pen_clock_seconds() + QUESTION_SECONDS;
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        double seconds;
        int64_t nanoseconds = INT64_MIN; // not known
        pen_mutex_lock(&c->lock);
        const bool is_up = c->workers[w].is_up && !c->workers[w].is_stopped;
        pen_mutex_unlock(&c->lock);
        if (!is_up) continue;
        const pen_status status = pen_coordinator_ask_clock(c, w, &seconds);
        if (status == PEN_OK) nanoseconds = (int64_t)(seconds * 1e9);
        pen_status_ignore(status, "its times are its own then");
        pen_message ask = {.kind = PEN_MESSAGE_ASK,
                           .number = PEN_RUN_INQUIRY_DUMP,
                           .offset = pen_run_clock_pack(nanoseconds)};
        pen_coordinator_tell(c, w, &ask);
    }
    (void)pen_flight_dump(reason); // where there is no folder, none is wanted
}

// Each worker is asked for its own waits, a little time each, and what comes is logged at once.
void pen_coordinator_answer_question(pen_coordinator *c) {
    pen_arena *arena;
    char text[QUESTION_LINE_BYTES];
    if (pen_arena_create(&arena) != PEN_OK) return;
    pen_mutex_lock(&c->lock);
    question_describe_round(c, text, sizeof text);
    pen_mutex_unlock(&c->lock);
    pen_log(PEN_LOG_NOTE, "generation %" PRIu64 ", %s:", c->generation, text);
    c->question_end = pen_clock_seconds() + QUESTION_SECONDS;
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        question_ask_worker(c, w, arena);
    }
    pen_coordinator_describe_audit(c, text, sizeof text);
    if (text[0] != '\0') pen_log(PEN_LOG_NOTE, "  %s", text);
    pen_coordinator_have_dumped(c, "somebody asked (SIGUSR1)");
    if (pen_flight_folder()[0] != '\0') {
        pen_log(PEN_LOG_NOTE, "what was done last is in %s: `penstock diagnose` shows it",
                pen_flight_folder());
    }
    pen_arena_destroy(arena);
}
