#include "partition/plan/plan_explain.h"

#include <string.h>

#include "base/format/text_columns.h"
#include "graph/graph.h"
#include "partition/costs/cluster_build.h"
#include "partition/lower/stage_costs.h"
#include "partition/plan/plan_build.h"
#include "partition/plan/plan_dump.h"
#include "partition/plan/plan_reasons.h"
#include "partition/plan/plan_value.h"

#define EXPLAIN_NAMES_SHOWN 6
#define EXPLAIN_MEMBERS_SHOWN 8

typedef struct explainer {
    const pen_planner *planner;
    const pen_plan *plan;
    pen_arena *arena;
    pen_plan_solution now;
    uint32_t color;
    uint32_t *device_of_node; // [node_count], as now but for what moves
} explainer;

// Names near to what was asked, or else some that there are.
static pen_status explain_refuse(const pen_plan *plan, const char *name, pen_arena *arena) {
    const char **names;
    uint32_t near[EXPLAIN_NAMES_SHOWN];
    PEN_TRY(PEN_NEW(arena, plan->node_count, &names));
    for (uint32_t n = 0; n < plan->node_count; n++) {
        names[n] = plan->nodes[n].name;
    }
    const size_t found =
        pen_text_find_near(name, names, plan->node_count, EXPLAIN_NAMES_SHOWN, near);
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_print(&text, "the plan has no node '%.200s', ", name);
    for (size_t i = 0; i < found; i++) {
        pen_text_print(&text, "%s%s", i > 0 ? ", " : "near: ", names[near[i]]);
    }
    if (found == 0) {
        pen_text_add(&text, "possible: ");
        pen_text_add_names(&text, name, names, plan->node_count, EXPLAIN_NAMES_SHOWN);
    }
    return pen_text_error(&text, PEN_NOT_FOUND);
}

// The node that a value of the graph goes with; PEN_ID_NONE: none.
static uint32_t explain_node_of_value(const pen_forward_owners *owners, pen_value_id value) {
    const pen_node_id producer = pen_graph_value(owners->graph, value)->producer;
    if (pen_node_is(producer)) return producer.index;
    for (uint32_t u = owners->user_first[value.index]; u < owners->user_first[value.index + 1];
         u++) {
        const uint32_t user = owners->user_nodes[u];
        if (pen_graph_node(owners->graph, (pen_node_id){user})->role == PEN_ROLE_FORWARD) {
            return user;
        }
    }
    return PEN_ID_NONE;
}

// The listed node that is called so, or that goes with what is. The plan is one of this graph.
static pen_status explain_find(const pen_forward_owners *owners, const pen_plan *plan,
                               const char *name, pen_arena *arena, uint32_t *out_node) {
    pen_node_id node;
    pen_value_id value;
    pen_status status = pen_graph_find_node(owners->graph, name, &node);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "it may be a value");
        node = PEN_NODE_NONE;
        status = pen_graph_find_value(owners->graph, name, &value);
        if (status == PEN_OK) node.index = explain_node_of_value(owners, value);
    }
    if (status == PEN_OK && pen_node_is(node)) {
        *out_node = owners->listed[node.index];
        return PEN_OK;
    }
    pen_status_ignore(status, "told with near names");
    return explain_refuse(plan, name, arena);
}

// The largest load of a device.
static pen_status explain_load(const pen_plan_solution *solution, pen_arena *arena,
                               double *out_seconds) {
    const pen_stage_graph *stages = &solution->stages;
    double *load, most = 0.0;
    PEN_TRY(PEN_NEW(arena, stages->device_count, &load));
    pen_stage_graph_add_loads(stages, load);
    for (uint32_t d = 0; d < stages->device_count; d++) {
        if (load[d] > most) most = load[d];
    }
    *out_seconds = most;
    return PEN_OK;
}

static double explain_traffic(const pen_plan_solution *solution) {
    double bytes = 0.0;
    for (uint32_t i = 0; i < solution->transfers.count; i++) {
        const pen_stage_transfer *transfer = &solution->transfers.items[i];
        const uint32_t *device_of_stage = solution->split.device_of_stage;
        if (device_of_stage[transfer->source] == device_of_stage[transfer->target]) continue;
        bytes += (double)transfer->bytes;
    }
    return bytes;
}

// Whether some device has several stages, so that devices wait for each other in a circle.
static bool explain_is_cyclic(const pen_plan_solution *solution) {
    const pen_stage_split *split = &solution->split;
    for (uint32_t s = 0; s < split->stage_count; s++) {
        for (uint32_t t = 0; t < s; t++) {
            if (split->device_of_stage[s] == split->device_of_stage[t]) return true;
        }
    }
    return false;
}

// What the job itself says against a device; NULL: nothing.
static pen_status explain_rule(const explainer *e, uint32_t device, const char **out_why_not) {
    const pen_graph_constraints *constraints = &e->planner->constraints;
    const pen_cluster_device *devices = e->planner->request->cluster->devices;
    const uint32_t pin = constraints->pin[e->color];
    *out_why_not = NULL;
    if (pin != PEN_PROBLEM_ANY && pin != device) {
        return pen_arena_format(e->arena, out_why_not, "pinned to '%s'", devices[pin].name);
    }
    for (uint32_t i = 0; i < constraints->forbidden_count; i++) {
        const pen_problem_forbidden *forbidden = &constraints->forbidden[i];
        if (constraints->color[forbidden->node] != e->color || forbidden->device != device) {
            continue;
        }
        return pen_arena_format(e->arena, out_why_not, "forbidden by the job");
    }
    return PEN_OK;
}

static bool explain_is_for(const pen_plan *plan, pen_objective objective) {
    return strcmp(plan->objective, pen_objective_names[objective]) == 0;
}

// The whole plan is worked out with the node, and all that must go with it, on another device:
// time, memory, and what forbids it.
static pen_status explain_device(explainer *e, uint32_t node, uint32_t device,
                                 pen_plan_alternative *alternative) {
    const pen_forward_owners *owners = e->planner->owners;
    const pen_plan_request *request = e->planner->request;
    pen_plan_solution solution;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        e->device_of_node[n] = e->now.device_of_node[n];
        if (e->planner->constraints.color[n] != e->color) continue;
        e->device_of_node[n] = device;
        if (pen_graph_node(owners->graph, (pen_node_id){n})->role == PEN_ROLE_UPDATE) continue;
        alternative->node_seconds +=
            pen_cost_model_at(request->costs, device, (pen_node_id){n})->seconds;
    }
    alternative->source = pen_cost_model_at(request->costs, device, (pen_node_id){node})->source;
    alternative->is_here = device == e->now.device_of_node[node];
    alternative->memory_limit = request->cluster->devices[device].bytes_limit;
    if (alternative->is_here) {
        solution = e->now;
    } else {
        PEN_TRY(pen_plan_solve(e->planner, e->device_of_node, e->arena, &solution));
    }
    alternative->step_seconds = solution.prediction.step_seconds;
    if (explain_is_for(e->plan, PEN_OBJECTIVE_LATENCY)) {
        PEN_TRY(pen_plan_latency(e->planner, &solution, e->arena, &alternative->latency_seconds));
    }
    alternative->traffic_bytes = explain_traffic(&solution);
    alternative->memory_total = solution.device_memory[device].total;
    PEN_TRY(explain_load(&solution, e->arena, &alternative->load_seconds));
    PEN_TRY(explain_rule(e, device, &alternative->why_not));
    if (alternative->why_not != NULL || alternative->is_here) return PEN_OK;
    if (!solution.fits) {
        const uint32_t worst = solution.worst_device;
        const char *kinds;
        char total[PEN_QUANTITY_TEXT_BYTES];
        PEN_TRY(pen_device_memory_format(&solution.device_memory[worst], e->arena, &kinds));
        return pen_arena_format(
            e->arena, &alternative->why_not, "does not fit: '%s' would hold %s (%s)",
            request->cluster->devices[worst].name,
            pen_bytes_format(solution.device_memory[worst].total, total), kinds);
    }
    if (request->placement->contiguous && explain_is_cyclic(&solution)) {
        return pen_arena_format(e->arena, &alternative->why_not,
                                "devices would wait for each other in a circle");
    }
    return PEN_OK;
}

static pen_status explain_members(const explainer *e, pen_plan_explanation *explanation) {
    const pen_forward_owners *owners = e->planner->owners;
    const char **members;
    PEN_TRY(PEN_NEW(e->arena, owners->node_count, &members));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        if (!owners->is_listed[n] || e->planner->constraints.color[n] != e->color) continue;
        members[explanation->member_count++] = pen_node_name(owners->graph, (pen_node_id){n});
    }
    explanation->members = members;
    return PEN_OK;
}

// The plan is checked against the model first: figures of another model would explain nothing.
pen_status pen_plan_explain(const pen_planner *planner, const pen_plan *plan, const char *node,
                            pen_arena *arena, pen_plan_explanation *out_explanation) {
    explainer e = {.planner = planner, .plan = plan, .arena = arena};
    pen_plan_explanation explanation = {.plan = plan, .asked = node};
    pen_plan_alternative *devices;
    uint32_t id = PEN_ID_NONE;
    PEN_TRY(pen_plan_check_model(planner, plan, arena));
    PEN_TRY(explain_find(planner->owners, plan, node, arena, &id));
    PEN_TRY(pen_plan_solve_given(planner, plan, arena, &e.now));
    const char *name = pen_node_name(planner->owners->graph, (pen_node_id){id});
    for (uint32_t n = 0; n < plan->node_count; n++) {
        if (strcmp(plan->nodes[n].name, name) == 0) explanation.node = &plan->nodes[n];
    }
    PEN_TRY(pen_plan_reason(planner, &e.now, id, arena, &explanation.reason));
    e.color = planner->constraints.color[id];
    PEN_TRY(PEN_NEW(arena, planner->owners->node_count, &e.device_of_node));
    PEN_TRY(PEN_NEW(arena, plan->device_count, &devices));
    PEN_TRY(explain_members(&e, &explanation));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        PEN_TRY(explain_device(&e, id, d, &devices[d]));
        if (devices[d].is_here) explanation.here = d;
    }
    explanation.devices = devices;
    *out_explanation = explanation;
    return PEN_OK;
}

// ---- printing

static double explain_value(const pen_plan_explanation *x, const pen_plan_alternative *device) {
    if (explain_is_for(x->plan, PEN_OBJECTIVE_TRAFFIC)) return device->traffic_bytes;
    if (explain_is_for(x->plan, PEN_OBJECTIVE_THROUGHPUT)) return device->load_seconds;
    if (explain_is_for(x->plan, PEN_OBJECTIVE_LATENCY)) return device->latency_seconds;
    return device->step_seconds;
}

// "+12.3%"; what the objective would change by.
static const char *explain_change(const pen_plan_explanation *x, const pen_plan_alternative *device,
                                  char out_text[32]) {
    const double now = explain_value(x, &x->devices[x->here]);
    const double then = explain_value(x, device);
    if (now <= 0.0) {
        snprintf(out_text, 32, "%s", then > 0.0 ? "from 0" : "+0.0%");
    } else {
        snprintf(out_text, 32, "%+.1f%%", 100.0 * (then / now - 1.0));
    }
    return out_text;
}

// Where a node was asked for that follows another, the answer says which.
void pen_plan_explanation_dump(const pen_plan_explanation *x, pen_text *text) {
    const pen_plan *plan = x->plan;
    if (strcmp(x->asked, x->node->name) != 0) {
        pen_text_print(text, "asked for    %s, which goes with\n", x->asked);
    }
    pen_text_print(text, "node         %s\nstage        %u of %u, on '%s'\nwhy          %s\n",
                   x->node->name, x->node->stage, plan->stages.stage_count,
                   plan->devices[x->here].name, x->reason);
    if (x->member_count > 1) {
        pen_text_add(text, "with it      ");
        uint32_t shown = 0;
        for (uint32_t i = 0; i < x->member_count && shown < EXPLAIN_MEMBERS_SHOWN; i++) {
            if (strcmp(x->members[i], x->node->name) == 0) continue;
            pen_text_print(text, "%s%s", shown++ > 0 ? ", " : "", x->members[i]);
        }
        if (shown + 1 < x->member_count) {
            pen_text_print(text, " and %u more", x->member_count - 1 - shown);
        }
        pen_text_add(text, "\n");
    }
    const size_t width = pen_plan_device_columns(plan);
    pen_text_add(text, "\n");
    pen_text_add_column(text, "device", width);
    pen_text_print(text, " %10s %-8s %10s %10s %10s %10s %10s  %s\n", "time there", "", "step",
                   plan->objective, "traffic", "memory", "limit", "");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_alternative *a = &x->devices[d];
        char time[PEN_QUANTITY_TEXT_BYTES], step[PEN_QUANTITY_TEXT_BYTES], change[32];
        char traffic[PEN_QUANTITY_TEXT_BYTES], memory[PEN_QUANTITY_TEXT_BYTES];
        char limit[PEN_QUANTITY_TEXT_BYTES];
        pen_text_add_column(text, plan->devices[d].name, width);
        pen_text_print(text, " %10s %-8s %10s %10s %10s %10s %10s  %s\n",
                       pen_seconds_format(a->node_seconds, time), pen_figure_source_name(a->source),
                       pen_seconds_format(a->step_seconds, step), explain_change(x, a, change),
                       pen_bytes_format((uint64_t)a->traffic_bytes, traffic),
                       pen_bytes_format(a->memory_total, memory),
                       pen_bytes_format(a->memory_limit, limit),
                       a->is_here           ? "here"
                       : a->why_not != NULL ? a->why_not
                                            : "possible");
    }
}

// `change` is the objective's value there less the value here, in its own unit.
void pen_plan_explanation_write_json(const pen_plan_explanation *x, pen_json_writer *json) {
    pen_json_key_text(json, "asked", x->asked);
    pen_json_key_text(json, "node", x->node->name);
    pen_json_key_unsigned(json, "stage", x->node->stage);
    pen_json_key_text(json, "device", x->plan->devices[x->here].name);
    pen_json_key_text(json, "reason", x->reason);
    pen_json_key_text(json, "objective", x->plan->objective);
    pen_json_key_array(json, "moves_together");
    for (uint32_t i = 0; i < x->member_count; i++) {
        pen_json_text(json, x->members[i]);
    }
    pen_json_end_array(json);
    pen_json_key_array(json, "devices");
    const double now = explain_value(x, &x->devices[x->here]);
    for (uint32_t d = 0; d < x->plan->device_count; d++) {
        const pen_plan_alternative *a = &x->devices[d];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", x->plan->devices[d].name);
        pen_json_key_bool(json, "is_here", a->is_here);
        pen_json_key_bool(json, "is_possible", a->why_not == NULL);
        if (a->why_not != NULL) pen_json_key_text(json, "why_not", a->why_not);
        pen_json_key_number(json, "node_seconds", a->node_seconds);
        pen_json_key_text(json, "source", pen_figure_source_name(a->source));
        pen_json_key_number(json, "step_seconds", a->step_seconds);
        if (explain_is_for(x->plan, PEN_OBJECTIVE_LATENCY)) {
            pen_json_key_number(json, "latency_seconds", a->latency_seconds);
        }
        pen_json_key_number(json, "load_seconds", a->load_seconds);
        pen_json_key_number(json, "traffic_bytes", a->traffic_bytes);
        pen_json_key_number(json, "change", explain_value(x, a) - now);
        pen_json_key_unsigned(json, "memory_total", a->memory_total);
        pen_json_key_unsigned(json, "memory_limit", a->memory_limit);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}
