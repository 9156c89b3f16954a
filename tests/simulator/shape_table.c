#include "tests/simulator/shape_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/planted.h"
#include "scheduler/protocol/admission.h"
#include "scheduler/schedule/schedule.h"
#include "tests/support/chance.h"

#define TABLE_CHANNELS SHAPE_CHANNELS
#define TABLE_NO_STAGE UINT32_MAX

typedef struct table_channel {
    pen_run_channel run;
    uint32_t source_stage;
    uint32_t target_stage;
    pen_task_kind made_by;
    pen_task_kind first_read;
    pen_task_kind last_read;
    bool is_kept;      // no task releases it: the end of the round does
    bool is_forward;   // in form 1, too
    uint32_t *place;   // where the shape table wants its number in form 0
    uint32_t *place_1; // in form 1
    shape_content content;
    uint32_t number;
} table_channel;

typedef struct table_maker {
    const shape *shape;
    pen_arena *arena;
    chance dice;
    bool is_roomy;
    uint32_t worker_count;
    uint32_t device_count;
    uint32_t worker_of_device[SHAPE_STAGES];
    bool is_halved[SHAPE_STAGES];
    const pen_schedule *schedule;
    shape_table *made;
    table_channel channels[TABLE_CHANNELS];
    uint32_t channel_count;
} table_maker;

static void must(pen_status status) {
    if (status == PEN_OK) return;
    char text[512];
    pen_status_format(status, text, sizeof text);
    pen_assert_failed(__FILE__, __LINE__, text);
}

// ---- where stages are, and when they run

// Every device has a stage, every worker a device.
static void table_place(table_maker *m) {
    const uint32_t stages = m->shape->stage_count;
    const uint32_t most = stages < 2 * m->worker_count ? stages : 2 * m->worker_count;
    m->device_count = (uint32_t)chance_between(&m->dice, m->worker_count, most);
    const bool is_scattered = chance_one_in(&m->dice, 3);
    for (uint32_t s = 0; s < stages; s++) {
        m->made->device_of_stage[s] = is_scattered && s >= m->device_count
                                          ? (uint32_t)chance_below(&m->dice, m->device_count)
                                      : is_scattered ? s
                                                     : s * m->device_count / stages;
    }
    for (uint32_t d = 0; d < m->device_count; d++) {
        m->worker_of_device[d] =
            d < m->worker_count ? d + 1 : (uint32_t)chance_between(&m->dice, 1, m->worker_count);
    }
}

static void table_schedule(table_maker *m) {
    const shape *s = m->shape;
    pen_stage *stages;
    pen_stage_edge *edges;
    pen_stage_step_edge *step_edges;
    double *limits;
    must(PEN_NEW(m->arena, s->stage_count, &stages));
    must(PEN_NEW(m->arena, s->edge_count, &edges));
    must(PEN_NEW(m->arena, s->exchange_count, &step_edges));
    must(PEN_NEW(m->arena, m->device_count, &limits));
    for (uint32_t i = 0; i < s->stage_count; i++) {
        stages[i] = (pen_stage){.device = m->made->device_of_stage[i],
                                .has_backward = true,
                                .has_update = true,
                                .forward_seconds = 1,
                                .backward_input_seconds = 1,
                                .backward_weight_seconds = 1,
                                .update_seconds = 1};
    }
    for (uint32_t e = 0; e < s->edge_count; e++) {
        edges[e] = (pen_stage_edge){.source = s->edges[e].source,
                                    .target = s->edges[e].target,
                                    .forward_bytes = 8,
                                    .backward_bytes = 8,
                                    .has_gradient = true};
    }
    for (uint32_t e = 0; e < s->exchange_count; e++) {
        step_edges[e] = (pen_stage_step_edge){
            .source = s->exchanges[e].source, .target = s->exchanges[e].target, .bytes = 8};
    }
    for (uint32_t d = 0; d < m->device_count; d++) {
        limits[d] = INFINITY;
    }
    const pen_stage_graph graph = {.stage_count = s->stage_count,
                                   .edge_count = s->edge_count,
                                   .device_count = m->device_count,
                                   .microbatch_count = s->microbatch_count,
                                   .stages = stages,
                                   .edges = edges,
                                   .bytes_limit = limits,
                                   .update_phase_count = s->exchange_count > 0 ? 2 : 1,
                                   .step_edge_count = s->exchange_count,
                                   .step_edges = step_edges};
    uint32_t count = 0;
    while (pen_schedule_generators[count] != NULL) {
        count++;
    }
    // the last of them searches: thousands of tables would take seconds
    const uint64_t choice = chance_below(&m->dice, count - 1);
    const pen_status status =
        pen_schedule_generators[choice]->generate(&graph, m->arena, &m->schedule);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the first of them takes any graph");
        must(pen_schedule_generators[0]->generate(&graph, m->arena, &m->schedule));
    }
    for (uint32_t t = 0; t < m->schedule->task_count; t++) {
        const pen_task *task = &m->schedule->tasks[t];
        if (task->kind == PEN_TASK_BACKWARD_INPUT) m->is_halved[task->stage] = true;
    }
}

// ---- channels

static table_channel *table_add(table_maker *m, uint32_t source, uint32_t target) {
    PEN_ASSERT(m->channel_count < TABLE_CHANNELS);
    table_channel *channel = &m->channels[m->channel_count++];
    const uint32_t most = m->shape->microbatch_count;
    const uint32_t device = m->made->device_of_stage[target];
    const bool is_fed = source == TABLE_NO_STAGE;
    *channel = (table_channel){.source_stage = source, .target_stage = target};
    pen_run_channel *run = &channel->run;
    run->target_device = device;
    run->target_worker = m->worker_of_device[device];
    run->source_device = is_fed ? PEN_CHANNEL_HOST : m->made->device_of_stage[source];
    run->source_worker = is_fed ? 0 : m->worker_of_device[run->source_device];
    run->bytes = 8 * chance_between(&m->dice, 1, SHAPE_WORDS);
    run->capacity = m->is_roomy ? most : (uint32_t)chance_between(&m->dice, 1, most);
    run->copies = m->is_roomy ? most : (uint32_t)chance_between(&m->dice, 1, most);
    if (is_fed && chance_one_in(&m->dice, 3)) run->source_worker = run->target_worker;
    run->is_shared = run->source_worker == run->target_worker && !is_fed;
    if (run->source_worker == run->target_worker) run->copies = run->capacity;
    channel->is_kept = chance_one_in(&m->dice, 10);
    return channel;
}

static pen_task_kind table_gradient_kind(const table_maker *m, uint32_t stage) {
    return m->is_halved[stage] ? PEN_TASK_BACKWARD_INPUT : PEN_TASK_BACKWARD;
}

static pen_task_kind table_last_read(table_maker *m, uint32_t stage) {
    if (chance_one_in(&m->dice, 2)) return PEN_TASK_FORWARD;
    if (m->is_halved[stage] && chance_one_in(&m->dice, 2)) return PEN_TASK_BACKWARD_WEIGHT;
    return table_gradient_kind(m, stage);
}

static void table_add_edges(table_maker *m) {
    const shape *s = m->shape;
    for (uint32_t e = 0; e < s->edge_count; e++) {
        const shape_edge *edge = &s->edges[e];
        const uint32_t *device = m->made->device_of_stage;
        if (device[edge->source] == device[edge->target]) continue;
        table_channel *channel = table_add(m, edge->source, edge->target);
        channel->made_by = channel->first_read = PEN_TASK_FORWARD;
        channel->last_read = table_last_read(m, edge->target);
        channel->is_forward = true;
        channel->content = SHAPE_FORWARD;
        channel->number = e;
        channel->place = &m->made->forward[0][e];
        channel->place_1 = &m->made->forward[1][e];
        channel = table_add(m, edge->target, edge->source);
        channel->made_by = table_gradient_kind(m, edge->target);
        channel->first_read = channel->last_read = table_gradient_kind(m, edge->source);
        channel->content = SHAPE_GRADIENT;
        channel->number = e;
        channel->place = &m->made->gradient[e];
        if (m->is_halved[edge->source] && chance_one_in(&m->dice, 2)) {
            channel->last_read = PEN_TASK_BACKWARD_WEIGHT;
        }
    }
    for (uint32_t e = 0; e < s->exchange_count; e++) {
        const shape_edge *edge = &s->exchanges[e];
        const uint32_t *device = m->made->device_of_stage;
        if (device[edge->source] == device[edge->target]) continue;
        table_channel *channel = table_add(m, edge->source, edge->target);
        channel->made_by = channel->first_read = channel->last_read = PEN_TASK_UPDATE;
        channel->run.is_per_step = true;
        channel->content = SHAPE_EXCHANGE;
        channel->number = e;
        channel->place = &m->made->exchange[e];
    }
}

static void table_add_feeds(table_maker *m) {
    const shape *s = m->shape;
    for (uint32_t i = 0; i < s->stage_count; i++) {
        if (s->is_fed[i]) {
            table_channel *channel = table_add(m, TABLE_NO_STAGE, i);
            channel->first_read = PEN_TASK_FORWARD;
            channel->last_read = table_last_read(m, i);
            channel->is_forward = true;
            channel->content = SHAPE_FEED;
            channel->number = i;
            channel->place = &m->made->feed[0][i];
            channel->place_1 = &m->made->feed[1][i];
        }
        if (s->is_step_fed[i]) {
            table_channel *channel = table_add(m, TABLE_NO_STAGE, i);
            channel->first_read = channel->last_read = PEN_TASK_UPDATE;
            channel->run.is_per_step = true;
            channel->content = SHAPE_STEP_FEED;
            channel->number = i;
            channel->place = &m->made->step_feed[i];
        }
    }
}

// ---- the table

static bool table_is_read(const table_maker *m, const table_channel *channel, const pen_task *task,
                          pen_task_kind kind) {
    if (channel->target_stage != task->stage || kind != task->kind) return false;
    if (task->kind != PEN_TASK_UPDATE) return true;
    const bool has_phases = m->shape->exchange_count > 0;
    return task->microbatch == (has_phases ? 1 : 0); // the phase that changes parameters
}

static bool table_is_made(const table_channel *channel, const pen_task *task) {
    if (channel->source_stage != task->stage || channel->made_by != task->kind) return false;
    return task->kind != PEN_TASK_UPDATE || task->microbatch == 0;
}

static void table_write_task(const table_maker *m, const uint32_t *numbers, pen_run_task *task,
                             uint32_t *refs, uint32_t *ref_count) {
    task->receive_first = *ref_count;
    for (uint32_t c = 0; c < m->channel_count; c++) {
        const table_channel *channel = &m->channels[c];
        if (numbers[c] != UINT32_MAX &&
            (table_is_read(m, channel, &task->task, channel->first_read) ||
             table_is_read(m, channel, &task->task, channel->last_read))) {
            refs[(*ref_count)++] = numbers[c];
        }
    }
    task->receive_end = task->send_first = *ref_count;
    for (uint32_t c = 0; c < m->channel_count; c++) {
        const table_channel *channel = &m->channels[c];
        if (numbers[c] != UINT32_MAX && channel->source_stage != TABLE_NO_STAGE &&
            table_is_made(channel, &task->task)) {
            refs[(*ref_count)++] = numbers[c];
        }
    }
    task->send_end = task->release_first = *ref_count;
    for (uint32_t c = 0; c < m->channel_count; c++) {
        const table_channel *channel = &m->channels[c];
        if (numbers[c] != UINT32_MAX && !channel->is_kept &&
            table_is_read(m, channel, &task->task, channel->last_read)) {
            refs[(*ref_count)++] = numbers[c];
        }
    }
    task->release_end = *ref_count;
}

static void table_write_form(table_maker *m, bool trains, pen_run_form *form) {
    const pen_schedule *schedule = m->schedule;
    uint32_t numbers[TABLE_CHANNELS];
    pen_run_channel *channels;
    pen_run_task *tasks;
    pen_run_device *devices;
    uint32_t *refs;
    must(PEN_NEW(m->arena, m->channel_count, &channels));
    must(PEN_NEW(m->arena, schedule->task_count, &tasks));
    must(PEN_NEW(m->arena, m->device_count, &devices));
    must(PEN_NEW(m->arena, (size_t)schedule->task_count * m->channel_count * 3 + 1, &refs));
    *form = (pen_run_form){.microbatch_count = m->shape->microbatch_count,
                           .trains = trains,
                           .microbatch_size = 4,
                           .channels = channels,
                           .tasks = tasks,
                           .refs = refs,
                           .devices = devices};
    for (uint32_t c = 0; c < m->channel_count; c++) {
        table_channel *channel = &m->channels[c];
        numbers[c] = trains || channel->is_forward ? form->channel_count++ : UINT32_MAX;
        if (numbers[c] == UINT32_MAX) continue;
        channels[numbers[c]] = channel->run;
        *(trains ? channel->place : channel->place_1) = numbers[c];
        m->made->contents[trains ? 0 : 1][numbers[c]] = (uint8_t)channel->content;
        m->made->numbers[trains ? 0 : 1][numbers[c]] = (uint8_t)channel->number;
        if (!trains) channel->last_read = PEN_TASK_FORWARD;
    }
    for (uint32_t d = 0; d < m->device_count; d++) {
        devices[d] =
            (pen_run_device){.worker = m->worker_of_device[d], .task_first = form->task_count};
        for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
            if (!trains && schedule->tasks[t].kind != PEN_TASK_FORWARD) continue;
            pen_run_task *task = &tasks[form->task_count++];
            task->task = schedule->tasks[t];
            task->list = task->task.stage;
            task->makes_loss = task->task.kind == PEN_TASK_FORWARD &&
                               task->task.stage + 1 == m->shape->stage_count;
            task->makes_gradient = (task->task.kind == PEN_TASK_BACKWARD ||
                                    task->task.kind == PEN_TASK_BACKWARD_WEIGHT) &&
                                   shape_tells(m->shape, task->task.stage, task->task.microbatch);
            table_write_task(m, numbers, task, refs, &form->ref_count);
        }
        devices[d].task_end = form->task_count;
    }
}

static const shape_table *table_try(const shape *s, uint32_t worker_count, uint32_t variant,
                                    bool is_roomy, pen_arena *arena) {
    table_maker *m;
    pen_run_table *table;
    pen_run_form *forms;
    must(PEN_NEW(arena, 1, &m));
    must(PEN_NEW(arena, 1, &m->made));
    must(PEN_NEW(arena, 1, &table));
    must(PEN_NEW(arena, 2, &forms));
    m->shape = s;
    m->arena = arena;
    m->dice.state = chance_mix(s->seed + worker_count * 8 + variant);
    m->is_roomy = is_roomy;
    m->worker_count = worker_count;
    memset(m->made->forward, 0xff, sizeof m->made->forward);
    memset(m->made->gradient, 0xff, sizeof m->made->gradient);
    memset(m->made->feed, 0xff, sizeof m->made->feed);
    memset(m->made->step_feed, 0xff, sizeof m->made->step_feed);
    memset(m->made->exchange, 0xff, sizeof m->made->exchange);
    table_place(m);
    table_schedule(m);
    table_add_edges(m);
    table_add_feeds(m);
    table_write_form(m, true, &forms[0]);
    table_write_form(m, false, &forms[1]);
    *table = (pen_run_table){.worker_count = worker_count,
                             .device_count = m->device_count,
                             .form_count = 2,
                             .forms = forms};
    m->made->table = table;
    m->made->hash = m->dice.state | 1;
    m->made->worker_count = worker_count;
    m->made->variant = variant;
    return m->made;
}

static const shape_table *table_make(const shape *s, uint32_t worker_count, uint32_t variant,
                                     pen_arena *arena) {
    const shape_table *made = table_try(s, worker_count, variant, false, arena);
    const pen_status status = pen_run_table_admit(made->table, &(pen_admission_names){0});
    if (status == PEN_OK) return made;
    pen_status_ignore(status, "with more places it can finish");
    made = table_try(s, worker_count, variant, true, arena);
    must(pen_run_table_admit(made->table, &(pen_admission_names){0}));
    return made;
}

// Mistakes are planted for simulations, not for making what they run.
const shape_table *shape_table_make(const shape *s, uint32_t worker_count, uint32_t variant,
                                    pen_arena *arena) {
#ifdef PEN_PLANTED_MISTAKES
    const char *mistake = pen_planted_mistake;
    pen_planted_mistake = "";
    const shape_table *made = table_make(s, worker_count, variant, arena);
    pen_planted_mistake = mistake;
    return made;
#else
    return table_make(s, worker_count, variant, arena);
#endif
}
