#include "scheduler/job/job_level.h"

#include <string.h>

#include "device/device.h"

static pen_status level_find(const char *name, pen_kernel_level *out_level) {
    *out_level = PEN_KERNEL_LEVEL_AUTO;
    if (name == NULL || name[0] == 0) return PEN_OK;
    for (int level = PEN_KERNEL_LEVEL_BASE; level < PEN_KERNEL_LEVEL_COUNT; level++) {
        if (strcmp(pen_kernel_level_names[level], name) != 0) continue;
        *out_level = (pen_kernel_level)level;
        return PEN_OK;
    }
    return pen_error(PEN_CORRUPT, "the checkpoint is of kernel level '%.32s', which is none", name);
}

// `io_level` becomes that of the plan or checkpoint, unless it is another already.
static pen_status level_join(const pen_job *job, pen_kernel_level level, const char *of,
                             pen_kernel_level *io_level) {
    if (level == PEN_KERNEL_LEVEL_AUTO || level == *io_level) return PEN_OK;
    if (*io_level != PEN_KERNEL_LEVEL_AUTO) {
        return pen_job_blame(
            job, &job->numerics.level,
            pen_error(PEN_INVALID_INPUT, "kernel level %s: the %s is of %s, which rounds otherwise",
                      pen_kernel_level_names[*io_level], of, pen_kernel_level_names[level]));
    }
    *io_level = level;
    return PEN_OK;
}

pen_status pen_job_level_settle(const pen_job *job, const pen_job_level_before *before) {
    pen_kernel_level level = job->numerics.level, kept;
    PEN_TRY(level_find(before->checkpoint, &kept));
    PEN_TRY(level_join(job, before->plan, "plan", &level));
    PEN_TRY(level_join(job, kept, "checkpoint", &level));
    const pen_status status =
        pen_job_blame(job, &job->numerics.level, pen_kernel_level_settle(level, &level));
    if (kept != PEN_KERNEL_LEVEL_AUTO) {
        return pen_status_add_context(status, "while going on from a checkpoint");
    }
    return before->plan == PEN_KERNEL_LEVEL_AUTO
               ? status
               : pen_status_add_context(status, "while using a plan");
}

// A step is skipped as a whole, by one number of all its gradients: so they must be there together.
static pen_status level_check_scaled(const pen_job *job) {
    const pen_job_numerics *numerics = &job->numerics;
    if (numerics->precision != PEN_PRECISION_FLOAT16) {
        if (!numerics->has_loss_scale) return PEN_OK;
        return pen_job_blame(job, &numerics->loss_scale,
                             pen_error(PEN_INVALID_INPUT,
                                       "numerics.loss_scale is for precision float16, found %s: "
                                       "leave it out",
                                       pen_precision_names[numerics->precision]));
    }
    if (numerics->loss_scale.floor > numerics->loss_scale.initial) {
        return pen_job_blame(
            job, &numerics->loss_scale.floor,
            pen_error(PEN_INVALID_INPUT,
                      "numerics.loss_scale.floor: found %g, above initial, which is "
                      "%g",
                      numerics->loss_scale.floor, numerics->loss_scale.initial));
    }
    if (!pen_job_get_asynchrony(job).is_asynchronous) return PEN_OK;
    return pen_job_blame(job, &numerics->precision,
                         pen_error(PEN_UNSUPPORTED,
                                   "numerics.precision: float16 is for train.consistency sync: "
                                   "with others, lanes are applied before all are known"));
}

pen_status pen_job_check_precision(const pen_job *job) {
    const pen_precision precision = job->numerics.precision;
    for (uint32_t d = 0; d < job->cluster.device_count; d++) {
        const char *name = pen_cluster_device_kind_name(job->cluster.devices[d].kind);
        const pen_device_kind *kind;
        PEN_TRY(pen_device_kind_find(name, &kind));
        if (pen_device_kind_can(kind, precision)) continue;
        return pen_job_blame(
            job, &job->numerics.precision,
            pen_error(PEN_INVALID_INPUT,
                      "numerics.precision: found %s, but device '%s' is of kind %s, which computes "
                      "in float32 only: expected float32, or devices of kind cuda alone",
                      pen_precision_names[precision], job->cluster.devices[d].name, name));
    }
    return level_check_scaled(job);
}

// Where none can use them, nothing but this could say that they are not there.
pen_status pen_job_check_libraries(const pen_job *job) {
    if (job->numerics.libraries != PEN_LIBRARIES_REQUIRED) return PEN_OK;
    for (uint32_t d = 0; d < job->cluster.device_count; d++) {
        const pen_device_kind *kind;
        PEN_TRY(pen_device_kind_find(pen_cluster_device_kind_name(job->cluster.devices[d].kind),
                                     &kind));
        if (kind->library != NULL) return PEN_OK;
    }
    return pen_job_blame(job, &job->numerics.libraries,
                         pen_error(PEN_INVALID_INPUT,
                                   "numerics.libraries: found required, but no device of the job "
                                   "uses any: expected auto, or a device of kind cuda"));
}
