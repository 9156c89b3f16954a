// The folders that a training's checkpoints are kept in: one, or one and its mirror. Each has a log
// and shards of its own and is whole by itself, so that either may be lost, or away for a while.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/planted.h"
#include "scheduler/checkpoint/checkpoint_state.h"

#define COPIES_ROOM 16u // checkpoints that the list has room for at first

// ---- the list of checkpoints

static pen_status copies_add(pen_checkpoint_store *store, uint32_t place,
                             pen_checkpoint_entry entry) {
    if (store->entry_count == store->entry_room) {
        const uint32_t room = store->entry_room == 0 ? COPIES_ROOM : 2 * store->entry_room;
        pen_checkpoint_entry *entries;
        PEN_TRY(PEN_NEW(store->arena, room, &entries));
        if (store->entry_count > 0) {
            memcpy(entries, store->entries, store->entry_count * sizeof *entries);
        }
        store->entries = entries;
        store->entry_room = room;
    }
    memmove(store->entries + place + 1, store->entries + place,
            (store->entry_count - place) * sizeof *store->entries);
    store->entries[place] = entry;
    store->entry_count += 1;
    return PEN_OK;
}

// Negative: `a` is newer. A generation goes on from checkpoints of those before.
static int copies_compare(const pen_commit_record *a, const pen_commit_record *b) {
    if (a->generation != b->generation) return a->generation > b->generation ? -1 : 1;
    if (a->manifest.step == b->manifest.step) return 0;
    return a->manifest.step > b->manifest.step ? -1 : 1;
}

// Puts a record of the mirror beside that of the same checkpoint, or where it belongs.
static pen_status copies_merge(pen_checkpoint_store *store, const pen_commit_record *record) {
    uint32_t place = 0;
    for (; place < store->entry_count; place++) {
        pen_checkpoint_entry *entry = &store->entries[place];
        const int order = copies_compare(record, entry->records[entry->records[0] != NULL ? 0 : 1]);
        if (order < 0) break;
        if (order > 0 || entry->records[1] != NULL) continue;
        entry->records[1] = record;
        return PEN_OK;
    }
    return copies_add(store, place, (pen_checkpoint_entry){.records = {NULL, record}});
}

pen_status pen_checkpoint_copies_list(pen_checkpoint_store *store) {
    store->entry_count = 0;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        const pen_commit_log *log = store->copies[c].log;
        const pen_commit_record *record;
        for (uint32_t i = 0; log != NULL; i++) {
            record = pen_commit_log_manifest(log, i);
            if (record == NULL) break;
            if (record->generation < store->begun) continue; // of a training before this one
            const pen_checkpoint_entry entry = {.records = {record, NULL}};
            PEN_TRY(c == 0 ? copies_add(store, store->entry_count, entry)
                           : copies_merge(store, record));
        }
    }
    return PEN_OK;
}

// ---- what is done to each

// Whether it is the folder's fault, or its disk's.
static bool copies_is_of_place(pen_status status) {
    return pen_disk_is_at_fault(status) || pen_status_get_code(status) == PEN_CORRUPT;
}

// The folder is given up until the next checkpoint, which is said once.
static void copies_lose(pen_checkpoint_store *store, pen_checkpoint_copy *copy, const char *what,
                        pen_status take_status) {
    const pen_checkpoint_copy *other = &store->copies[copy == &store->copies[0] ? 1 : 0];
    if (!copy->is_away) {
        pen_log(PEN_LOG_WARNING,
                "%s has not got %s: %s; %s has, and losing that loses it until this is mended; "
                "tried again with each checkpoint",
                copy->folder, what, pen_status_message(take_status), other->folder);
    }
    pen_status_ignore(take_status, "said; the other folder has it");
    copy->is_away = true;
    copy->fenced = 0;
}

static void copies_find(pen_checkpoint_copy *copy) {
    if (copy->is_away) pen_log(PEN_LOG_NOTE, "checkpoints are kept in %s again", copy->folder);
    copy->is_away = false;
}

// Failures are kept until it is known whether another copy has done it.
pen_status pen_checkpoint_copies_do(pen_checkpoint_store *store, const char *what,
                                    pen_checkpoint_deed deed, void *context) {
    pen_status failed[PEN_CHECKPOINT_COPIES] = {PEN_OK}, status = PEN_OK;
    uint32_t done_count = 0;
    for (uint32_t k = 0; k < store->copy_count && status == PEN_OK; k++) {
        const uint32_t c = (store->source + k) % store->copy_count;
        failed[c] = deed(store, &store->copies[c], context);
        // beside a folder with no record yet, one that fails may be the one that has the training
        const pen_commit_log *log = store->copies[c].log;
        const bool has_some =
            log != NULL && (pen_commit_log_job(log)[0] != '\0' || PEN_PLANTED(power_begins_anew));
        if (failed[c] == PEN_OK && has_some) done_count += 1;
        if (failed[c] == PEN_OK || copies_is_of_place(failed[c])) continue;
        status = failed[c];
        failed[c] = PEN_OK;
    }
    for (uint32_t c = 0; c < store->copy_count; c++) {
        if (status == PEN_OK && done_count > 0 && failed[c] != PEN_OK) {
            copies_lose(store, &store->copies[c], what, failed[c]);
        } else if (status == PEN_OK && done_count > 0) {
            copies_find(&store->copies[c]);
        } else {
            // somebody may have removed the folder: what is fenced is found out anew
            if (failed[c] != PEN_OK) store->copies[c].is_away = true;
            if (failed[c] != PEN_OK) store->copies[c].fenced = 0;
            status = pen_status_join(status, failed[c]);
        }
    }
    return pen_status_join(status, pen_checkpoint_copies_list(store));
}

// ---- one of them

pen_shard_place pen_checkpoint_copy_place(const pen_checkpoint_copy *copy) {
    return (pen_shard_place){.disk = copy->disk, .folder = copy->shard_folder};
}

// Where the other copy is of another training, one of the two was meant to be another folder.
static pen_status copy_check_job(pen_checkpoint_store *store, const pen_checkpoint_copy *copy) {
    const char *job = pen_commit_log_job(copy->log);
    if (store->job[0] == '\0') memcpy(store->job, job, sizeof store->job);
    if (job[0] == '\0' || strcmp(job, store->job) == 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "%s and its mirror %s have checkpoints of two trainings, '%s' and '%s': name "
                     "another folder, or remove one of them",
                     store->copies[0].folder, store->copies[1].folder, store->job, job);
}

static pen_status copy_open_log(pen_checkpoint_store *store, pen_checkpoint_copy *copy) {
    copy->log = NULL;
    pen_arena_reset(copy->arena);
    PEN_TRY(pen_commit_log_open(copy->disk, copy->commit_folder, copy->arena, &copy->log));
    const pen_status status = copy_check_job(store, copy);
    const uint64_t begun = pen_commit_log_begun(copy->log);
    if (begun > store->begun) store->begun = begun;
    return status;
}

pen_status pen_checkpoint_copy_open(pen_checkpoint_store *store, pen_checkpoint_copy *copy,
                                    void *context) {
    const char *const *names;
    uint32_t count = 0;
    (void)context;
    const pen_status status = copy->disk->kind->list(
        copy->disk, copy->folder, PEN_CHECKPOINT_FOLDER_LIMIT, store->scratch, &names, &count);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "it is made when something is written");
        return PEN_OK;
    }
    PEN_TRY(status);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], "commit") == 0) return copy_open_log(store, copy);
    }
    return PEN_OK;
}

// A record that cannot be read may be the fence of a later generation. In one of two folders that
// is the folder's fault: the other one knows.
static pen_status copy_append(const pen_checkpoint_store *store, pen_checkpoint_copy *copy,
                              pen_commit_record *record) {
    const pen_status status = pen_commit_log_append(copy->log, record);
    const bool is_superseded = pen_status_get_code(status) == PEN_CANCELLED;
    if (!is_superseded || store->copy_count == 1) return status;
    if (pen_commit_log_damaged_count(copy->log) == 0) return status;
    pen_status_ignore(status, "said in other words");
    return pen_error(PEN_CORRUPT, "'%s' has records that cannot be read", copy->commit_folder);
}

static pen_status copy_append_fence(const pen_checkpoint_store *store, pen_checkpoint_copy *copy,
                                    uint64_t generation) {
    pen_commit_record record = {.kind = PEN_COMMIT_FENCE,
                                .generation = generation,
                                .coordinator = store->incarnation,
                                .begins = generation == store->begun};
    memcpy(record.job, store->job, sizeof record.job);
    return copy_append(store, copy, &record);
}

static pen_status copy_open_again(pen_checkpoint_store *store, pen_checkpoint_copy *copy) {
    const bool had_some = copy->log != NULL && pen_commit_log_job(copy->log)[0] != '\0';
    PEN_TRY(copy_open_log(store, copy));
    if (had_some && pen_commit_log_job(copy->log)[0] == '\0') {
        pen_log(PEN_LOG_WARNING,
                "%s is empty: what was in it was removed, or its disk is no longer mounted; "
                "checkpoints are kept there from now on",
                copy->folder);
    }
    return PEN_OK;
}

// A folder that was away when the training began learns of that first.
pen_status pen_checkpoint_copy_fence(pen_checkpoint_store *store, pen_checkpoint_copy *copy,
                                     void *context) {
    (void)context;
    if (copy->fenced == store->generation) return PEN_OK;
    PEN_TRY(copy->disk->kind->make_folder(copy->disk, copy->shard_folder));
    if (copy->log == NULL || copy->is_away) PEN_TRY(copy_open_again(store, copy));
    if (pen_commit_log_begun(copy->log) < store->begun && store->begun < store->generation &&
        pen_commit_log_generation(copy->log) < store->begun) {
        PEN_TRY(copy_append_fence(store, copy, store->begun));
    }
    PEN_TRY(copy_append_fence(store, copy, store->generation));
    copy->fenced = store->generation;
    return PEN_OK;
}

// ---- publishing

typedef struct copy_fetch {
    const pen_checkpoint_copy *from;
    const char *path;
    bool is_failed;
} copy_fetch;

static pen_status copy_read(void *context, uint64_t first, void *out, uint64_t bytes) {
    copy_fetch *fetch = context;
    pen_disk *disk = fetch->from->disk;
    const pen_status status = disk->kind->read(disk, fetch->path, first, out, bytes);
    fetch->is_failed = status != PEN_OK;
    return status;
}

// Chunk by chunk, each of which is compared with its checksum.
static pen_status copy_shards(pen_checkpoint_store *store, const pen_checkpoint_copy *copy,
                              const pen_commit_manifest *manifest, copy_fetch *fetch) {
    for (uint32_t s = 0; s < manifest->shard_count; s++) {
        const pen_shard_summary *shard = &manifest->shards[s];
        PEN_TRY(pen_arena_format(store->scratch, &fetch->path, "%s/%s", fetch->from->shard_folder,
                                 shard->file));
        PEN_TRY(pen_shard_copy(copy->disk, copy->shard_folder, shard, copy_read, fetch));
    }
    return PEN_OK;
}

pen_status pen_checkpoint_copies_carry(pen_checkpoint_store *store,
                                       pen_checkpoint_publication *publication) {
    pen_checkpoint_copy *source = &store->copies[store->source];
    pen_checkpoint_copy *copy = &store->copies[1 - store->source];
    copy_fetch fetch = {.from = source};
    if (store->copy_count == 1) return PEN_OK;
    pen_status status = pen_checkpoint_copy_fence(store, copy, NULL);
    if (PEN_PLANTED(power_record_alone)) return PEN_OK;
    if (status == PEN_OK) status = copy_shards(store, copy, &publication->record.manifest, &fetch);
    const bool is_damaged = pen_status_get_code(status) == PEN_CORRUPT && fetch.path != NULL;
    if ((fetch.is_failed || is_damaged) && !PEN_PLANTED(power_unread_copy)) {
        pen_checkpoint_store_give_up(store, true);
        return pen_status_add_context(status, "while reading back what was written to %s",
                                      source->shard_folder);
    }
    if (!copies_is_of_place(status)) return status;
    publication->failure = status;
    return PEN_OK;
}

pen_status pen_checkpoint_copy_publish(pen_checkpoint_store *store, pen_checkpoint_copy *copy,
                                       void *context) {
    pen_checkpoint_publication *publication = context;
    if (copy != &store->copies[store->source] && publication->failure != PEN_OK) {
        const pen_status failure = publication->failure;
        publication->failure = PEN_OK;
        return failure;
    }
    PEN_TRY(pen_checkpoint_copy_fence(store, copy, NULL));
    return copy_append(store, copy, &publication->record);
}
