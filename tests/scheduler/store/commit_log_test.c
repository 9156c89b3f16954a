#include "scheduler/store/commit_log.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/limits.h"
#include "base/log.h"
#include "scheduler/store/commit_record.h"
#include "scheduler/store/shard.h"
#include "tests/support/check.h"
#include "tests/support/failing_disk.h"
#include "tests/support/record_bytes.h"
#include "tests/support/scratch.h"

#define RACE_NUMBERS 20000
#define RACE_GENERATIONS 150

static const char *const job = "penstock-0123456789abcdef";

static pen_commit_record fence(uint64_t generation, uint64_t coordinator) {
    pen_commit_record record = {
        .kind = PEN_COMMIT_FENCE, .generation = generation, .coordinator = coordinator};
    snprintf(record.job, sizeof record.job, "%s", job);
    return record;
}

static pen_commit_record manifest(uint64_t generation, uint64_t step) {
    static const uint32_t checksums[] = {0x01234567};
    static const pen_shard_summary shard = {.file = "g1-s1-w0.safetensors",
                                            .holders = "",
                                            .bytes = 5,
                                            .chunk_count = 1,
                                            .checksums = checksums};
    pen_commit_record record = {.kind = PEN_COMMIT_MANIFEST,
                                .generation = generation,
                                .manifest = {.step = step, .shard_count = 1, .shards = &shard}};
    snprintf(record.job, sizeof record.job, "%s", job);
    return record;
}

static pen_commit_log *open_log(const char *folder, pen_arena *arena) {
    pen_commit_log *log;
    CHECK_OK(pen_commit_log_open(pen_disk_of_machine(), folder, arena, &log));
    return log;
}

static bool is_there(const char *folder, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void append(pen_commit_log *log, pen_commit_record record) {
    CHECK_OK(pen_commit_log_append(log, &record));
}

static void keeps_what_was_appended(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("kept/commit");
    pen_commit_log *log = open_log(folder, arena);
    assert_int_equal(pen_commit_log_generation(log), 0);
    assert_string_equal(pen_commit_log_job(log), "");
    assert_null(pen_commit_log_manifest(log, 0));
    append(log, fence(1, 7));
    append(log, manifest(1, 10));
    append(log, manifest(1, 20));
    append(log, fence(2, 8));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pen_commit_log_generation(log), 2);
        assert_string_equal(pen_commit_log_job(log), job);
        assert_int_equal(pen_commit_log_manifest(log, 0)->manifest.step, 20);
        assert_int_equal(pen_commit_log_manifest(log, 0)->number, 3);
        assert_int_equal(pen_commit_log_manifest(log, 1)->manifest.step, 10);
        assert_null(pen_commit_log_manifest(log, 2));
        log = open_log(folder, arena);
    }
    const pen_shard_summary *shard = &pen_commit_log_manifest(log, 0)->manifest.shards[0];
    assert_string_equal(shard->file, "g1-s1-w0.safetensors");
    assert_int_equal(shard->checksums[0], 0x01234567);
    pen_commit_record begun = fence(3, 9); // another training: what was there is not of it
    begun.begins = true;
    append(log, begun);
    assert_null(pen_commit_log_manifest(log, 0));
    append(log, manifest(3, 5));
    assert_int_equal(pen_commit_log_manifest(open_log(folder, arena), 0)->manifest.step, 5);
    assert_null(pen_commit_log_manifest(log, 1));
    pen_commit_record foreign = manifest(3, 6);
    snprintf(foreign.job, sizeof foreign.job, "another");
    CHECK_ERROR(pen_commit_log_append(log, &foreign), PEN_INVALID_INPUT, "not 'another'");
    pen_arena_destroy(arena);
}

static void supersedes(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("superseded/commit");
    pen_commit_log *first = open_log(folder, arena);
    append(first, fence(1, 7));
    append(first, manifest(1, 10));
    pen_commit_log *second = open_log(folder, arena);
    pen_commit_record unfenced = manifest(1, 11);
    CHECK_ERROR(pen_commit_log_append(second, &unfenced), PEN_CANCELLED, "superseded");
    append(second, fence(2, 8));
    pen_commit_record late = manifest(1, 20);
    CHECK_ERROR(pen_commit_log_append(first, &late), PEN_CANCELLED, "superseded by generation 2");
    pen_commit_record again = fence(2, 7);
    CHECK_ERROR(pen_commit_log_append(first, &again), PEN_CANCELLED, "superseded by generation 2");
    append(second, manifest(2, 20));
    append(first, fence(3, 7)); // it knows now, and may go on
    late = manifest(2, 30);
    CHECK_ERROR(pen_commit_log_append(second, &late), PEN_CANCELLED, "superseded by generation 3");
    assert_int_equal(pen_commit_log_manifest(open_log(folder, arena), 0)->manifest.step, 20);
    pen_arena_destroy(arena);
}

// A number that was removed is free again, but not for one who does not know what came after.
static void passes_removed_numbers(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("removed/commit");
    const pen_shard_place shards = {pen_disk_of_machine(), scratch_path("removed/shards")};
    CHECK_OK(pen_disk_of_machine()->kind->make_folder(pen_disk_of_machine(), shards.folder));
    pen_commit_log *zombie = open_log(folder, arena);
    append(zombie, fence(1, 7));
    pen_commit_log *log = open_log(folder, arena);
    append(log, fence(2, 8));
    append(log, fence(3, 8));
    pen_commit_record empty = manifest(3, 1);
    empty.manifest.shard_count = 0;
    for (uint64_t step = 1; step <= 4; step++) {
        empty.manifest.step = step;
        append(log, empty);
    }
    CHECK_OK(pen_commit_log_prune(log, &shards, 2));
    assert_false(is_there(folder, "commit.000000000002"));
    assert_int_equal(pen_commit_log_manifest(log, 1)->manifest.step, 3);
    assert_null(pen_commit_log_manifest(log, 2));
    pen_commit_record late = manifest(1, 9);
    CHECK_ERROR(pen_commit_log_append(zombie, &late), PEN_CANCELLED, "superseded by generation 3");
    pen_commit_log *opened = open_log(folder, arena); // it may be there, and counts as an old one
    assert_int_equal(pen_commit_log_manifest(opened, 0)->manifest.step, 4);
    assert_int_equal(pen_commit_log_manifest(opened, 1)->manifest.step, 3);
    assert_int_equal(pen_commit_log_generation(opened), 3);
    CHECK_ERROR(pen_commit_log_prune(zombie, &shards, 2), PEN_CANCELLED, "superseded");
    append(log, empty);
    assert_int_equal(pen_commit_log_generation(open_log(folder, arena)), 3);
    pen_arena_destroy(arena);
}

// The manifest that the newest one names as the best stays, beside as many as are kept; until
// another is named. It comes back as it was written.
static void keeps_the_best(void **state) {
    (void)state;
    static const uint64_t best[] = {0, 1, 1, 1, 4, 4, 4, 4}; // [step]
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("best/commit");
    const pen_shard_place shards = {pen_disk_of_machine(), scratch_path("best/shards")};
    CHECK_OK(pen_disk_of_machine()->kind->make_folder(pen_disk_of_machine(), shards.folder));
    pen_commit_log *log = open_log(folder, arena);
    append(log, fence(1, 7));
    for (uint64_t step = 1; step < sizeof best / sizeof *best; step++) {
        pen_commit_record record = manifest(1, step);
        record.manifest.shard_count = 0;
        record.manifest.evaluations = step;
        record.manifest.best_step = best[step];
        record.manifest.best = 0x3fea086956666666u;
        record.manifest.since_best = step - best[step];
        record.manifest.keeps_best = true;
        if (step % 2 == 0) strcpy(record.manifest.best_metric, "accuracy");
        append(log, record);
        CHECK_OK(pen_commit_log_prune(log, &shards, 2));
        pen_commit_log *opened = open_log(folder, arena);
        bool is_there = false;
        uint32_t count = 0;
        for (const pen_commit_record *kept; (kept = pen_commit_log_manifest(opened, count)) != NULL;
             count++) {
            is_there = is_there || kept->manifest.step == best[step];
            assert_true(kept->manifest.step == best[step] || kept->manifest.step + 3 > step);
            assert_int_equal(kept->manifest.best_step, best[kept->manifest.step]);
            assert_int_equal(kept->manifest.best, 0x3fea086956666666u);
            assert_int_equal(kept->manifest.since_best,
                             kept->manifest.step - best[kept->manifest.step]);
            assert_true(kept->manifest.keeps_best);
            assert_string_equal(kept->manifest.best_metric,
                                kept->manifest.step % 2 == 0 ? "accuracy" : "");
        }
        assert_true(is_there);
        assert_int_equal(count, step < 3 ? step : 3);
    }
    pen_arena_destroy(arena);
}

static void write_over(const char *path, uint64_t at, char byte) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, file), byte);
    assert_int_equal(fclose(file), 0);
}

static void falls_back_from_damage(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("damaged/commit");
    pen_commit_log *log = open_log(folder, arena);
    append(log, fence(1, 7));
    append(log, manifest(1, 10));
    append(log, manifest(1, 20));
    scratch_file("damaged/commit/tmp.000000000002.1.7", "torn", 4);
    scratch_file("damaged/commit/tmp.000000000004.1.7", "torn", 4);
    write_over(scratch_path("damaged/commit/commit.000000000003"), 40, '!');
    pen_log_set_level(PEN_LOG_ERROR);
    log = open_log(folder, arena);
    assert_int_equal(pen_commit_log_manifest(log, 0)->manifest.step, 10);
    assert_null(pen_commit_log_manifest(log, 1));
    // the damaged record may have been a fence
    assert_int_equal(pen_commit_log_generation(log), 2);
    assert_false(is_there(folder, "tmp.000000000002.1.7"));
    assert_true(is_there(folder, "tmp.000000000004.1.7"));
    append(log, fence(3, 8));
    append(log, manifest(3, 20));
    log = open_log(folder, arena);
    assert_int_equal(pen_commit_log_generation(log), 3);
    assert_int_equal(pen_commit_log_manifest(log, 0)->manifest.step, 20);
    pen_log_set_level(PEN_LOG_NOTE);
    pen_arena_destroy(arena);
}

// Records before a damaged one were removed: it may have been a fence of any generation up to its
// number, none of which is fenced again.
static void damage_without_a_record_before_it_ends_generations(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("alone/commit");
    pen_commit_log *log = open_log(folder, arena);
    append(log, fence(1, 7));
    append(log, fence(2, 8));
    assert_int_equal(unlink(scratch_path("alone/commit/commit.000000000001")), 0);
    write_over(scratch_path("alone/commit/commit.000000000002"), 40, '!');
    pen_log_set_level(PEN_LOG_ERROR);
    log = open_log(folder, arena);
    assert_int_equal(pen_commit_log_generation(log), 2);
    append(log, fence(3, 9));
    log = open_log(folder, arena);
    assert_int_equal(pen_commit_log_generation(log), 3);
    pen_log_set_level(PEN_LOG_NOTE);
    pen_arena_destroy(arena);
}

// Each byte of a record, with any other value, is seen.
static void sees_each_byte(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_commit_record records[] = {fence(3, 0x123456789abcdef0), manifest(12, 345)};
    for (size_t r = 0; r < 2; r++) {
        const char *bytes;
        uint64_t count = 0;
        pen_commit_record read;
        records[r].number = 17;
        CHECK_OK(pen_commit_record_encode(&records[r], arena, &bytes, &count));
        CHECK_OK(pen_commit_record_decode(bytes, count, arena, &read));
        char *copy = malloc(count);
        for (uint64_t at = 0; at < count; at++) {
            for (int other = 1; other < 256; other++) {
                memcpy(copy, bytes, count);
                copy[at] = (char)(copy[at] ^ other);
                CHECK_ERROR(pen_commit_record_decode(copy, count, arena, &read), PEN_CORRUPT, "");
            }
            CHECK_ERROR(pen_commit_record_decode(bytes, at, arena, &read), PEN_CORRUPT, "");
        }
        free(copy);
    }
    pen_arena_destroy(arena);
}

// A record as bytes with another value for `key`, and the checksum that they then have.
static const char *change_value(const pen_commit_record *record, const char *key, const char *value,
                                pen_arena *arena, uint64_t *out_count) {
    const char *bytes, *changed;
    uint64_t count = 0;
    char line[64];
    CHECK_OK(pen_commit_record_encode(record, arena, &bytes, &count));
    snprintf(line, sizeof line, "\n%s: ", key);
    const char *at = strstr(bytes, line) + strlen(line);
    const char *rest = strchr(at, '\n'), *last = strstr(rest, "checksum: ");
    CHECK_OK(pen_arena_format(arena, &changed, "%.*s%s%.*s", (int)(at - bytes), bytes, value,
                              (int)(last - rest), rest));
    const uint32_t checksum = pen_checksum(changed, strlen(changed));
    CHECK_OK(pen_arena_format(arena, &changed, "%schecksum: %08x\n", changed, checksum));
    *out_count = strlen(changed);
    return changed;
}

static void write_record(const char *folder, uint64_t number, const char *bytes, uint64_t count) {
    char name[PEN_COMMIT_NAME_BYTES], path[256];
    snprintf(path, sizeof path, "%s/%s", folder, pen_commit_log_name(number, name));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

// Checksums are right, so only the numbers say that no training wrote these.
static void refuses_counters_near_their_end(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *error;
    } cases[] = {
        {"number", "18446744073709551615", "the number is 18446744073709551615, at most"},
        {"generation", "18446744073709551615",
         "the generation is 18446744073709551615, at most 999999999999 can be"},
        {"generation", "1000000000000", "the generation is 1000000000000, at most"},
        {"step", "18446744073709551615", "the step is 18446744073709551615, at most"},
        {"epoch", "9007199254740993", "the epoch is 9007199254740993, at most 9007199254740992"},
        {"batch_index", "18446744073709551614", "the batch_index is"},
        {"examples", "18446744073709551615", "the examples is"},
        {"generation", "18446744073709551616", "no value for 'generation'"},
    };
    pen_arena *arena = check_arena();
    pen_commit_record record = manifest(4, 12), read;
    const char *bytes;
    uint64_t count = 0;
    record.number = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes = change_value(&record, cases[i].key, cases[i].value, arena, &count);
        CHECK_ERROR(pen_commit_record_decode(bytes, count, arena, &read), PEN_CORRUPT,
                    cases[i].error);
    }
    bytes = change_value(&record, "generation", "999999999999", arena, &count);
    CHECK_OK(pen_commit_record_decode(bytes, count, arena, &read));
    record.generation = UINT64_MAX; // nor is one written
    CHECK_ERROR(pen_commit_record_encode(&record, arena, &bytes, &count), PEN_INVALID_INPUT,
                "the generation is 18446744073709551615");
    pen_arena_destroy(arena);
}

// Such a record in a folder is passed over as a damaged one, and the training goes on behind it.
static void passes_over_a_last_generation(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("last/commit");
    uint64_t count = 0;
    append(open_log(folder, arena), fence(1, 7));
    pen_commit_record last = fence(3, 8);
    last.number = 2;
    const char *bytes = change_value(&last, "generation", "18446744073709551615", arena, &count);
    write_record(folder, 2, bytes, count);
    pen_log_set_level(PEN_LOG_ERROR);
    pen_commit_log *log = open_log(folder, arena);
    assert_int_equal(pen_commit_log_damaged_count(log), 1);
    assert_int_equal(pen_commit_log_generation(log), 2);
    append(log, fence(3, 9));
    append(log, manifest(3, 10));
    assert_int_equal(pen_commit_log_manifest(open_log(folder, arena), 0)->manifest.step, 10);
    write_record(folder, PEN_COMMIT_NUMBER_LIMIT, "x", 1);
    log = open_log(folder, arena);
    pen_commit_record next = fence(6, 9);
    CHECK_ERROR(pen_commit_log_append(log, &next), PEN_CORRUPT,
                "commit.999999999999' has the last number");
    pen_log_set_level(PEN_LOG_NOTE);
    pen_arena_destroy(arena);
}

// Of two processes that want a number one gets it.
static void one_wins_each_number(void **state) {
    (void)state;
    pen_disk *disk = pen_disk_of_machine();
    const char *won[2] = {scratch_path("numbers/won.0"), scratch_path("numbers/won.1")};
    for (int p = 0; p < 2; p++) {
        scratch_file(p == 0 ? "numbers/from.0" : "numbers/from.1", "x", 1);
    }
    const char *froms[2] = {scratch_path("numbers/from.0"), scratch_path("numbers/from.1")};
    const char *prefix = scratch_path("numbers/to");
    const pid_t child = fork();
    const int self = child == 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < RACE_NUMBERS; i++) {
        char to[256];
        bool is_taken = false;
        snprintf(to, sizeof to, "%s.%u", prefix, i);
        CHECK_OK(disk->kind->publish(disk, froms[self], to, &is_taken));
        if (!is_taken) count++;
    }
    FILE *file = fopen(won[self], "w");
    assert_non_null(file);
    fprintf(file, "%u", count);
    fclose(file);
    if (child == 0) _exit(0);
    int result = 1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    unsigned other = 0;
    file = fopen(won[1], "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%u", &other), 1);
    fclose(file);
    assert_int_equal(count + other, RACE_NUMBERS);
}

// Fences generations until the last, and writes which it got.
static void race(const char *folder, uint64_t self, FILE *won) {
    pen_arena *arena = check_arena();
    pen_commit_log *log = open_log(folder, arena);
    while (pen_commit_log_generation(log) < RACE_GENERATIONS) {
        pen_commit_record record = fence(pen_commit_log_generation(log) + 1, self);
        const pen_status status = pen_commit_log_append(log, &record);
        if (status == PEN_OK) {
            fprintf(won, "%u\n", (unsigned)record.generation);
            pen_commit_record step = manifest(record.generation, record.generation);
            const pen_status saved = pen_commit_log_append(log, &step);
            if (saved != PEN_OK) {
                assert_int_equal(pen_status_get_code(saved), PEN_CANCELLED);
                pen_status_ignore(saved, "the other was quicker");
            }
            continue;
        }
        assert_int_equal(pen_status_get_code(status), PEN_CANCELLED);
        pen_status_ignore(status, "the other was quicker");
    }
    pen_arena_destroy(arena);
}

static void one_wins_each_generation(void **state) {
    (void)state;
    const char *folder = scratch_path("race/commit");
    const char *lists[2] = {scratch_file("race/won.0", "", 0), scratch_file("race/won.1", "", 0)};
    const pid_t child = fork();
    const int self = child == 0;
    FILE *won = fopen(lists[self], "w");
    assert_non_null(won);
    race(folder, 100 + (uint64_t)self, won);
    fclose(won);
    if (child == 0) _exit(0);
    int result = 1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    static unsigned char winners[RACE_GENERATIONS + 1];
    for (int p = 0; p < 2; p++) {
        unsigned generation = 0;
        FILE *list = fopen(lists[p], "r");
        assert_non_null(list);
        while (fscanf(list, "%u", &generation) == 1) {
            assert_in_range(generation, 1, RACE_GENERATIONS);
            winners[generation]++;
        }
        fclose(list);
    }
    for (uint32_t g = 1; g <= RACE_GENERATIONS; g++) {
        CHECK(winners[g] == 1, "generation %u was won %u times", g, winners[g]);
    }
}

// Whatever goes wrong while appending: the record is there whole, or not at all, and the next
// append goes on from there.
static void survives_each_call(void **state) {
    (void)state;
    const char *root = scratch_path("calls");
    pen_log_set_level(PEN_LOG_ERROR);
    for (int mode = 0; mode < FAILING_DISK_MODES; mode++) {
        bool has_failed = true;
        for (uint64_t at = 1; has_failed; at++) {
            char folder[256];
            pen_arena *arena = check_arena();
            snprintf(folder, sizeof folder, "%s/%d.%u/commit", root, mode, (unsigned)at);
            append(open_log(folder, arena), fence(1, 7));
            failing_disk failing;
            failing_disk_init(&failing, at, (failing_disk_mode)mode);
            pen_commit_log *log = NULL;
            pen_status status = pen_commit_log_open(&failing.disk, folder, arena, &log);
            pen_commit_record next = fence(2, 8), saved = manifest(2, 10);
            if (status == PEN_OK) status = pen_commit_log_append(log, &next);
            if (status == PEN_OK) status = pen_commit_log_append(log, &saved);
            has_failed = failing_disk_has_failed(&failing);
            const bool is_saved = status == PEN_OK;
            pen_status_ignore(status, "looked at below");
            if (!is_saved && mode != FAILING_DISK_DEAD && log != NULL) {
                CHECK_OK(pen_commit_log_append(log, &next)); // it may have been the fence
                CHECK_OK(pen_commit_log_append(log, &saved));
            }
            log = open_log(folder, arena);
            CHECK(pen_commit_log_generation(log) >= 1, "mode %d, call %u", mode, (unsigned)at);
            if (is_saved) assert_int_equal(pen_commit_log_manifest(log, 0)->manifest.step, 10);
            append(log, fence(pen_commit_log_generation(log) + 1, 9));
            pen_arena_destroy(arena);
        }
    }
    pen_log_set_level(PEN_LOG_NOTE);
}

// Lines that older records lack, each of which is left out where it says nothing.
static void record_lines_check(pen_commit_record *record, pen_arena *arena) {
    pen_commit_record found;
    const char *bytes;
    uint64_t count;
    // the kernel level is a line of its own, which older records lack
    strcpy(record->manifest.level, "v3");
    CHECK_OK(pen_commit_record_encode(record, arena, &bytes, &count));
    assert_non_null(strstr(bytes, "\nlevel: v3\nshards: 2\n"));
    CHECK_OK(pen_commit_record_decode(bytes, count, arena, &found));
    assert_string_equal(found.manifest.level, "v3");
    // so are lanes, where there are several
    record->manifest.lanes = 4;
    CHECK_OK(pen_commit_record_encode(record, arena, &bytes, &count));
    assert_non_null(strstr(bytes, "\nlanes: 4\nlevel: v3\nshards: 2\n"));
    CHECK_OK(pen_commit_record_decode(bytes, count, arena, &found));
    assert_int_equal(found.manifest.lanes, 4);
    assert_string_equal(found.manifest.level, "v3");
    // and what bits depend on besides, and since when
    strcpy(record->manifest.arithmetic, "cuda: a GPU; cpu");
    record->manifest.changed_step = 7;
    CHECK_OK(pen_commit_record_encode(record, arena, &bytes, &count));
    assert_non_null(
        strstr(bytes, "\nlevel: v3\narithmetic: cuda: a GPU; cpu\nchanged_step: 7\nshards: 2\n"));
    CHECK_OK(pen_commit_record_decode(bytes, count, arena, &found));
    assert_string_equal(found.manifest.arithmetic, "cuda: a GPU; cpu");
    assert_int_equal(found.manifest.changed_step, 7);
    // and a precision that is not float32
    strcpy(record->manifest.precision, "bfloat16");
    CHECK_OK(pen_commit_record_encode(record, arena, &bytes, &count));
    assert_non_null(strstr(bytes, "\nchanged_step: 7\nprecision: bfloat16\nshards: 2\n"));
    CHECK_OK(pen_commit_record_decode(bytes, count, arena, &found));
    assert_string_equal(found.manifest.precision, "bfloat16");
    // and the scale of a loss, where there is one: older records have none
    assert_int_equal(found.manifest.loss_scale, 0);
    record->manifest.loss_scale = 0x40f0000000000000; // 65536
    record->manifest.scale_good = 3;
    record->manifest.scale_skipped = 2;
    record->manifest.scale_bad = 1;
    CHECK_OK(pen_commit_record_encode(record, arena, &bytes, &count));
    assert_non_null(strstr(bytes, "\nscale_good: 3\nscale_skipped: 2\nscale_bad: 1\nshards: 2\n"));
    CHECK_OK(pen_commit_record_decode(bytes, count, arena, &found));
    assert_true(found.manifest.loss_scale == 0x40f0000000000000);
    assert_int_equal(found.manifest.scale_good, 3);
    assert_int_equal(found.manifest.scale_skipped, 2);
    assert_int_equal(found.manifest.scale_bad, 1);
    strcpy(record->manifest.level, "a\nb");
    CHECK_ERROR(pen_commit_record_encode(record, arena, &bytes, &count), PEN_INVALID_INPUT,
                "level");
}

static void records_have_the_same_bytes_as_ever(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    static const uint32_t checksums[] = {0x01234567, 0x89abcdef};
    static const pen_shard_summary shards[] = {{.file = "g1-s1-w0.safetensors",
                                                .holders = "",
                                                .bytes = 5,
                                                .chunk_count = 1,
                                                .checksums = checksums},
                                               {.file = "g1-s1-w1.safetensors",
                                                .holders = "a:1 b:2",
                                                .bytes = PEN_SHARD_CHUNK_BYTES + 1,
                                                .chunk_count = 2,
                                                .checksums = checksums}};
    pen_commit_record records[] = {fence(3, 0xfedcba9876543210), manifest(4, 12)};
    const char *bytes;
    uint64_t count;
    pen_text text;
    pen_text_init(&text, arena);
    records[0].number = 1;
    records[0].begins = true;
    records[1].number = 2;
    records[1].manifest = (pen_commit_manifest){.step = 12,
                                                .epoch = 1,
                                                .batch_index = 2,
                                                .rate_steps = 3,
                                                .loss = 0x7ff8000000000001,
                                                .losses_hash = 4,
                                                .seed = UINT64_MAX,
                                                .examples = 6,
                                                .batch = 7,
                                                .microbatches = 8,
                                                .shuffle = true,
                                                .model_hash = "0a0b",
                                                .build = "gcc 12",
                                                .shard_count = 2,
                                                .shards = shards};
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(pen_commit_record_encode(&records[i], arena, &bytes, &count));
        pen_text_append(&text, bytes, count);
        CHECK_OK(pen_shard_summary_encode(&shards[i], arena, &bytes, &count));
        pen_text_append(&text, bytes, count);
    }
    record_bytes_check(&text, "commit_record_bytes.txt");
    record_lines_check(&records[1], arena);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(records_have_the_same_bytes_as_ever),
              cmocka_unit_test(keeps_what_was_appended), cmocka_unit_test(supersedes),
              cmocka_unit_test(passes_removed_numbers), cmocka_unit_test(keeps_the_best),
              cmocka_unit_test(falls_back_from_damage),
              cmocka_unit_test(damage_without_a_record_before_it_ends_generations),
              cmocka_unit_test(refuses_counters_near_their_end),
              cmocka_unit_test(passes_over_a_last_generation), cmocka_unit_test(sees_each_byte),
              cmocka_unit_test(one_wins_each_number), cmocka_unit_test(one_wins_each_generation),
              cmocka_unit_test(survives_each_call))
