// What the files of the fake driver share: its state, and how a command gets onto a stream. Its
// rules are told by fake_driver.h.
//
// Threads: `fake_lock` guards counts, blocks, rings of commands and events.
#ifndef PEN_TESTS_CUDA_FAKE_INSIDE_H
#define PEN_TESTS_CUDA_FAKE_INSIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cuda/cuda_driver.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_gpus.h"

// Results of the driver, by cuda.h.
#define FAKE_NO_BINARY 209u
#define FAKE_NO_CAPTURE 401u
#define FAKE_INVALID_HANDLE 400u
#define FAKE_NOT_FOUND 500u
#define FAKE_NOT_READY 600u
#define FAKE_ILLEGAL 700u
#define FAKE_LAUNCH_FAILED 719u
#define FAKE_CAPTURE_UNSUPPORTED 900u
#define FAKE_CAPTURE_INVALIDATED 901u

#define FAKE_COMMANDS 4096u

// Declares all functions, as the device sees them.
#define FAKE_DECLARE(name, symbol, parameters) pen_cuda_result symbol parameters;
PEN_CUDA_FUNCTIONS(FAKE_DECLARE)

typedef enum fake_kind {
    FAKE_COPY,
    FAKE_FILL,
    FAKE_KERNEL,
    FAKE_EVENT,
    FAKE_PASS,
    FAKE_CALL, // of a library over the driver
} fake_kind;

typedef struct fake_command {
    fake_kind kind;
    bool is_out; // a copy to the host
    void *to;
    const void *from;
    size_t bytes;
    int value;
    const emulated_kernel *kernel;
    emulated_size grid;
    uint32_t threads;
    uint8_t args[1024];
    void (*call)(const void *args);
    pen_cuda_event *event;
    uint64_t ticket;
    uint64_t idle_ns; // when it was given to a stream that had nothing else to do; 0: it had
} fake_command;

// Commands that were captured, and what launches them.
struct CUgraph_st {
    fake_command *commands; // [count]
    size_t count;
};

struct CUgraphExec_st {
    pen_cuda_graph graph;
};

struct CUstream_st {
    pthread_t thread;
    pthread_cond_t given;     // there is a command, or the stream is over
    pen_cuda_graph *captured; // NULL: it does not capture
    bool is_capture_bad;
    fake_command commands[FAKE_COMMANDS]; // a ring
    uint64_t queued, done;
    bool is_over;
    int device;
    unsigned role; // its number among the streams of its device
};

struct CUevent_st {
    uint64_t recorded, reached;
    uint64_t at_ns; // when it was reached last, by the host's monotonic clock
    bool is_untimed;
    unsigned role; // of the stream that it was recorded on last
};

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;
extern fake_counts fake_counted;
extern pen_cuda_result fake_sticky;                   // an error that a kernel caused
extern _Thread_local pen_cuda_stream *fake_capturing; // by this thread

// Adds to one of the counts, of any thread.
static inline void fake_count(uint64_t *count, int64_t more) {
    (void)__atomic_fetch_add(count, (uint64_t)more, __ATOMIC_RELAXED);
}
// The device of the calling thread's context; -1: it has none.
int fake_current_device(void);
// Whether handles of libraries for that device are those that fail, if any do.
static inline bool fake_begins_wrong(void) {
    return fake_settings.begins_gpu == FAKE_ALL_ROLES ||
           (int)fake_settings.begins_gpu == fake_current_device();
}
// What must not be while this thread captures; else what the error is that stays.
pen_cuda_result fake_refuse_capture(void);
// fake_driver.c: where `bytes` at a device's address are on the host; NULL: not all of them in one
// allocation. Of which device the allocation is; -1: there is none.
void *fake_host(pen_cuda_address address, size_t bytes);
int fake_device_of(pen_cuda_address address);
// fake_driver.c, on a stream's thread: a kernel.
void fake_run_kernel(const fake_command *c);
// fake_stream.c: the command goes onto the stream, or into what it captures.
pen_cuda_result fake_push(pen_cuda_stream *s, const fake_command *c);
// fake_stream.c: the host launches a kernel or a graph.
void fake_count_launch(const pen_cuda_stream *stream);
// fake_graph.c: a command that a stream captures.
pen_cuda_result fake_capture(pen_cuda_stream *s, const fake_command *c);

#endif // PEN_TESTS_CUDA_FAKE_INSIDE_H
