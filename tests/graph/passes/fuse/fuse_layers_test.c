// Spellings of layers become one operator each, with the same values.
#include "graph/passes/fuse/fuse_layers.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/random.h"
#include "graph/op.h"
#include "graph/passes/remove_dead.h"
#include "tests/support/check.h"
#include "tests/support/kept_arena.h"
#include "tests/support/run_graph.h"

typedef struct speller {
    pen_graph *graph;
    pen_tensor_type x_type;
    pen_value_id x;
    uint32_t made;
} speller;

static speller speller_begin(pen_tensor_type x_type) {
    speller s = {.x_type = x_type};
    CHECK_OK(pen_graph_create(keep_arena(), "test", &s.graph));
    const pen_value value = {.name = "x", .kind = PEN_VALUE_INPUT, .type = x_type};
    CHECK_OK(pen_graph_add_value(s.graph, &value, &s.x));
    return s;
}

static pen_value_id apply_with(speller *s, const char *op, pen_value_id a, pen_value_id b,
                               const pen_attribute_given *attribute) {
    char name[64];
    snprintf(name, sizeof name, "%s_%u", op, s->made++);
    const pen_value_id inputs[] = {a, b};
    pen_node_spec spec = pen_node_spec_make(op, name);
    spec.inputs = inputs;
    spec.input_count = pen_value_is(b) ? 2 : 1;
    spec.attributes = attribute;
    spec.attribute_count = attribute == NULL ? 0 : 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(s->graph, &spec, &output));
    return output;
}

static pen_value_id apply(speller *s, const char *op, pen_value_id a, pen_value_id b) {
    return apply_with(s, op, a, b, NULL);
}

static pen_value_id apply_one(speller *s, const char *op, pen_value_id a) {
    return apply(s, op, a, PEN_VALUE_NONE);
}

static pen_value_id number(speller *s, double value) {
    pen_value_id id;
    CHECK_OK(pen_graph_constant_number(s->graph, "number", s->x_type.element, value, &id));
    return id;
}

static pen_value_id ints(speller *s, uint32_t count, const int64_t *values) {
    pen_value_id id;
    CHECK_OK(pen_graph_constant_ints(s->graph, "ints", count, values, &id));
    return id;
}

static pen_value_id weight(speller *s, const char *name, pen_tensor_type type) {
    const pen_value value = {.name = name, .kind = PEN_VALUE_PARAMETER, .type = type};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(s->graph, &value, &id));
    return id;
}

static void run(run_graph *r, const pen_graph *graph) {
    CHECK_OK(run_graph_init(r, graph, pen_graph_arena(graph)));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_INPUT && value->kind != PEN_VALUE_PARAMETER) continue;
        const pen_random_key key = {1, pen_random_stream(value->name, 0, 0)};
        for (int64_t k = 0; k < pen_tensor_count(&r->tensors[v]); k++) {
            pen_tensor_set(&r->tensors[v], k, 2 * pen_random_normal(key, (uint64_t)k));
        }
    }
    CHECK_OK(run_graph_all(r));
}

// The graph whose result is `y`, fused and tidied; its result must be what it was before.
static pen_graph *fuse(speller *s, pen_value_id y) {
    CHECK_OK(pen_graph_add_output(s->graph, y));
    pen_graph *fused, *tidy;
    const pen_value_id *map;
    CHECK_OK(pen_fuse_layers(s->graph, 0, NULL, &fused, &map));
    CHECK_OK(pen_remove_dead(fused, 0, NULL, &tidy, &map));
    run_graph before, after;
    run(&before, s->graph);
    run(&after, tidy);
    const pen_value_id z = pen_graph_output(tidy, 0);
    assert_string_equal(pen_value_name(tidy, z), pen_value_name(s->graph, y));
    for (int64_t k = 0; k < pen_tensor_count(&before.tensors[y.index]); k++) {
        const double a = pen_tensor_get(&before.tensors[y.index], k);
        const double b = pen_tensor_get(&after.tensors[z.index], k);
        CHECK(fabs(a - b) <= 1e-6 * (1 + fabs(a)), "element %lld is %g, expected %g", (long long)k,
              b, a);
    }
    return tidy;
}

// The graph has these nodes, and no others.
static void check_ops(const pen_graph *graph, uint32_t count, ...) {
    va_list ops;
    CHECK(pen_graph_node_count(graph) == count, "%u nodes, expected %u; the first is %s",
          pen_graph_node_count(graph), count, pen_graph_node(graph, (pen_node_id){0})->op->name);
    va_start(ops, count);
    for (uint32_t n = 0; n < count; n++) {
        assert_string_equal(pen_graph_node(graph, (pen_node_id){n})->op->name,
                            va_arg(ops, const char *));
    }
    va_end(ops);
}

static const pen_tensor_type states = {PEN_FLOAT64, {3, {2, 3, 5}}};

// How a normalisation is spelled.
typedef struct spelling {
    bool multiplies;  // d * d, not d^2
    bool takes_twice; // the mean is taken off twice
    int root;         // 0: / sqrt, 1: * 1 / sqrt, 2: * reciprocal sqrt, 3: ^ 0.5, 4: ^ -0.5
    bool swaps;       // operands of products and sums
    bool casts;       // that change nothing
    int weights;      // 0 to 2
    bool is_centred;
} spelling;

static pen_value_id commute(speller *s, const spelling *how, const char *op, pen_value_id a,
                            pen_value_id b) {
    return how->swaps ? apply(s, op, b, a) : apply(s, op, a, b);
}

static pen_value_id same(speller *s, const spelling *how, pen_value_id value) {
    return how->casts ? apply_one(s, "identity", value) : value;
}

static pen_value_id mean_of(speller *s, pen_value_id value) {
    return apply(s, "reduce_mean", value, ints(s, 1, (const int64_t[]){-1}));
}

static pen_value_id divide(speller *s, const spelling *how, pen_value_id top, pen_value_id square) {
    const pen_value_id half = number(s, how->root == 4 ? -0.5 : 0.5);
    const pen_value_id root =
        how->root >= 3 ? apply(s, "pow", square, half) : apply_one(s, "sqrt", square);
    switch (how->root) {
    case 1:
        return commute(s, how, "mul", top, apply(s, "div", number(s, 1), root));
    case 2:
        return commute(s, how, "mul", top, apply_one(s, "reciprocal", root));
    case 4:
        return commute(s, how, "mul", top, root);
    default:
        return apply(s, "div", top, root);
    }
}

static pen_value_id spell(speller *s, const spelling *how) {
    const pen_tensor_type vector = {PEN_FLOAT64, {1, {5}}};
    pen_value_id d = same(s, how, s->x), top = d;
    if (how->is_centred) {
        const pen_value_id mean = mean_of(s, d);
        d = same(s, how, apply(s, "sub", d, mean));
        top = how->takes_twice ? apply(s, "sub", s->x, mean) : d;
    }
    const pen_value_id square =
        how->multiplies ? apply(s, "mul", d, d) : apply(s, "pow", d, number(s, 2));
    const pen_value_id variance = mean_of(s, same(s, how, square));
    const pen_value_id sum = commute(s, how, "add", variance, number(s, 0.01));
    pen_value_id y = divide(s, how, top, sum);
    if (how->weights > 0) y = same(s, how, y); // else that would be the result
    if (how->weights > 0) y = commute(s, how, "mul", y, weight(s, "scale", vector));
    if (how->weights > 1) y = commute(s, how, "add", same(s, how, y), weight(s, "bias", vector));
    return y;
}

static void normalisations_are_found(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 2 * 2 * 5 * 2 * 2 * 3 * 2; seed++) {
        const spelling how = {seed % 2 != 0,      seed / 2 % 2 != 0,  (int)(seed / 4 % 5),
                              seed / 20 % 2 != 0, seed / 40 % 2 != 0, (int)(seed / 80 % 3),
                              seed / 240 != 0};
        if (how.takes_twice && (how.casts || !how.is_centred)) continue;
        if (!how.is_centred && how.weights == 2) continue;
        speller s = speller_begin(states);
        pen_graph *fused = fuse(&s, spell(&s, &how));
        check_ops(fused, 1, how.is_centred ? "layer_normalization" : "rms_normalization");
        const pen_node *node = pen_graph_node(fused, (pen_node_id){0});
        assert_int_equal(node->input_count, 1 + how.weights);
        assert_int_equal(pen_node_int(node, "axis"), 2);
        CHECK(pen_node_float(node, "epsilon") == 0.01, "epsilon is %g",
              pen_node_float(node, "epsilon"));
    }
}

// x * m + (bias - mean * m), as TensorFlow has it.
static void products_and_sums_are_found(void **state) {
    (void)state;
    for (int way = 0; way < 16; way++) {
        speller s = speller_begin(states);
        const spelling how = {
            .root = 1 + way % 2, .swaps = way / 2 % 2 != 0, .multiplies = way / 4 % 2 != 0};
        const pen_tensor_type vector = {PEN_FLOAT64, {1, {5}}};
        const pen_value_id mean = mean_of(&s, s.x), d = apply(&s, "sub", s.x, mean);
        const pen_value_id square =
            how.multiplies ? apply(&s, "mul", d, d) : apply(&s, "pow", d, number(&s, 2));
        const pen_value_id sum = commute(&s, &how, "add", mean_of(&s, square), number(&s, 0.01));
        const pen_value_id scale = weight(&s, "scale", vector), bias = weight(&s, "bias", vector);
        const pen_value_id root = apply_one(&s, "sqrt", sum);
        const pen_value_id inverse = how.root == 1 ? apply(&s, "div", number(&s, 1), root)
                                                   : apply_one(&s, "reciprocal", root);
        const pen_value_id m = commute(&s, &how, "mul", inverse, scale);
        const pen_value_id product = commute(&s, &how, "mul", s.x, m);
        const pen_value_id offset = apply(&s, "sub", bias, commute(&s, &how, "mul", mean, m));
        const pen_value_id y =
            way / 8 == 0 ? apply(&s, "add", product, offset) : apply(&s, "add", offset, product);
        pen_graph *fused = fuse(&s, y);
        check_ops(fused, 1, "layer_normalization");
        assert_int_equal(pen_graph_node(fused, (pen_node_id){0})->input_count, 3);
    }
}

static void weights_of_several_dimensions_are_taken(void **state) {
    (void)state;
    speller s = speller_begin(states);
    const pen_value_id axes = ints(&s, 2, (const int64_t[]){-1, 1});
    const pen_value_id d = apply(&s, "sub", s.x, apply(&s, "reduce_mean", s.x, axes));
    const pen_value_id squares = apply(&s, "reduce_mean", apply(&s, "pow", d, number(&s, 2)), axes);
    const pen_value_id root = apply_one(&s, "sqrt", apply(&s, "add", squares, number(&s, 1)));
    const pen_tensor_type type = {PEN_FLOAT64, {3, {1, 3, 5}}};
    const pen_value_id y = apply(&s, "mul", apply(&s, "div", d, root), weight(&s, "scale", type));
    check_ops(fuse(&s, y), 1, "layer_normalization");
}

// Not over the last dimensions; or weights that belong to others; or read in the middle.
static void what_only_looks_alike_stays(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        speller s = speller_begin(states);
        const pen_value_id axes = ints(&s, 1, (const int64_t[]){kind == 0 ? 1 : 2});
        const pen_value_id mean = apply(&s, "reduce_mean", s.x, axes);
        const pen_value_id d = apply(&s, "sub", s.x, mean);
        const pen_value_id power = apply(&s, "pow", d, number(&s, kind == 1 ? 4 : 2));
        const pen_value_id sum =
            apply(&s, "add", apply(&s, "reduce_mean", power, axes), number(&s, 0.1));
        pen_value_id y = apply(&s, "div", d, apply_one(&s, "sqrt", sum));
        if (kind == 2) y = apply(&s, "add", y, mean);
        if (kind == 3) CHECK_OK(pen_graph_add_output(s.graph, sum));
        CHECK_OK(pen_graph_add_output(s.graph, y));
        pen_graph *fused;
        const pen_value_id *map;
        CHECK_OK(pen_fuse_layers(s.graph, 0, NULL, &fused, &map));
        CHECK(fused == s.graph && map == NULL, "case %d was fused", kind);
    }
    // a weight for each row is no scale
    speller s = speller_begin(states);
    const spelling how = {.is_centred = true};
    const pen_tensor_type rows = {PEN_FLOAT64, {2, {3, 1}}};
    const pen_value_id y = apply(&s, "mul", spell(&s, &how), weight(&s, "rows", rows));
    check_ops(fuse(&s, y), 2, "layer_normalization", "mul");
}

static void groups_are_found(void **state) {
    (void)state;
    for (int weights = 0; weights <= 2; weights++) {
        const pen_tensor_type images = {PEN_FLOAT32, {4, {2, 6, 3, 2}}};
        speller s = speller_begin(images);
        static const float ones[3] = {1, 1, 1}, zeros[3] = {0, 0, 0};
        const pen_tensor_type three = {PEN_FLOAT32, {1, {3}}}, six = {PEN_FLOAT32, {1, {6}}};
        const pen_value_id parts =
            apply(&s, "reshape", s.x, ints(&s, 3, (const int64_t[]){2, 3, -1}));
        pen_value_id inputs[3] = {parts};
        CHECK_OK(pen_graph_constant(s.graph, "ones", &three, ones, &inputs[1]));
        CHECK_OK(pen_graph_constant(s.graph, "zeros", &three, zeros, &inputs[2]));
        pen_node_spec spec = pen_node_spec_make("instance_normalization", "groups");
        spec.inputs = inputs;
        spec.input_count = 3;
        pen_value_id y;
        CHECK_OK(pen_graph_add_simple(s.graph, &spec, &y));
        y = apply(&s, "reshape", y, ints(&s, 4, (const int64_t[]){2, 6, 3, 2}));
        const pen_value_id last_two = ints(&s, 2, (const int64_t[]){1, 2});
        for (int i = 0; i < weights; i++) {
            const pen_value_id w = weight(&s, i == 0 ? "scale" : "bias", six);
            y = apply(&s, i == 0 ? "mul" : "add", y, apply(&s, "unsqueeze", w, last_two));
        }
        check_ops(fuse(&s, y), 1, "group_normalization");
    }
}

// Keras reshapes to rows, and normalises these as channels.
static void rows_are_found(void **state) {
    (void)state;
    for (int weights = 0; weights <= 2; weights++) {
        const pen_tensor_type type = {PEN_FLOAT32, {3, {2, 3, 5}}}, six = {PEN_FLOAT32, {1, {6}}};
        const pen_tensor_type five = {PEN_FLOAT32, {1, {5}}};
        speller s = speller_begin(type);
        static const float ones[6] = {1, 1, 1, 1, 1, 1}, zeros[6] = {0};
        pen_value_id inputs[3] = {
            apply(&s, "reshape", s.x, ints(&s, 4, (const int64_t[]){1, 6, 5, 1}))};
        CHECK_OK(pen_graph_constant(s.graph, "ones", &six, ones, &inputs[1]));
        CHECK_OK(pen_graph_constant(s.graph, "zeros", &six, zeros, &inputs[2]));
        pen_node_spec spec = pen_node_spec_make("instance_normalization", "rows");
        spec.inputs = inputs;
        spec.input_count = 3;
        pen_value_id y;
        CHECK_OK(pen_graph_add_simple(s.graph, &spec, &y));
        y = apply(&s, "reshape", y, ints(&s, 3, (const int64_t[]){2, 3, 5}));
        for (int i = 0; i < weights; i++) {
            const pen_value_id w = weight(&s, i == 0 ? "scale" : "bias", five);
            y = apply(&s, i == 0 ? "mul" : "add", y, w);
        }
        pen_graph *fused = fuse(&s, y);
        check_ops(fused, 1, "layer_normalization");
        assert_int_equal(pen_graph_node(fused, (pen_node_id){0})->input_count, 1 + weights);
    }
}

// x³, in one of several ways.
static pen_value_id cube(speller *s, pen_value_id x, int way) {
    if (way == 0) return apply(s, "pow", x, number(s, 3));
    return way == 1 ? apply(s, "mul", apply(s, "mul", x, x), x)
                    : apply(s, "mul", x, apply(s, "pow", x, number(s, 2)));
}

static pen_value_id spell_tanh(speller *s, pen_value_id x, int way) {
    const pen_value_id k = number(s, 0.7978845608), c = number(s, 0.044715);
    if (way == 3) { // k x (1 + c x x)
        const pen_value_id inner =
            apply(s, "add", number(s, 1), apply(s, "mul", apply(s, "mul", c, x), x));
        return apply_one(s, "tanh", apply(s, "mul", apply(s, "mul", x, k), inner));
    }
    const pen_value_id sum = apply(s, "add", x, apply(s, "mul", c, cube(s, x, way)));
    return apply_one(s, "tanh", apply(s, "mul", k, sum));
}

static pen_value_id spell_erf(speller *s, pen_value_id x, int way) {
    return apply_one(s, "erf",
                     way % 2 == 0 ? apply(s, "div", x, number(s, 1.41421356))
                                  : apply(s, "mul", number(s, 0.70710678), x));
}

// x * gate / 2, grouped in one of several ways.
static pen_value_id spell_product(speller *s, pen_value_id x, pen_value_id gate, int way) {
    const pen_value_id half = number(s, 0.5);
    switch (way) {
    case 0:
        return apply(s, "mul", apply(s, "mul", x, gate), half);
    case 1:
        return apply(s, "mul", apply(s, "mul", half, x), gate);
    case 2:
        return apply(s, "mul", x, apply(s, "mul", gate, half));
    case 3:
        return apply(s, "mul", apply(s, "div", x, number(s, 2)), gate);
    default:
        return apply(s, "div", apply(s, "mul", gate, x), number(s, 2));
    }
}

static void gated_activations_are_found(void **state) {
    (void)state;
    for (int way = 0; way < 2 * 4 * 5 * 2; way++) {
        speller s = speller_begin(states);
        const bool is_tanh = way % 2 != 0, is_sum = way / 40 != 0;
        const pen_tensor_type vector = {PEN_FLOAT64, {1, {5}}};
        // what is activated is often a sum or a product itself
        const pen_value_id x =
            is_sum ? apply(&s, way % 3 == 0 ? "mul" : "add", s.x, weight(&s, "w", vector)) : s.x;
        const pen_value_id inner =
            is_tanh ? spell_tanh(&s, x, way / 2 % 4) : spell_erf(&s, x, way / 2 % 4);
        const pen_value_id gate = way % 5 == 0 ? apply(&s, "add", number(&s, 1), inner)
                                               : apply(&s, "add", inner, number(&s, 1));
        pen_graph *fused = fuse(&s, spell_product(&s, x, gate, way / 8 % 5));
        const pen_node_id last = {is_sum ? 1 : 0};
        CHECK(pen_graph_node_count(fused) == last.index + 1, "way %d: %u nodes", way,
              pen_graph_node_count(fused));
        const pen_node *node = pen_graph_node(fused, last);
        assert_string_equal(node->op->name, "gelu");
        assert_string_equal(pen_node_text(node, "approximate"), is_tanh ? "tanh" : "none");
    }
}

static void swish_is_found(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        speller s = speller_begin(states);
        const pen_value_id in = way < 2 ? s.x : apply(&s, "mul", s.x, number(&s, 1.702));
        const pen_value_id gate = apply_one(&s, "sigmoid", in);
        pen_graph *fused =
            fuse(&s, way % 2 == 0 ? apply(&s, "mul", s.x, gate) : apply(&s, "mul", gate, s.x));
        check_ops(fused, 1, "swish");
        const double alpha = pen_node_float(pen_graph_node(fused, (pen_node_id){0}), "alpha");
        CHECK(alpha == (way < 2 ? 1 : 1.702), "alpha is %g", alpha);
    }
}

static pen_value_id hold(speller *s, pen_value_id x, double low, double high) {
    const pen_value_id inputs[] = {x, number(s, low), number(s, high)};
    pen_node_spec spec = pen_node_spec_make("clip", "clip");
    spec.inputs = inputs;
    spec.input_count = 3;
    pen_value_id y;
    CHECK_OK(pen_graph_add_simple(s->graph, &spec, &y));
    return y;
}

static void hard_swish_is_found(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        speller s = speller_begin(states);
        pen_value_id y;
        if (way == 0) {
            const pen_attribute_given alpha = pen_attribute_float("alpha", 1.0f / 6);
            y = apply(&s, "mul", s.x, apply_with(&s, "hard_sigmoid", s.x, PEN_VALUE_NONE, &alpha));
        } else {
            const pen_value_id gate = hold(&s, apply(&s, "add", s.x, number(&s, 3)), 0, 6);
            const pen_value_id first =
                way == 3 ? apply(&s, "div", gate, number(&s, 6)) : apply(&s, "mul", s.x, gate);
            y = way == 1   ? apply(&s, "div", first, number(&s, 6))
                : way == 2 ? apply(&s, "mul", first, number(&s, 1.0f / 6))
                           : apply(&s, "mul", s.x, first);
        }
        check_ops(fuse(&s, y), 1, "hard_swish");
    }
    speller s = speller_begin(states); // held elsewhere: another function
    const pen_value_id gate = hold(&s, apply(&s, "add", s.x, number(&s, 3)), 0, 5);
    const pen_value_id y = apply(&s, "div", apply(&s, "mul", s.x, gate), number(&s, 6));
    assert_int_equal(pen_graph_node_count(fuse(&s, y)), 4);
}

// Arithmetic of integers that looks like an activation, and chains longer than a spelling.
static void integers_and_long_chains_stay(void **state) {
    (void)state;
    const pen_tensor_type integers = {PEN_INT32, {1, {5}}};
    speller s = speller_begin(integers);
    const pen_value_id gate = hold(&s, apply(&s, "add", s.x, number(&s, 3)), 0, 6);
    pen_value_id y = apply(&s, "div", apply(&s, "mul", s.x, gate), number(&s, 6));
    assert_int_equal(pen_graph_node_count(fuse(&s, y)), 4);
    s = speller_begin(states);
    y = apply_one(&s, "sigmoid", s.x);
    for (int i = 0; i < 200; i++) {
        y = i % 2 == 0 ? apply(&s, "mul", y, number(&s, 1.5)) : apply_one(&s, "identity", y);
    }
    assert_int_equal(pen_graph_node_count(fuse(&s, apply(&s, "mul", y, s.x))), 202);
}

// Gates of something else, of another size, or with an offset.
static void other_gates_stay(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        speller s = speller_begin(states);
        const pen_value_id other = weight(&s, "other", states);
        pen_value_id into = kind == 0 ? other : s.x;
        if (kind == 1) into = apply(&s, "add", into, number(&s, 0.5));
        if (kind == 2) into = apply(&s, "mul", into, into);
        const pen_value_id gate = apply_one(&s, "sigmoid", into);
        if (kind == 3) CHECK_OK(pen_graph_add_output(s.graph, gate));
        CHECK_OK(pen_graph_add_output(s.graph, apply(&s, "mul", s.x, gate)));
        pen_graph *fused;
        const pen_value_id *map;
        CHECK_OK(pen_fuse_layers(s.graph, 0, NULL, &fused, &map));
        CHECK(fused == s.graph, "case %d was fused", kind);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(normalisations_are_found),
              cmocka_unit_test(products_and_sums_are_found),
              cmocka_unit_test(weights_of_several_dimensions_are_taken),
              cmocka_unit_test(what_only_looks_alike_stays), cmocka_unit_test(groups_are_found),
              cmocka_unit_test(rows_are_found), cmocka_unit_test(gated_activations_are_found),
              cmocka_unit_test(swish_is_found), cmocka_unit_test(hard_swish_is_found),
              cmocka_unit_test(integers_and_long_chains_stay), cmocka_unit_test(other_gates_stay))
