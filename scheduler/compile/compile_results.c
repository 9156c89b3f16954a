// The results of a program: what must survive a run, in which layouts and in which order it is
// computed.
#include "graph/analysis/execution_order.h"
#include "graph/graph.h"
#include "graph/passes/fuse/fuse_rows.h"
#include "scheduler/compile/compile_pass.h"

// Lists the model's inputs and outputs, and keeps what is asked for after a run: the outputs,
// unless the program trains, the loss and the accuracy.
pen_status pen_compile_keep_results(pen_compilation *compilation) {
    const pen_graph *graph = compilation->graph;
    pen_program *program = &compilation->program;
    const bool trains = compilation->request->mode == PEN_COMPILE_TRAIN;
    const uint32_t input_count = pen_graph_input_count(graph);
    program->output_count = trains ? 0 : pen_graph_output_count(graph);
    PEN_TRY(PEN_NEW(compilation->arena, input_count, &compilation->inputs));
    PEN_TRY(PEN_NEW(compilation->arena, program->output_count, &compilation->outputs));
    PEN_TRY(PEN_NEW(compilation->arena, (size_t)program->output_count + 2, &compilation->kept));
    for (uint32_t i = 0; i < input_count; i++) {
        const pen_value_id input = pen_graph_input(graph, i);
        if (pen_value_same(input, program->labels)) continue;
        compilation->inputs[program->input_count++] = input;
    }
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < program->output_count; i++) {
        compilation->outputs[i] = pen_graph_output(graph, i);
        compilation->kept[kept_count++] = compilation->outputs[i];
    }
    if (pen_value_is(program->loss)) compilation->kept[kept_count++] = program->loss;
    if (pen_value_is(program->accuracy)) compilation->kept[kept_count++] = program->accuracy;
    program->inputs = compilation->inputs;
    program->outputs = compilation->outputs;
    program->kept = compilation->kept;
    program->kept_count = kept_count;
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
