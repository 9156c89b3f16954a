// Fuzzes the reader of flight recorder dumps: any bytes, with a right checksum put behind most of
// them, give a dump whose events can be told in words, or an error with a message.
#include <string.h>

#include "base/hash.h"
#include "scheduler/protocol/flight_dump.h"
#include "scheduler/protocol/flight_wire.h"
#include "tests/fuzz/fuzz.h"

static void tell(const pen_flight_dump_file *dump) {
    char text[PEN_FLIGHT_LINE_BYTES];
    for (uint32_t i = 0; i < dump->event_count; i++) {
        memset(text, 1, sizeof text);
        pen_flight_event_format(dump, &dump->events[i], text);
        fuzz_must(memchr(text, 0, sizeof text) != NULL);
    }
    pen_flight_who_format(dump, dump->worker, text);
}

static void read_dump(const uint8_t *data, size_t size, pen_arena *arena) {
    uint8_t *bytes;
    pen_flight_dump_file dump;
    if (!fuzz_works(PEN_NEW(arena, size, &bytes))) return;
    memcpy(bytes, data, size);
    if (size > 8 && bytes[size - 1] != 0xff) {
        const uint64_t checksum = pen_hash_bytes(PEN_HASH_START, bytes, size - 8);
        for (uint32_t i = 0; i < 8; i++) {
            bytes[size - 8 + i] = (uint8_t)(checksum >> 8 * i);
        }
    }
    if (fuzz_reads(pen_flight_dump_decode(bytes, size, arena, &dump))) tell(&dump);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    if (size == 0) return 0;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    read_dump(data, size, arena);
    pen_arena_destroy(arena);
    return 0;
}
