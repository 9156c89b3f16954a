// Preloaded into a process, it counts the blocks and bytes of the heap that are in use, and shows
// them in a file that is mapped: $HEAP_WATCH/PID has the numbers of 64 bits of heap_shown.
//
// HEAP_LEAK=FUNCTION:BYTES plants a leak: each call of that function (setsockopt, connect, sendmsg
// or fsync) loses a block of so many bytes. A test of whoever looks for leaks.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAP_SIZES 257 // the last: all that are larger

typedef struct heap_shown {
    _Atomic long long blocks;
    _Atomic long long bytes;
    _Atomic long long of_size[HEAP_SIZES]; // blocks, by sixteenths of their usable bytes
} heap_shown;

// Of the C library, behind the names that are taken here.
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

static heap_shown heap_before; // until there is a file
static heap_shown *heap = &heap_before;

// `count` is 1 or -1.
static void heap_count(size_t bytes, long long count) {
    const size_t size = bytes / 16 < HEAP_SIZES - 1 ? bytes / 16 : HEAP_SIZES - 1;
    atomic_fetch_add_explicit(&heap->blocks, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&heap->bytes, count * (long long)bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&heap->of_size[size], count, memory_order_relaxed);
}

static void *heap_add(void *block) {
    if (block != NULL) heap_count(malloc_usable_size(block), 1);
    return block;
}

static void heap_subtract(void *block) {
    if (block != NULL) heap_count(malloc_usable_size(block), -1);
}

void *malloc(size_t bytes) {
    return heap_add(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes) {
    return heap_add(__libc_calloc(count, bytes));
}

void *memalign(size_t alignment, size_t bytes) {
    return heap_add(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return heap_add(__libc_memalign(alignment, bytes));
}

int posix_memalign(void **out_block, size_t alignment, size_t bytes) {
    *out_block = heap_add(__libc_memalign(alignment, bytes));
    return *out_block == NULL ? ENOMEM : 0;
}

void free(void *block) {
    heap_subtract(block);
    __libc_free(block);
}

void *realloc(void *block, size_t bytes) {
    if (block == NULL) return malloc(bytes);
    const size_t before = malloc_usable_size(block);
    void *moved = __libc_realloc(block, bytes);
    if (moved == NULL && bytes > 0) return NULL;
    heap_count(before, -1);
    return heap_add(moved);
}

__attribute__((constructor)) static void heap_show(void) {
    char path[4096];
    const char *folder = getenv("HEAP_WATCH");
    if (folder == NULL) return;
    snprintf(path, sizeof path, "%s/%ld", folder, (long)getpid());
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(heap_shown)) != 0) return;
    void *shown = mmap(NULL, sizeof(heap_shown), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shown == MAP_FAILED) return;
    memcpy(shown, &heap_before, sizeof heap_before); // there is one thread yet
    heap = shown;
}

// ---- a planted leak

static void heap_leak(const char *function) {
    const char *planted = getenv("HEAP_LEAK");
    const size_t length = strlen(function);
    if (planted == NULL || strncmp(planted, function, length) != 0 || planted[length] != ':')
        return;
    char *volatile lost = malloc((size_t)strtoul(planted + length + 1, NULL, 10));
    (void)lost;
}

static void *heap_find(const char *name) {
    heap_leak(name);
    return dlsym(RTLD_NEXT, name);
}

int setsockopt(int at, int level, int name, const void *value, socklen_t length) {
    int (*real)(int, int, int, const void *, socklen_t);
    *(void **)&real = heap_find("setsockopt");
    return real(at, level, name, value, length);
}

int connect(int at, const struct sockaddr *address, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t);
    *(void **)&real = heap_find("connect");
    return real(at, address, length);
}

ssize_t sendmsg(int at, const struct msghdr *message, int flags) {
    ssize_t (*real)(int, const struct msghdr *, int);
    *(void **)&real = heap_find("sendmsg");
    return real(at, message, flags);
}

int fsync(int file) {
    int (*real)(int);
    *(void **)&real = heap_find("fsync");
    return real(file);
}
