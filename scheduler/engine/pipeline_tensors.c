// Parameters, running statistics and optimizer states of a pipeline: from and to the devices that
// hold them, piece by piece.

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "graph/wire/part_wire.h"
#include "scheduler/engine/pipeline_audit.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/store/joined_store.h"

#define TENSORS_FORGET_BYTES ((uint64_t)16 << 20) // sent between two times the model is forgotten

static pen_tensor_piece tensors_piece(const pipeline_home *home, uint64_t first, uint64_t bytes) {
    return (pen_tensor_piece){
        .device = home->device, .value = home->value.index, .offset = first, .bytes = bytes};
}

static pen_status tensors_check_idle(const pipeline_engine *p) {
    if (p->begun_count == 0) return PEN_OK;
    return pen_error(PEN_INTERNAL, "a tensor is asked for within a step");
}

// From the first worker that holds the tensor; tensors that no part reads stay on this side.
static pen_status tensors_read(void *context, uint32_t index, uint64_t first, void *host,
                               uint64_t bytes) {
    pipeline_engine *p = context;
    const pipeline_tensor *tensor = &p->tensor_places[index];
    PEN_TRY(tensors_check_idle(p));
    PEN_TRY(pen_pipeline_await_quiet(p));
    PEN_TRY(pen_pipeline_advance_audit(p, PEN_PIPELINE_AUDIT_WHOLE));
    if (tensor->home_count > 0) {
        const pen_tensor_piece piece = tensors_piece(&p->homes[tensor->first_home], first, bytes);
        return pen_coordinator_read(p->coordinator, &piece, host);
    }
    const pen_program *program = p->forms.forms[0].program;
    const pen_value *value = pen_graph_value(program->graph, tensor->value);
    if (tensor->copy != NULL) {
        memcpy(host, tensor->copy + first, bytes);
    } else if (value->data != NULL) {
        pen_value_copy_contents(value, first, host, bytes);
    } else {
        memset(host, 0, bytes);
    }
    return PEN_OK;
}

// To every worker that holds the tensor, for parameters that several read have copies.
static pen_status tensors_write(void *context, uint32_t index, uint64_t first, const void *host,
                                uint64_t bytes) {
    pipeline_engine *p = context;
    pipeline_tensor *tensor = &p->tensor_places[index];
    PEN_TRY(tensors_check_idle(p));
    PEN_TRY(pen_pipeline_await_quiet(p));
    for (uint32_t h = 0; h < tensor->home_count; h++) {
        const pen_tensor_piece piece =
            tensors_piece(&p->homes[tensor->first_home + h], first, bytes);
        PEN_TRY(pen_coordinator_write(p->coordinator, &piece, host));
    }
    if (tensor->home_count > 0) return pen_coordinator_flush(p->coordinator);
    if (tensor->copy == NULL) {
        tensor->copy = pen_memory_allocate(p->tensors.tensors[index].bytes, 1);
        if (tensor->copy == NULL) return pen_error_out_of_memory();
        const pen_program *program = p->forms.forms[0].program;
        const pen_value *value = pen_graph_value(program->graph, tensor->value);
        if (value->data != NULL) {
            pen_value_copy_contents(value, 0, tensor->copy, p->tensors.tensors[index].bytes);
        }
    }
    memcpy(tensor->copy + first, host, bytes);
    return PEN_OK;
}

// The devices that hold a tensor: those whose part has it by name.
static pen_status tensors_find_homes(pipeline_engine *p, const char *name, uint32_t *home_count) {
    const pen_run_spec *spec = p->forms.spec;
    for (uint32_t d = 0; d < spec->table->device_count; d++) {
        const pen_graph *graph = spec->forms[0].parts[d].part->graph;
        pen_value_id value;
        const pen_status status = pen_graph_find_value(graph, name, &value);
        if (pen_status_get_code(status) == PEN_NOT_FOUND) {
            pen_status_ignore(status, "this device does not hold it");
            continue;
        }
        PEN_TRY(status);
        const pen_value_kind kind = pen_graph_value(graph, value)->kind;
        if (kind != PEN_VALUE_PARAMETER && kind != PEN_VALUE_STATE) continue;
        p->homes[(*home_count)++] = (pipeline_home){d, value};
    }
    return PEN_OK;
}

// Those whose contents the model has, or those it has not: in the order of one device's program.
static pen_status tensors_add(pipeline_engine *p, bool is_model, pen_stored_tensor *tensors,
                              uint32_t *home_count) {
    const pen_graph *graph = p->forms.forms[0].program->graph;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        if ((value->data != NULL) != is_model) continue;
        const uint32_t index = p->tensors.count++;
        tensors[index] = (pen_stored_tensor){.name = value->name,
                                             .type = value->type,
                                             .bytes = pen_tensor_type_bytes(&value->type),
                                             .is_model = is_model,
                                             .slice = value->slice};
        pipeline_tensor *place = &p->tensor_places[index];
        *place = (pipeline_tensor){.value = {v}, .first_home = *home_count};
        PEN_TRY(tensors_find_homes(p, value->name, home_count));
        place->home_count = *home_count - place->first_home;
    }
    return PEN_OK;
}

// What goes into checkpoints: of a tensor that several devices have, the first one's.
static pen_status tensors_list_saved(pipeline_engine *p) {
    pen_run_spec *spec;
    pen_run_spec_saved *saved;
    PEN_TRY(PEN_NEW(p->placed, 1, &spec));
    PEN_TRY(PEN_NEW(p->placed, p->tensors.count, &saved));
    *spec = *p->forms.spec;
    spec->saved = saved;
    for (uint32_t t = 0; t < p->tensors.count; t++) {
        const pipeline_tensor *tensor = &p->tensor_places[t];
        if (tensor->home_count == 0) continue; // as the model has it
        const pipeline_home *home = &p->homes[tensor->first_home];
        pen_run_spec_saved *entry = &saved[spec->saved_count++];
        *entry = (pen_run_spec_saved){.device = home->device, .value = home->value};
        PEN_TRY(pen_shard_tensor_name(&p->tensors.tensors[t], p->placed, &entry->name));
    }
    p->forms.spec = spec;
    return PEN_OK;
}

// The model's own come first, so that the rest of the list is what checkpoints may have.
pen_status pen_pipeline_list_tensors(pipeline_engine *p) {
    const pen_graph *graph = p->forms.forms[0].program->graph;
    const uint32_t value_count = pen_graph_value_count(graph);
    uint32_t persistent_count = 0, home_count = 0;
    pen_stored_tensor *tensors;
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value_kind kind = pen_graph_value(graph, (pen_value_id){v})->kind;
        persistent_count += kind == PEN_VALUE_PARAMETER || kind == PEN_VALUE_STATE;
    }
    PEN_TRY(PEN_NEW(p->placed, persistent_count, &tensors));
    PEN_TRY(PEN_NEW(p->placed, persistent_count, &p->tensor_places));
    PEN_TRY(PEN_NEW(p->placed, (size_t)persistent_count * p->forms.spec->table->device_count,
                    &p->homes));
    p->tensors = (pen_tensor_store){
        .tensors = tensors, .context = p, .read = tensors_read, .write = tensors_write};
    PEN_TRY(tensors_add(p, true, tensors, &home_count));
    PEN_TRY(tensors_add(p, false, tensors, &home_count));
    PEN_TRY(pen_joined_store_create(&p->tensors, p->placed, &p->joined));
    return p->options.log == NULL ? PEN_OK : tensors_list_saved(p);
}

// ---- the model's own contents

static pen_status tensors_send(pipeline_engine *p, uint32_t form, const pipeline_home *home,
                               const char *data, uint64_t bytes) {
    for (uint64_t first = 0; first < bytes; first += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t count = pen_min_u64(bytes - first, PEN_TENSOR_PIECE_BYTES);
        pen_tensor_piece piece = tensors_piece(home, first, count);
        piece.form = form;
        PEN_TRY(pen_coordinator_write(p->coordinator, &piece, data + first));
    }
    return PEN_OK;
}

// The same of contents that do not lie in the model as they are sent: they go through a piece of
// memory.
static pen_status tensors_send_converted(pipeline_engine *p, const pipeline_home *home,
                                         const pen_value *value) {
    char *copy = pen_memory_allocate(pen_min_u64(value->data_bytes, PEN_TENSOR_PIECE_BYTES), 1);
    pen_status status = copy == NULL ? pen_error_out_of_memory() : PEN_OK;
    for (uint64_t first = 0; first < value->data_bytes && status == PEN_OK;
         first += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t bytes = pen_min_u64(value->data_bytes - first, PEN_TENSOR_PIECE_BYTES);
        const pen_tensor_piece piece = tensors_piece(home, first, bytes);
        pen_value_copy_contents(value, first, copy, bytes);
        status = pen_coordinator_write(p->coordinator, &piece, copy);
        if (status == PEN_OK) status = pen_coordinator_flush(p->coordinator);
    }
    pen_memory_free(copy);
    return status;
}

// Pages of the model that were sent are given back: it is never in memory whole.
static pen_status tensors_forget(pipeline_engine *p, uint64_t *sent_bytes) {
    if (*sent_bytes < TENSORS_FORGET_BYTES) return PEN_OK;
    PEN_TRY(pen_coordinator_flush(p->coordinator));
    pen_program_forget(p->forms.forms[0].program);
    *sent_bytes = 0;
    return PEN_OK;
}

// Constants that are too large for the description of a part.
static pen_status tensors_send_apart(pipeline_engine *p, uint32_t form, uint32_t device,
                                     pen_arena *scratch) {
    const pen_graph *graph = p->forms.spec->forms[form].parts[device].part->graph;
    const bool *is_apart;
    PEN_TRY(pen_part_find_apart(graph, scratch, &is_apart));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        if (!is_apart[v]) continue;
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        const pipeline_home home = {device, {v}};
        PEN_TRY(tensors_send(p, form, &home, value->data, value->data_bytes));
    }
    return PEN_OK;
}

static pen_status tensors_send_constants(pipeline_engine *p) {
    const pen_run_table *table = p->forms.spec->table;
    pen_arena *scratch;
    pen_status status = PEN_OK;
    PEN_TRY(pen_arena_create(&scratch));
    for (uint32_t f = 0; f < table->form_count && status == PEN_OK; f++) {
        for (uint32_t d = 0; d < table->device_count && status == PEN_OK; d++) {
            if (p->workers.worker_of_device[d] == p->workers.local) continue;
            status = tensors_send_apart(p, f, d, scratch);
        }
    }
    pen_arena_destroy(scratch);
    return status == PEN_OK ? pen_coordinator_flush(p->coordinator) : status;
}

// First contents of parameters and states, to each device that holds them and is not of this
// process.
static pen_status tensors_send_parameters(pipeline_engine *p) {
    const pen_graph *graph = p->forms.forms[0].program->graph;
    uint64_t sent_bytes = 0;
    for (uint32_t t = 0; t < p->tensors.count; t++) {
        const pipeline_tensor *tensor = &p->tensor_places[t];
        const pen_value *value = pen_graph_value(graph, tensor->value);
        if (value->data == NULL) continue; // zeros, as memory is at first
        for (uint32_t h = 0; h < tensor->home_count; h++) {
            const pipeline_home *home = &p->homes[tensor->first_home + h];
            if (p->workers.worker_of_device[home->device] == p->workers.local)
                continue; // was loaded
            PEN_TRY(pen_value_lies_plain(value)
                        ? tensors_send(p, 0, home, value->data, value->data_bytes)
                        : tensors_send_converted(p, home, value));
            sent_bytes += p->tensors.tensors[t].bytes;
            PEN_TRY(tensors_forget(p, &sent_bytes));
        }
    }
    return PEN_OK;
}

pen_status pen_pipeline_send_model(pipeline_engine *p) {
    const pen_engine_log *log = p->options.log;
    uint64_t sent_bytes = TENSORS_FORGET_BYTES;
    if (log == NULL || !log->has_checkpoint(log->context)) PEN_TRY(tensors_send_parameters(p));
    PEN_TRY(tensors_send_constants(p));
    return tensors_forget(p, &sent_bytes);
}
