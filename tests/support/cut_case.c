#include "tests/support/cut_case.h"

#include "graph/analysis/forward_owner.h"
#include "tests/support/check.h"

static const pen_node *case_node(const cut_case *c, uint32_t n) {
    return pen_graph_node(c->model.graph, (pen_node_id){n});
}

// Stages at random, but none before what its nodes are made from.
static void case_place(cut_case *c) {
    const pen_graph *graph = c->model.graph;
    const pen_forward_owners *owners;
    CHECK_OK(pen_forward_owners_build(graph, c->arena, &owners));
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
        c->stage_of_node[n] = c->stage_of_node[owners->home[n]];
    }
}

cut_case cut_case_make(cut_model_kind kind, uint64_t seed) {
    cut_case c = {.arena = check_arena(), .dice = {.seed = seed * 77 + (uint64_t)kind}};
    c.accumulates = seed % 3 != 0;
    c.model = cut_model_make(c.arena, kind, seed, c.accumulates);
    c.stage_count = (uint32_t)random_between(&c.dice, 1, CUT_CASE_STAGES);
    c.device_count = (uint32_t)random_between(&c.dice, 1, CUT_CASE_DEVICES);
    for (uint32_t s = 0; s < c.stage_count; s++) {
        c.device_of_stage[s] = (uint32_t)random_between(&c.dice, 0, c.device_count - 1);
        c.is_halved[s] = random_chance(&c.dice, 40);
        c.is_recomputed[s] = random_chance(&c.dice, 40);
    }
    case_place(&c);
    return c;
}

pen_status cut_case_cut(cut_case *c) {
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

uint32_t cut_case_run(cut_case *c, const pen_part *given) {
    const uint32_t microbatch_count = c->accumulates ? (uint32_t)random_between(&c->dice, 1, 4) : 1;
    machine whole = machine_make(c->model.graph, microbatch_count, c->arena);
    machine parts[CUT_CASE_DEVICES];
    uint32_t checked = 0;
    pen_cut cut = *c->cut;
    cut.parts = given;
    for (uint32_t d = 0; d < c->device_count; d++) {
        parts[d] = machine_make(given[d].graph, microbatch_count, c->arena);
        machine_fill(&parts[d], &whole);
    }
    for (uint64_t step = 1; step <= 2; step++) {
        feed(c, &whole, step);
        run_whole(c, &whole, step);
        machine_run_parts(parts, &cut, &whole, &c->dice, step);
        checked += check_persistent(c, &whole, parts);
        check_kept(c, &whole, parts);
    }
    return checked;
}
