// Convolutions that go to cuDNN, a fake one (tests/cuda/fake_cudnn.h), on an emulated GPU: they
// have the reference's numbers, as those of own kernels have.
#include "device/cuda/cudnn.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_kernel.h"
#include "device/device.h"
#include "tests/cuda/fake_cudnn.h"
#include "tests/support/check.h"
#include "tests/support/cuda_check.h"
#include "tests/support/cuda_rounding.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/window_case.h"

static fake_cudnn_counts cudnn_count(void) {
    fake_cudnn_counts counts = {0};
    fake_cudnn_counts_fn count;
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    void *found = library == NULL ? NULL : dlsym(library, "fake_cudnn_count");
    CHECK(found != NULL, "libcudnn.so.9 is not the fake one");
    memcpy(&count, &found, sizeof count);
    count(&counts);
    return counts;
}

#define CASE_BYTES ((uint64_t)1 << 20) // more than an operand of conv_of_many_tiles has

static int use_it(void **state) {
    (void)state;
    return setenv("PEN_TEST_LIBRARIES", "auto", 1);
}

// One to three dimensions, groups, depthwise ones, transposed ones, biases, nodes that add; those
// with pads that differ have own kernels.
static void convolutions(void **state) {
    (void)state;
    uint32_t by_library = 0, by_kernels = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        conv_trial trial;
        const uint64_t calls = cudnn_count().calls;
        if (!conv_random_any(&trial, seed)) continue;
        cuda_check(&trial.forward, seed / 4, 2e-5);
        if (cudnn_count().calls > calls)
            by_library += 1;
        else
            by_kernels += 1;
    }
    CHECK(by_library >= 8 && by_kernels >= 8, "%u by the library, %u by kernels", by_library,
          by_kernels);
    CHECK(cudnn_count().misfits == 0, "%llu times descriptors did not fit",
          (unsigned long long)cudnn_count().misfits);
    CHECK(fake_cuda_count().blocks == 0, "%llu things are left",
          (unsigned long long)fake_cuda_count().blocks);
}

// The gradient of a weight is one call, where own kernels make it in pieces.
static void convolutions_of_many_tiles(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 9; seed++) {
        conv_trial trial;
        const uint64_t calls = cudnn_count().calls;
        conv_of_many_tiles(&trial, seed);
        cuda_check(&trial.forward, seed, 5e-5);
        CHECK((cudnn_count().calls > calls) == (seed < 6), "case %llu", (unsigned long long)seed);
    }
}

// The steps of a node where cuDNN is.
static uint32_t count_steps(const op_case *c) {
    const pen_cuda_address places[8] = {0};
    pen_cuda_step steps[PEN_CUDA_STEPS];
    op_built built;
    CHECK_OK(op_build(c, &built));
    const pen_node *node = pen_graph_node(built.graph, built.node);
    const pen_cuda_call call = {
        .graph = built.graph, .node = node, .inputs = places, .outputs = places, .has_cudnn = true};
    const uint32_t count = pen_cuda_entry_find(built.graph, node)->steps(&call, steps);
    op_built_free(&built);
    return count;
}

// What it never takes is in pieces, as where there is no cuDNN: a product, and the sum of pieces.
static void a_weights_gradient_of_own_kernels_is_in_pieces(void **state) {
    (void)state;
    conv_trial trial;
    conv_of_many_tiles(&trial, 2);
    CHECK(count_steps(&trial.forward) == 1, "what it takes is in pieces");
    const int64_t pads[] = {0, 0, 1, 1};
    trial.forward.attributes[3] = pen_attribute_ints("pads", 4, pads);
    trial.forward.inputs[1].type = op_type(PEN_FLOAT32, 4, 2, 66, 24, 22);
    CHECK(count_steps(&trial.forward) == 2, "what it does not take is whole");
    const uint64_t calls = cudnn_count().calls;
    cuda_check(&trial.forward, 1, 5e-5);
    CHECK(cudnn_count().calls == calls, "it took pads that differ");
}

// tf32 and float16 have a type of math; bfloat16 has that of tf32.
static void precisions(void **state) {
    (void)state;
    static const uint64_t tf32 = 0, float16 = 2; // seeds, and the same every three
    for (uint64_t op = 0; op < 3; op++) {
        conv_trial trial;
        conv_of_many_tiles(&trial, op);
        const uint64_t calls = cudnn_count().calls;
        cuda_check_rounding(&trial.forward, 2, tf32);
        cuda_check_rounding(&trial.forward, 2, float16);
        CHECK(cudnn_count().calls == calls + 6, "other convolutions than six");
    }
}

// Runs a case of conv_of_many_tiles under settings of the fake library; NULL: without it. Returns
// how many convolutions it was asked for.
static uint64_t run_case(uint64_t op, pen_precision precision, const char *settings,
                         op_built *out_built, run_graph *out_run) {
    conv_trial trial;
    const uint64_t calls = cudnn_count().calls;
    conv_of_many_tiles(&trial, op);
    CHECK_OK(op_build(&trial.forward, out_built));
    CHECK_OK(run_graph_init(out_run, out_built->graph, out_built->arena));
    op_fill(&trial.forward, out_built, 1, out_run);
    setenv("PEN_TEST_LIBRARIES", settings == NULL ? "none" : "auto", 1);
    cuda_run_with(out_built, precision, 0, settings == NULL ? "order=0" : settings, out_run);
    setenv("PEN_TEST_LIBRARIES", "auto", 1);
    return cudnn_count().calls - calls;
}

// Both have the same result; 0: bit by bit.
static void check_same(uint64_t op, const pen_precision precisions[2],
                       const char *const settings[2], uint64_t expected_calls, double tolerance) {
    op_built built[2];
    run_graph run[2];
    const uint64_t calls = run_case(op, precisions[0], settings[0], &built[0], &run[0]);
    (void)run_case(op, precisions[1], settings[1], &built[1], &run[1]);
    CHECK(calls == expected_calls, "%s, case %llu: %llu calls", settings[0], (unsigned long long)op,
          (unsigned long long)calls);
    const pen_tensor *y = &run[0].tensors[built[0].outputs[0].index];
    const float *found = y->data;
    const float *expected = run[1].tensors[built[1].outputs[0].index].data;
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        CHECK(fabs((double)found[i] - (double)expected[i]) <= tolerance,
              "%s, case %llu, element %lld: %.9g, expected %.9g", settings[0],
              (unsigned long long)op, (long long)i, (double)found[i], (double)expected[i]);
    }
    op_built_free(&built[0]);
    op_built_free(&built[1]);
}

// Whenever it says that it does not support a convolution, own kernels make it. A weight's gradient
// is whole then, and in pieces without the library: sums differ in their last bits.
static void what_it_refuses_is_of_own_kernels(void **state) {
    (void)state;
    static const pen_precision precisions[] = {PEN_PRECISION_FLOAT32, PEN_PRECISION_FLOAT32};
    static const char *const refusals[] = {"dnn_fails=3000",
                                           "dnn_fails=9",
                                           "dnn_fails=3002 dnn_where=1",
                                           "dnn_fails=9 dnn_where=1",
                                           "dnn_fails=3999 dnn_where=2",
                                           "dnn_fails=3000 dnn_where=3"};
    for (uint64_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const char *const settings[] = {refusals[i], NULL};
        check_same(i % 3, precisions, settings, 0, i % 3 == 2 ? 1e-4 : 0);
    }
}

// An algorithm's math is taken where it rounds at most as the job's precision does; else the
// algorithm is not.
static void the_math_of_an_algorithm_is_taken(void **state) {
    (void)state;
    static const struct {
        pen_precision precision;
        const char *settings;
        pen_precision as; // bits are those of the library with this
        uint64_t calls;
    } cases[] = {
        {PEN_PRECISION_TF32, "dnn_math=3", PEN_PRECISION_FLOAT32, 1},
        {PEN_PRECISION_BFLOAT16, "dnn_math=0", PEN_PRECISION_TF32, 1},
        {PEN_PRECISION_FLOAT16, "dnn_math=1", PEN_PRECISION_TF32, 1},
        {PEN_PRECISION_TF32, "dnn_math=2", PEN_PRECISION_TF32, 0},
        {PEN_PRECISION_FLOAT32, "dnn_math=0", PEN_PRECISION_FLOAT32, 0},
        {PEN_PRECISION_FLOAT32, "dnn_math=1", PEN_PRECISION_FLOAT32, 0},
    };
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pen_precision precisions[] = {cases[i].precision, cases[i].as};
        const char *const settings[] = {cases[i].settings, cases[i].calls == 0 ? NULL : "order=0"};
        check_same(i % 2, precisions, settings, cases[i].calls, 0);
    }
}

// A launch of a convolution of conv_of_many_tiles, which is bound in the arena. Operands are one
// after the other in the buffer, each of CASE_BYTES.
static pen_launch *bind_case(pen_device *device, const op_built *built, pen_buffer *buffer,
                             pen_kernel **out_kernel) {
    const pen_node *node = pen_graph_node(built->graph, built->node);
    pen_operand inputs[OP_CASE_INPUTS], outputs[OP_CASE_OUTPUTS];
    pen_launch *launch;
    uint64_t at = 0;
    CHECK_OK(device->kind->prepare(device, built->graph, built->node, built->arena, out_kernel));
    for (uint32_t i = 0; i < node->input_count; i++, at += CASE_BYTES)
        inputs[i] = (pen_operand){pen_value_is(node->inputs[i]) ? buffer : NULL, at};
    for (uint32_t i = 0; i < node->output_count; i++, at += CASE_BYTES)
        outputs[i] = (pen_operand){buffer, at};
    const pen_binding binding = {inputs, outputs, {buffer, at}};
    CHECK_OK(device->kind->bind(device, *out_kernel, &binding, built->arena, &launch));
    return launch;
}

// The search for an algorithm is the host's, and must not be in what is measured of a launch.
static void algorithms_are_asked_for_once_for_a_shape(void **state) {
    (void)state;
    const pen_device_options options = {.name = "g", .libraries = PEN_LIBRARIES_AUTO};
    const pen_device_kind *kind;
    pen_device *device;
    pen_buffer *buffer;
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    for (uint64_t none = 0; none < 2; none++) {
        setenv("FAKE_CUDA", none == 0 ? "order=0" : "dnn_none=1", 1);
        CHECK_OK(kind->open(&options, &device));
        CHECK_OK(kind->buffer_create(device, 8 * CASE_BYTES, &buffer));
        for (uint64_t op = 0; op < 3; op++) {
            const fake_cudnn_counts before = cudnn_count();
            for (uint64_t again = 0; again < 2; again++) { // another node of the same shape
                conv_trial trial;
                op_built built;
                pen_kernel *kernel;
                conv_of_many_tiles(&trial, op);
                CHECK_OK(op_build(&trial.forward, &built));
                pen_launch *launch = bind_case(device, &built, buffer, &kernel);
                CHECK(cudnn_count().finds == before.finds + 1, "it is not asked for when bound");
                for (uint64_t run = 0; run < 3; run++)
                    CHECK_OK(kind->enqueue(device, launch, &(pen_run_context){0}));
                CHECK_OK(kind->synchronize(device));
                kind->release(device, kernel);
                op_built_free(&built);
            }
            const fake_cudnn_counts after = cudnn_count();
            CHECK(after.finds == before.finds + 1, "asked for %llu times",
                  (unsigned long long)(after.finds - before.finds));
            CHECK(after.calls - before.calls == (none == 0 ? 6 : 0), "%llu calls",
                  (unsigned long long)(after.calls - before.calls));
        }
        kind->buffer_destroy(device, buffer);
        kind->close(device);
    }
    unsetenv("FAKE_CUDA");
}

// Where it has no algorithm that gives the same bits, own kernels make it.
static void what_has_no_algorithm_is_of_own_kernels(void **state) {
    (void)state;
    op_built built;
    run_graph run;
    CHECK(run_case(0, PEN_PRECISION_FLOAT32, "dnn_none=1", &built, &run) == 0,
          "it was asked for all the same");
    op_built_free(&built);
}

// Those for CUDA 13, and from 9.11 on all, have no kernels for GPUs below 7.5.
static void versions_go_with_the_gpu(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int major, minor;
        bool is_for_it;
    } cases[] = {{"dnn_minor=10", 7, 0, true},   {"dnn_minor=11", 7, 0, false},
                 {"dnn_minor=11", 7, 5, true},   {"dnn_cuda=13000", 7, 0, false},
                 {"dnn_cuda=13000", 7, 5, true}, {"dnn_cuda=13000", 10, 0, true},
                 {"dnn_cuda=14000", 9, 0, false}};
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pen_cuda_gpu gpu = {
            .major = cases[i].major, .minor = cases[i].minor, .driver = 13000};
        const pen_cudnn_functions *functions;
        const pen_cuda_driver *driver;
        int numbers[3];
        setenv("FAKE_CUDA", cases[i].settings, 1);
        CHECK_OK(pen_cuda_driver_load(&driver)); // by which the fakes read their settings
        const pen_status status = pen_cudnn_load(&gpu, &functions, numbers);
        CHECK((status == PEN_OK) == cases[i].is_for_it, "%s for %d.%d: %s", cases[i].settings,
              gpu.major, gpu.minor, status == PEN_OK ? "taken" : pen_status_message(status));
        pen_status_ignore(status, "as expected");
    }
    unsetenv("FAKE_CUDA");
}

// Where the job requires it, want of memory, by each of its statuses, is told as that, with what to
// do; and nothing is left. Where it does not, the device is opened without it.
static void a_required_one_that_does_not_begin_is_told(void **state) {
    (void)state;
    static const struct {
        const char *settings, *name;
        pen_status_code code;
    } cases[] = {
        {"dnn_begins=2", "CUDNN_STATUS_ALLOC_FAILED", PEN_OUT_OF_MEMORY},
        {"dnn_begins=4003", "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
         PEN_OUT_OF_MEMORY},
        {"dnn_begins=4004", "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
         PEN_OUT_OF_MEMORY},
        {"dnn_begins=1001", "CUDNN_STATUS_NOT_INITIALIZED", PEN_INTERNAL},
    };
    const pen_device_options options = {.name = "g", .libraries = PEN_LIBRARIES_REQUIRED};
    const pen_device_kind *kind;
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_device *device;
        char text[256];
        (void)snprintf(text, sizeof text,
                       "device 'g': while cuDNN was opened: cuDNN of GPU 0 says %s; if its memory "
                       "is full, leave `reserve` for it; `numerics: {libraries: auto}` goes on "
                       "without cuDNN",
                       cases[i].name);
        setenv("FAKE_CUDA", cases[i].settings, 1);
        CHECK_ERROR(kind->open(&options, &device), cases[i].code, text);
        const pen_device_options allowed = {.name = "g", .libraries = PEN_LIBRARIES_AUTO};
        CHECK_OK(kind->open(&allowed, &device));
        CHECK(strstr(pen_device_lacks(device), cases[i].name) != NULL, "'%s'",
              pen_device_lacks(device));
        kind->close(device);
        unsetenv("FAKE_CUDA");
        CHECK(fake_cuda_count().blocks == 0 && fake_cuda_count().bytes == 0, "something is left");
    }
}

PEN_TEST_MAIN(cmocka_unit_test_setup(convolutions, use_it),
              cmocka_unit_test_setup(convolutions_of_many_tiles, use_it),
              cmocka_unit_test_setup(a_weights_gradient_of_own_kernels_is_in_pieces, use_it),
              cmocka_unit_test_setup(precisions, use_it),
              cmocka_unit_test_setup(what_it_refuses_is_of_own_kernels, use_it),
              cmocka_unit_test_setup(the_math_of_an_algorithm_is_taken, use_it),
              cmocka_unit_test(versions_go_with_the_gpu),
              cmocka_unit_test(algorithms_are_asked_for_once_for_a_shape),
              cmocka_unit_test_setup(a_required_one_that_does_not_begin_is_told, use_it),
              cmocka_unit_test_setup(what_has_no_algorithm_is_of_own_kernels, use_it))
