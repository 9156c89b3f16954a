#include "graph/passes/fuse/fuse_rows.h"

#include <math.h>

#include "base/random.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/kept_arena.h"
#include "tests/support/op_check.h"
#include "tests/support/run_graph.h"

enum { ROWS = 6, LENGTH = 3, PICKED = 5 };

static pen_value_id add_value(pen_graph *graph, const char *name, pen_value_kind kind,
                              pen_tensor_type type) {
    const pen_value value = {.name = name, .kind = kind, .type = type};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

typedef struct model {
    pen_graph *graph;
    pen_value_id table, rows, dy, gathered;
    pen_value_id picked; // what the gather made
} model;

static model model_make_of(pen_value_kind kind) {
    model m;
    CHECK_OK(pen_graph_create(keep_arena(), "test", &m.graph));
    m.table = add_value(m.graph, "table", kind, op_type(PEN_FLOAT64, 2, ROWS, LENGTH));
    m.rows = add_value(m.graph, "rows", PEN_VALUE_INPUT, op_type(PEN_INT64, 1, PICKED));
    m.dy = add_value(m.graph, "dy", PEN_VALUE_INPUT, op_type(PEN_FLOAT64, 2, PICKED, LENGTH));
    const pen_value_id read[] = {m.table, m.rows};
    pen_node_spec forward = pen_node_spec_make("gather", "gather");
    forward.inputs = read;
    forward.input_count = 2;
    pen_node_id gather;
    CHECK_OK(pen_graph_add_node(m.graph, &forward, &gather));
    m.picked = pen_graph_node(m.graph, gather)->outputs[0];
    static const int64_t shape[2] = {ROWS, LENGTH};
    const pen_attribute_given attribute = pen_attribute_ints("shape", 2, shape);
    const pen_value_id inputs[] = {m.dy, m.rows};
    pen_node_spec spec = pen_node_spec_make("gather_backward", "gather/backward");
    spec.role = PEN_ROLE_BACKWARD_WEIGHT;
    spec.gradient_of = gather;
    spec.inputs = inputs;
    spec.input_count = 2;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    CHECK_OK(pen_graph_add_simple(m.graph, &spec, &m.gathered));
    return m;
}

static model model_make(void) {
    return model_make_of(PEN_VALUE_PARAMETER);
}

static pen_node_id add_identity(pen_graph *graph, const char *name, pen_value_id of, pen_role role,
                                pen_node_id gradient_of) {
    pen_node_spec spec = pen_node_spec_make("identity", name);
    spec.role = role;
    spec.gradient_of = gradient_of;
    spec.inputs = &of;
    spec.input_count = 1;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    return node;
}

// The gradient of another reader of the table: of a layer that reads `of`.
static pen_value_id add_other(const model *m, pen_value_id of) {
    const pen_node_id layer = add_identity(m->graph, "layer", of, PEN_ROLE_FORWARD, PEN_NODE_NONE);
    const pen_value_id fed =
        add_value(m->graph, "other", PEN_VALUE_INPUT, op_type(PEN_FLOAT64, 2, ROWS, LENGTH));
    const pen_node_id made =
        add_identity(m->graph, "layer/backward", fed, PEN_ROLE_BACKWARD_WEIGHT, layer);
    return pen_graph_node(m->graph, made)->outputs[0];
}

static pen_value_id add_sum(pen_graph *graph, pen_value_id a, pen_value_id b) {
    const pen_value_id inputs[] = {a, b};
    pen_node_spec spec = pen_node_spec_make("add", "sum");
    spec.role = PEN_ROLE_BACKWARD_WEIGHT;
    spec.inputs = inputs;
    spec.input_count = 2;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

static pen_value_id add_update(const model *m, pen_value_id gradient, double momentum) {
    const pen_value_id rate =
        add_value(m->graph, "rate", PEN_VALUE_SCALAR, op_type(PEN_FLOAT32, 0));
    pen_value_id velocity = PEN_VALUE_NONE;
    if (momentum != 0) {
        velocity =
            add_value(m->graph, "velocity", PEN_VALUE_STATE, op_type(PEN_FLOAT64, 2, ROWS, LENGTH));
    }
    const pen_value_id inputs[] = {m->table, gradient, velocity, rate};
    const pen_attribute_given attribute = pen_attribute_float("momentum", momentum);
    pen_node_spec spec = pen_node_spec_make("sgd_update", "update");
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = inputs;
    spec.input_count = 4;
    spec.output_count = momentum != 0 ? 2 : 1;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(m->graph, &spec, &node));
    const pen_value_id *outputs = pen_graph_node(m->graph, node)->outputs;
    pen_graph_set_replaces(m->graph, outputs[0], m->table);
    if (momentum != 0) pen_graph_set_replaces(m->graph, outputs[1], velocity);
    return outputs[0];
}

static void run(run_graph *r, const pen_graph *graph) {
    CHECK_OK(run_graph_init(r, graph, pen_graph_arena(graph)));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind == PEN_VALUE_COMPUTED || value->kind == PEN_VALUE_CONSTANT) continue;
        const pen_random_key key = {1, pen_random_stream(value->name, 0, 0)};
        for (int64_t k = 0; k < pen_tensor_count(&r->tensors[v]); k++) {
            const double x = pen_random_normal(key, (uint64_t)k);
            const bool is_row = value->type.element == PEN_INT64;
            pen_tensor_set(&r->tensors[v], k, is_row ? (double)(k * k % ROWS) : x);
        }
    }
    CHECK_OK(run_graph_all(r));
}

// Fuses, compares what `value` was, and returns its producer.
static const pen_node *fuse(const model *m, pen_value_id value, bool into_updates) {
    CHECK_OK(pen_graph_add_output(m->graph, value));
    pen_graph *fused;
    const pen_value_id *map;
    CHECK_OK(pen_fuse_rows(m->graph, 0, NULL, into_updates, &fused, &map));
    run_graph before, after;
    run(&before, m->graph);
    run(&after, fused);
    const pen_tensor *a = &before.tensors[value.index], *b = &after.tensors[map[value.index].index];
    for (int64_t k = 0; k < pen_tensor_count(a); k++) {
        const double x = pen_tensor_get(a, k), y = pen_tensor_get(b, k);
        CHECK(fabs(x - y) <= 1e-14, "element %lld is %g, expected %g", (long long)k, y, x);
    }
    return pen_graph_node(fused, pen_graph_value(fused, map[value.index])->producer);
}

static void sums_take_rows(void **state) {
    (void)state;
    for (int second = 0; second < 2; second++) {
        const model m = model_make();
        const pen_value_id other = add_other(&m, m.picked);
        const pen_value_id sum =
            second ? add_sum(m.graph, other, m.gathered) : add_sum(m.graph, m.gathered, other);
        const pen_node *made = fuse(&m, sum, false);
        CHECK(strcmp(made->op->name, "gather_backward") == 0, "%s", made->op->name);
        CHECK(made->input_count == 3, "%u operands", made->input_count);
    }
}

static void updates_take_rows(void **state) {
    (void)state;
    for (int has_momentum = 0; has_momentum < 2; has_momentum++) {
        const model m = model_make();
        const pen_value_id updated = add_update(&m, m.gathered, has_momentum ? 0.9 : 0);
        const pen_node *made = fuse(&m, updated, true);
        CHECK(made->input_count == 6 && pen_value_is(made->inputs[5]), "no rows");
    }
}

static void others_stay(void **state) {
    (void)state;
    model m = model_make_of(PEN_VALUE_INPUT); // of what another device may have computed
    const pen_node *made = fuse(&m, add_sum(m.graph, m.gathered, add_other(&m, m.picked)), false);
    CHECK(strcmp(made->op->name, "add") == 0, "%s", made->op->name);
    m = model_make(); // the layer reads none of the rows, so it may be in an earlier stage
    made = fuse(&m, add_sum(m.graph, m.gathered, add_other(&m, m.table)), false);
    CHECK(strcmp(made->op->name, "add") == 0, "%s", made->op->name);
    m = model_make(); // not for a graph that is cut
    made = fuse(&m, add_update(&m, m.gathered, 0), false);
    CHECK(made->input_count == 4, "the update took the rows");
    m = model_make(); // the gradient is an output, too
    CHECK_OK(pen_graph_add_output(m.graph, m.gathered));
    made = fuse(&m, add_update(&m, m.gathered, 0), true);
    CHECK(made->input_count == 4, "the update took the rows");
    m = model_make(); // it adds up over microbatches
    pen_graph_set_accumulates(m.graph, pen_graph_value(m.graph, m.gathered)->producer, true);
    made = fuse(&m, add_update(&m, m.gathered, 0), true);
    CHECK(made->input_count == 4, "the update took the rows");
}

PEN_TEST_MAIN(cmocka_unit_test(sums_take_rows), cmocka_unit_test(updates_take_rows),
              cmocka_unit_test(others_stay))
