// Fuzzes the reader of what tasks tell each other in files. What can be read is written, and read
// again as it was.
#include <string.h>

#include "scheduler/launched/task_record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t written[PEN_TASK_RECORD_BYTES_LIMIT], rewritten[PEN_TASK_RECORD_BYTES_LIMIT];
    pen_task_record record, again;
    if (!fuzz_reads(pen_task_record_decode(data, size, &record))) return 0;
    fuzz_must(memchr(record.address, '\0', sizeof record.address) != NULL);
    fuzz_must(memchr(record.reason, '\0', sizeof record.reason) != NULL);
    const size_t length = pen_task_record_encode(&record, written);
    fuzz_must(length <= sizeof written);
    if (!fuzz_works(pen_task_record_decode(written, length, &again))) return 0;
    fuzz_must(pen_task_record_encode(&again, rewritten) == length);
    fuzz_must(memcmp(written, rewritten, length) == 0);
    return 0;
}
