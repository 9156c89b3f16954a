#include "scheduler/checkpoint/order_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "scheduler/checkpoint/checkpoint_state.h"

#define BOOK_NAME_FORMAT "order.%012" PRIu64
#define BOOK_FOLDER_LIMIT 4096u // files that the folder of records may have
#define BOOK_FIRST_ROOM 1024u   // steps
#define BOOK_PLACES 2           // a folder of checkpoints, and its mirror

// A folder that the record is kept in.
typedef struct book_place {
    const char *folder;
    pen_disk_file *file; // NULL: there is none, or writing it failed
    pen_order_writer writer;
    bool is_synced; // all that the file has
    bool is_said;   // that it could not be written
} book_place;

struct pen_order_book {
    pen_disk *disk;
    pen_arena *arena;
    pen_arena *scratch; // of one call
    char of[PEN_ORDER_OF_BYTES];
    pen_step_order *steps; // [count], [room]; on the heap, since it grows
    uint64_t count;
    uint64_t room;
    uint64_t generation;
    book_place places[BOOK_PLACES];
    uint32_t place_count; // 0: it is kept nowhere
};

pen_status pen_order_describe(const pen_checkpoint_subject *subject,
                              char out_of[PEN_ORDER_OF_BYTES]) {
    const pen_job_train *train = &subject->job->train;
    const pen_import_options options = pen_job_import_options(subject->job);
    char hash[PEN_CHECKPOINT_HASH_BYTES], consistency[PEN_JOB_CONSISTENCY_BYTES];
    PEN_TRY(pen_checkpoint_hash_model(subject->job->model.file, &options, hash));
    snprintf(
        out_of, PEN_ORDER_OF_BYTES,
        "model %s, examples %" PRIu64 ", seed %lld, batch %lld, microbatches %lld, lanes %lld, "
        "shuffle %s, drop_last %s, consistency %s",
        hash, subject->example_count, (long long)train->seed, (long long)train->batch,
        (long long)train->microbatches, (long long)train->lanes, train->shuffle ? "true" : "false",
        train->drop_last ? "true" : "false", pen_job_format_consistency(subject->job, consistency));
    return PEN_OK;
}

pen_status pen_order_book_create(pen_disk *disk, const char *of, pen_order_book **out_book) {
    pen_order_book *book = pen_memory_allocate(1, sizeof *book);
    if (book == NULL) return pen_error_out_of_memory();
    book->disk = disk == NULL ? pen_disk_of_machine() : disk;
    snprintf(book->of, sizeof book->of, "%s", of);
    pen_status status = pen_arena_create(&book->arena);
    if (status == PEN_OK) status = pen_arena_create_within(book->arena, &book->scratch);
    if (status != PEN_OK) {
        pen_order_book_destroy(book);
        return status;
    }
    *out_book = book;
    return PEN_OK;
}

// Gives the file up: what it has is not known any more.
static void book_close(pen_order_book *book, book_place *place) {
    if (place->file != NULL) book->disk->kind->close(place->file);
    place->file = NULL;
}

void pen_order_book_destroy(pen_order_book *book) {
    if (book == NULL) return;
    for (uint32_t i = 0; i < book->place_count; i++) {
        book_close(book, &book->places[i]);
    }
    pen_memory_free(book->steps);
    pen_arena_destroy(book->arena);
    pen_memory_free(book);
}

uint64_t pen_order_book_count(const pen_order_book *book) {
    return book->count;
}

const pen_step_order *pen_order_book_find(const pen_order_book *book, uint64_t step) {
    return step == 0 || step > book->count ? NULL : &book->steps[step - 1];
}

static bool book_is_same(const pen_step_order *a, const pen_step_order *b) {
    return a->lanes == b->lanes && a->count == b->count;
}

// A step behind those that are known.
static pen_status book_note(pen_order_book *book, const pen_step_order *order) {
    if (book->count == book->room) {
        const uint64_t room = book->room == 0 ? BOOK_FIRST_ROOM : 2 * book->room;
        pen_step_order *steps = pen_memory_allocate(room, sizeof *steps);
        if (steps == NULL) return pen_error_out_of_memory();
        if (book->count > 0) memcpy(steps, book->steps, book->count * sizeof *steps);
        pen_memory_free(book->steps);
        book->steps = steps;
        book->room = room;
    }
    book->steps[book->count++] = *order;
    return PEN_OK;
}

// ---- reading

// "order.000000000012"
static bool book_read_name(const char *name, uint64_t *out_generation) {
    char again[32];
    uint64_t generation = 0;
    if (strncmp(name, "order.", 6) != 0 || strlen(name) != 18) return false;
    for (const char *at = name + 6; *at != 0; at++) {
        if (*at < '0' || *at > '9') return false;
        generation = 10 * generation + (uint64_t)(*at - '0');
    }
    snprintf(again, sizeof again, BOOK_NAME_FORMAT, generation);
    *out_generation = generation;
    return strcmp(again, name) == 0;
}

// The records of a folder, by generation; none where it has no such folder.
static pen_status book_list(pen_order_book *book, const char *folder, const char *const **out_names,
                            uint32_t *out_count) {
    const pen_status status = book->disk->kind->list(book->disk, folder, BOOK_FOLDER_LIMIT,
                                                     book->scratch, out_names, out_count);
    *out_count = status == PEN_OK ? *out_count : 0;
    const pen_status_code code = pen_status_get_code(status);
    if (code != PEN_NOT_FOUND && code != PEN_IO) return status;
    pen_status_ignore(status, "it may be a file, or is told of where it is opened");
    return PEN_OK;
}

// Of the newest record of a folder of checkpoints; 0: there is none, or it cannot be seen.
static uint64_t book_find_generation(pen_order_book *book, const char *folder) {
    const char *const *names = NULL;
    const char *path;
    uint32_t count = 0;
    uint64_t newest = 0;
    pen_status status = pen_arena_format(book->scratch, &path, "%s/order", folder);
    if (status == PEN_OK) status = book_list(book, path, &names, &count);
    for (uint32_t i = 0; i < count; i++) { // in order
        uint64_t generation = 0;
        if (book_read_name(names[i], &generation)) newest = generation;
    }
    pen_status_ignore(status, "reading it says more");
    pen_arena_reset(book->scratch);
    return newest;
}

// The newest record of a folder of checkpoints; the path itself where there is none.
static pen_status book_find(pen_order_book *book, const char *path, const char **out_path) {
    const char *const *names = NULL;
    const char *folder;
    uint32_t count = 0;
    uint64_t generation = 0;
    PEN_TRY(pen_arena_format(book->scratch, &folder, "%s/order", path));
    PEN_TRY(book_list(book, folder, &names, &count));
    *out_path = NULL;
    for (uint32_t i = 0; i < count; i++) { // in order
        if (!book_read_name(names[i], &generation)) continue;
        PEN_TRY(pen_arena_format(book->scratch, out_path, "%s/%s", folder, names[i]));
    }
    if (*out_path != NULL) return PEN_OK;
    uint64_t bytes;
    const pen_status status = book->disk->kind->size(book->disk, path, &bytes);
    *out_path = path;
    if (status == PEN_OK) return PEN_OK;
    pen_status_ignore(status, "said in other words");
    return pen_error(PEN_NOT_FOUND, "there is no record of the order of lanes in %s", path);
}

// Lives in the scratch memory of the call.
static pen_status book_load(pen_order_book *book, const char *path, pen_order_record *out_record) {
    const pen_disk_kind *kind = book->disk->kind;
    uint64_t bytes = 0;
    uint32_t line = 1;
    char *text;
    PEN_TRY(kind->size(book->disk, path, &bytes));
    if (bytes > PEN_ORDER_RECORD_BYTES_LIMIT) {
        return pen_status_at_position(
            pen_error(PEN_CORRUPT, "%" PRIu64 " bytes are no record of the order of lanes", bytes),
            path, 1, 1);
    }
    PEN_TRY(PEN_NEW(book->scratch, bytes, &text));
    PEN_TRY(kind->read(book->disk, path, 0, text, bytes));
    const pen_status status =
        pen_order_record_decode(text, bytes, book->scratch, out_record, &line);
    return pen_status_at_position(status, path, line, 1);
}

// The line of a step in a record.
static uint32_t book_line(uint64_t step) {
    const uint64_t line = step + 3; // behind title, training and checksum
    return line < UINT32_MAX ? (uint32_t)line : UINT32_MAX;
}

// Whether enough of a record is whole.
static pen_status book_check_length(const char *path, const pen_order_record *record,
                                    uint64_t least) {
    const uint64_t next = record->step_count + 1;
    if (record->damage != NULL && least > record->step_count) {
        return pen_status_at_position(pen_error(PEN_CORRUPT,
                                                "the order of step %" PRIu64 " cannot be read: %s",
                                                next, record->damage),
                                      path, book_line(next), 1);
    }
    if (record->damage != NULL) {
        pen_log(PEN_LOG_NOTE,
                "%s has the order of %" PRIu64 " steps; then %s, which was being written when its "
                "machine stopped",
                path, record->step_count, record->damage);
    }
    if (least == UINT64_MAX || least <= record->step_count) return PEN_OK;
    return pen_status_at_position(pen_error(PEN_CORRUPT,
                                            "the record has the order of %" PRIu64
                                            " steps, of which %" PRIu64
                                            " were done by the checkpoint",
                                            record->step_count, least),
                                  path, book_line(next), 1);
}

// What two records say of a step must be the same: they are then of one run, as far as both go.
static pen_status book_read(pen_order_book *book, const char *given, uint64_t least) {
    pen_order_record record = {0};
    const char *path;
    PEN_TRY(book_find(book, given, &path));
    PEN_TRY(book_load(book, path, &record));
    if (strcmp(record.of, book->of) != 0) {
        return pen_status_at_position(
            pen_error(PEN_INVALID_INPUT,
                      "the record is of another training: found '%s', expected '%s'", record.of,
                      book->of),
            path, 2, 1);
    }
    PEN_TRY(book_check_length(path, &record, least));
    for (uint64_t s = 0; s < record.step_count; s++) {
        if (s < book->count && !book_is_same(&book->steps[s], &record.steps[s])) {
            return pen_status_at_position(
                pen_error(PEN_INVALID_INPUT,
                          "step %" PRIu64 " has another order here than in the record read before",
                          s + 1),
                path, book_line(s + 1), 1);
        }
        if (s >= book->count) PEN_TRY(book_note(book, &record.steps[s]));
    }
    return PEN_OK;
}

pen_status pen_order_book_read(pen_order_book *book, const char *path, uint64_t least) {
    const pen_status status = book_read(book, path, least);
    pen_arena_reset(book->scratch);
    return status;
}

static bool book_is_of_place(pen_status status) {
    return pen_disk_is_at_fault(status) || pen_status_get_code(status) == PEN_CORRUPT;
}

// A folder that was away for a while has an older record than the other, which may order steps
// that were done again otherwise.
pen_status pen_order_book_read_either(pen_order_book *book, const char *folder, const char *mirror,
                                      uint64_t least) {
    if (mirror == NULL) return pen_order_book_read(book, folder, least);
    const bool is_mirror_newer =
        book_find_generation(book, mirror) > book_find_generation(book, folder);
    const char *first = is_mirror_newer ? mirror : folder;
    const char *second = is_mirror_newer ? folder : mirror;
    const pen_status status = pen_order_book_read(book, first, least);
    if (!book_is_of_place(status)) return status;
    const pen_status other = pen_order_book_read(book, second, least);
    if (other != PEN_OK) return pen_status_join(status, other);
    pen_log(PEN_LOG_WARNING, "%s; that of %s is used", pen_status_message(status), second);
    pen_status_ignore(status, "said; the other is whole");
    return PEN_OK;
}

// ---- writing

static pen_status book_append(pen_order_book *book, book_place *place,
                              const pen_step_order *order) {
    char line[PEN_ORDER_LINE_BYTES];
    const size_t bytes = pen_order_write_step(&place->writer, order, line);
    place->is_synced = false;
    return book->disk->kind->append(place->file, line, bytes);
}

// All that is known, into a new file under a name beside.
static pen_status book_write_beside(pen_order_book *book, book_place *place, const char *beside) {
    const char *head;
    size_t bytes = 0;
    PEN_TRY(pen_order_write_head(&place->writer, book->of, book->scratch, &head, &bytes));
    PEN_TRY(book->disk->kind->create(book->disk, beside, &place->file));
    PEN_TRY(book->disk->kind->append(place->file, head, bytes));
    for (uint64_t s = 0; s < book->count; s++) {
        PEN_TRY(book_append(book, place, &book->steps[s]));
    }
    return book->disk->kind->sync(place->file);
}

// Those of generations before are in ours, too.
static pen_status book_remove_earlier(pen_order_book *book, const char *folder) {
    const char *const *names = NULL;
    uint32_t count = 0;
    PEN_TRY(book_list(book, folder, &names, &count));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t generation = 0;
        const char *path;
        if (!book_read_name(names[i], &generation) || generation >= book->generation) continue;
        PEN_TRY(pen_arena_format(book->scratch, &path, "%s/%s", folder, names[i]));
        pen_status_ignore(book->disk->kind->remove(book->disk, path), "it is in nobody's way");
    }
    return PEN_OK;
}

// The record anew: whole and durable before it has its name. It stays open, for steps to come.
static pen_status book_write(pen_order_book *book, book_place *place) {
    const pen_disk_kind *kind = book->disk->kind;
    const char *path, *beside;
    book_close(book, place);
    PEN_TRY(kind->make_folder(book->disk, place->folder));
    PEN_TRY(pen_arena_format(book->scratch, &path, "%s/" BOOK_NAME_FORMAT, place->folder,
                             book->generation));
    PEN_TRY(pen_arena_format(book->scratch, &beside, "%s/tmp.%012" PRIu64, place->folder,
                             book->generation));
    pen_status status = book_write_beside(book, place, beside);
    if (status == PEN_OK) status = kind->rename(book->disk, beside, path);
    if (status == PEN_OK) status = kind->sync_path(book->disk, place->folder);
    if (status == PEN_OK) status = book_remove_earlier(book, place->folder);
    if (status != PEN_OK) book_close(book, place);
    place->is_synced = status == PEN_OK;
    return status;
}

pen_status pen_order_book_keep(pen_order_book *book, const char *folder, uint64_t generation) {
    PEN_ASSERT(book->place_count < BOOK_PLACES && generation > 0);
    book_place *place = &book->places[book->place_count];
    PEN_TRY(pen_arena_format(book->arena, &place->folder, "%s/order", folder));
    book->place_count += 1;
    book->generation = generation;
    const pen_status status = book_write(book, place);
    pen_arena_reset(book->scratch);
    return pen_status_add_context(status, "while writing the order of lanes to %s", folder);
}

pen_status pen_order_book_keep_both(pen_order_book *book, const char *folder, const char *mirror,
                                    uint64_t generation) {
    const pen_status status = pen_order_book_keep(book, folder, generation);
    if (mirror == NULL) return status;
    const pen_status other = pen_order_book_keep(book, mirror, generation);
    const bool is_one = (status == PEN_OK) != (other == PEN_OK);
    const pen_status failed = pen_status_join(status, other);
    if (!is_one || !book_is_of_place(failed)) return failed;
    pen_log(PEN_LOG_WARNING, "%s; tried again with each checkpoint", pen_status_message(failed));
    pen_status_ignore(failed, "said; the other folder has it");
    return PEN_OK;
}

// A disk that refuses costs a warning, until a checkpoint would need what it refused.
static void book_lose(pen_order_book *book, book_place *place, pen_status take_status) {
    if (!place->is_said) {
        pen_log(PEN_LOG_WARNING, "the order of lanes is not recorded in %s for now: %s",
                place->folder, pen_status_message(take_status));
    }
    place->is_said = true;
    pen_status_ignore(take_status, "said, and written again before the next checkpoint");
    book_close(book, place);
}

pen_status pen_order_book_add(pen_order_book *book, uint64_t step, const pen_step_order *order) {
    PEN_ASSERT(step > 0 && step <= book->count + 1);
    if (step <= book->count) {
        if (book_is_same(&book->steps[step - 1], order)) return PEN_OK;
        return pen_error(PEN_CORRUPT, "step %" PRIu64 " was done in another order before", step);
    }
    PEN_TRY(book_note(book, order));
    for (uint32_t i = 0; i < book->place_count; i++) {
        book_place *place = &book->places[i];
        if (place->file == NULL) continue;
        const pen_status status = book_append(book, place, order);
        if (status != PEN_OK) book_lose(book, place, status);
    }
    return PEN_OK;
}

static pen_status book_sync(pen_order_book *book, book_place *place) {
    pen_status status = PEN_OK;
    if (place->file != NULL && (place->is_synced || PEN_PLANTED(power_order_unsynced))) {
        return PEN_OK;
    }
    if (place->file != NULL) {
        status = book->disk->kind->sync(place->file);
        place->is_synced = status == PEN_OK;
        if (status != PEN_OK) book_close(book, place);
    } else {
        status = book_write(book, place);
        pen_arena_reset(book->scratch);
    }
    return pen_status_add_context(status, "while writing the order of lanes to %s", place->folder);
}

// One folder that has it is enough, with a warning about the other.
pen_status pen_order_book_sync(pen_order_book *book) {
    pen_status statuses[BOOK_PLACES], all = PEN_OK;
    uint32_t done_count = 0;
    for (uint32_t i = 0; i < book->place_count; i++) {
        statuses[i] = book_sync(book, &book->places[i]);
        done_count += statuses[i] == PEN_OK;
    }
    for (uint32_t i = 0; i < book->place_count; i++) {
        book_place *place = &book->places[i];
        if (statuses[i] == PEN_OK) {
            place->is_said = false;
        } else if (done_count > 0) {
            book_lose(book, place, statuses[i]);
        } else {
            all = pen_status_join(all, statuses[i]);
        }
    }
    return all;
}
