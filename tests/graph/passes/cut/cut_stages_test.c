#include "graph/passes/cut/cut_stages.h"

#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/cut_case.h"

static const pen_node *case_node(const cut_case *c, uint32_t n) {
    return pen_graph_node(c->model.graph, (pen_node_id){n});
}

// ---- structure

// Which list of the part a node is in; PEN_ID_NONE: none.
static uint32_t part_list_of(const pen_part *part, pen_node_id node) {
    uint32_t found = PEN_ID_NONE;
    for (uint32_t l = 0; l < part->list_count; l++) {
        for (uint32_t p = part->lists[l].first; p < part->lists[l].end; p++) {
            if (part->order[p].index != node.index) continue;
            CHECK(found == PEN_ID_NONE, "'%s' is in two lists", pen_node_name(part->graph, node));
            found = l;
        }
    }
    return found;
}

static bool is_op(const pen_node *node, const char *op) {
    return strcmp(node->op->name, op) == 0;
}

static const pen_part_list *case_find_list(const cut_case *c, const char *name) {
    const pen_part_list *found = NULL;
    for (uint32_t d = 0; d < c->cut->device_count; d++) {
        const pen_part *part = &c->cut->parts[d];
        for (uint32_t n = 0; n < pen_graph_node_count(part->graph); n++) {
            if (strcmp(pen_node_name(part->graph, (pen_node_id){n}), name) != 0) continue;
            CHECK(found == NULL, "'%s' is there twice", name);
            const uint32_t list = part_list_of(part, (pen_node_id){n});
            CHECK(list != PEN_ID_NONE, "'%s' is in no list", name);
            found = &part->lists[list];
            CHECK(c->device_of_stage[found->stage] == d, "'%s' is on device %u", name, d);
        }
    }
    CHECK(found != NULL, "'%s' is in no part", name);
    return found;
}

static void check_nodes(const cut_case *c) {
    assert_int_equal(c->cut->node_count, c->model.order_count);
    for (uint32_t p = 0; p < c->model.order_count; p++) {
        const uint32_t n = c->model.order[p].index;
        const pen_node *node = case_node(c, n);
        const pen_part_list *list = case_find_list(c, node->name);
        CHECK(list->stage == c->stage_of_node[n], "'%s' is in stage %u", node->name, list->stage);
        const bool is_halved = c->is_halved[list->stage];
        switch (node->role) {
        case PEN_ROLE_FORWARD:
            assert_int_equal(list->kind, PEN_TASK_FORWARD);
            break;
        case PEN_ROLE_BACKWARD_INPUT:
            assert_int_equal(list->kind, is_halved ? PEN_TASK_BACKWARD_INPUT : PEN_TASK_BACKWARD);
            break;
        case PEN_ROLE_BACKWARD_WEIGHT:
            if (list->kind == PEN_TASK_UPDATE) {
                assert_true(is_op(node, "add") && !node->accumulates);
                break;
            }
            assert_int_equal(list->kind, is_halved ? PEN_TASK_BACKWARD_WEIGHT : PEN_TASK_BACKWARD);
            break;
        case PEN_ROLE_UPDATE:
        case PEN_ROLE_TRANSFER:
            assert_int_equal(list->kind, PEN_TASK_UPDATE);
            break;
        }
    }
}

static uint64_t list_rank(const pen_part_list *list) {
    if (list->kind == PEN_TASK_FORWARD) return list->stage;
    if (list->kind == PEN_TASK_UPDATE) return 10000 + (uint64_t)list->phase * 100 + list->stage;
    return 1000 + (uint64_t)(CUT_CASE_STAGES - list->stage) * 10 + (uint64_t)list->kind;
}

static void check_lists(const cut_case *c) {
    for (uint32_t d = 0; d < c->cut->device_count; d++) {
        const pen_part *part = &c->cut->parts[d];
        uint32_t at = 0;
        for (uint32_t l = 0; l < part->list_count; l++) {
            CHECK(l == 0 || list_rank(&part->lists[l - 1]) < list_rank(&part->lists[l]),
                  "list %u of device %u is out of order", l, d);
            assert_int_equal(part->lists[l].first, at);
            at = part->lists[l].end;
            assert_true(part->lists[l].phase < c->cut->phase_count);
            assert_true(part->lists[l].phase == 0 || part->lists[l].kind == PEN_TASK_UPDATE);
        }
        assert_int_equal(at, part->order_count);
        for (uint32_t n = 0; n < pen_graph_node_count(part->graph); n++) {
            const pen_node *node = pen_graph_node(part->graph, (pen_node_id){n});
            const bool is_moved = is_op(node, "send") || is_op(node, "receive");
            CHECK((part_list_of(part, (pen_node_id){n}) == PEN_ID_NONE) == is_moved, "'%s'",
                  node->name);
        }
    }
}

// The transfer node at one end of a channel says so, and is the only one.
static void check_end(const pen_part *part, uint32_t channel, const char *op, pen_value_id value) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(part->graph); n++) {
        const pen_node *node = pen_graph_node(part->graph, (pen_node_id){n});
        if (!is_op(node, op) || pen_node_int(node, "channel") != channel) continue;
        const pen_value_id end = strcmp(op, "send") == 0 ? node->inputs[0] : node->outputs[0];
        assert_int_equal(end.index, value.index);
        count++;
    }
    assert_int_equal(count, 1);
}

// Bytes of a parameter do not leave where they lie: its update writes there, and does not wait.
static void check_own_bytes(const pen_part *source, pen_value_id value) {
    const pen_value *from = pen_graph_value(source->graph, value);
    while (pen_node_is(from->producer) &&
           pen_graph_node(source->graph, from->producer)->op->is_view) {
        const pen_node *view = pen_graph_node(source->graph, from->producer);
        from = pen_graph_value(source->graph, view->inputs[0]);
    }
    CHECK(from->kind != PEN_VALUE_PARAMETER, "'%s' leaves as it lies", from->name);
}

static void check_channels(const cut_case *c) {
    for (uint32_t i = 0; i < c->cut->channel_count; i++) {
        const pen_channel *channel = &c->cut->channels[i], *before = channel - 1;
        const pen_part *target = &c->cut->parts[channel->target];
        const pen_value *to = pen_graph_value(target->graph, channel->to);
        pen_value_id whole;
        CHECK_OK(pen_graph_find_value(c->model.graph, channel->value, &whole));
        const pen_value *value = pen_graph_value(c->model.graph, whole);
        assert_string_equal(to->name, channel->value);
        assert_true(pen_tensor_type_equal(&to->type, &value->type));
        assert_int_equal(to->layout, value->layout);
        CHECK(i == 0 || channel->source > before->source ||
                  (channel->source == before->source && channel->target >= before->target),
              "channel %u is out of order", i);
        if (channel->source == PEN_CHANNEL_HOST) {
            assert_int_equal(to->kind, PEN_VALUE_INPUT);
            assert_false(pen_value_is(channel->from));
            continue;
        }
        assert_int_not_equal(channel->source, channel->target);
        const pen_part *source = &c->cut->parts[channel->source];
        const char *from = pen_value_name(source->graph, channel->from);
        const char *relayed = strstr(from, "/relayed"); // passed on from a place of its own
        CHECK(strncmp(from, channel->value, strlen(channel->value)) == 0, "'%s' leaves as '%s'",
              channel->value, from);
        CHECK(from[strlen(channel->value)] == 0 || relayed != NULL, "'%s' leaves as '%s'",
              channel->value, from);
        check_end(source, i, "send", channel->from);
        check_own_bytes(source, channel->from);
        check_end(target, i, "receive", channel->to);
        const bool is_update = source->lists[channel->source_list].kind == PEN_TASK_UPDATE;
        assert_int_equal(channel->is_per_step, is_update);
    }
}

// Backward lists of a stage that is recomputed read nothing that its forward list made.
static void check_recomputed(const cut_case *c, const pen_part *part, const pen_part_list *list) {
    if (list->kind == PEN_TASK_FORWARD || list->kind == PEN_TASK_UPDATE) return;
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_node *node = pen_graph_node(part->graph, part->order[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id maker = pen_graph_value(part->graph, node->inputs[i])->producer;
            const uint32_t from = pen_node_is(maker) ? part_list_of(part, maker) : PEN_ID_NONE;
            if (from == PEN_ID_NONE || part->lists[from].kind != PEN_TASK_FORWARD) continue;
            if (part->lists[from].stage != list->stage) continue;
            CHECK(!c->is_recomputed[list->stage], "'%s' reads '%s'", node->name,
                  pen_node_name(part->graph, maker));
        }
    }
}

static void check_structure(const cut_case *c) {
    check_nodes(c);
    check_lists(c);
    check_channels(c);
    for (uint32_t d = 0; d < c->cut->device_count; d++) {
        for (uint32_t l = 0; l < c->cut->parts[d].list_count; l++) {
            check_recomputed(c, &c->cut->parts[d], &c->cut->parts[d].lists[l]);
        }
    }
}

static void check_cases(cut_model_kind kind, uint64_t case_count) {
    uint64_t channel_count = 0, checked = 0;
    for (uint64_t seed = 0; seed < case_count; seed++) {
        cut_case c = cut_case_make(kind, seed);
        pen_status status = cut_case_cut(&c);
        if (status != PEN_OK) print_message("kind %d seed %d\n", (int)kind, (int)seed);
        CHECK_OK(status);
        check_structure(&c);
        checked += cut_case_run(&c, c.cut->parts);
        channel_count += c.cut->channel_count;
        pen_arena_destroy(c.arena);
    }
    CHECK(checked > case_count, "%u parameters were compared", (unsigned)checked);
    CHECK(channel_count > case_count, "only %u channels", (unsigned)channel_count);
}

static void random_graphs_give_the_same_numbers(void **state) {
    (void)state;
    check_cases(CUT_MODEL_RANDOM, 150);
}

static void perceptrons_give_the_same_numbers(void **state) {
    (void)state;
    check_cases(CUT_MODEL_PERCEPTRON, 60);
}

static void branches_give_the_same_numbers(void **state) {
    (void)state;
    check_cases(CUT_MODEL_BRANCHES, 60);
}

static void tied_weights_give_the_same_numbers(void **state) {
    (void)state;
    check_cases(CUT_MODEL_TIED, 80);
}

static void frozen_trunks_give_the_same_numbers(void **state) {
    (void)state;
    check_cases(CUT_MODEL_FROZEN, 60);
}

PEN_TEST_MAIN(cmocka_unit_test(random_graphs_give_the_same_numbers),
              cmocka_unit_test(perceptrons_give_the_same_numbers),
              cmocka_unit_test(branches_give_the_same_numbers),
              cmocka_unit_test(tied_weights_give_the_same_numbers),
              cmocka_unit_test(frozen_trunks_give_the_same_numbers))
