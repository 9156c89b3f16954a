#include "graph/passes/fuse/fuse_normalization.h"

#include <math.h>

#include "base/random.h"
#include "graph/op.h"
#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"

static const pen_tensor_type whole = {PEN_FLOAT64, {4, {3, 5, 4, 2}}};

static pen_value_id add_value(pen_graph *graph, const char *name, pen_value_kind kind,
                              pen_tensor_type type) {
    const pen_value value = {.name = name, .kind = kind, .type = type};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

static pen_value_id add_node(pen_graph *graph, const char *op, const char *name, pen_value_id a,
                             pen_value_id b) {
    pen_node_spec spec = pen_node_spec_make(op, name);
    const pen_value_id inputs[] = {a, b};
    spec.inputs = inputs;
    spec.input_count = pen_value_is(b) ? 2 : 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

// A batch_normalization of `x`. In training, its running statistics replace its states; otherwise
// the statistics are parameters.
static pen_value_id add_normalization(pen_graph *graph, const char *name, pen_value_id x,
                                      bool training) {
    static const char *const names[] = {"scale", "bias", "mean", "variance"};
    const pen_tensor_type vector = {PEN_FLOAT64, {1, {5}}};
    pen_node_spec spec = pen_node_spec_make("batch_normalization", name);
    pen_value_id inputs[5] = {x};
    for (uint32_t i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s.%s", name, names[i]);
        const bool is_state = training && i >= 2;
        inputs[i + 1] =
            add_value(graph, text, is_state ? PEN_VALUE_STATE : PEN_VALUE_PARAMETER, vector);
    }
    const pen_attribute_given attributes[] = {pen_attribute_int("training_mode", training),
                                              pen_attribute_float("epsilon", 1e-2)};
    spec.inputs = inputs;
    spec.input_count = 5;
    spec.output_count = training ? 5 : 1;
    spec.attributes = attributes;
    spec.attribute_count = 2;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    const pen_value_id *outputs = pen_graph_node(graph, node)->outputs;
    for (uint32_t i = 1; i < 3 && training; i++) {
        pen_graph_set_replaces(graph, outputs[i], inputs[i + 2]);
    }
    return pen_graph_node(graph, node)->outputs[0];
}

static uint32_t count_ops(const pen_graph *graph, const char *op) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (strcmp(pen_graph_node(graph, (pen_node_id){n})->op->name, op) == 0) count++;
    }
    return count;
}

static void run(run_graph *r, const pen_graph *graph) {
    CHECK_OK(run_graph_init(r, graph, pen_graph_arena(graph)));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind == PEN_VALUE_COMPUTED) continue;
        const pen_random_key key = {1, pen_random_stream(value->name, 0, 0)};
        for (int64_t k = 0; k < pen_tensor_count(&r->tensors[v]); k++) {
            const bool is_positive =
                value->kind == PEN_VALUE_STATE || strstr(value->name, ".variance") != NULL;
            const double number = pen_random_normal(key, (uint64_t)k);
            pen_tensor_set(&r->tensors[v], k, is_positive ? fabs(number) : number);
        }
    }
    CHECK_OK(run_graph_all(r));
}

// Every value that both graphs have is the same in both. Returns how many there are.
static uint32_t compare(const pen_graph *graph, const pen_graph *fused, const pen_value_id *map) {
    run_graph before, after;
    uint32_t count = 0;
    run(&before, graph);
    run(&after, fused);
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        if (!pen_value_is(map[v])) continue;
        const pen_tensor *a = &before.tensors[v], *b = &after.tensors[map[v].index];
        for (int64_t k = 0; k < pen_tensor_count(a); k++) {
            const double x = pen_tensor_get(a, k), y = pen_tensor_get(b, k);
            CHECK(fabs(x - y) <= 1e-12 * (1 + fabs(x)), "'%s', element %lld is %g, expected %g",
                  pen_value_name(graph, (pen_value_id){v}), (long long)k, y, x);
        }
        count++;
    }
    return count;
}

// x ─► bn1 ─► relu ─► bn2 ─► add ─► relu ─► bn3 ─► add ─► relu; the skips go around bn2 and bn3
static void check_residual_blocks(bool training) {
    pen_arena *arena = check_arena();
    pen_graph *graph, *fused;
    const pen_value_id *map;
    CHECK_OK(pen_graph_create(arena, "test", &graph));
    const pen_value_id x = add_value(graph, "x", PEN_VALUE_INPUT, whole);
    const pen_value_id seed = add_value(graph, "seed", PEN_VALUE_INPUT, whole);
    const pen_value_id none = PEN_VALUE_NONE;
    const pen_value_id n1 = add_normalization(graph, "bn1", x, training);
    const pen_value_id r1 = add_node(graph, "relu", "relu1", n1, none);
    const pen_value_id n2 = add_normalization(graph, "bn2", r1, training);
    const pen_value_id s2 = add_node(graph, "add", "add2", r1, n2);
    const pen_value_id r2 = add_node(graph, "relu", "relu2", s2, none);
    const pen_value_id n3 = add_normalization(graph, "bn3", r2, training);
    const pen_value_id s3 = add_node(graph, "add", "add3", n3, r2);
    const pen_value_id r3 = add_node(graph, "relu", "relu3", s3, none);
    CHECK_OK(pen_graph_add_output(graph, r3));
    pen_value_id wanted[13] = {x};
    uint32_t wanted_count = 1;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        if (pen_graph_value(graph, (pen_value_id){v})->kind == PEN_VALUE_PARAMETER) {
            wanted[wanted_count++] = (pen_value_id){v};
        }
    }
    pen_gradients *gradients;
    CHECK_OK(pen_build_gradients(graph, r3, seed, wanted_count, wanted, &gradients));
    pen_value_id kept[13];
    for (uint32_t i = 0; i < wanted_count; i++) {
        CHECK(gradients->items[i].use_count == 1, "%u uses", gradients->items[i].use_count);
        kept[i] = gradients->items[i].uses[0];
    }
    CHECK_OK(pen_fuse_normalization(graph, wanted_count, kept, &fused, &map));

    CHECK(count_ops(fused, "batch_normalization") == 0, "normalisations are left");
    CHECK(count_ops(fused, "batch_normalization_relu") == 1, "relu");
    CHECK(count_ops(fused, "batch_normalization_add_relu") == 2, "add, relu");
    CHECK(count_ops(fused, "batch_normalization_relu_backward") == 1, "relu, backward");
    CHECK(count_ops(fused, "batch_normalization_add_relu_backward") == 2, "add, relu, backward");
    CHECK(count_ops(fused, "relu_backward") == 0, "relus are left");
    CHECK(count_ops(fused, "add") == 1, "%u sums are left", count_ops(fused, "add"));
    for (uint32_t i = 0; i < wanted_count; i++) {
        CHECK(pen_value_is(map[kept[i].index]), "a kept value went");
    }
    CHECK(strcmp(pen_value_name(fused, map[r3.index]), pen_value_name(graph, r3)) == 0, "name");
    CHECK(!pen_value_is(map[s3.index]), "a value in between stayed");
    uint32_t replacing = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(fused); v++) {
        if (pen_value_is(pen_graph_value(fused, (pen_value_id){v})->replaces)) replacing++;
    }
    CHECK(replacing == (training ? 6 : 0), "%u states are replaced", replacing);
    CHECK(compare(graph, fused, map) > 30, "few values to compare");
    pen_arena_destroy(arena);
}

static void residual_blocks_are_fused(void **state) {
    (void)state;
    check_residual_blocks(true);
}

// With gradients of the statistics, too.
static void inference_with_gradients_is_fused(void **state) {
    (void)state;
    check_residual_blocks(false);
}

// What lies between is read by others, or asked for.
static void values_that_are_needed_stay(void **state) {
    (void)state;
    for (int kept_too = 0; kept_too < 2; kept_too++) {
        pen_arena *arena = check_arena();
        pen_graph *graph, *fused;
        const pen_value_id *map;
        CHECK_OK(pen_graph_create(arena, "test", &graph));
        const pen_value_id x = add_value(graph, "x", PEN_VALUE_INPUT, whole);
        const pen_value_id n = add_normalization(graph, "bn", x, true);
        const pen_value_id r = add_node(graph, "relu", "relu", n, PEN_VALUE_NONE);
        if (!kept_too) CHECK_OK(pen_graph_add_output(graph, add_node(graph, "add", "sum", n, r)));
        const pen_value_id kept[] = {n, r};
        CHECK_OK(pen_fuse_normalization(graph, kept_too ? 2 : 0, kept, &fused, &map));
        CHECK(count_ops(fused, "batch_normalization") == 1, "fused");
        CHECK(count_ops(fused, "relu") == 1, "fused");
        compare(graph, fused, map);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(residual_blocks_are_fused),
              cmocka_unit_test(inference_with_gradients_is_fused),
              cmocka_unit_test(values_that_are_needed_stay))
