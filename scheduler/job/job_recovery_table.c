// The keys that say how a training survives: `checkpoint` and `recovery`.
#include <string.h>

#include "scheduler/job/job.h"
#include "scheduler/job/job_table.h"
#include "scheduler/transport/address.h"

static const pen_option_field job_checkpoint_fields[] = {
    {.key = "dir",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_checkpoint, dir),
     .is_required = true,
     .help = "folder that `penstock train --resume` goes on from"},
    {.key = "every",
     .kind = PEN_OPTION_INTERVAL,
     .offset = offsetof(pen_job_checkpoint, every),
     .minimum = PEN_OPTION_FROM(1),
     .default_text = "1 epoch",
     .help = "how often one is written; one also after the last step"},
    {.key = "mtbf",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_job_checkpoint, mtbf_seconds),
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_TO(1e9),
     .default_text = "0 s",
     .help = "mean time between failures, from which how often is computed (Young, Daly); 0 s: as "
             "`every` says"},
    {.key = "shared",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_checkpoint, shared),
     .default_text = "true",
     .help = "whether `dir` is one folder that all workers see; false: each writes into its own, "
             "and the coordinator copies all into `dir` on its machine"},
    {.key = "keep",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_checkpoint, keep),
     .minimum = PEN_OPTION_FROM(2),
     .maximum = PEN_OPTION_TO(1000000),
     .default_text = "2",
     .help = "checkpoints that stay"},
};
const pen_option_table pen_job_checkpoint_table = {
    .size = sizeof(pen_job_checkpoint),
    PEN_OPTION_FIELDS(job_checkpoint_fields),
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
    {.key = "on_loss",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_recovery, on_loss),
     .choices = job_on_loss_names,
     .default_text = "replan",
     .help = "when a worker is lost: wait until it is back; let a spare take its place; replan, on "
             "the devices that are left; or stop"},
    {.key = "grace",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_job_recovery, grace_seconds),
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_TO(1e9),
     .default_text = "30 s",
     .help = "how long a lost worker has to come back; wait: then the training ends"},
    {.key = "lease",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_job_recovery, lease_seconds),
     .minimum = PEN_OPTION_FROM(0.1),
     .maximum = PEN_OPTION_TO(1e6),
     .default_text = "10 s",
     .help = "how long nothing may be heard of a worker before it is lost"},
    {.key = "progress",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_job_recovery, progress_seconds),
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_TO(1e6),
     .default_text = "0 s",
     .help = "how long a step may take without anything being done; 0 s: ten planned steps, at "
             "least 20 s"},
    {.key = "attempts",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_recovery, attempts),
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(1000000),
     .default_text = "3",
     .help = "recoveries, one after another, in which no step is done, before the training ends"},
    {.key = "spares",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job_recovery, spares),
     .item = &job_spare_item,
     .count_maximum = 256,
     .help = "where workers listen that take a lost one's place"},
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
    .size = sizeof(pen_job_recovery),
    PEN_OPTION_FIELDS(job_recovery_fields),
    .check = job_check_recovery,
};
