#include "graph/import/keras/hdf5_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/system/sandbox.h"
#include "graph/import/keras/hdf5_library.h"
#include "graph/import/keras/hdf5_serve.h"

#define PROCESS_SECONDS 4                  // of the processor, for the smallest file
#define PROCESS_BYTES_PER_SECOND (8 << 20) // and more for larger ones: packed contents are unpacked
#define PROCESS_WAIT_FACTOR 15             // where others use the processor, too
#define PROCESS_MEMORY ((rlim_t)4 << 30)
#define PROCESS_BUFFER_BYTES (32 << 10)

struct pen_hdf5_process {
    const char *name;
    pid_t id; // -1: it was waited for
    int socket;
    int wait_milliseconds;
    size_t used, filled; // of the buffer
    uint8_t buffer[PROCESS_BUFFER_BYTES];
};

// ---- in the new process

// Nothing of ours stays open but the socket, so that ports and files are free when we are gone.
static void process_leave_files(int socket) {
    const int nowhere = open("/dev/null", O_RDWR);
    for (int file = 0; file < 3 && nowhere >= 0; file++) // libraries say on what they crash
        (void)dup2(nowhere, file);
    (void)close_range(3, (unsigned)socket - 1, 0);
    (void)close_range((unsigned)socket + 1, ~0u, 0);
}

// A file may say that little is much: what libhdf5 then asks for is refused.
static void process_bound_memory(size_t length) {
    char text[128] = "";
    unsigned long long data_pages = 0;
    const int file = open("/proc/self/statm", O_RDONLY);
    if (file < 0) return;
    const ssize_t got = read(file, text, sizeof text - 1);
    (void)close(file);
    if (got <= 0 || sscanf(text, "%*s %*s %*s %*s %*s %llu", &data_pages) != 1) return;
    const rlim_t bytes = data_pages * (rlim_t)sysconf(_SC_PAGESIZE) + PROCESS_MEMORY + 2 * length;
    const struct rlimit memory = {bytes, bytes};
    (void)setrlimit(RLIMIT_DATA, &memory);
}

static void process_bound(size_t length) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU,
                                  SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct rlimit no_core = {0, 0};
    const rlim_t seconds = PROCESS_SECONDS + length / PROCESS_BYTES_PER_SECOND;
    const struct rlimit time = {seconds, seconds};
    sigset_t none;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &time);
}

// The library is loaded first, since no file can be opened afterwards. Where the kernel has no
// filter, the limits above are what there is.
static void process_confine(void) {
    const pen_hdf5_library *h5;
    pen_status_ignore(pen_hdf5_library_load(&h5), "is said to who reads the file");
    (void)pen_sandbox_enter_calculator();
}

// It releases nothing.
__attribute__((noreturn)) static void process_run(const char *name, const void *bytes,
                                                  size_t length, int given) {
    const int socket = fcntl(given, F_DUPFD, 3); // not where libraries write
    process_leave_files(socket);
    process_bound_memory(length);
    process_bound(length);
    process_confine();
    pen_hdf5_serve(name, bytes, length, socket);
    _exit(0);
}

// ---- in ours

static pen_status process_refused(const char *name) {
    return pen_error(PEN_UNAVAILABLE, "%s: no process to read it in: %s", name, strerror(errno));
}

static pen_status process_fork(pen_hdf5_process *process, const void *bytes, size_t length) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        return process_refused(process->name);
    }
    process->id = fork();
    if (process->id == 0) process_run(process->name, bytes, length, sockets[1]);
    process->socket = sockets[0];
    (void)close(sockets[1]);
    return process->id > 0 ? PEN_OK : process_refused(process->name);
}

pen_status pen_hdf5_process_start(const char *name, const void *bytes, size_t length,
                                  pen_hdf5_process **out_process) {
    pen_hdf5_process *process = pen_memory_allocate(1, sizeof *process);
    if (process == NULL) return pen_error_out_of_memory();
    const uint64_t seconds = PROCESS_SECONDS + length / PROCESS_BYTES_PER_SECOND;
    process->name = name;
    process->id = -1;
    process->socket = -1;
    process->wait_milliseconds =
        seconds > 3600 ? 3600 * 1000 : (int)(seconds * PROCESS_WAIT_FACTOR * 1000);
    const pen_status status = process_fork(process, bytes, length);
    if (status != PEN_OK) {
        pen_hdf5_process_end(process);
        return status;
    }
    *out_process = process;
    return PEN_OK;
}

// Waits until it ended, and says how. -1: somebody else waited for it.
static int process_reap(pen_hdf5_process *process) {
    int how = -1;
    pid_t ended;
    do {
        ended = waitpid(process->id, &how, 0);
    } while (ended < 0 && errno == EINTR);
    const bool is_ours = ended == process->id;
    process->id = -1;
    return is_ours ? how : -1;
}

// It said less than it was to say.
static pen_status process_ended(pen_hdf5_process *process) {
    const int how = process->id > 0 ? process_reap(process) : -1;
    // sanitizers end with a code instead of a signal
    const int number = how != -1 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    const bool is_late = number == SIGXCPU || number == SIGKILL;
    return pen_error(PEN_CORRUPT, "%s: HDF5 %s on it (signal %d): the file is damaged",
                     process->name, is_late ? "does not come to an end" : "crashes", number);
}

static pen_status process_wait(pen_hdf5_process *process) {
    struct pollfd file = {.fd = process->socket, .events = POLLIN};
    int ready;
    do {
        ready = poll(&file, 1, process->wait_milliseconds);
    } while (ready < 0 && errno == EINTR);
    if (ready > 0) return PEN_OK;
    return pen_error(PEN_DEADLINE, "%s: the process that reads it says nothing for %d s",
                     process->name, process->wait_milliseconds / 1000);
}

static pen_status process_receive(pen_hdf5_process *process, void *bytes, size_t length,
                                  size_t *out_length) {
    ssize_t got;
    do {
        PEN_TRY(process_wait(process));
        got = recv(process->socket, bytes, length, 0);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return process_ended(process);
    *out_length = (size_t)got;
    return PEN_OK;
}

// Small reads go through the buffer; large ones go straight to where they are wanted.
static pen_status process_read(void *context, void *bytes, size_t length) {
    pen_hdf5_process *process = context;
    uint8_t *at = bytes;
    while (length > 0) {
        size_t got = process->filled - process->used;
        if (got == 0 && length >= sizeof process->buffer) {
            PEN_TRY(process_receive(process, at, length, &got));
        } else {
            if (got == 0) {
                PEN_TRY(process_receive(process, process->buffer, sizeof process->buffer, &got));
                process->used = 0;
                process->filled = got;
            }
            got = got < length ? got : length;
            memcpy(at, process->buffer + process->used, got);
            process->used += got;
        }
        at += got;
        length -= got;
    }
    return PEN_OK;
}

static pen_status process_ask(void *context, uint32_t object) {
    pen_hdf5_process *process = context;
    ssize_t sent;
    do {
        sent = send(process->socket, &object, sizeof object, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    // a few bytes go whole into an empty socket
    return sent == (ssize_t)sizeof object ? PEN_OK : process_ended(process);
}

pen_hdf5_source pen_hdf5_process_source(pen_hdf5_process *process) {
    return (pen_hdf5_source){.context = process,
                             .read = process_read,
                             .ask = process_ask,
                             .catalogue_bytes = PEN_HDF5_CATALOGUE_LIMIT,
                             .contents_bytes = UINT64_MAX};
}

void pen_hdf5_process_end(pen_hdf5_process *process) {
    if (process == NULL) return;
    if (process->socket >= 0) (void)close(process->socket);
    if (process->id > 0) {
        (void)kill(process->id, SIGKILL); // it has nothing to lose
        (void)process_reap(process);
    }
    pen_memory_free(process);
}
