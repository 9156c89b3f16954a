// The results of a program: what must survive a run, in which layouts and in which order it is
// computed.
#include "graph/analysis/execution_order.h"
#include "graph/graph.h"
#include "graph/op_known.h"
#include "graph/passes/fuse/fuse_rows.h"
#include "graph/passes/remove_dead.h"
#include "scheduler/compile/compile_pass.h"

// Whether the value is fed for a loss: then it is none of the model's inputs.
static bool results_is_of_loss(const pen_program *program, pen_value_id input) {
    for (uint32_t i = 0; i < program->loss_count; i++) {
        const pen_program_loss *loss = &program->losses[i];
        if (pen_value_same(input, loss->labels) || pen_value_same(input, loss->scale)) return true;
    }
    return false;
}

// The model's inputs first, in their order.
static pen_status results_list_inputs(pen_compilation *compilation) {
    const pen_graph *graph = compilation->graph;
    pen_program *program = &compilation->program;
    const uint32_t count = pen_graph_input_count(graph);
    PEN_TRY(PEN_NEW(compilation->arena, count, &compilation->inputs));
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < count; i++) {
            const pen_value_id input = pen_graph_input(graph, i);
            if (results_is_of_loss(program, input) != (round == 1)) continue;
            compilation->inputs[program->fed_count++] = input;
        }
        if (round == 0) program->input_count = program->fed_count;
    }
    program->inputs = compilation->inputs;
    return PEN_OK;
}

// What metrics see may be an output, which is kept already.
static void results_keep_seen(pen_compilation *compilation, pen_value_id value) {
    pen_program *program = &compilation->program;
    for (uint32_t i = 0; i < program->kept_count; i++) {
        if (pen_value_same(compilation->kept[i], value)) return;
    }
    if (pen_value_is(value)) compilation->kept[program->kept_count++] = value;
}

// What is told of the losses: their sum, each where there are several, and the accuracy; and what
// metrics are counted from.
static void results_keep_losses(pen_compilation *compilation) {
    pen_program *program = &compilation->program;
    uint32_t count = program->kept_count;
    if (pen_value_is(program->loss)) compilation->kept[count++] = program->loss;
    if (pen_value_is(program->accuracy)) compilation->kept[count++] = program->accuracy;
    for (uint32_t i = 0; i < program->term_count; i++) {
        compilation->kept[count++] = program->losses[i].value;
    }
    program->kept_count = count;
    for (uint32_t i = 0; i < program->told_count; i++) { // one may be the loss itself
        results_keep_seen(compilation, program->told[i].value);
    }
    for (uint32_t i = 0; i < PEN_PROGRAM_SHARE_COUNT; i++) {
        results_keep_seen(compilation, program->shares[i]);
    }
    for (uint32_t i = 0; i < PEN_METRIC_SEEN_COUNT; i++) {
        results_keep_seen(compilation, program->metrics.values[i]);
    }
}

// Lists the model's inputs and outputs, and keeps what is asked for after a run: the outputs,
// unless the program trains, the loss and the accuracy.
pen_status pen_compile_keep_results(pen_compilation *compilation) {
    const pen_graph *graph = compilation->graph;
    pen_program *program = &compilation->program;
    const bool trains = compilation->request->mode == PEN_COMPILE_TRAIN;
    program->output_count = trains ? 0 : pen_graph_output_count(graph);
    PEN_TRY(results_list_inputs(compilation));
    PEN_TRY(PEN_NEW(compilation->arena, program->output_count, &compilation->outputs));
    PEN_TRY(PEN_NEW(compilation->arena,
                    (size_t)program->output_count + program->cached_count + 3 +
                        program->loss_count + program->told_count + PEN_PROGRAM_SHARE_COUNT +
                        PEN_METRIC_SEEN_COUNT,
                    &compilation->kept));
    for (uint32_t i = 0; i < program->output_count; i++) {
        compilation->outputs[i] = pen_graph_output(graph, i);
        compilation->kept[i] = compilation->outputs[i];
    }
    program->kept_count = program->output_count;
    if (compilation->request->mode == PEN_COMPILE_PREFILL) {
        for (uint32_t i = 0; i < program->cached_count; i++)
            compilation->kept[program->kept_count++] = compilation->cached[i];
    }
    results_keep_losses(compilation);
    results_keep_seen(compilation, program->applied);
    program->outputs = compilation->outputs;
    program->kept = compilation->kept;
    return PEN_OK;
}

// In a training only losses and updates are asked for. Outputs that no loss is taken of would be
// placed, counted and sent about, but never run.
pen_status pen_compile_remove_dead(pen_compilation *compilation) {
    const pen_program *program = &compilation->program;
    pen_graph *graph;
    const pen_value_id *map;
    if (compilation->request->mode == PEN_COMPILE_TRAIN) {
        PEN_TRY(
            pen_remove_idle(compilation->graph, program->kept_count, program->kept, &graph, &map));
    } else {
        PEN_TRY(
            pen_remove_dead(compilation->graph, program->kept_count, program->kept, &graph, &map));
    }
    pen_compilation_follow(compilation, graph, map);
    return PEN_OK;
}

// Updates take rows only in a program that is not cut and has one microbatch.
pen_status pen_compile_fuse_rows(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    const pen_program *program = &compilation->program;
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pen_fuse_rows(compilation->graph, program->kept_count, program->kept,
                          request->is_whole && !request->accumulate, &graph, &map));
    pen_compilation_follow(compilation, graph, map);
    return PEN_OK;
}

static const pen_layout_rules *results_layout_rules(const pen_compile_request *request) {
    pen_device *device = request->device;
    if (device == NULL || device->kind->layout_rules == NULL) return NULL;
    return device->kind->layout_rules(device);
}

bool pen_compile_has_layouts(const pen_compile_request *request) {
    return results_layout_rules(request) != NULL;
}

pen_status pen_compile_assign_layouts(pen_compilation *compilation) {
    pen_graph *graph;
    const pen_value_id *map;
    const pen_layout_rules *rules = results_layout_rules(compilation->request);
    PEN_TRY(pen_status_add_context(pen_assign_layouts(compilation->graph, rules, &graph, &map),
                                   "while assigning layouts"));
    pen_compilation_follow(compilation, graph, map);
    return PEN_OK;
}

// A copy of each output, which keeps the output's name but for a suffix. Whoever cuts the program
// may have the copies made on another device than the outputs: then these travel as all values do.
pen_status pen_compile_collect_outputs(pen_compilation *compilation) {
    pen_program *program = &compilation->program;
    pen_graph *graph = compilation->graph;
    for (uint32_t i = 0; i < program->output_count; i++) {
        const pen_value_id output = compilation->outputs[i];
        const pen_layout layout = pen_graph_value(graph, output)->layout;
        const char *name;
        PEN_TRY(pen_arena_format(compilation->arena, &name, "%s/collected",
                                 pen_value_name(graph, output)));
        pen_node_spec spec = pen_node_spec_of(PEN_OP(copy), name);
        spec.source = pen_graph_value(graph, output)->source;
        spec.inputs = &output;
        spec.input_count = 1;
        spec.output_count = 1;
        spec.output_names = &name;
        PEN_TRY(pen_graph_add_simple(graph, &spec, &compilation->outputs[i]));
        pen_graph_set_layout(graph, compilation->outputs[i], layout);
        compilation->kept[i] = compilation->outputs[i];
    }
    return PEN_OK;
}

pen_status pen_compile_order(pen_compilation *compilation) {
    pen_program *program = &compilation->program;
    pen_execution_order order;
    const pen_execution_options options = {.mix_updates = !compilation->request->accumulate,
                                           .kept = program->kept,
                                           .kept_count = program->kept_count};
    PEN_TRY(pen_execution_order_build(compilation->graph, &options, compilation->arena, &order));
    program->graph = compilation->graph;
    program->order = order.nodes;
    program->order_count = order.count;
    program->update_first = order.update_first;
    return PEN_OK;
}
