#include "tests/cuda/fake_cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cudnn.h"
#include "tests/cuda/fake_inside.h"
#include "tests/cuda/fake_numbers.h"

void fake_cudnn_count(fake_cudnn_counts *out_counts);
#define FAKE_CUDNN_DECLARE(returned, name, symbol, parameters) returned symbol parameters;
PEN_CUDNN_FUNCTIONS(FAKE_CUDNN_DECLARE)

#define DNN_NOT_INITIALIZED 1001u
#define DNN_BAD_PARAM 2000u
#define DNN_NOT_SUPPORTED 3000u
#define DNN_EXECUTION_FAILED 5000u

#define DNN_DIMENSIONS 3
#define DNN_WORKSPACE 8192u
#define DNN_RIGHT 3u // the algorithm that computes

struct cudnnContext {
    pen_cuda_stream *stream;
    int device;
};

// Spatial sizes lie behind, ones in front of them.
struct cudnnTensorStruct {
    int batch, channels, size[DNN_DIMENSIONS], rank;
};

struct cudnnFilterStruct {
    int out, in, size[DNN_DIMENSIONS], rank;
};

struct cudnnConvolutionStruct {
    int pad[DNN_DIMENSIONS], stride[DNN_DIMENSIONS], dilation[DNN_DIMENSIONS], rank, groups;
    unsigned math;
};

typedef enum dnn_what { DNN_FORWARD, DNN_INPUT, DNN_WEIGHT } dnn_what;

// x and w, or dy in the place of one of them, are read, and the third is written.
typedef struct dnn_task {
    dnn_what what;
    pen_cudnn_tensor x, y;
    pen_cudnn_filter w;
    pen_cudnn_conv conv;
    float *x_at, *y_at, *w_at;
    float beta;
    uint8_t *workspace;
    size_t *reach; // while it runs
} dnn_task;

static fake_cudnn_counts counted;

void fake_cudnn_count(fake_cudnn_counts *out_counts) {
    (void)pthread_mutex_lock(&fake_lock);
    *out_counts = counted;
    (void)pthread_mutex_unlock(&fake_lock);
}

__attribute__((destructor)) static void dnn_tell(void) {
    if (!fake_settings.is_told) return;
    (void)fprintf(stderr, "fake cuDNN: %llu convolutions asked for, %llu run\n",
                  (unsigned long long)counted.calls, (unsigned long long)counted.runs);
}

static void dnn_add(uint64_t *count, uint64_t more) {
    (void)pthread_mutex_lock(&fake_lock);
    *count += more;
    (void)pthread_mutex_unlock(&fake_lock);
}

// ---- numbers

static size_t dnn_volume(const int *size) {
    return (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
}

static size_t dnn_tensor_count(const pen_cudnn_tensor *t) {
    return (size_t)t->batch * (size_t)t->channels * dnn_volume(t->size);
}

static size_t dnn_filter_count(const pen_cudnn_filter *w) {
    return (size_t)w->out * (size_t)w->in * dnn_volume(w->size);
}

static float *dnn_take(const float *from, size_t count, unsigned math) {
    const pen_precision precision = math == PEN_CUDNN_MATH_TF32 || math == PEN_CUDNN_MATH_DEFAULT
                                        ? PEN_PRECISION_TF32
                                    : math == PEN_CUDNN_MATH_FLOAT16 ? PEN_PRECISION_FLOAT16
                                                                     : PEN_PRECISION_FLOAT32;
    float *taken = malloc(count * sizeof *taken);
    for (size_t i = 0; i < count && taken != NULL; i++)
        taken[i] = fake_round(from[i], precision);
    return taken;
}

// Position `o` of the output and tap `k` are at which element of the input's plane; false: beside
// it.
static bool dnn_reach(const dnn_task *t, size_t o, size_t k, size_t *out_at) {
    size_t at = 0, scale = 1;
    for (int d = DNN_DIMENSIONS; d-- > 0;) {
        const long long place = (long long)(o % (size_t)t->y.size[d]) * t->conv.stride[d] +
                                (long long)(k % (size_t)t->w.size[d]) * t->conv.dilation[d] -
                                t->conv.pad[d];
        o /= (size_t)t->y.size[d];
        k /= (size_t)t->w.size[d];
        if (place < 0 || place >= t->x.size[d]) return false;
        at += (size_t)place * scale;
        scale *= (size_t)t->x.size[d];
    }
    *out_at = at;
    return true;
}

#define DNN_BESIDE SIZE_MAX

// Of each position of the output and each tap, which element of a plane they are at. Freed by the
// caller.
static size_t *dnn_reach_all(const dnn_task *t) {
    const size_t outputs = dnn_volume(t->y.size), taps = dnn_volume(t->w.size);
    size_t *reach = malloc(outputs * taps * sizeof *reach);
    for (size_t i = 0; i < outputs * taps && reach != NULL; i++)
        if (!dnn_reach(t, i / taps, i % taps, &reach[i])) reach[i] = DNN_BESIDE;
    return reach;
}

// Adds all products that a pair of channels of one sample has to what is summed.
static void dnn_add_pair(const dnn_task *t, const float *x, const float *w, const float *y,
                         double *sums) {
    const size_t outputs = dnn_volume(t->y.size), taps = dnn_volume(t->w.size);
    const size_t *reach = t->reach;
    for (size_t o = 0; o < outputs; o++) {
        for (size_t k = 0; k < taps; k++) {
            const size_t at = *reach++;
            if (at == DNN_BESIDE) continue;
            if (t->what == DNN_FORWARD) sums[o] += (double)x[at] * (double)w[k];
            if (t->what == DNN_INPUT) sums[at] += (double)y[o] * (double)w[k];
            if (t->what == DNN_WEIGHT) sums[k] += (double)x[at] * (double)y[o];
        }
    }
}

static void dnn_add_all(const dnn_task *t, const float *x, const float *w, const float *y,
                        double *sums) {
    const size_t inputs = dnn_volume(t->x.size), outputs = dnn_volume(t->y.size);
    const size_t taps = dnn_volume(t->w.size), in = (size_t)t->w.in, out = (size_t)t->w.out;
    for (size_t n = 0; n < (size_t)t->x.batch; n++) {
        for (size_t row = 0; row < out; row++) {
            const size_t group = row / (out / (size_t)t->conv.groups);
            for (size_t c = 0; c < in; c++) {
                const size_t x_at = (n * (size_t)t->x.channels + group * in + c) * inputs;
                const size_t y_at = (n * out + row) * outputs, w_at = (row * in + c) * taps;
                const size_t at = t->what == DNN_FORWARD ? y_at
                                  : t->what == DNN_INPUT ? x_at
                                                         : w_at;
                dnn_add_pair(t, x + x_at, w + w_at, y + y_at, sums + at);
            }
        }
    }
}

// On the stream's thread.
static void dnn_run(const void *given) {
    dnn_task t;
    memcpy(&t, given, sizeof t);
    float *to = t.what == DNN_FORWARD ? t.y_at : t.what == DNN_INPUT ? t.x_at : t.w_at;
    const size_t count = t.what == DNN_FORWARD ? dnn_tensor_count(&t.y)
                         : t.what == DNN_INPUT ? dnn_tensor_count(&t.x)
                                               : dnn_filter_count(&t.w);
    float *x = dnn_take(t.x_at, dnn_tensor_count(&t.x), t.conv.math);
    float *y = dnn_take(t.y_at, dnn_tensor_count(&t.y), t.conv.math);
    float *w = dnn_take(t.w_at, dnn_filter_count(&t.w), t.conv.math);
    double *sums = calloc(count, sizeof *sums);
    t.reach = dnn_reach_all(&t);
    memset(t.workspace, 0xD1, DNN_WORKSPACE);
    if (x != NULL && y != NULL && w != NULL && sums != NULL && t.reach != NULL) {
        dnn_add_all(&t, x, w, y, sums);
        for (size_t i = 0; i < count; i++) // what is not added to is not read
            to[i] = (float)sums[i] + (t.beta == 0.0f ? 0.0f : t.beta * to[i]);
    }
    free(x);
    free(y);
    free(w);
    free(sums);
    free(t.reach);
    dnn_add(&counted.runs, 1);
}

// ---- what is asked for

static bool dnn_fits(const pen_cudnn_tensor *x, const pen_cudnn_filter *w,
                     const pen_cudnn_conv *conv, const pen_cudnn_tensor *y) {
    if (x->rank != y->rank || w->rank != x->rank || conv->rank != x->rank - 2) return false;
    if (x->batch != y->batch || w->out != y->channels || conv->groups < 1) return false;
    if (x->channels != w->in * conv->groups || w->out % conv->groups != 0) return false;
    for (int d = 0; d < DNN_DIMENSIONS; d++) {
        const int reach = (w->size[d] - 1) * conv->dilation[d] + 1;
        if ((x->size[d] + 2 * conv->pad[d] - reach) / conv->stride[d] + 1 != y->size[d])
            return false;
    }
    return true;
}

// What fails by `dnn_where`.
enum { DNN_AT_LAUNCH, DNN_AT_DESCRIBE, DNN_AT_FIND, DNN_AT_MEASURE };

static pen_cudnn_status dnn_fail(unsigned where) {
    return fake_settings.dnn_where == where ? fake_settings.dnn_fails : 0;
}

// Whether the algorithm that computes does so with this math.
static bool dnn_has_math(unsigned math) {
    return fake_settings.dnn_math == FAKE_ANY_MATH || fake_settings.dnn_math == math;
}

static pen_cudnn_status dnn_propose(bool fits, const pen_cudnn_conv *conv, int limit, int *count,
                                    pen_cudnn_algorithm *found) {
    const unsigned math = conv->math;
    const pen_cudnn_algorithm all[] = {
        {.algorithm = 0, .memory = 0, .determinism = 0, .math = math},
        {.algorithm = 1, .memory = 1u << 30, .determinism = PEN_CUDNN_DETERMINISTIC, .math = math},
        {.algorithm = 2,
         .status = DNN_NOT_SUPPORTED,
         .determinism = PEN_CUDNN_DETERMINISTIC,
         .math = math},
        {.algorithm = DNN_RIGHT,
         .memory = DNN_WORKSPACE,
         .determinism = PEN_CUDNN_DETERMINISTIC,
         .math = dnn_has_math(math) ? math : fake_settings.dnn_math},
    };
    dnn_add(&counted.finds, 1);
    if (!fits) dnn_add(&counted.misfits, 1);
    if (!fits) return DNN_BAD_PARAM;
    if (dnn_fail(DNN_AT_FIND) != 0) return dnn_fail(DNN_AT_FIND);
    for (*count = 0; *count < 4 - (int)fake_settings.dnn_none && *count < limit; (*count)++)
        found[*count] = all[*count];
    return 0;
}

static pen_cudnn_status dnn_tell_bytes(bool fits, const pen_cudnn_conv *conv, unsigned algorithm,
                                       size_t *bytes) {
    if (!fits || algorithm > DNN_RIGHT) return DNN_BAD_PARAM;
    if (dnn_fail(DNN_AT_MEASURE) != 0) return dnn_fail(DNN_AT_MEASURE);
    if (algorithm == 2 || !dnn_has_math(conv->math)) return DNN_NOT_SUPPORTED;
    *bytes = algorithm == 1 ? (size_t)1 << 30 : algorithm == DNN_RIGHT ? DNN_WORKSPACE : 0;
    return 0;
}

// What all three have in common. Places are those of the device.
typedef struct dnn_call {
    pen_cudnn_handle *handle;
    const void *x, *y, *w;
    void *workspace;
    size_t bytes;
    const void *alpha, *beta;
    unsigned algorithm;
} dnn_call;

static pen_cudnn_status dnn_ask(const dnn_call *call, dnn_task *t) {
    fake_command command = {.kind = FAKE_CALL, .call = dnn_run};
    float alpha;
    if (call->handle == NULL || call->handle->stream == NULL ||
        call->handle->device != fake_current_device()) {
        return DNN_NOT_INITIALIZED;
    }
    memcpy(&alpha, call->alpha, sizeof alpha);
    memcpy(&t->beta, call->beta, sizeof t->beta);
    if (!dnn_fits(&t->x, &t->w, &t->conv, &t->y) || alpha != 1) return DNN_BAD_PARAM;
    if (call->algorithm != DNN_RIGHT || !dnn_has_math(t->conv.math)) return DNN_NOT_SUPPORTED;
    t->x_at = fake_host((uintptr_t)call->x, dnn_tensor_count(&t->x) * sizeof(float));
    t->y_at = fake_host((uintptr_t)call->y, dnn_tensor_count(&t->y) * sizeof(float));
    t->w_at = fake_host((uintptr_t)call->w, dnn_filter_count(&t->w) * sizeof(float));
    t->workspace = fake_host((uintptr_t)call->workspace, call->bytes);
    if (t->x_at == NULL || t->y_at == NULL || t->w_at == NULL || t->workspace == NULL ||
        call->bytes < DNN_WORKSPACE) {
        return DNN_BAD_PARAM;
    }
    if (dnn_fail(DNN_AT_LAUNCH) != 0) return dnn_fail(DNN_AT_LAUNCH);
    _Static_assert(sizeof *t <= sizeof command.args, "a convolution is as large as an argument");
    memcpy(command.args, t, sizeof *t);
    dnn_add(&counted.calls, 1);
    return fake_push(call->handle->stream, &command) == 0 ? 0 : DNN_EXECUTION_FAILED;
}

// NOLINTBEGIN(readability-function-size): the parameters are NVIDIA's
pen_cudnn_status cudnnConvolutionForward(pen_cudnn_handle *handle, const void *alpha,
                                         pen_cudnn_tensor *x, const void *x_at, pen_cudnn_filter *w,
                                         const void *w_at, pen_cudnn_conv *conv, unsigned algorithm,
                                         void *workspace, size_t bytes, const void *beta,
                                         pen_cudnn_tensor *y, void *y_at) {
    const dnn_call call = {handle, x_at, y_at, w_at, workspace, bytes, alpha, beta, algorithm};
    dnn_task task = {.what = DNN_FORWARD, .x = *x, .y = *y, .w = *w, .conv = *conv};
    return dnn_ask(&call, &task);
}

pen_cudnn_status cudnnConvolutionBackwardData(pen_cudnn_handle *handle, const void *alpha,
                                              pen_cudnn_filter *w, const void *w_at,
                                              pen_cudnn_tensor *dy, const void *dy_at,
                                              pen_cudnn_conv *conv, unsigned algorithm,
                                              void *workspace, size_t bytes, const void *beta,
                                              pen_cudnn_tensor *dx, void *dx_at) {
    const dnn_call call = {handle, dx_at, dy_at, w_at, workspace, bytes, alpha, beta, algorithm};
    dnn_task task = {.what = DNN_INPUT, .x = *dx, .y = *dy, .w = *w, .conv = *conv};
    return dnn_ask(&call, &task);
}

pen_cudnn_status cudnnConvolutionBackwardFilter(pen_cudnn_handle *handle, const void *alpha,
                                                pen_cudnn_tensor *x, const void *x_at,
                                                pen_cudnn_tensor *dy, const void *dy_at,
                                                pen_cudnn_conv *conv, unsigned algorithm,
                                                void *workspace, size_t bytes, const void *beta,
                                                pen_cudnn_filter *dw, void *dw_at) {
    const dnn_call call = {handle, x_at, dy_at, dw_at, workspace, bytes, alpha, beta, algorithm};
    dnn_task task = {.what = DNN_WEIGHT, .x = *x, .y = *dy, .w = *dw, .conv = *conv};
    return dnn_ask(&call, &task);
}

pen_cudnn_status cudnnGetConvolutionForwardAlgorithm_v7(pen_cudnn_handle *handle,
                                                        pen_cudnn_tensor *x, pen_cudnn_filter *w,
                                                        pen_cudnn_conv *conv, pen_cudnn_tensor *y,
                                                        int limit, int *count,
                                                        pen_cudnn_algorithm *found) {
    return dnn_propose(handle != NULL && dnn_fits(x, w, conv, y), conv, limit, count, found);
}

pen_cudnn_status cudnnGetConvolutionBackwardDataAlgorithm_v7(
    pen_cudnn_handle *handle, pen_cudnn_filter *w, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,
    pen_cudnn_tensor *dx, int limit, int *count, pen_cudnn_algorithm *found) {
    return dnn_propose(handle != NULL && dnn_fits(dx, w, conv, dy), conv, limit, count, found);
}

pen_cudnn_status cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    pen_cudnn_handle *handle, pen_cudnn_tensor *x, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,
    pen_cudnn_filter *dw, int limit, int *count, pen_cudnn_algorithm *found) {
    return dnn_propose(handle != NULL && dnn_fits(x, dw, conv, dy), conv, limit, count, found);
}
pen_cudnn_status cudnnGetConvolutionForwardWorkspaceSize(pen_cudnn_handle *handle,
                                                         pen_cudnn_tensor *x, pen_cudnn_filter *w,
                                                         pen_cudnn_conv *conv, pen_cudnn_tensor *y,
                                                         unsigned algorithm, size_t *bytes) {
    return dnn_tell_bytes(handle != NULL && dnn_fits(x, w, conv, y), conv, algorithm, bytes);
}

pen_cudnn_status cudnnGetConvolutionBackwardDataWorkspaceSize(
    pen_cudnn_handle *handle, pen_cudnn_filter *w, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,
    pen_cudnn_tensor *dx, unsigned algorithm, size_t *bytes) {
    return dnn_tell_bytes(handle != NULL && dnn_fits(dx, w, conv, dy), conv, algorithm, bytes);
}

pen_cudnn_status cudnnGetConvolutionBackwardFilterWorkspaceSize(
    pen_cudnn_handle *handle, pen_cudnn_tensor *x, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,
    pen_cudnn_filter *dw, unsigned algorithm, size_t *bytes) {
    return dnn_tell_bytes(handle != NULL && dnn_fits(x, dw, conv, dy), conv, algorithm, bytes);
}

// NOLINTEND(readability-function-size)

// ---- handles and descriptors

static pen_cudnn_status dnn_create(void *out, size_t size) {
    void *made = fake_capturing != NULL ? NULL : calloc(1, size);
    if (made == NULL) return DNN_NOT_INITIALIZED;
    memcpy(out, &made, sizeof made);
    dnn_add(&fake_counted.blocks, 1);
    return 0;
}

static pen_cudnn_status dnn_destroy(void *made) {
    free(made);
    dnn_add(&fake_counted.blocks, (uint64_t)-1);
    return 0;
}

pen_cudnn_status cudnnCreate(pen_cudnn_handle **handle) {
    const bool is_new = fake_major() > 8 && (fake_settings.dnn_minor > 10 || //
                                             fake_settings.dnn_cuda >= 13000);
    if (is_new && fake_settings.capability < 75) return DNN_NOT_INITIALIZED;
    if (fake_settings.dnn_begins != 0 && fake_begins_wrong()) return fake_settings.dnn_begins;
    const pen_cudnn_status status = dnn_create(handle, sizeof **handle);
    if (status == 0) (*handle)->device = fake_current_device();
    return status;
}

pen_cudnn_status cudnnDestroy(pen_cudnn_handle *handle) {
    return dnn_destroy(handle);
}

pen_cudnn_status cudnnGetProperty(unsigned property, int *value) {
    const int numbers[] = {fake_major(), (int)fake_settings.dnn_minor, 1};
    if (property > 2) return DNN_BAD_PARAM;
    *value = numbers[property];
    return 0;
}

size_t cudnnGetCudartVersion(void) {
    return fake_major() < 9 ? 12040 : fake_settings.dnn_cuda;
}

const char *cudnnGetErrorString(pen_cudnn_status status) {
    return status == DNN_NOT_INITIALIZED        ? "CUDNN_STATUS_NOT_INITIALIZED"
           : status == DNN_BAD_PARAM            ? "CUDNN_STATUS_BAD_PARAM"
           : status == DNN_NOT_SUPPORTED        ? "CUDNN_STATUS_NOT_SUPPORTED"
           : status == PEN_CUDNN_ALLOC_FAILED_8 ? "CUDNN_STATUS_ALLOC_FAILED"
           : status == PEN_CUDNN_ALLOC_FAILED_HOST
               ? "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
           : status == PEN_CUDNN_ALLOC_FAILED_DEVICE
               ? "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
           : status == DNN_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
                                            : "CUDNN_UNKNOWN_STATUS";
}

pen_cudnn_status cudnnSetStream(pen_cudnn_handle *handle, pen_cuda_stream *stream) {
    if (stream == NULL || stream->device != handle->device) return DNN_BAD_PARAM;
    handle->stream = stream;
    return 0;
}

pen_cudnn_status cudnnCreateTensorDescriptor(pen_cudnn_tensor **tensor) {
    return dnn_create(tensor, sizeof **tensor);
}

// Sizes of two or three dimensions, behind ones.
static bool dnn_set_sizes(int *sizes, const int *given, int rank) {
    for (int d = 0; d < DNN_DIMENSIONS; d++) {
        const int at = d - (DNN_DIMENSIONS - rank);
        sizes[d] = at < 0 ? 1 : given[at];
        if (sizes[d] < 1) return false;
    }
    return rank == 2 || rank == DNN_DIMENSIONS;
}

pen_cudnn_status cudnnSetTensorNdDescriptor(pen_cudnn_tensor *tensor, unsigned type, int rank,
                                            const int *dims, const int *strides) {
    int stride = 1;
    for (int d = rank; d-- > 0; stride *= dims[d])
        if (strides[d] != stride) return DNN_BAD_PARAM;
    *tensor = (pen_cudnn_tensor){.batch = dims[0], .channels = dims[1], .rank = rank};
    const bool is_good = dims[0] > 0 && dims[1] > 0 && type == PEN_CUDNN_FLOAT32;
    return is_good && dnn_set_sizes(tensor->size, dims + 2, rank - 2) ? 0 : DNN_BAD_PARAM;
}

pen_cudnn_status cudnnDestroyTensorDescriptor(pen_cudnn_tensor *tensor) {
    return dnn_destroy(tensor);
}

pen_cudnn_status cudnnCreateFilterDescriptor(pen_cudnn_filter **filter) {
    return dnn_create(filter, sizeof **filter);
}

pen_cudnn_status cudnnSetFilterNdDescriptor(pen_cudnn_filter *filter, unsigned type,
                                            unsigned format, int rank, const int *dims) {
    *filter = (pen_cudnn_filter){.out = dims[0], .in = dims[1], .rank = rank};
    const bool is_good =
        dims[0] > 0 && dims[1] > 0 && type == PEN_CUDNN_FLOAT32 && format == PEN_CUDNN_PLAIN;
    return is_good && dnn_set_sizes(filter->size, dims + 2, rank - 2) ? 0 : DNN_BAD_PARAM;
}

pen_cudnn_status cudnnDestroyFilterDescriptor(pen_cudnn_filter *filter) {
    return dnn_destroy(filter);
}

pen_cudnn_status cudnnCreateConvolutionDescriptor(pen_cudnn_conv **conv) {
    return dnn_create(conv, sizeof **conv);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NVIDIA's
pen_cudnn_status cudnnSetConvolutionNdDescriptor(pen_cudnn_conv *conv, int rank, const int *pads,
                                                 const int *strides, const int *dilations,
                                                 unsigned mode, unsigned type) {
    *conv = (pen_cudnn_conv){.rank = rank, .groups = 1};
    if (dnn_fail(DNN_AT_DESCRIBE) != 0) return dnn_fail(DNN_AT_DESCRIBE);
    if (mode != PEN_CUDNN_CROSS_CORRELATION || type != PEN_CUDNN_FLOAT32) return DNN_NOT_SUPPORTED;
    for (int d = 0; d < rank && rank <= DNN_DIMENSIONS; d++)
        conv->pad[DNN_DIMENSIONS - rank + d] = pads[d];
    const bool is_good = dnn_set_sizes(conv->stride, strides, rank) &&
                         dnn_set_sizes(conv->dilation, dilations, rank);
    return is_good ? 0 : DNN_BAD_PARAM;
}

#ifndef FAKE_OLD
pen_cudnn_status cudnnSetConvolutionGroupCount(pen_cudnn_conv *conv, int groups) {
    conv->groups = groups;
    return 0;
}
#endif

pen_cudnn_status cudnnSetConvolutionMathType(pen_cudnn_conv *conv, unsigned math) {
    if (math > PEN_CUDNN_MATH_FLOAT32) return DNN_BAD_PARAM;
    conv->math = math;
    return 0;
}

pen_cudnn_status cudnnDestroyConvolutionDescriptor(pen_cudnn_conv *conv) {
    return dnn_destroy(conv);
}
