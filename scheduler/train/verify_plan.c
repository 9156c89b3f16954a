#include "scheduler/train/verify_plan.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/store/safetensors.h"
#include "scheduler/train/train.h"

typedef struct verify_state {
    const pen_job *job;
    const pen_verify_options *options;
    pen_arena *arena;
    pen_verify_step *steps; // [step_count]
    uint32_t step_count;
    pen_order_book *orders; // of lanes on the job's devices, as one device is to have them
} verify_state;

static pen_status verify_start(const verify_state *state, bool as_reference,
                               pen_trainer **out_trainer) {
    const pen_trainer_options options = {.step_limit = state->options->step_count,
                                         .no_memory_check = state->options->no_memory_check,
                                         .insecure = state->options->insecure,
                                         .orders = state->orders,
                                         .plan = as_reference ? NULL : state->options->plan,
                                         .as_reference = as_reference};
    return pen_trainer_create(state->job, &options, out_trainer);
}

static pen_status verify_run(const verify_state *state, bool as_reference, pen_trainer *trainer) {
    for (uint32_t i = 0; i < state->step_count; i++) {
        pen_step_report report;
        bool more;
        PEN_TRY(pen_trainer_step(trainer, &report, &more));
        PEN_ASSERT(more);
        if (as_reference) {
            state->steps[i].loss_reference = report.loss;
        } else {
            state->steps[i].loss = report.loss;
        }
    }
    return PEN_OK;
}

static pen_status verify_leave_tensors(const verify_state *state) {
    pen_trainer *trainer = NULL;
    pen_status status = verify_start(state, false, &trainer);
    if (status == PEN_OK) status = verify_run(state, false, trainer);
    if (status == PEN_OK) {
        const pen_tensor_store *store = pen_trainer_tensors(trainer);
        status = pen_tensor_file_save(state->options->tensors, store, store->count);
    }
    pen_trainer_destroy(trainer);
    return pen_status_add_context(status, "on the job's devices");
}

// ---- comparing

typedef struct verify_extent {
    double absolute_error;
    double largest; // of the reference
} verify_extent;

// Types without arithmetic here are equal or infinitely apart.
static void verify_add_piece(pen_element_type element, const void *found, const void *expected,
                             uint64_t bytes, verify_extent *extent) {
    if (!pen_element_is_trained(element)) {
        if (memcmp(found, expected, bytes) != 0) extent->absolute_error = INFINITY;
        return;
    }
    const size_t size = pen_element_bytes(element);
    for (uint64_t i = 0; i < bytes / size; i++) {
        const double value = pen_element_read(element, expected, (int64_t)i);
        if (isfinite(value)) extent->largest = fmax(extent->largest, fabs(value));
        if (memcmp((const char *)found + i * size, (const char *)expected + i * size, size) == 0) {
            continue;
        }
        const double error = fabs(pen_element_read(element, found, (int64_t)i) - value);
        extent->absolute_error = fmax(extent->absolute_error, isfinite(error) ? error : INFINITY);
    }
}

static double verify_relate(double error, double largest) {
    if (error == 0) return 0;
    return largest > 0 ? error / largest : INFINITY;
}

// `piece` has pen_tensor_store_piece_bytes.
static pen_status verify_compare(pen_arena *arena, const pen_tensor_store *store, uint32_t index,
                                 const pen_safetensors_entry *found, char *piece,
                                 pen_verify_tensor *tensor) {
    const pen_stored_tensor *stored = &store->tensors[index];
    verify_extent extent = {0};
    tensor->is_equal = true;
    for (uint64_t first = 0; first < stored->bytes; first += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t bytes = pen_min_u64(PEN_TENSOR_PIECE_BYTES, stored->bytes - first);
        const char *other = (const char *)found->data + first;
        PEN_TRY(store->read(store->context, index, first, piece, bytes));
        if (memcmp(other, piece, bytes) != 0) tensor->is_equal = false;
        verify_add_piece(stored->type.element, other, piece, bytes, &extent);
    }
    tensor->is_model = stored->is_model;
    tensor->element_count = (uint64_t)pen_shape_element_count(&stored->type.shape);
    tensor->absolute_error = extent.absolute_error;
    tensor->relative_error = verify_relate(extent.absolute_error, extent.largest);
    return pen_arena_copy_text(arena, stored->name, strlen(stored->name), &tensor->name);
}

// Both runs are of one job, so tensors that differ in number or shape are a mistake of ours, not a
// difference to report.
static pen_status verify_compare_all(const pen_safetensors *file, const pen_tensor_store *store,
                                     pen_arena *arena, const pen_verify_tensor **out_tensors) {
    pen_verify_tensor *tensors;
    char *piece;
    PEN_TRY(PEN_NEW(arena, store->count, &tensors));
    PEN_TRY(PEN_NEW(arena, pen_tensor_store_piece_bytes(store), &piece));
    if (pen_safetensors_count(file) != store->count) {
        return pen_error(PEN_INTERNAL, "the job's devices have %u tensors, one device has %u",
                         pen_safetensors_count(file), store->count);
    }
    for (uint32_t i = 0; i < store->count; i++) {
        const pen_safetensors_entry *found = pen_safetensors_find(file, store->tensors[i].name);
        if (found == NULL || !pen_tensor_type_equal(&found->type, &store->tensors[i].type)) {
            return pen_error(PEN_INTERNAL, "the job's devices have no '%s' as one device has it",
                             store->tensors[i].name);
        }
        PEN_TRY(verify_compare(arena, store, i, found, piece, &tensors[i]));
    }
    *out_tensors = tensors;
    return PEN_OK;
}

pen_status pen_verify_tensors(const char *path, const pen_tensor_store *store, pen_arena *arena,
                              const pen_verify_tensor **out_tensors) {
    pen_safetensors *file;
    PEN_TRY(pen_safetensors_open(path, &file));
    const pen_status status = verify_compare_all(file, store, arena, out_tensors);
    pen_safetensors_close(file);
    return status;
}

static pen_status verify_against_reference(const verify_state *state,
                                           pen_verification *verification) {
    pen_trainer *trainer = NULL;
    pen_status status = verify_start(state, true, &trainer);
    if (status == PEN_OK) status = verify_run(state, true, trainer);
    if (status == PEN_OK) {
        const pen_tensor_store *store = pen_trainer_tensors(trainer);
        verification->tensor_count = store->count;
        status = pen_verify_tensors(state->options->tensors, store, state->arena,
                                    &verification->tensors);
    }
    pen_trainer_destroy(trainer);
    return pen_status_add_context(status, "on one device, to compare with");
}

static uint64_t verify_bits(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static void verify_judge(const verify_state *state, pen_verification *verification) {
    const double tolerance = state->options->tolerance;
    verification->is_equal = true;
    verification->is_within = true;
    for (uint32_t i = 0; i < state->step_count; i++) {
        pen_verify_step *step = &state->steps[i];
        step->is_equal = verify_bits(step->loss) == verify_bits(step->loss_reference);
        const double error = fabs(step->loss - step->loss_reference);
        verification->is_equal = verification->is_equal && step->is_equal;
        verification->is_within = verification->is_within &&
                                  verify_relate(error, fabs(step->loss_reference)) <= tolerance;
    }
    for (uint32_t i = 0; i < verification->tensor_count; i++) {
        const pen_verify_tensor *tensor = &verification->tensors[i];
        verification->is_equal = verification->is_equal && tensor->is_equal;
        verification->is_within = verification->is_within && tensor->relative_error <= tolerance;
    }
    if (tolerance == 0) verification->is_within = verification->is_equal;
}

// First the job's devices, whose tensors go into a file, then one device beside that file: both at
// once would need the memory of two trainings.
pen_status pen_verify(const pen_job *job, const pen_verify_options *options, pen_arena *arena,
                      const pen_verification **out_verification) {
    PEN_ASSERT(options->step_count > 0 && options->step_count <= UINT32_MAX);
    verify_state state = {.job = job,
                          .options = options,
                          .arena = arena,
                          .step_count = (uint32_t)options->step_count};
    pen_verification *verification;
    PEN_TRY(PEN_NEW(arena, 1, &verification));
    PEN_TRY(PEN_NEW(arena, state.step_count, &state.steps));
    PEN_TRY(pen_order_book_create(NULL, "", &state.orders));
    pen_status status = verify_leave_tensors(&state);
    if (status == PEN_OK) status = verify_against_reference(&state, verification);
    pen_order_book_destroy(state.orders);
    unlink(options->tensors);
    if (status != PEN_OK) return status;
    verification->steps = state.steps;
    verification->step_count = state.step_count;
    verify_judge(&state, verification);
    *out_verification = verification;
    return PEN_OK;
}
