// penstock probe: what the links between the devices of a job carry, and the devices' rates.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/cost_file.h"
#include "cli/training_job.h"
#include "device/measure_op.h"
#include "partition/costs/cluster.h"
#include "scheduler/measure/link_probe.h"
#include "scheduler/measure/link_survey.h"
#include "scheduler/measure/profile.h"

typedef struct probe_options {
    pen_cli_common common;
    const char *output;
    bool insecure;
} probe_options;

// From one process to another, each with its devices.
typedef struct probe_link {
    uint32_t from; // the first device of either process
    uint32_t to;
    pen_link_figures figures;
} probe_link;

typedef struct probe_run {
    pen_command_context *context;
    const probe_options *options;
    const pen_job *job;
    const pen_cluster *cluster;
    pen_profile_targets targets;
    pen_cost_file costs;
    uint32_t memory_count; // links between devices of one process
    pen_link_probe memory;
    pen_survey_crew *crew; // NULL: all devices are in this process
    uint32_t link_count;
    probe_link *links; // between processes; sorted
} probe_run;

// ---- rates

static uint32_t probe_local_count(const probe_run *run) {
    return run->targets.count - run->targets.remote_count;
}

static pen_status probe_set_rates(probe_run *run, const pen_profile_target *target,
                                  const pen_device_rates *rates) {
    return pen_cost_table_set_rates(run->costs.table,
                                    &(pen_cost_rates){.kind = target->cost_kind,
                                                      .threads = target->cost_threads,
                                                      .flops = rates->flops,
                                                      .memory_bandwidth = rates->memory_bandwidth,
                                                      .host = target->host_name});
}

// Each kind of device and number of threads once, opened alone so that nothing else takes its
// cores.
static pen_status probe_measure_rates(probe_run *run) {
    for (uint32_t t = 0; t < probe_local_count(run); t++) {
        const pen_profile_target *target = &run->targets.items[t];
        const pen_device_options options = {.name = target->device,
                                            .thread_count = target->threads,
                                            .memory_bytes = target->memory_bytes,
                                            .gpu = target->gpu,
                                            .libraries = run->job->numerics.libraries};
        const pen_device_kind *kind;
        pen_device *device;
        pen_device_rates rates;
        double cores;
        PEN_TRY(pen_device_kind_find(target->kind, &kind));
        PEN_TRY(kind->open(&options, &device));
        pen_status status = pen_measure_cores(target->threads, &cores);
        if (status == PEN_OK) status = pen_measure_rates(device, cores, &rates);
        kind->close(device);
        PEN_TRY(status);
        PEN_TRY(probe_set_rates(run, target, &rates));
    }
    return PEN_OK;
}

// On other machines, whose workers measure one after another.
static pen_status probe_ask_rates(probe_run *run) {
    for (uint32_t t = probe_local_count(run); t < run->targets.count; t++) {
        const pen_profile_target *target = &run->targets.items[t];
        const pen_survey_order order = {.kind = PEN_SURVEY_RATES, .device = target->device_index};
        pen_survey_answer answer;
        pen_status failure = PEN_OK;
        PEN_TRY(pen_survey_crew_ask(run->crew, &order, &answer, &failure));
        PEN_TRY(pen_status_add_context(failure, "while measuring '%s'", target->device));
        const pen_device_rates rates = {.flops = answer.figures[0],
                                        .memory_bandwidth = answer.figures[1]};
        PEN_TRY(probe_set_rates(run, target, &rates));
    }
    return PEN_OK;
}

// ---- links

// The first device of the process that a device is in.
static uint32_t probe_first_of(const pen_cluster *cluster, uint32_t device) {
    uint32_t first = 0;
    while (cluster->devices[first].process != cluster->devices[device].process)
        first++;
    return first;
}

// Threads of a process's devices: so many compute while its links are measured under load.
static uint32_t probe_threads_of(const pen_cluster *cluster, uint32_t device) {
    uint32_t threads = 0;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (cluster->devices[d].process != cluster->devices[device].process) continue;
        threads += cluster->devices[d].threads;
    }
    return threads < PEN_SURVEY_THREADS_LIMIT ? threads : PEN_SURVEY_THREADS_LIMIT;
}

static void probe_count_links(probe_run *run) {
    const pen_cluster *cluster = run->cluster;
    for (uint32_t a = 0; a < cluster->device_count; a++) {
        for (uint32_t b = 0; b < cluster->device_count; b++) {
            const bool is_one = cluster->devices[a].process == cluster->devices[b].process;
            run->memory_count += a != b && is_one && !cluster->devices[a].is_remote;
        }
    }
}

// Devices are seats of the crew by their numbers.
static pen_status probe_call(probe_run *run) {
    const pen_cluster *cluster = run->cluster;
    pen_survey_seat *seats;
    bool is_alone = cluster->devices[0].host == NULL;
    PEN_TRY(PEN_NEW(run->context->arena, cluster->device_count, &seats));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        seats[d].device = d;
        is_alone = is_alone && cluster->devices[d].process == cluster->devices[0].process;
    }
    if (is_alone) return PEN_OK;
    const pen_survey_crew_options options = {.job = run->job,
                                             .cluster = cluster,
                                             .seats = seats,
                                             .seat_count = cluster->device_count,
                                             .survey = PEN_RUN_SURVEY_LINKS,
                                             .is_insecure = run->options->insecure};
    return pen_survey_crew_create(&options, &run->crew);
}

static int probe_compare_links(const void *a, const void *b) {
    const probe_link *left = a, *right = b;
    if (left->from != right->from) return left->from < right->from ? -1 : 1;
    return left->to == right->to ? 0 : left->to < right->to ? -1 : 1;
}

// Pairs of processes that are to be measured at the same time.
typedef struct probe_batch {
    pen_link_pair *pairs; // seats are devices
    uint32_t count;
    bool *is_taken; // hosts
} probe_batch;

static pen_status probe_measure_batch(probe_run *run, probe_batch *batch) {
    const pen_cluster *cluster = run->cluster;
    PEN_TRY(pen_link_survey(run->crew, run->context->arena, batch->pairs, batch->count));
    for (uint32_t p = 0; p < batch->count; p++) {
        const pen_link_pair *pair = &batch->pairs[p];
        for (uint32_t e = 0; e < 2; e++) {
            batch->is_taken[cluster->devices[pair->seats[e]].host_index] = false;
            run->links[run->link_count++] =
                (probe_link){pair->seats[e], pair->seats[1 - e], pair->figures[e]};
        }
    }
    batch->count = 0;
    return PEN_OK;
}

// What computes or sends at one time is on different hosts.
static pen_status probe_add_pair(probe_run *run, probe_batch *batch, uint32_t a, uint32_t b) {
    const pen_cluster_device *devices = run->cluster->devices;
    const uint32_t hosts[2] = {devices[a].host_index, devices[b].host_index};
    if (batch->is_taken[hosts[0]] || batch->is_taken[hosts[1]]) {
        PEN_TRY(probe_measure_batch(run, batch));
    }
    pen_log(PEN_LOG_DEBUG, "between '%s' and '%s'", devices[a].name, devices[b].name);
    batch->is_taken[hosts[0]] = batch->is_taken[hosts[1]] = true;
    batch->pairs[batch->count++] = (pen_link_pair){
        .seats = {a, b},
        .threads = {probe_threads_of(run->cluster, a), probe_threads_of(run->cluster, b)}};
    return PEN_OK;
}

// Each pair of processes once, in the rounds of a tournament: in each round everybody meets one
// other, so that n hosts take n rounds. One stays where it is, the others go round.
static pen_status probe_measure_rounds(probe_run *run, const uint32_t *firsts, uint32_t count) {
    const uint32_t seat_count = count + count % 2; // an odd one sits out
    probe_batch batch = {0};
    PEN_TRY(PEN_NEW(run->context->arena, seat_count / 2 + 1, &batch.pairs));
    PEN_TRY(PEN_NEW(run->context->arena, run->cluster->device_count + 1, &batch.is_taken));
    for (uint32_t round = 0; round + 1 < seat_count; round++) {
        for (uint32_t seat = 0; seat < seat_count / 2; seat++) {
            const uint32_t turning = seat_count - 1;
            const uint32_t x = seat == 0 ? turning : (round + seat) % turning;
            const uint32_t y = (round + turning - seat) % turning;
            if (x >= count || y >= count) continue;
            PEN_TRY(probe_add_pair(run, &batch, firsts[x < y ? x : y], firsts[x < y ? y : x]));
        }
    }
    return batch.count > 0 ? probe_measure_batch(run, &batch) : PEN_OK;
}

static pen_status probe_measure_links(probe_run *run) {
    const pen_cluster *cluster = run->cluster;
    const size_t count = cluster->device_count;
    uint32_t *firsts, first_count = 0; // of the processes
    probe_count_links(run);
    if (run->memory_count > 0) PEN_TRY(pen_link_probe_memory(&run->memory));
    if (run->crew == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(run->context->arena, count * count, &run->links));
    PEN_TRY(PEN_NEW(run->context->arena, count, &firsts));
    for (uint32_t d = 0; d < count; d++) {
        if (probe_first_of(cluster, d) == d) firsts[first_count++] = d;
    }
    PEN_TRY(probe_measure_rounds(run, firsts, first_count));
    qsort(run->links, run->link_count, sizeof *run->links, probe_compare_links);
    return PEN_OK;
}

static const probe_link *probe_find(const probe_run *run, uint32_t from, uint32_t to) {
    const probe_link key = {.from = from, .to = to};
    if (run->link_count == 0) return NULL;
    return bsearch(&key, run->links, run->link_count, sizeof key, probe_compare_links);
}

// A plan counts what both directions carry at once, and latencies while an end computes.
static pen_status probe_store_links(probe_run *run) {
    const pen_cluster *cluster = run->cluster;
    for (uint32_t a = 0; a < cluster->device_count; a++) {
        for (uint32_t b = 0; b < cluster->device_count; b++) {
            const probe_link *link =
                probe_find(run, probe_first_of(cluster, a), probe_first_of(cluster, b));
            pen_cost_link cost = {.from = cluster->devices[a].name,
                                  .to = cluster->devices[b].name,
                                  .bandwidth = run->memory.bandwidth,
                                  .latency = run->memory.latency};
            if (a == b || (link == NULL && cluster->devices[a].is_remote)) continue;
            if (link != NULL) {
                cost.bandwidth = link->figures.bandwidth;
                cost.latency = link->figures.latency;
                cost.send = link->figures.send;
                cost.receive = link->figures.receive;
                cost.message = link->figures.message;
                cost.has_message = true;
            }
            PEN_TRY(pen_cost_table_set_link(run->costs.table, &cost));
        }
    }
    return PEN_OK;
}

// ---- telling

static const pen_cost_rates *probe_rates_of(const probe_run *run,
                                            const pen_profile_target *target) {
    return pen_cost_table_find_rates_at(run->costs.table, target->host_name, target->cost_kind,
                                        target->cost_threads);
}

static const char *probe_medium(const probe_run *run, const probe_link *link) {
    const pen_cluster_device *devices = run->cluster->devices;
    return devices[link->from].host_index == devices[link->to].host_index ? "loopback" : "network";
}

static const char *probe_pace(double rate, char text[PEN_QUANTITY_TEXT_BYTES]) {
    char count[PEN_QUANTITY_TEXT_BYTES];
    if (rate >= PEN_LINK_FREE) return "nothing"; // of the device's time
    snprintf(text, PEN_QUANTITY_TEXT_BYTES, "%sB/s", pen_count_format((uint64_t)rate, count));
    return text;
}

static void probe_print_link(const probe_run *run, const probe_link *link) {
    const pen_link_figures *figures = &link->figures;
    char text[7][PEN_QUANTITY_TEXT_BYTES];
    printf("%s to %s over %s: %sB/s (alone %sB/s), %s (idle %s), ",
           run->cluster->devices[link->from].name, run->cluster->devices[link->to].name,
           probe_medium(run, link), pen_count_format((uint64_t)figures->bandwidth, text[0]),
           pen_count_format((uint64_t)figures->bandwidth_alone, text[1]),
           pen_seconds_format(figures->latency, text[2]),
           pen_seconds_format(figures->latency_idle, text[3]));
    printf("send %s, receive %s, message %s\n", probe_pace(figures->send, text[4]),
           probe_pace(figures->receive, text[5]),
           figures->message > 0 ? pen_seconds_format(figures->message, text[6]) : "nothing");
}

// Rates, then links of one process together, then the others one by one.
static pen_status probe_print(const probe_run *run) {
    char first[PEN_QUANTITY_TEXT_BYTES], second[PEN_QUANTITY_TEXT_BYTES];
    for (uint32_t t = 0; t < run->targets.count; t++) {
        const pen_profile_target *target = &run->targets.items[t];
        const pen_cost_rates *rates = probe_rates_of(run, target);
        printf("%s with %u thread%s%s%s: %sflop/s, %sB/s\n", target->cost_kind, target->threads,
               target->threads == 1 ? "" : "s", target->is_remote ? " on " : "", target->host_name,
               pen_count_format((uint64_t)rates->flops, first),
               pen_count_format((uint64_t)rates->memory_bandwidth, second));
    }
    if (run->memory_count > 0) {
        printf("%u link%s over memory: %sB/s, %s\n", run->memory_count,
               run->memory_count == 1 ? "" : "s",
               pen_count_format((uint64_t)run->memory.bandwidth, first),
               pen_seconds_format(run->memory.latency, second));
    }
    for (uint32_t i = 0; i < run->link_count; i++) {
        probe_print_link(run, &run->links[i]);
    }
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

static void probe_json_rates(const probe_run *run, pen_json_writer *json) {
    pen_json_key_array(json, "rates");
    for (uint32_t t = 0; t < run->targets.count; t++) {
        const pen_profile_target *target = &run->targets.items[t];
        const pen_cost_rates *rates = probe_rates_of(run, target);
        pen_json_begin_object(json);
        if (target->is_remote) pen_json_key_text(json, "host", target->host_name);
        pen_json_key_text(json, "kind", target->cost_kind);
        pen_json_key_unsigned(json, "threads", target->threads);
        pen_json_key_number(json, "flops", rates->flops);
        pen_json_key_number(json, "memory_bandwidth", rates->memory_bandwidth);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

static void probe_json_link(const probe_run *run, const probe_link *link, pen_json_writer *json) {
    const pen_link_figures *figures = &link->figures;
    pen_json_begin_object(json);
    pen_json_key_text(json, "medium", probe_medium(run, link));
    pen_json_key_text(json, "from", run->cluster->devices[link->from].name);
    pen_json_key_text(json, "to", run->cluster->devices[link->to].name);
    pen_json_key_number(json, "bandwidth", figures->bandwidth);
    pen_json_key_number(json, "bandwidth_alone", figures->bandwidth_alone);
    pen_json_key_number(json, "latency", figures->latency);
    pen_json_key_number(json, "latency_idle", figures->latency_idle);
    pen_json_key_number(json, "send", figures->send);
    pen_json_key_number(json, "receive", figures->receive);
    pen_json_key_number(json, "message", figures->message);
    pen_json_end_object(json);
}

// Links of one process are one row with their count, the others have a row for each direction.
static pen_status probe_print_json(const probe_run *run) {
    pen_json_writer json;
    pen_command_begin_json(&json, "probe");
    probe_json_rates(run, &json);
    pen_json_key_array(&json, "links");
    if (run->memory_count > 0) {
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "medium", "memory");
        pen_json_key_unsigned(&json, "count", run->memory_count);
        pen_json_key_number(&json, "bandwidth", run->memory.bandwidth);
        pen_json_key_number(&json, "latency", run->memory.latency);
        pen_json_end_object(&json);
    }
    for (uint32_t i = 0; i < run->link_count; i++) {
        probe_json_link(run, &run->links[i], &json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// ---- all

// Workers are called first: who is missing is told before anything takes time.
static pen_status probe_all(probe_run *run) {
    pen_arena *arena = run->context->arena;
    PEN_TRY(pen_command_open_job(run->context, run->options->common.operands[0], &run->job));
    PEN_TRY(pen_profile_find_targets(run->job, NULL, arena, &run->targets));
    run->cluster = run->targets.cluster;
    PEN_TRY(pen_cost_file_open(run->context, run->job, run->options->output, &run->costs));
    PEN_TRY(probe_call(run));
    PEN_TRY(probe_measure_rates(run));
    PEN_TRY(probe_ask_rates(run));
    PEN_TRY(probe_measure_links(run));
    PEN_TRY(probe_store_links(run));
    PEN_TRY(pen_cost_file_save(&run->costs));
    return run->options->common.json ? probe_print_json(run) : probe_print(run);
}

static pen_status probe_run_verb(pen_command_context *context, const void *options) {
    probe_run run = {.context = context, .options = options};
    const pen_status status = probe_all(&run);
    pen_survey_crew_destroy(run.crew);
    return status;
}

static const pen_cli_option probe_cli_options[] = {
    PEN_CLI_VALUE('o', "output", "FILE", PATH, probe_options, output,
                  "cost table to add to, made if need be; else the job's `costs`"),
    PEN_CLI_FLAG(0, "insecure", probe_options, insecure,
                 "ask workers on other machines without TLS"),
};

const pen_command pen_command_probe = {
    .name = "probe",
    .summary = "measure the links between a job's devices, and the devices' rates",
    .table = {PEN_CLI_OPERANDS("JOB", 1, 1), PEN_CLI_OPTIONS(probe_cli_options), .takes_job = true,
              .details =
                  "Links between processes are measured by the workers that the job names, as a "
                  "training uses them: both ways at once, and while the ends compute.\n",
              .examples = "penstock probe -o cluster.yaml job.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(probe_options),
    .run = probe_run_verb,
};
