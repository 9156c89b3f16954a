#include "cli/flight_view.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/build.h"
#include "base/system/file.h"

#define FLIGHT_FILE_LIMIT ((size_t)256 << 20)
#define FLIGHT_VIEW_LIMIT 65536u
#define FLIGHT_REPLAY_LIMIT ((size_t)1 << 30) // bytes that a replay says

typedef struct flight_paths {
    pen_arena *arena;
    uint32_t count;
    uint32_t limit;
    const char **paths;
} flight_paths;

// One dump may be named as a file and found again in a folder: it counts once.
static pen_status flight_add_path(flight_paths *paths, const char *path) {
    for (uint32_t i = 0; i < paths->count; i++) {
        if (strcmp(paths->paths[i], path) == 0) return PEN_OK;
    }
    if (paths->count == FLIGHT_VIEW_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "more than %u dumps at once", FLIGHT_VIEW_LIMIT);
    }
    if (paths->count == paths->limit) {
        const char **more;
        const uint32_t limit = paths->limit * 2 + 16;
        PEN_TRY(PEN_NEW(paths->arena, limit, &more));
        for (uint32_t i = 0; i < paths->count; i++) {
            more[i] = paths->paths[i];
        }
        paths->paths = more;
        paths->limit = limit;
    }
    paths->paths[paths->count++] = path;
    return PEN_OK;
}

static bool flight_is_dump_name(const char *name) {
    const size_t length = strlen(name);
    return strncmp(name, "flight-", 7) == 0 && length > 11 &&
           strcmp(name + length - 4, ".bin") == 0;
}

// *out_found: dumps in the folder. A folder that is not there has none.
static pen_status flight_add_folder(flight_paths *paths, const char *folder, uint32_t *out_found) {
    struct dirent **entries;
    pen_status status = PEN_OK;
    *out_found = 0;
    const int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        if (errno == ENOENT) return PEN_OK;
        return pen_error(PEN_IO, "cannot read folder %s: %s", folder, strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        if (status == PEN_OK && flight_is_dump_name(entries[i]->d_name)) {
            const char *path;
            status = pen_arena_format(paths->arena, &path, "%s/%s", folder, entries[i]->d_name);
            if (status == PEN_OK) status = flight_add_path(paths, path);
            *out_found += 1;
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static pen_status flight_find(flight_paths *paths, const char *path) {
    struct stat found;
    uint32_t count, inner_count;
    if (stat(path, &found) != 0) {
        if (errno == ENOENT) return pen_error(PEN_NOT_FOUND, "%s: there is no such file", path);
        return pen_error(PEN_IO, "%s: %s", path, strerror(errno));
    }
    if (!S_ISDIR(found.st_mode)) return flight_add_path(paths, path);
    const char *inner;
    PEN_TRY(pen_arena_format(paths->arena, &inner, "%s/flight", path));
    PEN_TRY(flight_add_folder(paths, path, &count));
    PEN_TRY(flight_add_folder(paths, inner, &inner_count));
    if (count + inner_count > 0) return PEN_OK;
    return pen_error(PEN_NOT_FOUND,
                     "%s: found no dumps of flight recorders in it, expected flight-*.bin, or a "
                     "folder `flight` with them",
                     path);
}

static int flight_compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int flight_compare(const void *a, const void *b) {
    const pen_flight_view *first = a, *second = b;
    int order = flight_compare_numbers(first->dump.generation, second->dump.generation);
    if (order == 0) order = flight_compare_numbers(first->dump.worker, second->dump.worker);
    if (order == 0) order = flight_compare_numbers(first->dump.clock, second->dump.clock);
    return order != 0 ? order : strcmp(first->path, second->path);
}

// Dumps come from processes that crashed: they are read as files of strangers, with limits.
pen_status pen_flight_views_read(const char *const *paths, uint32_t path_count, pen_arena *arena,
                                 pen_flight_view **out_views, uint32_t *out_count) {
    flight_paths found = {.arena = arena};
    pen_flight_view *views;
    for (uint32_t i = 0; i < path_count; i++) {
        PEN_TRY(flight_find(&found, paths[i]));
    }
    PEN_TRY(PEN_NEW(arena, found.count, &views));
    for (uint32_t i = 0; i < found.count; i++) {
        const char *bytes;
        size_t length;
        views[i].path = found.paths[i];
        PEN_TRY(pen_file_read(views[i].path, FLIGHT_FILE_LIMIT, arena, &bytes, &length));
        PEN_TRY(pen_status_at_position(pen_flight_dump_decode(bytes, length, arena, &views[i].dump),
                                       views[i].path, 0, 0));
    }
    if (found.count > 1) qsort(views, found.count, sizeof *views, flight_compare);
    *out_views = views;
    *out_count = found.count;
    return PEN_OK;
}

// ---- replaying, in a child

typedef struct flight_speaker {
    FILE *file;
    const pen_flight_dump_file *dump;
} flight_speaker;

static void flight_say_event(void *context, const pen_flight_event *event, bool is_same) {
    const flight_speaker *speaker = context;
    char text[PEN_FLIGHT_LINE_BYTES];
    pen_flight_event_format(speaker->dump, event, text);
    fprintf(speaker->file, "%c%" PRIu64 "  %s\n", is_same ? 'e' : 'x', event->number, text);
    fflush(speaker->file); // the next may be the last
}

static void flight_say_action(void *context, const char *text) {
    const flight_speaker *speaker = context;
    fprintf(speaker->file, "a%s\n", text);
}

// What a replay proved, one line each. The first letter tells the reader on the other end of the
// pipe which kind of line it is.
static void flight_say_verdict(FILE *file, const pen_flight_dump_file *dump,
                               const pen_flight_replay_result *result) {
    if (!result->is_whole) {
        fprintf(file, "vnot replayed: only the last %" PRIu32 " of %" PRIu64 " events are there\n",
                dump->event_count, dump->recorded);
        return;
    }
    if (strcmp(dump->build, pen_build_name()) != 0) {
        fprintf(file, "vwritten by build %s, this is %s: other things may come of events\n",
                dump->build, pen_build_name());
    }
    fprintf(file, "vreplayed %" PRIu64 " events, %" PRIu64 " of them compared", result->replayed,
            result->compared);
    if (result->different > 0) {
        fprintf(file, ": something else comes of %" PRIu64 ", first of event %" PRIu64 "\n",
                result->different, result->first_different);
    } else {
        fprintf(file, ": the core does the same\n");
    }
    if (result->fault_count > 0) {
        fprintf(file, "vevents that the run does not allow: %" PRIu64 "\n", result->fault_count);
    }
    if (result->stopped != NULL) fprintf(file, "vended early: %s\n", result->stopped);
}

// In the child. False: it could not be done.
static bool flight_replay_into(const pen_flight_dump_file *dump, bool is_full, FILE *file) {
    pen_arena *arena;
    pen_flight_replay_result result;
    flight_speaker speaker = {file, dump};
    const pen_flight_replay_options options = {.on_event = is_full ? flight_say_event : NULL,
                                               .on_action = is_full ? flight_say_action : NULL,
                                               .context = &speaker};
    if (pen_arena_create(&arena) != PEN_OK) return false;
    const pen_status status = pen_flight_replay(dump, &options, arena, &result);
    if (status != PEN_OK) {
        fprintf(file, "v%s\n", pen_status_message(status));
        pen_status_ignore(status, "said");
        return fflush(file) == 0;
    }
    for (uint32_t i = 0; i < result.state_count; i++) {
        fprintf(file, "s%s\n", result.state[i]);
    }
    flight_say_verdict(file, dump, &result);
    return fflush(file) == 0;
}

static pen_status flight_split(char *text, size_t length, pen_arena *arena, pen_flight_view *view) {
    uint32_t count = 1; // and one for what the parent adds
    for (size_t i = 0; i < length; i++) {
        count += text[i] == '\n';
    }
    pen_flight_line *lines;
    PEN_TRY(PEN_NEW(arena, count, &lines));
    view->lines = lines;
    view->line_count = 0;
    for (char *end; (end = memchr(text, '\n', length)) != NULL;) {
        *end = '\0';
        lines[view->line_count++] =
            (pen_flight_line){(pen_flight_line_kind)text[0], text[0] == '\0' ? text : text + 1};
        length -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return PEN_OK;
}

// All that comes through the pipe, with a byte more for an end.
static pen_status flight_collect(int pipe, pen_arena *arena, char **out_text, size_t *out_length) {
    size_t length = 0, room = 1 << 16;
    char *text;
    PEN_TRY(PEN_NEW(arena, room, &text));
    for (;;) {
        const ssize_t some = read(pipe, text + length, room - length);
        if (some < 0 && errno == EINTR) continue;
        if (some < 0) return pen_error(PEN_IO, "cannot read of a replay: %s", strerror(errno));
        if (some == 0) break;
        length += (size_t)some;
        if (length < room) continue;
        if (room >= FLIGHT_REPLAY_LIMIT) {
            return pen_error(PEN_UNSUPPORTED, "the replay says more than %zu bytes", room);
        }
        char *more;
        PEN_TRY(PEN_NEW(arena, room * 2, &more));
        memcpy(more, text, length);
        text = more;
        room *= 2;
    }
    *out_text = text;
    *out_length = length;
    return PEN_OK;
}

static void flight_add_verdict(pen_flight_view *view, pen_flight_line *lines, const char *text) {
    lines[view->line_count++] = (pen_flight_line){PEN_FLIGHT_LINE_VERDICT, text};
}

// In a process of its own: what made the core fail then may well fail an assertion again, and the
// other dumps are to be seen all the same.
pen_status pen_flight_view_replay(pen_flight_view *view, bool is_full, pen_arena *arena) {
    int ends[2], how = 0;
    char *text = NULL;
    size_t length = 0;
    if (pipe(ends) != 0) return pen_error(PEN_IO, "cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        if (!is_full && freopen("/dev/null", "w", stderr) == NULL) _exit(1);
        FILE *file = fdopen(ends[1], "w");
        _exit(file != NULL && flight_replay_into(&view->dump, is_full, file) ? 0 : 1);
    }
    (void)close(ends[1]);
    pen_status status = PEN_OK;
    if (child < 0) status = pen_error(PEN_IO, "cannot start a process: %s", strerror(errno));
    if (status == PEN_OK) status = flight_collect(ends[0], arena, &text, &length);
    (void)close(ends[0]);
    while (child > 0 && waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    PEN_TRY(status);
    PEN_TRY(flight_split(text, length, arena, view));
    pen_flight_line *lines;
    PEN_TRY(PEN_NEW(arena, (size_t)view->line_count + 1, &lines));
    memcpy(lines, view->lines, view->line_count * sizeof *lines);
    view->lines = lines;
    if (WIFSIGNALED(how)) {
        flight_add_verdict(view, lines,
                           "the core fails an assertion in the replay, too (--replay shows it)");
    } else if (WEXITSTATUS(how) != 0) {
        flight_add_verdict(view, lines, "the replay did not work: out of memory");
    }
    return PEN_OK;
}
