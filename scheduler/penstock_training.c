#include "scheduler/penstock.h"

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system/file.h"
#include "base/system/interrupt.h"
#include "partition/plan/plan_dump.h"
#include "scheduler/checkpoint/model_export.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/penstock_state.h"
#include "scheduler/plan/plan_job.h"
#include "scheduler/train/train_end.h"

const char *pen_version(void) {
    return PEN_VERSION;
}

// ---- messages

// Who takes messages: set before there are trainings.
static pen_message_take message_take;

static void message_give(void *context, pen_log_level level, const char *text) {
    message_take(context, pen_log_level_name(level), text);
}

void pen_messages_redirect(pen_message_take take, void *context) {
    message_take = take;
    pen_log_redirect(take == NULL ? NULL : message_give, context);
}

// ---- opening

pen_status pen_api_open_evaluated(pen_training *training) {
    if (training->evaluated != NULL) return PEN_OK;
    PEN_TRY(pen_job_open_dataset(training->job, PEN_DATASET_PART_EVAL, training->arena,
                                 &training->evaluated));
    pen_dataset_set_cancel(training->evaluated, training->cancel);
    return PEN_OK;
}

// Where the job says that checkpoints are kept, before anything takes time.
static pen_status training_plan_checkpoints(const pen_training *training,
                                            const pen_training_options *options,
                                            pen_trainer_options *trainer_options) {
    const pen_job_checkpoint *checkpoint = &training->job->checkpoint;
    if (checkpoint->dir == NULL) return PEN_OK;
    const pen_status made = pen_job_blame(training->job, &checkpoint->dir,
                                          pen_folder_create(checkpoint->dir, training->arena));
    if (checkpoint->mirror == NULL) PEN_TRY(made);
    pen_status_ignore(made, "while it is away its mirror is used, and says so");
    trainer_options->checkpoints = checkpoint->dir;
    trainer_options->mirror = checkpoint->mirror;
    trainer_options->every = checkpoint->every;
    trainer_options->continues = options->continues;
    trainer_options->overwrites = options->overwrites;
    return PEN_OK;
}

static void training_say_warnings(const pen_training *training) {
    const pen_program *program = pen_trainer_program(training->trainer);
    const pen_job_outputs *outputs = &training->job->outputs;
    if (outputs->dir != NULL || outputs->export != NULL) {
        pen_log(
            PEN_LOG_WARNING,
            "outputs: only the command writes them; a program saves and exports where it wants");
    }
    if (program->note != NULL) pen_log(PEN_LOG_NOTE, "%s", program->note);
    for (uint32_t i = 0; i < program->warning_count; i++) {
        pen_log(PEN_LOG_WARNING, "%s", program->warnings[i]);
    }
}

// Several devices plan for the batches that are evaluated, so the data are known from the start.
static pen_status training_create_trainer(pen_training *training,
                                          const pen_training_options *options) {
    pen_trainer_options trainer_options = {.step_limit = options->step_limit,
                                           .parameters = training->parameters,
                                           .insecure = options->insecure,
                                           .worker_program = options->worker_program,
                                           .cancel = options->cancel};
    PEN_TRY(training_plan_checkpoints(training, options, &trainer_options));
    if (pen_job_data_can_evaluate(&training->job->data)) {
        PEN_TRY(pen_api_open_evaluated(training));
        trainer_options.evaluated = training->evaluated;
    }
    PEN_TRY(pen_trainer_create(training->job, &trainer_options, &training->trainer));
    training->is_kept = trainer_options.checkpoints != NULL;
    training_say_warnings(training);
    if (training->evaluated == NULL) return PEN_OK;
    return pen_job_check_data(training->job, PEN_DATASET_PART_EVAL,
                              pen_trainer_program(training->trainer), training->evaluated);
}

static pen_status training_start(pen_training *training, const char *job_path,
                                 const pen_training_options *options) {
    training->cancel = options->cancel;
    PEN_TRY(pen_arena_create(&training->arena));
    if (options->parameters != NULL) {
        PEN_TRY(pen_arena_copy_text(training->arena, options->parameters,
                                    strlen(options->parameters), &training->parameters));
    }
    PEN_TRY(pen_api_open_job(job_path, options, training->arena, &training->job));
    return options->inference ? PEN_OK : training_create_trainer(training, options);
}

pen_status pen_training_open(const char *job_path, const pen_training_options *options,
                             pen_training **out_training) {
    pen_training_options known;
    *out_training = NULL;
    PEN_TRY(pen_api_read_options(options, &known));
    pen_training *training = pen_memory_allocate(1, sizeof *training);
    if (training == NULL) return pen_error_out_of_memory();
    const pen_status status = training_start(training, job_path, &known);
    if (status != PEN_OK) {
        pen_training_close(training);
        return status;
    }
    *out_training = training;
    return PEN_OK;
}

void pen_training_close(pen_training *training) {
    if (training == NULL) return;
    pen_runner_destroy(training->runner);
    pen_trainer_destroy(training->trainer);
    pen_dataset_close(training->evaluated);
    pen_arena_destroy(training->arena);
    pen_memory_free(training);
}

// ---- steps

_Static_assert(PEN_TRAINING_LOSSES_LIMIT == PEN_LOSSES_LIMIT, "reports have room for all losses");

uint64_t pen_training_step_count(const pen_training *training) {
    return training->trainer == NULL ? 0 : pen_trainer_get_size(training->trainer).step_count;
}

// What it trains or evaluates; NULL: nothing yet.
static const pen_program *training_program(const pen_training *training) {
    return training->trainer != NULL ? pen_trainer_program(training->trainer) : training->program;
}

uint32_t pen_training_loss_count(const pen_training *training) {
    const pen_program *program = training_program(training);
    return program == NULL ? 0 : program->term_count;
}

const char *pen_training_loss_name(const pen_training *training, uint32_t index) {
    const pen_program *program = training_program(training);
    return index < pen_training_loss_count(training) ? program->losses[index].name : NULL;
}

static pen_status training_check_cancel(const pen_training *training) {
    if (training->cancel == NULL || !pen_interrupt_wished(training->cancel)) return PEN_OK;
    return pen_error(PEN_CANCELLED, "stopped after step %llu, as was wished",
                     (unsigned long long)training->steps_done);
}

// The caller has the parameters: a disk that does not take the last checkpoint is no end of that.
static pen_status training_keep_last(pen_training *training) {
    const pen_status status = pen_training_keep(training);
    if (pen_status_get_code(status) != PEN_NO_STORAGE) return status;
    pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
    pen_status_ignore(status, "said; pen_training_keep tries again");
    return PEN_OK;
}

// Behind the losses there are terms of metrics, which have names of their own.
static void training_fill_losses(const pen_program *program, const double *terms,
                                 double out_losses[PEN_TRAINING_LOSSES_LIMIT]) {
    memcpy(out_losses, terms, program->term_count * sizeof *terms);
}

static void training_fill_evaluation(const pen_program *program, const pen_step_report *step,
                                     pen_training_step_report *report) {
    const pen_evaluation *evaluation = &step->evaluation;
    if (!step->is_evaluated) return;
    report->is_evaluated = true;
    report->is_best = step->is_best;
    report->ends = step->ends;
    report->evaluation_loss = evaluation->loss;
    report->evaluation_example_count = evaluation->example_count;
    report->evaluation_target_count = evaluation->target_count;
    report->evaluation_correct_count = evaluation->correct_count;
    report->evaluation_seconds = evaluation->seconds;
    training_fill_losses(program, evaluation->terms, report->evaluation_losses);
}

// The report is empty unless a step was done, so that nobody reads one twice.
pen_status pen_training_step(pen_training *training, pen_training_step_report *out_report,
                             bool *out_more) {
    pen_step_report step = {0};
    pen_training_step_report report = {0};
    *out_more = false;
    PEN_TRY(pen_api_check_report("pen_training_step_report", out_report, sizeof *out_report));
    pen_api_fill_report(&report, sizeof report, out_report);
    if (training->trainer == NULL) {
        return pen_error(PEN_UNSUPPORTED, "the training was opened for inference: it has no steps");
    }
    PEN_TRY(training_check_cancel(training));
    PEN_TRY(pen_trainer_step(training->trainer, &step, out_more));
    if (!*out_more) return training_keep_last(training);
    training->steps_done = step.step;
    training->told_step = step;
    if (step.is_evaluated) training->told = step.evaluation;
    report = (pen_training_step_report){.step = step.step,
                                        .epoch = step.epoch,
                                        .loss = step.loss,
                                        .example_count = step.example_count,
                                        .target_count = step.target_count,
                                        .correct_count = step.correct_count,
                                        .learning_rate = step.learning_rate,
                                        .seconds = step.seconds,
                                        .wait_seconds = step.wait_seconds,
                                        .ends_epoch = step.ends_epoch};
    const pen_program *program = training_program(training);
    training_fill_losses(program, step.terms, report.losses);
    training_fill_evaluation(program, &step, &report);
    pen_api_fill_report(&report, sizeof report, out_report);
    return PEN_OK;
}

pen_status pen_training_keep(pen_training *training) {
    return training->is_kept ? pen_trainer_keep(training->trainer) : PEN_OK;
}

// ---- what comes of it

typedef struct training_asked {
    pen_training *training;
    pen_evaluation *evaluation;
} training_asked;

static pen_status training_ask_evaluation(void *context) {
    const training_asked *asked = context;
    const pen_training *training = asked->training;
    return pen_trainer_evaluate(training->trainer, training->evaluated, asked->evaluation);
}

static pen_status training_evaluate(pen_training *training, pen_evaluation *evaluation) {
    pen_runner *runner;
    const pen_runner_form *form;
    PEN_TRY(pen_api_open_evaluated(training));
    if (training->trainer != NULL) {
        training_asked asked = {training, evaluation};
        return pen_train_insist(training->trainer, training_ask_evaluation, &asked);
    }
    const pen_dataset_info *info = pen_dataset_get_info(training->evaluated);
    const uint64_t batch = pen_plan_evaluation_batch(training->job, info);
    PEN_TRY(pen_api_get_runner(training, info, &runner));
    PEN_TRY(pen_job_blame_memory(
        training->job, pen_runner_get(runner, PEN_COMPILE_EVALUATE, batch, false, &form)));
    training->program = form->program;
    PEN_TRY(pen_job_check_data(training->job, PEN_DATASET_PART_EVAL, form->program,
                               training->evaluated));
    return pen_evaluate(runner, training->evaluated, batch, evaluation);
}

pen_status pen_training_evaluate(pen_training *training, pen_training_evaluation *out_evaluation) {
    pen_evaluation evaluation = {0};
    PEN_TRY(
        pen_api_check_report("pen_training_evaluation", out_evaluation, sizeof *out_evaluation));
    PEN_TRY(training_evaluate(training, &evaluation));
    training->told = evaluation;
    pen_training_evaluation report = {
        .example_count = evaluation.example_count,
        .loss = evaluation.loss,
        .target_count = evaluation.target_count,
        .correct_count = evaluation.correct_count,
        .seconds = evaluation.seconds,
    };
    training_fill_losses(training_program(training), evaluation.terms, report.losses);
    pen_api_fill_report(&report, sizeof report, out_evaluation);
    return PEN_OK;
}

// The one at `index` of a set; PEN_METRIC_COUNT: it has not so many.
static pen_metric training_find_metric(pen_metric_set metrics, uint32_t index) {
    pen_metric metric = 0;
    while (metric < PEN_METRIC_COUNT && (!pen_metric_is_in(metric, metrics) || index-- > 0)) {
        metric += 1;
    }
    return metric;
}

const char *pen_training_get_metric(const pen_training *training, uint32_t index, double *out) {
    const pen_metric metric = training_find_metric(training->told.metrics, index);
    *out = metric == PEN_METRIC_COUNT ? 0 : pen_evaluation_value(&training->told, metric);
    return pen_metric_names[metric]; // NULL behind the last
}

const char *pen_training_get_step_metric(const pen_training *training, uint32_t index,
                                         double *out) {
    const pen_metric metric = training_find_metric(training->told_step.metrics, index);
    *out = metric == PEN_METRIC_COUNT ? 0 : training->told_step.metric_values[metric];
    return pen_metric_names[metric];
}

pen_status pen_training_save(pen_training *training, const char *path) {
    const pen_tensor_store *tensors;
    if (training->trainer != NULL) return pen_trainer_save(training->trainer, path);
    PEN_TRY(pen_api_get_tensors(training, &tensors));
    return pen_parameter_file_save(path, tensors);
}

static pen_status training_save(void *context, const char *path) {
    return pen_training_save(context, path);
}

pen_status pen_training_export(pen_training *training, const char *path) {
    const pen_engine *engine =
        training->trainer == NULL ? NULL : pen_trainer_engine(training->trainer);
    const pen_import_options import = pen_job_import_options(training->job);
    const pen_model_export_source source = {
        .model_path = training->job->model.file,
        .import = &import,
        .plan = engine != NULL && engine->kind->plan != NULL ? engine->kind->plan(engine) : NULL,
        .types = training->job->outputs.types,
        .save = training_save,
        .context = training};
    PEN_TRY(pen_model_check_export(source.model_path, &import, source.types, path));
    return pen_model_export(&source, path);
}

// ---- plans

// In `arena`, for the plan's own memory goes.
static pen_status plan_write(const pen_job *job, pen_arena *arena, const char **out_text) {
    const pen_plan_job_options options = {.objective = -1, .seed = -1};
    pen_plan_job *plan_job;
    pen_plan *plan;
    pen_text text;
    pen_json_writer json;
    PEN_TRY(pen_plan_job_create(job, &options, &plan_job));
    pen_status status = pen_plan_job_place(plan_job, arena, &plan);
    if (status == PEN_OK) status = pen_plan_job_add_reasons(plan_job, plan, arena);
    if (status == PEN_OK) {
        pen_text_init(&text, arena);
        pen_json_init_text(&json, &text, 0);
        pen_json_begin_object(&json);
        pen_plan_write_json(plan, &json);
        pen_json_end_object(&json);
        status = pen_json_finish(&json);
    }
    pen_plan_job_destroy(plan_job);
    PEN_TRY(status);
    return pen_text_finish(&text, out_text);
}

pen_status pen_plan_describe(const char *job_path, const pen_training_options *options,
                             char **out_text) {
    pen_training_options known;
    const pen_job *job;
    const char *text;
    pen_arena *arena;
    *out_text = NULL;
    PEN_TRY(pen_api_read_options(options, &known));
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_api_open_job(job_path, &known, arena, &job);
    if (status == PEN_OK) status = plan_write(job, arena, &text);
    if (status == PEN_OK) {
        *out_text = pen_memory_allocate(strlen(text) + 1, 1);
        if (*out_text == NULL) status = pen_error_out_of_memory();
    }
    if (status == PEN_OK) memcpy(*out_text, text, strlen(text));
    pen_arena_destroy(arena);
    return status;
}

void pen_plan_text_destroy(char *text) {
    pen_memory_free(text);
}
