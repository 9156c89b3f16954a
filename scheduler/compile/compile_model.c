// The model: its file and first weights, whether it can run at all, and what of it stays as it is.
#include "device/reference/reference_evaluate.h"
#include "graph/analysis/training_types.h"
#include "graph/passes/gradient/freeze_matching.h"
#include "graph/passes/gradient/match_groups.h"
#include "scheduler/compile/compile_pass.h"

// Opens the model, unless the caller has it open, and notes its batch, its pins and its warnings.
pen_status pen_compile_import(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    pen_program *program = &compilation->program;
    if (compilation->model == NULL) {
        pen_import_options options = request->import;
        options.dropout_trains = request->mode == PEN_COMPILE_TRAIN;
        options.evaluate = pen_reference_evaluate;
        options.widens_inputs = true;
        PEN_TRY(pen_model_open(request->model_path, &options, &compilation->model));
    }
    const pen_model *model = compilation->model;
    compilation->arena = model->arena;
    compilation->graph = model->graph;
    program->batch_symbol = model->batch_symbol;
    program->pins = model->pins;
    program->pin_count = model->pin_count;
    for (uint32_t i = 0; i < model->warning_count; i++) {
        pen_compilation_warn(compilation, model->warnings[i]);
    }
    return PEN_OK;
}

// Types that are not the model's are said, as those of a model's own file are.
pen_status pen_compile_load_weights(pen_compilation *compilation) {
    const pen_weight_options *options = compilation->request->weights;
    const char *warning;
    PEN_TRY(pen_weight_file_apply(options, compilation->model, &compilation->weights));
    const uint32_t count = pen_weight_file_halves_count(compilation->weights);
    if (count == 0) return PEN_OK;
    PEN_TRY(pen_arena_format(compilation->arena, &warning,
                             "%u tensor%s of '%s' %s float16 or bfloat16; %s read as float32",
                             count, count == 1 ? "" : "s", options->path, count == 1 ? "is" : "are",
                             count == 1 ? "it is" : "all are"));
    pen_compilation_warn(compilation, warning);
    return PEN_OK;
}

pen_status pen_compile_check_types(pen_compilation *compilation) {
    PEN_TRY(pen_check_parameter_types(compilation->graph));
    return pen_check_input_types(compilation->graph);
}

pen_status pen_compile_freeze(pen_compilation *compilation) {
    return pen_freeze_matching(compilation->graph, compilation->request->freeze);
}

// Where there are adapters, a group may be of these: whether all have parameters is seen then.
pen_status pen_compile_group(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    uint32_t group = 0;
    pen_status status = PEN_OK;
    if (request->lora == NULL) {
        status =
            pen_check_groups(compilation->graph, &request->optimizer, compilation->arena, &group);
    }
    if (status == PEN_OK) {
        status =
            pen_freeze_groups(compilation->graph, &request->optimizer, compilation->arena, &group);
    }
    return pen_compilation_blame_group(compilation, group, status);
}
