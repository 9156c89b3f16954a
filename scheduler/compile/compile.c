#include "scheduler/compile/compile.h"

#include <string.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "graph/passes/fold_transposes.h"
#include "graph/passes/fuse/fuse_attention.h"
#include "graph/passes/fuse/fuse_layers.h"
#include "graph/passes/fuse/fuse_normalization.h"
#include "graph/passes/fuse/lower_einsum.h"
#include "graph/passes/gradient/build_versions.h"
#include "graph/passes/gradient/skip_stops.h"
#include "graph/passes/gradient/split_backward.h"
#include "graph/passes/hold_states.h"
#include "graph/passes/merge_duplicates.h"
#include "graph/passes/remove_dead.h"
#include "graph/passes/set_inference.h"
#include "graph/passes/skip_dropout.h"
#include "graph/verify.h"
#include "scheduler/compile/compile_pass.h"

// ---- the list

#define IN_TRAIN PEN_COMPILE_IN(PEN_COMPILE_TRAIN)
#define IN_LOSS (IN_TRAIN | PEN_COMPILE_IN(PEN_COMPILE_EVALUATE))
#define IN_PREDICT PEN_COMPILE_IN(PEN_COMPILE_PREDICT)
#define IN_PREFILL PEN_COMPILE_IN(PEN_COMPILE_PREFILL)
#define IN_DECODE PEN_COMPILE_IN(PEN_COMPILE_DECODE)
#define IN_RUN (IN_LOSS | IN_PREDICT | IN_PREFILL | IN_DECODE)
#define IN_FUSED (IN_RUN | PEN_COMPILE_IN(PEN_COMPILE_LOOK_FUSED))
#define IN_ALL (IN_FUSED | PEN_COMPILE_IN(PEN_COMPILE_LOOK))

static bool compile_has_weights(const pen_compile_request *request) {
    return request->weights != NULL;
}

static bool compile_freezes(const pen_compile_request *request) {
    return request->freeze != NULL;
}

static bool compile_collects(const pen_compile_request *request) {
    return request->collects;
}

static bool compile_is_asynchronous(const pen_compile_request *request) {
    return request->asynchrony.is_asynchronous;
}

static bool compile_has_groups(const pen_compile_request *request) {
    return request->optimizer.group_count > 0;
}

static bool compile_has_lora(const pen_compile_request *request) {
    return request->lora != NULL;
}

static bool compile_has_shards(const pen_compile_request *request) {
    return request->shard_count > 0;
}

static pen_status compile_lower_einsum(pen_compilation *compilation) {
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pen_lower_einsum(compilation->graph, &graph, &map));
    pen_compilation_follow(compilation, graph, map);
    return PEN_OK;
}

static pen_status compile_fold_transposes(pen_graph *graph) {
    pen_fold_transposes(graph);
    return PEN_OK;
}

static pen_status compile_fuse_layers(pen_compilation *compilation) {
    const pen_program *program = &compilation->program;
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pen_fuse_layers(compilation->graph, program->kept_count, program->kept, &graph, &map));
    pen_compilation_follow(compilation, graph, map);
    return PEN_OK;
}

static pen_status compile_verify(pen_graph *graph) {
    return pen_graph_verify(graph, &(pen_verify_options){.types = true});
}

// In the order in which they run. A new pass is a line here.
const pen_compile_pass pen_compile_passes[] = {
    {"import", "the model's file becomes a graph", IN_ALL, //
     .blamed = PEN_COMPILE_PART_MODEL, .run = pen_compile_import},
    {"check_lost", "refuses to train what an exporter has left of a model", IN_TRAIN,
     .blamed = PEN_COMPILE_PART_MODEL, .run = pen_compile_check_lost},
    {"load_weights", "first contents of parameters, from another file", IN_RUN,
     .runs = compile_has_weights, .blamed = PEN_COMPILE_PART_WEIGHTS,
     .run = pen_compile_load_weights},
    {"set_inference", "normalization uses its statistics, dropout passes on", IN_ALL & ~IN_TRAIN,
     .change = pen_set_inference},
    // a wrong type is the model's fault, whatever the job says: no line of the job is blamed
    {"check_types", "refuses parameters and inputs that no kernel takes", IN_RUN,
     .run = pen_compile_check_types},
    {"freeze", "parameters that the job freezes are not trained", IN_RUN, //
     .runs = compile_freezes, .blamed = PEN_COMPILE_PART_FREEZE, .run = pen_compile_freeze},
    {"freeze_groups", "each group has parameters; those of groups that freeze are not trained",
     IN_RUN, .runs = compile_has_groups, .run = pen_compile_group},
    {"check_input_names", "the data's inputs are the model's", IN_RUN,
     .blamed = PEN_COMPILE_PART_INPUTS, .run = pen_compile_check_input_names},
    {"infer_shapes", "all types and shapes; what is constant is folded", IN_ALL,
     .blamed = PEN_COMPILE_PART_SHAPES, .run = pen_compile_infer_shapes},
    {"check_examples", "examples have the shapes of the inputs", IN_RUN,
     .blamed = PEN_COMPILE_PART_INPUTS, .run = pen_compile_check_examples},
    {"keep_loss_values", "what the loss reads stays, under its name", IN_LOSS,
     .blamed = PEN_COMPILE_PART_LOSS, .run = pen_compile_keep_loss_values},
    {"lower_einsum", "einsums become sums, transposes and matrix products", IN_FUSED,
     .run = compile_lower_einsum},
    {"skip_dropout", "dropouts that drop nothing are read past", IN_FUSED,
     .change = pen_skip_dropout},
    {"skip_idle_stops", "stops of gradients that are 0 anyway are read past", IN_TRAIN,
     .change = pen_skip_idle_stops},
    {"skip_stops", "without gradients, stops of them are read past", IN_FUSED & ~IN_TRAIN,
     .change = pen_skip_stops},
    {"fold_transposes", "products read transposed matrices as they lie", IN_FUSED,
     .change = compile_fold_transposes},
    {"remove_unread", "what is not read goes: it would count as a reader", IN_ALL,
     .rewrite = pen_remove_dead},
    {"adapt", "weights that the job adapts get adapters, which are trained in their place", IN_RUN,
     .runs = compile_has_lora, .run = pen_compile_adapt},
    {"fuse_layers", "norms and activations in several nodes become one", IN_FUSED,
     .run = compile_fuse_layers},
    {"fuse_attention", "attention becomes one node that stores no scores", IN_FUSED,
     .rewrite = pen_fuse_attention},
    {"attach_loss", "the loss, and for classes the count of right answers", IN_LOSS,
     .blamed = PEN_COMPILE_PART_LOSS, .run = pen_compile_attach_loss},
    {"shard", "nodes that the job shards become slices of what they were", IN_RUN,
     .runs = compile_has_shards, .run = pen_compile_shard_nodes},
    {"hold_states", "what is read of a changing state is what it was", IN_RUN,
     .rewrite = pen_hold_states},
    {"keep_states", "evaluations leave states as they are", IN_RUN & ~IN_TRAIN,
     .change = pen_keep_states},
    {"keep_positions", "what a position reads of earlier ones is kept", IN_PREFILL,
     .run = pen_compile_keep_positions},
    {"decode_position", "one position, beside what is kept of earlier ones", IN_DECODE,
     .run = pen_compile_decode_position},
    {"build_gradients", "the backward pass", IN_TRAIN, .run = pen_compile_build_gradients},
    {"build_updates", "gradients add up, and the optimizer uses them", IN_TRAIN,
     .run = pen_compile_build_updates},
    {"skip_used_stops", "with gradients built, stops of them are read past", IN_TRAIN,
     .change = pen_skip_stops},
    {"check_statistics", "warns of batch normalizations that do not learn", IN_TRAIN,
     .run = pen_compile_check_statistics},
    {"read_lanes", "asynchronous lanes read parameters of their own", IN_TRAIN,
     .runs = compile_is_asynchronous, .rewrite = pen_read_lanes},
    {"keep_results", "what is asked for after a run stays", IN_FUSED,
     .run = pen_compile_keep_results},
    {"merge_duplicates", "each thing is computed once", IN_FUSED, .rewrite = pen_merge_duplicates},
    {"remove_dead", "what nobody needs goes", IN_FUSED, .run = pen_compile_remove_dead},
    {"fuse_normalization", "batch normalization takes in what follows it", IN_FUSED,
     .rewrite = pen_fuse_normalization},
    {"fuse_rows", "gradients of embeddings stay lists of rows", IN_FUSED,
     .run = pen_compile_fuse_rows},
    {"assign_layouts", "values lie in memory as the device likes them", IN_RUN,
     .runs = pen_compile_has_layouts, .run = pen_compile_assign_layouts},
    {"collect_outputs", "outputs are copies, to be made where they are collected", IN_PREDICT,
     .runs = compile_collects, .run = pen_compile_collect_outputs},
    {"split_backward", "tells the two halves of the backward pass apart", IN_FUSED,
     .change = pen_split_backward},
    {"verify", "proves the graph sound", IN_FUSED, .change = compile_verify},
    {"order", "the order in which nodes run", IN_FUSED, .run = pen_compile_order},
};

const uint32_t pen_compile_pass_count = sizeof pen_compile_passes / sizeof *pen_compile_passes;

bool pen_compile_pass_runs(const pen_compile_pass *pass, const pen_compile_request *request) {
    if ((pass->modes & PEN_COMPILE_IN(request->mode)) == 0) return false;
    return pass->runs == NULL || pass->runs(request);
}

// ---- the loop

static pen_value_id compile_moved(const pen_value_id *map, pen_value_id value) {
    return pen_value_is(value) ? map[value.index] : PEN_VALUE_NONE;
}

static void compile_move_all(const pen_value_id *map, uint32_t count, pen_value_id *values) {
    for (uint32_t i = 0; i < count; i++) {
        values[i] = compile_moved(map, values[i]);
    }
}

// All values that the compilation has noted so far are of the graph, and move with it. The old
// graph goes, and with it what the pass needed.
void pen_compilation_follow(pen_compilation *compilation, pen_graph *graph,
                            const pen_value_id *map) {
    pen_program *program = &compilation->program;
    const pen_graph *old = compilation->graph;
    compilation->graph = graph;
    if (map == NULL) return;
    compile_move_all(map, program->fed_count, compilation->inputs);
    compile_move_all(map, program->output_count, compilation->outputs);
    compile_move_all(map, program->kept_count, compilation->kept);
    compile_move_all(map, program->cached_count, compilation->cached);
    for (uint32_t i = 0; i < program->loss_count; i++) {
        pen_program_loss *loss = &compilation->losses[i];
        loss->value = compile_moved(map, loss->value);
        loss->labels = compile_moved(map, loss->labels);
        loss->scale = compile_moved(map, loss->scale);
    }
    pen_value_id *const values[] = {
        &program->loss, &program->accuracy, &program->loss_weight, &program->learning_rate,
        &program->step, &program->unscale,  &program->applied,     &program->position};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        *values[i] = compile_moved(map, *values[i]);
    }
    for (uint32_t i = 0; i < program->told_count; i++) {
        program->told[i].value = compile_moved(map, program->told[i].value);
    }
    compile_move_all(map, PEN_PROGRAM_SHARE_COUNT, program->shares);
    compile_move_all(map, PEN_METRIC_SEEN_COUNT, program->metrics.values);
    if (graph != old) pen_graph_release(old);
}

void pen_compilation_warn(pen_compilation *compilation, const char *warning) {
    pen_program *program = &compilation->program;
    if (program->warning_count == PEN_COMPILE_WARNINGS_LIMIT) return;
    compilation->warnings[program->warning_count++] = warning;
}

static pen_status compile_blame(const pen_compilation *compilation, pen_compile_part part,
                                uint32_t index, pen_status status) {
    const pen_compile_request *request = compilation->request;
    if (status == PEN_OK || part == PEN_COMPILE_PART_NONE || request->blame == NULL) return status;
    return request->blame(request->blame_context, part, index, status);
}

pen_status pen_compilation_blame(const pen_compilation *compilation, pen_compile_part part,
                                 pen_status status) {
    return compile_blame(compilation, part, 0, status);
}

pen_status pen_compilation_blame_loss(const pen_compilation *compilation, uint32_t index,
                                      pen_status status) {
    return compile_blame(compilation, PEN_COMPILE_PART_LOSS, index, status);
}

pen_status pen_compilation_blame_shard(const pen_compilation *compilation, uint32_t index,
                                       pen_status status) {
    return compile_blame(compilation, PEN_COMPILE_PART_SHARD, index, status);
}

pen_status pen_compilation_blame_group(const pen_compilation *compilation, uint32_t index,
                                       pen_status status) {
    return compile_blame(compilation, PEN_COMPILE_PART_GROUP, index, status);
}

static pen_status compile_run_pass(pen_compilation *compilation, const pen_compile_pass *pass) {
    if (pass->run != NULL) return pass->run(compilation);
    if (pass->change != NULL) return pass->change(compilation->graph);
    const pen_program *program = &compilation->program;
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pass->rewrite(compilation->graph, program->kept_count, program->kept, &graph, &map));
    pen_compilation_follow(compilation, graph, map);
    return PEN_OK;
}

static pen_status compile_run(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    for (uint32_t i = 0; i < pen_compile_pass_count; i++) {
        const pen_compile_pass *pass = &pen_compile_passes[i];
        if (!pen_compile_pass_runs(pass, request)) continue;
        PEN_TRY(
            pen_compilation_blame(compilation, pass->blamed, compile_run_pass(compilation, pass)));
        if (request->watch == NULL) continue;
        PEN_TRY(request->watch(request->watch_context, pass, compilation->graph));
    }
    return PEN_OK;
}

// ---- programs

// A program without any value yet.
static pen_compilation compile_begin(const pen_compile_request *request, pen_model *model) {
    pen_compilation compilation = {.request = request,
                                   .model = model,
                                   .program = {.microbatch_size = request->microbatch_size,
                                               .loss = PEN_VALUE_NONE,
                                               .accuracy = PEN_VALUE_NONE,
                                               .loss_weight = PEN_VALUE_NONE,
                                               .unscale = PEN_VALUE_NONE,
                                               .applied = PEN_VALUE_NONE,
                                               .learning_rate = PEN_VALUE_NONE,
                                               .position = PEN_VALUE_NONE,
                                               .step = PEN_VALUE_NONE}};
    for (uint32_t i = 0; i < PEN_METRIC_SEEN_COUNT; i++) {
        compilation.program.metrics.values[i] = PEN_VALUE_NONE;
    }
    for (uint32_t i = 0; i < PEN_PROGRAM_SHARE_COUNT; i++) {
        compilation.program.shares[i] = PEN_VALUE_NONE;
    }
    return compilation;
}

pen_status pen_compile_look(const pen_compile_request *request, pen_model *model,
                            const pen_graph **out_graph) {
    pen_compilation compilation = compile_begin(request, model);
    PEN_TRY(compile_run(&compilation));
    *out_graph = compilation.graph;
    return PEN_OK;
}

// What pen_program_destroy needs, kept beside the program.
typedef struct compile_owner {
    pen_program program; // first: a program is its owner
    pen_model *model;
    pen_weight_file *weights;
    const char *warnings[PEN_COMPILE_WARNINGS_LIMIT];
} compile_owner;

pen_status pen_compile(const pen_compile_request *request, const pen_program **out_program) {
    pen_compilation compilation = compile_begin(request, NULL);
    pen_status status = compile_run(&compilation);
    compile_owner *owner = NULL;
    if (status == PEN_OK) status = PEN_NEW(compilation.arena, 1, &owner);
    if (status != PEN_OK) {
        pen_weight_file_close(compilation.weights);
        pen_model_destroy(compilation.model);
        return pen_status_add_context(status, "while compiling %s", request->model_path);
    }
    *owner = (compile_owner){
        .program = compilation.program, .model = compilation.model, .weights = compilation.weights};
    memcpy(owner->warnings, compilation.warnings, sizeof owner->warnings);
    owner->program.warnings = owner->warnings;
    owner->program.held_bytes = pen_arena_bytes(compilation.arena);
    pen_memory_trim(); // of what the model's file was read with
    *out_program = &owner->program;
    return PEN_OK;
}

void pen_program_forget(const pen_program *program) {
    pen_model_forget(((const compile_owner *)(const void *)program)->model);
}

void pen_program_destroy(const pen_program *program) {
    if (program == NULL) return;
    const compile_owner *owner = (const compile_owner *)(const void *)program;
    pen_weight_file_close(owner->weights); // the owner itself goes with the model
    pen_model_destroy(owner->model);
}
