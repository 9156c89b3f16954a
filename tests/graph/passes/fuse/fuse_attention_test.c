#include "graph/passes/fuse/fuse_attention.h"

#include <math.h>
#include <stdarg.h>

#include "base/random.h"
#include "graph/op.h"
#include "graph/passes/fold_transposes.h"
#include "graph/passes/remove_dead.h"
#include "graph/passes/skip_dropout.h"
#include "tests/support/check.h"
#include "tests/support/kept_arena.h"
#include "tests/support/op_check.h"
#include "tests/support/run_graph.h"

enum { OUTER = 2, HEADS = 3, ROWS = 4, NUMBERS = 5 };

static pen_value_id add_value(pen_graph *graph, const char *name, pen_value_kind kind,
                              pen_tensor_type type, const void *data) {
    const pen_value value = {.name = name,
                             .kind = kind,
                             .type = type,
                             .trainable = kind == PEN_VALUE_PARAMETER,
                             .data = data,
                             .data_bytes = data == NULL ? 0 : pen_tensor_type_bytes(&type)};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

static pen_value_id add_node(pen_graph *graph, const char *op, uint32_t count, pen_value_id a,
                             pen_value_id b, pen_value_id c) {
    pen_node_spec spec = pen_node_spec_make(op, op);
    const pen_value_id inputs[] = {a, b, c};
    spec.inputs = inputs;
    spec.input_count = count;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

static pen_value_id two(pen_graph *graph, const char *op, pen_value_id a, pen_value_id b) {
    return add_node(graph, op, 2, a, b, PEN_VALUE_NONE);
}

static pen_value_id transpose(pen_graph *graph, pen_value_id x, uint32_t rank, ...) {
    pen_node_spec spec = pen_node_spec_make("transpose", "transpose");
    int64_t perm[4];
    va_list list;
    va_start(list, rank);
    for (uint32_t d = 0; d < rank; d++) {
        perm[d] = va_arg(list, int);
    }
    va_end(list);
    const pen_attribute_given attribute = pen_attribute_ints("perm", rank, perm);
    spec.inputs = &x;
    spec.input_count = 1;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

static pen_value_id number(pen_graph *graph, double x) {
    pen_value_id id;
    CHECK_OK(pen_graph_constant_number(graph, "number", PEN_FLOAT64, x, &id));
    return id;
}

static pen_value_id softmax(pen_graph *graph, pen_value_id x) {
    return add_node(graph, "softmax", 1, x, PEN_VALUE_NONE, PEN_VALUE_NONE);
}

typedef struct model {
    pen_graph *graph;
    pen_value_id q, k, v; // inputs
} model;

// Inputs that lie by row, (outer, rows, heads, numbers), or by head.
static model model_make(bool by_row) {
    model m;
    CHECK_OK(pen_graph_create(keep_arena(), "test", &m.graph));
    const pen_tensor_type type = by_row ? op_type(PEN_FLOAT64, 4, OUTER, ROWS, HEADS, NUMBERS)
                                        : op_type(PEN_FLOAT64, 4, OUTER, HEADS, ROWS, NUMBERS);
    m.q = add_value(m.graph, "q", PEN_VALUE_INPUT, type, NULL);
    m.k = add_value(m.graph, "k", PEN_VALUE_INPUT, type, NULL);
    m.v = add_value(m.graph, "v", PEN_VALUE_INPUT, type, NULL);
    return m;
}

static void run(run_graph *r, const pen_graph *graph) {
    CHECK_OK(run_graph_init(r, graph, pen_graph_arena(graph)));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_INPUT && value->kind != PEN_VALUE_PARAMETER) continue;
        const pen_random_key key = {1, pen_random_stream(value->name, 0, 0)};
        for (int64_t k = 0; k < pen_tensor_count(&r->tensors[v]); k++) {
            const double x = pen_random_normal(key, (uint64_t)k);
            pen_tensor_set(&r->tensors[v], k, value->type.element == PEN_BOOL ? x > 0 : x);
        }
    }
    CHECK_OK(run_graph_all(r));
}

// Fuses, compares the output, and returns the attention; NULL where there is none.
static const pen_node *fuse(const model *m, pen_value_id y) {
    CHECK_OK(pen_graph_add_output(m->graph, y));
    pen_fold_transposes(m->graph);
    pen_graph *fused;
    const pen_value_id *map;
    CHECK_OK(pen_fuse_attention(m->graph, 0, NULL, &fused, &map));
    CHECK(strcmp(pen_value_name(fused, map[y.index]), pen_value_name(m->graph, y)) == 0, "name");
    run_graph before, after;
    run(&before, m->graph);
    run(&after, fused);
    const pen_tensor *a = &before.tensors[y.index], *b = &after.tensors[map[y.index].index];
    for (int64_t k = 0; k < pen_tensor_count(a); k++) {
        const double expected = pen_tensor_get(a, k), found = pen_tensor_get(b, k);
        CHECK(fabs(expected - found) <= 1e-12, "element %lld is %g, expected %g", (long long)k,
              found, expected);
    }
    for (uint32_t n = 0; n < pen_graph_node_count(fused); n++) {
        const pen_node *node = pen_graph_node(fused, (pen_node_id){n});
        if (strcmp(node->op->name, "attention") == 0) return node;
    }
    return NULL;
}

static void check_attribute(const pen_node *node, const char *name, int64_t expected) {
    const int64_t found = pen_node_int(node, name);
    CHECK(found == expected, "%s is %lld", name, (long long)found);
}

// The mask that GPT-2 keeps: true where a row does not see.
static pen_value_id hiding_mask(pen_graph *graph, bool hides) {
    static bool masks[2][ROWS * ROWS];
    for (int i = 0; i < ROWS * ROWS; i++) {
        masks[hides][i] = (i % ROWS > i / ROWS) == hides;
    }
    return add_value(graph, "hidden", PEN_VALUE_CONSTANT, op_type(PEN_BOOL, 4, 1, 1, ROWS, ROWS),
                     masks[hides]);
}

// PyTorch's spelling of GPT-2: masked_fill, and transposes on all sides.
static void decoders_are_found(void **state) {
    (void)state;
    for (int hides = 0; hides < 2; hides++) {
        const model m = model_make(true);
        pen_graph *g = m.graph;
        const pen_value_id q = transpose(g, m.q, 4, 0, 2, 1, 3);
        const pen_value_id k = transpose(g, m.k, 4, 0, 2, 3, 1);
        const pen_value_id v = transpose(g, m.v, 4, 0, 2, 1, 3);
        const pen_value_id scores = two(g, "mul", two(g, "matmul", q, k), number(g, 0.25));
        const pen_value_id mask = hiding_mask(g, hides), fill = number(g, (double)-INFINITY);
        const pen_value_id masked = hides ? add_node(g, "where", 3, mask, fill, scores)
                                          : add_node(g, "where", 3, mask, scores, fill);
        const pen_value_id y = two(g, "matmul", softmax(g, masked), v);
        const pen_node *found = fuse(&m, transpose(g, y, 4, 0, 2, 1, 3));
        CHECK(found != NULL, "not found");
        CHECK(found->input_count == 3, "a mask is left");
        check_attribute(found, "causal", 1);
        check_attribute(found, "q_by_row", 1);
        check_attribute(found, "k_by_row", 1);
        check_attribute(found, "v_by_row", 1);
        check_attribute(found, "y_by_row", 1);
        CHECK(fabs(pen_node_float(found, "scale") - 0.25) < 1e-15, "scale");
    }
}

// A causal mask that is added, one of the data besides, and scores divided.
static void added_masks_are_found(void **state) {
    (void)state;
    static double hidden[ROWS * ROWS];
    for (int i = 0; i < ROWS * ROWS; i++) {
        hidden[i] = i % ROWS > i / ROWS ? (double)-INFINITY : 0;
    }
    const model m = model_make(false);
    pen_graph *g = m.graph;
    const pen_value_id causal =
        add_value(g, "causal", PEN_VALUE_CONSTANT, op_type(PEN_FLOAT64, 2, ROWS, ROWS), hidden);
    const pen_value_id data =
        add_value(g, "mask", PEN_VALUE_INPUT, op_type(PEN_FLOAT64, 4, OUTER, 1, 1, ROWS), NULL);
    const pen_value_id keys = transpose(g, m.k, 4, 0, 1, 3, 2);
    pen_value_id scores = two(g, "div", two(g, "matmul", m.q, keys), number(g, 2));
    scores = two(g, "add", causal, scores);
    scores = two(g, "add", scores, data);
    const pen_node *found = fuse(&m, two(g, "matmul", softmax(g, scores), m.v));
    CHECK(found != NULL, "not found");
    CHECK(found->input_count == 4, "no mask");
    check_attribute(found, "causal", 1);
    check_attribute(found, "q_by_row", 0);
}

// A boolean mask of the data with a finite fill, and factors on q and k.
static void filled_masks_are_found(void **state) {
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        const model m = model_make(false);
        pen_graph *g = m.graph;
        const pen_value_id data =
            add_value(g, "mask", PEN_VALUE_INPUT, op_type(PEN_BOOL, 3, HEADS, ROWS, ROWS), NULL);
        const pen_value_id q = two(g, "mul", number(g, 0.5), m.q);
        const pen_value_id keys = two(g, "mul", transpose(g, m.k, 4, 0, 1, 3, 2), number(g, 3));
        const pen_value_id scores = two(g, "matmul", q, keys), fill = number(g, -1e30);
        const pen_value_id masked = turned ? add_node(g, "where", 3, data, fill, scores)
                                           : add_node(g, "where", 3, data, scores, fill);
        const pen_node *found = fuse(&m, two(g, "matmul", softmax(g, masked), m.v));
        CHECK(found != NULL, "not found");
        CHECK(found->input_count == 4, "no mask");
        check_attribute(found, "causal", 0);
        CHECK(fabs(pen_node_float(found, "scale") - 1.5) < 1e-15, "scale");
    }
}

// A row whose scores are all the fill weighs all values the same.
static void rows_that_see_nothing_are_found(void **state) {
    (void)state;
    static bool hidden[ROWS * ROWS];
    for (int blind = 0; blind < 2; blind++) {
        const model m = model_make(false);
        pen_graph *g = m.graph;
        for (int i = 0; i < ROWS * ROWS; i++) {
            hidden[i] =
                i % ROWS >= i / ROWS + 1 - blind; // with `blind`, the first row sees nothing
        }
        hidden[ROWS - 1] = blind != 0; // never what a causal mask is
        const pen_value_id mask =
            add_value(g, "mask", PEN_VALUE_CONSTANT, op_type(PEN_BOOL, 2, ROWS, ROWS), hidden);
        const pen_value_id scores = two(g, "matmul", m.q, transpose(g, m.k, 4, 0, 1, 3, 2));
        const pen_value_id masked = add_node(g, "where", 3, mask, number(g, -1e9), scores);
        const pen_node *found = fuse(&m, two(g, "matmul", softmax(g, masked), m.v));
        CHECK(found != NULL, "blind %d: not found", blind);
        CHECK(pen_node_float(found, "fill") == -1e9, "fill");
    }
}

static void batches_of_one_dimension_are_found(void **state) {
    (void)state;
    model m;
    CHECK_OK(pen_graph_create(keep_arena(), "test", &m.graph));
    pen_graph *g = m.graph;
    const pen_tensor_type type = op_type(PEN_FLOAT64, 3, ROWS, HEADS, NUMBERS);
    m.q = add_value(g, "q", PEN_VALUE_INPUT, type, NULL);
    m.k = add_value(g, "k", PEN_VALUE_INPUT, type, NULL);
    m.v = add_value(g, "v", PEN_VALUE_INPUT, type, NULL);
    const pen_value_id scores =
        two(g, "matmul", transpose(g, m.q, 3, 1, 0, 2), transpose(g, m.k, 3, 1, 2, 0));
    const pen_value_id y = two(g, "matmul", softmax(g, scores), transpose(g, m.v, 3, 1, 0, 2));
    const pen_node *found = fuse(&m, transpose(g, y, 3, 1, 0, 2));
    CHECK(found != NULL, "not found");
    check_attribute(found, "k_by_row", 1);
    check_attribute(found, "y_by_row", 1);
}

// A dropout that drops nothing stands between the weights and the values.
static void idle_dropouts_are_skipped(void **state) {
    (void)state;
    for (int training = 0; training < 2; training++) {
        model m = model_make(false);
        const pen_value_id keys = transpose(m.graph, m.k, 4, 0, 1, 3, 2);
        const pen_value_id weights = softmax(m.graph, two(m.graph, "matmul", m.q, keys));
        const pen_value_id ratio = number(m.graph, training ? 0 : 0.5);
        const pen_value_id mode = number(m.graph, training);
        const pen_value_id dropped = add_node(m.graph, "dropout", 3, weights, ratio, mode);
        const pen_value_id again = add_node(m.graph, "dropout", 3, dropped, ratio, mode);
        const pen_value_id y = two(m.graph, "matmul", again, m.v);
        CHECK_OK(pen_skip_dropout(m.graph));
        const pen_value_id *map;
        CHECK_OK(pen_remove_dead(m.graph, 1, &y, &m.graph, &map));
        CHECK(fuse(&m, map[y.index]) != NULL, "not found");
    }
}

static pen_value_id reshape(pen_graph *graph, pen_value_id x, uint32_t rank, ...) {
    int64_t dims[6];
    va_list list;
    va_start(list, rank);
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = va_arg(list, int);
    }
    va_end(list);
    pen_value_id shape;
    CHECK_OK(pen_graph_constant_ints(graph, "shape", rank, dims, &shape));
    return two(graph, "reshape", x, shape);
}

// Dropout of the probabilities is the attention's, with the same numbers.
static void dropouts_are_taken_in(void **state) {
    (void)state;
    const model m = model_make(false);
    pen_graph *g = m.graph;
    const pen_value_id scores = two(g, "matmul", m.q, transpose(g, m.k, 4, 0, 1, 3, 2));
    pen_node_spec spec = pen_node_spec_make("dropout", "drops");
    const pen_value_id inputs[3] = {softmax(g, scores), number(g, 0.3), number(g, 1)};
    spec.inputs = inputs;
    spec.input_count = 3;
    spec.output_count = 2;
    pen_node_id dropout;
    CHECK_OK(pen_graph_add_node(g, &spec, &dropout));
    const pen_node *found = fuse(&m, two(g, "matmul", pen_graph_node(g, dropout)->outputs[0], m.v));
    CHECK(found != NULL, "not found");
    CHECK(pen_node_float(found, "dropout") == 0.3, "ratio");
    CHECK(strcmp(pen_node_text(found, "stream"), "drops") == 0, "stream");
}

// Two masks, of which one is trained.
static void masks_are_added_up(void **state) {
    (void)state;
    const model m = model_make(false);
    pen_graph *g = m.graph;
    const pen_value_id bias =
        add_value(g, "bias", PEN_VALUE_PARAMETER, op_type(PEN_FLOAT64, 3, HEADS, ROWS, ROWS), NULL);
    const pen_value_id mask =
        add_value(g, "mask", PEN_VALUE_INPUT, op_type(PEN_FLOAT64, 4, OUTER, 1, 1, ROWS), NULL);
    pen_value_id scores = two(g, "matmul", m.q, transpose(g, m.k, 4, 0, 1, 3, 2));
    scores = two(g, "add", two(g, "add", scores, bias), mask);
    const pen_node *found = fuse(&m, two(g, "matmul", softmax(g, scores), m.v));
    CHECK(found != NULL, "not found");
    CHECK(found->input_count == 4, "no mask");
}

// Swin's windows: a mask for each window of an image between two views of the scores.
static void masks_of_split_batches_are_found(void **state) {
    (void)state;
    for (int by_row = 0; by_row < 2; by_row++) {
        model m = model_make(by_row);
        pen_graph *g = m.graph;
        const pen_value_id q = by_row ? transpose(g, m.q, 4, 0, 2, 1, 3) : m.q;
        const pen_value_id k =
            by_row ? transpose(g, m.k, 4, 0, 2, 3, 1) : transpose(g, m.k, 4, 0, 1, 3, 2);
        const pen_value_id v = by_row ? transpose(g, m.v, 4, 0, 2, 1, 3) : m.v;
        const pen_value_id bias = add_value(g, "bias", PEN_VALUE_PARAMETER,
                                            op_type(PEN_FLOAT64, 4, 1, HEADS, ROWS, ROWS), NULL);
        const pen_value_id mask = add_value(g, "mask", PEN_VALUE_INPUT,
                                            op_type(PEN_FLOAT64, 5, 1, 2, 1, ROWS, ROWS), NULL);
        pen_value_id scores = two(g, "add", two(g, "matmul", q, k), bias);
        scores = reshape(g, scores, 5, OUTER / 2, 2, HEADS, ROWS, ROWS);
        scores = reshape(g, two(g, "add", scores, mask), 4, OUTER, HEADS, ROWS, ROWS);
        pen_value_id y = two(g, "matmul", softmax(g, scores), v);
        if (by_row) y = transpose(g, y, 4, 0, 2, 1, 3);
        const pen_node *found = fuse(&m, y);
        CHECK(found != NULL, "not found");
        check_attribute(found, "q_by_row", by_row);
        check_attribute(found, "y_by_row", by_row);
    }
}

// Bart's: products of one batch dimension, a mask over two.
static void heads_within_batches_are_found(void **state) {
    (void)state;
    for (int has_mask = 0; has_mask < 2; has_mask++) {
        model m = model_make(true);
        pen_graph *g = m.graph;
        pen_value_id operands[3] = {m.q, m.k, m.v};
        for (int i = 0; i < 3; i++) {
            operands[i] = reshape(g, transpose(g, operands[i], 4, 0, 2, 1, 3), 3, OUTER * HEADS,
                                  ROWS, NUMBERS);
        }
        const pen_value_id mask =
            add_value(g, "mask", PEN_VALUE_INPUT, op_type(PEN_FLOAT64, 4, OUTER, 1, 1, ROWS), NULL);
        pen_value_id scores = two(g, "matmul", operands[0], transpose(g, operands[1], 3, 0, 2, 1));
        if (has_mask) {
            scores = two(g, "add", reshape(g, scores, 4, OUTER, HEADS, ROWS, ROWS), mask);
            scores = reshape(g, scores, 3, OUTER * HEADS, ROWS, ROWS);
        }
        pen_value_id y = two(g, "matmul", softmax(g, scores), operands[2]);
        y = transpose(g, reshape(g, y, 4, OUTER, HEADS, ROWS, NUMBERS), 4, 0, 2, 1, 3);
        const pen_node *found = fuse(&m, y);
        CHECK(found != NULL, "not found");
        check_attribute(found, "q_by_row", has_mask); // where it lies split
    }
}

// Heads of k and v that several of q read: expanded, split and expanded, broadcast by the product.
static void shared_heads_are_found(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        model m;
        CHECK_OK(pen_graph_create(check_arena(), "test", &m.graph));
        pen_graph *g = m.graph;
        const int times = 2, groups = way == 2 ? 1 : HEADS;
        m.q = add_value(g, "q", PEN_VALUE_INPUT,
                        op_type(PEN_FLOAT64, 4, OUTER, groups * times, ROWS, NUMBERS), NULL);
        pen_value_id shared[2];
        for (int i = 0; i < 2; i++) {
            shared[i] = add_value(g, i == 0 ? "k" : "v", PEN_VALUE_INPUT,
                                  op_type(PEN_FLOAT64, 4, OUTER, groups, ROWS, NUMBERS), NULL);
            pen_value_id x = shared[i], parts[HEADS];
            if (way == 2) continue;
            pen_node_spec spec = pen_node_spec_make("split", "split");
            const pen_attribute_given axis = pen_attribute_int("axis", 1);
            pen_node_id split;
            spec.inputs = &x;
            spec.input_count = 1;
            spec.output_count = way == 1 ? HEADS : 1;
            spec.attributes = &axis;
            spec.attribute_count = 1;
            if (way == 1) CHECK_OK(pen_graph_add_node(g, &spec, &split));
            const uint32_t part_count = way == 1 ? HEADS : 1;
            for (uint32_t part = 0; part < part_count; part++) {
                const int own = way == 1 ? 1 : HEADS;
                if (way == 1) x = pen_graph_node(g, split)->outputs[part];
                const int64_t wide[5] = {OUTER, own, times, ROWS, NUMBERS};
                pen_value_id shape;
                CHECK_OK(pen_graph_constant_ints(g, "wide", 5, wide, &shape));
                x = two(g, "expand", reshape(g, x, 5, OUTER, own, 1, ROWS, NUMBERS), shape);
                parts[part] = reshape(g, x, 4, OUTER, own * times, ROWS, NUMBERS);
            }
            shared[i] = parts[0];
            if (way == 0) continue;
            spec = pen_node_spec_make("concat", "concat");
            spec.inputs = parts;
            spec.input_count = HEADS;
            spec.attributes = &axis;
            spec.attribute_count = 1;
            CHECK_OK(pen_graph_add_simple(g, &spec, &shared[i]));
        }
        const pen_value_id scores = two(g, "matmul", m.q, transpose(g, shared[0], 4, 0, 1, 3, 2));
        const pen_node *found = fuse(&m, two(g, "matmul", softmax(g, scores), shared[1]));
        CHECK(found != NULL, "not found, way %d", way);
        pen_arena_destroy(pen_graph_arena(g));
    }
}

static void others_stay(void **state) {
    (void)state;
    // the weights are an output, too
    model m = model_make(false);
    pen_value_id keys = transpose(m.graph, m.k, 4, 0, 1, 3, 2);
    const pen_value_id weights = softmax(m.graph, two(m.graph, "matmul", m.q, keys));
    CHECK_OK(pen_graph_add_output(m.graph, weights));
    CHECK(fuse(&m, two(m.graph, "matmul", weights, m.v)) == NULL, "the weights were taken in");
    // a factor behind a mask
    m = model_make(false);
    keys = transpose(m.graph, m.k, 4, 0, 1, 3, 2);
    const pen_value_id mask =
        add_value(m.graph, "mask", PEN_VALUE_INPUT, op_type(PEN_FLOAT64, 2, ROWS, ROWS), NULL);
    pen_value_id masked = two(m.graph, "add", two(m.graph, "matmul", m.q, keys), mask);
    masked = two(m.graph, "mul", masked, number(m.graph, 2));
    CHECK(fuse(&m, two(m.graph, "matmul", softmax(m.graph, masked), m.v)) == NULL,
          "the factor was taken before the mask");
}

static void weights_are_read_as_they_lie(void **state) {
    (void)state;
    pen_graph *graph;
    CHECK_OK(pen_graph_create(keep_arena(), "test", &graph));
    const pen_value_id x =
        add_value(graph, "x", PEN_VALUE_INPUT, op_type(PEN_FLOAT64, 3, 2, 3, 4), NULL);
    const pen_value_id w =
        add_value(graph, "w", PEN_VALUE_PARAMETER, op_type(PEN_FLOAT64, 2, 5, 4), NULL);
    const pen_value_id y = two(graph, "matmul", x, transpose(graph, w, 2, 1, 0));
    run_graph before, after;
    run(&before, graph);
    pen_fold_transposes(graph);
    const pen_node *product = pen_graph_node(graph, pen_graph_value(graph, y)->producer);
    CHECK(pen_value_same(product->inputs[1], w), "the transpose is still read");
    run(&after, graph);
    for (int64_t k = 0; k < pen_tensor_count(&before.tensors[y.index]); k++) {
        const double a = pen_tensor_get(&before.tensors[y.index], k);
        const double b = pen_tensor_get(&after.tensors[y.index], k);
        CHECK(fabs(a - b) < 1e-14, "element %lld is %g, expected %g", (long long)k, b, a);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(decoders_are_found), cmocka_unit_test(added_masks_are_found),
              cmocka_unit_test(filled_masks_are_found),
              cmocka_unit_test(rows_that_see_nothing_are_found),
              cmocka_unit_test(batches_of_one_dimension_are_found),
              cmocka_unit_test(idle_dropouts_are_skipped), cmocka_unit_test(dropouts_are_taken_in),
              cmocka_unit_test(masks_are_added_up),
              cmocka_unit_test(masks_of_split_batches_are_found),
              cmocka_unit_test(heads_within_batches_are_found),
              cmocka_unit_test(shared_heads_are_found), cmocka_unit_test(others_stay),
              cmocka_unit_test(weights_are_read_as_they_lie))
