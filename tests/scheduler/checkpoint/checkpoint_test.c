#include "scheduler/checkpoint/checkpoint.h"

#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "scheduler/store/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/failing_disk.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

#define TENSORS 6

// Tensors in memory.
typedef struct memory_store {
    pen_tensor_store store;
    pen_stored_tensor tensors[TENSORS];
    uint8_t *bytes[TENSORS];
    uint32_t writes;
} memory_store;

static pen_status memory_read(void *context, uint32_t index, uint64_t first, void *host,
                              uint64_t bytes) {
    const memory_store *memory = context;
    assert_true(first + bytes <= memory->tensors[index].bytes);
    memcpy(host, memory->bytes[index] + first, bytes);
    return PEN_OK;
}

static pen_status memory_write(void *context, uint32_t index, uint64_t first, const void *host,
                               uint64_t bytes) {
    memory_store *memory = context;
    assert_true(first + bytes <= memory->tensors[index].bytes && bytes <= PEN_TENSOR_PIECE_BYTES);
    assert_true(first % 8 == 0 &&
                (bytes % 8 == 0 || first + bytes == memory->tensors[index].bytes));
    memcpy(memory->bytes[index] + first, host, bytes);
    memory->writes++;
    return PEN_OK;
}

static void fill(memory_store *memory, uint64_t seed) {
    for (uint32_t i = 0; i < TENSORS; i++) {
        for (uint64_t b = 0; b < memory->tensors[i].bytes; b++) {
            memory->bytes[i][b] = (uint8_t)((b + seed * 977 + i) * 2654435761u >> 11);
        }
    }
}

static memory_store *make_store(pen_arena *arena, uint64_t seed) {
    static const char *const names[TENSORS] = {"a.weight",          "a.bias", "b.weight", "scale",
                                               "b.weight/velocity", "odd"};
    static const int64_t dims[TENSORS][2] = {{64, 9000}, {64, 1}, {33, 7}, {1, 1}, {33, 7}, {3, 5}};
    memory_store *memory;
    CHECK_OK(PEN_NEW(arena, 1, &memory));
    for (uint32_t i = 0; i < TENSORS; i++) {
        pen_stored_tensor *tensor = &memory->tensors[i];
        tensor->name = names[i];
        tensor->type =
            pen_tensor_type_make(i == 5 ? PEN_UINT8 : PEN_FLOAT32, i == 3 ? 0 : 2, dims[i]);
        tensor->bytes = pen_tensor_type_bytes(&tensor->type);
        tensor->is_model = i < 4;
        CHECK_OK(PEN_NEW(arena, tensor->bytes, &memory->bytes[i]));
    }
    memory->store = (pen_tensor_store){.count = TENSORS,
                                       .tensors = memory->tensors,
                                       .context = memory,
                                       .read = memory_read,
                                       .write = memory_write};
    fill(memory, seed);
    return memory;
}

static void check_equal(const memory_store *found, pen_arena *arena, uint64_t seed) {
    const memory_store *wanted = make_store(arena, seed);
    for (uint32_t i = 0; i < TENSORS; i++) {
        assert_memory_equal(found->bytes[i], wanted->bytes[i], wanted->tensors[i].bytes);
    }
}

static const pen_checkpoint_subject *make_subject(pen_arena *arena, const char *train) {
    pen_checkpoint_subject *subject;
    CHECK_OK(PEN_NEW(arena, 1, &subject));
    const char *model = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    const char *data = tiny_data_write("tiny", 13, 3);
    subject->job = training_job(arena,
                                "version: 1\n"
                                "model: {file: %s}\n"
                                "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: "
                                "%s_y.npy}}\n"
                                "train: {loss: softmax_cross_entropy, batch: 8, epochs: 4, "
                                "optimizer: {sgd: {lr: 0.1}}, %s}\n"
                                "devices: [{name: a}]\n",
                                model, data, data, train);
    subject->example_count = 13;
    return subject;
}

static pen_checkpoint_store *open_store(pen_disk *disk, const char *folder, pen_arena *arena) {
    pen_checkpoint_store *store;
    const pen_checkpoint_folders folders = {.folder = folder, .disk = disk};
    CHECK_OK(pen_checkpoint_store_open(&folders, make_subject(arena, "seed: 3"), arena, &store));
    return store;
}

static pen_checkpoint at_step(uint64_t step) {
    return (pen_checkpoint){.step = step,
                            .next = {.epoch = step / 2, .index = step % 2},
                            .rate_steps = 40,
                            .loss = 1.0 / (double)(step + 1),
                            .losses_hash = step * 77};
}

// Tensors cut at random among workers, some into ranges, and published.
static void save_spread(pen_checkpoint_store *store, memory_store *memory, uint64_t step, dice *d,
                        pen_arena *arena) {
    const uint32_t worker_count = (uint32_t)dice_between(d, 1, 4);
    pen_shard_summary summaries[4];
    pen_shard_tensor lists[4][TENSORS * 8];
    uint8_t *data[4];
    uint32_t counts[4] = {0};
    uint64_t bytes[4] = {0};
    for (uint32_t w = 0; w < 4; w++) {
        CHECK_OK(PEN_NEW(arena, 4 << 20, &data[w]));
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        const pen_stored_tensor *tensor = &memory->tensors[i];
        for (uint64_t first = 0; first < tensor->bytes;) {
            const uint32_t w = (uint32_t)dice_between(d, 0, worker_count - 1);
            uint64_t part = tensor->bytes - first;
            if (dice_between(d, 0, 1) == 0 && counts[w] < TENSORS * 8 - TENSORS) {
                part = 8 * (uint64_t)dice_between(d, 1, (int64_t)(part / 8 + 1));
            }
            if (part > tensor->bytes - first) part = tensor->bytes - first;
            if (counts[w] >= TENSORS * 7) part = tensor->bytes - first;
            lists[w][counts[w]++] = (pen_shard_tensor){
                .name = tensor->name, .type = tensor->type, .first = first, .bytes = part};
            memcpy(data[w] + bytes[w], memory->bytes[i] + first, part);
            bytes[w] += part;
            first += part;
        }
    }
    for (uint32_t w = 0; w < worker_count; w++) {
        const char *name;
        const pen_shard_source source = {.tensors = lists[w], .count = counts[w], .data = data[w]};
        CHECK_OK(pen_shard_name(pen_checkpoint_store_generation(store), step, w, arena, &name));
        CHECK_OK(pen_shard_write(pen_disk_of_machine(), &source,
                                 pen_checkpoint_store_shard_folder(store), name, arena,
                                 &summaries[w]));
    }
    const pen_checkpoint checkpoint = at_step(step);
    CHECK_OK(pen_checkpoint_store_publish(store, &checkpoint, summaries, worker_count));
}

static void loads_what_any_workers_wrote(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        pen_arena *arena = check_arena();
        dice thrown = {.seed = seed};
        char name[64];
        snprintf(name, sizeof name, "spread.%u", (unsigned)seed);
        const char *folder = scratch_path(name);
        pen_checkpoint_store *store = open_store(NULL, folder, arena);
        uint64_t generation = 0;
        CHECK_OK(pen_checkpoint_store_fence(store, 5, true, &generation));
        assert_int_equal(generation, 1);
        assert_string_equal(pen_checkpoint_store_job(store), "penstock-0000000000000005");
        memory_store *memory = make_store(arena, 0);
        for (uint64_t step = 1; step <= 4; step++) {
            fill(memory, step);
            save_spread(store, memory, step, &thrown, arena);
            CHECK_OK(pen_checkpoint_store_prune(store, 2));
        }
        store = open_store(NULL, folder, arena);
        assert_int_equal(pen_checkpoint_store_count(store), 2);
        pen_checkpoint checkpoint;
        CHECK_OK(pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint));
        check_equal(memory, arena, 4);
        const pen_checkpoint wanted = at_step(4);
        assert_int_equal(checkpoint.step, 4);
        assert_int_equal(checkpoint.next.epoch, wanted.next.epoch);
        assert_int_equal(checkpoint.next.index, wanted.next.index);
        assert_int_equal(checkpoint.rate_steps, 40);
        assert_true(checkpoint.loss == wanted.loss);
        assert_int_equal(checkpoint.losses_hash, wanted.losses_hash);
        assert_int_equal(checkpoint.generation, 1);
        CHECK_OK(pen_checkpoint_store_load(store, 1, &memory->store));
        check_equal(memory, arena, 3);
        CHECK_OK(pen_checkpoint_store_verify(store, 0));
        pen_arena_destroy(arena);
    }
}

// All tensors as one shard, and published.
static pen_status save_whole(pen_checkpoint_store *store, const pen_checkpoint *checkpoint,
                             memory_store *memory, pen_disk *disk, pen_arena *arena) {
    pen_shard_tensor list[TENSORS];
    pen_shard_summary summary;
    const char *name;
    for (uint32_t i = 0; i < TENSORS; i++) {
        list[i] = (pen_shard_tensor){.name = memory->tensors[i].name,
                                     .type = memory->tensors[i].type,
                                     .bytes = memory->tensors[i].bytes};
    }
    const pen_shard_source source = {
        .tensors = list, .count = TENSORS, .read = memory_read, .context = memory};
    PEN_TRY(
        pen_shard_name(pen_checkpoint_store_generation(store), checkpoint->step, 0, arena, &name));
    PEN_TRY(pen_shard_write(disk, &source, pen_checkpoint_store_shard_folder(store), name, arena,
                            &summary));
    return pen_checkpoint_store_publish(store, checkpoint, &summary, 1);
}

static void save_steps(const char *folder, uint64_t last, pen_arena *arena) {
    pen_checkpoint_store *store = open_store(NULL, folder, arena);
    uint64_t generation = 0;
    CHECK_OK(pen_checkpoint_store_fence(store, 5, true, &generation));
    memory_store *memory = make_store(arena, 0);
    for (uint64_t step = 1; step <= last; step++) {
        fill(memory, step);
        const pen_checkpoint checkpoint = at_step(step);
        CHECK_OK(save_whole(store, &checkpoint, memory, pen_disk_of_machine(), arena));
    }
}

static void damage(const char *folder, const char *file, long at) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, "r+");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, at, SEEK_SET), 0);
    const int byte = fgetc(stream);
    assert_int_equal(fseek(stream, at, SEEK_SET), 0);
    fputc(byte ^ 16, stream);
    fclose(stream);
}

static void falls_back_from_damage(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("damaged");
    save_steps(folder, 4, arena);
    pen_checkpoint_store *store = open_store(NULL, folder, arena);
    memory_store *memory = make_store(arena, 0);
    pen_checkpoint checkpoint;
    pen_log_set_level(PEN_LOG_ERROR);
    damage(folder, "shards/g1-s4-w0.safetensors", 1500000);
    CHECK_ERROR(pen_checkpoint_store_load(store, 0, &memory->store), PEN_CORRUPT,
                "g1-s4-w0.safetensors' is damaged in bytes 1048576 to 2097151");
    CHECK_ERROR(pen_checkpoint_store_verify(store, 0), PEN_CORRUPT, "bytes 1048576 to 2097151");
    assert_int_equal(pen_checkpoint_store_complete_count(store, 0), 1);
    CHECK_OK(pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint));
    assert_int_equal(checkpoint.step, 3);
    check_equal(memory, arena, 3);
    damage(folder, "shards/g1-s3-w0.safetensors", 100); // in the header
    CHECK_OK(pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint));
    check_equal(memory, arena, 2);
    damage(folder, "commit/commit.000000000003", 60);
    char path[512];
    snprintf(path, sizeof path, "%s/shards/g1-s1-w0.safetensors", folder);
    store = open_store(NULL, folder, arena);
    assert_int_equal(pen_checkpoint_store_damaged_count(store), 1);
    CHECK_OK(pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint));
    assert_int_equal(checkpoint.step, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pen_checkpoint_store_complete_count(store, 2), 0);
    CHECK_ERROR(pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint), PEN_CORRUPT,
                "g1-s1-w0.safetensors' is not there");
    // nothing is removed for a checkpoint that is not whole
    uint64_t generation = 0;
    CHECK_OK(pen_checkpoint_store_fence(store, 6, false, &generation));
    CHECK_OK(pen_checkpoint_store_prune(store, 2));
    assert_int_equal(pen_checkpoint_store_count(store), 3);
    pen_log_set_level(PEN_LOG_NOTE);
    pen_arena_destroy(arena);
}

static void compares_tensors(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("compared");
    save_steps(folder, 1, arena);
    pen_checkpoint_store *store = open_store(NULL, folder, arena);
    memory_store *memory = make_store(arena, 9);
    memory->tensors[1].name = "c.bias";
    memory->tensors[2].type = pen_tensor_type_make(PEN_FLOAT32, 2, (const int64_t[]){7, 33});
    for (uint32_t i = 0; i < 4; i++) {
        static const char *const said[] = {"has 'a.bias', which the model has not",
                                           "lacks 'c.bias'", "another optimizer, average or adapt",
                                           "'b.weight' as float32[33,7], expected float32[7,33]"};
        CHECK_ERROR(pen_checkpoint_store_load(store, 0, &memory->store), PEN_INVALID_INPUT,
                    said[i]);
    }
    assert_int_equal(memory->writes, 0);
    pen_arena_destroy(arena);
}

static void says_what_it_is_of(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("subjects");
    save_steps(folder, 1, arena);
    static const char *const trains[][2] = {
        {"seed: 4", "with seed 3, the job has 4"},
        {"seed: 3, microbatches: 2", "with microbatches 1, the job has 2"},
        {"seed: 3, shuffle: false", "with shuffle 1, the job has 0"},
        {"seed: 3, drop_last: true", "with drop_last 0, the job has 1"},
    };
    pen_checkpoint_store *store;
    pen_checkpoint checkpoint;
    for (size_t i = 0; i < sizeof trains / sizeof *trains; i++) {
        CHECK_OK(pen_checkpoint_store_open(&(pen_checkpoint_folders){.folder = folder},
                                           make_subject(arena, trains[i][0]), arena, &store));
        CHECK_ERROR(pen_checkpoint_store_newest(store, 0, &checkpoint), PEN_INVALID_INPUT,
                    trains[i][1]);
    }
    const char *nowhere = scratch_path("nowhere");
    CHECK_OK(pen_checkpoint_store_open(&(pen_checkpoint_folders){.folder = nowhere}, NULL, arena,
                                       &store));
    CHECK_ERROR(pen_checkpoint_store_newest(store, 0, &checkpoint), PEN_NOT_FOUND,
                "no such folder");
    assert_int_equal(access(nowhere, F_OK), -1);
    scratch_file("other/notes.txt", "x", 1);
    CHECK_OK(pen_checkpoint_store_open(&(pen_checkpoint_folders){.folder = scratch_path("other")},
                                       NULL, arena, &store));
    CHECK_ERROR(pen_checkpoint_store_newest(store, 0, &checkpoint), PEN_NOT_FOUND,
                "no checkpoint in");
    CHECK_ERROR(pen_checkpoint_store_newest(store, 0, &checkpoint), PEN_NOT_FOUND, "notes.txt");
    pen_arena_destroy(arena);
}

static void exports(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("exported"), *path = scratch_path("exported.safetensors");
    save_steps(folder, 1, arena);
    pen_checkpoint_store *store = open_store(NULL, folder, arena);
    memory_store *memory = make_store(arena, 2);
    dice thrown = {.seed = 4};
    uint64_t generation = 0;
    CHECK_OK(pen_checkpoint_store_fence(store, 6, false, &generation));
    save_spread(store, memory, 2, &thrown, arena);
    for (int all = 0; all < 2; all++) {
        const pen_checkpoint_export kind = {.what = all ? PEN_CHECKPOINT_EXPORT_ALL
                                                        : PEN_CHECKPOINT_EXPORT_MODEL,
                                            .averages = true};
        CHECK_OK(pen_checkpoint_store_export(store, 0, kind, path));
        pen_safetensors *file;
        CHECK_OK(pen_safetensors_open(path, &file));
        assert_int_equal(pen_safetensors_count(file), TENSORS - 1 + all);
        for (uint32_t i = 0; i < TENSORS; i++) {
            const pen_safetensors_entry *entry =
                pen_safetensors_find(file, memory->tensors[i].name);
            if (i == 4 && all == 0) {
                assert_null(entry);
                continue;
            }
            assert_non_null(entry);
            assert_true(pen_tensor_type_equal(&entry->type, &memory->tensors[i].type));
            assert_memory_equal(entry->data, memory->bytes[i], memory->tensors[i].bytes);
        }
        pen_safetensors_close(file);
    }
    pen_arena_destroy(arena);
}

// A training of four saves on a disk that fails at call `at`; what can be read afterwards is what
// was said to be saved, or something later.
static bool train_on_failing(const char *folder, uint64_t at, failing_disk_mode mode) {
    pen_arena *arena = check_arena();
    failing_disk failing;
    uint64_t saved = 0, generation = 0;
    save_steps(folder, 1, arena);
    failing_disk_init(&failing, at, mode);
    memory_store *memory = make_store(arena, 0);
    pen_checkpoint_store *store = NULL;
    pen_checkpoint checkpoint;
    const pen_checkpoint_folders folders = {.folder = folder, .disk = &failing.disk};
    pen_status status =
        pen_checkpoint_store_open(&folders, make_subject(arena, "seed: 3"), arena, &store);
    if (status == PEN_OK) status = pen_checkpoint_store_fence(store, 6, false, &generation);
    if (status == PEN_OK) {
        status = pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint);
        if (status == PEN_OK) check_equal(memory, arena, checkpoint.step);
    }
    for (uint64_t step = 2; step <= 4 && status == PEN_OK; step++) {
        fill(memory, step);
        checkpoint = at_step(step);
        const pen_status save = save_whole(store, &checkpoint, memory, &failing.disk, arena);
        if (save == PEN_OK) saved = step;
        pen_status_ignore(save, "a save that fails does not end the training");
        pen_status_ignore(pen_checkpoint_store_prune(store, 2), "nor does this");
    }
    const bool has_failed = failing_disk_has_failed(&failing);
    assert_true(status == PEN_OK || has_failed);
    pen_status_ignore(status, "wanted");
    store = open_store(NULL, folder, arena);
    CHECK_OK(pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint));
    CHECK(checkpoint.step >= saved && checkpoint.step >= 1, "call %u: step %u, %u was saved",
          (unsigned)at, (unsigned)checkpoint.step, (unsigned)saved);
    check_equal(memory, arena, checkpoint.step);
    if (!has_failed) assert_int_equal(checkpoint.step, 4);
    CHECK_OK(pen_checkpoint_store_fence(store, 7, false, &generation));
    checkpoint = at_step(5);
    fill(memory, 5);
    CHECK_OK(save_whole(store, &checkpoint, memory, pen_disk_of_machine(), arena));
    CHECK_OK(pen_checkpoint_store_prune(store, 2));
    pen_arena_destroy(arena);
    return has_failed;
}

static void survives_each_call(void **state) {
    (void)state;
    const char *root = scratch_path("calls");
    const uint64_t stride = getenv("PEN_LONG") != NULL ? 1 : 11;
    pen_log_set_level(PEN_LOG_ERROR);
    uint32_t points = 0;
    for (int mode = 0; mode < FAILING_DISK_MODES; mode++) {
        bool has_failed = true;
        for (uint64_t at = 1 + (uint64_t)mode % stride; has_failed; at += stride) {
            char folder[256];
            snprintf(folder, sizeof folder, "%s/%d.%u", root, mode, (unsigned)at);
            has_failed = train_on_failing(folder, at, (failing_disk_mode)mode);
            points++;
        }
    }
    printf("%u points\n", points);
    pen_log_set_level(PEN_LOG_NOTE);
}

static void survives_each_allocation(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *folder = scratch_path("allocations");
    save_steps(folder, 2, arena);
    const pen_checkpoint_subject *subject = make_subject(arena, "seed: 3");
    memory_store *memory = make_store(arena, 0);
    bool is_done = false;
    pen_log_set_level(PEN_LOG_ERROR);
    for (uint64_t at = 1; !is_done; at++) {
        pen_arena *own = NULL;
        pen_checkpoint_store *store;
        pen_checkpoint checkpoint;
        uint64_t generation = 0;
        pen_memory_fail_at(at, 0);
        pen_status status = pen_arena_create(&own);
        if (status == PEN_OK)
            status = pen_checkpoint_store_open(&(pen_checkpoint_folders){.folder = folder}, subject,
                                               own, &store);
        if (status == PEN_OK) status = pen_checkpoint_store_fence(store, 8, false, &generation);
        if (status == PEN_OK) {
            status = pen_checkpoint_store_load_newest(store, &memory->store, &checkpoint);
        }
        if (status == PEN_OK) {
            status = save_whole(store, &checkpoint, memory, pen_disk_of_machine(), own);
        }
        if (status == PEN_OK) status = pen_checkpoint_store_prune(store, 2);
        pen_memory_fail_at(0, 0);
        is_done = status == PEN_OK;
        if (!is_done) assert_int_equal(pen_status_get_code(status), PEN_OUT_OF_MEMORY);
        pen_status_ignore(status, "wanted");
        pen_arena_destroy(own);
    }
    pen_log_set_level(PEN_LOG_NOTE);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(loads_what_any_workers_wrote),
              cmocka_unit_test(falls_back_from_damage), cmocka_unit_test(compares_tensors),
              cmocka_unit_test(says_what_it_is_of), cmocka_unit_test(exports),
              cmocka_unit_test(survives_each_call), cmocka_unit_test(survives_each_allocation))
