#include "graph/import/keras/hdf5_probe.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/import/keras/hdf5_file.h"

#define PROBE_DEPTH_LIMIT 16
#define PROBE_SECONDS 4                  // of the processor, for the smallest file
#define PROBE_BYTES_PER_SECOND (8 << 20) // and more for larger ones: packed contents are unpacked

typedef struct probe_walk {
    const pen_hdf5 *file;
    pen_arena *names;   // of paths
    pen_arena *scratch; // of contents
} probe_walk;

static void probe_drop(pen_status status) {
    pen_status_ignore(status, "whoever reads the file finds it again");
}

static void probe_dataset(const probe_walk *walk, const char *path) {
    pen_tensor_type type;
    const void *data;
    probe_drop(pen_hdf5_read_dataset(walk->file, path, walk->scratch, &type, &data));
    pen_arena_reset(walk->scratch);
}

static void probe_texts(const probe_walk *walk, const char *path) {
    static const char *const attributes[] = {"model_config", "layer_names", "weight_names",
                                             "weight_names0"};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        uint32_t count;
        const char *const *texts;
        probe_drop(
            pen_hdf5_read_texts(walk->file, path, attributes[i], walk->scratch, &count, &texts));
        pen_arena_reset(walk->scratch);
    }
}

static void probe_group(const probe_walk *walk, const char *path, uint32_t depth) {
    uint32_t count;
    const pen_hdf5_child *children;
    probe_texts(walk, path);
    const pen_status status = pen_hdf5_list(walk->file, path, walk->names, &count, &children);
    if (status != PEN_OK) {
        probe_drop(status);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *child;
        const pen_status named = pen_arena_format(
            walk->names, &child, "%s/%s", strcmp(path, "/") == 0 ? "" : path, children[i].name);
        if (named != PEN_OK) {
            probe_drop(named);
            return;
        }
        if (children[i].kind == PEN_HDF5_DATASET) probe_dataset(walk, child);
        if (children[i].kind == PEN_HDF5_GROUP && depth < PROBE_DEPTH_LIMIT) {
            probe_group(walk, child, depth + 1);
        }
    }
}

static pen_status probe_read(const char *name, const void *bytes, size_t length) {
    probe_walk walk;
    pen_hdf5 *file;
    PEN_TRY(pen_arena_create(&walk.names));
    PEN_TRY(pen_arena_create(&walk.scratch));
    PEN_TRY(pen_hdf5_open(name, bytes, length, &file));
    walk.file = file;
    probe_group(&walk, "/", 0);
    pen_hdf5_close(file);
    return PEN_OK;
}

// What the process does: reads, and ends as the system makes it end. It releases nothing.
__attribute__((noreturn)) static void probe_child(const char *name, const void *bytes,
                                                  size_t length) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU};
    const struct rlimit no_core = {0, 0};
    const rlim_t seconds = PROBE_SECONDS + length / PROBE_BYTES_PER_SECOND;
    const struct rlimit time = {seconds, seconds};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &time);
    probe_drop(probe_read(name, bytes, length));
    _exit(0);
}

pen_status pen_hdf5_probe(const char *name, const void *bytes, size_t length) {
    int how = 0;
    pid_t ended;
    pen_hdf5_enter(); // so that no other thread is in libhdf5 while the process is copied
    const pid_t child = fork();
    pen_hdf5_leave();
    if (child == 0) probe_child(name, bytes, length);
    if (child < 0) {
        return pen_error(PEN_UNAVAILABLE, "%s: no process to read it in: %s", name,
                         strerror(errno));
    }
    do {
        ended = waitpid(child, &how, 0);
    } while (ended < 0 && errno == EINTR);
    if (ended != child) return PEN_OK; // somebody else waited for it
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return PEN_OK;
    const int number = WIFSIGNALED(how) ? WTERMSIG(how) : 0; // sanitizers exit with a code instead
    return pen_error(PEN_CORRUPT, "%s: HDF5 %s on it (signal %d): the file is damaged", name,
                     number == SIGXCPU || number == SIGKILL ? "does not come to an end" : "crashes",
                     number);
}
