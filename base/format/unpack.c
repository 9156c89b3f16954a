#include "base/format/unpack.h"

#include <inttypes.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/system/machine.h"

uint64_t pen_unpack_limit(uint64_t packed) {
    uint64_t bytes;
    if (!pen_u64_mul(packed, PEN_UNPACK_RATIO, &bytes)) bytes = UINT64_MAX;
    return pen_max_u64(bytes, PEN_UNPACK_BYTES);
}

pen_status pen_unpack_check(const char *name, uint64_t packed, uint64_t unpacked,
                            const char *remedy) {
    const uint64_t limit = pen_unpack_limit(packed);
    if (unpacked <= limit) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "%s: %" PRIu64 " packed bytes would become %" PRIu64
                     " or more; of so few at most %" PRIu64 " are unpacked (%d times, or %u MiB). "
                     "If the file is one of yours: %s",
                     name, packed, unpacked, limit, PEN_UNPACK_RATIO, PEN_UNPACK_BYTES >> 20,
                     remedy);
}

pen_status pen_unpack_check_memory(const char *name, uint64_t bytes, const char *remedy) {
    pen_arena *arena;
    pen_machine machine;
    if (bytes <= PEN_UNPACK_BYTES) return PEN_OK;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = pen_machine_detect(arena, &machine);
    pen_arena_destroy(arena);
    PEN_TRY(status);
    if (machine.memory_bytes_free == 0 || bytes <= machine.memory_bytes_free) return PEN_OK;
    return pen_error(PEN_DOES_NOT_FIT,
                     "%s: unpacked it has %" PRIu64 " bytes, and %" PRIu64
                     " of memory are free here: %s",
                     name, bytes, machine.memory_bytes_free, remedy);
}
