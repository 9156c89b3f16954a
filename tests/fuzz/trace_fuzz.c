// libFuzzer: traces. Bytes that begin with '{' are a file, others what a worker sends. What can be
// read must go through all that is worked out from traces, and be written again.
#include <string.h>

#include "scheduler/trace/trace_file.h"
#include "scheduler/trace/trace_levels.h"
#include "scheduler/trace/trace_summary.h"
#include "tests/fuzz/fuzz.h"

static void use_trace(const pen_trace *trace, pen_arena *arena) {
    const pen_trace_entry *entries;
    const pen_trace_level *levels;
    const pen_trace_summary *summary;
    uint32_t count, level_count;
    if (!fuzz_works(pen_trace_merge(trace, arena, &entries, &count))) return;
    if (!fuzz_works(pen_trace_levels(trace, entries, count, arena, &levels, &level_count))) return;
    if (!fuzz_works(pen_trace_summarize(trace, arena, &summary))) return;
    fuzz_must(summary->bubble >= 0 && summary->bubble <= 1);
}

static void read_message(const uint8_t *data, size_t size, pen_arena *arena) {
    const pen_trace_event *events;
    uint32_t count;
    const void *bytes;
    uint64_t byte_count;
    if (!fuzz_reads(pen_trace_decode(data, size, arena, &events, &count))) return;
    if (!fuzz_works(pen_trace_encode(events, count, arena, &bytes, &byte_count))) return;
    fuzz_must(byte_count == size && memcmp(bytes, data, size) == 0);
}

static void read_file(const char *text, size_t size, pen_arena *arena) {
    const pen_trace *trace;
    if (fuzz_reads(pen_trace_file_parse("fuzz", text, size, arena, &trace))) {
        use_trace(trace, arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (size > 0 && data[0] == '{') {
        read_file((const char *)data, size, arena);
    } else {
        read_message(data, size, arena);
    }
    pen_arena_destroy(arena);
    return 0;
}
