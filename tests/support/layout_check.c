#include "tests/support/layout_check.h"

#include <math.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "device/device.h"
#include "graph/op.h"
#include "scheduler/runtime/executor/executor.h"
#include "tests/support/device_check.h"

#define LAYOUT_TEAM_MOST 16 // threads; more than cores are no mistake

static pen_status layout_choose_wished(void *context, const pen_graph *graph, pen_node_id id,
                                       pen_layout *inputs, pen_layout *outputs) {
    const layout_wish *wish = context;
    const pen_node *node = pen_graph_node(graph, id);
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = (wish->inputs >> i & 1) != 0 ? wish->layout : PEN_LAYOUT_PLAIN;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        outputs[i] = (wish->outputs >> i & 1) != 0 ? wish->layout : PEN_LAYOUT_PLAIN;
    }
    return PEN_OK;
}

static void layout_compare(const op_case *c, uint64_t seed, double tolerance, uint32_t output,
                           const pen_tensor *expected, const pen_tensor *found) {
    for (int64_t k = 0; k < pen_tensor_count(found); k++) {
        const double a = pen_tensor_get(found, k), b = pen_tensor_get(expected, k);
        const bool same =
            a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b));
        CHECK(same, "%s laid out, seed %llu: output %u, element %lld is %.9g, expected %.9g", c->op,
              (unsigned long long)seed, output, (long long)k, a, b);
    }
}

// A case, and what the reference kernels made of it.
typedef struct layout_expected {
    const op_case *op_case;
    uint64_t seed;
    double tolerance;
    const op_built *built;
    const run_graph *run;
    uint32_t thread_count;
    uint64_t bits[OP_CASE_OUTPUTS]; // of one thread, which runs first
} layout_expected;

// Runs `graph`, a laid out copy of the case's, and compares its outputs.
static void layout_run(layout_expected *e, pen_device *device, const pen_graph *graph,
                       const pen_value_id *values) {
    const op_case *c = e->op_case;
    const op_built *built = e->built;
    pen_arena *arena = pen_graph_arena(graph);
    const uint32_t node_count = pen_graph_node_count(graph);
    pen_node_id *order;
    pen_value_id kept[OP_CASE_OUTPUTS];
    uint32_t kept_count = 0;
    CHECK_OK(PEN_NEW(arena, node_count, &order));
    for (uint32_t n = 0; n < node_count; n++) {
        order[n] = (pen_node_id){n};
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        kept[kept_count++] = pen_graph_output(graph, i);
    }
    const pen_executor_spec spec = {.device = device,
                                    .graph = graph,
                                    .order = order,
                                    .order_count = node_count,
                                    .update_first = node_count,
                                    .kept = kept,
                                    .kept_count = kept_count};
    pen_executor *executor;
    CHECK_OK(pen_executor_create(&spec, &executor));
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (c->inputs[i].is_absent || c->inputs[i].is_constant) continue;
        const pen_tensor *tensor = &e->run->tensors[built->inputs[i].index];
        CHECK_OK(pen_executor_write(executor, values[built->inputs[i].index], 0, tensor->data,
                                    pen_tensor_type_bytes(&tensor->type)));
    }
    const pen_run_context run = {.seed = e->seed, .first_microbatch = true};
    for (int pass = 0; pass < 2; pass++) { // what one run leaves behind must not hurt the next
        CHECK_OK(pen_executor_run(executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    }
    const uint32_t output_count = c->output_count == 0 ? 1 : c->output_count;
    for (uint32_t i = 0; i < output_count; i++) {
        if (!pen_value_is(built->outputs[i])) continue;
        const pen_tensor *tensor = &e->run->tensors[built->outputs[i].index];
        const uint64_t bytes = pen_tensor_type_bytes(&tensor->type);
        pen_tensor found = {tensor->type, pen_memory_allocate(bytes + 1, 1)};
        CHECK_OK(
            pen_executor_read(executor, values[built->outputs[i].index], 0, found.data, bytes));
        layout_compare(c, e->seed, e->tolerance, i, tensor, &found);
        const uint64_t bits = pen_checksum_whole(found.data, bytes);
        if (e->thread_count == 1) e->bits[i] = bits;
        CHECK(bits == e->bits[i], "%s laid out, seed %llu: output %u has other bits on %u threads",
              c->op, (unsigned long long)e->seed, i, e->thread_count);
        pen_memory_free(found.data);
    }
    pen_executor_destroy(executor);
}

void op_check_layout(const op_case *c, uint64_t seed, double tolerance, const layout_wish *wish) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    for (uint32_t i = 0; i < OP_CASE_OUTPUTS && i < (c->output_count == 0 ? 1 : c->output_count);
         i++) {
        if (pen_value_is(built.outputs[i])) {
            CHECK_OK(pen_graph_add_output(built.graph, built.outputs[i]));
        }
    }
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(c, &built, seed, &run);
    run.seed = seed;
    CHECK_OK(run_graph_all(&run));
    layout_expected expected = {
        .op_case = c, .seed = seed, .tolerance = tolerance, .built = &built, .run = &run};
    const pen_device_kind *kind;
    CHECK_OK(pen_device_kind_find("cpu", &kind));
    const uint32_t teams[] = {1, 2, 3 + (uint32_t)(seed % (LAYOUT_TEAM_MOST - 2))};
    for (uint32_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        const pen_device_options options = {
            .name = "tested", .thread_count = teams[i], .level = op_check_level()};
        expected.thread_count = teams[i];
        pen_device *device;
        CHECK_OK(kind->open(&options, &device));
        layout_wish wished = wish != NULL ? *wish : (layout_wish){0};
        const pen_layout_rules rules = {.context = &wished, .choose = layout_choose_wished};
        pen_graph *graph;
        const pen_value_id *values;
        CHECK_OK(pen_assign_layouts(built.graph, wish != NULL ? &rules : kind->layout_rules(device),
                                    &graph, &values));
        layout_run(&expected, device, graph, values);
        kind->close(device);
    }
    op_built_free(&built);
}
