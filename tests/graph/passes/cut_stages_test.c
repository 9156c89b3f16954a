#include "graph/passes/cut_stages.h"

#include "graph/op.h"
#include "partition/node_homes.h"
#include "tests/support/check.h"
#include "tests/support/cut_models.h"
#include "tests/support/part_machine.h"

#define STAGES 8

typedef struct cut_case {
    pen_arena *arena;
    random_case dice;
    cut_model model;
    uint32_t stage_count;
    uint32_t device_count;
    uint32_t device_of_stage[STAGES];
    bool is_halved[STAGES];
    bool is_recomputed[STAGES];
    uint32_t *stage_of_node;
    const pen_cut *cut;
} cut_case;

static const pen_node *case_node(const cut_case *c, uint32_t n) {
    return pen_graph_node(c->model.graph, (pen_node_id){n});
}

// Stages at random, but none before what its nodes are made from.
static void case_place(cut_case *c) {
    const pen_graph *graph = c->model.graph;
    const pen_node_homes *homes;
    CHECK_OK(pen_node_homes_build(graph, c->arena, &homes));
    const uint32_t node_count = pen_graph_node_count(graph);
    CHECK_OK(PEN_NEW(c->arena, node_count, &c->stage_of_node));
    const int64_t step_chance = random_between(&c->dice, 5, 60);
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = case_node(c, n);
        if (node->role != PEN_ROLE_FORWARD) continue;
        int64_t lowest = 0;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id maker = pen_graph_value(graph, node->inputs[i])->producer;
            if (pen_node_is(maker) && c->stage_of_node[maker.index] > lowest) {
                lowest = c->stage_of_node[maker.index];
            }
        }
        int64_t stage = lowest;
        if (random_chance(&c->dice, (int)step_chance)) {
            stage = random_between(&c->dice, lowest, c->stage_count - 1);
        }
        c->stage_of_node[n] = (uint32_t)stage;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        if (case_node(c, n)->role == PEN_ROLE_FORWARD) continue;
        c->stage_of_node[n] = c->stage_of_node[homes->home[n]];
    }
}

static cut_case case_make(cut_model_kind kind, uint64_t seed, bool accumulate) {
    cut_case c = {.arena = check_arena(), .dice = {.seed = seed * 77 + (uint64_t)kind}};
    c.model = cut_model_make(c.arena, kind, seed, accumulate);
    c.stage_count = (uint32_t)random_between(&c.dice, 1, STAGES);
    c.device_count = (uint32_t)random_between(&c.dice, 1, 5);
    for (uint32_t s = 0; s < c.stage_count; s++) {
        c.device_of_stage[s] = (uint32_t)random_between(&c.dice, 0, c.device_count - 1);
        c.is_halved[s] = random_chance(&c.dice, 40);
        c.is_recomputed[s] = random_chance(&c.dice, 40);
    }
    case_place(&c);
    return c;
}

static pen_status case_cut(cut_case *c) {
    const pen_cut_request request = {
        .graph = c->model.graph,
        .order = c->model.order,
        .order_count = c->model.order_count,
        .fed = c->model.fed,
        .fed_count = c->model.fed_count,
        .kept = c->model.kept,
        .kept_count = c->model.kept_count,
        .device_count = c->device_count,
        .stage_count = c->stage_count,
        .device_of_stage = c->device_of_stage,
        .stage_of_node = c->stage_of_node,
        .is_halved = c->is_halved,
        .is_recomputed = c->is_recomputed,
    };
    return pen_cut_stages(&request, c->arena, &c->cut);
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
    return 1000 + (uint64_t)(STAGES - list->stage) * 10 + (uint64_t)list->kind;
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

// ---- numbers

static void feed_number(cut_case *c, const pen_value *value, void *data, int64_t i) {
    const double number = (double)random_between(&c->dice, -1000, 1000) / 1000.0;
    const pen_tensor tensor = {value->type, data};
    const bool is_integer = pen_element_is_integer(value->type.element);
    pen_tensor_set(&tensor, i, is_integer ? (double)random_between(&c->dice, 0, 2) : number);
}

static void feed(cut_case *c, machine *whole, uint64_t step) {
    for (uint32_t v = 0; v < pen_graph_value_count(whole->graph); v++) {
        const pen_value *value = pen_graph_value(whole->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_INPUT && value->kind != PEN_VALUE_SCALAR) continue;
        for (uint32_t m = 0; m < whole->microbatch_count; m++) {
            void *data = machine_data(whole, (pen_value_id){v}, m);
            const pen_tensor tensor = {value->type, data};
            if (strcmp(value->name, "step") == 0) {
                pen_tensor_set(&tensor, 0, (double)step);
            } else if (strcmp(value->name, "learning_rate") == 0) {
                pen_tensor_set(&tensor, 0, 0.1);
            } else {
                for (int64_t i = 0; i < pen_tensor_count(&tensor); i++) {
                    feed_number(c, value, data, i);
                }
            }
        }
    }
}

static void run_whole(const cut_case *c, machine *whole, uint64_t step) {
    const cut_model *model = &c->model;
    for (uint32_t m = 0; m < whole->microbatch_count; m++) {
        machine_run(whole, model->order, model->update_first, m, step);
    }
    machine_run(whole, model->order + model->update_first, model->order_count - model->update_first,
                0, step);
}

static bool is_same(const machine *a, pen_value_id va, const machine *b, pen_value_id vb,
                    uint32_t microbatch) {
    return memcmp(machine_data(a, va, microbatch), machine_data(b, vb, microbatch),
                  pen_tensor_type_bytes(pen_value_type(a->graph, va))) == 0;
}

// Parameters and states of every part are those of the whole graph, and none is missing. Returns
// how many were compared.
static uint32_t check_persistent(const cut_case *c, const machine *whole, const machine *parts) {
    uint32_t checked = 0;
    for (uint32_t d = 0; d < c->cut->device_count; d++) {
        for (uint32_t v = 0; v < pen_graph_value_count(parts[d].graph); v++) {
            const pen_value *value = pen_graph_value(parts[d].graph, (pen_value_id){v});
            if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
            pen_value_id same;
            CHECK_OK(pen_graph_find_value(whole->graph, value->name, &same));
            CHECK(is_same(whole, same, &parts[d], (pen_value_id){v}, 0),
                  "'%s' differs on device %u", value->name, d);
            checked++;
        }
    }
    for (uint32_t p = 0; p < c->model.order_count; p++) {
        const pen_node *node = case_node(c, c->model.order[p].index);
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value_id old = pen_graph_value(whole->graph, node->outputs[i])->replaces;
            if (!pen_value_is(old)) continue;
            uint32_t holders = 0;
            for (uint32_t d = 0; d < c->cut->device_count; d++) {
                pen_value_id found;
                const char *name = pen_value_name(whole->graph, old);
                const pen_status status = pen_graph_find_value(parts[d].graph, name, &found);
                if (status == PEN_OK) holders++;
                pen_status_ignore(status, "counted");
            }
            CHECK(holders > 0, "'%s' is nowhere", pen_value_name(whole->graph, old));
        }
    }
    return checked;
}

static void check_kept(const cut_case *c, const machine *whole, const machine *parts) {
    uint32_t kept_count = 0;
    for (uint32_t d = 0; d < c->cut->device_count; d++) {
        for (uint32_t k = 0; k < c->cut->parts[d].kept_count; k++) {
            const pen_value_id kept = c->cut->parts[d].kept[k];
            pen_value_id same;
            CHECK_OK(
                pen_graph_find_value(whole->graph, pen_value_name(parts[d].graph, kept), &same));
            for (uint32_t m = 0; m < whole->microbatch_count; m++) {
                CHECK(is_same(whole, same, &parts[d], kept, m), "'%s' of microbatch %u differs",
                      pen_value_name(whole->graph, same), m);
            }
            kept_count++;
        }
    }
    assert_int_equal(kept_count, c->model.kept_count);
}

static uint32_t check_numbers(cut_case *c, bool accumulate) {
    const uint32_t microbatch_count = accumulate ? (uint32_t)random_between(&c->dice, 1, 4) : 1;
    machine whole = machine_make(c->model.graph, microbatch_count, c->arena);
    machine parts[5];
    uint32_t checked = 0;
    for (uint32_t d = 0; d < c->device_count; d++) {
        parts[d] = machine_make(c->cut->parts[d].graph, microbatch_count, c->arena);
    }
    for (uint64_t step = 1; step <= 2; step++) {
        feed(c, &whole, step);
        run_whole(c, &whole, step);
        machine_run_parts(parts, c->cut, &whole, &c->dice, step);
        checked += check_persistent(c, &whole, parts);
        check_kept(c, &whole, parts);
    }
    return checked;
}

static void check_cases(cut_model_kind kind, uint64_t case_count) {
    uint64_t channel_count = 0, checked = 0;
    for (uint64_t seed = 0; seed < case_count; seed++) {
        const bool accumulate = seed % 3 != 0;
        cut_case c = case_make(kind, seed, accumulate);
        pen_status status = case_cut(&c);
        if (status != PEN_OK) print_message("kind %d seed %d\n", (int)kind, (int)seed);
        CHECK_OK(status);
        check_structure(&c);
        checked += check_numbers(&c, accumulate);
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
