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
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define LAUNCH_PROGRAM "/proc/self/exe"
#define LAUNCH_SECONDS 30.0    // for a worker to take links
#define LAUNCH_END_SECONDS 5.0 // between asking and killing

extern char **environ;

typedef struct launched_worker {
    pid_t process; // 0: none
    int pipe;      // what it announces; -1: closed
    int end;       // as waitpid says it, of one that has ended
    char address[32];
} launched_worker;

struct pen_launched {
    uint32_t count;
    launched_worker *workers;   // [count]
    char *tls;                  // "CA,CERT,KEY"; NULL: without
    char *allowed_coordinators; // "NAME,NAME"; NULL: any
    char *allowed_workers;
    bool is_insecure;
};

// posix_spawn and not fork: gRPC does not survive a fork. The worker ends with its parent, and says
// on a pipe which port it has.
static pen_status launch_spawn(launched_worker *worker, const pen_launched *launched,
                               int announce) {
    char number[16], parent[24];
    posix_spawn_file_actions_t actions;
    snprintf(number, sizeof number, "%d", announce);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    char name[] = "penstock", verb[] = "worker", listen[] = "--listen", any[] = "127.0.0.1:0";
    char announce_option[] = "--announce", parent_option[] = "--parent";
    char tls_option[] = "--tls", insecure_option[] = "--insecure";
    char coordinators_option[] = "--allow-coordinator", workers_option[] = "--allow-worker";
    char *arguments[16] = {name, verb, listen, any, announce_option, number, parent_option, parent};
    size_t count = 8;
    if (launched->tls != NULL) arguments[count++] = tls_option;
    if (launched->tls != NULL) arguments[count++] = launched->tls;
    if (launched->allowed_coordinators != NULL) arguments[count++] = coordinators_option;
    if (launched->allowed_coordinators != NULL) arguments[count++] = launched->allowed_coordinators;
    if (launched->allowed_workers != NULL) arguments[count++] = workers_option;
    if (launched->allowed_workers != NULL) arguments[count++] = launched->allowed_workers;
    if (launched->is_insecure) arguments[count++] = insecure_option;
    if (posix_spawn_file_actions_init(&actions) != 0) return pen_error_out_of_memory();
    // it reads nothing, and writes its messages where this process does
    int code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0) {
        code = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    }
    if (code == 0) {
        code = posix_spawn(&worker->process, LAUNCH_PROGRAM, &actions, NULL, arguments, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (code == 0) return PEN_OK;
    worker->process = 0;
    return pen_error(PEN_UNAVAILABLE, "the system starts no worker process: %s", strerror(code));
}

static pen_status launch_start(launched_worker *worker, const pen_launched *launched) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return pen_error(PEN_UNAVAILABLE, "the system gives no pipe: %s", strerror(errno));
    }
    worker->pipe = ends[0];
    // the end for writing is the worker's; other workers must not have it
    if (fcntl(ends[1], F_SETFD, 0) != 0) {
        close(ends[1]);
        return pen_error(PEN_UNAVAILABLE, "the system gives no pipe: %s", strerror(errno));
    }
    const pen_status status = launch_spawn(worker, launched, ends[1]);
    close(ends[1]);
    return status;
}

// Reads "PORT\n".
static pen_status launch_await(launched_worker *worker, double deadline) {
    char text[16];
    size_t length = 0;
    for (;;) {
        const double left = deadline - pen_clock_seconds();
        struct pollfd ready = {.fd = worker->pipe, .events = POLLIN};
        const int code = left <= 0 ? 0 : poll(&ready, 1, (int)(left * 1e3) + 1);
        if (code < 0 && errno == EINTR) continue;
        if (code <= 0) {
            return pen_error(PEN_DEADLINE, "a worker process took no links within %.0f s",
                             LAUNCH_SECONDS);
        }
        const ssize_t count = read(worker->pipe, text + length, sizeof text - 1 - length);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            return pen_error(PEN_UNAVAILABLE, "a worker process ended before it took links");
        }
        length += (size_t)count;
        text[length] = '\0';
        if (strchr(text, '\n') != NULL) break;
        if (length == sizeof text - 1) {
            return pen_error(PEN_CORRUPT, "a worker process announced no port");
        }
    }
    const unsigned long port = strtoul(text, NULL, 10);
    if (port == 0 || port > UINT16_MAX) {
        return pen_error(PEN_CORRUPT, "a worker process announced port %lu", port);
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
        PEN_TRY(launch_await(&launched->workers[i], deadline));
    }
    return PEN_OK;
}

// "ONE,TWO", as the command takes it. NULL for none.
static pen_status launch_join(const char *const *texts, size_t count, char **out_text) {
    size_t size = 1, used = 0;
    for (size_t i = 0; i < count; i++)
        size += strlen(texts[i]) + 1;
    if (count == 0) return PEN_OK;
    *out_text = pen_memory_allocate(size, 1);
    if (*out_text == NULL) return pen_error_out_of_memory();
    for (size_t i = 0; i < count; i++)
        used +=
            (size_t)snprintf(*out_text + used, size - used, "%s%s", i == 0 ? "" : ",", texts[i]);
    return PEN_OK;
}

static pen_status launch_name_files(pen_launched *launched, const pen_launch_options *options) {
    const pen_transport_tls *tls = &options->tls;
    const char *const files[3] = {tls->ca, tls->cert, tls->key};
    launched->is_insecure = options->is_insecure;
    if (tls->ca == NULL) return PEN_OK;
    PEN_TRY(launch_join(files, 3, &launched->tls));
    PEN_TRY(launch_join(tls->coordinators.names, tls->coordinators.count,
                        &launched->allowed_coordinators));
    return launch_join(tls->workers.names, tls->workers.count, &launched->allowed_workers);
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
    if (status == PEN_OK) status = launch_name_files(launched, options);
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

static bool launch_has_ended(launched_worker *worker) {
    if (worker->process == 0) return true;
    const pid_t ended = waitpid(worker->process, &worker->end, WNOHANG);
    if (ended != worker->process && !(ended < 0 && errno == ECHILD)) return false;
    worker->process = 0;
    return true;
}

bool pen_launched_is_alive(pen_launched *launched, uint32_t index, char *out_end, size_t size) {
    PEN_ASSERT(index < launched->count);
    launched_worker *worker = &launched->workers[index];
    if (size > 0) out_end[0] = '\0';
    if (!launch_has_ended(worker)) return true;
    if (WIFSIGNALED(worker->end)) {
        snprintf(out_end, size, "killed by signal %d", WTERMSIG(worker->end));
    } else {
        snprintf(out_end, size, "ended with code %d", WEXITSTATUS(worker->end));
    }
    return false;
}

pen_status pen_launched_restart(pen_launched *launched, uint32_t index) {
    PEN_ASSERT(index < launched->count);
    launched_worker *worker = &launched->workers[index];
    const struct timespec pause = {.tv_nsec = 1000000};
    if (worker->process != 0) (void)kill(worker->process, SIGKILL);
    while (!launch_has_ended(worker)) { // a killed process ends at once, a stopped one too
        (void)nanosleep(&pause, NULL);
    }
    if (worker->pipe >= 0) close(worker->pipe);
    worker->pipe = -1;
    worker->end = 0;
    PEN_TRY(launch_start(worker, launched));
    return launch_await(worker, pen_clock_seconds() + LAUNCH_SECONDS);
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
        const struct timespec pause = {.tv_nsec = 2000000};
        launch_signal(launched, SIGTERM);
        while (!launch_have_ended(launched) && pen_clock_seconds() < deadline) {
            (void)nanosleep(&pause, NULL);
        }
        launch_signal(launched, SIGKILL);
        while (!launch_have_ended(launched)) {
            (void)nanosleep(&pause, NULL);
        }
        for (uint32_t i = 0; i < launched->count; i++) {
            if (launched->workers[i].pipe >= 0) close(launched->workers[i].pipe);
        }
    }
    pen_memory_free(launched->workers);
    pen_memory_free(launched->tls);
    pen_memory_free(launched->allowed_coordinators);
    pen_memory_free(launched->allowed_workers);
    pen_memory_free(launched);
}
