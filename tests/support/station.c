#include "tests/support/station.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checksum.h"

#define STATION_WAIT_SECONDS 10

static pen_status station_accept(void *context, const pen_introduction *who, const char *address) {
    station *s = context;
    (void)address;
    pen_mutex_lock(&s->lock);
    snprintf(s->introduction, sizeof s->introduction,
             "job '%s' peer %u generation %" PRIu64 " incarnation %" PRIu64 " certificate '%s'",
             who->job, who->peer, who->generation, who->incarnation,
             who->certificate != NULL ? who->certificate : "none");
    const station_judge judge = s->judge;
    pen_mutex_unlock(&s->lock);
    return judge != NULL ? judge(who) : PEN_OK;
}

static void station_up(void *context, uint32_t peer) {
    station *s = context;
    pen_mutex_lock(&s->lock);
    s->up_count[peer] += 1;
    s->next_sequence[peer] = 0;
    pen_condition_broadcast(&s->changed);
    pen_mutex_unlock(&s->lock);
}

static void station_down(void *context, uint32_t peer, pen_status take_reason) {
    station *s = context;
    pen_mutex_lock(&s->lock);
    s->down_count[peer] += 1;
    s->down_code = pen_status_get_code(take_reason);
    pen_status_format(take_reason, s->down_text, sizeof s->down_text);
    pen_condition_broadcast(&s->changed);
    pen_mutex_unlock(&s->lock);
    pen_status_ignore(take_reason, "kept as text");
}

static void station_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    station *s = context;
    (void)peer;
    pen_mutex_lock(&s->lock);
    if (s->numbers_messages &&
        (count != sizeof s->message_count || memcmp(bytes, &s->message_count, count) != 0)) {
        s->wrong_count += 1;
    }
    s->message_count += 1;
    s->frames_at_message = s->frame_count;
    s->message_bytes += count;
    snprintf(s->last_message, sizeof s->last_message, "%.*s", (int)(count < 1000 ? count : 1000),
             count != 0 ? (const char *)bytes : "");
    pen_condition_broadcast(&s->changed);
    pen_mutex_unlock(&s->lock);
}

static pen_status station_begin(void *context, uint32_t peer, const pen_frame *frame,
                                pen_memory_place *out_place) {
    station *s = context;
    (void)peer;
    pen_mutex_lock(&s->lock);
    const bool refuses = s->refuses_frames;
    const pen_memory_domain *domain = s->domain;
    pen_mutex_unlock(&s->lock);
    if (refuses) {
        return pen_error(PEN_INVALID_INPUT, "channel %u is not in the plan", frame->channel);
    }
    if (frame->bytes > s->memory_bytes) {
        return pen_error(PEN_INVALID_INPUT, "a frame has %" PRIu64 " bytes", frame->bytes);
    }
    *out_place = pen_memory_place_at(s->memory);
    if (domain != NULL) out_place->domain = domain;
    return PEN_OK;
}

static void station_end(void *context, uint32_t peer, const pen_frame *frame,
                        const uint32_t *checksums, bool is_compared) {
    station *s = context;
    const uint32_t wrong = pen_checksum_find_difference(s->memory, frame->bytes, checksums);
    pen_mutex_lock(&s->lock);
    s->frame_count += 1;
    s->frame_bytes += frame->bytes;
    if (frame->sequence != s->next_sequence[peer]) s->wrong_count += 1;
    if (wrong != pen_frame_chunk_count(frame->bytes)) {
        s->wrong_count += 1;
        if (is_compared) s->lie_count += 1;
    }
    s->compared_count += is_compared;
    s->next_sequence[peer] += 1;
    s->last_frame = *frame;
    pen_condition_broadcast(&s->changed);
    pen_mutex_unlock(&s->lock);
}

static void station_summed(void *context, uint32_t peer, uint64_t token) {
    station *s = context;
    (void)peer;
    (void)token;
    pen_mutex_lock(&s->lock);
    s->summed_count += 1;
    pen_mutex_unlock(&s->lock);
}

static void station_let_go(void *context, uint32_t peer, uint64_t token) {
    station *s = context;
    (void)peer;
    if (s->frees_tokens) free((void *)(uintptr_t)token);
    pen_mutex_lock(&s->lock);
    s->let_go_count += 1;
    s->token_sum += token;
    pen_condition_broadcast(&s->changed);
    pen_mutex_unlock(&s->lock);
}

pen_status station_open(station *s, const char *kind, const pen_transport_options *options,
                        const char *address, uint64_t memory_bytes) {
    *s = (station){.memory_bytes = memory_bytes, .network = options->network};
    const pen_transport_events events = {
        .context = s,
        .accept = station_accept,
        .up = station_up,
        .down = station_down,
        .message = station_message,
        .begin = station_begin,
        .end = station_end,
        .summed = station_summed,
        .let_go = station_let_go,
    };
    pen_mutex_init(&s->lock);
    pen_condition_init(&s->changed);
    s->memory = malloc(memory_bytes + 1);
    pen_status status = PEN_OK;
    s->kind = &pen_transport_simulated;
    if (options->network == NULL) status = pen_transport_kind_find(kind, &s->kind);
    if (status == PEN_OK) status = s->kind->create(options, &events, &s->transport);
    if (status == PEN_OK && address != NULL) {
        status = s->kind->listen(s->transport, address, &s->port);
    }
    if (status != PEN_OK) station_close(s);
    return status;
}

void station_close(station *s) {
    if (s->transport != NULL) {
        s->kind->close(s->transport);
        s->kind->stop(s->transport);
        s->kind->destroy(s->transport);
        s->transport = NULL;
    }
    free(s->memory);
    s->memory = NULL;
    pen_condition_deinit(&s->changed);
    pen_mutex_deinit(&s->lock);
}

void station_set_judge(station *s, station_judge judge) {
    pen_mutex_lock(&s->lock);
    s->judge = judge;
    pen_mutex_unlock(&s->lock);
}

void station_refuse_frames(station *s) {
    pen_mutex_lock(&s->lock);
    s->refuses_frames = true;
    pen_mutex_unlock(&s->lock);
}

void station_set_domain(station *s, const pen_memory_domain *domain) {
    pen_mutex_lock(&s->lock);
    s->domain = domain;
    pen_mutex_unlock(&s->lock);
}

// With the lock held. False: the time is over.
static bool station_wait_a_bit(station *s, const struct timespec *until) {
    return pthread_cond_timedwait(&s->changed.handle, &s->lock.handle, until) != ETIMEDOUT;
}

static struct timespec station_deadline(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STATION_WAIT_SECONDS;
    return until;
}

bool station_wait(station *s, const uint64_t *counter, uint64_t count) {
    if (s->network != NULL) {
        while (*counter < count && pen_simulated_network_step(s->network))
            continue;
        return *counter >= count;
    }
    const struct timespec until = station_deadline();
    pen_mutex_lock(&s->lock);
    while (*counter < count && station_wait_a_bit(s, &until))
        continue;
    const bool is_there = *counter >= count;
    pen_mutex_unlock(&s->lock);
    return is_there;
}

static bool station_wait_small(station *s, const uint32_t *counter, uint32_t count) {
    if (s->network != NULL) {
        while (*counter < count && pen_simulated_network_step(s->network))
            continue;
        return *counter >= count;
    }
    const struct timespec until = station_deadline();
    pen_mutex_lock(&s->lock);
    while (*counter < count && station_wait_a_bit(s, &until))
        continue;
    const bool is_there = *counter >= count;
    pen_mutex_unlock(&s->lock);
    return is_there;
}

bool station_wait_up(station *s, uint32_t peer, uint32_t count) {
    return station_wait_small(s, &s->up_count[peer], count);
}

bool station_wait_down(station *s, uint32_t peer, uint32_t count) {
    return station_wait_small(s, &s->down_count[peer], count);
}

static uint32_t station_ups(station *s, uint32_t peer) {
    pen_mutex_lock(&s->lock);
    const uint32_t count = s->up_count[peer];
    pen_mutex_unlock(&s->lock);
    return count;
}

bool station_link(station *from, station *to, uint32_t from_peer, uint32_t to_peer) {
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", to->port);
    const uint32_t from_ups = station_ups(from, to_peer), to_ups = station_ups(to, from_peer);
    const pen_status status = from->kind->connect(from->transport, to_peer, address, 10);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the caller sees that there is no link");
        return false;
    }
    return station_wait_up(from, to_peer, from_ups + 1) &&
           station_wait_up(to, from_peer, to_ups + 1);
}
