#include "scheduler/measure/survey_crew.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/system/process_heap.h"
#include "graph/graph.h"
#include "scheduler/job/job_links.h"
#include "scheduler/protocol/run_table_check.h"
#include "scheduler/runtime/coordinator/coordinator.h"
#include "scheduler/runtime/run/launch.h"
#include "scheduler/runtime/run/run_workers.h"
#include "scheduler/runtime/worker/worker.h"

#define CREW_LOAD_SECONDS 60.0
#define CREW_ORDER_SECONDS 300.0 // and so many times what the order asks for:
#define CREW_ORDER_TIMES 20.0

struct pen_survey_crew {
    pen_survey_crew_options options;
    pen_arena *arena;
    pen_cluster cluster; // the seats alone
    pen_run_workers workers;
    pen_run_spec spec;
    pen_coordinator_rendezvous rendezvous;
    pen_launched *launched; // or NULL
    pen_worker *worker;     // in this process; or NULL
    pen_coordinator *coordinator;
};

// Processes that a training would start here.
static pen_status crew_launch(pen_survey_crew *crew) {
    const pen_launch_options options = {.tls = pen_job_transport_tls(crew->options.job),
                                        .is_insecure = crew->options.is_insecure,
                                        .token_file = crew->options.job->token_file};
    uint32_t count = 0;
    for (uint32_t d = 0; d < crew->cluster.device_count; d++) {
        count += pen_host_is_started(crew->cluster.devices[d].host);
    }
    if (count == 0) return PEN_OK;
    PEN_TRY(pen_launch_workers(count, &options, &crew->launched));
    count = 0;
    for (uint32_t d = 0; d < crew->cluster.device_count; d++) {
        if (!pen_host_is_started(crew->cluster.devices[d].host)) continue;
        crew->workers.list[crew->workers.worker_of_device[d]].address =
            pen_launched_address(crew->launched, count++);
    }
    return PEN_OK;
}

static pen_status crew_seat(pen_survey_crew *crew) {
    const pen_survey_crew_options *options = &crew->options;
    pen_cluster_device *devices;
    PEN_TRY(PEN_NEW(crew->arena, options->seat_count, &devices));
    for (uint32_t s = 0; s < options->seat_count; s++) {
        const uint32_t device = options->seats[s].device;
        devices[s] = options->cluster->devices[device];
        PEN_TRY(pen_run_workers_check_address(
            &options->job->cluster, device, options->job->tls.ca != NULL || options->is_insecure));
    }
    crew->cluster = (pen_cluster){.device_count = options->seat_count, .devices = devices};
    PEN_TRY(pen_run_workers_number(&crew->cluster, false, crew->arena, &crew->workers));
    PEN_TRY(crew_launch(crew));
    return pen_run_workers_name(&crew->workers, crew->arena);
}

// A form without tasks and channels: it only says which worker has which device.
static pen_status crew_make_table(pen_survey_crew *crew) {
    const uint32_t count = crew->cluster.device_count;
    pen_run_device *devices;
    pen_run_form *form;
    pen_run_table *table;
    PEN_TRY(PEN_NEW(crew->arena, count, &devices));
    PEN_TRY(PEN_NEW(crew->arena, 1, &form));
    PEN_TRY(PEN_NEW(crew->arena, 1, &table));
    for (uint32_t d = 0; d < count; d++) {
        devices[d].worker = crew->workers.worker_of_device[d];
    }
    *form = (pen_run_form){.microbatch_count = 1, .microbatch_size = 1, .devices = devices};
    *table = (pen_run_table){
        .worker_count = crew->workers.count, .device_count = count, .form_count = 1, .forms = form};
    crew->spec.table = table;
    return pen_run_table_check(table);
}

// Parts without losses, inputs or channels: nothing of them is run.
static pen_status crew_make_spec(pen_survey_crew *crew) {
    const pen_survey_crew_options *options = &crew->options;
    pen_run_spec_device *devices;
    pen_run_spec_part *parts;
    pen_run_spec_form *form;
    PEN_TRY(PEN_NEW(crew->arena, options->seat_count, &devices));
    PEN_TRY(PEN_NEW(crew->arena, options->seat_count, &parts));
    PEN_TRY(PEN_NEW(crew->arena, 1, &form));
    for (uint32_t s = 0; s < options->seat_count; s++) {
        const pen_cluster_device *device = &crew->cluster.devices[s];
        const pen_part *part = options->seats[s].part;
        uint32_t *copies = NULL;
        devices[s] = (pen_run_spec_device){.name = device->name,
                                           .kind = device->kind,
                                           .gpu = device->gpu,
                                           .precision = options->job->numerics.precision,
                                           .thread_count = device->threads,
                                           .memory_bytes = device->bytes_limit,
                                           .libraries = options->job->numerics.libraries};
        if (part != NULL) {
            PEN_TRY(PEN_NEW(crew->arena, pen_graph_value_count(part->graph), &copies));
        }
        parts[s] = (pen_run_spec_part){.part = part,
                                       .copies = copies,
                                       .loss = PEN_VALUE_NONE,
                                       .accuracy = PEN_VALUE_NONE,
                                       .loss_weight = PEN_VALUE_NONE,
                                       .learning_rate = PEN_VALUE_NONE,
                                       .step = PEN_VALUE_NONE,
                                       .unscale = PEN_VALUE_NONE,
                                       .applied = PEN_VALUE_NONE};
    }
    form->parts = parts;
    crew->spec.workers = crew->workers.list;
    crew->spec.devices = devices;
    crew->spec.forms = form;
    crew->spec.survey = options->survey;
    crew->spec.shares_memory = pen_job_shares_memory(options->job);
    return PEN_OK;
}

static pen_status crew_start_worker(pen_survey_crew *crew, const pen_transport_kind *transport) {
    uint16_t port;
    if (crew->workers.local == 0) return PEN_OK;
    const pen_worker_options options = {.transport = transport,
                                        .address = "127.0.0.1:0",
                                        .tls = pen_job_transport_tls(crew->options.job),
                                        .is_insecure = crew->options.is_insecure,
                                        .token_file = crew->options.job->token_file,
                                        .spec = &crew->spec};
    PEN_TRY(pen_worker_create(&options, &crew->worker, &port));
    return pen_arena_format(crew->arena, &crew->workers.list[crew->workers.local].address,
                            "127.0.0.1:%u", port);
}

// Workers tell runs apart by the name of the job: this one's is its own.
static pen_status crew_gather(pen_survey_crew *crew) {
    const pen_job *job = crew->options.job;
    const double seconds = job->pipeline.rendezvous_timeout_seconds;
    const double now = pen_clock_seconds();
    crew->rendezvous = (pen_coordinator_rendezvous){.began = now, .end = now + seconds};
    pen_coordinator_setup setup = {.spec = &crew->spec,
                                   .tls = pen_job_transport_tls(crew->options.job),
                                   .local_worker = crew->workers.local,
                                   .is_insecure = crew->options.is_insecure,
                                   .token_file = crew->options.job->token_file,
                                   .shares_memory = crew->spec.shares_memory,
                                   .generation = 1,
                                   .rendezvous_seconds = seconds,
                                   .rendezvous = &crew->rendezvous,
                                   .lease_seconds = job->recovery.lease_seconds,
                                   .load_seconds = CREW_LOAD_SECONDS};
    PEN_TRY(pen_arena_format(crew->arena, &setup.job, "penstock-survey-%016llx",
                             (unsigned long long)pen_random_incarnation()));
    PEN_TRY(pen_transport_kind_find("grpc", &setup.transport));
    PEN_TRY(crew_start_worker(crew, setup.transport));
    return pen_coordinator_create(&setup, &crew->coordinator);
}

static pen_status crew_start(pen_survey_crew *crew) {
    pen_process_heap_prepare();
    PEN_TRY(pen_arena_create(&crew->arena));
    PEN_TRY(crew_seat(crew));
    PEN_TRY(crew_make_table(crew));
    PEN_TRY(crew_make_spec(crew));
    return crew_gather(crew);
}

pen_status pen_survey_crew_create(const pen_survey_crew_options *options,
                                  pen_survey_crew **out_crew) {
    PEN_ASSERT(options->seat_count > 0);
    pen_survey_crew *crew = pen_memory_allocate(1, sizeof *crew);
    if (crew == NULL) return pen_error_out_of_memory();
    crew->options = *options;
    const pen_status status = crew_start(crew);
    if (status != PEN_OK) {
        pen_survey_crew_destroy(crew);
        return pen_status_add_context(status, "while asking the job's workers to measure");
    }
    *out_crew = crew;
    return PEN_OK;
}

uint32_t pen_survey_crew_worker(const pen_survey_crew *crew, uint32_t seat) {
    return crew->workers.worker_of_device[seat];
}

const char *pen_survey_crew_name(const pen_survey_crew *crew, uint32_t seat) {
    return crew->workers.list[pen_survey_crew_worker(crew, seat)].name;
}

void pen_survey_crew_order(pen_survey_crew *crew, const pen_survey_order *order) {
    pen_coordinator_order(crew->coordinator, pen_survey_crew_worker(crew, order->device), order);
}

pen_status pen_survey_crew_await(pen_survey_crew *crew, const pen_survey_order *order,
                                 pen_survey_answer *out_answer, pen_status *out_failure) {
    const double seconds = CREW_ORDER_SECONDS + CREW_ORDER_TIMES * order->seconds;
    return pen_coordinator_await_survey(crew->coordinator,
                                        pen_survey_crew_worker(crew, order->device), seconds,
                                        out_answer, out_failure);
}

pen_status pen_survey_crew_ask(pen_survey_crew *crew, const pen_survey_order *order,
                               pen_survey_answer *out_answer, pen_status *out_failure) {
    pen_survey_crew_order(crew, order);
    return pen_survey_crew_await(crew, order, out_answer, out_failure);
}

void pen_survey_crew_destroy(pen_survey_crew *crew) {
    if (crew == NULL) return;
    pen_coordinator_destroy(crew->coordinator);
    pen_worker_destroy(crew->worker);
    pen_launched_end(crew->launched);
    pen_arena_destroy(crew->arena);
    pen_memory_free(crew);
}
