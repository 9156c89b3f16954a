// A generation of a pipeline: the same processes from the first round to the last, or to the loss
// of one of them.

#include <string.h>

#include "base/random.h"
#include "scheduler/engine/pipeline_audit.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/job/job_links.h"

#define GENERATION_LOCAL_ADDRESS "127.0.0.1:0"
#define GENERATION_PROGRESS_STEPS 10 // planned ones, in which something must be done
#define GENERATION_PROGRESS_SECONDS 20.0
#define GENERATION_LOAD_SECONDS 300.0 // for workers to get ready, or to copy what is saved
#define GENERATION_WRITE_SPEED 10e6   // bytes a second that any disk for checkpoints writes

static void generation_forget_model(const void *context) {
    const pipeline_engine *p = context;
    for (uint32_t f = 0; f < p->forms.form_count; f++) {
        pen_program_forget(p->forms.forms[f].program);
    }
}

static const char *generation_folder(const pipeline_engine *p) {
    return p->options.log == NULL ? NULL : p->options.log->folder;
}

static const char *generation_mirror(const pipeline_engine *p) {
    return p->options.log == NULL ? NULL : p->options.log->mirror;
}

static pen_status generation_start_worker(pipeline_engine *p, const pen_transport_kind *transport) {
    uint16_t port;
    if (p->workers.local == 0) return PEN_OK;
    const pen_worker_options options = {.transport = transport,
                                        .address = GENERATION_LOCAL_ADDRESS,
                                        .tls = pen_job_transport_tls(p->options.job),
                                        .is_insecure = p->options.insecure,
                                        .token_file = p->job->token_file,
                                        .store = generation_folder(p),
                                        .mirror = generation_mirror(p),
                                        .spec = p->forms.spec,
                                        .loaded = generation_forget_model,
                                        .model = p,
                                        .collector = pen_pipeline_collector(p)};
    PEN_TRY(pen_worker_create(&options, &p->worker, &port));
    return pen_arena_format(p->placed, &p->workers.list[p->workers.local].address, "127.0.0.1:%u",
                            port);
}

// How long nothing may be done before something must be wrong.
static double generation_progress_seconds(const pipeline_engine *p) {
    const double stated = p->job->recovery.progress_seconds;
    const double planned = GENERATION_PROGRESS_STEPS * p->plan->step_seconds;
    if (stated > 0) return stated;
    return planned > GENERATION_PROGRESS_SECONDS ? planned : GENERATION_PROGRESS_SECONDS;
}

// How long a worker may write its part of a checkpoint, which is not more than the whole.
static double generation_write_seconds(const pipeline_engine *p) {
    double bytes = 0;
    for (uint32_t t = 0; t < p->tensors.count; t++) {
        bytes += (double)p->tensors.tensors[t].bytes;
    }
    return GENERATION_LOAD_SECONDS + bytes / GENERATION_WRITE_SPEED;
}

static pen_status generation_fence(void *context, uint64_t generation) {
    const pipeline_engine *p = context;
    const pen_engine_log *log = p->options.log;
    return log == NULL ? PEN_OK : log->fence(log->context, generation);
}

// Whether a worker is a process that was started here and has ended.
static bool generation_is_gone(void *context, uint32_t worker) {
    const pipeline_engine *p = context;
    char end[64];
    for (uint32_t d = 0; d < p->request->cluster->device_count; d++) {
        const pipeline_member *member = &p->members[p->member_of_device[d]];
        if (p->workers.worker_of_device[d] != worker) continue;
        if (member->launched == PIPELINE_NOT_LAUNCHED) return false;
        return !pen_launched_is_alive(p->launched, member->launched, end, sizeof end);
    }
    return false;
}

// That a worker was refused because of where it writes is a matter of the job's folder.
static pen_status generation_blame_store(const pipeline_engine *p, pen_status status) {
    bool is_refused = false;
    for (uint32_t w = 1; w <= p->workers.count; w++) {
        is_refused = is_refused || p->is_refused[w];
    }
    if (!is_refused || pen_status_get_code(status) != PEN_INVALID_INPUT) return status;
    return pen_job_blame(p->options.job, &p->options.job->checkpoint.dir, status);
}

// Clocks are compared once links are there: traces of all workers are put on this one's clock.
static pen_status generation_connect(pipeline_engine *p, const pen_transport_kind *transport,
                                     double seconds) {
    const pen_engine_log *log = p->options.log;
    if (p->links_job == NULL && log != NULL) p->links_job = log->job;
    if (p->links_job == NULL) { // workers tell trainings apart by it
        PEN_TRY(pen_arena_format(p->arena, &p->links_job, "penstock-%016llx",
                                 (unsigned long long)pen_random_incarnation()));
    }
    const pen_coordinator_setup setup = {.spec = p->forms.spec,
                                         .transport = transport,
                                         .tls = pen_job_transport_tls(p->options.job),
                                         .is_insecure = p->options.insecure,
                                         .token_file = p->job->token_file,
                                         .shares_memory = pen_job_shares_memory(p->job),
                                         .job = p->links_job,
                                         .plan_hash = p->plan->model_hash ^ p->plan->cluster_hash,
                                         .generation = p->generation,
                                         .rendezvous_seconds = seconds,
                                         .rendezvous =
                                             p->rendezvous.end > 0 ? &p->rendezvous : NULL,
                                         .told = &p->told,
                                         .lease_seconds = p->job->recovery.lease_seconds,
                                         .progress_seconds = generation_progress_seconds(p),
                                         .load_seconds = GENERATION_LOAD_SECONDS,
                                         .write_seconds = generation_write_seconds(p),
                                         .is_gone = generation_is_gone,
                                         .is_gone_context = p,
                                         .fence = generation_fence,
                                         .fence_context = p,
                                         .needed_bytes = p->needed_bytes,
                                         .is_local_store = !p->job->checkpoint.shared,
                                         .save_folder = generation_folder(p),
                                         .save_mirror = generation_mirror(p),
                                         .is_missing = p->is_missing,
                                         .is_refused = p->is_refused,
                                         .was_there = p->was_there,
                                         .local_worker = p->workers.local,
                                         .cancel = p->options.cancel};
    PEN_TRY(generation_blame_store(p, pen_coordinator_create(&setup, &p->coordinator)));
    for (uint32_t w = 1; w <= p->workers.count; w++) {
        if (w == p->workers.local) continue;
        PEN_TRY(pen_coordinator_compare_clocks(p->coordinator, w, &p->clocks[w]));
    }
    return PEN_OK;
}

// What was measured stays, but rounds are counted anew.
static void generation_forget_rounds(pipeline_engine *p) {
    p->begun_first = 0;
    p->begun_count = 0;
    p->passes_ended = p->passes_begun;
    p->rounds_begun = 0;
    p->figures_next = 0;
    p->first_step = 0;
    p->last_round_end = 0;
    p->last_end = 0;
}

static pen_status generation_begin(pipeline_engine *p, double seconds) {
    const pen_transport_kind *transport;
    const bool is_local = p->workers.count == 1 && p->workers.local == 1;
    PEN_TRY(pen_transport_kind_find(is_local ? "local" : "grpc", &transport));
    PEN_TRY(pen_pipeline_name_workers(p)); // who was started again listens elsewhere
    PEN_TRY(generation_start_worker(p, transport));
    PEN_TRY(generation_connect(p, transport, seconds));
    return pen_pipeline_send_model(p);
}

pen_status pen_pipeline_begin_generation(pipeline_engine *p, double seconds) {
    const pen_engine_log *log = p->options.log;
    PEN_ASSERT(p->coordinator == NULL && p->worker == NULL);
    p->generation = log == NULL ? p->generation + 1 : log->next_generation(log->context);
    memset(p->is_missing, 0, ((size_t)p->workers.count + 1) * sizeof *p->is_missing);
    memset(p->is_refused, 0, ((size_t)p->workers.count + 1) * sizeof *p->is_refused);
    memset(p->was_there, 0, ((size_t)p->workers.count + 1) * sizeof *p->was_there);
    generation_forget_rounds(p);
    return generation_begin(p, seconds);
}

void pen_pipeline_end_generation(pipeline_engine *p) {
    pen_coordinator *coordinator = p->coordinator;
    pen_pipeline_forget_audit(p);
    pen_mutex_lock(&p->publishing); // whoever publishes a checkpoint tells nobody from now on
    p->coordinator = NULL;
    pen_mutex_unlock(&p->publishing);
    pen_coordinator_destroy(coordinator);
    pen_worker_destroy(p->worker);
    p->worker = NULL;
}

pen_status pen_pipeline_check_there(const pipeline_engine *p) {
    if (p->coordinator != NULL) return PEN_OK;
    return pen_error(PEN_UNAVAILABLE, "the workers of this training were lost before");
}

pen_status pen_pipeline_await_quiet(pipeline_engine *p) {
    PEN_TRY(pen_pipeline_check_there(p));
    return pen_coordinator_await_quiet(p->coordinator);
}
