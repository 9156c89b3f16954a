// Reuse distances: bytes that a step moves between two uses of memory.
//
// Values that persist have a place of their own. The others share an arena whose plan says where
// each lies; it is watched in grains, so that an output that takes over memory of a value that just
// died is found to be warm.

#include "device/measure_op.h"
#include "graph/analysis/memory_plan.h"
#include "graph/graph.h"
#include "graph/op.h"

#define STEP_GRAIN_BYTES 4096u
#define STEP_GRAIN_LIMIT (1u << 20) // larger arenas are watched in larger grains

typedef struct step_builder {
    const pen_measure_program *program;
    const pen_graph *graph;
    pen_memory_plan *plan;
    const uint64_t *bytes; // [value_count]
    uint64_t grain_bytes;
    uint64_t *touched;    // [grains of the arena]: bytes moved up to the last use, plus 1; 0: never
    uint64_t *persistent; // [value_count]: the same for values with a place of their own, by home
    uint32_t *first_of_node;
    uint64_t *distances;
    uint32_t *same_as;
} step_builder;

static uint32_t step_operand_count(const pen_node *node) {
    return node->input_count + node->output_count;
}

static pen_value_id step_operand(const pen_node *node, uint32_t operand) {
    return operand < node->input_count ? node->inputs[operand]
                                       : node->outputs[operand - node->input_count];
}

static pen_status step_plan(step_builder *builder, pen_device *device, pen_arena *arena) {
    const uint32_t value_count = pen_graph_value_count(builder->graph);
    uint64_t *bytes;
    PEN_TRY(PEN_NEW(arena, value_count, &bytes));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value_id value = {v};
        bytes[v] = device->kind->value_bytes != NULL
                       ? device->kind->value_bytes(device, builder->graph, value)
                       : pen_tensor_type_bytes(pen_value_type(builder->graph, value));
    }
    builder->bytes = bytes;
    const pen_memory_request request = {.graph = builder->graph,
                                        .order = builder->program->order,
                                        .order_count = builder->program->order_count,
                                        .bytes_of_value = bytes,
                                        .kept = builder->program->kept,
                                        .kept_count = builder->program->kept_count};
    return pen_memory_plan_build(&request, arena, &builder->plan);
}

static pen_status step_allocate(step_builder *builder, pen_arena *arena) {
    const uint32_t node_count = pen_graph_node_count(builder->graph);
    uint32_t operand_count = 0;
    builder->grain_bytes = STEP_GRAIN_BYTES;
    while (builder->plan->arena_bytes / builder->grain_bytes >= STEP_GRAIN_LIMIT)
        builder->grain_bytes *= 2;
    PEN_TRY(
        PEN_NEW(arena, builder->plan->arena_bytes / builder->grain_bytes + 1, &builder->touched));
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(builder->graph), &builder->persistent));
    PEN_TRY(PEN_NEW(arena, node_count, &builder->first_of_node));
    for (uint32_t n = 0; n < node_count; n++) {
        builder->first_of_node[n] = operand_count;
        operand_count += step_operand_count(pen_graph_node(builder->graph, (pen_node_id){n}));
    }
    PEN_TRY(PEN_NEW(arena, operand_count, &builder->distances));
    return PEN_NEW(arena, operand_count, &builder->same_as);
}

// Where the value lies in the grains: [*out_first, *out_last]. False: not in the arena.
static bool step_grains(const step_builder *builder, pen_value_id value, uint64_t *out_first,
                        uint64_t *out_last) {
    const pen_memory_slot slot = builder->plan->values[value.index];
    const uint64_t bytes = builder->bytes[value.index];
    if (slot.region != PEN_MEMORY_ARENA) return false;
    *out_first = slot.offset / builder->grain_bytes;
    *out_last = (slot.offset + (bytes > 0 ? bytes - 1 : 0)) / builder->grain_bytes;
    return true;
}

// The mean over the value's grains; what was never touched counts as a whole step ago.
static uint64_t step_distance(const step_builder *builder, pen_value_id value, uint64_t moved) {
    uint64_t first, last, sum = 0;
    if (!step_grains(builder, value, &first, &last)) {
        const uint64_t touched = builder->persistent[pen_value_home(builder->graph, value).index];
        return touched == 0 ? moved : moved - (touched - 1);
    }
    for (uint64_t g = first; g <= last; g++) {
        const uint64_t touched = builder->touched[g];
        sum += (touched == 0 ? moved : moved - (touched - 1)) / (last - first + 1);
    }
    return sum;
}

static void step_touch(step_builder *builder, pen_value_id value, uint64_t moved) {
    uint64_t first, last;
    if (!step_grains(builder, value, &first, &last)) {
        builder->persistent[pen_value_home(builder->graph, value).index] = moved + 1;
        return;
    }
    for (uint64_t g = first; g <= last; g++) {
        builder->touched[g] = moved + 1;
    }
}

// Whether two operands are planned to start at one place.
static bool step_is_same(const step_builder *builder, pen_value_id a, pen_value_id b) {
    if (pen_value_same(a, b)) return true;
    const pen_memory_slot left = builder->plan->values[a.index];
    const pen_memory_slot right = builder->plan->values[b.index];
    return left.region == right.region && left.region != PEN_MEMORY_NONE &&
           left.offset == right.offset && builder->bytes[a.index] == builder->bytes[b.index];
}

static uint32_t step_find_same(const step_builder *builder, const pen_node *node,
                               uint32_t operand) {
    const pen_value_id value = step_operand(node, operand);
    for (uint32_t i = 0; i < operand; i++) {
        const pen_value_id other = step_operand(node, i);
        if (pen_value_is(other) && step_is_same(builder, other, value)) return i;
    }
    return operand;
}

// Walks the order once; the second walk finds what the first left, as every step but the first
// does.
static uint64_t step_walk(step_builder *builder, uint64_t moved) {
    const pen_graph *graph = builder->graph;
    for (uint32_t p = 0; p < builder->program->order_count; p++) {
        const pen_node_id id = builder->program->order[p];
        const pen_node *node = pen_graph_node(graph, id);
        if (node->op->is_view) continue;
        const uint32_t first = builder->first_of_node[id.index];
        for (uint32_t i = 0; i < step_operand_count(node); i++) {
            const pen_value_id value = step_operand(node, i);
            builder->same_as[first + i] = i;
            if (!pen_value_is(value)) continue;
            builder->distances[first + i] = step_distance(builder, value, moved);
            builder->same_as[first + i] = step_find_same(builder, node, i);
        }
        moved += pen_node_bytes(graph, id);
        for (uint32_t i = 0; i < step_operand_count(node); i++) {
            const pen_value_id value = step_operand(node, i);
            if (pen_value_is(value)) step_touch(builder, value, moved);
        }
    }
    return moved;
}

pen_status pen_measure_step_build(pen_device *device, const pen_measure_program *program,
                                  pen_arena *arena, const pen_measure_step **out_step) {
    step_builder builder = {.program = program, .graph = program->graph};
    pen_measure_step *step;
    PEN_TRY(PEN_NEW(arena, 1, &step));
    PEN_TRY(step_plan(&builder, device, arena));
    PEN_TRY(step_allocate(&builder, arena));
    step->step_bytes = step_walk(&builder, 0);
    (void)step_walk(&builder, step->step_bytes);
    step->first_of_node = builder.first_of_node;
    step->distances = builder.distances;
    step->same_as = builder.same_as;
    *out_step = step;
    return PEN_OK;
}
