#include "scheduler/transport/ring/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/transport/ring/ring.h"

#define MEMORY_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MEMORY_MAPPED_BYTES (PEN_RING_FILE_BYTES + PEN_RING_BYTES)

static pen_status memory_error(const char *what) {
    return pen_error(PEN_UNAVAILABLE, "no shared memory: %s: %s", what, strerror(errno));
}

// The whole file, and behind it the records once more, in one stretch of addresses.
static pen_status memory_map(int descriptor, void **out_memory) {
    const int access = PROT_READ | PROT_WRITE;
    uint8_t *all = mmap(NULL, MEMORY_MAPPED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return memory_error("mmap");
    if (mmap(all, PEN_RING_FILE_BYTES, access, MAP_SHARED | MAP_FIXED, descriptor, 0) ==
            MAP_FAILED ||
        mmap(all + PEN_RING_FILE_BYTES, PEN_RING_BYTES, access, MAP_SHARED | MAP_FIXED, descriptor,
             (off_t)PEN_RING_CONTROL_BYTES) == MAP_FAILED) {
        const pen_status status = memory_error("mmap");
        munmap(all, MEMORY_MAPPED_BYTES);
        return status;
    }
    *out_memory = all;
    return PEN_OK;
}

// Pages are taken now: where memory is short, that is found out here and not by a signal later.
pen_status pen_ring_memory_create(void **out_memory, int *out_descriptor) {
    const int descriptor = memfd_create("penstock-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return memory_error("memfd_create");
    pen_status status = PEN_OK;
    const int failure = posix_fallocate(descriptor, 0, (off_t)PEN_RING_FILE_BYTES);
    if (failure != 0) {
        errno = failure;
        status = memory_error("fallocate");
    } else if (fcntl(descriptor, F_ADD_SEALS, MEMORY_SEALS) != 0) {
        status = memory_error("sealing");
    } else {
        status = memory_map(descriptor, out_memory);
    }
    if (status != PEN_OK) {
        close(descriptor);
        return status;
    }
    *out_descriptor = descriptor;
    return PEN_OK;
}

pen_status pen_ring_memory_open(int descriptor, void **out_memory) {
    struct stat file;
    const int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & MEMORY_SEALS) != MEMORY_SEALS) {
        return pen_error(PEN_CORRUPT, "shared memory: it is not a file of a sealed size");
    }
    if (fstat(descriptor, &file) != 0 || (uint64_t)file.st_size != PEN_RING_FILE_BYTES) {
        return pen_error(PEN_CORRUPT, "shared memory: it has not the size of a ring");
    }
    return memory_map(descriptor, out_memory);
}

void pen_ring_memory_close(void *memory) {
    if (memory != NULL) munmap(memory, MEMORY_MAPPED_BYTES);
}
