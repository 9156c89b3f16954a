// penstock probe: what the links between the devices of a job carry, and the devices' rates.

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/cost_file.h"
#include "device/measure_op.h"
#include "partition/costs/cluster.h"
#include "scheduler/measure/link_probe.h"
#include "scheduler/measure/profile.h"

typedef struct probe_options {
    pen_cli_common common;
    const char *output;
} probe_options;

// What is between two devices.
typedef enum probe_medium {
    PROBE_MEMORY,   // threads of one process
    PROBE_LOOPBACK, // processes of this machine
    PROBE_NETWORK,  // other machines: not measured
} probe_medium;
#define PROBE_MEDIUM_COUNT 3

typedef struct probe_run {
    pen_command_context *context;
    const probe_options *options;
    const pen_job *job;
    const pen_cluster *cluster;
    pen_profile_targets targets;
    pen_cost_file costs;
    uint32_t link_counts[PROBE_MEDIUM_COUNT];
    pen_link_probe probes[PROBE_MEDIUM_COUNT]; // of memory and loopback, where there are such links
} probe_run;

static const char *const probe_medium_names[] = {"memory", "loopback", "network"};

static probe_medium probe_between(const pen_cluster_device *a, const pen_cluster_device *b) {
    if (a->is_remote || b->is_remote) return PROBE_NETWORK;
    if (a->host == NULL && b->host == NULL) return PROBE_MEMORY;
    if (a->host == NULL || b->host == NULL) return PROBE_LOOPBACK;
    return strcmp(a->host, b->host) == 0 ? PROBE_MEMORY : PROBE_LOOPBACK;
}

static uint32_t probe_local_count(const probe_run *run) {
    return run->targets.count - run->targets.remote_count;
}

// Each kind of device and number of threads once, opened alone so that nothing else takes its
// cores.
static pen_status probe_measure_rates(probe_run *run) {
    for (uint32_t t = 0; t < probe_local_count(run); t++) {
        const pen_profile_target *target = &run->targets.items[t];
        const pen_device_options options = {.name = target->device,
                                            .thread_count = target->threads,
                                            .memory_bytes = target->memory_bytes};
        const pen_device_kind *kind;
        pen_device *device;
        pen_device_rates rates;
        PEN_TRY(pen_device_kind_find(target->kind, &kind));
        PEN_TRY(kind->open(&options, &device));
        const pen_status status = pen_measure_rates(device, &rates);
        kind->close(device);
        PEN_TRY(status);
        PEN_TRY(pen_cost_table_set_rates(
            run->costs.table, &(pen_cost_rates){.kind = target->kind,
                                                .threads = target->threads,
                                                .flops = rates.flops,
                                                .memory_bandwidth = rates.memory_bandwidth}));
    }
    return PEN_OK;
}

static void probe_count_links(probe_run *run) {
    const pen_cluster *cluster = run->cluster;
    for (uint32_t a = 0; a < cluster->device_count; a++) {
        for (uint32_t b = 0; b < cluster->device_count; b++) {
            if (a == b) continue;
            run->link_counts[probe_between(&cluster->devices[a], &cluster->devices[b])] += 1;
        }
    }
}

static pen_status probe_store_links(probe_run *run) {
    const pen_cluster *cluster = run->cluster;
    for (uint32_t a = 0; a < cluster->device_count; a++) {
        for (uint32_t b = 0; b < cluster->device_count; b++) {
            if (a == b) continue;
            const probe_medium medium = probe_between(&cluster->devices[a], &cluster->devices[b]);
            if (medium == PROBE_NETWORK) continue;
            PEN_TRY(pen_cost_table_set_link(
                run->costs.table, &(pen_cost_link){.from = cluster->devices[a].name,
                                                   .to = cluster->devices[b].name,
                                                   .bandwidth = run->probes[medium].bandwidth,
                                                   .latency = run->probes[medium].latency}));
        }
    }
    return PEN_OK;
}

static pen_status probe_measure_links(probe_run *run) {
    probe_count_links(run);
    if (run->link_counts[PROBE_MEMORY] > 0) {
        PEN_TRY(pen_link_probe_memory(&run->probes[PROBE_MEMORY]));
    }
    if (run->link_counts[PROBE_LOOPBACK] > 0) {
        PEN_TRY(pen_link_probe_loopback(&run->probes[PROBE_LOOPBACK]));
    }
    if (run->link_counts[PROBE_NETWORK] > 0) {
        pen_log(PEN_LOG_WARNING,
                "%u links lead to other machines, where no worker runs that could answer: not "
                "measured; state their bandwidth and latency under `links`",
                run->link_counts[PROBE_NETWORK]);
    }
    return probe_store_links(run);
}

// Links of one medium are measured once and told together.
static pen_status probe_print(const probe_run *run) {
    char first[PEN_QUANTITY_TEXT_BYTES], second[PEN_QUANTITY_TEXT_BYTES];
    for (uint32_t t = 0; t < probe_local_count(run); t++) {
        const pen_profile_target *target = &run->targets.items[t];
        const pen_cost_rates *rates =
            pen_cost_table_find_rates(run->costs.table, target->kind, target->threads);
        printf("%s with %u thread%s: %sflop/s, %sB/s\n", target->kind, target->threads,
               target->threads == 1 ? "" : "s", pen_count_format((uint64_t)rates->flops, first),
               pen_count_format((uint64_t)rates->memory_bandwidth, second));
    }
    for (uint32_t m = 0; m < PROBE_NETWORK; m++) {
        if (run->link_counts[m] == 0) continue;
        printf("%u link%s over %s: %sB/s, %s\n", run->link_counts[m],
               run->link_counts[m] == 1 ? "" : "s", probe_medium_names[m],
               pen_count_format((uint64_t)run->probes[m].bandwidth, first),
               pen_seconds_format(run->probes[m].latency, second));
    }
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

static void probe_json_rates(const probe_run *run, pen_json_writer *json) {
    pen_json_key_array(json, "rates");
    for (uint32_t t = 0; t < probe_local_count(run); t++) {
        const pen_profile_target *target = &run->targets.items[t];
        const pen_cost_rates *rates =
            pen_cost_table_find_rates(run->costs.table, target->kind, target->threads);
        pen_json_begin_object(json);
        pen_json_key_text(json, "kind", target->kind);
        pen_json_key_unsigned(json, "threads", target->threads);
        pen_json_key_number(json, "flops", rates->flops);
        pen_json_key_number(json, "memory_bandwidth", rates->memory_bandwidth);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// Media that were not measured, networks, are listed as such: a script can tell.
static pen_status probe_print_json(const probe_run *run) {
    pen_json_writer json;
    pen_command_begin_json(&json, "probe");
    probe_json_rates(run, &json);
    pen_json_key_array(&json, "links");
    for (uint32_t m = 0; m < PROBE_MEDIUM_COUNT; m++) {
        if (run->link_counts[m] == 0) continue;
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "medium", probe_medium_names[m]);
        pen_json_key_unsigned(&json, "count", run->link_counts[m]);
        pen_json_key_bool(&json, "measured", m != PROBE_NETWORK);
        if (m != PROBE_NETWORK) {
            pen_json_key_number(&json, "bandwidth", run->probes[m].bandwidth);
            pen_json_key_number(&json, "latency", run->probes[m].latency);
        }
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status probe_run_verb(pen_command_context *context, const void *options) {
    probe_run run = {.context = context, .options = options};
    PEN_TRY(pen_job_read(run.options->common.operands[0], context->arena, &run.job));
    PEN_TRY(pen_cluster_build(&run.job->cluster, NULL, context->arena, &run.cluster));
    PEN_TRY(pen_profile_find_targets(run.job, NULL, context->arena, &run.targets));
    PEN_TRY(pen_cost_file_open(context, run.job, run.options->output, &run.costs));
    PEN_TRY(probe_measure_rates(&run));
    PEN_TRY(probe_measure_links(&run));
    PEN_TRY(pen_cost_file_save(&run.costs));
    return run.options->common.json ? probe_print_json(&run) : probe_print(&run);
}

static const pen_cli_option probe_cli_options[] = {
    PEN_CLI_VALUE('o', "output", "FILE", PATH, probe_options, output,
                  "cost table to add to, made if need be; else the job's `costs`"),
};

const pen_command pen_command_probe = {
    .name = "probe",
    .summary = "measure the links between a job's devices, and the devices' rates",
    .table = {PEN_CLI_OPERANDS("JOB", 1, 1), PEN_CLI_OPTIONS(probe_cli_options),
              .details = "Measured are links within this process (memory) and this machine (TCP "
                         "over loopback).\nLinks to other machines are stated in the job or "
                         "cluster.\n"},
    .options_bytes = sizeof(probe_options),
    .run = probe_run_verb,
};
