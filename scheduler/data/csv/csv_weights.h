// Tables of two columns, a name and its weight, as pictures have them:
//
//   picture,weight          a first line whose second field is no number is passed over
//   cats/1.jpg,2
//   ./cats/2.jpg,0.5        as cats/2.jpg
//   dogs,0.25               image_dataset.c takes a name without a picture as a class
//
// Lifetime: names are the arena's. They grow with the text: at most some thirty times its bytes.
// Threads:  functions share nothing.
#ifndef PEN_SCHEDULER_DATA_CSV_CSV_WEIGHTS_H
#define PEN_SCHEDULER_DATA_CSV_CSV_WEIGHTS_H

#include "base/arena.h"
#include "scheduler/data/csv/csv_reader.h"

typedef struct pen_csv_weight {
    const char *name;
    uint64_t line; // from 1
    float weight;  // at least 0, finite
    bool is_used;  // by the caller: what stays false is a slip of the pen
} pen_csv_weight;

typedef struct pen_csv_weights {
    pen_csv_weight *items; // [count] in the order of their names, bytes compared
    uint64_t count;
    const char *head; // the name in a first line that was passed over; NULL: none was
} pen_csv_weights;

// Reads all of a text.
//   INVALID_INPUT  a line has not two fields, a name is empty or there twice, a weight is no number
//                  or below 0; names the place
//   CANCELLED, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_csv_weights_read(const pen_csv_text *text, pen_arena *arena,
                                              pen_csv_weights *out_weights);
// That of a name; NULL: there is none.
pen_csv_weight *pen_csv_weights_find(const pen_csv_weights *weights, const char *name);

#endif // PEN_SCHEDULER_DATA_CSV_CSV_WEIGHTS_H
