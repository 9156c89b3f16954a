// penstock certs: an authority and certificates, for workers on other machines.

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "partition/spec/name_range.h"
#include "scheduler/transport/grpc/certificates.h"

#define CERTS_HOSTS_LIMIT 4096u

typedef struct certs_options {
    pen_cli_common common;
    const char *hosts;
    int64_t days;
} certs_options;

static pen_status certs_print_json(const pen_certificates *made) {
    pen_json_writer json;
    pen_command_begin_json(&json, "certs");
    pen_json_key_text(&json, "authority", made->authority);
    pen_json_key_bool(&json, "is_authority_new", made->is_authority_new);
    pen_json_key_text(&json, "authority_expires", made->authority_expires);
    pen_json_key_array(&json, "certificates");
    for (size_t i = 0; i < made->count; i++) {
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "name", made->files[i].name);
        pen_json_key_text(&json, "certificate", made->files[i].certificate);
        pen_json_key_text(&json, "key", made->files[i].key);
        pen_json_key_text(&json, "expires", made->expires);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// "there.key" of "certs/there.key": where a file lies on the machine that it is copied to.
static const char *certs_file(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

// What was made, and what is to be done with it, to be copied from the terminal.
static pen_status certs_print_text(pen_command_context *context, const char *folder,
                                   const pen_certificates *made) {
    pen_text text;
    pen_text_init(&text, context->arena);
    pen_text_print(&text, "%s %s, until %.10s\n",
                   made->is_authority_new ? "made the authority" : "signed by the authority",
                   made->authority, made->authority_expires);
    for (size_t i = 0; i < made->count; i++) {
        pen_text_print(&text, "made %s and %s, until %.10s\n", made->files[i].certificate,
                       made->files[i].key, made->expires);
    }
    pen_text_print(&text,
                   "\nIn the job, for this machine (paths are seen from the job):\n"
                   "  tls: {ca: %s, cert: %s/" PEN_CERTIFICATES_OWN ".pem, key: %s/" //
                   PEN_CERTIFICATES_OWN ".key}\n",
                   made->authority, folder, folder);
    for (size_t i = 0; i < made->count; i++) {
        const pen_certificate_files *files = &made->files[i];
        if (strcmp(files->name, PEN_CERTIFICATES_OWN) == 0) continue;
        const char *own = certs_file(files->certificate), *key = certs_file(files->key);
        pen_text_print(&text,
                       "\nTo %s, copy %s, %s and %s; there:\n"
                       "  penstock worker --listen 0.0.0.0:7070 --tls ca.pem,%s,%s\n",
                       files->name, made->authority, files->certificate, files->key, own, key);
    }
    if (made->is_authority_new) {
        pen_text_print(&text,
                       "\nKeep %s/ca.key here: whoever has it can make certificates that all of "
                       "these machines trust.\n",
                       folder);
    }
    return pen_command_print(&text);
}

// Hosts may have ranges, as in jobs: "n[01-16]".
static pen_status certs_expand(const char *const *given, size_t given_count, pen_arena *arena,
                               pen_certificates_request *request) {
    pen_name_ranges *ranges;
    const char **hosts;
    size_t total = 0;
    PEN_TRY(PEN_NEW(arena, given_count, &ranges));
    for (size_t i = 0; i < given_count; i++) {
        PEN_TRY(pen_name_ranges_parse(given[i], &ranges[i]));
        total += ranges[i].total;
    }
    if (total > CERTS_HOSTS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "--hosts: found %zu hosts, expected at most %u", total,
                         CERTS_HOSTS_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, total, &hosts));
    for (size_t i = 0; i < given_count; i++) {
        for (uint32_t n = 0; n < ranges[i].total; n++) {
            PEN_TRY(pen_name_ranges_format(&ranges[i], &ranges[i], n, arena,
                                           &hosts[request->host_count++]));
        }
    }
    request->hosts = hosts;
    return PEN_OK;
}

static pen_status certs_run(pen_command_context *context, const void *options_given) {
    const certs_options *options = options_given;
    const pen_certificates *made;
    pen_certificates_request request = {.folder = options->common.operands[0],
                                        .days = (uint32_t)options->days};
    context->input_exit_code = PEN_EXIT_USAGE;
    const char *const *given;
    size_t given_count;
    PEN_TRY(pen_cli_read_list("hosts", options->hosts, context->arena, &given, &given_count));
    PEN_TRY(certs_expand(given, given_count, context->arena, &request));
    PEN_TRY(pen_certificates_make(&request, context->arena, &made));
    if (options->common.json) return certs_print_json(made);
    return options->common.quiet ? PEN_OK : certs_print_text(context, request.folder, made);
}

static const pen_cli_option certs_cli_options[] = {
    PEN_CLI_VALUE(0, "hosts", "HOST,HOST", TEXT, certs_options, hosts,
                  "machines to make certificates for, as jobs name them; n[01-16] are 16",
                  .is_required = true),
    PEN_CLI_VALUE(0, "days", "N", INTEGER, certs_options, days, "how long they are valid",
                  .default_text = "365", PEN_OPTION_RANGE(1, PEN_CERTIFICATES_DAYS_LIMIT)),
};

const pen_command pen_command_certs = {
    .name = "certs",
    .summary = "make certificates for workers on other machines",
    .table = {PEN_CLI_OPERANDS("DIR", 1, 1), PEN_CLI_OPTIONS(certs_cli_options),
              .details =
                  "Makes an authority in DIR (ca.pem, ca.key), a certificate for this machine "
                  "(coordinator.pem, coordinator.key), and one for each host (HOST.pem, "
                  "HOST.key). An authority that is there already signs for further hosts. No "
                  "file is replaced.\n",
              .examples = "penstock certs --hosts node1,node2 certs\n"},
    .options_bytes = sizeof(certs_options),
    .run = certs_run,
};
