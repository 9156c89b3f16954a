// Where workers write their parts of a checkpoint. Each worker writes beneath one or two folders,
// which it chose when it started. Where all write to one folder, whether they see it is told by a
// mark in it (scheduler/store/shared_folder.h); paths do not say so.

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "base/system/file_beneath.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

#define STORE_LINE_END '\n' // between paths

// "" where it cannot be looked at, or a worker could not be told.
static void store_resolve(const char *folder, char out_path[PEN_MESSAGE_TEXT_BYTES]) {
    pen_arena *arena = NULL;
    const char *path = "";
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = pen_path_resolve(folder, arena, &path);
    const bool is_sayable = status == PEN_OK && strlen(path) < PEN_MESSAGE_TEXT_BYTES &&
                            strchr(path, STORE_LINE_END) == NULL;
    snprintf(out_path, PEN_MESSAGE_TEXT_BYTES, "%s", is_sayable ? path : "");
    pen_status_ignore(status, "workers do not see it then, and say so");
    pen_arena_destroy(arena);
}

// ---- before anything is saved

void pen_coordinator_seek_folders(pen_coordinator *c) {
    coordinator_sought *sought = &c->sought;
    sought->given[0] = c->setup.save_folder;
    sought->given[1] = c->setup.save_folder == NULL ? NULL : c->setup.save_mirror;
    for (uint32_t i = 0; i < PEN_SHARED_FOLDER_LIMIT; i++) {
        if (sought->given[i] == NULL) continue;
        store_resolve(sought->given[i], sought->resolved[i]);
        sought->open |= 1u << i;
    }
}

// Of one that is away nothing is known yet: then workers are believed. Whoever marked before has
// been superseded.
void pen_coordinator_mark_folders(pen_coordinator *c) {
    coordinator_sought *sought = &c->sought;
    if (c->setup.is_local_store) return;
    sought->mark = pen_random_incarnation();
    for (uint32_t i = 0; i < PEN_SHARED_FOLDER_LIMIT; i++) {
        if (sought->given[i] == NULL || (sought->marked >> i & 1) != 0) continue;
        pen_shared_folder_sweep(sought->given[i]);
        const pen_status status = pen_shared_folder_mark(sought->given[i], sought->mark + i);
        store_resolve(sought->given[i], sought->resolved[i]); // it is there now
        if (status == PEN_OK && sought->resolved[i][0] != '\0') sought->marked |= 1u << i;
        pen_status_ignore(status, "it is tried again with each checkpoint, and said then");
    }
}

void pen_coordinator_unmark_folders(pen_coordinator *c) {
    for (uint32_t i = 0; i < PEN_SHARED_FOLDER_LIMIT; i++) {
        if ((c->sought.marked >> i & 1) == 0) continue;
        pen_shared_folder_unmark(c->sought.given[i], c->sought.mark + i);
    }
}

void pen_coordinator_name_folders(const pen_coordinator *c, pen_message *assign) {
    const coordinator_sought *sought = &c->sought;
    if (sought->marked == 0) return;
    const int length = snprintf(assign->text, sizeof assign->text, "%s%c%s", sought->resolved[0],
                                STORE_LINE_END, sought->resolved[1]);
    if (length >= (int)sizeof assign->text) assign->text[strlen(sought->resolved[0])] = '\0';
    assign->mark = sought->mark;
}

static pen_status store_refuse(const pen_coordinator *c, uint32_t worker) {
    const char *folder = c->sought.resolved[0];
    return pen_error(PEN_INVALID_INPUT,
                     "%s writes only beneath '%.250s', where it does not see '%.250s', the folder "
                     "for the checkpoints of all workers (checkpoint.shared: true): start it with "
                     "`penstock worker --store DIR`, where DIR is that folder as its machine calls "
                     "it, or one above; or let each worker write to a folder of its own with "
                     "`checkpoint: {shared: false}`",
                     c->spec->workers[worker].name, c->workers[worker].store, folder);
}

// Said when a worker is ready, before anything is computed: it names what can be done at the worker
// and in the job. One that is told of one folder for want of room sees the other as far as is
// known.
pen_status pen_coordinator_take_seen(pen_coordinator *c, uint32_t worker, uint32_t seen) {
    coordinator_sought *sought = &c->sought;
    pen_status status = PEN_OK;
    pen_mutex_lock(&c->lock);
    const uint32_t before = sought->open;
    sought->open &= seen | ~sought->marked;
    for (uint32_t i = 0; i < PEN_SHARED_FOLDER_LIMIT; i++) {
        const bool is_unseen = ((before & ~sought->open) >> i & 1) != 0;
        if (is_unseen) sought->without[i] = worker;
    }
    if (before != 0 && sought->open == 0) status = store_refuse(c, worker);
    pen_mutex_unlock(&c->lock);
    return status;
}

void pen_coordinator_say_unseen(pen_coordinator *c) {
    const coordinator_sought *sought = &c->sought;
    if (sought->given[1] == NULL || c->setup.is_local_store) return;
    for (uint32_t i = 0; i < PEN_SHARED_FOLDER_LIMIT; i++) {
        if (sought->without[i] == 0) continue;
        pen_log(PEN_LOG_WARNING,
                "%s does not see '%s' beneath the folders that it writes to: while '%s' takes no "
                "files, there are no checkpoints; `penstock worker --store DIR --mirror DIR` names "
                "both",
                c->spec->workers[sought->without[i]].name, sought->resolved[i],
                sought->resolved[1 - i]);
    }
}

bool pen_coordinator_writes_to(pen_coordinator *coordinator, const char *folder) {
    const coordinator_sought *sought = &coordinator->sought;
    bool is_open = true;
    if (coordinator->setup.is_local_store) return true;
    pen_mutex_lock(&coordinator->lock);
    for (uint32_t i = 0; i < PEN_SHARED_FOLDER_LIMIT; i++) {
        if (sought->given[i] == NULL || strcmp(sought->given[i], folder) != 0) continue;
        is_open = (sought->open >> i & 1) != 0;
    }
    pen_mutex_unlock(&coordinator->lock);
    return is_open;
}

pen_status pen_coordinator_check_store(const pen_coordinator *c, uint32_t worker) {
    const char *name = c->spec->workers[worker].name;
    if (c->setup.save_folder == NULL || c->workers[worker].store[0] != '\0') return PEN_OK;
    if (c->setup.is_local_store) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s has no folder to write in, and the job wants a part of each worker "
                         "(checkpoint.shared: false): start it with `penstock worker --store DIR`",
                         name);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "%s has no folder to write in, and the checkpoints of all workers are to "
                     "be in '%.250s': start it with `penstock worker --store %.250s`",
                     name, c->sought.resolved[0], c->sought.resolved[0]);
}

// ---- a save

// Also that the folder can be written to shows here, before anybody copies anything.
pen_status pen_coordinator_mark_save(pen_coordinator *c, const char *folder) {
    if (c->setup.is_local_store) return PEN_OK;
    c->save.mark = pen_random_incarnation();
    PEN_TRY(pen_shared_folder_mark(folder, c->save.mark));
    store_resolve(folder, c->save.resolved);
    return PEN_OK;
}

void pen_coordinator_unmark_save(pen_coordinator *c) {
    if (!c->setup.is_local_store) pen_shared_folder_unmark(c->save.folder, c->save.mark);
}

// As part of a folder's name.
static void store_format_job(const pen_coordinator *c, char *out_text, size_t size) {
    const char *job = c->setup.job == NULL ? "" : c->setup.job;
    snprintf(out_text, size, "%s%.*s", job[0] == '\0' || job[0] == '.' ? "job" : "",
             PEN_MESSAGE_JOB_BYTES, job);
    for (char *at = out_text; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr("-_.", *at) == NULL) *at = '_';
    }
}

// Workers of one machine may have one folder, and jobs may share it.
void pen_coordinator_name_store(pen_coordinator *c, uint32_t worker, pen_message *snapshot) {
    char job[PEN_MESSAGE_JOB_BYTES + 8];
    snapshot->is_local = c->setup.is_local_store;
    if (c->setup.is_local_store) {
        store_format_job(c, job, sizeof job);
        snprintf(snapshot->text, sizeof snapshot->text, "%s/worker-%u", job, worker);
        return;
    }
    memcpy(snapshot->text, c->save.resolved, sizeof snapshot->text);
    snapshot->mark = c->save.mark;
}
