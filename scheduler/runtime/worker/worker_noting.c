// What a worker keeps of a task, so that another can compute it again.

#include "base/log.h"
#include "scheduler/runtime/worker/worker_device.h"

#define NOTING_LISTS 8 // of a stage and microbatch: forward, backward or its halves

static bool noting_is_of(const pen_run_note *note, const pen_run_task *task) {
    return task->task.kind != PEN_TASK_UPDATE && task->task.stage == note->stage &&
           task->task.microbatch == note->microbatch && task->list != PEN_RUN_LIST_NONE;
}

static uint32_t noting_find_lists(const pen_worker_run *run, const pen_run_note *note,
                                  uint32_t out_lists[NOTING_LISTS]) {
    const pen_run_form *form = &run->table->forms[0];
    const pen_run_device *device = &form->devices[note->device];
    uint32_t count = 0;
    for (uint32_t t = device->task_first; t < device->task_end && count < NOTING_LISTS; t++) {
        if (noting_is_of(note, &form->tasks[t])) out_lists[count++] = form->tasks[t].list;
    }
    return count;
}

pen_status pen_worker_run_note(pen_worker_run *run, const pen_run_note *note) {
    uint32_t lists[NOTING_LISTS];
    pen_evidence *old = NULL;
    const bool is_here =
        note->device < run->table->device_count && run->local_of_device[note->device] != UINT32_MAX;
    if (!is_here || noting_find_lists(run, note, lists) == 0) {
        return pen_error(PEN_CORRUPT, "told to keep stage %u, microbatch %u of device %u",
                         note->stage, note->microbatch, note->device);
    }
    pen_mutex_lock(&run->lock);
    if (!run->noting.is_in_use) { // else nothing is kept this time
        old = run->noting.evidence;
        run->noting = (worker_noting){.is_wanted = true, .note = *note};
    }
    pen_mutex_unlock(&run->lock);
    pen_evidence_destroy(old);
    return PEN_OK;
}

const void *pen_worker_run_find_evidence(pen_worker_run *run, uint64_t *out_count) {
    pen_mutex_lock(&run->lock);
    const pen_evidence *evidence = run->noting.is_whole ? run->noting.evidence : NULL;
    pen_mutex_unlock(&run->lock);
    *out_count = 0;
    return evidence == NULL ? NULL : pen_evidence_bytes(evidence, out_count);
}

void pen_worker_run_drop_evidence(pen_worker_run *run) {
    pen_mutex_lock(&run->lock);
    pen_evidence *evidence = run->noting.is_whole ? run->noting.evidence : NULL;
    if (evidence != NULL) run->noting = (worker_noting){0};
    pen_mutex_unlock(&run->lock);
    pen_evidence_destroy(evidence);
}

// Evidence is made by its first task. Where there is no memory for it, there is none: the training
// goes on.
pen_evidence *pen_worker_run_begin_noting(worker_device *device, const pen_run_round *round,
                                          const pen_run_task *task,
                                          const pen_run_context *context) {
    pen_worker_run *run = device->run;
    worker_noting *noting = &run->noting;
    uint32_t lists[NOTING_LISTS];
    pen_status status = PEN_OK;
    pen_mutex_lock(&run->lock);
    const pen_run_note note = noting->note;
    const bool is_noted = noting->is_wanted && round->form == 0 && round->round == note.round &&
                          device->index == note.device && noting_is_of(&note, task);
    if (is_noted) noting->is_in_use = true;
    pen_evidence *evidence = noting->evidence;
    pen_mutex_unlock(&run->lock);
    if (!is_noted) return NULL;
    if (evidence == NULL) {
        status =
            pen_evidence_create(device->executors[0], lists, noting_find_lists(run, &note, lists),
                                note.microbatch, &evidence);
    }
    if (status == PEN_OK) status = pen_evidence_begin_list(evidence, task->list, context);
    const bool is_kept = status == PEN_OK;
    if (!is_kept) pen_log(PEN_LOG_DEBUG, "no audit: %s", pen_status_message(status));
    pen_status_ignore(status, "the coordinator is told that there is nothing");
    pen_mutex_lock(&run->lock);
    noting->evidence = is_kept ? evidence : NULL;
    noting->is_wanted = is_kept;
    noting->is_in_use = is_kept;
    pen_mutex_unlock(&run->lock);
    if (is_kept) return evidence;
    pen_evidence_destroy(evidence);
    return NULL;
}

void pen_worker_run_end_noting(worker_device *device, pen_evidence *evidence) {
    pen_worker_run *run = device->run;
    if (evidence == NULL) return;
    pen_evidence_end_list(evidence);
    pen_mutex_lock(&run->lock);
    run->noting.is_in_use = false;
    run->noting.is_whole = pen_evidence_is_whole(evidence);
    if (run->noting.is_whole) run->noting.is_wanted = false;
    pen_mutex_unlock(&run->lock);
}
