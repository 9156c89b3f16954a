// Interleaved 1F1B, for devices that hold several stages (Narayanan et al., "Efficient large-scale
// language model training on GPU clusters using Megatron-LM", SC 2021): microbatches go through in
// groups of as many as there are devices. A device takes a group through its first stage, then
// through its second, and so on, backward in the reverse order of stages; after a warm-up it turns
// by turns runs a forward and a backward task.
//
// Generalised to stages of any cost and shape: the order is one of priority among the tasks that
// are ready, and the warm-up counts by the distance of stages. A device of v stages with a backward
// pass, of which the last is followed by at most n on a way over gradients, holds at most
//
//   (v - 1) · group + 2 n + 1
//
// microbatches of its stages together between forward and backward: Megatron's warm-up, (v - 1) p +
// 2 (p - 1 - rank), and the one that is worked on. With one stage on each device this is 1F1B.
//
// A uniform chain of p·v stages, stage i on device i mod p, takes m (f + b) + (p - 1)(f + b) / v
// for m microbatches, a multiple of p; f and b are what a device takes for all its stages.

#include "scheduler/schedule/stage_windows.h"

// The stages on the longest way over gradients behind each stage.
static void interleaved_distances(const pen_stage_index *index, uint32_t *out_distance) {
    const pen_stage_graph *graph = index->graph;
    for (uint32_t s = graph->stage_count; s-- > 0;) {
        out_distance[s] = 0;
        for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
            const pen_stage_edge *edge = &graph->edges[index->out_edges[i]];
            if (!edge->has_gradient) continue;
            if (out_distance[edge->target] + 1 > out_distance[s]) {
                out_distance[s] = out_distance[edge->target] + 1;
            }
        }
    }
}

// How many stages with a backward pass a device has, and the last of them.
static uint32_t interleaved_count(const pen_stage_index *index, uint32_t device,
                                  uint32_t *out_last) {
    uint32_t count = 0;
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        if (!index->has_backward[s]) continue;
        *out_last = s;
        count += 1;
    }
    return count;
}

// Devices with a backward pass: the group. Returns whether any has several stages.
static bool interleaved_group(const pen_stage_index *index, uint32_t *out_group) {
    bool has_several = false;
    uint32_t last = 0;
    *out_group = 0;
    for (uint32_t d = 0; d < index->graph->device_count; d++) {
        const uint32_t count = interleaved_count(index, d, &last);
        if (count > 0) *out_group += 1;
        if (count > 1) has_several = true;
    }
    return has_several;
}

static void interleaved_set_keys(const pen_stage_graph *graph, uint32_t group, pen_list_key *keys) {
    const double stage_count = graph->stage_count;
    const double kinds = (graph->microbatch_count + (double)group) * stage_count; // above all keys
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        pen_list_key *forward = &keys[(size_t)PEN_LIST_FORWARD * graph->stage_count + s];
        pen_list_key *backward = &keys[(size_t)PEN_LIST_INPUT * graph->stage_count + s];
        *forward = (pen_list_key){(double)s * group, stage_count * group, 1};
        *backward = (pen_list_key){kinds + (stage_count - 1 - s) * group, stage_count * group, 1};
    }
}

// Where stages are not dealt out to devices in turn, there are no groups to interleave: then it is
// 1F1B.
static pen_status interleaved_generate(const pen_stage_graph *graph, pen_arena *arena,
                                       const pen_schedule **out_schedule) {
    pen_list_scheduling options = {0};
    const pen_stage_index *index;
    pen_stage_windows windows;
    uint32_t *distance, *device_window;
    pen_list_key *keys;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    PEN_TRY(pen_stage_windows_new(index, arena, &windows));
    if (!interleaved_group(index, &options.group)) {
        return pen_stage_windows_schedule(index, &(pen_list_scheduling){0}, &windows, arena,
                                          out_schedule);
    }
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &distance));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &device_window));
    PEN_TRY(PEN_NEW(arena, (size_t)PEN_LIST_KIND_COUNT * graph->stage_count, &keys));
    interleaved_distances(index, distance);
    interleaved_set_keys(graph, options.group, keys);
    for (uint32_t d = 0; d < graph->device_count; d++) {
        uint32_t last = 0;
        const uint32_t count = interleaved_count(index, d, &last);
        if (count > 0) device_window[d] = (count - 1) * options.group + 2 * distance[last] + 1;
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        windows.window[s] = pen_stage_microbatches(graph, &graph->stages[s]);
        windows.hold[s] = windows.window[s];
    }
    options.keys = keys;
    options.device_window = device_window;
    return pen_stage_windows_schedule(index, &options, &windows, arena, out_schedule);
}

const pen_schedule_generator pen_schedule_interleaved = {
    .name = "interleaved",
    .summary = "1f1b in groups of microbatches, for several stages on a device",
    .generate = interleaved_generate,
};
