// Attentions whose scores are filled in where masks of the data hide them, whole rows of them too:
// the op gives what the graph gave, and both what PyTorch gives (tests/reference/attention).
#include <math.h>
#include <stdio.h>

#include "graph/op.h"
#include "graph/passes/fuse/fuse_attention.h"
#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/check.h"
#include "tests/support/kept_arena.h"
#include "tests/support/op_check.h"
#include "tests/support/run_graph.h"

enum { OUTER = 2, HEADS = 2, ROWS = 4, NUMBERS = 2, PADDED = 2 };
enum { ELEMENTS = OUTER * HEADS * ROWS * NUMBERS };

typedef enum causal_mask {
    CAUSAL_NONE,
    CAUSAL_SAME,
    CAUSAL_HARD,
    CAUSAL_INSIDE,
    CAUSAL_ADDED
} causal_mask;

typedef struct filled_model {
    pen_graph *graph;
    pen_value_id operands[4]; // q, k, v, dy
    pen_value_id visible;     // bool, where a score counts
    pen_value_id y;
} filled_model;

static pen_value_id add_value(pen_graph *graph, const char *name, pen_tensor_type type,
                              const void *data) {
    const pen_value value = {.name = name,
                             .kind = data != NULL ? PEN_VALUE_CONSTANT : PEN_VALUE_INPUT,
                             .type = type,
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
    const int64_t perm[4] = {0, 1, 3, 2};
    const pen_attribute_given attribute = pen_attribute_ints("perm", 4, perm);
    spec.inputs = inputs;
    spec.input_count = count;
    spec.attributes = &attribute;
    spec.attribute_count = strcmp(op, "transpose") == 0 ? 1 : 0;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

static pen_value_id number(pen_graph *graph, double x) {
    pen_value_id id;
    CHECK_OK(pen_graph_constant_number(graph, "number", PEN_FLOAT64, x, &id));
    return id;
}

// where(mask, scores, fill), or masked_fill(scores, not mask, fill).
static pen_value_id fill_scores(pen_graph *g, pen_value_id mask, pen_value_id scores, double fill,
                                bool turned) {
    const pen_value_id with = number(g, fill);
    if (!turned) return add_node(g, "where", 3, mask, scores, with);
    const pen_value_id hidden = add_node(g, "not", 1, mask, mask, mask);
    return add_node(g, "where", 3, hidden, with, scores);
}

static pen_value_id causal_fill(pen_graph *g, pen_value_id scores, double fill, bool turned) {
    static bool masks[2][ROWS * ROWS];
    for (int i = 0; i < ROWS * ROWS; i++) {
        masks[turned][i] = (i % ROWS > i / ROWS) == turned;
    }
    const pen_value_id mask =
        add_value(g, "causal", op_type(PEN_BOOL, 2, ROWS, ROWS), masks[turned]);
    const pen_value_id with = number(g, fill);
    return turned ? add_node(g, "where", 3, mask, with, scores)
                  : add_node(g, "where", 3, mask, scores, with);
}

static pen_value_id causal_add(pen_graph *g, pen_value_id scores, double hidden) {
    static double mask[ROWS * ROWS];
    for (int i = 0; i < ROWS * ROWS; i++) {
        mask[i] = i % ROWS > i / ROWS ? hidden : 0;
    }
    return add_node(g, "add", 2, scores,
                    add_value(g, "causal", op_type(PEN_FLOAT64, 2, ROWS, ROWS), mask), scores);
}

static filled_model make_model(double fill, causal_mask causal, bool turned) {
    filled_model m;
    CHECK_OK(pen_graph_create(keep_arena(), "test", &m.graph));
    pen_graph *g = m.graph;
    static const char *const names[] = {"q", "k", "v", "dy"};
    for (int i = 0; i < 4; i++) {
        m.operands[i] =
            add_value(g, names[i], op_type(PEN_FLOAT64, 4, OUTER, HEADS, ROWS, NUMBERS), NULL);
    }
    m.visible = add_value(g, "visible", op_type(PEN_BOOL, 4, OUTER, 1, ROWS, ROWS), NULL);
    const pen_value_id k = m.operands[1];
    const pen_value_id keys = add_node(g, "transpose", 1, k, k, k);
    pen_value_id scores = add_node(g, "matmul", 2, m.operands[0], keys, k);
    scores = add_node(g, "mul", 2, scores, number(g, 0.7), k);
    if (causal == CAUSAL_SAME) scores = causal_fill(g, scores, fill, turned);
    if (causal == CAUSAL_INSIDE) scores = causal_fill(g, scores, (double)-INFINITY, turned);
    scores = fill_scores(g, m.visible, scores, fill, turned);
    if (causal == CAUSAL_HARD && !turned) scores = causal_add(g, scores, (double)-INFINITY);
    if (causal == CAUSAL_HARD && turned) {
        scores = causal_fill(g, scores, (double)-INFINITY, turned);
    }
    if (causal == CAUSAL_ADDED) scores = causal_add(g, scores, -1e9);
    const pen_value_id weights = add_node(g, "softmax", 1, scores, k, k);
    m.y = add_node(g, "matmul", 2, weights, m.operands[2], k);
    CHECK_OK(pen_graph_add_output(g, m.y));
    return m;
}

static filled_model fuse(const filled_model *m) {
    filled_model fused = *m;
    const pen_value_id *map;
    CHECK_OK(pen_fuse_attention(m->graph, 5, m->operands, &fused.graph, &map));
    for (int i = 0; i < 4; i++) {
        fused.operands[i] = map[m->operands[i].index];
    }
    fused.visible = map[m->visible.index];
    fused.y = map[m->y.index];
    return fused;
}

static const pen_node *attention_of(const filled_model *m) {
    const pen_node *node = pen_graph_node(m->graph, pen_graph_value(m->graph, m->y)->producer);
    return strcmp(node->op->name, "attention") == 0 ? node : NULL;
}

// y, dq, dk, dv
static void run_model(filled_model *m, double out[4][ELEMENTS]) {
    pen_gradients *gradients;
    CHECK_OK(pen_build_gradients(m->graph, m->y, m->operands[3], 3, m->operands, &gradients));
    run_graph run;
    CHECK_OK(run_graph_init(&run, m->graph, pen_graph_arena(m->graph)));
    for (int n = 0; n < 4; n++) {
        for (int i = 0; i < ELEMENTS; i++) {
            pen_tensor_set(&run.tensors[m->operands[n].index], i, 1.5 * sin(0.37 * i + n));
        }
    }
    for (int i = 0; i < OUTER * ROWS * ROWS; i++) {
        const int first = i / (ROWS * ROWS) == 1 ? PADDED : 0;
        const bool counts = i / ROWS % ROWS >= first && i % ROWS >= first;
        pen_tensor_set(&run.tensors[m->visible.index], i, counts);
    }
    CHECK_OK(run_graph_all(&run));
    for (int n = 0; n < 4; n++) {
        pen_value_id id = m->y;
        if (n > 0) {
            CHECK(gradients->items[n - 1].use_count == 1, "uses");
            id = gradients->items[n - 1].uses[0];
        }
        for (int i = 0; i < ELEMENTS; i++) {
            out[n][i] = pen_tensor_get(&run.tensors[id.index], i);
        }
    }
}

static void compare(const char *what, double expected[4][ELEMENTS], double found[4][ELEMENTS],
                    bool keeps_numbers) {
    static const char *const names[] = {"y", "dq", "dk", "dv"};
    for (int n = 0; n < 4; n++) {
        for (int i = 0; i < ELEMENTS; i++) {
            const double a = expected[n][i], b = found[n][i];
            if (isnan(a) && (isnan(b) || (n == 3 && keeps_numbers))) continue;
            CHECK(fabs(a - b) <= 1e-11 * (1 + fabs(a)), "%s: element %d of %s is %g, expected %g",
                  what, i, names[n], b, a);
        }
    }
}

static void check_case(double fill, causal_mask causal, double expected[4][ELEMENTS]) {
    char what[64];
    for (int turned = 0; turned < 2; turned++) {
        double found[4][ELEMENTS];
        snprintf(what, sizeof what, "fill %g, causal %d, turned %d", fill, (int)causal, turned);
        filled_model whole = make_model(fill, causal, turned);
        filled_model fused = fuse(&whole);
        const pen_node *node = attention_of(&fused);
        CHECK(node != NULL, "%s: not found", what);
        CHECK(node->input_count == 4, "%s: no mask", what);
        const bool is_attribute = causal == CAUSAL_HARD || (causal == CAUSAL_SAME && isinf(fill));
        CHECK((pen_node_int(node, "causal") != 0) == is_attribute, "%s: attribute", what);
        CHECK(pen_node_has(node, "fill") == (isfinite(fill) != 0), "%s: fill", what);
        run_model(&whole, found);
        compare(what, expected, found, false);
        run_model(&fused, found);
        // a row without any numbers leaves the values alone that the attribute hides from it
        compare(what, expected, found, isinf(fill) && is_attribute);
    }
}

static void they_are_what_pytorch_makes(void **state) {
    (void)state;
    FILE *file = fopen("tests/reference/attention/filled.txt", "r");
    CHECK(file != NULL, "the stored values are not there");
    double fill, expected[4][ELEMENTS];
    char causal[8];
    int count = 0;
    while (fscanf(file, "%lf %7s", &fill, causal) == 2) {
        for (int i = 0; i < 4 * ELEMENTS; i++) {
            CHECK(fscanf(file, "%lf", &expected[i / ELEMENTS][i % ELEMENTS]) == 1, "number %d", i);
        }
        check_case(fill,
                   strcmp(causal, "none") == 0   ? CAUSAL_NONE
                   : strcmp(causal, "same") == 0 ? CAUSAL_SAME
                                                 : CAUSAL_HARD,
                   expected);
        count++;
    }
    fclose(file);
    CHECK(count == 12, "%d cases", count);
}

// Where a mask of the data fills in what a causal one hid, or the other way round with numbers that
// are not infinite, rows may see what is behind them: that is no attention of one mask.
static void mixed_fills_stay(void **state) {
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        filled_model m = make_model(-1e9, CAUSAL_INSIDE, turned);
        m = fuse(&m);
        CHECK(attention_of(&m) == NULL, "a fill over -inf was taken in");
        m = make_model(-1e9, CAUSAL_ADDED, turned);
        m = fuse(&m);
        CHECK(attention_of(&m) == NULL, "a causal mask of -1e9 over a fill was taken in");
        m = make_model((double)-INFINITY, CAUSAL_ADDED, turned);
        m = fuse(&m);
        CHECK(attention_of(&m) == NULL, "a causal mask of -1e9 over -inf was taken in");
    }
}

PEN_TEST_MAIN(cmocka_unit_test(they_are_what_pytorch_makes), cmocka_unit_test(mixed_fills_stay))
