#include "tests/cuda/fake_driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda/cuda_driver.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/fake_gpus.h"

// Results of the driver, by cuda.h.
#define FAKE_NO_BINARY 209u
#define FAKE_NO_CAPTURE 401u
#define FAKE_NOT_FOUND 500u
#define FAKE_ILLEGAL 700u
#define FAKE_LAUNCH_FAILED 719u
#define FAKE_CAPTURE_UNSUPPORTED 900u
#define FAKE_CAPTURE_INVALIDATED 901u

#define FAKE_GUARD 256u
#define FAKE_COMMANDS 4096u

// Declares all functions, as the device sees them.
#define FAKE_DECLARE(name, symbol, parameters) pen_cuda_result symbol parameters;
PEN_CUDA_FUNCTIONS(FAKE_DECLARE)
void fake_driver_count(fake_counts *out_counts);
void fake_driver_break(const char *kernel);

typedef struct fake_block fake_block;
struct fake_block {
    fake_block *next;
    uint8_t *bytes; // behind a guard, and before one
    size_t size;
    int device;
};

typedef enum fake_kind { FAKE_COPY, FAKE_FILL, FAKE_KERNEL, FAKE_EVENT } fake_kind;

typedef struct fake_command {
    fake_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    int value;
    const emulated_kernel *kernel;
    emulated_size grid;
    uint32_t threads;
    uint8_t args[1024];
    pen_cuda_event *event;
    uint64_t ticket;
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
    pen_cuda_graph *captured; // NULL: it does not capture
    bool is_capture_bad;
    fake_command commands[FAKE_COMMANDS]; // a ring
    uint64_t queued, done;
    bool is_over;
};

struct CUevent_st {
    uint64_t recorded, reached;
};

struct CUctx_st {
    int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t emulating = PTHREAD_MUTEX_INITIALIZER;
static fake_block *blocks;
static fake_counts counts;
static uint64_t used[FAKE_GPUS], used_most[FAKE_GPUS];
static pen_cuda_result sticky;
static char broken[64];
static pen_cuda_context contexts[FAKE_GPUS];
static _Thread_local pen_cuda_context *current;
static _Thread_local pen_cuda_stream *capturing; // by this thread

void fake_driver_count(fake_counts *out_counts) {
    (void)pthread_mutex_lock(&lock);
    *out_counts = counts;
    (void)pthread_mutex_unlock(&lock);
}

void fake_driver_break(const char *kernel) {
    (void)snprintf(broken, sizeof broken, "%s", kernel == NULL ? "" : kernel);
}

// The last words of a process that is asked: how often it waited, and a line of each GPU that had
// memory, behind those of other processes.
__attribute__((destructor)) static void fake_tell(void) {
    char path[256];
    const char *text = getenv("FAKE_CUDA");
    const char *at = text == NULL ? NULL : strstr(text, "tell=");
    if (fake_settings.is_told) {
        (void)fprintf(stderr, "fake driver: %llu launches, %llu waits\n",
                      (unsigned long long)counts.launches, (unsigned long long)counts.waits);
    }
    if (at == NULL) return;
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(at + 5, " "), at + 5);
    FILE *file = fopen(path, "a");
    for (unsigned g = 0; file != NULL && g < FAKE_GPUS; g++) {
        if (used_most[g] == 0) continue;
        (void)fprintf(file, "%u %llu %llu\n", g, (unsigned long long)used_most[g],
                      (unsigned long long)counts.host_bytes_most);
    }
    if (file != NULL) (void)fclose(file);
}

// ---- addresses

// Where `bytes` at a device's address are on the host; NULL: not all of them in one allocation.
static void *fake_host(pen_cuda_address address, size_t bytes) {
    void *found = NULL;
    if ((address & FAKE_TAG_BITS) != FAKE_TAG) return NULL;
    uint8_t *at = (uint8_t *)(uintptr_t)(address & ~FAKE_TAG_BITS);
    (void)pthread_mutex_lock(&lock);
    for (const fake_block *b = blocks; b != NULL && found == NULL; b = b->next) {
        if (at < b->bytes || at > b->bytes + b->size) continue;
        if (bytes <= (size_t)(b->bytes + b->size - at)) found = at;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

// A kernel's argument, in which device addresses become the host's: here alone.
static void fake_reach_args(uint8_t *args, size_t bytes) {
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, args + at, sizeof word);
        void *host = fake_host(word, 1);
        if (host != NULL) memcpy(args + at, &host, sizeof host);
    }
}

// ---- streams

// What must not be while this thread captures.
static pen_cuda_result fake_refuse_capture(void) {
    if (capturing == NULL) return sticky;
    capturing->is_capture_bad = true;
    return FAKE_CAPTURE_UNSUPPORTED;
}

static void fake_run_kernel(fake_command *c) {
    const char *wrong = NULL;
    (void)pthread_mutex_lock(&lock);
    counts.kernels += 1;
    (void)pthread_mutex_unlock(&lock);
    (void)pthread_mutex_lock(&emulating);
    if (sticky == 0 && strcmp(c->kernel->name, broken) == 0) {
        sticky = FAKE_ILLEGAL;
        broken[0] = 0;
    }
    if (sticky == 0) {
        wrong = emulator_launch(c->kernel, c->grid, c->threads, c->args,
                                (emulator_order)fake_settings.order);
    }
    if (wrong != NULL) {
        (void)fprintf(stderr, "fake driver: kernel '%s': %s\n", c->kernel->name, wrong);
        sticky = FAKE_LAUNCH_FAILED;
    }
    (void)pthread_mutex_unlock(&emulating);
}

static void fake_do(fake_command *c) {
    if (fake_settings.late_us > 0) (void)usleep(fake_settings.late_us);
    switch (c->kind) {
    case FAKE_COPY:
        memcpy(c->to, c->from, c->bytes);
        break;
    case FAKE_FILL:
        memset(c->to, c->value, c->bytes);
        break;
    case FAKE_KERNEL:
        fake_run_kernel(c);
        break;
    case FAKE_EVENT:
        (void)pthread_mutex_lock(&lock);
        c->event->reached = c->ticket;
        (void)pthread_cond_broadcast(&changed);
        (void)pthread_mutex_unlock(&lock);
        break;
    }
}

static void *fake_stream_main(void *argument) {
    pen_cuda_stream *s = argument;
    (void)pthread_mutex_lock(&lock);
    while (!s->is_over || s->done < s->queued) {
        if (s->done == s->queued) {
            (void)pthread_cond_wait(&changed, &lock);
            continue;
        }
        fake_command *c = &s->commands[s->done % FAKE_COMMANDS];
        (void)pthread_mutex_unlock(&lock);
        fake_do(c);
        (void)pthread_mutex_lock(&lock);
        s->done += 1;
        (void)pthread_cond_broadcast(&changed);
    }
    (void)pthread_mutex_unlock(&lock);
    return NULL;
}

// Memory grows by doubling: where the count is a power of two.
static pen_cuda_result fake_capture(pen_cuda_stream *s, const fake_command *c) {
    pen_cuda_graph *graph = s->captured;
    if (s->is_capture_bad) return FAKE_CAPTURE_INVALIDATED;
    if ((graph->count & (graph->count - 1)) == 0) {
        const size_t room = graph->count == 0 ? 1 : 2 * graph->count;
        fake_command *commands = realloc(graph->commands, room * sizeof *commands);
        if (commands == NULL) return PEN_CUDA_OUT_OF_MEMORY;
        graph->commands = commands;
    }
    graph->commands[graph->count++] = *c;
    return 0;
}

static pen_cuda_result fake_push(pen_cuda_stream *s, const fake_command *c) {
    if (s == NULL) return FAKE_INVALID; // the device has streams of its own
    if (sticky != 0) return sticky;
    if (s->captured != NULL) return fake_capture(s, c);
    (void)pthread_mutex_lock(&lock);
    while (s->queued - s->done == FAKE_COMMANDS)
        (void)pthread_cond_wait(&changed, &lock);
    s->commands[s->queued++ % FAKE_COMMANDS] = *c;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

pen_cuda_result cuStreamCreate(pen_cuda_stream **stream, unsigned flags) {
    (void)flags;
    if (sticky != 0) return sticky;
    pen_cuda_stream *s = calloc(1, sizeof *s);
    if (s == NULL || pthread_create(&s->thread, NULL, fake_stream_main, s) != 0) {
        free(s);
        return PEN_CUDA_OUT_OF_MEMORY;
    }
    counts.blocks += 1;
    *stream = s;
    return 0;
}

pen_cuda_result cuStreamDestroy_v2(pen_cuda_stream *stream) {
    (void)pthread_mutex_lock(&lock);
    stream->is_over = true;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
    (void)pthread_join(stream->thread, NULL);
    free(stream);
    counts.blocks -= 1;
    return sticky;
}

pen_cuda_result cuStreamSynchronize(pen_cuda_stream *stream) {
    if (capturing != NULL) return fake_refuse_capture();
    (void)pthread_mutex_lock(&lock);
    counts.waits += 1;
    while (stream->done < stream->queued)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
    return sticky;
}

pen_cuda_result cuEventCreate(pen_cuda_event **event, unsigned flags) {
    (void)flags;
    if (sticky != 0) return sticky;
    *event = calloc(1, sizeof **event);
    counts.blocks += *event != NULL;
    return *event == NULL ? PEN_CUDA_OUT_OF_MEMORY : 0;
}

pen_cuda_result cuEventDestroy_v2(pen_cuda_event *event) {
    free(event);
    counts.blocks -= 1;
    return sticky;
}

// Events of a graph are none that a host could wait for: refused here.
pen_cuda_result cuEventRecord(pen_cuda_event *event, pen_cuda_stream *stream) {
    if (capturing != NULL) return fake_refuse_capture();
    const fake_command c = {.kind = FAKE_EVENT, .event = event, .ticket = event->recorded + 1};
    const pen_cuda_result result = fake_push(stream, &c);
    if (result == 0) event->recorded += 1;
    return result;
}

pen_cuda_result cuEventSynchronize(pen_cuda_event *event) {
    if (capturing != NULL) return fake_refuse_capture();
    (void)pthread_mutex_lock(&lock);
    counts.waits += 1;
    while (event->reached < event->recorded)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
    return sticky;
}

// ---- contexts

pen_cuda_result cuDevicePrimaryCtxRetain(pen_cuda_context **context, int device) {
    if (sticky != 0) return sticky;
    contexts[device].device = device;
    *context = &contexts[device];
    counts.contexts += 1;
    return 0;
}

pen_cuda_result cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    counts.contexts -= 1;
    return sticky;
}

pen_cuda_result cuCtxSetCurrent(pen_cuda_context *context) {
    current = context;
    return sticky;
}

// ---- memory

// Guards of two blocks differ, so that one is not copied over the other unseen.
static uint8_t fake_guard_byte(const uint8_t *bytes) {
    return (uint8_t)(0x5C ^ (uintptr_t)bytes >> 8);
}

pen_cuda_result cuMemAlloc_v2(pen_cuda_address *address, size_t bytes) {
    if (sticky != 0 || capturing != NULL) return fake_refuse_capture();
    if (bytes == 0 || current == NULL) return FAKE_INVALID;
    const int device = current->device;
    if (bytes > fake_settings.memory_bytes - used[device]) return PEN_CUDA_OUT_OF_MEMORY;
    fake_block *block = malloc(sizeof *block);
    uint8_t *memory =
        aligned_alloc(FAKE_GUARD, (bytes + 3 * FAKE_GUARD - 1) / FAKE_GUARD * FAKE_GUARD);
    if (block == NULL || memory == NULL) {
        free(block);
        free(memory);
        return PEN_CUDA_OUT_OF_MEMORY;
    }
    memset(memory, fake_guard_byte(memory + FAKE_GUARD), FAKE_GUARD);
    memset(memory + FAKE_GUARD, 0xA5, bytes);
    memset(memory + FAKE_GUARD + bytes, fake_guard_byte(memory + FAKE_GUARD), FAKE_GUARD);
    (void)pthread_mutex_lock(&lock);
    *block = (fake_block){blocks, memory + FAKE_GUARD, bytes, device};
    blocks = block;
    used[device] += bytes;
    if (used[device] > used_most[device]) used_most[device] = used[device];
    counts.bytes += bytes;
    if (counts.bytes > counts.bytes_most) counts.bytes_most = counts.bytes;
    counts.blocks += 1;
    (void)pthread_mutex_unlock(&lock);
    *address = (uint64_t)(uintptr_t)block->bytes | FAKE_TAG;
    return 0;
}

static bool fake_guards_hold(const fake_block *block) {
    const uint8_t guard = fake_guard_byte(block->bytes);
    for (size_t i = 0; i < FAKE_GUARD; i++) {
        if (block->bytes[-1 - (ptrdiff_t)i] != guard) return false;
        if (block->bytes[block->size + i] != guard) return false;
    }
    return true;
}

pen_cuda_result cuMemFree_v2(pen_cuda_address address) {
    if (capturing != NULL) return fake_refuse_capture();
    fake_block *found = NULL;
    (void)pthread_mutex_lock(&lock);
    for (fake_block **at = &blocks; *at != NULL; at = &(*at)->next) {
        if (((uint64_t)(uintptr_t)(*at)->bytes | FAKE_TAG) != address) continue;
        found = *at;
        *at = found->next;
        break;
    }
    if (found != NULL) {
        used[found->device] -= found->size;
        counts.bytes -= found->size;
        counts.blocks -= 1;
    }
    (void)pthread_mutex_unlock(&lock);
    if (found == NULL) return FAKE_INVALID;
    if (!fake_guards_hold(found)) {
        (void)fprintf(stderr, "fake driver: written beyond the ends of %zu bytes\n", found->size);
        sticky = FAKE_ILLEGAL;
    }
    free(found->bytes - FAKE_GUARD);
    free(found);
    return sticky;
}

// The size stands before what is given.
pen_cuda_result cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
    (void)flags;
    if (sticky != 0 || capturing != NULL) return fake_refuse_capture();
    uint8_t *memory = aligned_alloc(4096, (bytes + 2 * 4096 - 1) / 4096 * 4096);
    if (memory == NULL) return PEN_CUDA_OUT_OF_MEMORY;
    memcpy(memory, &bytes, sizeof bytes);
    memset(memory + 4096, 0xA5, bytes);
    counts.host_bytes += bytes;
    if (counts.host_bytes > counts.host_bytes_most) counts.host_bytes_most = counts.host_bytes;
    counts.blocks += 1;
    *host = memory + 4096;
    return 0;
}

pen_cuda_result cuMemFreeHost(void *host) {
    size_t bytes;
    memcpy(&bytes, (uint8_t *)host - 4096, sizeof bytes);
    counts.host_bytes -= bytes;
    counts.blocks -= 1;
    free((uint8_t *)host - 4096);
    return sticky;
}

pen_cuda_result cuMemcpyHtoDAsync_v2(pen_cuda_address to, const void *from, size_t bytes,
                                     pen_cuda_stream *stream) {
    const fake_command c = {
        .kind = FAKE_COPY, .to = fake_host(to, bytes), .from = from, .bytes = bytes};
    if (c.to == NULL) return FAKE_INVALID;
    counts.bytes_written += bytes;
    return fake_push(stream, &c);
}

pen_cuda_result cuMemcpyDtoHAsync_v2(void *to, pen_cuda_address from, size_t bytes,
                                     pen_cuda_stream *stream) {
    const fake_command c = {
        .kind = FAKE_COPY, .to = to, .from = fake_host(from, bytes), .bytes = bytes};
    if (c.from == NULL) return FAKE_INVALID;
    counts.bytes_read += bytes;
    return fake_push(stream, &c);
}

pen_cuda_result cuMemsetD8Async(pen_cuda_address to, unsigned char value, size_t bytes,
                                pen_cuda_stream *stream) {
    const fake_command c = {
        .kind = FAKE_FILL, .to = fake_host(to, bytes), .value = value, .bytes = bytes};
    return c.to == NULL ? FAKE_INVALID : fake_push(stream, &c);
}

// ---- kernels

// PTX is text; only kernels that it has are found.
struct CUmod_st {
    char *text;
};

pen_cuda_result cuModuleLoadData(pen_cuda_module **module, const void *image) {
    if (sticky != 0) return sticky;
    if (strstr(image, ".version") == NULL || strstr(image, ".target") == NULL) {
        return FAKE_NO_BINARY;
    }
    pen_cuda_module *made = malloc(sizeof *made);
    if (made != NULL) made->text = strdup(image);
    if (made == NULL || made->text == NULL) {
        free(made);
        return PEN_CUDA_OUT_OF_MEMORY;
    }
    counts.blocks += 1;
    *module = made;
    return 0;
}

pen_cuda_result cuModuleUnload(pen_cuda_module *module) {
    free(module->text);
    free(module);
    counts.blocks -= 1;
    return sticky;
}

pen_cuda_result cuModuleGetFunction(pen_cuda_function **function, pen_cuda_module *module,
                                    const char *name) {
    char entry[128];
    (void)snprintf(entry, sizeof entry, ".entry %s(", name);
    const emulated_kernel *kernel = emulator_find(name);
    if (kernel == NULL || strstr(module->text, entry) == NULL) return FAKE_NOT_FOUND;
    memcpy(function, &kernel, sizeof kernel);
    return 0;
}

// What is out of a GPU's limits is refused as the driver refuses it.
// NOLINTNEXTLINE(readability-function-size): the parameters are NVIDIA's
pen_cuda_result cuLaunchKernel(pen_cuda_function *function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, pen_cuda_stream *stream,
                               void **arguments, void **extra) {
    fake_command c = {.kind = FAKE_KERNEL, .grid = {grid_x, grid_y, grid_z}, .threads = block_x};
    memcpy(&c.kernel, &function, sizeof function);
    if (block_x == 0 || block_x > 1024 || block_y != 1 || block_z != 1) return FAKE_INVALID;
    if (grid_x == 0 || grid_x > INT32_MAX || grid_y - 1 > 65534 || grid_z - 1 > 65534) {
        return FAKE_INVALID;
    }
    if (shared_bytes != 0 || extra != NULL || c.kernel->args_bytes > sizeof c.args) {
        return FAKE_INVALID;
    }
    memcpy(c.args, arguments[0], c.kernel->args_bytes);
    fake_reach_args(c.args, c.kernel->args_bytes);
    if (stream != NULL && stream->captured == NULL) counts.launches += 1;
    return fake_push(stream, &c);
}

// ---- graphs

static void fake_free_commands(pen_cuda_graph *graph) {
    free(graph->commands);
    *graph = (pen_cuda_graph){0};
}

pen_cuda_result cuStreamBeginCapture_v2(pen_cuda_stream *stream, unsigned mode) {
    if (sticky != 0) return sticky;
    if (stream == NULL || stream->captured != NULL || capturing != NULL) return FAKE_NO_CAPTURE;
    if (mode != PEN_CUDA_CAPTURE_THREAD_LOCAL) return FAKE_INVALID; // as the device does it
    stream->captured = calloc(1, sizeof *stream->captured);
    if (stream->captured == NULL) return PEN_CUDA_OUT_OF_MEMORY;
    counts.blocks += 1;
    stream->is_capture_bad = false;
    capturing = stream;
    return 0;
}

pen_cuda_result cuGraphDestroy(pen_cuda_graph *graph) {
    fake_free_commands(graph);
    free(graph);
    counts.blocks -= 1;
    return sticky;
}

// A capture that went wrong gives none.
pen_cuda_result cuStreamEndCapture(pen_cuda_stream *stream, pen_cuda_graph **graph) {
    if (stream->captured == NULL || capturing != stream) return FAKE_NO_CAPTURE;
    *graph = stream->captured;
    stream->captured = NULL;
    capturing = NULL;
    if (!stream->is_capture_bad) return sticky;
    (void)cuGraphDestroy(*graph);
    *graph = NULL;
    return FAKE_CAPTURE_INVALIDATED;
}

pen_cuda_result cuGraphInstantiateWithFlags(pen_cuda_graph_exec **exec, pen_cuda_graph *graph,
                                            unsigned long long flags) {
    if (sticky != 0 || capturing != NULL) return fake_refuse_capture();
    if (graph == NULL || flags != 0) return FAKE_INVALID;
    pen_cuda_graph_exec *made = calloc(1, sizeof *made);
    if (made != NULL) made->graph.commands = calloc(graph->count + 1, sizeof *graph->commands);
    if (made == NULL || made->graph.commands == NULL || fake_settings.is_graphless) {
        if (made != NULL) free(made->graph.commands);
        free(made);
        return PEN_CUDA_OUT_OF_MEMORY;
    }
    memcpy(made->graph.commands, graph->commands, graph->count * sizeof *graph->commands);
    made->graph.count = graph->count;
    counts.blocks += 1;
    *exec = made;
    return 0;
}

pen_cuda_result cuGraphLaunch(pen_cuda_graph_exec *exec, pen_cuda_stream *stream) {
    if (exec == NULL || stream == NULL || stream->captured != NULL) return FAKE_INVALID;
    counts.launches += 1;
    pen_cuda_result result = sticky;
    for (size_t i = 0; i < exec->graph.count && result == 0; i++)
        result = fake_push(stream, &exec->graph.commands[i]);
    return result;
}

pen_cuda_result cuGraphExecDestroy(pen_cuda_graph_exec *exec) {
    fake_free_commands(&exec->graph);
    free(exec);
    counts.blocks -= 1;
    return sticky;
}

pen_cuda_result cuGetErrorName(pen_cuda_result error, const char **name) {
    *name = error == PEN_CUDA_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == FAKE_INVALID             ? "CUDA_ERROR_INVALID_VALUE"
            : error == FAKE_ILLEGAL             ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == FAKE_LAUNCH_FAILED       ? "CUDA_ERROR_LAUNCH_FAILED"
            : error == FAKE_CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
            : error == FAKE_CAPTURE_INVALIDATED ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
                                                : NULL;
    return *name == NULL ? FAKE_INVALID : 0;
}
