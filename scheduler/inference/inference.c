#include "scheduler/inference/inference.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/protocol/recovery_policy.h"

#define LOST_LEVEL "error: " // which it is not, if the work goes on

struct pen_inference {
    pen_inference_options options;
    pen_engine *engine;
};

// A worker that is lost while it gets its parameters is looked after as any other.
pen_status pen_inference_create(const pen_inference_options *options,
                                pen_inference **out_inference) {
    const pen_engine_options engine = {.job = options->job,
                                       .info = options->info,
                                       .part = options->part,
                                       .mode = options->mode,
                                       .evaluate_batch = options->batch,
                                       .evaluate_rest = options->rest,
                                       .insecure = options->insecure,
                                       .worker_program = options->worker_program,
                                       .cancel = options->cancel};
    pen_inference *inference = pen_memory_allocate(1, sizeof *inference);
    if (inference == NULL) return pen_error_out_of_memory();
    inference->options = *options;
    pen_status status = pen_engine_create(&engine, &inference->engine);
    if (status == PEN_OK) status = pen_inference_load(inference, options->parameters);
    if (status != PEN_OK && pen_inference_can_recover(inference, status)) {
        status = pen_inference_recover(inference, 0, status);
    }
    if (status != PEN_OK) {
        pen_inference_destroy(inference);
        return status;
    }
    *out_inference = inference;
    return PEN_OK;
}

void pen_inference_destroy(pen_inference *inference) {
    if (inference == NULL) return;
    pen_engine_destroy(inference->engine);
    pen_memory_free(inference);
}

const pen_program *pen_inference_program(const pen_inference *inference) {
    return inference->engine->kind->program(inference->engine);
}

pen_engine *pen_inference_engine(pen_inference *inference) {
    return inference->engine;
}

pen_status pen_inference_load(pen_inference *inference, const char *parameters) {
    if (parameters == NULL) return PEN_OK;
    pen_engine *engine = inference->engine;
    PEN_TRY(pen_parameter_file_load(parameters, engine->kind->tensors(engine)));
    inference->options.parameters = parameters;
    return PEN_OK;
}

// ---- when a peer is lost

bool pen_inference_can_recover(const pen_inference *inference, pen_status status) {
    pen_engine *engine = inference->engine;
    return engine != NULL && pen_recovery_may_help(pen_status_get_code(status)) &&
           engine->kind->is_failed != NULL && engine->kind->is_failed(engine) &&
           inference->options.job->recovery.on_loss != PEN_JOB_ON_LOSS_STOP;
}

// Any question to the workers then ends with who was lost.
pen_status pen_inference_check(const pen_inference *inference) {
    pen_engine *engine = inference->engine;
    pen_engine_memory memory;
    if (engine->kind->is_failed == NULL || !engine->kind->is_failed(engine)) return PEN_OK;
    PEN_TRY(engine->kind->memory(engine, &memory));
    return pen_error(PEN_UNAVAILABLE, "a worker was lost");
}

// The whole of it: who was lost, and who waited for whom.
static void inference_say_lost(pen_status take_status) {
    char text[4096];
    pen_status_format(take_status, text, sizeof text);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        const bool has_level = strncmp(line, LOST_LEVEL, strlen(LOST_LEVEL)) == 0;
        if (line[0] == '\0') continue;
        pen_log(PEN_LOG_WARNING, "%s", line + (has_level ? strlen(LOST_LEVEL) : 0));
    }
    pen_status_ignore(take_status, "said, and looked after");
}

pen_status pen_inference_recover(pen_inference *inference, uint64_t progress,
                                 pen_status take_status) {
    pen_engine *engine = inference->engine;
    for (;;) {
        const pen_engine_loss loss = {.step = progress};
        inference_say_lost(take_status);
        PEN_TRY(engine->kind->recover(engine, &loss));
        take_status = pen_inference_load(inference, inference->options.parameters);
        if (take_status == PEN_OK) return PEN_OK;
        if (!pen_inference_can_recover(inference, take_status)) return take_status;
        progress = 0;
    }
}

// A worker that is lost meanwhile is looked after as any other.
pen_status pen_inference_renew(pen_inference *inference) {
    pen_engine *engine = inference->engine;
    const pen_engine_loss loss = {.is_blameless = true};
    if (engine->kind->recover == NULL) return PEN_OK;
    PEN_TRY(engine->kind->recover(engine, &loss));
    const pen_status status = pen_inference_load(inference, inference->options.parameters);
    if (status == PEN_OK || !pen_inference_can_recover(inference, status)) return status;
    return pen_inference_recover(inference, 0, status);
}

// ---- over a dataset

// What is done with a pass that has ended: `first` is the number of its first example.
typedef pen_status (*inference_take)(void *context, const pen_engine_passed *passed,
                                     uint64_t first);

typedef struct inference_walk {
    pen_inference *inference;
    pen_dataset *dataset;
    uint64_t example_limit; // 0: all
    inference_take take;
    void *context;
    uint64_t begun; // batches
    uint64_t ended;
    uint64_t recovered; // batches that were ended at the last recovery
    uint64_t examples;  // of those that ended
    pen_status taken;   // an error of `take`: nobody's fault who could be replaced
} inference_walk;

static bool walk_is_over(const inference_walk *walk) {
    return walk->example_limit > 0 &&
           walk->begun * walk->inference->options.batch >= walk->example_limit;
}

static pen_status walk_end(inference_walk *walk) {
    pen_engine *engine = walk->inference->engine;
    pen_engine_passed passed;
    PEN_TRY(engine->kind->end_pass(engine, &passed));
    walk->taken = walk->take(walk->context, &passed, walk->examples);
    if (walk->taken != PEN_OK) return PEN_OK;
    walk->ended += 1;
    walk->examples += passed.batch->count;
    return PEN_OK;
}

// As many passes are under way as the engine takes.
static pen_status walk_batches(inference_walk *walk, pen_batches *batches) {
    pen_engine *engine = walk->inference->engine;
    const pen_dataset_info *info = pen_dataset_get_info(walk->dataset);
    const uint32_t limit = engine->kind->pass_limit(engine);
    for (walk->begun = walk->ended; walk->taken == PEN_OK && !walk_is_over(walk);) {
        const pen_batch *batch;
        if (walk->begun - walk->ended == limit) PEN_TRY(walk_end(walk));
        if (walk->taken != PEN_OK) break;
        PEN_TRY(pen_batches_next(batches, &batch));
        if (batch == NULL) break;
        PEN_TRY(engine->kind->begin_pass(engine, info, batch));
        walk->begun += 1;
    }
    while (walk->taken == PEN_OK && walk->ended < walk->begun) {
        PEN_TRY(walk_end(walk));
    }
    return PEN_OK;
}

// From the first batch that is not ended. What goes wrong stays in *out_failed, with the batches
// lent until the engine has recovered, or ends.
static pen_status walk_try(inference_walk *walk, pen_batches **batches, pen_status *out_failed) {
    pen_engine *engine = walk->inference->engine;
    const uint32_t limit = engine->kind->pass_limit(engine);
    const pen_batches_options options = {.batch_size = walk->inference->options.batch,
                                         .epoch_count = 1,
                                         .is_whole =
                                             walk->inference->options.mode == PEN_COMPILE_EVALUATE,
                                         .buffer_count = limit + 1,
                                         .held_count = limit,
                                         .start = {.index = walk->ended}};
    PEN_TRY(pen_batches_create(walk->dataset, &options, batches));
    *out_failed = walk_batches(walk, *batches);
    return PEN_OK;
}

// Batches are given back when nobody reads them any more: after a failure, by then the generation
// that had them lent is over.
static pen_status walk_run(inference_walk *walk) {
    pen_inference *inference = walk->inference;
    for (;;) {
        pen_batches *batches = NULL;
        pen_status failed = PEN_OK;
        PEN_TRY(walk_try(walk, &batches, &failed));
        const bool recovers = failed != PEN_OK && pen_inference_can_recover(inference, failed);
        pen_status status = failed;
        if (recovers) {
            const uint64_t progress = walk->ended > walk->recovered ? walk->ended : 0;
            walk->recovered = walk->ended;
            status = pen_inference_recover(inference, progress, failed);
        }
        if (status != PEN_OK || walk->taken != PEN_OK) { // some may be under way still
            pen_engine_destroy(inference->engine);
            inference->engine = NULL;
        }
        pen_batches_destroy(batches);
        if (walk->taken != PEN_OK) return pen_status_join(walk->taken, status);
        if (status != PEN_OK || !recovers) return status;
        pen_log(PEN_LOG_NOTE, "goes on after %llu examples", (unsigned long long)walk->examples);
    }
}

static pen_status evaluation_take(void *context, const pen_engine_passed *passed, uint64_t first) {
    const pen_evaluation_batch batch = pen_engine_evaluated(passed);
    (void)first;
    return pen_evaluation_add(context, &batch);
}

pen_status pen_inference_evaluate(pen_inference *inference, pen_dataset *dataset,
                                  pen_evaluation *out_evaluation) {
    pen_evaluation_sums sums = {.dataset = dataset, .started_seconds = pen_clock_seconds()};
    inference_walk walk = {
        .inference = inference, .dataset = dataset, .take = evaluation_take, .context = &sums};
    return pen_evaluation_finish(&sums, walk_run(&walk), out_evaluation);
}

typedef struct inference_prediction {
    const pen_inference *inference;
    uint64_t example_limit;
    pen_prediction_fn take;
    void *context;
} inference_prediction;

static pen_status prediction_take(void *context, const pen_engine_passed *passed, uint64_t first) {
    const inference_prediction *prediction = context;
    uint64_t count = passed->batch->count;
    if (prediction->example_limit > 0 && first + count > prediction->example_limit) {
        count = prediction->example_limit - first;
    }
    return prediction->take(prediction->context, pen_inference_program(prediction->inference),
                            first, count, passed->rows);
}

pen_status pen_inference_predict(pen_inference *inference, pen_dataset *dataset,
                                 uint64_t example_limit, pen_prediction_fn take, void *context) {
    inference_prediction prediction = {inference, example_limit, take, context};
    inference_walk walk = {.inference = inference,
                           .dataset = dataset,
                           .example_limit = example_limit,
                           .take = prediction_take,
                           .context = &prediction};
    return pen_status_add_context(walk_run(&walk), "while predicting");
}
