#include "scheduler/runtime/run_spec.h"

pen_status pen_run_spec_encode(const pen_run_spec *spec, uint32_t worker, pen_arena *arena,
                               const void **out_bytes, uint64_t *out_byte_count) {
    (void)arena;
    (void)out_bytes;
    (void)out_byte_count;
    return pen_error(PEN_UNSUPPORTED, "%s: devices of other processes are not served yet",
                     spec->workers[worker].name);
}

pen_status pen_run_spec_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                               const pen_run_spec **out_spec) {
    (void)bytes;
    (void)arena;
    (void)out_spec;
    return pen_error(PEN_CORRUPT, "a description of %llu bytes", (unsigned long long)byte_count);
}
