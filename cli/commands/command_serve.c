// penstock serve: answers requests with a trained model, over the devices of its job.

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "base/system/process_heap.h"
#include "cli/command.h"
#include "cli/option_words.h"
#include "cli/signals.h"
#include "cli/training_job.h"
#include "scheduler/serve/serve.h"

typedef struct serve_options {
    pen_cli_common common;
    const char *grpc;
    const char *http;
    const char *https;
    const char *parameters;
    bool insecure;
} serve_options;

// Where it is reached, for whoever started it.
static pen_status serve_announce(const pen_serve *serve, bool is_json) {
    const uint16_t grpc = pen_serve_grpc_port(serve), http = pen_serve_http_port(serve);
    if (is_json) {
        pen_json_writer json;
        pen_command_begin_json(&json, "serve");
        pen_json_key_text(&json, "model", pen_serve_model_name(serve));
        if (grpc != 0) pen_json_key_unsigned(&json, "grpc_port", grpc);
        if (http != 0) pen_json_key_unsigned(&json, "http_port", http);
        pen_json_end_object(&json);
        PEN_TRY(pen_json_finish(&json));
    } else {
        printf("model  %s\n", pen_serve_model_name(serve));
        if (grpc != 0) printf("grpc   port %u\n", grpc);
        if (http != 0) printf("http   port %u\n", http);
    }
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

// Until somebody ends it, or too few devices are left.
static void serve_wait(pen_serve *serve, const sigset_t *signals) {
    const struct timespec pause = {.tv_nsec = 200000000};
    while (!pen_serve_is_over(serve)) {
        const int signal_number = sigtimedwait(signals, NULL, &pause);
        pen_serve_tend(serve);
        if (signal_number == SIGHUP) pen_serve_reload(serve);
        if (signal_number == SIGTERM || signal_number == SIGINT) return;
    }
}

// Signals are blocked in all threads and taken by this one: SIGHUP asks for new parameters.
static pen_status serve_run_verb(pen_command_context *context, const void *options_given) {
    const serve_options *options = options_given;
    const bool is_https = options->https != NULL;
    pen_serve_options made = {.grpc = options->grpc,
                              .http = is_https ? options->https : options->http,
                              .is_https = is_https,
                              .insecure = options->insecure};
    pen_serve *serve = NULL;
    sigset_t signals;
    if (is_https && options->http != NULL) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT, "--http and --https exclude each other");
    }
    PEN_TRY(pen_job_read(options->common.operands[0], context->arena, &made.job));
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_serve_check_doors(&made));
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(
        pen_job_find_parameters(made.job, options->parameters, context->arena, &made.parameters));
    pen_process_heap_prepare();
    PEN_TRY(pen_signals_prepare_flight(NULL, context->arena));
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0) {
        return pen_error(PEN_INTERNAL, "cannot block signals");
    }
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_serve_create(&made, &serve));
    pen_status status = serve_announce(serve, options->common.json);
    if (status == PEN_OK) serve_wait(serve, &signals);
    return pen_status_join(status, pen_serve_destroy(serve));
}

static const pen_cli_option serve_cli_options[] = {
    PEN_CLI_VALUE(0, "grpc", "HOST:PORT", TEXT, serve_options, grpc,
                  "where to take calls over gRPC; port 0: any"),
    PEN_CLI_VALUE(0, "http", "HOST:PORT", TEXT, serve_options, http,
                  "where to take requests over HTTP; port 0: any"),
    PEN_CLI_VALUE(0, "https", "HOST:PORT", TEXT, serve_options, https,
                  "likewise with TLS and the certificate of the job's tls"),
    PEN_CLI_VALUE(0, "parameters", "FILE", PATH, serve_options, parameters,
                  "safetensors file; else what training left in the job's outputs folder"),
    PEN_CLI_FLAG(0, "insecure", serve_options, insecure,
                 "be reached from other machines, and reach workers, without TLS or token"),
};

const pen_command pen_command_serve = {
    .name = "serve",
    .summary = "answer requests with the trained model",
    .table = {PEN_CLI_OPERANDS("JOB", 1, 1), PEN_CLI_OPTIONS(serve_cli_options),
              .words = pen_cli_serve_words,
              .details =
                  "The Open Inference Protocol, over gRPC and HTTP, until SIGTERM or SIGINT. "
                  "SIGHUP has the parameters read again.\n",
              .examples = "penstock serve --http 127.0.0.1:8000 --grpc 127.0.0.1:8001 job.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(serve_options),
    .run = serve_run_verb,
};
