// penstock eval: loss, accuracy and metrics of a model on the evaluation data of its job.

#include <stdio.h>

#include "cli/command.h"
#include "cli/evaluation_text.h"
#include "cli/launched_verb.h"
#include "cli/loss_terms.h"
#include "cli/option_words.h"
#include "cli/training_job.h"
#include "scheduler/runner/evaluate.h"

typedef struct eval_options {
    pen_cli_common common;
    const char *parameters;
    int64_t batch;
    bool insecure;
    pen_cli_launched launched;
} eval_options;

static pen_status eval_print_json(const pen_program *program, const pen_evaluation *evaluation) {
    pen_json_writer json;
    pen_command_begin_json(&json, "eval");
    pen_json_key_unsigned(&json, "examples", evaluation->example_count);
    pen_json_key_number(&json, "loss", evaluation->loss);
    pen_loss_terms_write(&json, program, evaluation->terms);
    if (evaluation->target_count > 0) {
        pen_json_key_number(&json, "accuracy",
                            (double)evaluation->correct_count / (double)evaluation->target_count);
        pen_json_key_unsigned(&json, "correct", evaluation->correct_count);
        pen_json_key_unsigned(&json, "targets", evaluation->target_count);
    }
    pen_evaluation_write_metrics(&json, evaluation);
    pen_json_key_number(&json, "seconds", evaluation->seconds);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// For people: a line for each figure, as far as there are some.
static pen_status eval_print_text(const pen_program *program, const pen_evaluation *evaluation) {
    printf("examples  %llu\nloss      %.6g\n", (unsigned long long)evaluation->example_count,
           evaluation->loss);
    for (uint32_t i = 0; i < program->term_count; i++) {
        printf("  %s  %.6g\n", program->losses[i].name, evaluation->terms[i]);
    }
    if (evaluation->target_count > 0) {
        printf("accuracy  %.4f (%llu of %llu)\n",
               (double)evaluation->correct_count / (double)evaluation->target_count,
               (unsigned long long)evaluation->correct_count,
               (unsigned long long)evaluation->target_count);
    }
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, evaluation->metrics)) continue;
        printf("%-8s  %.6g\n", pen_metric_names[metric], pen_evaluation_value(evaluation, metric));
    }
    printf("seconds   %.2f\n", evaluation->seconds);
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

// The work of one process, or of the task that coordinates.
static pen_status eval_work(pen_command_context *context, const void *options_given) {
    const eval_options *options = options_given;
    const pen_session_options session_options = {.job_path = options->common.operands[0],
                                                 .parameters = options->parameters,
                                                 .mode = PEN_COMPILE_EVALUATE,
                                                 .batch_size = (uint64_t)options->batch,
                                                 .insecure = options->insecure};
    pen_job_session session;
    PEN_TRY(pen_session_open(context, &session_options, &session));
    pen_evaluation evaluation;
    pen_status status = pen_inference_evaluate(session.inference, session.dataset, &evaluation);
    if (status == PEN_OK) {
        status = options->common.json ? eval_print_json(session.program, &evaluation)
                                      : eval_print_text(session.program, &evaluation);
    }
    pen_session_close(&session);
    return status;
}

static pen_status eval_run(pen_command_context *context, const void *options_given) {
    const eval_options *options = options_given;
    const pen_launched_verb verb = {.start = "eval",
                                    .job = options->common.operands[0],
                                    .is_insecure = options->insecure,
                                    .work = eval_work};
    return pen_launched_verb_run(context, &options->launched, &verb, options);
}

static const pen_cli_option eval_cli_options[] = {
    PEN_CLI_VALUE(0, "parameters", "FILE", PATH, eval_options, parameters,
                  "safetensors file; else what training left in the job's outputs folder"),
    PEN_CLI_VALUE(0, "batch", "N", INTEGER, eval_options, batch,
                  "examples at a time; else the job's", .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_INSECURE(eval_options),
    PEN_CLI_LAUNCHED_OPTIONS(eval_options, launched),
};

const pen_command pen_command_eval = {
    .name = "eval",
    .summary = "loss, accuracy and metrics on the evaluation data",
    .table = {PEN_CLI_OPERANDS("JOB", 1, 1), PEN_CLI_OPTIONS(eval_cli_options),
              .words = pen_cli_trained_words, .takes_job = true,
              .examples = "penstock eval job.yaml\n"
                          "penstock eval --parameters trained.safetensors job.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(eval_options),
    .run = eval_run,
};
