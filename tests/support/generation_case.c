#include "tests/support/generation_case.h"

#include "base/checksum.h"
#include "graph/graph.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/train/train.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

#define GENERATION_JOB "generations"
#define GENERATION_MICROBATCHES 2

static const pen_job *generation_job(pen_arena *arena) {
    const tiny_model model = {0};
    const char *path = tiny_model_write(&model, "tiny.onnx");
    const char *data = tiny_data_write("tiny", 16, 3);
    return training_job(arena,
                        "version: 1\n"
                        "model: {file: %s}\n"
                        "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: %s_y.npy}}\n"
                        "train: {loss: softmax_cross_entropy, batch: 8, microbatches: %d,\n"
                        "        epochs: 3, optimizer: adam}\n"
                        "devices: [{name: a, threads: 1}, {name: b, threads: 1},\n"
                        "          {name: c, threads: 1}]\n"
                        "placement: {strategy: round_robin, seed: 5}\n"
                        "pipeline: {schedule: 1f1b}\n",
                        path, data, data, GENERATION_MICROBATCHES);
}

// The trainer's own plan, with each device on a worker of its own.
static void generation_build(generation_case *g, const pen_job *job) {
    static const uint32_t worker_of_device[] = {1, 2, 3};
    pipeline_engine *p = pipeline_of(pen_trainer_engine(g->trainer));
    pen_compile_request compile;
    pen_pipeline_forms *forms;
    CHECK_OK(pen_job_compile_request(job, PEN_DATASET_PART_TRAIN, p->info, g->arena, &compile));
    CHECK_OK(PEN_NEW(g->arena, 1, &forms));
    g->workers[0] = (pen_run_spec_worker){"the coordinator", ""};
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        g->workers[w].address = "";
        CHECK_OK(pen_arena_format(g->arena, &g->workers[w].name, "worker %u", w));
    }
    const pen_pipeline_request request = {.plan = p->plan,
                                          .schedule = p->schedule,
                                          .program = pen_plan_job_program(p->plan_job),
                                          .compile = &compile,
                                          .device = p->device,
                                          .devices = p->devices,
                                          .workers = g->workers,
                                          .worker_count = GENERATION_WORKERS,
                                          .worker_of_device = worker_of_device,
                                          .seed = 1};
    CHECK_OK(pen_pipeline_forms_build(&request, g->arena, forms));
    g->spec = *forms->spec;
    g->spec.workers = g->workers;
}

static bool generation_is_kept(const pen_graph *graph, uint32_t value) {
    const pen_value_kind kind = pen_graph_value(graph, (pen_value_id){value})->kind;
    return kind == PEN_VALUE_PARAMETER || kind == PEN_VALUE_STATE;
}

// All that is kept, once each, by name.
static void generation_list_saved(generation_case *g) {
    pen_run_spec_saved *saved;
    uint32_t count = 0, limit = 0;
    const uint32_t device_count = g->spec.table->device_count;
    for (uint32_t d = 0; d < device_count; d++) {
        limit += pen_graph_value_count(g->spec.forms[0].parts[d].part->graph);
    }
    CHECK_OK(PEN_NEW(g->arena, limit, &saved));
    for (uint32_t d = 0; d < device_count; d++) {
        const pen_graph *graph = g->spec.forms[0].parts[d].part->graph;
        for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
            const char *name = pen_value_name(graph, (pen_value_id){v});
            bool is_there = !generation_is_kept(graph, v);
            for (uint32_t i = 0; i < count && !is_there; i++) {
                is_there = strcmp(saved[i].name, name) == 0;
            }
            if (!is_there) saved[count++] = (pen_run_spec_saved){d, {v}, name};
        }
    }
    g->spec.saved = saved;
    g->spec.saved_count = count;
}

// Random inputs and labels for all microbatches.
static void generation_make_feeds(generation_case *g) {
    const pen_run_form *form = &g->spec.table->forms[0];
    uint32_t drawn = 12345;
    CHECK_OK(PEN_NEW(g->arena, form->channel_count, &g->feeds));
    for (uint32_t c = 0; c < form->channel_count; c++) {
        const pen_run_channel *channel = &form->channels[c];
        if (channel->source_worker != 0) continue;
        const uint64_t bytes = channel->bytes * form->microbatch_count;
        char *memory;
        CHECK_OK(PEN_NEW(g->arena, bytes, &memory));
        if (g->spec.forms[0].channels[c].type.element == PEN_FLOAT32) {
            for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
                drawn = drawn * 1664525 + 1013904223;
                ((float *)(void *)memory)[i] = (float)(drawn >> 8) / (1 << 24) - 0.5f;
            }
        } else {
            for (uint64_t i = 0; i < bytes / sizeof(int64_t); i++) {
                ((int64_t *)(void *)memory)[i] = (int64_t)(i % TINY_CLASSES);
            }
        }
        g->feeds[c] = memory;
    }
}

void generation_case_init(generation_case *g, const char *transport) {
    *g = (generation_case){.arena = check_arena(),
                           .lease_seconds = 2,
                           .rendezvous_seconds = 20,
                           .progress_seconds = 10,
                           .load_seconds = 20,
                           .write_seconds = 20};
    const pen_job *job = generation_job(g->arena);
    const pen_trainer_options options = {.step_limit = 1};
    CHECK_OK(pen_trainer_create(job, &options, &g->trainer));
    CHECK_OK(pen_transport_kind_find(transport, &g->transport));
    generation_build(g, job);
    generation_list_saved(g);
    generation_make_feeds(g);
    g->folder = scratch_path("generations");
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        generation_start_worker(g, w);
    }
}

void generation_case_deinit(generation_case *g) {
    for (uint32_t w = 1; w <= GENERATION_WORKERS; w++) {
        pen_worker_destroy(g->running[w]);
    }
    pen_trainer_destroy(g->trainer);
    pen_arena_destroy(g->arena);
}

void generation_start_worker(generation_case *g, uint32_t worker) {
    const pen_worker_options options = {.transport = g->transport,
                                        .address = "127.0.0.1:0",
                                        .store = g->folder,
                                        .spec = worker == 1 ? &g->spec : NULL};
    uint16_t port;
    CHECK_OK(pen_worker_create(&options, &g->running[worker], &port));
    CHECK_OK(pen_arena_format(g->arena, &g->workers[worker].address, "127.0.0.1:%u", port));
    if (g->started != NULL) g->started(g, worker);
}

void generation_end_worker(generation_case *g, uint32_t worker) {
    pen_worker_destroy(g->running[worker]);
    g->running[worker] = NULL;
}

pen_status generation_begin(generation_case *g, uint64_t generation,
                            pen_coordinator **out_coordinator) {
    memset(g->is_missing, 0, sizeof g->is_missing);
    const pen_coordinator_setup setup = {.spec = &g->spec,
                                         .transport = g->transport,
                                         .job = GENERATION_JOB,
                                         .rendezvous_seconds = g->rendezvous_seconds,
                                         .local_worker = 1,
                                         .generation = generation,
                                         .lease_seconds = g->lease_seconds,
                                         .progress_seconds = g->progress_seconds,
                                         .load_seconds = g->load_seconds,
                                         .write_seconds = g->write_seconds,
                                         .needed_bytes = g->needed_bytes,
                                         .is_missing = g->is_missing};
    if (g->running[1] != NULL) { // a worker of this process is of one generation
        generation_end_worker(g, 1);
        generation_start_worker(g, 1);
    }
    return pen_coordinator_create(&setup, out_coordinator);
}

pen_status generation_write(generation_case *g, pen_coordinator *coordinator) {
    for (uint32_t d = 0; d < g->spec.table->device_count; d++) {
        const pen_graph *graph = g->spec.forms[0].parts[d].part->graph;
        if (g->spec.table->forms[0].devices[d].worker == 1) continue; // was loaded
        for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
            const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
            if (!generation_is_kept(graph, v) || value->data == NULL) continue;
            const pen_tensor_piece piece = {
                .device = d, .value = v, .bytes = pen_tensor_type_bytes(&value->type)};
            PEN_TRY(pen_coordinator_write(coordinator, &piece, value->data));
        }
    }
    return pen_coordinator_flush(coordinator);
}

pen_status generation_begin_round(generation_case *g, pen_coordinator *coordinator,
                                  uint64_t *out_round) {
    const pen_coordinator_round round = {.form = 0,
                                         .count = GENERATION_MICROBATCHES,
                                         .updates = true,
                                         .step = 1,
                                         .update = 1,
                                         .loss_weight = 1.0 / GENERATION_MICROBATCHES,
                                         .learning_rate = 0.01,
                                         .feeds = g->feeds};
    return pen_coordinator_begin_round(coordinator, &round, out_round);
}

pen_status generation_finish_round(generation_case *g, pen_coordinator *coordinator, uint64_t round,
                                   double *out_loss) {
    pen_run_loss losses[GENERATION_MICROBATCHES];
    (void)g;
    *out_loss = 0;
    PEN_TRY(pen_coordinator_await_losses(coordinator, round, losses));
    for (uint32_t m = 0; m < GENERATION_MICROBATCHES; m++) {
        *out_loss += losses[m].sum;
    }
    return PEN_OK;
}

pen_status generation_read(generation_case *g, pen_coordinator *coordinator,
                           uint32_t *out_checksum) {
    uint32_t checksum = 0;
    PEN_TRY(pen_coordinator_await_quiet(coordinator));
    for (uint32_t i = 0; i < g->spec.saved_count; i++) {
        const pen_run_spec_saved *saved = &g->spec.saved[i];
        const pen_graph *graph = g->spec.forms[0].parts[saved->device].part->graph;
        const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(graph, saved->value));
        const pen_tensor_piece piece = {
            .device = saved->device, .value = saved->value.index, .bytes = bytes};
        char *memory;
        uint32_t one = 0;
        PEN_TRY(PEN_NEW(g->arena, bytes, &memory));
        PEN_TRY(pen_coordinator_read(coordinator, &piece, memory));
        pen_checksum_chunks(memory, bytes, &one);
        checksum = checksum * 31 + one;
    }
    *out_checksum = checksum;
    return PEN_OK;
}

pen_status generation_train(generation_case *g, pen_coordinator *coordinator, double *out_losses,
                            uint32_t *out_checksum) {
    PEN_TRY(generation_write(g, coordinator));
    for (uint32_t r = 0; r < GENERATION_ROUNDS; r++) {
        uint64_t round;
        PEN_TRY(generation_begin_round(g, coordinator, &round));
        PEN_TRY(generation_finish_round(g, coordinator, round, &out_losses[r]));
    }
    return generation_read(g, coordinator, out_checksum);
}
