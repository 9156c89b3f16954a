#include "scheduler/data/sql/postgres_value.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"

#define POSTGRES_RANK_LIMIT 6 // MAXDIM of PostgreSQL

// The numbers are those of PostgreSQL's catalogue pg_type, which never change.
static const pen_postgres_type postgres_types[] = {
    {16, 0, PEN_SQL_NUMBERS, PEN_NPY_BOOL, ""},
    {17, 0, PEN_SQL_BYTES, PEN_NPY_UINT8, ""},
    {20, 0, PEN_SQL_NUMBERS, PEN_NPY_INT64, ""},
    {21, 0, PEN_SQL_NUMBERS, PEN_NPY_INT16, ""},
    {23, 0, PEN_SQL_NUMBERS, PEN_NPY_INT32, ""},
    {700, 0, PEN_SQL_NUMBERS, PEN_NPY_FLOAT32, ""},
    {701, 0, PEN_SQL_NUMBERS, PEN_NPY_FLOAT64, ""},
    {1700, 0, PEN_SQL_NUMBERS, PEN_NPY_FLOAT64, "::float8"}, // numeric
    {1000, 16, PEN_SQL_NUMBERS, PEN_NPY_BOOL, ""},
    {1005, 21, PEN_SQL_NUMBERS, PEN_NPY_INT16, ""},
    {1007, 23, PEN_SQL_NUMBERS, PEN_NPY_INT32, ""},
    {1016, 20, PEN_SQL_NUMBERS, PEN_NPY_INT64, ""},
    {1021, 700, PEN_SQL_NUMBERS, PEN_NPY_FLOAT32, ""},
    {1022, 701, PEN_SQL_NUMBERS, PEN_NPY_FLOAT64, ""},
    {1231, 1700, PEN_SQL_NUMBERS, PEN_NPY_FLOAT64, "::float8[]"}, // numeric[]
};

const pen_postgres_type *pen_postgres_type_find(uint32_t oid) {
    for (size_t i = 0; i < sizeof postgres_types / sizeof *postgres_types; i++) {
        if (postgres_types[i].oid == oid) return &postgres_types[i];
    }
    return NULL;
}

static int32_t postgres_int32(const uint8_t *bytes) {
    return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
                     bytes[3]);
}

static void postgres_turn(const uint8_t *bytes, uint64_t size, uint8_t *out_bytes) {
    for (uint64_t i = 0; i < size; i++)
        out_bytes[i] = bytes[size - 1 - i];
}

static pen_status postgres_reserve(pen_postgres_scratch *scratch, uint64_t bytes) {
    if (bytes <= scratch->capacity) return PEN_OK;
    pen_memory_free(scratch->memory);
    scratch->capacity = 0;
    scratch->memory = pen_memory_allocate(bytes, 1);
    if (scratch->memory == NULL) return pen_error_out_of_memory();
    scratch->capacity = bytes;
    return PEN_OK;
}

static pen_status postgres_broken(uint64_t length) {
    return pen_error(PEN_CORRUPT, "an array of %" PRIu64 " bytes is not as PostgreSQL sends it",
                     length);
}

// The head of an array: its shape, and how many elements follow, all of which are in `length`.
static pen_status postgres_read_head(const pen_postgres_type *type, const uint8_t *bytes,
                                     uint64_t length, pen_sql_value *value, uint64_t *out_count) {
    const uint64_t size = pen_npy_element_bytes(type->element);
    if (length < 12) return postgres_broken(length);
    const int32_t rank = postgres_int32(bytes);
    if (rank < 0 || rank > POSTGRES_RANK_LIMIT ||
        (uint32_t)postgres_int32(bytes + 8) != type->item) {
        return postgres_broken(length);
    }
    if (length < 12 + 8 * (uint64_t)rank) return postgres_broken(length);
    const uint64_t rest = length - 12 - 8 * (uint64_t)rank;
    uint64_t count = 1;
    for (int32_t d = 0; d < rank; d++) {
        const int32_t side = postgres_int32(bytes + 12 + 8 * d);
        if (side < 1 || (uint64_t)side > rest) return postgres_broken(length);
        value->shape[d] = side;
        count *= (uint64_t)side; // at most rest, and so below 2^62 when multiplied
        if (count > rest / 4) return postgres_broken(length);
    }
    value->rank = (uint32_t)rank;
    if (rank == 0) { // an empty array has no dimensions
        value->rank = 1;
        value->shape[0] = 0;
        count = 0;
    }
    if (postgres_int32(bytes + 4) != 0) {
        return pen_error(PEN_INVALID_INPUT, "an array has NULL in it, expected numbers");
    }
    if (rest != count * (4 + size)) return postgres_broken(length);
    *out_count = count;
    return PEN_OK;
}

static pen_status postgres_read_array(const pen_postgres_type *type, const uint8_t *bytes,
                                      uint64_t length, pen_postgres_scratch *scratch,
                                      pen_sql_value *value) {
    const uint64_t size = pen_npy_element_bytes(type->element);
    uint64_t count;
    PEN_TRY(postgres_read_head(type, bytes, length, value, &count));
    PEN_TRY(postgres_reserve(scratch, count * size));
    const uint8_t *element = bytes + (length - count * (4 + size));
    uint8_t *out = scratch->memory;
    for (uint64_t i = 0; i < count; i++, element += 4 + size, out += size) {
        if (postgres_int32(element) != (int32_t)size) return postgres_broken(length);
        postgres_turn(element + 4, size, out);
    }
    value->data = scratch->memory;
    value->bytes = count * size;
    return PEN_OK;
}

// Bytes are lent as they are, all else is turned into the scratch memory.
pen_status pen_postgres_value_read(const pen_postgres_type *type, const void *bytes,
                                   uint64_t length, pen_postgres_scratch *scratch,
                                   pen_sql_value *out_value) {
    const uint64_t size = pen_npy_element_bytes(type->element);
    *out_value = (pen_sql_value){.kind = type->kind, .element = type->element};
    if (type->kind == PEN_SQL_BYTES) {
        out_value->data = bytes;
        out_value->bytes = length;
        return PEN_OK;
    }
    if (type->item != 0) return postgres_read_array(type, bytes, length, scratch, out_value);
    if (length != size) {
        return pen_error(PEN_CORRUPT, "a number of %s has %" PRIu64 " bytes",
                         pen_npy_element_name(type->element), length);
    }
    PEN_TRY(postgres_reserve(scratch, size));
    postgres_turn(bytes, size, scratch->memory);
    out_value->data = scratch->memory;
    out_value->bytes = size;
    return PEN_OK;
}
