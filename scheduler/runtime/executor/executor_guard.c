#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "graph/lanes.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "scheduler/runtime/executor/executor_inspect.h"
#include "scheduler/runtime/executor/executor_state.h"

// Below this a sum of products is finite in float32, also over 2^20 microbatches and with every
// rounding against it.
#define GUARD_BOUND 1e30
// Below this a factor is finite in each precision that products take it in (base/precision.h).
#define GUARD_FACTOR 1e38
#define GUARD_NONE UINT32_MAX

// A gradient, and the update that applies it.
typedef struct guard_gradient guard_gradient;
struct guard_gradient {
    pen_value_id value;
    uint32_t update;  // position
    uint32_t maker;   // position; GUARD_NONE: no node of this part
    bool is_product;  // two factors are looked at when it is made: the maker's, or those of the
                      // product to which the maker adds rows, and these
    bool is_unproven; // and that did not suffice
    bool is_total;    // of stacks of lanes, which are looked at before the list that adds them
    // The same gradient in the executor that this one shares sums with: what that added counts.
    const guard_gradient *shared;
};

struct executor_guards {
    uint32_t gradient_count;
    guard_gradient *gradients; // by update
    uint32_t *made_at;         // [order_count] gradient whose factors are looked at, or GUARD_NONE
    uint32_t *applied_at;      // [order_count] first gradient applied there, or GUARD_NONE
    bool *is_scalar_at;        // [order_count] the node makes a scalar that must be finite
    bool has_updated;
};

static const pen_node *guard_node(const pen_executor *executor, uint32_t position) {
    return pen_graph_node(executor->spec.graph, executor->spec.order[position]);
}

// Whether the update scales gradients by what came of their norms. The scale of a version says only
// whether there is one.
static bool guard_is_clipped(const pen_executor *executor, const pen_node *node) {
    const uint32_t scale = node->op->update.scale;
    if (node->input_count <= scale || !pen_value_is(node->inputs[scale])) return false;
    const pen_graph *graph = executor->spec.graph;
    const pen_node_id maker = pen_graph_value(graph, node->inputs[scale])->producer;
    return !pen_node_is(maker) || pen_graph_node(graph, maker)->op != PEN_OP(version_gradient);
}

bool executor_has_elements(const pen_executor *executor, pen_value_id value) {
    const pen_tensor_type *type = pen_value_type(executor->spec.graph, value);
    // else what is between is anything
    return pen_executor_holds(executor, value) &&
           pen_executor_bytes(executor, value) == pen_tensor_type_bytes(type);
}

// A copy is for diagnoses and for single numbers; large float32 values are looked at on the device.
static const void *guard_copy(const pen_executor *executor, pen_value_id value, uint64_t microbatch,
                              uint64_t bytes) {
    pen_device *device = executor->spec.device;
    executor_copy *copy = executor->copy;
    if (copy->size < bytes) {
        pen_memory_free(copy->bytes);
        copy->bytes = pen_memory_allocate(bytes, 1);
        copy->size = copy->bytes == NULL ? 0 : bytes;
    }
    if (copy->bytes == NULL) return NULL;
    const pen_status status = device->kind->read(
        device, executor_operand(executor, value, microbatch), copy->bytes, bytes);
    if (status == PEN_OK) return copy->bytes;
    pen_status_ignore(status, "the next call to the device tells it, too");
    return NULL;
}

const void *executor_look(const pen_executor *executor, pen_value_id value, uint64_t microbatch,
                          uint64_t *out_bytes) {
    *out_bytes = pen_executor_bytes(executor, value);
    if (!executor_has_elements(executor, value)) return NULL;
    if (executor_is_seen(executor)) return pen_executor_address(executor, value, microbatch);
    return guard_copy(executor, value, microbatch, *out_bytes);
}

// Of the first `bytes` of a value. What cannot be looked at has none.
static double guard_magnitude_of(const pen_executor *executor, pen_value_id value,
                                 uint64_t microbatch, uint64_t bytes) {
    pen_device *device = executor->spec.device;
    const pen_element_type element = pen_value_type(executor->spec.graph, value)->element;
    uint64_t whole;
    if (!executor_has_elements(executor, value)) return 0;
    if (element != PEN_FLOAT32 || device->kind->magnitude == NULL) {
        const void *memory = executor_look(executor, value, microbatch, &whole);
        return memory == NULL ? 0 : pen_finite_magnitude(memory, bytes, element);
    }
    double magnitude = 0;
    const pen_status status = device->kind->magnitude(
        device, executor_operand(executor, value, microbatch), bytes, &magnitude);
    pen_status_ignore(status, "the next call to the device tells it, too");
    return magnitude;
}

static double guard_magnitude(const pen_executor *executor, pen_value_id value,
                              uint64_t microbatch) {
    return guard_magnitude_of(executor, value, microbatch, pen_executor_bytes(executor, value));
}

// ---- which

static bool guard_is_product(const pen_executor *executor, const pen_node *node) {
    if (!node->op->is_product || node->input_count != 2) return false;
    const char *factor = node->op->factor;
    if (factor != NULL && fabs(pen_node_float(node, factor)) > 1) return false;
    uint64_t factors = 0;
    for (uint32_t i = 0; i < 2; i++) {
        if (!pen_value_is(node->inputs[i])) return false;
        if (!executor_has_elements(executor, node->inputs[i])) return false;
        factors += pen_executor_bytes(executor, node->inputs[i]);
    }
    return factors < pen_executor_bytes(executor, node->outputs[0]);
}

// The product to whose result the maker of a gradient adds rows; PEN_NODE_NONE where it does not.
static pen_node_id guard_sum(const pen_executor *executor, const pen_node *maker) {
    if (maker->op != PEN_OP(gather_backward)) return PEN_NODE_NONE;
    if (maker->input_count < 3 || !pen_value_is(maker->inputs[2])) return PEN_NODE_NONE;
    if (!executor_has_elements(executor, maker->inputs[0])) return PEN_NODE_NONE;
    return pen_graph_value(executor->spec.graph, maker->inputs[2])->producer;
}

static uint32_t *guard_positions(const pen_executor *executor) {
    uint32_t *position_of;
    const uint32_t count = pen_graph_node_count(executor->spec.graph);
    if (PEN_NEW(executor->arena, count, &position_of) != PEN_OK) return NULL;
    for (uint32_t n = 0; n < count; n++) {
        position_of[n] = GUARD_NONE;
    }
    for (uint32_t p = 0; p < executor->spec.order_count; p++) {
        position_of[executor->spec.order[p].index] = p;
    }
    return position_of;
}

// The gradient in the executor whose sums this one adds to; NULL: that does not look at it.
static const guard_gradient *guard_find_shared(const pen_executor *executor, pen_value_id value) {
    const pen_executor *other = executor->spec.shared;
    const char *name = pen_value_name(executor->spec.graph, value);
    for (uint32_t g = 0; other->guards != NULL && g < other->guards->gradient_count; g++) {
        const guard_gradient *guard = &other->guards->gradients[g];
        if (strcmp(pen_value_name(other->spec.graph, guard->value), name) == 0) return guard;
    }
    return NULL;
}

// A gradient made by a product of finite factors that are not too large is finite: then looking at
// the factors, which are smaller, takes the place of looking at it.
static void guard_add(const pen_executor *executor, struct executor_guards *guards,
                      const uint32_t *position_of, uint32_t update) {
    const pen_node *node = guard_node(executor, update);
    const pen_value_id value = node->inputs[node->op->update.gradient];
    const pen_value *gradient = pen_graph_value(executor->spec.graph, value);
    const uint32_t index = guards->gradient_count++;
    guard_gradient *guard = &guards->gradients[index];
    *guard = (guard_gradient){.value = value, .update = update, .maker = GUARD_NONE};
    guards->applied_at[update] = index;
    if (!pen_node_is(gradient->producer)) return;
    guard->maker = position_of[gradient->producer.index];
    if (guard->maker == GUARD_NONE) return;
    guard->is_total = guard_node(executor, guard->maker)->op == PEN_OP(tree_total);
    guard->is_product = guard_is_product(executor, guard_node(executor, guard->maker));
    if (guard->is_product && executor->spec.shared != NULL &&
        guard_node(executor, guard->maker)->accumulates) {
        guard->shared = guard_find_shared(executor, value);
        guard->is_product = guard->shared != NULL && guard->shared->is_product;
    }
    if (guard->is_product) guards->made_at[guard->maker] = index;
    const pen_node_id sum = guard_sum(executor, guard_node(executor, guard->maker));
    const uint32_t product = pen_node_is(sum) ? position_of[sum.index] : GUARD_NONE;
    if (product == GUARD_NONE || guard_node(executor, product)->accumulates) return;
    guard->is_product = guard_is_product(executor, guard_node(executor, product));
    if (guard->is_product) guards->made_at[product] = guards->made_at[guard->maker] = index;
}

// Every update that applies a gradient unclipped gets a guard. Clipped ones are guarded by their
// norm, a single number.
static pen_status guard_find(pen_executor *executor, struct executor_guards *guards) {
    const uint32_t order_count = executor->spec.order_count;
    PEN_TRY(PEN_NEW(executor->arena, order_count, &guards->gradients));
    PEN_TRY(PEN_NEW(executor->arena, order_count, &guards->made_at));
    PEN_TRY(PEN_NEW(executor->arena, order_count, &guards->applied_at));
    PEN_TRY(PEN_NEW(executor->arena, order_count, &guards->is_scalar_at));
    const uint32_t *position_of = guard_positions(executor);
    if (position_of == NULL) return pen_error_out_of_memory();
    for (uint32_t p = 0; p < order_count; p++) {
        guards->made_at[p] = guards->applied_at[p] = GUARD_NONE;
    }
    for (uint32_t p = 0; p < order_count; p++) {
        const pen_node *node = guard_node(executor, p);
        if (node->op == PEN_OP(squared_norm)) guards->is_scalar_at[p] = true;
        if (node->op->is_update && !guard_is_clipped(executor, node)) {
            guard_add(executor, guards, position_of, p);
        }
    }
    return PEN_OK;
}

// Whether a device can look at all that is guarded. Devices look at float32 and float64.
static bool guard_can_be_there(const pen_executor *executor, const struct executor_guards *guards) {
    const pen_graph *graph = executor->spec.graph;
    if (executor->spec.device->kind->list_create == NULL) return false;
    for (uint32_t g = 0; g < guards->gradient_count; g++) {
        const pen_element_type element = pen_value_type(graph, guards->gradients[g].value)->element;
        if (element != PEN_FLOAT32 && element != PEN_FLOAT64) return false;
    }
    return true;
}

// Lists that were made without guards are made again.
pen_status pen_executor_guard(pen_executor *executor, pen_value_id stop) {
    struct executor_guards *guards;
    PEN_ASSERT(executor->guards == NULL && executor->launches != NULL);
    PEN_TRY(PEN_NEW(executor->arena, 1, &guards));
    PEN_TRY(guard_find(executor, guards));
    if (pen_value_is(stop)) {
        const pen_node_id producer = pen_graph_value(executor->spec.graph, stop)->producer;
        for (uint32_t p = 0; p < executor->spec.order_count; p++) {
            if (executor->spec.order[p].index == producer.index) guards->is_scalar_at[p] = true;
        }
    }
    executor_release_lists(executor);
    executor->guards = guards;
    executor->is_guarded_here = !guard_can_be_there(executor, guards);
    return PEN_OK;
}

bool pen_executor_is_guarded(const pen_executor *executor) {
    return executor->guards != NULL;
}

bool pen_executor_is_late(const pen_executor *executor) {
    return executor_has_lists(executor);
}

bool pen_executor_has_updated(const pen_executor *executor) {
    return executor->guards != NULL && executor->guards->has_updated;
}

// ---- looking

static pen_status guard_refuse(const pen_executor *executor, pen_value_id value) {
    return pen_error(PEN_NOT_FINITE, "'%s' is not finite",
                     pen_value_name(executor->spec.graph, value));
}

// Right after a product was made: whether its factors prove that it is finite. With what was there
// before it is, when that was.
static void guard_look_at_factors(const pen_executor *executor, guard_gradient *guard,
                                  uint32_t position, uint64_t microbatch,
                                  const pen_run_context *run) {
    const pen_node *node = guard_node(executor, position);
    const pen_graph *graph = executor->spec.graph;
    double bound = 1, terms = INFINITY;
    for (uint32_t i = 0; i < 2; i++) {
        const pen_tensor_type *type = pen_value_type(graph, node->inputs[i]);
        const double magnitude = guard_magnitude(executor, node->inputs[i], microbatch);
        bound *= magnitude < GUARD_FACTOR ? magnitude : INFINITY;
        terms = fmin(terms, (double)pen_shape_element_count(&type->shape));
    }
    if (run->first_microbatch || !node->accumulates) guard->is_unproven = false;
    if (!(bound * terms < GUARD_BOUND)) guard->is_unproven = true; // also what is not a number
}

// Right after rows were added to a product: whether they prove that it stayed finite.
static void guard_look_at_rows(const pen_executor *executor, guard_gradient *guard,
                               uint64_t microbatch) {
    const pen_node *node = guard_node(executor, guard->maker);
    const pen_shape *rows = &pen_value_type(executor->spec.graph, node->inputs[1])->shape;
    const double bound = guard_magnitude(executor, node->inputs[0], microbatch);
    if (!(bound * (double)pen_shape_element_count(rows) < GUARD_BOUND)) guard->is_unproven = true;
}

static pen_status guard_look_at_gradient(const pen_executor *executor, const guard_gradient *guard,
                                         uint64_t microbatch) {
    const bool is_unproven_there = guard->shared != NULL && guard->shared->is_unproven;
    const bool may_skip = guard->is_product || guard->is_total;
    if (may_skip && !guard->is_unproven && !is_unproven_there) return PEN_OK;
    if (guard_magnitude(executor, guard->value, microbatch) < INFINITY) return PEN_OK;
    return guard_refuse(executor, guard->value);
}

// Whether the blocks of lanes that a total adds are finite: otherwise it is not; and whether they
// prove that it is, too.
static pen_status guard_look_at_stacks(const pen_executor *executor, guard_gradient *guard,
                                       uint64_t microbatch, const pen_run_context *run) {
    const pen_node *node = guard_node(executor, guard->maker);
    uint32_t bound_count;
    const int64_t *bounds = pen_node_ints(node, "bounds", &bound_count);
    double bound = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_tensor_type *type = pen_value_type(executor->spec.graph, node->inputs[i]);
        pen_lane_block blocks[PEN_LANE_BLOCKS];
        const pen_lane_range range = {(uint32_t)bounds[i], (uint32_t)bounds[i + 1],
                                      run->lane_count};
        const uint64_t count = pen_lane_blocks_there(range, blocks);
        if (!executor_has_elements(executor, node->inputs[i])) continue; // is not here
        const uint64_t bytes = pen_executor_bytes(executor, node->inputs[i]);
        const double magnitude = guard_magnitude_of(executor, node->inputs[i], microbatch,
                                                    bytes / (uint64_t)type->shape.dims[0] * count);
        if (!(magnitude < INFINITY)) return guard_refuse(executor, guard->value);
        bound += magnitude * (double)count;
    }
    guard->is_unproven = !(bound < GUARD_BOUND);
    return PEN_OK;
}

// What must be so before a list runs: gradients that it applies, and that are there already.
pen_status executor_guard_list(const pen_executor *executor, const pen_memory_list *list,
                               uint64_t microbatch, const pen_run_context *run) {
    const struct executor_guards *guards = executor->guards;
    executor->guards->has_updated = false;
    for (uint32_t g = 0; g < guards->gradient_count; g++) {
        guard_gradient *guard = &guards->gradients[g];
        if (guard->update < list->first || guard->update >= list->end) continue;
        const bool is_made_here = guard->maker != GUARD_NONE && guard->maker >= list->first;
        if (is_made_here && guard->is_total) {
            PEN_TRY(guard_look_at_stacks(executor, guard, microbatch, run));
        }
        if (!is_made_here) PEN_TRY(guard_look_at_gradient(executor, guard, microbatch));
    }
    return PEN_OK;
}

pen_status executor_guard_before(const pen_executor *executor, const pen_memory_list *list,
                                 uint32_t position, uint64_t microbatch) {
    struct executor_guards *guards = executor->guards;
    const uint32_t index = guards->applied_at[position];
    if (index == GUARD_NONE) return PEN_OK;
    const guard_gradient *guard = &guards->gradients[index];
    if (guard->maker != GUARD_NONE && guard->maker >= list->first) {
        PEN_TRY(guard_look_at_gradient(executor, guard, microbatch));
    }
    guards->has_updated = true;
    return PEN_OK;
}

pen_status executor_guard_after(const pen_executor *executor, uint32_t position,
                                uint64_t microbatch, const pen_run_context *run) {
    const struct executor_guards *guards = executor->guards;
    if (guards->is_scalar_at[position]) {
        const pen_value_id scalar = guard_node(executor, position)->outputs[0];
        if (!(guard_magnitude(executor, scalar, microbatch) < INFINITY)) {
            return guard_refuse(executor, scalar);
        }
    }
    const uint32_t index = guards->made_at[position];
    if (index == GUARD_NONE) return PEN_OK;
    const bool adds_rows = guard_node(executor, position)->input_count > 2; // a product has two
    if (adds_rows) {
        guard_look_at_rows(executor, &guards->gradients[index], microbatch);
    } else {
        guard_look_at_factors(executor, &guards->gradients[index], position, microbatch, run);
    }
    return PEN_OK;
}

// ---- lists that run as one: all that is guarded is looked at

pen_status executor_guard_looks_first(const pen_executor *executor, const pen_memory_list *list,
                                      const executor_looker *looker) {
    const struct executor_guards *guards = executor->guards;
    for (uint32_t g = 0; g < guards->gradient_count; g++) {
        const guard_gradient *guard = &guards->gradients[g];
        if (guard->update < list->first || guard->update >= list->end) continue;
        const bool is_made_here = guard->maker != GUARD_NONE && guard->maker >= list->first;
        if (!is_made_here) PEN_TRY(looker->add(looker->context, guard->value));
    }
    return PEN_OK;
}

pen_status executor_guard_looks_before(const pen_executor *executor, const pen_memory_list *list,
                                       uint32_t position, const executor_looker *looker) {
    const uint32_t index = executor->guards->applied_at[position];
    if (index == GUARD_NONE) return PEN_OK;
    const guard_gradient *guard = &executor->guards->gradients[index];
    if (guard->maker == GUARD_NONE || guard->maker < list->first) return PEN_OK;
    return looker->add(looker->context, guard->value);
}

pen_status executor_guard_looks_after(const pen_executor *executor, uint32_t position,
                                      const executor_looker *looker) {
    if (!executor->guards->is_scalar_at[position]) return PEN_OK;
    return looker->add(looker->context, guard_node(executor, position)->outputs[0]);
}

pen_status executor_guard_found(const pen_executor *executor, const pen_look *look) {
    const executor_list_look *found = (const executor_list_look *)look;
    if (executor->guards != NULL) executor->guards->has_updated = look->is_late;
    return guard_refuse(found->executor, found->value);
}
