#include "scheduler/checkpoint/parameter_file.h"

#include "base/memory.h"
#include "scheduler/store/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

static const char *model_path, *data_path;

static int write_files(void **state) {
    (void)state;
    model_path = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    data_path = tiny_data_write("tiny", 13, 3);
    return 0;
}

static const pen_job *tiny_job(pen_arena *arena, const char *device) {
    return training_job(arena,
                        "version: 1\n"
                        "model: {file: %s}\n"
                        "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n"
                        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.3}}, "
                        "batch: 8, epochs: 4}\n"
                        "devices: [{name: a, kind: %s}]\n",
                        model_path, data_path, data_path, device);
}

// Saved on one device and loaded on the other, all bits are there; also those of the parameter
// that no loss depends on.
static void parameters_survive(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *path = scratch_path("trained.safetensors");
    pen_trainer *trainer = training_start(tiny_job(arena, "cpu"));
    const uint64_t fresh = training_hash(trainer);
    for (int step = 0; step < 4; step++) {
        training_step(trainer);
    }
    const uint32_t aux = training_find(pen_trainer_tensors(trainer), "aux.weight");
    const float ten[TINY_HIDDEN * 2] = {10};
    CHECK_OK(pen_tensor_store_write(pen_trainer_tensors(trainer), aux, ten, sizeof ten));
    CHECK_OK(pen_parameter_file_save(path, pen_trainer_tensors(trainer)));
    const uint64_t trained = training_hash(trainer);
    assert_true(trained != fresh);
    pen_trainer_destroy(trainer);

    const pen_trainer_options options = {.parameters = path};
    CHECK_OK(pen_trainer_create(tiny_job(arena, "reference"), &options, &trainer));
    assert_true(training_hash(trainer) == trained);
    float found[TINY_HIDDEN * 2];
    CHECK_OK(pen_tensor_store_read(pen_trainer_tensors(trainer), aux, found, sizeof found));
    assert_memory_equal(found, ten, sizeof ten);
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

typedef struct listed {
    uint32_t count;
    const char *names[16];
    const pen_tensor_type *types[16];
} listed;

static pen_status read_zeros(void *context, uint32_t index, uint64_t first, void *out_data,
                             uint64_t bytes) {
    const listed *list = context;
    assert_true(first + bytes <= pen_tensor_type_bytes(list->types[index]));
    memset(out_data, 0, bytes);
    return PEN_OK;
}

// Saves the tensors of the list and loads them.
static pen_status load_listed(const listed *list, const pen_tensor_store *store) {
    const char *path = scratch_path("listed.safetensors");
    listed copy = *list;
    const pen_safetensors_source source = {.count = list->count,
                                           .names = list->names,
                                           .types = list->types,
                                           .read = read_zeros,
                                           .context = &copy};
    CHECK_OK(pen_safetensors_save(path, &source));
    return pen_parameter_file_load(path, store);
}

static void mismatches_are_listed(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_trainer *trainer = training_start(tiny_job(arena, "cpu"));
    const pen_tensor_store *store = pen_trainer_tensors(trainer);
    const uint64_t fresh = training_hash(trainer);
    listed whole = {.count = pen_tensor_store_model_count(store)};
    assert_int_equal(whole.count, 6);
    for (uint32_t i = 0; i < whole.count; i++) {
        whole.names[i] = store->tensors[i].name;
        whole.types[i] = &store->tensors[i].type;
    }
    listed changed = whole;
    changed.count -= 2;
    pen_status status = load_listed(&changed, store);
    char text[2048];
    pen_status_format(status, text, sizeof text);
    for (uint32_t i = changed.count; i < whole.count; i++) {
        char lacks[64];
        snprintf(lacks, sizeof lacks, "lacks '%s'", whole.names[i]);
        CHECK(strstr(text, lacks) != NULL, "%s", text);
    }
    CHECK_ERROR(status, PEN_INVALID_INPUT, "while loading parameters");
    changed = whole;
    changed.names[changed.count] = "surplus";
    changed.types[changed.count++] = whole.types[0];
    CHECK_ERROR(load_listed(&changed, store), PEN_INVALID_INPUT, "1 tensors that the model");
    changed = whole;
    pen_tensor_type half = *whole.types[2];
    half.element = PEN_FLOAT16;
    changed.types[2] = &half;
    CHECK_ERROR(load_listed(&changed, store), PEN_INVALID_INPUT, "is float16");
    CHECK_ERROR(pen_parameter_file_load("nowhere", store), PEN_NOT_FOUND, "nowhere");
    assert_true(training_hash(trainer) == fresh); // nothing was loaded by halves
    CHECK_OK(load_listed(&whole, store));
    assert_true(training_hash(trainer) != fresh);
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

static void refused_memory_leaves_no_file(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_trainer *trainer = training_start(tiny_job(arena, "cpu"));
    const pen_tensor_store *store = pen_trainer_tensors(trainer);
    const char *path = scratch_path("refused.safetensors");
    for (uint64_t call = 1;; call++) {
        assert_true(call < 100);
        pen_memory_fail_at(call, 1);
        pen_status status = pen_parameter_file_save(path, store);
        pen_memory_fail_at(0, 0);
        if (status == PEN_OK) break;
        CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
        CHECK_ERROR(pen_parameter_file_load(path, store), PEN_NOT_FOUND, "refused");
    }
    for (uint64_t call = 1;; call++) {
        assert_true(call < 100);
        pen_memory_fail_at(call, 1);
        pen_status status = pen_parameter_file_load(path, store);
        pen_memory_fail_at(0, 0);
        if (status == PEN_OK) break;
        CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
    }
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_survive),
        cmocka_unit_test(mismatches_are_listed),
        cmocka_unit_test(refused_memory_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, write_files, NULL);
}
