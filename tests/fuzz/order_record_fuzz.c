// Fuzzes the reader of records of the order of lanes. What can be read, up to where it is damaged,
// is written as it was.
#include <string.h>

#include "scheduler/checkpoint/order_record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data, *head;
    pen_arena *arena;
    pen_order_record record;
    pen_order_writer writer;
    uint32_t line = 0;
    size_t at = 0;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_order_record_decode(bytes, size, arena, &record, &line)) &&
        fuzz_works(pen_order_write_head(&writer, record.of, arena, &head, &at))) {
        fuzz_must(at <= size && memcmp(head, bytes, at) == 0);
        for (uint64_t step = 0; step < record.step_count; step++) {
            char text[PEN_ORDER_LINE_BYTES];
            const size_t length = pen_order_write_step(&writer, &record.steps[step], text);
            fuzz_must(length <= size - at && memcmp(text, bytes + at, length) == 0);
            at += length;
        }
        fuzz_must(record.damage != NULL || at == size);
    }
    pen_arena_destroy(arena);
    return 0;
}
