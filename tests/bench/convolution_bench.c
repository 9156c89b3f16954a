// Convolutions of the residual networks, layer by layer, on the cpu device: milliseconds and
// GFLOP/s (of the direct algorithm) of the forward pass and of both backward halves, operands in
// the layouts that the device wants.
//
//   convolution_bench [THREADS [BATCH]]     default: 1 8
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/integer.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/assign_layouts.h"

typedef struct bench_layer {
    const char *network;
    int times; // in the network
    int in, out, size, kernel, stride;
} bench_layer;

static const bench_layer bench_layers[] = {
    {"both", 1, 3, 64, 224, 7, 2},        {"resnet18", 4, 64, 64, 56, 3, 1},
    {"resnet18", 1, 64, 128, 56, 3, 2},   {"resnet18", 3, 128, 128, 28, 3, 1},
    {"resnet18", 1, 128, 256, 28, 3, 2},  {"resnet18", 3, 256, 256, 14, 3, 1},
    {"resnet18", 1, 256, 512, 14, 3, 2},  {"resnet18", 3, 512, 512, 7, 3, 1},
    {"resnet50", 4, 64, 256, 56, 1, 1},   {"resnet50", 2, 256, 64, 56, 1, 1},
    {"resnet50", 1, 128, 128, 56, 3, 2},  {"resnet50", 1, 256, 512, 56, 1, 2},
    {"resnet50", 4, 128, 512, 28, 1, 1},  {"resnet50", 3, 512, 128, 28, 1, 1},
    {"resnet50", 1, 256, 256, 28, 3, 2},  {"resnet50", 1, 512, 1024, 28, 1, 2},
    {"resnet50", 6, 256, 1024, 14, 1, 1}, {"resnet50", 5, 1024, 256, 14, 1, 1},
    {"resnet50", 1, 512, 512, 14, 3, 2},  {"resnet50", 1, 1024, 2048, 14, 1, 2},
    {"resnet50", 3, 512, 2048, 7, 1, 1},  {"resnet50", 2, 2048, 512, 7, 1, 1},
};

static const char *const bench_ops[] = {"conv", "conv_backward_input", "conv_backward_weight"};

typedef struct bench_run {
    const pen_device_kind *kind;
    pen_device *device;
    pen_arena *arena;
    int64_t batch;
} bench_run;

static pen_status bench_input(pen_graph *graph, const char *name, const int64_t dims[4],
                              pen_value_id *out_value) {
    const pen_value value = {
        .name = name, .kind = PEN_VALUE_INPUT, .type = pen_tensor_type_make(PEN_FLOAT32, 4, dims)};
    return pen_graph_add_value(graph, &value, out_value);
}

// One node of `op` for `layer`, laid out as the device wants; *out_node in *out_graph.
static pen_status bench_graph(const bench_run *run, const bench_layer *layer, const char *op,
                              const pen_graph **out_graph, pen_node_id *out_node) {
    const int64_t pad = layer->kernel / 2;
    const int64_t after = (layer->size + 2 * pad - layer->kernel) / layer->stride + 1;
    const int64_t x[] = {run->batch, layer->in, layer->size, layer->size};
    const int64_t w[] = {layer->out, layer->in, layer->kernel, layer->kernel};
    const int64_t y[] = {run->batch, layer->out, after, after};
    const int64_t kernel[] = {layer->kernel, layer->kernel}, pads[] = {pad, pad, pad, pad};
    const int64_t strides[] = {layer->stride, layer->stride};
    const bool to_input = strcmp(op, "conv_backward_input") == 0;
    const bool to_weight = strcmp(op, "conv_backward_weight") == 0;
    const pen_attribute_given attributes[] = {
        pen_attribute_ints("kernel_shape", 2, kernel), pen_attribute_ints("pads", 4, pads),
        pen_attribute_ints("strides", 2, strides), pen_attribute_ints("input_shape", 4, x)};
    pen_graph *graph, *laid_out;
    const pen_value_id *values;
    pen_value_id inputs[2], output;
    PEN_TRY(pen_graph_create(run->arena, "bench", &graph));
    PEN_TRY(bench_input(graph, "a", to_input ? y : x, &inputs[0]));
    PEN_TRY(bench_input(graph, "b", to_weight ? y : w, &inputs[1]));
    pen_node_spec spec = pen_node_spec_make(op, "subject");
    spec.inputs = inputs;
    spec.input_count = 2;
    spec.attributes = attributes;
    spec.attribute_count = to_input ? 4 : 3;
    PEN_TRY(pen_graph_add_simple(graph, &spec, &output));
    PEN_TRY(pen_assign_layouts(graph, run->kind->layout_rules(run->device), &laid_out, &values));
    *out_graph = laid_out;
    return pen_graph_find_node(laid_out, "subject", out_node);
}

static pen_status bench_time(const bench_run *run, const pen_graph *graph, pen_node_id node,
                             double *out_seconds) {
    const pen_device_kind *kind = run->kind;
    const pen_node *subject = pen_graph_node(graph, node);
    pen_operand inputs[2], outputs[1], workspace = {0};
    pen_kernel *kernel;
    pen_launch *launch;
    PEN_TRY(kind->prepare(run->device, graph, node, run->arena, &kernel));
    uint64_t end = kind->workspace_bytes(kernel);
    for (uint32_t i = 0; i < 3; i++) {
        const pen_value_id value = i < 2 ? subject->inputs[i] : subject->outputs[0];
        end = pen_align_up(end, 64);
        *(i < 2 ? &inputs[i] : &outputs[0]) = (pen_operand){.offset = end};
        end += kind->value_bytes(run->device, graph, value);
    }
    pen_buffer *buffer;
    PEN_TRY(kind->buffer_create(run->device, end, &buffer));
    inputs[0].buffer = inputs[1].buffer = outputs[0].buffer = workspace.buffer = buffer;
    const pen_binding binding = {inputs, outputs, workspace};
    PEN_TRY(kind->bind(run->device, kernel, &binding, run->arena, &launch));
    const pen_run_context context = {.first_microbatch = true};
    *out_seconds = 1e9;
    for (int round = 0; round < 8; round++) {
        const double start = pen_clock_seconds();
        PEN_TRY(kind->enqueue(run->device, launch, &context));
        PEN_TRY(kind->synchronize(run->device));
        const double seconds = pen_clock_seconds() - start;
        if (seconds < *out_seconds) *out_seconds = seconds;
    }
    kind->release(run->device, kernel);
    kind->buffer_destroy(run->device, buffer);
    return PEN_OK;
}

static pen_status bench_layer_run(const bench_run *run, const bench_layer *layer,
                                  double totals[3]) {
    printf("%-8s %2dx %4d -> %4d, %3d, %dx%d/%d ", layer->network, layer->times, layer->in,
           layer->out, layer->size, layer->kernel, layer->kernel, layer->stride);
    for (int pass = 0; pass < 3; pass++) {
        const pen_graph *graph;
        pen_node_id node;
        double seconds;
        if (layer->in == 3 && pass == 1) { // nobody needs the gradient of an image
            printf("                   ");
            continue;
        }
        PEN_TRY(bench_graph(run, layer, bench_ops[pass], &graph, &node));
        PEN_TRY(bench_time(run, graph, node, &seconds));
        totals[pass] += seconds * layer->times;
        printf(" %7.2f ms %6.1f G", seconds * 1e3,
               (double)pen_node_flops(graph, node) / seconds * 1e-9);
        fflush(stdout);
    }
    printf("\n");
    return PEN_OK;
}

static pen_status bench_all(const pen_device_options *options, int64_t batch) {
    bench_run run = {.batch = batch};
    double totals[3] = {0};
    PEN_TRY(pen_device_kind_find("cpu", &run.kind));
    PEN_TRY(run.kind->open(options, &run.device));
    pen_status status = pen_arena_create(&run.arena);
    printf("network      in      out size window            forward      backward input     "
           "backward weight\n");
    const size_t count = sizeof bench_layers / sizeof *bench_layers;
    for (size_t i = 0; status == PEN_OK && i < count; i++) {
        status = bench_layer_run(&run, &bench_layers[i], totals);
    }
    printf("together, ms: %.1f %.1f %.1f\n", totals[0] * 1e3, totals[1] * 1e3, totals[2] * 1e3);
    pen_arena_destroy(run.arena);
    run.kind->close(run.device);
    return status;
}

int main(int argument_count, char **arguments) {
    const int threads = argument_count > 1 ? atoi(arguments[1]) : 1;
    const int batch = argument_count > 2 ? atoi(arguments[2]) : 8;
    if (threads < 1 || batch < 1) {
        fprintf(stderr, "usage: convolution_bench [THREADS [BATCH]]\n");
        return 2;
    }
    const pen_device_options options = {.name = "bench", .thread_count = (uint32_t)threads};
    const pen_status status = bench_all(&options, batch);
    if (status == PEN_OK) return 0;
    fprintf(stderr, "%s\n", pen_status_message(status));
    return 1;
}
