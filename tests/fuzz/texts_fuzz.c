// Fuzzes the readers of short texts that come from others: addresses, names of shards in a folder,
// databases, tokens, quantities, ranges of names and patterns. The first byte says which.
#include <string.h>

#include "base/format/quantity.h"
#include "base/pattern.h"
#include "partition/spec/name_range.h"
#include "scheduler/data/sql/sql_target.h"
#include "scheduler/serve/infer_texts.h"
#include "scheduler/store/shard.h"
#include "scheduler/transport/grpc/address.h"
#include "tests/fuzz/fuzz.h"

static void read_address(const char *text, pen_arena *arena) {
    pen_address address, again;
    (void)arena;
    if (!fuzz_reads(pen_address_read(text, &address))) return;
    fuzz_must(strlen(address.host) < sizeof address.host);
    fuzz_must(strlen(address.text) < sizeof address.text);
    (void)pen_address_is_loopback(&address);
    if (!fuzz_works(pen_address_read(address.text, &again))) return;
    fuzz_must(again.port == address.port);
}

static void read_shard_name(const char *text, pen_arena *arena) {
    uint64_t generation, step;
    (void)arena;
    if (pen_shard_name_parse(text, &generation, &step)) fuzz_must(strchr(text, '/') == NULL);
}

// No error may have the text itself, which may hold a password: that is what pen_sql_target_parse
// promises. A file that is asked for is looked for, and not opened.
static void read_database(const char *text, pen_arena *arena) {
    pen_sql_target target;
    if (!fuzz_reads(pen_sql_target_parse(text, arena, &target))) return;
    fuzz_must(target.text != NULL && (target.kind == PEN_SQL_SQLITE) == (target.file != NULL));
}

static void read_token(const char *text, pen_arena *arena) {
    (void)arena;
    const bool is_allowed = pen_infer_is_allowed("secret", text, strlen(text));
    fuzz_must(!is_allowed || strstr(text, "secret") != NULL);
}

static void read_quantity(const char *text, pen_arena *arena) {
    int64_t whole;
    double number;
    pen_interval interval;
    (void)arena;
    (void)pen_integer_parse(text, &whole);
    (void)pen_number_parse(text, &number);
    (void)pen_interval_parse(text, &interval);
    for (int unit = 0; unit <= PEN_UNIT_BANDWIDTH; unit++)
        if (pen_quantity_parse(text, (pen_unit)unit, &number)) fuzz_must(number >= 0);
}

static void read_names(const char *text, pen_arena *arena) {
    pen_name_ranges ranges;
    pen_pattern *pattern;
    (void)arena;
    (void)fuzz_reads(pen_name_ranges_parse(text, &ranges));
    if (!fuzz_reads(pen_pattern_create(text, &pattern))) return;
    (void)pen_pattern_matches(pattern, "encoder.layers.11.attention.weight");
    pen_pattern_destroy(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const readers[])(const char *text, pen_arena *arena) = {
        read_address, read_shard_name, read_database, read_token, read_quantity, read_names};
    pen_arena *arena;
    const char *text;
    if (size < 1 || memchr(data + 1, 0, size - 1) != NULL) return 0;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_works(pen_arena_copy_text(arena, (const char *)data + 1, size - 1, &text))) {
        readers[data[0] % (sizeof readers / sizeof *readers)](text, arena);
    }
    pen_arena_destroy(arena);
    return 0;
}
