#include "base/system/file.h"

#include "tests/support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char file_folder[64];

static int folder_open(void **state) {
    (void)state;
    snprintf(file_folder, sizeof file_folder, "/tmp/pen_file_test.XXXXXX");
    return mkdtemp(file_folder) == NULL;
}

static int folder_close(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/out.txt", file_folder);
    (void)unlink(path);
    return rmdir(file_folder); // fails when anything else was left
}

static const char *folder_path(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", file_folder, name);
    return path;
}

static void write_whole(const char *path, const char *bytes, size_t length) {
    pen_file *file = NULL;
    CHECK_OK(pen_file_create_beside(path, &file));
    CHECK_OK(pen_file_write(file, bytes, length));
    CHECK_OK(pen_file_commit(file));
    CHECK_OK(pen_file_close(file));
}

static void committed_files_appear(void **state) {
    (void)state;
    write_whole(folder_path("out.txt"), "first", 5);
    write_whole(folder_path("out.txt"), "second", 6);
    pen_mapping mapping;
    CHECK_OK(pen_mapping_open(folder_path("out.txt"), &mapping));
    assert_int_equal(mapping.length, 6);
    assert_memory_equal(mapping.bytes, "second", 6);
    pen_mapping_close(&mapping);
    pen_mapping_close(&mapping);
    struct stat about;
    assert_int_equal(stat(folder_path("out.txt"), &about), 0);
    const mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(about.st_mode & 0777, 0666 & ~mask);
}

static void dropped_files_leave_nothing(void **state) {
    (void)state;
    pen_file *file = NULL;
    CHECK_OK(pen_file_create_beside(folder_path("new.txt"), &file));
    CHECK_OK(pen_file_write(file, "x", 1));
    assert_int_equal(access(folder_path("new.txt"), F_OK), -1);
    CHECK_OK(pen_file_close(file));
    CHECK_OK(pen_file_close(NULL));
    assert_int_equal(access(folder_path("new.txt"), F_OK), -1);
}

static void empty_files_map(void **state) {
    (void)state;
    write_whole(folder_path("out.txt"), "", 0);
    pen_mapping mapping;
    CHECK_OK(pen_mapping_open(folder_path("out.txt"), &mapping));
    assert_int_equal(mapping.length, 0);
    assert_non_null(mapping.bytes);
    pen_mapping_close(&mapping);
}

// Advice on how a file is read changes nothing of what is read.
static void advised_mappings_stay_readable(void **state) {
    (void)state;
    pen_mapping mapping;
    write_whole(folder_path("out.txt"), "kept", 4);
    CHECK_OK(pen_mapping_open(folder_path("out.txt"), &mapping));
    pen_mapping_read_ahead(&mapping, false);
    assert_memory_equal(mapping.bytes, "kept", 4);
    pen_mapping_forget(&mapping);
    pen_mapping_read_ahead(&mapping, true);
    assert_memory_equal(mapping.bytes, "kept", 4);
    pen_mapping_close(&mapping);
    pen_mapping_read_ahead(&mapping, false);
}

static void refusals_name_the_path(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_file *file = NULL;
    const char *bytes;
    size_t length;
    CHECK_ERROR(pen_mapping_open(folder_path("none"), &mapping), PEN_NOT_FOUND, "/none'");
    CHECK_ERROR(pen_mapping_open(file_folder, &mapping), PEN_IO, "is a folder");
    CHECK_ERROR(pen_mapping_open("/dev/null", &mapping), PEN_IO, "not a regular file");
    CHECK_ERROR(pen_file_create_beside(folder_path("no/file"), &file), PEN_NOT_FOUND, "no/file'");
    CHECK_ERROR(pen_file_create_beside(file_folder, &file), PEN_IO, "not a regular file");
    CHECK_ERROR(pen_file_read(folder_path("none"), 10, arena, &bytes, &length), PEN_NOT_FOUND,
                "/none'");
    pen_arena_destroy(arena);
}

// Nothing is waited for: neither for a writer, nor for one that is there and does not write.
static void only_regular_files_are_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    char path[4096];
    snprintf(path, sizeof path, "%s", folder_path("pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    const char *const others[] = {path, path, "/dev/zero", "/dev/null"};
    int writer = -1;
    alarm(20);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *bytes;
        size_t length;
        pen_mapping mapping;
        if (i == 1) writer = open(path, O_RDWR | O_NONBLOCK);
        CHECK_ERROR(pen_file_read(others[i], 10, arena, &bytes, &length), PEN_IO,
                    "it is a pipe or a device, not a regular file");
        CHECK_ERROR(pen_mapping_open(others[i], &mapping), PEN_IO, "is a pipe or a device");
    }
    alarm(0);
    close(writer);
    unlink(path);
    pen_arena_destroy(arena);
}

static void outputs_are_tried_and_folders_made(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    char deep[4096], file[4100];
    snprintf(deep, sizeof deep, "%s", folder_path("a/b/c"));
    CHECK_OK(pen_folder_create(deep, arena));
    CHECK_OK(pen_folder_create(deep, arena));
    snprintf(file, sizeof file, "%s/out", deep);
    CHECK_OK(pen_file_check_writable(file));
    assert_int_equal(access(file, F_OK), -1);
    write_whole(file, "kept", 4);
    CHECK_OK(pen_file_check_writable(file));
    const char *bytes;
    size_t length;
    CHECK_OK(pen_file_read(file, 10, arena, &bytes, &length));
    assert_string_equal(bytes, "kept");
    CHECK_ERROR(pen_folder_create(file, arena), PEN_IO, "not a folder");
    CHECK_ERROR(pen_file_check_writable(deep), PEN_IO, "not a regular file");
    unlink(file);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rmdir(deep), 0); // and nothing was left in it
        *strrchr(deep, '/') = '\0';
    }
    pen_arena_destroy(arena);
}

static void folders_go_as_deep_as_asked(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    char top[4096], inner[4100], file[4200], outside[4096], link[4200];
    snprintf(outside, sizeof outside, "%s", folder_path("outside"));
    CHECK_OK(pen_folder_create(outside, arena));
    snprintf(top, sizeof top, "%s", folder_path("top"));
    snprintf(inner, sizeof inner, "%s/in", top);
    snprintf(link, sizeof link, "%s/link", top);
    CHECK_OK(pen_folder_create(inner, arena));
    assert_int_equal(symlink(outside, link), 0);
    snprintf(file, sizeof file, "%s/out", inner);
    write_whole(file, "kept", 4);
    pen_folder_remove(top, 0);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(access(link, F_OK), -1);
    pen_folder_remove(top, 1);
    assert_int_equal(access(top, F_OK), -1);
    assert_int_equal(rmdir(outside), 0);
    pen_folder_remove(top, 1);
    pen_arena_destroy(arena);
}

static void small_files_are_read_whole(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    static char pattern[70000];
    for (size_t i = 0; i < sizeof pattern; i++) {
        pattern[i] = (char)(i * 7 / 3);
    }
    const char *bytes;
    size_t length;
    static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 65535, 65536, 70000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        write_whole(folder_path("out.txt"), pattern, lengths[i]);
        CHECK_OK(pen_file_read(folder_path("out.txt"), lengths[i], arena, &bytes, &length));
        assert_int_equal(length, lengths[i]);
        if (length > 0) assert_memory_equal(bytes, pattern, length);
        assert_int_equal(bytes[length], 0);
        if (lengths[i] == 0) continue;
        CHECK_ERROR(pen_file_read(folder_path("out.txt"), lengths[i] - 1, arena, &bytes, &length),
                    PEN_INVALID_INPUT, "longer than");
    }
    pen_arena_destroy(arena);
}

static void a_full_disk_keeps_the_old_file(void **state) {
    (void)state;
    write_whole(folder_path("out.txt"), "old", 3);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    static const char zeros[100000];
    pen_file *file = NULL;
    CHECK_OK(pen_file_create_beside(folder_path("out.txt"), &file));
    pen_status status = pen_file_write(file, zeros, sizeof zeros);
    if (status == PEN_OK) status = pen_file_commit(file);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_ERROR(status, PEN_NO_STORAGE, "out.txt'"); // as a full disk
    CHECK_OK(pen_file_close(file));
    pen_mapping mapping;
    CHECK_OK(pen_mapping_open(folder_path("out.txt"), &mapping));
    assert_int_equal(mapping.length, 3);
    pen_mapping_close(&mapping);
}

static void paths_beside(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *path;
    CHECK_OK(pen_path_beside(arena, "jobs/a.yaml", "data/x", &path));
    assert_string_equal(path, "jobs/data/x");
    CHECK_OK(pen_path_beside(arena, "a.yaml", "data/x", &path));
    assert_string_equal(path, "data/x");
    CHECK_OK(pen_path_beside(arena, "jobs/a.yaml", "/x", &path));
    assert_string_equal(path, "/x");
    CHECK_OK(pen_path_beside(arena, "/a.yaml", "x", &path));
    assert_string_equal(path, "/x");
    assert_string_equal(pen_path_name("a/b"), "b");
    assert_string_equal(pen_path_name("b"), "b");
    pen_arena_destroy(arena);
}

static void room_of_a_disk(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_path_room here, deeper, elsewhere;
    CHECK_OK(pen_path_find_room(file_folder, arena, &here));
    CHECK_OK(pen_path_find_room(folder_path("not/there/yet.txt"), arena, &deeper));
    assert_true(here.bytes > 0 && deeper.disk == here.disk);
    CHECK_OK(pen_path_find_room("not_there_either", arena, &deeper)); // in the working folder
    CHECK_OK(pen_path_find_room("/proc", arena, &elsewhere));
    assert_true(elsewhere.bytes == UINT64_MAX && elsewhere.disk != here.disk); // not said
    assert_int_equal(pen_file_error_code(ENOSPC), PEN_NO_STORAGE);
    assert_int_equal(pen_file_error_code(EACCES), PEN_IO);
    pen_arena_destroy(arena);
}

static void paths_to_one_file(void **state) {
    (void)state;
    char there[128], other[128], linked[128];
    snprintf(there, sizeof there, "%s/out.txt", file_folder);
    snprintf(other, sizeof other, "%s/other.txt", file_folder);
    snprintf(linked, sizeof linked, "%s/linked.txt", file_folder);
    write_whole(there, "x", 1);
    assert_true(pen_path_is_within("/proc/self", "/"));
    assert_false(pen_path_is_within("/", "/"));
    assert_false(pen_path_is_within("/tmp", "/t"));
    assert_false(pen_path_is_within("/tmp", "/tmp/."));
    assert_true(pen_path_is_within("/usr/../usr/bin", "/usr"));
    assert_true(pen_path_is_same("nowhere/a", "nowhere/a"));
    assert_false(pen_path_is_same("nowhere/a", "./nowhere/a")); // there is no folder to tell by
    assert_true(pen_path_is_same("not_there", "./not_there"));
    assert_false(pen_path_is_same("not_there", "./nor_there"));
    assert_true(pen_path_is_same(there, folder_path("./out.txt")));
    assert_false(pen_path_is_same(there, other)); // which is not there
    assert_true(pen_path_is_same(other, folder_path("./other.txt")));
    write_whole(other, "x", 1);
    assert_false(pen_path_is_same(there, other));
    assert_int_equal(symlink("out.txt", linked), 0);
    assert_true(pen_path_is_same(linked, there));
    assert_int_equal(unlink(linked), 0);
    assert_int_equal(unlink(other), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_files_appear),
        cmocka_unit_test(dropped_files_leave_nothing),
        cmocka_unit_test(empty_files_map),
        cmocka_unit_test(advised_mappings_stay_readable),
        cmocka_unit_test(refusals_name_the_path),
        cmocka_unit_test(only_regular_files_are_read),
        cmocka_unit_test(outputs_are_tried_and_folders_made),
        cmocka_unit_test(folders_go_as_deep_as_asked),
        cmocka_unit_test(small_files_are_read_whole),
        cmocka_unit_test(a_full_disk_keeps_the_old_file),
        cmocka_unit_test(paths_beside),
        cmocka_unit_test(room_of_a_disk),
        cmocka_unit_test(paths_to_one_file),
    };
    return cmocka_run_group_tests(tests, folder_open, folder_close);
}
