// Predictions as a table: one line an example, names in the first.
//
// Numbers are written so that reading them back gives the same float32 (nine digits). Lines end by
// "\n".
//
// Threads: a file belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_CSV_CSV_WRITER_H
#define PEN_SCHEDULER_DATA_CSV_CSV_WRITER_H

#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

// Writes the line of names: "example", then `names` [count], quoted where they must be; where
// `names` is NULL, "0", "1", …. IO.
PEN_NODISCARD pen_status pen_csv_write_names(FILE *file, const char *const *names, uint64_t count);

// Writes the line of one example: its number, and `values` [count]. IO.
PEN_NODISCARD pen_status pen_csv_write_row(FILE *file, uint64_t example, const float *values,
                                           uint64_t count);

#endif // PEN_SCHEDULER_DATA_CSV_CSV_WRITER_H
