// The HDF5 reader on files that Keras wrote, and on damaged ones.

#include "graph/import/keras/hdf5_file.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/system/file.h"
#include "tests/support/check.h"

#define NESTED "tests/reference/keras/nested.h5"

static pen_hdf5 *open_file(const char *path, pen_mapping *mapping) {
    pen_hdf5 *file;
    CHECK_OK(pen_mapping_open(path, mapping));
    CHECK_OK(pen_hdf5_open(path, mapping->bytes, mapping->length, &file));
    return file;
}

// The first process that this one started.
static int child_find(void) {
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &child), 1);
    fclose(file);
    return child;
}

// What /proc says of it: "Seccomp:\t2" of one with a filter.
static void child_status(char *out_text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", child_find());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    out_text[fread(out_text, 1, size - 1, file)] = '\0';
    fclose(file);
}

// Whoever makes libhdf5 run code of his has nothing to reach.
static void the_reading_process_is_confined(void **state) {
    (void)state;
    char status[4096];
    pen_mapping mapping;
    pen_hdf5 *file = open_file(NESTED, &mapping); // it has said what is in it
    child_status(status, sizeof status);
    CHECK(strstr(status, "Seccomp:\t2") != NULL, "%s", status);
    pen_hdf5_close(file);
    pen_mapping_close(&mapping);
}

// libhdf5 that crashes is an error about the file. Which bytes it crashes on depends on its heap,
// so the signal comes from here.
static void its_crash_is_an_error(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_tensor_type type;
    const void *data;
    pen_hdf5 *file = open_file("tests/reference/keras/cases.h5", &mapping);
    assert_int_equal(kill(child_find(), SIGSEGV), 0);
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/packed", arena, &type, &data), PEN_CORRUPT,
                "HDF5 crashes on it (signal 11): the file is damaged");
    pen_hdf5_close(file);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

static void groups_attributes_and_datasets_are_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_hdf5 *file = open_file(NESTED, &mapping);
    uint32_t count;
    const pen_hdf5_entry *children;
    const char *const *texts;
    pen_tensor_type type;
    const void *data;

    assert_int_equal(pen_hdf5_find(file, "/"), PEN_HDF5_GROUP);
    assert_int_equal(pen_hdf5_find(file, "/model_weights/trunk/conv/kernel:0"), PEN_HDF5_DATASET);
    assert_int_equal(pen_hdf5_find(file, "/model_weights/trunk/conv/kernel:0/beyond"),
                     PEN_HDF5_ABSENT);
    assert_int_equal(pen_hdf5_find(file, "/model_weights/tree"), PEN_HDF5_ABSENT);

    CHECK_OK(pen_hdf5_list(file, "/model_weights", arena, &count, &children));
    assert_int_equal(count, 4);
    assert_string_equal(children[0].name, "dense");
    assert_string_equal(children[3].name, "trunk");
    assert_int_equal(children[3].kind, PEN_HDF5_GROUP);
    CHECK_ERROR(pen_hdf5_list(file, "/model", arena, &count, &children), PEN_NOT_FOUND,
                "'/model' is nothing, expected a group");

    CHECK_OK(pen_hdf5_read_texts(file, "/", "model_config", &count, &texts));
    assert_int_equal(count, 1);
    assert_non_null(strstr(texts[0], "\"class_name\": \"Sequential\""));
    CHECK_OK(pen_hdf5_read_texts(file, "/model_weights/trunk", "weight_names", &count, &texts));
    assert_int_equal(count, 5);
    assert_string_equal(texts[0], "conv/kernel:0");
    assert_string_equal(texts[4], "norm/moving_variance:0");
    CHECK_OK(pen_hdf5_read_texts(file, "/", "no such", &count, &texts));
    assert_int_equal(count, 0);
    assert_null(texts);

    CHECK_OK(
        pen_hdf5_read_dataset(file, "/model_weights/trunk/conv/kernel:0", arena, &type, &data));
    char text[PEN_SHAPE_TEXT_BYTES];
    assert_string_equal(pen_tensor_type_format(&type, text), "float32[2,2,2,3]");
    const uint8_t *bytes = data; // lies in one piece: nothing was copied
    CHECK(bytes >= mapping.bytes && bytes + 96 <= mapping.bytes + mapping.length, "copied");
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/model_weights", arena, &type, &data), PEN_NOT_FOUND,
                "'/model_weights' is a group, expected a dataset");
    pen_hdf5_close(file);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

static void what_is_no_hdf5_is_refused(void **state) {
    (void)state;
    pen_mapping mapping;
    pen_hdf5 *file = NULL;
    CHECK_ERROR(pen_hdf5_open("x.h5", "short", 5, &file), PEN_CORRUPT,
                "x.h5: not an HDF5 file by its first bytes");
    CHECK_OK(pen_mapping_open(NESTED, &mapping));
    CHECK_ERROR(pen_hdf5_open("x.h5", mapping.bytes, 100, &file), PEN_CORRUPT,
                "x.h5: HDF5 cannot read '/'");
    CHECK_ERROR(pen_hdf5_open("x.h5", mapping.bytes, mapping.length - 1000, &file), PEN_CORRUPT,
                "HDF5 cannot read '/'");
    pen_mapping_close(&mapping);
}

// One file of each kind of storage and of elements, and links and sizes that are refused: made by
// make_hdf5_cases.py.
static void every_storage_gives_the_same_numbers(void **state) {
    (void)state;
    static const char *const paths[] = {"/contiguous", "/chunked", "/packed", "/big_endian",
                                        "/compact"};
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_hdf5 *file = open_file("tests/reference/keras/cases.h5", &mapping);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        pen_tensor_type type;
        const void *data;
        float numbers[12];
        CHECK_OK(pen_hdf5_read_dataset(file, paths[i], arena, &type, &data));
        assert_int_equal(type.element, PEN_FLOAT32);
        assert_int_equal(type.shape.rank, 2);
        memcpy(numbers, data, sizeof numbers);
        for (int k = 0; k < 12; k++)
            CHECK(numbers[k] == (float)k / 4, "%s[%d] is %g", paths[i], k, (double)numbers[k]);
    }
    pen_hdf5_close(file);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

static void what_leads_out_of_the_file_is_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_hdf5 *file = open_file("tests/reference/keras/cases.h5", &mapping);
    pen_tensor_type type;
    const void *data;
    assert_int_equal(pen_hdf5_find(file, "/elsewhere"), PEN_HDF5_OTHER);
    assert_int_equal(pen_hdf5_find(file, "/soft"), PEN_HDF5_OTHER);
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/elsewhere", arena, &type, &data), PEN_NOT_FOUND,
                "'/elsewhere' is something else, expected a dataset");
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/outside", arena, &type, &data), PEN_UNSUPPORTED,
                "'/outside' is in other files");
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/virtual", arena, &type, &data), PEN_UNSUPPORTED,
                "'/virtual' is put together of others");
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/filtered", arena, &type, &data), PEN_UNSUPPORTED,
                "'/filtered' passes through a filter that is not known");
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/pairs", arena, &type, &data), PEN_UNSUPPORTED,
                "'/pairs' has elements that are neither numbers");
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/endless", arena, &type, &data), PEN_CORRUPT,
                "'/endless' has 1099511627776 bytes, more than a file of");
    CHECK_ERROR(pen_hdf5_read_dataset(file, "/deep", arena, &type, &data), PEN_INVALID_INPUT,
                "'/deep' has 9 dimensions, at most 8 can be");
    pen_hdf5_close(file);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

static uint32_t open_file_count(void) {
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void *read_often(void *context) {
    const pen_mapping *mapping = context;
    uintptr_t wrong = 0;
    for (int i = 0; i < 8; i++) {
        pen_hdf5 *file;
        pen_arena *arena = NULL;
        pen_tensor_type type;
        const void *data;
        pen_status status = pen_arena_create(&arena);
        if (status == PEN_OK)
            status = pen_hdf5_open("x.h5", mapping->bytes, mapping->length, &file);
        if (status == PEN_OK) {
            status = pen_hdf5_read_dataset(file, "/packed", arena, &type, &data);
            wrong += status == PEN_OK && ((const float *)data)[11] != 2.75f;
            pen_hdf5_close(file);
        }
        wrong += status != PEN_OK;
        pen_status_ignore(status, "counted");
        pen_arena_destroy(arena);
    }
    return (void *)wrong;
}

// Each file has a process of its own, of which nothing is left when the file is closed.
static void threads_read_beside_each_other(void **state) {
    (void)state;
    pthread_t threads[4];
    pen_mapping mapping;
    const uint32_t files = open_file_count();
    CHECK_OK(pen_mapping_open("tests/reference/keras/cases.h5", &mapping));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &mapping), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    pen_mapping_close(&mapping);
    assert_int_equal(open_file_count(), files);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

// 12 MiB, packed, of which no piece is a whole number of rows of chunks.
static void packed_contents_come_in_pieces(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_hdf5 *file = open_file("tests/reference/keras/pieces.h5", &mapping);
    pen_tensor_type type;
    const void *data;
    CHECK_OK(pen_hdf5_read_dataset(file, "/rows", arena, &type, &data));
    assert_int_equal(type.element, PEN_INT32);
    assert_int_equal(type.shape.dims[0], 3001);
    assert_int_equal(type.shape.dims[1], 1000);
    const int32_t *numbers = data;
    for (int64_t row = 0; row < 3001; row++)
        CHECK(numbers[row * 1000] == row && numbers[row * 1000 + 999] == row, "row %d", (int)row);
    pen_hdf5_close(file);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

// A group that has itself within, and one that two names lead to.
static void circles_end(void **state) {
    (void)state;
    pen_mapping mapping;
    pen_hdf5 *file = open_file("tests/reference/keras/pieces.h5", &mapping);
    assert_int_equal(pen_hdf5_find(file, "/group/again"), PEN_HDF5_OTHER);
    assert_int_equal(pen_hdf5_find(file, "/same/within"), PEN_HDF5_GROUP);
    pen_hdf5_close(file);
    pen_mapping_close(&mapping);
}

PEN_TEST_MAIN(cmocka_unit_test(threads_read_beside_each_other),
              cmocka_unit_test(packed_contents_come_in_pieces), cmocka_unit_test(circles_end),
              cmocka_unit_test(groups_attributes_and_datasets_are_read),
              cmocka_unit_test(the_reading_process_is_confined),
              cmocka_unit_test(its_crash_is_an_error), cmocka_unit_test(what_is_no_hdf5_is_refused),
              cmocka_unit_test(every_storage_gives_the_same_numbers),
              cmocka_unit_test(what_leads_out_of_the_file_is_refused))
