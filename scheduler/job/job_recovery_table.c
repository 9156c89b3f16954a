// The keys that say how a training survives: `checkpoint` and `recovery`.
#include <string.h>

#include "scheduler/job/job.h"
#include "scheduler/job/job_table.h"
#include "scheduler/job/job_words.h"
#include "scheduler/transport/grpc/address.h"

static const pen_option_field job_checkpoint_fields[] = {
    PEN_OPTION(
        PATH, pen_job_checkpoint, dir,
        "folder that `penstock train --resume` goes on from; without it, only `retry` may be set"),
    PEN_OPTION(PATH, pen_job_checkpoint, mirror,
               "a second folder that gets each checkpoint, too: on another disk, so that losing "
               "either loses nothing"),
    PEN_OPTION(INTERVAL, pen_job_checkpoint, every,
               "how often one is written; one also after the last step",
               .minimum = PEN_OPTION_FROM(1), .default_text = "1 epoch"),
    PEN_OPTION_AS(
        "mtbf", SECONDS, pen_job_checkpoint, mtbf_seconds,
        "mean time between failures, from which how often is computed (Young, Daly); 0 s: as "
        "`every` says",
        PEN_OPTION_RANGE(0, 1e9), .default_text = "0 s"),
    PEN_OPTION(BOOL, pen_job_checkpoint, shared,
               "whether `dir` is one folder that all workers see; false: each writes into its own, "
               "and the coordinator copies all into `dir` on its machine",
               .default_text = "true"),
    PEN_OPTION(INTEGER, pen_job_checkpoint, keep, "checkpoints that stay",
               PEN_OPTION_RANGE(2, 1000000), .default_text = "2"),
    PEN_OPTION_AS("retry", SECONDS, pen_job_checkpoint, retry_seconds,
                  "how long, at the end, writing outputs and checkpoints is tried again where no "
                  "disk takes what was trained; then the training ends with code 9",
                  PEN_OPTION_RANGE(0, 1e9), .default_text = "10 min"),
};

// What is written without a folder: `retry` alone, which is about the outputs, too. Any other key
// would do nothing, and whoever wrote it would believe that checkpoints are kept.
static pen_status job_check_checkpoint(const void *object, const pen_option_source *source) {
    const pen_job_checkpoint *checkpoint = object;
    const bool has_both = checkpoint->dir != NULL && checkpoint->mirror != NULL;
    if (has_both && strcmp(checkpoint->dir, checkpoint->mirror) == 0) {
        return pen_option_blame(source, &checkpoint->mirror,
                                pen_error(PEN_INVALID_INPUT,
                                          "mirror: found the folder that `dir` is, expected one on "
                                          "another disk"));
    }
    if (checkpoint->dir != NULL) return PEN_OK;
    const pen_yaml_node *mapping = pen_option_find_node(source, &checkpoint->dir);
    for (size_t i = 0; i < sizeof job_checkpoint_fields / sizeof *job_checkpoint_fields; i++) {
        const pen_option_field *field = &job_checkpoint_fields[i];
        const void *value = (const char *)object + field->offset;
        if (field->offset == offsetof(pen_job_checkpoint, retry_seconds)) continue;
        if (pen_option_find_node(source, value) == mapping) continue; // not written
        return pen_option_blame(source, value,
                                pen_error(PEN_INVALID_INPUT,
                                          "%s: found, but no `dir`, expected the folder of "
                                          "checkpoints beside it",
                                          field->key));
    }
    return PEN_OK;
}

const pen_option_table pen_job_checkpoint_table = {
    PEN_OPTION_FIELDS(pen_job_checkpoint, job_checkpoint_fields),
    .words = pen_job_checkpoint_words,
    .explain = pen_job_explain,
    .check = job_check_checkpoint,
};

static const char *const job_on_loss_names[] = {
    [PEN_JOB_ON_LOSS_WAIT] = "wait",
    [PEN_JOB_ON_LOSS_SPARE] = "spare",
    [PEN_JOB_ON_LOSS_REPLAN] = "replan",
    [PEN_JOB_ON_LOSS_STOP] = "stop",
    NULL,
};

static const pen_option_field job_spare_item = {.kind = PEN_OPTION_TEXT, .help = "HOST:PORT"};

static const pen_option_field job_recovery_fields[] = {
    PEN_OPTION(
        CHOICE, pen_job_recovery, on_loss,
        "when a worker is lost: wait until it is back; let a spare take its place; replan, on "
        "the devices that are left; or stop",
        .choices = job_on_loss_names, .default_text = "replan"),
    PEN_OPTION_AS("grace", SECONDS, pen_job_recovery, grace_seconds,
                  "how long a lost worker has to come back; wait: then the training ends",
                  PEN_OPTION_RANGE(0, 1e9), .default_text = "30 s"),
    PEN_OPTION_AS("lease", SECONDS, pen_job_recovery, lease_seconds,
                  "how long nothing may be heard of a worker before it is lost",
                  PEN_OPTION_RANGE(0.1, 1e6), .default_text = "10 s"),
    PEN_OPTION_AS(
        "progress", SECONDS, pen_job_recovery, progress_seconds,
        "how long a step may take without anything being done; 0 s: ten planned steps, at "
        "least 20 s",
        PEN_OPTION_RANGE(0, 1e6), .default_text = "0 s"),
    PEN_OPTION(INTEGER, pen_job_recovery, attempts,
               "recoveries, one after another, in which no step is done, before the training ends",
               PEN_OPTION_RANGE(1, 1000000), .default_text = "3"),
    PEN_OPTION(INTEGER, pen_job_recovery, audit,
               "every how many steps a part of one is computed again by another worker that has "
               "the memory, to find workers that compute wrongly; 0: never",
               PEN_OPTION_RANGE(0, 1000000000), .default_text = "1000"),
    PEN_OPTION(BOOL, pen_job_recovery, across_kinds,
               "replan also where devices are of several kinds, whose numbers differ in their last "
               "bits; without it such a training ends when a worker does not come back",
               .default_text = "false"),
    PEN_OPTION(LIST, pen_job_recovery, spares, "where workers listen that take a lost one's place",
               .item = &job_spare_item, .count_maximum = 256),
};
static pen_status job_check_recovery(const void *object, const pen_option_source *source) {
    const pen_job_recovery *recovery = object;
    const char *const *spares = recovery->spares.items;
    for (uint32_t i = 0; i < recovery->spares.count; i++) {
        pen_address address;
        pen_status status = pen_address_read(spares[i], &address);
        for (uint32_t j = 0; j < i && status == PEN_OK; j++) {
            if (strcmp(spares[i], spares[j]) != 0) continue;
            status = pen_error(PEN_INVALID_INPUT, "found '%s' twice, expected different workers",
                               spares[i]);
        }
        status = pen_status_add_context(status, "while reading 'spares'");
        if (status != PEN_OK) return pen_option_blame(source, &spares[i], status);
    }
    if (recovery->on_loss != PEN_JOB_ON_LOSS_SPARE || recovery->spares.count > 0) return PEN_OK;
    return pen_option_blame(source, &recovery->on_loss,
                            pen_error(PEN_INVALID_INPUT, "on_loss: found spare, but no `spares`"));
}

const pen_option_table pen_job_recovery_table = {
    PEN_OPTION_FIELDS(pen_job_recovery, job_recovery_fields),
    .check = job_check_recovery,
};
