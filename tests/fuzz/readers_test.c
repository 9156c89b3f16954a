// Sweeps every fuzzed reader of outside bytes over its seeds: cut at each length, each byte of the
// beginning changed, and each allocation refused. Nothing may crash, take longer than a second or
// more memory than 256 MiB, or be left behind. PEN_LONG takes more seeds and more places. Inputs in
// tests/fuzz/found/NAME once were findings, and are read as they are.
//
// Each reader is swept in a process of its own, which keeps in shared memory what it is at.

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sanitizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/check.h"

#define SWEEP_SEEDS_LIMIT 1024
#define SWEEP_MEMORY_LIMIT ((rlim_t)256 << 20)
#define SWEEP_SECONDS_LIMIT (PEN_IS_SANITIZED ? 10.0 : 1.0)
#define SWEEP_STUCK_SECONDS 60
#define SWEEP_FLIPPED_BYTES 4096
#define SWEEP_WHOLE_BYTES (64u << 10) // longer seeds are cut at some places

typedef struct sweep_reader {
    const char *name;
    int (*read)(const uint8_t *bytes, size_t length);
} sweep_reader;

// The list comes from the Makefile: READER(csv) READER(frame) ...
#ifndef FUZZ_READERS
#define FUZZ_READERS READER(csv) // for tools that look at this file alone
#endif
#define READER(name) int fuzz_##name(const uint8_t *bytes, size_t length);
FUZZ_READERS
#undef READER
static const sweep_reader sweep_readers[] = {
#define READER(name) {#name, fuzz_##name},
    FUZZ_READERS
#undef READER
};
#define SWEEP_READER_COUNT (sizeof sweep_readers / sizeof *sweep_readers)

typedef enum sweep_kind { SWEEP_WHOLE, SWEEP_CUT, SWEEP_CHANGE, SWEEP_REFUSE } sweep_kind;
static const char *const sweep_kind_names[] = {"whole", "cut to", "changed at",
                                               "refused allocation"};

// What a child is at, for its parent to tell.
typedef struct sweep_place {
    char seed[256];
    sweep_kind kind;
    uint64_t position;
    uint8_t mask; // what the byte is changed by
    uint64_t run_count;
    char complaint[256];
} sweep_place;

static sweep_place *place; // shared

typedef struct sweep_extent {
    size_t seeds;        // of a reader, at most
    uint64_t places;     // of a seed: cuts, changes and refused allocations, at most
    uint32_t mask_count; // changes of a byte
} sweep_extent;

static sweep_extent sweep_get_extent(void) {
    if (getenv("PEN_LONG") != NULL) return (sweep_extent){48, 4096, 4};
    return (sweep_extent){PEN_IS_SANITIZED ? 4 : 16, PEN_IS_SANITIZED ? 200 : 500, 1};
}

static void sweep_complain(const char *format, const char *detail) {
    snprintf(place->complaint, sizeof place->complaint, format, detail);
    abort();
}

static void sweep_run(const sweep_reader *reader, const uint8_t *bytes, size_t length) {
    // exactly as long as it is, so that a byte read beyond is seen
    uint8_t *copy = malloc(length + (length == 0));
    if (copy == NULL) sweep_complain("%s", "no memory for the input itself");
    memcpy(copy, bytes, length);
    const uint64_t live = pen_memory_live_count();
    const clock_t start = clock(); // of the processor: other work on the machine does not count
    fuzz_outcome = PEN_CODE_OK;
    alarm(SWEEP_STUCK_SECONDS);
    (void)reader->read(copy, length);
    alarm(0);
    if (pen_memory_live_count() != live) sweep_complain("%s", "memory is left behind");
    const double seconds = (double)(clock() - start) / (double)CLOCKS_PER_SEC;
    if (seconds > SWEEP_SECONDS_LIMIT) sweep_complain("%s", "it took too long");
    place->run_count += 1;
    free(copy);
}

static uint64_t sweep_stride(uint64_t count, uint64_t most) {
    return count <= most ? 1 : count / most;
}

static void sweep_cuts(const sweep_reader *reader, const uint8_t *bytes, size_t length,
                       uint64_t most) {
    if (length <= SWEEP_WHOLE_BYTES && most >= 4096) most = SWEEP_WHOLE_BYTES;
    const uint64_t stride = sweep_stride(length, most);
    place->kind = SWEEP_CUT;
    for (size_t cut = 0; cut < length; cut += stride) {
        place->position = cut;
        sweep_run(reader, bytes, cut);
    }
}

static void sweep_changes(const sweep_reader *reader, const uint8_t *bytes, size_t length,
                          const sweep_extent *extent) {
    static const uint8_t masks[] = {0xff, 0x01, 0x80, 0x40};
    const size_t end = length < SWEEP_FLIPPED_BYTES ? length : SWEEP_FLIPPED_BYTES;
    const uint64_t stride = sweep_stride(end, extent->places);
    uint8_t *changed = malloc(length + 1);
    if (changed == NULL) sweep_complain("%s", "no memory for the input itself");
    memcpy(changed, bytes, length);
    place->kind = SWEEP_CHANGE;
    for (size_t at = 0; at < end; at += stride) {
        for (uint32_t m = 0; m < extent->mask_count; m++) {
            place->position = at;
            place->mask = masks[m];
            changed[at] ^= masks[m];
            sweep_run(reader, changed, length);
            changed[at] ^= masks[m];
        }
    }
    free(changed);
}

// One allocation after the other is refused, once, and with all that follow. What was no error must
// become none but that of refused memory.
static void sweep_refusals(const sweep_reader *reader, const uint8_t *bytes, size_t length,
                           uint64_t most) {
    const uint64_t before = pen_memory_call_count();
    sweep_run(reader, bytes, length);
    const pen_status_code whole = fuzz_outcome;
    const uint64_t calls = pen_memory_call_count() - before;
    const uint64_t stride = sweep_stride(calls, most);
    place->kind = SWEEP_REFUSE;
    fuzz_memory_fails = true;
    for (uint64_t call = 1; call <= calls; call += stride) {
        for (int persistent = 0; persistent < 2; persistent++) {
            place->position = call;
            pen_memory_fail_at(call, persistent);
            sweep_run(reader, bytes, length);
            pen_memory_fail_at(0, 0);
            if (fuzz_outcome != whole && fuzz_outcome != PEN_OUT_OF_MEMORY) {
                sweep_complain("refused memory became '%s'", pen_status_code_name(fuzz_outcome));
            }
        }
    }
    fuzz_memory_fails = false;
}

// `extent` NULL: it is read as it is, and no more.
static void sweep_seed(const sweep_reader *reader, const char *path, const sweep_extent *extent) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) sweep_complain("%s", "the seed cannot be opened");
    fseek(file, 0, SEEK_END);
    const size_t length = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(length + 1);
    if (bytes == NULL || fread(bytes, 1, length, file) != length) {
        sweep_complain("%s", "the seed cannot be read");
    }
    fclose(file);
    place->kind = SWEEP_WHOLE;
    place->position = 0;
    sweep_run(reader, bytes, length);
    if (extent == NULL) {
        free(bytes);
        return;
    }
    sweep_refusals(reader, bytes, length, extent->places);
    sweep_cuts(reader, bytes, length, extent->places);
    sweep_changes(reader, bytes, length, extent);
    free(bytes);
}

static int sweep_compare(const void *a, const void *b) {
    return strcmp(a, b);
}

// Names of files, in order; returns how many. 0: the folder is not there, or empty.
static size_t sweep_list(const char *folder, char names[SWEEP_SEEDS_LIMIT][256]) {
    size_t count = 0;
    DIR *listing = opendir(folder);
    if (listing == NULL) return 0;
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (entry->d_name[0] == '.' || count == SWEEP_SEEDS_LIMIT) continue;
        snprintf(names[count++], sizeof names[0], "%s", entry->d_name);
    }
    closedir(listing);
    qsort(names, count, sizeof names[0], sweep_compare);
    return count;
}

// `most` of the files of a folder, evenly chosen. `extent` as in sweep_seed.
static void sweep_folder(const sweep_reader *reader, const char *folder, size_t most,
                         const sweep_extent *extent) {
    static char names[SWEEP_SEEDS_LIMIT][256];
    const size_t count = sweep_list(folder, names);
    if (count == 0 && extent != NULL) sweep_complain("%s has no seed", folder);
    const size_t taken = count < most ? count : most;
    for (size_t i = 0; i < taken; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, names[i * count / taken]);
        snprintf(place->seed, sizeof place->seed, "%s", names[i * count / taken]);
        sweep_seed(reader, path, extent);
    }
}

// In the child.
static void sweep_reader_seeds(const sweep_reader *reader) {
    const sweep_extent extent = sweep_get_extent();
    char folder[128];
    snprintf(folder, sizeof folder, "tests/fuzz/found/%s", reader->name);
    sweep_folder(reader, folder, SWEEP_SEEDS_LIMIT, NULL);
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", reader->name);
    sweep_folder(reader, folder, extent.seeds, &extent);
}

static void sweep_in_child(const sweep_reader *reader) {
    const struct rlimit data = {SWEEP_MEMORY_LIMIT, SWEEP_MEMORY_LIMIT}, none = {0, 0};
    if (!PEN_IS_SANITIZED && setrlimit(RLIMIT_DATA, &data) != 0) _exit(3);
    if (setrlimit(RLIMIT_CORE, &none) != 0) _exit(3);
    sweep_reader_seeds(reader);
    exit(0); // NOLINT: the leak checker runs at exit
}

static void readers_survive(void **state) {
    (void)state;
    place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(place != MAP_FAILED);
    uint64_t run_count = 0;
    size_t failed = 0;
    for (size_t i = 0; i < SWEEP_READER_COUNT; i++) {
        const double start = pen_clock_seconds();
        *place = (sweep_place){0};
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) sweep_in_child(&sweep_readers[i]);
        int outcome = 0;
        assert_int_equal(waitpid(child, &outcome, 0), child);
        printf("%-12s %8llu runs, %.2f s\n", sweep_readers[i].name,
               (unsigned long long)place->run_count, pen_clock_seconds() - start);
        run_count += place->run_count;
        if (outcome == 0) continue;
        failed++;
        printf("%s: seed %s %s %llu (mask %02x), %s: ended with %s %d\n", sweep_readers[i].name,
               place->seed, sweep_kind_names[place->kind], (unsigned long long)place->position,
               place->mask, place->complaint, WIFSIGNALED(outcome) ? "signal" : "code",
               WIFSIGNALED(outcome) ? WTERMSIG(outcome) : WEXITSTATUS(outcome));
    }
    printf("%zu readers, %llu runs\n", SWEEP_READER_COUNT, (unsigned long long)run_count);
    munmap(place, sizeof *place);
    assert_true(failed == 0);
}

PEN_TEST_MAIN(cmocka_unit_test(readers_survive))
