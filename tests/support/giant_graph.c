#include "tests/support/giant_graph.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"

#define GIANT_FLOPS 50e12     // a second, on a device of rate 1
#define GIANT_BANDWIDTH 100e9 // bytes a second, in and out alike
#define GIANT_ELEMENT 2.0     // bytes
#define GIANT_STATE 8.0       // bytes kept for each byte of parameters: gradient and optimizer
#define GIANT_BLOCK 4096      // nodes and edges of a block, at most

// One operator of the forward pass.
typedef struct giant_node {
    double flops;
    double elements;   // of the result
    double parameters; // elements
} giant_node;

typedef struct giant_build {
    const giant_graph_options *options;
    giant_node *nodes;
    uint32_t node_count;
    uint32_t parameter_count; // nodes that have some
    pen_problem_edge *edges;
    uint32_t edge_count;
    uint64_t thrown;
} giant_build;

static double giant_uniform(giant_build *build, double low, double high) {
    const pen_random_key key = {build->options->seed, pen_random_stream("giant graph", 0, 0)};
    return low + (high - low) * (double)pen_random_uniform(key, build->thrown++);
}

static uint32_t giant_between(giant_build *build, uint32_t low, uint32_t high) {
    return low + (uint32_t)giant_uniform(build, 0.0, (double)(high - low) + 0.999);
}

static void giant_link(giant_build *build, uint32_t source, uint32_t target) {
    build->edges[build->edge_count++] = (pen_problem_edge){source, target};
}

// A node that reads `input`; measured times scatter about the formula.
static uint32_t giant_add(giant_build *build, uint32_t input, double flops, double elements,
                          double parameters) {
    const uint32_t id = build->node_count++;
    build->nodes[id] = (giant_node){(flops + 8.0 * elements) * giant_uniform(build, 0.8, 1.25),
                                    elements, parameters};
    build->parameter_count += parameters > 0.0;
    if (input != id) giant_link(build, input, id);
    return id;
}

// Backward mirrors forward, and each node with parameters has an update.
static uint64_t giant_total(const giant_build *build) {
    return 2 * (uint64_t)build->node_count + build->parameter_count;
}

// ---- transformers

typedef struct giant_shape {
    double tokens;
    double width;
    uint32_t head_count;
} giant_shape;

static uint32_t giant_attention(giant_build *build, const giant_shape *shape, uint32_t input) {
    const double size = shape->tokens * shape->width;
    const double head = shape->width / shape->head_count;
    const double scores = shape->tokens * 512.0; // in windows
    uint32_t project[3];
    const uint32_t norm = giant_add(build, input, 8.0 * size, size, 2.0 * shape->width);
    for (int i = 0; i < 3; i++) {
        project[i] =
            giant_add(build, norm, 2.0 * size * shape->width, size, shape->width * shape->width);
    }
    const uint32_t joined = build->node_count;
    giant_add(build, joined, 0.0, size, 0.0);
    for (uint32_t h = 0; h < shape->head_count; h++) {
        const uint32_t score = giant_add(build, project[0], 2.0 * scores * head, scores, 0.0);
        giant_link(build, project[1], score);
        const uint32_t softmax = giant_add(build, score, 5.0 * scores, scores, 0.0);
        const uint32_t context =
            giant_add(build, softmax, 2.0 * scores * head, shape->tokens * head, 0.0);
        giant_link(build, project[2], context);
        giant_link(build, context, joined);
    }
    const uint32_t out =
        giant_add(build, joined, 2.0 * size * shape->width, size, shape->width * shape->width);
    const uint32_t sum = giant_add(build, out, 0.0, size, 0.0);
    giant_link(build, input, sum);
    return sum;
}

static uint32_t giant_feed_forward(giant_build *build, const giant_shape *shape, uint32_t input,
                                   uint32_t expert_count) {
    const double tokens = shape->tokens / expert_count * (expert_count > 1 ? 2.0 : 1.0);
    const double size = shape->tokens * shape->width;
    const double weights = 4.0 * shape->width * shape->width;
    const uint32_t norm = giant_add(build, input, 8.0 * size, size, 2.0 * shape->width);
    const uint32_t sum = build->node_count;
    giant_add(build, sum, 0.0, size, 0.0);
    for (uint32_t e = 0; e < expert_count; e++) {
        const double used = tokens * (expert_count > 1 ? giant_uniform(build, 0.5, 1.5) : 1.0);
        const double hidden = 4.0 * used * shape->width;
        uint32_t at = norm;
        if (expert_count > 1) at = giant_add(build, at, 0.0, used * shape->width, 0.0);
        at = giant_add(build, at, 2.0 * hidden * shape->width, hidden, weights);
        at = giant_add(build, at, 8.0 * hidden, hidden, 0.0);
        at = giant_add(build, at, 2.0 * hidden * shape->width, used * shape->width, weights);
        giant_link(build, at, sum);
    }
    giant_link(build, input, sum);
    return sum;
}

static uint32_t giant_transformer_block(giant_build *build, uint32_t input) {
    const giant_shape shape = {.tokens = 2048.0,
                               .width = 1024.0 * giant_between(build, 2, 4),
                               .head_count = 4 * giant_between(build, 1, 4)};
    const bool has_experts = giant_uniform(build, 0.0, 1.0) < 0.15;
    const uint32_t middle = giant_attention(build, &shape, input);
    return giant_feed_forward(build, &shape, middle,
                              has_experts ? 4 * giant_between(build, 1, 3) : 1);
}

// ---- convolutions

// Convolution, normalization, activation.
static uint32_t giant_convolution(giant_build *build, uint32_t input, double pixels, double from,
                                  double to, double kernel) {
    const double size = pixels * to;
    uint32_t at = giant_add(build, input, 2.0 * size * from * kernel, size, from * to * kernel);
    at = giant_add(build, at, 8.0 * size, size, 2.0 * to);
    return giant_add(build, at, size, size, 0.0);
}

static uint32_t giant_branching_block(giant_build *build, uint32_t input) {
    // most blocks of deep networks work on small pictures with many channels
    const double side = giant_uniform(build, 0.0, 1.0) < 0.1 ? 28.0 : 14.0;
    const double pixels = 32.0 * side * side, channels = 1024.0 * 14.0 / side;
    const bool is_dense = giant_uniform(build, 0.0, 1.0) < 0.2;
    const uint32_t branch_count = is_dense ? 1 : giant_between(build, 1, 6);
    uint32_t ends[8] = {input};
    uint32_t end_count = 0;
    if (is_dense) { // each layer reads all before it
        ends[end_count++] = input;
        for (uint32_t layer = 0; layer < 6; layer++) {
            const uint32_t joined = giant_add(build, ends[0], 0.0, pixels * channels / 2.0, 0.0);
            for (uint32_t i = 1; i < end_count; i++)
                giant_link(build, ends[i], joined);
            ends[end_count++] =
                giant_convolution(build, joined, pixels, channels / 2.0, channels / 8.0, 9.0);
        }
    }
    for (uint32_t b = 0; b < branch_count && !is_dense; b++) {
        const double part = channels / branch_count;
        uint32_t at = giant_convolution(build, input, pixels, channels, part / 2.0, 1.0);
        for (uint32_t depth = giant_between(build, 0, 3); depth > 0; depth--)
            at = giant_convolution(build, at, pixels, part / 2.0, part / 2.0, 9.0);
        ends[end_count++] = giant_convolution(build, at, pixels, part / 2.0, part, 1.0);
    }
    const uint32_t joined = giant_add(build, ends[0], 0.0, pixels * channels, 0.0);
    for (uint32_t i = 1; i < end_count; i++)
        giant_link(build, ends[i], joined);
    if (is_dense || giant_uniform(build, 0.0, 1.0) < 0.3) return joined;
    const uint32_t sum = giant_add(build, joined, 0.0, pixels * channels, 0.0);
    giant_link(build, input, sum);
    return sum;
}

// ---- the whole

static pen_status giant_build_forward(giant_build *build, pen_arena *arena) {
    const uint32_t target = build->options->node_count;
    PEN_TRY(PEN_NEW(arena, (size_t)target + GIANT_BLOCK, &build->nodes));
    PEN_TRY(PEN_NEW(arena, 4 * (size_t)target + GIANT_BLOCK, &build->edges));
    uint32_t at = giant_add(build, 0, 0.0, 2048.0 * 2048.0, 0.0);
    while (giant_total(build) < target) {
        switch (build->options->kind) {
        case GIANT_TRANSFORMER:
            at = giant_transformer_block(build, at);
            break;
        case GIANT_BRANCHING:
            at = giant_branching_block(build, at);
            break;
        }
    }
    return PEN_OK;
}

typedef struct giant_training {
    pen_problem_node *nodes;
    pen_problem_edge *edges;
    double *compute;
    uint32_t node_count;
    uint32_t edge_count;
    double bytes;
} giant_training;

static void giant_add_training(giant_training *training, const pen_problem_node *node,
                               double flops) {
    training->compute[training->node_count] = flops / GIANT_FLOPS;
    training->nodes[training->node_count++] = *node;
    training->bytes += node->bytes;
}

// Backward node i is forward_count + i; it reads what its forward node read.
static void giant_mirror(giant_build *build, giant_training *training) {
    const uint32_t count = build->node_count;
    for (int is_backward = 0; is_backward < 2; is_backward++) {
        for (uint32_t i = 0; i < count; i++) {
            const giant_node *node = &build->nodes[i];
            const bool is_colored = node->parameters > 0.0 || i % 4 != 0;
            const pen_problem_node made = {
                .bytes = GIANT_ELEMENT * (is_backward ? 0.0 : node->elements + node->parameters),
                .transfer = GIANT_ELEMENT * node->elements / GIANT_BANDWIDTH,
                .color = is_colored ? i : PEN_PROBLEM_ANY,
                .pin = PEN_PROBLEM_ANY,
                .role = is_backward ? PEN_ROLE_BACKWARD_INPUT : PEN_ROLE_FORWARD,
            };
            const double times = is_backward ? (node->parameters > 0.0 ? 2.0 : 1.0) : 1.0;
            giant_add_training(training, &made, times * node->flops);
        }
    }
    for (uint32_t e = 0; e < build->edge_count; e++) {
        const pen_problem_edge edge = build->edges[e];
        training->edges[training->edge_count++] = edge;
        training->edges[training->edge_count++] =
            (pen_problem_edge){count + edge.target, count + edge.source};
        training->edges[training->edge_count++] =
            (pen_problem_edge){edge.source, count + edge.target};
    }
    training->edges[training->edge_count++] = (pen_problem_edge){count - 1, 2 * count - 1};
    for (uint32_t i = 0; i < count; i++) { // updates
        const giant_node *node = &build->nodes[i];
        if (node->parameters == 0.0) continue;
        training->edges[training->edge_count++] =
            (pen_problem_edge){count + i, training->node_count};
        const pen_problem_node made = {
            .bytes = GIANT_STATE * node->parameters,
            .transfer = 0.0,
            .color = i,
            .pin = PEN_PROBLEM_ANY,
            .role = PEN_ROLE_BACKWARD_INPUT,
        };
        giant_add_training(training, &made, 100.0 * node->parameters);
    }
}

static pen_status giant_make_devices(giant_build *build, double bytes, pen_arena *arena,
                                     pen_problem_given *given) {
    const giant_graph_options *options = build->options;
    static const double rooms[4][2] = {{1.0, 1.0}, {1.0, 2.0}, {2.0, 4.0}, {2.0, 4.0}};
    pen_problem_device *devices;
    double room_total = 0.0;
    PEN_TRY(PEN_NEW(arena, options->device_count, &devices));
    for (uint32_t d = 0; d < options->device_count; d++) {
        const uint32_t grade = options->is_unequal ? giant_between(build, 0, 3) : 0;
        devices[d] = (pen_problem_device){
            .slowness = pow(0.5, grade),
            .send = 1.0,
            .receive = 1.0,
            .bytes_limit = rooms[grade][options->is_unequal ? giant_between(build, 0, 1) : 0]};
        room_total += devices[d].bytes_limit;
    }
    for (uint32_t d = 0; d < options->device_count; d++)
        devices[d].bytes_limit *= options->room * bytes / room_total;
    given->devices = devices;
    given->device_count = options->device_count;
    return PEN_OK;
}

pen_status giant_graph_make(const giant_graph_options *options, pen_arena *arena,
                            pen_problem_given *out_given) {
    giant_build build = {.options = options};
    giant_training training = {0};
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    pen_status status = giant_build_forward(&build, scratch);
    if (status != PEN_OK) goto done;
    const uint64_t total = giant_total(&build);
    status = PEN_NEW(arena, total, &training.nodes);
    if (status != PEN_OK) goto done;
    status = PEN_NEW(arena, total, &training.compute);
    if (status != PEN_OK) goto done;
    status =
        PEN_NEW(arena, 3 * (size_t)build.edge_count + build.parameter_count + 1, &training.edges);
    if (status != PEN_OK) goto done;
    giant_mirror(&build, &training);
    *out_given = (pen_problem_given){.objective = PEN_OBJECTIVE_THROUGHPUT,
                                     .is_contiguous = options->is_contiguous,
                                     .kind_count = 1,
                                     .node_count = training.node_count,
                                     .edge_count = training.edge_count,
                                     .nodes = training.nodes,
                                     .edges = training.edges,
                                     .compute = training.compute};
    status = giant_make_devices(&build, training.bytes, arena, out_given);
done:
    pen_arena_destroy(scratch);
    return status;
}

pen_status giant_graph_write(const pen_problem_given *given, const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return pen_error(PEN_IO, "%s: cannot be written", path);
    fprintf(file, "{\"maxFPGAs\": %u, \"maxCPUs\": 0, \"maxSizePerFPGA\": %.0f,\n\"nodes\": [\n",
            given->device_count, given->devices[0].bytes_limit);
    for (uint32_t v = 0; v < given->node_count; v++) {
        const pen_problem_node *node = &given->nodes[v];
        const uint32_t color = node->color == PEN_PROBLEM_ANY ? given->node_count + v : node->color;
        fprintf(file,
                "{\"id\": %u, \"supportedOnFpga\": 1, \"cpuLatency\": %.9g, \"fpgaLatency\": %.9g, "
                "\"isBackwardNode\": %d, \"colorClass\": %u, \"size\": %.0f}%s\n",
                v, 1e4 * given->compute[v], 1e3 * given->compute[v], node->role != PEN_ROLE_FORWARD,
                color, node->bytes, v + 1 < given->node_count ? "," : "");
    }
    fprintf(file, "],\n\"edges\": [\n");
    for (uint32_t e = 0; e < given->edge_count; e++) {
        fprintf(file, "{\"sourceId\": %u, \"destId\": %u, \"cost\": %.9g}%s\n",
                given->edges[e].source, given->edges[e].target,
                1e3 * given->nodes[given->edges[e].source].transfer,
                e + 1 < given->edge_count ? "," : "");
    }
    fprintf(file, "]}\n");
    const bool is_written = ferror(file) == 0;
    if (fclose(file) == 0 && is_written) return PEN_OK;
    return pen_error(PEN_IO, "%s: cannot be written", path);
}
