// penstock checkpoint: what a folder of checkpoints has, whether it is whole, and its parameters.

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "base/precision.h"
#include "cli/command.h"
#include "scheduler/checkpoint/checkpoint.h"

#define CHECKPOINT_BEST_TITLE "best so far"
#define CHECKPOINT_BEST_BYTES (PEN_COMMIT_TEXT_BYTES + 64)

typedef struct checkpoint_options {
    pen_cli_common common;
    int64_t step;
    const char *output;
    const char *mirror;
    bool best;
    bool plain;
    bool adapters;
    bool all;
} checkpoint_options;

typedef struct checkpoint_run {
    pen_command_context *context;
    const checkpoint_options *options;
    const char *folder;
    pen_checkpoint_store *store;
    pen_json_writer json;
} checkpoint_run;

typedef pen_status (*checkpoint_action_fn)(checkpoint_run *run);

static uint64_t checkpoint_bytes(const pen_commit_manifest *manifest) {
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < manifest->shard_count; s++) {
        bytes += manifest->shards[s].bytes;
    }
    return bytes;
}

// A record has the bits of a number.
static double checkpoint_number(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

// What evaluations are compared by. One of a later build may be none of pen_metric_names.
static const char *checkpoint_metric(const pen_commit_manifest *manifest) {
    return manifest->best_metric[0] != '\0' ? manifest->best_metric
                                            : pen_metric_names[PEN_METRIC_LOSS];
}

// "-" where there is none: no step so far had a finite one.
static const char *checkpoint_loss_text(const pen_commit_manifest *manifest, char text[32]) {
    const double loss = checkpoint_number(manifest->loss);
    if (!isfinite(loss)) return "-";
    snprintf(text, 32, "%.6g", loss);
    return text;
}

// The step of the best evaluation, as the newest checkpoint says; 0: there was none.
static uint64_t checkpoint_best(const checkpoint_run *run) {
    const pen_commit_record *newest = pen_checkpoint_store_record(run->store, 0);
    return newest == NULL || newest->manifest.evaluations == 0 ? 0 : newest->manifest.best_step;
}

// What the evaluations had come to when it was written: the metric that decides, its best value,
// and after which step that was: "accuracy 0.9512 of 40". "-": none was made.
static const char *checkpoint_best_text(const pen_commit_manifest *manifest,
                                        char text[CHECKPOINT_BEST_BYTES]) {
    if (manifest->evaluations == 0) return "-";
    snprintf(text, CHECKPOINT_BEST_BYTES, "%s %.6g of %" PRIu64, checkpoint_metric(manifest),
             checkpoint_number(manifest->best), manifest->best_step);
    return text;
}

// When the manifest was written, in UTC: the time of its file. "?" when that cannot be known.
static const char *checkpoint_time(const checkpoint_run *run, uint32_t index, char text[32]) {
    char path[4096], name[PEN_COMMIT_NAME_BYTES];
    const uint64_t number = pen_checkpoint_store_record(run->store, index)->number;
    struct stat about;
    struct tm parts;
    snprintf(path, sizeof path, "%s/commit/%s", pen_checkpoint_store_folder(run->store, index),
             pen_commit_log_name(number, name));
    if (stat(path, &about) != 0 || gmtime_r(&about.st_mtime, &parts) == NULL ||
        strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        return "?";
    }
    return text;
}

static pen_status checkpoint_flush(void) {
    if (fflush(stdout) == 0) return PEN_OK;
    return pen_error(PEN_IO, "cannot write to standard output");
}

// Fails, saying what there is, when there is no checkpoint at all.
static pen_status checkpoint_require(checkpoint_run *run) {
    pen_checkpoint checkpoint;
    return pen_checkpoint_store_newest(run->store, 0, &checkpoint);
}

static void checkpoint_json_begin(checkpoint_run *run) {
    pen_command_begin_json(&run->json, "checkpoint");
    pen_json_key_text(&run->json, "job", pen_checkpoint_store_job(run->store));
    pen_json_key_unsigned(&run->json, "generation", pen_checkpoint_store_generation(run->store));
    pen_json_key_unsigned(&run->json, "damaged_records",
                          pen_checkpoint_store_damaged_count(run->store));
    pen_json_key_array(&run->json, "checkpoints");
}

static pen_status checkpoint_json_end(checkpoint_run *run) {
    pen_json_end_array(&run->json);
    pen_json_end_object(&run->json);
    return pen_json_finish(&run->json);
}

// What the evaluations had come to by then, as `train --json` says it under "best".
static void checkpoint_json_evaluated(checkpoint_run *run, const pen_commit_manifest *manifest) {
    if (manifest->evaluations == 0) return;
    pen_json_key_object(&run->json, "evaluated");
    pen_json_key_unsigned(&run->json, "step", manifest->best_step);
    pen_json_key_text(&run->json, "metric", checkpoint_metric(manifest));
    pen_json_key_number(&run->json, "value", checkpoint_number(manifest->best));
    pen_json_key_unsigned(&run->json, "evaluations", manifest->evaluations);
    pen_json_key_unsigned(&run->json, "since_best", manifest->since_best);
    pen_json_end_object(&run->json);
}

// Opens the object and leaves it open: `ls` and `verify` add a key each.
static void checkpoint_json_describe(checkpoint_run *run, uint32_t index) {
    const pen_commit_record *record = pen_checkpoint_store_record(run->store, index);
    char text[32];
    const pen_commit_manifest *manifest = &record->manifest;
    pen_json_begin_object(&run->json);
    pen_json_key_unsigned(&run->json, "step", manifest->step);
    pen_json_key_unsigned(&run->json, "generation", record->generation);
    pen_json_key_unsigned(&run->json, "number", record->number);
    pen_json_key_text(&run->json, "written", checkpoint_time(run, index, text));
    pen_json_key_unsigned(&run->json, "bytes", checkpoint_bytes(manifest));
    pen_json_key_number(&run->json, "loss", checkpoint_number(manifest->loss));
    pen_json_key_bool(&run->json, "best", manifest->step == checkpoint_best(run));
    checkpoint_json_evaluated(run, manifest);
    pen_json_key_text(&run->json, "model_hash", manifest->model_hash);
    pen_json_key_text(&run->json, "build", manifest->build);
    pen_json_key_text(&run->json, "level", manifest->level);
    pen_json_key_text(&run->json, "arithmetic",
                      manifest->arithmetic[0] == '\0' ? "cpu" : manifest->arithmetic);
    if (manifest->changed_step > 0) {
        pen_json_key_unsigned(&run->json, "changed_step", manifest->changed_step);
    }
    pen_json_key_text(&run->json, "precision",
                      manifest->precision[0] == 0 ? pen_precision_names[PEN_PRECISION_FLOAT32]
                                                  : manifest->precision);
    if (run->options->mirror != NULL) {
        pen_json_key_unsigned(&run->json, "copies", pen_checkpoint_store_copies(run->store, index));
    }
    pen_json_key_array(&run->json, "shards");
    for (uint32_t s = 0; s < manifest->shard_count; s++) {
        pen_json_begin_object(&run->json);
        pen_json_key_text(&run->json, "file", manifest->shards[s].file);
        pen_json_key_unsigned(&run->json, "bytes", manifest->shards[s].bytes);
        pen_json_key_text(&run->json, "holders", manifest->shards[s].holders);
        pen_json_end_object(&run->json);
    }
    pen_json_end_array(&run->json);
}

// ---- ls

// How wide the column of the best evaluations is; 0: no checkpoint knows of any, and there is none.
static int checkpoint_best_width(const checkpoint_run *run) {
    size_t width = 0;
    for (uint32_t i = 0; i < pen_checkpoint_store_count(run->store); i++) {
        const pen_commit_manifest *manifest = &pen_checkpoint_store_record(run->store, i)->manifest;
        char best[CHECKPOINT_BEST_BYTES];
        if (manifest->evaluations == 0) continue;
        const size_t length = strlen(checkpoint_best_text(manifest, best));
        if (length > width) width = length;
    }
    if (width > 0 && width < strlen(CHECKPOINT_BEST_TITLE)) width = strlen(CHECKPOINT_BEST_TITLE);
    return (int)width;
}

// A cell of that column, where there is one.
static void checkpoint_print_best(int width, const char *text) {
    if (width > 0) printf("  %-*s", width, text);
}

// With a mirror, "complete" says in how many folders it is.
static void checkpoint_list_one(checkpoint_run *run, uint32_t index, int best_width) {
    const pen_commit_record *record = pen_checkpoint_store_record(run->store, index);
    const uint32_t complete = pen_checkpoint_store_complete_count(run->store, index);
    const bool is_complete = complete > 0;
    const char *copies = run->options->mirror == NULL ? ""
                         : complete == 2              ? ", both"
                                                      : ", one of two";
    char when[32], loss[32], best[CHECKPOINT_BEST_BYTES], bytes[PEN_QUANTITY_TEXT_BYTES];
    if (run->options->common.json) {
        checkpoint_json_describe(run, index);
        pen_json_key_bool(&run->json, "complete", is_complete);
        pen_json_end_object(&run->json);
        return;
    }
    const bool is_best = record->manifest.step == checkpoint_best(run);
    printf("%10" PRIu64 " %11" PRIu64 "  %-20s %7u %11s %12s", record->manifest.step,
           record->generation, checkpoint_time(run, index, when), record->manifest.shard_count,
           pen_bytes_format(checkpoint_bytes(&record->manifest), bytes),
           checkpoint_loss_text(&record->manifest, loss));
    checkpoint_print_best(best_width, checkpoint_best_text(&record->manifest, best));
    printf("  %s%s%s\n", is_complete ? "yes" : "no", is_complete ? copies : "",
           is_best ? "; the best evaluation" : "");
}

static pen_status checkpoint_list(checkpoint_run *run) {
    const bool json = run->options->common.json;
    PEN_TRY(checkpoint_require(run));
    const int best_width = checkpoint_best_width(run);
    if (json) {
        checkpoint_json_begin(run);
    } else {
        printf("%10s %11s  %-20s %7s %11s %12s", "step", "generation", "written", "shards", "bytes",
               "loss");
        checkpoint_print_best(best_width, CHECKPOINT_BEST_TITLE);
        printf("  complete\n");
    }
    for (uint32_t i = 0; i < pen_checkpoint_store_count(run->store); i++) {
        checkpoint_list_one(run, i, best_width);
    }
    return json ? checkpoint_json_end(run) : checkpoint_flush();
}

// ---- verify

// `damage` as text, ended by a line's end; "" for none.
static pen_status checkpoint_format(const checkpoint_run *run, pen_status damage,
                                    const char **out_text) {
    const size_t length = pen_status_format(damage, NULL, 0);
    char *text;
    PEN_TRY(PEN_NEW(run->context->arena, length + 1, &text));
    pen_status_format(damage, text, length + 1);
    *out_text = text;
    return PEN_OK;
}

// Where it is whole, of a folder and its mirror.
static const char *checkpoint_tell_whole(const checkpoint_run *run, uint32_t index) {
    if (run->options->mirror == NULL) return "whole";
    if (pen_checkpoint_store_copies(run->store, index) == 2) return "whole in both folders";
    const bool is_first = strcmp(pen_checkpoint_store_folder(run->store, index), run->folder) == 0;
    return is_first ? "whole, and not in the mirror" : "whole, in the mirror alone";
}

// Damage is the answer here, not an error: it is told by the exit code, and the next checkpoint is
// looked at.
static pen_status checkpoint_verify_one(checkpoint_run *run, uint32_t index) {
    const pen_commit_record *record = pen_checkpoint_store_record(run->store, index);
    char bytes[PEN_QUANTITY_TEXT_BYTES];
    const char *text = "";
    const pen_status damage = pen_checkpoint_store_verify(run->store, index);
    const bool is_whole = damage == PEN_OK;
    const pen_status formatted = is_whole ? PEN_OK : checkpoint_format(run, damage, &text);
    pen_status_ignore(damage, "said, and told by the exit code");
    PEN_TRY(formatted);
    if (!is_whole) run->context->exit_code = PEN_EXIT_VERIFICATION;
    if (run->options->common.json) {
        checkpoint_json_describe(run, index);
        pen_json_key_bool(&run->json, "whole", is_whole);
        if (!is_whole) pen_json_key_text(&run->json, "damage", text);
        pen_json_end_object(&run->json);
        return PEN_OK;
    }
    printf("step %" PRIu64 ": %u %s, %s, %s\n%s", record->manifest.step,
           record->manifest.shard_count, record->manifest.shard_count == 1 ? "shard" : "shards",
           pen_bytes_format(checkpoint_bytes(&record->manifest), bytes),
           is_whole ? checkpoint_tell_whole(run, index) : "damaged", text);
    return PEN_OK;
}

static pen_status checkpoint_verify(checkpoint_run *run) {
    const bool json = run->options->common.json;
    const uint32_t damaged = pen_checkpoint_store_damaged_count(run->store);
    if (damaged > 0) run->context->exit_code = PEN_EXIT_VERIFICATION;
    if (damaged == 0) PEN_TRY(checkpoint_require(run));
    if (json) checkpoint_json_begin(run);
    for (uint32_t i = 0; i < pen_checkpoint_store_count(run->store); i++) {
        PEN_TRY(checkpoint_verify_one(run, i));
    }
    if (json) return checkpoint_json_end(run);
    if (damaged > 0) {
        printf("%u %s of the log cannot be read\n", damaged, damaged == 1 ? "record" : "records");
    }
    return checkpoint_flush();
}

// ---- export

static pen_checkpoint_export_what checkpoint_what(const checkpoint_options *options) {
    if (options->all) return PEN_CHECKPOINT_EXPORT_ALL;
    return options->adapters ? PEN_CHECKPOINT_EXPORT_ADAPTERS : PEN_CHECKPOINT_EXPORT_MODEL;
}

// A step that has no checkpoint is answered with those that have.
static pen_status checkpoint_export(checkpoint_run *run) {
    PEN_TRY(checkpoint_require(run));
    const uint64_t best = checkpoint_best(run);
    const int64_t step = run->options->best ? (int64_t)best : run->options->step;
    if (run->options->best && best == 0) {
        return pen_error(PEN_NOT_FOUND,
                         "--best: the training in %s was not evaluated while it ran (`evaluation` "
                         "in its job)",
                         run->folder);
    }
    const uint32_t count = pen_checkpoint_store_count(run->store);
    for (uint32_t i = 0; i < count; i++) {
        const pen_commit_record *record = pen_checkpoint_store_record(run->store, i);
        if (step >= 0 && record->manifest.step != (uint64_t)step) continue;
        const pen_checkpoint_export kind = {.what = checkpoint_what(run->options),
                                            .averages = !run->options->plain};
        PEN_TRY(pen_checkpoint_store_export(run->store, i, kind, run->options->output));
        pen_log(PEN_LOG_NOTE, "%s: from the checkpoint of step %" PRIu64 "%s", run->options->output,
                record->manifest.step,
                record->manifest.step == best ? ", of the best evaluation" : "");
        return PEN_OK;
    }
    pen_text text;
    const char *steps;
    pen_text_init(&text, run->context->arena);
    for (uint32_t i = 0; i < count; i++) {
        pen_text_print(&text, "%s%" PRIu64, i == 0 ? "" : ", ",
                       pen_checkpoint_store_record(run->store, i)->manifest.step);
    }
    PEN_TRY(pen_text_finish(&text, &steps));
    return pen_error(PEN_NOT_FOUND, "%s has no checkpoint of step %" PRId64 ", but of: %s",
                     run->folder, step, steps);
}

// What belongs to `export` is refused beside the others.
static pen_status checkpoint_choose(const checkpoint_options *options,
                                    checkpoint_action_fn *out_action) {
    const char *name = options->common.operands[0];
    if (strcmp(name, "ls") == 0) {
        *out_action = checkpoint_list;
    } else if (strcmp(name, "verify") == 0) {
        *out_action = checkpoint_verify;
    } else if (strcmp(name, "export") == 0) {
        *out_action = checkpoint_export;
        if (options->best && options->step >= 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "--best: found beside --step, expected one of the two");
        }
        if (options->output != NULL) return PEN_OK;
        return pen_error(PEN_INVALID_INPUT, "export: found no --output, expected --output FILE");
    } else {
        return pen_error(PEN_INVALID_INPUT, "found action '%.40s', possible: ls, verify, export",
                         name);
    }
    const bool is_for_export = options->output != NULL || options->step >= 0 || options->all ||
                               options->plain || options->adapters || options->best;
    if (!is_for_export) return PEN_OK;
    return pen_error(
        PEN_INVALID_INPUT,
        "%s: found --step, --best, --output, --plain, --adapters or --all, which are for "
        "export",
        name);
}

static pen_status checkpoint_run_action(pen_command_context *context, const void *options_given) {
    checkpoint_run run = {.context = context, .options = options_given};
    checkpoint_action_fn action = NULL;
    run.folder = run.options->common.operands[1];
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(checkpoint_choose(run.options, &action));
    context->input_exit_code = PEN_EXIT_MODEL;
    const pen_checkpoint_folders folders = {.folder = run.folder, .mirror = run.options->mirror};
    PEN_TRY(pen_checkpoint_store_open(&folders, NULL, context->arena, &run.store));
    return action(&run);
}

static const pen_cli_option checkpoint_cli_options[] = {
    PEN_CLI_VALUE(0, "step", "N", INTEGER, checkpoint_options, step,
                  "export: the checkpoint of that step; -1: the newest", .default_text = "-1",
                  .minimum = PEN_OPTION_FROM(-1)),
    PEN_CLI_FLAG(0, "best", checkpoint_options, best,
                 "export: the checkpoint of the best evaluation"),
    PEN_CLI_VALUE('o', "output", "FILE", TEXT, checkpoint_options, output,
                  "export: where the tensors go, as safetensors"),
    PEN_CLI_VALUE(0, "mirror", "DIR", TEXT, checkpoint_options, mirror,
                  "the second folder that has them, too (checkpoint.mirror)"),
    PEN_CLI_FLAG(0, "plain", checkpoint_options, plain,
                 "export: parameters as the steps left them, not their average (train.average)"),
    PEN_CLI_FLAG(0, "adapters", checkpoint_options, adapters,
                 "export: low-rank adapters alone (adapt.lora), not added to their weights"),
    PEN_CLI_FLAG(0, "all", checkpoint_options, all, "export: the optimizer's states, too"),
};

const pen_command pen_command_checkpoint = {
    .name = "checkpoint",
    .summary = "what checkpoints a folder has, whether they are whole, and their parameters",
    .table = {PEN_CLI_OPERANDS("ls|verify|export DIR", 2, 2),
              PEN_CLI_OPTIONS(checkpoint_cli_options),
              .details =
                  "  ls      the checkpoints, newest first; complete: all files are there, as "
                  "long as they were\n"
                  "  verify  reads every byte and compares checksums; exit code 7 when there is "
                  "damage\n"
                  "  export  one checkpoint's tensors as one safetensors file\n",
              .examples = "penstock checkpoint ls kept\n"
                          "penstock checkpoint export --step 100 -o weights.safetensors kept\n"},
    .options_bytes = sizeof(checkpoint_options),
    .run = checkpoint_run_action,
};
