// The order in which lanes came, step by step, where a training takes it as it comes: as text.
//
//   penstock: order 1
//   of: model 0123456789abcdef, examples 59, seed 3, batch 16, …
//   checksum: 89abcdef
//   1 0213 5f6e7d8c
//   2 1023 0a1b2c3d
//
// A line for each step: its number, the lanes as hexadecimal digits, first come first, and the
// CRC32C of all bytes of the file before that. So no byte can be changed unseen, and a file that
// was cut off has the steps before the cut.
//
// Threads: any.
#ifndef PEN_SCHEDULER_CHECKPOINT_ORDER_RECORD_H
#define PEN_SCHEDULER_CHECKPOINT_ORDER_RECORD_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/arrivals.h"

#define PEN_ORDER_OF_BYTES 320   // of what the training is, with its 0
#define PEN_ORDER_LINE_BYTES 64u // of a step

// Of a step: which lanes it has, and how they came.
typedef struct pen_step_order {
    pen_arrivals_order lanes;
    uint32_t count;
} pen_step_order;

typedef struct pen_order_record {
    char of[PEN_ORDER_OF_BYTES];
    uint64_t step_count;
    const pen_step_order *steps; // [step_count] from the first step on
    const char *damage;          // why the line behind them cannot be read; NULL: there is none
} pen_order_record;

// What has been written so far.
typedef struct pen_order_writer {
    uint64_t step_count;
    uint32_t checksum;
} pen_order_writer;

// The beginning, of a training `of`: in `arena`. INVALID_INPUT: `of` is no line, or too long
PEN_NODISCARD pen_status pen_order_write_head(pen_order_writer *writer, const char *of,
                                              pen_arena *arena, const char **out_text,
                                              size_t *out_count);
// The line of the next step, whose order is whole. Returns its length.
size_t pen_order_write_step(pen_order_writer *writer, const pen_step_order *order,
                            char out_line[PEN_ORDER_LINE_BYTES]);

// Takes memory for no more than twice what is read.
//   CORRUPT  its beginning cannot be read: says why, with the line in *out_line
PEN_NODISCARD pen_status pen_order_record_decode(const char *bytes, uint64_t count,
                                                 pen_arena *arena, pen_order_record *out_record,
                                                 uint32_t *out_line);

#endif // PEN_SCHEDULER_CHECKPOINT_ORDER_RECORD_H
