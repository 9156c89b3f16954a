#include "scheduler/store/safetensors.h"

#include "base/memory.h"
#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static const pen_tensor_type types[] = {
    {PEN_FLOAT32, {2, {2, 3}}}, {PEN_FLOAT64, {0, {0}}},  {PEN_FLOAT16, {1, {3}}},
    {PEN_BFLOAT16, {1, {1}}},   {PEN_INT8, {1, {5}}},     {PEN_INT16, {1, {2}}},
    {PEN_INT32, {1, {1}}},      {PEN_INT64, {2, {1, 2}}}, {PEN_UINT8, {1, {0}}},
    {PEN_UINT16, {1, {2}}},     {PEN_UINT32, {1, {1}}},   {PEN_UINT64, {1, {1}}},
    {PEN_BOOL, {3, {1, 1, 2}}},
};
#define TYPE_COUNT (sizeof types / sizeof *types)

static pen_status read_counting(void *context, uint32_t index, uint64_t first, void *out_data,
                                uint64_t bytes) {
    (void)context;
    unsigned char *out = out_data;
    assert_true(first + bytes <= pen_tensor_type_bytes(&types[index]));
    for (uint64_t i = 0; i < bytes; i++) {
        out[i] = (unsigned char)(index * 17 + first + i);
    }
    return PEN_OK;
}

// A file with a tensor of every type; names need escapes.
static const char *write_all(const char *file_name) {
    static char names[TYPE_COUNT][32];
    const char *name_list[TYPE_COUNT];
    const pen_tensor_type *type_list[TYPE_COUNT];
    for (uint32_t i = 0; i < TYPE_COUNT; i++) {
        snprintf(names[i], sizeof names[i], "layer \"%u\"\\µ.weight", i);
        name_list[i] = names[i];
        type_list[i] = &types[i];
    }
    const pen_safetensors_source source = {
        .count = TYPE_COUNT, .names = name_list, .types = type_list, .read = read_counting};
    const char *path = scratch_path(file_name);
    CHECK_OK(pen_safetensors_save(path, &source));
    return path;
}

static void every_type_survives(void **state) {
    (void)state;
    const char *path = write_all("all.safetensors");
    pen_safetensors *file;
    CHECK_OK(pen_safetensors_open(path, &file));
    assert_int_equal(pen_safetensors_count(file), TYPE_COUNT);
    for (uint32_t i = 0; i < TYPE_COUNT; i++) {
        char name[32];
        unsigned char expected[64];
        snprintf(name, sizeof name, "layer \"%u\"\\µ.weight", i);
        const pen_safetensors_entry *entry = pen_safetensors_find(file, name);
        assert_non_null(entry);
        assert_true(pen_tensor_type_equal(&entry->type, &types[i]));
        CHECK_OK(read_counting(NULL, i, 0, expected, pen_tensor_type_bytes(&types[i])));
        assert_memory_equal(entry->data, expected, pen_tensor_type_bytes(&types[i]));
    }
    const uint8_t *last = NULL;
    for (uint32_t i = 0; i < TYPE_COUNT; i++) { // in the order of the data
        const uint8_t *data = pen_safetensors_at(file, i)->data;
        assert_true(last == NULL || data >= last);
        last = data;
    }
    assert_null(pen_safetensors_find(file, "nothing"));
    pen_safetensors_close(file);
    pen_safetensors_close(NULL);
}

// A header of the caller's, with `data_bytes` zeros behind it.
static pen_status parse_header(const char *header, uint64_t data_bytes) {
    const uint64_t length = strlen(header);
    char *bytes = pen_memory_allocate(8 + length + data_bytes, 1);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) {
        bytes[i] = (char)(length >> (8 * i));
    }
    memcpy(bytes + 8, header, length);
    pen_safetensors *file = NULL;
    const pen_status status = pen_safetensors_parse("f", bytes, 8 + length + data_bytes, &file);
    if (status == PEN_OK) pen_safetensors_close(file);
    pen_memory_free(bytes);
    return status;
}

#define ONE(dtype, shape, offsets)                                                                 \
    "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void contradictions_are_refused(void **state) {
    (void)state;
    CHECK_OK(parse_header(ONE("\"F32\"", "[2]", "[0,8]"), 8));
    CHECK_OK(parse_header("{}", 0));
    CHECK_OK(parse_header("{\"__metadata__\":{\"a\":\"b\"}}   ", 0));
    static const struct {
        const char *header;
        uint64_t data_bytes;
        pen_status_code code;
        const char *text;
    } cases[] = {
        {"", 0, PEN_CORRUPT, "no JSON"},
        {"[]", 0, PEN_CORRUPT, "not a list of tensors"},
        {"{\"w\":1}", 0, PEN_CORRUPT, "'w' has no dtype"},
        {"{\"w\":{}}", 0, PEN_CORRUPT, "'w' has no dtype"},
        {"{\"w\":{\"dtype\":\"F32\"}}", 0, PEN_CORRUPT, "has no shape"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, PEN_CORRUPT, "has no data_offsets"},
        {ONE("1", "[2]", "[0,8]"), 8, PEN_CORRUPT, "has no dtype"},
        {ONE("\"F8_E4M3\"", "[2]", "[0,2]"), 2, PEN_UNSUPPORTED, "F8_E4M3"},
        {ONE("\"F32\"", "[2.5]", "[0,8]"), 8, PEN_CORRUPT, "bad shape"},
        {ONE("\"F32\"", "[-2]", "[0,8]"), 8, PEN_INVALID_INPUT, "negative"},
        {ONE("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, PEN_CORRUPT, "too many dimensions"},
        {ONE("\"F32\"", "[4611686018427387904,4]", "[0,8]"), 8, PEN_INVALID_INPUT, "limit"},
        {ONE("\"F32\"", "[99999999999999999999]", "[0,8]"), 8, PEN_CORRUPT, ""},
        {ONE("\"F32\"", "[2]", "[0,9]"), 9, PEN_CORRUPT, "not its shape's"},
        {ONE("\"F32\"", "[2]", "[0,8]"), 7, PEN_CORRUPT, "outside"},
        {ONE("\"F32\"", "[2]", "[0,8]"), 9, PEN_CORRUPT, "bytes behind"},
        {ONE("\"F32\"", "[2]", "[4,12]"), 12, PEN_CORRUPT, "gap"},
        {ONE("\"F32\"", "[2]", "[8,0]"), 8, PEN_CORRUPT, "outside"},
        {ONE("\"F32\"", "[2]", "[-8,0]"), 8, PEN_CORRUPT, "outside"},
        {ONE("\"F32\"", "[2]", "[0]"), 8, PEN_CORRUPT, "data_offsets"},
        {ONE("\"F32\"", "[2]", "[0,8,8]"), 8, PEN_CORRUPT, "data_offsets"},
        {ONE("\"F32\"", "[2]", "\"0,8\""), 8, PEN_CORRUPT, "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
         6, PEN_CORRUPT, "overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
         4, PEN_CORRUPT, "no JSON"},
        {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, PEN_CORRUPT,
         "no JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_ERROR(parse_header(cases[i].header, cases[i].data_bytes), cases[i].code,
                    cases[i].text);
    }
    char deep[10000];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    CHECK_ERROR(parse_header(deep, 0), PEN_CORRUPT, "nest 9999 deep");
}

// Bytes of a whole file in memory of exactly the size given, so that the address sanitizer sees a
// read beyond.
static pen_status parse_copy(const uint8_t *bytes, uint64_t length, uint64_t flip_bit) {
    uint8_t *copy = malloc(length + 1);
    assert_non_null(copy);
    uint8_t *exact = copy + 1; // also not aligned
    memcpy(exact, bytes, length);
    if (flip_bit / 8 < length) exact[flip_bit / 8] ^= (uint8_t)(1u << flip_bit % 8);
    pen_safetensors *file = NULL;
    const pen_status status = pen_safetensors_parse("f", exact, length, &file);
    if (status == PEN_OK) {
        uint64_t sum = 0; // what it gives out can be read
        for (uint32_t i = 0; i < pen_safetensors_count(file); i++) {
            const pen_safetensors_entry *entry = pen_safetensors_at(file, i);
            const uint8_t *data = entry->data;
            for (uint64_t k = 0; k < pen_tensor_type_bytes(&entry->type); k++) {
                sum += data[k];
            }
        }
        assert_true(sum < UINT64_MAX);
        pen_safetensors_close(file);
    }
    free(copy);
    return status;
}

static void truncated_files_are_errors(void **state) {
    (void)state;
    pen_mapping mapping;
    CHECK_OK(pen_mapping_open(write_all("cut.safetensors"), &mapping));
    for (uint64_t length = 0; length < mapping.length; length++) {
        const pen_status status = parse_copy(mapping.bytes, length, UINT64_MAX);
        CHECK(status != PEN_OK, "%llu bytes are taken for a file", (unsigned long long)length);
        pen_status_ignore(status, "an error, as it must be");
    }
    CHECK_OK(parse_copy(mapping.bytes, mapping.length, UINT64_MAX));
    pen_mapping_close(&mapping);
}

static void flipped_bits_never_crash(void **state) {
    (void)state;
    pen_mapping mapping;
    uint32_t refused = 0;
    CHECK_OK(pen_mapping_open(write_all("flipped.safetensors"), &mapping));
    for (uint64_t bit = 0; bit < 8 * mapping.length; bit++) {
        const pen_status status = parse_copy(mapping.bytes, mapping.length, bit);
        refused += status != PEN_OK;
        pen_status_ignore(status, "an error, or a flipped bit in a name or in the data");
    }
    CHECK(refused > 1000, "only %u", refused);
    pen_mapping_close(&mapping);
}

static void refused_memory_is_an_error(void **state) {
    (void)state;
    const char *path = write_all("memory.safetensors");
    for (uint64_t call = 1;; call++) {
        assert_true(call < 100);
        pen_safetensors *file;
        pen_memory_fail_at(call, 0);
        pen_status status = pen_safetensors_open(path, &file);
        pen_memory_fail_at(0, 0);
        if (status == PEN_OK) {
            pen_safetensors_close(file);
            break;
        }
        CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
    }
}

PEN_TEST_MAIN(cmocka_unit_test(every_type_survives), cmocka_unit_test(contradictions_are_refused),
              cmocka_unit_test(truncated_files_are_errors),
              cmocka_unit_test(flipped_bits_never_crash),
              cmocka_unit_test(refused_memory_is_an_error))
