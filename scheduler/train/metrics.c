#include "scheduler/train/metrics.h"

#include <math.h>

void pen_metrics_start(pen_metrics *metrics, double now_seconds) {
    *metrics = (pen_metrics){.started_seconds = now_seconds};
}

void pen_metrics_add(pen_metrics *metrics, double mean_loss, uint64_t example_count) {
    metrics->example_count += example_count;
    if (!isfinite(mean_loss)) return;
    metrics->loss_sum += mean_loss * (double)example_count;
    metrics->summed_count += example_count;
}

void pen_metrics_add_terms(pen_metrics *metrics, const double terms[PEN_TERMS_LIMIT],
                           uint64_t example_count) {
    for (uint32_t i = 0; i < PEN_TERMS_LIMIT; i++) {
        if (!isfinite(terms[i])) continue;
        metrics->term_sums[i] += terms[i] * (double)example_count;
        metrics->term_counts[i] += example_count;
    }
}

void pen_metrics_terms(const pen_metrics *metrics, double out_terms[PEN_TERMS_LIMIT]) {
    for (uint32_t i = 0; i < PEN_TERMS_LIMIT; i++) {
        out_terms[i] = metrics->term_counts[i] == 0
                           ? NAN
                           : metrics->term_sums[i] / (double)metrics->term_counts[i];
    }
}

void pen_metrics_add_correct(pen_metrics *metrics, uint64_t correct_count, uint64_t judged_count) {
    metrics->correct_count += correct_count;
    metrics->judged_count += judged_count;
}

double pen_metrics_loss(const pen_metrics *metrics) {
    if (metrics->summed_count == 0) return NAN;
    return metrics->loss_sum / (double)metrics->summed_count;
}

double pen_metrics_accuracy(const pen_metrics *metrics) {
    if (metrics->judged_count == 0) return NAN;
    return (double)metrics->correct_count / (double)metrics->judged_count;
}

double pen_metrics_samples_per_second(const pen_metrics *metrics, double now_seconds) {
    const double passed = now_seconds - metrics->started_seconds;
    return passed > 0 ? (double)metrics->example_count / passed : 0;
}
