// A worker that computes again what another did: a package comes in parts, each of which is
// acknowledged, so that no more than one is under way; then a thread of its own computes.

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system/machine.h"
#include "scheduler/runtime/worker/recompute.h"
#include "scheduler/runtime/worker/worker_inside.h"

#define RECOMPUTE_BYTES_LIMIT ((uint64_t)1 << 40)

// What this process may still take; 0: not known. What is free now counts, too.
static uint64_t recompute_memory(const pen_worker *worker) {
    pen_machine machine;
    pen_arena *arena;
    if (pen_arena_create(&arena) != PEN_OK) return 0;
    const pen_status status = pen_machine_detect(arena, &machine);
    const uint64_t free_bytes = status == PEN_OK ? machine.memory_bytes_free : 0;
    pen_status_ignore(status, "then it is not known");
    pen_arena_destroy(arena);
    const uint64_t taken = pen_machine_resident();
    if (worker->memory_bytes == 0) return free_bytes;
    if (worker->memory_bytes <= taken) return 1;
    const uint64_t left = worker->memory_bytes - taken;
    return free_bytes > 0 && free_bytes < left ? free_bytes : left;
}

// Takes the error.
static void recompute_answer(pen_worker *worker, uint64_t digest, pen_status take_status) {
    const worker_recompute *work = &worker->recompute;
    pen_message answer = {.kind = PEN_MESSAGE_RECOMPUTED,
                          .generation = work->generation,
                          .sequence = work->sequence,
                          .offset = work->count,
                          .value = digest,
                          .code = (uint32_t)pen_status_get_code(take_status)};
    if (take_status != PEN_OK) pen_status_format(take_status, answer.text, sizeof answer.text);
    pen_status_ignore(take_status, "the coordinator is told");
    pen_worker_tell(worker, 0, &answer);
}

static void recompute_main(void *context) {
    pen_worker *worker = context;
    worker_recompute *work = &worker->recompute;
    uint64_t digest = 0;
    const pen_recompute_bytes package = {work->bytes, work->byte_count};
    const pen_status status =
        pen_recompute_carry_out(package, work->device, recompute_memory(worker), &digest);
    recompute_answer(worker, digest, status);
    pen_memory_free(work->bytes);
    work->bytes = NULL;
    pen_mutex_lock(&worker->lock);
    work->is_computing = false;
    pen_mutex_unlock(&worker->lock);
}

void pen_worker_end_recompute(pen_worker *worker) {
    worker_recompute *work = &worker->recompute;
    pen_thread_join(work->thread);
    pen_memory_free(work->bytes);
    *work = (worker_recompute){0};
}

// The first part of a package: room for all of it, in place of one before.
static pen_status recompute_begin(pen_worker *worker, const pen_message *message) {
    worker_recompute *work = &worker->recompute;
    const uint64_t most = recompute_memory(worker);
    pen_worker_end_recompute(worker);
    work->generation = message->generation;
    work->sequence = message->sequence;
    work->device = message->device;
    if (message->byte_count == 0 || message->byte_count > RECOMPUTE_BYTES_LIMIT) {
        return pen_error(PEN_CORRUPT, "a package of %llu bytes",
                         (unsigned long long)message->byte_count);
    }
    if (most > 0 && message->byte_count > most) {
        return pen_error(PEN_DOES_NOT_FIT, "a package of %llu bytes, and there is room for %llu",
                         (unsigned long long)message->byte_count, (unsigned long long)most);
    }
    work->bytes = pen_memory_allocate_lazily(message->byte_count, 1);
    if (work->bytes == NULL) return pen_error_out_of_memory();
    work->byte_count = message->byte_count;
    return PEN_OK;
}

static pen_status recompute_start(pen_worker *worker) {
    worker_recompute *work = &worker->recompute;
    pen_mutex_lock(&worker->lock);
    work->is_computing = true;
    pen_mutex_unlock(&worker->lock);
    const pen_status status = pen_thread_create("recompute", recompute_main, worker, &work->thread);
    if (status != PEN_OK) work->is_computing = false; // nobody else looks
    return status;
}

// What cannot be done is an answer; what makes no sense is an error of the coordinator.
pen_status pen_worker_recompute(pen_worker *worker, const pen_message *message) {
    worker_recompute *work = &worker->recompute;
    pen_status status = PEN_OK;
    pen_mutex_lock(&worker->lock);
    const bool is_computing = work->is_computing, is_closed = worker->is_closed;
    pen_mutex_unlock(&worker->lock);
    if (is_closed) return PEN_OK;
    if (is_computing) { // it was given up by who asked, and is not done
        pen_message busy = {.kind = PEN_MESSAGE_RECOMPUTED,
                            .sequence = message->sequence,
                            .code = PEN_UNAVAILABLE,
                            .text = "it still computes for an earlier question"};
        pen_worker_tell(worker, 0, &busy);
        return PEN_OK;
    }
    if (message->offset == 0) status = recompute_begin(worker, message);
    if (status != PEN_OK) {
        recompute_answer(worker, 0, status);
        return PEN_OK;
    }
    const bool fits = message->sequence == work->sequence && message->offset == work->count &&
                      message->byte_count == work->byte_count && message->bytes_length > 0 &&
                      work->bytes != NULL &&
                      message->bytes_length <= work->byte_count - work->count;
    if (!fits) return pen_error(PEN_CORRUPT, "parts of a package that do not go together");
    memcpy(work->bytes + work->count, message->bytes, message->bytes_length);
    work->count += message->bytes_length;
    if (work->count == work->byte_count) {
        status = recompute_start(worker);
        if (status != PEN_OK) recompute_answer(worker, 0, status);
    } else {
        recompute_answer(worker, 0, PEN_OK);
    }
    return PEN_OK;
}
