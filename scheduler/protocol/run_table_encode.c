#include <stdlib.h>
#include <string.h>

#include "base/format/protobuf_writer.h"
#include "scheduler/protocol/run_table_wire.h"

// Numbers that may be UINT32_MAX (none, the host) travel as one more than they are.
static void encode_number(pen_protobuf_writer *writer, uint32_t field, uint64_t number) {
    if (number != 0) pen_protobuf_write_int(writer, field, (int64_t)number);
}

static void encode_optional(pen_protobuf_writer *writer, uint32_t field, uint32_t number) {
    encode_number(writer, field, (uint32_t)(number + 1));
}

static void encode_channel(pen_protobuf_writer *writer, const void *context) {
    const pen_run_channel *channel = context;
    encode_number(writer, 1, channel->source_worker);
    encode_number(writer, 2, channel->target_worker);
    encode_optional(writer, 3, channel->source_device);
    encode_number(writer, 4, channel->target_device);
    encode_number(writer, 5, channel->capacity);
    encode_number(writer, 6, channel->copies);
    encode_number(writer, 7, channel->bytes);
    encode_number(writer, 8, channel->is_per_step);
    encode_number(writer, 9, channel->is_shared);
}

static void encode_task(pen_protobuf_writer *writer, const void *context) {
    const pen_run_task *task = context;
    encode_number(writer, 1, (uint32_t)task->task.kind);
    encode_number(writer, 2, task->task.stage);
    encode_number(writer, 3, task->task.microbatch);
    encode_optional(writer, 4, task->list);
    encode_number(writer, 5, task->receive_first);
    encode_number(writer, 6, task->receive_end);
    encode_number(writer, 7, task->send_first);
    encode_number(writer, 8, task->send_end);
    encode_number(writer, 9, task->release_first);
    encode_number(writer, 10, task->release_end);
    encode_number(writer, 11, task->makes_loss);
}

static void encode_device(pen_protobuf_writer *writer, const void *context) {
    const pen_run_device *device = context;
    encode_number(writer, 1, device->worker);
    encode_number(writer, 2, device->task_first);
    encode_number(writer, 3, device->task_end);
}

typedef struct encode_form_context {
    const pen_run_form *form;
    uint32_t device_count;
} encode_form_context;

static void encode_form(pen_protobuf_writer *writer, const void *context) {
    const encode_form_context *given = context;
    const pen_run_form *form = given->form;
    encode_number(writer, 1, form->microbatch_count);
    encode_number(writer, 2, form->trains);
    encode_number(writer, 3, form->microbatch_size);
    for (uint32_t c = 0; c < form->channel_count; c++) {
        pen_protobuf_write_message(writer, 4, encode_channel, &form->channels[c]);
    }
    for (uint32_t t = 0; t < form->task_count; t++) {
        pen_protobuf_write_message(writer, 5, encode_task, &form->tasks[t]);
    }
    for (uint32_t r = 0; r < form->ref_count; r++) {
        pen_protobuf_write_int(writer, 6, form->refs[r]);
    }
    for (uint32_t d = 0; d < given->device_count; d++) {
        pen_protobuf_write_message(writer, 7, encode_device, &form->devices[d]);
    }
}

static void encode_table(pen_protobuf_writer *writer, const pen_run_table *table) {
    encode_number(writer, 1, table->worker_count);
    encode_number(writer, 2, table->device_count);
    for (uint32_t f = 0; f < table->form_count; f++) {
        const encode_form_context form = {&table->forms[f], table->device_count};
        pen_protobuf_write_message(writer, 3, encode_form, &form);
    }
}

pen_status pen_run_table_encode(const pen_run_table *table, pen_arena *arena,
                                const void **out_bytes, uint64_t *out_byte_count) {
    pen_protobuf_writer writer;
    pen_protobuf_writer_init(&writer, NULL);
    encode_table(&writer, table);
    char *bytes;
    PEN_TRY(PEN_NEW(arena, writer.length + 1, &bytes)); // a stream in memory ends its bytes with 0
    FILE *stream = fmemopen(bytes, writer.length + 1, "w");
    if (stream == NULL) return pen_error_out_of_memory();
    *out_byte_count = writer.length;
    pen_protobuf_writer_init(&writer, stream);
    encode_table(&writer, table);
    const pen_status status = pen_protobuf_writer_finish(&writer);
    if (fclose(stream) != 0 && status == PEN_OK) return pen_error_out_of_memory();
    *out_bytes = bytes;
    return status;
}
