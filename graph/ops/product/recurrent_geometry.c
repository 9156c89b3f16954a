#include "graph/ops/product/recurrent_geometry.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/op.h"

#define GEOMETRY_WORD_BYTES 32

typedef struct geometry_function {
    const char *name;    // ONNX'
    uint32_t parameters; // how many of alpha and beta it takes
    double alpha, beta;  // where not given
} geometry_function;

static const geometry_function geometry_functions[] = {
    [PEN_RECURRENT_SIGMOID] = {"Sigmoid", 0, 0, 0},
    [PEN_RECURRENT_TANH] = {"Tanh", 0, 0, 0},
    [PEN_RECURRENT_RELU] = {"Relu", 0, 0, 0},
    [PEN_RECURRENT_AFFINE] = {"Affine", 2, 1, 0},
    [PEN_RECURRENT_LEAKY_RELU] = {"LeakyRelu", 1, 0.01, 0},
    [PEN_RECURRENT_THRESHOLDED_RELU] = {"ThresholdedRelu", 1, 1, 0},
    [PEN_RECURRENT_SCALED_TANH] = {"ScaledTanh", 2, 1, 1},
    [PEN_RECURRENT_HARD_SIGMOID] = {"HardSigmoid", 2, 0.2, 0.5},
    [PEN_RECURRENT_ELU] = {"Elu", 1, 1, 0},
    [PEN_RECURRENT_SOFTSIGN] = {"Softsign", 0, 0, 0},
    [PEN_RECURRENT_SOFTPLUS] = {"Softplus", 0, 0, 0},
};
#define GEOMETRY_FUNCTION_COUNT (sizeof geometry_functions / sizeof *geometry_functions)

// Whether the word at `word` is `name`, whatever the case and without underscores.
static bool geometry_word_is(const char *word, const char *name) {
    while (*name != '\0') {
        while (*word == '_') {
            word++;
        }
        if (tolower((unsigned char)*word) != tolower((unsigned char)*name)) return false;
        word++;
        name++;
    }
    return *word == '\0' || *word == ' ';
}

static bool geometry_find_function(const char *word, pen_recurrent_function *out_function) {
    for (uint32_t i = 0; i < GEOMETRY_FUNCTION_COUNT; i++) {
        if (!geometry_word_is(word, geometry_functions[i].name)) continue;
        *out_function = (pen_recurrent_function)i;
        return true;
    }
    return false;
}

const char *pen_recurrent_activation_name(const char *word) {
    pen_recurrent_function function;
    return geometry_find_function(word, &function) ? geometry_functions[function].name : NULL;
}

// ONNX's activations, in double: the fast kernels have their own for the usual ones.
double pen_recurrent_apply(const pen_recurrent_activation *activation, double x) {
    const double alpha = activation->alpha, beta = activation->beta;
    switch (activation->function) {
    case PEN_RECURRENT_SIGMOID:
        return 1 / (1 + exp(-x));
    case PEN_RECURRENT_TANH:
        return tanh(x);
    case PEN_RECURRENT_RELU:
        return x > 0 ? x : 0;
    case PEN_RECURRENT_AFFINE:
        return alpha * x + beta;
    case PEN_RECURRENT_LEAKY_RELU:
        return x >= 0 ? x : alpha * x;
    case PEN_RECURRENT_THRESHOLDED_RELU:
        return x > alpha ? x : 0;
    case PEN_RECURRENT_SCALED_TANH:
        return alpha * tanh(beta * x);
    case PEN_RECURRENT_HARD_SIGMOID:
        return fmin(1, fmax(0, alpha * x + beta));
    case PEN_RECURRENT_ELU:
        return x >= 0 ? x : alpha * expm1(x);
    case PEN_RECURRENT_SOFTSIGN:
        return x / (1 + fabs(x));
    case PEN_RECURRENT_SOFTPLUS:
        return fmax(x, 0) + log1p(exp(-fabs(x)));
    }
    PEN_NEVER("a function");
}

// By the result and not by the argument: results are what is kept for the backward pass.
double pen_recurrent_slope(const pen_recurrent_activation *activation, double y) {
    const double alpha = activation->alpha, beta = activation->beta;
    switch (activation->function) {
    case PEN_RECURRENT_SIGMOID:
        return y * (1 - y);
    case PEN_RECURRENT_TANH:
        return 1 - y * y;
    case PEN_RECURRENT_RELU:
        return y > 0 ? 1 : 0;
    case PEN_RECURRENT_AFFINE:
        return alpha;
    case PEN_RECURRENT_LEAKY_RELU:
        return y >= 0 ? 1 : alpha;
    case PEN_RECURRENT_THRESHOLDED_RELU:
        return y != 0 ? 1 : 0;
    case PEN_RECURRENT_SCALED_TANH:
        return beta * (alpha - y * (y / alpha));
    case PEN_RECURRENT_HARD_SIGMOID:
        return y > 0 && y < 1 ? alpha : 0;
    case PEN_RECURRENT_ELU:
        return y >= 0 ? 1 : y + alpha;
    case PEN_RECURRENT_SOFTSIGN:
        return (1 - fabs(y)) * (1 - fabs(y));
    case PEN_RECURRENT_SOFTPLUS:
        return -expm1(-y);
    }
    PEN_NEVER("a function");
}

// ---- attributes

static const pen_recurrent_function geometry_defaults[][3] = {
    [PEN_RECURRENT_RNN] = {PEN_RECURRENT_TANH},
    [PEN_RECURRENT_GRU] = {PEN_RECURRENT_SIGMOID, PEN_RECURRENT_TANH},
    [PEN_RECURRENT_LSTM] = {PEN_RECURRENT_SIGMOID, PEN_RECURRENT_TANH, PEN_RECURRENT_TANH},
};
static const uint32_t geometry_function_counts[] = {
    [PEN_RECURRENT_RNN] = 1, [PEN_RECURRENT_GRU] = 2, [PEN_RECURRENT_LSTM] = 3};

static pen_status geometry_unknown_function(const char *word) {
    char shown[GEOMETRY_WORD_BYTES] = "";
    for (size_t i = 0; i + 1 < sizeof shown && word[i] != '\0' && word[i] != ' '; i++) {
        shown[i] = word[i];
    }
    return pen_error(PEN_UNSUPPORTED,
                     "there is no activation '%s'; there are Sigmoid, Tanh, Relu, Affine, "
                     "LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign and "
                     "Softplus",
                     shown);
}

// The activations of all directions, in order, from the words of the attribute.
static pen_status geometry_read_words(const pen_node *node, pen_recurrent_geometry *g) {
    const uint32_t each = geometry_function_counts[g->kind];
    const uint32_t wanted = each * (uint32_t)g->directions;
    const char *word = pen_node_has(node, "activations") ? pen_node_text(node, "activations") : "";
    word += strspn(word, " ");
    uint32_t count = 0;
    for (; *word != '\0'; count++) {
        pen_recurrent_function function;
        if (!geometry_find_function(word, &function)) return geometry_unknown_function(word);
        if (count < wanted) g->activations[count / each][count % each].function = function;
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    if (count == wanted) return PEN_OK;
    if (count != 0) {
        return pen_error(PEN_INVALID_INPUT, "there are %u activations; expected %u: %u a direction",
                         count, wanted, each);
    }
    for (uint32_t i = 0; i < wanted; i++) {
        g->activations[i / each][i % each].function = geometry_defaults[g->kind][i % each];
    }
    return PEN_OK;
}

// alpha and beta are listed for those functions alone that take them.
static pen_status geometry_read_activations(const pen_node *node, pen_recurrent_geometry *g) {
    PEN_TRY(geometry_read_words(node, g));
    uint32_t alpha_count, beta_count, alphas = 0, betas = 0;
    const double *alpha = pen_node_floats(node, "activation_alpha", &alpha_count);
    const double *beta = pen_node_floats(node, "activation_beta", &beta_count);
    const uint32_t each = geometry_function_counts[g->kind];
    for (uint32_t i = 0; i < each * (uint32_t)g->directions; i++) {
        pen_recurrent_activation *activation = &g->activations[i / each][i % each];
        const geometry_function *function = &geometry_functions[activation->function];
        activation->alpha = function->alpha;
        activation->beta = function->beta;
        if (function->parameters > 0 && alphas < alpha_count) activation->alpha = alpha[alphas++];
        if (function->parameters > 1 && betas < beta_count) activation->beta = beta[betas++];
    }
    return PEN_OK;
}

static pen_status geometry_read_direction(const pen_node *node, pen_recurrent_geometry *g) {
    const char *direction = pen_node_text(node, "direction");
    g->directions = 1;
    if (strcmp(direction, "forward") == 0) return PEN_OK;
    if (strcmp(direction, "reverse") == 0) {
        g->is_reverse[0] = true;
        return PEN_OK;
    }
    if (strcmp(direction, "bidirectional") == 0) {
        g->directions = 2;
        g->is_reverse[1] = true;
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "direction is '%s'; it may be forward, reverse or bidirectional", direction);
}

static pen_status geometry_read_attributes(const pen_node *node, pen_recurrent_geometry *g) {
    PEN_TRY(geometry_read_direction(node, g));
    PEN_TRY(geometry_read_activations(node, g));
    const int64_t layout = pen_node_int(node, "layout");
    if (layout < 0 || layout > 1) {
        return pen_error(PEN_INVALID_INPUT, "layout is %" PRId64 "; it may be 0 or 1", layout);
    }
    g->is_batch_first = layout == 1;
    g->clip = (double)INFINITY;
    if (pen_node_has(node, "clip")) g->clip = pen_node_float(node, "clip");
    if (!(g->clip > 0)) {
        return pen_error(PEN_INVALID_INPUT, "clip is %g; it must be above 0", g->clip);
    }
    if (g->kind == PEN_RECURRENT_GRU) {
        g->linear_before_reset = pen_node_int(node, "linear_before_reset") != 0;
    }
    if (g->kind == PEN_RECURRENT_LSTM) g->input_forget = pen_node_int(node, "input_forget") != 0;
    return PEN_OK;
}

// ---- shapes

// The hidden size is given or follows from the state's weights; then everything else is settled.
static pen_status geometry_check_weights(const pen_node *node, const pen_shape *w,
                                         const pen_shape *r, const pen_recurrent_geometry *g) {
    char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
    const int64_t hidden =
        pen_node_has(node, "hidden_size") ? pen_node_int(node, "hidden_size") : g->hidden;
    int64_t rows;
    if (hidden < 1 || !pen_i64_mul(g->gates, hidden, &rows)) {
        return pen_error(PEN_INVALID_INPUT, "the hidden size is %" PRId64, hidden);
    }
    const pen_shape expected_w = {3, {g->directions, rows, g->inputs}};
    const pen_shape expected_r = {3, {g->directions, rows, hidden}};
    if (!pen_shape_equal(r, &expected_r)) {
        return pen_error(PEN_INVALID_INPUT,
                         "the weights of the state (input 2) are %s, expected %s",
                         pen_shape_format(r, found), pen_shape_format(&expected_r, wanted));
    }
    if (!pen_shape_equal(w, &expected_w)) {
        return pen_error(PEN_INVALID_INPUT,
                         "the weights of the input (input 1) are %s, expected %s",
                         pen_shape_format(w, found), pen_shape_format(&expected_w, wanted));
    }
    return PEN_OK;
}

static void geometry_make_types(pen_element_type element, pen_recurrent_geometry *g) {
    const int64_t s = g->steps, n = g->batch, d = g->directions, h = g->hidden;
    const int64_t y[] = {s, d, n, h}, y_batch[] = {n, s, d, h};
    const int64_t state[] = {d, n, h}, state_batch[] = {n, d, h};
    const int64_t gates[] = {d, s, n, g->saved * h}, cells[] = {d, s, n, h};
    g->y = pen_tensor_type_make(element, 4, g->is_batch_first ? y_batch : y);
    g->state = pen_tensor_type_make(element, 3, g->is_batch_first ? state_batch : state);
    g->gate_type = pen_tensor_type_make(element, 4, gates);
    g->cell_type = pen_tensor_type_make(element, 4, cells);
}

// One description for three kinds of cells and both passes.
pen_status pen_recurrent_geometry_of(const pen_graph *graph, const pen_node *node,
                                     pen_recurrent_geometry *out_geometry) {
    pen_recurrent_geometry g = {0};
    const char *name = node->op->name;
    g.kind = strncmp(name, "lstm", 4) == 0  ? PEN_RECURRENT_LSTM
             : strncmp(name, "gru", 3) == 0 ? PEN_RECURRENT_GRU
                                            : PEN_RECURRENT_RNN;
    g.gates = g.kind == PEN_RECURRENT_LSTM ? 4 : g.kind == PEN_RECURRENT_GRU ? 3 : 1;
    PEN_TRY(geometry_read_attributes(node, &g));
    g.saved = g.kind == PEN_RECURRENT_RNN ? 0 : g.gates + (g.linear_before_reset ? 1 : 0);
    const pen_tensor_type *x = pen_value_type(graph, node->inputs[PEN_RECURRENT_X]);
    const pen_shape *w = &pen_value_type(graph, node->inputs[PEN_RECURRENT_W])->shape;
    const pen_shape *r = &pen_value_type(graph, node->inputs[PEN_RECURRENT_R])->shape;
    char text[PEN_SHAPE_TEXT_BYTES];
    if (x->shape.rank != 3) {
        return pen_error(PEN_INVALID_INPUT,
                         "the input is %s; expected three dimensions: steps, batch and features",
                         pen_shape_format(&x->shape, text));
    }
    g.steps = x->shape.dims[g.is_batch_first ? 1 : 0];
    g.batch = x->shape.dims[g.is_batch_first ? 0 : 1];
    g.inputs = x->shape.dims[2];
    if (r->rank != 3) {
        return pen_error(PEN_INVALID_INPUT,
                         "the weights of the state (input 2) are %s; expected three dimensions",
                         pen_shape_format(r, text));
    }
    g.hidden = r->dims[2];
    PEN_TRY(geometry_check_weights(node, w, r, &g));
    geometry_make_types(x->element, &g);
    *out_geometry = g;
    return PEN_OK;
}
