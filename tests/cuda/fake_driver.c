#include "tests/cuda/fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fake_inside.h"

#define FAKE_GUARD 256u

void fake_driver_count(fake_counts *out_counts);
void fake_driver_break(const char *kernel);

typedef struct fake_block fake_block;
struct fake_block {
    fake_block *next;
    uint8_t *bytes; // behind a guard, and before one
    size_t size;
    int device;
};

struct CUctx_st {
    int device;
    unsigned peers; // devices that it may reach, by bit
};

static pthread_mutex_t emulating = PTHREAD_MUTEX_INITIALIZER;
static fake_block *blocks;
fake_counts fake_counted;
static uint64_t used[FAKE_GPUS], used_most[FAKE_GPUS];
pen_cuda_result fake_sticky;
static char broken[64];
static unsigned failing_runs; // of the kernel that fails
static pen_cuda_context contexts[FAKE_GPUS];
static _Thread_local pen_cuda_context *current;

void fake_driver_count(fake_counts *out_counts) {
    (void)pthread_mutex_lock(&fake_lock);
    *out_counts = fake_counted;
    (void)pthread_mutex_unlock(&fake_lock);
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
        (void)fprintf(stderr, "fake driver: %llu bytes read, %llu bytes between GPUs\n",
                      (unsigned long long)fake_counted.bytes_read,
                      (unsigned long long)fake_counted.bytes_across);
        (void)fprintf(stderr, "fake driver: %llu things are left\n",
                      (unsigned long long)fake_counted.blocks);
        (void)fprintf(stderr, "fake driver: %llu launches, %llu waits\n",
                      (unsigned long long)fake_counted.launches,
                      (unsigned long long)(fake_counted.waits - fake_counted.waits_beside));
        (void)fprintf(stderr, "fake driver: %llu launches ahead of copies, %llu waits beside\n",
                      (unsigned long long)fake_counted.launches_ahead,
                      (unsigned long long)fake_counted.waits_beside);
    }
    if (at == NULL) return;
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(at + 5, " "), at + 5);
    FILE *file = fopen(path, "a");
    for (unsigned g = 0; file != NULL && g < FAKE_GPUS; g++) {
        if (used_most[g] == 0) continue;
        (void)fprintf(file, "%u %llu %llu\n", g, (unsigned long long)used_most[g],
                      (unsigned long long)fake_counted.host_bytes_most);
    }
    if (file != NULL) (void)fclose(file);
}

// ---- addresses

void *fake_host(pen_cuda_address address, size_t bytes) {
    void *found = NULL;
    if ((address & FAKE_TAG_BITS) != FAKE_TAG) return NULL;
    uint8_t *at = (uint8_t *)(uintptr_t)(address & ~FAKE_TAG_BITS);
    (void)pthread_mutex_lock(&fake_lock);
    for (const fake_block *b = blocks; b != NULL && found == NULL; b = b->next) {
        if (at < b->bytes || at > b->bytes + b->size) continue;
        if (bytes <= (size_t)(b->bytes + b->size - at)) found = at;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return found;
}

int fake_device_of(pen_cuda_address address) {
    const uint8_t *at = fake_host(address, 1);
    int device = -1;
    (void)pthread_mutex_lock(&fake_lock);
    for (const fake_block *b = blocks; b != NULL && at != NULL; b = b->next)
        if (at >= b->bytes && at < b->bytes + b->size) device = b->device;
    (void)pthread_mutex_unlock(&fake_lock);
    return device;
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

// ---- kernels that run

void fake_run_kernel(const fake_command *c) {
    const char *wrong = NULL;
    (void)pthread_mutex_lock(&fake_lock);
    fake_count(&fake_counted.kernels, 1);
    (void)pthread_mutex_unlock(&fake_lock);
    if (strcmp(c->kernel->name, fake_settings.slow) == 0) (void)usleep(fake_settings.slow_us);
    (void)pthread_mutex_lock(&emulating);
    const bool is_fatal = strcmp(c->kernel->name, fake_settings.fails) == 0 &&
                          ++failing_runs == fake_settings.fails_at;
    if (fake_sticky == 0 && (is_fatal || strcmp(c->kernel->name, broken) == 0)) {
        fake_sticky = FAKE_ILLEGAL;
        broken[0] = 0;
    }
    if (fake_sticky == 0) {
        wrong = emulator_launch(c->kernel, c->grid, c->threads, c->args,
                                (emulator_order)fake_settings.order);
    }
    if (wrong != NULL) {
        (void)fprintf(stderr, "fake driver: kernel '%s': %s\n", c->kernel->name, wrong);
        fake_sticky = FAKE_LAUNCH_FAILED;
    }
    (void)pthread_mutex_unlock(&emulating);
}

// ---- contexts

pen_cuda_result cuDevicePrimaryCtxRetain(pen_cuda_context **context, int device) {
    if (fake_sticky != 0) return fake_sticky;
    contexts[device].device = device;
    *context = &contexts[device];
    fake_count(&fake_counted.contexts, 1);
    return 0;
}

pen_cuda_result cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    fake_count(&fake_counted.contexts, -1);
    return fake_sticky;
}

int fake_current_device(void) {
    return current == NULL ? -1 : current->device;
}

pen_cuda_result cuDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = fake_settings.has_peers && device != peer;
    return 0;
}

pen_cuda_result cuCtxEnablePeerAccess(pen_cuda_context *peer, unsigned flags) {
    int can;
    if (current == NULL || peer == NULL || flags != 0) return FAKE_INVALID;
    (void)cuDeviceCanAccessPeer(&can, current->device, peer->device);
    if (can == 0 || fake_settings.refuses_peers) return PEN_CUDA_NO_PEER;
    if ((current->peers >> peer->device & 1) != 0) return PEN_CUDA_PEER_ENABLED;
    current->peers |= 1u << peer->device;
    return fake_sticky;
}

pen_cuda_result cuCtxSetCurrent(pen_cuda_context *context) {
    current = context;
    return fake_sticky;
}

// ---- memory

// Guards of two blocks differ, so that one is not copied over the other unseen.
static uint8_t fake_guard_byte(const uint8_t *bytes) {
    return (uint8_t)(0x5C ^ (uintptr_t)bytes >> 8);
}

pen_cuda_result cuMemAlloc_v2(pen_cuda_address *address, size_t bytes) {
    if (fake_sticky != 0 || fake_capturing != NULL) return fake_refuse_capture();
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
    (void)pthread_mutex_lock(&fake_lock);
    *block = (fake_block){blocks, memory + FAKE_GUARD, bytes, device};
    blocks = block;
    used[device] += bytes;
    if (used[device] > used_most[device]) used_most[device] = used[device];
    fake_count(&fake_counted.bytes, (int64_t)bytes);
    if (fake_counted.bytes > fake_counted.bytes_most) fake_counted.bytes_most = fake_counted.bytes;
    fake_count(&fake_counted.blocks, 1);
    (void)pthread_mutex_unlock(&fake_lock);
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
    if (fake_capturing != NULL) return fake_refuse_capture();
    fake_block *found = NULL;
    (void)pthread_mutex_lock(&fake_lock);
    for (fake_block **at = &blocks; *at != NULL; at = &(*at)->next) {
        if (((uint64_t)(uintptr_t)(*at)->bytes | FAKE_TAG) != address) continue;
        found = *at;
        *at = found->next;
        break;
    }
    if (found != NULL) {
        used[found->device] -= found->size;
        fake_count(&fake_counted.bytes, -(int64_t)found->size);
        fake_count(&fake_counted.blocks, -1);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    if (found == NULL) return FAKE_INVALID;
    if (!fake_guards_hold(found)) {
        (void)fprintf(stderr, "fake driver: written beyond the ends of %zu bytes\n", found->size);
        fake_sticky = FAKE_ILLEGAL;
    }
    free(found->bytes - FAKE_GUARD);
    free(found);
    return fake_sticky;
}

// The size stands before what is given.
pen_cuda_result cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
    (void)flags;
    if (fake_sticky != 0 || fake_capturing != NULL) return fake_refuse_capture();
    uint8_t *memory = aligned_alloc(4096, (bytes + 2 * 4096 - 1) / 4096 * 4096);
    if (memory == NULL) return PEN_CUDA_OUT_OF_MEMORY;
    memcpy(memory, &bytes, sizeof bytes);
    memset(memory + 4096, 0xA5, bytes);
    fake_count(&fake_counted.host_bytes, (int64_t)bytes);
    if (fake_counted.host_bytes > fake_counted.host_bytes_most)
        fake_counted.host_bytes_most = fake_counted.host_bytes;
    fake_count(&fake_counted.blocks, 1);
    *host = memory + 4096;
    return 0;
}

pen_cuda_result cuMemFreeHost(void *host) {
    size_t bytes;
    memcpy(&bytes, (uint8_t *)host - 4096, sizeof bytes);
    fake_count(&fake_counted.host_bytes, -(int64_t)bytes);
    fake_count(&fake_counted.blocks, -1);
    free((uint8_t *)host - 4096);
    return fake_sticky;
}

pen_cuda_result cuMemcpyHtoDAsync_v2(pen_cuda_address to, const void *from, size_t bytes,
                                     pen_cuda_stream *stream) {
    const fake_command c = {
        .kind = FAKE_COPY, .to = fake_host(to, bytes), .from = from, .bytes = bytes};
    if (c.to == NULL) return FAKE_INVALID;
    fake_count(&fake_counted.bytes_written, (int64_t)bytes);
    return fake_push(stream, &c);
}

pen_cuda_result cuMemcpyDtoHAsync_v2(void *to, pen_cuda_address from, size_t bytes,
                                     pen_cuda_stream *stream) {
    const fake_command c = {.kind = FAKE_COPY,
                            .is_out = true,
                            .to = to,
                            .from = fake_host(from, bytes),
                            .bytes = bytes};
    if (c.from == NULL) return FAKE_INVALID;
    fake_count(&fake_counted.bytes_read, (int64_t)bytes);
    return fake_push(stream, &c);
}

// A driver would go by way of the host, where access was not enabled: refused here.
pen_cuda_result cuMemcpyPeerAsync(pen_cuda_address to, pen_cuda_context *to_context,
                                  pen_cuda_address from, pen_cuda_context *from_context,
                                  size_t bytes, pen_cuda_stream *stream) {
    const fake_command c = {.kind = FAKE_COPY,
                            .to = fake_host(to, bytes),
                            .from = fake_host(from, bytes),
                            .bytes = bytes};
    const bool is_same = to_context == from_context;
    if (!is_same && (to_context->peers >> from_context->device & 1) == 0) return PEN_CUDA_NO_PEER;
    if (c.to == NULL || c.from == NULL) return FAKE_INVALID;
    fake_count(&fake_counted.bytes_across, (int64_t)bytes);
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
    if (fake_sticky != 0) return fake_sticky;
    if (strstr(image, ".version") == NULL || strstr(image, ".target") == NULL) {
        return FAKE_NO_BINARY;
    }
    pen_cuda_module *made = malloc(sizeof *made);
    if (made != NULL) made->text = strdup(image);
    if (made == NULL || made->text == NULL) {
        free(made);
        return PEN_CUDA_OUT_OF_MEMORY;
    }
    fake_count(&fake_counted.blocks, 1);
    *module = made;
    return 0;
}

pen_cuda_result cuModuleUnload(pen_cuda_module *module) {
    free(module->text);
    free(module);
    fake_count(&fake_counted.blocks, -1);
    return fake_sticky;
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
    if (stream != NULL && stream->captured == NULL) fake_count_launch(stream);
    return fake_push(stream, &c);
}

pen_cuda_result cuGetErrorName(pen_cuda_result error, const char **name) {
    *name = error == PEN_CUDA_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == FAKE_INVALID             ? "CUDA_ERROR_INVALID_VALUE"
            : error == FAKE_ILLEGAL             ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == FAKE_NOT_READY           ? "CUDA_ERROR_NOT_READY"
            : error == FAKE_LAUNCH_FAILED       ? "CUDA_ERROR_LAUNCH_FAILED"
            : error == FAKE_CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
            : error == FAKE_CAPTURE_INVALIDATED ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
                                                : NULL;
    return *name == NULL ? FAKE_INVALID : 0;
}
