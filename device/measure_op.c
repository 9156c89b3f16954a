#include "device/measure_op.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/random.h"
#include "graph/op.h"

#define MEASURE_CACHE_BYTES ((uint64_t)32 << 20) // where the system does not say
#define MEASURE_COPIES_LIMIT 64
#define MEASURE_RUN_MINIMUM 5
#define MEASURE_RUN_MAXIMUM 101
#define MEASURE_TIME_LIMIT 0.1
#define MEASURE_PATTERN_BYTES 65536 // of elements that are random; then they repeat
#define MEASURE_SCALAR 0.001        // learning rates and the like

typedef struct measure_operand {
    pen_value_id value; // PEN_VALUE_NONE: left out, or read by the kernel before
    uint32_t same_as;   // an operand whose memory it has, or itself
    bool is_cold;
    uint64_t bytes;
    uint64_t offset; // of its first copy; cold ones lie `stride` apart
} measure_operand;

typedef struct measure_state {
    pen_device *device;
    const pen_graph *graph;
    pen_node_id id;
    const pen_node *node;
    pen_measure_options options;
    pen_arena *arena;
    measure_operand *operands; // [operand_count]: inputs, then outputs
    uint32_t operand_count;
    uint64_t warm_bytes;
    uint64_t stride; // bytes of all cold operands
    uint32_t copies;
    pen_kernel *kernel;
    uint64_t workspace_bytes;
    pen_buffer *buffer;    // warm operands, copies of the cold, workspace
    pen_launch **launches; // [copies]
    double *seconds;       // [run_maximum]
} measure_state;

uint64_t pen_measure_cache_bytes(void) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes > 0) return (uint64_t)bytes;
#endif
    return MEASURE_CACHE_BYTES;
}

static double measure_monotonic(void *context) {
    (void)context;
    return pen_clock_seconds();
}

// ---- contents

static void measure_fill_integer(uint64_t limit, uint32_t random, size_t size, void *element) {
    const uint64_t integer = limit <= 1 ? 0 : 1 + random % (limit - 1);
    const uint8_t byte = (uint8_t)integer;
    const uint16_t word = (uint16_t)integer;
    const uint32_t half = (uint32_t)integer;
    const void *from = size == 1   ? (const void *)&byte
                       : size == 2 ? (const void *)&word
                       : size == 4 ? (const void *)&half
                                   : (const void *)&integer;
    memcpy(element, from, size);
}

static void measure_fill_element(pen_element_type element, uint64_t limit, uint32_t random,
                                 void *out) {
    const double uniform = 0.1 + 0.8 * (double)random / 4294967296.0;
    const float single = (float)uniform;
    const uint16_t half = 0x3800;  // 0.5
    const uint16_t brain = 0x3f00; // 0.5
    switch (element) {
    case PEN_FLOAT32:
        memcpy(out, &single, sizeof single);
        break;
    case PEN_FLOAT64:
        memcpy(out, &uniform, sizeof uniform);
        break;
    case PEN_FLOAT16:
        memcpy(out, &half, sizeof half);
        break;
    case PEN_BFLOAT16:
        memcpy(out, &brain, sizeof brain);
        break;
    case PEN_BOOL:
        *(uint8_t *)out = random & 1;
        break;
    case PEN_INT8:
    case PEN_UINT8:
        measure_fill_integer(pen_min_u64(limit, 127), random, 1, out);
        break;
    case PEN_INT16:
    case PEN_UINT16:
        measure_fill_integer(pen_min_u64(limit, INT16_MAX), random, 2, out);
        break;
    case PEN_INT32:
    case PEN_UINT32:
        measure_fill_integer(pen_min_u64(limit, INT32_MAX), random, 4, out);
        break;
    case PEN_INT64:
    case PEN_UINT64:
        measure_fill_integer(limit, random, 8, out);
        break;
    case PEN_ELEMENT_UNKNOWN:
    case PEN_ELEMENT_TYPE_COUNT:
        break;
    }
}

void pen_measure_fill(pen_element_type element, uint64_t limit, void *out_bytes, uint64_t bytes) {
    const size_t size = pen_element_bytes(element);
    const pen_random_key key = {.seed = 1, .stream = pen_random_stream("measure", 0, 0)};
    uint8_t *out = out_bytes;
    const uint64_t pattern = pen_min_u64(bytes, MEASURE_PATTERN_BYTES);
    if (size == 0) return;
    for (uint64_t at = 0; at + size <= pattern; at += size) {
        uint32_t random[4];
        pen_random_block(key, at / size, random);
        measure_fill_element(element, limit, random[0], out + at);
    }
    for (uint64_t at = pattern; at < bytes; at += pattern) {
        memcpy(out + at, out, (size_t)pen_min_u64(pattern, bytes - at));
    }
}

uint64_t pen_measure_integer_limit(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    uint64_t limit = UINT64_MAX;
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        const pen_value_id value =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (!pen_value_is(value)) continue;
        const pen_tensor_type *type = pen_value_type(graph, value);
        if (!pen_element_is_float(type->element)) continue;
        for (uint32_t d = 0; d < type->shape.rank; d++) {
            limit = pen_min_u64(limit, (uint64_t)type->shape.dims[d]);
        }
    }
    if (strcmp(node->op->name, "gather") == 0) { // rows of a table: all of them
        const pen_shape *table = &pen_value_type(graph, node->inputs[0])->shape;
        int64_t axis = pen_node_int(node, "axis");
        if (axis < 0) axis += table->rank;
        if (axis >= 0 && axis < (int64_t)table->rank) limit = (uint64_t)table->dims[axis];
    }
    return limit == UINT64_MAX ? 2 : limit;
}

// The value's contents in memory that the host sees, or through a copy.
static pen_status measure_fill_operand(measure_state *state, const measure_operand *operand,
                                       uint64_t offset) {
    pen_device *device = state->device;
    const pen_value *value = pen_graph_value(state->graph, operand->value);
    const pen_operand place = {state->buffer, offset};
    if (value->kind == PEN_VALUE_CONSTANT && value->data != NULL) {
        return device->kind->write(device, place, value->data, value->data_bytes);
    }
    const uint64_t limit = pen_measure_integer_limit(state->graph, state->id);
    void *host =
        device->kind->host_address == NULL ? NULL : device->kind->host_address(device, place);
    const bool is_mapped = host != NULL;
    if (!is_mapped) host = pen_memory_allocate(operand->bytes, 1);
    if (host == NULL) return pen_error_out_of_memory();
    pen_measure_fill(value->type.element, limit, host, operand->bytes);
    if (value->kind == PEN_VALUE_SCALAR && value->type.element == PEN_FLOAT32) {
        const float scalar = (float)MEASURE_SCALAR;
        memcpy(host, &scalar, sizeof scalar);
    }
    if (is_mapped) return PEN_OK;
    pen_status status = device->kind->write(device, place, host, operand->bytes);
    status = pen_status_join(status, device->kind->synchronize(device));
    pen_memory_free(host);
    return status;
}

// ---- where operands lie

static uint32_t measure_find_same(const measure_state *state, uint32_t operand) {
    const pen_value_id id = state->operands[operand].value;
    const pen_value *value = pen_graph_value(state->graph, id);
    const uint32_t inputs = state->node->input_count;
    for (uint32_t i = 0; i < operand; i++) {
        const pen_value_id other = state->operands[i].value;
        if (!pen_value_is(other)) continue;
        if (pen_value_same(other, id)) return i;
        if (operand >= inputs && pen_value_is(value->replaces) &&
            pen_value_same(other, value->replaces)) {
            return i; // an update
        }
    }
    const pen_measure_step *step = state->options.step;
    if (operand != inputs || step == NULL) return operand;
    const uint64_t in_place = step->in_place_inputs[state->id.index];
    return in_place == 0 ? operand : (uint32_t)__builtin_ctzll(in_place);
}

static bool measure_is_read_early(const measure_state *state, uint32_t operand) {
    const pen_node *node = state->node;
    if (operand >= node->input_count || operand >= 64) return false;
    return (node->op->constant_inputs >> operand & 1) != 0;
}

static void measure_describe_operand(measure_state *state, uint32_t index) {
    measure_operand *operand = &state->operands[index];
    const pen_device_kind *kind = state->device->kind;
    const uint32_t inputs = state->node->input_count;
    operand->same_as = index;
    operand->value =
        index < inputs ? state->node->inputs[index] : state->node->outputs[index - inputs];
    if (measure_is_read_early(state, index)) operand->value = PEN_VALUE_NONE;
    if (!pen_value_is(operand->value)) return;
    operand->same_as = measure_find_same(state, index);
    if (operand->same_as != index) return;
    const uint64_t bytes =
        kind->value_bytes != NULL
            ? kind->value_bytes(state->device, state->graph, operand->value)
            : pen_tensor_type_bytes(pen_value_type(state->graph, operand->value));
    operand->bytes = bytes;
    const pen_measure_step *step = state->options.step;
    if (step == NULL || bytes == 0) return;
    const uint64_t distance = step->distances[step->first_of_node[state->id.index] + index];
    operand->is_cold = pen_min_u64(distance, step->step_bytes) > state->options.cache_bytes;
}

static pen_status measure_lay_out(measure_state *state) {
    state->operand_count = state->node->input_count + state->node->output_count;
    PEN_TRY(PEN_NEW(state->arena, state->operand_count, &state->operands));
    for (uint32_t i = 0; i < state->operand_count; i++) {
        measure_describe_operand(state, i);
    }
    for (uint32_t i = 0; i < state->operand_count; i++) {
        measure_operand *operand = &state->operands[i];
        if (!pen_value_is(operand->value) || operand->same_as != i) continue;
        uint64_t *bytes = operand->is_cold ? &state->stride : &state->warm_bytes;
        operand->offset = *bytes;
        *bytes += pen_align_up(operand->bytes, 64);
    }
    // a run's copy has left the cache when its turn comes again
    state->copies = 1;
    if (state->stride == 0) return PEN_OK;
    const uint64_t wanted = 2 * state->options.cache_bytes / state->stride + 2;
    const uint64_t possible = state->options.copies_bytes_limit / state->stride;
    state->copies = (uint32_t)pen_min_u64(pen_min_u64(wanted, MEASURE_COPIES_LIMIT),
                                          possible < 1 ? 1 : possible);
    return PEN_OK;
}

static uint64_t measure_offset(const measure_state *state, uint32_t operand, uint32_t copy) {
    const measure_operand *home = &state->operands[state->operands[operand].same_as];
    if (!home->is_cold) return home->offset;
    return state->warm_bytes + copy * state->stride + home->offset;
}

static pen_status measure_bind(measure_state *state, uint32_t copy) {
    pen_device *device = state->device;
    const uint32_t inputs = state->node->input_count;
    pen_operand *operands;
    PEN_TRY(PEN_NEW(state->arena, state->operand_count, &operands));
    for (uint32_t i = 0; i < state->operand_count; i++) {
        const measure_operand *operand = &state->operands[i];
        if (!pen_value_is(operand->value)) continue;
        operands[i] = (pen_operand){state->buffer, measure_offset(state, i, copy)};
        if (operand->same_as != i || (copy > 0 && !operand->is_cold)) continue;
        PEN_TRY(measure_fill_operand(state, operand, operands[i].offset));
    }
    const pen_binding binding = {
        .inputs = operands,
        .outputs = operands + inputs,
        .workspace = {state->buffer, state->warm_bytes + state->copies * state->stride}};
    return device->kind->bind(device, state->kernel, &binding, state->arena,
                              &state->launches[copy]);
}

// ---- running

static int measure_compare(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static pen_status measure_run(measure_state *state, uint32_t copy, double *out_seconds) {
    pen_device *device = state->device;
    const pen_run_context run = {.seed = 1, .step = 1, .microbatch = 1};
    const double started = state->options.clock(state->options.clock_context);
    PEN_TRY(device->kind->enqueue(device, state->launches[copy], &run));
    PEN_TRY(device->kind->synchronize(device));
    *out_seconds = state->options.clock(state->options.clock_context) - started;
    return PEN_OK;
}

static pen_status measure_time(measure_state *state, pen_op_measurement *out) {
    const pen_measure_options *options = &state->options;
    double spent = 0, seconds;
    uint32_t runs = 0;
    PEN_TRY(measure_run(state, state->copies - 1, &seconds)); // libraries and threads start here
    if (seconds < options->time_limit) {
        PEN_TRY(measure_run(state, state->copies - 1, &seconds));
    }
    while (runs < options->run_maximum) {
        if (runs >= options->run_minimum && spent >= options->time_limit) break;
        if (runs > 0 && spent >= 10 * options->time_limit) break;
        PEN_TRY(measure_run(state, runs % state->copies, &seconds));
        state->seconds[runs++] = seconds;
        spent += seconds;
    }
    qsort(state->seconds, runs, sizeof *state->seconds, measure_compare);
    const double lower = state->seconds[(runs - 1) / 2], upper = state->seconds[runs / 2];
    *out = (pen_op_measurement){.seconds = lower + (upper - lower) / 2,
                                .workspace_bytes = state->workspace_bytes,
                                .runs = runs,
                                .copies = state->copies};
    return PEN_OK;
}

static pen_status measure_all(measure_state *state, pen_op_measurement *out) {
    pen_device *device = state->device;
    PEN_TRY(device->kind->prepare(device, state->graph, state->id, state->arena, &state->kernel));
    state->workspace_bytes = device->kind->workspace_bytes(state->kernel);
    PEN_TRY(measure_lay_out(state));
    PEN_TRY(PEN_NEW(state->arena, state->copies, &state->launches));
    PEN_TRY(PEN_NEW(state->arena, state->options.run_maximum, &state->seconds));
    const uint64_t bytes =
        state->warm_bytes + state->copies * state->stride + state->workspace_bytes;
    PEN_TRY(device->kind->buffer_create(device, bytes, &state->buffer));
    for (uint32_t i = 0; i < state->copies; i++) {
        PEN_TRY(measure_bind(state, i));
    }
    return measure_time(state, out);
}

static void measure_set_defaults(pen_measure_options *options) {
    if (options->cache_bytes == 0) options->cache_bytes = pen_measure_cache_bytes();
    if (options->copies_bytes_limit == 0) options->copies_bytes_limit = 8 * options->cache_bytes;
    if (options->run_minimum == 0) options->run_minimum = MEASURE_RUN_MINIMUM;
    if (options->run_maximum == 0) options->run_maximum = MEASURE_RUN_MAXIMUM;
    if (options->time_limit <= 0) options->time_limit = MEASURE_TIME_LIMIT;
    if (options->clock == NULL) options->clock = measure_monotonic;
}

pen_status pen_measure_op(pen_device *device, const pen_graph *graph, pen_node_id id,
                          const pen_measure_options *options, pen_op_measurement *out) {
    measure_state state = {.device = device,
                           .graph = graph,
                           .id = id,
                           .node = pen_graph_node(graph, id),
                           .options = *options};
    *out = (pen_op_measurement){0};
    if (state.node->op->is_view) return PEN_OK;
    measure_set_defaults(&state.options);
    pen_status status = pen_arena_create(&state.arena);
    if (status == PEN_OK) status = measure_all(&state, out);
    if (state.kernel != NULL) device->kind->release(device, state.kernel);
    if (state.buffer != NULL) device->kind->buffer_destroy(device, state.buffer);
    pen_arena_destroy(state.arena);
    return pen_status_add_context(status, "while measuring %s '%s'", state.node->op->name,
                                  state.node->name);
}
