#include "scheduler/store/shard.h"

#include "base/memory.h"
#include "base/random.h"
#include "scheduler/store/commit_record.h"
#include "scheduler/store/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/failing_disk.h"
#include "tests/support/scratch.h"

#define TENSORS 5
#define FLIPS 5000
#define FLIPS_LONG 1000000

// Tensors one behind the other: a scalar, one that is longer than a chunk, an empty one, a range.
typedef struct set {
    pen_shard_tensor tensors[TENSORS];
    uint8_t *data;
    uint64_t bytes;
} set;

static set make_set(uint64_t large) {
    set made = {0};
    const int64_t dims[TENSORS][2] = {{1, 1}, {3, (int64_t)large}, {0, 7}, {16, 16}, {5, 1}};
    static const char *const names[TENSORS] = {"scalar", "conv/weight \"é\"", "empty", "part@y",
                                               "bytes"};
    for (uint32_t i = 0; i < TENSORS; i++) {
        pen_shard_tensor *tensor = &made.tensors[i];
        tensor->name = names[i];
        tensor->type =
            pen_tensor_type_make(i == 4 ? PEN_UINT8 : PEN_FLOAT32, i == 0 ? 0 : 2, dims[i]);
        tensor->bytes = pen_tensor_type_bytes(&tensor->type);
    }
    made.tensors[3].first = 128;
    made.tensors[3].bytes = 256;
    for (uint32_t i = 0; i < TENSORS; i++) {
        made.bytes += made.tensors[i].bytes;
    }
    made.data = malloc(made.bytes);
    assert_non_null(made.data);
    for (uint64_t i = 0; i < made.bytes; i++) {
        made.data[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    return made;
}

static pen_status read_set(void *context, uint32_t index, uint64_t first, void *out,
                           uint64_t bytes) {
    const set *from = context;
    const uint8_t *at = from->data;
    for (uint32_t i = 0; i < index; i++) {
        at += from->tensors[i].bytes;
    }
    assert_true(first % PEN_SHARD_CHUNK_BYTES == 0 && bytes <= PEN_SHARD_CHUNK_BYTES &&
                first + bytes <= from->tensors[index].bytes);
    memcpy(out, at + first, bytes);
    return PEN_OK;
}

static pen_status write_set(pen_disk *disk, set *from, bool in_memory, const char *name,
                            pen_arena *arena, pen_shard_summary *summary) {
    const pen_shard_source source = {.tensors = from->tensors,
                                     .count = TENSORS,
                                     .data = in_memory ? from->data : NULL,
                                     .read = read_set,
                                     .context = from};
    return pen_shard_write(disk, &source, scratch_path("shards"), name, arena, summary);
}

static int make_folder(void **state) {
    (void)state;
    pen_disk *disk = pen_disk_of_machine();
    CHECK_OK(disk->kind->make_folder(disk, scratch_path("shards")));
    return 0;
}

// From memory and read piece by piece: the same file, in which safetensors finds everything.
static void has_what_was_written(void **state) {
    (void)state;
    pen_disk *disk = pen_disk_of_machine();
    for (uint64_t large = 1; large < 2000000; large = large * 7 + 1) {
        pen_arena *arena = check_arena();
        set from = make_set(large);
        pen_shard_summary summaries[2];
        CHECK_OK(write_set(disk, &from, true, "g1-s2-w0.safetensors", arena, &summaries[0]));
        CHECK_OK(write_set(disk, &from, false, "g1-s2-w1.safetensors", arena, &summaries[1]));
        assert_int_equal(summaries[0].bytes, summaries[1].bytes);
        assert_int_equal(summaries[0].chunk_count, summaries[1].chunk_count);
        assert_memory_equal(summaries[0].checksums, summaries[1].checksums,
                            summaries[0].chunk_count * sizeof(uint32_t));
        for (int i = 0; i < 2; i++) {
            CHECK_OK(pen_shard_verify(disk, scratch_path("shards"), &summaries[i]));
        }
        pen_safetensors *file;
        CHECK_OK(pen_safetensors_open(scratch_path("shards/g1-s2-w1.safetensors"), &file));
        assert_int_equal(pen_safetensors_count(file), TENSORS);
        const uint8_t *at = from.data;
        for (uint32_t i = 0; i < TENSORS; i++) {
            const char *name = i == 3 ? "part@y@128+256[16,16]" : from.tensors[i].name;
            const pen_safetensors_entry *entry = pen_safetensors_find(file, name);
            CHECK(entry != NULL, "no tensor '%s'", name);
            assert_int_equal(pen_tensor_type_bytes(&entry->type), from.tensors[i].bytes);
            assert_memory_equal(entry->data, at, from.tensors[i].bytes);
            at += from.tensors[i].bytes;
        }
        pen_safetensors_close(file);
        free(from.data);
        pen_arena_destroy(arena);
    }
}

static void refuses_what_cannot_be_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_disk *disk = pen_disk_of_machine();
    pen_shard_summary summary;
    const char *name = "g1-s9-w0.safetensors";
    set from = make_set(10);
    from.tensors[3].first = 4;
    CHECK_ERROR(write_set(disk, &from, true, name, arena, &summary), PEN_INVALID_INPUT,
                "has no range 4+256");
    from.tensors[3].first = 128;
    from.tensors[3].name = "scalar@0+4[]";
    from.tensors[0].name = "bytes";
    CHECK_ERROR(write_set(disk, &from, true, name, arena, &summary), PEN_INVALID_INPUT, "twice");
    from.tensors[0].name = "\xff";
    CHECK_ERROR(write_set(disk, &from, true, name, arena, &summary), PEN_INVALID_INPUT, "UTF-8");
    free(from.data);
    uint64_t generation = 0, step = 0;
    assert_true(pen_shard_name_parse("g3-s120-w2.safetensors", &generation, &step));
    assert_true(generation == 3 && step == 120);
    assert_true(pen_shard_name_parse("g3-s120-w2.safetensors.partial", &generation, &step));
    assert_false(pen_shard_name_parse("g3-s120-w2.safetensors.old", &generation, &step));
    assert_false(pen_shard_name_parse("g-s120-w2.safetensors", &generation, &step));
    assert_false(pen_shard_name_parse("model.safetensors", &generation, &step));
    pen_arena_destroy(arena);
}

static void summary_survives(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const uint32_t checksums[] = {1, 0xfedcba98};
    const pen_shard_summary summary = {.file = "g1-s1-w1.safetensors",
                                       .holders = "10.0.0.1:7070 b:1",
                                       .bytes = PEN_SHARD_CHUNK_BYTES + 1,
                                       .chunk_count = 2,
                                       .checksums = checksums};
    const char *bytes;
    uint64_t count = 0;
    pen_shard_summary read;
    CHECK_OK(pen_shard_summary_encode(&summary, arena, &bytes, &count));
    CHECK_OK(pen_shard_summary_decode(bytes, count, arena, &read));
    assert_string_equal(read.file, summary.file);
    assert_string_equal(read.holders, summary.holders);
    assert_int_equal(read.bytes, summary.bytes);
    assert_int_equal(read.chunk_count, 2);
    assert_memory_equal(read.checksums, checksums, sizeof checksums);
    pen_shard_summary wrong = summary;
    wrong.file = "../shard";
    CHECK_ERROR(pen_shard_summary_encode(&wrong, arena, &bytes, &count), PEN_INVALID_INPUT, "../");
    pen_arena_destroy(arena);
}

// ---- damage

// A file in memory, for reading alone.
typedef struct memory_disk {
    pen_disk disk;
    const uint8_t *bytes;
    uint64_t count;
} memory_disk;

static pen_status memory_size(pen_disk *disk, const char *path, uint64_t *out_bytes) {
    (void)path;
    *out_bytes = ((memory_disk *)disk)->count;
    return PEN_OK;
}

static pen_status memory_read(pen_disk *disk, const char *path, uint64_t offset, void *out,
                              uint64_t count) {
    const memory_disk *memory = (memory_disk *)disk;
    (void)path;
    assert_true(offset <= memory->count && count <= memory->count - offset);
    memcpy(out, memory->bytes + offset, count);
    return PEN_OK;
}

static uint8_t *load_file(const char *path, uint64_t *out_count) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long count = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc((size_t)count);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)count, file), count);
    fclose(file);
    *out_count = (uint64_t)count;
    return bytes;
}

static void sees_each_flip(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    set from = make_set(5400); // 64 KiB
    pen_shard_summary summary;
    CHECK_OK(
        write_set(pen_disk_of_machine(), &from, true, "g1-s3-w0.safetensors", arena, &summary));
    static const pen_disk_kind kind = {.name = "memory", .size = memory_size, .read = memory_read};
    memory_disk memory = {.disk.kind = &kind};
    uint8_t *bytes = load_file(scratch_path("shards/g1-s3-w0.safetensors"), &memory.count);
    memory.bytes = bytes;
    CHECK_OK(pen_shard_verify(&memory.disk, "x", &summary));
    const pen_random_key key = {11, pen_random_stream("flips", 0, 0)};
    const uint32_t count = getenv("PEN_LONG") != NULL ? FLIPS_LONG : FLIPS;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        // the header bit by bit, then anywhere
        const uint64_t bit = i < 4096 ? i : pen_random_below(key, i, memory.count * 8);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        const pen_status status = pen_shard_verify(&memory.disk, "x", &summary);
        if (pen_status_get_code(status) == PEN_CORRUPT) seen++;
        pen_status_ignore(status, "wanted");
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    printf("%u of %u flipped bits seen\n", seen, count);
    assert_int_equal(seen, count);
    memory.count--;
    CHECK_ERROR(pen_shard_verify(&memory.disk, "x", &summary), PEN_CORRUPT, "damaged from byte");
    free(bytes);
    free(from.data);
    pen_arena_destroy(arena);
}

static void names_the_damage(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_disk *disk = pen_disk_of_machine();
    set from = make_set(400000); // 4.6 chunks
    pen_shard_summary summary;
    CHECK_OK(write_set(disk, &from, true, "g1-s4-w0.safetensors", arena, &summary));
    FILE *file = fopen(scratch_path("shards/g1-s4-w0.safetensors"), "r+");
    assert_non_null(file);
    for (long at = 1500000; at < 4000000; at += 1500000) {
        fseek(file, at, SEEK_SET);
        const int byte = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(byte ^ 1, file);
    }
    fclose(file);
    const char *folder = scratch_path("shards");
    CHECK_ERROR(pen_shard_verify(disk, folder, &summary), PEN_CORRUPT, "bytes 1048576 to 2097151");
    CHECK_ERROR(pen_shard_verify(disk, folder, &summary), PEN_CORRUPT, "bytes 2097152 to 3145727");
    pen_shard_reader reader;
    CHECK_OK(pen_shard_reader_init(&reader, disk, folder, &summary));
    uint8_t piece[64];
    CHECK_OK(pen_shard_reader_read(&reader, 1048576 - 64, piece, 64));
    CHECK_ERROR(pen_shard_reader_read(&reader, 1048576 - 32, piece, 64), PEN_CORRUPT, "damaged");
    pen_shard_reader_deinit(&reader);
    free(from.data);
    pen_arena_destroy(arena);
}

// A shard that is elsewhere; byte `wrong` of it comes damaged.
typedef struct elsewhere {
    const uint8_t *bytes;
    uint64_t wrong;
} elsewhere;

static pen_status fetch(void *context, uint64_t first, void *out, uint64_t bytes) {
    const elsewhere *from = context;
    assert_true(bytes <= PEN_SHARD_CHUNK_BYTES);
    memcpy(out, from->bytes + first, bytes);
    if (from->wrong >= first && from->wrong - first < bytes) {
        ((uint8_t *)out)[from->wrong - first] ^= 1;
    }
    return PEN_OK;
}

static void copies_what_is_whole(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_disk *disk = pen_disk_of_machine();
    set from = make_set(400000);
    pen_shard_summary summary;
    uint64_t count = 0;
    CHECK_OK(write_set(disk, &from, true, "g1-s7-w0.safetensors", arena, &summary));
    uint8_t *bytes = load_file(scratch_path("shards/g1-s7-w0.safetensors"), &count);
    const char *folder = scratch_path("copies");
    CHECK_OK(disk->kind->make_folder(disk, folder));
    elsewhere there = {.bytes = bytes, .wrong = 3000000};
    CHECK_ERROR(pen_shard_copy(disk, folder, &summary, fetch, &there), PEN_CORRUPT,
                "bytes 2097152 to 3145727");
    const char *const *names;
    uint32_t left = 0;
    CHECK_OK(disk->kind->list(disk, folder, 10, arena, &names, &left));
    assert_int_equal(left, 0);
    there.wrong = UINT64_MAX;
    CHECK_OK(pen_shard_copy(disk, folder, &summary, fetch, &there));
    CHECK_OK(pen_shard_verify(disk, folder, &summary));
    free(bytes);
    free(from.data);
    pen_arena_destroy(arena);
}

// ---- what fails on the way

// Whatever call fails: said, and then there is nothing under the name; or not, and it is whole.
static void survives_each_call(void **state) {
    (void)state;
    set from = make_set(300000);
    for (int mode = 0; mode < FAILING_DISK_MODES; mode++) {
        bool has_failed = true;
        for (uint64_t at = 1; has_failed; at++) {
            pen_arena *arena = check_arena();
            failing_disk failing;
            failing_disk_init(&failing, at, (failing_disk_mode)mode);
            pen_shard_summary summary;
            const pen_status status = write_set(&failing.disk, &from, at % 2 == 0,
                                                "g1-s5-w0.safetensors", arena, &summary);
            has_failed = failing_disk_has_failed(&failing);
            const bool is_written = status == PEN_OK;
            pen_status_ignore(status, "wanted");
            pen_disk *disk = pen_disk_of_machine();
            if (is_written) {
                CHECK_OK(pen_shard_verify(disk, scratch_path("shards"), &summary));
                CHECK_OK(disk->kind->remove(disk, scratch_path("shards/g1-s5-w0.safetensors")));
            } else {
                uint64_t bytes = 0;
                if (mode != FAILING_DISK_DEAD) {
                    CHECK_ERROR(
                        disk->kind->size(disk, scratch_path("shards/g1-s5-w0.safetensors"), &bytes),
                        PEN_NOT_FOUND, "");
                }
                pen_status_ignore(
                    disk->kind->remove(disk, scratch_path("shards/g1-s5-w0.safetensors")), "gone");
            }
            assert_true(is_written || has_failed);
            pen_arena_destroy(arena);
        }
    }
    free(from.data);
}

static void survives_each_allocation(void **state) {
    (void)state;
    set from = make_set(300000);
    pen_status status = PEN_OK;
    bool is_done = false;
    for (uint64_t at = 1; !is_done; at++) {
        pen_shard_summary summary;
        pen_arena *arena;
        pen_memory_fail_at(at, 0);
        status = pen_arena_create(&arena);
        if (status == PEN_OK) {
            status = write_set(pen_disk_of_machine(), &from, false, "g1-s6-w0.safetensors", arena,
                               &summary);
            if (status == PEN_OK) {
                status = pen_shard_verify(pen_disk_of_machine(), scratch_path("shards"), &summary);
            }
            pen_arena_destroy(arena);
        }
        pen_memory_fail_at(0, 0);
        is_done = status == PEN_OK;
        if (!is_done) assert_int_equal(pen_status_get_code(status), PEN_OUT_OF_MEMORY);
        pen_status_ignore(status, "wanted");
    }
    free(from.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_what_was_written),     cmocka_unit_test(refuses_what_cannot_be_read),
        cmocka_unit_test(summary_survives),         cmocka_unit_test(sees_each_flip),
        cmocka_unit_test(names_the_damage),         cmocka_unit_test(survives_each_call),
        cmocka_unit_test(survives_each_allocation), cmocka_unit_test(copies_what_is_whole),
    };
    cmocka_set_test_filter(getenv("PEN_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
