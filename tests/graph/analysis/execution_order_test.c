#include "graph/analysis/execution_order.h"

#include "graph/op.h"
#include "tests/support/random_graph.h"

typedef struct order_case {
    pen_arena *arena;
    random_graph random;
    pen_execution_options options;
    pen_execution_order order;
    uint32_t *position; // [node_count], UINT32_MAX: not there
} order_case;

static order_case order_case_make(uint64_t seed, bool mix) {
    order_case c = {.arena = check_arena(), .options = {.mix_updates = mix}};
    c.random = random_graph_forward(c.arena, seed, PEN_FLOAT32, 20);
    random_graph_differentiate(&c.random);
    random_graph_update(&c.random, seed, !mix);
    c.options.kept = &c.random.loss;
    c.options.kept_count = 1;
    CHECK_OK(pen_execution_order_build(c.random.graph, &c.options, c.arena, &c.order));
    const uint32_t node_count = pen_graph_node_count(c.random.graph);
    CHECK_OK(PEN_NEW(c.arena, node_count, &c.position));
    memset(c.position, 0xff, node_count * sizeof *c.position);
    for (uint32_t p = 0; p < c.order.count; p++) {
        CHECK(c.position[c.order.nodes[p].index] == UINT32_MAX, "node %u comes twice",
              c.order.nodes[p].index);
        c.position[c.order.nodes[p].index] = p;
    }
    return c;
}

static const pen_node *case_node(const order_case *c, uint32_t node) {
    return pen_graph_node(c->random.graph, (pen_node_id){node});
}

// Everything is made before it is read, and everything that is needed is there.
static void check_needs(const order_case *c) {
    for (uint32_t p = 0; p < c->order.count; p++) {
        const pen_node *node = case_node(c, c->order.nodes[p].index);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_value *value = pen_graph_value(c->random.graph, node->inputs[i]);
            if (value->kind != PEN_VALUE_COMPUTED) continue;
            CHECK(c->position[value->producer.index] < p, "'%s' reads '%s' too early", node->name,
                  value->name);
        }
    }
    const pen_value *loss = pen_graph_value(c->random.graph, c->random.loss);
    CHECK(c->position[loss->producer.index] < c->order.count, "no loss");
}

static bool replaces_something(const order_case *c, const pen_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        if (pen_value_is(pen_graph_value(c->random.graph, node->outputs[i])->replaces)) return true;
    }
    return false;
}

static bool somebody_reads(const order_case *c, const pen_node *node) {
    for (uint32_t p = 0; p < c->order.count; p++) {
        const pen_node *reader = case_node(c, c->order.nodes[p].index);
        for (uint32_t i = 0; i < reader->input_count; i++) {
            for (uint32_t o = 0; o < node->output_count; o++) {
                if (pen_value_is(node->outputs[o]) &&
                    pen_value_same(reader->inputs[i], node->outputs[o])) {
                    return true;
                }
            }
        }
    }
    return false;
}

// Nothing is there that nobody asked for; nothing that persists is left out.
static void check_only_what_is_needed(const order_case *c) {
    const pen_value *loss = pen_graph_value(c->random.graph, c->random.loss);
    for (uint32_t n = 0; n < pen_graph_node_count(c->random.graph); n++) {
        const pen_node *node = case_node(c, n);
        const bool is_there = c->position[n] != UINT32_MAX;
        const bool is_needed =
            replaces_something(c, node) || n == loss->producer.index || somebody_reads(c, node);
        CHECK(is_there == is_needed, "'%s' is %s", node->name, is_there ? "there" : "missing");
    }
}

static bool same_storage(const pen_graph *graph, pen_value_id value, pen_value_id home) {
    for (;;) {
        if (pen_value_same(value, home)) return true;
        const pen_value *subject = pen_graph_value(graph, value);
        if (subject->kind != PEN_VALUE_COMPUTED) return false;
        const pen_node *producer = pen_graph_node(graph, subject->producer);
        if (!producer->op->is_view) return false;
        value = producer->inputs[0];
    }
}

// The last position, but for `update`'s own, at which somebody reads the storage of `home`.
static uint32_t last_reader(const order_case *c, pen_value_id home, uint32_t update) {
    uint32_t last = 0;
    for (uint32_t p = 0; p < c->order.count; p++) {
        const pen_node *node = case_node(c, c->order.nodes[p].index);
        for (uint32_t i = 0; p != update && i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            if (same_storage(c->random.graph, node->inputs[i], home)) last = p;
        }
    }
    return last;
}

static void check_updates_come_last(const order_case *c, uint32_t *update_count) {
    for (uint32_t p = 0; p < c->order.count; p++) {
        const pen_node *node = case_node(c, c->order.nodes[p].index);
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value_id old = pen_graph_value(c->random.graph, node->outputs[i])->replaces;
            if (!pen_value_is(old)) continue;
            *update_count += 1;
            const uint32_t reader = last_reader(c, old, p);
            CHECK(reader < p, "'%s' overwrites '%s' at %u, which is read at %u", node->name,
                  pen_value_name(c->random.graph, old), p, reader);
        }
    }
}

static void updates_apart(void **state) {
    (void)state;
    uint32_t update_count = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        order_case c = order_case_make(seed, false);
        check_needs(&c);
        check_only_what_is_needed(&c);
        check_updates_come_last(&c, &update_count);
        for (uint32_t p = 0; p < c.order.count; p++) {
            const bool is_update = case_node(&c, c.order.nodes[p].index)->role == PEN_ROLE_UPDATE;
            CHECK(is_update == (p >= c.order.update_first), "position %u of %u", p,
                  c.order.update_first);
        }
        pen_arena_destroy(c.arena);
    }
    CHECK(update_count > 200, "only %u updates", update_count);
}

// The node just before an update in the order made something that it needs, read what it
// overwrites, or is an update that became ready with it.
static void check_early(const order_case *c) {
    for (uint32_t p = 1; p < c->order.count; p++) {
        const pen_node *node = case_node(c, c->order.nodes[p].index);
        if (node->role != PEN_ROLE_UPDATE) continue;
        uint32_t needed = 0; // position of the last thing it had to wait for
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_value *value = pen_graph_value(c->random.graph, node->inputs[i]);
            if (value->kind != PEN_VALUE_COMPUTED) continue;
            const uint32_t made = c->position[value->producer.index];
            if (made > needed) needed = made;
        }
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value_id old = pen_graph_value(c->random.graph, node->outputs[i])->replaces;
            if (!pen_value_is(old)) continue;
            const uint32_t read = last_reader(c, old, p);
            if (read > needed) needed = read;
        }
        for (uint32_t q = needed + 1; q < p; q++) {
            const pen_node *between = case_node(c, c->order.nodes[q].index);
            CHECK(between->role == PEN_ROLE_UPDATE, "'%s' could run before '%s'", node->name,
                  between->name);
        }
    }
}

static void updates_between(void **state) {
    (void)state;
    uint32_t update_count = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        order_case c = order_case_make(seed, true);
        assert_int_equal(c.order.update_first, c.order.count);
        check_needs(&c);
        check_only_what_is_needed(&c);
        check_updates_come_last(&c, &update_count);
        check_early(&c);
        pen_arena_destroy(c.arena);
    }
    CHECK(update_count > 200, "only %u updates", update_count);
}

static void equal_graphs_have_equal_orders(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        order_case a = order_case_make(seed, seed % 2 == 0);
        order_case b = order_case_make(seed, seed % 2 == 0);
        assert_int_equal(a.order.count, b.order.count);
        assert_memory_equal(a.order.nodes, b.order.nodes, a.order.count * sizeof *a.order.nodes);
        pen_arena_destroy(a.arena);
        pen_arena_destroy(b.arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(updates_apart), cmocka_unit_test(updates_between),
              cmocka_unit_test(equal_graphs_have_equal_orders))
