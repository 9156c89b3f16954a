// The driver is loaded, or what is missing is said; prototypes are those of cuda.h.
#include "device/cuda/cuda_driver.h"

#include <unistd.h>

#include "tests/support/check.h"

#define CUDA_HEADER "/usr/local/cuda/include/cuda.h"
#if __has_include(CUDA_HEADER)
#include CUDA_HEADER
#endif

static void gpus_are_described(void **state) {
    (void)state;
    uint32_t count;
    pen_cuda_gpu gpu;
    setenv("FAKE_CUDA", "gpus=2 memory=1000000", 1);
    CHECK_OK(pen_cuda_gpu_count(&count));
    CHECK(count == 2, "%u GPUs", count);
    CHECK_OK(pen_cuda_gpu_describe(1, &gpu));
    CHECK(strcmp(gpu.name, "emulated GPU") == 0, "%s", gpu.name);
    CHECK(gpu.major == 9 && gpu.minor == 0 && gpu.processors == 2 && gpu.driver == 12040 &&
              gpu.memory_bytes == 1000000,
          "%d.%d, %d, %d, %llu", gpu.major, gpu.minor, gpu.processors, gpu.driver,
          (unsigned long long)gpu.memory_bytes);
    CHECK_ERROR(pen_cuda_gpu_describe(2, &gpu), PEN_UNSUPPORTED,
                "found no GPU 2, this machine has 2, from 0");
}

static void no_gpu_is_an_error(void **state) {
    (void)state;
    const pen_cuda_driver *driver;
    setenv("FAKE_CUDA", "gpus=0", 1);
    CHECK_ERROR(pen_cuda_driver_load(&driver), PEN_UNSUPPORTED,
                "libcuda.so.1 is there, but this machine has no GPU");
    setenv("FAKE_CUDA", "gpus=9", 1);
    CHECK_ERROR(pen_cuda_driver_load(&driver), PEN_UNSUPPORTED,
                "libcuda.so.1 does not begin: CUDA_ERROR_INVALID_VALUE");
    unsetenv("FAKE_CUDA");
    CHECK_OK(pen_cuda_driver_load(&driver));
    CHECK(strcmp(pen_cuda_error_name(driver, 12345), "an unknown error of CUDA") == 0, "%s",
          pen_cuda_error_name(driver, 12345));
}

// Pointers to what functions return and take are compared as types.
static void prototypes_are_those_of_cuda(void **state) {
    (void)state;
#ifdef CUDA_VERSION
#define DRIVER_COMPARE(name, symbol, parameters)                                                   \
    CHECK(__builtin_types_compatible_p(__typeof__(&(symbol)),                                      \
                                       __typeof__(((pen_cuda_driver *)0)->name)),                  \
          "%s is another function there", #symbol);
    PEN_CUDA_FUNCTIONS(DRIVER_COMPARE)
    CHECK(CUDA_ERROR_OUT_OF_MEMORY == PEN_CUDA_OUT_OF_MEMORY, "another number");
    CHECK(CUDA_ERROR_NO_DEVICE == PEN_CUDA_NO_DEVICE, "another number");
    CHECK(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED == PEN_CUDA_PEER_ENABLED, "another number");
    CHECK(CUDA_ERROR_TOO_MANY_PEERS == PEN_CUDA_TOO_MANY_PEERS, "another number");
    CHECK(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == PEN_CUDA_PROCESSORS, "another number");
    CHECK(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == PEN_CUDA_MAJOR, "another number");
    CHECK(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == PEN_CUDA_MINOR, "another number");
    CHECK(CU_STREAM_NON_BLOCKING == PEN_CUDA_STREAM_NON_BLOCKING, "another number");
    CHECK(CU_EVENT_DISABLE_TIMING == PEN_CUDA_EVENT_NO_TIMING, "another number");
    CHECK(CU_MEMHOSTALLOC_PORTABLE == PEN_CUDA_HOST_PORTABLE, "another number");
    CHECK(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL == PEN_CUDA_CAPTURE_THREAD_LOCAL, "another number");
#else
    print_message("no " CUDA_HEADER " to compare with\n");
#endif
}

PEN_TEST_MAIN(cmocka_unit_test(gpus_are_described), cmocka_unit_test(no_gpu_is_an_error),
              cmocka_unit_test(prototypes_are_those_of_cuda))
