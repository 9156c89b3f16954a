// The keys of `train.consistency`: whether lanes wait for each other.
#include <stdio.h>

#include "scheduler/job/job.h"
#include "scheduler/job/job_table.h"

// Those of Zheng et al. (graph/arrivals.h).
#define CONSISTENCY_LAMBDA_CONSTANT 0.04
#define CONSISTENCY_LAMBDA_ADAPTIVE 2.0

static const char *const consistency_order_names[] = {
    [PEN_JOB_ORDER_SEED] = "seed",
    [PEN_JOB_ORDER_FREE] = "free",
    NULL,
};

static const char *const consistency_compensation_names[] = {
    [PEN_COMPENSATION_NONE] = "none",
    [PEN_COMPENSATION_CONSTANT] = "constant",
    [PEN_COMPENSATION_ADAPTIVE] = "adaptive",
    NULL,
};

static const pen_option_field consistency_async_fields[] = {
    PEN_OPTION(INTEGER, pen_job_async, staleness,
               "versions that parameters may be made while a gradient is computed; 0: lanes wait "
               "for each other",
               .is_required = true, PEN_OPTION_RANGE(0, PEN_ARRIVALS_STALENESS)),
    PEN_OPTION(CHOICE, pen_job_async, order,
               "of the gradients: drawn from the seed; or as they come, and recorded beside the "
               "checkpoints, for --replay",
               .choices = consistency_order_names, .default_text = "seed"),
    PEN_OPTION(CHOICE, pen_job_async, compensation,
               "for the delay of gradients (DC-ASGD), by a lambda that is constant or follows the "
               "mean of their squares",
               .choices = consistency_compensation_names, .default_text = "none"),
    PEN_OPTION(NUMBER, pen_job_async, lambda,
               "of the compensation; 0.04 where it is constant, 2 where it is adaptive, when not "
               "given",
               .present_offset = offsetof(pen_job_async, has_lambda),
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(1e6)),
};

static pen_status consistency_check_async(const void *object, const pen_option_source *source) {
    const pen_job_async *async = object;
    if (!async->has_lambda || async->compensation != PEN_COMPENSATION_NONE) return PEN_OK;
    return pen_option_blame(source, &async->lambda,
                            pen_error(PEN_INVALID_INPUT,
                                      "lambda: found %g, but no compensation, expected "
                                      "compensation: constant or adaptive beside it",
                                      async->lambda));
}

static const pen_option_table consistency_async_table = {
    PEN_OPTION_FIELDS(pen_job_async, consistency_async_fields),
    .check = consistency_check_async,
};

static const pen_option_table consistency_sync_table = {.size = 0};

static const pen_option_field consistency_fields[] = {
    [PEN_JOB_SYNC] = {.key = "sync",
                      .kind = PEN_OPTION_MAPPING,
                      .table = &consistency_sync_table,
                      .help = "a step's gradients are all of the same parameters"},
    [PEN_JOB_ASYNC] =
        PEN_OPTION(MAPPING, pen_job_consistency, async,
                   "each lane's gradient is applied when it arrives, to parameters that may be "
                   "newer than those that it was computed with",
                   .table = &consistency_async_table),
};
const pen_option_table pen_job_consistency_table = {
    PEN_OPTION_FIELDS(pen_job_consistency, consistency_fields),
    .chosen_offset = offsetof(pen_job_consistency, kind),
};

// Each error says what else in `train` would go with it.
pen_status pen_job_check_consistency(const pen_job_train *train, const pen_option_source *source) {
    const pen_job_consistency *consistency = &train->consistency;
    if (consistency->kind == PEN_JOB_SYNC) return PEN_OK;
    pen_status status = PEN_OK;
    if (train->lanes < 2) {
        status = pen_error(PEN_INVALID_INPUT,
                           "train.consistency: found async with lanes %lld, expected lanes: 2 to "
                           "%u, since it is lanes that do not wait for each other",
                           (long long)train->lanes, PEN_ARRIVALS_LANES);
    } else if (train->lanes > PEN_ARRIVALS_LANES) {
        status = pen_error(PEN_INVALID_INPUT,
                           "train.consistency: found async with lanes %lld, expected at most %u",
                           (long long)train->lanes, PEN_ARRIVALS_LANES);
    } else if (train->clip_norm > 0) {
        status = pen_error(PEN_INVALID_INPUT,
                           "train.clip_norm: found %g with consistency async, where no gradient is "
                           "of the whole step; expected no clip_norm, or consistency: sync",
                           train->clip_norm);
        return pen_option_blame(source, &train->clip_norm, status);
    } else if (train->has_average) {
        status = pen_error(PEN_INVALID_INPUT,
                           "train.average: found together with consistency async, where a step has "
                           "several versions of a parameter; expected one of the two");
        return pen_option_blame(source, &train->average, status);
    }
    return pen_option_blame(source, consistency, status);
}

pen_asynchrony pen_job_get_asynchrony(const pen_job *job) {
    const pen_job_async *async = &job->train.consistency.async;
    if (job->train.consistency.kind == PEN_JOB_SYNC) return (pen_asynchrony){0};
    const bool is_adaptive = async->compensation == PEN_COMPENSATION_ADAPTIVE;
    const double usual = is_adaptive ? CONSISTENCY_LAMBDA_ADAPTIVE : CONSISTENCY_LAMBDA_CONSTANT;
    return (pen_asynchrony){.is_asynchronous = true,
                            .is_free = async->order == PEN_JOB_ORDER_FREE,
                            .staleness = (uint32_t)async->staleness,
                            .compensation = async->compensation,
                            .lambda = async->has_lambda ? async->lambda : usual};
}

const char *pen_job_format_consistency(const pen_job *job,
                                       char out_text[PEN_JOB_CONSISTENCY_BYTES]) {
    const pen_asynchrony asynchrony = pen_job_get_asynchrony(job);
    out_text[0] = 0;
    if (!asynchrony.is_asynchronous) return out_text;
    const int count = snprintf(out_text, PEN_JOB_CONSISTENCY_BYTES, "async, staleness %u%s",
                               asynchrony.staleness, asynchrony.is_free ? ", order free" : "");
    if (asynchrony.compensation == PEN_COMPENSATION_NONE) return out_text;
    snprintf(out_text + count, PEN_JOB_CONSISTENCY_BYTES - (size_t)count,
             ", compensation %s, lambda %.17g",
             consistency_compensation_names[asynchrony.compensation], asynchrony.lambda);
    return out_text;
}
