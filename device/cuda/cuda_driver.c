#include "device/cuda/cuda_driver.h"

#include "base/system/library.h"

// Made once, and only read then.
static pen_cuda_driver driver;

static pen_status driver_load_library(void) {
    static pen_library_once once;
    static const char *const names[] = {"libcuda.so.1", NULL};
#define DRIVER_SYMBOL(name, symbol, parameters) #symbol,
    static const char *const symbols[] = {PEN_CUDA_FUNCTIONS(DRIVER_SYMBOL)};
    const pen_library wanted = {.purpose = "libcuda.so.1, the driver of NVIDIA's GPUs",
                                .names = names,
                                .symbols = symbols,
                                .symbol_count = sizeof symbols / sizeof *symbols};
    return pen_library_find_once(&once, &wanted, &driver);
}

const char *pen_cuda_error_name(const pen_cuda_driver *with, pen_cuda_result error) {
    const char *name = NULL;
    if (with->error_name(error, &name) != 0 || name == NULL) return "an unknown error of CUDA";
    return name;
}

// A driver without a GPU begins with an error, too.
pen_status pen_cuda_driver_load(const pen_cuda_driver **out_driver) {
    PEN_TRY(driver_load_library());
    const pen_cuda_result result = driver.init(0);
    if (result == PEN_CUDA_NO_DEVICE) {
        return pen_error(PEN_UNSUPPORTED, "libcuda.so.1 is there, but this machine has no GPU that "
                                          "it may use");
    }
    if (result != 0) {
        return pen_error(PEN_UNSUPPORTED, "libcuda.so.1 does not begin: %s",
                         pen_cuda_error_name(&driver, result));
    }
    *out_driver = &driver;
    return PEN_OK;
}

bool pen_cuda_gpu_is_old(const pen_cuda_gpu *gpu) {
    return gpu->major < 7 || (gpu->major == 7 && gpu->minor < 5);
}

pen_status pen_cuda_gpu_count(uint32_t *out_count) {
    const pen_cuda_driver *with;
    int count = 0;
    PEN_TRY(pen_cuda_driver_load(&with));
    const pen_cuda_result result = with->device_count(&count);
    if (result != 0) {
        return pen_error(PEN_UNSUPPORTED, "GPUs cannot be counted: %s",
                         pen_cuda_error_name(with, result));
    }
    *out_count = (uint32_t)count;
    return PEN_OK;
}

// The first question that the driver does not answer is the error.
pen_status pen_cuda_gpu_describe(uint32_t index, pen_cuda_gpu *out_gpu) {
    const pen_cuda_driver *with;
    uint32_t count;
    pen_cuda_gpu gpu = {.name = ""};
    size_t bytes = 0;
    int device;
    PEN_TRY(pen_cuda_driver_load(&with));
    PEN_TRY(pen_cuda_gpu_count(&count));
    if (index >= count) {
        return pen_error(PEN_UNSUPPORTED, "found no GPU %u, this machine has %u, from 0", index,
                         count);
    }
    pen_cuda_result result = with->device(&device, (int)index);
    if (result == 0) result = with->device_name(gpu.name, (int)sizeof gpu.name, device);
    if (result == 0) result = with->device_attribute(&gpu.major, PEN_CUDA_MAJOR, device);
    if (result == 0) result = with->device_attribute(&gpu.minor, PEN_CUDA_MINOR, device);
    if (result == 0) result = with->device_attribute(&gpu.processors, PEN_CUDA_PROCESSORS, device);
    if (result == 0) result = with->device_bytes(&bytes, device);
    if (result == 0) result = with->driver_version(&gpu.driver);
    if (result != 0) {
        return pen_error(PEN_UNSUPPORTED, "GPU %u does not say what it is: %s", index,
                         pen_cuda_error_name(with, result));
    }
    gpu.memory_bytes = bytes;
    *out_gpu = gpu;
    return PEN_OK;
}
