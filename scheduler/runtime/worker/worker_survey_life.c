#include "scheduler/runtime/worker/worker_survey.h"

#include "base/memory.h"
#include "device/measure_op.h"
#include "graph/graph.h"
#include "scheduler/runtime/worker/worker_survey_links.h"

// Threads and memory for frames are taken where links are measured alone.
pen_status pen_worker_survey_create(const pen_worker_survey_options *options,
                                    pen_worker_survey **out_survey) {
    pen_worker_survey *survey = pen_memory_allocate(1, sizeof *survey);
    if (survey == NULL) return pen_error_out_of_memory();
    survey->options = *options;
    survey->spec = options->spec;
    survey->worker = options->worker;
    pen_mutex_init(&survey->lock);
    pen_condition_init(&survey->changed);
    pen_status status = pen_arena_create(&survey->arena);
    if (status == PEN_OK) {
        status = PEN_NEW(survey->arena, survey->spec->table->device_count, &survey->devices);
    }
    if (status == PEN_OK && survey->spec->survey == PEN_RUN_SURVEY_LINKS) {
        status = pen_survey_links_start(survey);
    }
    if (status != PEN_OK) {
        pen_worker_survey_destroy(survey);
        return status;
    }
    *out_survey = survey;
    return PEN_OK;
}

void pen_worker_survey_destroy(pen_worker_survey *survey) {
    if (survey == NULL) return;
    pen_worker_survey_close(survey);
    for (uint32_t d = 0; survey->devices != NULL && d < survey->spec->table->device_count; d++) {
        pen_device *device = survey->devices[d].device;
        if (device != NULL) device->kind->close(device);
    }
    pen_condition_deinit(&survey->changed);
    pen_mutex_deinit(&survey->lock);
    pen_arena_destroy(survey->arena);
    pen_memory_free(survey);
}

static pen_status survey_open(pen_worker_survey *survey, uint32_t index) {
    const pen_run_spec_device *spec = &survey->spec->devices[index];
    if (survey->devices[index].device != NULL) return PEN_OK;
    PEN_TRY(pen_measure_cores(spec->thread_count, &survey->devices[index].cores));
    return pen_run_spec_open(spec, &survey->devices[index].device);
}

const char *pen_worker_survey_lacks(const pen_worker_survey *survey, uint32_t device) {
    if (device >= survey->spec->table->device_count) return NULL;
    pen_device *opened = survey->devices[device].device;
    return opened == NULL ? NULL : pen_device_lacks(opened);
}

static pen_status survey_rates(const survey_device *device, pen_survey_answer *out_answer) {
    pen_device_rates rates;
    PEN_TRY(pen_measure_rates(device->device, device->cores, &rates));
    out_answer->figures[0] = rates.flops;
    out_answer->figures[1] = rates.memory_bandwidth;
    return PEN_OK;
}

// What a step does between two runs of a node is found out once for the part.
static pen_status survey_find_step(pen_worker_survey *survey, const pen_part *part,
                                   survey_device *device) {
    const pen_measure_program program = {.graph = part->graph,
                                         .order = part->order,
                                         .order_count = part->order_count,
                                         .kept = part->kept,
                                         .kept_count = part->kept_count};
    if (device->step != NULL) return PEN_OK;
    return pen_measure_step_build(device->device, &program, survey->arena, &device->step);
}

static pen_status survey_node(pen_worker_survey *survey, const pen_survey_order *order,
                              pen_survey_answer *out_answer) {
    const pen_part *part = survey->spec->forms[0].parts[order->device].part;
    survey_device *device = &survey->devices[order->device];
    pen_op_measurement measured;
    if (part == NULL || order->node >= pen_graph_node_count(part->graph)) {
        return pen_error(PEN_CORRUPT, "asked to measure node %u of device %u, which is not here",
                         order->node, order->device);
    }
    PEN_TRY(survey_find_step(survey, part, device));
    const pen_measure_options options = {
        .step = device->step, .time_limit = order->seconds, .cores = device->cores};
    PEN_TRY(pen_measure_op(device->device, part->graph, (pen_node_id){order->node}, &options,
                           &measured));
    out_answer->figures[0] = measured.seconds;
    out_answer->figures[1] = (double)measured.workspace_bytes;
    out_answer->figures[2] = measured.runs;
    return PEN_OK;
}

static pen_status survey_device_order(pen_worker_survey *survey, const pen_survey_order *order,
                                      pen_survey_answer *out_answer) {
    const pen_run_table *table = survey->spec->table;
    if (order->device >= table->device_count ||
        table->forms[0].devices[order->device].worker != survey->worker) {
        return pen_error(PEN_CORRUPT, "asked to measure device %u, which is not here",
                         order->device);
    }
    PEN_TRY(survey_open(survey, order->device));
    return order->kind == PEN_SURVEY_RATES
               ? survey_rates(&survey->devices[order->device], out_answer)
               : survey_node(survey, order, out_answer);
}

static pen_status survey_check_peer(const pen_worker_survey *survey, uint32_t peer) {
    const bool is_there = survey->spec->survey == PEN_RUN_SURVEY_LINKS && peer > 0 &&
                          peer <= survey->spec->table->worker_count && peer != survey->worker;
    return is_there
               ? PEN_OK
               : pen_error(PEN_CORRUPT, "asked to send to worker %u, which is not linked", peer);
}

// The kind comes from outside, so it is a number until it was looked at.
pen_status pen_worker_survey_carry_out(pen_worker_survey *survey, const pen_survey_order *order,
                                       pen_survey_answer *out_answer) {
    *out_answer = (pen_survey_answer){0};
    switch (order->kind) {
    case PEN_SURVEY_RATES:
    case PEN_SURVEY_NODE:
        return survey_device_order(survey, order, out_answer);
    case PEN_SURVEY_WORK:
        return pen_survey_links_work(survey, order->seconds, out_answer);
    case PEN_SURVEY_LOAD:
        return pen_survey_links_load(survey, order->count);
    case PEN_SURVEY_SEND:
        PEN_TRY(survey_check_peer(survey, order->peer));
        return pen_survey_links_send(survey, order, out_answer);
    case PEN_SURVEY_CALL:
        PEN_TRY(survey_check_peer(survey, order->peer));
        return pen_survey_links_call(survey, order, out_answer);
    }
    return pen_error(PEN_CORRUPT, "asked to measure %u, which is nothing", (unsigned)order->kind);
}
