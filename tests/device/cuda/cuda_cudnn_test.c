// Convolutions that go to cuDNN, a fake one (tests/cuda/fake_cudnn.h), on an emulated GPU: they
// have the reference's numbers, as those of own kernels have.
#include "device/cuda/cudnn.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake_cudnn.h"
#include "tests/support/check.h"
#include "tests/support/cuda_check.h"
#include "tests/support/cuda_rounding.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/window_case.h"

#define CUDNN_HEADER "/usr/local/cuda/include/cudnn.h"
#if __has_include(CUDNN_HEADER)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include CUDNN_HEADER
#endif

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

// Where it has no algorithm that gives the same bits, own kernels make it.
static void what_has_no_algorithm_is_of_own_kernels(void **state) {
    (void)state;
    conv_trial trial;
    op_built built;
    run_graph run;
    const uint64_t calls = cudnn_count().calls;
    conv_of_many_tiles(&trial, 0);
    CHECK_OK(op_build(&trial.forward, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&trial.forward, &built, 1, &run);
    cuda_run_with(&built, PEN_PRECISION_FLOAT32, 0, "dnn_none=1", &run);
    CHECK(cudnn_count().calls == calls, "it was asked for all the same");
    op_built_free(&built);
}

// Those that find algorithms (_v7) have three structs alike for ours, of which places are compared.
static void numbers_are_those_of_nvidia(void **state) {
    (void)state;
#ifdef CUDNN_MAJOR
    CHECK(CUDNN_DATA_FLOAT == PEN_CUDNN_FLOAT32, "another number");
    CHECK(CUDNN_TENSOR_NCHW == PEN_CUDNN_PLAIN, "another number");
    CHECK(CUDNN_CROSS_CORRELATION == PEN_CUDNN_CROSS_CORRELATION, "another number");
    CHECK(CUDNN_DETERMINISTIC == PEN_CUDNN_DETERMINISTIC, "another number");
    CHECK(CUDNN_TENSOR_OP_MATH == PEN_CUDNN_MATH_TF32, "another number");
    CHECK(CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION == PEN_CUDNN_MATH_FLOAT16, "another number");
    CHECK(CUDNN_FMA_MATH == PEN_CUDNN_MATH_FLOAT32, "another number");
    CHECK(sizeof(cudnnConvolutionFwdAlgoPerf_t) == sizeof(pen_cudnn_algorithm), "another size");
    CHECK(offsetof(cudnnConvolutionFwdAlgoPerf_t, memory) == offsetof(pen_cudnn_algorithm, memory),
          "another place");
    CHECK(offsetof(cudnnConvolutionFwdAlgoPerf_t, determinism) ==
              offsetof(pen_cudnn_algorithm, determinism),
          "another place");
#define CUDNN_COMPARE(returned, name, symbol, parameters)                                          \
    CHECK(strstr(#symbol, "_v7") != NULL ||                                                        \
              __builtin_types_compatible_p(__typeof__(&(symbol)),                                  \
                                           __typeof__(((pen_cudnn_functions *)0)->name)),          \
          "%s is another function there", #symbol);
    PEN_CUDNN_FUNCTIONS(CUDNN_COMPARE)
#else
    print_message("no " CUDNN_HEADER " to compare with\n");
#endif
}

PEN_TEST_MAIN(cmocka_unit_test_setup(convolutions, use_it),
              cmocka_unit_test_setup(convolutions_of_many_tiles, use_it),
              cmocka_unit_test_setup(precisions, use_it),
              cmocka_unit_test_setup(what_has_no_algorithm_is_of_own_kernels, use_it),
              cmocka_unit_test(numbers_are_those_of_nvidia))
