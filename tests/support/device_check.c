#include "tests/support/device_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/integer.h"
#include "base/memory.h"

#define DEVICE_TEAM_MOST 16 // threads; more than cores are no mistake
// Runs of a device that differ by more than threads: plain, accumulating, in place of each input.
#define DEVICE_MODES (2 + OP_CASE_INPUTS)

// One run of a case on a device.
typedef struct device_trial {
    const op_case *c;
    const op_built *built;
    const run_graph *inputs;   // contents of the inputs
    const run_graph *expected; // contents of the outputs
    const pen_device_kind *kind;
    pen_device *device;
    uint64_t seed;
    double tolerance;
    bool in_place; // output 0 takes the storage of input in_place_input
    uint32_t in_place_input;
    bool accumulate;
    uint32_t thread_count;
    uint64_t bits[DEVICE_MODES][OP_CASE_OUTPUTS]; // of one thread, by device_mode
} device_trial;

// Where the operands lie in one buffer.
typedef struct device_places {
    pen_operand inputs[OP_CASE_INPUTS];
    pen_operand outputs[OP_CASE_OUTPUTS];
    pen_operand workspace;
    pen_buffer *buffer;
} device_places;

static const double device_old_contents = 0.75; // of outputs that are added to

static uint64_t device_bytes(const device_trial *trial, pen_value_id value) {
    if (!pen_value_is(value)) return 0;
    return pen_tensor_type_bytes(pen_value_type(trial->built->graph, value));
}

static const pen_node *device_node(const device_trial *trial) {
    return pen_graph_node(trial->built->graph, trial->built->node);
}

// Lays everything out behind each other, a guard gap between.
static void device_lay_out(const device_trial *trial, uint64_t workspace_bytes,
                           device_places *places) {
    const pen_node *node = device_node(trial);
    uint64_t end = 0;
    *places = (device_places){0};
    for (uint32_t i = 0; i < node->input_count; i++) {
        places->inputs[i].offset = end;
        end = pen_align_up(end + device_bytes(trial, node->inputs[i]), 64) + 64;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        places->outputs[i].offset = end;
        end = pen_align_up(end + device_bytes(trial, node->outputs[i]), 64) + 64;
    }
    places->workspace.offset = end;
    end += pen_align_up(workspace_bytes, 64);
    CHECK_OK(trial->kind->buffer_create(trial->device, end, &places->buffer));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (pen_value_is(node->inputs[i])) places->inputs[i].buffer = places->buffer;
        const bool is_constant = i < 64 && (node->op->constant_inputs >> i & 1) != 0;
        if (is_constant) places->inputs[i].buffer = NULL; // read when prepared
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) places->outputs[i].buffer = places->buffer;
    }
    places->workspace.buffer = workspace_bytes > 0 ? places->buffer : NULL;
    if (trial->in_place) places->outputs[0] = places->inputs[trial->in_place_input];
}

static void device_write_outputs(const device_trial *trial, const device_places *places) {
    const pen_node *node = device_node(trial);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (places->outputs[i].buffer == NULL || (i == 0 && trial->in_place)) continue;
        const uint64_t bytes = device_bytes(trial, node->outputs[i]);
        pen_tensor old = {*pen_value_type(trial->built->graph, node->outputs[i]),
                          pen_memory_allocate(bytes + 1, 1)};
        memset(old.data, 0x5a, bytes); // kernels set every byte
        for (int64_t k = 0; trial->accumulate && k < pen_tensor_count(&old); k++) {
            pen_tensor_set(&old, k, device_old_contents);
        }
        CHECK_OK(trial->kind->write(trial->device, places->outputs[i], old.data, bytes));
        CHECK_OK(trial->kind->synchronize(trial->device));
        pen_memory_free(old.data);
    }
}

static void device_compare(const device_trial *trial, uint32_t output, const pen_tensor *found) {
    const pen_node *node = device_node(trial);
    const pen_tensor *expected = &trial->expected->tensors[node->outputs[output].index];
    const bool is_float = pen_element_is_float(found->type.element);
    for (int64_t k = 0; k < pen_tensor_count(found); k++) {
        const double a = pen_tensor_get(found, k);
        double b = pen_tensor_get(expected, k);
        if (trial->accumulate) b += device_old_contents;
        const double bound = is_float ? trial->tolerance * (1 + fabs(b)) : 0;
        const bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= bound;
        CHECK(same, "%s on %s%s%s, seed %llu: output %u, element %lld is %.9g, expected %.9g",
              trial->c->op, trial->kind->name, trial->in_place ? ", in place" : "",
              trial->accumulate ? ", accumulating" : "", (unsigned long long)trial->seed, output,
              (long long)k, a, b);
    }
}

static uint32_t device_mode(const device_trial *trial) {
    return trial->in_place ? 2 + trial->in_place_input : trial->accumulate ? 1 : 0;
}

void op_check_record(const char *op, uint64_t seed, uint32_t mode, uint32_t output, uint64_t bits) {
    const char *path = getenv("PEN_TEST_RECORD");
    if (path == NULL) return;
    FILE *file = fopen(path, "a");
    CHECK(file != NULL, "cannot write '%s'", path);
    (void)fprintf(file, "%s seed %llu mode %u output %u: %016llx\n", op, (unsigned long long)seed,
                  mode, output, (unsigned long long)bits);
    CHECK(fclose(file) == 0, "cannot write '%s'", path);
}

// The bits of one thread, which runs first, are kept; those of larger teams must be the same.
static void device_compare_bits(device_trial *trial, uint32_t output, const pen_tensor *found) {
    uint64_t *const kept = &trial->bits[device_mode(trial)][output];
    const uint64_t bits = pen_checksum_whole(found->data, pen_tensor_type_bytes(&found->type));
    if (trial->thread_count == 1) *kept = bits;
    if (trial->thread_count == 1 && trial->kind->has_own_memory) {
        op_check_record(trial->c->op, trial->seed, device_mode(trial), output, bits);
    }
    CHECK(bits == *kept, "%s on %s%s%s, seed %llu: output %u has other bits on %u threads",
          trial->c->op, trial->kind->name, trial->in_place ? ", in place" : "",
          trial->accumulate ? ", accumulating" : "", (unsigned long long)trial->seed, output,
          trial->thread_count);
}

static void device_run(device_trial *trial) {
    const pen_device_kind *kind = trial->kind;
    const pen_node *node = device_node(trial);
    pen_arena *arena = check_arena();
    pen_kernel *kernel;
    pen_launch *launch;
    device_places places;
    pen_graph_set_accumulates(trial->built->graph, trial->built->node, trial->accumulate);
    CHECK(kind->supports(trial->device, trial->built->graph, trial->built->node),
          "%s does not support %s", kind->name, trial->c->op);
    CHECK_OK(kind->prepare(trial->device, trial->built->graph, trial->built->node, arena, &kernel));
    device_lay_out(trial, kind->workspace_bytes(kernel), &places);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (places.inputs[i].buffer == NULL) continue;
        CHECK_OK(kind->write(trial->device, places.inputs[i],
                             trial->inputs->tensors[node->inputs[i].index].data,
                             device_bytes(trial, node->inputs[i])));
    }
    device_write_outputs(trial, &places);
    const pen_binding binding = {places.inputs, places.outputs, places.workspace};
    CHECK_OK(kind->bind(trial->device, kernel, &binding, arena, &launch));
    const pen_run_context run = {.seed = trial->inputs->seed,
                                 .step = trial->inputs->step,
                                 .microbatch = trial->inputs->microbatch,
                                 .first_microbatch = false};
    CHECK_OK(kind->enqueue(trial->device, launch, &run));
    CHECK_OK(kind->synchronize(trial->device));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (places.outputs[i].buffer == NULL) continue;
        const uint64_t bytes = device_bytes(trial, node->outputs[i]);
        pen_tensor found = {*pen_value_type(trial->built->graph, node->outputs[i]),
                            pen_memory_allocate(bytes + 1, 1)};
        CHECK_OK(kind->read(trial->device, places.outputs[i], found.data, bytes));
        device_compare(trial, i, &found);
        device_compare_bits(trial, i, &found);
        pen_memory_free(found.data);
    }
    kind->release(trial->device, kernel);
    kind->buffer_destroy(trial->device, places.buffer);
    pen_graph_set_accumulates(trial->built->graph, trial->built->node, false);
    pen_arena_destroy(arena);
}

static bool device_can_be_in_place(const device_trial *trial, uint32_t input) {
    const pen_node *node = device_node(trial);
    if (input >= 64 || (node->op->in_place_inputs >> input & 1) == 0) return false;
    if (trial->c->inputs[input].is_constant || !pen_value_is(node->inputs[input])) return false;
    return pen_value_is(node->outputs[0]) &&
           device_bytes(trial, node->inputs[input]) == device_bytes(trial, node->outputs[0]);
}

static bool device_can_accumulate(const device_trial *trial) {
    const pen_node *node = device_node(trial);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_element_type element =
            pen_value_type(trial->built->graph, node->outputs[i])->element;
        if (element != PEN_FLOAT32 && element != PEN_FLOAT64) return false;
    }
    return true;
}

pen_kernel_level op_check_level(void) {
    const char *name = getenv("PEN_TEST_LEVEL");
    for (int level = 0; name != NULL && level < PEN_KERNEL_LEVEL_COUNT; level++) {
        if (strcmp(pen_kernel_level_names[level], name) == 0) return (pen_kernel_level)level;
    }
    return PEN_KERNEL_LEVEL_AUTO;
}

pen_libraries op_check_libraries(void) {
    const char *name = getenv("PEN_TEST_LIBRARIES");
    const bool is_auto = name != NULL && strcmp(pen_libraries_names[PEN_LIBRARIES_AUTO], name) == 0;
    return is_auto ? PEN_LIBRARIES_AUTO : PEN_LIBRARIES_NONE;
}

static void device_run_all(device_trial *trial) {
    const uint32_t teams[] = {1, 2, 3 + (uint32_t)(trial->seed % (DEVICE_TEAM_MOST - 2))};
    for (uint32_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        const pen_device_options options = {.name = "tested",
                                            .thread_count = teams[i],
                                            .level = op_check_level(),
                                            .libraries = op_check_libraries()};
        trial->thread_count = teams[i];
        CHECK_OK(trial->kind->open(&options, &trial->device));
        trial->in_place = trial->accumulate = false;
        device_run(trial);
        for (uint32_t k = 0; k < trial->c->input_count; k++) {
            if (!device_can_be_in_place(trial, k)) continue;
            trial->in_place = true;
            trial->in_place_input = k;
            device_run(trial);
            trial->in_place = false;
        }
        if (device_can_accumulate(trial)) {
            trial->accumulate = true;
            device_run(trial);
        }
        trial->kind->close(trial->device);
    }
}

static void device_check_kind(const op_case *c, uint64_t seed, double tolerance,
                              const pen_device_kind *kind) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    run.seed = seed;
    run.step = 3;
    run.microbatch = 1;
    op_fill(c, &built, seed, &run);
    CHECK_OK(run_graph_all(&run));
    device_trial trial = {
        .c = c,
        .built = &built,
        .inputs = &run,
        .expected = &run,
        .kind = kind,
        .seed = seed,
        .tolerance = tolerance,
    };
    device_run_all(&trial);
    op_built_free(&built);
}

bool op_check_is_here(const pen_device_kind *kind) {
    const pen_device_options options = {.name = "tested", .level = op_check_level()};
    pen_device *device = NULL;
    const pen_status status = kind->open(&options, &device);
    kind->close(device);
    if (status == PEN_OK) return true;
    CHECK(pen_status_get_code(status) == PEN_UNSUPPORTED && strcmp(kind->name, "cpu") != 0, "%s",
          pen_status_message(status));
    pen_status_ignore(status, "this machine has none");
    return false;
}

void op_check_device(const op_case *c, uint64_t seed, double tolerance) {
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        const pen_device_kind *kind = pen_device_kind_at(i);
        if (strcmp(kind->name, "reference") == 0 || !op_check_is_here(kind)) continue;
        device_check_kind(c, seed, tolerance, kind);
    }
}
