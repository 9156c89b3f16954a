// Runs forms without computing: every place remembers which microbatch of which round was written
// there last, and every read is compared with what ought to be there.
#include "scheduler/runtime/run/run_form.h"

#include <math.h>

#include "base/system/file.h"
#include "graph/analysis/forward_owner.h"
#include "graph/op.h"
#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/runtime/run/run_spec_wire.h"
#include "tests/support/check.h"
#include "tests/support/cut_models.h"
#include "tests/support/random_case.h"

#define STAGES 8
#define DEVICES 5
#define PLACES 64

typedef struct form_case {
    pen_arena *arena;
    random_case dice;
    cut_model model;
    uint32_t stage_count;
    uint32_t device_count;
    uint32_t microbatch_count;
    uint32_t device_of_stage[STAGES];
    uint32_t worker_of_device[DEVICES];
    uint32_t *stage_of_node;
    const pen_schedule *schedule;
    const pen_cut *cut;
    pen_run_form_built built;
} form_case;

// Stages at random, but none before what its nodes are made from.
static void case_place(form_case *c) {
    const pen_graph *graph = c->model.graph;
    const pen_forward_owners *owners;
    CHECK_OK(pen_forward_owners_build(graph, c->arena, &owners));
    const uint32_t node_count = pen_graph_node_count(graph);
    CHECK_OK(PEN_NEW(c->arena, node_count, &c->stage_of_node));
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->role != PEN_ROLE_FORWARD) continue;
        uint32_t lowest = 0;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id maker = pen_graph_value(graph, node->inputs[i])->producer;
            if (!pen_node_is(maker)) continue;
            if (c->stage_of_node[maker.index] > lowest) lowest = c->stage_of_node[maker.index];
        }
        c->stage_of_node[n] = random_chance(&c->dice, 30)
                                  ? (uint32_t)random_between(&c->dice, lowest, c->stage_count - 1)
                                  : lowest;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        if (pen_graph_node(graph, (pen_node_id){n})->role == PEN_ROLE_FORWARD) continue;
        c->stage_of_node[n] = c->stage_of_node[owners->home[n]];
    }
}

static pen_stage_edge *case_edge(pen_stage_edge *edges, uint32_t *count, uint32_t source,
                                 uint32_t target) {
    for (uint32_t e = 0; e < *count; e++) {
        if (edges[e].source == source && edges[e].target == target) return &edges[e];
    }
    edges[*count] = (pen_stage_edge){.source = source, .target = target, .forward_bytes = 8};
    return &edges[(*count)++];
}

// The stage graph as it follows from the nodes alone.
static void case_schedule(form_case *c, const char *generator_name) {
    const pen_graph *graph = c->model.graph;
    static const double no_limit[DEVICES] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    pen_stage stages[STAGES] = {0};
    pen_stage_edge edges[STAGES * STAGES];
    uint32_t edge_count = 0;
    for (uint32_t s = 0; s < c->stage_count; s++) {
        stages[s] = (pen_stage){.device = c->device_of_stage[s],
                                .forward_seconds = (double)random_between(&c->dice, 1, 9),
                                .backward_input_seconds = (double)random_between(&c->dice, 1, 9)};
    }
    for (uint32_t p = 0; p < c->model.order_count; p++) {
        const pen_node *node = pen_graph_node(graph, c->model.order[p]);
        const uint32_t target = c->stage_of_node[c->model.order[p].index];
        if (pen_role_is_backward(node->role)) stages[target].has_backward = true;
        if (node->role == PEN_ROLE_UPDATE) stages[target].has_update = true;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id maker = pen_graph_value(graph, node->inputs[i])->producer;
            if (!pen_node_is(maker) || node->role == PEN_ROLE_UPDATE) continue;
            const uint32_t source = c->stage_of_node[maker.index];
            const pen_role role = pen_graph_node(graph, maker)->role;
            if (source < target) (void)case_edge(edges, &edge_count, source, target);
            if (source <= target || !pen_role_is_backward(role)) continue;
            case_edge(edges, &edge_count, target, source)->has_gradient = true;
        }
    }
    const pen_stage_graph stage_graph = {.stage_count = c->stage_count,
                                         .edge_count = edge_count,
                                         .device_count = c->device_count,
                                         .microbatch_count = c->microbatch_count,
                                         .stages = stages,
                                         .edges = edges,
                                         .bytes_limit = no_limit,
                                         .update_phase_count = 2};
    const pen_schedule_generator *generator;
    CHECK_OK(pen_schedule_generator_find(generator_name, c->arena, &generator));
    CHECK_OK(generator->generate(&stage_graph, c->arena, &c->schedule));
}

// Moves updates to any place behind the other tasks of their stage.
static void case_move_updates(form_case *c) {
    for (uint32_t d = 0; d < c->device_count; d++) {
        pen_task *tasks = c->schedule->tasks;
        const uint32_t first = c->schedule->first_task[d], end = c->schedule->first_task[d + 1];
        for (uint32_t t = first; t < end; t++) {
            const pen_task update = tasks[t];
            uint32_t lowest = first;
            if (update.kind != PEN_TASK_UPDATE) continue;
            for (uint32_t i = first; i < t; i++) {
                if (tasks[i].stage == update.stage) lowest = i + 1;
            }
            const uint32_t to = (uint32_t)random_between(&c->dice, lowest, t);
            memmove(&tasks[to + 1], &tasks[to], (t - to) * sizeof *tasks);
            tasks[to] = update;
        }
    }
}

static uint64_t case_bytes(const void *context, const pen_graph *graph, pen_value_id value) {
    (void)context;
    const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(graph, value));
    return bytes == 0 ? 1 : bytes;
}

static form_case case_make(cut_model_kind kind, uint64_t seed, bool is_moved) {
    static const char *const generators[] = {"gpipe", "1f1b"};
    form_case c = {.arena = check_arena(), .dice = {.seed = seed * 131 + (uint64_t)kind}};
    bool is_halved[STAGES], is_recomputed[STAGES] = {false};
    c.microbatch_count = (uint32_t)random_between(&c.dice, 1, 7);
    c.model = cut_model_make(c.arena, kind, seed, c.microbatch_count > 1);
    c.stage_count = (uint32_t)random_between(&c.dice, 1, STAGES);
    c.device_count = (uint32_t)random_between(&c.dice, 1, DEVICES);
    for (uint32_t s = 0; s < c.stage_count; s++) {
        c.device_of_stage[s] = (uint32_t)random_between(&c.dice, 0, c.device_count - 1);
        is_recomputed[s] = random_chance(&c.dice, 30);
    }
    for (uint32_t d = 0; d < c.device_count; d++) {
        c.worker_of_device[d] = (uint32_t)random_between(&c.dice, 1, 2);
    }
    case_place(&c);
    case_schedule(&c, generators[random_between(&c.dice, 0, 1)]);
    if (is_moved) case_move_updates(&c);
    pen_schedule_find_halved(c.schedule, c.stage_count, is_halved);
    const pen_cut_request request = {.graph = c.model.graph,
                                     .order = c.model.order,
                                     .order_count = c.model.order_count,
                                     .fed = c.model.fed,
                                     .fed_count = c.model.fed_count,
                                     .kept = c.model.kept,
                                     .kept_count = c.model.kept_count,
                                     .device_count = c.device_count,
                                     .stage_count = c.stage_count,
                                     .device_of_stage = c.device_of_stage,
                                     .stage_of_node = c.stage_of_node,
                                     .is_halved = is_halved,
                                     .is_recomputed = is_recomputed};
    CHECK_OK(pen_cut_stages(&request, c.arena, &c.cut));
    const pen_run_form_request form = {.cut = c.cut,
                                       .schedule = c.schedule,
                                       .microbatch_count = c.microbatch_count,
                                       .microbatch_size = 1,
                                       .trains = true,
                                       .worker_of_device = c.worker_of_device,
                                       .value_bytes = case_bytes};
    CHECK_OK(pen_run_form_build(&form, c.arena, &c.built));
    return c;
}

// ---- the run

typedef struct run_state {
    form_case *c;
    uint64_t **tags[DEVICES];   // [value][place]: what lies there, as round * 1000 + microbatch + 1
    uint64_t *task_of[DEVICES]; // [value] the task that made it last
    uint64_t *updated[DEVICES]; // [value] that persists: round + 1 of the last update that changed
    uint64_t *summed[DEVICES];  // or read it
    bool has_early;             // an update came before another task of its device
    uint32_t next[DEVICES];     // task
    uint64_t round[DEVICES];
    uint64_t **arrived;  // [channel][microbatch]: round + 1 of the frame that is here
    uint64_t **consumed; // [channel][microbatch]: round + 1 of the last consumed
    uint64_t **made;     // [channel][microbatch]
    uint64_t **sent;     // [channel][microbatch]
    uint64_t task_number;
} run_state;

static uint64_t run_tag(uint64_t round, uint32_t microbatch) {
    return round * 1000 + microbatch + 1;
}

static uint32_t run_slot(const pen_run_channel *channel, const pen_run_task *task) {
    return channel->is_per_step ? 0 : task->task.microbatch;
}

static uint64_t **run_table_of(pen_arena *arena, uint32_t rows) {
    uint64_t **table;
    CHECK_OK(PEN_NEW(arena, rows + 1, &table));
    for (uint32_t r = 0; r < rows; r++) {
        CHECK_OK(PEN_NEW(arena, PLACES, &table[r]));
    }
    return table;
}

static run_state run_open(form_case *c) {
    run_state run = {.c = c};
    const uint32_t channel_count = c->cut->channel_count;
    run.arrived = run_table_of(c->arena, channel_count);
    run.consumed = run_table_of(c->arena, channel_count);
    run.made = run_table_of(c->arena, channel_count);
    run.sent = run_table_of(c->arena, channel_count);
    for (uint32_t d = 0; d < c->device_count; d++) {
        const uint32_t value_count = pen_graph_value_count(c->cut->parts[d].graph);
        run.tags[d] = run_table_of(c->arena, value_count);
        CHECK_OK(PEN_NEW(c->arena, value_count, &run.task_of[d]));
        CHECK_OK(PEN_NEW(c->arena, value_count, &run.updated[d]));
        CHECK_OK(PEN_NEW(c->arena, value_count, &run.summed[d]));
        run.next[d] = c->built.form.devices[d].task_first;
    }
    return run;
}

// The shared channel by which device `d` gets a value; NULL: none.
static const pen_channel *run_shared(const form_case *c, uint32_t d, pen_value_id root) {
    for (uint32_t i = 0; i < c->cut->channel_count; i++) {
        const pen_channel *channel = &c->cut->channels[i];
        if (channel->target != d || !pen_value_same(channel->to, root)) continue;
        if (c->built.form.channels[i].is_shared) return channel;
    }
    return NULL;
}

// Where device `d` finds a value: with what is shared, at its maker's.
static uint64_t *run_place(run_state *run, uint32_t d, pen_value_id value, uint32_t microbatch) {
    const form_case *c = run->c;
    const pen_value_id root = pen_part_value_root(c->cut->parts[d].graph, value);
    const uint32_t copies = c->built.buffers[d].copies[root.index];
    const pen_channel *shared = run_shared(c, d, root);
    if (shared != NULL) return run_place(run, shared->source, shared->from, microbatch);
    return &run->tags[d][root.index][copies == 0 ? 0 : microbatch % copies];
}

// Whether what lay in this microbatch's place before has gone everywhere, and been read where the
// reader reads it here.
static bool run_has_room(const run_state *run, const pen_run_task *task) {
    const pen_run_form *form = &run->c->built.form;
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        const uint32_t c = form->refs[r];
        const pen_run_channel *channel = &form->channels[c];
        const uint32_t slots = channel->is_per_step ? 1 : form->microbatch_count;
        for (uint32_t m = run_slot(channel, task) % channel->copies; m < slots;
             m += channel->copies) {
            if (run->sent[c][m] != run->made[c][m]) return false;
            if (channel->is_shared && run->consumed[c][m] != run->made[c][m]) return false;
        }
    }
    return true;
}

static bool run_is_ready(const run_state *run, uint32_t d, const pen_run_task *task) {
    const pen_run_form *form = &run->c->built.form;
    for (uint32_t r = task->receive_first; r < task->receive_end; r++) {
        const uint32_t c = form->refs[r];
        const uint32_t m = run_slot(&form->channels[c], task);
        if (run->arrived[c][m] != run->round[d] + 1) return false;
    }
    return run_has_room(run, task);
}

// Whether a value is not one microbatch's.
static bool run_outlives(const form_case *c, uint32_t d, pen_value_id root) {
    const pen_channel *shared = run_shared(c, d, root);
    if (shared != NULL) {
        return run_outlives(c, shared->source,
                            pen_part_value_root(c->cut->parts[shared->source].graph, shared->from));
    }
    const pen_graph *graph = c->cut->parts[d].graph;
    const pen_value *value = pen_graph_value(graph, root);
    if (value->kind != PEN_VALUE_COMPUTED && value->kind != PEN_VALUE_INPUT) return true;
    if (pen_value_is(value->replaces)) return true;
    return pen_node_is(value->producer) && pen_graph_node(graph, value->producer)->accumulates;
}

static void run_read(run_state *run, uint32_t d, const pen_run_task *task, pen_value_id value) {
    const form_case *c = run->c;
    const pen_graph *graph = c->cut->parts[d].graph;
    const pen_value_id root = pen_part_value_root(graph, value);
    if (run_outlives(c, d, root)) {
        CHECK(task->task.kind == PEN_TASK_UPDATE || run->updated[d][root.index] <= run->round[d],
              "'%s' was updated before it was read", pen_value_name(graph, root));
        if (task->task.kind == PEN_TASK_UPDATE) run->summed[d][root.index] = run->round[d] + 1;
        return;
    }
    if (c->built.buffers[d].copies[root.index] == 0) {
        CHECK(run->task_of[d][root.index] == run->task_number, "'%s' is of another task",
              pen_value_name(graph, root));
        return;
    }
    const bool is_update = task->task.kind == PEN_TASK_UPDATE;
    const uint32_t microbatch = is_update ? 0 : task->task.microbatch;
    const uint64_t found = *run_place(run, d, root, microbatch);
    CHECK(found == run_tag(run->round[d], microbatch), "'%s' has %llu, expected %llu",
          pen_value_name(graph, root), (unsigned long long)found,
          (unsigned long long)run_tag(run->round[d], microbatch));
}

static void run_write(run_state *run, uint32_t d, const pen_run_task *task, pen_value_id value) {
    const pen_graph *graph = run->c->cut->parts[d].graph;
    const pen_value_id root = pen_part_value_root(graph, value);
    const pen_value_id replaced = pen_graph_value(graph, value)->replaces;
    const bool is_update = task->task.kind == PEN_TASK_UPDATE;
    const uint32_t microbatch = is_update ? 0 : task->task.microbatch;
    if (is_update && pen_value_is(replaced)) {
        run->updated[d][pen_part_value_root(graph, replaced).index] = run->round[d] + 1;
    }
    CHECK(is_update || run->summed[d][root.index] <= run->round[d],
          "'%s' was read by an update before it was whole", pen_value_name(graph, root));
    run->task_of[d][root.index] = run->task_number;
    *run_place(run, d, root, microbatch) = run_tag(run->round[d], microbatch);
}

static void run_compute(run_state *run, uint32_t d, const pen_run_task *task) {
    const pen_part *part = &run->c->cut->parts[d];
    const pen_part_list *list = &part->lists[task->list];
    run->task_number++;
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_node *node = pen_graph_node(part->graph, part->order[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) run_read(run, d, task, node->inputs[i]);
        }
        for (uint32_t i = 0; i < node->output_count && !node->op->is_view; i++) {
            if (pen_value_is(node->outputs[i])) run_write(run, d, task, node->outputs[i]);
        }
    }
}

static void run_finish(run_state *run, uint32_t d, const pen_run_task *task) {
    const pen_run_form *form = &run->c->built.form;
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        run->made[form->refs[r]][run_slot(&form->channels[form->refs[r]], task)] =
            run->round[d] + 1;
    }
    for (uint32_t r = task->release_first; r < task->release_end; r++) {
        const uint32_t c = form->refs[r];
        const uint32_t m = run_slot(&form->channels[c], task);
        CHECK(run->consumed[c][m] == run->round[d], "channel %u is released twice", c);
        run->consumed[c][m] = run->round[d] + 1;
    }
    run->next[d]++;
    if (run->next[d] < form->devices[d].task_end) return;
    run->next[d] = form->devices[d].task_first;
    run->round[d]++;
}

static bool run_task(run_state *run, uint32_t d) {
    const pen_run_form *form = &run->c->built.form;
    if (form->devices[d].task_first == form->devices[d].task_end) return false;
    const pen_run_task *task = &form->tasks[run->next[d]];
    if (!run_is_ready(run, d, task)) return false;
    const bool is_last = run->next[d] + 1 == form->devices[d].task_end;
    if (task->task.kind == PEN_TASK_UPDATE && !is_last && task[1].task.kind != PEN_TASK_UPDATE) {
        run->has_early = true;
    }
    run_compute(run, d, task);
    run_finish(run, d, task);
    return true;
}

// Moves one frame, if one may be: made, not sent, in order, and its place at the target free.
static bool run_move(run_state *run, uint32_t c) {
    const form_case *fc = run->c;
    const pen_run_channel *channel = &fc->built.form.channels[c];
    const bool is_host = channel->source_device == PEN_CHANNEL_HOST;
    const uint32_t slots = channel->is_per_step ? 1 : fc->built.form.microbatch_count;
    uint32_t m = 1;
    while (m < slots && run->sent[c][m] == run->sent[c][0]) {
        m++;
    }
    if (m >= slots) m = 0; // all alike: the next round's first
    const uint64_t round = run->sent[c][m];
    if (is_host) run->made[c][m] = round + 1;
    if (run->made[c][m] == round) return false;
    for (uint32_t i = m % channel->capacity; i < slots; i += channel->capacity) {
        if (run->arrived[c][i] != run->consumed[c][i]) return false;
    }
    if (!channel->is_shared) {
        const uint64_t tag = run_tag(round, m);
        if (!is_host &&
            fc->built.buffers[channel->source_device]
                    .copies[pen_part_value_root(fc->cut->parts[channel->source_device].graph,
                                                fc->cut->channels[c].from)
                                .index] > 0) {
            const uint64_t found =
                *run_place(run, channel->source_device, fc->cut->channels[c].from, m);
            CHECK(found == tag, "'%s' was overwritten before it went", fc->cut->channels[c].value);
        }
        *run_place(run, channel->target_device, fc->cut->channels[c].to, m) = tag;
    }
    run->sent[c][m] = run->arrived[c][m] = round + 1;
    return true;
}

static void run_rounds(run_state *run, uint64_t rounds) {
    form_case *c = run->c;
    uint32_t idle = 0;
    for (;;) {
        bool all_done = true;
        for (uint32_t d = 0; d < c->device_count; d++) {
            const pen_run_device *device = &c->built.form.devices[d];
            if (device->task_first < device->task_end && run->round[d] < rounds) all_done = false;
        }
        if (all_done) return;
        const uint32_t choices = c->device_count + c->cut->channel_count;
        const uint32_t first = (uint32_t)random_between(&c->dice, 0, choices - 1);
        bool moved = false;
        for (uint32_t i = 0; i < choices && !moved; i++) {
            const uint32_t at = (first + i) % choices;
            moved = at < c->device_count ? run_task(run, at) : run_move(run, at - c->device_count);
        }
        idle = moved ? 0 : idle + 1;
        CHECK(idle == 0, "stuck in round %llu", (unsigned long long)run->round[0]);
    }
}

static void keeps_every_value_until_it_is_read(void **state) {
    (void)state;
    const uint64_t cases = getenv("PEN_LONG") != NULL ? 1000 : 100;
    uint64_t early = 0;
    for (uint64_t seed = 1; seed <= cases; seed++) {
        const cut_model_kind kind = (cut_model_kind)(seed % CUT_MODEL_COUNT);
        form_case c = case_make(kind, seed, seed % 5 != 0);
        run_state run = run_open(&c);
        run_rounds(&run, 4);
        early += run.has_early;
        pen_arena_destroy(c.arena);
    }
    CHECK(early > cases / 40, "updates came early in %llu cases", (unsigned long long)early);
}

// ---- what workers are told of it

static const pen_run_spec *spec_make(form_case *c) {
    static const pen_run_spec_worker workers[] = {
        {"the coordinator", ""}, {"worker 1", "127.0.0.1:1"}, {"worker 2", "127.0.0.1:2"}};
    pen_run_spec_channel *channels;
    pen_run_spec_part *parts;
    pen_run_spec_device *devices;
    pen_run_spec_form *form;
    pen_run_table *table;
    pen_run_spec *spec;
    CHECK_OK(PEN_NEW(c->arena, c->cut->channel_count, &channels));
    CHECK_OK(PEN_NEW(c->arena, c->device_count, &parts));
    CHECK_OK(PEN_NEW(c->arena, c->device_count, &devices));
    CHECK_OK(PEN_NEW(c->arena, 1, &form));
    CHECK_OK(PEN_NEW(c->arena, 1, &table));
    CHECK_OK(PEN_NEW(c->arena, 1, &spec));
    for (uint32_t i = 0; i < c->cut->channel_count; i++) {
        const pen_channel *channel = &c->cut->channels[i];
        const pen_value *value = pen_graph_value(c->cut->parts[channel->target].graph, channel->to);
        channels[i] = (pen_run_spec_channel){channel->value, channel->from, channel->to,
                                             value->type,    value->layout, 0};
    }
    for (uint32_t d = 0; d < c->device_count; d++) {
        parts[d] = (pen_run_spec_part){.part = &c->cut->parts[d],
                                       .copies = c->built.buffers[d].copies,
                                       .loss = PEN_VALUE_NONE,
                                       .accuracy = PEN_VALUE_NONE,
                                       .loss_weight = PEN_VALUE_NONE,
                                       .learning_rate = PEN_VALUE_NONE,
                                       .step = PEN_VALUE_NONE};
        parts[d].unscale = parts[d].applied = PEN_VALUE_NONE;
        devices[d] = (pen_run_spec_device){"a", "cpu", 1, UINT64_MAX, 0, 0, 0};
    }
    *form = (pen_run_spec_form){channels, parts};
    *table = (pen_run_table){2, c->device_count, 1, &c->built.form};
    *spec = (pen_run_spec){.table = table,
                           .workers = workers,
                           .devices = devices,
                           .forms = form,
                           .seed = 7,
                           .trace_limit = 9,
                           .shares_memory = true};
    return spec;
}

// Bytes that were changed are refused, or are another description that holds together.
static void spec_break(form_case *c, const void *bytes, uint64_t count) {
    char *broken;
    CHECK_OK(PEN_NEW(c->arena, count, &broken));
    for (uint32_t i = 0; i < 40; i++) {
        const pen_run_spec *read;
        memcpy(broken, bytes, count);
        const uint64_t at = (uint64_t)random_between(&c->dice, 0, (int64_t)count - 1);
        broken[at] = (char)random_between(&c->dice, -128, 127);
        const uint64_t length = random_chance(&c->dice, 30) ? at : count;
        const pen_status status = pen_run_spec_decode(broken, length, c->arena, &read);
        const pen_status_code code = pen_status_get_code(status);
        CHECK(code == PEN_CODE_OK || code == PEN_CORRUPT || code == PEN_INVALID_INPUT, "%s",
              pen_status_message(status));
        pen_status_ignore(status, "bytes were changed");
    }
}

// A description that was written before there were tables of fields, as the fuzzer's seed.
static void descriptions_have_the_same_bytes_as_ever(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_spec *read;
    const char *kept;
    const void *again;
    size_t count;
    uint64_t again_count;
    uint32_t worker = 1;
    CHECK_OK(pen_file_read("tests/fuzz/corpus/run_spec/case_0", 1 << 20, arena, &kept, &count));
    CHECK_OK(pen_run_spec_decode(kept, count, arena, &read));
    for (uint32_t d = 0; d < read->table->device_count; d++) { // whom it was written for
        if (read->forms[0].parts[d].part != NULL) worker = read->table->forms[0].devices[d].worker;
    }
    CHECK_OK(pen_run_spec_encode(read, worker, arena, &again, &again_count));
    assert_int_equal(again_count, count);
    assert_memory_equal(again, kept, count);
    pen_arena_destroy(arena);
}

static void descriptions_come_back(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        form_case c = case_make((cut_model_kind)(seed % CUT_MODEL_COUNT), seed, false);
        const pen_run_spec *spec = spec_make(&c);
        for (uint32_t worker = 1; worker <= 2; worker++) {
            const pen_run_spec *read;
            const void *bytes, *again;
            uint64_t count, again_count;
            CHECK_OK(pen_run_spec_encode(spec, worker, c.arena, &bytes, &count));
            CHECK_OK(pen_run_spec_decode(bytes, count, c.arena, &read));
            CHECK_OK(pen_run_spec_encode(read, worker, c.arena, &again, &again_count));
            assert_int_equal(count, again_count);
            assert_memory_equal(bytes, again, count);
            for (uint32_t d = 0; d < c.device_count; d++) {
                const bool is_there = read->forms[0].parts[d].part != NULL;
                assert_int_equal(is_there, c.worker_of_device[d] == worker);
            }
            assert_string_equal(read->workers[2].address, "127.0.0.1:2");
            assert_true(read->seed == 7 && read->trace_limit == 9 && read->shares_memory);
            spec_break(&c, bytes, count);
        }
        pen_arena_destroy(c.arena);
    }
}

// A worker sends no value that it does not keep, whoever asks for it.
static void values_that_are_seen_are_kept(void **state) {
    (void)state;
    uint32_t kept_count = 0;
    form_case c = case_make((cut_model_kind)1, 1, false);
    pen_run_spec spec = *spec_make(&c);
    pen_run_spec_form form = spec.forms[0];
    pen_run_spec_part *parts;
    CHECK_OK(PEN_NEW(c.arena, c.device_count, &parts));
    memcpy(parts, form.parts, c.device_count * sizeof *parts);
    form.parts = parts;
    spec.forms = &form;
    for (uint32_t d = 0; d < c.device_count; d++) {
        const pen_part *part = parts[d].part;
        const pen_run_spec *read;
        const void *bytes;
        uint64_t count;
        parts[d].seen[0] = PEN_VALUE_NONE;
        parts[d].seen[1] = part->kept_count > 0 ? part->kept[0] : PEN_VALUE_NONE;
        parts[d].seen_count = 2;
        kept_count += part->kept_count > 0;
        CHECK_OK(pen_run_spec_encode(&spec, c.worker_of_device[d], c.arena, &bytes, &count));
        CHECK_OK(pen_run_spec_decode(bytes, count, c.arena, &read));
        assert_int_equal(read->forms[0].parts[d].seen_count, 2);
        assert_int_equal(read->forms[0].parts[d].seen[1].index, parts[d].seen[1].index);
        parts[d].seen[0] = (pen_value_id){(uint32_t)pen_graph_value_count(part->graph)};
        CHECK_OK(pen_run_spec_encode(&spec, c.worker_of_device[d], c.arena, &bytes, &count));
        CHECK_ERROR(pen_run_spec_decode(bytes, count, c.arena, &read), PEN_CORRUPT,
                    "is to be sent, but is not kept");
        parts[d].seen[0] = PEN_VALUE_NONE;
    }
    assert_true(kept_count > 0);
    pen_arena_destroy(c.arena);
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_every_value_until_it_is_read),
              cmocka_unit_test(descriptions_have_the_same_bytes_as_ever),
              cmocka_unit_test(descriptions_come_back),
              cmocka_unit_test(values_that_are_seen_are_kept))
