#include "base/sets/order.h"

#include <stdlib.h>

static int order_compare_ids(const void *left, const void *right) {
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static int order_compare_up(const void *left, const void *right) {
    const pen_ranked *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return order_compare_ids(&a->id, &b->id);
}

static int order_compare_down(const void *left, const void *right) {
    const pen_ranked *a = left, *b = right;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return order_compare_ids(&a->id, &b->id);
}

static int order_compare_numbers_down(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return a > b ? -1 : a < b;
}

void pen_ranked_sort_up(pen_ranked *items, size_t count) {
    if (count > 1) qsort(items, count, sizeof *items, order_compare_up);
}

void pen_ranked_sort_down(pen_ranked *items, size_t count) {
    if (count > 1) qsort(items, count, sizeof *items, order_compare_down);
}

void pen_sort_ids(uint32_t *ids, size_t count) {
    if (count > 1) qsort(ids, count, sizeof *ids, order_compare_ids);
}

void pen_sort_numbers_down(double *numbers, size_t count) {
    if (count > 1) qsort(numbers, count, sizeof *numbers, order_compare_numbers_down);
}

double pen_median(double *numbers, size_t count) {
    if (count == 0) return 0;
    pen_sort_numbers_down(numbers, count);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}
