#include "cli/cost_file.h"

#include <unistd.h>

#include "base/log.h"
#include "base/system/file.h"
#include "cli/training_job.h"
#include "partition/costs/cost_table_file.h"

pen_status pen_cost_file_open(pen_command_context *context, const pen_job *job, const char *output,
                              pen_cost_file *out_file) {
    pen_cost_file file = {.path = output != NULL ? output : job->costs};
    if (file.path != NULL && access(file.path, F_OK) == 0) {
        PEN_TRY(pen_cost_table_read(file.path, context->arena, &file.table));
    } else {
        PEN_TRY(pen_cost_table_new(context->arena, &file.table));
    }
    if (output != NULL) {
        PEN_TRY(pen_command_check_output(context, output));
    } else if (file.path != NULL) {
        PEN_TRY(pen_job_blame(job, &job->costs, pen_file_check_writable(file.path)));
    } else {
        pen_log(PEN_LOG_NOTE, "nothing will be written: neither -o nor the job's `costs` says "
                              "where");
    }
    *out_file = file;
    return PEN_OK;
}

pen_status pen_cost_file_save(const pen_cost_file *file) {
    if (file->path == NULL) return PEN_OK;
    PEN_TRY(pen_cost_table_write(file->table, file->path));
    pen_log(PEN_LOG_NOTE, "wrote %s: %u operators, %u rates, %u links", file->path,
            pen_cost_table_count(file->table), pen_cost_table_rates_count(file->table),
            pen_cost_table_link_count(file->table));
    return PEN_OK;
}
