#include "device/cuda/cuda_libraries.h"

#include <string.h>

#include "base/text.h"

uint64_t pen_cuda_libraries_bytes(pen_libraries wanted) {
    return wanted == PEN_LIBRARIES_NONE ? 0 : PEN_CUBLAS_WORKSPACE_BYTES;
}

static pen_status libraries_take_workspace(pen_cuda_libraries *libraries) {
    pen_cuda_memory *memory = libraries->memory;
    PEN_TRY(pen_memory_budget_check(&memory->budget, PEN_CUBLAS_WORKSPACE_BYTES));
    PEN_TRY(pen_cuda_check(
        memory, memory->driver->allocate(&libraries->workspace, PEN_CUBLAS_WORKSPACE_BYTES),
        "while memory was taken for cuBLAS and cuDNN"));
    memory->budget.bytes_in_use += PEN_CUBLAS_WORKSPACE_BYTES;
    return PEN_OK;
}

// What comes of a library that was not opened: an error where the job requires it. Else own kernels
// do its work. That it is not there, doctor tells; that it is there and does not begin, the user is
// told, since nobody would look for that.
static pen_status libraries_judge(pen_cuda_libraries *libraries, pen_status opened,
                                  const char *library, const char *work, pen_arena *arena) {
    if (opened == PEN_OK) return PEN_OK;
    const bool is_found = pen_status_get_code(opened) != PEN_UNSUPPORTED;
    if (libraries->wanted == PEN_LIBRARIES_REQUIRED) {
        const pen_status told = pen_error(pen_status_get_code(opened),
                                          "%s; `numerics: {libraries: auto}` goes on without %s",
                                          pen_status_message(opened), library);
        pen_status_ignore(opened, "told with what to do");
        return told;
    }
    pen_status status = PEN_OK;
    if (is_found) {
        status = pen_arena_format(arena, &libraries->lacks, "%s%s%s; own kernels make %s",
                                  libraries->lacks == NULL ? "" : libraries->lacks,
                                  libraries->lacks == NULL ? "" : "\n", pen_status_message(opened),
                                  work);
    }
    pen_status_ignore(opened, "own kernels do it");
    return status;
}

pen_status pen_cuda_libraries_open(pen_cuda_memory *memory, pen_libraries wanted, pen_arena *arena,
                                   pen_cuda_libraries *libraries) {
    pen_cuda_gpu gpu;
    *libraries = (pen_cuda_libraries){.wanted = wanted, .memory = memory};
    if (wanted == PEN_LIBRARIES_NONE) return PEN_OK;
    PEN_TRY(pen_cuda_gpu_describe((uint32_t)memory->gpu, &gpu));
    PEN_TRY(libraries_take_workspace(libraries));
    const pen_cuda_address workspace = libraries->workspace;
    PEN_TRY(libraries_judge(libraries, pen_cublas_open(memory, &gpu, workspace, &libraries->cublas),
                            "cuBLAS", "matrix products", arena));
    return libraries_judge(
        libraries,
        pen_cudnn_open(memory, &gpu, (pen_cudnn_room){workspace, PEN_CUBLAS_WORKSPACE_BYTES, arena},
                       &libraries->cudnn),
        "cuDNN", "convolutions", arena);
}

// What the driver says is not heard.
void pen_cuda_libraries_close(pen_cuda_libraries *libraries) {
    pen_cudnn_close(&libraries->cudnn);
    pen_cublas_close(&libraries->cublas);
    if (libraries->workspace != 0) (void)libraries->memory->driver->free(libraries->workspace);
    libraries->workspace = 0;
}

pen_status pen_cuda_libraries_name(const pen_cuda_libraries *libraries, pen_arena *arena,
                                   const char **out_text) {
    const int *blas = libraries->cublas.version.numbers, *dnn = libraries->cudnn.numbers;
    pen_text text;
    pen_text_init(&text, arena);
    if (libraries->cublas.handle != NULL)
        pen_text_print(&text, ", cuBLAS %d.%d.%d", blas[0], blas[1], blas[2]);
    if (libraries->cudnn.handle != NULL)
        pen_text_print(&text, ", cuDNN %d.%d.%d", dnn[0], dnn[1], dnn[2]);
    return pen_text_finish(&text, out_text);
}

// ---- tried

static pen_status trial_note(pen_status status, pen_arena *arena, pen_cuda_trial *trial) {
    if (status == PEN_OK) return PEN_OK;
    const pen_status copied =
        pen_arena_format(arena, &trial->trouble, "%s", pen_status_message(status));
    pen_status_ignore(status, "the trial has it");
    return copied;
}

static pen_status trial_find(const pen_cuda_gpu *gpu, pen_arena *arena, pen_cuda_trial *cublas,
                             pen_cuda_trial *cudnn) {
    const pen_cublas_functions *blas;
    const pen_cudnn_functions *dnn;
    pen_cublas_version version = {{0}};
    pen_status status = pen_cublas_load(gpu, &blas, &version);
    cublas->is_found = status == PEN_OK;
    memcpy(cublas->numbers, version.numbers, sizeof cublas->numbers);
    PEN_TRY(trial_note(status, arena, cublas));
    status = pen_cudnn_load(gpu, &dnn, cudnn->numbers);
    cudnn->is_found = status == PEN_OK;
    return trial_note(status, arena, cudnn);
}

// On a GPU that is open, or was not opened, as `opened` says.
static pen_status trial_begin(pen_cuda_libraries *libraries, const pen_cuda_gpu *gpu,
                              pen_status opened, pen_arena *arena, pen_cuda_trial *trials[2]) {
    const pen_cudnn_room room = {libraries->workspace, PEN_CUBLAS_WORKSPACE_BYTES, arena};
    pen_status status = PEN_OK;
    for (uint32_t i = 0; i < 2 && status == PEN_OK; i++) {
        if (!trials[i]->is_found) continue;
        if (opened != PEN_OK) {
            status = pen_arena_format(arena, &trials[i]->trouble, "%s", pen_status_message(opened));
            continue;
        }
        const pen_status begun =
            i == 0 ? pen_cublas_open(libraries->memory, gpu, room.workspace, &libraries->cublas)
                   : pen_cudnn_open(libraries->memory, gpu, room, &libraries->cudnn);
        trials[i]->begins = begun == PEN_OK;
        status = trial_note(begun, arena, trials[i]);
    }
    pen_status_ignore(opened, "the trials have it");
    return status;
}

// A handle needs the GPU's context and a stream, but none of our kernels, whose compilation would
// take longest.
pen_status pen_cuda_libraries_try(uint32_t index, pen_arena *arena, pen_cuda_trial *out_cublas,
                                  pen_cuda_trial *out_cudnn) {
    pen_cuda_trial cublas = {.is_found = false}, cudnn = {.is_found = false};
    pen_cuda_memory memory = {.gpu = (int)index};
    pen_cuda_libraries libraries = {.wanted = PEN_LIBRARIES_AUTO, .memory = &memory};
    pen_cuda_gpu gpu;
    PEN_TRY(pen_cuda_gpu_describe(index, &gpu));
    PEN_TRY(pen_arena_format(arena, &memory.budget.device, "GPU %u", index));
    PEN_TRY(trial_find(&gpu, arena, &cublas, &cudnn));
    pen_status status = PEN_OK;
    if (cublas.is_found || cudnn.is_found) {
        pen_status opened = pen_cuda_memory_open(&memory);
        if (opened == PEN_OK) opened = libraries_take_workspace(&libraries);
        status =
            trial_begin(&libraries, &gpu, opened, arena, (pen_cuda_trial *[]){&cublas, &cudnn});
        pen_cuda_libraries_close(&libraries);
        pen_cuda_memory_close(&memory);
    }
    if (status != PEN_OK) return status;
    *out_cublas = cublas;
    *out_cudnn = cudnn;
    return PEN_OK;
}
