// Sorting by numbers, with an order for what is equal: the same input gives the same order
// anywhere.
#ifndef PEN_BASE_SETS_ORDER_H
#define PEN_BASE_SETS_ORDER_H

#include <stddef.h>
#include <stdint.h>

// A thing and the number that it is sorted by, which is none of NaN.
typedef struct pen_ranked {
    double key;
    uint32_t id;
} pen_ranked;

// By key, the smallest or the largest first; of equal keys the smaller id.
void pen_ranked_sort_up(pen_ranked *items, size_t count);
void pen_ranked_sort_down(pen_ranked *items, size_t count);

// Ids, the smallest first, and numbers, the largest first.
void pen_sort_ids(uint32_t *ids, size_t count);
void pen_sort_numbers_down(double *numbers, size_t count);

// The median, of an even count the mean of the two in the middle; 0 of none. Sorts them.
double pen_median(double *numbers, size_t count);

#endif // PEN_BASE_SETS_ORDER_H
