#include "scheduler/runtime/run/run_form.h"

#include <string.h>

#include "graph/graph.h"
#include "scheduler/runtime/run/run_data.h"
#include "scheduler/runtime/run/run_form_room.h"
#include "scheduler/runtime/run/update_order.h"

typedef struct form_device {
    pen_task *tasks; // [task_count]
    uint32_t task_count;
    uint32_t first_microbatch;   // that it runs,
    uint32_t microbatch_count;   // of those of the form; 0: none, or not known
    uint32_t *list_of_task;      // [task_count]
    uint32_t *root_of_value;     // [value_count]
    uint32_t *next_of_root;      // [value_count] the next value of the same root; PEN_ID_NONE: none
    pen_part_buffers_request at; // for positions
} form_device;

typedef struct form_builder {
    const pen_run_form_request *request;
    pen_arena *arena;
    form_device *devices;      // [device_count]
    pen_part_buffers *buffers; // [device_count]
    uint32_t **planned;        // [device_count] copies as the buffers' plan has them
    uint32_t *extra;           // [channel_count] places more than that
    pen_run_channel *channels; // [channel_count]
    uint32_t *leaving;         // [channel_count] list of the source that a frame leaves with
    bool **reads;              // [device_count][list_count * channel_count]: list reads channel
    pen_run_device *places;    // [device_count]
    pen_run_task *tasks;
    uint32_t task_count;
    uint32_t *refs;
    uint32_t ref_count;
    uint32_t ref_limit;
} form_builder;

// ---- the tasks of each device

static uint32_t form_find_list(const pen_part *part, const pen_task *task) {
    for (uint32_t l = 0; l < part->list_count; l++) {
        const pen_part_list *list = &part->lists[l];
        if (list->kind != task->kind || list->stage != task->stage) continue;
        if (task->kind == PEN_TASK_UPDATE && list->phase != task->microbatch) continue;
        return l;
    }
    return PEN_RUN_LIST_NONE;
}

static void form_add_task(form_device *device, pen_task task, uint32_t list) {
    device->list_of_task[device->task_count] = list;
    device->tasks[device->task_count++] = task;
}

// Updates behind the schedule's: those of phases that it does not know, in order of phase.
static void form_add_updates(const pen_part *part, form_device *device, const bool *is_there,
                             uint32_t phase_count) {
    for (uint32_t phase = 0; phase < phase_count; phase++) {
        for (uint32_t l = 0; l < part->list_count; l++) {
            const pen_part_list *list = &part->lists[l];
            if (list->kind != PEN_TASK_UPDATE || list->phase != phase || is_there[l]) continue;
            form_add_task(device, (pen_task){PEN_TASK_UPDATE, list->stage, phase}, l);
        }
    }
}

// A device runs microbatches of one replica.
static void form_note_microbatch(form_device *device, uint32_t microbatch) {
    const uint32_t first = device->first_microbatch;
    const uint32_t end = first + device->microbatch_count;
    if (device->microbatch_count == 0) {
        device->first_microbatch = microbatch;
        device->microbatch_count = 1;
    } else if (microbatch < first) {
        device->first_microbatch = microbatch;
        device->microbatch_count = end - microbatch;
    } else if (microbatch >= end) {
        device->microbatch_count = microbatch - first + 1;
    }
}

// The schedule's tasks, without those of microbatches that there are none of and those that have
// nothing to do.
static pen_status form_collect_tasks(form_builder *b, uint32_t d) {
    const pen_run_form_request *request = b->request;
    const pen_schedule *schedule = request->schedule;
    const pen_part *part = &request->cut->parts[d];
    const uint32_t first = schedule->first_task[d], end = schedule->first_task[d + 1];
    form_device *device = &b->devices[d];
    bool *is_there;
    PEN_TRY(PEN_NEW(b->arena, part->list_count, &is_there));
    PEN_TRY(PEN_NEW(b->arena, (size_t)(end - first) + part->list_count, &device->tasks));
    PEN_TRY(PEN_NEW(b->arena, (size_t)(end - first) + part->list_count, &device->list_of_task));
    for (uint32_t t = first; t < end; t++) {
        pen_task task = schedule->tasks[t];
        const bool is_update = task.kind == PEN_TASK_UPDATE;
        if (!is_update) task.microbatch -= request->first_microbatch; // below it: very large
        if (!is_update && task.microbatch >= request->microbatch_count) continue;
        const uint32_t list = form_find_list(part, &task);
        if (list == PEN_RUN_LIST_NONE) continue;
        is_there[list] = true;
        if (!is_update) form_note_microbatch(device, task.microbatch);
        form_add_task(device, task, list);
    }
    form_add_updates(part, device, is_there, request->cut->phase_count);
    return PEN_OK;
}

static pen_update_order form_update_order(const form_builder *b, uint32_t d) {
    return (pen_update_order){.part = &b->request->cut->parts[d],
                              .task_count = b->devices[d].task_count,
                              .tasks = b->devices[d].tasks,
                              .list_of_task = b->devices[d].list_of_task};
}

// Updates run where the schedule has them, unless values that stages have in common forbid it on
// any device, or they wait for all gradients of the step, which are told of: then last on all, in
// which order nothing waits for ever.
static pen_status form_order_updates(form_builder *b, bool are_last) {
    const uint32_t device_count = b->request->cut->device_count;
    for (uint32_t d = 0; d < device_count && !are_last; d++) {
        const pen_update_order order = form_update_order(b, d);
        bool is_safe;
        PEN_TRY(pen_update_order_check(&order, b->arena, &is_safe));
        are_last = !is_safe;
    }
    for (uint32_t d = 0; d < device_count && are_last; d++) {
        const pen_update_order order = form_update_order(b, d);
        PEN_TRY(pen_update_order_put_last(&order, b->arena));
    }
    return PEN_OK;
}

// How many places values need, by the order of the tasks.
static pen_status form_plan_buffers(form_builder *b, uint32_t d) {
    const pen_run_form_request *request = b->request;
    const pen_part *part = &request->cut->parts[d];
    form_device *device = &b->devices[d];
    device->at = (pen_part_buffers_request){.cut = request->cut,
                                            .device = d,
                                            .tasks = device->tasks,
                                            .task_count = device->task_count,
                                            .first_microbatch = device->first_microbatch,
                                            .microbatch_count = device->microbatch_count};
    PEN_TRY(pen_part_buffers_plan(&device->at, b->arena, &b->buffers[d]));
    const uint32_t value_count = pen_graph_value_count(part->graph);
    PEN_TRY(PEN_NEW(b->arena, value_count, &b->planned[d]));
    if (value_count > 0) {
        memcpy(b->planned[d], b->buffers[d].copies, value_count * sizeof *b->planned[d]);
    }
    return PEN_OK;
}

// ---- channels

static bool form_is_shared(const form_builder *b, const pen_channel *channel) {
    if (channel->source == PEN_CHANNEL_HOST) return false;
    const uint32_t *workers = b->request->worker_of_device;
    return workers[channel->source] == workers[channel->target];
}

// Chains each value behind its root.
static pen_status form_find_roots(form_builder *b, uint32_t d) {
    const pen_graph *graph = b->request->cut->parts[d].graph;
    const uint32_t value_count = pen_graph_value_count(graph);
    form_device *device = &b->devices[d];
    PEN_TRY(PEN_NEW(b->arena, value_count, &device->root_of_value));
    PEN_TRY(PEN_NEW(b->arena, value_count, &device->next_of_root));
    for (uint32_t v = 0; v < value_count; v++) {
        device->root_of_value[v] = pen_part_value_root(graph, (pen_value_id){v}).index;
        device->next_of_root[v] = PEN_ID_NONE;
    }
    for (uint32_t v = 0; v < value_count; v++) {
        const uint32_t root = device->root_of_value[v];
        if (root == v) continue;
        device->next_of_root[v] = device->next_of_root[root];
        device->next_of_root[root] = v;
    }
    return PEN_OK;
}

// Views of a value follow it.
static void form_set_copies(form_builder *b, uint32_t d, pen_value_id value, uint32_t copies) {
    const form_device *device = &b->devices[d];
    uint32_t v = device->root_of_value[value.index];
    for (; v != PEN_ID_NONE; v = device->next_of_root[v]) {
        b->buffers[d].copies[v] = copies;
    }
}

static uint32_t form_copies(const form_builder *b, uint32_t device, pen_value_id value) {
    const uint32_t copies = b->buffers[device].copies[value.index];
    return copies == 0 ? 1 : copies; // persistent values are one place
}

// The maker's places serve all readers in its process: as many as any of them needs.
static void form_share(form_builder *b, const pen_channel *channel) {
    if (b->buffers[channel->source].copies[channel->from.index] == 0) return;
    const uint32_t needed = form_copies(b, channel->target, channel->to);
    if (needed <= form_copies(b, channel->source, channel->from)) return;
    form_set_copies(b, channel->source, channel->from, needed);
}

// Places at both ends. Between devices of one process the reader uses the maker's places, so both
// have as many.
static void form_set_channel(form_builder *b, uint32_t c) {
    const pen_run_form_request *request = b->request;
    const pen_channel *channel = &request->cut->channels[c];
    const bool is_host = channel->source == PEN_CHANNEL_HOST;
    const bool is_read =
        request->field_of_channel != NULL && request->field_of_channel[c] != PEN_RUN_FIELD_NONE;
    pen_run_channel *run = &b->channels[c];
    *run = (pen_run_channel){
        .source_worker = is_read   ? request->worker_of_device[channel->target]
                         : is_host ? 0
                                   : request->worker_of_device[channel->source],
        .target_worker = request->worker_of_device[channel->target],
        .source_device = channel->source,
        .target_device = channel->target,
        .is_per_step = channel->is_per_step,
        .is_shared = form_is_shared(b, channel),
        .bytes = request->value_bytes(request->value_bytes_context,
                                      request->cut->parts[channel->target].graph, channel->to)};
    if (!channel->is_per_step) {
        run->first_microbatch = b->devices[channel->target].first_microbatch;
        run->microbatch_count = b->devices[channel->target].microbatch_count;
    }
    const bool has_copies = !is_host && b->buffers[channel->source].copies[channel->from.index] > 0;
    if (run->is_shared && has_copies) {
        form_set_copies(b, channel->target, channel->to,
                        form_copies(b, channel->source, channel->from));
    }
    run->capacity = form_copies(b, channel->target, channel->to);
    run->copies = has_copies ? form_copies(b, channel->source, channel->from) : 1;
    // the coordinator's batch has all microbatches; what persists is the same in every place
    if (is_host || (run->is_shared && !has_copies)) run->copies = run->capacity;
}

// Copies as planned, and those that frames need besides.
static void form_reset_copies(form_builder *b) {
    const pen_cut *cut = b->request->cut;
    for (uint32_t d = 0; d < cut->device_count; d++) {
        const uint32_t value_count = pen_graph_value_count(cut->parts[d].graph);
        for (uint32_t v = 0; v < value_count; v++) {
            b->buffers[d].copies[v] = b->planned[d][v];
        }
    }
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        if (b->extra[c] == 0) continue;
        form_set_copies(b, channel->target, channel->to,
                        form_copies(b, channel->target, channel->to) + b->extra[c]);
    }
}

static void form_set_channels(form_builder *b) {
    const pen_cut *cut = b->request->cut;
    form_reset_copies(b);
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        if (form_is_shared(b, &cut->channels[c])) form_share(b, &cut->channels[c]);
    }
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        form_set_channel(b, c);
    }
}

// ---- who makes and reads which channel

static uint32_t form_find_maker(const pen_part *part, pen_value_id value) {
    const pen_node_id maker = pen_graph_value(part->graph, value)->producer;
    for (uint32_t l = 0; l < part->list_count; l++) {
        for (uint32_t p = part->lists[l].first; p < part->lists[l].end; p++) {
            if (part->order[p].index == maker.index) return l;
        }
    }
    return PEN_RUN_LIST_NONE;
}

// A view is there as soon as what it looks at is made, and its place is taken from then on, though
// the task that the view is of comes later.
static pen_status form_find_leaving(form_builder *b) {
    const pen_cut *cut = b->request->cut;
    PEN_TRY(PEN_NEW(b->arena, cut->channel_count, &b->leaving));
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        b->leaving[c] = channel->source_list;
        if (channel->source == PEN_CHANNEL_HOST || channel->is_per_step) continue;
        const pen_part *part = &cut->parts[channel->source];
        const pen_value_id root = pen_part_value_root(part->graph, channel->from);
        if (root.index == channel->from.index) continue;
        const uint32_t maker = form_find_maker(part, root);
        if (maker != PEN_RUN_LIST_NONE) b->leaving[c] = maker;
    }
    return PEN_OK;
}

// Which list reads which channel, also through views: a place is free when the last of them is
// done.
static pen_status form_find_reads(form_builder *b, uint32_t d) {
    const pen_cut *cut = b->request->cut;
    const pen_part *part = &cut->parts[d];
    uint32_t *channel_of;
    PEN_TRY(PEN_NEW(b->arena, pen_graph_value_count(part->graph), &channel_of));
    PEN_TRY(PEN_NEW(b->arena, (size_t)part->list_count * cut->channel_count, &b->reads[d]));
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        if (cut->channels[c].target == d) channel_of[cut->channels[c].to.index] = c + 1;
    }
    for (uint32_t l = 0; l < part->list_count; l++) {
        for (uint32_t p = part->lists[l].first; p < part->lists[l].end; p++) {
            const pen_node *node = pen_graph_node(part->graph, part->order[p]);
            for (uint32_t i = 0; i < node->input_count; i++) {
                if (!pen_value_is(node->inputs[i])) continue;
                const uint32_t root = pen_part_value_root(part->graph, node->inputs[i]).index;
                if (channel_of[root] == 0) continue;
                b->reads[d][(size_t)l * cut->channel_count + channel_of[root] - 1] = true;
            }
        }
    }
    return PEN_OK;
}

static bool form_reads(const form_builder *b, uint32_t d, uint32_t list, uint32_t channel) {
    return b->reads[d][(size_t)list * b->request->cut->channel_count + channel];
}

// Whether task `t` of the device is the last that reads the channel's frame of its microbatch.
static bool form_is_last_reader(const form_builder *b, uint32_t d, uint32_t t, uint32_t channel) {
    const form_device *device = &b->devices[d];
    const bool is_update = device->tasks[t].kind == PEN_TASK_UPDATE;
    for (uint32_t l = 0; l < b->request->cut->parts[d].list_count; l++) {
        if (!form_reads(b, d, l, channel)) continue;
        const uint32_t microbatch = is_update ? 0 : device->tasks[t].microbatch;
        const uint32_t position = pen_part_task_position(&device->at, l, microbatch);
        if (position != PEN_ID_NONE && position > t) return false;
    }
    return true;
}

// ---- tasks with what they wait for

static pen_status form_add_ref(form_builder *b, uint32_t channel) {
    if (b->ref_count == b->ref_limit) {
        uint32_t *grown;
        const uint32_t limit = b->ref_limit == 0 ? 256 : b->ref_limit * 2;
        PEN_TRY(PEN_NEW(b->arena, limit, &grown));
        if (b->ref_count > 0) memcpy(grown, b->refs, b->ref_count * sizeof *grown);
        b->refs = grown;
        b->ref_limit = limit;
    }
    b->refs[b->ref_count++] = channel;
    return PEN_OK;
}

static bool form_makes_kept(const pen_part *part, uint32_t list) {
    for (uint32_t p = part->lists[list].first; p < part->lists[list].end; p++) {
        for (uint32_t k = 0; k < part->kept_count; k++) {
            const pen_node_id maker = pen_graph_value(part->graph, part->kept[k])->producer;
            if (maker.index == part->order[p].index) return true;
        }
    }
    return false;
}

// A task waits for its receives, then runs, sends, and releases what no later task of its
// microbatch reads.
static pen_status form_write_task(form_builder *b, uint32_t d, uint32_t t) {
    const pen_cut *cut = b->request->cut;
    const uint32_t list = b->devices[d].list_of_task[t];
    pen_run_task run = {.task = b->devices[d].tasks[t], .list = list};
    run.makes_loss = run.task.kind == PEN_TASK_FORWARD && form_makes_kept(&cut->parts[d], list);
    run.makes_gradient = b->request->tells_gradients && (run.task.kind == PEN_TASK_BACKWARD ||
                                                         run.task.kind == PEN_TASK_BACKWARD_WEIGHT);
    run.receive_first = b->ref_count;
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        if (cut->channels[c].target != d || !form_reads(b, d, list, c)) continue;
        PEN_TRY(form_add_ref(b, c));
    }
    run.receive_end = run.send_first = b->ref_count;
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        if (cut->channels[c].source != d || b->leaving[c] != list) continue;
        PEN_TRY(form_add_ref(b, c));
    }
    run.send_end = run.release_first = b->ref_count;
    for (uint32_t i = run.receive_first; i < run.receive_end; i++) {
        const uint32_t channel = b->refs[i];
        if (form_is_last_reader(b, d, t, channel)) PEN_TRY(form_add_ref(b, channel));
    }
    run.release_end = b->ref_count;
    b->tasks[b->task_count++] = run;
    return PEN_OK;
}

static pen_status form_build_tasks(form_builder *b) {
    const uint32_t device_count = b->request->cut->device_count;
    size_t total = 0;
    for (uint32_t d = 0; d < device_count; d++) {
        total += b->devices[d].task_count;
        PEN_TRY(form_find_reads(b, d));
    }
    PEN_TRY(PEN_NEW(b->arena, total, &b->tasks));
    for (uint32_t d = 0; d < device_count; d++) {
        b->places[d] = (pen_run_device){.worker = b->request->worker_of_device[d],
                                        .task_first = b->task_count};
        for (uint32_t t = 0; t < b->devices[d].task_count; t++) {
            PEN_TRY(form_write_task(b, d, t));
        }
        b->places[d].task_end = b->task_count;
    }
    return PEN_OK;
}

// Gives frames more places until nothing gets stuck. A schedule with updates last does not, with a
// place for every microbatch. *out_is_stuck: this one does.
static pen_status form_make_room(form_builder *b, const pen_run_form *form, bool *out_is_stuck) {
    const uint32_t device_count = b->request->cut->device_count;
    bool *is_blocked;
    PEN_TRY(PEN_NEW(b->arena, form->channel_count, &is_blocked));
    for (;;) {
        PEN_TRY(pen_run_form_find_blocked(form, device_count, b->arena, is_blocked, out_is_stuck));
        if (!*out_is_stuck) return PEN_OK;
        bool has_grown = false;
        for (uint32_t c = 0; c < form->channel_count; c++) {
            if (!is_blocked[c] || form->channels[c].capacity >= form->microbatch_count) continue;
            b->extra[c]++;
            has_grown = true;
        }
        if (!has_grown) return PEN_OK;
        form_set_channels(b);
    }
}

// Tasks in the schedule's order, channels with their places, and then more room where the order
// would block itself.
static pen_status form_build(const pen_run_form_request *request, bool updates_last,
                             pen_arena *arena, pen_run_form_built *out_built, bool *out_is_stuck) {
    const uint32_t device_count = request->cut->device_count;
    form_builder b = {.request = request, .arena = arena};
    PEN_TRY(PEN_NEW(arena, device_count, &b.devices));
    PEN_TRY(PEN_NEW(arena, device_count, &b.buffers));
    PEN_TRY(PEN_NEW(arena, device_count, &b.reads));
    PEN_TRY(PEN_NEW(arena, device_count, &b.places));
    PEN_TRY(PEN_NEW(arena, device_count, &b.planned));
    PEN_TRY(PEN_NEW(arena, request->cut->channel_count, &b.extra));
    PEN_TRY(PEN_NEW(arena, request->cut->channel_count, &b.channels));
    for (uint32_t d = 0; d < device_count; d++) {
        PEN_TRY(form_collect_tasks(&b, d));
    }
    PEN_TRY(form_order_updates(&b, updates_last || request->tells_gradients));
    for (uint32_t d = 0; d < device_count; d++) {
        PEN_TRY(form_plan_buffers(&b, d));
        PEN_TRY(form_find_roots(&b, d));
    }
    PEN_TRY(form_find_leaving(&b));
    form_set_channels(&b);
    PEN_TRY(form_build_tasks(&b));
    const pen_run_form form = {.microbatch_count = request->microbatch_count,
                               .trains = request->trains,
                               .skips = request->skips,
                               .microbatch_size = request->microbatch_size,
                               .channel_count = request->cut->channel_count,
                               .channels = b.channels,
                               .task_count = b.task_count,
                               .tasks = b.tasks,
                               .ref_count = b.ref_count,
                               .refs = b.refs,
                               .devices = b.places};
    PEN_TRY(form_make_room(&b, &form, out_is_stuck));
    *out_built = (pen_run_form_built){.form = form, .buffers = b.buffers};
    return PEN_OK;
}

// A plan says what its stages exchange; where that is less than their nodes do, updates among other
// tasks may wait for each other.
pen_status pen_run_form_build(const pen_run_form_request *request, pen_arena *arena,
                              pen_run_form_built *out_built) {
    bool is_stuck = true;
    for (int updates_last = 0; updates_last < 2 && is_stuck; updates_last++) {
        PEN_TRY(form_build(request, updates_last == 1, arena, out_built, &is_stuck));
    }
    if (!is_stuck) return PEN_OK;
    return pen_error(PEN_INTERNAL, "the schedule waits for itself, whatever the places");
}
