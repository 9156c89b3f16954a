#include "device/measure_op.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/sets/order.h"
#include "base/system/machine.h"
#include "device/measure_fill.h"
#include "graph/graph.h"
#include "graph/op.h"

#define MEASURE_CACHE_BYTES ((uint64_t)32 << 20) // where the system does not say
#define MEASURE_COPIES_LIMIT 256
#define MEASURE_RUN_MINIMUM 5
#define MEASURE_RUN_MAXIMUM 301
#define MEASURE_TIME_LIMIT 0.1
#define MEASURE_TICKS 10        // of the device's clock, that make a time
#define MEASURE_ROW_LIMIT 1024u // runs in a row
#define MEASURE_SCALAR 0.001    // learning rates and the like
#define MEASURE_SHARE 0.9       // of the cores asked for: with more, nobody holds the others back

typedef struct measure_operand {
    pen_value_id value; // PEN_VALUE_NONE: left out, or read by the kernel before
    uint32_t same_as;   // an operand whose memory it has, or itself
    uint64_t bytes;
    uint64_t offset; // of its first copy; the others follow
    uint32_t copies; // at least 1
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
    uint64_t operand_bytes; // of all copies of all
    uint32_t copies;        // most of any operand
    pen_kernel *kernel;
    uint64_t workspace_bytes;
    pen_buffer *buffer;    // all copies of operands, then workspace
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

pen_status pen_measure_cores(uint32_t threads, double *out_cores) {
    double cores;
    PEN_TRY(pen_machine_measure_cores(threads, &cores));
    *out_cores = cores < MEASURE_SHARE * threads ? cores : 0;
    return PEN_OK;
}

static double measure_monotonic(void *context) {
    (void)context;
    return pen_clock_seconds();
}

// ---- contents

// The value's contents in memory that the host sees, or through a copy.
static pen_status measure_fill_operand(measure_state *state, const measure_operand *operand,
                                       uint64_t offset) {
    pen_device *device = state->device;
    const pen_value *value = pen_graph_value(state->graph, operand->value);
    const pen_operand place = {state->buffer, offset};
    if (value->kind == PEN_VALUE_CONSTANT && value->data != NULL) {
        return device->kind->write(device, place, value->data, value->data_bytes);
    }
    void *host = pen_memory_place_address(device->kind->place(device, place));
    const bool is_mapped = host != NULL;
    if (!is_mapped) host = pen_memory_allocate(operand->bytes, 1);
    if (host == NULL) return pen_error_out_of_memory();
    const pen_measure_contents contents =
        pen_measure_contents_of(state->graph, state->id, operand->value);
    pen_measure_fill(&contents, host, operand->bytes);
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

// Without a step, an update lies on what it replaces, and equal values are one.
static uint32_t measure_find_same(const measure_state *state, uint32_t operand) {
    const pen_value_id id = state->operands[operand].value;
    const pen_value *value = pen_graph_value(state->graph, id);
    const pen_measure_step *step = state->options.step;
    if (step != NULL) return step->same_as[step->first_of_node[state->id.index] + operand];
    for (uint32_t i = 0; i < operand; i++) {
        const pen_value_id other = state->operands[i].value;
        if (!pen_value_is(other)) continue;
        if (pen_value_same(other, id)) return i;
        if (pen_value_is(value->replaces) && pen_value_same(other, value->replaces)) return i;
    }
    return operand;
}

static bool measure_is_read_early(const measure_state *state, uint32_t operand) {
    const pen_node *node = state->node;
    if (operand >= node->input_count || operand >= 64) return false;
    return (node->op->constant_inputs >> operand & 1) != 0;
}

// As many as runs move the bytes that a step moves between two uses of the operand; no more than
// empty the cache.
static uint32_t measure_count_copies(const measure_state *state, uint32_t operand) {
    const pen_measure_step *step = state->options.step;
    const uint64_t moved = pen_node_bytes(state->graph, state->id);
    if (step == NULL || moved == 0) return 1;
    const uint64_t between = step->distances[step->first_of_node[state->id.index] + operand];
    const uint64_t wanted =
        pen_min_u64(pen_min_u64(between, step->step_bytes), 2 * state->options.cache_bytes) / moved;
    return (uint32_t)pen_min_u64(wanted, MEASURE_COPIES_LIMIT - 1) + 1;
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
    operand->copies = measure_count_copies(state, index);
    if (operand->copies > state->copies) state->copies = operand->copies;
}

static pen_status measure_lay_out(measure_state *state) {
    state->operand_count = state->node->input_count + state->node->output_count;
    state->copies = 1;
    PEN_TRY(PEN_NEW(state->arena, state->operand_count, &state->operands));
    for (uint32_t i = 0; i < state->operand_count; i++) {
        measure_operand *operand = &state->operands[i];
        measure_describe_operand(state, i);
        if (!pen_value_is(operand->value) || operand->same_as != i) continue;
        operand->offset = state->operand_bytes;
        state->operand_bytes += operand->copies * pen_align_up(operand->bytes, 64);
    }
    return PEN_OK;
}

static uint64_t measure_offset(const measure_state *state, uint32_t operand, uint32_t turn) {
    const measure_operand *home = &state->operands[state->operands[operand].same_as];
    return home->offset + turn % home->copies * pen_align_up(home->bytes, 64);
}

static pen_status measure_bind(measure_state *state, uint32_t turn) {
    pen_device *device = state->device;
    const uint32_t inputs = state->node->input_count;
    pen_operand *operands;
    PEN_TRY(PEN_NEW(state->arena, state->operand_count, &operands));
    for (uint32_t i = 0; i < state->operand_count; i++) {
        const measure_operand *operand = &state->operands[i];
        if (!pen_value_is(operand->value)) continue;
        operands[i] = (pen_operand){state->buffer, measure_offset(state, i, turn)};
        if (operand->same_as != i || turn >= operand->copies) continue;
        PEN_TRY(measure_fill_operand(state, operand, operands[i].offset));
    }
    const pen_binding binding = {.inputs = operands,
                                 .outputs = operands + inputs,
                                 .workspace = {state->buffer, state->operand_bytes}};
    return device->kind->bind(device, state->kernel, &binding, state->arena,
                              &state->launches[turn]);
}

// ---- operands that follow from others

// The operand that holds `value`, or UINT32_MAX.
static uint32_t measure_find_operand(const measure_state *state, pen_value_id value) {
    for (uint32_t i = 0; i < state->operand_count; i++) {
        if (!pen_value_is(state->operands[i].value)) continue;
        if (pen_value_same(state->operands[i].value, value)) return i;
    }
    return UINT32_MAX;
}

// Whether all that `producer` reads and writes is here.
static bool measure_is_derivable(const measure_state *state, const pen_node *producer) {
    if (producer->op->is_view || producer->op->is_random || producer->accumulates) return false;
    for (uint32_t i = 0; i < producer->input_count; i++) {
        if (!pen_value_is(producer->inputs[i])) continue;
        if (i < 64 && (producer->op->constant_inputs >> i & 1) != 0) continue;
        if (measure_find_operand(state, producer->inputs[i]) == UINT32_MAX) return false;
    }
    for (uint32_t i = 0; i < producer->output_count; i++) {
        if (!pen_value_is(producer->outputs[i])) continue;
        if (measure_find_operand(state, producer->outputs[i]) == UINT32_MAX) return false;
    }
    return true;
}

// Runs a producer on the copies of every turn.
static pen_status measure_run_producer(measure_state *state, const pen_node *producer,
                                       const pen_kernel *kernel, pen_buffer *workspace) {
    pen_device *device = state->device;
    const uint32_t count = producer->input_count + producer->output_count;
    const pen_run_context run = {.seed = 1, .step = 1};
    pen_operand *operands;
    PEN_TRY(PEN_NEW(state->arena, count, &operands));
    for (uint32_t turn = 0; turn < state->copies; turn++) {
        for (uint32_t i = 0; i < count; i++) {
            const pen_value_id value = i < producer->input_count
                                           ? producer->inputs[i]
                                           : producer->outputs[i - producer->input_count];
            const uint32_t found =
                pen_value_is(value) ? measure_find_operand(state, value) : UINT32_MAX;
            if (found == UINT32_MAX) continue;
            operands[i] = (pen_operand){state->buffer, measure_offset(state, found, turn)};
        }
        const pen_binding binding = {.inputs = operands,
                                     .outputs = operands + producer->input_count,
                                     .workspace = {workspace, 0}};
        pen_launch *launch;
        PEN_TRY(device->kind->bind(device, kernel, &binding, state->arena, &launch));
        PEN_TRY(device->kind->enqueue(device, launch, &run));
    }
    return device->kind->synchronize(device);
}

static pen_status measure_derive_by(measure_state *state, pen_node_id id) {
    pen_device *device = state->device;
    pen_kernel *kernel = NULL;
    pen_buffer *workspace = NULL;
    pen_status status = device->kind->prepare(device, state->graph, id, state->arena, &kernel);
    if (status == PEN_OK) {
        status =
            device->kind->buffer_create(device, device->kind->workspace_bytes(kernel), &workspace);
    }
    if (status == PEN_OK) {
        status = measure_run_producer(state, pen_graph_node(state->graph, id), kernel, workspace);
    }
    if (workspace != NULL) device->kind->buffer_destroy(device, workspace);
    if (kernel != NULL) device->kind->release(device, kernel);
    return status;
}

static pen_status measure_derive(measure_state *state) {
    for (uint32_t i = 0; i < state->node->input_count; i++) {
        const measure_operand *operand = &state->operands[i];
        if (!pen_value_is(operand->value) || operand->same_as != i) continue;
        const pen_node_id producer = pen_graph_value(state->graph, operand->value)->producer;
        if (pen_graph_value(state->graph, operand->value)->kind != PEN_VALUE_COMPUTED) continue;
        if (!measure_is_derivable(state, pen_graph_node(state->graph, producer))) continue;
        PEN_TRY(measure_derive_by(state, producer));
    }
    return PEN_OK;
}

// ---- running

// So many runs in a row, from turn `first` of the copies on.
static pen_status measure_enqueue(const measure_state *state, uint32_t first, uint32_t count) {
    pen_device *device = state->device;
    // as if each lane had one microbatch, and all of them were there
    const pen_run_context run = {
        .seed = 1, .step = 1, .microbatch = 1, .ends_lane = true, .lane_count = UINT32_MAX};
    for (uint32_t i = 0; i < count; i++) {
        const pen_launch *launch = state->launches[(first + i) % state->copies];
        PEN_TRY(device->kind->enqueue(device, launch, &run));
    }
    return PEN_OK;
}

// By the device's clock, what it computes; the way of a command to it is not of the operator.
static pen_status measure_run_marked(const measure_state *state, uint32_t first, uint32_t count,
                                     double *out_seconds) {
    pen_device *device = state->device;
    pen_span span;
    PEN_TRY(device->kind->mark(device, 0));
    PEN_TRY(measure_enqueue(state, first, count));
    PEN_TRY(device->kind->mark(device, 1));
    PEN_TRY(device->kind->synchronize(device));
    PEN_TRY(device->kind->marked(device, 0, 1, &span));
    *out_seconds = span.seconds;
    return PEN_OK;
}

static pen_status measure_run(const measure_state *state, uint32_t first, uint32_t count,
                              double *out_seconds) {
    pen_device *device = state->device;
    if (device->kind->mark != NULL) return measure_run_marked(state, first, count, out_seconds);
    const double started = state->options.clock(state->options.clock_context);
    PEN_TRY(measure_enqueue(state, first, count));
    PEN_TRY(device->kind->synchronize(device));
    *out_seconds = state->options.clock(state->options.clock_context) - started;
    return PEN_OK;
}

// At least run_minimum times and as often as the time allows, `count` runs in a row; slow operators
// end after ten times that.
static pen_status measure_take(measure_state *state, uint32_t count, pen_op_measurement *out) {
    const pen_measure_options *options = &state->options;
    const double computed = pen_machine_processor_seconds();
    double spent = 0, seconds;
    uint32_t runs = 0;
    while (runs < options->run_maximum) {
        if (runs >= options->run_minimum && spent >= options->time_limit) break;
        if (runs > 0 && spent >= 10 * options->time_limit) break;
        PEN_TRY(measure_run(state, runs * count % state->copies, count, &seconds));
        state->seconds[runs++] = seconds / count;
        spent += seconds;
    }
    double median = pen_median(state->seconds, runs);
    if (options->cores > 0 && state->device->kind->mark == NULL) {
        const double each = (pen_machine_processor_seconds() - computed) / ((double)runs * count);
        median = fmax(median, each / options->cores);
    }
    *out = (pen_op_measurement){.seconds = median,
                                .workspace_bytes = state->workspace_bytes,
                                .runs = runs,
                                .copies = state->copies};
    return PEN_OK;
}

// Two runs do not count, since libraries and threads start in them. What is too short for the clock
// is run twice as often in a row, until it is not: a cost of 0 would be a lie.
static pen_status measure_time(measure_state *state, pen_op_measurement *out) {
    const pen_device_kind *kind = state->device->kind;
    const double enough = kind->mark == NULL ? 0 : MEASURE_TICKS * kind->mark_seconds;
    double seconds;
    PEN_ASSERT(state->copies > 0);
    PEN_TRY(measure_run(state, state->copies - 1, 1, &seconds)); // libraries and threads start here
    for (uint32_t count = 1; count <= MEASURE_ROW_LIMIT; count *= 2) {
        if (seconds < state->options.time_limit) {
            PEN_TRY(measure_run(state, state->copies - 1, count, &seconds));
        }
        if (seconds <= enough && count < MEASURE_ROW_LIMIT) continue;
        PEN_TRY(measure_take(state, count, out));
        if (out->seconds > 0) return PEN_OK;
    }
    *out = (pen_op_measurement){0};
    return pen_error(PEN_INTERNAL, "%u runs in a row took no time that the clock tells",
                     MEASURE_ROW_LIMIT);
}

static pen_status measure_all(measure_state *state, pen_op_measurement *out) {
    pen_device *device = state->device;
    PEN_TRY(device->kind->prepare(device, state->graph, state->id, state->arena, &state->kernel));
    state->workspace_bytes = device->kind->workspace_bytes(state->kernel);
    PEN_TRY(measure_lay_out(state));
    PEN_TRY(PEN_NEW(state->arena, state->copies, &state->launches));
    PEN_TRY(PEN_NEW(state->arena, state->options.run_maximum, &state->seconds));
    PEN_TRY(device->kind->buffer_create(device, state->operand_bytes + state->workspace_bytes,
                                        &state->buffer));
    for (uint32_t i = 0; i < state->copies; i++) {
        PEN_TRY(measure_bind(state, i));
    }
    PEN_TRY(measure_derive(state));
    return measure_time(state, out);
}

static void measure_set_defaults(pen_measure_options *options) {
    if (options->cache_bytes == 0) options->cache_bytes = pen_measure_cache_bytes();
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
