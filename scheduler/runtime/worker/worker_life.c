#include "scheduler/runtime/worker/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/system/failpoint.h"
#include "base/system/machine.h"
#include "device/device.h"
#include "scheduler/runtime/run/run_spec_wire.h"
#include "scheduler/runtime/worker/worker_inside.h"

#define WORKER_LINK_SECONDS 60.0
#define WORKER_LEAVE_SECONDS 1.0   // for the coordinator to take what is on its way
#define WORKER_LEASE_SECONDS 10.0  // until the coordinator says another one
#define WORKER_RESUME_SECONDS 60.0 // that a link waits; the coordinator's lease ends a run before
#define WORKER_BEAT_SECONDS 0.25
// Deadlines of waits, behind those of a coordinator that is well: its reasons say more.
#define WORKER_ASSIGN_SECONDS 600.0 // it calls again while it waits for others for longer
#define WORKER_LOAD_SECONDS 360.0
#define WORKER_STUCK_SECONDS 600.0 // for a task, and the part of a checkpoint, to end

// ---- loading, on the worker's thread

// What is to be loaded: as it was when the thread took it up.
typedef struct worker_load_order {
    uint64_t generation;
    uint32_t number; // among the workers of the run
    char job[PEN_MESSAGE_JOB_BYTES];
} worker_load_order;

static bool worker_needs_peer(const pen_run_spec *spec, uint32_t me, uint32_t peer) {
    const pen_run_table *table = spec->table;
    if (spec->survey == PEN_RUN_SURVEY_LINKS) return true;
    for (uint32_t f = 0; f < table->form_count; f++) {
        const pen_run_form *form = &table->forms[f];
        for (uint32_t c = 0; c < form->channel_count; c++) {
            const pen_run_channel *channel = &form->channels[c];
            const uint32_t source = channel->source_worker, target = channel->target_worker;
            if ((source == me && target == peer) || (source == peer && target == me)) return true;
        }
    }
    return false;
}

// Waits until `peer` is linked or all is over.
static pen_status worker_await_link(pen_worker *worker, const pen_run_spec *spec, uint32_t peer) {
    const double deadline = pen_clock_seconds() + WORKER_LINK_SECONDS;
    pen_status status = PEN_OK;
    pen_mutex_lock(&worker->lock);
    while (worker->links[peer] != WORKER_LINK_UP && !worker->wants_leave && !worker->is_closed) {
        const double left = deadline - pen_clock_seconds();
        if (left <= 0) break;
        (void)pen_condition_wait_for(&worker->changed, &worker->lock, left);
    }
    if (worker->links[peer] != WORKER_LINK_UP) {
        status = pen_error(PEN_DEADLINE, "no link to %s within %.0f s", spec->workers[peer].name,
                           WORKER_LINK_SECONDS);
    }
    pen_mutex_unlock(&worker->lock);
    return status;
}

static pen_status worker_call(pen_worker *worker, const pen_run_spec *spec, uint32_t peer) {
    pen_mutex_lock(&worker->lock);
    worker->links[peer] = WORKER_LINK_PENDING;
    pen_mutex_unlock(&worker->lock);
    const pen_status status = worker->transport->kind->connect(
        worker->transport, peer, spec->workers[peer].address, WORKER_LINK_SECONDS);
    if (status == PEN_OK) return PEN_OK;
    pen_mutex_lock(&worker->lock);
    worker->links[peer] = WORKER_LINK_NONE;
    pen_mutex_unlock(&worker->lock);
    return status;
}

static pen_status worker_link(pen_worker *worker, const worker_load_order *order,
                              const pen_run_spec *spec) {
    const uint32_t count = spec->table->worker_count;
    const uint32_t me = order->number;
    const pen_introduction self = {.job = order->job,
                                   .peer = me,
                                   .generation = order->generation,
                                   .incarnation = worker->incarnation,
                                   .shares_memory = spec->shares_memory};
    PEN_TRY(worker->transport->kind->introduce(worker->transport, &self));
    for (uint32_t peer = me + 1; peer <= count; peer++) {
        if (worker_needs_peer(spec, me, peer)) PEN_TRY(worker_call(worker, spec, peer));
    }
    for (uint32_t peer = 1; peer <= count; peer++) {
        if (peer == me || !worker_needs_peer(spec, me, peer)) continue;
        PEN_TRY(worker_await_link(worker, spec, peer));
    }
    return PEN_OK;
}

static pen_status worker_decode_spec(pen_worker *worker, const pen_run_spec **out_spec) {
    const uint32_t chunks = pen_frame_chunk_count(worker->blob_bytes);
    if (pen_checksum_find_difference(worker->blob, worker->blob_bytes, worker->blob_checksums) !=
        chunks) {
        return pen_error(PEN_CORRUPT, "the description was damaged on the way");
    }
    PEN_TRY(pen_run_spec_decode(worker->blob, worker->blob_bytes, worker->arena, out_spec));
    pen_mutex_lock(&worker->lock);
    pen_memory_free(worker->blob); // what was decoded borrows nothing
    worker->blob = NULL;
    pen_mutex_unlock(&worker->lock);
    return PEN_OK;
}

static pen_status worker_read_spec(pen_worker *worker, uint32_t number,
                                   const pen_run_spec **out_spec) {
    *out_spec = worker->options.spec;
    if (*out_spec == NULL) PEN_TRY(worker_decode_spec(worker, out_spec));
    PEN_ASSERT(*out_spec != NULL);
    if ((*out_spec)->table->worker_count >= number && number > 0) return PEN_OK;
    return pen_error(PEN_CORRUPT, "assigned as worker %u of %u", number,
                     (*out_spec)->table->worker_count);
}

// The description is borrowed by the run and lives in the worker's arena until it leaves.
static pen_status worker_load_run(pen_worker *worker, const worker_load_order *order,
                                  const pen_run_spec *spec, pen_worker_run **out_run) {
    const pen_worker_run_options options = {.spec = spec,
                                            .worker = order->number,
                                            .generation = order->generation,
                                            .incarnation = worker->incarnation,
                                            .defer_contents = worker->options.spec == NULL,
                                            .reads_nothing = worker->options.spec == NULL &&
                                                             worker->options.data == NULL,
                                            .data_folder = worker->options.data,
                                            .loaded = worker->options.loaded,
                                            .model = worker->options.model,
                                            .collector = worker->options.collector,
                                            .stores = &worker->stores,
                                            .transport = worker->transport,
                                            .events = pen_worker_run_listeners(worker)};
    pen_worker_run *run;
    PEN_TRY(pen_worker_run_create(&options, &run));
    const pen_status status = pen_worker_run_load(run);
    if (status != PEN_OK) {
        pen_worker_run_destroy(run);
        return status;
    }
    *out_run = run;
    return PEN_OK;
}

// Of a survey nothing is loaded: devices are opened when something is asked of them.
static pen_status worker_load_survey(pen_worker *worker, const worker_load_order *order,
                                     const pen_run_spec *spec) {
    const pen_member_event loaded = {.kind = PEN_MEMBER_EVENT_LOADED};
    pen_message ready = {.kind = PEN_MESSAGE_READY};
    pen_worker_survey *survey;
    pen_worker_survey_options options = pen_worker_survey_listeners(worker);
    options.spec = spec;
    options.worker = order->number;
    options.generation = order->generation;
    options.incarnation = worker->incarnation;
    options.transport = worker->transport;
    PEN_TRY(pen_worker_survey_create(&options, &survey));
    pen_mutex_lock(&worker->lock);
    worker->survey = survey;
    pen_mutex_unlock(&worker->lock);
    if (spec->survey == PEN_RUN_SURVEY_LINKS) PEN_TRY(worker_link(worker, order, spec));
    pen_worker_tell(worker, 0, &ready);
    pen_worker_step(worker, &loaded);
    return PEN_OK;
}

// Which of the folders that the coordinator saves to are seen here.
static void worker_look_for_folders(pen_worker *worker) {
    char sought[PEN_MESSAGE_TEXT_BYTES], name[PEN_MESSAGE_TEXT_BYTES];
    uint32_t seen = 0;
    pen_disk *disk;
    pen_mutex_lock(&worker->lock);
    memcpy(sought, worker->sought, sizeof sought);
    const uint64_t mark = worker->sought_mark;
    pen_mutex_unlock(&worker->lock);
    char *path = sought;
    for (uint32_t i = 0; path != NULL && i < PEN_SHARED_FOLDER_LIMIT; i++) {
        char *end = strchr(path, '\n');
        if (end != NULL) *end = '\0';
        if (path[0] != '\0' &&
            pen_shared_folders_find(&worker->stores, path, mark + i, &disk, name, sizeof name)) {
            seen |= 1u << i;
        }
        path = end == NULL ? NULL : end + 1;
    }
    pen_mutex_lock(&worker->lock);
    worker->seen = seen;
    pen_mutex_unlock(&worker->lock);
}

static pen_status worker_load(pen_worker *worker, const worker_load_order *order) {
    const pen_member_event loaded = {.kind = PEN_MEMBER_EVENT_LOADED};
    const pen_run_spec *spec;
    pen_worker_run *run;
    (void)PEN_FAILPOINT("worker.described");
    PEN_TRY(worker_read_spec(worker, order->number, &spec));
    if (spec->survey != PEN_RUN_SURVEY_NONE) return worker_load_survey(worker, order, spec);
    PEN_TRY(worker_load_run(worker, order, spec, &run));
    (void)PEN_FAILPOINT("worker.loaded");
    pen_mutex_lock(&worker->lock);
    worker->run = run;
    pen_mutex_unlock(&worker->lock);
    PEN_TRY(worker_link(worker, order, spec));
    worker_look_for_folders(worker);
    PEN_TRY(pen_worker_run_set_ready(run));
    pen_worker_step(worker, &loaded);
    (void)PEN_FAILPOINT("worker.ready");
    return PEN_OK;
}

// Takes the lock given, and gives it back.
static void worker_do_load(pen_worker *worker) {
    worker_load_order order = {.generation = worker->member.generation,
                               .number = worker->member.worker};
    memcpy(order.job, worker->job, sizeof order.job);
    pen_mutex_unlock(&worker->lock);
    const pen_status status = worker_load(worker, &order);
    pen_mutex_lock(&worker->lock);
    const bool is_left = worker->wants_leave || worker->is_closed;
    pen_mutex_unlock(&worker->lock);
    if (is_left) {
        pen_status_ignore(status, "the run is being left, which is why");
    } else if (status != PEN_OK) {
        pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
        pen_worker_fail(worker, status);
    }
    pen_mutex_lock(&worker->lock);
}

// Likewise.
static void worker_do_save(pen_worker *worker) {
    pen_worker_run *run = worker->run;
    char folder[PEN_MESSAGE_TEXT_BYTES];
    memcpy(folder, worker->save_folder, sizeof folder);
    const pen_run_save save = {.order = worker->save_sequence,
                               .step = worker->save_step,
                               .folder = folder,
                               .makes_folder = worker->save_is_local,
                               .mark = worker->save_mark};
    pen_mutex_unlock(&worker->lock);
    if (run != NULL) { // it stays: this thread takes it away
        const pen_status status = pen_worker_run_save(run, &save);
        if (status != PEN_OK) pen_worker_run_fail(run, status);
    }
    pen_mutex_lock(&worker->lock);
}

// Likewise. What cannot be measured is an answer, too.
static void worker_do_survey(pen_worker *worker) {
    pen_worker_survey *survey = worker->survey;
    const pen_survey_order order = worker->order;
    pen_message surveyed = {.kind = PEN_MESSAGE_SURVEYED,
                            .generation = worker->member.generation,
                            .sequence = worker->order_sequence,
                            .term_count = PEN_SURVEY_FIGURES};
    pen_survey_answer answer;
    pen_mutex_unlock(&worker->lock);
    if (survey != NULL) { // it stays: this thread takes it away
        const pen_status status = pen_worker_survey_carry_out(survey, &order, &answer);
        memcpy(surveyed.terms, answer.figures, sizeof answer.figures);
        surveyed.code = (uint32_t)pen_status_get_code(status);
        if (status != PEN_OK) pen_status_format(status, surveyed.text, sizeof surveyed.text);
        const char *lacks = pen_worker_survey_lacks(survey, order.device);
        if (status == PEN_OK && lacks != NULL) {
            snprintf(surveyed.text, sizeof surveyed.text, "%s", lacks);
        }
        pen_status_ignore(status, "the coordinator is told");
        pen_worker_tell(worker, 0, &surveyed);
    }
    pen_mutex_lock(&worker->lock);
}

// ---- leaving, on the worker's thread

// Takes the links to other workers down, also those that are being opened, and waits until they
// are: the next run calls the same peers. Where links to the coordinator are to go, too, `first` is
// 0.
static void worker_unlink(pen_worker *worker, uint32_t first) {
    const pen_transport_kind *kind = worker->transport->kind;
    pen_mutex_lock(&worker->lock);
    for (bool is_linked = true; is_linked;) {
        is_linked = false;
        for (uint32_t peer = first; peer < WORKER_PEERS; peer++) {
            if (worker->links[peer] == WORKER_LINK_NONE) continue;
            is_linked = true;
            pen_mutex_unlock(&worker->lock);
            kind->disconnect(worker->transport, peer);
            pen_mutex_lock(&worker->lock);
        }
        if (is_linked) (void)pen_condition_wait_for(&worker->changed, &worker->lock, 0.05);
    }
    pen_mutex_unlock(&worker->lock);
}

// Takes the run away from the transport's thread when that neither reads nor writes its memory.
// What the coordinator is being sent, or sends, may end first; one that does not take it is left.
static void worker_drain(pen_worker *worker, pen_worker_run *run) {
    const double deadline = pen_clock_seconds() + WORKER_LEAVE_SECONDS;
    bool is_left = false;
    for (;;) {
        const uint32_t lent_count = pen_worker_run_lent_count(run);
        pen_mutex_lock(&worker->lock);
        const bool is_busy =
            lent_count > 0 || worker->arriving_count > 0 || worker->callback_count > 0;
        if (is_busy) {
            (void)pen_condition_wait_for(&worker->changed, &worker->lock, 0.01);
        } else {
            worker->run = NULL;
        }
        pen_mutex_unlock(&worker->lock);
        if (!is_busy) return;
        if (is_left || pen_clock_seconds() < deadline) continue;
        is_left = true;
        worker->transport->kind->disconnect(worker->transport, 0);
    }
}

// NULL: there was none.
static pen_worker_run *worker_take_run(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    pen_worker_run *run = worker->run;
    pen_mutex_unlock(&worker->lock);
    if (run != NULL) pen_worker_run_close(run);
    worker_unlink(worker, 1);
    if (run == NULL) return NULL;
    pen_worker_run_rest(run); // so that nothing more is lent
    worker_drain(worker, run);
    return run;
}

// When nothing of it is read or written by the transport any more; links are down.
static void worker_end_survey(pen_worker *worker) {
    pen_worker_survey *survey = worker->survey; // this thread alone sets it
    if (survey == NULL) return;
    pen_worker_survey_close(survey);
    for (bool is_busy = true; is_busy;) {
        const uint32_t lent_count = pen_worker_survey_lent_count(survey);
        pen_mutex_lock(&worker->lock);
        is_busy = lent_count > 0 || worker->arriving_count > 0 || worker->callback_count > 0;
        if (is_busy) {
            (void)pen_condition_wait_for(&worker->changed, &worker->lock, 0.01);
        } else {
            worker->survey = NULL;
            worker->wants_survey = false;
        }
        pen_mutex_unlock(&worker->lock);
    }
    pen_worker_survey_destroy(survey);
}

// Until nothing of the old run is used by anybody: only then may the member core begin another.
static void worker_leave(pen_worker *worker) {
    const pen_introduction nobody = {
        .peer = PEN_TRANSPORT_ANY_PEER, .incarnation = worker->incarnation, .shares_memory = true};
    const pen_member_event left = {.kind = PEN_MEMBER_EVENT_LEFT};
    pen_worker_run_destroy(worker_take_run(worker));
    worker_end_survey(worker);
    pen_status_ignore(worker->transport->kind->introduce(worker->transport, &nobody),
                      "no name is too long");
    if (worker->arena != NULL) pen_arena_reset(worker->arena);
    pen_mutex_lock(&worker->lock);
    while (worker->arriving_count > 0) { // of a description
        (void)pen_condition_wait_for(&worker->changed, &worker->lock, 0.01);
    }
    pen_memory_free(worker->blob);
    worker->blob = NULL;
    worker->wants_load = false;
    worker->wants_save = false;
    worker->save_sequence = 0; // another training counts from 1 again
    if (worker->options.is_once) worker->is_over = true;
    pen_mutex_unlock(&worker->lock);
    pen_worker_step(worker, &left);
}

// The worker's own thread does what takes long, one at a time, so that the transport's thread never
// waits. Leaving comes before loading.
static void worker_main(void *context) {
    pen_worker *worker = context;
    pen_mutex_lock(&worker->lock);
    for (;;) {
        if (worker->wants_leave || worker->is_closed) {
            worker->wants_leave = false;
            const bool is_last = worker->is_closed;
            pen_mutex_unlock(&worker->lock);
            worker_leave(worker);
            pen_mutex_lock(&worker->lock);
            if (is_last) break;
        } else if (worker->wants_load) {
            worker->wants_load = false;
            worker_do_load(worker);
        } else if (worker->wants_save) {
            worker->wants_save = false;
            worker_do_save(worker);
        } else if (worker->wants_survey) {
            worker->wants_survey = false;
            worker_do_survey(worker);
        } else {
            pen_condition_wait(&worker->changed, &worker->lock);
        }
    }
    worker->is_over = true;
    pen_condition_broadcast(&worker->changed);
    pen_condition_signal(&worker->ticked);
    pen_mutex_unlock(&worker->lock);
}

// ---- making

pen_status pen_worker_describe_numerics(pen_kernel_level level, pen_arena *arena,
                                        const char **out_text) {
    const pen_device_kind *kind;
    pen_device *device;
    const char *text;
    PEN_TRY(pen_device_kind_find("cpu", &kind));
    const pen_device_options options = {.name = "", .thread_count = 1, .level = level};
    PEN_TRY(kind->open(&options, &device));
    const pen_status status = kind->describe(device, arena, &text);
    kind->close(device);
    PEN_TRY(status);
    const char *numerics = strstr(text, "kernel level");
    *out_text = numerics == NULL ? text : numerics;
    return PEN_OK;
}

// What the system grants this process; of memory, what was said to be the most.
static pen_status worker_find_machine(pen_worker *worker) {
    pen_machine machine;
    const uint64_t most = worker->options.memory_bytes;
    PEN_TRY(pen_machine_detect(worker->arena, &machine));
    worker->core_count = machine.core_count_allowed;
    worker->memory_bytes = machine.memory_bytes_allowed;
    if (most > 0 && (worker->memory_bytes == 0 || most < worker->memory_bytes)) {
        worker->memory_bytes = most;
    }
    pen_arena_reset(worker->arena);
    return PEN_OK;
}

// The transport is made before the threads that use it, and listens last: who calls is answered.
static pen_status worker_start(pen_worker *worker, uint16_t *out_port) {
    const pen_worker_options *options = &worker->options;
    PEN_TRY(pen_arena_create(&worker->arena));
    PEN_TRY(worker_find_machine(worker));
    if (options->store != NULL) PEN_TRY(pen_shared_folders_add(&worker->stores, options->store));
    if (options->mirror != NULL) PEN_TRY(pen_shared_folders_add(&worker->stores, options->mirror));
    const pen_transport_options transport_options = {
        // until it is told otherwise: a coordinator that does not want it says nothing of it
        .self = {.peer = PEN_TRANSPORT_ANY_PEER,
                 .incarnation = worker->incarnation,
                 .shares_memory = true},
        .tls = options->tls,
        .is_insecure = options->is_insecure,
        .token_file = options->token_file,
        .tells_links = options->tells_links,
        .audit = options->audit,
        .resume_seconds = WORKER_RESUME_SECONDS};
    const pen_transport_events events = pen_worker_events(worker);
    PEN_TRY(options->transport->create(&transport_options, &events, &worker->transport));
    PEN_TRY(pen_thread_create("worker", worker_main, worker, &worker->thread));
    PEN_TRY(pen_thread_create("worker-clock", pen_worker_keep_time, worker, &worker->clock));
    snprintf(worker->address, sizeof worker->address, "%s", options->address);
    return options->transport->listen(worker->transport, options->address, out_port);
}

// The incarnation tells this process from one at the same address before it.
pen_status pen_worker_create(const pen_worker_options *options, pen_worker **out_worker,
                             uint16_t *out_port) {
    pen_worker *worker = pen_memory_allocate(1, sizeof *worker);
    if (worker == NULL) return pen_error_out_of_memory();
    worker->options = *options;
    worker->incarnation = pen_random_incarnation();
    const pen_member_options member = {.incarnation = worker->incarnation,
                                       .lease = (uint64_t)(WORKER_LEASE_SECONDS * 1e9),
                                       .beat = (uint64_t)(WORKER_BEAT_SECONDS * 1e9),
                                       .link = (uint64_t)(WORKER_LINK_SECONDS * 1e9),
                                       .assign = (uint64_t)(WORKER_ASSIGN_SECONDS * 1e9),
                                       .load = (uint64_t)(WORKER_LOAD_SECONDS * 1e9),
                                       .leave = (uint64_t)(WORKER_STUCK_SECONDS * 1e9)};
    pen_member_core_init(&worker->member, &member);
    pen_mutex_init(&worker->lock);
    pen_condition_init(&worker->changed);
    pen_condition_init(&worker->ticked);
    const pen_status status = worker_start(worker, out_port);
    if (status != PEN_OK) {
        pen_worker_destroy(worker);
        return status;
    }
    *out_worker = worker;
    return PEN_OK;
}

pen_status pen_worker_join(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    while (!worker->is_over) {
        pen_condition_wait(&worker->changed, &worker->lock);
    }
    pen_status result = PEN_OK;
    if (worker->options.is_once) {
        result = worker->result;
        worker->result = PEN_OK;
    }
    pen_mutex_unlock(&worker->lock);
    return result;
}

bool pen_worker_is_over(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    const bool is_over = worker->is_over;
    pen_mutex_unlock(&worker->lock);
    return is_over;
}

bool pen_worker_is_stuck(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    const bool is_stuck = worker->is_stuck;
    pen_mutex_unlock(&worker->lock);
    return is_stuck;
}

bool pen_worker_is_led(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    const bool is_led = worker->links[0] == WORKER_LINK_UP;
    pen_mutex_unlock(&worker->lock);
    return is_led;
}

void pen_worker_leave(pen_worker *worker, const char *why) {
    const bool has_run = pen_worker_use_run(worker) != NULL;
    if (!has_run) return;
    pen_worker_release_run(worker);
    pen_worker_fail(worker, pen_error(PEN_UNAVAILABLE, "%s", why));
}

static void worker_close(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    worker->is_closed = true;
    pen_condition_broadcast(&worker->changed);
    pen_condition_signal(&worker->ticked);
    pen_mutex_unlock(&worker->lock);
}

// In the order in which threads depend on each other: the worker's own, its clock, then the
// transport's.
void pen_worker_destroy(pen_worker *worker) {
    if (worker == NULL) return;
    worker_close(worker);
    pen_thread_join(worker->thread);
    pen_mutex_lock(&worker->lock);
    worker->is_over = true; // also where there was no thread
    pen_mutex_unlock(&worker->lock);
    pen_thread_join(worker->clock);
    if (worker->transport != NULL) {
        const pen_transport_kind *kind = worker->transport->kind;
        kind->close(worker->transport);
        kind->stop(worker->transport);
        pen_worker_end_recompute(worker); // it may still answer
        kind->destroy(worker->transport);
    }
    pen_status_ignore(worker->result, "the coordinator was told");
    pen_memory_free(worker->blob);
    pen_arena_destroy(worker->arena);
    pen_condition_deinit(&worker->changed);
    pen_condition_deinit(&worker->ticked);
    pen_mutex_deinit(&worker->lock);
    pen_memory_free(worker);
}
