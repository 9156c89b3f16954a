// penstock sweep: trains a job with many values, and says which did best.

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/system/file.h"
#include "base/system/interrupt.h"
#include "cli/command.h"
#include "cli/option_words.h"
#include "cli/sweep_crew.h"
#include "scheduler/data/batches.h"
#include "scheduler/job/job.h"
#include "scheduler/job/sweep.h"
#include "scheduler/report/run_log.h"

#define SWEEP_NOTE_BYTES_LIMIT ((size_t)1 << 20)
#define SWEEP_FIXED_ARGUMENTS 16 // besides two for each setting

typedef struct sweep_options {
    pen_cli_common common;
    int64_t parallel;
    const char *task;
    bool overwrites;
    bool shows;
} sweep_options;

typedef struct sweep_run {
    const pen_sweep_run *asked;
    const char *folder;
    const char *log_path;
    const char *export; // where the job's own export goes; NULL: it has none
    bool judges;        // evaluations while it runs are part of it
    uint64_t rung;      // steps that all do, where the worst are stopped; 0: none
    bool is_ours;       // of this task
    bool is_worst;      // ended early
    pen_run_log log;
    int code; // of its process in this sweep; 0: none ran, or all is well
} sweep_run;

typedef struct sweep_state {
    pen_command_context *context;
    const sweep_options *options;
    pen_sweep *sweep;
    sweep_run *runs;    // [run_count of the sweep]
    sweep_run **sorted; // the best first
    uint32_t task, task_count;
} sweep_state;

// ---- what is asked for

static bool sweep_read_number(const char *text, uint32_t *out_number, const char **out_end) {
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    *out_number = (uint32_t)number;
    *out_end = end;
    return text[0] >= '0' && text[0] <= '9' && number <= PEN_SWEEP_RUNS_LIMIT;
}

// Of an array job each task does every N-th run. --task I/N counts from 1; SLURM says the rest.
static pen_status sweep_find_task(sweep_state *s) {
    const char *text = s->options->task, *end = "";
    const char *id = getenv("SLURM_ARRAY_TASK_ID"), *first = getenv("SLURM_ARRAY_TASK_MIN");
    const char *count = getenv("SLURM_ARRAY_TASK_COUNT");
    uint32_t lowest = 1;
    s->task_count = 1;
    if (text != NULL) {
        const bool is_read = sweep_read_number(text, &s->task, &end) && *end == '/' &&
                             sweep_read_number(end + 1, &s->task_count, &end) && *end == '\0';
        if (is_read && s->task >= 1 && s->task <= s->task_count) {
            s->task -= 1;
            return PEN_OK;
        }
        s->context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "--task: found \"%.40s\", expected I/N, such as 1/4 to 4/4", text);
    }
    if (id == NULL || count == NULL) return PEN_OK;
    const bool is_read = sweep_read_number(id, &s->task, &end) &&
                         sweep_read_number(count, &s->task_count, &end) &&
                         (first == NULL || sweep_read_number(first, &lowest, &end));
    if (!is_read || s->task < lowest || s->task - lowest >= s->task_count) {
        s->context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "SLURM_ARRAY_TASK_ID %.20s is none of %.20s tasks one after another; "
                         "--task I/N says which this is",
                         id, count);
    }
    s->task -= lowest;
    return PEN_OK;
}

// The steps after which runs are compared.
static pen_status sweep_find_rung(const sweep_state *s, const pen_job *job, sweep_run *run) {
    pen_dataset *dataset;
    if (!s->sweep->has_stop) return PEN_OK;
    PEN_TRY(pen_job_open_dataset(job, PEN_DATASET_PART_TRAIN, s->context->arena, &dataset));
    const uint64_t examples = pen_dataset_get_info(dataset)->example_count;
    pen_dataset_close(dataset);
    const uint64_t epoch =
        pen_batches_count(examples, (uint64_t)job->train.batch, job->train.drop_last);
    const uint64_t count = pen_job_get_step_count(job, epoch);
    run->rung = (uint64_t)ceil(s->sweep->stop.at * (double)count);
    if (run->rung >= count) run->rung = 0;
    return PEN_OK;
}

// A folder of its own for each run, and its job as it will be: mistakes are told before work
// begins.
static pen_status sweep_prepare(sweep_state *s, const pen_sweep_run *asked, sweep_run *run) {
    pen_arena *arena = s->context->arena;
    const pen_job_origin origin = {
        .path = s->sweep->job, .settings = asked->settings, .setting_count = asked->setting_count};
    const pen_job *job;
    run->asked = asked;
    PEN_TRY(pen_status_add_context(pen_job_open(&origin, arena, &job), "in run %s", asked->name));
    PEN_TRY(sweep_find_rung(s, job, run));
    run->judges = job->has_evaluation;
    PEN_TRY(pen_arena_format(arena, &run->folder, "%s/%s", s->sweep->dir, asked->name));
    PEN_TRY(pen_arena_format(arena, &run->log_path, "%s/log.jsonl", run->folder));
    if (job->outputs.export == NULL) return PEN_OK;
    return pen_arena_format(arena, &run->export, "%s/%s", run->folder,
                            pen_path_name(job->outputs.export));
}

// What a run was made with stands in its folder: one of another job is not gone on with.
static pen_status sweep_check_note(const sweep_state *s, const sweep_run *run) {
    pen_arena *arena = s->context->arena;
    const char *path, *job, *text, *found;
    size_t length;
    pen_text note;
    PEN_TRY(pen_file_read(s->sweep->job, SWEEP_NOTE_BYTES_LIMIT, arena, &job, &length));
    pen_text_init(&note, arena);
    for (uint32_t i = 0; i < run->asked->setting_count; i++) {
        pen_text_print(&note, "# --set %s\n", run->asked->settings[i]);
    }
    pen_text_append(&note, job, length);
    PEN_TRY(pen_text_finish(&note, &text));
    PEN_TRY(pen_folder_create(run->folder, arena));
    PEN_TRY(pen_arena_format(arena, &path, "%s/job.txt", run->folder));
    pen_status status = pen_file_read(path, 2 * SWEEP_NOTE_BYTES_LIMIT, arena, &found, &length);
    if (pen_status_get_code(status) == PEN_NOT_FOUND || s->options->overwrites) {
        pen_status_ignore(status, "it is written now");
        return pen_file_write_text(path, text);
    }
    PEN_TRY(status);
    if (strcmp(found, text) == 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "run %s is of another job: %s is what it was; --overwrite does all runs anew, "
                     "another `dir` keeps both",
                     run->asked->name, path);
}

// ---- how a run stands

static bool sweep_is_over(const sweep_run *run) {
    const pen_run_log *log = &run->log;
    const bool is_bad = log->outcome == PEN_RUN_FAILED && log->exit_code == PEN_EXIT_NOT_FINITE;
    return is_bad ||
           (log->outcome == PEN_RUN_DONE && (log->ended_early || log->step >= log->step_count));
}

static bool sweep_is_at_rung(const sweep_run *run) {
    return sweep_is_over(run) || run->log.step > run->rung ||
           (run->log.step == run->rung && run->log.outcome == PEN_RUN_DONE);
}

static const char *sweep_word(const sweep_run *run) {
    const pen_run_log *log = &run->log;
    if (log->outcome == PEN_RUN_FAILED) {
        return log->exit_code == PEN_EXIT_NOT_FINITE ? "not finite" : "failed";
    }
    if (sweep_is_over(run)) return "done";
    if (run->is_worst) return "stopped early";
    return log->step > 0 ? "begun" : "not begun";
}

static double sweep_metric(const sweep_state *s, const sweep_run *run, bool at_rung) {
    const pen_metric sort = s->sweep->sort;
    const pen_run_means *means = at_rung ? &run->log.rung : &run->log.late;
    if (run->log.outcome == PEN_RUN_FAILED || run->log.step == 0) return NAN;
    if (!at_rung && run->log.has_evaluation) return run->log.evaluation[sort];
    if (sort == PEN_METRIC_LOSS) return means->loss;
    return sort == PEN_METRIC_ACCURACY ? means->accuracy : NAN;
}

// The better run first; those without a number last, equal ones in the order of the sweep.
static bool sweep_is_better(const sweep_state *s, const sweep_run *a, const sweep_run *b,
                            bool at_rung) {
    const double left = sweep_metric(s, a, at_rung), right = sweep_metric(s, b, at_rung);
    if (isnan(left) || isnan(right) || !(left < right || right < left)) {
        if (isnan(left) != isnan(right)) return isnan(right);
        return a < b;
    }
    return pen_metric_kinds[s->sweep->sort].is_larger_better ? left > right : left < right;
}

static void sweep_sort(sweep_state *s, bool at_rung) {
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        uint32_t at = i;
        for (; at > 0 && sweep_is_better(s, &s->runs[i], s->sorted[at - 1], at_rung); at--) {
            s->sorted[at] = s->sorted[at - 1];
        }
        s->sorted[at] = &s->runs[i];
    }
}

static pen_status sweep_look(sweep_state *s) {
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        PEN_TRY(pen_run_log_read(s->runs[i].log_path, s->runs[i].rung, &s->runs[i].log));
    }
    return PEN_OK;
}

// ---- running

static pen_status sweep_add(pen_arena *arena, char **arguments, const char *text) {
    const size_t bytes = strlen(text) + 1;
    while (*arguments != NULL)
        arguments++;
    *arguments = pen_arena_allocate(arena, bytes, 1, 1); // exec takes no constant texts
    if (*arguments == NULL) return pen_error_out_of_memory();
    memcpy(*arguments, text, bytes);
    return PEN_OK;
}

static pen_status sweep_add_set(pen_arena *arena, char **arguments, const char *key,
                                const char *path) {
    char absolute[PATH_MAX];
    const char *text;
    if (path == NULL) return PEN_OK;
    // a path of --set is beside the job: this one is not
    if (realpath(".", absolute) == NULL) return pen_error(PEN_IO, "no current folder");
    PEN_TRY(pen_arena_format(arena, &text, "%s=\"%s%s%s\"", key, path[0] == '/' ? "" : absolute,
                             path[0] == '/' ? "" : "/", path));
    PEN_TRY(sweep_add(arena, arguments, "--set"));
    return sweep_add(arena, arguments, text);
}

// The command line of a run, up to its rung or to its end. It goes on from its checkpoint.
static pen_status sweep_arrange(sweep_state *s, const sweep_run *run, bool to_rung,
                                pen_sweep_work *work) {
    pen_arena *arena = s->context->arena;
    const char *text;
    char **arguments;
    PEN_TRY(
        PEN_NEW(arena, 2 * (size_t)run->asked->setting_count + SWEEP_FIXED_ARGUMENTS, &arguments));
    PEN_TRY(sweep_add(arena, arguments, "penstock"));
    PEN_TRY(sweep_add(arena, arguments, "train"));
    PEN_TRY(sweep_add(arena, arguments, s->sweep->job));
    for (uint32_t i = 0; i < run->asked->setting_count; i++) {
        PEN_TRY(sweep_add(arena, arguments, "--set"));
        PEN_TRY(sweep_add(arena, arguments, run->asked->settings[i]));
    }
    PEN_TRY(sweep_add_set(arena, arguments, "outputs.dir", run->folder));
    PEN_TRY(sweep_add_set(arena, arguments, "outputs.export", run->export));
    PEN_TRY(pen_arena_format(arena, &text, "--checkpoint=%s/checkpoints", run->folder));
    PEN_TRY(sweep_add(arena, arguments, text));
    PEN_TRY(pen_arena_format(arena, &text, "--log=%s", run->log_path));
    PEN_TRY(sweep_add(arena, arguments, text));
    const bool is_anew = s->options->overwrites && run->log.step == 0;
    PEN_TRY(sweep_add(arena, arguments, is_anew ? "--overwrite" : "--continue"));
    if (to_rung) {
        if (!run->judges) PEN_TRY(sweep_add(arena, arguments, "--no-eval"));
        PEN_TRY(pen_arena_format(arena, &text, "--steps=%llu", (unsigned long long)run->rung));
        PEN_TRY(sweep_add(arena, arguments, text));
    }
    *work = (pen_sweep_work){.name = run->asked->name, .arguments = arguments};
    return pen_arena_format(arena, &work->messages, "%s/messages.txt", run->folder);
}

// All runs of this task that have not come to their rung, or to their end.
static pen_status sweep_do(sweep_state *s, bool to_rung) {
    pen_sweep_work *works;
    sweep_run **doers;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(s->context->arena, s->sweep->run_count, &works));
    PEN_TRY(PEN_NEW(s->context->arena, s->sweep->run_count, &doers));
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        sweep_run *run = &s->runs[i];
        const bool is_there =
            to_rung ? run->rung == 0 || sweep_is_at_rung(run) : sweep_is_over(run) || run->is_worst;
        if (!run->is_ours || is_there) continue;
        PEN_TRY(sweep_arrange(s, run, to_rung, &works[count]));
        doers[count++] = run;
    }
    const int64_t parallel = s->options->parallel > 0 ? s->options->parallel : s->sweep->parallel;
    const pen_status status = pen_sweep_crew_run(works, count, (uint32_t)parallel);
    for (uint32_t i = 0; i < count; i++)
        doers[i]->code = works[i].code;
    return status == PEN_OK ? sweep_look(s) : status;
}

// After all have done the same share of their steps, the worst of them end. What each had then is
// in its log, so the outcome does not depend on which ran when, and is the same each time.
static pen_status sweep_stop_worst(sweep_state *s) {
    const uint32_t count = s->sweep->run_count;
    uint32_t worst = (uint32_t)floor(s->sweep->stop.worst * (double)count);
    if (!s->sweep->has_stop) return PEN_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (s->runs[i].rung == 0 || !sweep_is_at_rung(&s->runs[i])) return PEN_OK;
    }
    sweep_sort(s, true);
    for (uint32_t i = count; i-- > 0 && worst > 0; worst--)
        s->sorted[i]->is_worst = !sweep_is_over(s->sorted[i]);
    return PEN_OK;
}

// The code of the first run that failed, but for those whose numbers are not finite: they are
// answers, too.
static pen_status sweep_judge(sweep_state *s) {
    uint32_t failed_count = 0, done_count = 0, our_count = 0;
    int code = 0;
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        const sweep_run *run = &s->runs[i];
        our_count += run->is_ours;
        done_count += run->is_ours && (sweep_is_over(run) || run->is_worst);
        if (run->code == 0 || run->code == PEN_EXIT_NOT_FINITE || pen_interrupt_requested())
            continue;
        failed_count += 1;
        if (code == 0) code = run->code;
    }
    if (pen_interrupt_requested()) {
        return pen_error(PEN_CANCELLED, "stopped; %u of %u runs are done: the same command goes on",
                         done_count, our_count);
    }
    if (failed_count == 0) return PEN_OK;
    pen_log(PEN_LOG_WARNING, "%u of %u runs failed: the same command tries them again",
            failed_count, our_count);
    s->context->exit_code = (pen_exit_code)(code > PEN_EXIT_NOT_FINITE ? PEN_EXIT_INTERNAL : code);
    return PEN_OK;
}

// ---- results

static void sweep_print_number(double number) {
    if (isnan(number)) {
        printf("  %10s", "-");
    } else {
        printf("  %10.4f", number);
    }
}

// Losses with four digits, as train prints them.
static pen_status sweep_print(const sweep_state *s) {
    int width = 3;
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        const int length = (int)strlen(s->runs[i].asked->name);
        if (length > width) width = length;
    }
    const pen_metric sort = s->sweep->sort;
    const pen_metric second = sort == PEN_METRIC_LOSS ? PEN_METRIC_ACCURACY : sort;
    printf("%-*s  %10s  %10s  %10s  %8s  %9s  %s\n", width, "run", "loss", pen_metric_names[second],
           "train loss", "steps", "seconds", "state");
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        const sweep_run *run = s->sorted[i];
        const pen_run_log *log = &run->log;
        printf("%-*s", width, run->asked->name);
        sweep_print_number(log->has_evaluation ? log->evaluation[PEN_METRIC_LOSS] : NAN);
        sweep_print_number(log->has_evaluation ? log->evaluation[second] : NAN);
        sweep_print_number(log->late.loss);
        printf("  %8llu  %9.1f  %s\n", (unsigned long long)log->step, log->seconds,
               sweep_word(run));
    }
    return fflush(stdout) == 0 ? PEN_OK : pen_error(PEN_IO, "cannot write to standard output");
}

static void sweep_write_means(pen_json_writer *json, const char *key, const pen_run_means *means) {
    pen_json_key_object(json, key);
    pen_json_key_number(json, "loss", means->loss);
    if (!isnan(means->accuracy)) pen_json_key_number(json, "accuracy", means->accuracy);
    pen_json_end_object(json);
}

static void sweep_write_evaluation(pen_json_writer *json, const double values[PEN_METRIC_COUNT]) {
    pen_json_key_object(json, "evaluation");
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (metric != PEN_METRIC_LOSS && isnan(values[metric])) continue;
        pen_json_key_number(json, pen_metric_names[metric], values[metric]);
    }
    pen_json_end_object(json);
}

static void sweep_write_run(pen_json_writer *json, const sweep_run *run) {
    pen_json_begin_object(json);
    pen_json_key_text(json, "name", run->asked->name);
    pen_json_key_text(json, "folder", run->folder);
    pen_json_key_array(json, "set");
    for (uint32_t i = 0; i < run->asked->setting_count; i++) {
        pen_json_text(json, run->asked->settings[i]);
    }
    pen_json_end_array(json);
    pen_json_key_text(json, "state", sweep_word(run));
    pen_json_key_unsigned(json, "step", run->log.step);
    pen_json_key_number(json, "seconds", run->log.seconds);
    if (run->log.has_evaluation) sweep_write_evaluation(json, run->log.evaluation);
    if (run->log.step > 0) sweep_write_means(json, "training", &run->log.late);
    if (run->log.hash[0] != '\0') pen_json_key_text(json, "parameters_hash", run->log.hash);
    pen_json_end_object(json);
}

static pen_status sweep_write(const sweep_state *s) {
    pen_json_writer json;
    pen_command_begin_json(&json, "sweep");
    pen_json_key_text(&json, "sort", pen_metric_names[s->sweep->sort]);
    pen_json_key_array(&json, "runs");
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        sweep_write_run(&json, s->sorted[i]);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// ---- the verb

static pen_status sweep_open(sweep_state *s) {
    pen_arena *arena = s->context->arena;
    PEN_TRY(pen_sweep_read(s->options->common.operands[0], arena, &s->sweep));
    PEN_TRY(sweep_find_task(s));
    if (s->task_count > 1 && s->sweep->has_stop) {
        return pen_error(PEN_INVALID_INPUT,
                         "stop: found in a sweep of %u tasks, expected one: runs can only be "
                         "compared where all are trained",
                         s->task_count);
    }
    PEN_TRY(PEN_NEW(arena, s->sweep->run_count, &s->runs));
    PEN_TRY(PEN_NEW(arena, s->sweep->run_count, &s->sorted));
    for (uint32_t i = 0; i < s->sweep->run_count; i++) {
        s->runs[i].is_ours = i % s->task_count == s->task;
        PEN_TRY(sweep_prepare(s, &s->sweep->runs[i], &s->runs[i]));
        if (!s->options->shows && s->runs[i].is_ours) PEN_TRY(sweep_check_note(s, &s->runs[i]));
    }
    return PEN_OK;
}

static pen_status sweep_train(sweep_state *s) {
    pen_interrupt_install("\nstopping: runs finish the step under way and keep a checkpoint; once "
                          "more ends them at once\n");
    if (s->sweep->has_stop) PEN_TRY(sweep_do(s, true));
    if (pen_interrupt_requested()) return sweep_judge(s);
    PEN_TRY(sweep_stop_worst(s));
    PEN_TRY(sweep_do(s, false));
    return sweep_judge(s);
}

static pen_status sweep_run_verb(pen_command_context *context, const void *options) {
    sweep_state s = {.context = context, .options = options};
    PEN_TRY(sweep_open(&s));
    if (!s.options->overwrites || s.options->shows) PEN_TRY(sweep_look(&s));
    if (s.options->shows) {
        PEN_TRY(sweep_stop_worst(&s));
    } else {
        PEN_TRY(sweep_train(&s));
    }
    sweep_sort(&s, false);
    return s.options->common.json ? sweep_write(&s) : sweep_print(&s);
}

static const pen_cli_option sweep_cli_options[] = {
    PEN_CLI_VALUE('j', "parallel", "N", INTEGER, sweep_options, parallel,
                  "runs at once, in place of the file's", PEN_OPTION_RANGE(0, 1000),
                  .default_text = "0"),
    PEN_CLI_VALUE(0, "task", "I/N", TEXT, sweep_options, task,
                  "do every N-th run, from the I-th; else as SLURM's array says"),
    PEN_CLI_FLAG(0, "show", sweep_options, shows, "run nothing: the table of what is there"),
    PEN_CLI_FLAG(0, "overwrite", sweep_options, overwrites, "do all runs anew"),
};

const pen_command pen_command_sweep = {
    .name = "sweep",
    .summary = "train a job with many values, and say which did best",
    .table = {PEN_CLI_OPERANDS("SWEEP", 1, 1), PEN_CLI_OPTIONS(sweep_cli_options),
              .words = pen_cli_sweep_words,
              .details = "A sweep that was stopped or killed goes on with the same command.\n",
              .examples = "penstock sweep sweep.yaml\n"
                          "penstock sweep --parallel 4 --show sweep.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(sweep_options),
    .run = sweep_run_verb,
};
