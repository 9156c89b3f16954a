#include "scheduler/runtime/run/run_spec_wire.h"

#include <string.h>

#include "base/libraries.h"
#include "base/limits.h"
#include "base/precision.h"
#include "graph/graph.h"
#include "graph/wire/part_wire.h"
#include "scheduler/protocol/run_table_wire.h"

// ---- as it travels

typedef struct wire_part {
    uint32_t device;
    const void *part; // its bytes
    size_t part_bytes;
    const void *copies; // 32 bits for each value
    size_t copies_bytes;
    pen_run_spec_part values; // without what is in the bytes
    size_t at;                // at which byte it began
} wire_part;

typedef struct wire_form {
    const pen_run_spec_channel *channels;
    const wire_part *parts;
    uint32_t channel_count;
    uint32_t part_count;
} wire_form;

typedef struct wire_saved {
    pen_run_spec_saved saved;
    size_t at;
} wire_saved;

typedef struct wire_spec {
    const void *table;
    size_t table_bytes;
    uint64_t seed;
    uint32_t trace_limit;
    bool shares_memory;
    uint32_t lanes;
    uint32_t microbatches;
    uint32_t survey;
    uint32_t worker_count; // with the coordinator
    uint32_t device_count;
    uint32_t form_count;
    uint32_t saved_count;
    const pen_run_spec_worker *workers;
    const pen_run_spec_device *devices;
    const wire_form *forms;
    const wire_saved *saved;
    bool has_data;
    pen_run_data data;
} wire_spec;

#define WORKER(number, member, ...)                                                                \
    PEN_RECORD_ROW(NAME, number, #member, pen_run_spec_worker, member, __VA_ARGS__)
#define DEVICE(kind, number, member, ...)                                                          \
    PEN_RECORD_ROW(kind, number, #member, pen_run_spec_device, member, __VA_ARGS__)
#define CHANNEL(kind, number, name, member, ...)                                                   \
    PEN_RECORD_ROW(kind, number, name, pen_run_spec_channel, member, __VA_ARGS__)
#define PART(kind, number, name, member, ...)                                                      \
    PEN_RECORD_ROW(kind, number, name, wire_part, member, __VA_ARGS__)
#define SAVED(kind, number, member, ...)                                                           \
    PEN_RECORD_ROW(kind, number, #member, wire_saved, saved.member, __VA_ARGS__)
#define SPEC(number, member, ...)                                                                  \
    PEN_RECORD_ROW(NUMBER, number, #member, wire_spec, member, __VA_ARGS__)
#define MESSAGES(number, type, member, count, ...)                                                 \
    PEN_RECORD_LIST_ROW(ITEMS, MESSAGE, number, #member, type, member, count, __VA_ARGS__)

static const pen_record_field worker_fields[] = {
    WORKER(1, name, "for people"),
    WORKER(2, address, "where other workers reach it"),
};
static const pen_record_field device_fields[] = {
    DEVICE(NAME, 1, name, NULL),
    DEVICE(NAME, 2, kind, "\"cpu\""),
    DEVICE(NUMBER, 3, thread_count, NULL),
    DEVICE(NUMBER, 4, memory_bytes, "that its buffers may take; 0: any"),
    DEVICE(NUMBER, 5, gpu, "of kind cuda: which of the machine"),
    DEVICE(NUMBER, 6, precision,
           "of operands of products: 1 tf32, 2 bfloat16, 3 float16; 0: float32",
           .limit = PEN_PRECISION_COUNT - 1),
    DEVICE(NUMBER, 7, libraries, "that it uses: 1 those that are found and begin; 2 all; 0: none",
           .limit = PEN_LIBRARIES_COUNT - 1),
};
static const pen_record_field channel_fields[] = {
    CHANNEL(NAME, 1, "value", value, "its name in the whole graph", .is_required = true),
    CHANNEL(NUMBER, 2, "element", type.element, "an ElementType of penstock.proto",
            .limit = PEN_ELEMENT_TYPE_COUNT - 1),
    PEN_RECORD_LIST_ROW(ARRAY, NUMBER, 3, "shape", pen_run_spec_channel, type.shape.dims,
                        type.shape.rank, "outermost first", .limit = PEN_RANK_LIMIT,
                        .item_limit = INT64_MAX),
    CHANNEL(NUMBER, 4, "layout", layout, NULL),
    CHANNEL(INDEX, 5, "from", from, "value of the source's part"),
    CHANNEL(INDEX, 6, "to", to, "value of the target's part"),
    CHANNEL(NUMBER, 7, "field", field,
            "of an example that the target's worker reads: 1 + an input, or 65536 + labels"),
};
static const pen_record_field part_fields[] = {
    PART(NUMBER, 1, "device", device, NULL),
    PEN_RECORD_BYTES_ROW(2, "part", wire_part, part, part_bytes, "a Part of part.proto",
                         .is_always = true),
    PEN_RECORD_BYTES_ROW(3, "copies", wire_part, copies, copies_bytes,
                         "places of each value: 32 bits each, little endian", .is_always = true),
    PART(INDEX, 4, "loss", values.loss, "values"),
    PART(INDEX, 5, "accuracy", values.accuracy, NULL),
    PART(INDEX, 6, "loss_weight", values.loss_weight, NULL),
    PART(INDEX, 7, "learning_rate", values.learning_rate, NULL),
    PART(INDEX, 8, "step", values.step, NULL),
    PEN_RECORD_LIST_ROW(ARRAY, INDEX, 9, "terms", wire_part, values.terms, values.term_count,
                        "what is told of losses and metrics", .limit = PEN_TERMS_LIMIT),
    PEN_RECORD_LIST_ROW(ARRAY, INDEX, 10, "seen", wire_part, values.seen, values.seen_count,
                        "that the coordinator is sent", .limit = PEN_RUN_SEEN_LIMIT),
    PART(INDEX, 11, "unscale", values.unscale, NULL),
    PART(INDEX, 12, "applied", values.applied, "by an update, below 0: nothing was"),
};
static const pen_record_field saved_fields[] = {
    SAVED(NUMBER, 1, device, NULL),
    SAVED(INDEX, 2, value, "in its part of form 0"),
    SAVED(NAME, 3, name, "in the checkpoint", .is_required = true),
};

static const pen_record worker_record = {.name = "Worker", PEN_RECORD_FIELDS(worker_fields)};
static const pen_record device_record = {.name = "Device", PEN_RECORD_FIELDS(device_fields)};
static const pen_record channel_record = {.name = "Channel", PEN_RECORD_FIELDS(channel_fields)};
static const pen_record part_record = {
    .name = "Part", PEN_RECORD_FIELDS(part_fields), .position_offset = offsetof(wire_part, at)};
static const pen_record saved_record = {.name = "Saved",
                                        .help = "A tensor of checkpoints.",
                                        PEN_RECORD_FIELDS(saved_fields),
                                        .position_offset = offsetof(wire_saved, at)};

static const pen_record_field form_fields[] = {
    MESSAGES(1, wire_form, channels, channel_count, "as the table numbers them",
             .record = &channel_record),
    MESSAGES(2, wire_form, parts, part_count, "of the receiver's devices", .record = &part_record,
             .limit = PEN_RUN_DEVICES_LIMIT),
};
static const pen_record form_record = {.name = "Form", PEN_RECORD_FIELDS(form_fields)};

static const pen_record_field spec_fields[] = {
    PEN_RECORD_BYTES_ROW(1, "table", wire_spec, table, table_bytes, "a RunTable of run_table.proto",
                         .is_always = true),
    SPEC(2, seed, NULL),
    SPEC(3, trace_limit, "events that a thread keeps"),
    MESSAGES(4, wire_spec, workers, worker_count, "the coordinator, then the workers",
             .record = &worker_record, .limit = PEN_RUN_WORKERS_LIMIT + 1),
    MESSAGES(5, wire_spec, devices, device_count, "as the table numbers them",
             .record = &device_record, .limit = PEN_RUN_DEVICES_LIMIT),
    MESSAGES(6, wire_spec, forms, form_count, "likewise", .record = &form_record,
             .limit = PEN_RUN_FORMS_LIMIT),
    MESSAGES(7, wire_spec, saved, saved_count, "of the receiver's devices",
             .record = &saved_record),
    SPEC(8, shares_memory, "frames between workers of one host go through shared memory"),
    SPEC(9, survey, "0 it trains, 1 operators are measured, 2 links",
         .limit = PEN_RUN_SURVEY_COUNT - 1),
    PEN_RECORD_ROW(MESSAGE, 10, "data", wire_spec, data, "that workers read by themselves",
                   .record = &pen_run_data_record, PEN_RECORD_PRESENT(wire_spec, has_data)),
    SPEC(11, lanes, "of a step; 0 is 1"),
    SPEC(12, microbatches, "of a full step, which form them"),
};
const pen_record pen_run_spec_record = {
    .name = "RunSpec",
    .help = "What a worker is told to run: a blob that it pulls when it is assigned. Values and\n"
            "lists are counted from 0 and travel as one more; 0, or left out, is none.",
    PEN_RECORD_FIELDS(spec_fields),
};

// ---- writing

static pen_status encode_find_ends(const pen_run_spec *spec, uint32_t form, uint32_t device,
                                   pen_arena *arena, pen_wired_part *wired) {
    const pen_run_form *run = &spec->table->forms[form];
    pen_part_end *ends;
    PEN_TRY(PEN_NEW(arena, (size_t)run->channel_count * 2, &ends));
    wired->ends = ends;
    for (uint32_t c = 0; c < run->channel_count; c++) {
        const pen_run_spec_channel *channel = &spec->forms[form].channels[c];
        if (run->channels[c].source_device == device) {
            ends[wired->end_count++] = (pen_part_end){c, channel->from, true};
        }
        if (run->channels[c].target_device == device) {
            ends[wired->end_count++] = (pen_part_end){c, channel->to, false};
        }
    }
    return PEN_OK;
}

static pen_status encode_part(const pen_run_spec *spec, uint32_t form, uint32_t device,
                              pen_arena *arena, wire_part *out_part) {
    const pen_run_spec_part *part = &spec->forms[form].parts[device];
    pen_wired_part wired = {.part = *part->part};
    uint64_t part_bytes;
    PEN_TRY(encode_find_ends(spec, form, device, arena, &wired));
    *out_part =
        (wire_part){.device = device,
                    .copies = part->copies,
                    .copies_bytes = pen_graph_value_count(part->part->graph) * sizeof *part->copies,
                    .values = *part};
    PEN_TRY(pen_part_encode(&wired, arena, &out_part->part, &part_bytes));
    out_part->part_bytes = part_bytes;
    return PEN_OK;
}

// A worker is told its own parts alone.
static pen_status encode_forms(const pen_run_spec *spec, uint32_t worker, pen_arena *arena,
                               wire_spec *wire) {
    const pen_run_table *table = spec->table;
    wire_form *forms;
    PEN_TRY(PEN_NEW(arena, table->form_count, &forms));
    for (uint32_t f = 0; f < table->form_count; f++) {
        wire_part *parts;
        PEN_TRY(PEN_NEW(arena, table->device_count, &parts));
        forms[f] = (wire_form){.channels = spec->forms[f].channels,
                               .channel_count = table->forms[f].channel_count,
                               .parts = parts};
        for (uint32_t d = 0; d < table->device_count; d++) {
            if (table->forms[f].devices[d].worker != worker) continue;
            if (spec->survey == PEN_RUN_SURVEY_LINKS) continue; // which has none
            PEN_TRY(encode_part(spec, f, d, arena, &parts[forms[f].part_count++]));
        }
    }
    wire->forms = forms;
    return PEN_OK;
}

static pen_status encode_saved(const pen_run_spec *spec, uint32_t worker, pen_arena *arena,
                               wire_spec *wire) {
    wire_saved *saved;
    PEN_TRY(PEN_NEW(arena, spec->saved_count, &saved));
    for (uint32_t i = 0; i < spec->saved_count; i++) {
        if (spec->table->forms[0].devices[spec->saved[i].device].worker != worker) continue;
        saved[wire->saved_count++].saved = spec->saved[i];
    }
    wire->saved = saved;
    return PEN_OK;
}

// What is not of the worker, or of nobody, is left out.
pen_status pen_run_spec_encode(const pen_run_spec *spec, uint32_t worker, pen_arena *arena,
                               const void **out_bytes, uint64_t *out_byte_count) {
    const pen_run_table *table = spec->table;
    uint64_t table_bytes;
    wire_spec wire = {.seed = spec->seed,
                      .trace_limit = spec->trace_limit,
                      .shares_memory = spec->shares_memory,
                      .lanes = spec->lanes.lanes,
                      .microbatches = spec->lanes.microbatches,
                      .survey = (uint32_t)spec->survey,
                      .worker_count = table->worker_count + 1,
                      .device_count = table->device_count,
                      .form_count = table->form_count,
                      .workers = spec->workers,
                      .devices = spec->devices};
    if (spec->data != NULL) {
        wire.has_data = true;
        wire.data = *spec->data;
    }
    PEN_TRY(pen_run_table_encode(table, arena, &wire.table, &table_bytes));
    wire.table_bytes = table_bytes;
    PEN_TRY(encode_forms(spec, worker, arena, &wire));
    PEN_TRY(encode_saved(spec, worker, arena, &wire));
    return pen_record_encode_new(&pen_run_spec_record, &wire, arena, out_bytes, out_byte_count);
}

// ---- reading

// An error in a part or a saved tensor, with the place of its bytes.
#define wire_error(item, format, ...)                                                              \
    pen_error(PEN_CORRUPT, "at byte %zu: " format, (item)->at, __VA_ARGS__)

// A value that is written or read alone: there, and one element of a type that is expected.
static pen_status decode_check_scalar(const wire_part *given, const pen_graph *graph,
                                      pen_value_id value, bool is_integer) {
    if (!pen_value_is(value)) return PEN_OK;
    if (value.index >= pen_graph_value_count(graph)) {
        return wire_error(given, "value %u is not there", value.index);
    }
    const pen_tensor_type *type = pen_value_type(graph, value);
    const bool is_right =
        is_integer ? type->element == PEN_INT64 : pen_element_is_trained(type->element);
    if (is_right && pen_shape_element_count(&type->shape) == 1) return PEN_OK;
    return wire_error(given, "'%s' is not a number", pen_value_name(graph, value));
}

// A value that is sent: kept, so that it can be read.
static pen_status decode_check_seen(const wire_part *given, const pen_part *part,
                                    pen_value_id value) {
    bool is_kept = !pen_value_is(value);
    for (uint32_t k = 0; k < part->kept_count && !is_kept; k++) {
        is_kept = pen_value_same(part->kept[k], value);
    }
    if (is_kept) return PEN_OK;
    return wire_error(given, "value %u is to be sent, but is not kept", value.index);
}

// A part comes once for each device, and what it says about its values must be true of its graph.
static pen_status decode_part(const wire_part *given, uint32_t device_count, pen_arena *arena,
                              pen_run_spec_part *parts) {
    const pen_wired_part *wired;
    uint32_t *copies;
    if (given->device >= device_count || parts[given->device].part != NULL) {
        return wire_error(given, "a part for device %u of %u, or a second one", given->device,
                          device_count);
    }
    PEN_TRY(pen_part_decode(given->part, given->part_bytes, arena, &wired));
    const pen_graph *graph = wired->part.graph;
    const size_t value_count = pen_graph_value_count(graph);
    if (given->copies_bytes != value_count * sizeof *copies) {
        return wire_error(given, "places of %zu values, expected %zu",
                          given->copies_bytes / sizeof *copies, value_count);
    }
    PEN_TRY(PEN_NEW(arena, value_count, &copies));
    if (value_count > 0) memcpy(copies, given->copies, given->copies_bytes);
    parts[given->device] = given->values;
    parts[given->device].part = &wired->part;
    parts[given->device].copies = copies;
    PEN_TRY(decode_check_scalar(given, graph, given->values.loss, false));
    PEN_TRY(decode_check_scalar(given, graph, given->values.accuracy, true));
    PEN_TRY(decode_check_scalar(given, graph, given->values.loss_weight, false));
    PEN_TRY(decode_check_scalar(given, graph, given->values.learning_rate, false));
    for (uint32_t i = 0; i < given->values.term_count; i++) {
        PEN_TRY(decode_check_scalar(given, graph, given->values.terms[i], false));
    }
    for (uint32_t i = 0; i < given->values.seen_count; i++) {
        PEN_TRY(decode_check_seen(given, &wired->part, given->values.seen[i]));
    }
    PEN_TRY(decode_check_scalar(given, graph, given->values.unscale, false));
    PEN_TRY(decode_check_scalar(given, graph, given->values.applied, false));
    PEN_TRY(decode_check_seen(given, &wired->part, given->values.applied));
    return decode_check_scalar(given, graph, given->values.step, false);
}

// Whether a value has what a channel carries: as it is, or, at the source, in its first rows.
static bool decode_carries(const pen_run_spec_channel *channel, const pen_value *end,
                           bool is_source) {
    pen_tensor_type type = end->type;
    const pen_shape *shape = &channel->type.shape;
    const bool has_more = is_source && end->layout == PEN_LAYOUT_PLAIN && type.shape.rank > 0 &&
                          shape->rank > 0 && type.shape.dims[0] > shape->dims[0];
    if (has_more) type.shape.dims[0] = shape->dims[0];
    return pen_tensor_type_equal(&type, &channel->type) && end->layout == channel->layout;
}

// Values at the ends of channels are those of the parts that are here.
static pen_status decode_check_end(const pen_run_spec_part *parts, uint32_t device,
                                   pen_value_id value, const pen_run_spec_channel *channel,
                                   bool is_source) {
    if (device == PEN_CHANNEL_HOST || parts[device].part == NULL) return PEN_OK;
    const pen_graph *graph = parts[device].part->graph;
    if (value.index >= pen_graph_value_count(graph)) {
        return pen_error(PEN_CORRUPT, "'%s' begins or ends at no value", channel->value);
    }
    const pen_value *end = pen_graph_value(graph, value);
    if (decode_carries(channel, end, is_source)) return PEN_OK;
    return pen_error(PEN_CORRUPT, "'%s' and '%s' are of different types", channel->value,
                     end->name);
}

static pen_status decode_check_lists(const pen_run_form *run, uint32_t device,
                                     const pen_part *part) {
    const pen_run_device *tasks = &run->devices[device];
    for (uint32_t t = tasks->task_first; part != NULL && t < tasks->task_end; t++) {
        const uint32_t list = run->tasks[t].list;
        if (list == PEN_RUN_LIST_NONE || list < part->list_count) continue;
        return pen_error(PEN_CORRUPT, "list %u of device %u's part, which has %u", list, device,
                         part->list_count);
    }
    return PEN_OK;
}

// Ends of channels are checked when all parts are there, since a channel joins two of them.
static pen_status decode_form(const wire_form *given, const pen_run_table *table,
                              const pen_run_form *run, pen_arena *arena,
                              pen_run_spec_form *out_form) {
    pen_run_spec_part *parts;
    if (given->channel_count != run->channel_count) {
        return pen_error(PEN_CORRUPT, "%u channels, expected %u", given->channel_count,
                         run->channel_count);
    }
    PEN_TRY(PEN_NEW(arena, table->device_count, &parts));
    for (uint32_t p = 0; p < given->part_count; p++) {
        PEN_TRY(decode_part(&given->parts[p], table->device_count, arena, parts));
    }
    for (uint32_t c = 0; c < run->channel_count; c++) {
        const pen_run_spec_channel *channel = &given->channels[c];
        PEN_TRY(pen_tensor_type_check(&channel->type));
        const pen_run_channel *ends = &run->channels[c];
        PEN_TRY(decode_check_end(parts, ends->source_device, channel->from, channel, true));
        PEN_TRY(decode_check_end(parts, ends->target_device, channel->to, channel, false));
    }
    for (uint32_t d = 0; d < table->device_count; d++) {
        PEN_TRY(decode_check_lists(run, d, parts[d].part));
    }
    *out_form = (pen_run_spec_form){given->channels, parts};
    return PEN_OK;
}

static bool decode_can_save(const pen_part *part, pen_value_id value) {
    const pen_value_kind kind = pen_graph_value(part->graph, value)->kind;
    return kind == PEN_VALUE_PARAMETER || kind == PEN_VALUE_STATE;
}

// Parameters and states of the parts of form 0, no more than there are.
static pen_status decode_saved(const wire_spec *given, const pen_run_spec *spec,
                               pen_run_spec_saved *saved) {
    uint64_t possible = 0;
    for (uint32_t d = 0; d < given->device_count; d++) {
        const pen_part *part = spec->forms[0].parts[d].part;
        for (uint32_t v = 0; part != NULL && v < pen_graph_value_count(part->graph); v++) {
            possible += decode_can_save(part, (pen_value_id){v});
        }
    }
    if (given->saved_count > possible) {
        return pen_error(PEN_CORRUPT, "%u tensors are saved, there are %llu", given->saved_count,
                         (unsigned long long)possible);
    }
    for (uint32_t i = 0; i < given->saved_count; i++) {
        const wire_saved *one = &given->saved[i];
        saved[i] = one->saved;
        const pen_part *part = saved[i].device < given->device_count
                                   ? spec->forms[0].parts[saved[i].device].part
                                   : NULL;
        if (part == NULL || saved[i].value.index >= pen_graph_value_count(part->graph)) {
            return wire_error(one, "'%s' is saved of device %u, value %u, which is not here",
                              saved[i].name, saved[i].device, saved[i].value.index);
        }
        if (!decode_can_save(part, saved[i].value)) {
            return wire_error(one, "'%s' is saved, but is no parameter or state", saved[i].name);
        }
    }
    return PEN_OK;
}

static const char *decode_or_none(const char *text) {
    return text[0] == '\0' ? NULL : text;
}

// Of every form, whether what a channel carries is read here goes with what it is of an example.
static pen_status decode_data(const wire_spec *given, pen_arena *arena, pen_run_spec *spec) {
    pen_run_data *data;
    pen_dataset_target *targets;
    for (uint32_t f = 0; f < spec->table->form_count; f++) {
        const pen_run_form *form = &spec->table->forms[f];
        for (uint32_t c = 0; c < form->channel_count; c++) {
            const bool is_read = pen_run_channel_is_read(&form->channels[c]);
            const bool has_field = spec->forms[f].channels[c].field != PEN_RUN_FIELD_NONE;
            if (is_read == has_field && (given->has_data || !is_read)) continue;
            return pen_error(PEN_CORRUPT, "'%s' is read by its worker from no data",
                             spec->forms[f].channels[c].value);
        }
    }
    if (!given->has_data) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &data));
    *data = given->data;
    pen_dataset_options *options = &data->options;
    PEN_TRY(PEN_NEW(arena, options->target_count, &targets));
    for (uint32_t i = 0; i < options->target_count; i++) {
        targets[i] = options->targets[i];
        targets[i].labels = decode_or_none(targets[i].labels);
    }
    options->targets = targets;
    options->delimiter = (char)data->delimiter;
    options->path = decode_or_none(options->path);
    options->labels = decode_or_none(options->labels);
    options->input_name = decode_or_none(options->input_name);
    options->label_column = decode_or_none(options->label_column);
    options->weight_column = decode_or_none(options->weight_column);
    options->words_path = decode_or_none(options->words_path);
    options->connection = decode_or_none(options->connection);
    options->query = decode_or_none(options->query);
    options->partition = decode_or_none(options->partition);
    options->cache = decode_or_none(options->cache);
    spec->data = data;
    return PEN_OK;
}

// The table is decoded first: it says how many of everything there must be.
static pen_status decode_spec(const void *bytes, uint64_t byte_count, pen_arena *arena,
                              pen_run_spec *spec) {
    wire_spec wire = {0};
    pen_run_spec_form *forms;
    pen_run_spec_saved *saved;
    PEN_TRY(pen_record_decode(&pen_run_spec_record, bytes, byte_count, arena, &wire));
    PEN_TRY(pen_run_table_decode(wire.table, wire.table_bytes, arena, &spec->table));
    const pen_run_table *table = spec->table;
    if (wire.worker_count != table->worker_count + 1 || wire.device_count != table->device_count ||
        wire.form_count != table->form_count) {
        return pen_error(PEN_CORRUPT, "it is not whole: %u workers, %u devices, %u forms",
                         wire.worker_count, wire.device_count, wire.form_count);
    }
    PEN_TRY(PEN_NEW(arena, table->form_count, &forms));
    PEN_TRY(PEN_NEW(arena, wire.saved_count, &saved));
    for (uint32_t f = 0; f < table->form_count; f++) {
        PEN_TRY(pen_status_add_context(
            decode_form(&wire.forms[f], table, &table->forms[f], arena, &forms[f]), "in form %u",
            f));
    }
    if (wire.lanes > 1 && wire.lanes > wire.microbatches) {
        return pen_error(PEN_CORRUPT, "%u lanes of %u microbatches", wire.lanes, wire.microbatches);
    }
    *spec = (pen_run_spec){.table = table,
                           .workers = wire.workers,
                           .devices = wire.devices,
                           .forms = forms,
                           .seed = wire.seed,
                           .trace_limit = wire.trace_limit,
                           .shares_memory = wire.shares_memory,
                           .lanes = {wire.lanes, wire.microbatches},
                           .survey = (pen_run_survey)wire.survey,
                           .saved = saved,
                           .saved_count = wire.saved_count};
    PEN_TRY(decode_saved(&wire, spec, saved));
    return decode_data(&wire, arena, spec);
}

pen_status pen_run_spec_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                               const pen_run_spec **out_spec) {
    pen_run_spec *spec;
    PEN_TRY(PEN_NEW(arena, 1, &spec));
    PEN_TRY(pen_status_add_context(decode_spec(bytes, byte_count, arena, spec),
                                   "in the description of the run"));
    *out_spec = spec;
    return PEN_OK;
}
