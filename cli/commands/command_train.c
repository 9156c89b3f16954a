// penstock train: trains the model of a job, evaluates it, and leaves its parameters.

#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/system/file.h"
#include "base/system/interrupt.h"
#include "base/system/machine.h"
#include "cli/command.h"
#include "cli/loss_terms.h"
#include "cli/progress.h"
#include "cli/run_output.h"
#include "cli/signals.h"
#include "cli/training_job.h"
#include "partition/plan/plan_file.h"
#include "scheduler/checkpoint/model_export.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/report/run_report.h"
#include "scheduler/train/train.h"

typedef struct train_options {
    pen_cli_common common;
    int64_t steps;
    const char *parameters;
    const char *save;
    const char *checkpoint;
    const char *every;
    const char *resume;
    bool continues;
    bool overwrites;
    const char *trace;
    const char *report;
    bool no_eval;
    bool no_memory_check;
    bool insecure;
    bool progress;
} train_options;

typedef struct train_run {
    pen_command_context *context;
    const train_options *options;
    const pen_job *job;
    const pen_plan *plan; // NULL: it is made
    pen_trainer *trainer;
    pen_dataset *evaluated; // evaluation data; NULL: none
    pen_training_size size;
    pen_json_writer json; // with --json: written step by step
    bool has_evaluation;
    pen_evaluation evaluation;
    const char *checkpoint; // folder; NULL: none are written
    const char *resume;     // another folder, to start from; NULL: none
    bool continues;         // from what is in `checkpoint`
    pen_interval every;
    uint64_t steps_done;
    double seconds;
    pen_run_output output;
} train_run;

static pen_status train_warn_threads(const train_run *run) {
    const pen_cluster_spec *cluster = &run->job->cluster;
    pen_machine machine;
    PEN_TRY(pen_machine_detect(run->context->arena, &machine));
    for (uint32_t i = 0; i < cluster->device_count; i++) {
        const pen_cluster_device_spec *device = &cluster->devices[i];
        if (device->host != NULL) continue;
        if (device->threads <= 2 * (int64_t)machine.core_count_allowed) continue;
        pen_log(PEN_LOG_WARNING,
                "device '%s' has %lld threads, but this process may use %u %s: expect it to be "
                "slow",
                device->name, (long long)device->threads, machine.core_count_allowed,
                machine.core_count_allowed == 1 ? "core" : "cores");
    }
    return PEN_OK;
}

static void train_warn_unkept(const train_run *run) {
    const pen_job_outputs *outputs = &run->job->outputs;
    const bool is_kept = run->options->save != NULL || outputs->dir != NULL ||
                         outputs->export != NULL || run->checkpoint != NULL;
    if (is_kept) return;
    pen_log(PEN_LOG_WARNING, "nothing of what is trained will be kept: `outputs: {dir: run1}` in "
                             "the job, or --save FILE.safetensors, would");
}

// What is likely not meant, said before the work begins.
static pen_status train_warn(const train_run *run) {
    const pen_job *job = run->job;
    const pen_program *program = pen_trainer_program(run->trainer);
    for (uint32_t i = 0; i < program->warning_count; i++) {
        pen_log(PEN_LOG_WARNING, "%s", program->warnings[i]);
    }
    pen_command_warn_skipped(pen_trainer_data(run->trainer));
    if (run->evaluated != NULL && job->data.has_eval) {
        pen_command_warn_skipped(pen_dataset_get_info(run->evaluated));
    }
    const uint64_t batch = (uint64_t)job->train.batch;
    if (batch > run->size.example_count) {
        pen_log(PEN_LOG_WARNING, "batch is %llu, but there are %llu examples: each step takes all",
                (unsigned long long)batch, (unsigned long long)run->size.example_count);
    }
    if (run->size.warmup_steps >= run->size.step_count && run->size.warmup_steps > 1) {
        pen_log(
            PEN_LOG_WARNING,
            "warmup is %llu steps, but the training has %llu: the learning rate rises until the "
            "end",
            (unsigned long long)run->size.warmup_steps, (unsigned long long)run->size.step_count);
    }
    train_warn_unkept(run);
    return train_warn_threads(run);
}

// Before the first step: what is trained on what, in how many steps, and the memory that takes.
static pen_status train_describe(const train_run *run) {
    const pen_cluster_spec *cluster = &run->job->cluster;
    char bytes[PEN_QUANTITY_TEXT_BYTES], where[128];
    pen_engine *engine = pen_trainer_engine(run->trainer);
    pen_engine_memory memory;
    PEN_TRY(engine->kind->memory(engine, &memory));
    if (cluster->device_count == 1) {
        snprintf(where, sizeof where, "device '%.100s'", cluster->devices[0].name);
    } else {
        snprintf(where, sizeof where, "%u devices", cluster->device_count);
    }
    pen_log(PEN_LOG_NOTE,
            "%s: %llu parameters to train in %u tensors, %llu examples, %llu steps, %s on %s",
            pen_path_name(run->job->model.file), (unsigned long long)run->size.trainable_elements,
            run->size.trainable_count, (unsigned long long)run->size.example_count,
            (unsigned long long)run->size.step_count, pen_bytes_format(memory.device_bytes, bytes),
            where);
    const char *note = pen_trainer_program(run->trainer)->note;
    if (note != NULL) pen_log(PEN_LOG_NOTE, "%s", note);
    return PEN_OK;
}

static void train_write_step(pen_json_writer *json, const pen_program *program,
                             const pen_step_report *report) {
    pen_json_begin_object(json);
    pen_json_key_unsigned(json, "step", report->step);
    pen_json_key_unsigned(json, "epoch", report->epoch);
    pen_json_key_number(json, "loss", report->loss);
    pen_loss_terms_write(json, program, report->terms);
    pen_json_key_unsigned(json, "examples", report->example_count);
    if (report->target_count > 0) {
        pen_json_key_number(json, "accuracy",
                            (double)report->correct_count / (double)report->target_count);
    }
    pen_json_key_number(json, "learning_rate", report->learning_rate);
    pen_json_key_number(json, "seconds", report->seconds);
    pen_json_key_number(json, "wait_seconds", report->wait_seconds);
    pen_json_end_object(json);
    fflush(stdout); // a step that was done is seen, whatever comes then
}

// Where checkpoints go, and how often: the command line goes before the job.
static pen_status train_plan_checkpoints(train_run *run) {
    const train_options *options = run->options;
    const pen_job_checkpoint *checkpoint = &run->job->checkpoint;
    run->checkpoint = options->checkpoint != NULL ? options->checkpoint : checkpoint->dir;
    run->every = checkpoint->dir != NULL ? checkpoint->every
                                         : (pen_interval){.count = 1, .unit = PEN_INTERVAL_EPOCHS};
    if (options->every != NULL) {
        char text[64]; // a bare number is steps
        snprintf(text, sizeof text, "%.40s steps", options->every);
        const bool is_read = pen_interval_parse(options->every, &run->every) ||
                             pen_interval_parse(text, &run->every);
        run->context->input_exit_code = PEN_EXIT_USAGE;
        if (!is_read || run->every.count == 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "--every: found \"%.40s\", expected a number of steps, or a length "
                             "like \"100 steps\" or \"3 epochs\"",
                             options->every);
        }
        if (run->checkpoint == NULL) {
            return pen_error(PEN_INVALID_INPUT, "--every: found no folder for checkpoints, "
                                                "expected --checkpoint DIR, or `checkpoint: "
                                                "{dir: …}` in the job");
        }
        run->context->input_exit_code = PEN_EXIT_SPEC;
    }
    if (run->checkpoint == NULL) return PEN_OK;
    if (options->checkpoint != NULL) run->context->input_exit_code = PEN_EXIT_USAGE;
    pen_status status = pen_job_check_folder(run->checkpoint, run->context->arena);
    if (options->checkpoint == NULL) status = pen_job_blame(run->job, &checkpoint->dir, status);
    PEN_TRY(status);
    run->context->input_exit_code = PEN_EXIT_SPEC;
    return PEN_OK;
}

// Where the training begins: with what the folder of checkpoints has, or another has, or anew.
static pen_status train_plan_start(train_run *run) {
    const train_options *options = run->options;
    const bool is_own = options->resume != NULL && run->checkpoint != NULL &&
                        pen_path_is_same(options->resume, run->checkpoint);
    run->continues = options->continues || is_own;
    run->resume = is_own ? NULL : options->resume;
    const char *wrong = NULL;
    if (options->continues && run->checkpoint == NULL) {
        wrong = "--continue: found no folder for checkpoints, expected --checkpoint DIR, or "
                "`checkpoint: {dir: …}` in the job";
    } else if (run->continues && options->overwrites) {
        wrong = "found --overwrite beside --continue or --resume, expected one of them";
    } else if (options->resume != NULL && options->parameters != NULL) {
        wrong = "found --resume and --parameters, expected one of them: a checkpoint has its own "
                "parameters";
    }
    if (wrong == NULL) return PEN_OK;
    run->context->input_exit_code = PEN_EXIT_USAGE;
    return pen_error(PEN_INVALID_INPUT, "%s", wrong);
}

// What is asked after the last step, as often as somebody is lost over it.
static pen_status train_insist(train_run *run, pen_status (*ask)(train_run *run)) {
    pen_status status = ask(run);
    while (status != PEN_OK) {
        PEN_TRY(pen_trainer_recover(run->trainer, status));
        status = ask(run);
    }
    return PEN_OK;
}

// After the wish to stop: what was done is kept, and nothing else is left.
static pen_status train_stop(const train_run *run, pen_status take_status) {
    const uint64_t step = pen_trainer_step_kept(run->trainer);
    const pen_status_code code = pen_status_get_code(take_status);
    if (code != PEN_CODE_OK && code != PEN_CANCELLED) return take_status;
    pen_status_ignore(take_status, "it was wished for");
    if (step == 0) {
        return pen_error(PEN_CANCELLED,
                         "stopped after step %llu, of which nothing is kept: --checkpoint DIR, or "
                         "`checkpoint: {dir: …}` in the job, would",
                         (unsigned long long)run->steps_done);
    }
    pen_log(PEN_LOG_NOTE,
            "stopped; the checkpoint of step %llu is in %s: --continue goes on from it",
            (unsigned long long)step, run->checkpoint);
    return PEN_OK;
}

// Where an end that comes early leaves the training.
static pen_status train_say_kept(const train_run *run, pen_status status) {
    const uint64_t step = run->trainer == NULL ? 0 : pen_trainer_step_kept(run->trainer);
    if (step == 0) return status;
    return pen_status_add_context(
        status, "the checkpoint of step %llu is in %s: --continue goes on from it",
        (unsigned long long)step, run->checkpoint);
}

// Ctrl-C is looked at between steps; a pipeline first finishes the steps that are under way.
static pen_status train_loop(train_run *run) {
    const bool is_json = run->options->common.json;
    pen_progress progress;
    pen_progress_init(&progress,
                      run->options->common.quiet || (is_json && !run->options->progress));
    for (;;) {
        pen_step_report report;
        bool more;
        if (pen_interrupt_requested()) pen_trainer_pause(run->trainer);
        if (pen_interrupt_requested() && !pen_trainer_is_ahead(run->trainer)) {
            pen_progress_end(&progress);
            return PEN_OK;
        }
        const pen_status status = pen_trainer_step(run->trainer, &report, &more);
        if (status != PEN_OK) {
            pen_progress_end(&progress);
            return status;
        }
        if (!more) return PEN_OK;
        run->steps_done = report.step;
        run->seconds += report.seconds + report.wait_seconds;
        if (!pen_trainer_engine(run->trainer)->kind->waits_for_workers) {
            pen_signals_answer(report.step);
        }
        pen_loss_history_add(run->output.losses, report.step, report.loss, report.terms);
        if (is_json) train_write_step(&run->json, pen_trainer_program(run->trainer), &report);
        pen_progress_step(&progress, &run->size, &report, pen_trainer_engine(run->trainer));
    }
}

// Opens the job's evaluation data, if it has some, before hours of training.
static pen_status train_open_evaluation(train_run *run) {
    const pen_job *job = run->job;
    if (run->options->no_eval || (!job->data.has_eval && job->data.holdout == 0)) return PEN_OK;
    return pen_job_open_dataset(job, PEN_DATASET_PART_EVAL, run->context->arena, &run->evaluated);
}

static pen_status train_evaluate(train_run *run) {
    if (run->evaluated == NULL) return PEN_OK;
    const uint64_t batch =
        pen_trainer_evaluation_batch(run->job, pen_dataset_get_info(run->evaluated));
    pen_engine *engine = pen_trainer_engine(run->trainer);
    PEN_TRY(engine->kind->evaluate(engine, run->evaluated, batch, &run->evaluation));
    run->has_evaluation = true;
    return PEN_OK;
}

static pen_status train_collect(train_run *run) {
    return pen_run_output_collect(run->context, pen_trainer_engine(run->trainer), &run->output);
}

static pen_status train_save(train_run *run) {
    const pen_tensor_store *tensors = pen_trainer_tensors(run->trainer);
    const pen_job *job = run->job;
    const char *path;
    PEN_TRY(pen_job_parameters_path(job, run->context->arena, &path));
    // what one file fails to take, another may
    pen_status status = PEN_OK;
    if (run->options->save != NULL) status = pen_parameter_file_save(run->options->save, tensors);
    if (path != NULL) status = pen_status_join(status, pen_parameter_file_save(path, tensors));
    if (job->outputs.export == NULL) return status;
    const pen_engine *engine = pen_trainer_engine(run->trainer);
    const pen_import_options import = pen_job_import_options(job);
    const pen_model_export_source source = {
        .model_path = job->model.file,
        .import = &import,
        .plan = engine->kind->plan != NULL ? engine->kind->plan(engine) : NULL,
        .types = job->outputs.types};
    return pen_status_join(status, pen_model_export(tensors, &source, job->outputs.export));
}

// The buffers of the devices, and what the process takes with all else.
static void train_write_predicted(pen_json_writer *json, const pen_engine_memory *memory,
                                  const pen_engine_report *report) {
    pen_json_key_object(json, "predicted");
    pen_json_key_unsigned(json, "device_bytes", memory->device_bytes);
    pen_json_key_unsigned(json, "persistent_bytes", memory->persistent_bytes);
    pen_json_key_unsigned(json, "arena_bytes", memory->arena_bytes);
    pen_json_key_unsigned(json, "live_bytes_peak", memory->live_bytes_peak);
    pen_json_key_unsigned(json, "resident_bytes_peak", memory->resident_bytes_peak);
    if (report != NULL) pen_run_report_json(json, report, PEN_RUN_REPORT_PREDICTED);
    pen_json_end_object(json);
}

// The end of the object whose steps were written while they ran. The hash is what tests of equal
// numbers compare.
static pen_status train_write_result(train_run *run) {
    pen_json_writer *json = &run->json;
    pen_json_end_array(json);
    uint64_t hash;
    PEN_TRY(pen_tensor_store_hash(pen_trainer_tensors(run->trainer), &hash));
    pen_engine *engine = pen_trainer_engine(run->trainer);
    pen_engine_memory memory;
    PEN_TRY(engine->kind->memory(engine, &memory));
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    pen_json_key_text(json, "parameters_hash", text);
    if (run->has_evaluation) {
        pen_json_key_object(json, "evaluation");
        pen_json_key_number(json, "loss", run->evaluation.loss);
        pen_loss_terms_write(json, pen_trainer_program(run->trainer), run->evaluation.terms);
        pen_json_key_unsigned(json, "examples", run->evaluation.example_count);
        if (run->evaluation.target_count > 0) {
            pen_json_key_number(json, "accuracy",
                                (double)run->evaluation.correct_count /
                                    (double)run->evaluation.target_count);
        }
        pen_json_end_object(json);
    }
    pen_json_key_array(json, "devices");
    for (uint32_t i = 0; i < run->job->cluster.device_count; i++) {
        pen_json_text(json, run->job->cluster.devices[i].name);
    }
    pen_json_end_array(json);
    train_write_predicted(json, &memory, run->output.report);
    pen_json_key_object(json, "measured");
    pen_json_key_unsigned(json, "resident_bytes_peak", pen_machine_resident_peak());
    pen_json_key_number(json, "seconds", run->seconds);
    pen_json_key_unsigned(json, "recoveries", pen_trainer_recovery_count(run->trainer));
    if (run->output.report != NULL) {
        pen_run_report_json(json, run->output.report, PEN_RUN_REPORT_MEASURED);
        pen_run_blame_json(json, &run->output.blame);
    }
    pen_json_end_object(json);
    pen_json_end_object(json);
    return PEN_OK;
}

static void train_report(const train_run *run) {
    if (!run->has_evaluation) return;
    const pen_evaluation *evaluation = &run->evaluation;
    char terms[PEN_LOSS_TERMS_TEXT_BYTES];
    pen_loss_terms_format(pen_trainer_program(run->trainer), evaluation->terms, terms);
    if (evaluation->target_count > 0) {
        pen_log(PEN_LOG_NOTE, "evaluation: loss %.4f%s  accuracy %.4f over %llu examples",
                evaluation->loss, terms,
                (double)evaluation->correct_count / (double)evaluation->target_count,
                (unsigned long long)evaluation->example_count);
    } else {
        pen_log(PEN_LOG_NOTE, "evaluation: loss %.6g%s over %llu examples", evaluation->loss, terms,
                (unsigned long long)evaluation->example_count);
    }
}

// Data for evaluation are opened first: a pipeline plans room for them.
static pen_status train_create(train_run *run) {
    PEN_TRY(train_open_evaluation(run));
    const pen_trainer_options options = {
        .step_limit = (uint64_t)run->options->steps,
        .parameters = run->options->parameters,
        .resume = run->resume,
        .checkpoints = run->checkpoint,
        .every = run->every,
        .continues = run->continues,
        .overwrites = run->options->overwrites,
        .runs_ahead = true,
        .no_memory_check = run->options->no_memory_check,
        .insecure = run->options->insecure,
        .plan = run->plan,
        .trace = run->options->trace != NULL || run->options->report != NULL,
        .evaluated = run->evaluated == NULL ? NULL : pen_dataset_get_info(run->evaluated)};
    PEN_TRY(pen_trainer_create(run->job, &options, &run->trainer));
    PEN_TRY(
        pen_run_output_check_engine(run->context, &run->output, pen_trainer_engine(run->trainer)));
    PEN_TRY(pen_run_output_begin(run->context, &run->output, pen_trainer_program(run->trainer)));
    if (run->evaluated == NULL) return PEN_OK;
    return pen_job_check_data(run->job, PEN_DATASET_PART_EVAL, pen_trainer_program(run->trainer),
                              run->evaluated);
}

// What a training that is done leaves.
static pen_status train_leave(train_run *run) {
    PEN_TRY(train_insist(run, train_save));
    PEN_TRY(train_insist(run, train_collect));
    return train_insist(run, train_evaluate);
}

// A job, or a plan with the job that it names.
static pen_status train_read(train_run *run) {
    const char *path = run->options->common.operands[0];
    pen_arena *arena = run->context->arena;
    bool is_plan;
    pen_plan *plan;
    PEN_TRY(pen_command_is_plan(path, arena, &is_plan));
    if (!is_plan) return pen_job_read(path, arena, &run->job);
    PEN_TRY(pen_plan_read(path, arena, &plan));
    run->plan = plan;
    if (plan->job == NULL) {
        return pen_error(PEN_INVALID_INPUT, "%s names no job to train, expected `job: FILE`", path);
    }
    return pen_status_add_context(pen_job_read(plan->job, arena, &run->job),
                                  "while reading the job of %s", path);
}

// A file that the training leaves.
typedef struct train_left {
    const char *name, *path; // path NULL: it is not asked for
    bool is_trained;         // what was learned is in it
} train_left;
#define TRAIN_LEFT_COUNT 5

static pen_status train_list_left(const train_run *run, train_left out_left[TRAIN_LEFT_COUNT]) {
    const char *parameters;
    PEN_TRY(pen_job_parameters_path(run->job, run->context->arena, &parameters));
    const train_left left[TRAIN_LEFT_COUNT] = {{"--save", run->options->save, true},
                                               {"--trace", run->options->trace, false},
                                               {"--report", run->options->report, false},
                                               {"outputs.dir", parameters, true},
                                               {"outputs.export", run->job->outputs.export, true}};
    memcpy(out_left, left, sizeof left);
    return PEN_OK;
}

// No two files that the training leaves may be one.
static pen_status train_check_outputs(const train_run *run) {
    train_left left[TRAIN_LEFT_COUNT];
    PEN_TRY(train_list_left(run, left));
    for (uint32_t i = 0; i < TRAIN_LEFT_COUNT; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (left[i].path == NULL || left[k].path == NULL) continue;
            if (!pen_path_is_same(left[i].path, left[k].path)) continue;
            return pen_error(PEN_INVALID_INPUT, "%s and %s: found %s for both, expected two files",
                             left[k].name, left[i].name, left[i].path);
        }
    }
    return PEN_OK;
}

// What another training learned is only replaced by somebody who says so: it may have taken days,
// and no program can make it again. One that goes on replaces what it goes on from.
static pen_status train_check_earlier(const train_run *run) {
    train_left left[TRAIN_LEFT_COUNT];
    if (run->options->overwrites || run->continues || run->resume != NULL) return PEN_OK;
    PEN_TRY(train_list_left(run, left));
    for (uint32_t i = 0; i < TRAIN_LEFT_COUNT; i++) {
        struct stat about;
        if (!left[i].is_trained || left[i].path == NULL) continue;
        if (stat(left[i].path, &about) != 0 || about.st_size == 0) continue;
        run->context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "%s: found %s, which is there from before; another name keeps both, "
                         "--overwrite replaces it%s",
                         left[i].name, left[i].path,
                         run->checkpoint == NULL ? ""
                                                 : ", and --continue goes on from the checkpoints");
    }
    return PEN_OK;
}

// In the order in which mistakes are cheap: options, job, folders, model, then the training. JSON
// is one object even when the training fails in the middle.
static pen_status train_all(train_run *run) {
    PEN_TRY(train_read(run));
    if (run->options->save != NULL) {
        PEN_TRY(pen_command_check_output(run->context, run->options->save));
        PEN_TRY(
            pen_command_check_model_output(run->context, run->job, "--save", run->options->save));
    }
    PEN_TRY(train_check_outputs(run));
    PEN_TRY(train_plan_checkpoints(run));
    PEN_TRY(train_plan_start(run));
    PEN_TRY(pen_job_prepare_outputs(run->job, run->context->arena));
    PEN_TRY(train_check_earlier(run));
    run->output.title = pen_path_name(run->options->common.operands[0]);
    run->output.trace = run->options->trace;
    run->output.page = run->options->report;
    PEN_TRY(pen_run_output_check(run->context, &run->output));
    run->context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_signals_prepare_flight(run->checkpoint, run->context->arena));
    PEN_TRY(train_create(run));
    pen_signals_prepare_training(run->checkpoint != NULL);
    run->context->input_exit_code = PEN_EXIT_SPEC; // what is read from now on is data
    run->size = pen_trainer_get_size(run->trainer);
    PEN_TRY(train_warn(run));
    const bool is_json = run->options->common.json;
    if (is_json) {
        pen_command_begin_json(&run->json, "train");
        pen_json_key_array(&run->json, "steps");
    } else {
        PEN_TRY(train_describe(run));
    }
    pen_status status = train_loop(run);
    if (status == PEN_OK) status = pen_trainer_keep(run->trainer);
    const bool is_stopped = pen_interrupt_requested();
    const bool is_whole = status == PEN_OK; // else stopped while nobody was there to be asked
    if (is_stopped) status = train_stop(run, status);
    if (status == PEN_OK && !is_stopped) status = train_leave(run);
    if (status == PEN_OK && is_json && is_whole) status = train_write_result(run);
    if (status == PEN_OK && is_json && !is_whole) pen_json_end_to(&run->json, 0);
    if (!is_stopped) status = train_say_kept(run, status);
    if (status != PEN_OK) pen_signals_dump(status);
    if (is_json)
        return status == PEN_OK ? pen_json_finish(&run->json)
                                : pen_command_fail_json(run->context, &run->json, status);
    if (is_stopped) return status;
    if (status == PEN_OK) train_report(run);
    if (status == PEN_OK) status = pen_run_output_print(&run->output, run->context->arena);
    return status;
}

static pen_status train_run_verb(pen_command_context *context, const void *options) {
    train_run run = {.context = context, .options = options};
    const pen_status status = train_all(&run);
    pen_trainer_destroy(run.trainer);
    pen_dataset_close(run.evaluated);
    return status;
}

static const pen_cli_option train_cli_options[] = {
    PEN_CLI_VALUE(0, "steps", "N", INTEGER, train_options, steps,
                  "stop after N steps, whatever the job says", .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_VALUE(0, "parameters", "FILE", PATH, train_options, parameters,
                  "start from the parameters in this safetensors file"),
    PEN_CLI_VALUE(0, "save", "FILE", PATH, train_options, save,
                  "write the trained parameters to this safetensors file"),
    PEN_CLI_VALUE(0, "checkpoint", "DIR", PATH, train_options, checkpoint,
                  "keep checkpoints in this folder, in place of the job's"),
    PEN_CLI_VALUE(0, "every", "N", TEXT, train_options, every,
                  "a checkpoint every N steps, or \"3 epochs\"; else each epoch"),
    PEN_CLI_VALUE(0, "resume", "DIR", PATH, train_options, resume,
                  "start from the newest checkpoint in this folder"),
    PEN_CLI_FLAG(0, "continue", train_options, continues,
                 "go on from the newest checkpoint kept, or begin if there is none"),
    PEN_CLI_FLAG(0, "overwrite", train_options, overwrites,
                 "replace the parameters and forget the checkpoints that are there from before"),
    PEN_CLI_VALUE(0, "trace", "FILE", PATH, train_options, trace,
                  "what each device did when, for ui.perfetto.dev (FILE.json)"),
    PEN_CLI_VALUE(0, "report", "FILE", PATH, train_options, report,
                  "a page of the plan with the measured time line beside it (FILE.html)"),
    PEN_CLI_FLAG(0, "no-memory-check", train_options, no_memory_check,
                 "run what is planned not to fit"),
    PEN_CLI_FLAG(0, "insecure", train_options, insecure,
                 "reach workers on other machines without TLS"),
    PEN_CLI_FLAG(0, "progress", train_options, progress,
                 "show progress on standard error with --json too"),
    PEN_CLI_FLAG(0, "no-eval", train_options, no_eval, "do not evaluate at the end"),
};

const pen_command pen_command_train = {
    .name = "train",
    .summary = "train the model of a job, by its plan",
    .table = {PEN_CLI_OPERANDS("JOB|PLAN", 1, 1), PEN_CLI_OPTIONS(train_cli_options)},
    .options_bytes = sizeof(train_options),
    .run = train_run_verb,
};
