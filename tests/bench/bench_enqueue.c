// What it costs to enqueue a kernel: a chain of the smallest additions on the cpu device, run over
// and over. Prints nanoseconds a node, and fails above a limit given in nanoseconds.
//   bench_enqueue [LIMIT]
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "device/cpu/cpu_device.h"
#include "graph/graph.h"

#define BENCH_NODES 1000
#define BENCH_ROUNDS 200

typedef struct bench {
    const pen_device_kind *kind;
    pen_device *device;
    pen_graph *graph;
    pen_buffer *buffer;
    pen_launch *launches[BENCH_NODES];
} bench;

static pen_status bench_build(bench *b, pen_arena *arena) {
    pen_value_id value;
    PEN_TRY(pen_graph_create(arena, "chain", &b->graph));
    const pen_value input = {
        .name = "x", .kind = PEN_VALUE_INPUT, .type = {PEN_FLOAT32, {.rank = 1, .dims = {1}}}};
    PEN_TRY(pen_graph_add_value(b->graph, &input, &value));
    for (uint32_t n = 0; n < BENCH_NODES; n++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", n);
        pen_node_spec spec = pen_node_spec_make("add", name);
        const pen_value_id inputs[2] = {value, value};
        spec.inputs = inputs;
        spec.input_count = 2;
        PEN_TRY(pen_graph_add_simple(b->graph, &spec, &value));
    }
    return PEN_OK;
}

static pen_status bench_bind(bench *b, pen_arena *arena) {
    PEN_TRY(b->kind->buffer_create(b->device, 4096, &b->buffer));
    for (uint32_t n = 0; n < BENCH_NODES; n++) {
        pen_kernel *kernel;
        const pen_operand x = {b->buffer, n % 2 == 0 ? 0 : 64};
        const pen_operand inputs[2] = {x, x}, output = {b->buffer, 64 - x.offset};
        const pen_binding binding = {inputs, &output, {NULL, 0}};
        PEN_TRY(b->kind->prepare(b->device, b->graph, (pen_node_id){n}, arena, &kernel));
        PEN_TRY(b->kind->bind(b->device, kernel, &binding, arena, &b->launches[n]));
    }
    return PEN_OK;
}

// The least time of a round, in nanoseconds a node.
static pen_status bench_time(const bench *b, double *out_nanoseconds) {
    const pen_run_context run = {.first_microbatch = true};
    double least = 1e30;
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        const double start = pen_clock_seconds();
        for (uint32_t n = 0; n < BENCH_NODES; n++) {
            PEN_TRY(b->kind->enqueue(b->device, b->launches[n], &run));
        }
        const double seconds = pen_clock_seconds() - start;
        if (seconds < least) least = seconds;
    }
    *out_nanoseconds = least * 1e9 / BENCH_NODES;
    return PEN_OK;
}

static pen_status bench_run(bench *b, pen_arena *arena, double *out_nanoseconds) {
    PEN_TRY(bench_build(b, arena));
    PEN_TRY(bench_bind(b, arena));
    return bench_time(b, out_nanoseconds);
}

int main(int argument_count, char **arguments) {
    bench b = {.kind = &pen_cpu_device_kind};
    const pen_device_options options = {.name = "bench", .thread_count = 2};
    const double limit = argument_count > 1 ? atof(arguments[1]) : 1e30;
    double nanoseconds = 0;
    pen_arena *arena = NULL;
    pen_cpu_process_init();
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = b.kind->open(&options, &b.device);
    if (status == PEN_OK) status = bench_run(&b, arena, &nanoseconds);
    if (status != PEN_OK) {
        fprintf(stderr, "bench_enqueue: %s\n", pen_status_message(status));
        pen_status_ignore(status, "the program ends");
        return EXIT_FAILURE;
    }
    printf("enqueue: %.1f ns a node\n", nanoseconds);
    b.kind->buffer_destroy(b.device, b.buffer);
    b.kind->close(b.device);
    pen_arena_destroy(arena);
    return nanoseconds <= limit ? EXIT_SUCCESS : EXIT_FAILURE;
}
