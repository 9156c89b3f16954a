#include <stdio.h>
#include <stdlib.h>

#include "base/format/protobuf_writer.h"
#include "graph/graph.h"
#include "graph/wire/part_wire.h"
#include "scheduler/protocol/run_table_wire.h"
#include "scheduler/runtime/run/run_spec.h"

// Field numbers are those of RunSpec in run_spec.proto.

// A part with its bytes, made before the message is written.
typedef struct encode_part {
    const pen_run_spec_part *spec;
    uint32_t device;
    const void *bytes;
    uint64_t byte_count;
    const uint8_t *copies; // [value_count] little endian
    uint64_t copies_bytes;
} encode_part;

typedef struct encode_form {
    const pen_run_spec_form *spec;
    uint32_t channel_count;
    encode_part *parts; // [part_count]
    uint32_t part_count;
} encode_form;

typedef struct encode_spec {
    const pen_run_spec *spec;
    const void *table;
    uint64_t table_bytes;
    encode_form *forms;
    uint32_t worker; // who is told
} encode_spec;

static void encode_number(pen_protobuf_writer *writer, uint32_t field, uint64_t number) {
    if (number != 0) pen_protobuf_write_int(writer, field, (int64_t)number);
}

// Travels as one more than it is; left out: none.
static void encode_value(pen_protobuf_writer *writer, uint32_t field, pen_value_id value) {
    encode_number(writer, field, (uint32_t)(value.index + 1));
}

static void encode_worker(pen_protobuf_writer *writer, const void *context) {
    const pen_run_spec_worker *worker = context;
    pen_protobuf_write_text(writer, 1, worker->name);
    pen_protobuf_write_text(writer, 2, worker->address);
}

static void encode_device(pen_protobuf_writer *writer, const void *context) {
    const pen_run_spec_device *device = context;
    pen_protobuf_write_text(writer, 1, device->name);
    pen_protobuf_write_text(writer, 2, device->kind);
    encode_number(writer, 3, device->thread_count);
    encode_number(writer, 4, device->memory_bytes);
}

static void encode_channel(pen_protobuf_writer *writer, const void *context) {
    const pen_run_spec_channel *channel = context;
    pen_protobuf_write_text(writer, 1, channel->value);
    encode_number(writer, 2, (uint64_t)channel->type.element);
    for (uint32_t d = 0; d < channel->type.shape.rank; d++) {
        pen_protobuf_write_int(writer, 3, channel->type.shape.dims[d]);
    }
    encode_number(writer, 4, channel->layout);
    encode_value(writer, 5, channel->from);
    encode_value(writer, 6, channel->to);
}

static void encode_one_part(pen_protobuf_writer *writer, const void *context) {
    const encode_part *part = context;
    encode_number(writer, 1, part->device);
    pen_protobuf_write_bytes(writer, 2, part->bytes, part->byte_count);
    pen_protobuf_write_bytes(writer, 3, part->copies, part->copies_bytes);
    encode_value(writer, 4, part->spec->loss);
    encode_value(writer, 5, part->spec->accuracy);
    encode_value(writer, 6, part->spec->loss_weight);
    encode_value(writer, 7, part->spec->learning_rate);
    encode_value(writer, 8, part->spec->step);
}

static void encode_one_form(pen_protobuf_writer *writer, const void *context) {
    const encode_form *form = context;
    for (uint32_t c = 0; c < form->channel_count; c++) {
        pen_protobuf_write_message(writer, 1, encode_channel, &form->spec->channels[c]);
    }
    for (uint32_t p = 0; p < form->part_count; p++) {
        pen_protobuf_write_message(writer, 2, encode_one_part, &form->parts[p]);
    }
}

static void encode_saved(pen_protobuf_writer *writer, const void *context) {
    const pen_run_spec_saved *saved = context;
    encode_number(writer, 1, saved->device);
    encode_value(writer, 2, saved->value);
    pen_protobuf_write_text(writer, 3, saved->name);
}

static void encode_all(pen_protobuf_writer *writer, const encode_spec *encode) {
    const pen_run_spec *spec = encode->spec;
    const pen_run_table *table = spec->table;
    pen_protobuf_write_bytes(writer, 1, encode->table, encode->table_bytes);
    encode_number(writer, 2, spec->seed);
    encode_number(writer, 3, spec->trace_limit);
    for (uint32_t w = 0; w <= table->worker_count; w++) {
        pen_protobuf_write_message(writer, 4, encode_worker, &spec->workers[w]);
    }
    for (uint32_t d = 0; d < table->device_count; d++) {
        pen_protobuf_write_message(writer, 5, encode_device, &spec->devices[d]);
    }
    for (uint32_t f = 0; f < table->form_count; f++) {
        pen_protobuf_write_message(writer, 6, encode_one_form, &encode->forms[f]);
    }
    for (uint32_t i = 0; i < spec->saved_count; i++) {
        if (table->forms[0].devices[spec->saved[i].device].worker != encode->worker) continue;
        pen_protobuf_write_message(writer, 7, encode_saved, &spec->saved[i]);
    }
}

// ---- parts as bytes

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

static pen_status encode_make_part(const pen_run_spec *spec, uint32_t form, uint32_t device,
                                   pen_arena *arena, encode_part *out_part) {
    const pen_run_spec_part *part = &spec->forms[form].parts[device];
    const uint32_t value_count = pen_graph_value_count(part->part->graph);
    pen_wired_part wired = {.part = *part->part};
    uint8_t *copies;
    PEN_TRY(encode_find_ends(spec, form, device, arena, &wired));
    *out_part =
        (encode_part){.spec = part, .device = device, .copies_bytes = (uint64_t)value_count * 4};
    PEN_TRY(pen_part_encode(&wired, arena, &out_part->bytes, &out_part->byte_count));
    PEN_TRY(PEN_NEW(arena, (size_t)value_count * 4, &copies));
    for (uint32_t v = 0; v < value_count; v++) {
        for (uint32_t b = 0; b < 4; b++) {
            copies[(size_t)v * 4 + b] = (uint8_t)(part->copies[v] >> 8 * b);
        }
    }
    out_part->copies = copies;
    return PEN_OK;
}

static pen_status encode_make_forms(const pen_run_spec *spec, uint32_t worker, pen_arena *arena,
                                    encode_spec *encode) {
    const pen_run_table *table = spec->table;
    PEN_TRY(PEN_NEW(arena, table->form_count, &encode->forms));
    for (uint32_t f = 0; f < table->form_count; f++) {
        encode_form *form = &encode->forms[f];
        form->spec = &spec->forms[f];
        form->channel_count = table->forms[f].channel_count;
        PEN_TRY(PEN_NEW(arena, table->device_count, &form->parts));
        for (uint32_t d = 0; d < table->device_count; d++) {
            if (table->forms[f].devices[d].worker != worker) continue;
            PEN_TRY(encode_make_part(spec, f, d, arena, &form->parts[form->part_count++]));
        }
    }
    return PEN_OK;
}

// The message in memory of the stream, copied into the arena.
static pen_status encode_write(const encode_spec *encode, pen_arena *arena, const void **out_bytes,
                               uint64_t *out_byte_count) {
    pen_protobuf_writer counter, writer;
    char *bytes;
    pen_protobuf_writer_init(&counter, NULL);
    encode_all(&counter, encode);
    PEN_TRY(PEN_NEW(arena, counter.length + 1, &bytes));
    FILE *stream = fmemopen(bytes, counter.length + 1, "w");
    if (stream == NULL) return pen_error_out_of_memory();
    pen_protobuf_writer_init(&writer, stream);
    encode_all(&writer, encode);
    const pen_status status = pen_protobuf_writer_finish(&writer);
    if (fclose(stream) != 0 && status == PEN_OK) return pen_error_out_of_memory();
    *out_bytes = bytes;
    *out_byte_count = counter.length;
    return status;
}

pen_status pen_run_spec_encode(const pen_run_spec *spec, uint32_t worker, pen_arena *arena,
                               const void **out_bytes, uint64_t *out_byte_count) {
    encode_spec encode = {.spec = spec, .worker = worker};
    PEN_TRY(pen_run_table_encode(spec->table, arena, &encode.table, &encode.table_bytes));
    PEN_TRY(encode_make_forms(spec, worker, arena, &encode));
    return encode_write(&encode, arena, out_bytes, out_byte_count);
}
