#include "scheduler/launched/task_record.h"

#include <string.h>

#include "base/record/record.h"
#include "base/text.h"

#define RECORD_TASK_LIMIT 4096
#define RECORD_CODE_LIMIT 255

#define RECORD(row, number, member, ...)                                                           \
    PEN_RECORD_ROW(row, number, #member, pen_task_record, member, __VA_ARGS__)

static const pen_record_field record_fields[] = {
    RECORD(NUMBER, 1, rank, NULL, .limit = RECORD_TASK_LIMIT - 1),
    RECORD(NUMBER, 2, size, NULL, .limit = RECORD_TASK_LIMIT),
    RECORD(FIXED, 3, incarnation, NULL),
    RECORD(TEXT, 4, address, NULL),
    RECORD(TEXT, 5, node, NULL),
    RECORD(TEXT, 6, system, NULL),
    RECORD(NUMBER, 7, process, NULL),
    RECORD(NUMBER, 8, began, NULL),
    RECORD(NUMBER, 9, cores, NULL, .limit = UINT32_MAX),
    RECORD(NUMBER, 10, memory_bytes, NULL),
    RECORD(NUMBER, 11, shares_cores, NULL),
    RECORD(NUMBER, 12, shares_memory, NULL),
    RECORD(NUMBER, 13, is_worker, NULL),
    RECORD(NUMBER, 14, is_leaving, NULL),
    RECORD(NUMBER, 15, beat, NULL),
    RECORD(NUMBER, 16, code, NULL, .limit = RECORD_CODE_LIMIT),
    RECORD(TEXT, 17, reason, NULL),
};
static const pen_record record_table = {
    .name = "Task", PEN_RECORD_FIELDS(record_fields), .size = sizeof(pen_task_record)};

size_t pen_task_record_encode(const pen_task_record *record,
                              uint8_t out_bytes[PEN_TASK_RECORD_BYTES_LIMIT]) {
    const size_t length =
        pen_record_encode(&record_table, record, out_bytes, PEN_TASK_RECORD_BYTES_LIMIT);
    PEN_ASSERT(length <= PEN_TASK_RECORD_BYTES_LIMIT);
    return length;
}

// What a task can end with: what docs/recovery.md lists, 1, or a signal. All others end with it.
static bool record_is_exit_code(uint64_t code) {
    return code <= 9 || (code > 128 && code <= 128 + 64);
}

pen_status pen_task_record_decode(const void *bytes, size_t count, pen_task_record *out_record) {
    memset(out_record, 0, sizeof *out_record);
    PEN_TRY(pen_record_decode(&record_table, bytes, count, NULL, out_record));
    if (!record_is_exit_code(out_record->code)) {
        return pen_error(PEN_CORRUPT, "no task ends with code %u", (unsigned)out_record->code);
    }
    (void)pen_text_clean(out_record->address, false);
    (void)pen_text_clean(out_record->node, false);
    (void)pen_text_clean(out_record->system, false);
    (void)pen_text_clean(out_record->reason, true);
    return PEN_OK;
}
