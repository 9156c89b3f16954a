// Checkpoints: workers copy, write, and say what they wrote.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/system/failpoint.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/coordinator/coordinator_shards.h"
#include "scheduler/store/commit_record.h"
#include "scheduler/store/shard.h"

pen_status pen_coordinator_prepare_save(pen_coordinator *c) {
    const size_t count = (size_t)c->table->worker_count + 1;
    PEN_TRY(pen_coordinator_prepare_copy(c));
    pen_coordinator_seek_folders(c);
    PEN_TRY(pen_arena_create(&c->save.arena));
    PEN_TRY(PEN_NEW(c->arena, count, &c->save.summaries));
    PEN_TRY(PEN_NEW(c->arena, count, &c->save.listed));
    return PEN_NEW(c->arena, count, &c->save.has_summary);
}

// ---- what the caller asks

static bool save_is_possible(const pen_coordinator *c, uint64_t argument) {
    (void)argument;
    return pen_coordinator_core_can_save(c->core);
}

static bool save_has_snapped(const pen_coordinator *c, uint64_t argument) {
    (void)argument;
    return c->save.has_snapped;
}

static bool save_is_written(const pen_coordinator *c, uint64_t argument) {
    (void)argument;
    return c->save.saved.state != PEN_SAVE_WRITING;
}

static void save_begin(pen_coordinator *c, uint64_t step, const char *folder) {
    coordinator_save *save = &c->save;
    pen_arena_reset(save->arena);
    memset(save->has_summary, 0, ((size_t)c->table->worker_count + 1) * sizeof *save->has_summary);
    save->saved =
        (pen_coordinator_saved){.state = PEN_SAVE_WRITING, .step = step, .failure = save->failure};
    save->number = 0; // what is said of the one before does not count
    save->has_snapped = false;
    save->is_told = false;
    save->failure[0] = '\0';
    snprintf(save->folder, sizeof save->folder, "%s", folder);
}

static void save_give_up(pen_coordinator *c, pen_status take_status) {
    pen_mutex_lock(&c->lock);
    c->save.saved.state = PEN_SAVE_FAILED;
    snprintf(c->save.failure, sizeof c->save.failure, "%s", pen_status_message(take_status));
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
    pen_status_ignore(take_status, "a save that fails is told by poll, and the run goes on");
}

// Waits until nothing runs, then until all workers have copied their tensors; from then on rounds
// go on while shards are written. A save that cannot begin fails by itself, not the training; where
// the folder takes no files, before anything else is done.
pen_status pen_coordinator_save(pen_coordinator *coordinator, uint64_t step, const char *folder) {
    pen_coordinator *c = coordinator;
    if (strlen(folder) >= sizeof c->save.folder) {
        return pen_error(PEN_INVALID_INPUT, "the folder's name has %zu bytes, at most %zu go",
                         strlen(folder), sizeof c->save.folder - 1);
    }
    pen_mutex_lock(&c->lock);
    pen_status status = pen_coordinator_await(c, save_is_possible, 0);
    pen_mutex_unlock(&c->lock);
    PEN_TRY(status);
    pen_coordinator_end_copy(c); // that of the save before
    PEN_TRY(pen_coordinator_mark_save(c, folder));
    pen_mutex_lock(&c->lock);
    save_begin(c, step, folder);
    pen_mutex_unlock(&c->lock);
    const pen_status begun = pen_coordinator_begin_copy(c);
    if (begun != PEN_OK) {
        pen_coordinator_unmark_save(c);
        save_give_up(c, begun);
        return PEN_OK;
    }
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_SAVE, .step = step};
    pen_coordinator_step(c, &event);
    pen_mutex_lock(&c->lock);
    status = pen_coordinator_await(c, save_has_snapped, 0);
    pen_mutex_unlock(&c->lock);
    pen_coordinator_unmark_save(c); // all have found it, or will not
    if (PEN_FAILPOINT("coordinator.snapped")) return pen_error(PEN_INTERNAL, "a failpoint");
    return status;
}

// Who is told that shards are durable publishes the manifest at once. Holds the lock.
static void save_tell(pen_coordinator *c, pen_coordinator_saved *out_saved) {
    *out_saved = c->save.saved;
    c->save.is_told = c->save.saved.state == PEN_SAVE_DURABLE;
}

void pen_coordinator_poll_saved(pen_coordinator *coordinator, pen_coordinator_saved *out_saved) {
    pen_mutex_lock(&coordinator->lock);
    save_tell(coordinator, out_saved);
    pen_mutex_unlock(&coordinator->lock);
}

pen_status pen_coordinator_await_saved(pen_coordinator *coordinator,
                                       pen_coordinator_saved *out_saved) {
    pen_mutex_lock(&coordinator->lock);
    const pen_status status = pen_coordinator_await(coordinator, save_is_written, 0);
    save_tell(coordinator, out_saved);
    pen_mutex_unlock(&coordinator->lock);
    return status;
}

// Callers ask between two steps, and may do anything in between: as long as none has, the deadline
// of the manifest does not run. Said a few times within it, for each is an event that is recorded.
static void save_hold(pen_coordinator *c, bool is_told) {
    coordinator_save *save = &c->save;
    const double now = pen_clock_seconds();
    pen_mutex_lock(&c->lock);
    const bool is_held =
        save->saved.state == PEN_SAVE_DURABLE && save->is_told == is_told && !c->is_failed;
    const bool is_due = is_held && now - save->held_at >= c->setup.write_seconds / 4;
    if (is_due) save->held_at = now;
    pen_mutex_unlock(&c->lock);
    if (!is_due) return;
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_OWED};
    pen_coordinator_step(c, &event);
}

void pen_coordinator_hold_publishing(pen_coordinator *c) {
    save_hold(c, false);
}

// A second folder may be on a disk that is far slower than that which workers write to.
void pen_coordinator_keep_publishing(pen_coordinator *coordinator) {
    save_hold(coordinator, true);
}

static void save_publish(pen_coordinator *c, uint64_t step, pen_status_code code) {
    pen_mutex_lock(&c->lock);
    const bool is_right = c->save.saved.state == PEN_SAVE_DURABLE && c->save.saved.step == step;
    c->save.saved.state = PEN_SAVE_NONE;
    const bool is_failed = c->is_failed;
    pen_mutex_unlock(&c->lock);
    PEN_ASSERT(is_right || is_failed);
    if (is_failed) return; // nobody is there to be told
    const pen_coordinator_event event = {
        .kind = PEN_COORDINATOR_EVENT_PUBLISHED, .step = step, .code = (uint32_t)code};
    pen_coordinator_step(c, &event);
}

void pen_coordinator_committed(pen_coordinator *coordinator, uint64_t step) {
    save_publish(coordinator, step, PEN_CODE_OK);
    (void)PEN_FAILPOINT("coordinator.committed");
}

void pen_coordinator_give_save_up(pen_coordinator *coordinator, uint64_t step,
                                  pen_status_code code) {
    PEN_ASSERT(code != PEN_CODE_OK);
    save_publish(coordinator, step, code);
}

// ---- what workers and the core say

// Holds the lock.
static pen_status save_read_summary(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    pen_shard_summary *summary = &c->save.summaries[peer];
    const char *expected;
    PEN_TRY(
        pen_shard_summary_decode(message->bytes, message->bytes_length, c->save.arena, summary));
    PEN_TRY(pen_shard_name(c->generation, message->step, peer, c->save.arena, &expected));
    if (strcmp(summary->file, expected) != 0) {
        return pen_error(PEN_CORRUPT, "it wrote '%s', expected '%s'", summary->file, expected);
    }
    if (c->setup.is_local_store) summary->holders = c->spec->workers[peer].address;
    c->save.has_summary[peer] = true;
    return PEN_OK;
}

// A worker's word about its shard may come twice or late: only one that is awaited counts. The
// first failure's text is kept, for it is the cause of the others.
void pen_coordinator_read_shard(pen_coordinator *c, uint32_t peer, const pen_message *message,
                                uint32_t *out_code) {
    coordinator_save *save = &c->save;
    pen_status status = PEN_OK;
    *out_code = message->code;
    pen_mutex_lock(&c->lock);
    const bool is_awaited = save->saved.state == PEN_SAVE_WRITING && save->number > 0 &&
                            save->number == message->sequence &&
                            save->saved.step == message->step && !save->has_summary[peer];
    if (is_awaited && message->code != PEN_CODE_OK) {
        status = pen_error(PEN_IO, "%s", message->text);
    } else if (is_awaited && message->bytes_length > 0) {
        status = save_read_summary(c, peer, message);
    }
    if (status != PEN_OK) {
        if (*out_code == PEN_CODE_OK) *out_code = (uint32_t)pen_status_get_code(status);
        snprintf(save->failure, sizeof save->failure, "%s: %s", c->spec->workers[peer].name,
                 pen_status_message(status));
        pen_status_ignore(status, "the save fails, its text is kept");
    }
    pen_mutex_unlock(&c->lock);
}

void pen_coordinator_note_durable(pen_coordinator *c) {
    coordinator_save *save = &c->save;
    uint32_t count = 0;
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (save->has_summary[w]) save->listed[count++] = save->summaries[w];
    }
    save->saved.summaries = save->listed;
    save->saved.summary_count = count;
    // where they are durable on other disks they are copied first
    if (!c->setup.is_local_store) save->saved.state = PEN_SAVE_DURABLE;
    c->copy.is_wanted = true;
}

void pen_coordinator_note_save_failed(pen_coordinator *c) {
    if (c->save.saved.state == PEN_SAVE_WRITING) c->save.saved.state = PEN_SAVE_FAILED;
}
