// The GPUs that the fake driver has, as it was told.
#include "tests/cuda/fake_gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_driver.h"
#include "tests/cuda/emulator.h"

#define FAKE_DECLARE(name, symbol, parameters) pen_cuda_result symbol parameters;
PEN_CUDA_FUNCTIONS(FAKE_DECLARE)

fake_told fake_settings = {.gpu_count = 1, .model_count = 1};

static uint64_t fake_setting(const char *name, uint64_t otherwise) {
    const char *text = getenv("FAKE_CUDA");
    const char *at = text == NULL ? NULL : strstr(text, name);
    return at == NULL ? otherwise : strtoull(at + strlen(name), NULL, 10);
}

// The word behind `name`, or nothing.
static void fake_setting_word(const char *name, char *word, size_t size) {
    const char *text = getenv("FAKE_CUDA");
    const char *at = text == NULL ? NULL : strstr(text, name);
    at = at == NULL ? "" : at + strlen(name);
    (void)snprintf(word, size, "%.*s", (int)strcspn(at, " "), at);
}

pen_cuda_result cuInit(unsigned flags) {
    fake_settings.gpu_count = (unsigned)fake_setting("gpus=", 1);
    fake_settings.model_count = (unsigned)fake_setting("models=", 1);
    fake_settings.first_model = (unsigned)fake_setting("model=", 0);
    fake_settings.memory_bytes = fake_setting("memory=", (uint64_t)4 << 30);
    fake_settings.late_us = (unsigned)fake_setting("late=", 0);
    fake_settings.order = (unsigned)fake_setting("order=", 0);
    fake_settings.driver = (unsigned)fake_setting("driver=", 12040);
    fake_settings.capability = (unsigned)fake_setting("capability=", 90);
    fake_settings.blas_fails = (unsigned)fake_setting("blas_fails=", 0);
    fake_settings.blas_begins = (unsigned)fake_setting("blas_begins=", 0);
    fake_settings.dnn_begins = (unsigned)fake_setting("dnn_begins=", 0);
    fake_settings.begins_gpu = (unsigned)fake_setting("begins_gpu=", FAKE_ALL_ROLES);
    fake_settings.dnn_fails = (unsigned)fake_setting("dnn_fails=", 0);
    fake_settings.dnn_where = (unsigned)fake_setting("dnn_where=", 0);
    fake_settings.dnn_math = (unsigned)fake_setting("dnn_math=", FAKE_ANY_MATH);
    fake_settings.dnn_minor = (unsigned)fake_setting("dnn_minor=", 5);
    fake_settings.dnn_cuda = (unsigned)fake_setting("dnn_cuda=", 12040);
    fake_settings.dnn_none = (unsigned)fake_setting("dnn_none=", 0);
    fake_settings.has_peers = fake_setting("peers=", 0) != 0;
    fake_settings.refuses_peers = fake_setting("peers=", 0) == 2;
    fake_settings.is_told = fake_setting("count=", 0) != 0;
    fake_settings.is_graphless = fake_setting("graphless=", 0) != 0;
    fake_settings.late_gpu = (unsigned)fake_setting("late_gpu=", FAKE_ALL_ROLES);
    fake_settings.late_role = (unsigned)fake_setting("late_role=", FAKE_ALL_ROLES);
    fake_settings.lost_stream = (unsigned)fake_setting("lost_stream=", FAKE_ALL_ROLES);
    fake_settings.lost_event = (unsigned)fake_setting("lost_event=", FAKE_ALL_ROLES);
    fake_setting_word("slow=", fake_settings.slow, sizeof fake_settings.slow);
    fake_settings.tick_ns = (unsigned)fake_setting("tick_ns=", 500);
    fake_settings.slow_us = (unsigned)fake_setting("slow_us=", 50000);
    fake_setting_word("fails=", fake_settings.fails, sizeof fake_settings.fails);
    fake_settings.fails_at = (unsigned)fake_setting("fails_at=", 1);
    emulator_tag = FAKE_TAG;
    emulator_tag_bits = FAKE_TAG_BITS;
    if (fake_settings.gpu_count > FAKE_GPUS || flags != 0) return FAKE_INVALID;
    return fake_settings.gpu_count == 0 ? PEN_CUDA_NO_DEVICE : 0;
}

pen_cuda_result cuDriverGetVersion(int *version) {
    *version = (int)fake_settings.driver;
    return 0;
}

pen_cuda_result cuDeviceGetCount(int *count) {
    *count = (int)fake_settings.gpu_count;
    return 0;
}

pen_cuda_result cuDeviceGet(int *device, int ordinal) {
    if (ordinal < 0 || (unsigned)ordinal >= fake_settings.gpu_count) return FAKE_INVALID;
    *device = ordinal;
    return 0;
}

pen_cuda_result cuDeviceGetName(char *name, int bytes, int device) {
    const unsigned model = fake_settings.model_count > 1
                               ? (unsigned)device % fake_settings.model_count
                               : fake_settings.first_model;
    (void)snprintf(name, (size_t)bytes, model == 0 ? "emulated GPU" : "other emulated GPU");
    return 0;
}

pen_cuda_result cuDeviceGetAttribute(int *value, unsigned attribute, int device) {
    (void)device;
    switch (attribute) {
    case PEN_CUDA_PROCESSORS:
        *value = 2;
        return 0;
    case PEN_CUDA_MAJOR:
        *value = (int)fake_settings.capability / 10;
        return 0;
    case PEN_CUDA_MINOR:
        *value = (int)fake_settings.capability % 10;
        return 0;
    default:
        return FAKE_INVALID;
    }
}

pen_cuda_result cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = fake_settings.memory_bytes;
    return 0;
}
