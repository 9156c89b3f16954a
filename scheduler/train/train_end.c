#include "scheduler/train/train_end.h"

#include <math.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/system/interrupt.h"
#include "partition/plan/plan.h"
#include "scheduler/checkpoint/model_export.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/store/disk.h"

// Between two tries: the first soon, for a disk may be free at once; later ones cost nothing much.
#define END_PAUSE_FIRST_SECONDS 0.2
#define END_PAUSE_SECONDS 10.0
#define END_LOOK_SECONDS 0.05 // for the wish to end

typedef struct train_end {
    pen_trainer *trainer;
    const pen_train_outputs *outputs;
} train_end;

pen_status pen_train_insist(pen_trainer *trainer, pen_status (*ask)(void *context), void *context) {
    pen_status status = ask(context);
    while (status != PEN_OK) {
        PEN_TRY(pen_trainer_recover(trainer, status));
        status = ask(context);
    }
    return PEN_OK;
}

static pen_status end_save_file(void *context, const char *path) {
    return pen_trainer_save(context, path);
}

// What one file fails to take, another may.
static pen_status end_save(void *context) {
    const train_end *end = context;
    const pen_train_outputs *outputs = end->outputs;
    const pen_job *job = outputs->job;
    pen_status status = PEN_OK;
    if (outputs->save != NULL) status = end_save_file(end->trainer, outputs->save);
    if (outputs->parameters != NULL) {
        status = pen_status_join(status, end_save_file(end->trainer, outputs->parameters));
    }
    if (job->outputs.adapters != NULL) {
        status =
            pen_status_join(status, pen_trainer_save_adapters(end->trainer, job->outputs.adapters));
    }
    if (job->outputs.export == NULL) return status;
    const pen_engine *engine = pen_trainer_engine(end->trainer);
    const pen_import_options import = pen_job_import_options(job);
    const pen_model_export_source source = {
        .model_path = job->model.file,
        .import = &import,
        .plan = engine->kind->plan != NULL ? engine->kind->plan(engine) : NULL,
        .types = job->outputs.types,
        .save = end_save_file,
        .context = end->trainer};
    return pen_status_join(status, pen_model_export(&source, job->outputs.export));
}

static bool end_has_outputs(const pen_train_outputs *outputs) {
    return outputs->save != NULL || outputs->parameters != NULL ||
           outputs->job->outputs.export != NULL || outputs->job->outputs.adapters != NULL;
}

// One try. *out_may_try: what failed may go well later.
static pen_status end_try(train_end *end, bool *out_may_try) {
    const bool has_outputs = end_has_outputs(end->outputs);
    *out_may_try = false;
    const pen_status saved = pen_train_insist(end->trainer, end_save, end);
    if (saved != PEN_OK && !pen_disk_is_at_fault(saved)) return saved;
    const pen_status kept = pen_trainer_keep(end->trainer);
    if (kept != PEN_OK && !pen_disk_is_at_fault(kept)) return pen_status_join(kept, saved);
    *out_may_try = true;
    if (saved != PEN_OK) return pen_status_join(saved, kept);
    if (kept == PEN_OK || !has_outputs) return kept;
    pen_log(PEN_LOG_WARNING,
            "the last checkpoint is not written: %s; the trained parameters are, where they were "
            "wanted",
            pen_status_message(kept));
    pen_status_ignore(kept, "said: what was trained is there");
    return PEN_OK;
}

// False: somebody wants the process to end, or the time is over.
static bool end_pause(double seconds, double until) {
    const double began = pen_clock_seconds();
    while (pen_clock_seconds() < began + seconds && pen_clock_seconds() < until) {
        if (pen_interrupt_requested()) return false;
        if (pen_interrupt_take_question()) {
            pen_log(PEN_LOG_NOTE, "all steps are done; what was trained cannot be written yet");
        }
        pen_clock_pause(END_LOOK_SECONDS);
    }
    return pen_clock_seconds() < until && !pen_interrupt_requested();
}

// That nothing could be written, and what else is known of it.
static pen_status end_give_up(pen_status take_status) {
    const bool is_told = pen_interrupt_requested();
    const pen_status status =
        pen_error(PEN_NO_STORAGE, "what was trained cannot be written now%s; try again later",
                  is_told ? ", and the training was told to end"
                          : " (checkpoint.retry says how long it is tried)");
    return pen_status_join(status, take_status);
}

pen_status pen_train_end(pen_trainer *trainer, const pen_train_outputs *outputs) {
    train_end end = {trainer, outputs};
    const double until = pen_clock_seconds() + outputs->job->checkpoint.retry_seconds;
    double pause = END_PAUSE_FIRST_SECONDS;
    bool may_try, is_said = false;
    for (;;) {
        const pen_status status = end_try(&end, &may_try);
        if (status == PEN_OK || !may_try) return status;
        if (!is_said) {
            pen_log(PEN_LOG_WARNING,
                    "%s; tried again for %.0f s, while devices keep what they have",
                    pen_status_message(status), outputs->job->checkpoint.retry_seconds);
        }
        is_said = true;
        if (!end_pause(pause, until)) return end_give_up(status);
        pen_status_ignore(status, "said, and tried again");
        pause = fmin(2 * pause, END_PAUSE_SECONDS);
    }
}

// ---- before

#define END_WANT_LIMIT 5

// Bytes that are wanted in a folder.
typedef struct end_want {
    const char *path;
    uint64_t bytes;
    bool is_copy; // another has it, too
    pen_path_room room;
} end_want;

// Each file of outputs takes the model; a checkpoint takes all state, and a training writes two
// before it removes one. What is kept already is there.
static uint32_t end_list_wants(pen_trainer *trainer, const pen_train_outputs *outputs,
                               end_want out_wants[END_WANT_LIMIT]) {
    const pen_tensor_store *tensors = pen_trainer_tensors(trainer);
    uint64_t model_bytes = 0, all_bytes = 0;
    for (uint32_t t = 0; t < tensors->count; t++) {
        const pen_stored_tensor *tensor = &tensors->tensors[t];
        all_bytes += tensor->bytes;
        if (tensor->is_model) model_bytes += tensor->bytes;
    }
    const char *files[] = {outputs->save, outputs->parameters, outputs->job->outputs.export};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i] != NULL) {
            out_wants[count++] = (end_want){.path = files[i], .bytes = model_bytes};
        }
    }
    if (outputs->checkpoint != NULL) {
        const uint64_t kept = pen_trainer_step_kept(trainer);
        const bool is_done = kept >= pen_trainer_get_size(trainer).step_count;
        const uint64_t more = is_done ? 0 : kept > 0 ? 1 : 2;
        const char *folders[] = {outputs->checkpoint, outputs->mirror};
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
            if (folders[i] == NULL) continue;
            out_wants[count++] = (end_want){
                .path = folders[i], .bytes = more * all_bytes, .is_copy = outputs->mirror != NULL};
        }
    }
    return count;
}

// Wants on one disk are added up; the first of them is named.
static pen_status end_check_want(const end_want *wants, uint32_t count, const end_want *want,
                                 bool has_checkpoints) {
    uint64_t needed = 0;
    for (uint32_t j = 0; j < count; j++) {
        if (wants[j].room.disk == want->room.disk) needed += wants[j].bytes;
    }
    if (needed <= want->room.bytes) return PEN_OK;
    char left[PEN_QUANTITY_TEXT_BYTES], wanted[PEN_QUANTITY_TEXT_BYTES];
    return pen_error(PEN_NO_STORAGE,
                     "the disk of '%s' has %s left, but the training leaves %s there: its "
                     "outputs%s",
                     want->path, pen_bytes_format(want->room.bytes, left),
                     pen_bytes_format(needed, wanted),
                     has_checkpoints ? ", and two checkpoints" : "");
}

// A folder of checkpoints that has no room, or cannot be looked at, is a warning where the other
// has.
pen_status pen_train_check_room(pen_trainer *trainer, const pen_train_outputs *outputs,
                                pen_arena *arena) {
    end_want wants[END_WANT_LIMIT];
    pen_status copies = PEN_OK;
    uint32_t short_count = 0;
    const uint32_t count = end_list_wants(trainer, outputs, wants);
    for (uint32_t i = 0; i < count; i++) {
        pen_status status = pen_path_find_room(wants[i].path, arena, &wants[i].room);
        if (status == PEN_OK) continue;
        if (!wants[i].is_copy) return pen_status_join(status, copies);
        wants[i].bytes = UINT64_MAX / END_WANT_LIMIT; // no disk has that
        pen_status_ignore(status, "said as having no room");
    }
    for (uint32_t i = 0; i < count; i++) {
        const pen_status status =
            end_check_want(wants, count, &wants[i], outputs->checkpoint != NULL);
        if (status == PEN_OK) continue;
        if (!wants[i].is_copy) return pen_status_join(status, copies);
        copies = pen_status_join(copies, status);
        short_count += 1;
    }
    if (short_count != 1) return copies;
    pen_log(PEN_LOG_WARNING, "%s; the other folder of checkpoints has room",
            pen_status_message(copies));
    pen_status_ignore(copies, "said");
    return PEN_OK;
}
