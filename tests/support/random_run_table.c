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
    channel->is_kept = m->places == 0 && dice_between(&m->d, 0, 9) == 0;
    const int64_t few = dice_between(&m->d, 0, 2) == 0 ? most : 2;
    channel->run.capacity = m->places > 0 ? m->places : (uint32_t)dice_between(&m->d, 1, few);
    channel->run.copies = m->places > 0 ? m->places : (uint32_t)dice_between(&m->d, 1, few);
    if (m->is_roomy) channel->run.capacity = channel->run.copies = most;
    if (channel->run.source_worker == channel->run.target_worker) {
        channel->run.is_shared = true;
        channel->run.copies = channel->run.capacity;
    }
    return channel;
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
        channel->run.is_per_step = true;
    }
}

// Inputs, labels, and what updates are fed.
static void maker_add_feeds(maker *m) {
    for (uint32_t s = 0; s < m->graph->stage_count; s++) {
        if (s == 0 || s + 1 == m->graph->stage_count || dice_between(&m->d, 0, 3) == 0) {
            maker_channel *channel = maker_add(m, PEN_CHANNEL_HOST, s);
            channel->first_read = PEN_TASK_FORWARD;
            channel->last_read = maker_last_read(m, s);
        }
        if (m->graph->stages[s].has_update && dice_between(&m->d, 0, 3) == 0) {
            maker_channel *channel = maker_add(m, PEN_CHANNEL_HOST, s);
            channel->first_read = channel->last_read = PEN_TASK_UPDATE;
            channel->run.is_per_step = true;
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
        if (numbers[c] != UINT32_MAX && m->channels[c].run.source_worker != 0 &&
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
    return trains || (channel->first_read == PEN_TASK_FORWARD &&
                      (channel->run.source_worker == 0 || channel->made_by == PEN_TASK_FORWARD));
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
            task->makes_loss = task->task.kind == PEN_TASK_FORWARD &&
                               task->task.stage + 1 == m->graph->stage_count;
            task->list = !task->makes_loss && dice_between(&m->d, 0, 7) == 0 ? PEN_RUN_LIST_NONE
                                                                             : task->task.stage;
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

pen_run_table *random_run_table(pen_arena *arena, uint64_t seed, bool is_roomy) {
    maker m = {.arena = arena,
               .d = {.seed = seed ^ 0x7ab1e},
               .is_roomy = is_roomy,
               .graph = stage_graph_random(arena, seed)};
    uint32_t generator_count = 0;
    while (pen_schedule_generators[generator_count] != NULL) {
        generator_count++;
    }
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
