// The driver is loaded, or what is missing is said.
#include "device/cuda/cuda_driver.h"

#include <unistd.h>

#include "tests/support/check.h"

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

PEN_TEST_MAIN(cmocka_unit_test(gpus_are_described), cmocka_unit_test(no_gpu_is_an_error))
