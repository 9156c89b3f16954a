#include "device/cpu/onednn/onednn.h"

#include <pthread.h>
#include <stdio.h>

static pthread_once_t onednn_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t onednn_lock = PTHREAD_MUTEX_INITIALIZER;
static pen_kernel_level onednn_level; // guarded by onednn_lock
static dnnl_status_t onednn_start_status;
static dnnl_engine_t onednn_engine;
static dnnl_stream_t onednn_stream;
static char onednn_text[64];

// What its kernels are made for. Two processes that differ in it compute other bits. Sets that only
// some versions know are numbers.
static void onednn_isa_text(dnnl_cpu_isa_t isa, char text[static 32]) {
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        {(dnnl_cpu_isa_t)0, "all"},
        {dnnl_cpu_isa_sse41, "sse41"},
        {dnnl_cpu_isa_avx, "avx"},
        {dnnl_cpu_isa_avx2, "avx2"},
        {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
        {dnnl_cpu_isa_avx512_core, "avx512_core"},
        {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
        {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
        {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
    };
    snprintf(text, 32, "instructions %#x", (unsigned)isa);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].isa == isa) snprintf(text, 32, "%s", names[i].name);
    }
}

static void onednn_start_once(void) {
    static const dnnl_cpu_isa_t isas[PEN_KERNEL_LEVEL_COUNT] = {
        [PEN_KERNEL_LEVEL_BASE] = (dnnl_cpu_isa_t)0, // all
        [PEN_KERNEL_LEVEL_V2] = dnnl_cpu_isa_sse41,
        [PEN_KERNEL_LEVEL_V3] = dnnl_cpu_isa_avx2,
        [PEN_KERNEL_LEVEL_V4] = dnnl_cpu_isa_avx512_core,
    };
    const dnnl_version_t *version = dnnl_version();
    // refused when another part of the process has used the library already: then it stays
    (void)dnnl_set_max_cpu_isa(isas[onednn_level]);
    char isa_text[32];
    onednn_isa_text(dnnl_get_effective_cpu_isa(), isa_text);
    snprintf(onednn_text, sizeof onednn_text, "oneDNN %d.%d.%d (%s)", version->major,
             version->minor, version->patch, isa_text);
    onednn_start_status = dnnl_engine_create(&onednn_engine, dnnl_cpu, 0);
    if (onednn_start_status != dnnl_success) return;
    onednn_start_status =
        dnnl_stream_create(&onednn_stream, onednn_engine, dnnl_stream_default_flags);
}

__attribute__((destructor)) static void onednn_stop(void) {
    if (onednn_stream != NULL) dnnl_stream_destroy(onednn_stream);
    if (onednn_engine != NULL) dnnl_engine_destroy(onednn_engine);
}

pen_status pen_onednn_start(pen_kernel_level level) {
    pthread_mutex_lock(&onednn_lock);
    onednn_level = level;
    pthread_once(&onednn_once, onednn_start_once);
    pthread_mutex_unlock(&onednn_lock);
    return pen_onednn_status(onednn_start_status, "making the engine");
}

const char *pen_onednn_describe(void) {
    return onednn_text;
}

dnnl_engine_t pen_onednn_engine(void) {
    return onednn_engine;
}

dnnl_stream_t pen_onednn_stream(void) {
    return onednn_stream;
}

pen_status pen_onednn_status(dnnl_status_t status, const char *what) {
    switch (status) {
    case dnnl_success:
        return PEN_OK;
    case dnnl_out_of_memory:
        return pen_error_out_of_memory();
    case dnnl_unimplemented:
        return pen_error(PEN_UNSUPPORTED, "oneDNN does not implement this: %s", what);
    case dnnl_invalid_arguments:
        return pen_error(PEN_INTERNAL, "oneDNN found invalid arguments, %s", what);
    default: // versions have more, and other ones
        break;
    }
    return pen_error(PEN_INTERNAL, "oneDNN failed with status %d, %s", (int)status, what);
}
