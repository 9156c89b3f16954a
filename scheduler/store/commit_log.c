#include "scheduler/store/commit_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/name_map.h"
#include "base/planted.h"
#include "base/system/failpoint.h"
#include "scheduler/store/commit_record.h"
#include "scheduler/store/shard.h"

// commit.000000000012 is record 12; tmp.000000000012.GENERATION.COORDINATOR is one that is being
// written. Numbers are never used twice: the record with the highest stays.
#define LOG_RECORD_FORMAT "commit.%012" PRIu64
#define LOG_BESIDE_FORMAT "tmp.%012" PRIu64
#define LOG_NAME_BYTES 64
#define LOG_DIGITS 12
#define LOG_KEEP_LEAST 2

typedef struct log_entry {
    pen_arena *arena; // of the record's shards
    pen_commit_record record;
    bool is_damaged; // only the number is known
    bool is_kept;    // while others are removed
} log_entry;

struct pen_commit_log {
    pen_disk *disk;
    const char *folder;
    pen_arena *arena;
    pen_arena *scratch;
    log_entry *entries; // [count], by number, [room]
    uint32_t count;
    uint32_t room;
    pen_arena **spare; // [spare_count], [room]: of entries that are no more
    uint32_t spare_count;
    uint64_t last;          // the highest number in the folder
    uint64_t generation;    // the highest that can be read
    uint64_t damaged_count; // records behind the last that can be read
    uint64_t fence_number;  // of the fence in force
    uint64_t fence_incarnation;
    uint64_t begin_number; // of the fence from which on manifests count
    uint64_t begun;        // its generation
    char job[PEN_COMMIT_TEXT_BYTES];
    uint64_t own_generation; // fenced, or to be fenced, by this log
    uint64_t own_incarnation;
    bool is_uncertain;        // whether the last record was appended
    bool is_unsynced;         // names were read that may not be durable
    uint64_t verified_number; // of a manifest whose shards were read back
};

// Each damaged record may have been the fence of one more generation. Where none can be read, those
// before were removed, and no generation is higher than the number of its record.
uint64_t pen_commit_log_generation(const pen_commit_log *log) {
    const bool is_known = log->generation > 0 || log->damaged_count == 0;
    return is_known ? log->generation + log->damaged_count : log->last;
}

const char *pen_commit_log_job(const pen_commit_log *log) {
    return log->job;
}

uint64_t pen_commit_log_begun(const pen_commit_log *log) {
    return log->begun;
}

static bool log_is_manifest(const pen_commit_log *log, const log_entry *entry) {
    return !entry->is_damaged && entry->record.kind == PEN_COMMIT_MANIFEST &&
           entry->record.number > log->begin_number;
}

const pen_commit_record *pen_commit_log_manifest(const pen_commit_log *log, uint32_t index) {
    for (uint32_t i = log->count; i-- > 0;) {
        if (!log_is_manifest(log, &log->entries[i])) continue;
        if (index-- == 0) return &log->entries[i].record;
    }
    return NULL;
}

uint32_t pen_commit_log_damaged_count(const pen_commit_log *log) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < log->count; i++) {
        if (log->entries[i].is_damaged) count++;
    }
    return count;
}

const char *pen_commit_log_name(uint64_t number, char out_name[PEN_COMMIT_NAME_BYTES]) {
    snprintf(out_name, PEN_COMMIT_NAME_BYTES, LOG_RECORD_FORMAT, number);
    return out_name;
}

// ---- reading

static pen_status log_path(const pen_commit_log *log, const char *name, const char **out_path) {
    return pen_arena_format(log->scratch, out_path, "%s/%s", log->folder, name);
}

// Whether `name` begins with `prefix` and the twelve digits of a number.
static bool log_read_name(const char *name, const char *prefix, uint64_t *out_number) {
    const size_t length = strlen(prefix);
    uint64_t number = 0;
    if (strncmp(name, prefix, length) != 0) return false;
    for (uint32_t i = 0; i < LOG_DIGITS; i++) {
        const char digit = name[length + i];
        if (digit < '0' || digit > '9') return false;
        number = number * 10 + (uint64_t)(digit - '0');
    }
    *out_number = number;
    return number > 0;
}

static bool log_is_record_name(const char *name, uint64_t *out_number) {
    return log_read_name(name, "commit.", out_number) &&
           strlen(name) == strlen("commit.") + LOG_DIGITS;
}

// Room for one more entry, and an arena for it.
static pen_status log_reserve(pen_commit_log *log, pen_arena **out_arena) {
    if (log->count == log->room) {
        const uint32_t room = log->room == 0 ? 16 : 2 * log->room;
        log_entry *entries;
        pen_arena **spare;
        PEN_TRY(PEN_NEW(log->arena, room, &entries));
        PEN_TRY(PEN_NEW(log->arena, room, &spare));
        if (log->count > 0) memcpy(entries, log->entries, log->count * sizeof *entries);
        if (log->spare_count > 0) memcpy(spare, log->spare, log->spare_count * sizeof *spare);
        log->entries = entries;
        log->spare = spare;
        log->room = room;
    }
    if (log->spare_count == 0) return pen_arena_create_within(log->arena, out_arena);
    *out_arena = log->spare[--log->spare_count];
    return PEN_OK;
}

static void log_release(pen_commit_log *log, pen_arena *arena) {
    pen_arena_reset(arena);
    if (log->spare_count < log->room) log->spare[log->spare_count++] = arena;
}

// Takes a record in, which is behind all others.
static pen_status log_take(pen_commit_log *log, const log_entry *entry) {
    const pen_commit_record *record = &entry->record;
    if (entry->is_damaged) {
        log->damaged_count += 1;
    } else if (log->job[0] != 0 && strcmp(log->job, record->job) != 0) {
        return pen_error(PEN_CORRUPT,
                         "record %" PRIu64 " in '%s' is of job '%s', those before it "
                         "are of '%s'",
                         record->number, log->folder, record->job, log->job);
    } else {
        memcpy(log->job, record->job, sizeof log->job);
        log->damaged_count = 0;
        if (record->generation > log->generation) log->generation = record->generation;
        if (record->kind == PEN_COMMIT_FENCE) {
            log->fence_number = record->number;
            log->fence_incarnation = record->coordinator;
            if (record->begins) {
                log->begin_number = record->number;
                log->begun = record->generation;
            }
        }
    }
    log->last = record->number;
    log->entries[log->count++] = *entry;
    return PEN_OK;
}

static pen_status log_decode(pen_commit_log *log, const char *path, uint64_t bytes,
                             log_entry *entry) {
    char *text;
    const uint64_t number = entry->record.number;
    if (bytes > PEN_COMMIT_RECORD_BYTES_LIMIT) {
        return pen_error(PEN_CORRUPT, "%" PRIu64 " bytes are no record", bytes);
    }
    PEN_TRY(PEN_NEW(log->scratch, bytes, &text));
    PEN_TRY(log->disk->kind->read(log->disk, path, 0, text, bytes));
    PEN_TRY(pen_commit_record_decode(text, bytes, entry->arena, &entry->record));
    if (entry->record.number == number) return PEN_OK;
    return pen_error(PEN_CORRUPT, "it is record %" PRIu64, entry->record.number);
}

// Syncs a record that was found, and reads it: a damaged one is passed over.
static pen_status log_read_record(pen_commit_log *log, const char *name, uint64_t number) {
    pen_disk *disk = log->disk;
    const char *path;
    uint64_t bytes = 0;
    log_entry entry = {.record.number = number};
    PEN_TRY(log_path(log, name, &path));
    pen_status status = PEN_OK;
    if (!PEN_PLANTED(no_resync_on_open)) status = disk->kind->sync_path(disk, path);
    if (status == PEN_OK) status = disk->kind->size(disk, path, &bytes);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "the coordinator in force removed it meanwhile");
        return PEN_OK;
    }
    PEN_TRY(status);
    PEN_TRY(log_reserve(log, &entry.arena));
    status = log_decode(log, path, bytes, &entry);
    if (pen_status_get_code(status) == PEN_CORRUPT) { // a bit may have come wrong this once
        pen_status_ignore(status, "it is read again");
        entry.record = (pen_commit_record){.number = number};
        status = log_decode(log, path, bytes, &entry);
    }
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "the coordinator in force removed it meanwhile");
        log_release(log, entry.arena);
        return PEN_OK;
    }
    if (pen_status_get_code(status) == PEN_CORRUPT) {
        pen_log(PEN_LOG_WARNING, "'%s' is damaged, and passed over: %s", path,
                pen_status_message(status));
        pen_status_ignore(status, "said; the records before it count");
        entry.is_damaged = true;
        entry.record = (pen_commit_record){.number = number};
        status = PEN_OK;
    }
    PEN_TRY(status);
    log->is_unsynced = true;
    return log_take(log, &entry);
}

static pen_status log_list(pen_commit_log *log, const char *const **out_names,
                           uint32_t *out_count) {
    return log->disk->kind->list(log->disk, log->folder, PEN_COMMIT_RECORD_LIMIT, log->scratch,
                                 out_names, out_count);
}

// What was being written when its writer died, or lost its number to another.
static void log_remove_beside(pen_commit_log *log, const char *const *names, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = 0;
        const char *path;
        if (!log_read_name(names[i], "tmp.", &number) || number > log->last) continue;
        pen_status status = log_path(log, names[i], &path);
        if (status == PEN_OK) status = log->disk->kind->remove(log->disk, path);
        pen_status_ignore(status, "it is in nobody's way");
    }
}

// Reads the records that came since, and makes them durable.
static pen_status log_scan(pen_commit_log *log) {
    const char *const *names;
    uint32_t count = 0;
    PEN_TRY(log_list(log, &names, &count));
    for (uint32_t i = 0; i < count; i++) { // in order, as names are
        uint64_t number = 0;
        if (!log_is_record_name(names[i], &number) || number <= log->last) continue;
        PEN_TRY(log_read_record(log, names[i], number));
    }
    if (log->is_unsynced && !PEN_PLANTED(no_resync_on_open)) {
        PEN_TRY(log->disk->kind->sync_path(log->disk, log->folder));
    }
    log->is_unsynced = false;
    log->is_uncertain = false;
    log_remove_beside(log, names, count);
    return PEN_OK;
}

// Makes the folder's name durable, and those of the folders it is in, from the inside out: whoever
// made them may have died before they were. What another user's rights keep closed was there
// before.
static pen_status log_settle_folder(pen_commit_log *log) {
    char *path;
    const size_t length = strlen(log->folder);
    PEN_TRY(PEN_NEW(log->scratch, length + 2, &path));
    memcpy(path, log->folder, length);
    for (bool is_outermost = false; !is_outermost;) {
        char *slash = strrchr(path, '/');
        is_outermost = slash == NULL || slash == path;
        if (slash == NULL) memcpy(path, ".", 2);
        if (slash != NULL) slash[slash == path] = '\0';
        const pen_status status = log->disk->kind->sync_path(log->disk, path);
        if (pen_status_get_code(status) == PEN_NO_STORAGE) return status;
        pen_status_ignore(status, "the folder is not ours to open");
    }
    return PEN_OK;
}

pen_status pen_commit_log_open(pen_disk *disk, const char *folder, pen_arena *arena,
                               pen_commit_log **out_log) {
    pen_commit_log *log;
    PEN_TRY(PEN_NEW(arena, 1, &log));
    log->disk = disk;
    log->arena = arena;
    PEN_TRY(pen_arena_copy_text(arena, folder, strlen(folder), &log->folder));
    PEN_TRY(pen_arena_create_within(arena, &log->scratch));
    PEN_TRY(disk->kind->make_folder(disk, folder));
    if (!PEN_PLANTED(power_folders_unsettled)) PEN_TRY(log_settle_folder(log));
    PEN_TRY(log_scan(log));
    pen_arena_reset(log->scratch);
    *out_log = log;
    return PEN_OK;
}

// ---- appending

// Whether the generation in force was fenced by this log. A record that cannot be read may be
// anybody's fence.
static bool log_is_own(const pen_commit_log *log) {
    return log->own_generation != 0 && log->own_generation == log->generation &&
           log->damaged_count == 0 && log->fence_incarnation == log->own_incarnation;
}

static pen_status log_check_fence(const pen_commit_log *log, const pen_commit_record *record) {
    const uint64_t generation = pen_commit_log_generation(log);
    const bool is_fence = record->kind == PEN_COMMIT_FENCE;
    if (PEN_PLANTED(no_store_fence)) return PEN_OK;
    if (is_fence ? generation < record->generation
                 : log_is_own(log) && generation == record->generation) {
        return PEN_OK;
    }
    return pen_error(PEN_CANCELLED, "superseded by generation %" PRIu64, generation);
}

// Writes the record beside, durably. What is left of a failure is removed.
static pen_status log_write_beside(pen_commit_log *log, const char *path, const char *bytes,
                                   uint64_t count) {
    const pen_disk_kind *kind = log->disk->kind;
    pen_disk_file *file = NULL;
    PEN_TRY(kind->create(log->disk, path, &file));
    pen_status status = kind->append(file, bytes, count);
    const bool is_skipped = PEN_PLANTED(no_fsync_file) || PEN_PLANTED(power_record_unsynced);
    if (status == PEN_OK && !is_skipped) status = kind->sync(file);
    kind->close(file);
    if (status == PEN_OK) return PEN_OK;
    pen_status_ignore(kind->remove(log->disk, path), "it is in nobody's way");
    return status;
}

// Whether there is a record behind `number`: either `number` had been removed, and was free for a
// writer that does not know what came after, or somebody found the record that was just published,
// and went on from there.
static pen_status log_is_passed(pen_commit_log *log, uint64_t number, bool *out_is_passed) {
    const char *const *names;
    uint32_t count = 0;
    *out_is_passed = false;
    PEN_TRY(log_list(log, &names, &count));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t other = 0;
        if (log_is_record_name(names[i], &other) && other > number) *out_is_passed = true;
    }
    return PEN_OK;
}

// Gives the written record its number. *out_is_taken: another has it, or one behind it.
static pen_status log_publish(pen_commit_log *log, const char *from, const char *to,
                              const pen_commit_record *record, bool *out_is_taken) {
    pen_disk *disk = log->disk;
    const pen_status status = disk->kind->publish(disk, from, to, out_is_taken);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "whoever found the number taken removed what was beside it");
        *out_is_taken = true;
    } else {
        PEN_TRY(status);
    }
    if (*out_is_taken) return PEN_OK;
    PEN_TRY(log_is_passed(log, record->number, out_is_taken));
    // a manifest stays: who came after may build upon it, and where nobody does it is only an old
    // one
    if (*out_is_taken && record->kind == PEN_COMMIT_MANIFEST) return PEN_OK;
    if (*out_is_taken) return disk->kind->remove(disk, to);
    if (PEN_PLANTED(power_record_unsynced)) PEN_TRY(disk->kind->sync_path(disk, to));
    if (PEN_PLANTED(no_fsync_folder)) return PEN_OK;
    return disk->kind->sync_path(disk, log->folder);
}

// Tries to append the record with the number behind the last.
static pen_status log_try(pen_commit_log *log, pen_commit_record *record, bool *out_is_taken) {
    char name[PEN_COMMIT_NAME_BYTES], beside[LOG_NAME_BYTES];
    const char *bytes, *from, *to;
    uint64_t count = 0;
    const bool is_manifest = record->kind == PEN_COMMIT_MANIFEST;
    if (log->last >= PEN_COMMIT_NUMBER_LIMIT) {
        return pen_error(PEN_CORRUPT,
                         "'%s/%s' has the last number that a record can have: if no training wrote "
                         "it, move it away",
                         log->folder, pen_commit_log_name(log->last, name));
    }
    record->number = log->last + 1;
    snprintf(beside, sizeof beside, LOG_BESIDE_FORMAT ".%" PRIx64 ".%" PRIx64, record->number,
             record->generation, log->own_incarnation);
    PEN_TRY(log_path(log, pen_commit_log_name(record->number, name), &to));
    PEN_TRY(log_path(log, beside, &from));
    PEN_TRY(pen_status_add_context(pen_commit_record_encode(record, log->scratch, &bytes, &count),
                                   "while adding to the records in '%s'", log->folder));
    log_entry entry = {0}; // as it will be read, taken in when it is there
    PEN_TRY(log_reserve(log, &entry.arena));
    pen_status status = pen_commit_record_decode(bytes, count, entry.arena, &entry.record);
    if (status == PEN_OK) status = log_write_beside(log, from, bytes, count);
    if (status == PEN_OK && is_manifest && PEN_FAILPOINT("coordinator.manifest_written")) {
        status = pen_error(PEN_IO, "failed as the test wants it, before the manifest is published");
    }
    if (status != PEN_OK) {
        log_release(log, entry.arena);
        return status;
    }
    status = log_publish(log, from, to, record, out_is_taken);
    if (status == PEN_OK && is_manifest && PEN_FAILPOINT("coordinator.manifest_published")) {
        status = pen_error(PEN_IO, "failed as the test wants it, after the manifest was published");
    }
    log->is_uncertain = status != PEN_OK;
    pen_status_ignore(log->disk->kind->remove(log->disk, from), "it is in nobody's way");
    if (status == PEN_OK && !*out_is_taken) return log_take(log, &entry);
    log_release(log, entry.arena);
    return status;
}

// The number after the last known one, by an atomic create. Where another has it, what it is
// decides: a higher generation supersedes, anything else is read and the next number tried.
static pen_status log_append(pen_commit_log *log, pen_commit_record *record) {
    if (log->is_uncertain) PEN_TRY(log_scan(log));
    if (log->job[0] != 0 && strcmp(log->job, record->job) != 0) {
        return pen_error(PEN_INVALID_INPUT, "'%s' is of job '%s', not '%s'", log->folder, log->job,
                         record->job);
    }
    if (record->kind == PEN_COMMIT_FENCE) {
        log->own_generation = record->generation;
        log->own_incarnation = record->coordinator;
        if (log_is_own(log)) {
            record->number = log->fence_number; // it was there
            return PEN_OK;
        }
    }
    for (;;) {
        bool is_taken = false;
        PEN_TRY(log_check_fence(log, record));
        PEN_TRY(log_try(log, record, &is_taken));
        if (!is_taken) return PEN_OK;
        PEN_TRY(log_scan(log));
    }
}

pen_status pen_commit_log_append(pen_commit_log *log, pen_commit_record *record) {
    const pen_status status = log_append(log, record);
    pen_arena_reset(log->scratch);
    return status;
}

// ---- removing

// Whether the shards of a manifest are there and whole.
static pen_status log_verify(const pen_shard_place *shards, const pen_commit_record *record) {
    const pen_commit_manifest *manifest = &record->manifest;
    for (uint32_t i = 0; i < manifest->shard_count; i++) {
        PEN_TRY(pen_shard_verify(shards->disk, shards->folder, &manifest->shards[i]));
    }
    return PEN_OK;
}

// Marks what stays: fences that count, the newest `keep` manifests, and beside these the one that
// the newest names as the best. One of a step that was done again since is not among them.
static void log_mark_kept(pen_commit_log *log, uint32_t keep) {
    const pen_commit_manifest *newest = &pen_commit_log_manifest(log, 0)->manifest;
    const uint64_t best = newest->keeps_best ? newest->best_step : 0; // no manifest is of step 0
    uint64_t step = UINT64_MAX;
    for (uint32_t i = log->count; i-- > 0;) {
        log_entry *entry = &log->entries[i];
        const uint64_t number = entry->record.number;
        entry->is_kept =
            number == log->last || number == log->fence_number || number == log->begin_number;
        if (!log_is_manifest(log, entry)) continue;
        if (entry->record.manifest.step >= step) continue;
        const bool is_best = entry->record.manifest.step == best;
        if (keep == 0 && !is_best) continue;
        step = entry->record.manifest.step;
        entry->is_kept = true;
        if (!is_best) keep--;
    }
}

// What could not be removed stays in the list and is tried again the next time.
static pen_status log_remove_records(pen_commit_log *log) {
    uint32_t kept = 0;
    pen_status status = PEN_OK;
    for (uint32_t i = 0; i < log->count; i++) {
        const log_entry entry = log->entries[i];
        char name[PEN_COMMIT_NAME_BYTES];
        const char *path = NULL;
        if (status == PEN_OK && !entry.is_kept) {
            status = log_path(log, pen_commit_log_name(entry.record.number, name), &path);
            if (status == PEN_OK) status = log->disk->kind->remove(log->disk, path);
            if (pen_status_get_code(status) == PEN_NOT_FOUND) {
                pen_status_ignore(status, "it is gone already");
                status = PEN_OK;
            }
            if (status == PEN_OK) {
                log_release(log, entry.arena);
                continue;
            }
        }
        log->entries[kept++] = entry;
    }
    log->count = kept;
    return status;
}

// The files that manifests name.
static pen_status log_collect_files(const pen_commit_log *log, pen_name_map *files) {
    pen_name_map_init(files, log->scratch);
    for (uint32_t i = 0; i < log->count; i++) {
        const pen_commit_manifest *manifest = &log->entries[i].record.manifest;
        for (uint32_t s = 0; s < manifest->shard_count; s++) {
            const char *file = manifest->shards[s].file;
            if (pen_name_map_find(files, file) != PEN_NAME_MAP_NONE) continue;
            PEN_TRY(pen_name_map_add(files, file, i));
        }
    }
    return PEN_OK;
}

// Shards of no manifest that no manifest to come will name: of generations before, or of steps up
// to that of the newest manifest.
static pen_status log_remove_shards(pen_commit_log *log, const pen_shard_place *shards,
                                    uint64_t newest_step) {
    pen_name_map files;
    const char *const *names = NULL;
    uint32_t count = 0;
    PEN_TRY(log_collect_files(log, &files));
    PEN_TRY(shards->disk->kind->list(shards->disk, shards->folder,
                                     PEN_COMMIT_RECORD_LIMIT * PEN_COMMIT_SHARD_LIMIT, log->scratch,
                                     &names, &count));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t generation = 0, step = 0;
        const char *path;
        if (!pen_shard_name_parse(names[i], &generation, &step)) continue;
        if (generation > log->own_generation) continue;
        if (generation == log->own_generation && step > newest_step) continue;
        if (pen_name_map_find(&files, names[i]) != PEN_NAME_MAP_NONE) continue;
        PEN_TRY(pen_arena_format(log->scratch, &path, "%s/%s", shards->folder, names[i]));
        const pen_status status = shards->disk->kind->remove(shards->disk, path);
        if (pen_status_get_code(status) != PEN_NOT_FOUND) PEN_TRY(status);
        pen_status_ignore(status, "it is gone already");
    }
    return PEN_OK;
}

// Nothing is removed before the newest checkpoint was read back and is whole, and not by a
// coordinator that was superseded.
static pen_status log_prune(pen_commit_log *log, const pen_shard_place *shards, uint32_t keep) {
    PEN_TRY(log_scan(log));
    if (!log_is_own(log)) {
        return pen_error(PEN_CANCELLED, "superseded by generation %" PRIu64,
                         pen_commit_log_generation(log));
    }
    const pen_commit_record *newest = pen_commit_log_manifest(log, 0);
    if (newest == NULL) return PEN_OK;
    if (keep < LOG_KEEP_LEAST) keep = LOG_KEEP_LEAST;
    if (PEN_PLANTED(prune_too_early)) {
        keep = 1;
    } else if (log->verified_number != newest->number) {
        const pen_status status = log_verify(shards, newest);
        if (status != PEN_OK) {
            pen_log(PEN_LOG_WARNING,
                    "the checkpoint of step %" PRIu64 " is damaged, older ones stay: %s",
                    newest->manifest.step, pen_status_message(status));
            pen_status_ignore(status, "said; nothing is removed");
            return PEN_OK;
        }
        log->verified_number = newest->number;
    }
    const uint64_t newest_step = newest->manifest.step;
    log_mark_kept(log, keep);
    const uint32_t count = log->count;
    PEN_TRY(log_remove_records(log));
    // or a loss of power brings a record back whose shards are gone
    if (log->count < count && !PEN_PLANTED(power_removal_unordered)) {
        PEN_TRY(log->disk->kind->sync_path(log->disk, log->folder));
    }
    return log_remove_shards(log, shards, newest_step);
}

pen_status pen_commit_log_prune(pen_commit_log *log, const pen_shard_place *shards, uint32_t keep) {
    const pen_status status = log_prune(log, shards, keep);
    pen_arena_reset(log->scratch);
    return status;
}
