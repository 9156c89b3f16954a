#include "base/format/npy.h"

#include "tests/support/check.h"

// A file of version 1, 2 or 3 with this dictionary and `data_bytes` zeros. Returns its size.
static size_t make_file(int version, const char *dictionary, size_t data_bytes, uint8_t *out) {
    const size_t length = strlen(dictionary);
    const size_t start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    out[8] = (uint8_t)length;
    out[9] = (uint8_t)(length >> 8);
    out[10] = out[11] = 0;
    memcpy(out + start, dictionary, length);
    memset(out + start + length, 0, data_bytes);
    return start + length + data_bytes;
}

static pen_status read_copy(const uint8_t *bytes, size_t size, pen_npy_header *out_header) {
    uint8_t *copy = malloc(size + (size == 0));
    memcpy(copy, bytes, size);
    const pen_status status = pen_npy_read_header(copy, size, "array.npy", out_header);
    free(copy);
    return status;
}

static void reads_all_versions_and_spellings(void **state) {
    (void)state;
    static const char *const dictionaries[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }       \n",
        "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"=f4\"}",
        "{ 'shape' : ( 2 , 3 ) , 'descr' : 'f4' , 'fortran_order' : False }\n",
    };
    for (int version = 1; version <= 3; version++) {
        for (size_t i = 0; i < 3; i++) {
            uint8_t bytes[256];
            pen_npy_header header;
            const size_t size = make_file(version, dictionaries[i], 24, bytes);
            CHECK_OK(read_copy(bytes, size, &header));
            assert_int_equal(header.element, PEN_NPY_FLOAT32);
            assert_int_equal(header.rank, 2);
            assert_int_equal(header.shape[0], 2);
            assert_int_equal(header.shape[1], 3);
            assert_int_equal(header.element_count, 6);
            assert_int_equal(header.data_bytes, 24);
            assert_int_equal(header.data_offset, size - 24);
            for (size_t cut = 0; cut < size; cut++) {
                CHECK_ERROR(read_copy(bytes, cut, &header), PEN_CORRUPT, "array.npy");
            }
        }
    }
}

static void refuses_what_it_cannot_read(void **state) {
    (void)state;
    static const struct {
        const char *dictionary, *error;
        size_t bytes;
        pen_status_code code;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': ()}", "big-endian ('>f4')", 4,
         PEN_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", "'|O'", 8, PEN_UNSUPPORTED},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': ()}", "'<c8'", 8, PEN_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "structured", 4,
         PEN_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': ()}", "Fortran order", 4,
         PEN_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         "more than 8 dimensions", 4, PEN_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "announces 2 elements", 4,
         PEN_CORRUPT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "8 bytes follow", 8,
         PEN_CORRUPT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "2^63", 4,
         PEN_CORRUPT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296,)}", "2^64", 0,
         PEN_CORRUPT},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}", "announces",
         0, PEN_CORRUPT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a dimension", 4, PEN_CORRUPT},
        {"{'descr': '<f4', 'fortran_order': False}", "'shape'", 4, PEN_CORRUPT},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': ()}", "each once", 4, PEN_CORRUPT},
        {"{'descr': '<f4', 'other': 1}", "each once", 4, PEN_CORRUPT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "nothing after", 4,
         PEN_CORRUPT},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': ()}", "short string", 4,
         PEN_CORRUPT},
        {"", "'{'", 4, PEN_CORRUPT},
    };
    uint8_t bytes[256];
    pen_npy_header header;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t size = make_file(1, cases[i].dictionary, cases[i].bytes, bytes);
        CHECK_ERROR(read_copy(bytes, size, &header), cases[i].code, cases[i].error);
    }
    const size_t size = make_file(4, cases[0].dictionary, 4, bytes);
    CHECK_ERROR(read_copy(bytes, size, &header), PEN_UNSUPPORTED, "version 4");
    CHECK_ERROR(read_copy((const uint8_t *)"PK\3\4 a zip file", 15, &header), PEN_CORRUPT,
                "not an .npy file");
}

static size_t read_back(FILE *file, uint8_t *out, size_t size) {
    rewind(file);
    const size_t count = fread(out, 1, size, file);
    fclose(file);
    return count;
}

static void writes_what_it_reads(void **state) {
    (void)state;
    const int64_t largest[PEN_RANK_LIMIT] = {1, 2, 3, 1, 1, 1, 1, 4};
    uint8_t data[24 * 8], bytes[1024];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    for (int element = PEN_NPY_BOOL; element <= PEN_NPY_FLOAT64; element++) {
        for (uint32_t rank = 0; rank <= PEN_RANK_LIMIT; rank++) {
            FILE *file = tmpfile();
            CHECK_OK(pen_npy_write(file, (pen_npy_element)element, rank, largest, data));
            const size_t size = read_back(file, bytes, sizeof bytes);
            pen_npy_header header;
            CHECK_OK(read_copy(bytes, size, &header));
            assert_int_equal(header.element, element);
            assert_int_equal(header.rank, rank);
            assert_memory_equal(header.shape, largest, rank * sizeof largest[0]);
            assert_int_equal(header.data_offset % 64, 0);
            assert_memory_equal(bytes + header.data_offset, data, header.data_bytes);
        }
    }
    const int64_t empty[] = {0, INT64_MAX};
    FILE *file = tmpfile();
    CHECK_OK(pen_npy_write_header(file, PEN_NPY_INT64, 2, empty));
    pen_npy_header header;
    CHECK_OK(read_copy(bytes, read_back(file, bytes, sizeof bytes), &header));
    assert_int_equal(header.element_count, 0);
}

// The bytes that numpy.save writes for the same array.
static void writes_as_numpy_does(void **state) {
    (void)state;
    const char expected[] = "\x93NUMPY\x01\x00v\x00"
                            "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }";
    const int64_t numbers[] = {1, -2, 3};
    uint8_t bytes[256];
    FILE *file = tmpfile();
    CHECK_OK(pen_npy_write(file, PEN_NPY_INT64, 1, (int64_t[]){3}, numbers));
    assert_int_equal(read_back(file, bytes, sizeof bytes), 128 + 24);
    assert_memory_equal(bytes, expected, sizeof expected - 1);
    for (size_t i = sizeof expected - 1; i < 127; i++)
        assert_int_equal(bytes[i], ' ');
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, numbers, sizeof numbers);
    file = fopen("/dev/full", "w");
    setvbuf(file, NULL, _IONBF, 0);
    CHECK_ERROR(pen_npy_write(file, PEN_NPY_INT64, 1, (int64_t[]){3}, numbers), PEN_IO, "space");
    fclose(file);
}

PEN_TEST_MAIN(cmocka_unit_test(reads_all_versions_and_spellings),
              cmocka_unit_test(refuses_what_it_cannot_read), cmocka_unit_test(writes_what_it_reads),
              cmocka_unit_test(writes_as_numpy_does))
