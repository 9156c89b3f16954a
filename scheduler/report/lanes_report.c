#include "scheduler/report/lanes_report.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "graph/passes/gradient/build_versions.h"

#define LANES_WHEN_BYTES 128

// All parameters have the same numbers: any will do.
static uint32_t lanes_find_arrivals(const pen_tensor_store *tensors, uint64_t bytes) {
    const size_t length = strlen(PEN_ARRIVALS_SUFFIX);
    for (uint32_t t = 0; t < tensors->count; t++) {
        const pen_stored_tensor *tensor = &tensors->tensors[t];
        const size_t name_length = strlen(tensor->name);
        if (tensor->is_model || tensor->bytes != bytes || name_length < length) continue;
        if (strcmp(tensor->name + name_length - length, PEN_ARRIVALS_SUFFIX) == 0) return t;
    }
    return PEN_TENSOR_NONE;
}

// No gradients: there is nothing to tell.
static pen_status lanes_read(const pen_job *job, const pen_tensor_store *tensors,
                             pen_arrivals *out_at) {
    const uint32_t lanes = (uint32_t)job->train.lanes;
    int64_t words[6 + 2 * PEN_ARRIVALS_LANES];
    *out_at = (pen_arrivals){0};
    if (!pen_job_get_asynchrony(job).is_asynchronous) return PEN_OK;
    const uint64_t bytes = pen_arrivals_words(lanes) * sizeof *words;
    const uint32_t index = lanes_find_arrivals(tensors, bytes);
    if (index == PEN_TENSOR_NONE) return PEN_OK;
    PEN_TRY(pen_tensor_store_read(tensors, index, words, bytes));
    pen_arrivals_read(words, lanes, out_at);
    return PEN_OK;
}

static double lanes_mean(const pen_arrivals *at) {
    return (double)at->staleness / (double)at->gradients;
}

static double lanes_time(uint64_t ticks) {
    return (double)ticks / PEN_ARRIVALS_TICKS;
}

pen_status pen_lanes_report_json(pen_json_writer *json, const pen_job *job,
                                 const pen_tensor_store *tensors) {
    pen_arrivals at;
    PEN_TRY(lanes_read(job, tensors, &at));
    if (at.gradients == 0) return PEN_OK;
    pen_json_key_object(json, "asynchronous");
    pen_json_key_unsigned(json, "versions", at.version);
    pen_json_key_unsigned(json, "gradients", at.gradients);
    pen_json_key_number(json, "staleness_mean", lanes_mean(&at));
    pen_json_key_unsigned(json, "staleness_worst", at.staleness_worst);
    if (!pen_job_get_asynchrony(job).is_free) {
        pen_json_key_number(json, "drawn_time", lanes_time(at.clock));
        pen_json_key_number(json, "drawn_time_synchronous", lanes_time(at.synchronous));
    }
    pen_json_end_object(json);
    return PEN_OK;
}

// Nobody is to believe that this run was faster.
pen_status pen_lanes_report_say(const pen_job *job, const pen_tensor_store *tensors) {
    pen_arrivals at;
    char when[LANES_WHEN_BYTES];
    PEN_TRY(lanes_read(job, tensors, &at));
    if (at.gradients == 0) return PEN_OK;
    if (pen_job_get_asynchrony(job).is_free) {
        snprintf(when, sizeof when, "in the order in which they came, which is recorded");
    } else {
        snprintf(when, sizeof when,
                 "drawn time: %.0f gradients, %.0f if lanes waited for each other",
                 lanes_time(at.clock), lanes_time(at.synchronous));
    }
    pen_log(PEN_LOG_NOTE,
            "asynchronous lanes: %llu versions of %llu gradients, which were %.1f versions behind "
            "on average and %llu at most; %s. This run itself waited for all lanes of each step",
            (unsigned long long)at.version, (unsigned long long)at.gradients, lanes_mean(&at),
            (unsigned long long)at.staleness_worst, when);
    return PEN_OK;
}
