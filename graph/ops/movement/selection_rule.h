// What the shape rules and the kernels of ops share whose results are as large as their data says:
// the data is constant, and the rule runs the same search as the kernel.
//
// Threads: pure functions of their arguments.
#ifndef PEN_GRAPH_OPS_MOVEMENT_SELECTION_RULE_H
#define PEN_GRAPH_OPS_MOVEMENT_SELECTION_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// A number as an unsigned one of the same order. Zeros of both signs are equal, and what is not a
// number is above all else.
uint64_t pen_order_of_number(double number);
uint64_t pen_order_of_integer(int64_t integer);

// Rows of keys, of which equal ones are found.
typedef struct pen_unique_rows {
    const uint64_t *keys; // [row_count][width]
    int64_t row_count;
    int64_t width;
    bool sorted; // else in the order of first appearance
} pen_unique_rows;

typedef struct pen_unique_found {
    int64_t count;
    int64_t *first;  // [count], the row in which each appears first
    int64_t *counts; // [count], how often
    int64_t *place;  // [row_count], which of them each row is
} pen_unique_found;

// Finds them, into `arena`. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_unique_find(const pen_unique_rows *rows, pen_arena *arena,
                                         pen_unique_found *out_found);

// Boxes that overlap a better one of their class too much are left out.
typedef struct pen_box_request {
    const double *boxes;  // [batch_count][box_count][4]
    const double *scores; // [batch_count][class_count][box_count]
    int64_t batch_count, class_count, box_count;
    int64_t limit; // of boxes a class
    double overlap_limit;
    double score_limit;
    bool has_score_limit;
    bool is_centered; // x, y, width, height; else two opposite corners y, x
} pen_box_request;

// The boxes kept, as triples of batch, class and box, best first within a class. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_boxes_select(const pen_box_request *request, pen_arena *arena,
                                          int64_t *out_count, int64_t **out_triples);

#endif // PEN_GRAPH_OPS_MOVEMENT_SELECTION_RULE_H
