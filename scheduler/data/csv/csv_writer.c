#include "scheduler/data/csv/csv_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void csv_write_name(FILE *file, const char *name) {
    if (strpbrk(name, ",\"\r\n") == NULL && name[0] != ' ' && name[0] != '\0') {
        fputs(name, file);
        return;
    }
    fputc('"', file);
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '"') fputc('"', file);
        fputc(*c, file);
    }
    fputc('"', file);
}

static pen_status csv_end_line(FILE *file) {
    fputc('\n', file);
    // a stream remembers that an earlier write failed
    if (ferror(file) == 0) return PEN_OK;
    return pen_error(PEN_IO, "cannot write a line of the table: %s", strerror(errno));
}

pen_status pen_csv_write_names(FILE *file, const char *const *names, uint64_t count) {
    fputs("example", file);
    for (uint64_t i = 0; i < count; i++) {
        fputc(',', file);
        if (names == NULL) {
            fprintf(file, "%" PRIu64, i);
        } else {
            csv_write_name(file, names[i]);
        }
    }
    return csv_end_line(file);
}

pen_status pen_csv_write_row(FILE *file, uint64_t example, const float *values, uint64_t count) {
    fprintf(file, "%" PRIu64, example);
    for (uint64_t i = 0; i < count; i++)
        fprintf(file, ",%.9g", (double)values[i]);
    return csv_end_line(file);
}
