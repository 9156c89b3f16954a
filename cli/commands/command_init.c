// penstock init: writes a job for a model and its data.

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/system/file.h"
#include "cli/init/job_draft.h"
#include "cli/training_job.h"
#include "device/reference/reference_evaluate.h"
#include "graph/op_known.h"
#include "scheduler/compile/compile.h"
#include "scheduler/job/job_runner.h"

#define INIT_BATCH 32

typedef struct init_options {
    pen_cli_common common;
    const char *output;
    bool overwrite;
} init_options;

typedef struct init_run {
    pen_command_context *context;
    const init_options *options;
    const char *path; // of the job
    pen_model *model;
    pen_data_guess data;
    pen_job_draft draft;
    const char *text; // of the job
    pen_status wrong; // why the first loss does not fit
} init_run;

// Paths in a job are seen from its folder: where that is another one, they are written from the
// root on.
static pen_status init_place(const init_run *run, const char **path) {
    char found[PATH_MAX];
    if (*path == NULL || pen_path_name(run->path) == run->path) return PEN_OK;
    if (realpath(*path, found) == NULL) return PEN_OK; // told when it is opened
    return pen_arena_copy_text(run->context->arena, found, strlen(found), path);
}

// The job must not take the place of what it is of.
static pen_status init_check_apart(const init_run *run) {
    const pen_cli_common *common = &run->options->common;
    for (size_t i = 0; i < common->operand_count; i++) {
        const char *file = common->operands[i];
        const char *equals = strchr(file, '=');
        if (pen_path_is_same(file, run->path) ||
            (equals != NULL && pen_path_is_same(equals + 1, run->path))) {
            return pen_error(PEN_INVALID_INPUT,
                             "--output: found %.200s, which the job is to be of, expected another "
                             "file",
                             run->path);
        }
    }
    return PEN_OK;
}

// The model comes first, what it is trained on behind it.
static pen_status init_read_operands(init_run *run) {
    const pen_cli_common *common = &run->options->common;
    const pen_graph *graph = run->model->graph;
    const uint32_t input_count = pen_graph_input_count(graph);
    const char **inputs;
    PEN_TRY(PEN_NEW(run->context->arena, input_count, &inputs));
    for (uint32_t i = 0; i < input_count; i++) {
        inputs[i] = pen_value_name(graph, pen_graph_input(graph, i));
    }
    run->context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_data_guess_read(common->operands + 1, (uint32_t)common->operand_count - 1, inputs,
                                input_count, run->context->arena, &run->data));
    for (uint32_t i = 0; i < run->data.file_count; i++) {
        PEN_TRY(init_place(run, &run->data.files[i]));
    }
    PEN_TRY(init_place(run, &run->data.labels));
    run->draft = (pen_job_draft){
        .model = common->operands[0], .data = &run->data, .graph = graph, .batch = INIT_BATCH};
    return init_place(run, &run->draft.model);
}

static pen_status init_write(init_run *run) {
    pen_text text;
    pen_text_init(&text, run->context->arena);
    pen_job_draft_write(&run->draft, &text);
    return pen_text_finish(&text, &run->text);
}

// The job as it would be trained, as far as that can be seen without training.
static pen_status init_try_job(init_run *run, const pen_job *job, pen_dataset *dataset) {
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    pen_compile_request request;
    const pen_program *program = NULL;
    PEN_TRY(
        pen_job_compile_request(job, PEN_DATASET_PART_TRAIN, info, run->context->arena, &request));
    pen_status status = pen_compile(&request, &program);
    if (status == PEN_OK)
        status = pen_job_check_data(job, PEN_DATASET_PART_TRAIN, program, dataset);
    pen_program_destroy((pen_program *)(uintptr_t)program);
    return status;
}

static pen_status init_open(init_run *run, const pen_job **out_job, pen_dataset **out_dataset) {
    PEN_TRY(init_write(run));
    const pen_job_origin origin = {.path = run->path, .text = run->text};
    PEN_TRY(pen_job_open(&origin, run->context->arena, out_job));
    return pen_job_open_dataset(*out_job, PEN_DATASET_PART_TRAIN, run->context->arena, out_dataset);
}

static pen_status init_try(init_run *run) {
    const pen_job *job;
    pen_dataset *dataset = NULL;
    PEN_TRY(init_open(run, &job, &dataset));
    const pen_status status = init_try_job(run, job, dataset);
    pen_dataset_close(dataset);
    PEN_TRY(status);
    dataset = NULL; // few examples may leave none to evaluate on
    const pen_status kept =
        pen_job_open_dataset(job, PEN_DATASET_PART_EVAL, run->context->arena, &dataset);
    pen_dataset_close(dataset);
    return kept;
}

// The operator that makes the model's output; NULL: none does.
static const pen_op *init_find_last(const pen_graph *graph) {
    const pen_value *output = pen_graph_value(graph, pen_graph_output(graph, 0));
    if (output->kind != PEN_VALUE_COMPUTED) return NULL;
    return pen_graph_node(graph, output->producer)->op;
}

// Losses that may be meant, the likeliest first, ended by NULL: by what the labels are, and what
// the model's output is made by.
static const char *const *init_list_losses(const init_run *run, const pen_dataset_info *info) {
    static const char *const none[] = {"output", NULL};
    static const char *const classes[] = {"softmax_cross_entropy",
                                          "binary_cross_entropy_with_logits", NULL};
    static const char *const logs[] = {"negative_log_likelihood", "softmax_cross_entropy", NULL};
    static const char *const shares[] = {"binary_cross_entropy", "softmax_cross_entropy",
                                         "mean_squared_error", NULL};
    static const char *const numbers[] = {"mean_squared_error", "softmax_cross_entropy", NULL};
    const pen_op *last = init_find_last(run->model->graph);
    if (info->label_count == 0) return none;
    if (last == PEN_OP(log_softmax)) return logs;
    if (last == PEN_OP(sigmoid)) return shares;
    return info->labels[0].element == PEN_DATASET_INT64 ? classes : numbers;
}

// What the data are like decides how the model takes them.
static void init_look_at(init_run *run, const pen_dataset_info *info) {
    const pen_graph *graph = run->model->graph;
    const pen_shape *shape = &pen_value_type(graph, pen_graph_input(graph, 0))->shape;
    run->draft.example_count = info->example_count;
    run->draft.batch = pen_min_u64(INIT_BATCH, pen_max_u64(info->example_count / 2, 1));
    run->draft.flattens = shape->rank == 2 && info->inputs[0].rank > 1;
}

// Opens the data. A table may have words and empty fields: what it needs is found by trying, least
// first. Where nothing will do, what the plainest and the last said is wrong.
static pen_status init_open_data(init_run *run, const pen_job **out_job,
                                 pen_dataset **out_dataset) {
    static const struct {
        const char *categories;
        bool has_gaps;
    } forms[] = {{"one_hot", false}, {NULL, true}, {"one_hot", true}};
    const pen_status plain = init_open(run, out_job, out_dataset);
    if (run->data.kind != PEN_DATA_GUESS_CSV) return plain;
    if (pen_status_get_code(plain) != PEN_INVALID_INPUT) return plain;
    pen_status last = PEN_OK;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        pen_status_ignore(last, "the next form is tried");
        run->draft.categories = forms[i].categories;
        run->draft.has_gaps = forms[i].has_gaps;
        last = init_open(run, out_job, out_dataset);
        if (last == PEN_OK) break;
    }
    if (last != PEN_OK && strcmp(pen_status_message(last), pen_status_message(plain)) != 0) {
        return pen_status_join(plain, last);
    }
    pen_status_ignore(plain, "words or empty fields are what was wrong, or it is told");
    return last;
}

// The first loss that model and data go together with. Where there is none, `wrong` says why the
// first does not fit.
static pen_status init_try_losses(init_run *run, const char *const *losses) {
    for (uint32_t i = 0; losses[i] != NULL; i++) {
        run->draft.loss = losses[i];
        const pen_status status = init_try(run);
        if (status == PEN_OK) {
            pen_status_ignore(run->wrong, "another loss fits");
            run->wrong = PEN_OK;
            return PEN_OK;
        }
        const pen_status_code code = pen_status_get_code(status);
        if (code == PEN_OUT_OF_MEMORY || code == PEN_DOES_NOT_FIT) return status;
        if (run->wrong != PEN_OK) pen_status_ignore(status, "the first is told");
        if (run->wrong == PEN_OK) run->wrong = status;
    }
    return PEN_OK;
}

// What the job says of data and loss. Words that are too many columns for the model as one_hot may
// be right as one number each. Where nothing fits, the first is written.
static pen_status init_find_loss(init_run *run) {
    const pen_job *job;
    pen_dataset *dataset = NULL;
    run->context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(init_open_data(run, &job, &dataset));
    PEN_ASSERT(dataset != NULL);
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    init_look_at(run, info);
    const char *const *losses = init_list_losses(run, info);
    pen_dataset_close(dataset);
    PEN_TRY(init_try_losses(run, losses));
    if (run->wrong == PEN_OK) return PEN_OK;
    const char *categories = run->draft.categories;
    if (categories != NULL) {
        run->draft.categories = "index";
        PEN_TRY(init_try_losses(run, losses));
        if (run->wrong == PEN_OK) return PEN_OK;
    }
    run->draft.categories = categories;
    run->draft.loss = losses[0];
    return init_write(run);
}

static void init_say(const init_run *run) {
    char text[1024];
    if (run->data.kind == PEN_DATA_GUESS_NONE) {
        pen_log(PEN_LOG_NOTE, "%s: written; it needs data and a loss before `penstock train %s`",
                run->path, run->path);
        return;
    }
    if (run->wrong == PEN_OK) {
        pen_log(PEN_LOG_NOTE, "%s: %llu %s, loss %s; `penstock train %s` runs it", run->path,
                (unsigned long long)run->draft.example_count,
                run->draft.example_count == 1 ? "example" : "examples", run->draft.loss, run->path);
        return;
    }
    pen_status_format(run->wrong, text, sizeof text);
    for (size_t length = strlen(text); length > 0 && text[length - 1] == '\n'; length--)
        text[length - 1] = '\0';
    pen_log(PEN_LOG_WARNING, "%s is written, but model and data do not go together yet: %s",
            run->path, strncmp(text, "error: ", 7) == 0 ? text + 7 : text);
}

static pen_status init_work(init_run *run) {
    PEN_TRY(init_read_operands(run));
    if (run->data.kind == PEN_DATA_GUESS_NONE) {
        PEN_TRY(init_write(run));
    } else {
        PEN_TRY(init_find_loss(run));
    }
    run->context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_file_write_text(run->path, run->text));
    init_say(run);
    return PEN_OK;
}

// What is there already is found before the model is read.
static pen_status init_run_verb(pen_command_context *context, const void *options_given) {
    const init_options *options = options_given;
    init_run run = {.context = context, .options = options, .path = options->output};
    const pen_import_options import = {.evaluate = pen_reference_evaluate, .widens_halves = true};
    bool is_job;
    context->input_exit_code = PEN_EXIT_USAGE;
    if (access(run.path, F_OK) == 0 && !options->overwrite) {
        return pen_error(PEN_INVALID_INPUT,
                         "--output: found %.200s, which is there from before; another name keeps "
                         "both, --overwrite replaces it",
                         run.path);
    }
    PEN_TRY(init_check_apart(&run));
    PEN_TRY(pen_file_check_writable(run.path));
    PEN_TRY(pen_command_is_job(options->common.operands[0], context->arena, &is_job));
    if (is_job) {
        return pen_error(PEN_INVALID_INPUT, "%.200s is a job already: expected a model",
                         options->common.operands[0]);
    }
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_model_open(options->common.operands[0], &import, &run.model));
    const pen_status status = init_work(&run);
    pen_status_ignore(run.wrong, "said");
    pen_model_destroy(run.model);
    return status;
}

static const pen_cli_option init_cli_options[] = {
    PEN_CLI_VALUE('o', "output", "FILE", TEXT, init_options, output, "the job that is written",
                  .default_text = "job.yaml"),
    PEN_CLI_FLAG(0, "overwrite", init_options, overwrite, "replace a file that is there"),
};

const pen_command pen_command_init = {
    .name = "init",
    .summary = "write a job, with comments, for a model and its data",
    .table = {PEN_CLI_OPERANDS("MODEL [DATA ...]", 1, 64), PEN_CLI_OPTIONS(init_cli_options),
              .details =
                  "DATA is a folder of pictures with a folder for each class; NPY files, one "
                  "for each input of the model, then the labels, or NAME=FILE; a CSV file; "
                  "IDX files, images and labels; or a text. Of losses the first is written "
                  "that model and data go together with. Nothing is asked.\n",
              .examples = "penstock init net.pt2 x.npy y.npy\n"
                          "penstock init resnet.onnx pictures/\n"
                          "penstock init table.keras data.csv -o table.yaml\n"},
    .options_bytes = sizeof(init_options),
    .run = init_run_verb,
};
