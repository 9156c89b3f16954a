#include "tests/simulator/computing.h"

#include <string.h>

#include "base/checksum.h"

// ---- memory

static uint32_t computing_least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static void computing_add_channel(computing *c, uint32_t form_number, uint32_t number) {
    world *w = c->process->world;
    const pen_run_form *form = &c->table->table->forms[form_number];
    const pen_run_channel *channel = &form->channels[number];
    computing_channel *ends = &c->channels[form_number][number];
    const uint32_t slots = pen_run_slots(form, channel);
    ends->copies = computing_least(channel->copies, slots);
    ends->capacity = computing_least(channel->capacity, slots);
    const bool is_source = channel->source_worker == c->worker;
    const bool is_target = channel->target_worker == c->worker;
    if (is_target) ends->target = world_allocate(w, ends->capacity, sizeof *ends->target);
    if (is_source && !channel->is_shared) {
        ends->source = world_allocate(w, ends->copies, sizeof *ends->source);
    }
}

computing *computing_new(process *p, const shape_table *table, uint32_t worker,
                         uint64_t generation) {
    computing *c = WORLD_NEW(p->world, computing);
    c->process = p;
    c->shape = p->world->shape;
    c->table = table;
    c->worker = worker;
    c->generation = generation;
    for (uint32_t f = 0; f < 2; f++) {
        const uint32_t count = table->table->forms[f].channel_count;
        c->channels[f] = world_allocate(p->world, count, sizeof *c->channels[f]);
        for (uint32_t i = 0; i < count; i++) {
            computing_add_channel(c, f, i);
        }
    }
    for (uint32_t i = 0; i < COMPUTING_ROUNDS; i++) {
        c->rounds[i].number = WORLD_NEVER;
    }
    return c;
}

const computing_round *computing_find_round(const computing *c, uint64_t number) {
    const computing_round *round = &c->rounds[number % COMPUTING_ROUNDS];
    return round->number == number ? round : NULL;
}

static uint32_t computing_slot(const computing *c, uint32_t form_number, uint32_t channel,
                               uint64_t sequence) {
    const pen_run_form *form = &c->table->table->forms[form_number];
    return (uint32_t)(sequence % pen_run_slots(form, &form->channels[channel]));
}

computing_place *computing_target(const computing *c, uint32_t form, uint32_t channel,
                                  uint64_t sequence) {
    const computing_channel *ends = &c->channels[form][channel];
    return &ends->target[computing_slot(c, form, channel, sequence) % ends->capacity];
}

computing_place *computing_source(const computing *c, uint32_t form, uint32_t channel,
                                  uint64_t sequence) {
    if (c->table->table->forms[form].channels[channel].is_shared) {
        return computing_target(c, form, channel, sequence);
    }
    const computing_channel *ends = &c->channels[form][channel];
    return &ends->source[computing_slot(c, form, channel, sequence) % ends->copies];
}

uint32_t computing_checksum(const uint64_t *words, uint32_t count) {
    uint32_t checksum;
    pen_checksum_chunks(words, 8 * (uint64_t)count, &checksum);
    return checksum;
}

void computing_fill(computing_place *place, uint64_t value, uint32_t words, uint64_t sequence) {
    for (uint32_t i = 0; i < words; i++) {
        place->words[i] = shape_word(value, i);
    }
    place->sequence = sequence;
    place->checksum = computing_checksum(place->words, words);
    place->is_compared = true;
}

bool computing_has_stage(const computing *c, uint32_t stage) {
    const pen_run_form *form = &c->table->table->forms[0];
    return form->devices[c->table->device_of_stage[stage]].worker == c->worker;
}

// ---- what tasks read

static uint64_t computing_sequence(const computing *c, const computing_task *task,
                                   uint32_t channel) {
    const pen_run_form *form = &c->table->table->forms[task->form];
    return pen_run_sequence(form, &form->channels[channel], task->round,
                            form->tasks[task->task].task.microbatch);
}

// Compares all that a task reads with what it ought to be. False: a checksum does not fit.
static bool computing_compare(const computing *c, const computing_task *task, bool is_begin) {
    world *w = c->process->world;
    const pen_run_form *form = &c->table->table->forms[task->form];
    const pen_run_task *run = &form->tasks[task->task];
    const computing_round *round = computing_find_round(c, task->round);
    for (uint32_t i = run->receive_first; i < run->receive_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = computing_sequence(c, task, channel);
        computing_place *place = computing_target(c, task->form, channel, sequence);
        const uint32_t words = (uint32_t)(form->channels[channel].bytes / 8);
        if (is_begin && !place->is_compared) {
            const bool is_whole = pen_checksum_find_difference(place->words, 8 * (uint64_t)words,
                                                               &place->checksum) == 1;
            if (!is_whole) return false;
            place->is_compared = true;
        }
        const uint64_t expected =
            shape_expect(c->shape, (shape_content)c->table->contents[task->form][channel],
                         c->table->numbers[task->form][channel], round->step,
                         round->first_microbatch +
                             (form->channels[channel].is_per_step ? 0 : run->task.microbatch),
                         task->form == 1);
        for (uint32_t k = 0; k < words; k++) {
            if (place->words[k] == shape_word(expected, k)) continue;
            world_wrong(w, "I2",
                        "stage %u, step %u, task %u of microbatch %u reads a wrong word %u of "
                        "channel %u %s",
                        run->task.stage, round->step, (unsigned)run->task.kind,
                        run->task.microbatch, k, channel, is_begin ? "at its start" : "at its end");
            return true;
        }
    }
    return true;
}

static uint64_t computing_read(const computing *c, const computing_task *task, uint32_t channel) {
    return computing_target(c, task->form, channel, computing_sequence(c, task, channel))->words[0];
}

// ---- what tasks make

static uint64_t computing_forward(computing *c, const computing_task *task, uint32_t stage,
                                  uint32_t microbatch) {
    const shape *s = c->shape;
    uint64_t word = shape_hash(1, c->stages[stage].parameters);
    for (uint32_t e = 0; e < s->edge_count; e++) {
        if (s->edges[e].target != stage) continue;
        const uint32_t channel = c->table->forward[task->form][e];
        word = shape_hash(word, channel == UINT32_MAX
                                    ? c->stages[s->edges[e].source].forward[microbatch]
                                    : computing_read(c, task, channel));
    }
    const uint32_t feed = c->table->feed[task->form][stage];
    return feed == UINT32_MAX ? word : shape_hash(word, computing_read(c, task, feed));
}

static uint64_t computing_backward(computing *c, const computing_task *task, uint32_t stage,
                                   uint32_t microbatch) {
    const shape *s = c->shape;
    uint64_t word = shape_hash(2, c->stages[stage].parameters);
    word = shape_hash(word, c->stages[stage].forward[microbatch]);
    for (uint32_t e = 0; e < s->edge_count; e++) {
        if (s->edges[e].source != stage) continue;
        const uint32_t channel = c->table->gradient[e];
        word = shape_hash(word, channel == UINT32_MAX
                                    ? c->stages[s->edges[e].target].backward[microbatch]
                                    : computing_read(c, task, channel));
    }
    return word;
}

static uint64_t computing_update(computing *c, const computing_task *task, uint32_t stage) {
    const shape *s = c->shape;
    uint64_t word = shape_hash(5, c->stages[stage].parameters);
    word = shape_hash(word, c->stages[stage].gradient);
    const uint32_t feed = c->table->step_feed[stage];
    if (feed != UINT32_MAX) word = shape_hash(word, computing_read(c, task, feed));
    for (uint32_t e = 0; e < s->exchange_count; e++) {
        if (s->exchanges[e].target != stage) continue;
        const uint32_t channel = c->table->exchange[e];
        word = shape_hash(word, channel == UINT32_MAX ? c->stages[s->exchanges[e].source].sent
                                                      : computing_read(c, task, channel));
    }
    return word;
}

static void computing_accumulate(computing *c, const computing_round *round, uint32_t stage,
                                 uint32_t microbatch) {
    computing_stage *state = &c->stages[stage];
    const uint32_t of_step = round->first_microbatch + microbatch;
    if (of_step != state->accumulated) {
        world_wrong(c->process->world, "I2",
                    "stage %u accumulates microbatch %u of step %u after %u others", stage, of_step,
                    round->step, state->accumulated);
    }
    state->gradient = shape_hash(state->gradient ^ 3, state->backward[microbatch]);
    state->accumulated += 1;
}

static void computing_once(computing *c, uint64_t *place, const computing_task *task,
                           const pen_task *what) {
    if (*place == task->round + 1) {
        world_wrong(c->process->world, "I2", "stage %u runs task %u of microbatch %u twice",
                    what->stage, (unsigned)what->kind, what->microbatch);
    }
    *place = task->round + 1;
}

static bool computing_is_last_phase(const computing *c, const pen_task *task) {
    return task->microbatch == (c->shape->exchange_count > 0 ? 1 : 0);
}

static void computing_check_update(const computing *c, const computing_round *round,
                                   uint32_t stage) {
    const computing_stage *state = &c->stages[stage];
    const uint32_t count = c->shape->counts[round->step][0] + c->shape->counts[round->step][1];
    world *w = c->process->world;
    if (state->accumulated != count) {
        world_wrong(w, "I2", "stage %u updates after %u of %u microbatches", stage,
                    state->accumulated, count);
    } else if (state->step + 1 != round->step) {
        world_wrong(w, "I2", "stage %u updates to step %u from %" PRIu64, stage, round->step,
                    state->step);
    } else if (round->step == c->shape->not_finite_step) {
        world_wrong(w, "I2", "stage %u updates with a loss that is not finite", stage);
    }
}

bool computing_begin(computing *c, computing_task *task) {
    const pen_run_form *form = &c->table->table->forms[task->form];
    const pen_run_task *run = &form->tasks[task->task];
    const pen_task *what = &run->task;
    const computing_round *round = computing_find_round(c, task->round);
    computing_stage *state = &c->stages[what->stage];
    PEN_ASSERT(round != NULL && round->form == task->form);
    if (!computing_compare(c, task, true)) return false;
    switch (what->kind) {
    case PEN_TASK_FORWARD:
        computing_once(c, &state->forward_of[what->microbatch], task, what);
        task->value = computing_forward(c, task, what->stage, what->microbatch);
        break;
    case PEN_TASK_BACKWARD:
    case PEN_TASK_BACKWARD_INPUT:
        computing_once(c, &state->backward_of[what->microbatch], task, what);
        task->value = computing_backward(c, task, what->stage, what->microbatch);
        break;
    case PEN_TASK_BACKWARD_WEIGHT:
        break;
    case PEN_TASK_UPDATE:
        computing_check_update(c, round, what->stage);
        task->value = what->microbatch == 0 ? shape_hash(4, state->gradient) : 0;
        break;
    }
    for (uint32_t i = run->send_first; i < run->send_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = computing_sequence(c, task, channel);
        computing_place *place = computing_source(c, task->form, channel, sequence);
        if (place->is_held) {
            world_wrong(c->process->world, "I3",
                        "stage %u makes a frame of channel %u where one is still used", what->stage,
                        channel);
        }
        memset(place->words, 0xee, sizeof place->words);
    }
    return true;
}

static void computing_store(computing *c, const computing_task *task, const pen_task *what) {
    computing_stage *state = &c->stages[what->stage];
    const computing_round *round = computing_find_round(c, task->round);
    switch (what->kind) {
    case PEN_TASK_FORWARD:
        state->forward[what->microbatch] = task->value;
        break;
    case PEN_TASK_BACKWARD:
        state->backward[what->microbatch] = task->value;
        computing_accumulate(c, round, what->stage, what->microbatch);
        break;
    case PEN_TASK_BACKWARD_INPUT:
        state->backward[what->microbatch] = task->value;
        break;
    case PEN_TASK_BACKWARD_WEIGHT:
        computing_accumulate(c, round, what->stage, what->microbatch);
        break;
    case PEN_TASK_UPDATE:
        if (what->microbatch == 0) state->sent = task->value;
        if (!computing_is_last_phase(c, what)) break;
        state->parameters = computing_update(c, task, what->stage);
        state->step = round->step;
        state->gradient = 0;
        state->accumulated = 0;
        if (state->parameters != c->shape->parameters[round->step][what->stage]) {
            world_wrong(c->process->world, "I7", "stage %u has other parameters after step %u",
                        what->stage, round->step);
        }
        break;
    }
}

void computing_end(computing *c, const computing_task *task) {
    const pen_run_form *form = &c->table->table->forms[task->form];
    const pen_run_task *run = &form->tasks[task->task];
    (void)computing_compare(c, task, false);
    computing_store(c, task, &run->task);
    for (uint32_t i = run->send_first; i < run->send_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = computing_sequence(c, task, channel);
        computing_place *place = computing_source(c, task->form, channel, sequence);
        computing_fill(place, task->value, (uint32_t)(form->channels[channel].bytes / 8), sequence);
    }
}
