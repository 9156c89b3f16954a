// Fuzzes the readers of records of the commit log and of summaries of shards. Each input is read as
// it is, and once more with the checksum that its bytes ask for; what can be read is written as it
// was.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "scheduler/store/commit_record.h"
#include "tests/fuzz/fuzz.h"

static void read_record(const char *bytes, uint64_t count, pen_arena *arena) {
    pen_commit_record record;
    const char *written;
    uint64_t written_count = 0;
    if (!fuzz_reads(pen_commit_record_decode(bytes, count, arena, &record))) return;
    if (!fuzz_works(pen_commit_record_encode(&record, arena, &written, &written_count))) return;
    fuzz_must(written_count == count && memcmp(written, bytes, count) == 0);
}

static void read_summary(const char *bytes, uint64_t count, pen_arena *arena) {
    pen_shard_summary summary;
    const char *written;
    uint64_t written_count = 0;
    if (!fuzz_reads(pen_shard_summary_decode(bytes, count, arena, &summary))) return;
    if (!fuzz_works(pen_shard_summary_encode(&summary, arena, &written, &written_count))) return;
    fuzz_must(written_count == count && memcmp(written, bytes, count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char last[32];
    pen_arena *arena;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    const int last_count =
        snprintf(last, sizeof last, "checksum: %08x\n", pen_checksum(data, size));
    char *whole = malloc(size + (size_t)last_count + 1); // exactly, so that the sanitizer sees more
    fuzz_must(whole != NULL);
    if (size > 0) memcpy(whole, data, size);
    read_record(whole, size, arena);
    memcpy(whole + size, last, (size_t)last_count);
    read_record(whole, size + (size_t)last_count, arena);
    read_summary(whole, size + (size_t)last_count, arena);
    free(whole);
    pen_arena_destroy(arena);
    return 0;
}
