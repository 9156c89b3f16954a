#include "cli/pass_view.h"

#include <stdio.h>

#include "cli/training_job.h"
#include "device/reference/reference_evaluate.h"
#include "graph/dump/dump_dot.h"
#include "graph/dump/dump_text.h"
#include "scheduler/compile/compile_pass.h"
#include "scheduler/job/job_runner.h"

static const char *pass_name(size_t index) {
    return pen_compile_passes[index].name;
}

static pen_status pass_find(const char *name, pen_arena *arena, const pen_compile_pass **out_pass) {
    size_t index;
    PEN_TRY(pen_text_find_name("pass", name, pass_name, pen_compile_pass_count, arena, &index));
    *out_pass = &pen_compile_passes[index];
    return PEN_OK;
}

// ---- the list

// The forms of a model that a job runs.
static const struct {
    const char *name;
    pen_compile_mode mode;
} pass_modes[] = {{"train", PEN_COMPILE_TRAIN},
                  {"evaluate", PEN_COMPILE_EVALUATE},
                  {"predict", PEN_COMPILE_PREDICT},
                  {"prefill", PEN_COMPILE_PREFILL},
                  {"decode", PEN_COMPILE_DECODE}};

#define PASS_MODE_COUNT (sizeof pass_modes / sizeof *pass_modes)

static bool pass_runs(const pen_compile_pass *pass, pen_compile_request request, size_t mode) {
    request.mode = pass_modes[mode].mode;
    return pen_compile_pass_runs(pass, &request);
}

static pen_status pass_list_json(const pen_compile_request *request) {
    pen_json_writer json;
    pen_command_begin_json(&json, "inspect");
    pen_json_key_array(&json, "passes");
    for (uint32_t i = 0; i < pen_compile_pass_count; i++) {
        const pen_compile_pass *pass = &pen_compile_passes[i];
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "name", pass->name);
        pen_json_key_text(&json, "summary", pass->summary);
        for (size_t m = 0; m < PASS_MODE_COUNT; m++) {
            pen_json_key_bool(&json, pass_modes[m].name, pass_runs(pass, *request, m));
        }
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status pass_list(const pen_pass_view *view, const pen_compile_request *request) {
    if (view->json) return pass_list_json(request);
    printf("%-20s", "pass");
    for (size_t m = 0; m < PASS_MODE_COUNT; m++) {
        printf("%-10s", pass_modes[m].name);
    }
    printf("what it does\n");
    for (uint32_t i = 0; i < pen_compile_pass_count; i++) {
        const pen_compile_pass *pass = &pen_compile_passes[i];
        printf("%-20s", pass->name);
        for (size_t m = 0; m < PASS_MODE_COUNT; m++) {
            printf("%-10s", pass_runs(pass, *request, m) ? "runs" : "-");
        }
        printf("%s\n", pass->summary);
    }
    return fflush(stdout) == 0 ? PEN_OK : pen_error(PEN_IO, "cannot write to standard output");
}

// ---- the graph after a pass

pen_status pen_command_print_graph(const pen_graph *graph, bool is_dot, pen_arena *arena) {
    const char *text;
    PEN_TRY(is_dot ? pen_dump_dot(graph, arena, &text) : pen_dump_text(graph, arena, &text));
    if (fputs(text, stdout) == EOF || fflush(stdout) != 0) {
        return pen_error(PEN_IO, "cannot write to standard output");
    }
    return PEN_OK;
}

typedef struct pass_dump {
    const pen_pass_view *view;
    const pen_compile_pass *after;
    pen_arena *arena;
    bool was_printed;
} pass_dump;

static pen_status pass_print(void *context, const pen_compile_pass *pass, const pen_graph *graph) {
    pass_dump *dump = context;
    if (pass != dump->after) return PEN_OK;
    dump->was_printed = true;
    return pen_command_print_graph(graph, dump->view->is_dot, dump->arena);
}

// A pass that the compiler left out printed nothing, which the user is told.
static pen_status pass_check_printed(const pass_dump *dump) {
    if (dump->was_printed) return PEN_OK;
    PEN_ASSERT(dump->after != NULL);
    return pen_error(PEN_INVALID_INPUT,
                     "pass '%s' does not run for %s: `penstock inspect --passes` says which do; a "
                     "model alone is compiled to predict, a JOB to train",
                     dump->after->name, dump->view->path);
}

// ---- a model, a job

static pen_status pass_view_model(pen_command_context *context, const pen_pass_view *view,
                                  pass_dump *dump) {
    const pen_import_options import = {.evaluate = pen_reference_evaluate};
    pen_model_view_sizes sizes = view->sizes;
    const pen_graph *graph;
    pen_model *model;
    sizes.fused = true;
    sizes.watch = pass_print;
    sizes.watch_context = dump;
    PEN_TRY(pen_model_open(view->path, &import, &model));
    const pen_status status = view->after == NULL
                                  ? pass_list(view, &(pen_compile_request){.mode = 0})
                                  : pen_model_view(context, &sizes, model, &graph);
    pen_model_destroy(model);
    return status;
}

// Compiles as the training does on the first device, with layouts where all devices are of one
// kind. Without its data the model's own shapes must do.
static pen_status pass_compile_job(pen_command_context *context, const pen_pass_view *view,
                                   const pen_job *job, pen_dataset *dataset, pass_dump *dump) {
    const pen_dataset_info none = {.format = "none"};
    const pen_cluster_device_spec *devices = job->cluster.devices;
    pen_runner_options options;
    const pen_device_kind *kind;
    const pen_program *program = NULL;
    PEN_TRY(pen_job_runner_options(job, PEN_DATASET_PART_TRAIN,
                                   dataset == NULL ? &none : pen_dataset_get_info(dataset),
                                   context->arena, &options));
    pen_compile_request *request = &options.compile;
    PEN_TRY(pen_device_kind_find(options.device_kind, &kind));
    PEN_TRY(kind->open(&options.device, &request->device));
    pen_device *device = request->device;
    for (uint32_t d = 1; d < job->cluster.device_count; d++) {
        if (devices[d].kind != devices[0].kind) request->device = NULL;
    }
    request->is_whole = pen_engine_is_local(job);
    request->watch = pass_print;
    request->watch_context = dump;
    const pen_status status =
        view->after == NULL ? pass_list(view, request) : pen_compile(request, &program);
    pen_program_destroy(program);
    device->kind->close(device);
    return status;
}

static pen_status pass_view_job(pen_command_context *context, const pen_pass_view *view,
                                pass_dump *dump) {
    const pen_job *job;
    pen_dataset *dataset = NULL;
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_command_open_job(context, view->path, &job));
    context->input_exit_code = PEN_EXIT_MODEL;
    pen_status status = pen_job_open_dataset(job, PEN_DATASET_PART_TRAIN, context->arena, &dataset);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "the model's own shapes must do");
        status = PEN_OK;
    }
    if (status == PEN_OK) status = pass_compile_job(context, view, job, dataset, dump);
    pen_dataset_close(dataset);
    return status;
}

pen_status pen_pass_view_print(pen_command_context *context, const pen_pass_view *view) {
    pass_dump dump = {.view = view, .arena = context->arena};
    bool is_job;
    context->input_exit_code = PEN_EXIT_USAGE;
    if (view->path == NULL) return pass_list(view, &(pen_compile_request){.mode = 0});
    if (view->after != NULL) PEN_TRY(pass_find(view->after, context->arena, &dump.after));
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_command_is_job(view->path, context->arena, &is_job));
    PEN_TRY(is_job ? pass_view_job(context, view, &dump) : pass_view_model(context, view, &dump));
    context->input_exit_code = PEN_EXIT_USAGE;
    return view->after == NULL ? PEN_OK : pass_check_printed(&dump);
}
