#include "device/cpu/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cpu/one_thread.h"

#define BLAS_BUFFER_BYTES ((size_t)129 << 20) // for each thread, taken when it is loaded
#define BLAS_WARM_UP_SIZE 128                 // above that of products for which no buffer is taken

// What we use of the library.
typedef struct blas_library {
    void *handle;
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&openblas_get_parallel) get_parallel;
    __typeof__(&openblas_set_num_threads) set_num_threads;
    __typeof__(&openblas_get_config) get_config;
    __typeof__(&openblas_get_corename) get_corename;
    bool is_openmp;
    char text[128];
} blas_library;

static blas_library blas;
static pen_kernel_level blas_level; // for blas_load_once

// Function pointers come out of dlsym as data pointers; POSIX lets the bytes be taken over.
static bool blas_symbol(const char *name, void *out_function) {
    void *symbol = dlsym(blas.handle, name);
    if (symbol == NULL) return false;
    memcpy(out_function, &symbol, sizeof symbol);
    return true;
}

static bool blas_take_symbols(void) {
    return blas_symbol("cblas_sgemm", &blas.sgemm) &&
           blas_symbol("openblas_get_parallel", &blas.get_parallel) &&
           blas_symbol("openblas_set_num_threads", &blas.set_num_threads) &&
           blas_symbol("openblas_get_config", &blas.get_config) &&
           blas_symbol("openblas_get_corename", &blas.get_corename);
}

// The OpenMP build first, so that there is one pool of threads. The level chooses the core:
// OpenBLAS's own detection knows no processor newer than itself.
static void blas_load_once(void) {
    static const char *const core_types[PEN_KERNEL_LEVEL_COUNT] = {
        [PEN_KERNEL_LEVEL_V2] = "NEHALEM",
        [PEN_KERNEL_LEVEL_V3] = "HASWELL",
        [PEN_KERNEL_LEVEL_V4] = "SKYLAKEX",
    };
    static const char *const names[] = {
        "libopenblas-penstock.so.0", // lies beside us where a wheel has brought it
#if defined(__x86_64__)
        "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
#elif defined(__aarch64__)
        "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0",
#endif
        "libopenblas.so.0",
    };
    if (core_types[blas_level] != NULL) setenv("OPENBLAS_CORETYPE", core_types[blas_level], 1);
    for (size_t i = 0; i < sizeof names / sizeof *names && blas.handle == NULL; i++) {
        blas.handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (blas.handle == NULL) return;
    if (!blas_take_symbols()) { // some other library under that name
        dlclose(blas.handle);
        blas = (blas_library){0};
        return;
    }
    blas.is_openmp = blas.get_parallel() == 2;
    if (!blas.is_openmp) blas.set_num_threads(1);
    char version[48] = "OpenBLAS";
    const char *config = blas.get_config(); // "OpenBLAS 0.3.21 NO_LAPACKE …"
    const char *space = strchr(config, ' ');
    const size_t length = space == NULL ? 0 : (size_t)(space - config) + 1;
    const size_t whole = length + (length == 0 ? 0 : strcspn(config + length, " "));
    if (whole > 0 && whole < sizeof version) snprintf(version, whole + 1, "%s", config);
    snprintf(blas.text, sizeof blas.text, "%s (%s, %s)", version, blas.get_corename(),
             blas.is_openmp ? "OpenMP" : "one thread a call");
}

// Threads for which the library takes buffers: as many as there are processors, or as it is told.
static size_t blas_buffer_count(void) {
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    const char *text = getenv("OMP_NUM_THREADS");
    const long told = text == NULL ? 0 : strtol(text, NULL, 10);
    if (told > 0 && told < processors) return (size_t)told;
    return processors > 0 ? (size_t)processors : 1;
}

// Whether the address space has room for what the library takes: it asks again and again for a
// buffer that it does not get.
static pen_status blas_check_room(size_t buffer_count) {
    const size_t bytes = BLAS_BUFFER_BYTES * buffer_count;
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return pen_error(PEN_OUT_OF_MEMORY,
                         "OpenBLAS needs %zu MiB of address space for its buffers, which the "
                         "limits of this process (ulimit -d, ulimit -v) do not leave",
                         bytes >> 20);
    }
    munmap(room, bytes);
    return PEN_OK;
}

// The first product takes the buffer of the thread that multiplies: it is taken now, while there is
// room, and kept for later ones.
static void blas_warm_up(void) {
    static float zeros[BLAS_WARM_UP_SIZE * BLAS_WARM_UP_SIZE];
    static float product[BLAS_WARM_UP_SIZE * BLAS_WARM_UP_SIZE];
    blas.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, BLAS_WARM_UP_SIZE, BLAS_WARM_UP_SIZE,
               BLAS_WARM_UP_SIZE, 1, zeros, BLAS_WARM_UP_SIZE, zeros, BLAS_WARM_UP_SIZE, 0, product,
               BLAS_WARM_UP_SIZE);
}

pen_status pen_blas_load(pen_kernel_level level) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool was_tried;
    pthread_mutex_lock(&lock);
    // a device more multiplies beside the others
    const pen_status status = blas_check_room(was_tried ? 1 : 1 + blas_buffer_count());
    if (status == PEN_OK && !was_tried) {
        was_tried = true;
        blas_level = level;
        blas_load_once();
        if (blas.handle != NULL) blas_warm_up();
    }
    pthread_mutex_unlock(&lock);
    return status;
}

bool pen_blas_is_loaded(void) {
    return blas.handle != NULL;
}

const char *pen_blas_describe(void) {
    return pen_blas_is_loaded() ? blas.text : "no OpenBLAS";
}

void pen_blas_sgemm(const pen_gemm *g) {
    const int team = pen_one_thread_begin();
    blas.sgemm(CblasRowMajor, g->trans_a ? CblasTrans : CblasNoTrans,
               g->trans_b ? CblasTrans : CblasNoTrans, (blasint)g->m, (blasint)g->n, (blasint)g->k,
               g->alpha, g->a, (blasint)g->lda, g->b, (blasint)g->ldb, g->beta, g->c,
               (blasint)g->ldc);
    pen_one_thread_end(team);
}
