#include "scheduler/protocol/run_table_wire.h"

#include "base/limits.h"
#include "scheduler/protocol/run_table_check.h"

#define CHANNEL(kind, number, member, ...)                                                         \
    PEN_RECORD_ROW(kind, number, #member, pen_run_channel, member, __VA_ARGS__)
#define TASK(kind, number, name, member, ...)                                                      \
    PEN_RECORD_ROW(kind, number, name, pen_run_task, member, __VA_ARGS__)
#define DEVICE(number, member, ...)                                                                \
    PEN_RECORD_ROW(NUMBER, number, #member, pen_run_device, member, __VA_ARGS__)

static const pen_record_field channel_fields[] = {
    CHANNEL(NUMBER, 1, source_worker, "0: the coordinator"),
    CHANNEL(NUMBER, 2, target_worker, NULL),
    CHANNEL(INDEX, 3, source_device, "1 + a device; 0: the coordinator"),
    CHANNEL(NUMBER, 4, target_device, NULL),
    CHANNEL(NUMBER, 5, capacity, "places at the target"),
    CHANNEL(NUMBER, 6, copies, "places at the source"),
    CHANNEL(NUMBER, 7, bytes, "of a frame"),
    CHANNEL(NUMBER, 8, is_per_step, NULL),
    CHANNEL(NUMBER, 9, is_shared, "the target reads the frame where the source made it"),
    CHANNEL(NUMBER, 10, first_microbatch, "that it carries frames of"),
    CHANNEL(NUMBER, 11, microbatch_count, "0: all from the first on"),
};
static const pen_record_field task_fields[] = {
    TASK(NUMBER, 1, "kind", task.kind, "as List.Kind of part.proto",
         .limit = PEN_TASK_KIND_COUNT - 1),
    TASK(NUMBER, 2, "stage", task.stage, NULL),
    TASK(NUMBER, 3, "microbatch", task.microbatch, "or phase of an update"),
    TASK(INDEX, 4, "list", list, "1 + a list of the device's part; 0: nothing to compute"),
    TASK(NUMBER, 5, "receive_first", receive_first, "ranges of the form's refs"),
    TASK(NUMBER, 6, "receive_end", receive_end, NULL),
    TASK(NUMBER, 7, "send_first", send_first, NULL),
    TASK(NUMBER, 8, "send_end", send_end, NULL),
    TASK(NUMBER, 9, "release_first", release_first, NULL),
    TASK(NUMBER, 10, "release_end", release_end, NULL),
    TASK(NUMBER, 11, "makes_loss", makes_loss, NULL),
    TASK(NUMBER, 12, "makes_gradient", makes_gradient, "whose coming is told"),
};
static const pen_record_field device_fields[] = {
    DEVICE(1, worker, NULL),
    DEVICE(2, task_first, "of the form's tasks"),
    DEVICE(3, task_end, NULL),
};

static const pen_record channel_record = {.name = "RunChannel", PEN_RECORD_FIELDS(channel_fields)};
static const pen_record task_record = {.name = "RunTask", PEN_RECORD_FIELDS(task_fields)};
static const pen_record device_record = {.name = "RunDevice", PEN_RECORD_FIELDS(device_fields)};

// Forms and the table as they travel: each list with its count.
typedef struct wire_form {
    pen_run_form form;
    uint32_t device_count;
} wire_form;

typedef struct wire_table {
    uint32_t worker_count;
    uint32_t device_count;
    uint32_t form_count;
    const wire_form *forms;
} wire_table;

#define FORM(number, member, ...)                                                                  \
    PEN_RECORD_ROW(NUMBER, number, #member, wire_form, form.member, __VA_ARGS__)
#define FORM_LIST(kind, number, name, items, count, ...)                                           \
    PEN_RECORD_LIST_ROW(ITEMS, kind, number, name, wire_form, items, count, __VA_ARGS__)

static const pen_record_field form_fields[] = {
    FORM(1, microbatch_count, "most in a round"),
    FORM(2, trains, NULL),
    FORM(3, microbatch_size, "examples"),
    FORM_LIST(MESSAGE, 4, "channels", form.channels, form.channel_count, NULL,
              .record = &channel_record),
    FORM_LIST(MESSAGE, 5, "tasks", form.tasks, form.task_count, "of all devices",
              .record = &task_record),
    FORM_LIST(NUMBER, 6, "refs", form.refs, form.ref_count, "channels, by task"),
    FORM_LIST(MESSAGE, 7, "devices", form.devices, device_count, NULL,
              .limit = PEN_RUN_DEVICES_LIMIT, .record = &device_record),
    FORM(8, skips, "its updates apply no gradients that are not finite"),
};
static const pen_record form_record = {.name = "RunForm", PEN_RECORD_FIELDS(form_fields)};

static const pen_record_field table_fields[] = {
    PEN_RECORD_ROW(NUMBER, 1, "worker_count", wire_table, worker_count, "without the coordinator"),
    PEN_RECORD_ROW(NUMBER, 2, "device_count", wire_table, device_count, NULL),
    PEN_RECORD_LIST_ROW(ITEMS, MESSAGE, 3, "forms", wire_table, forms, form_count, NULL,
                        .limit = PEN_RUN_FORMS_LIMIT, .record = &form_record),
};
const pen_record pen_run_table_record = {
    .name = "RunTable",
    .help = "What is run, as numbers: see run_table.h.",
    PEN_RECORD_FIELDS(table_fields),
};

pen_status pen_run_table_encode(const pen_run_table *table, pen_arena *arena,
                                const void **out_bytes, uint64_t *out_byte_count) {
    wire_form *forms;
    PEN_TRY(PEN_NEW(arena, table->form_count, &forms));
    for (uint32_t f = 0; f < table->form_count; f++) {
        forms[f] = (wire_form){table->forms[f], table->device_count};
    }
    const wire_table wire = {table->worker_count, table->device_count, table->form_count, forms};
    return pen_record_encode_new(&pen_run_table_record, &wire, arena, out_bytes, out_byte_count);
}

// A table from outside counts only after its check: everything behind it relies on its numbers.
pen_status pen_run_table_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                                const pen_run_table **out_table) {
    wire_table wire = {0};
    pen_run_table *table;
    pen_run_form *forms;
    PEN_TRY(pen_record_decode(&pen_run_table_record, bytes, byte_count, arena, &wire));
    PEN_TRY(PEN_NEW(arena, 1, &table));
    PEN_TRY(PEN_NEW(arena, wire.form_count, &forms));
    for (uint32_t f = 0; f < wire.form_count; f++) {
        if (wire.forms[f].device_count != wire.device_count) {
            return pen_error(PEN_CORRUPT, "form %u is for %u devices, expected %u", f,
                             wire.forms[f].device_count, wire.device_count);
        }
        forms[f] = wire.forms[f].form;
    }
    *table = (pen_run_table){wire.worker_count, wire.device_count, wire.form_count, forms};
    PEN_TRY(pen_run_table_check(table));
    *out_table = table;
    return PEN_OK;
}
