// Fuzzes what reads certificates, keys, and lists of revoked certificates. Bytes up to the first
// line that is "%" are the authorities, those up to the second the certificate, then come the key
// and the lists; what is missing is as the last. Opens no file that is on a disk.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scheduler/transport/grpc/peer_certificate.h"
#include "scheduler/transport/grpc/pem_file.h"
#include "tests/fuzz/fuzz.h"

#define PART_COUNT 4
#define PART_LISTS 3 // the others are kinds of PEM files

// A file in memory, of which only a path is known.
static int hold(const uint8_t *bytes, size_t length, char *path, size_t size) {
    const int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_must(descriptor >= 0 && write(descriptor, bytes, length) == (ssize_t)length);
    snprintf(path, size, "/proc/self/fd/%d", descriptor);
    return descriptor;
}

// A certificate that is not known as revoked is looked up in the lists.
static void use_lists(const char *const *paths, pen_arena *arena) {
    pen_revocations *revocations;
    pen_peer_certificate certificate;
    const char *chain;
    if (!fuzz_reads(pen_pem_read(paths[PEN_PEM_CERTIFICATE], PEN_PEM_CERTIFICATE, arena, &chain)))
        return;
    if (pen_peer_certificate_describe(chain, &certificate)) {
        fuzz_must(memchr(certificate.serial, '\0', sizeof certificate.serial) != NULL);
        fuzz_must(strlen(certificate.fingerprint) == 64);
    }
    if (!fuzz_reads(
            pen_revocations_open(paths[PART_LISTS], paths[PEN_PEM_AUTHORITIES], &revocations))) {
        return;
    }
    (void)fuzz_reads(pen_revocations_check(revocations, chain));
    pen_revocations_close(revocations);
}

static void use(const char *const *paths, pen_arena *arena) {
    pen_pem_files files;
    const char *text;
    char name[PEN_PEM_NAME_BYTES];
    for (uint32_t kind = 0; kind < PART_LISTS; kind++) {
        if (!fuzz_reads(pen_pem_read(paths[kind], (pen_pem_kind)kind, arena, &text))) continue;
        memset(name, 'x', sizeof name);
        pen_pem_find_name(text, name);
        fuzz_must(memchr(name, '\0', sizeof name) != NULL);
    }
    use_lists(paths, arena);
    if (fuzz_reads(pen_pem_read_all(paths, arena, &files))) pen_pem_warn(&files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int descriptors[PART_COUNT];
    char names[PART_COUNT][32];
    const char *paths[PART_COUNT];
    size_t first = 0;
    for (uint32_t i = 0; i < PART_COUNT; i++) {
        const uint8_t *end = size == first ? NULL : memmem(data + first, size - first, "\n%\n", 3);
        const size_t last = end == NULL ? size : (size_t)(end - data);
        descriptors[i] = hold(data + first, last - first, names[i], sizeof names[i]);
        paths[i] = names[i];
        if (end != NULL) first = last + 3;
    }
    pen_arena *arena;
    if (fuzz_works(pen_arena_create(&arena))) {
        use(paths, arena);
        pen_arena_destroy(arena);
    }
    for (uint32_t i = 0; i < PART_COUNT; i++)
        close(descriptors[i]);
    return 0;
}
