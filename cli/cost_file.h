// The cost table that profile and probe read, add to, and write.
#ifndef PEN_CLI_COST_FILE_H
#define PEN_CLI_COST_FILE_H

#include "cli/command.h"
#include "partition/costs/cost_table.h"
#include "scheduler/job/job.h"

typedef struct pen_cost_file {
    const char *path; // what -o says, else the job's `costs`; NULL: nothing is written
    pen_cost_table *table;
} pen_cost_file;

// Reads the table that is there, or makes an empty one, and makes sure that it can be written.
// `output` is the value of -o, or NULL. Errors of the table have a position.
PEN_NODISCARD pen_status pen_cost_file_open(pen_command_context *context, const pen_job *job,
                                            const char *output, pen_cost_file *out_file);
// Writes it, and says so.
PEN_NODISCARD pen_status pen_cost_file_save(const pen_cost_file *file);

#endif // PEN_CLI_COST_FILE_H
