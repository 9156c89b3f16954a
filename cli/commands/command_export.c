// penstock export: the trained model of a job, as ONNX or as it came, with the places of a plan.

#include "base/log.h"
#include "base/system/file.h"
#include "cli/command.h"
#include "cli/option_words.h"
#include "cli/training_job.h"
#include "graph/import/import.h"
#include "partition/plan/plan_file.h"
#include "scheduler/checkpoint/model_export.h"
#include "scheduler/compile/weight_file.h"
#include "scheduler/job/job_runner.h"

typedef struct export_options {
    pen_cli_common common;
    const char *output;
    const char *parameters;
    pen_export_types types;
} export_options;

static pen_status export_report(const export_options *options, const char *from, uint32_t count) {
    if (!options->common.json) {
        pen_log(PEN_LOG_NOTE, "%s: %u tensors from %s", options->output, count, from);
        return PEN_OK;
    }
    pen_json_writer json;
    pen_command_begin_json(&json, "export");
    pen_json_key_text(&json, "file", options->output);
    pen_json_key_text(&json, "parameters", from);
    pen_json_key_unsigned(&json, "tensors", count);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status export_check_name(pen_command_context *context, const char *path) {
    if (pen_model_export_is_named(path)) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    return pen_error(PEN_INVALID_INPUT,
                     "--output: found \"%.200s\", expected " PEN_MODEL_EXPORT_NAMES, path);
}

// What is exported must not lie where the parameters do: it may have tensors that these have not.
static pen_status export_check_apart(pen_command_context *context, const char *parameters,
                                     const char *output) {
    if (parameters == NULL || !pen_path_is_same(parameters, output)) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    return pen_error(PEN_INVALID_INPUT,
                     "--output: found \"%.200s\", which the parameters are read from, expected "
                     "another file",
                     output);
}

static pen_status export_apply_weights(const pen_job *job, pen_model *model, pen_arena *arena,
                                       pen_weight_file **out_file) {
    const pen_weight_options *weights;
    PEN_TRY(pen_job_weights(job, arena, &weights));
    if (weights == NULL) return PEN_OK;
    return pen_job_blame(job, &job->model.weights, pen_weight_file_apply(weights, model, out_file));
}

// Needs no device and no data: parameters go from a file into the model's file.
static pen_status export_run(pen_command_context *context, const void *options_given) {
    const export_options *options = options_given;
    pen_arena *arena = context->arena;
    const pen_job *job;
    const pen_plan *plan = NULL;
    const char *parameters;
    PEN_TRY(export_check_name(context, options->output));
    PEN_TRY(pen_command_check_output(context, options->output));
    PEN_TRY(pen_command_read_job(context, options->common.operands[0], &job, &plan));
    PEN_TRY(pen_command_check_model_output(context, job, "--output", options->output));
    PEN_TRY(pen_job_find_parameters(job, options->parameters, arena, &parameters));
    PEN_TRY(export_check_apart(context, parameters, options->output));

    context->input_exit_code = PEN_EXIT_MODEL;
    pen_model *model;
    const pen_import_options import = pen_job_import_options(job);
    PEN_TRY(pen_job_blame(job, &job->model.file, pen_model_open(job->model.file, &import, &model)));
    uint32_t count = 0;
    pen_weight_file *weights = NULL;
    pen_status status = export_apply_weights(job, model, arena, &weights);
    if (status == PEN_OK) {
        const pen_model_export_options export = {parameters, plan, options->types};
        status = pen_model_export_file(model, &export, options->output, &count);
    }
    pen_weight_file_close(weights);
    pen_model_destroy(model);
    PEN_TRY(status);
    const char *own = job->model.weights != NULL ? job->model.weights : job->model.file;
    return export_report(options, parameters != NULL ? parameters : own, count);
}

static const pen_cli_option export_cli_options[] = {
    PEN_CLI_VALUE(
        'o', "output", "FILE", PATH, export_options, output,
        "the file to write: FILE.onnx; FILE.pt2, .keras, .h5 or .pb where the model came as one; "
        "FILE.safetensors: the weights alone, of a .pt2 its state_dict()",
        .is_required = true),
    PEN_CLI_VALUE(0, "parameters", "FILE", PATH, export_options, parameters,
                  "safetensors file; else what training left in the job's outputs folder"),
    PEN_CLI_VALUE(0, "types", "TYPES", CHOICE, export_options, types,
                  "of weights that were read from float16 or bfloat16: own, as they were read; "
                  "float32; auto: float32 in ONNX, else own",
                  .choices = pen_export_types_names, .default_text = "auto"),
};

const pen_command pen_command_export = {
    .name = "export",
    .summary =
        "write the trained model as ONNX, or into the file of PyTorch or TensorFlow it came from",
    .table = {PEN_CLI_OPERANDS("JOB|PLAN", 1, 1), PEN_CLI_OPTIONS(export_cli_options),
              .words = pen_cli_export_words, .takes_job = true,
              .details = "Of a plan, each node says where it runs: by its metadata, in a graph of "
                         "TensorFlow by its device.\n",
              .examples = "penstock export -o trained.onnx job.yaml\n"},
    .options_bytes = sizeof(export_options),
    .run = export_run,
};
