#include "scheduler/store/shared_folder.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define MARK 0x1234567890abcdef

static char found[64];

static bool is_found(pen_shared_folders *folders, const char *path, uint64_t mark) {
    pen_disk *disk;
    return pen_shared_folders_find(folders, path, mark, &disk, found, sizeof found);
}

// Whatever the path is called elsewhere: an end of it is what counts.
static void folders_are_told_by_their_mark(void **unused) {
    (void)unused;
    static const struct {
        const char *path, *name;
    } cases[] = {
        {"/mnt/share/runs/one/shards", "runs/one/shards"},
        {"/runs/one/shards", "runs/one/shards"},
        {"/one/shards", NULL}, // another folder: there is no mark in it
        {"/mnt//share/runs/one/shards", "runs/one/shards"},
        {"/a/b/c", NULL},
        {"", NULL},
        {"/", NULL},
        {"/mnt/runs/one/../one/shards", NULL},
    };
    pen_shared_folders folders = {0};
    char shards[600], above[512];
    snprintf(above, sizeof above, "%s", scratch_path("told"));
    snprintf(shards, sizeof shards, "%s/runs/one/shards", above);
    CHECK_OK(pen_shared_folders_add(&folders, scratch_path("nowhere")));
    CHECK_OK(pen_shared_folders_add(&folders, above));
    assert_false(is_found(&folders, shards, MARK)); // nor are the folders there
    CHECK_OK(pen_shared_folder_mark(shards, MARK));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool is_there = is_found(&folders, cases[i].path, MARK);
        assert_int_equal(is_there, cases[i].name != NULL);
        if (is_there) assert_string_equal(found, cases[i].name);
    }
    assert_true(is_found(&folders, shards, MARK)); // its own path
    assert_false(is_found(&folders, shards, MARK + 1));
    pen_shared_folders itself = {0};
    CHECK_OK(pen_shared_folders_add(&itself, shards));
    assert_true(is_found(&itself, "/wherever/it/is", MARK));
    assert_string_equal(found, ".");
    pen_shared_folder_unmark(shards, MARK);
    assert_false(is_found(&folders, shards, MARK));
    pen_shared_folder_unmark(shards, MARK); // it is gone already
}

// A mark behind a link is none: nobody is led out of his folder.
static void links_are_not_followed(void **unused) {
    (void)unused;
    pen_shared_folders folders = {0};
    char outside[512], root[512], link[600];
    snprintf(outside, sizeof outside, "%s", scratch_path("outside"));
    snprintf(root, sizeof root, "%s", scratch_path("root"));
    snprintf(link, sizeof link, "%s/link", root);
    CHECK_OK(pen_shared_folder_mark(outside, MARK));
    assert_int_equal(mkdir(root, 0777), 0);
    assert_int_equal(symlink(outside, link), 0);
    CHECK_OK(pen_shared_folders_add(&folders, root));
    assert_false(is_found(&folders, "/mnt/link", MARK));
    assert_false(is_found(&folders, "/mnt/../outside", MARK));
    assert_false(is_found(&folders, outside, MARK));
}

// What a killed process left; files of others stay.
static void marks_are_swept(void **unused) {
    (void)unused;
    static const char *const others[] = {".penstock-1234", ".penstock-0123456789abcdefg",
                                         ".penstock-0123456789ABCDEF", "g1-s2-w1.safetensors"};
    pen_shared_folders folders = {0};
    char shards[512], path[600];
    snprintf(shards, sizeof shards, "%s", scratch_path("swept"));
    pen_shared_folder_sweep(shards); // it is not there
    CHECK_OK(pen_shared_folder_mark(shards, MARK));
    CHECK_OK(pen_shared_folder_mark(shards, MARK + 1));
    CHECK_OK(pen_shared_folders_add(&folders, shards));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s/%s", shards, others[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fclose(file);
    }
    pen_shared_folder_sweep(shards);
    assert_false(is_found(&folders, shards, MARK));
    assert_false(is_found(&folders, shards, MARK + 1));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s/%s", shards, others[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
}

// A path that goes on for ever is looked for from its end alone.
static void long_paths_end(void **unused) {
    (void)unused;
    static char path[4096];
    pen_shared_folders folders = {0};
    char shards[600];
    for (size_t i = 0; i + 2 < sizeof path; i += 2) {
        path[i] = '/';
        path[i + 1] = 'a';
    }
    snprintf(shards, sizeof shards, "%s/a", scratch_path("long"));
    CHECK_OK(pen_shared_folder_mark(shards, MARK));
    CHECK_OK(pen_shared_folders_add(&folders, scratch_path("long")));
    assert_true(is_found(&folders, path, MARK));
    assert_string_equal(found, "a");
    char nowhere[8];
    pen_disk *disk;
    assert_false(pen_shared_folders_find(&folders, path, MARK + 1, &disk, nowhere, sizeof nowhere));
}

PEN_TEST_MAIN(cmocka_unit_test(folders_are_told_by_their_mark),
              cmocka_unit_test(links_are_not_followed), cmocka_unit_test(marks_are_swept),
              cmocka_unit_test(long_paths_end))
