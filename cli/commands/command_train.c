// penstock train: trains the model of a job, evaluates it, and leaves its parameters.

#include <string.h>

#include "base/log.h"
#include "base/system/file.h"
#include "base/system/interrupt.h"
#include "base/system/machine.h"
#include "cli/command.h"
#include "cli/evaluation_text.h"
#include "cli/follow/train_followers.h"
#include "cli/launched_verb.h"
#include "cli/left_files.h"
#include "cli/loss_terms.h"
#include "cli/option_words.h"
#include "cli/progress.h"
#include "cli/run_output.h"
#include "cli/signals.h"
#include "cli/training_job.h"
#include "partition/plan/plan_file.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/report/lanes_report.h"
#include "scheduler/report/run_report.h"
#include "scheduler/train/train.h"
#include "scheduler/train/train_average.h"
#include "scheduler/train/train_end.h"

typedef struct train_options {
    pen_cli_common common;
    int64_t steps;
    const char *parameters;
    const char *save;
    const char *checkpoint;
    const char *every;
    const char *resume;
    const char *replay;
    bool continues;
    bool overwrites;
    const char *trace;
    const char *report;
    pen_cli_follow follow;
    bool no_eval;
    bool no_memory_check;
    bool insecure;
    bool progress;
    pen_cli_launched launched;
} train_options;

typedef struct train_run {
    pen_command_context *context;
    const train_options *options;
    const pen_job *job;
    const pen_plan *plan; // NULL: it is made
    pen_trainer *trainer;
    pen_dataset *evaluated; // evaluation data; NULL: none
    pen_training_size size;
    pen_json_writer json;      // with --json: written step by step
    bool has_evaluation;       // there is one at the end
    pen_evaluation evaluation; // that, or the last before
    uint64_t evaluated_step;   // after which one was made while it ran; 0: none
    const char *checkpoint;    // folder; NULL: none are written
    const char *mirror;        // that has them, too; NULL: none
    const char *resume;        // another folder, to start from; NULL: none
    bool continues;            // from what is in `checkpoint`
    pen_interval every;
    pen_train_outputs outputs;
    uint64_t steps_done;
    double seconds;
    pen_run_output output;
    pen_train_followers followers;
    char hash[24]; // of the parameters, when all is done
} train_run;

static void train_warn_unkept(const train_run *run) {
    const pen_job_outputs *outputs = &run->job->outputs;
    const bool is_kept = run->options->save != NULL || outputs->dir != NULL ||
                         outputs->export != NULL || outputs->adapters != NULL ||
                         run->checkpoint != NULL;
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
    return pen_command_warn_threads(run->context, job);
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

// Where checkpoints go, and how often: the command line goes before the job, whose mirror is that
// of the job's folder.
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
    const bool is_of_job = options->checkpoint == NULL;
    if (!is_of_job) run->context->input_exit_code = PEN_EXIT_USAGE;
    run->mirror = is_of_job ? checkpoint->mirror : NULL;
    PEN_TRY(is_of_job ? pen_job_check_checkpoint_folders(run->job, run->context->arena)
                      : pen_job_check_folder(run->checkpoint, run->context->arena));
    run->context->input_exit_code = PEN_EXIT_SPEC;
    return PEN_OK;
}

// Where the training begins: with what the folder of checkpoints has, or another has, or anew.
static pen_status train_plan_start(train_run *run) {
    const train_options *options = run->options;
    const bool is_own = options->resume != NULL && run->checkpoint != NULL &&
                        pen_path_is_same(options->resume, run->checkpoint);
    const bool is_launched = pen_command_seats(run->context) != NULL;
    run->continues = options->continues || is_own || is_launched;
    run->resume = is_own ? NULL : options->resume;
    const char *wrong = NULL;
    if (options->continues && run->checkpoint == NULL) {
        wrong = "--continue: found no folder for checkpoints, expected --checkpoint DIR, or "
                "`checkpoint: {dir: …}` in the job";
    } else if (is_launched && options->overwrites) {
        wrong = "found --overwrite beside --launched, expected one of them: a task that takes over "
                "goes on from what is kept; remove the folder to begin anew";
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

// After the wish to stop: what was done is kept, and nothing else is left.
static pen_status train_stop(const train_run *run, pen_status take_status) {
    const pen_train_kept kept = pen_trainer_get_kept(run->trainer);
    const pen_status_code code = pen_status_get_code(take_status);
    if (code != PEN_CODE_OK && code != PEN_CANCELLED) return take_status;
    pen_status_ignore(take_status, "it was wished for");
    if (kept.step == 0) {
        return pen_error(PEN_CANCELLED,
                         "stopped after step %llu, of which nothing is kept: --checkpoint DIR, or "
                         "`checkpoint: {dir: …}` in the job, would",
                         (unsigned long long)run->steps_done);
    }
    pen_log(PEN_LOG_NOTE,
            "stopped; the checkpoint of step %llu is in %s: --continue goes on from it",
            (unsigned long long)kept.step, kept.folder);
    pen_train_say_alone(run->trainer);
    return PEN_OK;
}

// Where an end that comes early leaves the training.
static pen_status train_say_kept(const train_run *run, pen_status status) {
    if (run->trainer == NULL) return status;
    const pen_train_kept kept = pen_trainer_get_kept(run->trainer);
    if (kept.step == 0) return status;
    return pen_status_add_context(
        status, "the checkpoint of step %llu is in %s: --continue goes on from it",
        (unsigned long long)kept.step, kept.folder);
}

// What the evaluation after a step came to.
static void train_take_evaluation(train_run *run, const pen_step_report *report) {
    char text[PEN_EVALUATION_TEXT_BYTES];
    run->evaluation = report->evaluation;
    run->evaluated_step = report->step;
    pen_train_followers_evaluation(&run->followers, report, run->trainer);
    if (run->options->common.json) return;
    pen_log(PEN_LOG_NOTE, "evaluation after step %llu: %s%s", (unsigned long long)report->step,
            pen_evaluation_format(pen_trainer_program(run->trainer), &run->evaluation, text),
            report->is_best ? "; the best so far" : "");
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
        const pen_program *program = pen_trainer_program(run->trainer);
        pen_train_followers_step(&run->followers, &report, run->trainer);
        if (is_json) {
            pen_json_begin_object(&run->json);
            pen_train_write_step(&run->json, program, &report);
            pen_json_end_object(&run->json);
            fflush(stdout); // a step that was done is seen, whatever comes then
        }
        pen_progress_step(&progress, &run->size, &report, pen_trainer_engine(run->trainer));
        if (!report.is_evaluated) continue;
        if (!report.ends_epoch) pen_progress_end(&progress);
        train_take_evaluation(run, &report);
    }
}

// Opens the job's evaluation data, if it has some, before hours of training.
static pen_status train_open_evaluation(train_run *run) {
    const pen_job *job = run->job;
    if (run->options->no_eval && job->has_evaluation) {
        run->context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "--no-eval: found beside `evaluation` of the job, which decides what is "
                         "kept and when the training ends; expected one of the two");
    }
    if (run->options->no_eval || !pen_job_data_can_evaluate(&job->data)) return PEN_OK;
    return pen_job_open_dataset(job, PEN_DATASET_PART_EVAL, run->context->arena, &run->evaluated);
}

static pen_status train_evaluate(void *context) {
    train_run *run = context;
    if (run->evaluated == NULL) return PEN_OK;
    run->has_evaluation = true;
    if (run->evaluated_step > 0 && run->evaluated_step == run->steps_done) return PEN_OK;
    run->evaluated_step = 0;
    PEN_TRY(pen_trainer_evaluate(run->trainer, run->evaluated, &run->evaluation));
    const pen_step_report report = {.step = run->steps_done, .evaluation = run->evaluation};
    pen_train_followers_evaluation(&run->followers, &report, run->trainer);
    return PEN_OK;
}

static pen_status train_collect(void *context) {
    train_run *run = context;
    PEN_TRY(pen_lanes_report_say(run->job, pen_trainer_tensors(run->trainer)));
    return pen_run_output_collect(run->context, pen_trainer_engine(run->trainer), &run->output);
}

// The hash is what tests of equal numbers compare.
static pen_status train_hash(void *context) {
    train_run *run = context;
    uint64_t hash;
    if (!run->options->common.json && run->followers.log.path == NULL) return PEN_OK;
    PEN_TRY(pen_train_average_hash(pen_trainer_uses_average(run->trainer),
                                   pen_trainer_tensors(run->trainer), &hash));
    snprintf(run->hash, sizeof run->hash, "%016llx", (unsigned long long)hash);
    return PEN_OK;
}

// The end of the object whose steps were written while they ran.
static pen_status train_write_result(train_run *run) {
    pen_json_writer *json = &run->json;
    pen_json_end_array(json);
    pen_engine *engine = pen_trainer_engine(run->trainer);
    pen_engine_memory memory;
    PEN_TRY(engine->kind->memory(engine, &memory));
    pen_json_key_text(json, "parameters_hash", run->hash);
    if (run->job->train.has_average) { // whether it is what the hash is of, and the evaluation
        pen_json_key_bool(json, "averaged", pen_train_uses_average(run->job));
    }
    if (run->has_evaluation) {
        pen_json_key_object(json, "evaluation");
        pen_train_write_evaluation(json, pen_trainer_program(run->trainer), &run->evaluation);
        pen_json_end_object(json);
    }
    pen_train_write_best(json, pen_trainer_evaluated(run->trainer));
    pen_train_write_kept(json, run->trainer);
    PEN_TRY(pen_lanes_report_json(json, run->job, pen_trainer_tensors(run->trainer)));
    pen_json_key_array(json, "devices");
    for (uint32_t i = 0; i < run->job->cluster.device_count; i++) {
        pen_json_text(json, run->job->cluster.devices[i].name);
    }
    pen_json_end_array(json);
    pen_train_log_arithmetic(json, run->trainer);
    pen_train_write_predicted(json, &memory, run->output.report);
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
    char text[PEN_EVALUATION_TEXT_BYTES];
    if (pen_train_uses_average(run->job)) {
        pen_log(PEN_LOG_NOTE,
                "evaluations and outputs have the average of the parameters (train.average)");
    }
    pen_evaluation_say_best(run->trainer, run->steps_done);
    // one that was made after the last step was told then
    if (!run->has_evaluation || run->evaluated_step == run->steps_done) return;
    pen_log(PEN_LOG_NOTE, "evaluation: %s",
            pen_evaluation_format(pen_trainer_program(run->trainer), &run->evaluation, text));
}

// Data for evaluation are opened first: a pipeline plans room for them.
static pen_status train_create(train_run *run) {
    PEN_TRY(train_open_evaluation(run));
    const pen_trainer_options options = {
        .step_limit = (uint64_t)run->options->steps,
        .parameters = run->options->parameters,
        .resume = run->resume,
        .replay = run->options->replay,
        .checkpoints = run->checkpoint,
        .mirror = run->mirror,
        .every = run->every,
        .continues = run->continues,
        .overwrites = run->options->overwrites,
        .runs_ahead = true,
        .no_memory_check = run->options->no_memory_check,
        .insecure = run->options->insecure,
        .plan = run->plan,
        .tasks = pen_command_seats(run->context),
        .watch = run->followers.watch.context != NULL ? &run->followers.watch : NULL,
        .trace = run->options->trace != NULL || run->options->report != NULL,
        .evaluated = run->evaluated};
    PEN_TRY(pen_trainer_create(run->job, &options, &run->trainer));
    PEN_TRY(pen_run_output_begin(run->context, &run->output, pen_trainer_program(run->trainer)));
    run->followers.history = run->output.history;
    if (run->evaluated == NULL) return PEN_OK;
    return pen_job_check_data(run->job, PEN_DATASET_PART_EVAL, pen_trainer_program(run->trainer),
                              run->evaluated);
}

// Where what is trained goes, and whether there is room for it.
static pen_status train_plan_outputs(train_run *run) {
    const pen_job *job = run->job;
    run->outputs = (pen_train_outputs){.job = job,
                                       .save = run->options->save,
                                       .checkpoint = run->checkpoint,
                                       .mirror = run->mirror};
    PEN_TRY(pen_job_parameters_path(job, run->context->arena, &run->outputs.parameters));
    return pen_train_check_room(run->trainer, &run->outputs, run->context->arena);
}

// What a training that is done leaves.
static pen_status train_leave(train_run *run) {
    PEN_TRY(pen_train_end(run->trainer, &run->outputs));
    pen_train_followers_checkpoint(&run->followers, run->trainer);
    pen_train_say_alone(run->trainer);
    pen_train_format_kept(run->trainer, run->output.notice);
    PEN_TRY(pen_train_insist(run->trainer, train_collect, run));
    PEN_TRY(pen_train_insist(run->trainer, train_evaluate, run));
    return pen_train_insist(run->trainer, train_hash, run);
}

#define TRAIN_LEFT_COUNT 8

static pen_status train_list_left(const train_run *run, pen_left_file out_left[TRAIN_LEFT_COUNT]) {
    const char *parameters;
    PEN_TRY(pen_job_parameters_path(run->job, run->context->arena, &parameters));
    const pen_left_file left[TRAIN_LEFT_COUNT] = {
        {"--save", run->options->save, true},
        {"--trace", run->options->trace, false},
        {"--report", run->options->report, false},
        {"--log", run->options->follow.log, false},
        {"--metrics", run->options->follow.metrics, false},
        {"outputs.dir", parameters, true},
        {"outputs.adapters", run->job->outputs.adapters, true},
        {"outputs.export", run->job->outputs.export, true}};
    memcpy(out_left, left, sizeof left);
    return PEN_OK;
}

static pen_status train_check_outputs(const train_run *run) {
    pen_left_file left[TRAIN_LEFT_COUNT];
    PEN_TRY(train_list_left(run, left));
    return pen_left_files_check_apart(left, TRAIN_LEFT_COUNT);
}

// One that goes on replaces what it goes on from.
static pen_status train_check_earlier(const train_run *run) {
    pen_left_file left[TRAIN_LEFT_COUNT];
    if (run->options->overwrites || run->continues || run->resume != NULL) return PEN_OK;
    PEN_TRY(train_list_left(run, left));
    const pen_status status =
        pen_left_files_check_earlier(left, TRAIN_LEFT_COUNT, run->checkpoint != NULL);
    if (status != PEN_OK) run->context->input_exit_code = PEN_EXIT_USAGE;
    return status;
}

static pen_status train_open_followers(train_run *run) {
    const bool adds = run->continues || run->resume != NULL;
    run->followers.title = run->output.title;
    PEN_TRY(pen_train_followers_open(run->context, run->job, &run->options->follow,
                                     run->options->common.json, adds, &run->followers));
    run->followers.log.checkpoints = run->checkpoint;
    run->followers.log.mirror = run->mirror;
    return PEN_OK;
}

// In the order in which mistakes are cheap: options, job, folders, model, then the training. JSON
// is one object even when the training fails in the middle.
static pen_status train_all(train_run *run) {
    PEN_TRY(pen_command_read_job(run->context, run->options->common.operands[0], &run->job,
                                 &run->plan));
    if (run->options->save != NULL) {
        PEN_TRY(pen_command_check_output(run->context, run->options->save));
        PEN_TRY(
            pen_command_check_model_output(run->context, run->job, "--save", run->options->save));
    }
    run->output.title = pen_path_name(run->options->common.operands[0]);
    run->output.trace = run->options->trace;
    run->output.page = run->options->report;
    PEN_TRY(pen_run_output_check(run->context, &run->output, run->job));
    PEN_TRY(train_check_outputs(run));
    PEN_TRY(train_plan_checkpoints(run));
    PEN_TRY(train_plan_start(run));
    PEN_TRY(pen_job_prepare_outputs(run->job, run->context->arena));
    PEN_TRY(train_check_earlier(run));
    PEN_TRY(train_open_followers(run));
    run->context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_signals_prepare_flight(run->checkpoint, run->context->arena));
    PEN_TRY(train_create(run));
    pen_signals_prepare_training(run->checkpoint != NULL);
    run->context->input_exit_code = PEN_EXIT_SPEC; // what is read from now on is data
    PEN_TRY(train_plan_outputs(run));
    run->size = pen_trainer_get_size(run->trainer);
    pen_train_followers_start(&run->followers, run->job, run->trainer);
    PEN_TRY(train_warn(run));
    const bool is_json = run->options->common.json;
    if (is_json) {
        pen_command_begin_json(&run->json, "train");
        pen_json_key_array(&run->json, "steps");
    } else {
        PEN_TRY(train_describe(run));
    }
    pen_status status = train_loop(run);
    const bool is_stopped = pen_interrupt_requested();
    if (status == PEN_OK) {
        status = is_stopped ? pen_trainer_keep(run->trainer) : train_leave(run);
    }
    pen_train_followers_checkpoint(&run->followers, run->trainer);
    const bool is_whole = status == PEN_OK; // else stopped while nobody was there to be asked
    if (is_stopped) status = train_stop(run, status);
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

static pen_status train_work(pen_command_context *context, const void *options) {
    train_run run = {.context = context, .options = options};
    const pen_status status = train_all(&run);
    pen_train_followers_close(&run.followers, run.hash, status, (int)context->input_exit_code);
    pen_trainer_destroy(run.trainer);
    pen_dataset_close(run.evaluated);
    return status;
}

static pen_status train_run_verb(pen_command_context *context, const void *options_given) {
    const train_options *options = options_given;
    const pen_launched_verb verb = {.start = "train",
                                    .job = options->common.operands[0],
                                    .checkpoints = options->checkpoint,
                                    .is_insecure = options->insecure,
                                    .work = train_work};
    return pen_launched_verb_run(context, &options->launched, &verb, options);
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
    PEN_CLI_VALUE(0, "replay", "DIR|FILE", PATH, train_options, replay,
                  "of order: free, take the lanes in the order that was recorded there"),
    PEN_CLI_FLAG(0, "continue", train_options, continues,
                 "go on from the newest checkpoint kept, or begin if there is none"),
    PEN_CLI_FLAG(0, "overwrite", train_options, overwrites,
                 "replace the parameters and forget the checkpoints that are there from before"),
    PEN_CLI_VALUE(0, "trace", "FILE", PATH, train_options, trace,
                  "what each device did when, for ui.perfetto.dev (FILE.json)"),
    PEN_CLI_VALUE(
        0, "report", "FILE", PATH, train_options, report,
        "a page of the curves, the plan, and the measured time line beside it (FILE.html)"),
    PEN_CLI_FOLLOW_OPTIONS(train_options, follow),
    PEN_CLI_NO_MEMORY_CHECK(train_options),
    PEN_CLI_INSECURE(train_options),
    PEN_CLI_LAUNCHED_OPTIONS(train_options, launched),
    PEN_CLI_FLAG(0, "progress", train_options, progress,
                 "show progress on standard error with --json too"),
    PEN_CLI_FLAG(0, "no-eval", train_options, no_eval, "do not evaluate at the end"),
};

const pen_command pen_command_train = {
    .name = "train",
    .summary = "train the model of a job, by its plan",
    .table = {PEN_CLI_OPERANDS("JOB|PLAN", 1, 1), PEN_CLI_OPTIONS(train_cli_options),
              .words = pen_cli_train_words, .takes_job = true,
              .examples =
                  "penstock train job.yaml\n"
                  "penstock train --continue --report run.html job.yaml\n"
                  "penstock train --steps 100 --set train.optimizer.sgd.lr=0.01 job.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(train_options),
    .run = train_run_verb,
};
