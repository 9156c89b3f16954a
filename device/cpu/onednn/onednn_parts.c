#include "device/cpu/onednn/onednn_parts.h"

#include <string.h>

#include "device/cpu/one_thread.h"

#define PARTS_SUM_BLOCK 1024 // elements, which stay in the first cache
// Below this many elements adding results is not worth a team.
#define PARTS_TEAM_ELEMENTS 16384

pen_onednn_split pen_onednn_split_into(int64_t extent, int64_t most, int64_t least,
                                       bool by_channels) {
    int64_t step = (extent + most - 1) / most;
    step = (step + least - 1) / least * least;
    return (pen_onednn_split){by_channels, extent, step, (uint32_t)((extent + step - 1) / step)};
}

static char *parts_own(const pen_onednn_parts *parts, const pen_cpu_call *call, uint32_t part) {
    return (char *)call->workspace + part * parts->part_workspace + parts->own_offset;
}

// The part's channels of every image, one behind the other.
static void parts_copy_slice(const pen_onednn_parts *parts, const pen_onednn_part *part,
                             const void *input, char *slice) {
    const char *from = (const char *)input + part->inputs[parts->sliced_input];
    for (int64_t i = 0; i < parts->image_count; i++) {
        memcpy(slice + (uint64_t)i * part->slice_bytes, from + (uint64_t)i * parts->image_bytes,
               part->slice_bytes);
    }
}

// Into the output, or into sums of its own that are added later.
static pen_status parts_run_one(const pen_onednn_parts *parts, const pen_cpu_call *call,
                                uint32_t index) {
    const pen_onednn_part *part = &parts->parts[index];
    void *inputs[PEN_ONEDNN_PART_INPUTS] = {NULL};
    for (uint32_t i = 0; i < parts->input_count; i++) {
        if (call->inputs[i] != NULL) inputs[i] = (char *)call->inputs[i] + part->inputs[i];
    }
    char *own = parts_own(parts, call, index);
    if (parts->sliced_input >= 0) {
        parts_copy_slice(parts, part, call->inputs[parts->sliced_input], own);
        inputs[parts->sliced_input] = own;
    }
    void *output = (char *)call->outputs[0] + part->output;
    if (parts->sum_count > 0) output = own;
    pen_cpu_call own_call = *call;
    own_call.state = part->operation;
    own_call.inputs = inputs;
    own_call.outputs = &output;
    own_call.workspace = (char *)call->workspace + index * parts->part_workspace;
    own_call.accumulate = call->accumulate && parts->sum_count == 0;
    return pen_onednn_operation_run(&own_call);
}

// `count` sums from `first` on.
static void parts_sum_block(const pen_onednn_parts *parts, const pen_cpu_call *call, int64_t first,
                            int64_t count) {
    float *const sums = (float *)call->outputs[0] + first;
    float block[PARTS_SUM_BLOCK];
    memcpy(block, (const float *)(const void *)parts_own(parts, call, 0) + first,
           (size_t)count * sizeof *block);
    for (uint32_t p = 1; p < parts->count; p++) {
        const float *own = (const float *)(const void *)parts_own(parts, call, p) + first;
        for (int64_t i = 0; i < count; i++) {
            block[i] += own[i];
        }
    }
    for (int64_t i = 0; i < count; i++) {
        sums[i] = call->accumulate ? sums[i] + block[i] : block[i];
    }
}

// The results of all parts, added in their order.
static void parts_sum(const pen_onednn_parts *parts, const pen_cpu_call *call) {
    const int64_t count = parts->sum_count;
#pragma omp parallel for schedule(static) if (count > PARTS_TEAM_ELEMENTS)
    for (int64_t first = 0; first < count; first += PARTS_SUM_BLOCK) {
        const int64_t left = count - first;
        parts_sum_block(parts, call, first, left < PARTS_SUM_BLOCK ? left : PARTS_SUM_BLOCK);
    }
}

pen_status pen_onednn_parts_run(const pen_cpu_call *call) {
    const pen_onednn_parts *parts = call->state;
    pen_status first = PEN_OK;
    if (parts->count == 1) {
        const int team = pen_one_thread_begin();
        first = parts_run_one(parts, call, 0);
        pen_one_thread_end(team);
    } else {
#pragma omp parallel for schedule(static)
        for (uint32_t p = 0; p < parts->count; p++) {
            const pen_status status = parts_run_one(parts, call, p);
            if (status == PEN_OK) continue;
#pragma omp critical(onednn_parts_status)
            first = pen_status_join(first, status);
        }
    }
    if (first == PEN_OK && parts->sum_count > 0) parts_sum(parts, call);
    return first;
}

void pen_onednn_parts_release(void *state) {
    pen_onednn_parts *parts = state;
    for (uint32_t p = 0; parts != NULL && p < parts->count; p++) {
        pen_onednn_operation_release(parts->parts[p].operation);
    }
}
