#include "scheduler/metric/metric.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static double metric_share(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

static double value_of_loss(const pen_metric_sums *sums, int number) {
    (void)number;
    return sums->loss;
}

static double value_of_top(const pen_metric_sums *sums, int number) {
    uint64_t hits = 0;
    for (int place = 0; place < number; place++) {
        hits += sums->at_place[place];
    }
    return metric_share((double)hits, (double)sums->judged);
}

// ---- of classes

// right / (a * answered + b * actual + c * right): all of these are.
typedef struct metric_ratio {
    double right, answered, actual, own;
} metric_ratio;
static const metric_ratio metric_precision = {1, 1, 0, 0}, metric_recall = {1, 0, 1, 0},
                          metric_f1 = {2, 1, 1, 0}, metric_iou = {1, 1, 1, -1};

static double metric_ratio_of(const metric_ratio *ratio, uint64_t right, uint64_t answered,
                              uint64_t actual) {
    return metric_share(ratio->right * (double)right, ratio->answered * (double)answered +
                                                          ratio->actual * (double)actual +
                                                          ratio->own * (double)right);
}

static double metric_of_class(const pen_metric_sums *sums, const metric_ratio *ratio, uint32_t c) {
    return metric_ratio_of(ratio, sums->right[c], sums->answered[c], sums->actual[c]);
}

// A class that no target has, and no answer, says nothing. Each target has one label and one
// answer, so that over all of them both are as many.
static double metric_average(const pen_metric_sums *sums, const metric_ratio *ratio, int average) {
    double sum = 0, weight = 0;
    uint64_t right = 0;
    if (average == PEN_METRIC_BINARY && sums->class_count == 2) {
        return metric_of_class(sums, ratio, 1);
    }
    for (uint32_t c = 0; c < sums->class_count; c++) {
        if (sums->answered[c] + sums->actual[c] == 0) continue;
        const double share = average == PEN_METRIC_WEIGHTED ? (double)sums->actual[c] : 1;
        sum += share * metric_of_class(sums, ratio, c);
        weight += share;
        right += sums->right[c];
    }
    if (average != PEN_METRIC_MICRO) return metric_share(sum, weight);
    return metric_ratio_of(ratio, right, sums->judged, sums->judged);
}

static double value_of_precision(const pen_metric_sums *sums, int number) {
    return metric_average(sums, &metric_precision, number);
}

static double value_of_recall(const pen_metric_sums *sums, int number) {
    return metric_average(sums, &metric_recall, number);
}

static double value_of_f1(const pen_metric_sums *sums, int number) {
    return metric_average(sums, &metric_f1, number);
}

static double value_of_iou(const pen_metric_sums *sums, int number) {
    return metric_average(sums, &metric_iou, number);
}

static double value_of_auc(const pen_metric_sums *sums, int number) {
    (void)number;
    return sums->area;
}

static double value_of_perplexity(const pen_metric_sums *sums, int number) {
    (void)number;
    return exp(sums->entropy);
}

// ---- of numbers

static double value_of_absolute(const pen_metric_sums *sums, int number) {
    (void)number;
    return metric_share(sums->absolute, (double)sums->number_count);
}

static double value_of_square(const pen_metric_sums *sums, int number) {
    (void)number;
    return metric_share(sums->square, (double)sums->number_count);
}

static double value_of_root(const pen_metric_sums *sums, int number) {
    return sqrt(value_of_square(sums, number));
}

// ---- the table

#define LARGER true
#define SMALLER false
#define METRIC_KIND(constant, name, better, source, number, value)                                 \
    [PEN_METRIC_##constant] = {name, better, PEN_METRIC_FROM_##source, number, value_of_##value},
#define METRIC_NAME(constant, name, better, source, number, value) [PEN_METRIC_##constant] = name,

const pen_metric_kind pen_metric_kinds[PEN_METRIC_COUNT] = {PEN_METRIC_LIST(METRIC_KIND)};
const char *const pen_metric_names[PEN_METRIC_COUNT + 1] = {PEN_METRIC_LIST(METRIC_NAME) NULL};

_Static_assert(PEN_METRIC_COUNT <= 64, "a set of them is one word");

pen_metric pen_metric_find(const char *name) {
    pen_metric metric = 0;
    while (metric < PEN_METRIC_COUNT && strcmp(pen_metric_names[metric], name) != 0) {
        metric += 1;
    }
    return metric;
}

double pen_metric_value(pen_metric metric, const pen_metric_sums *sums) {
    const pen_metric_kind *kind = &pen_metric_kinds[metric];
    return kind->value(sums, kind->number);
}
