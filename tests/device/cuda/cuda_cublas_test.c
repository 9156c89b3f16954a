// Products that go to cuBLAS, a fake one (tests/cuda/fake_cublas.h), on an emulated GPU: they have
// the reference's numbers, as those of own kernels have, and mistakes in how the library is called
// are found.
#include "device/cuda/cublas.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_inside.h"
#include "tests/cuda/fake_cublas.h"
#include "tests/support/check.h"
#include "tests/support/cuda_check.h"
#include "tests/support/cuda_rounding.h"
#include "tests/support/device_check.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/product_case.h"
#include "tests/support/recurrent_case.h"

static void *cublas_find(const char *name) {
    void *library = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
    void *found = library == NULL ? NULL : dlsym(library, name);
    CHECK(found != NULL, "libcublas.so.12 is not the fake one");
    return found;
}

static fake_cublas_counts cublas_count(void) {
    fake_cublas_counts counts = {0};
    fake_cublas_counts_fn count;
    void *found = cublas_find("fake_cublas_count");
    memcpy(&count, &found, sizeof count);
    count(&counts);
    return counts;
}

static void cublas_plant(fake_cublas_mistake mistake) {
    fake_cublas_plant_fn plant;
    void *found = cublas_find("fake_cublas_plant");
    memcpy(&plant, &found, sizeof plant);
    plant(mistake);
}

static int use_it(void **state) {
    (void)state;
    return setenv("PEN_TEST_LIBRARIES", "auto", 1);
}

static pen_device *open_with(pen_libraries libraries, const char *settings) {
    const pen_device_kind *kind;
    pen_device *device;
    setenv("FAKE_CUDA", settings, 1);
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "g", .libraries = libraries}, &device));
    return device;
}

// ---- numbers

// All transposed forms, batches, third operands, and nodes that add.
static void products(void **state) {
    (void)state;
    const fake_cublas_counts before = cublas_count();
    for (uint64_t seed = 0; seed < PRODUCT_CASES; seed++) {
        const uint64_t calls = cublas_count().calls;
        const op_case c = product_case(seed);
        cuda_check(&c, seed, 1e-5);
        CHECK(cublas_count().calls > calls, "case %llu is of an own kernel",
              (unsigned long long)seed);
    }
    const fake_cublas_counts after = cublas_count();
    CHECK(after.runs - before.runs == after.calls - before.calls, "some were lost");
    CHECK(after.batched > before.batched, "none was a batch");
    CHECK(fake_cuda_count().blocks == 0, "%llu things are left",
          (unsigned long long)fake_cuda_count().blocks);
}

// Layers whose products are some of several launches.
static void recurrent_layers(void **state) {
    (void)state;
    const uint64_t before = cublas_count().calls;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const op_case forward = recurrent_case_forward(seed, RECURRENT_CASE_PLAIN);
        cuda_check(&forward, seed, 2e-5);
        const op_case backward = recurrent_case_backward(seed, RECURRENT_CASE_PLAIN);
        cuda_check(&backward, seed, 5e-5);
    }
    CHECK(cublas_count().calls > before, "none was asked for");
}

// Each precision has its type of compute.
static void precisions(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 9; seed++) {
        const op_case c = product_case_long_matmul(seed), g = product_case_long_gemm(seed);
        const uint64_t calls = cublas_count().calls;
        cuda_check_rounding(&c, 2, seed);
        cuda_check_rounding(&g, 2, seed);
        CHECK(cublas_count().calls == calls + 6, "other products than six");
    }
}

// What it cannot express, or would do otherwise.
static void some_products_are_of_own_kernels(void **state) {
    (void)state;
    const pen_cublas cublas = {.handle = (pen_cublas_handle *)&(char){0}};
    const struct cuda_product_args usual = {.m = 5, .n = 6, .k = 7, .alpha = 1};
    struct cuda_product_args other = usual;
    CHECK(pen_cublas_takes(&cublas, &usual), "a usual product");
    CHECK(!pen_cublas_takes(&(pen_cublas){0}, &usual), "there is no library");
    other.k = 0;
    CHECK(!pen_cublas_takes(&cublas, &other), "without terms");
    other = usual;
    other.alpha = 0;
    CHECK(!pen_cublas_takes(&cublas, &other), "it would not read what is no number");
    other = usual;
    other.m = (uint32_t)INT32_MAX + 1u;
    CHECK(!pen_cublas_takes(&cublas, &other), "more rows than it can count");
    const uint64_t before = cublas_count().calls;
    op_case empty = {.op = "matmul", .input_count = 2};
    empty.inputs[0].type = op_type(PEN_FLOAT32, 2, 5, 0);
    empty.inputs[1].type = op_type(PEN_FLOAT32, 2, 0, 6);
    cuda_check(&empty, 1, 0);
    CHECK(cublas_count().calls == before, "a sum of nothing was asked for");
}

// ---- mistakes that are planted in the library, as if it was called so

// The largest distance of the case's result from the reference's.
static double distance(const op_case *c, pen_precision precision, fake_cublas_mistake mistake) {
    op_built built;
    run_graph expected, found;
    double most = 0;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&expected, built.graph, built.arena));
    CHECK_OK(run_graph_init(&found, built.graph, built.arena));
    op_fill(c, &built, 1, &expected);
    op_fill(c, &built, 1, &found);
    CHECK_OK(run_graph_all(&expected));
    cublas_plant(mistake);
    cuda_run(&built, precision, 0, &found);
    cublas_plant(FAKE_CUBLAS_RIGHT);
    const pen_tensor *y = &found.tensors[built.outputs[0].index];
    const float *a = y->data, *b = expected.tensors[built.outputs[0].index].data;
    for (int64_t i = 0; i < pen_tensor_count(y); i++)
        most = fmax(most, isfinite(a[i]) ? fabs((double)a[i] - (double)b[i]) : INFINITY);
    op_built_free(&built);
    return most;
}

static void mistakes_are_found(void **state) {
    (void)state;
    op_case square = {.op = "gemm", .input_count = 2, .attribute_count = 1};
    square.attributes[0] = pen_attribute_int("transA", 1);
    square.inputs[0].type = square.inputs[1].type = op_type(PEN_FLOAT32, 2, 20, 20);
    op_case oblong = {.op = "matmul", .input_count = 2};
    oblong.inputs[0].type = op_type(PEN_FLOAT32, 2, 8, 30);
    oblong.inputs[1].type = op_type(PEN_FLOAT32, 2, 30, 8);
    const op_case batch = product_case_long_matmul(0);
    const struct {
        const op_case *c;
        fake_cublas_mistake mistake;
    } planted[] = {{&square, FAKE_CUBLAS_SWAPPED_TRANSPOSES},
                   {&oblong, FAKE_CUBLAS_WRONG_LEADING},
                   {&batch, FAKE_CUBLAS_WRONG_STRIDES}};
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        const double right = distance(planted[i].c, PEN_PRECISION_FLOAT32, FAKE_CUBLAS_RIGHT);
        const double wrong = distance(planted[i].c, PEN_PRECISION_FLOAT32, planted[i].mistake);
        CHECK(right < 1e-4 && wrong > 1e-2, "mistake %d: %g, and without it %g",
              (int)planted[i].mistake, wrong, right);
    }
    const double rounded = distance(&batch, PEN_PRECISION_BFLOAT16, FAKE_CUBLAS_RIGHT);
    const double exact = distance(&batch, PEN_PRECISION_BFLOAT16, FAKE_CUBLAS_NOT_ROUNDED);
    CHECK(rounded > 1e-3 && exact < 1e-4, "bfloat16 is off by %g, unrounded by %g", rounded, exact);
}

#define SMALL 4u // numbers of each operand, of 2 x 2

// y, which holds `first`, 1, 1, 1, plus the product of two matrices of ones; what it is then.
static float add_product(pen_device *device, float first) {
    static const float ones[SMALL] = {1, 1, 1, 1};
    float y[SMALL] = {first, 1, 1, 1};
    pen_operand at = {NULL, 0};
    CHECK_OK(device->kind->buffer_create(device, 3 * sizeof y + 256, &at.buffer));
    const pen_operand places[] = {at, {at.buffer, 64}, {at.buffer, 128}};
    CHECK_OK(device->kind->write(device, places[0], ones, sizeof ones));
    CHECK_OK(device->kind->write(device, places[1], ones, sizeof ones));
    CHECK_OK(device->kind->write(device, places[2], y, sizeof y));
    const struct cuda_product_args args = {.adds = 1,
                                           .alpha = 1,
                                           .m = 2,
                                           .n = 2,
                                           .k = 2,
                                           .a = pen_cuda_address_of(places[0]),
                                           .b = pen_cuda_address_of(places[1]),
                                           .y = pen_cuda_address_of(places[2])};
    CHECK_OK(pen_cublas_multiply(&cuda_device_of(device)->libraries.cublas, &args, 1));
    CHECK_OK(device->kind->read(device, places[2], y, sizeof y));
    device->kind->buffer_destroy(device, at.buffer);
    return y[0];
}

static void what_y_holds_is_kept(void **state) {
    (void)state;
    pen_device *device = open_with(PEN_LIBRARIES_AUTO, "late=100");
    CHECK(add_product(device, 40) == 42, "40 + 2 is another number");
    cublas_plant(FAKE_CUBLAS_LOST_SUMS);
    CHECK(add_product(device, 40) == 2, "a lost sum does not show");
    cublas_plant(FAKE_CUBLAS_RIGHT);
    device->kind->close(device);
}

// The fake library looks at what the real one only computes with.
static void wrong_operands_are_refused(void **state) {
    (void)state;
    pen_device *device = open_with(PEN_LIBRARIES_AUTO, "");
    const pen_cublas *cublas = &cuda_device_of(device)->libraries.cublas;
    pen_operand at = {NULL, 0};
    CHECK_OK(device->kind->buffer_create(device, 4096, &at.buffer));
    const pen_cuda_address place = pen_cuda_address_of(at);
    const struct cuda_product_args right = {
        .alpha = 1, .m = 16, .n = 16, .k = 16, .a = place, .b = place + 1024, .y = place + 2048};
    struct cuda_product_args wrong = right;
    CHECK_OK(pen_cublas_multiply(cublas, &right, 1));
    wrong.a += 4096; // of another allocation, or none
    CHECK_ERROR(pen_cublas_multiply(cublas, &wrong, 1), PEN_INTERNAL,
                "device 'g': while a product was enqueued: cuBLAS of GPU 0 says "
                "CUBLAS_STATUS_INVALID_VALUE");
    wrong = right;
    CHECK_ERROR(pen_cublas_multiply(cublas, &wrong, 4), PEN_INTERNAL, "INVALID_VALUE");
    pen_cublas other = *cublas; // a stream that is set takes the workspace away
    CHECK(cublas->functions->set_stream(other.handle, other.memory->stream) == 0, "the stream");
    CHECK_ERROR(pen_cublas_multiply(&other, &right, 1), PEN_INTERNAL, "NOT_INITIALIZED");
    CHECK_OK(device->kind->synchronize(device));
    device->kind->buffer_destroy(device, at.buffer);
    device->kind->close(device);
}

// ---- the library and its memory

static void memory_is_counted(void **state) {
    (void)state;
    pen_device *without = open_with(PEN_LIBRARIES_NONE, "");
    const uint64_t bytes = fake_cuda_count().bytes, own = pen_device_own_bytes(without);
    CHECK(bytes == own, "%llu bytes, %llu counted", (unsigned long long)bytes,
          (unsigned long long)own);
    without->kind->close(without);
    pen_device *with = open_with(PEN_LIBRARIES_AUTO, "");
    const uint64_t more = fake_cuda_count().bytes;
    CHECK(more == bytes + PEN_CUBLAS_WORKSPACE_BYTES && more == pen_device_own_bytes(with),
          "%llu bytes", (unsigned long long)more);
    const pen_device_kind *kind = with->kind;
    kind->close(with);
    const pen_device_options small = {
        .name = "g", .libraries = PEN_LIBRARIES_AUTO, .memory_bytes = 30u << 20};
    CHECK_ERROR(kind->open(&small, &with), PEN_DOES_NOT_FIT, "device 'g'");
    pen_device *planned;
    const pen_device_options sizes = {
        .name = "g", .libraries = PEN_LIBRARIES_AUTO, .only_sizes = true};
    CHECK_OK(kind->open(&sizes, &planned));
    CHECK(pen_device_own_bytes(planned) == more, "another number is planned");
    kind->close(planned);
    CHECK(fake_cuda_count().blocks == 0, "%llu things are left",
          (unsigned long long)fake_cuda_count().blocks);
}

// A class of its own, by the version.
static void it_is_part_of_the_class(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *texts[2];
    for (int i = 0; i < 2; i++) {
        pen_device *device = open_with(i == 0 ? PEN_LIBRARIES_NONE : PEN_LIBRARIES_AUTO, "");
        CHECK_OK(device->kind->identify(device, arena, &texts[i]));
        device->kind->close(device);
    }
    const size_t length = strlen(texts[0]);
    CHECK(strncmp(texts[0], texts[1], length) == 0 &&
              strcmp(texts[1] + length, ", cuBLAS 12.4.5, cuDNN 9.5.1") == 0,
          "'%s' and '%s'", texts[0], texts[1]);
    pen_arena_destroy(arena);
}

// The class is that of own kernels then, and memory is taken as it was planned.
static void one_that_does_not_begin_is_not_used(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *texts[2];
    pen_device *device = open_with(PEN_LIBRARIES_NONE, "");
    CHECK(pen_device_lacks(device) == NULL, "it lacks what it may not use");
    CHECK_OK(device->kind->identify(device, arena, &texts[0]));
    device->kind->close(device);
    device = open_with(PEN_LIBRARIES_AUTO, "blas_begins=3 dnn_begins=1001");
    CHECK_OK(device->kind->identify(device, arena, &texts[1]));
    CHECK(strcmp(texts[0], texts[1]) == 0, "'%s' and '%s'", texts[0], texts[1]);
    CHECK(strcmp(pen_device_lacks(device),
                 "device 'g': while cuBLAS was opened: cuBLAS of GPU 0 says "
                 "CUBLAS_STATUS_ALLOC_FAILED; if its memory is full, leave `reserve` for it; own "
                 "kernels make matrix products\n"
                 "device 'g': while cuDNN was opened: cuDNN of GPU 0 says "
                 "CUDNN_STATUS_NOT_INITIALIZED; if its memory is full, leave `reserve` for it; own "
                 "kernels make convolutions") == 0,
          "it says '%s'", pen_device_lacks(device));
    CHECK(fake_cuda_count().bytes == pen_device_own_bytes(device), "another number is planned");
    device->kind->close(device);
    device = open_with(PEN_LIBRARIES_AUTO, "");
    CHECK(pen_device_lacks(device) == NULL, "'%s'", pen_device_lacks(device));
    device->kind->close(device);
    CHECK(fake_cuda_count().blocks == 0 && fake_cuda_count().bytes == 0, "something is left");
    pen_arena_destroy(arena);
}

// Nothing is left, whether they begin or not.
static void whether_they_begin_is_tried(void **state) {
    (void)state;
    static const struct {
        const char *settings, *blas, *dnn; // what is said where one does not begin
    } cases[] = {{"", NULL, NULL},
                 {"blas_begins=3", "CUBLAS_STATUS_ALLOC_FAILED", NULL},
                 {"dnn_begins=1001", NULL, "CUDNN_STATUS_NOT_INITIALIZED"},
                 {"gpus=2 blas_begins=3 begins_gpu=0", NULL, NULL},
                 {"memory=1000", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY"}};
    pen_arena *arena = check_arena();
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t gpu = strncmp(cases[i].settings, "gpus=2", 6) == 0 ? 1 : 0;
        const pen_cuda_driver *driver;
        pen_cuda_trial blas, dnn;
        setenv("FAKE_CUDA", cases[i].settings, 1);
        CHECK_OK(pen_cuda_driver_load(&driver)); // by which the fakes read their settings
        CHECK_OK(pen_cuda_libraries_try(gpu, arena, &blas, &dnn));
        CHECK(blas.is_found && blas.numbers[0] == 12 && dnn.is_found && dnn.numbers[0] == 9,
              "%s: not found", cases[i].settings);
        CHECK(blas.begins == (cases[i].blas == NULL) && dnn.begins == (cases[i].dnn == NULL),
              "%s: begins %d, %d", cases[i].settings, blas.begins, dnn.begins);
        CHECK(blas.begins || strstr(blas.trouble, cases[i].blas) != NULL, "'%s'", blas.trouble);
        CHECK(dnn.begins || strstr(dnn.trouble, cases[i].dnn) != NULL, "'%s'", dnn.trouble);
        const fake_counts left = fake_cuda_count();
        CHECK(left.blocks == 0 && left.bytes == 0 && left.contexts == 0, "%s: something is left",
              cases[i].settings);
    }
    unsetenv("FAKE_CUDA");
    pen_arena_destroy(arena);
}

// Where the job requires it, it is an error with the status' name, and nothing is left.
static void errors_are_told(void **state) {
    (void)state;
    const pen_device_kind *kind;
    pen_device *device;
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    setenv("FAKE_CUDA", "blas_begins=3", 1);
    const pen_device_options options = {.name = "g", .libraries = PEN_LIBRARIES_REQUIRED};
    CHECK_ERROR(kind->open(&options, &device), PEN_OUT_OF_MEMORY,
                "device 'g': while cuBLAS was opened: cuBLAS of GPU 0 says "
                "CUBLAS_STATUS_ALLOC_FAILED; if its memory is full, leave `reserve` for it; "
                "`numerics: {libraries: auto}` goes on without cuBLAS");
    setenv("FAKE_CUDA", "driver=10020", 1);
    CHECK_ERROR(kind->open(&options, &device), PEN_UNSUPPORTED,
                "the driver is of CUDA 10.2, cuBLAS needs one of 11; `numerics: {libraries: auto}` "
                "goes on without cuBLAS");
    unsetenv("FAKE_CUDA");
    CHECK(fake_cuda_count().blocks == 0 && fake_cuda_count().bytes == 0, "something is left");
    CHECK(strcmp(pen_cublas_status_name(13), "CUBLAS_STATUS_EXECUTION_FAILED") == 0, "13");
    CHECK(strcmp(pen_cublas_status_name(2), "an unknown status of cuBLAS") == 0, "2");
    CHECK(strcmp(pen_cublas_status_name(99), "an unknown status of cuBLAS") == 0, "99");
}

// A library of a later major version than the driver's does not run.
static void versions_go_with_the_driver(void **state) {
    (void)state;
    const pen_cublas_functions *functions;
    pen_cublas_version version;
    pen_cuda_gpu gpu = {.major = 9, .driver = 10020};
    CHECK_ERROR(pen_cublas_load(&gpu, &functions, &version), PEN_UNSUPPORTED,
                "the driver is of CUDA 10.2, cuBLAS needs one of 11");
    gpu.driver = 12040;
    CHECK_OK(pen_cublas_load(&gpu, &functions, &version));
    CHECK(version.numbers[0] == 12 && version.numbers[1] == 4 && version.numbers[2] == 5, "%d",
          version.numbers[0]);
    gpu.driver = 14010; // for which the machine may have another one than the fake
    CHECK(!pen_cublas_passes_over(&gpu), "version 13 is for this GPU");
    CHECK_OK(pen_cublas_load(&gpu, &functions, &version));
    CHECK(version.numbers[0] >= 12, "%d", version.numbers[0]);
    gpu.major = 7;
    CHECK(pen_cublas_passes_over(&gpu), "version 13 has no kernels for 7.0");
    CHECK_OK(pen_cublas_load(&gpu, &functions, &version));
    CHECK(version.numbers[0] == 12, "%d for a GPU of 7.0", version.numbers[0]);
    gpu.minor = 5;
    CHECK(!pen_cublas_passes_over(&gpu), "version 13 has kernels for 7.5");
}

PEN_TEST_MAIN(cmocka_unit_test_setup(products, use_it),
              cmocka_unit_test_setup(recurrent_layers, use_it),
              cmocka_unit_test_setup(precisions, use_it),
              cmocka_unit_test_setup(some_products_are_of_own_kernels, use_it),
              cmocka_unit_test_setup(mistakes_are_found, use_it),
              cmocka_unit_test(what_y_holds_is_kept), cmocka_unit_test(wrong_operands_are_refused),
              cmocka_unit_test(memory_is_counted), cmocka_unit_test(it_is_part_of_the_class),
              cmocka_unit_test(one_that_does_not_begin_is_not_used),
              cmocka_unit_test(whether_they_begin_is_tried), cmocka_unit_test(errors_are_told),
              cmocka_unit_test(versions_go_with_the_driver))
