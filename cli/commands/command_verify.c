// penstock verify: whether a job trains on its devices with the numbers of one device.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "cli/command.h"
#include "cli/training_job.h"
#include "scheduler/train/verify_plan.h"

#define VERIFY_NAME_WIDTH_LIMIT 48

typedef struct verify_options {
    pen_cli_common common;
    int64_t steps;
    double tolerance;
    bool no_memory_check;
    bool insecure;
} verify_options;

static void verify_print_step(const pen_verify_step *step, uint32_t number) {
    printf("step %u: loss %.9g, on one device %.9g%s\n", number, step->loss, step->loss_reference,
           step->is_equal ? "" : "  DIFFERS");
}

// Every tensor gets a line, also those that are equal: the proof is that nothing was left out.
static pen_status verify_print(const pen_job *job, const pen_verification *verification) {
    size_t width = strlen("tensor");
    uint32_t equal_count = 0;
    for (uint32_t i = 0; i < verification->tensor_count; i++) {
        const size_t length = strlen(verification->tensors[i].name);
        if (length > width) width = length;
        equal_count += verification->tensors[i].is_equal;
    }
    width = pen_min_u64(width, VERIFY_NAME_WIDTH_LIMIT);
    for (uint32_t i = 0; i < verification->step_count; i++) {
        verify_print_step(&verification->steps[i], i + 1);
    }
    printf("%-*s  %12s  %12s  %12s\n", (int)width, "tensor", "elements", "max error", "relative");
    for (uint32_t i = 0; i < verification->tensor_count; i++) {
        const pen_verify_tensor *tensor = &verification->tensors[i];
        printf("%-*s  %12llu  %12.3g  %12.3g  %s\n", (int)width, tensor->name,
               (unsigned long long)tensor->element_count, tensor->absolute_error,
               tensor->relative_error, tensor->is_equal ? "equal" : "DIFFERS");
    }
    printf("%u of %u tensors equal, bit for bit, after %u %s on %u %s and on one%s\n", equal_count,
           verification->tensor_count, verification->step_count,
           verification->step_count == 1 ? "step" : "steps", job->cluster.device_count,
           job->cluster.device_count == 1 ? "device" : "devices",
           !verification->is_equal && verification->is_within ? "; errors within the tolerance"
                                                              : "");
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

// The same as the table; `of` tells parameters from the optimizer's states.
static pen_status verify_print_json(const pen_job *job, const pen_verification *verification) {
    pen_json_writer json;
    pen_command_begin_json(&json, "verify");
    pen_json_key_bool(&json, "equal", verification->is_equal);
    pen_json_key_bool(&json, "within_tolerance", verification->is_within);
    pen_json_key_unsigned(&json, "devices", job->cluster.device_count);
    pen_json_key_array(&json, "steps");
    for (uint32_t i = 0; i < verification->step_count; i++) {
        const pen_verify_step *step = &verification->steps[i];
        pen_json_begin_object(&json);
        pen_json_key_unsigned(&json, "step", i + 1);
        pen_json_key_number(&json, "loss", step->loss);
        pen_json_key_number(&json, "loss_on_one", step->loss_reference);
        pen_json_key_bool(&json, "equal", step->is_equal);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_key_array(&json, "tensors");
    for (uint32_t i = 0; i < verification->tensor_count; i++) {
        const pen_verify_tensor *tensor = &verification->tensors[i];
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "name", tensor->name);
        pen_json_key_text(&json, "of", tensor->is_model ? "model" : "optimizer");
        pen_json_key_unsigned(&json, "elements", tensor->element_count);
        pen_json_key_number(&json, "absolute_error", tensor->absolute_error);
        pen_json_key_number(&json, "relative_error", tensor->relative_error);
        pen_json_key_bool(&json, "equal", tensor->is_equal);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status verify_compare_runs(pen_command_context *context, const verify_options *options,
                                      const char *tensors) {
    const pen_job *job;
    const pen_plan *plan;
    PEN_TRY(pen_command_read_job(context, options->common.operands[0], &job, &plan));
    const pen_verify_options verify = {.step_count = (uint64_t)options->steps,
                                       .tolerance = options->tolerance,
                                       .no_memory_check = options->no_memory_check,
                                       .insecure = options->insecure,
                                       .plan = plan,
                                       .tensors = tensors};
    const pen_verification *verification;
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_verify(job, &verify, context->arena, &verification));
    if (!verification->is_within) context->exit_code = PEN_EXIT_VERIFICATION;
    return options->common.json ? verify_print_json(job, verification)
                                : verify_print(job, verification);
}

// The folder is this process' own, so that nobody else's file is taken or written over.
static pen_status verify_run_verb(pen_command_context *context, const void *options_given) {
    const char *parent = getenv("TMPDIR");
    const char *pattern, *tensors;
    char folder[4096];
    PEN_TRY(pen_arena_format(context->arena, &pattern, "%s/penstock-verify-XXXXXX",
                             parent != NULL && parent[0] != '\0' ? parent : "/tmp"));
    if (snprintf(folder, sizeof folder, "%s", pattern) >= (int)sizeof folder ||
        mkdtemp(folder) == NULL) {
        return pen_error(PEN_IO, "cannot make a folder like '%.200s' for tensors to compare",
                         pattern);
    }
    pen_status status =
        pen_arena_format(context->arena, &tensors, "%s/tensors.safetensors", folder);
    if (status == PEN_OK) status = verify_compare_runs(context, options_given, tensors);
    rmdir(folder);
    return status;
}

static const pen_cli_option verify_cli_options[] = {
    PEN_CLI_VALUE(0, "steps", "N", INTEGER, verify_options, steps, "steps to compare",
                  PEN_OPTION_RANGE(1, 1000000), .default_text = "1"),
    PEN_CLI_VALUE(0, "tolerance", "R", NUMBER, verify_options, tolerance,
                  "largest error that passes, as part of a tensor's largest element: for "
                  "machines of different kinds; 0: every bit must be equal",
                  .minimum = PEN_OPTION_FROM(0), .default_text = "0"),
    PEN_CLI_NO_MEMORY_CHECK(verify_options),
    PEN_CLI_INSECURE(verify_options),
};

const pen_command pen_command_verify = {
    .name = "verify",
    .summary = "compare a job's devices, or a plan, with one device: losses and every tensor",
    .table = {PEN_CLI_OPERANDS("JOB|PLAN", 1, 1), PEN_CLI_OPTIONS(verify_cli_options),
              .takes_job = true, .examples = "penstock verify job.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(verify_options),
    .run = verify_run_verb,
};
