#include "device/cpu/kernels/loops/elementwise_map.h"

#include <string.h>

#include "device/cpu/cpu_layout.h"
#include "graph/graph.h"
#include "graph/op.h"

#define MAP_PIECE 2048    // elements at a time
#define MAP_SHORT_ROW 512 // rows shorter than this are taken several at a time
#define MAP_TEAM_ELEMENTS 32768
#define MAP_VARIADIC_LIMIT 256 // operands

typedef struct map_operand {
    uint32_t input; // PEN_ID_NONE: left out
    uint8_t type;
    bool is_whole; // lies as the result does
    bool is_one;   // element, or left out
    float absent;
    int64_t strides[PEN_RANK_LIMIT]; // 0 where it repeats
} map_operand;

typedef struct map_state {
    const map_op *op;
    float parameters[MAP_PARAMETER_LIMIT];
    uint32_t operand_count;
    map_operand *operands;
    uint32_t rank; // of the joined dimensions; at least 1
    int64_t dims[PEN_RANK_LIMIT];
    int64_t rows;           // product of all dimensions but the last
    int64_t rows_per_piece; // of short rows; 0: rows are cut into pieces
    int64_t pieces_per_row; // of long rows
    int64_t piece_count;
    int64_t count; // elements
} map_state;

static pen_element_type map_element(uint8_t type) {
    return type == MAP_BOOL ? PEN_BOOL : PEN_FLOAT32;
}

static size_t map_bytes(uint8_t type) {
    return type == MAP_BOOL ? 1 : sizeof(float);
}

static uint32_t map_operand_count(const pen_cpu_request *request, const map_op *op) {
    return op->is_variadic ? request->node->input_count : op->operand_count;
}

static uint8_t map_operand_type(const map_op *op, uint32_t operand) {
    return op->operand_types[op->is_variadic ? 0 : operand];
}

bool map_supports(const pen_cpu_request *request) {
    const map_op *op = request->rule;
    const pen_node *node = request->node;
    const pen_value *y = pen_graph_value(request->graph, node->outputs[0]);
    if (y->type.element != map_element(op->result_type)) return false;
    const uint32_t count = map_operand_count(request, op);
    if (count > MAP_VARIADIC_LIMIT) return false;
    for (uint32_t i = 0; i < count && i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value *x = pen_graph_value(request->graph, node->inputs[i]);
        if (x->type.element != map_element(map_operand_type(op, i))) return false;
        if (pen_shape_element_count(&x->type.shape) == 1) continue;
        const bool fits = pen_shape_equal(&x->type.shape, &y->type.shape) ||
                          pen_cpu_is_of_channels(&x->type.shape, &y->type.shape);
        const bool both_plain = x->layout == PEN_LAYOUT_PLAIN && y->layout == PEN_LAYOUT_PLAIN;
        if (!both_plain && !(fits && x->layout == y->layout)) return false;
    }
    return true;
}

// Strides of `shape` along the dimensions of `result`.
static void map_strides(const pen_shape *shape, const pen_shape *result, int64_t *strides) {
    int64_t stride = 1;
    for (uint32_t d = result->rank; d-- > 0;) {
        const uint32_t missing = result->rank - shape->rank;
        const int64_t dim = d < missing ? 1 : shape->dims[d - missing];
        strides[d] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
}

static void map_remove_dim(map_state *state, uint32_t dim) {
    for (uint32_t d = dim; d + 1 < state->rank; d++) {
        state->dims[d] = state->dims[d + 1];
        for (uint32_t i = 0; i < state->operand_count; i++) {
            state->operands[i].strides[d] = state->operands[i].strides[d + 1];
        }
    }
    state->rank -= 1;
}

// Whether dimension d and the one before can be walked as one by all operands.
static bool map_joins(const map_state *state, uint32_t d) {
    for (uint32_t i = 0; i < state->operand_count; i++) {
        const int64_t *strides = state->operands[i].strides;
        if (strides[d - 1] != strides[d] * state->dims[d]) return false;
    }
    return true;
}

static void map_join_dims(map_state *state) {
    for (uint32_t d = state->rank; d-- > 0;) {
        if (state->dims[d] == 1) map_remove_dim(state, d);
    }
    for (uint32_t d = state->rank; d-- > 1;) {
        if (!map_joins(state, d)) continue;
        for (uint32_t i = 0; i < state->operand_count; i++) {
            state->operands[i].strides[d - 1] = state->operands[i].strides[d];
        }
        state->dims[d - 1] *= state->dims[d];
        map_remove_dim(state, d);
    }
    if (state->rank == 0) {
        state->rank = 1;
        state->dims[0] = 1;
    }
}

static void map_cut(map_state *state) {
    const int64_t inner = state->dims[state->rank - 1];
    state->rows = 1;
    for (uint32_t d = 0; d + 1 < state->rank; d++) {
        state->rows *= state->dims[d];
    }
    if (inner == 0 || state->rows == 0) {
        state->piece_count = 0;
    } else if (inner < MAP_SHORT_ROW) {
        state->rows_per_piece = MAP_PIECE / inner;
        state->piece_count = (state->rows + state->rows_per_piece - 1) / state->rows_per_piece;
    } else {
        state->pieces_per_row = (inner + MAP_PIECE - 1) / MAP_PIECE;
        state->piece_count = state->rows * state->pieces_per_row;
    }
}

// Of a blocked result [planes][positions][lanes], with the lanes of its last blocks that are no
// channels. An operand is whole, or of one position, or of one element.
static void map_walk_as_it_lies(const pen_value *y, map_state *state) {
    if (y->layout == PEN_LAYOUT_PLAIN) return;
    const int64_t lanes = pen_cpu_layout_block(y->layout);
    const int64_t positions = pen_shape_count(&y->type.shape, 2, y->type.shape.rank);
    state->count = (int64_t)pen_cpu_layout_element_count(&y->type, y->layout);
    state->rank = 3;
    state->dims[0] = state->count / (positions * lanes);
    state->dims[1] = positions;
    state->dims[2] = lanes;
    for (uint32_t i = 0; i < state->operand_count; i++) {
        map_operand *operand = &state->operands[i];
        const bool is_one = operand->is_one;
        operand->strides[0] = is_one ? 0 : operand->is_whole ? positions * lanes : lanes;
        operand->strides[1] = operand->is_whole ? lanes : 0;
        operand->strides[2] = is_one ? 0 : 1;
    }
}

// Which operands are broadcast, and the parameters as floats: running a piece looks nothing up.
pen_status map_prepare(const pen_cpu_request *request, void **out_state,
                       uint64_t *out_workspace_bytes) {
    const map_op *op = request->rule;
    const pen_node *node = request->node;
    const pen_shape *y = &pen_value_type(request->graph, node->outputs[0])->shape;
    map_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->op = op;
    state->count = pen_shape_element_count(y);
    state->operand_count = map_operand_count(request, op);
    PEN_TRY(PEN_NEW(request->arena, state->operand_count, &state->operands));
    for (uint32_t i = 0; i < MAP_PARAMETER_LIMIT; i++) {
        if (op->attribute_names[i] == NULL) continue;
        // a whole number is as good as a floating one here
        const char *name = op->attribute_names[i];
        const bool is_integer = name[0] == '#';
        state->parameters[i] =
            is_integer ? (float)pen_node_int(node, name + 1) : (float)pen_node_float(node, name);
    }
    if (op->is_mean && !op->is_variadic) state->parameters[0] = 1.0f / (float)state->count;
    for (uint32_t i = 0; i < state->operand_count; i++) {
        map_operand *operand = &state->operands[i];
        operand->type = map_operand_type(op, i);
        operand->input = i;
        operand->absent = op->is_variadic ? 0 : op->absent[i];
        if (i >= node->input_count || !pen_value_is(node->inputs[i])) {
            operand->input = PEN_ID_NONE;
            operand->is_one = true;
            continue;
        }
        const pen_shape *x = &pen_value_type(request->graph, node->inputs[i])->shape;
        // more leading ones than the result has dimensions: one element
        if (x->rank <= y->rank) map_strides(x, y, operand->strides);
        operand->is_whole = pen_shape_element_count(x) == state->count;
        operand->is_one = !operand->is_whole && pen_shape_element_count(x) == 1;
    }
    state->rank = y->rank;
    memcpy(state->dims, y->dims, sizeof state->dims);
    map_walk_as_it_lies(pen_graph_value(request->graph, node->outputs[0]), state);
    map_join_dims(state);
    map_cut(state);
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

// Where a piece lies in the result.
typedef struct map_piece {
    int64_t row;       // the first
    int64_t row_count; // 1 when rows are cut
    int64_t first;     // in the row
    int64_t length;    // of each row
} map_piece;

static map_piece map_piece_at(const map_state *state, int64_t index) {
    const int64_t inner = state->dims[state->rank - 1];
    if (state->rows_per_piece > 0) {
        const int64_t row = index * state->rows_per_piece;
        const int64_t rest = state->rows - row;
        return (map_piece){row, rest < state->rows_per_piece ? rest : state->rows_per_piece, 0,
                           inner};
    }
    const int64_t first = index % state->pieces_per_row * MAP_PIECE;
    const int64_t rest = inner - first;
    return (map_piece){index / state->pieces_per_row, 1, first,
                       rest < MAP_PIECE ? rest : MAP_PIECE};
}

static void map_fill_float(float *to, int64_t count, float element) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = element;
    }
}

// Copies one row of a repeating operand to `to`.
static void map_fill_row(uint8_t type, const char *from, int64_t stride, int64_t length, char *to) {
    const size_t bytes = map_bytes(type);
    if (stride != 0) {
        memcpy(to, from, (size_t)length * bytes);
    } else if (type == MAP_BOOL) {
        memset(to, *(const unsigned char *)from, (size_t)length);
    } else {
        float element;
        memcpy(&element, from, sizeof element);
        map_fill_float((float *)(void *)to, length, element);
    }
}

// Makes `count` rows of the first.
static void map_repeat_row(char *rows, size_t row_bytes, int64_t count) {
    for (int64_t made = 1; made < count;) {
        const int64_t more = made < count - made ? made : count - made;
        memcpy(rows + (size_t)made * row_bytes, rows, (size_t)more * row_bytes);
        made += more;
    }
}

// The operand's elements for a piece: where they lie, or gathered into `buffer`.
static const void *map_gather(const map_state *state, const map_operand *operand,
                              const void *tensor, const map_piece *piece, void *buffer) {
    const size_t bytes = map_bytes(operand->type);
    const char *base = tensor;
    if (operand->is_whole) {
        const int64_t at = piece->row * state->dims[state->rank - 1] + piece->first;
        return base + (size_t)at * bytes;
    }
    const uint32_t last = state->rank - 1;
    const int64_t inner_stride = operand->strides[last];
    int64_t at[PEN_RANK_LIMIT], offset = 0, rest = piece->row;
    for (uint32_t d = last; d-- > 0;) {
        at[d] = rest % state->dims[d];
        rest /= state->dims[d];
        offset += at[d] * operand->strides[d];
    }
    offset += piece->first * inner_stride;
    if (piece->row_count == 1 && inner_stride != 0) return base + (size_t)offset * bytes;
    char *to = buffer;
    const size_t row_bytes = (size_t)piece->length * bytes;
    for (int64_t row = 0; row < piece->row_count;) {
        int64_t alike = 1; // rows from this one on
        if (last > 0 && operand->strides[last - 1] == 0) {
            alike = state->dims[last - 1] - at[last - 1];
            if (alike > piece->row_count - row) alike = piece->row_count - row;
        }
        map_fill_row(operand->type, base + (size_t)offset * bytes, inner_stride, piece->length, to);
        map_repeat_row(to, row_bytes, alike);
        to += (size_t)alike * row_bytes;
        row += alike;
        int64_t step = alike;
        for (uint32_t d = last; d-- > 0;) {
            at[d] += step;
            offset += step * operand->strides[d];
            if (at[d] < state->dims[d]) break;
            offset -= at[d] * operand->strides[d];
            at[d] = 0;
            step = 1;
        }
    }
    return buffer;
}

static const void *map_operand_at(const map_state *state, const pen_cpu_call *call, uint32_t index,
                                  const map_piece *piece, void *buffer) {
    const map_operand *operand = &state->operands[index];
    const void *tensor = operand->input == PEN_ID_NONE ? NULL : call->inputs[operand->input];
    if (tensor != NULL) return map_gather(state, operand, tensor, piece, buffer);
    map_fill_float(buffer, piece->row_count * piece->length, operand->absent);
    return buffer;
}

static void map_add(float *sum, const float *fresh, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        sum[i] += fresh[i];
    }
}

// x0 op x1 op x2 … of a piece into `y`, which is none of the operands.
static void map_piece_variadic(const map_state *state, const pen_cpu_call *call,
                               const map_piece *piece, float *y, float *buffer) {
    const int64_t count = piece->row_count * piece->length;
    memcpy(y, map_operand_at(state, call, 0, piece, buffer), (size_t)count * sizeof *y);
    for (uint32_t i = 1; i < state->operand_count; i++) {
        const void *x[2] = {y, map_operand_at(state, call, i, piece, buffer)};
        state->op->run(count, x, y, state->parameters);
    }
    if (!state->op->is_mean) return;
    const float share = 1.0f / (float)state->operand_count;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] *= share;
    }
}

// A piece that fits the first cache: operands that are broadcast are spread into buffers, then one
// vector loop.
static void map_piece_run(const map_state *state, const pen_cpu_call *call, int64_t index) {
    _Alignas(64) float buffers[MAP_OPERAND_LIMIT][MAP_PIECE];
    _Alignas(64) float fresh[MAP_PIECE];
    const map_piece piece = map_piece_at(state, index);
    const int64_t count = piece.row_count * piece.length;
    const int64_t at = piece.row * state->dims[state->rank - 1] + piece.first;
    const size_t bytes = map_bytes(state->op->result_type);
    char *y = (char *)call->outputs[0] + (size_t)at * bytes;
    if (state->op->is_variadic && (state->operand_count != 2 || state->op->is_mean)) {
        map_piece_variadic(state, call, &piece, fresh, buffers[0]);
        if (!call->accumulate) memcpy(y, fresh, (size_t)count * sizeof *fresh);
    } else {
        const void *x[MAP_OPERAND_LIMIT] = {NULL};
        for (uint32_t i = 0; i < state->operand_count; i++) {
            x[i] = map_operand_at(state, call, i, &piece, buffers[i]);
        }
        void *target = call->accumulate ? (void *)fresh : (void *)y;
        state->op->run(count, x, target, state->parameters);
    }
    if (call->accumulate) map_add((float *)(void *)y, fresh, count);
}

pen_status map_run(const pen_cpu_call *call) {
    const map_state *state = call->state;
    if (state->count <= MAP_TEAM_ELEMENTS) { // entering a parallel region costs more than the work
        for (int64_t piece = 0; piece < state->piece_count; piece++) {
            map_piece_run(state, call, piece);
        }
        return PEN_OK;
    }
#pragma omp parallel for schedule(static)
    for (int64_t piece = 0; piece < state->piece_count; piece++) {
        map_piece_run(state, call, piece);
    }
    return PEN_OK;
}
