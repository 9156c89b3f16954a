#include "scheduler/metric/metric_order.h"

#include <math.h>
#include <stdlib.h>

static int order_compare(const void *a, const void *b) {
    const double first = ((const pen_metric_scored *)a)->score;
    const double second = ((const pen_metric_scored *)b)->score;
    return (first > second) - (first < second);
}

// Twice the pairs are counted, so that a half is an integer. There are at most 2^52 pairs.
double pen_metric_area(pen_metric_scored *items, uint64_t count) {
    uint64_t below = 0, of_class = 0, won = 0;
    qsort(items, count, sizeof *items, order_compare);
    for (uint64_t first = 0, end; first < count; first = end) {
        uint64_t inside = 0;
        for (end = first; end < count && items[end].score == items[first].score; end++) {
            inside += items[end].is_of_class;
        }
        if (end == first) { // a score that is not a number is not even its own equal
            inside = items[end].is_of_class;
            end += 1;
        }
        const uint64_t outside = end - first - inside;
        won += inside * (2 * below + outside);
        below += outside;
        of_class += inside;
    }
    if (of_class == 0 || below == 0) return NAN;
    return (double)won / (2 * (double)of_class * (double)below);
}
