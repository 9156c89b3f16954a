// Fuzzes the reading of PyTorch's `.pt2` files: any bytes give a graph or an error.
//
// Changes of bytes break the archive's checksums at once, so most changes are made within: a value
// of a JSON file takes the place of another one, or a byte of it changes, and the checksums are set
// right. What could be read is carried on: open sizes are bound small, and shapes inferred.

#include <string.h>

#include "base/random.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/pytorch/pt2_archive.h"
#include "graph/passes/infer_shapes.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_SYMBOLS_LIMIT 16
#define FUZZ_CHANGES_LIMIT 4 // at once
#define FUZZ_RAW_OF 16       // one change in so many is of any byte of the archive

// libFuzzer's own changes of bytes; not there in readers_test, which changes nothing this way.
extern size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t limit) __attribute__((weak));

static pen_status fuzz_infer(pen_graph *graph) {
    pen_symbol_binding bindings[FUZZ_SYMBOLS_LIMIT];
    pen_infer_options options = {.bindings = bindings};
    while (options.binding_count < FUZZ_SYMBOLS_LIMIT &&
           options.binding_count < pen_graph_symbol_count(graph)) {
        const char *symbol = pen_graph_symbol_name(graph, -(1 + (int64_t)options.binding_count));
        bindings[options.binding_count++] = (pen_symbol_binding){.symbol = symbol, .size = 2};
    }
    return pen_infer_shapes(graph, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    pen_model *model = NULL;
    if (fuzz_reads(pen_model_open_bytes(bytes, length, "fuzz.pt2", NULL, &model))) {
        fuzz_reads(fuzz_infer(model->graph));
    }
    pen_model_destroy(model);
    return 0;
}

// ---- changes within

typedef struct fuzz_chance {
    pen_random_key key;
    uint64_t drawn;
} fuzz_chance;

static size_t fuzz_draw(fuzz_chance *chance, size_t count) {
    return (size_t)pen_random_below(chance->key, chance->drawn++, (uint32_t)count);
}

// A value of JSON text: where it begins and how long it is.
typedef struct fuzz_value {
    size_t start, length;
} fuzz_value;

static size_t fuzz_text_end(const uint8_t *text, size_t at, size_t length) {
    for (at++; at < length && text[at] != '"'; at++) {
        if (text[at] == '\\') at++;
    }
    return at < length ? at + 1 : length;
}

// The value that begins at or behind a place: behind the next colon, comma or bracket.
static fuzz_value fuzz_find_value(const uint8_t *text, size_t length, size_t at) {
    while (at < length && strchr(":,[", text[at]) == NULL) {
        at++;
    }
    at++;
    while (at < length && text[at] == ' ') {
        at++;
    }
    size_t end = at, depth = 0;
    while (end < length) {
        if (text[end] == '"') {
            end = fuzz_text_end(text, end, length);
        } else {
            if (strchr("[{", text[end]) != NULL) depth++;
            if (depth == 0 && strchr(",]}", text[end]) != NULL) break;
            if (depth > 0 && strchr("]}", text[end]) != NULL) depth--;
            end++;
        }
    }
    return at < end ? (fuzz_value){at, end - at} : (fuzz_value){0, 0};
}

// Another value of the text in the place of one, filled up with spaces.
static void fuzz_swap_value(uint8_t *text, size_t length, fuzz_chance *chance) {
    const fuzz_value to = fuzz_find_value(text, length, fuzz_draw(chance, length));
    const fuzz_value from = fuzz_find_value(text, length, fuzz_draw(chance, length));
    if (from.length == 0 || from.length > to.length) return;
    memmove(text + to.start, text + from.start, from.length);
    memset(text + to.start + from.length, ' ', to.length - from.length);
}

static void fuzz_change_digit(uint8_t *text, size_t length, fuzz_chance *chance) {
    size_t at = fuzz_draw(chance, length);
    while (at < length && (text[at] < '0' || text[at] > '9')) {
        at++;
    }
    if (at < length) text[at] = (uint8_t)('0' + fuzz_draw(chance, 10));
}

// The checksum of an entry stands in both of its headers; one that is 0 in its own stays so.
static void fuzz_set_checksum(uint8_t *bytes, const pen_pt2_entry *entry) {
    const uint32_t checksum = pen_pt2_checksum(0, bytes + entry->offset, entry->length);
    uint32_t own;
    memcpy(&own, bytes + entry->header_offset + 14, sizeof own);
    if (own != 0) memcpy(bytes + entry->header_offset + 14, &checksum, sizeof checksum);
    memcpy(bytes + entry->central_offset + 16, &checksum, sizeof checksum);
}

static void fuzz_change_entry(uint8_t *bytes, const pen_pt2_entry *entry, fuzz_chance *chance) {
    uint8_t *text = bytes + entry->offset;
    const size_t count = 1 + fuzz_draw(chance, FUZZ_CHANGES_LIMIT);
    for (size_t i = 0; i < count && entry->length > 0; i++) {
        switch (fuzz_draw(chance, 4)) {
        case 0:
            fuzz_change_digit(text, entry->length, chance);
            break;
        case 1:
            text[fuzz_draw(chance, entry->length)] = (uint8_t)fuzz_draw(chance, 256);
            break;
        default:
            fuzz_swap_value(text, entry->length, chance);
        }
    }
    fuzz_set_checksum(bytes, entry);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    fuzz_chance chance = {.key = {.seed = seed}};
    pen_pt2_archive archive;
    pen_arena *arena;
    if (!fuzz_works(pen_arena_create(&arena))) return length;
    const pen_status status = pen_pt2_archive_read(bytes, length, arena, &archive);
    const bool is_archive = status == PEN_OK && archive.count > 0;
    pen_status_ignore(status, "bytes that are no archive are changed as such");
    if (is_archive && fuzz_draw(&chance, FUZZ_RAW_OF) > 0) {
        size_t tries = 8; // most entries are contents of weights
        const pen_pt2_entry *entry;
        do {
            entry = &archive.entries[fuzz_draw(&chance, archive.count)];
        } while (--tries > 0 && strstr(entry->name, ".json") == NULL);
        fuzz_change_entry(bytes, entry, &chance);
    } else if (LLVMFuzzerMutate != NULL) {
        length = LLVMFuzzerMutate(bytes, length, limit);
    }
    pen_arena_destroy(arena);
    return length;
}
