#include "scheduler/data/sql/sql_request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

// What was written lately is in a file of its own beside, until the database takes it in.
static pen_status request_describe_file(const char *path, pen_arena *arena, pen_text *text) {
    struct stat facts, log = {0};
    const char *log_path;
    PEN_TRY(pen_arena_format(arena, &log_path, "%s-wal", path));
    if (stat(path, &facts) != 0) {
        return pen_error(errno == ENOENT ? PEN_NOT_FOUND : PEN_IO, "cannot look at '%s': %s", path,
                         strerror(errno));
    }
    pen_text_print(text, "file: %lld bytes, %lld.%09ld\n", (long long)facts.st_size,
                   (long long)facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
    if (stat(log_path, &log) != 0 || log.st_size == 0) return PEN_OK;
    pen_text_print(text, "log: %lld bytes, %lld.%09ld\n", (long long)log.st_size,
                   (long long)log.st_mtim.tv_sec, log.st_mtim.tv_nsec);
    return PEN_OK;
}

// Whatever changes what is read stands here, and nothing else: a password does not.
pen_status pen_sql_request_describe(const pen_sql_request *request, pen_arena *arena,
                                    const char **out_text) {
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_print(&text, "%s\n", request->target->text);
    if (request->target->kind == PEN_SQL_SQLITE) {
        PEN_TRY(request_describe_file(request->target->file, arena, &text));
    }
    pen_text_print(&text, "%s\nelement: %d\nshape:", request->query, (int)request->element);
    for (uint32_t i = 0; i < request->shape_rank; i++)
        pen_text_print(&text, " %" PRId64, request->shape[i]);
    pen_text_print(&text, "\npartition: %s\n",
                   request->partition == NULL ? "" : request->partition);
    for (uint32_t i = 0; i < request->field_count; i++) {
        const pen_sql_field *field = &request->fields[i];
        pen_text_print(&text, "%s %s:", field->is_label ? "labels" : "input", field->name);
        for (uint32_t c = 0; c < field->column_count; c++)
            pen_text_print(&text, " \"%s\"", field->columns[c]);
        pen_text_add(&text, "\n");
    }
    return pen_text_finish(&text, out_text);
}
