#include "tests/support/random_run_table.h"

#include "scheduler/schedule/schedule.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

#define MAKER_CHANNELS 256
#define MAKER_REFS 4096

// A channel as the tables' maker sees it: which tasks make, read and release it.
typedef struct maker_channel {
    pen_run_channel run;
    uint32_t source_stage; // not of the host's
    pen_task_kind made_by;
    uint32_t made_phase;
    uint32_t target_stage;
    pen_task_kind first_read; // tasks of the target's stage that read it
    pen_task_kind last_read;
    uint32_t read_phase;
    bool is_kept; // no task releases it: the end of the round does
} maker_channel;

typedef struct maker {
    pen_arena *arena;
    dice d;
    bool is_roomy;
    uint32_t places; // 0: random
    const pen_stage_graph *graph;
    const pen_schedule *schedule;
    const uint32_t *worker_of_device;
    bool *is_halved; // [stage_count]
    maker_channel channels[MAKER_CHANNELS];
    uint32_t channel_count;
} maker;

static maker_channel *maker_add(maker *m, uint32_t source, uint32_t target) {
    CHECK(m->channel_count < MAKER_CHANNELS, "too many channels");
    maker_channel *channel = &m->channels[m->channel_count++];
    const uint32_t device = m->graph->stages[target].device;
    const bool is_fed = source == PEN_CHANNEL_HOST;
    const uint32_t most = m->graph->microbatch_count;
    *channel = (maker_channel){
        .source_stage = source,
        .target_stage = target,
        .run = {.target_device = device, .target_worker = m->worker_of_device[device], .bytes = 8}};
    channel->run.source_device = is_fed ? PEN_CHANNEL_HOST : m->graph->stages[source].device;
    channel->run.source_worker = is_fed ? 0 : m->worker_of_device[channel->run.source_device];
    channel->run.first_microbatch = m->graph->stages[target].first_microbatch;
    channel->run.microbatch_count = m->graph->stages[target].microbatch_count;
    channel->is_kept = m->places == 0 && dice_between(&m->d, 0, 9) == 0;
    const int64_t few = dice_between(&m->d, 0, 2) == 0 ? most : 2;
    channel->run.capacity = m->places > 0 ? m->places : (uint32_t)dice_between(&m->d, 1, few);
    channel->run.copies = m->places > 0 ? m->places : (uint32_t)dice_between(&m->d, 1, few);
    if (m->is_roomy) channel->run.capacity = channel->run.copies = most;
    if (is_fed && dice_between(&m->d, 0, 2) == 0) { // read where it is needed
        channel->run.source_worker = channel->run.target_worker;
        channel->run.copies = channel->run.capacity;
    } else if (channel->run.source_worker == channel->run.target_worker) {
        channel->run.is_shared = true;
        channel->run.copies = channel->run.capacity;
    }
    return channel;
}

static void maker_set_per_step(maker_channel *channel) {
    channel->run.is_per_step = true;
    channel->run.first_microbatch = channel->run.microbatch_count = 0;
}

// Stages of a replica are behind each other.
static bool maker_is_first(const pen_stage_graph *graph, uint32_t stage) {
    const pen_stage *stages = graph->stages;
    return stage == 0 || stages[stage].first_microbatch != stages[stage - 1].first_microbatch;
}

static bool maker_is_last(const pen_stage_graph *graph, uint32_t stage) {
    return stage + 1 == graph->stage_count || maker_is_first(graph, stage + 1);
}

static pen_task_kind maker_gradient_kind(const maker *m, uint32_t stage) {
    return m->is_halved[stage] ? PEN_TASK_BACKWARD_INPUT : PEN_TASK_BACKWARD;
}

// The task that last reads what a stage's forward task reads: its own, or a backward one.
static pen_task_kind maker_last_read(maker *m, uint32_t stage) {
    if (!m->graph->stages[stage].has_backward || dice_between(&m->d, 0, 1) == 0) {
        return PEN_TASK_FORWARD;
    }
    if (m->is_halved[stage] && dice_between(&m->d, 0, 1) == 0) return PEN_TASK_BACKWARD_WEIGHT;
    return maker_gradient_kind(m, stage);
}

static void maker_add_edges(maker *m) {
    for (uint32_t e = 0; e < m->graph->edge_count; e++) {
        const pen_stage_edge *edge = &m->graph->edges[e];
        const pen_stage *stages = m->graph->stages;
        if (stages[edge->source].device == stages[edge->target].device) continue;
        maker_channel *channel = maker_add(m, edge->source, edge->target);
        channel->made_by = PEN_TASK_FORWARD;
        channel->first_read = PEN_TASK_FORWARD;
        channel->last_read = maker_last_read(m, edge->target);
        if (!edge->has_gradient) continue;
        channel = maker_add(m, edge->target, edge->source);
        channel->made_by = maker_gradient_kind(m, edge->target);
        channel->first_read = maker_gradient_kind(m, edge->source);
        channel->last_read = channel->first_read;
        if (m->is_halved[edge->source] && dice_between(&m->d, 0, 1) == 0) {
            channel->last_read = PEN_TASK_BACKWARD_WEIGHT;
        }
    }
    for (uint32_t e = 0; e < m->graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &m->graph->step_edges[e];
        const pen_stage *stages = m->graph->stages;
        if (stages[edge->source].device == stages[edge->target].device) continue;
        maker_channel *channel = maker_add(m, edge->source, edge->target);
        channel->made_by = channel->first_read = channel->last_read = PEN_TASK_UPDATE;
        channel->made_phase = edge->phase;
        channel->read_phase = edge->phase + 1;
        maker_set_per_step(channel);
    }
}

// Inputs, labels, and what updates are fed.
static void maker_add_feeds(maker *m) {
    for (uint32_t s = 0; s < m->graph->stage_count; s++) {
        if (maker_is_first(m->graph, s) || maker_is_last(m->graph, s) ||
            dice_between(&m->d, 0, 3) == 0) {
            maker_channel *channel = maker_add(m, PEN_CHANNEL_HOST, s);
            channel->first_read = PEN_TASK_FORWARD;
            channel->last_read = maker_last_read(m, s);
        }
        if (m->graph->stages[s].has_update && dice_between(&m->d, 0, 3) == 0) {
            maker_channel *channel = maker_add(m, PEN_CHANNEL_HOST, s);
            channel->first_read = channel->last_read = PEN_TASK_UPDATE;
            maker_set_per_step(channel);
        }
    }
}

// ---- the tables

static bool maker_reads(const maker_channel *channel, const pen_task *task, pen_task_kind kind) {
    if (channel->target_stage != task->stage || kind != task->kind) return false;
    return task->kind != PEN_TASK_UPDATE || channel->read_phase == task->microbatch;
}

static bool maker_makes(const maker_channel *channel, const pen_task *task) {
    if (channel->source_stage != task->stage || channel->made_by != task->kind) return false;
    return task->kind != PEN_TASK_UPDATE || channel->made_phase == task->microbatch;
}

// Channel numbers are those among the channels of the form.
static void maker_write_task(const maker *m, const uint32_t *numbers, pen_run_task *task,
                             uint32_t *refs, uint32_t *ref_count) {
    CHECK(*ref_count + 3 * m->channel_count < MAKER_REFS * 16, "too many refs");
    task->receive_first = *ref_count;
    for (uint32_t c = 0; c < m->channel_count; c++) {
        const maker_channel *channel = &m->channels[c];
        if (numbers[c] != UINT32_MAX && (maker_reads(channel, &task->task, channel->first_read) ||
                                         maker_reads(channel, &task->task, channel->last_read))) {
            refs[(*ref_count)++] = numbers[c];
        }
    }
    task->receive_end = task->send_first = *ref_count;
    for (uint32_t c = 0; c < m->channel_count; c++) {
        if (numbers[c] != UINT32_MAX && m->channels[c].source_stage != PEN_CHANNEL_HOST &&
            maker_makes(&m->channels[c], &task->task)) {
            refs[(*ref_count)++] = numbers[c];
        }
    }
    task->send_end = task->release_first = *ref_count;
    for (uint32_t c = 0; c < m->channel_count; c++) {
        const maker_channel *channel = &m->channels[c];
        if (numbers[c] != UINT32_MAX && !channel->is_kept &&
            maker_reads(channel, &task->task, channel->last_read)) {
            refs[(*ref_count)++] = numbers[c];
        }
    }
    task->release_end = *ref_count;
}

static bool maker_is_of_form(const maker_channel *channel, bool trains) {
    return trains ||
           (channel->first_read == PEN_TASK_FORWARD &&
            (channel->source_stage == PEN_CHANNEL_HOST || channel->made_by == PEN_TASK_FORWARD));
}

// Where updates are the last tasks of each device, gradients may be told of: else a device would
// wait for the word to update before it has made all of them.
static bool maker_may_tell(const maker *m) {
    const pen_schedule *schedule = m->schedule;
    for (uint32_t d = 0; d < m->graph->device_count; d++) {
        for (uint32_t t = schedule->first_task[d]; t + 1 < schedule->first_task[d + 1]; t++) {
            if (schedule->tasks[t].kind == PEN_TASK_UPDATE &&
                schedule->tasks[t + 1].kind != PEN_TASK_UPDATE) {
                return false;
            }
        }
    }
    return m->places == 0 && schedule->task_count % 3 == 0;
}

static void maker_write_form(maker *m, bool trains, pen_run_form *form) {
    const pen_schedule *schedule = m->schedule;
    uint32_t numbers[MAKER_CHANNELS];
    pen_run_channel *channels;
    pen_run_task *tasks;
    pen_run_device *devices;
    uint32_t *refs;
    CHECK_OK(PEN_NEW(m->arena, m->channel_count, &channels));
    CHECK_OK(PEN_NEW(m->arena, schedule->task_count, &tasks));
    CHECK_OK(PEN_NEW(m->arena, m->graph->device_count, &devices));
    CHECK_OK(PEN_NEW(m->arena, MAKER_REFS * 16, &refs));
    *form = (pen_run_form){.microbatch_count = m->graph->microbatch_count,
                           .trains = trains,
                           .microbatch_size = 4,
                           .channels = channels,
                           .tasks = tasks,
                           .refs = refs,
                           .devices = devices};
    maker_channel *all = m->channels;
    const bool may_tell = maker_may_tell(m);
    for (uint32_t c = 0; c < m->channel_count; c++) {
        numbers[c] = maker_is_of_form(&all[c], trains) ? form->channel_count++ : UINT32_MAX;
        if (numbers[c] == UINT32_MAX) continue;
        channels[numbers[c]] = all[c].run;
        if (!trains) all[c].last_read = PEN_TASK_FORWARD;
    }
    for (uint32_t d = 0; d < m->graph->device_count; d++) {
        devices[d] =
            (pen_run_device){.worker = m->worker_of_device[d], .task_first = form->task_count};
        for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
            if (!trains && schedule->tasks[t].kind != PEN_TASK_FORWARD) continue;
            pen_run_task *task = &tasks[form->task_count++];
            task->task = schedule->tasks[t];
            task->makes_loss =
                task->task.kind == PEN_TASK_FORWARD && maker_is_last(m->graph, task->task.stage);
            task->list = !task->makes_loss && dice_between(&m->d, 0, 7) == 0 ? PEN_RUN_LIST_NONE
                                                                             : task->task.stage;
            task->makes_gradient = may_tell && (task->task.kind == PEN_TASK_BACKWARD ||
                                                task->task.kind == PEN_TASK_BACKWARD_WEIGHT);
            maker_write_task(m, numbers, task, refs, &form->ref_count);
            for (uint32_t i = task->send_first; i < task->send_end; i++) {
                // nothing is seen of its frames
                if (channels[refs[i]].is_shared) task->list = task->task.stage;
            }
        }
        devices[d].task_end = form->task_count;
    }
}

static pen_run_table *maker_write(maker *m, uint32_t worker_count) {
    pen_run_table *table;
    pen_run_form *forms;
    CHECK_OK(PEN_NEW(m->arena, m->graph->stage_count, &m->is_halved));
    for (uint32_t t = 0; t < m->schedule->task_count; t++) {
        const pen_task *task = &m->schedule->tasks[t];
        if (task->kind == PEN_TASK_BACKWARD_INPUT) m->is_halved[task->stage] = true;
    }
    maker_add_edges(m);
    maker_add_feeds(m);
    CHECK_OK(PEN_NEW(m->arena, 1, &table));
    CHECK_OK(PEN_NEW(m->arena, 2, &forms));
    maker_write_form(m, true, &forms[0]);
    maker_write_form(m, false, &forms[1]);
    *table = (pen_run_table){.worker_count = worker_count,
                             .device_count = m->graph->device_count,
                             .form_count = 2,
                             .forms = forms};
    return table;
}

// Several of a graph, each on devices of its own and with some of the microbatches; updates
// exchange values between them, too.
static const pen_stage_graph *maker_replicate(maker *m, const pen_stage_graph *base) {
    const uint32_t replicas = (uint32_t)dice_between(&m->d, 2, 3);
    const uint32_t edge_limit = replicas * base->edge_count;
    const uint32_t step_limit = replicas * (base->step_edge_count + 2);
    if (base->microbatch_count < replicas || base->stage_count * replicas > 12 ||
        3 * (edge_limit + base->stage_count * replicas) + step_limit > MAKER_CHANNELS) {
        return base;
    }
    pen_stage_graph *graph;
    pen_stage *stages;
    pen_stage_edge *edges;
    pen_stage_step_edge *step_edges;
    double *bytes_limit;
    CHECK_OK(PEN_NEW(m->arena, 1, &graph));
    CHECK_OK(PEN_NEW(m->arena, replicas * base->stage_count, &stages));
    CHECK_OK(PEN_NEW(m->arena, edge_limit, &edges));
    CHECK_OK(PEN_NEW(m->arena, step_limit, &step_edges));
    CHECK_OK(PEN_NEW(m->arena, replicas * base->device_count, &bytes_limit));
    *graph = *base;
    graph->seats = NULL;
    graph->stage_count = graph->edge_count = graph->step_edge_count = graph->device_count = 0;
    uint32_t begun = 0; // microbatches
    for (uint32_t r = 0; r < replicas; r++) {
        const uint32_t left = base->microbatch_count - begun, behind = replicas - r - 1;
        const uint32_t own = behind == 0 ? left : (uint32_t)dice_between(&m->d, 1, left - behind);
        const uint32_t at = graph->stage_count;
        for (uint32_t s = 0; s < base->stage_count; s++) {
            pen_stage *stage = &stages[graph->stage_count++];
            *stage = base->stages[s];
            stage->device += graph->device_count;
            stage->first_microbatch = begun;
            stage->microbatch_count = own;
        }
        for (uint32_t e = 0; e < base->edge_count; e++) {
            pen_stage_edge *edge = &edges[graph->edge_count++];
            *edge = base->edges[e];
            edge->source += at;
            edge->target += at;
        }
        for (uint32_t e = 0; e < base->step_edge_count; e++) {
            pen_stage_step_edge *edge = &step_edges[graph->step_edge_count++];
            *edge = base->step_edges[e];
            edge->source += at;
            edge->target += at;
        }
        for (uint32_t d = 0; d < base->device_count; d++) {
            bytes_limit[graph->device_count + d] = base->bytes_limit[d];
        }
        graph->device_count += base->device_count;
        begun += own;
    }
    for (uint32_t r = 0; r < replicas && base->update_phase_count > 1; r++) {
        const uint32_t stage = (uint32_t)dice_between(&m->d, 0, base->stage_count - 1);
        const uint32_t source = r * base->stage_count + stage;
        const uint32_t target = (r + 1) % replicas * base->stage_count + stage;
        if (!stages[stage].has_update) continue;
        step_edges[graph->step_edge_count++] =
            (pen_stage_step_edge){.source = source, .target = target, .bytes = 8};
    }
    graph->stages = stages;
    graph->edges = edges;
    graph->step_edges = step_edges;
    graph->bytes_limit = bytes_limit;
    if (dice_between(&m->d, 0, 1) == 1) graph->exchange = PEN_EXCHANGE_OVERLAPPED;
    return graph;
}

pen_run_table *random_run_table(pen_arena *arena, uint64_t seed, bool is_roomy) {
    maker m = {.arena = arena,
               .d = {.seed = seed ^ 0x7ab1e},
               .is_roomy = is_roomy,
               .graph = stage_graph_random(arena, seed)};
    uint32_t generator_count = 0;
    while (pen_schedule_generators[generator_count] != NULL) {
        generator_count++;
    }
    if (dice_between(&m.d, 0, 2) == 0) m.graph = maker_replicate(&m, m.graph);
    const int64_t choice = dice_between(&m.d, 0, generator_count - 1);
    CHECK_OK(pen_schedule_generators[choice]->generate(m.graph, arena, &m.schedule));
    const uint32_t worker_count = (uint32_t)dice_between(&m.d, 1, m.graph->device_count);
    uint32_t *workers;
    CHECK_OK(PEN_NEW(arena, m.graph->device_count, &workers));
    for (uint32_t d = 0; d < m.graph->device_count; d++) {
        workers[d] = d < worker_count ? d + 1 : (uint32_t)dice_between(&m.d, 1, worker_count);
    }
    m.worker_of_device = workers;
    return maker_write(&m, worker_count);
}

pen_run_table *chain_run_table(pen_arena *arena, uint32_t stage_count, uint32_t microbatch_count,
                               uint32_t places) {
    maker m = {.arena = arena,
               .places = places,
               .graph = stage_chain(arena, stage_count, microbatch_count, 1, 2, 0)};
    CHECK_OK(pen_schedule_generators[0]->generate(m.graph, arena, &m.schedule));
    uint32_t *workers;
    CHECK_OK(PEN_NEW(arena, stage_count, &workers));
    for (uint32_t d = 0; d < stage_count; d++) {
        workers[d] = d + 1;
    }
    m.worker_of_device = workers;
    return maker_write(&m, stage_count);
}
