#include "scheduler/serve/batcher.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

#define BATCHER_IDLE_SECONDS 0.5 // between two looks for lost workers when nothing is to be done
#define BATCHER_CODES (PEN_INTERNAL + 1)

// Upper ends of the histogram of latencies, in seconds.
static const double batcher_bounds[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                        0.1,   0.2,   0.5,   1,    2,    5};
#define BATCHER_BOUNDS (sizeof batcher_bounds / sizeof *batcher_bounds)

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
    uint64_t rows;
} batcher_slot;

typedef struct batcher_figures {
    uint64_t answered[BATCHER_CODES]; // requests, by code
    uint64_t latencies[BATCHER_BOUNDS + 1];
    double latency_sum;
    uint64_t batches;
    uint64_t rows;
    uint64_t recoveries;
    uint64_t reloads;
    uint64_t failed_reloads;
} batcher_figures;

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
    batcher_figures figures;
};

// ---- counting

// Holds the lock.
static void batcher_note(pen_batcher *b, const pen_infer_request *request, pen_status_code code) {
    const double seconds = pen_clock_seconds() - request->queued_at;
    size_t bound = 0;
    b->figures.answered[code] += 1;
    if (code != PEN_CODE_OK) return;
    while (bound < BATCHER_BOUNDS && seconds > batcher_bounds[bound])
        bound++;
    b->figures.latencies[bound] += 1;
    b->figures.latency_sum += seconds;
}

void pen_batcher_count(pen_batcher *b, pen_status_code code) {
    pen_mutex_lock(&b->lock);
    b->figures.answered[code] += 1;
    pen_mutex_unlock(&b->lock);
}

// Without the lock.
static void batcher_finish(pen_batcher *b, pen_infer_request *request, pen_status take_status) {
    pen_mutex_lock(&b->lock);
    batcher_note(b, request, pen_status_get_code(take_status));
    pen_mutex_unlock(&b->lock);
    request->done(request->context, request, take_status);
}

// ---- the queue

// Refused at once where it cannot wait: who asks may then try another server.
void pen_batcher_submit(pen_batcher *b, pen_infer_request *request) {
    pen_status status = PEN_OK;
    request->queued_at = pen_clock_seconds();
    request->rows_taken = request->rows_done = 0;
    request->next = NULL;
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
    slot->part_count = 0;
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
}

// Rows of the requests one behind the other, and zeros behind them.
static void batcher_copy_inputs(const pen_batcher *b, batcher_slot *slot) {
    const pen_served_model *model = b->options.model;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const uint64_t bytes = model->inputs[i].row_bytes;
        char *to = slot->inputs[i];
        for (uint32_t p = 0; p < slot->part_count; p++) {
            const batcher_part *part = &slot->parts[p];
            memcpy(to, part->request->inputs[i] + part->first * bytes, part->count * bytes);
            to += part->count * bytes;
        }
        memset(to, 0, (slot->batch.count - slot->rows) * bytes);
    }
}

// Hands rows to their requests; those that are whole are done.
static void batcher_hand_out(pen_batcher *b, batcher_slot *slot, const void *const *rows) {
    const pen_served_model *model = b->options.model;
    uint64_t first = 0;
    for (uint32_t p = 0; p < slot->part_count; p++) {
        const batcher_part *part = &slot->parts[p];
        pen_infer_request *request = part->request;
        for (uint32_t i = 0; i < model->output_count; i++) {
            const uint64_t bytes = model->outputs[i].row_bytes;
            memcpy(request->outputs[i] + part->first * bytes, (const char *)rows[i] + first * bytes,
                   part->count * bytes);
        }
        first += part->count;
        request->rows_done += part->count;
        if (request->rows_done == request->rows) batcher_finish(b, request, PEN_OK);
    }
    pen_mutex_lock(&b->lock);
    b->figures.batches += 1;
    b->figures.rows += slot->rows;
    pen_mutex_unlock(&b->lock);
}

// ---- the engine

static pen_engine *batcher_engine(const pen_batcher *b) {
    return pen_inference_engine(b->options.inference);
}

static pen_status batcher_begin_slot(pen_batcher *b, uint64_t number) {
    pen_engine *engine = batcher_engine(b);
    return engine->kind->begin_pass(engine, b->options.info,
                                    &b->slots[number % b->slot_count].batch);
}

static pen_status batcher_begin(pen_batcher *b) {
    batcher_slot *slot = &b->slots[b->slots_begun % b->slot_count];
    pen_mutex_lock(&b->lock);
    batcher_fill(b, slot);
    pen_mutex_unlock(&b->lock);
    const bool is_small = slot->rows <= b->options.small_batch;
    slot->batch.count = is_small ? b->options.small_batch : b->options.batch;
    batcher_copy_inputs(b, slot);
    b->slots_begun += 1; // from now on it is begun again if a worker is lost
    return batcher_begin_slot(b, b->slots_begun - 1);
}

static pen_status batcher_end(pen_batcher *b) {
    pen_engine *engine = batcher_engine(b);
    pen_engine_passed passed;
    PEN_TRY(engine->kind->end_pass(engine, &passed));
    batcher_hand_out(b, &b->slots[b->slots_ended % b->slot_count], passed.rows);
    b->slots_ended += 1;
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
static pen_status batcher_recover(pen_batcher *b, pen_status take_status) {
    pen_status status = take_status;
    while (status != PEN_OK && pen_inference_can_recover(b->options.inference, status)) {
        const uint64_t progress = b->slots_ended - b->ended_at_recovery;
        b->ended_at_recovery = b->slots_ended;
        batcher_set_recovering(b, true);
        status = pen_inference_recover(b->options.inference, progress, status);
        while (status == PEN_OK && b->slots_ended < b->slots_begun) {
            status = batcher_begin_slot(b, b->slots_ended);
            if (status == PEN_OK) status = batcher_end(b);
        }
        batcher_set_recovering(b, false);
    }
    return status;
}

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
    for (pen_infer_request *request = b->first; request != NULL; request = request->next) {
        request->rows_taken = 0; // none of it will be done
    }
    pen_infer_request *waiting = batcher_take_late(b, true);
    pen_mutex_unlock(&b->lock);
    for (; b->slots_ended < b->slots_begun; b->slots_ended++) {
        const batcher_slot *slot = &b->slots[b->slots_ended % b->slot_count];
        for (uint32_t p = 0; p < slot->part_count; p++) {
            const batcher_part *part = &slot->parts[p];
            const bool is_last = part->first + part->count == part->request->rows;
            if (!is_last) continue; // the rest of it waits, or is in a later batch
            batcher_finish(b, part->request, pen_error(PEN_UNAVAILABLE, "the devices are lost"));
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
        if (status != PEN_OK) status = batcher_recover(b, status);
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

static const char *batcher_code_name(pen_status_code code) {
    switch (code) {
    case PEN_CODE_OK:
        return "ok";
    case PEN_INVALID_INPUT:
        return "invalid";
    case PEN_NOT_FOUND:
        return "not_found";
    case PEN_DOES_NOT_FIT:
        return "exhausted";
    case PEN_DEADLINE:
        return "deadline";
    case PEN_UNAVAILABLE:
        return "unavailable";
    default:
        return "other";
    }
}

static void metrics_print_answers(const batcher_figures *figures, pen_text *text) {
    pen_text_print(text, "# TYPE penstock_requests_total counter\n");
    static const pen_status_code codes[] = {PEN_CODE_OK,      PEN_INVALID_INPUT, PEN_NOT_FOUND,
                                            PEN_DOES_NOT_FIT, PEN_DEADLINE,      PEN_UNAVAILABLE};
    uint64_t other = 0;
    for (uint32_t code = 0; code < BATCHER_CODES; code++) {
        other += figures->answered[code];
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        other -= figures->answered[codes[i]];
        pen_text_print(text, "penstock_requests_total{outcome=\"%s\"} %" PRIu64 "\n",
                       batcher_code_name(codes[i]), figures->answered[codes[i]]);
    }
    pen_text_print(text, "penstock_requests_total{outcome=\"other\"} %" PRIu64 "\n", other);
}

static void metrics_print_latencies(const batcher_figures *figures, pen_text *text) {
    uint64_t count = 0;
    pen_text_print(text, "# TYPE penstock_request_seconds histogram\n");
    for (size_t i = 0; i < BATCHER_BOUNDS; i++) {
        count += figures->latencies[i];
        pen_text_print(text, "penstock_request_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
                       batcher_bounds[i], count);
    }
    count += figures->latencies[BATCHER_BOUNDS];
    pen_text_print(text,
                   "penstock_request_seconds_bucket{le=\"+Inf\"} %" PRIu64
                   "\npenstock_request_seconds_sum %.9g\npenstock_request_seconds_count %" PRIu64
                   "\n",
                   count, figures->latency_sum, count);
}

// The figures are copied under the lock, and written without it.
void pen_batcher_print_metrics(pen_batcher *b, pen_text *text) {
    const bool is_ready = pen_batcher_is_ready(b);
    pen_mutex_lock(&b->lock);
    const batcher_figures figures = b->figures;
    const uint64_t queued = b->queued;
    pen_mutex_unlock(&b->lock);
    metrics_print_answers(&figures, text);
    metrics_print_latencies(&figures, text);
    const struct {
        const char *name, *type;
        uint64_t value;
    } lines[] = {
        {"penstock_batches_total", "counter", figures.batches},
        {"penstock_rows_total", "counter", figures.rows},
        {"penstock_recoveries_total", "counter", figures.recoveries},
        {"penstock_reloads_total", "counter", figures.reloads},
        {"penstock_reloads_failed_total", "counter", figures.failed_reloads},
        {"penstock_queued_requests", "gauge", queued},
        {"penstock_ready", "gauge", is_ready},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        pen_text_print(text, "# TYPE %s %s\n%s %" PRIu64 "\n", lines[i].name, lines[i].type,
                       lines[i].name, lines[i].value);
    }
}
