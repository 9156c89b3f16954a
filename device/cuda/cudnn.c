#include "device/cuda/cudnn.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/precision.h"
#include "base/system/library.h"

#define CUDNN_SPATIAL 3    // dimensions of arguments
#define CUDNN_CANDIDATES 8 // algorithms that it is asked for

// The first version without kernels for GPUs below 7.5, also where it is made for CUDA 12.
#define CUDNN_NEW_MAJOR 9
#define CUDNN_NEW_MINOR 11

// What may be loaded: the newest that there is, and where that is not for this machine, version 8.
#define CUDNN_LIBRARIES 2

// Made once each, and only read then.
static pen_cudnn_functions cudnn_functions[CUDNN_LIBRARIES];

static pen_status cudnn_load_library(unsigned which) {
    static pen_library_once once[CUDNN_LIBRARIES];
    static const char *const names[] = {"libcudnn.so.9", "libcudnn.so.8", NULL};
#define CUDNN_SYMBOL(returned, name, symbol, parameters) #symbol,
    static const char *const symbols[] = {PEN_CUDNN_FUNCTIONS(CUDNN_SYMBOL)};
    const pen_library wanted = {.purpose = which == 0 ? "libcudnn.so.9 or .8" : "libcudnn.so.8",
                                .names = names + which,
                                .symbols = symbols,
                                .symbol_count = sizeof symbols / sizeof *symbols};
    return pen_library_find_once(&once[which], &wanted, &cudnn_functions[which]);
}

// One for a newer CUDA than the driver's, or without kernels for the GPU, loads, and then fails.
static pen_status cudnn_check_machine(const pen_cuda_gpu *gpu, size_t cuda, const int *numbers) {
    const int driver = gpu->driver / 1000;
    const bool is_new = numbers[0] > CUDNN_NEW_MAJOR ||
                        (numbers[0] == CUDNN_NEW_MAJOR && numbers[1] >= CUDNN_NEW_MINOR) ||
                        cuda > 12;
    if (cuda > (size_t)driver) {
        return pen_error(PEN_UNSUPPORTED,
                         "libcudnn is made for CUDA %zu, the driver is of CUDA %d.%d: install the "
                         "cuDNN for CUDA %d, or a newer driver",
                         cuda, driver, gpu->driver % 1000 / 10, driver);
    }
    if (is_new && pen_cuda_gpu_is_old(gpu)) {
        return pen_error(PEN_UNSUPPORTED,
                         "libcudnn is %d.%d.%d for CUDA %zu, without kernels for this GPU, whose "
                         "compute capability %d.%d is below 7.5: install cuDNN %d.%d for CUDA 12",
                         numbers[0], numbers[1], numbers[2], cuda, gpu->major, gpu->minor,
                         CUDNN_NEW_MAJOR, CUDNN_NEW_MINOR - 1);
    }
    return PEN_OK;
}

static pen_status cudnn_load_one(unsigned which, const pen_cuda_gpu *gpu, int out_numbers[3]) {
    const pen_cudnn_functions *functions = &cudnn_functions[which];
    PEN_TRY(cudnn_load_library(which));
    for (unsigned i = 0; i < 3; i++) {
        const pen_cudnn_status status = functions->property(i, &out_numbers[i]);
        if (status == 0) continue;
        return pen_error(PEN_UNSUPPORTED, "libcudnn does not say its version: %s",
                         functions->error_name(status));
    }
    return cudnn_check_machine(gpu, functions->runtime() / 1000, out_numbers);
}

// Where none will do, what is wrong with the newest is told.
pen_status pen_cudnn_load(const pen_cuda_gpu *gpu, const pen_cudnn_functions **out_functions,
                          int out_numbers[3]) {
    unsigned which = 0;
    pen_status status = cudnn_load_one(which, gpu, out_numbers);
    if (status != PEN_OK) {
        const pen_status older = cudnn_load_one(++which, gpu, out_numbers);
        pen_status_ignore(older == PEN_OK ? status : older, "another is told, or taken");
        if (older == PEN_OK) status = PEN_OK;
    }
    if (status == PEN_OK) *out_functions = &cudnn_functions[which];
    return status;
}

// Memory of the host, or of the GPU: version 8 has one status for both.
static bool cudnn_lacks_memory(pen_cudnn_status status) {
    return status == PEN_CUDNN_ALLOC_FAILED_8 || status == PEN_CUDNN_ALLOC_FAILED_HOST ||
           status == PEN_CUDNN_ALLOC_FAILED_DEVICE;
}

static pen_status cudnn_check(const pen_cudnn *cudnn, pen_cudnn_status status, const char *doing) {
    if (status == 0) return PEN_OK;
    return pen_cuda_library_error(cudnn->memory,
                                  cudnn_lacks_memory(status) ? PEN_OUT_OF_MEMORY : PEN_INTERNAL,
                                  "cuDNN", cudnn->functions->error_name(status), doing);
}

static pen_status cudnn_begin(pen_cudnn *cudnn) {
    const pen_cudnn_functions *f = cudnn->functions;
    PEN_TRY(cudnn_check(cudnn, f->create(&cudnn->handle), NULL));
    PEN_TRY(cudnn_check(cudnn, f->set_stream(cudnn->handle, cudnn->memory->stream), NULL));
    PEN_TRY(cudnn_check(cudnn, f->tensor_create(&cudnn->x), NULL));
    PEN_TRY(cudnn_check(cudnn, f->tensor_create(&cudnn->y), NULL));
    PEN_TRY(cudnn_check(cudnn, f->filter_create(&cudnn->w), NULL));
    return cudnn_check(cudnn, f->conv_create(&cudnn->conv), NULL);
}

pen_status pen_cudnn_open(const pen_cuda_memory *memory, const pen_cuda_gpu *gpu,
                          pen_cudnn_room room, pen_cudnn *cudnn) {
    *cudnn = (pen_cudnn){.memory = memory,
                         .workspace = room.workspace,
                         .workspace_bytes = room.workspace_bytes,
                         .arena = room.arena};
    pen_status status = pen_cudnn_load(gpu, &cudnn->functions, cudnn->numbers);
    if (status == PEN_OK) status = cudnn_begin(cudnn);
    if (status != PEN_OK) pen_cudnn_close(cudnn);
    return status;
}

// What it says is not heard, as what the driver says.
void pen_cudnn_close(pen_cudnn *cudnn) {
    const pen_cudnn_functions *f = cudnn->functions;
    if (cudnn->conv != NULL) (void)f->conv_destroy(cudnn->conv);
    if (cudnn->w != NULL) (void)f->filter_destroy(cudnn->w);
    if (cudnn->y != NULL) (void)f->tensor_destroy(cudnn->y);
    if (cudnn->x != NULL) (void)f->tensor_destroy(cudnn->x);
    if (cudnn->handle != NULL) (void)f->destroy(cudnn->handle);
    *cudnn = (pen_cudnn){0};
}

// ---- what is described: tensors of one dimension that is not spatial more than the window has

static bool cudnn_is_input(const struct cuda_conv_args *args) {
    return args->what == PEN_CUDA_CONV_INPUT;
}

// Sizes of the convolution's input and output, whichever of them is read in windows.
static const uint32_t *cudnn_inputs(const struct cuda_conv_args *args) {
    return cudnn_is_input(args) ? args->target : args->source;
}
static const uint32_t *cudnn_outputs(const struct cuda_conv_args *args) {
    return cudnn_is_input(args) ? args->source : args->target;
}

// Pads are as many behind as before: the output's size follows from the others.
bool pen_cudnn_is_expressible(const struct cuda_conv_args *args) {
    const uint32_t *in = cudnn_inputs(args), *out = cudnn_outputs(args);
    if (args->batch == 0 || args->rows == 0 || args->channels == 0 || args->pieces > 1)
        return false;
    for (uint32_t d = 0; d < CUDNN_SPATIAL; d++) {
        const uint64_t reach = (uint64_t)(args->kernel[d] - 1) * args->dilation[d] + 1;
        const uint64_t padded = (uint64_t)in[d] + 2 * (uint64_t)args->pad[d];
        if (in[d] == 0 || args->kernel[d] == 0 || padded < reach) return false;
        if ((padded - reach) / args->stride[d] + 1 != out[d]) return false;
    }
    return true;
}

// How many of the three dimensions in front are left out, all trivial: the library has two at
// least.
static uint32_t cudnn_first(const struct cuda_conv_args *args) {
    const bool is_flat =
        args->source[0] == 1 && args->target[0] == 1 && args->kernel[0] == 1 && args->pad[0] == 0;
    return is_flat ? 1 : 0;
}

static pen_cudnn_status cudnn_set_tensor(const pen_cudnn *cudnn, pen_cudnn_tensor *tensor,
                                         const struct cuda_conv_args *args, uint32_t channels,
                                         const uint32_t *sizes) {
    const uint32_t first = cudnn_first(args);
    int dims[2 + CUDNN_SPATIAL] = {(int)args->batch, (int)(args->groups * channels)};
    int strides[2 + CUDNN_SPATIAL], stride = 1;
    const int rank = 2 + CUDNN_SPATIAL - (int)first;
    for (uint32_t d = first; d < CUDNN_SPATIAL; d++)
        dims[2 + d - first] = (int)sizes[d];
    for (int d = rank; d-- > 0; stride *= dims[d])
        strides[d] = stride;
    return cudnn->functions->tensor_set(tensor, PEN_CUDNN_FLOAT32, rank, dims, strides);
}

static pen_cudnn_status cudnn_set_filter(const pen_cudnn *cudnn, const struct cuda_conv_args *args,
                                         uint32_t in, uint32_t out) {
    const uint32_t first = cudnn_first(args);
    int dims[2 + CUDNN_SPATIAL] = {(int)(args->groups * out), (int)in};
    for (uint32_t d = first; d < CUDNN_SPATIAL; d++)
        dims[2 + d - first] = (int)args->kernel[d];
    return cudnn->functions->filter_set(cudnn->w, PEN_CUDNN_FLOAT32, PEN_CUDNN_PLAIN,
                                        2 + CUDNN_SPATIAL - (int)first, dims);
}

// It has no mode that rounds to bfloat16: tf32, which has the same range, rounds less.
static unsigned cudnn_math_of(uint32_t precision) {
    static const unsigned maths[] = {
        [PEN_PRECISION_FLOAT32] = PEN_CUDNN_MATH_FLOAT32,
        [PEN_PRECISION_TF32] = PEN_CUDNN_MATH_TF32,
        [PEN_PRECISION_BFLOAT16] = PEN_CUDNN_MATH_TF32,
        [PEN_PRECISION_FLOAT16] = PEN_CUDNN_MATH_FLOAT16,
    };
    return maths[precision];
}

static pen_cudnn_status cudnn_set_conv(const pen_cudnn *cudnn, const struct cuda_conv_args *args) {
    const pen_cudnn_functions *f = cudnn->functions;
    const uint32_t first = cudnn_first(args);
    int pads[CUDNN_SPATIAL], strides[CUDNN_SPATIAL], dilations[CUDNN_SPATIAL];
    for (uint32_t d = first; d < CUDNN_SPATIAL; d++) {
        pads[d - first] = (int)args->pad[d];
        strides[d - first] = (int)args->stride[d];
        dilations[d - first] = (int)args->dilation[d];
    }
    pen_cudnn_status status =
        f->conv_set(cudnn->conv, CUDNN_SPATIAL - (int)first, pads, strides, dilations,
                    PEN_CUDNN_CROSS_CORRELATION, PEN_CUDNN_FLOAT32);
    if (status == 0) status = f->conv_set_groups(cudnn->conv, (int)args->groups);
    if (status == 0) status = f->conv_set_math(cudnn->conv, cudnn_math_of(args->precision));
    return status;
}

static pen_cudnn_status cudnn_describe(const pen_cudnn *cudnn, const struct cuda_conv_args *args) {
    const uint32_t in = cudnn_is_input(args) ? args->rows : args->channels;
    const uint32_t out = cudnn_is_input(args) ? args->channels : args->rows;
    pen_cudnn_status status = cudnn_set_tensor(cudnn, cudnn->x, args, in, cudnn_inputs(args));
    if (status == 0) status = cudnn_set_tensor(cudnn, cudnn->y, args, out, cudnn_outputs(args));
    if (status == 0) status = cudnn_set_filter(cudnn, args, in, out);
    return status == 0 ? cudnn_set_conv(cudnn, args) : status;
}

// ---- algorithms

// All that decides about an algorithm: arguments, but for where operands are and whether it adds.
#define CUDNN_SHAPE_BYTES offsetof(struct cuda_conv_args, left)

// What was chosen for a shape.
struct pen_cudnn_choice {
    const pen_cudnn_choice *next;
    struct cuda_conv_args shape; // of which CUDNN_SHAPE_BYTES count
    bool is_refused;             // there is none
    unsigned algorithm, math;
};

static struct cuda_conv_args cudnn_shape(const struct cuda_conv_args *args) {
    struct cuda_conv_args shape = *args;
    shape.adds = 0;
    return shape;
}

// NULL: nothing was chosen for it yet.
static const pen_cudnn_choice *cudnn_recall(const pen_cudnn *cudnn,
                                            const struct cuda_conv_args *args) {
    const struct cuda_conv_args shape = cudnn_shape(args);
    const pen_cudnn_choice *choice = cudnn->choices;
    while (choice != NULL && memcmp(&choice->shape, &shape, CUDNN_SHAPE_BYTES) != 0)
        choice = choice->next;
    return choice;
}

static pen_cudnn_status cudnn_find(const pen_cudnn *c, uint32_t what, int *count,
                                   pen_cudnn_algorithm found[CUDNN_CANDIDATES]) {
    const pen_cudnn_functions *f = c->functions;
    return what == PEN_CUDA_CONV
               ? f->find(c->handle, c->x, c->w, c->conv, c->y, CUDNN_CANDIDATES, count, found)
           : what == PEN_CUDA_CONV_INPUT
               ? f->find_input(c->handle, c->w, c->y, c->conv, c->x, CUDNN_CANDIDATES, count, found)
               : f->find_weight(c->handle, c->x, c->y, c->conv, c->w, CUDNN_CANDIDATES, count,
                                found);
}

static pen_cudnn_status cudnn_measure(const pen_cudnn *c, uint32_t what, unsigned algorithm,
                                      size_t *bytes) {
    const pen_cudnn_functions *f = c->functions;
    return what == PEN_CUDA_CONV
               ? f->measure(c->handle, c->x, c->w, c->conv, c->y, algorithm, bytes)
           : what == PEN_CUDA_CONV_INPUT
               ? f->measure_input(c->handle, c->w, c->y, c->conv, c->x, algorithm, bytes)
               : f->measure_weight(c->handle, c->x, c->y, c->conv, c->w, algorithm, bytes);
}

// It says so before it enqueues anything.
static bool cudnn_is_refusal(pen_cudnn_status status) {
    return status / 1000 * 1000 == PEN_CUDNN_NOT_SUPPORTED || status == PEN_CUDNN_NOT_SUPPORTED_8;
}

// An algorithm is for the math that it was proposed with. That one is set, unless it rounds more
// than the job's precision: then it is asked for with the job's. So float32 stays as it is.
static unsigned cudnn_allowed_math(uint32_t precision, unsigned proposed) {
    static const unsigned rounding[] = {
        [PEN_CUDNN_MATH_FLOAT32] = 0,
        [PEN_CUDNN_MATH_DEFAULT] = 1,
        [PEN_CUDNN_MATH_TF32] = 1,
        [PEN_CUDNN_MATH_FLOAT16] = 2,
    };
    const unsigned own = cudnn_math_of(precision);
    const bool is_known = proposed < sizeof rounding / sizeof *rounding;
    const bool rounds_more = !is_known || rounding[proposed] > rounding[own];
    return rounds_more ? own : proposed;
}

// The first that it proposes, which is the one it thinks fastest, whose bits are the same in each
// run, which it can do with a math that may be, and for which there is enough workspace. What is
// set then is that math. PEN_CUDNN_NOT_SUPPORTED: there is none.
static pen_cudnn_status cudnn_choose(const pen_cudnn *cudnn, const struct cuda_conv_args *args,
                                     pen_cudnn_choice *out_choice) {
    pen_cudnn_algorithm found[CUDNN_CANDIDATES];
    int count = 0;
    pen_cudnn_status status = cudnn_find(cudnn, args->what, &count, found);
    if (status != 0) return status;
    for (int i = 0; i < count && i < CUDNN_CANDIDATES; i++) {
        size_t bytes = 0;
        if (found[i].status != 0 || found[i].determinism != PEN_CUDNN_DETERMINISTIC) continue;
        const unsigned math = cudnn_allowed_math(args->precision, found[i].math);
        status = cudnn->functions->conv_set_math(cudnn->conv, math);
        if (status == 0) status = cudnn_measure(cudnn, args->what, found[i].algorithm, &bytes);
        if (status != 0 && !cudnn_is_refusal(status)) return status;
        if (status != 0 || bytes > cudnn->workspace_bytes) continue;
        out_choice->algorithm = found[i].algorithm;
        out_choice->math = math;
        return 0;
    }
    return PEN_CUDNN_NOT_SUPPORTED;
}

static void *cudnn_place(pen_cuda_address address) {
    return (void *)(uintptr_t)address;
}

static pen_cudnn_status cudnn_enqueue(const pen_cudnn *c, const struct cuda_conv_args *args,
                                      unsigned algorithm) {
    const pen_cudnn_functions *f = c->functions;
    const float alpha = 1, beta = args->adds ? 1.0f : 0.0f;
    const void *const left = cudnn_place(args->left), *const right = cudnn_place(args->right);
    void *const y = cudnn_place(args->y), *const workspace = cudnn_place(c->workspace);
    const size_t bytes = c->workspace_bytes;
    return args->what == PEN_CUDA_CONV
               ? f->convolve(c->handle, &alpha, c->x, right, c->w, left, c->conv, algorithm,
                             workspace, bytes, &beta, c->y, y)
           : cudnn_is_input(args)
               ? f->convolve_input(c->handle, &alpha, c->w, left, c->y, right, c->conv, algorithm,
                                   workspace, bytes, &beta, c->x, y)
               : f->convolve_weight(c->handle, &alpha, c->x, right, c->y, left, c->conv, algorithm,
                                    workspace, bytes, &beta, c->w, y);
}

// The library's search is the host's work: it is done once for a shape, before any launch, so that
// a launch takes no longer in one run than in the next.
pen_status pen_cudnn_prepare(pen_cudnn *cudnn, const struct cuda_conv_args *args) {
    pen_cudnn_choice found = {.shape = cudnn_shape(args)}, *choice;
    if (!pen_cudnn_is_expressible(args) || cudnn_recall(cudnn, args) != NULL) return PEN_OK;
    pen_cudnn_status status = cudnn_describe(cudnn, args);
    if (status == 0) status = cudnn_choose(cudnn, args, &found);
    found.is_refused = cudnn_is_refusal(status);
    if (status != 0 && !found.is_refused) return PEN_OK; // told when it is launched
    PEN_TRY(PEN_NEW(cudnn->arena, 1, &choice));
    *choice = found;
    choice->next = cudnn->choices;
    cudnn->choices = choice;
    return PEN_OK;
}

pen_status pen_cudnn_convolve(const pen_cudnn *cudnn, const struct cuda_conv_args *args,
                              bool *out_is_done) {
    static const char *const doing = "while a convolution was enqueued";
    *out_is_done = false;
    if (!pen_cudnn_is_expressible(args)) return PEN_OK;
    const pen_cudnn_choice *recalled = cudnn_recall(cudnn, args);
    pen_cudnn_choice choice = {.is_refused = false};
    if (recalled != NULL) choice = *recalled;
    if (choice.is_refused) return PEN_OK;
    pen_cudnn_status status = cudnn_describe(cudnn, args);
    if (status == 0) {
        status = recalled == NULL ? cudnn_choose(cudnn, args, &choice)
                                  : cudnn->functions->conv_set_math(cudnn->conv, choice.math);
    }
    if (status == 0) status = cudnn_enqueue(cudnn, args, choice.algorithm);
    *out_is_done = status == 0;
    return cudnn_is_refusal(status) ? PEN_OK : cudnn_check(cudnn, status, doing);
}
