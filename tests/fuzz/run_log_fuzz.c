// Fuzzes the reader of logs of trainings: any bytes give a summary that makes sense.
#include <string.h>

#include "scheduler/report/run_log.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_run_log log;
    if (!fuzz_works(pen_run_log_parse((const char *)data, size, 2, &log))) return 0;
    fuzz_must(log.outcome <= PEN_RUN_FAILED && memchr(log.hash, 0, sizeof log.hash) != NULL);
    fuzz_must(log.step <= size);
    return 0;
}
