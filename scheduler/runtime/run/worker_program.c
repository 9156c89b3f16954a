#include "scheduler/runtime/run/worker_program.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_NAME "penstock"
#define PROGRAM_SELF "/proc/self/exe"

static bool program_is_self_worker;

void pen_worker_program_use_self(void) {
    program_is_self_worker = true;
}

static bool program_is_self(const char *path) {
    struct stat self, other;
    return stat(PROGRAM_SELF, &self) == 0 && stat(path, &other) == 0 &&
           self.st_dev == other.st_dev && self.st_ino == other.st_ino;
}

static bool program_can_run(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

pen_status pen_worker_program_library(pen_arena *arena, const char **out_path) {
    Dl_info about;
    // a function's address goes to dladdr as a data pointer; POSIX lets its bytes be taken over
    void (*const function)(void) = pen_worker_program_use_self;
    const void *address;
    memcpy(&address, &function, sizeof address);
    char path[PATH_MAX];
    // of code of the program itself the loader says argv[0]: from PATH that is `penstock`, and a
    // folder of that name may be here
    const bool is_found = dladdr(address, &about) != 0 && strchr(about.dli_fname, '/') != NULL &&
                          realpath(about.dli_fname, path) != NULL;
    // else there is no library: its code is part of the program
    if (!is_found && realpath(PROGRAM_SELF, path) == NULL) {
        return pen_error(PEN_INTERNAL, "cannot find the library's own file");
    }
    return pen_arena_copy_text(arena, path, strlen(path), out_path);
}

// The library lies beside the command in a build folder or a Python module, and in `lib`, or in a
// folder of `lib`, where it is installed.
static pen_status program_find_beside(const char *library, pen_arena *arena,
                                      const char **out_path) {
    static const char *const places[] = {"", "../bin/", "../../bin/"};
    const int length = (int)(strrchr(library, '/') - library);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *path;
        PEN_TRY(pen_arena_format(arena, &path, "%.*s/%s" PROGRAM_NAME, length, library, places[i]));
        if (!program_can_run(path) || program_is_self(path)) continue;
        *out_path = path;
        return PEN_OK;
    }
    return PEN_OK;
}

static pen_status program_find_on_path(pen_arena *arena, const char **out_path) {
    const char *folders = getenv("PATH");
    while (folders != NULL && *folders != '\0') {
        const size_t length = strcspn(folders, ":");
        const char *path;
        PEN_TRY(pen_arena_format(arena, &path, "%.*s/" PROGRAM_NAME, (int)length, folders));
        // a relative folder would mean another program after each change of the current one
        if (folders[0] == '/' && program_can_run(path) && !program_is_self(path)) {
            *out_path = path;
            return PEN_OK;
        }
        folders += length + (folders[length] == ':');
    }
    return PEN_OK;
}

static pen_status program_check_given(const pen_worker_program *program) {
    if (program_is_self(program->path) && !program_is_self_worker) {
        return pen_error(PEN_UNAVAILABLE,
                         "the worker program '%s' (%s) is this program itself, expected the "
                         "command `" PROGRAM_NAME "`",
                         program->path, program->source);
    }
    if (program_can_run(program->path)) return PEN_OK;
    return pen_error(PEN_UNAVAILABLE,
                     "the worker program '%s' (%s) is no file that can be run, expected the "
                     "command `" PROGRAM_NAME "`",
                     program->path, program->source);
}

static pen_status program_look(pen_arena *arena, pen_worker_program *program) {
    const char *library;
    if (program_is_self_worker) {
        *program = (pen_worker_program){PROGRAM_SELF, "this program"};
        return PEN_OK;
    }
    PEN_TRY(pen_worker_program_library(arena, &library));
    program->source = "beside the library";
    PEN_TRY(program_find_beside(library, arena, &program->path));
    if (program->path != NULL) return PEN_OK;
    program->source = "on PATH";
    PEN_TRY(program_find_on_path(arena, &program->path));
    if (program->path != NULL) return PEN_OK;
    return pen_error(PEN_UNAVAILABLE,
                     "found no command `" PROGRAM_NAME "` to run as a worker, neither beside the "
                     "library '%s' nor on PATH: install it, or give its path in the environment "
                     "variable " PEN_WORKER_PROGRAM_VARIABLE,
                     library);
}

pen_status pen_worker_program_find(const char *given, pen_arena *arena,
                                   pen_worker_program *out_program) {
    const char *environment = getenv(PEN_WORKER_PROGRAM_VARIABLE);
    *out_program = (pen_worker_program){0};
    if (getenv(PEN_WORKER_PROGRAM_MARK) != NULL) {
        return pen_error(PEN_UNAVAILABLE,
                         "this process was started as a worker, but wants workers of its own: the "
                         "worker program must be the command `" PROGRAM_NAME "` (" //
                         PEN_WORKER_PROGRAM_VARIABLE " names another?)");
    }
    if (given != NULL && given[0] != '\0') {
        *out_program = (pen_worker_program){given, "given by the caller"};
    } else if (environment != NULL && environment[0] != '\0') {
        *out_program = (pen_worker_program){environment, "given by " PEN_WORKER_PROGRAM_VARIABLE};
    } else {
        return program_look(arena, out_program);
    }
    return program_check_given(out_program);
}
