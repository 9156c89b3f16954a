// penstock predict: the model's outputs for the evaluation data of its job, as NPY or CSV; or what
// a model of language writes.

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/format/npy.h"
#include "base/log.h"
#include "base/system/file.h"
#include "cli/command.h"
#include "cli/launched_verb.h"
#include "cli/option_words.h"
#include "cli/predict_sample.h"
#include "cli/training_job.h"
#include "graph/graph.h"
#include "scheduler/data/csv/csv_writer.h"

#define PREDICT_SAMPLE_LIMIT 10000000 // tokens

typedef struct predict_options {
    pen_cli_common common;
    const char *output;
    const char *name;
    const char *parameters;
    int64_t batch;
    int64_t limit;
    bool insecure;
    pen_cli_launched launched;
    pen_predict_sample sample;
} predict_options;

typedef struct predict_run {
    pen_command_context *context;
    const predict_options *options;
    pen_file *file;
    const pen_dataset *dataset;
    bool is_csv;
    uint64_t example_total;
    uint32_t output_index;
    uint64_t row_elements;
    bool is_started;
} predict_run;

static pen_status predict_find_output(predict_run *run, const pen_program *program) {
    if (run->options->name == NULL) return PEN_OK;
    for (uint32_t i = 0; i < program->output_count; i++) {
        if (strcmp(pen_value_name(program->graph, program->outputs[i]), run->options->name) == 0) {
            run->output_index = i;
            return PEN_OK;
        }
    }
    run->context->input_exit_code = PEN_EXIT_USAGE;
    return pen_error(PEN_NOT_FOUND, "--name: the model has no output '%s'; its first is '%s'",
                     run->options->name, pen_value_name(program->graph, program->outputs[0]));
}

// The classes by their names, where the data have names and the output a number for each; else
// NULL.
static const char *const *predict_names(const predict_run *run) {
    const pen_dataset_info *info = pen_dataset_get_info(run->dataset);
    const bool has_names = info->class_names != NULL && info->class_count == run->row_elements;
    return has_names ? info->class_names : NULL;
}

// Checks the output, and writes what stands before the rows.
static pen_status predict_start(predict_run *run, const pen_program *program) {
    PEN_TRY(predict_find_output(run, program));
    const pen_value_id output = program->outputs[run->output_index];
    const pen_tensor_type *type = pen_value_type(program->graph, output);
    char text[PEN_SHAPE_TEXT_BYTES];
    if (type->element != PEN_FLOAT32 || type->shape.rank == 0 ||
        (uint64_t)type->shape.dims[0] != program->microbatch_size) {
        return pen_error(
            PEN_UNSUPPORTED, "output '%s' is %s, expected float32 with the batch first",
            pen_value_name(program->graph, output), pen_tensor_type_format(type, text));
    }
    run->row_elements = (uint64_t)pen_shape_count(&type->shape, 1, type->shape.rank);
    run->is_started = true;
    FILE *stream = pen_file_stream(run->file);
    if (run->is_csv) return pen_csv_write_names(stream, predict_names(run), run->row_elements);
    pen_shape shape = type->shape;
    shape.dims[0] = (int64_t)run->example_total;
    return pen_npy_write_header(stream, PEN_NPY_FLOAT32, shape.rank, shape.dims);
}

static pen_status predict_take(void *context, const pen_program *program, uint64_t first,
                               uint64_t count, const void *const *rows) {
    predict_run *run = context;
    if (!run->is_started) PEN_TRY(predict_start(run, program));
    const float *values = rows[run->output_index];
    if (!run->is_csv) {
        return pen_file_write(run->file, values, count * run->row_elements * sizeof *values);
    }
    for (uint64_t i = 0; i < count; i++) {
        PEN_TRY(pen_csv_write_row(pen_file_stream(run->file), first + i,
                                  values + i * run->row_elements, run->row_elements));
    }
    return PEN_OK;
}

static pen_status predict_all(predict_run *run, pen_job_session *session) {
    run->dataset = session->dataset;
    const uint64_t examples = pen_dataset_get_info(session->dataset)->example_count;
    const uint64_t limit = (uint64_t)run->options->limit;
    run->example_total = limit > 0 && limit < examples ? limit : examples;
    PEN_TRY(pen_file_create_beside(run->options->output, &run->file));
    PEN_TRY(pen_inference_predict(session->inference, session->dataset, limit, predict_take, run));
    return pen_file_commit(run->file);
}

static pen_status predict_report(const predict_run *run) {
    if (!run->options->common.json) {
        pen_log(PEN_LOG_NOTE, "%s: %llu rows of %llu numbers", run->options->output,
                (unsigned long long)run->example_total, (unsigned long long)run->row_elements);
        return PEN_OK;
    }
    pen_json_writer json;
    pen_command_begin_json(&json, "predict");
    pen_json_key_text(&json, "file", run->options->output);
    pen_json_key_unsigned(&json, "examples", run->example_total);
    pen_json_key_unsigned(&json, "elements", run->row_elements);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// The form is told by the end of the name.
static pen_status predict_choose_form(predict_run *run) {
    if (run->options->output == NULL) {
        return pen_error(PEN_INVALID_INPUT, "--output is missing, expected FILE.npy or FILE.csv; "
                                            "or --sample N for what a model of language writes");
    }
    const char *dot = strrchr(pen_path_name(run->options->output), '.');
    run->is_csv = dot != NULL && strcasecmp(dot, ".csv") == 0;
    if (run->is_csv || (dot != NULL && strcasecmp(dot, ".npy") == 0)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "--output: found \"%.200s\", expected FILE.npy or FILE.csv",
                     run->options->output);
}

// A sample needs no evaluation data: where there are none, the training's say what tokens are.
static pen_status predict_sample(pen_command_context *context, const predict_options *options) {
    pen_predict_sample sample = options->sample;
    sample.output = options->output;
    sample.output_name = options->name;
    sample.json = options->common.json;
    if (sample.json && sample.output != NULL) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT, "--sample writes to --output or, with --json, to "
                                            "standard output; found both");
    }
    if (sample.output != NULL) PEN_TRY(pen_command_check_output(context, sample.output));
    const pen_session_options session_options = {.job_path = options->common.operands[0],
                                                 .parameters = options->parameters,
                                                 .output = options->output,
                                                 .mode = sample.whole_windows ? PEN_COMPILE_PREDICT
                                                                              : PEN_COMPILE_PREFILL,
                                                 .samples = true,
                                                 .sampled = options->name,
                                                 .may_take_training = true};
    pen_job_session session;
    PEN_TRY(pen_session_open(context, &session_options, &session));
    const pen_status status = pen_predict_write_sample(context, &sample, &session);
    pen_session_close(&session);
    return status;
}

// Options of one form of the verb do nothing in the other.
static pen_status predict_check_options(const predict_options *options) {
    const pen_predict_sample *sample = &options->sample;
    const struct {
        const char *name;
        bool is_given, is_of_sample;
    } given[] = {
        {"prompt", sample->prompt != NULL, true},
        {"temperature", sample->temperature != 1, true},
        {"top-k", sample->top_k != 0, true},
        {"seed", sample->seed != 0, true},
        {"whole-windows", sample->whole_windows, true},
        {"batch", options->batch != 0, false},
        {"limit", options->limit != 0, false},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        if (!given[i].is_given || given[i].is_of_sample == (sample->count > 0)) continue;
        return pen_error(PEN_INVALID_INPUT, "--%s: found %s --sample N, expected it %s",
                         given[i].name, given[i].is_of_sample ? "without" : "together with",
                         given[i].is_of_sample ? "with one" : "alone");
    }
    return PEN_OK;
}

// Everything that can be wrong with the command line is told before the model is read.
static pen_status predict_work(pen_command_context *context, const void *options_given) {
    const predict_options *options = options_given;
    predict_run run = {.context = context, .options = options};
    const pen_exit_code before = context->input_exit_code;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(predict_check_options(options));
    context->input_exit_code = before;
    if (options->sample.count > 0) return predict_sample(context, options);
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(predict_choose_form(&run));
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_command_check_output(context, options->output));
    const pen_session_options session_options = {.job_path = options->common.operands[0],
                                                 .parameters = options->parameters,
                                                 .output = options->output,
                                                 .mode = PEN_COMPILE_PREDICT,
                                                 .batch_size = (uint64_t)options->batch,
                                                 .insecure = options->insecure};
    pen_job_session session;
    PEN_TRY(pen_session_open(context, &session_options, &session));
    pen_status status = predict_all(&run, &session);
    status = pen_status_join(status, pen_file_close(run.file));
    pen_session_close(&session);
    PEN_TRY(status);
    return predict_report(&run);
}

// A sample is written by one process: of several tasks one does it, and the next takes over from it
// if it is lost.
static pen_status predict_run_verb(pen_command_context *context, const void *options_given) {
    const predict_options *options = options_given;
    const pen_launched_verb verb = {.start = "predict",
                                    .job = options->common.operands[0],
                                    .is_insecure = options->insecure,
                                    .is_alone = options->sample.count > 0,
                                    .work = predict_work};
    return pen_launched_verb_run(context, &options->launched, &verb, options);
}

static const pen_cli_option predict_cli_options[] = {
    PEN_CLI_VALUE('o', "output", "FILE", PATH, predict_options, output,
                  "where to write: FILE.npy, or FILE.csv; a sample: any, else standard "
                  "output"),
    PEN_CLI_VALUE(0, "name", "NAME", TEXT, predict_options, name,
                  "which of the model's outputs; else the first"),
    PEN_CLI_VALUE(0, "parameters", "FILE", PATH, predict_options, parameters,
                  "safetensors file; else what training left in the job's outputs folder"),
    PEN_CLI_VALUE(0, "batch", "N", INTEGER, predict_options, batch,
                  "examples at a time; else the job's", .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_VALUE(0, "limit", "N", INTEGER, predict_options, limit, "the first N examples only",
                  .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_INSECURE(predict_options),
    PEN_CLI_LAUNCHED_OPTIONS(predict_options, launched),
    PEN_CLI_VALUE(0, "sample", "N", INTEGER, predict_options, sample.count,
                  "let a model of text or tokens write on, N tokens",
                  PEN_OPTION_RANGE(1, PREDICT_SAMPLE_LIMIT)),
    PEN_CLI_VALUE(0, "prompt", "TEXT", TEXT, predict_options, sample.prompt,
                  "what the sample begins with: text, or tokens such as \"12 7 300\""),
    PEN_CLI_VALUE(0, "temperature", "T", NUMBER, predict_options, sample.temperature,
                  "of the sample: below 1 likelier tokens, 0 always the likeliest",
                  .minimum = PEN_OPTION_FROM(0), .default_text = "1"),
    PEN_CLI_VALUE(0, "top-k", "K", INTEGER, predict_options, sample.top_k,
                  "of the sample: only the K likeliest tokens", .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_VALUE(0, "seed", "N", INTEGER, predict_options, sample.seed,
                  "of the sample: which one of those it may be", .minimum = PEN_OPTION_FROM(0),
                  .default_text = "0"),
    PEN_CLI_FLAG(0, "whole-windows", predict_options, sample.whole_windows,
                 "of the sample: keep no keys and values from one token to the next"),
};

const pen_command pen_command_predict = {
    .name = "predict",
    .summary = "write the outputs for the evaluation data",
    .table = {PEN_CLI_OPERANDS("JOB", 1, 1), PEN_CLI_OPTIONS(predict_cli_options),
              .words = pen_cli_trained_words, .takes_job = true,
              .examples =
                  "penstock predict -o outputs.npy job.yaml\n"
                  "penstock predict --sample 200 --prompt 'In the' --temperature 0.8 job.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(predict_options),
    .run = predict_run_verb,
};
