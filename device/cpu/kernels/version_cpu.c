// The gradient of a version (graph/ops/training/version_op.c). Every element is computed on its
// own, so threads do not matter for the bits.
#include <math.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/arrivals.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/training/version_op.h"

#define VERSION_TEAM_ELEMENTS 16384
// Elements that one thread computes at a time.
#define VERSION_PIECE 256

typedef struct version_state {
    const pen_node *node;
    int64_t count; // elements of the parameter
    int64_t version;
    uint32_t lanes; // that a whole step has
    float lambda;
    bool is_adaptive;
} version_state;

// What one run works with.
typedef struct version_run {
    const version_state *state;
    const pen_cpu_call *call;
    uint32_t lane_count;             // that the step has
    uint32_t of[PEN_ARRIVALS_LANES]; // the version's lanes, by rising number
    uint32_t of_count;
    const float *then[PEN_ARRIVALS_LANES]; // with which each computed its gradient
} version_run;

typedef float version_piece[VERSION_PIECE];

static bool version_supports(const pen_cpu_request *request) {
    for (uint32_t i = PEN_VERSION_PARAMETER; i < request->node->input_count; i++) {
        if (!pen_cpu_is_plain_float(request, request->node->inputs[i])) return false;
    }
    return true;
}

static pen_status version_prepare(const pen_cpu_request *request, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    version_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    const pen_tensor_type *parameter =
        pen_value_type(request->graph, node->inputs[PEN_VERSION_PARAMETER]);
    const pen_tensor_type *order = pen_value_type(request->graph, node->inputs[PEN_VERSION_ORDER]);
    *state = (version_state){.node = node,
                             .count = pen_shape_element_count(&parameter->shape),
                             .version = pen_node_int(node, "version"),
                             .lanes = (uint32_t)order->shape.dims[0] - 1,
                             .lambda = (float)pen_node_float(node, "lambda"),
                             .is_adaptive = pen_node_int(node, "adaptive") != 0};
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static void version_begin(const pen_cpu_call *call, version_run *run) {
    const version_state *state = call->state;
    const int64_t *order = call->inputs[PEN_VERSION_ORDER];
    const float *kept = call->inputs[PEN_VERSION_KEPT], *start = call->inputs[PEN_VERSION_START];
    *run = (version_run){.state = state, .call = call};
    for (uint32_t lane = 0; lane < state->lanes; lane++) {
        run->lane_count += order[lane] >= 0;
        if (order[lane] != state->version) continue;
        run->then[run->of_count] = order[state->lanes] != 0 ? kept + lane * state->count : start;
        run->of[run->of_count++] = lane;
    }
}

// Adds what the version's lanes have as a tree over their numbers. rows[i] is of lane of[i]; what
// comes of two goes to parts. Returns the sum, which is one of both.
static const float *version_tree(const version_run *run, const float *const *rows, int64_t count,
                                 version_piece *parts) {
    const float *sums[PEN_ARRIVALS_LANES] = {NULL};
    for (uint32_t i = 0; i < run->of_count; i++) {
        sums[run->of[i]] = rows[i];
    }
    for (uint32_t size = 1; size < run->state->lanes; size *= 2) {
        for (uint32_t at = 0; at + size < run->state->lanes; at += 2 * size) {
            const float *left = sums[at], *right = sums[at + size];
            if (left == NULL) sums[at] = right;
            if (left == NULL || right == NULL) continue;
            for (int64_t k = 0; k < count; k++) {
                parts[at][k] = left[k] + right[k];
            }
            sums[at] = parts[at];
        }
    }
    return sums[0];
}

// What a lane's gradient misses, by its delay: elements [first, first + count).
static void version_compensate_lane(const version_run *run, uint32_t i, int64_t first,
                                    int64_t count, float *c) {
    const version_state *state = run->state;
    const pen_cpu_call *call = run->call;
    const float *w = (const float *)call->inputs[PEN_VERSION_PARAMETER] + first;
    const float *then = run->then[i] + first, share = (float)run->lane_count;
    float s[VERSION_PIECE];
    memset(s, 0, (size_t)count * sizeof *s);
    for (uint32_t input = PEN_VERSION_STACKS; input < state->node->input_count; input++) {
        const float *own = (const float *)call->inputs[input] + run->of[i] * state->count + first;
        for (int64_t k = 0; k < count; k++) {
            s[k] += own[k];
        }
    }
    if (!state->is_adaptive) {
        for (int64_t k = 0; k < count; k++) {
            c[k] = state->lambda * share * s[k] * s[k] * (w[k] - then[k]);
        }
        return;
    }
    float *square = (float *)call->outputs[PEN_VERSION_NEW_SQUARE] + first;
    const float m = (float)PEN_VERSION_SQUARE_DECAY, rest = (float)(1 - PEN_VERSION_SQUARE_DECAY);
    for (int64_t k = 0; k < count; k++) {
        const float g = share * s[k];
        square[k] = m * square[k] + rest * g * g;
        const float lambda = state->lambda / sqrtf(square[k] + (float)PEN_VERSION_EPSILON);
        c[k] = lambda * share * s[k] * s[k] * (w[k] - then[k]);
    }
}

// The mean of squares is brought over first, and then goes on in its new place.
static void version_compensate(const version_run *run, int64_t first, int64_t count, float *g) {
    version_piece added[PEN_ARRIVALS_LANES], parts[PEN_ARRIVALS_LANES];
    const float *rows[PEN_ARRIVALS_LANES];
    for (uint32_t i = 0; i < run->of_count; i++) {
        version_compensate_lane(run, i, first, count, added[i]);
        rows[i] = added[i];
    }
    const float *c = version_tree(run, rows, count, parts);
    for (int64_t k = 0; k < count; k++) {
        g[k] += c[k];
    }
}

// Elements [first, first + count) of the gradient.
static void version_run_piece(const version_run *run, int64_t first, int64_t count) {
    const version_state *state = run->state;
    const pen_cpu_call *call = run->call;
    float *g = (float *)call->outputs[PEN_VERSION_GRADIENT] + first;
    version_piece parts[PEN_ARRIVALS_LANES];
    const float *rows[PEN_ARRIVALS_LANES];
    if (state->is_adaptive && call->inputs[PEN_VERSION_SQUARE] != NULL) {
        memmove((float *)call->outputs[PEN_VERSION_NEW_SQUARE] + first,
                (const float *)call->inputs[PEN_VERSION_SQUARE] + first, (size_t)count * sizeof *g);
    }
    if (run->of_count == 0) memset(g, 0, (size_t)count * sizeof *g);
    if (run->of_count == 0) return;
    for (uint32_t input = PEN_VERSION_STACKS; input < state->node->input_count; input++) {
        for (uint32_t i = 0; i < run->of_count; i++) {
            rows[i] = (const float *)call->inputs[input] + run->of[i] * state->count + first;
        }
        const float *total = version_tree(run, rows, count, parts);
        for (int64_t k = 0; k < count; k++) {
            g[k] = input == PEN_VERSION_STACKS ? total[k] : g[k] + total[k];
        }
    }
    if (state->lambda != 0) version_compensate(run, first, count, g);
    if (run->of_count == run->lane_count) return;
    const float mean = (float)((double)run->lane_count / run->of_count);
    for (int64_t k = 0; k < count; k++) {
        g[k] *= mean;
    }
}

static pen_status version_run_all(const pen_cpu_call *call) {
    const version_state *state = call->state;
    const int64_t *order = call->inputs[PEN_VERSION_ORDER];
    const int64_t pieces = (state->count + VERSION_PIECE - 1) / VERSION_PIECE;
    version_run run;
    version_begin(call, &run);
#pragma omp parallel for schedule(static) if (state->count > VERSION_TEAM_ELEMENTS)
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t first = piece * VERSION_PIECE, rest = state->count - first;
        version_run_piece(&run, first, rest < VERSION_PIECE ? rest : VERSION_PIECE);
    }
    *(float *)call->outputs[PEN_VERSION_SCALE] = run.of_count == 0 ? -1 : 1;
    if (call->outputs[PEN_VERSION_STEP] != NULL) {
        *(float *)call->outputs[PEN_VERSION_STEP] =
            (float)(order[state->lanes] + state->version + 1);
    }
    return PEN_OK;
}

static const pen_cpu_kernel version_kernels[] = {
    {PEN_CPU_ENTRY("version_gradient", "cpu", version_supports, version_prepare, version_run_all)},
};

PEN_CPU_FAMILY_OF(version);
