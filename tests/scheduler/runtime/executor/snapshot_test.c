#include "scheduler/runtime/executor/snapshot.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/support/check.h"
#include "tests/support/failing_disk.h"
#include "tests/support/scratch.h"

#define TENSORS 3
#define ELEMENTS 300000

typedef struct scene {
    float values[TENSORS][ELEMENTS];
    pen_shard_tensor tensors[TENSORS];
    pen_status failure; // of the next read; given away
    atomic_uint done_count;
    uint64_t step;
    pen_status_code code;
    char file[64];
    uint64_t bytes;
    uint32_t checksums[8];
    uint32_t chunk_count;
} scene;

static pen_status read_values(void *context, uint32_t index, uint64_t first, void *out,
                              uint64_t bytes) {
    scene *s = context;
    const pen_status failure = s->failure;
    s->failure = PEN_OK;
    if (failure != PEN_OK) return failure;
    memcpy(out, (const char *)s->values[index] + first, bytes);
    return PEN_OK;
}

static void note_done(void *context, uint64_t step, pen_status take_status,
                      const pen_shard_summary *summary) {
    scene *s = context;
    s->step = step;
    s->code = pen_status_get_code(take_status);
    assert_true((summary != NULL) == (take_status == PEN_OK));
    if (summary != NULL) {
        snprintf(s->file, sizeof s->file, "%s", summary->file);
        s->bytes = summary->bytes;
        s->chunk_count = summary->chunk_count;
        assert_true(s->chunk_count <= 8);
        memcpy(s->checksums, summary->checksums, s->chunk_count * sizeof *s->checksums);
    }
    pen_status_ignore(take_status, "noted");
    atomic_fetch_add(&s->done_count, 1);
}

static scene *make_scene(void) {
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    static const char *const names[TENSORS] = {"a", "b", "c"};
    const int64_t count = ELEMENTS;
    for (uint32_t t = 0; t < TENSORS; t++) {
        s->tensors[t] = (pen_shard_tensor){.name = names[t],
                                           .type = pen_tensor_type_make(PEN_FLOAT32, 1, &count),
                                           .bytes = sizeof s->values[t]};
        for (uint32_t i = 0; i < ELEMENTS; i++) {
            s->values[t][i] = (float)(i * 7 + t);
        }
    }
    return s;
}

static pen_status take(pen_snapshot_writer *writer, uint64_t step, pen_disk *disk,
                       const char *folder, const char *name) {
    const pen_shard_place place = {.disk = disk, .folder = folder};
    return pen_snapshot_take(writer, step, place, name);
}

static pen_snapshot_writer *make_writer(scene *s, bool direct) {
    pen_snapshot_writer *writer;
    const pen_snapshot_options options = {.tensors = s->tensors,
                                          .count = TENSORS,
                                          .read = read_values,
                                          .context = s,
                                          .direct = direct,
                                          .done = note_done,
                                          .done_context = s};
    CHECK_OK(pen_snapshot_writer_create(&options, &writer));
    return writer;
}

static void await_done(scene *s, unsigned count) {
    for (int i = 0; atomic_load(&s->done_count) < count && i < 20000; i++) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&s->done_count), count);
}

// What was copied is written, whatever becomes of the tensors meanwhile.
static void writes_what_was_copied(void **state) {
    (void)state;
    pen_disk *disk = pen_disk_of_machine();
    const char *folder = scratch_path("shards");
    CHECK_OK(disk->kind->make_folder(disk, folder));
    for (int direct = 0; direct < 2; direct++) {
        scene *s = make_scene();
        pen_snapshot_writer *writer = make_writer(s, direct != 0);
        uint64_t bytes = 0;
        for (unsigned step = 1; step <= 3; step++) {
            char name[64];
            snprintf(name, sizeof name, "g1-s%u-w%d.safetensors", step, direct);
            CHECK_OK(take(writer, step, disk, folder, name));
            if (direct != 0) assert_int_equal(atomic_load(&s->done_count), step);
            for (uint32_t i = 0; i < ELEMENTS; i++) {
                s->values[1][i] += 1000;
            }
            await_done(s, step);
            assert_int_equal(s->step, step);
            assert_int_equal(s->code, PEN_CODE_OK);
            assert_string_equal(s->file, name);
            const pen_shard_summary summary = {.file = s->file,
                                               .holders = "",
                                               .bytes = s->bytes,
                                               .chunk_count = s->chunk_count,
                                               .checksums = s->checksums};
            CHECK_OK(pen_shard_verify(disk, folder, &summary));
            float found = 0;
            char path[256];
            snprintf(path, sizeof path, "%s/%s", folder, name);
            CHECK_OK(disk->kind->size(disk, path, &bytes));
            CHECK_OK(disk->kind->read(disk, path, bytes - sizeof(float) * (ELEMENTS + 1), &found,
                                      sizeof found));
            const float wanted = (ELEMENTS - 1) * 7 + 1 + 1000 * (float)(step - 1);
            CHECK(found == wanted, "found %g, expected %g", (double)found, (double)wanted);
        }
        assert_false(pen_snapshot_is_writing(writer));
        pen_snapshot_writer_destroy(writer);
        free(s);
    }
}

// What fails is told once: by take, or by done.
static void tells_failures_once(void **state) {
    (void)state;
    pen_disk *disk = pen_disk_of_machine();
    const char *folder = scratch_path("shards");
    CHECK_OK(disk->kind->make_folder(disk, folder));
    scene *s = make_scene();
    pen_snapshot_writer *writer = make_writer(s, false);
    s->failure = pen_error(PEN_UNAVAILABLE, "gone");
    CHECK_ERROR(take(writer, 1, disk, folder, "g1-s1-w5.safetensors"), PEN_UNAVAILABLE, "gone");
    assert_int_equal(atomic_load(&s->done_count), 0);
    CHECK_OK(take(writer, 2, disk, scratch_path("nowhere"), "g1-s2-w5.safetensors"));
    await_done(s, 1);
    assert_int_equal(s->code, PEN_NOT_FOUND);
    CHECK_OK(take(writer, 3, disk, folder, "g1-s3-w5.safetensors")); // and goes on
    pen_snapshot_writer_destroy(writer);                             // which waits
    assert_int_equal(atomic_load(&s->done_count), 2);
    assert_int_equal(s->code, PEN_CODE_OK);
    failing_disk failing;
    failing_disk_init(&failing, 3, FAILING_DISK_ONCE);
    writer = make_writer(s, true);
    CHECK_OK(take(writer, 4, &failing.disk, folder, "g1-s4-w5.safetensors"));
    assert_int_equal(atomic_load(&s->done_count), 3);
    assert_int_equal(s->code, PEN_NO_STORAGE);
    pen_snapshot_writer_destroy(writer);
    free(s);
}

static void says_what_it_takes(void **state) {
    (void)state;
    scene *s = make_scene();
    const uint64_t direct = pen_snapshot_bytes(s->tensors, TENSORS, true);
    assert_int_equal(pen_snapshot_bytes(s->tensors, TENSORS, false), direct + sizeof s->values);
    pen_snapshot_writer *writer = NULL;
    const pen_snapshot_options options = {
        .tensors = s->tensors, .count = TENSORS, .done = note_done};
    bool is_made = false;
    for (uint64_t at = 1; !is_made; at++) {
        pen_memory_fail_at(at, 0);
        const pen_status status = pen_snapshot_writer_create(&options, &writer);
        pen_memory_fail_at(0, 0);
        is_made = status == PEN_OK;
        if (!is_made) assert_int_equal(pen_status_get_code(status), PEN_OUT_OF_MEMORY);
        pen_status_ignore(status, "wanted");
    }
    pen_snapshot_writer_destroy(writer);
    free(s);
}

PEN_TEST_MAIN(cmocka_unit_test(writes_what_was_copied), cmocka_unit_test(tells_failures_once),
              cmocka_unit_test(says_what_it_takes))
