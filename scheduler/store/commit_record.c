#include "scheduler/store/commit_record.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/checksum.h"
#include "base/limits.h"
#include "base/planted.h"
#include "base/record/record.h"
#include "base/text.h"
#include "scheduler/store/shard.h"

#define RECORD_TITLE "penstock: commit 1\n"
#define RECORD_NAME_BYTES_LIMIT 255 // of a shard's file
#define RECORD_HOLDERS_BYTES_LIMIT 65536
#define RECORD_WORD_DIGITS 8 // of a checksum
#define RECORD_BITS_DIGITS 16

#define RECORD(row, member, ...)                                                                   \
    PEN_RECORD_ROW(row, 0, #member, pen_commit_record, member, __VA_ARGS__)
#define MANIFEST(row, member)                                                                      \
    PEN_RECORD_ROW(row, 0, #member, pen_commit_record, manifest.member, NULL)
#define COUNT(member)                                                                              \
    PEN_RECORD_ROW(NUMBER, 0, #member, pen_commit_record, manifest.member, NULL,                   \
                   .limit = PEN_COUNTER_LIMIT)

// Lines in the order in which they stand: FIXED are written as hexadecimal digits.
static const pen_record_field head_fields[] = {
    RECORD(NUMBER, number, NULL, .limit = PEN_COMMIT_NUMBER_LIMIT),
    RECORD(NUMBER, generation, NULL, .limit = PEN_GENERATION_LIMIT),
    RECORD(TEXT, job, NULL),
};
static const pen_record_field fence_fields[] = {
    RECORD(FIXED, coordinator, NULL),
    RECORD(NUMBER, begins, NULL),
};
static const pen_record_field manifest_fields[] = {
    COUNT(step),
    COUNT(epoch),
    COUNT(batch_index),
    MANIFEST(NUMBER, rate_steps), // as many as the job says
    MANIFEST(FIXED, loss),
    MANIFEST(FIXED, losses_hash),
    MANIFEST(NUMBER, seed), // any bits
    COUNT(examples),
    COUNT(batch),
    COUNT(microbatches),
    MANIFEST(NUMBER, shuffle),
    MANIFEST(NUMBER, drop_last),
    MANIFEST(TEXT, model_hash),
    MANIFEST(TEXT, build),
};
static const pen_record_field lanes_fields[] = {COUNT(lanes)};
static const pen_record_field consistency_fields[] = {MANIFEST(TEXT, consistency)};
static const pen_record_field level_fields[] = {MANIFEST(TEXT, level)};
static const pen_record_field arithmetic_fields[] = {MANIFEST(TEXT, arithmetic)};
static const pen_record_field changed_fields[] = {COUNT(changed_step)};
static const pen_record_field precision_fields[] = {MANIFEST(TEXT, precision)};
static const pen_record_field evaluated_fields[] = {
    COUNT(evaluations),           COUNT(best_step), MANIFEST(FIXED, best), COUNT(since_best),
    MANIFEST(NUMBER, keeps_best),
};
static const pen_record_field metric_fields[] = {MANIFEST(TEXT, best_metric)};
static const pen_record_field plateau_fields[] = {
    MANIFEST(FIXED, plateau_rate),
    MANIFEST(FIXED, plateau_best),
    COUNT(plateau_bad),
    COUNT(plateau_cooldown),
};
static const pen_record_field rate_fields[] = {MANIFEST(FIXED, rate)};
static const pen_record_field scale_fields[] = {
    MANIFEST(FIXED, loss_scale),
    COUNT(scale_good),
    COUNT(scale_skipped),
    COUNT(scale_bad),
};
static const pen_record record_head = {.name = "record", PEN_RECORD_FIELDS(head_fields)};
static const pen_record record_bodies[] = {
    [PEN_COMMIT_FENCE] = {.name = "fence", PEN_RECORD_FIELDS(fence_fields)},
    [PEN_COMMIT_MANIFEST] = {.name = "manifest", PEN_RECORD_FIELDS(manifest_fields)},
};

// What a manifest has or has not, in this order behind its body: a section is there when its first
// field is not zero.
static const pen_record record_sections[] = {
    {.name = "lanes", PEN_RECORD_FIELDS(lanes_fields)},
    {.name = "consistency", PEN_RECORD_FIELDS(consistency_fields)},
    {.name = "level", PEN_RECORD_FIELDS(level_fields)},
    {.name = "arithmetic", PEN_RECORD_FIELDS(arithmetic_fields)},
    {.name = "changed", PEN_RECORD_FIELDS(changed_fields)},
    {.name = "precision", PEN_RECORD_FIELDS(precision_fields)},
    {.name = "evaluated", PEN_RECORD_FIELDS(evaluated_fields)},
    {.name = "metric", PEN_RECORD_FIELDS(metric_fields)},
    {.name = "plateau", PEN_RECORD_FIELDS(plateau_fields)},
    {.name = "rate", PEN_RECORD_FIELDS(rate_fields)},
    {.name = "scale", PEN_RECORD_FIELDS(scale_fields)},
};
#define RECORD_SECTION_COUNT (sizeof record_sections / sizeof *record_sections)

static bool record_has(const pen_commit_record *record, const pen_record *section) {
    const pen_record_field *first = &section->fields[0];
    const char *at = (const char *)record + first->offset;
    return first->kind == PEN_RECORD_TEXT ? at[0] != 0 : pen_record_get_bits(first, at) != 0;
}

static bool record_is_text(const char *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] < ' ' || bytes[i] > '~') return false;
    }
    return true;
}

// A plain name, which cannot lead out of the folder.
static bool record_is_file_name(const char *bytes, uint64_t count) {
    if (count == 0 || count > RECORD_NAME_BYTES_LIMIT || bytes[0] == '.') return false;
    return record_is_text(bytes, count) && memchr(bytes, '/', count) == NULL &&
           memchr(bytes, ' ', count) == NULL;
}

static uint64_t record_chunk_count(uint64_t bytes) {
    return (bytes + PEN_SHARD_CHUNK_BYTES - 1) / PEN_SHARD_CHUNK_BYTES;
}

// The first number of a table that is larger than it may be; NULL: none is. What others count on
// from here, a generation or a step, must not come near the end of its numbers.
static const pen_record_field *record_find_too_large(const pen_commit_record *record,
                                                     const pen_record *table,
                                                     uint64_t *out_number) {
    for (uint32_t f = 0; f < table->field_count; f++) {
        const pen_record_field *field = &table->fields[f];
        if (field->kind != PEN_RECORD_NUMBER) continue;
        *out_number = pen_record_get_bits(field, (const char *)record + field->offset);
        if (*out_number > pen_record_number_limit(field)) return field;
    }
    return NULL;
}

// ---- writing

// Driven by tables of fields, so that reading and writing cannot come to differ.
static pen_status record_write_fields(pen_text *text, const pen_commit_record *record,
                                      const pen_record *table) {
    for (uint32_t f = 0; f < table->field_count; f++) {
        const pen_record_field *field = &table->fields[f];
        const char *at = (const char *)record + field->offset;
        if (field->kind != PEN_RECORD_TEXT) continue;
        if (memchr(at, 0, field->size) == NULL || !record_is_text(at, strlen(at))) {
            return pen_error(PEN_INVALID_INPUT, "the %s cannot be written into a record",
                             field->name);
        }
    }
    uint64_t number;
    const pen_record_field *wrong = record_find_too_large(record, table, &number);
    if (wrong != NULL) {
        return pen_error(PEN_INVALID_INPUT, "the %s is %" PRIu64 ", at most %" PRIu64 " can be",
                         wrong->name, number, pen_record_number_limit(wrong));
    }
    pen_record_print(table, record, 0, text);
    return PEN_OK;
}

// What the reader would refuse is refused when writing, while the old record is still the last one.
static pen_status record_write_shard(pen_text *text, const pen_shard_summary *shard) {
    if (!record_is_file_name(shard->file, strlen(shard->file)) ||
        strlen(shard->holders) > RECORD_HOLDERS_BYTES_LIMIT ||
        !record_is_text(shard->holders, strlen(shard->holders)) ||
        shard->bytes > PEN_SHARD_BYTES_LIMIT ||
        shard->chunk_count != record_chunk_count(shard->bytes)) {
        return pen_error(PEN_INVALID_INPUT, "shard '%.100s' cannot be written into a record",
                         shard->file);
    }
    pen_text_print(text, "shard: %" PRIu64 " %s\nholders: %s\nchecksums: ", shard->bytes,
                   shard->file, shard->holders);
    for (uint32_t c = 0; c < shard->chunk_count; c++) {
        char word[RECORD_WORD_DIGITS];
        for (uint32_t d = 0; d < RECORD_WORD_DIGITS; d++) {
            word[d] = "0123456789abcdef"[shard->checksums[c] >> (28 - 4 * d) & 15];
        }
        pen_text_append(text, word, sizeof word);
    }
    pen_text_append(text, "\n", 1);
    return PEN_OK;
}

static pen_status record_finish(pen_text *text, const char **out_bytes, uint64_t *out_count) {
    if (!text->failed) {
        pen_text_print(text, "checksum: %08" PRIx32 "\n", pen_checksum(text->bytes, text->length));
    }
    PEN_TRY(pen_text_finish(text, out_bytes));
    *out_count = text->length;
    if (text->length <= PEN_COMMIT_RECORD_BYTES_LIMIT) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "a record of %zu bytes is longer than %u", text->length,
                     PEN_COMMIT_RECORD_BYTES_LIMIT);
}

// Text, so that a record can be read by a person when something went wrong.
pen_status pen_commit_record_encode(const pen_commit_record *record, pen_arena *arena,
                                    const char **out_bytes, uint64_t *out_count) {
    pen_text text;
    pen_text_init(&text, arena);
    if (record->number == 0 || record->generation == 0) {
        return pen_error(PEN_INVALID_INPUT, "a record without a number or a generation");
    }
    pen_text_print(&text, RECORD_TITLE "kind: %s\n", record_bodies[record->kind].name);
    PEN_TRY(record_write_fields(&text, record, &record_head));
    PEN_TRY(record_write_fields(&text, record, &record_bodies[record->kind]));
    if (record->kind == PEN_COMMIT_FENCE) return record_finish(&text, out_bytes, out_count);
    const pen_commit_manifest *manifest = &record->manifest;
    for (size_t i = 0; i < RECORD_SECTION_COUNT; i++) {
        if (!record_has(record, &record_sections[i])) continue;
        PEN_TRY(record_write_fields(&text, record, &record_sections[i]));
    }
    if (manifest->shard_count > PEN_COMMIT_SHARD_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "a checkpoint of %u shards, possible are %u",
                         manifest->shard_count, PEN_COMMIT_SHARD_LIMIT);
    }
    pen_text_print(&text, "shards: %" PRIu32 "\n", manifest->shard_count);
    for (uint32_t i = 0; i < manifest->shard_count; i++) {
        PEN_TRY(record_write_shard(&text, &manifest->shards[i]));
    }
    return record_finish(&text, out_bytes, out_count);
}

// ---- reading

typedef struct record_cursor {
    const char *bytes; // [count], without the line of the checksum
    uint64_t count;
    uint64_t at;
    const char *value; // [value_count]: of the line before `at`
    uint64_t value_count;
} record_cursor;

static pen_status record_corrupt(const record_cursor *cursor, const char *what) {
    return pen_error(PEN_CORRUPT, "byte %" PRIu64 ": %s", cursor->at, what);
}

static pen_status record_wrong_value(record_cursor *cursor, const char *key) {
    cursor->at = (uint64_t)(cursor->value - cursor->bytes);
    return pen_error(PEN_CORRUPT, "byte %" PRIu64 ": no value for '%s'", cursor->at, key);
}

// The line "KEY: VALUE".
static pen_status record_next(record_cursor *cursor, const char *key) {
    const size_t length = strlen(key);
    const char *line = cursor->bytes + cursor->at;
    const char *end = memchr(line, '\n', cursor->count - cursor->at);
    if (end == NULL) return record_corrupt(cursor, "a line is missing or not ended");
    const uint64_t count = (uint64_t)(end - line);
    if (count < length + 2 || memcmp(line, key, length) != 0 || line[length] != ':' ||
        line[length + 1] != ' ') {
        return pen_error(PEN_CORRUPT, "byte %" PRIu64 ": expected '%s: '", cursor->at, key);
    }
    cursor->value = line + length + 2;
    cursor->value_count = count - length - 2;
    cursor->at += count + 1;
    return PEN_OK;
}

static bool record_value_is(const record_cursor *cursor, const char *text) {
    return cursor->value_count == strlen(text) &&
           memcmp(cursor->value, text, cursor->value_count) == 0;
}

static bool record_read_number(const char *bytes, uint64_t count, uint64_t *out_number) {
    if (count == 0 || count > 20 || (count > 1 && bytes[0] == '0')) return false;
    uint64_t number = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] < '0' || bytes[i] > '9') return false;
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(bytes[i] - '0'), &number)) {
            return false;
        }
    }
    *out_number = number;
    return true;
}

static bool record_read_bits(const char *bytes, uint64_t count, uint64_t *out_bits) {
    uint64_t bits = 0;
    for (uint64_t i = 0; i < count; i++) {
        const char digit = bytes[i];
        const bool is_letter = digit >= 'a' && digit <= 'f';
        if (!is_letter && (digit < '0' || digit > '9')) return false;
        bits = bits << 4 | (uint64_t)(is_letter ? digit - 'a' + 10 : digit - '0');
    }
    *out_bits = bits;
    return true;
}

static bool record_read_flag(const char *bytes, uint64_t count, bool *out_flag) {
    *out_flag = count == 4;
    return (count == 4 && memcmp(bytes, "true", 4) == 0) ||
           (count == 5 && memcmp(bytes, "false", 5) == 0);
}

// One form for each value: a record that was edited into another form is not believed.
static bool record_read_value(const record_cursor *cursor, const pen_record_field *field,
                              void *out) {
    const char *value = cursor->value;
    const uint64_t count = cursor->value_count;
    if (field->kind == PEN_RECORD_FIXED) {
        return count == RECORD_BITS_DIGITS && record_read_bits(value, count, out);
    }
    if (field->kind == PEN_RECORD_NUMBER) {
        return field->size == sizeof(bool) ? record_read_flag(value, count, out)
                                           : record_read_number(value, count, out);
    }
    if (count >= field->size || !record_is_text(value, count)) return false;
    memcpy(out, value, count);
    ((char *)out)[count] = 0;
    return true;
}

static pen_status record_read_fields(record_cursor *cursor, const pen_record *table,
                                     pen_commit_record *record) {
    for (uint32_t f = 0; f < table->field_count; f++) {
        const pen_record_field *field = &table->fields[f];
        PEN_TRY(record_next(cursor, field->name));
        if (!record_read_value(cursor, field, (char *)record + field->offset)) {
            return record_wrong_value(cursor, field->name);
        }
    }
    uint64_t number;
    const pen_record_field *wrong = record_find_too_large(record, table, &number);
    if (wrong == NULL) return PEN_OK;
    return pen_error(PEN_CORRUPT, "the %s is %" PRIu64 ", at most %" PRIu64 " can be", wrong->name,
                     number, pen_record_number_limit(wrong));
}

// Lines in a fixed order and form; how many checksums there are follows from the bytes.
static pen_status record_read_shard(record_cursor *cursor, pen_arena *arena,
                                    pen_shard_summary *shard) {
    PEN_TRY(record_next(cursor, "shard"));
    const char *space = memchr(cursor->value, ' ', cursor->value_count);
    if (space == NULL) return record_wrong_value(cursor, "shard");
    const uint64_t digits = (uint64_t)(space - cursor->value);
    const char *name = space + 1;
    const uint64_t name_count = cursor->value_count - digits - 1;
    if (!record_read_number(cursor->value, digits, &shard->bytes) ||
        shard->bytes > PEN_SHARD_BYTES_LIMIT || !record_is_file_name(name, name_count)) {
        return record_wrong_value(cursor, "shard");
    }
    PEN_TRY(pen_arena_copy_text(arena, name, name_count, &shard->file));
    PEN_TRY(record_next(cursor, "holders"));
    if (cursor->value_count > RECORD_HOLDERS_BYTES_LIMIT ||
        !record_is_text(cursor->value, cursor->value_count)) {
        return record_wrong_value(cursor, "holders");
    }
    PEN_TRY(pen_arena_copy_text(arena, cursor->value, cursor->value_count, &shard->holders));
    PEN_TRY(record_next(cursor, "checksums"));
    const uint64_t chunk_count = record_chunk_count(shard->bytes);
    if (cursor->value_count != chunk_count * RECORD_WORD_DIGITS) {
        return record_wrong_value(cursor, "checksums");
    }
    uint32_t *checksums;
    PEN_TRY(PEN_NEW(arena, chunk_count, &checksums));
    for (uint64_t c = 0; c < chunk_count; c++) {
        uint64_t bits = 0;
        if (!record_read_bits(cursor->value + c * RECORD_WORD_DIGITS, RECORD_WORD_DIGITS, &bits)) {
            return record_wrong_value(cursor, "checksums");
        }
        checksums[c] = (uint32_t)bits;
    }
    shard->chunk_count = (uint32_t)chunk_count;
    shard->checksums = checksums;
    return PEN_OK;
}

static pen_status record_read_shards(record_cursor *cursor, pen_arena *arena,
                                     pen_commit_manifest *manifest) {
    PEN_TRY(record_next(cursor, "shards"));
    uint64_t count = 0;
    if (!record_read_number(cursor->value, cursor->value_count, &count) ||
        count > PEN_COMMIT_SHARD_LIMIT || count > cursor->count) {
        return record_wrong_value(cursor, "shards");
    }
    pen_shard_summary *shards;
    PEN_TRY(PEN_NEW(arena, count, &shards));
    for (uint64_t i = 0; i < count; i++) {
        PEN_TRY(record_read_shard(cursor, arena, &shards[i]));
    }
    manifest->shard_count = (uint32_t)count;
    manifest->shards = shards;
    return PEN_OK;
}

// Compares the last line with the bytes before it, and leaves these to be read.
static pen_status record_check(const char *bytes, uint64_t count, record_cursor *out_cursor) {
    static const char last[] = "checksum: 01234567\n";
    const uint64_t last_count = sizeof last - 1;
    if (count < last_count || count > PEN_COMMIT_RECORD_BYTES_LIMIT) {
        return pen_error(PEN_CORRUPT, "%" PRIu64 " bytes are no record", count);
    }
    const uint64_t end = count - last_count;
    // the last line is a line, and ended, so that its checksum is where it is looked for
    record_cursor line = {.bytes = bytes, .count = count, .at = end};
    uint64_t checksum = 0;
    PEN_TRY(record_next(&line, "checksum"));
    if (line.value_count != RECORD_WORD_DIGITS || line.at != count ||
        !record_read_bits(line.value, RECORD_WORD_DIGITS, &checksum)) {
        return record_wrong_value(&line, "checksum");
    }
    const uint32_t found = pen_checksum(bytes, end);
    if (found != checksum && !PEN_PLANTED(ignore_torn_record)) {
        return pen_error(PEN_CORRUPT,
                         "the checksum is %08" PRIx32 ", the last line says %08" PRIx64, found,
                         checksum);
    }
    *out_cursor = (record_cursor){.bytes = bytes, .count = end};
    return PEN_OK;
}

// Fields that a record has or has not.
static pen_status record_read_if_there(record_cursor *cursor, const pen_record *table,
                                       pen_commit_record *record) {
    const record_cursor before = *cursor;
    const pen_status is_there = record_next(cursor, table->fields[0].name);
    *cursor = before;
    if (is_there == PEN_OK) return record_read_fields(cursor, table, record);
    pen_status_ignore(is_there, "records of older versions have none");
    return PEN_OK;
}

// The checksum over the whole comes first, then each line in its order: nothing may be missing, or
// too much.
pen_status pen_commit_record_decode(const char *bytes, uint64_t count, pen_arena *arena,
                                    pen_commit_record *out_record) {
    record_cursor cursor;
    pen_commit_record record = {0};
    PEN_TRY(record_check(bytes, count, &cursor));
    PEN_TRY(record_next(&cursor, "penstock"));
    if (cursor.at != strlen(RECORD_TITLE) || memcmp(bytes, RECORD_TITLE, cursor.at) != 0) {
        return pen_error(PEN_CORRUPT, "not a record of this version: expected '%.18s'",
                         RECORD_TITLE);
    }
    PEN_TRY(record_next(&cursor, "kind"));
    uint32_t kind = 0;
    while (kind <= PEN_COMMIT_MANIFEST && !record_value_is(&cursor, record_bodies[kind].name)) {
        kind++;
    }
    if (kind > PEN_COMMIT_MANIFEST) return record_wrong_value(&cursor, "kind");
    record.kind = (pen_commit_kind)kind;
    PEN_TRY(record_read_fields(&cursor, &record_head, &record));
    if (record.number == 0 || record.generation == 0) {
        return record_corrupt(&cursor, "a number or a generation of 0");
    }
    PEN_TRY(record_read_fields(&cursor, &record_bodies[kind], &record));
    if (record.kind == PEN_COMMIT_MANIFEST) {
        for (size_t i = 0; i < RECORD_SECTION_COUNT; i++) {
            PEN_TRY(record_read_if_there(&cursor, &record_sections[i], &record));
        }
        PEN_TRY(record_read_shards(&cursor, arena, &record.manifest));
    }
    if (cursor.at != cursor.count) return record_corrupt(&cursor, "more than a record has");
    *out_record = record;
    return PEN_OK;
}

// ---- one shard

pen_status pen_shard_summary_encode(const pen_shard_summary *summary, pen_arena *arena,
                                    const char **out_bytes, uint64_t *out_count) {
    pen_text text;
    pen_text_init(&text, arena);
    PEN_TRY(record_write_shard(&text, summary));
    return record_finish(&text, out_bytes, out_count);
}

pen_status pen_shard_summary_decode(const char *bytes, uint64_t count, pen_arena *arena,
                                    pen_shard_summary *out_summary) {
    record_cursor cursor;
    pen_shard_summary summary;
    PEN_TRY(record_check(bytes, count, &cursor));
    PEN_TRY(record_read_shard(&cursor, arena, &summary));
    if (cursor.at != cursor.count) return record_corrupt(&cursor, "more than a shard has");
    *out_summary = summary;
    return PEN_OK;
}
