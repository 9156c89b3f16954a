// penstock worker: serves the devices of this address for coordinators on this or other machines.

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system/build.h"
#include "base/system/process_heap.h"
#include "base/system/rotating_log.h"
#include "base/system/sandbox.h"
#include "cli/command.h"
#include "cli/launched_verb.h"
#include "cli/option_words.h"
#include "cli/signals.h"
#include "cli/training_job.h"
#include "scheduler/protocol/flight_recorder.h"
#include "scheduler/runtime/worker/worker.h"
#include "scheduler/transport/grpc/grpc_ask.h"
#include "scheduler/transport/grpc/pem_file.h"

#define WORKER_AUDIT_BYTES ((uint64_t)16 << 20) // of a file
#define WORKER_AUDIT_FILES 5                    // that are kept beside the newest
#define WORKER_ASK_SECONDS 5.0                  // before it is as good as not there
#define WORKER_END_SECONDS 1                    // for a worker that was told to end

typedef struct worker_options {
    pen_cli_common common;
    const char *listen;
    const char *ready;
    const char *tls;
    const char *crl;
    const char *audit;
    const char *coordinators;
    const char *workers;
    const char *store;
    const char *mirror;
    const char *data;
    const char *token_file;
    uint64_t memory; // bytes; 0: what the system grants
    bool insecure;
    bool once;
    int64_t announce; // 0: nowhere
    int64_t parent;   // 0: nobody
    pen_cli_launched launched;
} worker_options;

// "ca.pem,cert.pem,key.pem", and the lists of what was taken back.
static pen_status worker_read_tls(pen_command_context *context, const worker_options *options,
                                  pen_transport_tls *out_tls) {
    const char *files[3] = {0};
    const char *text = options->tls;
    if (text == NULL && options->crl != NULL) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT, "--crl is given, but no --tls");
    }
    if (text == NULL) return PEN_OK;
    const char *cursor = text;
    for (uint32_t i = 0; i < 3 && cursor != NULL; i++) {
        const size_t length = strcspn(cursor, ",");
        if (length > 0) {
            PEN_TRY(pen_arena_copy_text(context->arena, cursor, length, &files[i]));
        }
        cursor = cursor[length] == ',' ? cursor + length + 1 : NULL;
    }
    if (cursor != NULL || files[0] == NULL || files[1] == NULL || files[2] == NULL) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "--tls: found \"%.200s\", expected three files: CA,CERT,KEY", text);
    }
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_pem_read_all(files, context->arena, NULL));
    *out_tls =
        (pen_transport_tls){.ca = files[0], .cert = files[1], .key = files[2], .crl = options->crl};
    return PEN_OK;
}

// "one.example,two.example"
static pen_status worker_read_names(pen_command_context *context, const char *option,
                                    const char *text, pen_transport_names *out_names) {
    if (text == NULL) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_cli_read_list(option, text, context->arena, &out_names->names, &out_names->count));
    context->input_exit_code = PEN_EXIT_SPEC;
    return PEN_OK;
}

// The user's for what programs keep. NULL: none.
static pen_status worker_name_store(pen_command_context *context, const char **out_store) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    *out_store = NULL;
    if (state != NULL && state[0] == '/') {
        return pen_arena_format(context->arena, out_store, "%s/penstock", state);
    }
    if (home == NULL || home[0] != '/') {
        const struct passwd *user = getpwuid(geteuid());
        home = user == NULL ? NULL : user->pw_dir;
    }
    if (home == NULL || home[0] != '/') return PEN_OK;
    return pen_arena_format(context->arena, out_store, "%s/.local/state/penstock", home);
}

// The folder beneath which it writes: as it was said, else the user's. A command that started it
// has seen to its own. NULL: none. Made now: a job learns when it starts that there is none.
static pen_status worker_find_store(pen_command_context *context, const worker_options *options,
                                    const char **out_store) {
    *out_store = options->store;
    if (options->parent != 0) return PEN_OK;
    if (options->store != NULL) {
        context->input_exit_code = PEN_EXIT_USAGE;
        PEN_TRY(pen_status_add_context(pen_job_check_folder(options->store, context->arena),
                                       "while making the folder for checkpoints (--store)"));
        context->input_exit_code = PEN_EXIT_SPEC;
        return PEN_OK;
    }
    PEN_TRY(worker_name_store(context, out_store));
    if (*out_store == NULL) return PEN_OK;
    const pen_status status = pen_job_check_folder(*out_store, context->arena);
    if (status == PEN_OK) return PEN_OK;
    pen_log(PEN_LOG_NOTE, "it keeps no checkpoints without --store: %s",
            pen_status_message(status));
    pen_status_ignore(status, "it serves jobs without checkpoints");
    *out_store = NULL;
    return PEN_OK;
}

// A second one is none without a first: which of the two a job calls `dir` would be a riddle.
static pen_status worker_find_mirror(pen_command_context *context, const worker_options *options,
                                     const char **out_mirror) {
    *out_mirror = options->mirror;
    if (options->parent != 0 || options->mirror == NULL) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    if (options->store == NULL) {
        return pen_error(PEN_INVALID_INPUT, "--mirror is given, but no --store");
    }
    PEN_TRY(pen_status_add_context(pen_job_check_folder(options->mirror, context->arena),
                                   "while making the second folder for checkpoints (--mirror)"));
    context->input_exit_code = PEN_EXIT_SPEC;
    return PEN_OK;
}

// A worker that a command started ends with it, however that ends.
static pen_status worker_follow_parent(int64_t parent) {
    if (parent == 0) return PEN_OK;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != (pid_t)parent) {
        return pen_error(PEN_CANCELLED, "the process that started this worker has ended");
    }
    return PEN_OK;
}

// It starts no program, looks into no other process and makes no mounts: callers may make mistakes
// of ours do what they like, but not that. Where the kernel cannot see to it, it serves all the
// same.
static void worker_drop_calls(void) {
    const pen_sandbox kept = {.connects = true};
    if (pen_sandbox_drop_calls(&kept)) return;
    pen_log(PEN_LOG_NOTE, "this kernel has no filter of system calls (seccomp)");
}

static pen_status worker_announce(int64_t pipe, uint16_t port) {
    char text[128];
    if (pipe == 0) return PEN_OK;
    const int length = snprintf(text, sizeof text, "%u\n%s\n", port, pen_build_name());
    const ssize_t written = write((int)pipe, text, (size_t)length);
    (void)close((int)pipe);
    if (written == length) return PEN_OK;
    return pen_error(PEN_IO, "cannot announce the port: %s", strerror(errno));
}

// What was done last, for somebody who asks.
static void worker_dump(void) {
    const uint32_t count = pen_flight_dump("somebody asked (SIGUSR1)");
    if (count == 0) {
        pen_log(PEN_LOG_NOTE, "nothing was recorded yet");
    } else {
        pen_log(PEN_LOG_NOTE, "what was done last is in %s: `penstock diagnose` shows it",
                pen_flight_folder());
    }
}

// Until somebody ends it. Ctrl-C reaches all processes of a terminal: one that a command started
// leaves it to that command.
static void worker_serve(pen_worker *worker, const sigset_t *signals, bool has_parent) {
    const struct timespec pause = {.tv_nsec = 200000000};
    while (!pen_worker_is_over(worker) && !pen_worker_is_stuck(worker)) {
        const int signal_number = sigtimedwait(signals, NULL, &pause);
        if (signal_number == SIGUSR1) worker_dump();
        if (signal_number == SIGTERM) return;
        if (signal_number == SIGINT && !has_parent) return;
    }
}

static void worker_end_now(int signal_number) {
    (void)signal_number;
    _exit(PEN_EXIT_OK);
}

// What is still done then serves nobody: a task, or a disk that does not answer, is waited for no
// longer than this. Its coordinator was told, and a part of a checkpoint counts only when whole.
static void worker_end_soon(void) {
    const struct sigaction action = {.sa_handler = worker_end_now};
    const struct itimerval soon = {.it_value = {.tv_sec = WORKER_END_SECONDS}};
    (void)sigaction(SIGALRM, &action, NULL); // fails for numbers that are none
    (void)setitimer(ITIMER_REAL, &soon, NULL);
}

static pen_status worker_create(const worker_options *options, pen_worker_options *made,
                                pen_worker **out_worker, uint16_t *out_port) {
    const pen_rotating_log_options audit = {.bytes_limit = WORKER_AUDIT_BYTES,
                                            .kept_count = WORKER_AUDIT_FILES};
    if (options->audit != NULL) {
        PEN_TRY(pen_status_add_context(pen_rotating_log_open(options->audit, &audit, &made->audit),
                                       "while opening the log of links (--audit-log)"));
    }
    const pen_status status = pen_worker_create(made, out_worker, out_port);
    if (status != PEN_OK) pen_rotating_log_close(made->audit);
    return status;
}

// Signals are blocked in all threads and taken by this one in turn: gRPC's threads must not be
// interrupted by them.
static pen_status worker_listen(pen_command_context *context, const worker_options *options) {
    pen_worker_options made = {.address = options->listen,
                               .is_insecure = options->insecure,
                               .tells_links = options->parent == 0, // started by hand
                               .is_once = options->once,
                               .data = options->data,
                               .token_file = options->token_file,
                               .memory_bytes = options->memory};
    pen_worker *worker;
    sigset_t signals;
    uint16_t port;
    PEN_TRY(worker_read_tls(context, options, &made.tls));
    PEN_TRY(worker_read_names(context, "allow-coordinator", options->coordinators,
                              &made.tls.coordinators));
    PEN_TRY(worker_read_names(context, "allow-worker", options->workers, &made.tls.workers));
    PEN_TRY(worker_find_store(context, options, &made.store));
    PEN_TRY(worker_find_mirror(context, options, &made.mirror));
    PEN_TRY(worker_follow_parent(options->parent));
    pen_process_heap_prepare();
    PEN_TRY(pen_signals_prepare_flight(made.store, context->arena));
    worker_drop_calls();
    // taken in turn by this thread alone; threads that are started inherit it
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0) {
        return pen_error(PEN_INTERNAL, "cannot block signals");
    }
    PEN_TRY(pen_transport_kind_find("grpc", &made.transport));
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(worker_create(options, &made, &worker, &port));
    context->input_exit_code = PEN_EXIT_SPEC;
    pen_status status = worker_announce(options->announce, port);
    if (status == PEN_OK) {
        if (options->announce == 0 && !options->common.quiet) {
            pen_log(PEN_LOG_NOTE, "worker takes links at port %u", port);
        }
        worker_serve(worker, &signals, options->parent != 0);
        if (pen_worker_is_stuck(worker)) _exit(PEN_EXIT_PEER_LOST); // its threads do not end
        if (!pen_worker_is_over(worker)) worker_end_soon();
        if (!pen_worker_is_over(worker)) pen_worker_leave(worker, "the worker was told to end");
        if (options->once && pen_worker_is_over(worker)) status = pen_worker_join(worker);
    }
    pen_worker_destroy(worker);
    pen_rotating_log_close(made.audit);
    return status;
}

// What says how a worker listens is a mistake where none does, and might be meant for safety.
static pen_status worker_refuse_rest(pen_command_context *context, const worker_options *options,
                                     const char *verb) {
    const struct {
        const char *name, *value;
    } rest[] = {{"audit-log", options->audit},      {"allow-coordinator", options->coordinators},
                {"allow-worker", options->workers}, {"store", options->store},
                {"mirror", options->mirror},        {"data", options->data},
                {"token-file", options->token_file}};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (rest[i].value == NULL) continue;
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT, "%s: found --%s, which goes with --listen alone", verb,
                         rest[i].name);
    }
    return PEN_OK;
}

// Whether a worker takes links there: what a supervisor asks who would start it again.
static pen_status worker_ask(pen_command_context *context, const worker_options *options) {
    pen_transport_tls tls = {0};
    PEN_TRY(worker_refuse_rest(context, options, "--ready"));
    PEN_TRY(worker_read_tls(context, options, &tls));
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_grpc_ask(options->ready, &tls, WORKER_ASK_SECONDS));
    if (!options->common.quiet) pen_log(PEN_LOG_NOTE, "%s takes links", options->ready);
    return PEN_OK;
}

// A task of a training that another task coordinates, which is none of `worker`'s.
static pen_status worker_run_task(pen_command_context *context, const worker_options *options) {
    const pen_cli_common *common = &options->common;
    const char *stray = options->listen != NULL  ? "--listen"
                        : options->ready != NULL ? "--ready"
                        : options->tls != NULL   ? "--tls"
                        : options->crl != NULL   ? "--crl"
                                                 : NULL;
    if (stray != NULL || common->operand_count == 0) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "--launched: found %s, expected `penstock worker --launched JOB`: the "
                         "address and certificates are the task's own",
                         stray == NULL ? "no job" : stray);
    }
    PEN_TRY(worker_refuse_rest(context, options, "--launched"));
    const pen_launched_verb verb = {.start = "train",
                                    .job = common->operands[0],
                                    .is_insecure = options->insecure,
                                    .memory_bytes = options->memory};
    return pen_launched_verb_run(context, &options->launched, &verb, options);
}

// Three things that a worker is asked for, one at a time: a task of a start, to listen, or whether
// another one does.
static pen_status worker_run_verb(pen_command_context *context, const void *options_given) {
    const worker_options *options = options_given;
    if (options->launched.is_launched) return worker_run_task(context, options);
    if (options->ready != NULL && options->listen == NULL && options->common.operand_count == 0) {
        return worker_ask(context, options);
    }
    if (options->listen != NULL && options->ready == NULL && options->common.operand_count == 0) {
        return worker_listen(context, options);
    }
    context->input_exit_code = PEN_EXIT_USAGE;
    if (options->listen != NULL && options->ready != NULL) {
        return pen_error(PEN_INVALID_INPUT, "--listen and --ready exclude each other");
    }
    if (options->listen == NULL && options->ready == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "--listen is missing, expected HOST:PORT; or --launched JOB for a task");
    }
    return pen_error(PEN_INVALID_INPUT,
                     "found the job \"%.200s\", expected none without --launched",
                     options->common.operands[0]);
}

static const pen_cli_option worker_cli_options[] = {
    PEN_CLI_LAUNCHED_OPTIONS(worker_options, launched),
    PEN_CLI_VALUE(0, "listen", "HOST:PORT", TEXT, worker_options, listen,
                  "where to take links: \"0.0.0.0:7070\"; port 0: any"),
    PEN_CLI_VALUE(0, "ready", "HOST:PORT", TEXT, worker_options, ready,
                  "ask a worker there whether it takes links, and end: 0 if so, else 6"),
    PEN_CLI_VALUE(0, "tls", "CA,CERT,KEY", TEXT, worker_options, tls,
                  "PEM files: who signs, and this worker's certificate and key"),
    PEN_CLI_VALUE(0, "crl", "FILE", TEXT, worker_options, crl,
                  "PEM file: certificates that were revoked, a list for each authority"),
    PEN_CLI_VALUE(0, "audit-log", "FILE", TEXT, worker_options, audit,
                  "add a line for each link: who, from where, certificate, job, result"),
    PEN_CLI_VALUE(0, "allow-coordinator", "NAME,NAME", TEXT, worker_options, coordinators,
                  "names of certificates that may coordinate; any of the authority without"),
    PEN_CLI_VALUE(0, "allow-worker", "NAME,NAME", TEXT, worker_options, workers,
                  "names of certificates that may be other workers; any without"),
    PEN_CLI_VALUE(0, "store", "DIR", TEXT, worker_options, store,
                  "write checkpoints beneath it, and nothing elsewhere; without: "
                  "$XDG_STATE_HOME/penstock"),
    PEN_CLI_VALUE(0, "mirror", "DIR", TEXT, worker_options, mirror,
                  "write checkpoints beneath it, too, for jobs with checkpoint.mirror"),
    PEN_CLI_VALUE(0, "data", "DIR", TEXT, worker_options, data,
                  "may read data beneath it, for jobs with data.read_on: workers; none without"),
    PEN_CLI_VALUE(0, "memory", "SIZE", BYTES, worker_options, memory,
                  "most that its process may use, like 12GiB; what the system grants without",
                  .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_VALUE(0, "token-file", "FILE", TEXT, worker_options, token_file,
                  "admit callers of this machine who have this file (`token_file` of a job), too"),
    PEN_CLI_FLAG(0, "insecure", worker_options, insecure,
                 "take links from other machines without TLS"),
    PEN_CLI_FLAG(0, "once", worker_options, once, "end after the first run"),
    PEN_CLI_INTERNAL("announce", "FD", INTEGER, worker_options, announce,
                     "write the port, then the build, to this open file",
                     PEN_OPTION_RANGE(0, 65535)),
    PEN_CLI_INTERNAL("parent", "PID", INTEGER, worker_options, parent,
                     "end when this process, which started it, ends",
                     .minimum = PEN_OPTION_FROM(0)),
};

const pen_command pen_command_worker = {
    .name = "worker",
    .summary = "serve the devices of this machine to trainings elsewhere",
    .table = {PEN_CLI_OPERANDS("[JOB]", 0, 1), PEN_CLI_OPTIONS(worker_cli_options),
              .words = pen_cli_worker_words,
              .details =
                  "Jobs name it as the `host` of their devices. It serves one training after "
                  "another until it gets SIGTERM or SIGINT.\n",
              .examples = "penstock worker --listen 0.0.0.0:7070 --tls ca.pem,there.pem,there.key\n"
                          "penstock worker --ready 10.0.0.2:7070\n"},
    .connects = true,
    .options_bytes = sizeof(worker_options),
    .run = worker_run_verb,
};
