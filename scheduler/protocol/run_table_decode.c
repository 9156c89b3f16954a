#include "base/format/protobuf_reader.h"
#include "scheduler/protocol/run_table_wire.h"

#define DECODE_NUMBERS 12u // fields of a message of numbers, and the unused 0

// A message of numbers alone: numbers[n] is that of field n, 0 where it is left out.
static pen_status decode_numbers(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                                 uint64_t *numbers) {
    pen_protobuf_reader message;
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    for (uint32_t n = 0; n < DECODE_NUMBERS; n++) {
        numbers[n] = 0;
    }
    for (;;) {
        pen_protobuf_field inner;
        PEN_TRY(pen_protobuf_next(&message, &inner));
        if (inner.number == 0) return PEN_OK;
        if (inner.number >= DECODE_NUMBERS) continue;
        int64_t number;
        PEN_TRY(pen_protobuf_int(&message, &inner, &number));
        numbers[inner.number] = (uint64_t)number;
    }
}

// Numbers above 32 bits become one that no check lets pass.
static uint32_t decode_small(uint64_t number) {
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

// Travels as one more than it is; 0: UINT32_MAX.
static uint32_t decode_optional(uint64_t number) {
    return decode_small(number) - 1;
}

static pen_run_channel decode_channel(const uint64_t *numbers) {
    return (pen_run_channel){.source_worker = decode_small(numbers[1]),
                             .target_worker = decode_small(numbers[2]),
                             .source_device = decode_optional(numbers[3]),
                             .target_device = decode_small(numbers[4]),
                             .capacity = decode_small(numbers[5]),
                             .copies = decode_small(numbers[6]),
                             .bytes = numbers[7],
                             .is_per_step = numbers[8] != 0,
                             .is_shared = numbers[9] != 0};
}

static pen_status decode_task(const pen_protobuf_reader *reader, const uint64_t *numbers,
                              pen_run_task *out_task) {
    if (numbers[1] >= PEN_TASK_KIND_COUNT) {
        return pen_protobuf_error(reader, "a task of kind %llu, expected below %d",
                                  (unsigned long long)numbers[1], PEN_TASK_KIND_COUNT);
    }
    *out_task = (pen_run_task){.task = {.kind = (pen_task_kind)numbers[1],
                                        .stage = decode_small(numbers[2]),
                                        .microbatch = decode_small(numbers[3])},
                               .list = decode_optional(numbers[4]),
                               .receive_first = decode_small(numbers[5]),
                               .receive_end = decode_small(numbers[6]),
                               .send_first = decode_small(numbers[7]),
                               .send_end = decode_small(numbers[8]),
                               .release_first = decode_small(numbers[9]),
                               .release_end = decode_small(numbers[10]),
                               .makes_loss = numbers[11] != 0};
    return PEN_OK;
}

// Where the items of a form go.
typedef struct decode_items {
    pen_run_channel *channels;
    pen_run_task *tasks;
    uint32_t *refs;
    pen_run_device *devices;
    uint32_t device_count;
} decode_items;

static pen_status decode_item(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                              pen_run_form *form, decode_items *items) {
    uint64_t numbers[DECODE_NUMBERS];
    int64_t number;
    switch (field->number) {
    case 1:
    case 2:
    case 3:
        PEN_TRY(pen_protobuf_int(reader, field, &number));
        if (field->number == 1) form->microbatch_count = decode_small((uint64_t)number);
        if (field->number == 2) form->trains = number != 0;
        if (field->number == 3) form->microbatch_size = (uint64_t)number;
        return PEN_OK;
    case 4:
        PEN_TRY(decode_numbers(reader, field, numbers));
        items->channels[form->channel_count++] = decode_channel(numbers);
        return PEN_OK;
    case 5:
        PEN_TRY(decode_numbers(reader, field, numbers));
        return decode_task(reader, numbers, &items->tasks[form->task_count++]);
    case 6:
        PEN_TRY(pen_protobuf_int(reader, field, &number));
        items->refs[form->ref_count++] = decode_small((uint64_t)number);
        return PEN_OK;
    case 7:
        PEN_TRY(decode_numbers(reader, field, numbers));
        items->devices[items->device_count++] =
            (pen_run_device){.worker = decode_small(numbers[1]),
                             .task_first = decode_small(numbers[2]),
                             .task_end = decode_small(numbers[3])};
        return PEN_OK;
    default:
        return PEN_OK; // of a later version
    }
}

static pen_status decode_form(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                              uint32_t device_count, pen_arena *arena, pen_run_form *out_form) {
    pen_protobuf_reader message;
    uint32_t counts[8];
    decode_items items = {0};
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    PEN_TRY(pen_protobuf_count(&message, 8, counts));
    if (counts[7] != device_count) {
        return pen_protobuf_error(&message, "a form for %u devices, expected %u", counts[7],
                                  device_count);
    }
    PEN_TRY(PEN_NEW(arena, counts[4], &items.channels));
    PEN_TRY(PEN_NEW(arena, counts[5], &items.tasks));
    PEN_TRY(PEN_NEW(arena, counts[6], &items.refs));
    PEN_TRY(PEN_NEW(arena, counts[7], &items.devices));
    *out_form = (pen_run_form){.channels = items.channels,
                               .tasks = items.tasks,
                               .refs = items.refs,
                               .devices = items.devices};
    for (;;) {
        pen_protobuf_field inner;
        PEN_TRY(pen_protobuf_next(&message, &inner));
        if (inner.number == 0) return PEN_OK;
        PEN_TRY(decode_item(&message, &inner, out_form, &items));
    }
}

pen_status pen_run_table_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                                const pen_run_table **out_table) {
    pen_protobuf_reader reader;
    pen_run_table *table;
    pen_run_form *forms;
    uint32_t counts[4];
    pen_protobuf_init(&reader, bytes, byte_count);
    PEN_TRY(pen_protobuf_count(&reader, 4, counts));
    PEN_TRY(PEN_NEW(arena, 1, &table));
    PEN_TRY(PEN_NEW(arena, counts[3], &forms));
    table->forms = forms;
    for (;;) {
        pen_protobuf_field field;
        int64_t number;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == 3) {
            PEN_TRY(decode_form(&reader, &field, table->device_count, arena,
                                &forms[table->form_count++]));
            continue;
        }
        if (field.number > 3) continue;
        PEN_TRY(pen_protobuf_int(&reader, &field, &number));
        if (field.number == 1) table->worker_count = decode_small((uint64_t)number);
        if (field.number == 2 && table->form_count > 0) {
            return pen_protobuf_error(&reader, "the number of devices after a form");
        }
        if (field.number == 2) table->device_count = decode_small((uint64_t)number);
    }
    PEN_TRY(pen_run_table_check(table));
    *out_table = table;
    return PEN_OK;
}
