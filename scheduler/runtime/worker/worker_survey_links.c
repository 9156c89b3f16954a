// Links between workers, measured as a run uses them.
//
//   SEND  ── tensors of 1 MiB ──►  taker: checksum, credit
//   CALL  ── 64 bytes ──►  taker: checksum, credit, 64 bytes back ──►  taker: checksum, credit

#include "scheduler/runtime/worker/worker_survey_links.h"

#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"

#define SURVEY_CALL_BYTES 64
#define SURVEY_CALLS_MOST 2000
#define SURVEY_CALLS_LEAST 3
#define SURVEY_WAIT_SECONDS 120.0 // for what was sent to be consumed
#define SURVEY_TICK_SECONDS 0.05
#define SURVEY_TURN 2000 // additions: some microseconds

// What a frame is, in place of a run's form.
enum { SURVEY_FORM_TENSOR, SURVEY_FORM_CALL, SURVEY_FORM_REPLY, SURVEY_FORM_COUNT };

// ---- sending

// Memory that nobody reads; SURVEY_PLACES: there is none. With the next number to `peer`.
static uint32_t links_claim(pen_worker_survey *survey, uint32_t peer, uint64_t *out_sequence) {
    uint32_t place = 0;
    pen_mutex_lock(&survey->lock);
    while (place < SURVEY_PLACES && survey->is_lent[place])
        place++;
    if (place < SURVEY_PLACES) {
        *out_sequence = survey->peers[peer].sent++;
        survey->is_lent[place] = true;
        survey->lent_count += 1;
    }
    pen_mutex_unlock(&survey->lock);
    return place;
}

// As a device's thread would. Payload and checksum are lent until let_go.
// Two threads do not send to one worker at once: frames must leave in the order of their numbers.
static pen_status links_send(pen_worker_survey *survey, uint32_t peer, uint32_t form,
                             uint64_t bytes) {
    uint64_t sequence;
    const uint32_t place = links_claim(survey, peer, &sequence);
    if (place == SURVEY_PLACES) {
        return pen_error(PEN_CORRUPT, "%s takes nothing of what it is sent",
                         survey->spec->workers[peer].name);
    }
    char *memory = survey->sent + place * PEN_SURVEY_TENSOR_BYTES;
    const pen_frame frame = {
        .kind = PEN_FRAME_VALUE,
        .generation = survey->options.generation,
        .incarnation = survey->options.incarnation,
        .form = form,
        .type = {.element = PEN_UINT8, .shape = {.rank = 1, .dims = {(int64_t)bytes}}},
        .sequence = sequence,
        .bytes = bytes};
    pen_transport *transport = survey->options.transport;
    const pen_status status = transport->kind->sum_frame(
        transport, peer, &frame, pen_memory_place_at(memory), &survey->checksums[place], place);
    if (status != PEN_OK) pen_worker_survey_let_go(survey, place);
    return status;
}

void pen_worker_survey_let_go(pen_worker_survey *survey, uint64_t token) {
    pen_mutex_lock(&survey->lock);
    PEN_ASSERT(token < SURVEY_PLACES && survey->is_lent[token]);
    survey->is_lent[token] = false;
    survey->lent_count -= 1;
    pen_condition_broadcast(&survey->changed);
    pen_mutex_unlock(&survey->lock);
}

uint32_t pen_worker_survey_lent_count(pen_worker_survey *survey) {
    pen_mutex_lock(&survey->lock);
    const uint32_t count = survey->lent_count;
    pen_mutex_unlock(&survey->lock);
    return count;
}

pen_status pen_worker_survey_take_credit(pen_worker_survey *survey, uint32_t peer,
                                         uint64_t sequence) {
    pen_status status = PEN_OK;
    if (survey->peers == NULL || peer == 0 || peer > survey->spec->table->worker_count) {
        return pen_error(PEN_CORRUPT, "worker %u grants credit for nothing", peer);
    }
    pen_mutex_lock(&survey->lock);
    survey_peer *other = &survey->peers[peer];
    if (sequence > other->sent || sequence < other->credited) {
        status = pen_error(PEN_CORRUPT, "worker %u has consumed %llu frames of %llu", peer,
                           (unsigned long long)sequence, (unsigned long long)other->sent);
    } else {
        other->credited = sequence;
    }
    pen_condition_broadcast(&survey->changed);
    pen_mutex_unlock(&survey->lock);
    return status;
}

// Frames that are not consumed there, or still lent. Holds the lock.
static uint64_t links_under_way(const pen_worker_survey *survey, uint32_t peer) {
    const uint64_t open = survey->peers[peer].sent - survey->peers[peer].credited;
    return open > survey->lent_count ? open : survey->lent_count;
}

// Waits until at most `most` frames to `peer` are under way and `replied` calls are answered.
static pen_status links_await(pen_worker_survey *survey, uint32_t peer, uint64_t most,
                              uint64_t replied) {
    const double deadline = pen_clock_seconds() + SURVEY_WAIT_SECONDS;
    const survey_peer *other = &survey->peers[peer];
    bool is_over = false;
    pen_mutex_lock(&survey->lock);
    while ((links_under_way(survey, peer) > most || other->replied < replied) && !is_over &&
           pen_clock_seconds() < deadline) {
        if (pen_condition_wait_for(&survey->changed, &survey->lock, SURVEY_TICK_SECONDS)) continue;
        pen_mutex_unlock(&survey->lock);
        is_over = survey->options.is_over(survey->options.context);
        pen_mutex_lock(&survey->lock);
    }
    const bool is_there = links_under_way(survey, peer) <= most && other->replied >= replied;
    pen_mutex_unlock(&survey->lock);
    if (is_there) return PEN_OK;
    if (is_over) return pen_error(PEN_CANCELLED, "the survey was given up");
    return pen_error(PEN_DEADLINE, "%s has not taken what it was sent within %.0f s",
                     survey->spec->workers[peer].name, SURVEY_WAIT_SECONDS);
}

// As many tensors as go in the time, and until the last is consumed.
pen_status pen_survey_links_send(pen_worker_survey *survey, const pen_survey_order *order,
                                 pen_survey_answer *out_answer) {
    const double began = pen_clock_seconds();
    uint64_t count = 0;
    do {
        PEN_TRY(links_await(survey, order->peer, SURVEY_WINDOW - 1, 0));
        PEN_TRY(links_send(survey, order->peer, SURVEY_FORM_TENSOR, PEN_SURVEY_TENSOR_BYTES));
        count += 1;
    } while (pen_clock_seconds() - began < order->seconds);
    PEN_TRY(links_await(survey, order->peer, 0, 0));
    out_answer->figures[0] = pen_clock_seconds() - began;
    out_answer->figures[1] = (double)count;
    return PEN_OK;
}

// One call at a time, for as long as asked, but a few at least. Where an end now and then waits for
// its share of a core, a median would not know of it: a mean does.
pen_status pen_survey_links_call(pen_worker_survey *survey, const pen_survey_order *order,
                                 pen_survey_answer *out_answer) {
    const double began = pen_clock_seconds();
    double seconds = 0;
    uint32_t count = 0;
    pen_mutex_lock(&survey->lock);
    uint64_t replied = survey->peers[order->peer].replied;
    pen_mutex_unlock(&survey->lock);
    while (count < SURVEY_CALLS_LEAST ||
           (count < SURVEY_CALLS_MOST && pen_clock_seconds() - began < order->seconds)) {
        const double called = pen_clock_seconds();
        PEN_TRY(links_send(survey, order->peer, SURVEY_FORM_CALL, SURVEY_CALL_BYTES));
        PEN_TRY(links_await(survey, order->peer, SURVEY_WINDOW - 1, ++replied));
        seconds += pen_clock_seconds() - called;
        count += 1;
        PEN_TRY(links_await(survey, order->peer, 0, replied)); // its credit is not a part of it
    }
    PEN_TRY(links_await(survey, order->peer, 0, 0));
    out_answer->figures[0] = seconds / count;
    out_answer->figures[1] = count;
    return PEN_OK;
}

// ---- receiving

static survey_place *links_find(pen_worker_survey *survey, survey_place_state state,
                                uint32_t peer) {
    for (uint32_t p = 0; p < SURVEY_PLACES; p++) {
        survey_place *place = &survey->places[p];
        if (place->state != state) continue;
        if (state == SURVEY_PLACE_FREE || place->peer == peer) return place;
    }
    return NULL;
}

// Nothing of a frame is believed. Who keeps to its credit finds a place, since two send at once at
// most.
pen_status pen_worker_survey_begin(pen_worker_survey *survey, uint32_t peer, const pen_frame *frame,
                                   pen_memory_place *out_place) {
    const bool is_known =
        survey->peers != NULL && peer > 0 && peer <= survey->spec->table->worker_count &&
        frame->kind == PEN_FRAME_VALUE && frame->generation == survey->options.generation &&
        frame->form < SURVEY_FORM_COUNT && frame->bytes > 0 &&
        frame->bytes <= PEN_SURVEY_TENSOR_BYTES;
    if (!is_known) {
        return pen_error(PEN_CORRUPT, "worker %u sent %llu bytes that nobody measures", peer,
                         (unsigned long long)frame->bytes);
    }
    pen_mutex_lock(&survey->lock);
    survey_peer *other = &survey->peers[peer];
    survey_place *place = links_find(survey, SURVEY_PLACE_FREE, peer);
    const bool is_closed = survey->is_closed;
    const bool is_next = frame->sequence == other->received;
    if (is_next && !is_closed && place != NULL) {
        place->state = SURVEY_PLACE_ARRIVING;
        place->peer = peer;
        place->frame = *frame;
        other->received += 1;
        *out_place = pen_memory_place_at(place->memory);
    }
    pen_mutex_unlock(&survey->lock);
    if (is_closed) return pen_error(PEN_UNAVAILABLE, "the survey is over");
    if (is_next && place != NULL) return PEN_OK;
    return pen_error(PEN_CORRUPT, "worker %u sent frame %llu %s", peer,
                     (unsigned long long)frame->sequence,
                     is_next ? "without credit" : "out of turn");
}

void pen_worker_survey_end(pen_worker_survey *survey, uint32_t peer, const uint32_t *checksums,
                           bool is_compared) {
    pen_mutex_lock(&survey->lock);
    survey_place *place = links_find(survey, SURVEY_PLACE_ARRIVING, peer);
    PEN_ASSERT(place != NULL && survey->queue_count < SURVEY_PLACES);
    place->state = SURVEY_PLACE_THERE;
    place->checksum = checksums[0];
    place->is_compared = is_compared;
    survey->queue[survey->queue_count++] = (uint32_t)(place - survey->places);
    pen_condition_broadcast(&survey->changed);
    pen_mutex_unlock(&survey->lock);
}

// Compares, frees the place, grants it anew, and answers a call.
static pen_status links_take(pen_worker_survey *survey, survey_place *place) {
    const uint32_t peer = place->peer;
    const pen_frame frame = place->frame;
    const bool is_whole =
        place->is_compared ||
        pen_checksum_find_difference(place->memory, frame.bytes, &place->checksum) == 1;
    pen_mutex_lock(&survey->lock);
    place->state = SURVEY_PLACE_FREE;
    if (frame.form == SURVEY_FORM_REPLY) survey->peers[peer].replied += 1;
    pen_condition_broadcast(&survey->changed);
    pen_mutex_unlock(&survey->lock);
    if (!is_whole) {
        return pen_error(PEN_CORRUPT, "what %s sent was damaged on the way",
                         survey->spec->workers[peer].name);
    }
    survey->options.credit(survey->options.context, peer, frame.sequence + 1);
    if (frame.form != SURVEY_FORM_CALL) return PEN_OK;
    PEN_TRY(links_await(survey, peer, SURVEY_WINDOW - 1, 0)); // a peer's credit may be slow
    return links_send(survey, peer, SURVEY_FORM_REPLY, SURVEY_CALL_BYTES);
}

static void links_main(void *context) {
    pen_worker_survey *survey = context;
    pen_mutex_lock(&survey->lock);
    while (!survey->is_closed) {
        if (survey->queue_count == 0) {
            pen_condition_wait(&survey->changed, &survey->lock);
            continue;
        }
        survey_place *place = &survey->places[survey->queue[0]];
        survey->queue_count -= 1;
        memmove(survey->queue, survey->queue + 1, survey->queue_count * sizeof *survey->queue);
        pen_mutex_unlock(&survey->lock);
        const pen_status status = links_take(survey, place);
        if (status != PEN_OK) survey->options.failed(survey->options.context, status);
        pen_mutex_lock(&survey->lock);
    }
    pen_mutex_unlock(&survey->lock);
}

// ---- load, beginning and end

// Additions that nobody reads, but that the compiler must make.
static void links_compute(void *context) {
    pen_worker_survey *survey = context;
    volatile double sum = 0;
    while (atomic_load(&survey->computes)) {
        for (uint32_t i = 0; i < SURVEY_TURN; i++) {
            sum = sum + 1;
        }
        atomic_fetch_add_explicit(&survey->work, 1, memory_order_relaxed);
    }
}

static void links_end_load(pen_worker_survey *survey) {
    atomic_store(&survey->computes, false);
    for (uint32_t t = 0; t < survey->load_count; t++) {
        pen_thread_join(survey->loads[t]);
    }
    survey->load_count = 0;
}

pen_status pen_survey_links_load(pen_worker_survey *survey, uint32_t count) {
    links_end_load(survey);
    if (count > PEN_SURVEY_THREADS_LIMIT) {
        return pen_error(PEN_CORRUPT, "asked to compute with %u threads", count);
    }
    atomic_store(&survey->computes, true);
    for (uint32_t t = 0; t < count; t++) {
        PEN_TRY(pen_thread_create("load", links_compute, survey, &survey->loads[t]));
        survey->load_count += 1;
    }
    return PEN_OK;
}

pen_status pen_survey_links_work(pen_worker_survey *survey, double seconds,
                                 pen_survey_answer *out_answer) {
    const double deadline = pen_clock_seconds() + seconds;
    bool is_over = false;
    pen_mutex_lock(&survey->lock);
    for (double left = seconds; left > 0 && !is_over; left = deadline - pen_clock_seconds()) {
        pen_condition_wait_for(&survey->changed, &survey->lock,
                               left < SURVEY_TICK_SECONDS ? left : SURVEY_TICK_SECONDS);
        pen_mutex_unlock(&survey->lock);
        is_over = survey->options.is_over(survey->options.context);
        pen_mutex_lock(&survey->lock);
    }
    pen_mutex_unlock(&survey->lock);
    if (is_over) return pen_error(PEN_CANCELLED, "the survey was given up");
    out_answer->figures[0] = (double)atomic_load(&survey->work);
    out_answer->figures[1] = pen_clock_seconds();
    return PEN_OK;
}

pen_status pen_survey_links_start(pen_worker_survey *survey) {
    char *memory;
    PEN_TRY(PEN_NEW(survey->arena, (size_t)survey->spec->table->worker_count + 1, &survey->peers));
    PEN_TRY(PEN_NEW(survey->arena, SURVEY_PLACES * PEN_SURVEY_TENSOR_BYTES, &survey->sent));
    PEN_TRY(PEN_NEW(survey->arena, SURVEY_PLACES * PEN_SURVEY_TENSOR_BYTES, &memory));
    for (uint32_t p = 0; p < SURVEY_PLACES; p++) {
        survey->places[p].memory = memory + p * PEN_SURVEY_TENSOR_BYTES;
    }
    return pen_thread_create("survey", links_main, survey, &survey->taker);
}

void pen_worker_survey_close(pen_worker_survey *survey) {
    pen_mutex_lock(&survey->lock);
    survey->is_closed = true;
    pen_condition_broadcast(&survey->changed);
    pen_mutex_unlock(&survey->lock);
    links_end_load(survey);
    pen_thread_join(survey->taker);
    survey->taker = NULL;
}
