// Without a driver, a GPU is refused by the name of what is missing; plans can be made all the
// same.
#include <dlfcn.h>

#include "device/cuda/cuda_driver.h"
#include "device/device.h"
#include "tests/support/check.h"

static void the_driver_is_named(void **state) {
    (void)state;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL) skip(); // this machine has one
    const pen_device_kind *kind;
    pen_device *device = NULL;
    uint32_t count;
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_ERROR(kind->open(&(pen_device_options){.name = "g"}, &device), PEN_UNSUPPORTED,
                "libcuda.so.1, the driver of NVIDIA's GPUs, cannot be loaded");
    CHECK_ERROR(kind->open(&(pen_device_options){.name = "g"}, &device), PEN_UNSUPPORTED,
                "while opening device 'g' of kind cuda");
    CHECK_ERROR(pen_cuda_gpu_count(&count), PEN_UNSUPPORTED, "libcuda.so.1");
}

static void plans_need_no_driver(void **state) {
    (void)state;
    const pen_device_kind *kind;
    pen_device *device;
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "g", .only_sizes = true}, &device));
    kind->close(device);
}

PEN_TEST_MAIN(cmocka_unit_test(the_driver_is_named), cmocka_unit_test(plans_need_no_driver))
