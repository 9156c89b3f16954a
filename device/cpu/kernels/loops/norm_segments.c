#include "device/cpu/kernels/loops/norm_segments.h"

#include "device/cpu/cpu_layout.h"
#include "graph/graph.h"
#include "graph/op.h"

// Below this many elements a node is not worth a team.
#define NORM_TEAM_ELEMENTS 16384

// Float32 throughout; what is as large as the first operand lies as it does, plain or blocked.
static bool norm_suits(const pen_cpu_request *request, pen_value_id id) {
    if (!pen_value_is(id)) return true;
    const pen_value *model = pen_graph_value(request->graph, request->node->inputs[0]);
    const pen_value *value = pen_graph_value(request->graph, id);
    if (value->type.element != PEN_FLOAT32) return false;
    const bool is_whole = pen_shape_equal(&value->type.shape, &model->type.shape);
    return value->layout == (is_whole ? model->layout : PEN_LAYOUT_PLAIN);
}

#define NORM_SEGMENT_LEAST 4

static int64_t norm_positions(const pen_value *x) {
    return pen_shape_count(&x->type.shape, 2, x->type.shape.rank);
}

// Channels of a group. Without spatial dimensions the plain layout is a blocked one too.
static int64_t norm_block(const pen_value *x) {
    if (x->layout != PEN_LAYOUT_PLAIN || norm_positions(x) != 1) {
        return pen_cpu_layout_block(x->layout);
    }
    const int64_t channels = x->type.shape.dims[1];
    return channels % 16 == 0 ? 16 : channels % 8 == 0 ? 8 : 1;
}

static int64_t norm_segment_floats(const pen_value *x) {
    return norm_positions(x) * norm_block(x);
}

// Whether an output is the batch's own mean or variance, not rounded.
static bool norm_is_batch(const pen_cpu_request *request, uint32_t output) {
    const pen_node *node = request->node;
    if (output < 5 || strstr(node->op->name, "backward") != NULL) return false;
    if (!pen_value_is(node->outputs[output])) return true;
    return pen_value_type(request->graph, node->outputs[output])->element == PEN_FLOAT64;
}

bool norm_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_value *x = pen_graph_value(request->graph, node->inputs[0]);
    if (x->layout != PEN_LAYOUT_PLAIN && pen_cpu_layout_block(x->layout) == 1) return false;
    if (pen_shape_element_count(&x->type.shape) == 0) return false;
    // the sums of so small a segment would be far larger than the segment
    if (x->layout == PEN_LAYOUT_PLAIN && norm_segment_floats(x) < NORM_SEGMENT_LEAST) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!norm_suits(request, node->inputs[i])) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (norm_is_batch(request, i)) continue;
        if (!norm_suits(request, node->outputs[i])) return false;
    }
    return true;
}

// Values lie in segments of one channel or block of channels of one sample: statistics are made by
// segment, for the team to share out.
pen_status norm_prepare(const pen_cpu_request *request, size_t bytes_of_segment, void **out_state,
                        uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    const pen_value *x = pen_graph_value(request->graph, node->inputs[0]);
    const pen_shape *shape = &x->type.shape;
    const bool backward = strstr(node->op->name, "backward") != NULL;
    norm_prepared *prepared;
    PEN_TRY(PEN_NEW(request->arena, 1, &prepared));
    norm_state *state = &prepared->state;
    prepared->input_count = node->input_count;
    prepared->output_count = node->output_count;
    state->batch = shape->dims[0];
    state->channels = shape->dims[1];
    state->block = norm_block(x);
    state->groups = (state->channels + state->block - 1) / state->block;
    state->segment = norm_segment_floats(x);
    state->epsilon = pen_node_float(node, "epsilon");
    state->training = pen_node_int(node, "training_mode") != 0;
    if (!backward) {
        state->momentum = pen_node_float(node, "momentum");
        state->unbiased = pen_node_int(node, "unbiased") != 0;
    }
    state->relu = strstr(node->op->name, "relu") != NULL;
    state->adds = strstr(node->op->name, "add_relu") != NULL;
    state->wants_team = pen_shape_element_count(shape) >= NORM_TEAM_ELEMENTS;
    state->by_segments = state->wants_team && state->groups < (int64_t)request->thread_count;
    *out_workspace_bytes = (uint64_t)(state->groups * state->batch) * bytes_of_segment +
                           (uint64_t)state->groups * sizeof(norm_lanes);
    *out_state = prepared;
    return PEN_OK;
}
