// Where workers write their parts of a checkpoint. Each worker writes beneath one folder, which it
// chose when it started and says in HELLO; it is told a name beneath that, and nothing else.

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/system/file_beneath.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/coordinator/coordinator_shards.h"

// A folder that cannot be looked at is beneath nobody's.
void pen_coordinator_resolve_store(pen_coordinator *c, const char *folder) {
    pen_arena *arena = NULL;
    const char *path = "";
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = pen_path_resolve(folder, arena, &path);
    pen_mutex_lock(&c->lock);
    c->save.resolved[0] = '\0';
    if (status == PEN_OK && strlen(path) < sizeof c->save.resolved) {
        memcpy(c->save.resolved, path, strlen(path) + 1);
    }
    pen_mutex_unlock(&c->lock);
    pen_status_ignore(status, "workers are told that it is beneath no folder of theirs");
    pen_arena_destroy(arena);
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

// Workers of one machine may have one folder, and jobs may share it. A folder that is not beneath
// the worker's is told as it is, and refused there by name.
void pen_coordinator_name_store(pen_coordinator *c, uint32_t worker,
                                char out_name[PEN_MESSAGE_TEXT_BYTES]) {
    char job[PEN_MESSAGE_JOB_BYTES + 8];
    if (c->setup.is_local_store) {
        store_format_job(c, job, sizeof job);
        snprintf(out_name, PEN_MESSAGE_TEXT_BYTES, "%s/worker-%u", job, worker);
        return;
    }
    pen_mutex_lock(&c->lock);
    const char *name = pen_path_find_beneath(c->workers[worker].store, c->save.resolved);
    snprintf(out_name, PEN_MESSAGE_TEXT_BYTES, "%s", name == NULL ? c->save.folder : name);
    pen_mutex_unlock(&c->lock);
}

// Said when a worker is loaded, before anything is computed: it names what can be done at the
// worker and in the job.
pen_status pen_coordinator_check_store(const pen_coordinator *c, uint32_t worker) {
    const char *store = c->workers[worker].store, *folder = c->save.resolved;
    const char *name = c->spec->workers[worker].name;
    if (c->setup.save_folder == NULL) return PEN_OK;
    if (store[0] == '\0' && c->setup.is_local_store) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s has no folder to write in, and the job wants a part of each worker "
                         "(checkpoint.shared: false): start it with `penstock worker --store DIR`",
                         name);
    }
    if (c->setup.is_local_store || pen_path_find_beneath(store, folder) != NULL) return PEN_OK;
    if (store[0] == '\0') {
        return pen_error(PEN_INVALID_INPUT,
                         "%s has no folder to write in, and the checkpoints of all workers are to "
                         "be in '%.250s': start it with `penstock worker --store %.250s`",
                         name, folder, folder);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "%s writes only beneath '%.250s', and the checkpoints of all workers are to "
                     "be in '%.250s' (checkpoint.shared: true): start it with `penstock worker "
                     "--store %.250s`, or let each worker write to a folder of its own with "
                     "`checkpoint: {shared: false}`",
                     name, store, folder, folder);
}
