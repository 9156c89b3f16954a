#include "scheduler/serve/batcher.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "scheduler/serve/batcher_figures.h"
#include "scheduler/serve/infer_texts.h"

#define BATCHER_IDLE_SECONDS 0.5 // between two looks for lost workers when nothing is to be done

// Rows of a request in a batch.
typedef struct batcher_part {
    pen_infer_request *request;
    uint64_t first; // row of the request
    uint64_t count;
} batcher_part;

// A batch that is formed, or under way.
typedef struct batcher_slot {
    pen_batch batch;
    void **inputs; // [input_count]
    uint64_t *indices;
    batcher_part *parts; // [batch]
    uint32_t part_count;
    uint32_t part_begin; // those that are computed now: those before have been handed out
    uint32_t part_end;
    uint64_t rows;
} batcher_slot;

struct pen_batcher {
    pen_batcher_options options;
    pen_arena *arena;
    pen_thread *thread;
    // the thread's own: a ring, from slots_ended to slots_begun, under way
    batcher_slot slots[PEN_ENGINE_PASSES_LIMIT];
    uint32_t slot_count;
    uint64_t slots_begun;
    uint64_t slots_ended;
    uint64_t ended_at_recovery;

    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    pen_infer_request *first; // of those that wait, by age
    pen_infer_request *last;
    uint64_t queued; // requests
    uint64_t queued_rows;
    double soonest; // deadline of those that wait and have no row under way
    bool is_stopping;
    bool is_recovering;
    bool wants_reload;
    bool is_over;
    pen_status failure;
    pen_batcher_figures figures;
};

// ---- counting

void pen_batcher_count(pen_batcher *b, pen_status_code code) {
    pen_mutex_lock(&b->lock);
    b->figures.answered[code] += 1;
    pen_mutex_unlock(&b->lock);
}

// Without the lock.
static void batcher_finish(pen_batcher *b, pen_infer_request *request, pen_status take_status) {
    pen_mutex_lock(&b->lock);
    pen_batcher_figures_note(&b->figures, pen_status_get_code(take_status),
                             pen_clock_seconds() - request->queued_at);
    pen_mutex_unlock(&b->lock);
    request->done(request->context, request, take_status);
}

// ---- the queue

// Refused at once where it cannot wait: who asks may then try another server.
void pen_batcher_submit(pen_batcher *b, pen_infer_request *request) {
    request->queued_at = pen_clock_seconds();
    request->rows_taken = request->rows_done = 0;
    request->failure = PEN_OK;
    request->next = NULL;
    pen_status status = pen_infer_request_check_indices(request);
    if (status != PEN_OK) {
        batcher_finish(b, request, status);
        return;
    }
    pen_mutex_lock(&b->lock);
    if (b->is_stopping || b->is_over) {
        status = pen_error(PEN_UNAVAILABLE, "the server ends");
    } else if (b->queued >= b->options.queue_limit) {
        status = pen_error(PEN_DOES_NOT_FIT, "%" PRIu64 " requests wait already: try again later",
                           b->queued);
    } else {
        if (b->last != NULL) b->last->next = request;
        if (b->first == NULL) b->first = request;
        b->last = request;
        b->queued += 1;
        b->queued_rows += request->rows;
        pen_condition_signal(&b->changed);
    }
    pen_mutex_unlock(&b->lock);
    if (status != PEN_OK) batcher_finish(b, request, status);
}

// Takes the oldest out. Holds the lock.
static pen_infer_request *batcher_pop(pen_batcher *b) {
    pen_infer_request *request = b->first;
    b->first = request->next;
    if (b->first == NULL) b->last = NULL;
    b->queued -= 1;
    b->queued_rows -= request->rows - request->rows_taken;
    request->next = NULL;
    return request;
}

// Those whose time is over, unless rows of them are under way: a list. Holds the lock.
static pen_infer_request *batcher_take_late(pen_batcher *b, bool takes_all) {
    const double now = pen_clock_seconds();
    pen_infer_request *late = NULL, **end = &late, *kept = NULL, **kept_end = &kept, *last = NULL;
    uint64_t count = 0, rows = 0;
    b->soonest = INFINITY;
    for (pen_infer_request *request = b->first, *next; request != NULL; request = next) {
        next = request->next;
        request->next = NULL;
        if (request->rows_taken == 0 && (takes_all || now >= request->deadline)) {
            *end = request;
            end = &request->next;
            continue;
        }
        if (request->rows_taken == 0) b->soonest = fmin(b->soonest, request->deadline);
        *kept_end = last = request;
        kept_end = &request->next;
        count += 1;
        rows += request->rows - request->rows_taken;
    }
    b->first = kept;
    b->last = last;
    b->queued = count;
    b->queued_rows = rows;
    return late;
}

static void batcher_refuse(pen_batcher *b, pen_infer_request *list, bool is_end) {
    while (list != NULL) {
        pen_infer_request *request = list;
        list = request->next;
        batcher_finish(b, request,
                       is_end ? pen_error(PEN_UNAVAILABLE, "the server ends")
                              : pen_error(PEN_DEADLINE, "the request has waited for too long"));
    }
}

// ---- batches

// Whether a batch is to begin now; else *out_seconds says when to look again. Holds the lock.
static bool batcher_is_due(const pen_batcher *b, double *out_seconds) {
    *out_seconds = BATCHER_IDLE_SECONDS;
    if (b->first == NULL) return false;
    if (b->queued_rows >= b->options.batch || b->is_stopping) return true;
    const double now = pen_clock_seconds();
    const double due = b->first->queued_at + b->options.max_wait_seconds;
    *out_seconds = fmin(due, b->soonest) - now;
    return now >= due;
}

// The oldest requests, as many rows as there is room for. Holds the lock.
static void batcher_fill(pen_batcher *b, batcher_slot *slot) {
    slot->part_count = slot->part_begin = 0;
    slot->rows = 0;
    while (b->first != NULL && slot->rows < b->options.batch) {
        pen_infer_request *request = b->first;
        const uint64_t count =
            pen_min_u64(request->rows - request->rows_taken, b->options.batch - slot->rows);
        slot->parts[slot->part_count++] = (batcher_part){request, request->rows_taken, count};
        slot->rows += count;
        if (request->rows_taken + count == request->rows)
            (void)batcher_pop(b);
        else
            b->queued_rows -= count;
        request->rows_taken += count;
    }
    slot->part_end = slot->part_count;
}

// Rows of the requests that are computed now, one behind the other, and zeros behind them.
// *out_rows: how many; those of requests that have failed already are left out.
static void batcher_copy_inputs(const pen_batcher *b, batcher_slot *slot, uint64_t *out_rows) {
    const pen_served_model *model = b->options.model;
    *out_rows = 0;
    for (uint32_t p = slot->part_begin; p < slot->part_end; p++) {
        const batcher_part *part = &slot->parts[p];
        if (part->request->failure != PEN_OK) continue;
        for (uint32_t i = 0; i < model->input_count; i++) {
            const uint64_t bytes = model->inputs[i].row_bytes;
            memcpy((char *)slot->inputs[i] + *out_rows * bytes,
                   part->request->inputs[i] + part->first * bytes, part->count * bytes);
        }
        *out_rows += part->count;
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        const uint64_t bytes = model->inputs[i].row_bytes;
        memset((char *)slot->inputs[i] + *out_rows * bytes, 0,
               (slot->batch.count - *out_rows) * bytes);
    }
}

// Rows of a request are computed, or will not be: a request that is whole is done.
static void batcher_note_rows(pen_batcher *b, pen_infer_request *request, uint64_t count) {
    request->rows_done += count;
    if (request->rows_done == request->rows) batcher_finish(b, request, request->failure);
}

// Hands rows (NULL: none were computed) to their requests; those that are whole are done. Requests
// of the batch that were not computed with them come next, each by itself.
static void batcher_hand_out(pen_batcher *b, batcher_slot *slot, const void *const *rows) {
    const pen_served_model *model = b->options.model;
    uint64_t first = 0;
    for (uint32_t p = slot->part_begin; p < slot->part_end; p++) {
        const batcher_part *part = &slot->parts[p];
        pen_infer_request *request = part->request;
        if (request->failure == PEN_OK && rows != NULL) {
            for (uint32_t i = 0; i < model->output_count; i++) {
                const uint64_t bytes = model->outputs[i].row_bytes;
                memcpy(request->outputs[i] + part->first * bytes,
                       (const char *)rows[i] + first * bytes, part->count * bytes);
            }
            first += part->count;
        }
        batcher_note_rows(b, request, part->count);
    }
    pen_mutex_lock(&b->lock);
    b->figures.batches += first > 0;
    b->figures.rows += first;
    pen_mutex_unlock(&b->lock);
    slot->part_begin = slot->part_end;
    slot->part_end = (uint32_t)pen_min_u64(slot->part_begin + 1, slot->part_count);
    if (slot->part_begin == slot->part_count) b->slots_ended += 1;
}

// ---- the engine

static pen_engine *batcher_engine(const pen_batcher *b) {
    return pen_inference_engine(b->options.inference);
}

static batcher_slot *batcher_oldest(pen_batcher *b) {
    return &b->slots[b->slots_ended % b->slot_count];
}

static pen_status batcher_begin_slot(pen_batcher *b, uint64_t number) {
    pen_engine *engine = batcher_engine(b);
    return engine->kind->begin_pass(engine, b->options.info,
                                    &b->slots[number % b->slot_count].batch);
}

static pen_status batcher_begin(pen_batcher *b) {
    batcher_slot *slot = &b->slots[b->slots_begun % b->slot_count];
    uint64_t rows;
    pen_mutex_lock(&b->lock);
    batcher_fill(b, slot);
    pen_mutex_unlock(&b->lock);
    const bool is_small = slot->rows <= b->options.small_batch;
    slot->batch.count = is_small ? b->options.small_batch : b->options.batch;
    batcher_copy_inputs(b, slot, &rows);
    b->slots_begun += 1; // from now on it is begun again if a worker is lost
    return batcher_begin_slot(b, b->slots_begun - 1);
}

static pen_status batcher_end(pen_batcher *b) {
    pen_engine *engine = batcher_engine(b);
    pen_engine_passed passed;
    PEN_TRY(engine->kind->end_pass(engine, &passed));
    batcher_hand_out(b, batcher_oldest(b), passed.rows);
    return PEN_OK;
}

static void batcher_set_recovering(pen_batcher *b, bool is_recovering) {
    pen_mutex_lock(&b->lock);
    b->is_recovering = is_recovering;
    if (is_recovering) b->figures.recoveries += 1;
    pen_mutex_unlock(&b->lock);
}

// Batches under way are begun again by the next generation: nobody but who waits sees it. Fewer may
// be under way there than before, so each is ended at once.
static pen_status batcher_repeat(pen_batcher *b) {
    while (b->slots_ended < b->slots_begun) {
        batcher_slot *slot = batcher_oldest(b);
        uint64_t rows;
        batcher_copy_inputs(b, slot, &rows);
        if (rows == 0) {
            batcher_hand_out(b, slot, NULL);
            continue;
        }
        PEN_TRY(batcher_begin_slot(b, b->slots_ended));
        PEN_TRY(batcher_end(b));
    }
    return PEN_OK;
}

// The engine takes passes again: on one device it never ceased to.
static pen_status batcher_renew(pen_batcher *b) {
    if (batcher_engine(b)->kind->recover == NULL) return PEN_OK;
    batcher_set_recovering(b, true);
    const pen_status status = pen_inference_renew(b->options.inference);
    batcher_set_recovering(b, false);
    return status;
}

// A worker was lost.
static pen_status batcher_recover(pen_batcher *b, pen_status take_status) {
    const uint64_t progress = b->slots_ended - b->ended_at_recovery;
    b->ended_at_recovery = b->slots_ended;
    batcher_set_recovering(b, true);
    const pen_status status = pen_inference_recover(b->options.inference, progress, take_status);
    batcher_set_recovering(b, false);
    return status;
}

// ---- values that the model cannot take

// The oldest batch, with no other in the engine, has a value that the model cannot take, such as an
// index behind a table's last row. Of several requests each is computed by itself from now on; one
// alone is to blame, and the rest of its rows is not computed.
static void batcher_blame(pen_batcher *b, pen_status take_status) {
    batcher_slot *slot = batcher_oldest(b);
    const batcher_part *part = &slot->parts[slot->part_begin];
    pen_infer_request *request = part->request;
    if (slot->part_end - slot->part_begin > 1) {
        slot->part_end = slot->part_begin + 1;
        pen_status_ignore(take_status, "found again, in the request that is to blame");
        return;
    }
    request->failure = pen_infer_blame_rows(part->first, take_status);
    pen_mutex_lock(&b->lock);
    if (b->first == request) {
        (void)batcher_pop(b);
        request->rows_done += request->rows - request->rows_taken;
    }
    pen_mutex_unlock(&b->lock);
}

// Goes on after an error: what was under way is computed again. A wrong value in a request ends
// that request alone; where several batches were under way, the one that has it is found first.
static pen_status batcher_mend(pen_batcher *b, pen_status take_status) {
    pen_status status = take_status;
    bool is_alone = b->slots_begun - b->slots_ended == 1;
    while (status != PEN_OK) {
        const bool is_of_pass = b->slots_ended < b->slots_begun;
        if (is_of_pass && pen_status_get_code(status) == PEN_INVALID_INPUT) {
            if (is_alone)
                batcher_blame(b, status);
            else
                pen_status_ignore(status, "found again, in the batch that has it");
            PEN_TRY(batcher_renew(b));
        } else if (pen_inference_can_recover(b->options.inference, status)) {
            PEN_TRY(batcher_recover(b, status)); // an error: the job does not go on
        } else {
            return status;
        }
        status = batcher_repeat(b);
        is_alone = true;
    }
    return PEN_OK;
}

// ---- other parameters

// No pass is under way.
static pen_status batcher_load(pen_batcher *b) {
    const char *path = b->options.parameters;
    pen_status status = path == NULL ? pen_error(PEN_NOT_FOUND, "there is no file of parameters")
                                     : pen_inference_load(b->options.inference, path);
    const bool is_loaded = status == PEN_OK;
    const pen_status_code code = pen_status_get_code(status);
    if (!is_loaded && pen_inference_can_recover(b->options.inference, status)) return status;
    if (is_loaded) {
        pen_log(PEN_LOG_NOTE, "serves the parameters that are in %s now", path);
    } else {
        pen_log(PEN_LOG_WARNING, "%s; the parameters stay", pen_status_message(status));
        pen_status_ignore(status, "said");
    }
    pen_mutex_lock(&b->lock);
    b->figures.reloads += is_loaded;
    b->figures.failed_reloads += code != PEN_CODE_OK;
    pen_mutex_unlock(&b->lock);
    return PEN_OK;
}

typedef enum batcher_step {
    BATCHER_BEGINS,
    BATCHER_ENDS,
    BATCHER_LOADS,
    BATCHER_LOOKS,
    BATCHER_LEAVES
} batcher_step;

// What is to be done next; waits while it is nothing, and then looks whether all workers are there.
// Late requests are refused on the way.
static batcher_step batcher_await(pen_batcher *b) {
    pen_mutex_lock(&b->lock);
    for (;;) {
        const uint64_t under_way = b->slots_begun - b->slots_ended;
        double seconds;
        pen_infer_request *late = batcher_take_late(b, false);
        if (late != NULL) {
            pen_mutex_unlock(&b->lock);
            batcher_refuse(b, late, false);
            pen_mutex_lock(&b->lock);
            continue;
        }
        batcher_step step = BATCHER_ENDS;
        const bool is_due = batcher_is_due(b, &seconds);
        const bool has_room = under_way < b->slot_count;
        if (b->wants_reload && under_way == 0)
            step = BATCHER_LOADS;
        else if (is_due && has_room && !b->wants_reload)
            step = BATCHER_BEGINS;
        else if (under_way == 0 && b->is_stopping && b->first == NULL)
            step = BATCHER_LEAVES;
        else if (under_way == 0) {
            seconds = fmin(fmax(seconds, 1e-4), BATCHER_IDLE_SECONDS);
            if (pen_condition_wait_for(&b->changed, &b->lock, seconds)) continue;
            step = BATCHER_LOOKS;
        }
        if (step == BATCHER_LOADS) b->wants_reload = false;
        pen_mutex_unlock(&b->lock);
        return step;
    }
}

static pen_status batcher_do(pen_batcher *b, batcher_step step) {
    switch (step) {
    case BATCHER_BEGINS:
        return batcher_begin(b);
    case BATCHER_ENDS:
        return batcher_end(b);
    case BATCHER_LOADS:
        return batcher_load(b);
    case BATCHER_LOOKS:
        return pen_inference_check(b->options.inference);
    case BATCHER_LEAVES:
        break;
    }
    return PEN_OK;
}

// The end before its time: whoever waits is told.
static void batcher_fail_all(pen_batcher *b, pen_status take_failure) {
    pen_mutex_lock(&b->lock);
    b->is_over = true;
    b->failure = take_failure;
    const bool is_split = b->first != NULL && b->first->rows_taken > 0; // the rest of it waits
    pen_infer_request *split = is_split ? batcher_pop(b) : NULL;
    pen_infer_request *waiting = batcher_take_late(b, true);
    pen_mutex_unlock(&b->lock);
    if (split != NULL) {
        split->failure = pen_error(PEN_UNAVAILABLE, "the devices are lost");
        batcher_note_rows(b, split, split->rows - split->rows_taken);
    }
    for (; b->slots_ended < b->slots_begun; b->slots_ended++) {
        const batcher_slot *slot = batcher_oldest(b);
        for (uint32_t p = slot->part_begin; p < slot->part_count; p++) {
            pen_infer_request *request = slot->parts[p].request;
            if (request->failure == PEN_OK) {
                request->failure = pen_error(PEN_UNAVAILABLE, "the devices are lost");
            }
            batcher_note_rows(b, request, slot->parts[p].count);
        }
    }
    batcher_refuse(b, waiting, true);
}

static void batcher_run(void *context) {
    pen_batcher *b = context;
    for (;;) {
        const batcher_step step = batcher_await(b);
        if (step == BATCHER_LEAVES) break;
        pen_status status = batcher_do(b, step);
        if (status != PEN_OK) status = batcher_mend(b, status);
        if (status == PEN_OK) continue;
        batcher_fail_all(b, status);
        return;
    }
    pen_mutex_lock(&b->lock);
    b->is_over = true;
    pen_mutex_unlock(&b->lock);
}

// ---- life

static pen_status batcher_prepare_slot(pen_batcher *b, batcher_slot *slot) {
    const pen_served_model *model = b->options.model;
    const uint64_t batch = b->options.batch;
    PEN_TRY(PEN_NEW(b->arena, model->input_count, &slot->inputs));
    PEN_TRY(PEN_NEW(b->arena, batch, &slot->indices));
    PEN_TRY(PEN_NEW(b->arena, batch, &slot->parts));
    for (uint32_t i = 0; i < model->input_count; i++) {
        char *rows;
        PEN_TRY(PEN_NEW(b->arena, batch * model->inputs[i].row_bytes, &rows));
        slot->inputs[i] = rows;
    }
    slot->batch = (pen_batch){.indices = slot->indices, .inputs = slot->inputs};
    return PEN_OK;
}

static pen_status batcher_prepare(pen_batcher *b) {
    const pen_engine *engine = batcher_engine(b);
    b->slot_count = engine->kind->pass_limit(engine);
    PEN_TRY(pen_arena_create(&b->arena));
    for (uint32_t s = 0; s < b->slot_count; s++) {
        PEN_TRY(batcher_prepare_slot(b, &b->slots[s]));
    }
    return pen_thread_create("batcher", batcher_run, b, &b->thread);
}

pen_status pen_batcher_create(const pen_batcher_options *options, pen_batcher **out_batcher) {
    pen_batcher *b = pen_memory_allocate(1, sizeof *b);
    if (b == NULL) return pen_error_out_of_memory();
    b->options = *options;
    pen_mutex_init(&b->lock);
    pen_condition_init(&b->changed);
    const pen_status status = batcher_prepare(b);
    if (status != PEN_OK) {
        pen_batcher_destroy(b);
        return status;
    }
    *out_batcher = b;
    return PEN_OK;
}

void pen_batcher_stop(pen_batcher *b, pen_status *out_failure) {
    *out_failure = PEN_OK;
    if (b == NULL) return;
    pen_mutex_lock(&b->lock);
    b->is_stopping = true;
    pen_condition_signal(&b->changed);
    pen_mutex_unlock(&b->lock);
    pen_thread_join(b->thread);
    b->thread = NULL;
    *out_failure = b->failure;
}

void pen_batcher_destroy(pen_batcher *b) {
    if (b == NULL) return;
    PEN_ASSERT(b->thread == NULL);
    pen_condition_deinit(&b->changed);
    pen_mutex_deinit(&b->lock);
    pen_arena_destroy(b->arena);
    pen_memory_free(b);
}

void pen_batcher_reload(pen_batcher *b) {
    pen_mutex_lock(&b->lock);
    b->wants_reload = true;
    pen_condition_signal(&b->changed);
    pen_mutex_unlock(&b->lock);
}

bool pen_batcher_is_ready(pen_batcher *b) {
    pen_mutex_lock(&b->lock);
    const bool is_ready = !b->is_recovering && !b->is_stopping && !b->is_over;
    pen_mutex_unlock(&b->lock);
    return is_ready;
}

bool pen_batcher_is_over(pen_batcher *b) {
    pen_mutex_lock(&b->lock);
    const bool is_over = b->is_over;
    pen_mutex_unlock(&b->lock);
    return is_over;
}

// ---- metrics

// The figures are copied under the lock, and written without it.
void pen_batcher_print_metrics(pen_batcher *b, pen_text *text) {
    const bool is_ready = pen_batcher_is_ready(b);
    pen_mutex_lock(&b->lock);
    const pen_batcher_figures figures = b->figures;
    const uint64_t queued = b->queued;
    pen_mutex_unlock(&b->lock);
    pen_batcher_figures_print(&figures, queued, is_ready, text);
}
