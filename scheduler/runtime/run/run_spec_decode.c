#include <string.h>

#include "base/format/protobuf_reader.h"
#include "graph/graph.h"
#include "graph/wire/part_wire.h"
#include "scheduler/protocol/run_table_wire.h"
#include "scheduler/runtime/run/run_spec.h"

#define DECODE_FIELDS 9u // of any of the messages, and the unused 0

typedef struct decode_spec {
    pen_arena *arena;
    const pen_run_table *table;
    pen_run_spec *spec;
    pen_run_spec_worker *workers;
    pen_run_spec_device *devices;
    pen_run_spec_form *forms;
    uint32_t worker_count; // so far
    uint32_t device_count;
    uint32_t form_count;
    pen_run_spec_saved *saved; // [saved_limit]
    uint32_t saved_count;
    uint32_t saved_limit;
} decode_spec;

static pen_status decode_small(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                               uint32_t *out_number) {
    int64_t number;
    PEN_TRY(pen_protobuf_int(reader, field, &number));
    if (number < 0 || number > UINT32_MAX) {
        return pen_protobuf_error(reader, "field %u is %lld", field->number, (long long)number);
    }
    *out_number = (uint32_t)number;
    return PEN_OK;
}

static pen_status decode_value(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                               pen_value_id *out_value) {
    uint32_t number = 0;
    PEN_TRY(decode_small(reader, field, &number));
    out_value->index = number - 1;
    return PEN_OK;
}

// ---- workers and devices

static pen_status decode_worker(decode_spec *d, pen_protobuf_reader *reader) {
    pen_run_spec_worker *worker = &d->workers[d->worker_count++];
    *worker = (pen_run_spec_worker){"", ""};
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) PEN_TRY(pen_protobuf_name(reader, &field, d->arena, &worker->name));
        if (field.number == 2) {
            PEN_TRY(pen_protobuf_name(reader, &field, d->arena, &worker->address));
        }
    }
}

static pen_status decode_device(decode_spec *d, pen_protobuf_reader *reader) {
    pen_run_spec_device *device = &d->devices[d->device_count++];
    *device = (pen_run_spec_device){.name = "", .kind = ""};
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) PEN_TRY(pen_protobuf_name(reader, &field, d->arena, &device->name));
        if (field.number == 2) PEN_TRY(pen_protobuf_name(reader, &field, d->arena, &device->kind));
        if (field.number == 3) PEN_TRY(decode_small(reader, &field, &device->thread_count));
        if (field.number == 4) device->memory_bytes = field.integer;
    }
}

// ---- forms

static pen_status decode_channel(decode_spec *d, pen_protobuf_reader *reader,
                                 pen_run_spec_channel *channel) {
    uint32_t number = 0;
    *channel = (pen_run_spec_channel){.value = "", .from = PEN_VALUE_NONE, .to = PEN_VALUE_NONE};
    for (;;) {
        pen_protobuf_field field;
        int64_t dim;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) break;
        switch (field.number) {
        case 1:
            PEN_TRY(pen_protobuf_name(reader, &field, d->arena, &channel->value));
            break;
        case 2:
            PEN_TRY(decode_small(reader, &field, &number));
            if (number >= PEN_ELEMENT_TYPE_COUNT) {
                return pen_protobuf_error(reader, "element type %u", number);
            }
            channel->type.element = (pen_element_type)number;
            break;
        case 3:
            PEN_TRY(pen_protobuf_int(reader, &field, &dim));
            if (channel->type.shape.rank == PEN_RANK_LIMIT) {
                return pen_protobuf_error(reader, "more than %d dimensions", PEN_RANK_LIMIT);
            }
            channel->type.shape.dims[channel->type.shape.rank++] = dim;
            break;
        case 4:
            PEN_TRY(decode_small(reader, &field, &number));
            channel->layout = (pen_layout)number;
            break;
        case 5:
            PEN_TRY(decode_value(reader, &field, &channel->from));
            break;
        case 6:
            PEN_TRY(decode_value(reader, &field, &channel->to));
            break;
        default:
            break;
        }
    }
    return pen_tensor_type_check(&channel->type);
}

static pen_status decode_copies(decode_spec *d, const pen_protobuf_reader *reader,
                                const uint8_t *bytes, size_t length, uint32_t value_count,
                                pen_run_spec_part *part) {
    uint32_t *copies;
    if (length != (size_t)value_count * 4) {
        return pen_protobuf_error(reader, "places of %zu values, expected %u", length / 4,
                                  value_count);
    }
    PEN_TRY(PEN_NEW(d->arena, value_count, &copies));
    for (uint32_t v = 0; v < value_count; v++) {
        for (uint32_t b = 0; b < 4; b++) {
            copies[v] |= (uint32_t)bytes[(size_t)v * 4 + b] << 8 * b;
        }
    }
    part->copies = copies;
    return PEN_OK;
}

// A value that is written or read alone: there, and one element of a type that is expected.
static pen_status decode_check_scalar(const pen_protobuf_reader *reader,
                                      const pen_run_spec_part *part, pen_value_id value,
                                      bool is_integer) {
    if (!pen_value_is(value)) return PEN_OK;
    if (value.index >= pen_graph_value_count(part->part->graph)) {
        return pen_protobuf_error(reader, "value %u is not there", value.index);
    }
    const pen_tensor_type *type = pen_value_type(part->part->graph, value);
    const bool is_right =
        is_integer ? type->element == PEN_INT64 : pen_element_is_trained(type->element);
    if (is_right && pen_shape_element_count(&type->shape) == 1) return PEN_OK;
    return pen_protobuf_error(reader, "'%s' is not a number",
                              pen_value_name(part->part->graph, value));
}

static pen_status decode_check_part(const pen_protobuf_reader *reader,
                                    const pen_run_spec_part *part) {
    PEN_TRY(decode_check_scalar(reader, part, part->loss, false));
    PEN_TRY(decode_check_scalar(reader, part, part->accuracy, true));
    PEN_TRY(decode_check_scalar(reader, part, part->loss_weight, false));
    PEN_TRY(decode_check_scalar(reader, part, part->learning_rate, false));
    return decode_check_scalar(reader, part, part->step, false);
}

// What a message of a part says, before it is understood.
typedef struct decode_part_fields {
    uint32_t device;
    const uint8_t *bytes;
    size_t byte_count;
    const uint8_t *copies;
    size_t copies_bytes;
    pen_value_id values[DECODE_FIELDS];
} decode_part_fields;

static pen_status decode_part_message(pen_protobuf_reader *reader, decode_part_fields *fields) {
    for (uint32_t i = 0; i < DECODE_FIELDS; i++) {
        fields->values[i] = PEN_VALUE_NONE;
    }
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) PEN_TRY(decode_small(reader, &field, &fields->device));
        if (field.number == 2) {
            PEN_TRY(pen_protobuf_bytes(reader, &field, &fields->bytes, &fields->byte_count));
        }
        if (field.number == 3) {
            PEN_TRY(pen_protobuf_bytes(reader, &field, &fields->copies, &fields->copies_bytes));
        }
        if (field.number >= 4 && field.number < DECODE_FIELDS) {
            PEN_TRY(decode_value(reader, &field, &fields->values[field.number]));
        }
    }
}

static pen_status decode_part(decode_spec *d, pen_protobuf_reader *reader,
                              pen_run_spec_part *parts) {
    decode_part_fields fields = {0};
    const pen_wired_part *wired;
    PEN_TRY(decode_part_message(reader, &fields));
    if (fields.device >= d->table->device_count || parts[fields.device].part != NULL) {
        return pen_protobuf_error(reader, "a part for device %u of %u, or a second one",
                                  fields.device, d->table->device_count);
    }
    PEN_TRY(pen_part_decode(fields.bytes, fields.byte_count, d->arena, &wired));
    pen_run_spec_part *part = &parts[fields.device];
    *part = (pen_run_spec_part){.part = &wired->part,
                                .loss = fields.values[4],
                                .accuracy = fields.values[5],
                                .loss_weight = fields.values[6],
                                .learning_rate = fields.values[7],
                                .step = fields.values[8]};
    PEN_TRY(decode_copies(d, reader, fields.copies, fields.copies_bytes,
                          pen_graph_value_count(wired->part.graph), part));
    return decode_check_part(reader, part);
}

// Values at the ends of channels are those of the parts that are here.
static pen_status decode_check_end(const pen_protobuf_reader *reader,
                                   const pen_run_spec_part *parts, uint32_t device,
                                   pen_value_id value, const pen_run_spec_channel *channel) {
    if (device == PEN_CHANNEL_HOST || parts[device].part == NULL) return PEN_OK;
    const pen_graph *graph = parts[device].part->graph;
    if (value.index >= pen_graph_value_count(graph)) {
        return pen_protobuf_error(reader, "'%s' begins or ends at no value", channel->value);
    }
    const pen_value *end = pen_graph_value(graph, value);
    if (pen_tensor_type_equal(&end->type, &channel->type) && end->layout == channel->layout) {
        return PEN_OK;
    }
    return pen_protobuf_error(reader, "'%s' and '%s' are of different types", channel->value,
                              end->name);
}

static pen_status decode_check_form(const decode_spec *d, const pen_protobuf_reader *reader,
                                    uint32_t f) {
    const pen_run_form *run = &d->table->forms[f];
    const pen_run_spec_form *form = &d->forms[f];
    for (uint32_t c = 0; c < run->channel_count; c++) {
        const pen_run_spec_channel *channel = &form->channels[c];
        PEN_TRY(decode_check_end(reader, form->parts, run->channels[c].source_device, channel->from,
                                 channel));
        PEN_TRY(decode_check_end(reader, form->parts, run->channels[c].target_device, channel->to,
                                 channel));
    }
    for (uint32_t device = 0; device < d->table->device_count; device++) {
        const pen_part *part = form->parts[device].part;
        const pen_run_device *tasks = &run->devices[device];
        for (uint32_t t = tasks->task_first; part != NULL && t < tasks->task_end; t++) {
            const uint32_t list = run->tasks[t].list;
            if (list == PEN_RUN_LIST_NONE || list < part->list_count) continue;
            return pen_protobuf_error(reader, "list %u of a part that has %u", list,
                                      part->list_count);
        }
    }
    return PEN_OK;
}

static pen_status decode_form(decode_spec *d, pen_protobuf_reader *reader) {
    const uint32_t f = d->form_count++;
    const uint32_t channel_count = d->table->forms[f].channel_count;
    pen_run_spec_channel *channels;
    pen_run_spec_part *parts;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(d->arena, channel_count, &channels));
    PEN_TRY(PEN_NEW(d->arena, d->table->device_count, &parts));
    d->forms[f] = (pen_run_spec_form){channels, parts};
    for (;;) {
        pen_protobuf_field field;
        pen_protobuf_reader inner;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) break;
        if (field.number != 1 && field.number != 2) continue;
        PEN_TRY(pen_protobuf_open(reader, &field, &inner));
        if (field.number == 2) {
            PEN_TRY(decode_part(d, &inner, parts));
            continue;
        }
        if (count == channel_count) {
            return pen_protobuf_error(reader, "more than %u channels", channel_count);
        }
        PEN_TRY(decode_channel(d, &inner, &channels[count++]));
    }
    if (count != channel_count) {
        return pen_protobuf_error(reader, "%u channels, expected %u", count, channel_count);
    }
    return decode_check_form(d, reader, f);
}

// ---- what is saved

// Parameters and states of the parts of form 0, each at most once.
static pen_status decode_check_saved(const decode_spec *d, const pen_protobuf_reader *reader,
                                     const pen_run_spec_saved *saved) {
    const pen_part *part = saved->device < d->table->device_count && d->form_count > 0
                               ? d->forms[0].parts[saved->device].part
                               : NULL;
    if (part == NULL || saved->value.index >= pen_graph_value_count(part->graph)) {
        return pen_protobuf_error(reader, "'%s' is saved of device %u, value %u, which is not here",
                                  saved->name, saved->device, saved->value.index);
    }
    const pen_value_kind kind = pen_graph_value(part->graph, saved->value)->kind;
    if (kind != PEN_VALUE_PARAMETER && kind != PEN_VALUE_STATE) {
        return pen_protobuf_error(reader, "'%s' is saved, but is no parameter or state",
                                  saved->name);
    }
    if (saved->name[0] == '\0') return pen_protobuf_error(reader, "a saved tensor has no name");
    return PEN_OK;
}

// As many as there are values that can be saved.
static pen_status decode_limit_saved(decode_spec *d) {
    for (uint32_t i = 0; i < d->table->device_count && d->form_count > 0; i++) {
        const pen_part *part = d->forms[0].parts[i].part;
        for (uint32_t v = 0; part != NULL && v < pen_graph_value_count(part->graph); v++) {
            const pen_value_kind kind = pen_graph_value(part->graph, (pen_value_id){v})->kind;
            d->saved_limit += kind == PEN_VALUE_PARAMETER || kind == PEN_VALUE_STATE;
        }
    }
    return PEN_NEW(d->arena, d->saved_limit, &d->saved);
}

static pen_status decode_saved(decode_spec *d, const pen_protobuf_reader *outer,
                               const pen_protobuf_field *outer_field) {
    pen_run_spec_saved saved = {.value = PEN_VALUE_NONE, .name = ""};
    pen_protobuf_reader reader;
    if (d->table == NULL) return pen_protobuf_error(outer, "no table at the beginning");
    PEN_TRY(pen_protobuf_open(outer, outer_field, &reader));
    if (d->saved == NULL) PEN_TRY(decode_limit_saved(d));
    if (d->saved_count == d->saved_limit) return pen_protobuf_error(outer, "too many are saved");
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == 1) PEN_TRY(decode_small(&reader, &field, &saved.device));
        if (field.number == 2) PEN_TRY(decode_value(&reader, &field, &saved.value));
        if (field.number == 3) PEN_TRY(pen_protobuf_name(&reader, &field, d->arena, &saved.name));
    }
    PEN_TRY(decode_check_saved(d, &reader, &saved));
    d->saved[d->saved_count++] = saved;
    return PEN_OK;
}

// ---- all

static pen_status decode_table(decode_spec *d, const pen_protobuf_reader *reader,
                               const pen_protobuf_field *field) {
    const uint8_t *bytes;
    size_t length;
    if (d->table != NULL) return pen_protobuf_error(reader, "two tables");
    PEN_TRY(pen_protobuf_bytes(reader, field, &bytes, &length));
    PEN_TRY(pen_run_table_decode(bytes, length, d->arena, &d->table));
    PEN_TRY(PEN_NEW(d->arena, (size_t)d->table->worker_count + 1, &d->workers));
    PEN_TRY(PEN_NEW(d->arena, d->table->device_count, &d->devices));
    return PEN_NEW(d->arena, d->table->form_count, &d->forms);
}

static pen_status decode_item(decode_spec *d, const pen_protobuf_reader *reader,
                              const pen_protobuf_field *field) {
    pen_protobuf_reader inner;
    if (d->table == NULL) return pen_protobuf_error(reader, "no table at the beginning");
    PEN_TRY(pen_protobuf_open(reader, field, &inner));
    if (field->number == 4) {
        if (d->worker_count > d->table->worker_count) {
            return pen_protobuf_error(reader, "too many workers");
        }
        return decode_worker(d, &inner);
    }
    if (field->number == 5) {
        if (d->device_count == d->table->device_count) {
            return pen_protobuf_error(reader, "too many devices");
        }
        return decode_device(d, &inner);
    }
    if (d->form_count == d->table->form_count) return pen_protobuf_error(reader, "too many forms");
    return decode_form(d, &inner);
}

static pen_status decode_fields(decode_spec *d, pen_protobuf_reader *reader) {
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) PEN_TRY(decode_table(d, reader, &field));
        if (field.number == 2) d->spec->seed = field.integer;
        if (field.number == 3) PEN_TRY(decode_small(reader, &field, &d->spec->trace_limit));
        if (field.number >= 4 && field.number <= 6) PEN_TRY(decode_item(d, reader, &field));
        if (field.number == 7) PEN_TRY(decode_saved(d, reader, &field));
    }
}

pen_status pen_run_spec_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                               const pen_run_spec **out_spec) {
    decode_spec d = {.arena = arena};
    pen_protobuf_reader reader;
    pen_protobuf_init(&reader, bytes, (size_t)byte_count);
    PEN_TRY(PEN_NEW(arena, 1, &d.spec));
    PEN_TRY(pen_status_add_context(decode_fields(&d, &reader), "in the description of the run"));
    if (d.table == NULL || d.worker_count != d.table->worker_count + 1 ||
        d.device_count != d.table->device_count || d.form_count != d.table->form_count) {
        return pen_error(PEN_CORRUPT, "the description of the run is not whole");
    }
    d.spec->table = d.table;
    d.spec->workers = d.workers;
    d.spec->devices = d.devices;
    d.spec->forms = d.forms;
    d.spec->saved = d.saved;
    d.spec->saved_count = d.saved_count;
    *out_spec = d.spec;
    return PEN_OK;
}
