#include "scheduler/training/metrics.h"

#include <math.h>
#include <stdbool.h>

void pen_metrics_start(pen_metrics *metrics, uint64_t example_total, double now_seconds) {
    *metrics = (pen_metrics){.example_total = example_total, .started_seconds = now_seconds};
}

void pen_metrics_add(pen_metrics *metrics, double mean_loss, uint64_t example_count) {
    metrics->loss_sum += mean_loss * (double)example_count;
    metrics->example_count += example_count;
}

void pen_metrics_add_correct(pen_metrics *metrics, uint64_t correct_count, uint64_t judged_count) {
    metrics->correct_count += correct_count;
    metrics->judged_count += judged_count;
}

double pen_metrics_loss(const pen_metrics *metrics) {
    if (metrics->example_count == 0) return NAN;
    return metrics->loss_sum / (double)metrics->example_count;
}

double pen_metrics_accuracy(const pen_metrics *metrics) {
    if (metrics->judged_count == 0) return NAN;
    return (double)metrics->correct_count / (double)metrics->judged_count;
}

double pen_metrics_samples_per_second(const pen_metrics *metrics, double now_seconds) {
    const double passed = now_seconds - metrics->started_seconds;
    return passed > 0 ? (double)metrics->example_count / passed : 0;
}

double pen_metrics_seconds_left(const pen_metrics *metrics, double now_seconds) {
    const double speed = pen_metrics_samples_per_second(metrics, now_seconds);
    if (metrics->example_total == 0 || !(speed > 0)) return NAN;
    if (metrics->example_count >= metrics->example_total) return 0;
    return (double)(metrics->example_total - metrics->example_count) / speed;
}

static bool metrics_is_correct(const float *scores, int64_t class_index, uint64_t class_count) {
    uint64_t best = 0;
    for (uint64_t i = 0; i < class_count; i++) {
        if (isnan(scores[i])) return false;
        if (scores[i] > scores[best]) best = i;
    }
    return class_count > 0 && class_index >= 0 && (uint64_t)class_index == best;
}

uint64_t pen_metrics_count_correct(const float *scores, const int64_t *classes, uint64_t count,
                                   uint64_t class_count) {
    uint64_t correct = 0;
    for (uint64_t i = 0; i < count; i++) {
        correct += metrics_is_correct(scores + i * class_count, classes[i], class_count);
    }
    return correct;
}
