// Where each worker saves to a disk of its own: once all shards are durable there, a thread copies
// them to the coordinator's folder, piece by piece as messages, and compares checksums. Only then
// the checkpoint may be published: with any worker's disk gone, all of it is still here.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/coordinator/coordinator_shards.h"
#include "scheduler/store/shard.h"

#define COPY_ANSWER_SECONDS 20.0

// ---- asking

// Holds the lock.
static bool copy_is_over(const pen_coordinator *c) {
    return c->is_failed || c->is_closed || !c->workers[c->copy.worker].is_up;
}

// Asks for one part, from byte `offset` on. Leaves it in copy.part.
static pen_status copy_ask(pen_coordinator *c, uint64_t offset) {
    coordinator_copy *copy = &c->copy;
    const double deadline = pen_clock_seconds() + COPY_ANSWER_SECONDS;
    pen_message ask = {.kind = PEN_MESSAGE_ASK, .number = PEN_RUN_INQUIRY_SHARD, .offset = offset};
    pen_mutex_lock(&c->lock);
    copy->offset = offset;
    copy->is_answered = false;
    copy->is_asking = true;
    pen_mutex_unlock(&c->lock);
    pen_coordinator_note_pieces(c, copy->worker, 1, 0);
    pen_coordinator_tell(c, copy->worker, &ask);
    pen_mutex_lock(&c->lock);
    while (!copy->is_answered && !copy_is_over(c)) {
        const double left = deadline - pen_clock_seconds();
        if (left <= 0) break;
        (void)pen_condition_wait_for(&c->changed, &c->lock, left);
    }
    const bool is_answered = copy->is_answered;
    copy->is_asking = false;
    pen_mutex_unlock(&c->lock);
    pen_coordinator_note_pieces(c, copy->worker, 0, 1); // or it is asked for no more
    if (is_answered) return PEN_OK;
    return pen_error(PEN_UNAVAILABLE, "%s does not give its shard",
                     c->spec->workers[copy->worker].name);
}

static pen_status copy_read(void *context, uint64_t offset, void *out, uint64_t bytes) {
    pen_coordinator *c = context;
    coordinator_copy *copy = &c->copy;
    char *to = out;
    while (bytes > 0) {
        PEN_TRY(copy_ask(c, offset));
        const uint64_t length = copy->part_length < bytes ? copy->part_length : bytes;
        if (length == 0) {
            return pen_error(PEN_CORRUPT, "the shard of %s ends at byte %llu",
                             c->spec->workers[copy->worker].name, (unsigned long long)offset);
        }
        memcpy(to, copy->part, length);
        to += length;
        offset += length;
        bytes -= length;
    }
    return PEN_OK;
}

void pen_coordinator_take_shard_part(pen_coordinator *c, uint32_t peer,
                                     const pen_message *message) {
    coordinator_copy *copy = &c->copy;
    pen_mutex_lock(&c->lock);
    if (copy->is_asking && !copy->is_answered && peer == copy->worker &&
        message->offset == copy->offset && message->bytes_length <= PEN_MESSAGE_PART_LIMIT) {
        memcpy(copy->part, message->bytes, message->bytes_length);
        copy->part_length = message->bytes_length;
        copy->is_answered = true;
        pen_condition_broadcast(&c->changed);
    }
    pen_mutex_unlock(&c->lock);
}

// ---- the thread

static pen_status copy_all(pen_coordinator *c) {
    pen_disk *disk = pen_disk_of_machine();
    const coordinator_save *save = &c->save;
    PEN_TRY(disk->kind->make_folder(disk, save->folder));
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (!save->has_summary[w]) continue;
        pen_mutex_lock(&c->lock);
        c->copy.worker = w;
        pen_mutex_unlock(&c->lock);
        PEN_TRY(pen_shard_copy(disk, save->folder, &save->summaries[w], copy_read, c));
    }
    return PEN_OK;
}

// Waits until all shards are durable where they are. False: that will not be.
static bool copy_await(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    while (!c->copy.is_wanted && c->save.saved.state == PEN_SAVE_WRITING && !c->is_failed &&
           !c->is_closed) {
        pen_condition_wait(&c->changed, &c->lock);
    }
    const bool is_wanted = c->copy.is_wanted && !c->is_failed && !c->is_closed;
    pen_mutex_unlock(&c->lock);
    return is_wanted;
}

// The thread that copies shards from workers' own disks. The checkpoint counts as durable only when
// all copies are; a failure reaches the core as one of publishing.
static void copy_run(void *context) {
    pen_coordinator *c = context;
    coordinator_save *save = &c->save;
    if (!copy_await(c)) return;
    const uint64_t step = save->saved.step;
    const pen_status status = copy_all(c);
    const pen_status_code code = pen_status_get_code(status);
    pen_mutex_lock(&c->lock);
    const bool is_over = c->is_failed || c->is_closed;
    if (status == PEN_OK) {
        save->saved.state = PEN_SAVE_DURABLE;
        pen_condition_broadcast(&c->changed);
    } else {
        snprintf(save->failure, sizeof save->failure, "%s", pen_status_message(status));
    }
    pen_mutex_unlock(&c->lock);
    pen_status_ignore(status, "the save fails, its text is kept");
    if (code == PEN_CODE_OK || is_over) return;
    const pen_coordinator_event event = {// upon which the core says that the save failed
                                         .kind = PEN_COORDINATOR_EVENT_PUBLISHED,
                                         .step = step,
                                         .code = (uint32_t)code};
    pen_coordinator_step(c, &event);
}

pen_status pen_coordinator_prepare_copy(pen_coordinator *c) {
    if (!c->setup.is_local_store) return PEN_OK;
    return PEN_NEW(c->arena, PEN_MESSAGE_PART_LIMIT, &c->copy.part);
}

pen_status pen_coordinator_begin_copy(pen_coordinator *c) {
    if (!c->setup.is_local_store) return PEN_OK;
    PEN_ASSERT(c->copy.thread == NULL);
    c->copy.is_wanted = false;
    return pen_thread_create("copy", copy_run, c, &c->copy.thread);
}

void pen_coordinator_end_copy(pen_coordinator *c) {
    pen_thread_join(c->copy.thread);
    c->copy.thread = NULL;
}
