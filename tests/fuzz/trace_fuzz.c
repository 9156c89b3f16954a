// libFuzzer: traces. Bytes that begin with '{' are a file, others what a worker sends. What can be
// read must go through all that is worked out from traces, and be written again.
#include <stdlib.h>
#include <string.h>

#include "scheduler/training/trace_file.h"
#include "scheduler/training/trace_levels.h"
#include "scheduler/training/trace_summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) abort();
}

static void use_trace(const pen_trace *trace, pen_arena *arena) {
    const pen_trace_entry *entries;
    const pen_trace_level *levels;
    const pen_trace_summary *summary;
    uint32_t count, level_count;
    must(pen_trace_merge(trace, arena, &entries, &count) == PEN_OK);
    must(pen_trace_levels(trace, entries, count, arena, &levels, &level_count) == PEN_OK);
    must(pen_trace_summarize(trace, arena, &summary) == PEN_OK);
    must(summary->bubble >= 0 && summary->bubble <= 1);
}

static void read_message(const uint8_t *data, size_t size, pen_arena *arena) {
    const pen_trace_event *events;
    uint32_t count;
    const void *bytes;
    uint64_t byte_count;
    const pen_status status = pen_trace_decode(data, size, arena, &events, &count);
    if (status == PEN_OK) {
        must(pen_trace_encode(events, count, arena, &bytes, &byte_count) == PEN_OK);
        must(byte_count == size && memcmp(bytes, data, size) == 0);
    }
    pen_status_ignore(status, "most inputs are wrong");
}

static void read_file(const char *text, size_t size, pen_arena *arena) {
    const pen_trace *trace;
    const pen_status status = pen_trace_file_parse("fuzz", text, size, arena, &trace);
    if (status == PEN_OK) use_trace(trace, arena);
    must(pen_status_get_code(status) != PEN_INTERNAL);
    pen_status_ignore(status, "most inputs are wrong");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    must(pen_arena_create(&arena) == PEN_OK);
    if (size > 0 && data[0] == '{') {
        read_file((const char *)data, size, arena);
    } else {
        read_message(data, size, arena);
    }
    pen_arena_destroy(arena);
    return 0;
}
