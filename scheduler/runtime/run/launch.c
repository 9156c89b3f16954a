#include "scheduler/runtime/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/system/build.h"
#include "base/system/file_beneath.h"
#include "scheduler/runtime/run/worker_program.h"

#define LAUNCH_SECONDS 30.0        // for a worker to take links
#define LAUNCH_END_SECONDS 5.0     // between asking and killing
#define LAUNCH_SAY_SECONDS 1.0     // for one that closed its pipe to end
#define LAUNCH_PAUSE_SECONDS 0.002 // between two looks at processes
#define LAUNCH_END_UNKNOWN (-1)    // somebody else waited for it, or the system was told to
#define LAUNCH_ANNOUNCE_FD 3
#define LAUNCH_ARGUMENT_LIMIT 26
#define LAUNCH_TEXT_BYTES 128 // of what a worker announces

extern char **environ;

typedef struct launched_worker {
    pid_t process; // 0: none
    int pipe;      // what it announces; -1: closed
    int end;       // as waitpid says it, of one that has ended; LAUNCH_END_UNKNOWN
    char address[32];
} launched_worker;

struct pen_launched {
    uint32_t count;
    launched_worker *workers; // [count]
    pen_arena *arena;         // what follows
    pen_worker_program program;
    const char *library;      // the file that this code is in
    char *const *arguments;   // of the program, with NULL behind them
    char *const *environment; // of the program, as well
};

static bool launch_has_ended(launched_worker *worker) {
    if (worker->process == 0) return true;
    const pid_t ended = waitpid(worker->process, &worker->end, WNOHANG);
    if (ended != worker->process && !(ended < 0 && errno == ECHILD)) return false;
    if (ended < 0) worker->end = LAUNCH_END_UNKNOWN;
    worker->process = 0;
    return true;
}

static void launch_format_end(const launched_worker *worker, char *out_end, size_t size) {
    if (worker->end == LAUNCH_END_UNKNOWN) {
        snprintf(out_end, size, "ended");
    } else if (WIFSIGNALED(worker->end)) {
        snprintf(out_end, size, "killed by signal %d", WTERMSIG(worker->end));
    } else {
        snprintf(out_end, size, "ended with code %d", WEXITSTATUS(worker->end));
    }
}

// It reads nothing, writes its messages where this process does, announces itself on one pipe, and
// has nothing else that is open here.
static int launch_fill_files(posix_spawn_file_actions_t *actions, int announce) {
    int code = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0) code = posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(actions, announce, LAUNCH_ANNOUNCE_FD);
    if (code != 0) return code;
    return posix_spawn_file_actions_addclosefrom_np(actions, LAUNCH_ANNOUNCE_FD + 1);
}

// posix_spawn and not fork: gRPC does not survive a fork. The worker ends with its parent, and says
// on a pipe which port it has.
static pen_status launch_spawn(launched_worker *worker, const pen_launched *launched,
                               int announce) {
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) return pen_error_out_of_memory();
    int code = launch_fill_files(&actions, announce);
    if (code == 0) {
        code = posix_spawn(&worker->process, launched->program.path, &actions, NULL,
                           launched->arguments, launched->environment);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (code == 0) return PEN_OK;
    worker->process = 0;
    return pen_error(PEN_UNAVAILABLE, "the system does not start the worker program '%s' (%s): %s",
                     launched->program.path, launched->program.source, strerror(code));
}

static pen_status launch_start(launched_worker *worker, const pen_launched *launched) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return pen_error(PEN_UNAVAILABLE, "the system gives no pipe: %s", strerror(errno));
    }
    worker->pipe = ends[0];
    const pen_status status = launch_spawn(worker, launched, ends[1]);
    close(ends[1]);
    return status;
}

// Why a worker's pipe was closed before all was said: most often it has ended, or is about to.
static pen_status launch_blame(launched_worker *worker, const pen_launched *launched) {
    const double deadline = pen_clock_seconds() + LAUNCH_SAY_SECONDS;
    char end[64] = "said nothing of it";
    while (!launch_has_ended(worker) && pen_clock_seconds() < deadline)
        pen_clock_pause(LAUNCH_PAUSE_SECONDS);
    if (worker->process == 0) launch_format_end(worker, end, sizeof end);
    return pen_error(PEN_UNAVAILABLE,
                     "the worker program '%s' (%s) took no links and %s, expected the command "
                     "`penstock` of build %s; what it printed says more",
                     launched->program.path, launched->program.source, end, pen_build_name());
}

// Reads "PORT\nBUILD\n": until the second end of line.
static pen_status launch_read(launched_worker *worker, const pen_launched *launched,
                              double deadline, char text[LAUNCH_TEXT_BYTES]) {
    size_t length = 0;
    for (;;) {
        const double left = deadline - pen_clock_seconds();
        struct pollfd ready = {.fd = worker->pipe, .events = POLLIN};
        const int code = left <= 0 ? 0 : poll(&ready, 1, (int)(left * 1e3) + 1);
        if (code < 0 && errno == EINTR) continue;
        if (code <= 0) {
            return pen_error(PEN_DEADLINE,
                             "the worker program '%s' (%s) took no links within %.0f s",
                             launched->program.path, launched->program.source, LAUNCH_SECONDS);
        }
        const ssize_t count = read(worker->pipe, text + length, LAUNCH_TEXT_BYTES - 1 - length);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return launch_blame(worker, launched);
        length += (size_t)count;
        text[length] = '\0';
        const char *line = strchr(text, '\n');
        if (line != NULL && strchr(line + 1, '\n') != NULL) return PEN_OK;
        if (length == LAUNCH_TEXT_BYTES - 1) {
            return pen_error(PEN_CORRUPT,
                             "the worker program '%s' (%s) announced no port and build",
                             launched->program.path, launched->program.source);
        }
    }
}

// Two builds may not train together: told here by the names of both, not by a link that fails.
static pen_status launch_await(launched_worker *worker, const pen_launched *launched,
                               double deadline) {
    char text[LAUNCH_TEXT_BYTES];
    char *rest;
    PEN_TRY(launch_read(worker, launched, deadline, text));
    const unsigned long port = strtoul(text, &rest, 10);
    if (port == 0 || port > UINT16_MAX || *rest != '\n') {
        return pen_error(PEN_CORRUPT, "the worker program '%s' (%s) announced no port",
                         launched->program.path, launched->program.source);
    }
    const char *build = rest + 1;
    rest[1 + strcspn(build, "\n")] = '\0';
    if (strcmp(build, pen_build_name()) != 0) {
        return pen_error(PEN_UNAVAILABLE,
                         "the worker program '%s' (%s) is of build %s, but '%s' is of build %s: "
                         "expected one build",
                         launched->program.path, launched->program.source, build, launched->library,
                         pen_build_name());
    }
    snprintf(worker->address, sizeof worker->address, "127.0.0.1:%lu", port);
    close(worker->pipe);
    worker->pipe = -1;
    return PEN_OK;
}

static pen_status launch_all(pen_launched *launched) {
    for (uint32_t i = 0; i < launched->count; i++) {
        PEN_TRY(launch_start(&launched->workers[i], launched));
    }
    const double deadline = pen_clock_seconds() + LAUNCH_SECONDS;
    for (uint32_t i = 0; i < launched->count; i++) {
        PEN_TRY(launch_await(&launched->workers[i], launched, deadline));
    }
    return PEN_OK;
}

// "ONE,TWO", as the command takes it.
static pen_status launch_join(const char *const *texts, size_t count, pen_arena *arena,
                              const char **out_text) {
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        PEN_TRY(pen_arena_format(arena, &text, "%s%s%s", text, i == 0 ? "" : ",", texts[i]));
    }
    *out_text = text;
    return PEN_OK;
}

typedef struct launch_list {
    const char *items[LAUNCH_ARGUMENT_LIMIT + 1];
    size_t count;
} launch_list;

static pen_status launch_add_names(launch_list *list, const char *option,
                                   const pen_transport_names *names, pen_arena *arena) {
    if (names->count == 0) return PEN_OK;
    list->items[list->count++] = option;
    return launch_join(names->names, names->count, arena, &list->items[list->count++]);
}

// posix_spawn takes texts that might be written to, but writes none.
static pen_status launch_keep(const char *const *items, size_t count, pen_arena *arena,
                              char *const **out_items) {
    char **kept;
    PEN_TRY(PEN_NEW(arena, count + 1, &kept));
    if (count > 0) memcpy(kept, items, count * sizeof *kept);
    *out_items = kept;
    return PEN_OK;
}

// What the worker is started with: links as this process has them, and all that it may read.
static pen_status launch_fill_arguments(pen_launched *launched, const pen_launch_options *options) {
    const pen_transport_tls *tls = &options->tls;
    const char *const files[3] = {tls->ca, tls->cert, tls->key};
    pen_arena *arena = launched->arena;
    launch_list list = {{"penstock", "worker", "--listen", "127.0.0.1:0"}, 4};
    list.items[list.count++] = "--announce";
    PEN_TRY(pen_arena_format(arena, &list.items[list.count++], "%d", LAUNCH_ANNOUNCE_FD));
    list.items[list.count++] = "--parent";
    PEN_TRY(pen_arena_format(arena, &list.items[list.count++], "%ld", (long)getpid()));
    if (tls->ca != NULL) {
        list.items[list.count++] = "--tls";
        PEN_TRY(launch_join(files, 3, arena, &list.items[list.count++]));
        if (tls->crl != NULL) {
            list.items[list.count++] = "--crl";
            list.items[list.count++] = tls->crl;
        }
        PEN_TRY(launch_add_names(&list, "--allow-coordinator", &tls->coordinators, arena));
        PEN_TRY(launch_add_names(&list, "--allow-worker", &tls->workers, arena));
    }
    list.items[list.count++] = "--data";
    list.items[list.count++] = "/";
    if (options->token_file != NULL) {
        list.items[list.count++] = "--token-file";
        list.items[list.count++] = options->token_file;
    }
    if (options->store != NULL) {
        list.items[list.count++] = "--store";
        PEN_TRY(pen_path_resolve(options->store, arena, &list.items[list.count++]));
    }
    if (options->mirror != NULL) {
        list.items[list.count++] = "--mirror";
        PEN_TRY(pen_path_resolve(options->mirror, arena, &list.items[list.count++]));
    }
    if (options->is_insecure) list.items[list.count++] = "--insecure";
    PEN_ASSERT(list.count <= LAUNCH_ARGUMENT_LIMIT);
    return launch_keep(list.items, list.count, arena, &launched->arguments);
}

static pen_status launch_fill_environment(pen_launched *launched) {
    const char **items;
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    PEN_TRY(PEN_NEW(launched->arena, count + 1, &items));
    for (size_t i = 0; i < count; i++)
        items[i] = environ[i];
    items[count] = PEN_WORKER_PROGRAM_MARK "=1";
    return launch_keep(items, count + 1, launched->arena, &launched->environment);
}

static pen_status launch_prepare(pen_launched *launched, const pen_launch_options *options) {
    PEN_TRY(pen_arena_create(&launched->arena));
    PEN_TRY(pen_worker_program_library(launched->arena, &launched->library));
    PEN_TRY(pen_worker_program_find(options->program, launched->arena, &launched->program));
    PEN_TRY(pen_arena_copy_text(launched->arena, launched->program.path,
                                strlen(launched->program.path), &launched->program.path));
    PEN_TRY(launch_fill_arguments(launched, options));
    return launch_fill_environment(launched);
}

pen_status pen_launch_workers(uint32_t count, const pen_launch_options *options,
                              pen_launched **out_launched) {
    pen_launched *launched = pen_memory_allocate(1, sizeof *launched);
    if (launched == NULL) return pen_error_out_of_memory();
    launched->count = count;
    launched->workers = pen_memory_allocate(count, sizeof *launched->workers);
    pen_status status = launched->workers == NULL ? pen_error_out_of_memory() : PEN_OK;
    for (uint32_t i = 0; launched->workers != NULL && i < count; i++) {
        launched->workers[i].pipe = -1;
    }
    if (status == PEN_OK) status = launch_prepare(launched, options);
    if (status == PEN_OK) status = launch_all(launched);
    if (status != PEN_OK) {
        pen_launched_end(launched);
        return status;
    }
    *out_launched = launched;
    return PEN_OK;
}

const char *pen_launched_address(const pen_launched *launched, uint32_t index) {
    PEN_ASSERT(index < launched->count);
    return launched->workers[index].address;
}

bool pen_launched_is_alive(pen_launched *launched, uint32_t index, char *out_end, size_t size) {
    PEN_ASSERT(index < launched->count);
    launched_worker *worker = &launched->workers[index];
    if (size > 0) out_end[0] = '\0';
    if (!launch_has_ended(worker)) return true;
    launch_format_end(worker, out_end, size);
    return false;
}

pen_status pen_launched_restart(pen_launched *launched, uint32_t index) {
    PEN_ASSERT(index < launched->count);
    launched_worker *worker = &launched->workers[index];
    if (worker->process != 0) (void)kill(worker->process, SIGKILL);
    while (!launch_has_ended(worker)) { // a killed process ends at once, a stopped one too
        pen_clock_pause(LAUNCH_PAUSE_SECONDS);
    }
    if (worker->pipe >= 0) close(worker->pipe);
    worker->pipe = -1;
    worker->end = 0;
    PEN_TRY(launch_start(worker, launched));
    return launch_await(worker, launched, pen_clock_seconds() + LAUNCH_SECONDS);
}

static bool launch_have_ended(pen_launched *launched) {
    bool have_ended = true;
    for (uint32_t i = 0; i < launched->count; i++) {
        if (!launch_has_ended(&launched->workers[i])) have_ended = false;
    }
    return have_ended;
}

static void launch_signal(const pen_launched *launched, int number) {
    for (uint32_t i = 0; i < launched->count; i++) {
        if (launched->workers[i].process != 0) (void)kill(launched->workers[i].process, number);
    }
}

// Asks, waits a moment, then kills: a training that ends leaves no process behind.
void pen_launched_end(pen_launched *launched) {
    if (launched == NULL) return;
    if (launched->workers != NULL) {
        const double deadline = pen_clock_seconds() + LAUNCH_END_SECONDS;
        launch_signal(launched, SIGTERM);
        while (!launch_have_ended(launched) && pen_clock_seconds() < deadline) {
            pen_clock_pause(LAUNCH_PAUSE_SECONDS);
        }
        launch_signal(launched, SIGKILL);
        while (!launch_have_ended(launched)) {
            pen_clock_pause(LAUNCH_PAUSE_SECONDS);
        }
        for (uint32_t i = 0; i < launched->count; i++) {
            if (launched->workers[i].pipe >= 0) close(launched->workers[i].pipe);
        }
    }
    pen_memory_free(launched->workers);
    pen_arena_destroy(launched->arena);
    pen_memory_free(launched);
}
