// penstock doctor: versions, what was detected of this machine, and whether what a job needs of
// other machines is there.

#include <stdio.h>
#include <string.h>

#include "base/format/json_reader.h"
#include "base/format/yaml_reader.h"
#include "base/system/build.h"
#include "base/system/machine.h"
#include "base/system/sandbox.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/training_job.h"
#include "device/cuda/cublas.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_libraries.h"
#include "device/device.h"
#include "graph/import/keras/hdf5_version.h"
#include "graph/import/zip_file.h"
#include "partition/costs/cluster.h"
#include "partition/strategies/metis_strategy.h"
#include "scheduler/data/gzip_reader.h"
#include "scheduler/data/image/image_jpeg.h"
#include "scheduler/data/image/image_png.h"
#include "scheduler/data/image/image_webp.h"
#include "scheduler/data/sql/sql_source.h"
#include "scheduler/data/tar/tar_archive.h"
#include "scheduler/job/job_links.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/run/worker_program.h"
#include "scheduler/serve/http_version.h"
#include "scheduler/transport/grpc/address_answer.h"
#include "scheduler/transport/grpc/grpc_ask.h"
#include "scheduler/transport/grpc/peer_certificate.h"
#include "scheduler/transport/grpc/pem_file.h"

typedef struct doctor_options {
    pen_cli_common common;
} doctor_options;

#define DOCTOR_ANSWER_SECONDS 1.0 // for a host to answer
#define DOCTOR_LINK_SECONDS 5.0   // for one that answers to show its certificate, and to serve

typedef struct doctor_host {
    const char *host;
    bool answers;
    const char *trouble; // why it does not answer, or takes no link; NULL: it does, as far as asked
} doctor_host;

// What was found.
typedef struct doctor_report {
    pen_machine machine;
    const char *device;
    const char *gpus;           // or why there are none
    const char *cublas, *cudnn; // or why there is none; NULL: there is no GPU
    const char *numerics;       // what must be alike for equal bits, beside the build
    const char
        *worker;     // the program that is started for devices at localhost, or why there is none
    const char *job; // NULL: none was given
    const char *certificates; // of the job: what is to be said of them; NULL: it names none
    bool has_certificates;    // which are right
    uint32_t host_count;
    const doctor_host *hosts; // [host_count] of the job, once each
} doctor_report;

// A library, and the version that it gives itself when it runs.
typedef struct doctor_library {
    const char *name;
    const char *(*version)(void);
} doctor_library;

static const doctor_library doctor_libraries[] = {
    {"gRPC core", pen_grpc_version},
    {"jansson", pen_jansson_version},
    {"libarchive", pen_libarchive_version},
    {"libhdf5", pen_hdf5_version},
    {"libjpeg-turbo", pen_libjpeg_version},
    {"libmicrohttpd", pen_microhttpd_version},
    {"libpng", pen_png_version},
    {"libpq", pen_libpq_version},
    {"libseccomp", pen_seccomp_version},
    {"libwebp", pen_libwebp_version},
    {"libyaml", pen_yaml_version},
    {"libzip", pen_zip_version},
    {"METIS", pen_metis_version},
    {"OpenSSL", pen_openssl_version},
    {"SQLite", pen_sqlite_version},
    {"zlib", pen_zlib_version},
};
#define DOCTOR_LIBRARY_COUNT (sizeof doctor_libraries / sizeof *doctor_libraries)

// What the cpu device says of itself: kernel level, OpenBLAS, oneDNN. Never fails for its own sake.
static pen_status doctor_describe_device(pen_arena *arena, const char **out_text) {
    const pen_device_kind *kind;
    pen_device *device = NULL;
    const pen_device_options options = {.name = "cpu"};
    pen_status status = pen_device_kind_find("cpu", &kind);
    if (status == PEN_OK) status = kind->open(&options, &device);
    if (status == PEN_OK) {
        status = kind->describe(device, arena, out_text);
        kind->close(device);
    }
    if (status == PEN_OK) return PEN_OK;
    const pen_status copied =
        pen_arena_format(arena, out_text, "cpu cannot be used: %s", pen_status_message(status));
    pen_status_ignore(status, "told with the rest");
    return copied;
}

// The GPUs that kind cuda would find, or what is missing for it.
static pen_status doctor_describe_gpus(pen_arena *arena, const char **out_text) {
    uint32_t count = 0;
    pen_text text;
    pen_text_init(&text, arena);
    pen_status status = pen_cuda_gpu_count(&count);
    for (uint32_t i = 0; i < count && status == PEN_OK; i++) {
        char memory[PEN_QUANTITY_TEXT_BYTES];
        pen_cuda_gpu gpu;
        status = pen_cuda_gpu_describe(i, &gpu);
        if (status != PEN_OK) break;
        pen_text_print(&text, "%s%u: %s, %s, compute capability %d.%d, driver %d.%d",
                       i == 0 ? "" : "; ", i, gpu.name, pen_bytes_format(gpu.memory_bytes, memory),
                       gpu.major, gpu.minor, gpu.driver / 1000, gpu.driver % 1000 / 10);
    }
    if (status != PEN_OK) pen_text_print(&text, "none: %s", pen_status_message(status));
    pen_status_ignore(status, "told with the rest");
    return pen_text_finish(&text, out_text);
}

// Why libcublas.so.13 is not looked for, where it is not; "".
static pen_status doctor_note_cublas(uint32_t index, pen_arena *arena, const char **out_text) {
    pen_cuda_gpu gpu;
    *out_text = "";
    PEN_TRY(pen_cuda_gpu_describe(index, &gpu));
    if (!pen_cublas_passes_over(&gpu)) return PEN_OK;
    return pen_arena_format(arena, out_text,
                            "; libcublas.so.13 has no kernels for this GPU, whose compute "
                            "capability %d.%d is below 7.5",
                            gpu.major, gpu.minor);
}

// "12.4.5, begins, for matrix products of GPUs", or why own kernels make them.
static pen_status doctor_describe_trial(const pen_cuda_trial *trial, const char *work,
                                        const char *note, pen_arena *arena, const char **out_text) {
    const int *numbers = trial->numbers;
    if (!trial->is_found) {
        return pen_arena_format(arena, out_text, "none, own kernels make %s of GPUs: %s%s", work,
                                trial->trouble, note);
    }
    if (!trial->begins) {
        return pen_arena_format(arena, out_text,
                                "%d.%d.%d, does not begin, own kernels make %s of GPUs: %s%s",
                                numbers[0], numbers[1], numbers[2], work, trial->trouble, note);
    }
    return pen_arena_format(arena, out_text, "%d.%d.%d, begins, for %s of GPUs%s", numbers[0],
                            numbers[1], numbers[2], work, note);
}

// What is said of all GPUs, once where it is the same of each: "0: …; 1: …" where it is not.
static pen_status doctor_join(const char *const *texts, uint32_t count, pen_arena *arena,
                              const char **out_text) {
    bool is_same = true;
    pen_text text;
    for (uint32_t i = 1; i < count; i++)
        is_same = is_same && strcmp(texts[0], texts[i]) == 0;
    pen_text_init(&text, arena);
    for (uint32_t i = 0; i < count && !is_same; i++)
        pen_text_print(&text, "%s%u: %s", i == 0 ? "" : "; ", i, texts[i]);
    *out_text = texts[0];
    return is_same ? PEN_OK : pen_text_finish(&text, out_text);
}

// Libraries that GPUs would use, each tried on each.
static pen_status doctor_describe_libraries(pen_arena *arena, doctor_report *report) {
    uint32_t count = 0;
    const char **texts;
    const pen_status status = pen_cuda_gpu_count(&count);
    pen_status_ignore(status, "told with the GPUs");
    if (count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)count, &texts));
    for (uint32_t i = 0; i < count; i++) {
        pen_cuda_trial cublas, cudnn;
        const char *note = "";
        pen_status tried = pen_cuda_libraries_try(i, arena, &cublas, &cudnn);
        if (tried == PEN_OK) tried = doctor_note_cublas(i, arena, &note);
        if (tried != PEN_OK) {
            PEN_TRY(pen_arena_format(arena, &texts[i], "not tried: %s", pen_status_message(tried)));
            texts[count + i] = texts[i];
            pen_status_ignore(tried, "told with the rest");
            continue;
        }
        PEN_TRY(doctor_describe_trial(&cublas, "matrix products", note, arena, &texts[i]));
        PEN_TRY(doctor_describe_trial(&cudnn, "convolutions", "", arena, &texts[count + i]));
    }
    PEN_TRY(doctor_join(texts, count, arena, &report->cublas));
    return doctor_join(texts + count, count, arena, &report->cudnn);
}

// Of what the device says, that which other processes of a training must say too (worker.h).
static const char *doctor_find_numerics(const char *device) {
    const char *numerics = strstr(device, "kernel level");
    return numerics == NULL ? device : numerics;
}

static pen_status doctor_find_worker(pen_arena *arena, const char **out_text) {
    pen_worker_program program;
    const char *path;
    const pen_status status = pen_worker_program_find(NULL, arena, &program);
    if (status != PEN_OK) {
        const pen_status copied =
            pen_arena_format(arena, out_text, "%s", pen_status_message(status));
        pen_status_ignore(status, "told with the rest");
        return copied;
    }
    PEN_TRY(pen_worker_program_library(arena, &path)); // the command has the library in it
    const bool is_self = strncmp(program.path, "/proc/", 6) == 0;
    return pen_arena_format(arena, out_text, "%s (%s)", is_self ? path : program.path,
                            program.source);
}

// ---- what a job needs of other machines

// The lists of what was taken back can be read, and this machine's own certificate is not on them.
static pen_status doctor_check_lists(const pen_job_tls *tls, const pen_pem_files *files) {
    pen_revocations *lists = NULL;
    if (tls->crl == NULL) return PEN_OK;
    pen_status status = pen_revocations_open(tls->crl, tls->ca, &lists);
    if (status == PEN_OK) {
        status =
            pen_status_add_context(pen_revocations_check(lists, files->texts[PEN_PEM_CERTIFICATE]),
                                   "while looking for '%s'", tls->cert);
    }
    pen_revocations_close(lists);
    return status;
}

// Files that are read and fit, or what is wrong with them.
static pen_status doctor_check_certificates(const pen_job_tls *tls, pen_arena *arena,
                                            doctor_report *report) {
    const char *const paths[3] = {tls->ca, tls->cert, tls->key};
    pen_pem_files files;
    if (tls->ca == NULL) return PEN_OK;
    pen_status status = pen_pem_read_all(paths, arena, &files);
    if (status == PEN_OK) status = doctor_check_lists(tls, &files);
    if (status == PEN_OK) status = pen_pem_judge(&files);
    report->has_certificates = status == PEN_OK;
    if (status == PEN_OK) {
        pen_pem_warn_key(tls->key);
        return pen_arena_format(arena, &report->certificates, "%s, of %s, fits its key %s",
                                tls->cert, tls->ca, tls->key);
    }
    const pen_status copied =
        pen_arena_format(arena, &report->certificates, "%s", pen_status_message(status));
    pen_status_ignore(status, "told with the rest");
    return copied;
}

// Whether a link can be made there with the job's certificates. Without any, who may make one is
// settled when it is made.
static pen_status doctor_try_link(const pen_job *job, pen_arena *arena, doctor_host *host) {
    const pen_transport_tls tls = pen_job_transport_tls(job);
    const pen_status status = pen_grpc_ask(host->host, &tls, DOCTOR_LINK_SECONDS);
    if (status == PEN_OK) return PEN_OK;
    const pen_status copied =
        pen_arena_format(arena, &host->trouble, "%s", pen_status_message(status));
    pen_status_ignore(status, "told with the rest");
    return copied;
}

static pen_status doctor_call_hosts(const pen_job *job, pen_arena *arena, doctor_report *report) {
    const pen_cluster_spec *cluster = &job->cluster;
    doctor_host *hosts;
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &hosts));
    report->hosts = hosts;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const char *host = cluster->devices[d].host;
        bool is_known = host == NULL || pen_host_is_started(host);
        for (uint32_t i = 0; i < report->host_count && !is_known; i++)
            is_known = strcmp(hosts[i].host, host) == 0;
        if (is_known) continue;
        doctor_host *one = &hosts[report->host_count++];
        const pen_address_answer answer = pen_address_ask(host, DOCTOR_ANSWER_SECONDS);
        *one = (doctor_host){host, answer == PEN_ADDRESS_ANSWERS, NULL};
        if (!one->answers) one->trouble = pen_address_answer_words(answer);
        if (one->answers && report->has_certificates) PEN_TRY(doctor_try_link(job, arena, one));
    }
    return PEN_OK;
}

static pen_status doctor_look_at_job(pen_command_context *context, const char *path,
                                     doctor_report *report) {
    const pen_job *job;
    PEN_TRY(pen_command_open_job(context, path, &job));
    report->job = path;
    PEN_TRY(doctor_check_certificates(&job->tls, context->arena, report));
    PEN_TRY(doctor_call_hosts(job, context->arena, report));
    for (uint32_t i = 0; i < report->host_count; i++) {
        const doctor_host *host = &report->hosts[i];
        if (!host->answers || host->trouble != NULL) context->exit_code = PEN_EXIT_PEER_LOST;
    }
    if (report->certificates != NULL && !report->has_certificates) {
        context->exit_code = PEN_EXIT_SPEC;
    }
    return PEN_OK;
}

// ---- what is printed

// `trouble` is there for a host that does not answer, and for one that would get no link.
static void doctor_write_job(pen_json_writer *json, const doctor_report *report) {
    pen_json_key_object(json, "job");
    pen_json_key_text(json, "file", report->job);
    if (report->certificates != NULL) {
        pen_json_key_bool(json, "has_certificates", report->has_certificates);
        pen_json_key_text(json, "certificates", report->certificates);
    }
    pen_json_key_array(json, "hosts");
    for (uint32_t i = 0; i < report->host_count; i++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "host", report->hosts[i].host);
        pen_json_key_bool(json, "answers", report->hosts[i].answers);
        if (report->hosts[i].trouble != NULL) {
            pen_json_key_text(json, "trouble", report->hosts[i].trouble);
        }
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

// The libraries that are used, with the versions found at run time.
static pen_status doctor_print_json(const doctor_report *report) {
    const pen_machine *machine = &report->machine;
    pen_json_writer json;
    pen_command_begin_json(&json, "doctor");
    pen_json_key_text(&json, "version", PEN_VERSION);
    pen_json_key_text(&json, "build", pen_build_name());
    pen_json_key_unsigned(&json, "protocol", PEN_PROTOCOL_VERSION);
    pen_json_key_text(&json, "numerics", report->numerics);
    pen_json_key_text(&json, "compiler", __VERSION__);
    pen_json_key_text(&json, "system", machine->system);
    pen_json_key_text(&json, "processor", machine->processor);
    pen_json_key_text(&json, "instruction_sets", machine->instruction_sets);
    pen_json_key_unsigned(&json, "cores", machine->core_count);
    pen_json_key_unsigned(&json, "cores_allowed", machine->core_count_allowed);
    pen_json_key_unsigned(&json, "memory_bytes", machine->memory_bytes);
    pen_json_key_unsigned(&json, "memory_bytes_allowed", machine->memory_bytes_allowed);
    pen_json_key_unsigned(&json, "memory_bytes_free", machine->memory_bytes_free);
    pen_json_key_text(&json, "device", report->device);
    pen_json_key_text(&json, "gpus", report->gpus);
    if (report->cublas != NULL) pen_json_key_text(&json, "cublas", report->cublas);
    if (report->cudnn != NULL) pen_json_key_text(&json, "cudnn", report->cudnn);
    pen_json_key_text(&json, "worker", report->worker);
    pen_json_key_bool(&json, "sandbox", pen_sandbox_is_possible());
    pen_json_key_object(&json, "libraries");
    for (size_t i = 0; i < DOCTOR_LIBRARY_COUNT; i++) {
        pen_json_key_text(&json, doctor_libraries[i].name, doctor_libraries[i].version());
    }
    pen_json_end_object(&json);
    if (report->job != NULL) doctor_write_job(&json, report);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static void doctor_print_job(const doctor_report *report) {
    printf("job           %s\n", report->job);
    if (report->certificates != NULL) printf("certificates  %s\n", report->certificates);
    for (uint32_t i = 0; i < report->host_count; i++) {
        const doctor_host *host = &report->hosts[i];
        printf("host          %s %s\n", host->host, host->answers ? "answers" : "does not answer");
        if (host->trouble != NULL) printf("              %s\n", host->trouble);
    }
}

// What to send along with a question: versions, instruction sets, and what the system grants.
static pen_status doctor_print_text(const doctor_report *report) {
    const pen_machine *machine = &report->machine;
    char total[PEN_QUANTITY_TEXT_BYTES];
    char allowed[PEN_QUANTITY_TEXT_BYTES];
    char available[PEN_QUANTITY_TEXT_BYTES];
    printf("penstock      %s (compiled by %s)\n", PEN_VERSION, __VERSION__);
    printf("build         %s, protocol %u\n", pen_build_name(), PEN_PROTOCOL_VERSION);
    printf("system        %s\n", machine->system);
    printf("processor     %s\n", machine->processor);
    printf("instructions  %s\n", machine->instruction_sets);
    printf("cores         %u, %u of them for this process\n", machine->core_count,
           machine->core_count_allowed);
    printf("memory        %s, %s of it for this process, %s free now\n",
           pen_bytes_format(machine->memory_bytes, total),
           pen_bytes_format(machine->memory_bytes_allowed, allowed),
           pen_bytes_format(machine->memory_bytes_free, available));
    printf("device        %s\n", report->device);
    printf("GPUs          %s\n", report->gpus);
    if (report->cublas != NULL) printf("cuBLAS        %s\n", report->cublas);
    if (report->cudnn != NULL) printf("cuDNN         %s\n", report->cudnn);
    printf("worker        %s\n", report->worker);
    printf("sandbox       %s\n",
           pen_sandbox_is_possible() ? "Landlock and seccomp" : "not possible");
    for (size_t i = 0; i < DOCTOR_LIBRARY_COUNT; i++) {
        printf("%-13s %s\n", doctor_libraries[i].name, doctor_libraries[i].version());
    }
    if (report->job != NULL) doctor_print_job(report);
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

static pen_status doctor_run(pen_command_context *context, const void *options_given) {
    const doctor_options *options = options_given;
    doctor_report report = {0};
    PEN_TRY(pen_machine_detect(context->arena, &report.machine));
    PEN_TRY(doctor_describe_device(context->arena, &report.device));
    report.numerics = doctor_find_numerics(report.device);
    PEN_TRY(doctor_describe_gpus(context->arena, &report.gpus));
    PEN_TRY(doctor_describe_libraries(context->arena, &report));
    PEN_TRY(doctor_find_worker(context->arena, &report.worker));
    if (options->common.operand_count > 0) {
        PEN_TRY(doctor_look_at_job(context, options->common.operands[0], &report));
    }
    return options->common.json ? doctor_print_json(&report) : doctor_print_text(&report);
}

const pen_command pen_command_doctor = {
    .name = "doctor",
    .summary = "say what is installed and what was detected",
    .table = {PEN_CLI_OPERANDS("[JOB]", 0, 1), .takes_job = true,
              .details =
                  "With a job, also whether its certificates fit, who answers at the hosts of its "
                  "devices, and with certificates whether a link can be made there. Exit code 3 or "
                  "6 when not.\n",
              .examples = "penstock doctor\n"
                          "penstock doctor job.yaml\n"},
    .connects = true,
    .options_bytes = sizeof(doctor_options),
    .run = doctor_run,
};
