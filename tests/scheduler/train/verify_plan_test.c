#include "scheduler/train/verify_plan.h"

#include <math.h>
#include <unistd.h>

#include "scheduler/checkpoint/parameter_file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

// A store in memory.
typedef struct kept {
    pen_stored_tensor tensors[4];
    unsigned char bytes[4][64];
} kept;

static pen_status kept_read(void *context, uint32_t index, uint64_t first, void *host,
                            uint64_t bytes) {
    kept *store = context;
    memcpy(host, store->bytes[index] + first, bytes);
    return PEN_OK;
}

static pen_tensor_store kept_make(kept *store) {
    static const pen_tensor_type types[] = {{PEN_FLOAT32, {1, {3}}},
                                            {PEN_FLOAT64, {2, {1, 2}}},
                                            {PEN_INT64, {1, {2}}},
                                            {PEN_FLOAT32, {1, {2}}}};
    static const char *const names[] = {"single", "twice", "whole", "state"};
    const float single[] = {1, -8, 0.5f};
    const double twice[] = {2, 4};
    const int64_t whole[] = {3, 4};
    const float state[] = {0, 0};
    for (uint32_t i = 0; i < 4; i++) {
        store->tensors[i] = (pen_stored_tensor){.name = names[i],
                                                .type = types[i],
                                                .bytes = pen_tensor_type_bytes(&types[i]),
                                                .is_model = i < 3};
    }
    memcpy(store->bytes[0], single, sizeof single);
    memcpy(store->bytes[1], twice, sizeof twice);
    memcpy(store->bytes[2], whole, sizeof whole);
    memcpy(store->bytes[3], state, sizeof state);
    return (pen_tensor_store){
        .count = 4, .tensors = store->tensors, .context = store, .read = kept_read};
}

static void differences_are_measured(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const char *path = scratch_path("kept.safetensors");
    kept reference, other;
    const pen_tensor_store store = kept_make(&reference);
    const pen_tensor_store changed = kept_make(&other);
    const pen_verify_tensor *tensors;
    CHECK_OK(pen_tensor_file_save(path, &changed, 4));
    CHECK_OK(pen_verify_tensors(path, &store, arena, &tensors));
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(tensors[i].is_equal && tensors[i].is_model == (i < 3));
        assert_true(tensors[i].absolute_error == 0 && tensors[i].relative_error == 0);
    }
    const float single = 0.75f, minus = -0.0f;
    const double infinite = INFINITY;
    other.bytes[2][0] ^= 1;
    memcpy(other.bytes[0] + 8, &single, sizeof single);
    memcpy(other.bytes[1], &infinite, sizeof infinite);
    memcpy(other.bytes[3], &minus, sizeof minus);
    CHECK_OK(pen_tensor_file_save(path, &changed, 4));
    CHECK_OK(pen_verify_tensors(path, &store, arena, &tensors));
    for (uint32_t i = 0; i < 4; i++) {
        assert_false(tensors[i].is_equal);
    }
    assert_true(tensors[0].absolute_error == 0.25 && tensors[0].relative_error == 0.25 / 8);
    assert_true(isinf(tensors[1].absolute_error) && isinf(tensors[1].relative_error));
    assert_true(isinf(tensors[2].absolute_error));
    assert_true(tensors[3].absolute_error == 0 && tensors[3].relative_error == 0);
    CHECK_OK(pen_tensor_file_save(path, &changed, 3));
    CHECK_ERROR(pen_verify_tensors(path, &store, arena, &tensors), PEN_INTERNAL, "have 3 tensors");
    pen_arena_destroy(arena);
}

// One device has its own numbers, and leaves no file.
static void one_device_agrees_with_itself(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const char *model = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    const char *data = tiny_data_write("tiny", 13, 3);
    const pen_job *job =
        training_job(arena,
                     "version: 1\n"
                     "model: {file: %s}\n"
                     "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n"
                     "train: {loss: softmax_cross_entropy, optimizer: adamw, batch: 8, epochs: 1,"
                     " microbatches: 4}\n",
                     model, data, data);
    const pen_verify_options options = {.step_count = 5,
                                        .tensors = scratch_path("tensors.safetensors")};
    const pen_verification *verification;
    CHECK_OK(pen_verify(job, &options, arena, &verification));
    assert_true(verification->is_equal && verification->is_within);
    assert_int_equal(verification->step_count, 5);
    assert_true(verification->steps[4].is_equal && verification->steps[4].loss > 0);
    assert_true(verification->tensor_count > 6 && verification->tensors[0].is_model);
    assert_false(verification->tensors[verification->tensor_count - 1].is_model);
    assert_int_not_equal(access(options.tensors, F_OK), 0);
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_measured),
        cmocka_unit_test(one_device_agrees_with_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
