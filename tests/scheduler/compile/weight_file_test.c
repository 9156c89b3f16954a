// Contents from files of weights: by name, renamed, converted, and everything that does not fit.

#include <unistd.h>

#include "graph/graph.h"
#include "scheduler/compile/weight_file.h"
#include "scheduler/store/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

// A model of the parameters "fc.weight" [2,3] and "fc.bias" [2], whose contents are zeros.
static pen_model *make_model(pen_arena *arena) {
    static const float zeros[6];
    pen_model *model;
    pen_value_id id;
    CHECK_OK(PEN_NEW(arena, 1, &model));
    model->arena = arena;
    CHECK_OK(pen_graph_create(arena, "test", &model->graph));
    pen_value spec = {.name = "fc.weight",
                      .kind = PEN_VALUE_PARAMETER,
                      .type = pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){2, 3}),
                      .trainable = true,
                      .data = zeros,
                      .data_bytes = 24};
    CHECK_OK(pen_graph_add_value(model->graph, &spec, &id));
    spec.name = "fc.bias";
    spec.type = pen_tensor_type_make(PEN_FLOAT32, 1, (int64_t[]){2});
    spec.data_bytes = 8;
    CHECK_OK(pen_graph_add_value(model->graph, &spec, &id));
    return model;
}

static float number_of(const pen_model *model, const char *name, size_t index) {
    pen_value_id id;
    float number;
    CHECK_OK(pen_graph_find_value(model->graph, name, &id));
    pen_value_copy_contents(pen_graph_value(model->graph, id), 4 * index, &number, 4);
    return number;
}

typedef struct test_tensor {
    const char *name;
    pen_tensor_type type;
    const void *data;
} test_tensor;

static pen_status read_tensor(void *context, uint32_t index, uint64_t first, void *out_data,
                              uint64_t bytes) {
    const test_tensor *tensors = context;
    memcpy(out_data, (const char *)tensors[index].data + first, bytes);
    return PEN_OK;
}

static const char *write_safetensors(const char *name, test_tensor *tensors, uint32_t count) {
    const char *names[4];
    const pen_tensor_type *types[4];
    const char *path = scratch_path(name);
    for (uint32_t i = 0; i < count; i++) {
        names[i] = tensors[i].name;
        types[i] = &tensors[i].type;
    }
    const pen_safetensors_source source = {
        .count = count, .names = names, .types = types, .read = read_tensor, .context = tensors};
    CHECK_OK(pen_safetensors_save(path, &source));
    return path;
}

static const float weights[6] = {1, 2, 3, 4, 5, 6};
static const double biases[2] = {0.5, -0.25};

static void renamed_and_converted_contents_are_taken(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_model *model = make_model(arena);
    pen_weight_file *file;
    test_tensor tensors[] = {
        {"model.head.weight", pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){2, 3}), weights},
        {"model.head.bias", pen_tensor_type_make(PEN_FLOAT64, 1, (int64_t[]){2}), biases}};
    const pen_weight_rename renames[] = {{"model.", "wrong."}, {"model.head.", "fc."}};
    const pen_weight_options options = {.path =
                                            write_safetensors("renamed.safetensors", tensors, 2),
                                        .renames = renames,
                                        .rename_count = 2};
    CHECK_OK(pen_weight_file_apply(&options, model, &file));
    CHECK(number_of(model, "fc.weight", 5) == 6, "weight");
    CHECK(number_of(model, "fc.bias", 1) == -0.25f, "bias");
    assert_int_equal(pen_weight_file_halves_count(file), 0);
    pen_weight_file_close(file);
    assert_int_equal(unlink(options.path), 0);
    pen_arena_destroy(arena);
}

// 1.5 and -2 of 16 bits.
static void halves_are_widened_and_counted(void **state) {
    static const uint16_t halves[] = {0x3e00, 0xc000}, brains[] = {0x3fc0, 0xc000};
    static const struct {
        pen_element_type element;
        const uint16_t *data;
    } kinds[] = {{PEN_FLOAT16, halves}, {PEN_BFLOAT16, brains}};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pen_arena *arena = check_arena();
        pen_model *model = make_model(arena);
        pen_weight_file *file;
        test_tensor tensors[] = {
            {"fc.weight", pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){2, 3}), weights},
            {"fc.bias", pen_tensor_type_make(kinds[i].element, 1, (int64_t[]){2}), kinds[i].data}};
        const pen_weight_options options = {
            .path = write_safetensors("halves.safetensors", tensors, 2)};
        CHECK_OK(pen_weight_file_apply(&options, model, &file));
        CHECK(number_of(model, "fc.bias", 0) == 1.5f, "first bias");
        CHECK(number_of(model, "fc.bias", 1) == -2, "second bias");
        assert_int_equal(pen_weight_file_halves_count(file), 1);
        pen_weight_file_close(file);
        assert_int_equal(unlink(options.path), 0);
        pen_arena_destroy(arena);
    }
}

static void all_that_does_not_fit_is_listed(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_model *model = make_model(arena);
    pen_weight_file *file = NULL;
    test_tensor tensors[] = {
        {"fc.weight", pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){3, 2}), weights},
        {"other", pen_tensor_type_make(PEN_FLOAT32, 1, (int64_t[]){2}), weights}};
    pen_weight_options options = {.path = write_safetensors("other.safetensors", tensors, 2)};
    CHECK_ERROR(pen_weight_file_apply(&options, model, &file), PEN_INVALID_INPUT,
                "'fc.weight' is float32[3,2], the model's 'fc.weight' is float32[2,3]; it lacks "
                "'fc.bias'; the model has no 'other'");
    options.is_partial = true;
    CHECK_ERROR(pen_weight_file_apply(&options, model, &file), PEN_INVALID_INPUT,
                "'fc.weight' is float32[3,2], the model's 'fc.weight' is float32[2,3]");
    assert_int_equal(unlink(options.path), 0);
    tensors[0].name = "another";
    options.path = write_safetensors("another.safetensors", tensors, 2);
    CHECK_ERROR(pen_weight_file_apply(&options, model, &file), PEN_INVALID_INPUT,
                "no name in it is one of the model's; the first is 'another'");
    assert_int_equal(unlink(options.path), 0);
    options.path = "weights.bin";
    CHECK_ERROR(pen_weight_file_apply(&options, model, &file), PEN_UNSUPPORTED,
                ".safetensors and .npz are possible");
    pen_arena_destroy(arena);
}

static void a_part_of_the_model_may_be_set(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_model *model = make_model(arena);
    pen_weight_file *file;
    test_tensor tensors[] = {
        {"fc.bias", pen_tensor_type_make(PEN_FLOAT32, 1, (int64_t[]){2}), weights},
        {"other", pen_tensor_type_make(PEN_INT64, 0, NULL), weights}};
    const pen_weight_options options = {.path = write_safetensors("part.safetensors", tensors, 2),
                                        .is_partial = true};
    CHECK_OK(pen_weight_file_apply(&options, model, &file));
    CHECK(number_of(model, "fc.bias", 1) == 2, "bias");
    CHECK(number_of(model, "fc.weight", 5) == 0, "weight");
    pen_weight_file_close(file);
    assert_int_equal(unlink(options.path), 0);
    pen_arena_destroy(arena);
}

// NumPy's own archive: tests/fuzz/corpus/npz/stored.npz has "a", the numbers from 0 to 5.
static void arrays_of_numpy_are_taken(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_model *model = make_model(arena);
    pen_weight_file *file;
    const pen_weight_rename rename = {"a", "fc.weight"};
    const pen_weight_options options = {.path = "tests/fuzz/corpus/npz/stored.npz",
                                        .renames = &rename,
                                        .rename_count = 1,
                                        .is_partial = true};
    CHECK_OK(pen_weight_file_apply(&options, model, &file));
    CHECK(number_of(model, "fc.weight", 5) == 5, "weight");
    pen_weight_file_close(file);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(renamed_and_converted_contents_are_taken),
              cmocka_unit_test(halves_are_widened_and_counted),
              cmocka_unit_test(all_that_does_not_fit_is_listed),
              cmocka_unit_test(a_part_of_the_model_may_be_set),
              cmocka_unit_test(arrays_of_numpy_are_taken))
