// A checkpoint's bytes on disk: one measurement, printed as JSON.
//   checkpoint_bench persist FOLDER BYTES   as plain writes and syncs of as many bytes, and as a
//                                           shard with its record in the log
//   checkpoint_bench stall FOLDER BYTES     a copy of the tensors in memory, and a snapshot
// Both ways take turns, ROUNDS times.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "scheduler/runtime/executor/snapshot.h"
#include "scheduler/store/commit_log.h"

#define ROUNDS 9
#define TENSOR_COUNT 16
#define PIECE_BYTES ((uint64_t)1 << 20)

typedef struct bench {
    const char *folder;
    pen_shard_tensor tensors[TENSOR_COUNT];
    uint8_t *data;
    uint64_t tensor_bytes;
    pen_arena *arena;
    pen_commit_log *log;
    uint64_t step;
} bench;

static void fail(const char *what) {
    fprintf(stderr, "checkpoint_bench: %s\n", what);
    _exit(1);
}

static void check(pen_status status) {
    if (status == PEN_OK) return;
    char text[1024];
    pen_status_format(status, text, sizeof text);
    fail(text);
}

static double persist_raw(const bench *b) {
    char path[2][4096];
    snprintf(path[0], sizeof path[0], "%s/raw.tmp", b->folder);
    snprintf(path[1], sizeof path[1], "%s/raw", b->folder);
    unlink(path[1]);
    const double started = pen_clock_seconds();
    const int file = open(path[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) fail("cannot create a file");
    for (uint64_t at = 0; at < b->tensor_bytes * TENSOR_COUNT; at += PIECE_BYTES) {
        if (write(file, b->data + at, PIECE_BYTES) != (ssize_t)PIECE_BYTES) fail("cannot write");
    }
    if (fsync(file) != 0) fail("cannot sync");
    close(file);
    if (rename(path[0], path[1]) != 0) fail("cannot rename");
    const int folder = open(b->folder, O_RDONLY | O_CLOEXEC);
    if (folder < 0 || fsync(folder) != 0) fail("cannot sync a folder");
    close(folder);
    return pen_clock_seconds() - started;
}

static double persist_shard(bench *b) {
    pen_arena *arena;
    const char *name;
    pen_shard_summary summary;
    check(pen_arena_create(&arena));
    b->step++;
    check(pen_shard_name(1, b->step, 0, arena, &name));
    const pen_shard_source source = {.tensors = b->tensors, .count = TENSOR_COUNT, .data = b->data};
    const double started = pen_clock_seconds();
    check(pen_shard_write(pen_disk_of_machine(), &source, b->folder, name, arena, &summary));
    pen_commit_record record = {
        .kind = PEN_COMMIT_MANIFEST,
        .generation = 1,
        .job = "bench",
        .manifest = {.step = b->step, .shard_count = 1, .shards = &summary}};
    check(pen_commit_log_append(b->log, &record));
    const double seconds = pen_clock_seconds() - started;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    unlink(path);
    pen_arena_destroy(arena);
    return seconds;
}

static void bench_init(bench *b, uint64_t bytes) {
    b->tensor_bytes = bytes / TENSOR_COUNT / PIECE_BYTES * PIECE_BYTES;
    const int64_t count = (int64_t)(b->tensor_bytes / sizeof(float));
    b->data = malloc(b->tensor_bytes * TENSOR_COUNT);
    if (b->data == NULL || b->tensor_bytes == 0) fail("no memory, or too few bytes");
    for (uint64_t i = 0; i < b->tensor_bytes * TENSOR_COUNT; i++) {
        b->data[i] = (uint8_t)(i * 2654435761u >> 15);
    }
    check(pen_arena_create(&b->arena));
    for (uint32_t i = 0; i < TENSOR_COUNT; i++) {
        const char *name;
        check(pen_arena_format(b->arena, &name, "layer%u.weight", i));
        b->tensors[i] = (pen_shard_tensor){.name = name,
                                           .type = pen_tensor_type_make(PEN_FLOAT32, 1, &count),
                                           .bytes = b->tensor_bytes};
    }
    char commit[4096];
    snprintf(commit, sizeof commit, "%s/commit", b->folder);
    check(pen_commit_log_open(pen_disk_of_machine(), commit, b->arena, &b->log));
    pen_commit_record record = {.kind = PEN_COMMIT_FENCE,
                                .generation = pen_commit_log_generation(b->log) + 1,
                                .coordinator = 1,
                                .job = "bench"};
    if (record.generation != 1) fail("the folder is not empty");
    check(pen_commit_log_append(b->log, &record));
}

static pen_status read_tensor(void *context, uint32_t index, uint64_t first, void *out,
                              uint64_t bytes) {
    const bench *b = context;
    memcpy(out, b->data + index * b->tensor_bytes + first, bytes);
    return PEN_OK;
}

static void heed(void *context, uint64_t step, pen_status status,
                 const pen_shard_summary *summary) {
    (void)context;
    (void)step;
    (void)summary;
    check(status);
}

static double copy_raw(const bench *b, uint8_t *copy) {
    const double started = pen_clock_seconds();
    memcpy(copy, b->data, b->tensor_bytes * TENSOR_COUNT);
    return pen_clock_seconds() - started;
}

static double copy_snapshot(bench *b, pen_snapshot_writer *writer) {
    char name[64];
    snprintf(name, sizeof name, "g1-s%" PRIu64 "-w0.safetensors", ++b->step);
    const double started = pen_clock_seconds();
    check(pen_snapshot_take(writer, b->step,
                            (pen_shard_place){.disk = pen_disk_of_machine(), .folder = b->folder},
                            name));
    const double seconds = pen_clock_seconds() - started;
    while (pen_snapshot_is_writing(writer)) {
        usleep(1000);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    unlink(path);
    return seconds;
}

static void measure(bench *b, const char *what, double *theirs, double *ours) {
    if (strcmp(what, "persist") == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            theirs[i] = persist_raw(b);
            ours[i] = persist_shard(b);
        }
        return;
    }
    pen_snapshot_writer *writer;
    const pen_snapshot_options options = {.tensors = b->tensors,
                                          .count = TENSOR_COUNT,
                                          .read = read_tensor,
                                          .context = b,
                                          .done = heed};
    uint8_t *copy = malloc(b->tensor_bytes * TENSOR_COUNT);
    if (copy == NULL) fail("no memory");
    memset(copy, 1, b->tensor_bytes * TENSOR_COUNT);
    check(pen_snapshot_writer_create(&options, &writer));
    for (int i = 0; i < ROUNDS; i++) {
        theirs[i] = copy_raw(b, copy);
        ours[i] = copy_snapshot(b, writer);
    }
    pen_snapshot_writer_destroy(writer);
    free(copy);
}

int main(int count, char **arguments) {
    static bench b;
    double theirs[ROUNDS], ours[ROUNDS];
    if (count != 4) fail("expected persist|stall FOLDER BYTES");
    b.folder = arguments[2];
    bench_init(&b, strtoull(arguments[3], NULL, 10));
    measure(&b, arguments[1], theirs, ours);
    printf("{\"bytes\": %" PRIu64 ", \"theirs\": [", b.tensor_bytes * TENSOR_COUNT);
    for (int i = 0; i < ROUNDS; i++) {
        printf("%s%.6f", i == 0 ? "" : ", ", theirs[i]);
    }
    printf("], \"ours\": [");
    for (int i = 0; i < ROUNDS; i++) {
        printf("%s%.6f", i == 0 ? "" : ", ", ours[i]);
    }
    printf("]}\n");
    free(b.data);
    pen_arena_destroy(b.arena);
    return 0;
}
