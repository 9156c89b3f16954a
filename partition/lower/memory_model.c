#include "partition/lower/memory_model.h"

#include <string.h>

#include "base/integer.h"
#include "graph/analysis/memory_plan.h"
#include "graph/graph.h"
#include "graph/op.h"

#define MODEL_LISTS 3 // forward, backward, update

typedef struct memory_modeller {
    const pen_planned_graph *planned;
    const pen_graph *graph;
    const pen_forward_owners *owners;
    const uint32_t *device_of_stage;
    const uint32_t *stage_of_node;
    uint32_t *held_by; // [value_count], device that counts a persistent value already, plus 1
    uint32_t *stamp;   // [value_count], stage that counts a received value already, plus 1;
                       // of pipelines, device
    uint32_t *updater; // [value_count], of parameters: stage that updates it, PEN_ID_NONE
    uint32_t *copies;  // [value_count], of pipelines, of the stage in hand: 1 or 0
    pen_memory_list lists[MODEL_LISTS]; // of the stage in hand
    pen_node_id *order;
    uint32_t order_count;
    pen_value_id *kept;
    uint32_t kept_count;
    pen_arena *arena;   // of this call
    pen_arena *scratch; // of one stage
} memory_modeller;

static uint64_t model_bytes(const memory_modeller *m, uint32_t value) {
    return pen_align_up(m->planned->bytes_of_value[value], PEN_MEMORY_ALIGNMENT);
}

static const pen_value *model_value(const memory_modeller *m, uint32_t value) {
    return pen_graph_value(m->graph, (pen_value_id){value});
}

// The stage that makes a root; PEN_ID_NONE where it is fed or persistent.
static uint32_t model_maker(const memory_modeller *m, uint32_t root) {
    const pen_node_id producer = model_value(m, root)->producer;
    return pen_node_is(producer) ? m->stage_of_node[producer.index] : PEN_ID_NONE;
}

static bool model_is_sent(const memory_modeller *m, uint32_t root, uint32_t stage) {
    const pen_forward_owners *owners = m->owners;
    for (uint32_t u = owners->user_first[root]; u < owners->user_first[root + 1]; u++) {
        if (m->stage_of_node[owners->user_nodes[u]] != stage) return true;
    }
    return false;
}

// Whether the backward pass or the update of `stage` reads a root in memory.
static bool model_is_read_later(const memory_modeller *m, uint32_t root, uint32_t stage) {
    const pen_forward_owners *owners = m->owners;
    for (uint32_t u = owners->user_first[root]; u < owners->user_first[root + 1]; u++) {
        const uint32_t user = owners->user_nodes[u];
        if (m->stage_of_node[user] != stage) continue;
        if (pen_graph_node(m->graph, (pen_node_id){user})->role != PEN_ROLE_FORWARD) return true;
    }
    return false;
}

// The stage's part of the execution order.
static void model_list_nodes(memory_modeller *m, uint32_t stage) {
    m->order_count = 0;
    for (uint32_t p = 0; p < m->planned->order_count; p++) {
        const pen_node_id node = m->planned->order[p];
        if (m->stage_of_node[node.index] == stage) m->order[m->order_count++] = node;
    }
}

// What must be there when the stage's last node has run: what was asked for, and what is being
// sent. The model's own tensors that nobody reads are on no device.
static void model_list_kept(memory_modeller *m, uint32_t stage) {
    m->kept_count = 0;
    for (uint32_t i = 0; i < m->planned->kept_count; i++) {
        const uint32_t root = m->owners->root[m->planned->kept[i].index];
        if (model_maker(m, root) == stage) m->kept[m->kept_count++] = m->planned->kept[i];
    }
    for (uint32_t v = 0; v < m->owners->value_count; v++) {
        if (m->owners->root[v] != v || model_maker(m, v) != stage) continue;
        if (model_is_sent(m, v, stage)) m->kept[m->kept_count++] = (pen_value_id){v};
    }
}

// Adds a value that has a place of its own to the kind it is of.
static void model_count_persistent(memory_modeller *m, uint32_t v, uint32_t stage,
                                   pen_stage_memory *memory) {
    const pen_value *value = model_value(m, v);
    const uint64_t bytes = model_bytes(m, v);
    if (value->kind == PEN_VALUE_COMPUTED) {
        const pen_node *producer = pen_graph_node(m->graph, value->producer);
        const bool is_own = producer->accumulates && !pen_value_is(value->replaces);
        if (is_own && m->stage_of_node[value->producer.index] == stage) memory->gradients += bytes;
        return;
    }
    const uint32_t device = m->device_of_stage[stage];
    if (value->kind == PEN_VALUE_INPUT || value->kind == PEN_VALUE_SCALAR) {
        const bool is_kept = value->kind == PEN_VALUE_INPUT && model_is_read_later(m, v, stage);
        *(is_kept ? &memory->received_kept : &memory->received_passing) += bytes;
        return;
    }
    if (m->held_by[v] == device + 1) return;
    m->held_by[v] = device + 1;
    const bool is_optimizers = value->kind == PEN_VALUE_STATE && value->data == NULL;
    *(is_optimizers ? &memory->optimizer_state : &memory->parameters) += bytes;
}

// Adds what the stage gets from others. `planned` has no place for it.
static void model_count_received(memory_modeller *m, uint32_t stage, pen_stage_memory *memory) {
    for (uint32_t p = 0; p < m->order_count; p++) {
        const pen_node *node = pen_graph_node(m->graph, m->order[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const uint32_t root = m->owners->root[node->inputs[i].index];
            const uint32_t maker = model_maker(m, root);
            if (maker == PEN_ID_NONE || maker == stage || m->stamp[root] == stage + 1) continue;
            m->stamp[root] = stage + 1;
            const uint64_t bytes = model_bytes(m, root);
            const bool is_kept =
                model_is_read_later(m, root, stage) &&
                pen_graph_node(m->graph, model_value(m, root)->producer)->role == PEN_ROLE_FORWARD;
            const bool arrives = m->device_of_stage[maker] != m->device_of_stage[stage] &&
                                 m->planned->microbatch_count > 1 &&
                                 !pen_forward_owners_is_per_step(m->owners, (pen_value_id){root});
            *(is_kept ? &memory->received_kept : &memory->received_passing) += bytes;
            if (arrives) memory->received_passing += bytes;
        }
    }
}

// ---- pipelines

static uint32_t model_list_of(pen_role role) {
    switch (role) {
    case PEN_ROLE_FORWARD:
        return 0;
    case PEN_ROLE_BACKWARD_INPUT:
    case PEN_ROLE_BACKWARD_WEIGHT:
        return 1;
    case PEN_ROLE_UPDATE:
    case PEN_ROLE_TRANSFER:
        break;
    }
    return 2;
}

static uint32_t model_list_of_node(const memory_modeller *m, uint32_t node) {
    return model_list_of(pen_graph_node(m->graph, (pen_node_id){node})->role);
}

// The stage's nodes by list.
static void model_list_tasks(memory_modeller *m, uint32_t stage) {
    m->order_count = 0;
    for (uint32_t l = 0; l < MODEL_LISTS; l++) {
        m->lists[l].first = m->order_count;
        for (uint32_t p = 0; p < m->planned->order_count; p++) {
            const pen_node_id node = m->planned->order[p];
            if (m->stage_of_node[node.index] != stage) continue;
            if (model_list_of_node(m, node.index) == l) m->order[m->order_count++] = node;
        }
        m->lists[l].end = m->order_count;
    }
}

// Who uses a root beside the list that makes it.
typedef struct model_use {
    bool is_used;       // by this device
    bool is_kept;       // a task behind the forward pass of this device reads it
    bool crosses_lists; // of this stage, or is used by other stages
    bool is_sent;       // to another device
} model_use;

static model_use model_find_use(const memory_modeller *m, uint32_t root, uint32_t stage) {
    const pen_forward_owners *owners = m->owners;
    const pen_node_id producer = model_value(m, root)->producer;
    const bool is_made = pen_node_is(producer) && m->stage_of_node[producer.index] == stage;
    const uint32_t made = is_made ? model_list_of_node(m, producer.index) : MODEL_LISTS;
    model_use use = {0};
    for (uint32_t u = owners->user_first[root]; u < owners->user_first[root + 1]; u++) {
        const uint32_t user = owners->user_nodes[u], reader = m->stage_of_node[user];
        const uint32_t list = model_list_of_node(m, user);
        if (reader != stage || list != made) use.crosses_lists = true;
        if (m->device_of_stage[reader] != m->device_of_stage[stage]) {
            use.is_sent = true;
            continue;
        }
        use.is_used = true;
        if (list > 0) use.is_kept = true;
    }
    return use;
}

static bool model_persists(const memory_modeller *m, const pen_value *value) {
    if (value->kind != PEN_VALUE_COMPUTED) return value->kind != PEN_VALUE_INPUT;
    return pen_value_is(value->replaces) || pen_graph_node(m->graph, value->producer)->accumulates;
}

// A value that the stage makes and that has places of its own.
static void model_count_made(memory_modeller *m, uint32_t root, const model_use *use,
                             pen_stage_memory *memory) {
    const uint64_t bytes = model_bytes(m, root);
    const bool is_per_step = m->planned->microbatch_count == 1 ||
                             pen_forward_owners_is_per_step(m->owners, (pen_value_id){root});
    const bool is_forward = model_list_of_node(m, model_value(m, root)->producer.index) == 0;
    if (is_forward && (use->is_kept || !use->is_sent)) {
        memory->activations += bytes;
    } else {
        memory->sent += is_per_step ? bytes : 2 * bytes;
    }
}

// A value that is fed, or comes from another stage: those of the same device made places for it.
static void model_count_arriving(memory_modeller *m, uint32_t root, uint32_t stage,
                                 const model_use *use, pen_stage_memory *memory) {
    const uint32_t device = m->device_of_stage[stage], maker = model_maker(m, root);
    if (m->stamp[root] == device + 1) return;
    m->stamp[root] = device + 1;
    if (maker != PEN_ID_NONE && m->device_of_stage[maker] == device) return;
    const uint64_t bytes = model_bytes(m, root);
    const bool is_forward =
        maker == PEN_ID_NONE || model_list_of_node(m, model_value(m, root)->producer.index) == 0;
    const bool is_per_step = m->planned->microbatch_count == 1 ||
                             pen_forward_owners_is_per_step(m->owners, (pen_value_id){root});
    *(is_forward && use->is_kept ? &memory->received_kept : &memory->received_passing) += bytes;
    if (!is_per_step) memory->received_passing += bytes;
}

// A parameter that another device updates comes from there.
static void model_count_copy(memory_modeller *m, uint32_t parameter, uint32_t stage,
                             pen_stage_memory *memory) {
    const uint32_t device = m->device_of_stage[stage], updater = m->updater[parameter];
    if (updater == PEN_ID_NONE || m->device_of_stage[updater] == device) return;
    if (m->stamp[parameter] == device + 1) return;
    m->stamp[parameter] = device + 1;
    memory->received_passing += model_bytes(m, parameter);
}

// Counts what has places of its own, and marks it for the plan of the rest.
static void model_count_copies(memory_modeller *m, uint32_t stage, pen_stage_memory *memory) {
    memset(m->copies, 0, m->owners->value_count * sizeof *m->copies);
    for (uint32_t p = 0; p < m->order_count; p++) {
        const pen_node *node = pen_graph_node(m->graph, m->order[p]);
        for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
            const pen_value_id operand =
                i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
            if (!pen_value_is(operand)) continue;
            const uint32_t root = m->owners->root[operand.index];
            const bool is_made = model_maker(m, root) == stage;
            if (m->copies[root] > 0) continue;
            if (model_value(m, root)->kind == PEN_VALUE_PARAMETER) {
                model_count_copy(m, root, stage, memory);
            }
            // a sum that another device made is received like any other value
            if (model_persists(m, model_value(m, root)) &&
                (is_made || model_value(m, root)->kind != PEN_VALUE_COMPUTED)) {
                continue;
            }
            const model_use use = model_find_use(m, root, stage);
            if (is_made && !use.crosses_lists) continue;
            m->copies[root] = 1;
            if (is_made) {
                model_count_made(m, root, &use, memory);
            } else {
                model_count_arriving(m, root, stage, &use, memory);
            }
        }
    }
}

// Plans what is listed as its executor will, so that the figure is exact and not an estimate. On
// one device of this process the lists are those of the local engine: a microbatch and the update.
static pen_status model_plan(const memory_modeller *m, pen_memory_plan **out_plan) {
    pen_memory_request request = {.graph = m->graph,
                                  .order = m->order,
                                  .order_count = m->order_count,
                                  .bytes_of_value = m->planned->bytes_of_value,
                                  .workspace_of_node = m->planned->workspace_of_node,
                                  .kept = m->kept,
                                  .kept_count = m->kept_count};
    if (!m->planned->is_local) {
        request.lists = m->lists;
        request.list_count = MODEL_LISTS;
        request.copies_of_value = m->copies;
    }
    pen_arena_reset(m->scratch);
    return pen_memory_plan_build(&request, m->scratch, out_plan);
}

static pen_status model_pipeline_stage(memory_modeller *m, uint32_t stage,
                                       pen_stage_memory *memory) {
    pen_memory_plan *plan;
    model_list_tasks(m, stage);
    model_list_kept(m, stage);
    model_count_copies(m, stage, memory);
    PEN_TRY(model_plan(m, &plan));
    for (uint32_t v = 0; v < m->owners->value_count; v++) {
        if (plan->values[v].region != PEN_MEMORY_PERSISTENT) continue;
        model_count_persistent(m, v, stage, memory);
    }
    memory->workspace = plan->arena_bytes;
    return PEN_OK;
}

// Of one device of this process. What is read after its list is activations, the rest workspace.
static pen_status model_stage(memory_modeller *m, uint32_t stage, pen_stage_memory *memory) {
    pen_memory_plan *plan;
    if (!m->planned->is_local) return model_pipeline_stage(m, stage, memory);
    model_list_nodes(m, stage);
    model_list_kept(m, stage);
    PEN_TRY(model_plan(m, &plan));
    for (uint32_t v = 0; v < m->owners->value_count; v++) {
        if (plan->values[v].region == PEN_MEMORY_PERSISTENT) {
            model_count_persistent(m, v, stage, memory);
        }
        if (plan->values[v].region != PEN_MEMORY_ARENA || m->owners->root[v] != v) continue;
        const pen_node_id producer = model_value(m, v)->producer;
        const bool is_forward = pen_graph_node(m->graph, producer)->role == PEN_ROLE_FORWARD;
        if (is_forward && model_is_read_later(m, v, stage))
            memory->activations += model_bytes(m, v);
    }
    memory->workspace = plan->arena_bytes - pen_min_u64(plan->arena_bytes, memory->activations);
    model_count_received(m, stage, memory);
    return PEN_OK;
}

// Device by device: what several stages of one hold together is counted once, whatever is between.
static pen_status model_devices(memory_modeller *m, uint32_t stage_count,
                                pen_stage_memory *memory) {
    bool *is_done;
    PEN_TRY(PEN_NEW(m->arena, stage_count, &is_done));
    for (uint32_t s = 0; s < stage_count; s++) {
        for (uint32_t t = s; t < stage_count && !is_done[s]; t++) {
            if (m->device_of_stage[t] != m->device_of_stage[s]) continue;
            if (t > s) is_done[t] = true;
            PEN_TRY(model_stage(m, t, &memory[t]));
        }
    }
    return PEN_OK;
}

static pen_status model_find_updaters(memory_modeller *m) {
    PEN_TRY(PEN_NEW(m->arena, m->owners->value_count, &m->updater));
    memset(m->updater, 0xff, m->owners->value_count * sizeof *m->updater);
    for (uint32_t v = 0; v < m->owners->value_count; v++) {
        const pen_value *value = model_value(m, v);
        if (value->kind != PEN_VALUE_COMPUTED || !pen_value_is(value->replaces)) continue;
        m->updater[value->replaces.index] = m->stage_of_node[value->producer.index];
    }
    return PEN_OK;
}

// All scratch is in one arena that goes at the end: searches ask this for many placements.
pen_status pen_memory_model_stages(const pen_planned_graph *planned,
                                   const pen_forward_owners *owners, const pen_stage_split *split,
                                   pen_arena *arena, pen_stage_memory **out_memory) {
    memory_modeller m = {.planned = planned,
                         .graph = planned->graph,
                         .owners = owners,
                         .device_of_stage = split->device_of_stage,
                         .stage_of_node = split->stage_of_node};
    pen_stage_memory *memory;
    PEN_TRY(PEN_NEW(arena, split->stage_count, &memory));
    PEN_TRY(pen_arena_create(&m.arena));
    pen_status status = pen_arena_create_within(m.arena, &m.scratch);
    if (status == PEN_OK) status = PEN_NEW(m.arena, owners->value_count, &m.held_by);
    if (status == PEN_OK) status = PEN_NEW(m.arena, owners->value_count, &m.stamp);
    if (status == PEN_OK) status = PEN_NEW(m.arena, owners->value_count, &m.copies);
    if (status == PEN_OK) status = model_find_updaters(&m);
    if (status == PEN_OK) status = PEN_NEW(m.arena, owners->node_count, &m.order);
    if (status == PEN_OK) {
        status = PEN_NEW(m.arena, 2 * (size_t)owners->value_count + planned->kept_count, &m.kept);
    }
    if (status == PEN_OK) status = model_devices(&m, split->stage_count, memory);
    pen_arena_destroy(m.arena);
    *out_memory = memory;
    return status;
}

pen_device_memory pen_memory_model_device(const pen_stage_memory *stages,
                                          const pen_stage_split *split, const uint32_t *in_flight,
                                          uint32_t device) {
    pen_device_memory sum = {0};
    for (uint32_t s = 0; s < split->stage_count; s++) {
        if (split->device_of_stage[s] != device) continue;
        sum.parameters += stages[s].parameters;
        sum.gradients += stages[s].gradients;
        sum.optimizer_state += stages[s].optimizer_state;
        sum.activations += stages[s].activations * in_flight[s] + stages[s].sent;
        sum.receive_buffers += stages[s].received_kept * in_flight[s] + stages[s].received_passing;
        sum.workspace = pen_max_u64(sum.workspace, stages[s].workspace);
    }
    sum.total = sum.parameters + sum.gradients + sum.optimizer_state + sum.activations +
                sum.receive_buffers + sum.workspace;
    return sum;
}
